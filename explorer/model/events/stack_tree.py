"""Everything that compiled as a tree of the user's call stacks, roots first, with its cost at each frame."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from explorer.model.events.event import Place
from explorer.model.units import count_text


@dataclass(slots=True)
class StackTree:
    """One frame of the user's, or one compiled function at the end of a stack; the root is neither.

    Args:
        place: The frame's line; None for a function, and the root.
        function: The function that was compiled; empty for a frame.
        count: How many calls had to trace, lower or compile here and below.
        self_seconds: What was compiled from this very line took so long.
        seconds: The same with everything below.
        ids: The compiles of a function, oldest first: `[step/0]`.
        children: In the order in which they were first reached.

    Example:
        >>> import explorer as ex
        >>> main, train = ex.Place("train.py", 9, function="main"), ex.Place("train.py", 4, function="train")
        >>> ledger = ex.Ledger()
        >>> ledger.add((ex.Event("compile", "step", seconds=0.5, stack=(train, main), id="[step/0]", call=1),))
        >>> print(ledger.tree())
        1 compiled call, 0.5 s
        └─ train.py, line 9 (main)  1× 0.5 s
           └─ train.py, line 4 (train)  1× 0.5 s
              └─ step  [step/0]  1× 0.5 s
    """

    place: Place | None = None
    function: str = ""
    process: str = ""
    count: int = 0
    self_seconds: float = 0.0
    seconds: float = 0.0
    ids: list[str] = field(default_factory=list[str])
    children: list[StackTree] = field(default_factory=list["StackTree"])

    @property
    def label(self) -> str:
        """What stands at this node: a frame's line and function, or what was compiled."""
        if self.place is not None:
            return f"{self.place} ({self.place.function})" if self.place.function else str(self.place)
        if not self.function:
            return count_text(self.count, "compiled call")
        return f"{self.function}  {_few(self.ids)}" if self.ids else self.function

    def __iter__(self) -> Iterator[tuple[int, StackTree]]:
        """This node and all below with their depth, from 0, as a reader meets them."""
        rest = [(0, self)]
        while rest:
            depth, node = rest.pop()
            yield depth, node
            rest += [(depth + 1, child) for child in reversed(node.children)]

    @property
    def text(self) -> str:
        """The tree drawn with lines, with counts and seconds."""
        drawn = [f"{self.label}, {self.seconds:.3g} s"]
        rest = [(child, "", child is self.children[-1]) for child in reversed(self.children)]
        while rest:
            node, indent, is_last = rest.pop()
            drawn.append(f"{indent}{'└─ ' if is_last else '├─ '}{node.label}  {node.count}× {node.seconds:.3g} s")
            below = indent + ("   " if is_last else "│  ")
            rest += [(child, below, child is node.children[-1]) for child in reversed(node.children)]
        return "\n".join(drawn)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"StackTree({self.label}; {count_text(len(self.children), 'child').replace('childs', 'children')})"


def _few(ids: list[str]) -> str:
    return " ".join(ids) if len(ids) <= 4 else f"{ids[0]} … {ids[-1]}"
