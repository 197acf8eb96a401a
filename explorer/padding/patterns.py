"""Which dimensions of a function's arrays may be symbols, by what calls had: the most general first.

1. each dimension is a symbol of its own;
2. dimensions of size 1, which broadcast, stay 1, and every other is at least 2;
3. besides, dimensions that were of one size in every call are one symbol: `x + y` wants that;
4. besides, only what was of several sizes is a symbol, from the second call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jax import export

Shapes = Sequence[tuple[int, ...]]


@dataclass(frozen=True)
class Pattern:
    """Of each array its dimensions, a number or a symbol's name.

    Args:
        shapes: Of each array.
        least: The smallest size that a symbol stands for.
    """

    shapes: tuple[tuple[int | str, ...], ...]
    least: int

    @property
    def names(self) -> list[str]:
        """Of its symbols, in order."""
        return list(dict.fromkeys(d for shape in self.shapes for d in shape if isinstance(d, str)))

    def sizes(self, shapes: Shapes) -> dict[str, int] | None:
        """What the symbols are for these shapes; None if it doesn't cover them."""
        sizes: dict[str, int] = {}
        for mine, theirs in zip(self.shapes, shapes, strict=True):
            for dimension, size in zip(mine, theirs, strict=True):
                expected = sizes.setdefault(dimension, size) if isinstance(dimension, str) else dimension
                if expected != size or (isinstance(dimension, str) and size < self.least):
                    return None
        return sizes

    def symbolic(self) -> list[tuple[Any, ...]]:
        """The shapes, with JAX's symbols."""
        limits = [f"{name} >= {self.least}" for name in self.names]
        symbols = dict(zip(self.names, export.symbolic_shape(", ".join(self.names), constraints=limits), strict=True))
        return [tuple(symbols[d] if isinstance(d, str) else d for d in shape) for shape in self.shapes]


def patterns(history: Sequence[Shapes]) -> Iterator[Pattern]:
    """Which dimensions may be symbols, the most general first; an empty one is never one.

    Args:
        history: The shapes of several calls, the last of which is to be traced.

    Example:
        >>> [pattern.shapes for pattern in patterns([[(2, 3), (3,)]])][-1]
        (('n0', 'n1'), ('n1',))
    """
    seen: set[Pattern] = set()
    groups: dict[tuple[int, ...], str] = {}

    def dimension(i: int, j: int, least: int, is_shared: bool, varies_only: bool) -> int | str:
        sizes = tuple(shapes[i][j] for shapes in history)
        if sizes[-1] < least or (varies_only and len(set(sizes)) == 1):
            return sizes[-1]
        return groups.setdefault(sizes, f"n{len(groups)}") if is_shared else f"d{i}_{j}"

    for how in ((1, False, False), (2, False, False), (2, True, False), (2, True, True)):
        shapes = tuple(tuple(dimension(i, j, *how) for j in range(len(s))) for i, s in enumerate(history[-1]))
        pattern = Pattern(shapes, how[0])
        if pattern not in seen and pattern.names:
            seen.add(pattern)
            yield pattern


def varies(history: Sequence[Shapes]) -> bool:
    """Whether the last call has a size that could be a symbol and was another before: one call tells of none."""
    return any(
        size > 1 and any(shapes[i][j] != size for shapes in history)
        for i, shape in enumerate(history[-1])
        for j, size in enumerate(shape)
    )
