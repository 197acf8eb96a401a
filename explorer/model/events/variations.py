"""A ledger by function and by caller: what varies over a function's calls, and the tree of the user's call stacks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from explorer.model.events.event import Place
from explorer.model.units import count_text


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a property, with the number and ids of the compiled calls that had it."""

    text: str
    count: int
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Variation:
    """One property of one argument over all compiled calls of a function.

    Args:
        leaf: Array or static argument: `batch['x']`; empty for other properties.
        aspect: `shape[0]`, `rank`, `dtype`, `weak type`, `committed`, `sharding`, `devices`, `layout`, `given`,
            `value`, `type`, `object`, `structure`, `function object`, `wrapper`, `donated`, or a setting's name.
        values: Values in order of appearance.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> xs = [jnp.ones((n, 3)) for n in (1, 2)]
        >>> double = jax.jit(lambda x: x * 2)
        >>> with explorer.watch() as ledger:
        ...     _ = [double(x) for x in xs]
        >>> [(one.name, [str(value.text) for value in one.values]) for one in ledger.varying("<lambda>").varying]
        [('x.shape[0]', ['1', '2'])]
    """

    leaf: str
    aspect: str
    values: tuple[Value, ...]

    @property
    def is_constant(self) -> bool:
        return len(self.values) == 1

    @property
    def name(self) -> str:
        """Return the property's name, such as `batch['x'].shape[0]`, `x dtype` or `structure`."""
        joint = "." if self.aspect.startswith("shape[") else " "
        return f"{self.leaf}{joint}{self.aspect}" if self.leaf else self.aspect

    def __repr__(self) -> str:
        few = ", ".join(f"{value.text} {value.count}×" for value in self.values[:4])
        return f"Variation({self.name}: {few}{', …' if len(self.values) > 4 else ''})"


@dataclass(frozen=True, slots=True)
class Variations:
    """All properties of a function's compiled calls.

    Args:
        function: Its name.
        calls: How many compiled calls there are to compare.
        rows: All properties, in the order of the arguments.

    Example:
        >>> import explorer
        >>> from explorer.model.events.key import Function, Key, Leaf
        >>> ledger = explorer.Ledger()
        >>> for n in (8, 9):
        ...     key = Key(Function("step"), (Leaf("x", (n, 4), "float32"),))
        ...     ledger.add((explorer.types.Event("compile", "step", key=key, id=f"[step/{n - 8}]", call=n),))
        >>> print(ledger.varying("step"))
        step: 2 compiled calls
          x.shape[0]  8 1× [step/0], 9 1× [step/1]
        The same in all: x.shape[1] = 4, x dtype = float32
    """

    function: str
    calls: int
    rows: tuple[Variation, ...]

    @property
    def varying(self) -> tuple[Variation, ...]:
        """Return the properties with several values."""
        return tuple(row for row in self.rows if not row.is_constant)

    @property
    def constant(self) -> tuple[Variation, ...]:
        """Return the properties with one value, the same in every call."""
        return tuple(row for row in self.rows if row.is_constant)

    def __iter__(self) -> Iterator[Variation]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def text(self) -> str:
        """Return the varying properties with their values, one per line, then relevant constant ones."""
        varying = self.varying
        width = max((len(row.name) for row in varying), default=0)
        lines = [f"{self.function}: {count_text(self.calls, 'compiled call')}"]
        lines += [f"  {row.name:<{width}}  {_values(row)}" for row in varying]
        if not varying and self.calls > 1:
            lines.append("  Nothing that could be seen varies.")
        settled = [f"{row.name} = {row.values[0].text}" for row in self.constant if _is_worth_showing(row)]
        if settled:
            more = f" and {len(settled) - 12} more" if len(settled) > 12 else ""
            lines.append(f"The same in all: {', '.join(settled[:12])}{more}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        names = ", ".join(row.name for row in self.varying[:4]) or "nothing varies"
        return f"Variations({self.function}, {count_text(self.calls, 'compiled call')}: {names})"


def _values(row: Variation) -> str:
    """Return the six most frequent values as text, with counts. A value with one or two ids gets them appended."""
    most = sorted(row.values, key=lambda value: -value.count)
    few = [f"{value.text or 'none'} {value.count}×{_ids(value)}" for value in most[:6]]
    return ", ".join(few) + (f", … ({len(most)} in all)" if len(most) > 6 else "")


def _ids(value: Value) -> str:
    return "".join(f" {id}" for id in value.ids) if 0 < len(value.ids) <= 2 else ""


def _is_worth_showing(row: Variation) -> bool:
    """Return True for a dtype, value or size of an argument, which is shown even if constant."""
    return bool(row.leaf) and (row.aspect in ("dtype", "value") or row.aspect.startswith("shape["))


@dataclass(slots=True)
class StackTree:
    """User frame, or compiled function at the end of a stack; the root is neither.

    Args:
        place: Line of the frame; None for a function and the root.
        function: Compiled function; empty for a frame.
        count: Number of calls here and below that traced, lowered or compiled.
        self_seconds: Seconds of compiles from this line.
        seconds: Seconds of compiles here and below.
        ids: Compiles of a function, oldest first: `[step/0]`.
        children: Children in order of first appearance.

    Example:
        >>> import explorer as ex
        >>> main, train = ex.types.Place("train.py", 9, function="main"), ex.types.Place("train.py", 4,
        ...     function="train")
        >>> ledger = ex.Ledger()
        >>> ledger.add((ex.types.Event("compile", "step", seconds=0.5, stack=(train, main), id="[step/0]", call=1),))
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
        """Return a frame's line and function, a compiled function with its ids, or the root's number of calls."""
        if self.place is not None:
            return f"{self.place} ({self.place.function})" if self.place.function else str(self.place)
        if not self.function:
            return count_text(self.count, "compiled call")
        return f"{self.function}  {_few(self.ids)}" if self.ids else self.function

    def __iter__(self) -> Iterator[tuple[int, StackTree]]:
        """Yield (depth, node) for this node, depth 0, and all nodes below it, parents first."""
        rest = [(0, self)]
        while rest:
            depth, node = rest.pop()
            yield depth, node
            # Reversed, because the stack returns the last element first.
            rest += [(depth + 1, child) for child in reversed(node.children)]

    @property
    def text(self) -> str:
        """Return the tree as text drawn with lines, with each node's count and seconds."""
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
