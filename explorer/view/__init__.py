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
            from explorer.view.carriers import carries
            from explorer.view.html import fragment

            if live.in_terminal():
                from explorer.view.terminal import ansi

                return {"text/plain": ansi(capture)}
            capture.record_small()
            live.connect(capture)
            return {"text/html": fragment(capture, carries()), "text/plain": text}
        except Exception as error:  # a fault in the view must not cost the user their result
            return {"text/plain": f"{text}\n(the view failed: {type(error).__name__}: {error})"}

    def html(self, capture: Capture) -> str:
        from explorer.view.html import page

        capture.record_small()
        return page(capture)

    def text(self, capture: Capture, width: int) -> str:
        from explorer.view.terminal import plain

        return plain(capture, width)

    def rich(self, capture: Capture) -> Any:
        from explorer.view.terminal import tree

        return tree(capture)

    def svg(self, capture: Capture) -> str:
        from explorer.view.picture import picture

        return picture(capture)

    def png(self, capture: Capture, scale: float) -> bytes:
        from explorer.view.picture import png

        return png(capture, scale)

    def widget(self, capture: Capture) -> Any:
        from explorer.view.live import widget

        capture.record_small()
        return widget(capture)

    def view(self, capture: Capture) -> Any:
        from explorer.view.steer import View

        return View(capture)
