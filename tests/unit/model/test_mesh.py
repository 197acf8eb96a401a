"""Meshes of devices and how arrays lie on them: walked device by device, and held against JAX's own shardings."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.model.shardings import CONSTANT, DeviceMesh, Shardings, Spread, is_same
from explorer.model.types import parse_type

MESH = DeviceMesh(("data", "one", "model"), (4, 1, 2))
MESHES = st.lists(st.integers(1, 3), min_size=1, max_size=3)


def mesh_of(sizes):
    return DeviceMesh(tuple(f"a{i}" for i in range(len(sizes))), tuple(sizes))


def test_a_mesh_is_the_programs_where_it_has_as_many_devices():
    assert DeviceMesh.of([("data", 4), ("model", 2)], 8) == DeviceMesh(("data", "model"), (4, 2))
    assert DeviceMesh.of([("data", 4)], 8) == DeviceMesh(("devices",), (8,))
    assert DeviceMesh.of([], 1) == DeviceMesh(("devices",), (1,))


def test_a_set_of_axes_is_a_number_with_a_bit_for_each():
    assert (MESH.count, MESH.full) == (8, 0b101)  # one device is no axis to differ along
    assert [MESH.names_of(axes) for axes in (0, 1, 0b110, 0b111)] == [
        *((), ("data",), ("one", "model"), ("data", "one", "model")),
    ]
    assert [MESH.devices_along(axes) for axes in (0, 1, 0b100, 0b101)] == [1, 4, 2, 8]


def places(sizes):
    return [tuple(place) for place in np.ndindex(*sizes)]


@given(MESHES, st.data())
def test_what_devices_have_differs_along_an_axis_where_neighbours_along_it_differ(sizes, data):
    mesh, at = mesh_of(sizes), places(sizes)
    values = np.array(data.draw(st.lists(st.integers(0, 1), min_size=mesh.count, max_size=mesh.count)))
    differing = 0
    for axis in range(len(sizes)):
        rest = [place[:axis] + place[axis + 1 :] for place in at]
        pairs = [(i, j) for i in range(mesh.count) for j in range(mesh.count) if rest[i] == rest[j]]
        differing |= any(values[i] != values[j] for i, j in pairs) << axis
    assert mesh.differing(values) == differing


@given(MESHES, st.data())
def test_devices_that_differ_in_no_axis_of_a_set_are_in_one_place(sizes, data):
    mesh, at = mesh_of(sizes), places(sizes)
    axes = data.draw(st.integers(0, 2 ** len(sizes) - 1))
    kept = [tuple(place[axis] for axis in range(len(sizes)) if axes >> axis & 1) for place in at]
    found = mesh.places(axes)
    for i in range(mesh.count):
        assert [found[i] == found[j] for j in range(mesh.count)] == [kept[i] == kept[j] for j in range(mesh.count)]


@pytest.mark.parametrize(
    ("groups", "axes"),
    [
        (((0, 1), (2, 3), (4, 5), (6, 7)), 0b100),
        (((0, 2, 4, 6), (1, 3, 5, 7)), 0b001),
        ((tuple(range(8)),), 0b101),
        (tuple((device,) for device in range(8)), 0),
        (((0, 3), (1, 2), (4, 7), (5, 6)), 0),  # no axis has these
        (((0, 1), (2, 3), (4, 5)), 0),  # two devices are in none
        (((0, 1), (2, 3), (4, 5), (6, 7), (8, 9)), 0b100),  # of another program's devices nothing is known
    ],
)
def test_groups_join_the_axes_along_which_all_are_in_one(groups, axes):
    assert MESH.joined(groups) == axes


@settings(max_examples=40)
@given(st.permutations([0, 1, 2]), st.integers(0, 3), st.integers(0, 3))
def test_a_sharding_is_split_as_jax_splits_it(order, first, second):
    """Against the text that JAX writes for a partition spec over the same mesh."""
    sizes, names = (2, 3, 2), ("a0", "a1", "a2")
    abstract = jax.sharding.AbstractMesh(sizes, names)
    dims = [order[:first], order[first : first + second]]
    spec = jax.P(*(tuple(names[axis] for axis in dim) or None for dim in dims))
    text = str(jax.NamedSharding(abstract, spec)._to_xla_hlo_sharding(2))
    axes = sum(1 << axis for dim in dims for axis in dim)
    assert mesh_of(sizes).split(text, 2) == (axes, tuple(map(tuple, dims)))


@pytest.mark.parametrize(
    ("text", "rank", "split"),
    [
        ("{replicated}", 2, (0, ((), ()))),
        ("{manual}", 2, (0b101, None)),
        ("{maximal device=0}", 2, None),
        ("{devices=[4,1]<=[4]}", 2, None),  # of fewer devices
        ("{devices=[8]<=[8]}", 2, None),  # of fewer dimensions
        ("{devices=[8,1]<=[8]}", 2, (0b101, ((0, 2), ()))),
        ("{devices=[1,8]<=[4,2]T(1,0)}", 2, (0b101, ((), (2, 0)))),
        ("{devices=[1, 8] <= [4,2] T(1,0)}", 2, (0b101, ((), (2, 0)))),
        ("{devices=[4,1,2] <= [8] last_tile_dim_replicate}", 2, (0b001, ((0,), ()))),
        ("{devices=[1,8] 0,2, 4,6,1,3,5,7}", 2, (0b101, ((), (2, 0)))),
        ("{devices=[1,8]0,2,4,6,1,3,5,7}", 2, (0b101, ((), (2, 0)))),
        ("{devices=[1,8]0,2,1,3,4,6,5,7}", 2, (0b101, None)),  # made of no whole axes
        ("{devices=[4,1,2]<=[8] last_tile_dim_replicate}", 2, (0b001, ((0,), ()))),
        ("{devices=[4,1,2]<=[8] last_tile_dims={manual}}", 2, (0b101, ((0,), ()))),
    ],
)
def test_a_sharding_in_hlos_words_is_read(text, rank, split):
    assert MESH.split(text, rank) == split


def shardings(*leaves):
    return Shardings(None, MESH, [tuple(leaves)])


@pytest.mark.parametrize(
    ("leaves", "way"),
    [
        ((), ""),
        ((Spread(),), "whole on each device"),
        ((Spread(0b001, ((0,), ())),), "split along data"),
        ((Spread(0b101, ((0,), (2,))),), "split along data, model"),
        ((Spread(0b001),), "may differ along data"),
        ((Spread(0b101, ((0,), ())),), "split along data, may differ along model"),
        ((Spread(0b001, ((0,),)), Spread(0b100)), "split along data, may differ along model"),
    ],
)
def test_how_arrays_lie_is_said_in_words(leaves, way):
    assert shardings(*leaves).way_of(0) == way


@pytest.mark.parametrize(
    ("spread", "written"),
    [
        (Spread(), "f32[256,512]"),  # nobody knows its dimensions
        (Spread(0, ((), ())), "f32[256,512]"),
        (Spread(0b001, ((0,), ())), "f32[1024@data,512]"),
        (Spread(0b101, ((0,), (2,))), "f32[1024@data,1024@model]"),
        (Spread(0b101, ((0, 2), ())), "f32[2048@(data,model),512]"),
        (Spread(0b101, ((0,), ())), "f32[1024@data,512]{V:model}"),
        (Spread(0b101), "f32[256,512]{V:(data,model)}"),
        (Spread(0b001, ((0,),)), "f32[256,512]"),  # of another rank
    ],
)
def test_an_array_is_written_as_jax_writes_it(spread, written):
    (array,) = parse_type("f32[256,512]").arrays
    assert shardings(spread).written(array, spread) == written


def test_what_is_spread_over_other_axes_was_not_gathered_along_them():
    spread = Spread(0, None, CONSTANT, gathered=0b101, gathers=frozenset([3]))
    assert spread.with_axes(0b001, ((0,),)) == Spread(0b001, ((0,),), CONSTANT, 0b100, frozenset([3]))
    assert spread.with_axes(0b111, None) == Spread(0b111, None, CONSTANT)


def test_spreads_are_equal_with_their_values():
    one, same, other = (Spread(values=np.array(values)) for values in ([0, 1], [0, 1], [0, 2]))
    assert one == same
    assert one != other
    assert one != Spread()
    assert Spread() == Spread()
    assert Spread(1) != Spread(2)
    assert Spread() != 0
    assert [is_same(None, None), is_same(None, one.values), is_same(one.values, None)] == [True, False, False]
