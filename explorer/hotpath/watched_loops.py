"""What watched loops ask of hot paths."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType

from explorer.hotpath.hot import HotFunction
from explorer.hotpath.options import Options


class LoopOwner:
    """Has the functions compiled that loops are made of.

    Args:
        functions: All that are watched; theirs come to these.
        options: How each is.
        least_seconds: Of eager time, before something is compiled.
        is_on: Whether hot paths are on now.
    """

    def __init__(
        self,
        functions: dict[FunctionType, HotFunction],
        options: Options,
        least_seconds: float,
        is_on: Callable[[], bool],
    ) -> None:
        self._functions, self._options, self.least_seconds, self._is_on = functions, options, least_seconds, is_on

    @property
    def on(self) -> bool:
        return self._is_on()

    def adopt(self, function: FunctionType) -> HotFunction:
        """A function that stands for statements of a cell, whose turns ask it; nobody calls it."""
        hot = self._functions[function] = HotFunction(function, self._options)
        hot.watch()
        return hot
