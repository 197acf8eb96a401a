"""The structure of a pytree as JSON: it comes back equal, or is refused with the reason."""

import enum
import json
import math
import re
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.aot.encoding import tree_from_json, tree_to_json
from explorer.errors import ArchiveError


class Point(NamedTuple):
    x: Any
    y: Any


@jax.tree_util.register_dataclass
@dataclass
class Batch:
    inputs: Any
    labels: Any
    name: str = field(default="", metadata={"static": True})


@partial(jax.tree_util.register_dataclass, data_fields=["inputs", "labels"], meta_fields=["scale"])
class Plain:
    """No dataclass, but registered as one."""

    def __init__(self, inputs, labels, scale):
        self.inputs, self.labels, self.scale = inputs, labels, scale


@jax.tree_util.register_pytree_node_class
class Layer:
    def __init__(self, weights, config):
        self.weights, self.config = weights, config

    def tree_flatten(self):
        return self.weights, self.config

    @classmethod
    def tree_unflatten(cls, config, children):
        return cls(children, config)


class Mode(enum.IntEnum):
    FAST = 1


TYPES = (Batch, Layer, Plain, Point)
CONFIG = {"rate": (0.1, [1, None, True], math.inf), ("a", 1): "text"}


def through_json(tree, types=()):
    structure = jax.tree.structure(tree)
    return structure, tree_from_json(json.loads(json.dumps(tree_to_json(structure))), types)


@pytest.mark.parametrize(
    "tree",
    [
        1,
        None,
        [],
        (),
        {},
        [1, (2, None), [3]],
        {"b": 1, "a": {"c": 2}},
        {True: 1, 2.5: 2, 3: 3},
        {(1, ("a", None)): 1},
        {-math.inf: 1, 0.0: 2},
        OrderedDict(z=1, a=[2]),
        defaultdict(list, {"q": 1, "b": 2}),
        defaultdict(None, {"q": 1}),
        Point(1, [2]),
        Batch(1, {"a": 2}, "train"),
        Plain(1, (2,), 0.5),
        Layer((1, [2]), CONFIG),
        [Batch(Point(1, 2), Layer((), (1,)))],
    ],
    ids=lambda tree: re.sub(" object at 0x[0-9a-f]+", "", repr(tree)),
)
def test_a_structure_comes_back_equal(tree):
    before, after = through_json(tree, TYPES)
    assert after == before
    assert hash(after) == hash(before)
    leaves = jax.tree.leaves(tree)
    assert jax.tree.leaves(after.unflatten(leaves)) == leaves


def test_a_dicts_keys_are_in_the_order_that_jax_gives_them():
    _, after = through_json({"b": 1, "a": 2})
    assert list(after.unflatten([10, 20]).items()) == [("a", 10), ("b", 20)]
    _, after = through_json(OrderedDict(b=1, a=2))
    assert list(after.unflatten([10, 20]).items()) == [("b", 10), ("a", 20)]


@pytest.mark.parametrize("data", [(1, 2), [1, 2], ((1,), [1, (2,)]), 1, 1.0, True, "1", None, {"a": (1,)}], ids=repr)
def test_what_a_class_keeps_beside_its_arrays_keeps_its_type(data):
    _, after = through_json(Layer((1,), data), TYPES)
    config = after.unflatten([1]).config
    assert config == data
    assert repr(config) == repr(data)  # 1 == 1.0 == True


def test_a_named_tuple_that_is_not_given_becomes_an_equal_one():
    before, after = through_json(Point(1, 2))
    made = after.unflatten([1, 2])
    assert after != before  # another class
    assert made == Point(1, 2)
    assert (type(made).__name__, made._fields, repr(made)) == ("Point", ("x", "y"), "Point(x=1, y=2)")
    assert through_json(Point(1, 2))[1] == after


def test_a_class_is_found_by_its_own_name_when_its_module_was_another():
    said = tree_to_json(jax.tree.structure(Batch(1, 2, "a")))
    said["class"] = "__main__.Batch"
    assert tree_from_json(said, TYPES) == jax.tree.structure(Batch(1, 2, "a"))


def test_a_class_that_is_not_given_is_asked_for():
    said = tree_to_json(jax.tree.structure({"data": Batch(1, 2)}))
    with pytest.raises(ArchiveError, match=r"(?s)test_trees\.Batch, a class that.*types=\(Batch,\)"):
        tree_from_json(said)
    with pytest.raises(ArchiveError, match="Batch"):
        tree_from_json(said, (Point, Layer))


@pytest.mark.parametrize("kind", [Batch, Plain])
def test_a_class_of_other_fields_than_in_the_file_is_refused(kind):
    # JAX itself would read past the end of what there is.
    said = tree_to_json(jax.tree.structure(kind(1, 2, "a")))
    for children, data in (["*"], ("a",)), (["*"] * 3, ("a",)), (["*"] * 2, ()), (["*"] * 2, ("a", "b")):
        wrong = {**said, "children": children, "data": {"tuple": list(data)}}
        with pytest.raises(ArchiveError, match=r"now it has 2 \(inputs, labels\)"):
            tree_from_json(wrong, TYPES)
    with pytest.raises(ArchiveError, match="now it has"):
        tree_from_json({**said, "data": 5}, TYPES)


