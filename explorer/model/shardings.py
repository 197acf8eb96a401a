"""Meshes, device groups of collectives, and shardings of the values of a program."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorer.errors import ForeignNodeError
from explorer.model.declared import cached_property
from explorer.model.graph import Graph, Node
from explorer.model.types import ArrayType, parse_type

COMPUTED, CONSTANT = -1, -2


@dataclass(frozen=True, eq=False)
class Spread:
    """Sharding of one array, as far as it is proven.

    Args:
        axes: Axes along which devices may have different values, as a bit set.
        dims: Axes that split each dimension, slowest first; None if unknown.
        source: Number of the entry parameter that it comes from through conversions, transposes, slices and gathers;
            `COMPUTED` for computed values, `CONSTANT` for values of constants alone.
        gathered: Axes along which it was gathered, so that it is equal along them.
        values: For a known number, its value on each device, shape `[devices]`; for a table shared by all, its
            elements.
        gathers: Nodes of the all-gathers that gathered it.
        marks: Axes along which each dimension was gathered; None if it wasn't, or if the dimension is unknown.
        classes: A number per device, equal for equal values, for arrays gathered along part of an axis; None if `axes`
            contains everything that is proven.

    Example:
        >>> import explorer
        >>> spread = explorer.types.Spread(axes=0b01, source=0)
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
        # A generated comparison would fail: arrays have no truth value.
        return isinstance(other, Spread) and self._key == other._key and is_same(self.values, other.values)

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    @property
    def _key(self) -> tuple[Any, ...]:
        return self.axes, self.dims, self.source, self.gathered, self.gathers, self.marks, self.classes

    def with_axes(self, axes: int, dims: tuple[Axes, ...] | None) -> Spread:
        """Return a copy for the same array, with other `axes` and `dims`.

        The copy keeps `source`. It is no longer gathered along `axes`, because devices may differ along them.
        """
        gathered = self.gathered & ~axes
        return Spread(axes, dims, self.source, gathered, self.gathers if gathered else frozenset())


def is_same(one: NDArray[np.int64] | None, other: NDArray[np.int64] | None) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))


@dataclass(frozen=True, eq=False)
class Shardings:
    """Shardings of all values of an optimized program.

    Equality along an axis is proven by the instructions that make the value; difference is not proven.

    Args:
        graph: Graph of the optimized program.
        mesh: Mesh of the program; one axis of all devices if the program names none.
        leaves: Shardings of the arrays of each node's type.

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
        """Return the type of each array of a node with the axes that split it, as JAX writes it: `f32[1024@data,512]`.

        Sizes are those of the whole array. If the split dimension is unknown, sizes are those of one device, with the
        axes along which devices may differ: `f32[256,512]{V:data}`.

        Raises:
            ForeignNodeError: The node belongs to another program.
        """
        if not self.is_of(node):
            raise ForeignNodeError(f"{node.name} is no node of the optimized program.")
        arrays = parse_type(node.type).arrays
        return tuple(self.written(*each) for each in zip(arrays, self.leaves[node.index], strict=False))

    def is_of(self, node: Node) -> bool:
        """Return True if a node belongs to this program."""
        graph = node.graph
        # A stage's graph may be a copy with other attributes, which shares its names.
        return graph is self.graph or (len(graph) == len(self.graph) and graph.names is self.graph.names)

    def axes_of(self, node: Node) -> tuple[str, ...]:
        """Return the names of the mesh axes along which devices may have different values of `node`.

        Return an empty tuple if all devices have equal values.
        """
        axes = 0
        for leaf in self.leaves[node.index]:
            axes |= leaf.axes
        return self.mesh.names_of(axes)

    def way_of(self, node: int) -> str:
        """Return a node's sharding in words: `whole on each device`, `split along data`, `may differ along data`.

        Empty for nodes without arrays. `may differ` means that no split dimension is known, as for partial sums before
        their reduction.
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
        """Return an array's type with the mesh axes that split it, in the notation of `of`."""
        dims = spread.dims
        split = {axis for axes in dims or () for axis in axes}
        rest = self.mesh.names_of(spread.axes & ~sum(1 << axis for axis in split))
        varying = f"{{V:{_axes(rest)}}}" if rest else ""
        if dims is None or len(dims) != len(array.shape):
            return f"{array}{varying}"
        sizes = [self._size(*each) for each in zip(array.shape, dims, strict=True)]
        return f"{array.dtype}[{','.join(sizes)}]{varying}"

    def _size(self, size: int, axes: Axes) -> str:
        """Return the whole size of a dimension, with the axes that split it if any do: `1024@data`."""
        if not axes:
            return str(size)
        whole = size * self.mesh.devices_along(sum(1 << axis for axis in axes))
        return f"{whole}@{_axes([self.mesh.names[axis] for axis in axes])}"


