"""One representation of a function on its way through the compiler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from explorer.model.attached import attached
from explorer.model.attribution import Attribution
from explorer.model.cached import cached_property
from explorer.model.graph import Graph


class WrittenLine(NamedTuple):
    """A line of a stage's text, without what it says of the source.

    Args:
        number: In the text, from 0.
        parts: In turns what is no name, first and last, and the names in between.
        is_end: It says nothing, or ends what is before it.
        is_of_module: It begins or ends the module.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> lines = explorer.explore(jnp.sin, jnp.ones(8)).jaxpr.written_lines
        >>> sine = next(line for line in lines if "sin" in line.text)
        >>> sine.text, sine.without_names
        ('  b:f32[8] = sin a', '  ·:f32[8] = · ·')
    """

    number: int
    parts: tuple[str, ...]
    is_end: bool
    is_of_module: bool

    @property
    def text(self) -> str:
        return "".join(self.parts)

    @property
    def without_names(self) -> str:
        """Equal for lines that say the same of other names."""
        return "·".join(self.parts[::2])

    def renamed(self, rename: Callable[[str], str]) -> str:
        """The text with each name replaced."""
        return "".join(rename(part) if at % 2 else part for at, part in enumerate(self.parts))


@dataclass(eq=False, repr=False)
class Stage:
    """One representation of the function: its text, and its graph linked to the text by line.

    Nothing is read until it is asked for: `read` is called at most once, by the first access to `text` or `graph`.

    Args:
        name: `jaxpr`, `stablehlo`, `hlo`.
        read: Returns the text and its graph.
        origin: The stage that it was made of by `attributed`, if it was.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> capture = explorer.explore(jnp.sin, jnp.ones(8))
        >>> stage = capture.stage("stablehlo")
        >>> stage.name, "stablehlo.sine" in stage.text, [node.op for node in stage.graph.where("op:sine")]
        ('stablehlo', True, ['stablehlo.sine'])
    """

    name: str
    read: Callable[[], tuple[str, Graph]]
    origin: Stage | None = None

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

    @cached_property
    @attached
    def written_lines(self) -> Sequence[WrittenLine]:
        """The lines that say something of the program, with the places of names in them."""
        ...

    def attributed(self, attribute: Callable[[Graph], Attribution]) -> Stage:
        """The same stage, read once for both, with a graph that asks `attribute` for the lines of its nodes."""
        origin = self.origin or self

        def read() -> tuple[str, Graph]:
            return origin.text, replace(origin.graph, attribute=attribute)

        return Stage(self.name, read, origin)

    def forget_attribution(self) -> None:
        """Let the lines of the nodes be decided anew, where more is known of the capture now."""
        if "_content" in self.__dict__:
            self.graph.__dict__.pop("attribution", None)

    def __repr__(self) -> str:
        return f"Stage({self.name!r})"