def test_a_named_tuple_of_other_fields_than_in_the_file_is_refused():
    other = namedtuple("Point", "x z")
    said = tree_to_json(jax.tree.structure(Point(1, 2)))
    with pytest.raises(ArchiveError, match=r"as a named tuple of \(x, y\)"):
        tree_from_json({**said, "namedtuple": f"{other.__module__}.{other.__qualname__}"}, (other,))


def test_a_class_that_is_not_registered_is_refused():
    class Unknown:
        pass

    said = {"class": f"{Unknown.__module__}.{Unknown.__qualname__}", "data": None, "children": []}
    with pytest.raises(ArchiveError, match="register the class"):
        tree_from_json(said, (Unknown,))


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (print, "builtin_function"),
        (Mode.FAST, "Mode"),
        (np.float64(1), "float64"),
        ({1}, "set"),
        (Point(1, 2), "Point"),
    ],
    ids=repr,
)
def test_what_is_no_plain_value_is_refused_when_saving_and_the_class_named(data, named):
    with pytest.raises(ArchiveError, match=rf"test_trees\.Layer holds .*{named}"):
        tree_to_json(jax.tree.structure([Layer((1,), ("a", [data]))]))
    with pytest.raises(ArchiveError, match="a key of a dict holds"):
        tree_to_json(jax.tree.structure({Mode.FAST: 1}))


def test_a_defaultdict_of_a_function_is_refused_when_saving():
    with pytest.raises(ArchiveError, match="makes its values by"):
        tree_to_json(jax.tree.structure(defaultdict(lambda: 1, {"a": 1})))


@pytest.mark.parametrize(
    "said",
    [
        0,
        "**",
        [],
        {},
        {"list": {}},
        {"list": [], "tuple": []},
        {"set": []},
        {"dict": [["a", "*"], ["a", "*"]]},
        {"dict": [["b", "*"], ["a", "*"]]},
        {"dict": [[1, "*"], [True, "*"]]},
        {"dict": [["a", "*"], [None, "*"]]},
        {"dict": [["a"]]},
        {"dict": [[["list"], "*"]]},
        {"dict": [[{"float": "1.0"}, "*"]]},
        {"defaultdict": [], "factory": "print"},
        {"defaultdict": []},
        {"namedtuple": "a.B", "fields": [["class", "*"]]},
        {"namedtuple": "a.B", "fields": [["_x", "*"]]},
        {"namedtuple": "a.B", "fields": [["x", "*"], ["x", "*"]]},
        {"namedtuple": "a.B(", "fields": []},
        {"namedtuple": "os.system('x')", "fields": []},
        {"namedtuple": "a.B", "fields": [[1, "*"]]},
        {"class": "os.system", "data": None, "children": []},
    ],
    ids=repr,
)
def test_json_that_says_no_structure_is_refused(said):
    with pytest.raises(ArchiveError):
        tree_from_json(said)


def test_json_that_is_nested_too_deeply_is_refused():
    said: Any = "*"
    for _ in range(100_000):
        said = {"list": [said]}
    with pytest.raises(ArchiveError, match="too deeply"):
        tree_from_json(said)


TEXT = st.text(max_size=4)
KEYS = st.one_of(TEXT, st.integers(-9, 9), st.tuples(TEXT, st.integers(0, 3)))
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.tuples(inner, inner) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=5,
)


def dicts(inner):
    kinds = [st.dictionaries(keys, inner, max_size=3) for keys in (TEXT, st.integers(), st.tuples(TEXT, TEXT))]
    return st.one_of(kinds) | st.builds(OrderedDict, st.lists(st.tuples(KEYS, inner), max_size=3))


TREES = st.recursive(
    st.just(0) | st.none(),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        dicts(inner),
        st.builds(Point, inner, inner),
        st.builds(Batch, inner, inner, TEXT),
        st.builds(Layer, st.tuples(inner), PLAIN),
    ),
    max_leaves=8,
)


@given(TREES)
def test_any_structure_comes_back_equal(tree):
    before, after = through_json(tree, TYPES)
    assert after == before


WORDS = ["list", "tuple", "dict", "OrderedDict", "defaultdict", "factory", "namedtuple", "fields"]
WORDS += ["class", "data", "children", "float"]
JSON = st.recursive(
    st.sampled_from(["*", None, 0, 1.5, True, "list", "a.B", "test_trees.Batch"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=3),
    max_leaves=8,
)


def places(said, path=()):
    yield path
    for key in said if isinstance(said, dict) else range(len(said)) if isinstance(said, list) else ():
        yield from places(said[key], (*path, key))


def replaced(said, path, value):
    if not path:
        return value
    copy = said.copy()
    copy[path[0]] = replaced(said[path[0]], path[1:], value)
    return copy


@given(TREES, JSON, st.data())
def test_altered_json_is_another_structure_or_refused(tree, value, data):
    said = tree_to_json(jax.tree.structure(tree))
    wrong = replaced(said, data.draw(st.sampled_from(list(places(said)))), value)
    try:
        structure = tree_from_json(wrong, TYPES)
    except ArchiveError:
        return
    # What it became can be used.
    structure.unflatten([0] * structure.num_leaves)
