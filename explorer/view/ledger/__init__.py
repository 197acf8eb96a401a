"""A ledger as text, picture, page, chart and live view. Imports no JAX."""

from __future__ import annotations

from typing import Any

from explorer.model.events.ledger import Ledger
from explorer.view.chart import Chart
from explorer.view.interface import View
from explorer.view.ledger.calls import calls_of, verdict_of
from explorer.view.ledger.html import fragment, picture
from explorer.view.ledger.link import link_to
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
        return {"text/html": fragment(value, link_to(value) if in_kernel() else None)}

    def svg(self, value: Ledger) -> str:
        calls = calls_of(value.events)
        return picture(calls, verdict_of(calls))

    def chart(self, value: Ledger) -> Chart:
        return LedgerChart(value)


def display_live(ledger: Ledger) -> None:
    """Display a ledger that still grows, and keep the display up to date.

    Raises:
        NotImplementedError: It doesn't grow, or its live view failed: IPython then displays it like any other value.
    """
    if not is_on(ledger) or not in_kernel():
        raise NotImplementedError
    try:
        link_to(ledger).show()
    except Exception as error:
        raise NotImplementedError from error
