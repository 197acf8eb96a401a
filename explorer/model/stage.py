"""One representation of a function on its way through the compiler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from explorer.model.graph import Graph


@dataclass(eq=False, repr=False)
class Stage:
    """One representation of the function: its text, and its graph linked to the text by line.

    Nothing is read until it is asked for: `read` is called at most once, by the first access to `text` or `graph`.

    Args:
        name: `jaxpr`, `stablehlo`, `hlo`.
        read: Returns the text and its graph.
    """

    name: str
    read: Callable[[], tuple[str, Graph]]

    @cached_property
    def text(self) -> str:
        return self._content[0]

    @cached_property
    def graph(self) -> Graph:
        return self._content[1]

    @cached_property
    def _content(self) -> tuple[str, Graph]:
        content = self.read()
        # Lets go of what was read from: an executable with its memory.
        self.read = lambda: content
        return content

    def __repr__(self) -> str:
        return f"Stage({self.name!r})"
