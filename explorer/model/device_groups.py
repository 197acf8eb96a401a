"""Which devices a collective joins, in each of the ways that HLO writes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from math import prod

import numpy as np

Groups = tuple[tuple[int, ...], ...]

_LISTED = re.compile(r"\{\s*([\d,\s]*)\}")
_IOTA = re.compile(r"\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_MESH = re.compile(r"mesh\[([^\]]*)\]\s*\{([^}]*)\}")
_MOST = 1 << 20  # devices of all groups: more are a text that wants memory


@lru_cache(maxsize=1 << 12)
def parse_groups(text: str) -> Groups:
    """The groups that `replica_groups`, or the pairs that `source_target_pairs`, names; empty where none are named.

    Example:
        >>> parse_groups("{{0,1},{2,3}}") == parse_groups("[2,2]<=[4]")
        True
        >>> parse_groups("[2,4]<=[4,2]T(1,0)")
        ((0, 2, 4, 6), (1, 3, 5, 7))
        >>> parse_groups("mesh['x'=2,'y'=2] {'x'}")
        ((0, 2), (1, 3))
    """
    if (iota := _IOTA.search(text)) is not None:
        return _iota(_numbers(iota[1]), _numbers(iota[2]), _numbers(iota[3] or ""))
    if (mesh := _MESH.search(text)) is not None:
        axes = [axis.partition("=") for axis in mesh[1].split(",")]
        names = [name.strip(" '\"") for name, _, _ in axes]
        joined = {name.strip(" '\"") for name in mesh[2].split(",")}
        return groups_along([int(size) for _, _, size in axes], [at for at, name in enumerate(names) if name in joined])
    return tuple(group for listed in _LISTED.findall(text) if (group := _numbers(listed)))


def groups_along(sizes: Sequence[int], along: Sequence[int]) -> Groups:
    """The groups of a mesh's devices that differ in their place along some axes alone.

    Args:
        sizes: Of the mesh's axes; its devices are numbered with the last axis fastest.
        along: The axes, by position.
    """
    if not 0 < prod(sizes) <= _MOST:
        return ()
    rest = [axis for axis in range(len(sizes)) if axis not in along]
    devices = np.arange(prod(sizes)).reshape(sizes).transpose([*rest, *along])
    return _rows(devices.reshape(prod(sizes[axis] for axis in rest), -1))


def axes_of(groups: Groups, mesh: Sequence[tuple[str, int]]) -> tuple[str, ...]:
    """The axes of a mesh that groups run along; empty where no choice of axes makes these groups.

    Args:
        groups: Of a collective; pairs of a permutation count as along the axes in which source and target differ.
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
    """The axes of a mesh along which a permutation sends: those in which any source and target differ."""
    sizes = [size for _, size in mesh]
    if not pairs or any(len(pair) != 2 or max(pair) >= prod(sizes) for pair in pairs):
        return ()
    source, target = (np.asarray(np.unravel_index([pair[end] for pair in pairs], sizes)) for end in (0, 1))
    return tuple(name for (name, _), differs in zip(mesh, (source != target).any(axis=1), strict=True) if differs)


def _iota(shape: tuple[int, ...], reshape: tuple[int, ...], transpose: tuple[int, ...]) -> Groups:
    """`[groups,size]<=[dims]T(permutation)`: the numbers from 0 in that shape, transposed, cut into groups."""
    if prod(shape) != prod(reshape) or not 0 < prod(reshape) <= _MOST:
        return ()
    devices = np.arange(prod(reshape)).reshape(reshape)
    if transpose:
        if sorted(transpose) != list(range(len(reshape))):
            return ()
        devices = devices.transpose(transpose)
    return _rows(devices.reshape(shape[0], -1))


def _rows(devices: np.ndarray) -> Groups:
    return tuple(map(tuple, devices.tolist()))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part.strip())
