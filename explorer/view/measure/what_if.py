"""Who shows what-ifs. The parts load when something is shown first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from explorer.model.results.what_if import WhatIf

if TYPE_CHECKING:
    from explorer.view.charts import Chart

__all__ = ["HtmlWhatIfViewer"]


class HtmlWhatIfViewer:
    """Shows what-ifs in notebooks and pages."""

    def chart(self, what_if: WhatIf) -> Chart:
        from explorer.view.measure.what_if_chart import what_if_chart

        return what_if_chart(what_if)

    def mimebundle(self, what_if: WhatIf) -> dict[str, Any]:
        """What a notebook shows: the picture, with what differs behind each row; text if that fails."""
        text = repr(what_if)
        try:
            from explorer.view import live

            if live.in_terminal():
                return {"text/plain": text}
            from explorer.view.measure.what_if_html import fragment

            return {"text/html": fragment(what_if), "text/plain": text}
        except Exception as error:  # a fault in the view must not cost the user their result
            return {"text/plain": f"{text}\n(the view failed: {type(error).__name__}: {error})"}

    def html(self, what_if: WhatIf) -> str:
        from explorer.view.html import document
        from explorer.view.measure.what_if_html import fragment

        return document(f"what if: {what_if.function} – Explorer", fragment(what_if))