def _axes(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"({','.join(names)})"


Axes = tuple[int, ...]
"""Axes of a mesh, by their place in it."""

_TILES = re.compile(r"devices=\[([\d,\s]+)\]\s*(?:<=\s*\[([\d,\s]+)\](?:\s*T\s*\(([\d,\s]+)\))?|(\d[\d,\s]*))")


@dataclass(frozen=True)
class DeviceMesh:
    """Axes with their sizes; devices are numbered with the last axis fastest.

    A set of axes is a number with a bit for each.

    Example:
        >>> import explorer
        >>> mesh = explorer.types.DeviceMesh(("data", "model"), (4, 2))
        >>> mesh.split("{devices=[4,1,2]<=[8] last_tile_dim_replicate}", 2)
        (1, ((0,), ()))
        >>> mesh.names_of(1), mesh.joined(((0, 1), (2, 3), (4, 5), (6, 7)))
        (('data',), 2)
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    @staticmethod
    def of(axes: Sequence[tuple[str, int]], devices: int) -> DeviceMesh:
        """Return the mesh of a program for `devices` devices.

        Without axes whose sizes multiply to `devices`, it has one axis `devices` with all of them.
        """
        sizes_by_name = tuple(axes) if prod(size for _, size in axes) == devices else ()
        names, sizes = zip(*sizes_by_name, strict=True) if sizes_by_name else (("devices",), (devices,))
        return DeviceMesh(tuple(names), tuple(sizes))

    @property
    def count(self) -> int:
        """Return the number of devices."""
        return prod(self.sizes)

    @property
    def full(self) -> int:
        """Return the set of all axes with more than one device, as bits."""
        return sum(1 << axis for axis, size in enumerate(self.sizes) if size > 1)

    def names_of(self, axes: int) -> tuple[str, ...]:
        """Return the names of the axes in the set `axes`, which has one bit for each axis."""
        return tuple(name for axis, name in enumerate(self.names) if axes >> axis & 1)

    def devices_along(self, axes: int) -> int:
        """Return the product of the sizes of the axes in the set `axes`, which has one bit for each axis."""
        return prod(size for axis, size in enumerate(self.sizes) if axes >> axis & 1)

    @cached_property
    def devices(self) -> NDArray[np.int64]:
        """Return the device numbers as an array with one dimension for each axis."""
        return np.arange(self.count).reshape(self.sizes)

    def differing(self, values: NDArray[Any]) -> int:
        """Return the set of axes along which `values` differ, as bits.

        Args:
            values: One number per device, shape `[devices]`.
        """
        at = values.reshape(self.sizes)
        return sum(1 << axis for axis in range(len(self.sizes)) if (at != np.take(at, [0], axis)).any())

    def places(self, axes: int) -> tuple[int, ...]:
        """Return a number per device, equal for devices at the same position on every axis in the set `axes`."""
        at = [slice(None) if axes >> axis & 1 else slice(0, 1) for axis in range(len(self.sizes))]
        return tuple(np.broadcast_to(self.devices[tuple(at)], self.sizes).reshape(-1).tolist())

    def joined(self, groups: Groups) -> int:
        """Return the set of axes along which devices are in one group, as bits; 0 if a device has no group."""
        group = np.full(self.count, -1)
        for number, members in enumerate(groups):
            inside = [device for device in members if device < self.count]
            group[inside] = number
        return 0 if (group < 0).any() else self.full & ~self.differing(group)

    def split(self, sharding: str, rank: int) -> tuple[int, tuple[Axes, ...] | None] | None:
        """Parse a sharding in HLO's notation for one array.

        Args:
            sharding: `{devices=[4,1,2]<=[8] last_tile_dim_replicate}`, `{replicated}`, …
            rank: Rank of the array.

        Returns:
            The axes along which devices have different parts, and the axes that split each dimension, slowest first;
            the latter is None unless it consists of whole axes. None for any other text.
        """
        return _split(self, sharding, rank)


# A program has few distinct shardings, and each is compared on all devices.
@lru_cache(maxsize=1 << 12)
def _split(mesh: DeviceMesh, sharding: str, rank: int) -> tuple[int, tuple[Axes, ...] | None] | None:
    if sharding.startswith("{replicated"):
        return 0, ((),) * rank
    if sharding.startswith("{manual"):
        return mesh.full, None
    tiles = _TILES.search(sharding)
    if tiles is None:
        return None
    shape = _numbers(tiles[1])
    listed = (
        np.asarray(_numbers(tiles[4]))
        if tiles[4]
        else _transposed(_numbers(tiles[2]), _numbers(tiles[3] or "")).reshape(-1)
    )
    if listed.size != mesh.count or prod(shape) != mesh.count or len(shape) < rank:
        return None
    place = np.empty(mesh.count, np.int64)  # of each device, among the tiles
    place[listed] = np.arange(mesh.count)
    coordinates = np.unravel_index(place, shape)
    # Of a manual subgroup devices differ in what they have of each tile.
    differing = _differing(mesh, coordinates if "manual" in sharding else coordinates[:rank])
    dims = tuple(axes for at in coordinates[:rank] if (axes := _axes_of(mesh, at)) is not None)
    return differing, dims if len(dims) == rank else None


def _differing(mesh: DeviceMesh, coordinates: Sequence[NDArray[np.int64]]) -> int:
    axes = 0
    for at in coordinates:
        axes |= mesh.differing(at)
    return axes


def _axes_of(mesh: DeviceMesh, tile: NDArray[np.int64]) -> Axes | None:
    """Return the mesh axes that number a dimension's tiles, slowest first; None if no axes do.

    Args:
        mesh: Mesh of the devices.
        tile: Index of each device's tile in this dimension, shape `[devices]`.
    """
    at = tile.reshape(mesh.sizes)
    zero = (0,) * len(mesh.sizes)
    # By how many tiles a step along each axis leads; the end checks that all steps are alike.
    strides = {
        axis: int(at[tuple(int(other == axis) for other in range(len(zero)))] - at[zero])
        for axis, size in enumerate(mesh.sizes)
        if size > 1
    }
    axes = sorted((axis for axis, stride in strides.items() if stride), key=lambda axis: -strides[axis])
    expected = sum((strides[axis] * np.indices(mesh.sizes)[axis] for axis in axes), np.zeros(mesh.sizes, np.int64))
    return tuple(axes) if np.array_equal(expected + at[zero], at) else None


def _transposed(shape: tuple[int, ...], transpose: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the numbers from 0 in `shape`, with the dimensions transposed; an empty `transpose` keeps their order."""
    devices = np.arange(prod(shape)).reshape(shape)
    return devices.transpose(transpose) if transpose else devices


Groups = tuple[tuple[int, ...], ...]

_LISTED = re.compile(r"\{\s*([\d,\s]*)\}")
# XLA prints these without blanks, and reads them with some.
_IOTA = re.compile(r"\[([\d,\s]+)\]\s*<=\s*\[([\d,\s]+)\](?:\s*T\s*\(([\d,\s]+)\))?")
_MESH = re.compile(r"mesh\[([^\]]*)\](?:,\s*device_ids=\(([^{]*)\))?\s*\{([^}]*)\}")
_AXIS = re.compile(r"['\"]?([^'\"=:,]+)['\"]?=(\d+)")
# An axis, or of an axis that is written as `before × size × after` the part in the middle: `'x':(before)size`.
_PART = re.compile(r"['\"]?([^'\":,()]+)['\"]?(?::\((\d+)\)(\d+))?")
_DEVICES = re.compile(r"\[([\d,\s]+)\](?:\s*T\s*\(([\d,\s]+)\))?")
_MOST = 1 << 20  # devices of all groups: more are a text that wants memory


# A program has few distinct groups, and each text may list thousands of devices.
@lru_cache(maxsize=1 << 12)
def parse_groups(text: str) -> Groups:
    """Parse `replica_groups` or the pairs of `source_target_pairs` into groups of device numbers.

    Return an empty tuple if the text names no groups.

    Example:
        >>> parse_groups("{{0,1},{2,3}}") == parse_groups("[2,2]<=[4]")
        True
        >>> parse_groups("[2,4]<=[4,2]T(1,0)")
        ((0, 2, 4, 6), (1, 3, 5, 7))
        >>> parse_groups("mesh['x'=2,'y'=2] {'x'}")
        ((0, 2), (1, 3))
        >>> parse_groups("mesh['x'=8] {'x':(2)2}")
        ((0, 2), (1, 3), (4, 6), (5, 7))
    """
    if (mesh := _MESH.search(text)) is not None:
        return _of_mesh(mesh[1], mesh[2] or "", mesh[3])
    if (iota := _IOTA.search(text)) is not None:
        return _iota(_numbers(iota[1]), _numbers(iota[2]), _numbers(iota[3] or ""))
    return tuple(group for listed in _LISTED.findall(text) if (group := _numbers(listed)))


def groups_along(sizes: Sequence[int], along: Sequence[int]) -> Groups:
    """Return groups of a mesh's devices whose positions differ only along the given axes.

    Return an empty tuple for an empty or implausibly large mesh.

    Args:
        sizes: Size of each mesh axis; devices are numbered with the last axis fastest.
        along: Positions of the axes.
    """
    if not 0 < prod(sizes) <= _MOST:
        return ()
    rest = [axis for axis in range(len(sizes)) if axis not in along]
    devices = np.arange(prod(sizes)).reshape(sizes).transpose([*rest, *along])
    return _rows(devices.reshape(prod(sizes[axis] for axis in rest), -1))


def axes_of(groups: Groups, mesh: Sequence[tuple[str, int]]) -> tuple[str, ...]:
    """Return the names of the mesh axes that collective groups run along; empty if no choice of axes fits.

    Args:
        groups: Device groups of a collective.
        mesh: Name and size of each axis.

    Example:
        >>> axes_of(parse_groups("{{0,2},{1,3}}"), [("data", 2), ("model", 2)])
        ('data',)
    """
    sizes = [size for _, size in mesh]
    wanted, length = {frozenset(group) for group in groups}, len(groups[0]) if groups else 0
    choices = (along for count in range(1, len(mesh) + 1) for along in combinations(range(len(mesh)), count))
    for along in choices:
        is_as_long = prod(sizes[axis] for axis in along) == length
        if is_as_long and {frozenset(group) for group in groups_along(sizes, along)} == wanted:
            return tuple(mesh[axis][0] for axis in along)
    return ()


def axes_of_pairs(pairs: Groups, mesh: Sequence[tuple[str, int]]) -> tuple[str, ...]:
    """Return the names of the mesh axes in which source and target of any pair differ.

    Return an empty tuple if a pair is invalid for the mesh.
    """
    sizes = [size for _, size in mesh]
    if not pairs or not sizes or any(len(pair) != 2 or max(pair) >= prod(sizes) for pair in pairs):
        return ()
    source, target = (np.asarray(np.unravel_index([pair[end] for pair in pairs], sizes)) for end in (0, 1))
    return tuple(name for (name, _), differs in zip(mesh, (source != target).any(axis=1), strict=True) if differs)


def _of_mesh(axes: str, devices: str, joined: str) -> Groups:
    """Return the groups along `joined` axes, or parts of axes, of the mesh that HLO text describes.

    Return an empty tuple if the mesh lacks an axis, is too large, or can't be cut into these parts. Also if `devices`
    doesn't number each device once.
    """
    sizes = {name.strip(): int(size) for name, size in _AXIS.findall(axes)}
    count = prod(sizes.values())
    parts = _parts(joined, sizes)
    spans = [span for name, size in sizes.items() for span in _spans(name, size, parts)]
    # An axis that can't be cut so has no spans.
    if (
        not 0 < count <= _MOST
        or prod(high // low for _, low, high in spans) != count
        or any(not name for name, _, _ in parts)
    ):
        return ()
    along = [at for at, span in enumerate(spans) if _is_joined(span, parts)]
    groups = groups_along([high // low for _, low, high in spans], along)
    return _renumbered(groups, _device_numbers(devices)) if devices else groups


_Part = tuple[str, int, int]
"""A part of an axis: the axis, and between which strides the part counts; of a whole axis from 1 to its size."""


def _parts(text: str, sizes: Mapping[str, int]) -> list[_Part]:
    """Return the (axis, low stride, high stride) that groups run along; an axis not in `sizes` gets an empty name."""
    parts: list[_Part] = []
    for written, before, size in _PART.findall(text):
        name, low = written.strip(), int(before or 1)
        parts.append((name if name in sizes else "", low, low * int(size) if size else sizes.get(name, 0)))
    return parts


def _spans(name: str, size: int, parts: Sequence[_Part]) -> list[_Part]:
    """Return the consecutive parts of an axis, cut at the strides where `parts` of it begin and end.

    Return an empty list if these strides do not divide one another or exceed the axis.
    """
    cuts = sorted({1, size, *(end for axis, *ends in parts if axis == name for end in ends)})
    is_cut = cuts[0] == 1 and cuts[-1] == size and all(high % low == 0 for low, high in pairwise(cuts))
    return [(name, low, high) for low, high in pairwise(cuts)] if is_cut else []


def _is_joined(span: _Part, parts: Sequence[_Part]) -> bool:
    return any(span[0] == name and low <= span[1] and span[2] <= high for name, low, high in parts)


def _renumbered(groups: Groups, numbers: Sequence[int]) -> Groups:
    """Return the groups with each device number replaced by its entry in `numbers`.

    Return an empty tuple unless `numbers` contains each device exactly once.
    """
    is_each_once = sorted(numbers) == list(range(sum(map(len, groups))))
    return tuple(tuple(numbers[at] for at in group) for group in groups) if is_each_once else ()


def _device_numbers(text: str) -> Sequence[int]:
    """Parse the device numbers of a mesh, in mesh order, from a list or from `[dims]T(permutation)`.

    Return an empty sequence for any other text.
    """
    if (iota := _DEVICES.search(text)) is None:
        return _numbers(text) if re.fullmatch(r"[\d,\s]*", text) else ()
    shape = _numbers(iota[1])
    return [device for group in _iota((1, prod(shape)), shape, _numbers(iota[2] or "")) for device in group]


def _iota(shape: tuple[int, ...], reshape: tuple[int, ...], transpose: tuple[int, ...]) -> Groups:
    """Return the groups of `[groups,size]<=[dims]T(permutation)`; empty if the shapes do not match.

    The numbers from 0 in `[dims]` are transposed and then cut into groups.
    """
    if prod(shape) != prod(reshape) or not 0 < prod(reshape) <= _MOST:
        return ()
    if transpose and sorted(transpose) != list(range(len(reshape))):
        return ()
    return _rows(_transposed(reshape, transpose).reshape(shape[0], -1))


def _rows(devices: np.ndarray) -> Groups:
    return tuple(map(tuple, devices.tolist()))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)))
