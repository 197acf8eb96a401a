"""How what-ifs are shown: the picture, and behind each row what the compiler did otherwise."""

from __future__ import annotations

from explorer.model.results.what_if import WhatIf
from explorer.view.chart import Chart
from explorer.view.interface import View
from explorer.view.measure.what_if_chart import what_if_chart
from explorer.view.measure.what_if_html import fragment
from explorer.view.measure.what_if_picture import picture

__all__ = ["WhatIfView"]


class WhatIfView(View[WhatIf]):
    """The picture, and behind each row what differs."""

    def title(self, value: WhatIf) -> str:
        return f"what if: {value.function}"

    def html(self, value: WhatIf) -> str:
        return fragment(value)

    def svg(self, value: WhatIf) -> str:
        return picture(value)

    def chart(self, value: WhatIf) -> Chart:
        return what_if_chart(value)
