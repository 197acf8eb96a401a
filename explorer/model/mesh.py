"""The mesh that a program is sharded by, as numbers: which of its devices differ along which axes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorer.model.cached import cached_property
from explorer.model.device_groups import Groups

Axes = tuple[int, ...]
"""Axes of a mesh, by their place in it."""

_TILES = re.compile(r"devices=\[([\d,\s]+)\]\s*(?:<=\s*\[([\d,\s]+)\](?:\s*T\s*\(([\d,\s]+)\))?|(\d[\d,\s]*))")


@dataclass(frozen=True)
class DeviceMesh:
    """Axes with their sizes; devices are numbered with the last axis fastest.

    A set of axes is a number with a bit for each.

    Example:
        >>> import explorer
        >>> mesh = explorer.DeviceMesh(("data", "model"), (4, 2))
        >>> mesh.split("{devices=[4,1,2]<=[8] last_tile_dim_replicate}", 2)
        (1, ((0,), ()))
        >>> mesh.names_of(1), mesh.joined(((0, 1), (2, 3), (4, 5), (6, 7)))
        (('data',), 2)
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    @staticmethod
    def of(axes: Sequence[tuple[str, int]], devices: int) -> DeviceMesh:
        """The mesh of a program for so many devices; where none is known, one axis with all of them."""
        sizes_by_name = tuple(axes) if prod(size for _, size in axes) == devices else ()
        names, sizes = zip(*sizes_by_name, strict=True) if sizes_by_name else (("devices",), (devices,))
        return DeviceMesh(tuple(names), tuple(sizes))

    @property
    def count(self) -> int:
        """How many devices it has."""
        return prod(self.sizes)

    @property
    def full(self) -> int:
        """All axes of more than one device."""
        return sum(1 << axis for axis, size in enumerate(self.sizes) if size > 1)

    def names_of(self, axes: int) -> tuple[str, ...]:
        """The names of a set of axes."""
        return tuple(name for axis, name in enumerate(self.names) if axes >> axis & 1)

    def devices_along(self, axes: int) -> int:
        """How many devices differ in these axes alone."""
        return prod(size for axis, size in enumerate(self.sizes) if axes >> axis & 1)

    @cached_property
    def devices(self) -> NDArray[np.int64]:
        """Their numbers, an array with a dimension for each axis."""
        return np.arange(self.count).reshape(self.sizes)

    def differing(self, values: NDArray[Any]) -> int:
        """The axes along which a number that each device has, shape `[devices]`, isn't the same."""
        at = values.reshape(self.sizes)
        return sum(1 << axis for axis in range(len(self.sizes)) if (at != np.take(at, [0], axis)).any())

    def places(self, axes: int) -> tuple[int, ...]:
        """Of each device a number, the same for all that differ in no axis of a set."""
        at = [slice(None) if axes >> axis & 1 else slice(0, 1) for axis in range(len(self.sizes))]
        return tuple(np.broadcast_to(self.devices[tuple(at)], self.sizes).reshape(-1).tolist())

    def joined(self, groups: Groups) -> int:
        """The axes whose devices, all else equal, are in one group."""
        group = np.full(self.count, -1)
        for number, members in enumerate(groups):
            inside = [device for device in members if device < self.count]
            group[inside] = number
        return 0 if (group < 0).any() else self.full & ~self.differing(group)

    def split(self, sharding: str, rank: int) -> tuple[int, tuple[Axes, ...] | None] | None:
        """What a sharding in HLO's notation says of an array.

        Args:
            sharding: `{devices=[4,1,2]<=[8] last_tile_dim_replicate}`, `{replicated}`, …
            rank: Of the array.

        Returns:
            The axes along which devices have different parts, and for each dimension those that split it, the slowest
            first; None for the latter where it isn't made of whole axes. None for a text that says something else.
        """
        return _split(self, sharding, rank)


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
    listed = np.asarray(_numbers(tiles[4])) if tiles[4] else _iota(_numbers(tiles[2]), _numbers(tiles[3] or ""))
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
    """The axes that a dimension's tile is numbered by, the slowest first; None if it is no such number."""
    at = tile.reshape(mesh.sizes)
    zero = (0,) * len(mesh.sizes)
    strides = {
        axis: int(at[tuple(int(other == axis) for other in range(len(zero)))] - at[zero])
        for axis, size in enumerate(mesh.sizes)
        if size > 1
    }
    axes = sorted((axis for axis, stride in strides.items() if stride), key=lambda axis: -strides[axis])
    expected = sum((strides[axis] * np.indices(mesh.sizes)[axis] for axis in axes), np.zeros(mesh.sizes, np.int64))
    return tuple(axes) if np.array_equal(expected + at[zero], at) else None


def _iota(reshape: tuple[int, ...], transpose: tuple[int, ...]) -> NDArray[np.int64]:
    devices = np.arange(prod(reshape)).reshape(reshape)
    return (devices.transpose(transpose) if transpose else devices).reshape(-1)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)))
