"""Least seconds of a collective by the published bandwidth of the links that its devices have.

Inside a node or a slice:

- GPUs behind a switch use all their links, whatever their number;
- GPUs that are wired to each other use one link to each other device of the group;
- TPU chips are wired to their neighbors along each side of the topology. Their number allows for the best box of chips:
  a side of two has one link, and so has a longer side whose ends aren't connected; a ring has two.

Between nodes and slices each device has its part of the network. A collective over both takes at least the longer of
the two times: what the devices of a part can add up, or pass on, among each other crosses the network only once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod

from explorer.model.results.estimates import Collective
from explorer.model.target import Hardware, Target, sides_of

# Bytes that one of `k` devices in each of `m` parts sends, where each device gives `b` bytes.
_INSIDE: Mapping[str, Callable[[float, int, int], float]] = {
    "all-reduce": lambda b, k, m: 2 * b * (k - 1) / k,
    "all-gather": lambda b, k, m: b * m * (k - 1),
    "reduce-scatter": lambda b, k, m: b * (k - 1) / k,
    "all-to-all": lambda b, k, m: b * (k - 1) / (k * m),
}
_ACROSS: Mapping[str, Callable[[float, int, int], float]] = {
    "all-reduce": lambda b, k, m: 2 * b / k * (m - 1) / m,
    "all-gather": lambda b, k, m: b * (m - 1),
    "reduce-scatter": lambda b, k, m: b / k * (m - 1) / m,
    "all-to-all": lambda b, k, m: b * (m - 1) / m,
}
_PAIRWISE = ("collective-permute", "collective-broadcast")


def least_seconds(row: Collective, target: Target) -> float | None:
    """Return the least seconds of one run of a collective; None if a needed bandwidth or the groups are unknown."""
    each = target.count // target.nodes
    spreads = {_spread(group, each) for group in row.groups if len({*group}) > 1}
    if not spreads:
        return 0.0 if row.size == 1 else None
    times = [_seconds(row, k, m, target) for k, m in spreads]
    return None if None in times else max(time for time in times if time is not None)


def _spread(group: Sequence[int], each: int) -> tuple[int, int]:
    """Return (most devices of a group in one node or slice, number of nodes or slices), with `each` devices in each."""
    parts = Counter(device // each for device in {*group})
    return max(parts.values()), len(parts)


def _seconds(row: Collective, k: int, m: int, target: Target) -> float | None:
    kind = row.kind.removeprefix("ragged-")
    is_pairwise = kind in _PAIRWISE
    inside = (row.bytes if k > 1 else 0) if is_pairwise else _INSIDE[kind](row.bytes, k, m)
    across = (row.bytes if m > 1 else 0) if is_pairwise else _ACROSS[kind](row.bytes, k, m)
    rate = _rate(target, 2 if kind == "collective-permute" else k) if k > 1 else 0.0
    # Free links take no time; unknown ones an unknown time.
    if (inside and not rate) or (across and not target.device.network):
        return None
    return max(inside / rate if inside else 0.0, across / target.device.network if across else 0.0)


def _rate(target: Target, k: int) -> float:
    """Return the bytes per second that each of `k` devices of one node or slice sends to the others; 0 if unknown."""
    device = target.device
    if device.peers:
        return device.links * min(k - 1, device.peers) / device.peers
    if not device.topology:
        return device.links
    if device.per_chip > 1:  # of the links between the devices of one chip nothing is published
        return device.links if k > device.per_chip else 0.0
    sides = sides_of(target.topology or device.topology)
    return device.links * max(_links(box, sides, device) for box in _boxes(k, sides)) / (2 * len(sides))


def _boxes(count: int, sides: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the sides of boxes of at least `count` chips within the topology; the last side is as short as possible."""
    if len(sides) == 1:
        yield (min(count, sides[0]),)
        return
    for side in range(1, min(count, sides[0]) + 1):
        rest = -(-count // side)
        if rest <= prod(sides[1:]):
            yield from ((side, *box) for box in _boxes(rest, sides[1:]))


def _links(box: Sequence[int], sides: Sequence[int], device: Hardware) -> int:
    wraps = [bool(device.wraps) and side % device.wraps == 0 for side in sides]
    if len(sides) == 3:  # a torus of cubes is closed only where all sides are
        wraps = [all(wraps)] * 3
    rings = [used == side > 2 and wrap for used, side, wrap in zip(box, sides, wraps, strict=True)]
    return sum((used > 1) + ring for used, ring in zip(box, rings, strict=True))
