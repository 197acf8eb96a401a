"""A profile as text, picture, page, flame chart and live view; knows the model alone, no JAX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from explorer.model.results.flame import By
from explorer.model.results.profile import Profile

if TYPE_CHECKING:
    from explorer.view.charts import Chart

__all__ = ["HtmlProfileViewer"]


class HtmlProfileViewer:
    """Shows profiles in notebooks and pages. The parts load when something is shown first."""

    def mimebundle(self, profile: Profile) -> dict[str, str]:
        """What a notebook shows: the interactive view, or text with the reason if the view fails."""
        from explorer.view import live

        try:
            if live.in_terminal():
                from explorer.view.measure.profile.terminal import ansi

                return {"text/plain": ansi(profile)}
            from explorer.view.measure.profile.html import fragment
            from explorer.view.measure.profile.link import linked

            name = linked(profile) if live.in_kernel() else None
            return {"text/html": fragment(profile, name), "text/plain": repr(profile)}
        except Exception as error:  # a fault in the view must not cost the user their result
            return {"text/plain": f"{profile!r}\n(the view failed: {type(error).__name__}: {error})"}

    def html(self, profile: Profile) -> str:
        from explorer.view.measure.profile.html import page

        return page(profile)

    def text(self, profile: Profile, width: int) -> str:
        from explorer.view.measure.profile.terminal import plain

        return plain(profile, width)

    def rich(self, profile: Profile) -> Any:
        from explorer.view.measure.profile.terminal import tree

        return tree(profile)

    def flame_chart(self, profile: Profile, by: By) -> Chart:
        from explorer.view.measure.profile.chart import flame_chart

        return flame_chart(profile, by)
