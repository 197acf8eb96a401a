"""Something displayed that is displayed anew when what it shows has changed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from explorer.view.chart import PLOTLY
from explorer.view.session import ipython_shell


@dataclass(eq=False)
class Output:
    """One output of a cell.

    Args:
        id: What the notebook knows it by.
        make: Gives what to display.
        every: Seconds between two updates within a cell; 0: none, a wire sees to it.
    """

    id: str
    make: Callable[[], dict[str, Any]]
    every: float = 0.0
    stored: object = None
    _at: float = 0.0

    def publish(self, state: object, update: bool) -> None:
        self.stored, self._at = state, time.monotonic()
        shown = self.make()
        publish = ipython_shell().display_pub.publish
        if update and PLOTLY in shown:
            # Plotly's renderer in JupyterLab never redraws a chart that it has drawn: another kind of output in between
            # makes a new renderer.
            between = {kind: data for kind, data in shown.items() if kind != PLOTLY}
            publish(data=between, transient={"display_id": self.id}, update=True)
        publish(data=shown, transient={"display_id": self.id}, update=update)

    def is_due(self) -> bool:
        return self.every > 0 and time.monotonic() - self._at >= self.every
