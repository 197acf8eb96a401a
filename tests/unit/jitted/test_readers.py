"""The short way to read a state finds what the long way finds, or gives up."""

import copy
from collections import OrderedDict, defaultdict

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.jitted.state import read
from explorer.jitted.trial import make_reader
from tests.support.state_worlds import (
    ARRAYS,
    CONSTANTS,
    HOLDERS,
    Layer,
    Slots,
    SlotsAndMore,
    Thick,
    at,
    filled,
    is_array,
    make_world,
    places,
    put,
    remove,
)

X = jnp.asarray([1.0, 2.0])
NUMBERS = st.integers(0, 1000)
VALUES = st.sampled_from(
    [lambda make=make: make() for make in (*ARRAYS.values(), *CONSTANTS.values())]
    + [lambda make=make: make(X) for make in HOLDERS.values()]
)


def same(ones, others):
    return len(ones) == len(others) and all(a is b for a, b in zip(ones, others, strict=True))


def assert_agrees(reader, key, *roots):
    """What was found the short way; None where it gave up."""
    short = reader(*roots)
    long_key, arrays, holders = read(roots)
    if short is not None:
        assert long_key == key
        assert same(short[0], arrays)
        assert same(short[1], holders)
    return short


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_after_any_change_it_finds_what_the_long_way_finds_or_gives_up(data):
    root = make_world()
    for _ in range(data.draw(st.integers(0, 3))):
        change(data, root)
    key, _, _ = read([root])
    reader = make_reader([root])
    assert assert_agrees(reader, key, root) is not None
    for _ in range(data.draw(st.integers(1, 3))):
        change(data, root)
        assert_agrees(reader, key, root)


def change(data, root):
    holder, label = data.draw(st.sampled_from(places(root) or [(root, "new")]), label="place")
    how = data.draw(st.sampled_from(["set", "copy", "alias", "add", "remove", "class", "order", "array"]))
    if how == "add":
        add(holder, data.draw(VALUES)())
    elif how == "class":
        if type(holder) in (Layer, Thick):
            holder.__class__ = Thick if type(holder) is Layer else Layer
    elif how == "order":
        entries = holder if isinstance(holder, dict) else getattr(holder, "__dict__", {})
        for key in sorted(entries, key=str):
            entries[key] = entries.pop(key)
    elif label != "new" or hasattr(root, "new"):
        if how == "set":
            put(holder, label, data.draw(VALUES)())
        elif how == "copy":
            put(holder, label, copy.copy(at(holder, label)))
        elif how == "alias":
            put(holder, label, at(*data.draw(st.sampled_from(places(root)))))
        elif how == "remove":
            remove(holder, label)
        elif is_array(at(holder, label)):
            put(holder, label, jnp.asarray(at(holder, label)) + 1)


def add(holder, value):
    if isinstance(holder, dict):
        holder["new"] = value
    elif hasattr(holder, "append"):
        holder.append(value)
    elif not isinstance(holder, Slots) or isinstance(holder, SlotsAndMore):
        object.__setattr__(holder, "new", value)


@pytest.mark.parametrize("kind", HOLDERS)
def test_a_state_of_any_kind_with_other_arrays_is_read_the_short_way(kind):
    root = [HOLDERS[kind](X)]
    key, arrays, _ = read([root])
    reader = make_reader([root])
    root[0] = HOLDERS[kind](X + 1)
    short = assert_agrees(reader, key, root)
    assert short is not None
    assert not arrays or all(array is not X for array in short[0])


@pytest.mark.parametrize("constant", CONSTANTS)
def test_a_constant_that_equals_what_was_there_is_no_change(constant):
    root = {"x": X, "constant": CONSTANTS[constant]()}
    key, _, _ = read([root])
    reader = make_reader([root])
    root["constant"] = CONSTANTS[constant]()
    long_key = read([root])[0]
    assert (assert_agrees(reader, key, root) is not None) == (long_key == key)


@pytest.mark.parametrize(
    "other",
    [lambda s: s.add(3), lambda s: s.clear()],
    ids=["more", "none"],
)
def test_a_set_that_changes_in_place_is_a_change(other):
    root = {"x": X, "set": {1, 2}}
    reader = make_reader([root])
    other(root["set"])
    assert reader(root) is None


def test_what_defines_equality_is_compared_by_it_and_by_its_hash():
    class Version:
        __slots__ = ()
        number = 1

        def __eq__(self, other):
            return isinstance(other, Version)

        def __hash__(self):
            return Version.number

    root = {"x": X, "version": np.dtype("float32")}
    root["enum"] = Version()
    reader = make_reader([root])
    root["enum"] = Version()
    assert reader(root) is not None
    Version.number = 2
    assert reader(root) is None


def test_two_containers_that_become_one_are_a_change_and_one_that_becomes_two_too():
    one, other = Layer(w=X), Layer(w=X)
    root = {"one": one, "other": other}
    reader = make_reader([root])
    root["other"] = one
    assert reader(root) is None
    reader = make_reader([root])
    root["other"] = other
    assert reader(root) is None


def test_a_missing_key_is_not_made_by_looking_for_it():
    root = [defaultdict(int, a=X, b=1)]
    reader = make_reader([root])
    root[0]["c"] = root[0].pop("b")
    assert reader(root) is None
    assert set(root[0]) == {"a", "c"}


def test_the_order_of_an_ordered_dict_is_part_of_it():
    root = [OrderedDict(a=X, b=1)]
    reader = make_reader([root])
    root[0].move_to_end("a")
    assert reader(root) is None


def test_a_slot_that_is_filled_or_emptied_is_a_change():
    root = [filled(Slots(), weight=X)]
    reader = make_reader([root])
    root[0].bias = X
    assert reader(root) is None
    del root[0].bias
    assert reader(root) is not None
    del root[0].weight
    assert reader(root) is None


def test_texts_where_numbers_were_are_a_change():
    root = [np.asarray([1.0, 2.0])]
    reader = make_reader([root])
    assert reader(root) is not None
    root[0] = np.asarray(["a", "b"])
    assert reader(root) is None


def test_a_traced_value_goes_the_long_way():
    root = {"x": X, "y": X}
    reader = make_reader([root])

    @jax.jit
    def outer(x):
        root["x"] = x
        try:
            assert reader(root) is None
        finally:
            root["x"] = X
        return x

    outer(X)


def test_names_that_are_python_are_no_python():
    root = {"x": X, "']; raise SystemExit; ['": X + 1, 'quote"\n': 1}
    vars_too = Layer()
    vars(vars_too)["no name; raise SystemExit"] = X
    root["object"] = vars_too
    key, _, _ = read([root])
    assert assert_agrees(make_reader([root]), key, root) is not None
