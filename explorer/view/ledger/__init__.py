"""A ledger as text, picture, page, chart and live view; knows the model alone, no JAX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from explorer.model.events.ledger import Ledger

if TYPE_CHECKING:
    from explorer.view.charts import Chart
    from explorer.view.ledger.link import Link

__all__ = ["HtmlLedgerViewer", "bundle_of"]


class HtmlLedgerViewer:
    """Shows ledgers in notebooks and pages. The parts load when something is shown first."""

    def display(self, ledger: Ledger) -> bool:
        """Display a ledger that still grows, and keep that up to date; False where it is shown as others are."""
        from explorer.view import live
        from explorer.view.ledger.message import is_on

        if not is_on(ledger) or not live.in_kernel():
            return False
        try:
            from explorer.view.ledger.link import linked

            linked(ledger).show()
        except Exception:  # then as any other: that says what the matter is
            return False
        return True

    def mimebundle(self, ledger: Ledger) -> dict[str, str]:
        """What a notebook shows: the interactive view, or text with the reason if the view fails."""
        from explorer.view import live

        try:
            if live.in_terminal():
                from explorer.view.ledger.terminal import ansi

                return {"text/plain": ansi(ledger)}
            from explorer.view.ledger.link import linked

            return bundle_of(ledger, linked(ledger) if live.in_kernel() else None)
        except Exception as error:  # a fault in the view must not cost the user their result
            return {"text/plain": f"{ledger!r}\n(the view failed: {type(error).__name__}: {error})"}

    def html(self, ledger: Ledger) -> str:
        from explorer.view.ledger.html import page

        return page(ledger)

    def text(self, ledger: Ledger, width: int) -> str:
        from explorer.view.ledger.terminal import plain

        return plain(ledger, width)

    def rich(self, ledger: Ledger) -> Any:
        from explorer.view.ledger.terminal import tree

        return tree(ledger)

    def timeline(self, ledger: Ledger) -> Chart:
        from explorer.view.ledger.timeline import timeline

        return timeline(ledger)


def bundle_of(ledger: Ledger, link: Link | None) -> dict[str, str]:
    """What an output holds; with a link, the page asks it for what comes later."""
    from explorer.view.ledger.html import fragment

    return {"text/html": fragment(ledger, link), "text/plain": repr(ledger)}
