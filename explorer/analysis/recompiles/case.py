"""A recompile with all that is known of it: what its sentence and its fix are written from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from explorer.analysis.recompiles.nearest import Difference
from explorer.model.attached import cached_property
from explorer.model.events.key import AHEAD, HOT, Function, Key, Leaf, Static
from explorer.model.events.leaves import LeafColumns, in_columns

# Files that a notebook makes for its cells, and an interactive session for its lines.
_CELL = re.compile(r"ipykernel_\d+|^<ipython-input|^<stdin>|__marimo__|^<python-input|cell_\d+")
# Types of what is equal to itself alone because it is code.
FUNCTIONS = frozenset({"function", "partial", "method", "builtin_function_or_method", "PjitFunction", "ufunc"})


_JAXS = frozenset({
    "grad", "value_and_grad", "vmap", "jvp", "vjp", "linearize", "checkpoint", "remat", "jacfwd", "jacrev", "hessian",
    "shard_map", "custom_vjp", "custom_jvp", "custom_gradient", "named_call", "pmap",
})  # fmt: skip


def maker_name(function_count: str) -> str:
    """What a function was made with, as it is written: `jax.grad`, or a decorator of the user's own."""
    name = function_count.lstrip("_")
    if name == AHEAD:
        return "ex.compile"
    if name == HOT:
        return "ex.auto_compile"
    return f"jax.{name}" if name in _JAXS else function_count


def defined_in_a_cell(function: Function) -> bool:
    return bool(_CELL.search(function.file))


def root(path: str) -> str:
    """The argument: `batch` of `batch['x']`."""
    return path.partition("[")[0].partition(".")[0]


def leaf_at(key: Key, at: int, path: str) -> Leaf | None:
    """The leaf of a path, looked for first where it was in another key."""
    contents = LeafColumns.contents_at(at, path, [key.leaves])
    return Leaf(path, *contents[0]) if contents else None


def _columns(key: Key) -> LeafColumns:
    leaves = key.leaves
    return leaves if isinstance(leaves, LeafColumns) else in_columns(leaves)[0]


@dataclass(frozen=True)
class Case:
    """A call, the nearest earlier one, and what is named as the reason.

    Args:
        key, old: The two.
        chosen: The difference that is named.
        earlier: Every earlier call of the function that is remembered, oldest first.
        value_counts: How many values each static argument has had, of all calls.
        causes: Every difference that can have caused it, `chosen` among them.
    """

    key: Key
    old: Key
    chosen: Difference
    earlier: tuple[Key, ...]
    value_counts: Mapping[str, int] = field(default_factory=dict[str, int])
    causes: tuple[Difference, ...] = ()

    @cached_property
    def leaf(self) -> Leaf | None:
        return self.key.leaves[self.chosen.at] if self.chosen.at >= 0 else None

    @cached_property
    def old_leaf(self) -> Leaf | None:
        leaf = self.leaf
        return leaf_at(self.old, self.chosen.at, leaf.path) if leaf is not None else None

    @property
    def static(self) -> Static | None:
        return next((s for s in self.key.statics if s.path == self.chosen.leaf), None)

    @property
    def old_static(self) -> Static | None:
        return next((s for s in self.old.statics if s.path == self.chosen.leaf), None)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The sizes that the dimension has had, in the order in which they came, this call's last."""
        return self.sizes_of(self.chosen.axis) if self.chosen.axis >= 0 else ()

    def sizes_of(self, axis: int) -> tuple[int, ...]:
        return self._sizes_of_axes[axis] if axis < len(self._sizes_of_axes) else ()

    @cached_property
    def _sizes_of_axes(self) -> list[tuple[int, ...]]:
        of_axes = zip(*self._shapes, strict=True)
        return [tuple([size for size in dict.fromkeys(sizes) if isinstance(size, int)]) for sizes in of_axes]

    @cached_property
    def _shapes(self) -> list[tuple[int | str, ...]]:
        """The shapes of this rank that the leaf has had, one a call, this call's last."""
        leaf = self.leaf
        if leaf is None:
            return []
        calls = [key.leaves for key in (*self.earlier, self.key)]
        shapes = [content.shape for content in LeafColumns.contents_at(self.chosen.at, leaf.path, calls)]
        return [shape for shape in shapes if len(shape) == len(leaf.shape)]

    @cached_property
    def static_values(self) -> tuple[tuple[int, str], ...]:
        """The values that the static argument has had."""
        keys = (*self.earlier, self.key)
        return tuple(
            dict.fromkeys((s.token, s.value) for key in keys for s in key.statics if s.path == self.chosen.leaf)
        )

    @property
    def value_count(self) -> int:
        """How many values the static argument has had."""
        return max(len(self.static_values), self.value_counts.get(self.chosen.leaf, 0))

    @cached_property
    def function_count(self) -> str:
        """How many function objects there have been. Of many calls only the latest are remembered."""
        count = len({key.function.identity for key in (*self.earlier, self.key)})
        return f"at least {count}" if count > 8 and count > len(self.earlier) else str(count)

    @property
    def is_body(self) -> bool:
        """An eager `scan`, `cond`, … is the same function each time; what it runs is not."""
        same = self.key.function.identity == self.old.function.identity
        return self.chosen.kind == "function" and self.key.function.eager and same

    @property
    def name(self) -> str:
        """What to call the function in code."""
        name = self.key.function.name
        return name if name.isidentifier() else "f"

    @cached_property
    def roots(self) -> tuple[str, ...]:
        """The arguments that changed this way."""
        return tuple(dict.fromkeys(map(root, self.alike.paths)))

    @cached_property
    def alike(self) -> LeafColumns:
        """All leaves that changed the same way, in order."""
        return self.leaves_at(self.chosen.places)

    def leaves_at(self, places: Sequence[int]) -> LeafColumns:
        return _columns(self.key).take(places)
