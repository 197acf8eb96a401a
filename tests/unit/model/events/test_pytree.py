"""The structure of a call's arguments: what is equal is one object."""

import copy
import gc
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.model.events import key
from explorer.model.events.key import LEAF, NONE, TreeNode, split_path
from tests.support.pytrees import call_tree


def test_equal_trees_and_their_equal_subtrees_are_one_object():
    layers = {f"layer_{i}": {"w": 0, "b": None} for i in range(4)}
    tree, same = call_tree({"params": layers}), call_tree({"params": dict(layers)})
    assert tree is same
    (params,) = tree.children[0].children
    assert len(set(params.children)) == 1
    assert (tree.leaves, tree.size, len(list(tree.distinct()))) == (4, 16, 7)


def test_a_tree_is_let_go_of_with_the_last_who_has_it():
    gc.collect()  # what other tests left behind
    before = len(key._nodes)
    tree = call_tree({"only here": [0, {"and": {"nowhere else": 0}}]})
    assert len(key._nodes) > before
    del tree
    gc.collect()
    assert len(key._nodes) == before


def test_copies_and_pickles_are_the_same_object():
    tree = call_tree({"x": ({"w": 0}, None)})
    assert copy.deepcopy(tree) is tree
    assert copy.copy(tree) is tree
    assert pickle.loads(pickle.dumps(tree)) is tree


def test_a_tree_prints_as_it_is_written():
    tree = call_tree({"x": ({"w": 0, "b": None}, (0,), [])}, {"mask": 0})
    assert str(tree) == "((({'b': None, 'w': *}, (*,), []),), {'mask': *})"
    assert repr(TreeNode("class", "Net", (".w",), "(2,)", (LEAF,))) == "TreeNode(Net[(2,)](*))"
    assert str(TreeNode("namedtuple", "Pair", (".a", ".b"), children=(LEAF, NONE))) == "Pair(*, None)"
    assert str(TreeNode("text", static="whatever it was")) == "whatever it was"


def test_a_step_leads_to_each_child():
    with pytest.raises(ValueError, match="2 steps lead to 1 children"):
        TreeNode("list", steps=("[0]", "[1]"), children=(LEAF,))


def test_the_way_to_the_first_leaf_passes_by_what_has_none():
    tree = call_tree({"x": [None, {"a": (), "b": ([0],)}]})
    assert tree.children[0].steps_to_leaf() == ["[0]", "[1]", "['b']", "[0]", "[0]"]
    assert NONE.steps_to_leaf() == []


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("x", ["x"]),
        ("state.params['w'][0]", ["state", ".params", "['w']", "[0]"]),
        ("x['a.b'][\"it's ]\"].c", ["x", "['a.b']", '["it\'s ]"]', ".c"]),
        (r"x['\'['].y", ["x", r"['\'[']", ".y"]),
        ("x[<flat index 0>]", ["x", "[<flat index 0>]"]),
        ("x[(1, [2])]", ["x", "[(1, [2])]"]),
        ("x[0", ["x", "[0"]),
        ("", []),
    ],
)
def test_a_path_in_its_steps(path, steps):
    assert split_path(path) == steps


@given(st.text(max_size=30))
def test_no_step_is_lost(path):
    assert "".join(split_path(path)) == path


@given(st.lists(st.one_of(st.text(max_size=8).map(lambda key: f"[{key!r}]"), st.integers(0, 9).map("[{}]".format))))
def test_any_keys_are_split_where_they_were_joined(steps):
    assert split_path("".join(["x", *steps])) == ["x", *steps]
