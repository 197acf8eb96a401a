"""A profile as text, picture, page, flame chart and live view. Imports no JAX."""

from __future__ import annotations

from explorer.model.results.profile import Profile
from explorer.view.chart import Chart
from explorer.view.interface import View
from explorer.view.measure.profile.chart import flame_chart
from explorer.view.measure.profile.html import fragment, linked
from explorer.view.measure.profile.picture import picture
from explorer.view.session import in_kernel

__all__ = ["ProfileView"]


class ProfileView(View[Profile]):
    """The interactive view; a picture and tables where no script runs."""

    def title(self, value: Profile) -> str:
        return f"{value.function} profiled"

    def html(self, value: Profile) -> str:
        return fragment(value, invites=False)

    def output(self, value: Profile) -> dict[str, str]:
        return {"text/html": fragment(value, linked(value) if in_kernel() else None)}

    def svg(self, value: Profile) -> str:
        return picture(value)

    def chart(self, value: Profile) -> Chart:
        return flame_chart(value)
