"""A capture as text, picture, page and widget; knows the model alone, no JAX."""

from __future__ import annotations

from typing import Any

from explorer.model.capture import Capture

__all__ = ["HtmlViewer"]


class HtmlViewer:
    """Shows captures in notebooks and pages.

    The parts load when something is shown first: a script that only explores pays nothing for the view.
    """

    def mimebundle(self, capture: Capture) -> dict[str, str]:
        """What a notebook shows: the interactive view, or text with the reason if the view fails."""
        text = repr(capture)
        try:
            from explorer.view import live
            from explorer.view.html import fragment

            live.connect(capture)
            return {"text/html": fragment(capture), "text/plain": text}
        except Exception as error:  # a fault in the view must not cost the user their result
            return {"text/plain": f"{text}\n(the view failed: {type(error).__name__}: {error})"}

    def html(self, capture: Capture) -> str:
        from explorer.view.html import page

        return page(capture)

    def widget(self, capture: Capture) -> Any:
        from explorer.view.live import widget

        return widget(capture)

    def view(self, capture: Capture) -> Any:
        from explorer.view.steer import View

        return View(capture)
