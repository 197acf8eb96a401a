"""How the values of a sharded program lie on its devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorer.errors import ForeignNodeError
from explorer.model.graph import Graph, Node
from explorer.model.mesh import Axes, DeviceMesh
from explorer.model.types import ArrayType, parse_type

COMPUTED, CONSTANT = -1, -2


@dataclass(frozen=True, eq=False)
class Spread:
    """How one array lies on the devices.

    Args:
        axes: The axes along which devices may have different values, as a set of bits.
        dims: For each dimension the axes that split it, the slowest first; None where that isn't known.
        source: The number of the entry's parameter that it is, as far as conversions, transposes, slices and gathers
            go; `COMPUTED` where it is computed, `CONSTANT` where of constants alone.
        gathered: The axes along which parts were gathered on the way to it, and along which it is the same.
        values: Of a number that is known, that of each device, shape `[devices]`; of a table that all have, its
            elements.
        gathers: The all-gathers that did so, by their nodes.
        marks: For each dimension the axes along which it was gathered; None where nothing was, or nobody knows where.
        classes: For each device a number, equal where the values are: of what was gathered along a part of an axis.
            None where `axes` says all that is proven.

    Example:
        >>> import explorer
        >>> spread = explorer.Spread(axes=0b01, source=0)
        >>> spread.with_axes(0b11, None).axes, spread.source
        (3, 0)
    """

    axes: int = 0
    dims: tuple[Axes, ...] | None = None
    source: int = COMPUTED
    gathered: int = 0
    gathers: frozenset[int] = frozenset()
    values: NDArray[np.int64] | None = None
    marks: tuple[Axes, ...] | None = None
    classes: tuple[int, ...] | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spread) and self._key == other._key and is_same(self.values, other.values)

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    @property
    def _key(self) -> tuple[Any, ...]:
        return self.axes, self.dims, self.source, self.gathered, self.gathers, self.marks, self.classes

    def with_axes(self, axes: int, dims: tuple[Axes, ...] | None) -> Spread:
        """The same value spread over other axes; what now differs along an axis was not gathered along it."""
        gathered = self.gathered & ~axes
        return Spread(axes, dims, self.source, gathered, self.gathers if gathered else frozenset())


def is_same(one: NDArray[np.int64] | None, other: NDArray[np.int64] | None) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))


@dataclass(frozen=True, eq=False)
class Shardings:
    """How each value of an optimised program lies on the devices.

    That a value is the same along an axis is proven by the instructions that make it; that it differs is not.

    Args:
        graph: Of the optimised program.
        mesh: What it is sharded by; one axis of all devices where the program names none.
        leaves: For each node how the arrays of its type lie.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> capture = explorer.explore(jnp.sin, jnp.ones(8))
        >>> capture.shardings.mesh.count, {capture.shardings.is_of(node) for node in capture.hlo.graph.nodes}
        (1, {True})
    """

    graph: Graph
    mesh: DeviceMesh
    leaves: Sequence[tuple[Spread, ...]]

    def of(self, node: Node) -> tuple[str, ...]:
        """The arrays of a node's type with the axes that split them, as JAX writes it: `f32[1024@data,512]`.

        Sizes are those of the whole array. Where it isn't known which dimension is split, they are those of one device,
        with the axes along which devices may have others: `f32[256,512]{V:data}`.

        Raises:
            ForeignNodeError: It is no node of this program.
        """
        if not self.is_of(node):
            raise ForeignNodeError(f"{node.name} is no node of the optimised program.")
        arrays = parse_type(node.type).arrays
        return tuple(self.written(*each) for each in zip(arrays, self.leaves[node.index], strict=False))

    def is_of(self, node: Node) -> bool:
        """Whether a node is one of this program's."""
        graph = node.graph
        return graph is self.graph or (len(graph) == len(self.graph) and graph.names is self.graph.names)

    def axes_of(self, node: Node) -> tuple[str, ...]:
        """The axes along which devices may have different values of it; none for what all have alike."""
        axes = 0
        for leaf in self.leaves[node.index]:
            axes |= leaf.axes
        return self.mesh.names_of(axes)

    def way_of(self, node: int) -> str:
        """How a node's arrays lie, in words: `whole on each device`, `split along data`, `may differ along data`.

        Empty for what is no array. Along the axes that it may differ in no dimension is known to be split: parts of a
        sum that is still to be added up are so.
        """
        leaves = self.leaves[node]
        split = differing = 0
        for leaf in leaves:
            split |= sum({1 << axis for axes in leaf.dims or () for axis in axes})
            differing |= leaf.axes
        parts = {"split along": split, "may differ along": differing & ~split}
        named = [f"{how} {', '.join(self.mesh.names_of(axes))}" for how, axes in parts.items() if axes]
        return ", ".join(named) or ("whole on each device" if leaves else "")

    def written(self, array: ArrayType, spread: Spread) -> str:
        """One array with its axes, as `of` gives it."""
        dims = spread.dims
        split = {axis for axes in dims or () for axis in axes}
        rest = self.mesh.names_of(spread.axes & ~sum(1 << axis for axis in split))
        varying = f"{{V:{_axes(rest)}}}" if rest else ""
        if dims is None or len(dims) != len(array.shape):
            return f"{array}{varying}"
        sizes = [self._size(*each) for each in zip(array.shape, dims, strict=True)]
        return f"{array.dtype}[{','.join(sizes)}]{varying}"

    def _size(self, size: int, axes: Axes) -> str:
        """Of a dimension of which a device has a part: `1024@data`."""
        if not axes:
            return str(size)
        whole = size * self.mesh.devices_along(sum(1 << axis for axis in axes))
        return f"{whole}@{_axes([self.mesh.names[axis] for axis in axes])}"


def _axes(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"({','.join(names)})"
