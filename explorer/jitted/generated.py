"""Functions that are written for one structure of the state, line by line, and compiled by Python.

Nothing of the user's becomes text but keys that are plain texts and numbers: everything else is bound to a name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class Generated:
    """A function while it is written."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._bound: dict[str, Any] = {}
        self._names: dict[int, str] = {}  # by address, while `_bound` keeps each value alive
        self._locals = 0

    def add(self, line: str) -> None:
        self.lines.append(line)

    def local(self) -> str:
        """A new name for a local variable."""
        self._locals += 1
        return f"v{self._locals}"

    def bind(self, value: Any) -> str:
        """The global name that stands for a value."""
        name = self._names.get(id(value))
        if name is None:
            name = self._names[id(value)] = f"c{len(self._bound)}"
            self._bound[name] = value
        return name

    def key(self, value: Any) -> str:
        """An expression for a key of a dict."""
        return repr(value) if type(value) in (str, int) else self.bind(value)

    def function(self, name: str, parameters: Sequence[str], or_none: bool = False) -> Callable[..., Any]:
        """The function; with `or_none` it gives None instead of an error."""
        lines = [f"def {name}({', '.join(parameters)}):"]
        if or_none:
            lines += [" try:", *(f"  {line}" for line in self.lines), " except Exception: return None"]
        else:
            lines += [f" {line}" for line in self.lines or ["pass"]]
        exec(compile("\n".join(lines), f"<explorer: {name}>", "exec"), self._bound)
        return self._bound.pop(name)


def bulk(names: Sequence[str]) -> str:
    """A tuple of some names."""
    return f"({', '.join(names)},)" if names else "()"
