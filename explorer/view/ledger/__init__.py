"""A ledger as text, picture, page, chart and live view. Imports no JAX."""

from __future__ import annotations

from typing import Any

from explorer.model.events.ledger import Ledger
from explorer.view.chart import Chart
from explorer.view.interface import View
from explorer.view.ledger.calls import calls_of
from explorer.view.ledger.html import fragment, picture
from explorer.view.ledger.link import LedgerLink, show_live
from explorer.view.ledger.message import is_on
from explorer.view.ledger.timeline import LedgerChart
from explorer.view.session import in_kernel

__all__ = ["LedgerView", "display_live"]


class LedgerView(View[Ledger]):
    """The interactive view, updated by a running kernel; a picture and tables where no script runs."""

    def title(self, value: Ledger) -> str:
        return "recompile ledger"

    def html(self, value: Ledger) -> str:
        return fragment(value, invites=False)

    def output(self, value: Ledger) -> dict[str, Any]:
        return {"text/html": fragment(value, LedgerLink.of(value) if in_kernel() else None)}

    def svg(self, value: Ledger) -> str:
        return picture(calls_of(value.events))

    def chart(self, value: Ledger) -> Chart:
        return LedgerChart(value)


def display_live(ledger: Ledger) -> None:
    """Display a ledger that still grows; see `show_live`."""
    show_live(LedgerLink.of, ledger, is_on(ledger))
