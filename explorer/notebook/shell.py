"""What all our magics have in common, and those that stand over one call of the user's."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, Protocol, TypeVar

from IPython.core.magic import Magics
from IPython.display import display  # pyright: ignore[reportUnknownVariableType] - IPython annotates it in part

from explorer.errors import ExpressionError
from explorer.notebook.calls import CALLEE, assigns, last_call, redirect, single_call
from explorer.notebook.place import parse_cell, typed_column

_Found = TypeVar("_Found", covariant=True)


class StandIn(Protocol[_Found]):
    """Stands in for the callee of the user's call; `result` is what came of it, None before."""

    @property
    def result(self) -> _Found | None: ...
    def __call__(self, function: Any, /, *args: Any, **kwargs: Any) -> Any: ...


class ShellMagics(Magics):
    """The magics of one shell; `replaced` are those of others whose names they took."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell=shell)
        self.shell: Any = shell
        self.replaced: dict[str, dict[str, Any]] = {}

    def stop(self) -> None:
        """End what goes on by itself, when the extension is unloaded; for most nothing does."""


class CallMagics(ShellMagics):
    """Magics over one call: an expression on their own line, or the last statement of their cell."""

    def result_of(
        self,
        magic: str,
        stand_in: Callable[[bool], StandIn[_Found]],
        line: str,
        expression: str,
        cell: str | None,
        frame: FrameType | None,
        local_ns: Mapping[str, Any] | None,
    ) -> _Found:
        """Run the user's call with a stand-in for its callee, and return what that found.

        Args:
            magic: The magic's name, for what is said.
            stand_in: Makes the stand-in, told whether the user wants the call's value too: `y = f(x)`.
            line, expression: The magic's line, and what is left of it without options.
            cell: The cell below the line; None for a line magic.
            frame: The user's, where there is one.
            local_ns: The names of the function that the magic stands in.

        Raises:
            ExpressionError: There is no such call.
        """
        __tracebackhide__ = True
        if cell is None:
            return self._line(magic, stand_in, expression, frame, local_ns)
        if expression:
            raise ExpressionError(
                f"%%{magic} takes only options on its first line.\n  given:  {expression}\n"
                f"  Hint: make it the last line of the cell, or write %{magic} {expression}"
            )
        tree, file = parse_cell(self.shell, frame, f"%%{magic} {line}", cell)
        statement = last_call(tree, magic)
        exec(self.shell.compile(tree, file, "exec"), self.shell.user_ns)
        return self._run(stand_in, statement, file, self.shell.user_ns)

    def _line(
        self,
        magic: str,
        stand_in: Callable[[bool], StandIn[_Found]],
        expression: str,
        frame: FrameType | None,
        local_ns: Mapping[str, Any] | None,
    ) -> _Found:
        __tracebackhide__ = True
        file, line = (frame.f_code.co_filename, frame.f_lineno) if frame is not None else (f"<{magic}>", 1)
        statement = single_call(expression, line, typed_column(file, line, expression), magic)
        namespace = self.shell.user_ns
        if local_ns is not None and local_ns is not namespace:  # the magic stands in a function
            namespace = {**namespace, **local_ns}
        return self._run(stand_in, statement, file, namespace)

    def _run(
        self,
        stand_in: Callable[[bool], StandIn[_Found]],
        statement: ast.stmt,
        file: str,
        namespace: dict[str, Any],
    ) -> _Found:
        """What was found is displayed also where the call itself fails after it."""
        __tracebackhide__ = True
        call = stand_in(assigns(statement))
        namespace[CALLEE] = call
        ended = False
        try:
            exec(self.shell.compile(redirect(statement), file, "exec"), namespace)
            ended = True
        finally:
            namespace.pop(CALLEE, None)
            if not ended and call.result is not None:
                display(call.result)
        assert call.result is not None
        return call.result
