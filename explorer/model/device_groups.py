"""Which devices a collective joins, in each of the ways that HLO writes it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations, pairwise
from math import prod

import numpy as np

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
        >>> parse_groups("mesh['x'=8] {'x':(2)2}")
        ((0, 2), (1, 3), (4, 6), (5, 7))
    """
    if (mesh := _MESH.search(text)) is not None:
        return _of_mesh(mesh[1], mesh[2] or "", mesh[3])
    if (iota := _IOTA.search(text)) is not None:
        return _iota(_numbers(iota[1]), _numbers(iota[2]), _numbers(iota[3] or ""))
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
    if not pairs or not sizes or any(len(pair) != 2 or max(pair) >= prod(sizes) for pair in pairs):
        return ()
    source, target = (np.asarray(np.unravel_index([pair[end] for pair in pairs], sizes)) for end in (0, 1))
    return tuple(name for (name, _), differs in zip(mesh, (source != target).any(axis=1), strict=True) if differs)


def _of_mesh(axes: str, devices: str, joined: str) -> Groups:
    """The groups along axes of a mesh that the text itself has, or along parts of axes."""
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
    """The parts of axes that groups are along; the name of an axis that the mesh lacks is empty."""
    parts: list[_Part] = []
    for written, before, size in _PART.findall(text):
        name, low = written.strip(), int(before or 1)
        parts.append((name if name in sizes else "", low, low * int(size) if size else sizes.get(name, 0)))
    return parts


def _spans(name: str, size: int, parts: Sequence[_Part]) -> list[_Part]:
    """An axis cut where parts of it begin and end; nothing where these don't divide it."""
    cuts = sorted({1, size, *(end for axis, *ends in parts if axis == name for end in ends)})
    is_cut = cuts[0] == 1 and cuts[-1] == size and all(high % low == 0 for low, high in pairwise(cuts))
    return [(name, low, high) for low, high in pairwise(cuts)] if is_cut else []


def _is_joined(span: _Part, parts: Sequence[_Part]) -> bool:
    return any(span[0] == name and low <= span[1] and span[2] <= high for name, low, high in parts)


def _renumbered(groups: Groups, numbers: Sequence[int]) -> Groups:
    """The groups of a mesh whose devices have other numbers; none where these aren't each of them once."""
    is_each_once = sorted(numbers) == list(range(sum(map(len, groups))))
    return tuple(tuple(numbers[at] for at in group) for group in groups) if is_each_once else ()


def _device_numbers(text: str) -> Sequence[int]:
    """The devices of a mesh in its own order: listed, or `[dims]T(permutation)`."""
    if (iota := _DEVICES.search(text)) is None:
        return _numbers(text) if re.fullmatch(r"[\d,\s]*", text) else ()
    shape = _numbers(iota[1])
    return [device for group in _iota((1, prod(shape)), shape, _numbers(iota[2] or "")) for device in group]


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
    return tuple(map(int, re.findall(r"\d+", text)))
