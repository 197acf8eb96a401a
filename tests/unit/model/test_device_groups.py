"""Groups of devices, against a mesh walked device by device."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.model.shardings import axes_of, axes_of_pairs, groups_along, parse_groups

MESHES = st.lists(st.integers(2, 4), min_size=1, max_size=4)


def walked(sizes: list[int], along: set[int]) -> set[frozenset[int]]:
    """Devices that agree in every axis but those `along`, one device at a time."""
    groups: dict[tuple[int, ...], set[int]] = {}
    for number, place in enumerate(product(*map(range, sizes))):
        groups.setdefault(tuple(at for axis, at in enumerate(place) if axis not in along), set()).add(number)
    return {frozenset(group) for group in groups.values()}


@given(MESHES, st.data())
def test_groups_along_axes_are_those_that_a_walk_over_the_mesh_gives(sizes, data) -> None:
    along = data.draw(st.sets(st.integers(0, len(sizes) - 1), min_size=1))
    groups = groups_along(sizes, sorted(along))
    assert {frozenset(group) for group in groups} == walked(sizes, along)
    mesh = [(f"axis{at}", size) for at, size in enumerate(sizes)]
    assert set(axes_of(groups, mesh)) == {f"axis{at}" for at in along}


@given(MESHES, st.data())
def test_the_three_ways_to_write_groups_are_read_alike(sizes, data) -> None:
    along = sorted(data.draw(st.sets(st.integers(0, len(sizes) - 1), min_size=1)))
    groups = groups_along(sizes, along)
    listed = "{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in groups) + "}"
    order = [*(axis for axis in range(len(sizes)) if axis not in along), *along]
    iota = f"[{len(groups)},{len(groups[0])}]<=[{','.join(map(str, sizes))}]T({','.join(map(str, order))})"
    axes = ",".join(f"'a{at}'={size}" for at, size in enumerate(sizes))
    joined = ",".join(f"'a{at}'" for at in along)
    mesh = f"mesh[{axes}] {{{joined}}}"
    assert parse_groups(listed) == parse_groups(iota) == parse_groups(mesh) == groups


@given(MESHES, st.data())
def test_the_parts_of_an_axis_are_axes_of_a_mesh_that_is_cut_finer(sizes, data) -> None:
    """As newer XLA writes groups along a part of one axis: `'x':(before)size`, here of one axis of all devices."""
    first = data.draw(st.integers(0, len(sizes) - 1))
    last = data.draw(st.integers(first, len(sizes) - 1))
    before, size = int(np.prod(sizes[:first])), int(np.prod(sizes[first : last + 1]))
    count = int(np.prod(sizes))
    text = f"mesh['x'={count}] {{'x':({before}){size}}}"
    assert parse_groups(text) == groups_along(sizes, list(range(first, last + 1)))
    order = data.draw(st.permutations(range(len(sizes))))
    devices = np.arange(count).reshape(sizes).transpose(order).reshape(-1)
    expected = {frozenset(int(devices[at]) for at in group) for group in parse_groups(text)}
    dims, turned = (",".join(map(str, numbers)) for numbers in (sizes, order))
    for ids in (f"[{dims}]T({turned})", ",".join(map(str, devices))):
        moved = parse_groups(text.replace("] {", f"], device_ids=({ids}) {{"))
        assert {frozenset(group) for group in moved} == expected


@given(MESHES, st.data())
def test_a_shift_along_an_axis_is_told_from_the_others(sizes, data) -> None:
    axis = data.draw(st.integers(0, len(sizes) - 1))
    devices = np.arange(np.prod(sizes)).reshape(sizes)
    pairs = tuple(zip(devices.ravel().tolist(), np.roll(devices, -1, axis).ravel().tolist(), strict=True))
    assert axes_of_pairs(pairs, [(f"axis{at}", size) for at, size in enumerate(sizes)]) == (f"axis{axis}",)


@pytest.mark.parametrize(
    "text",
    [
        *("", "{}", "[2,3]<=[4]", "[4]<=[2,2]T(0,0)", "mesh['x'=0] {'x'}", "nonsense", "mesh['x'=] {'x'}"),
        *("mesh['x'=8] {'x':(3)2}", "mesh['x'=8] {'x':(2)8}", "mesh['x'=8] {'x':(0)2}", "mesh['x'=8] {'y'}"),
        *("mesh['x'=2], device_ids=(0,0) {'x'}", "mesh['x'=2], device_ids=([3]T(0)) {'x'}"),
        "mesh['x'=2], device_ids=(what) {'x'}",
        "[2 4]<=[8 8]",
    ],
)
def test_what_makes_no_groups_is_none(text: str) -> None:
    assert parse_groups(text) == ()


def test_groups_that_no_axes_make_have_none() -> None:
    assert axes_of(((0, 3), (1, 2)), [("x", 2), ("y", 2)]) == ()
    assert axes_of((), [("x", 2)]) == ()
    assert axes_of_pairs(((0, 9),), [("x", 2)]) == ()
    assert axes_of_pairs(((0, 0),), []) == ()  # one device: StableHLO has no mesh
