"""Whatever the arguments' structure is: the place that changed in it is named, and no other."""

from typing import NamedTuple

import jax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.analysis.recompiles.reasons import explain
from explorer.model.events.key import Function, Key, Leaf, TreeNode
from tests.support.pytrees import call_tree


class Pair(NamedTuple):
    first: object
    second: object


ARRAY = 1.0
KEYS = st.sampled_from(["w", "b", "it's", 'a "quoted"', "x: y", "{[(", 0, 7])
trees = st.recursive(
    st.sampled_from([ARRAY, ARRAY, None]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(KEYS.filter(lambda key: isinstance(key, str)), inner, max_size=3),
        st.dictionaries(KEYS.filter(lambda key: isinstance(key, int)), inner, max_size=2),
        st.tuples(inner, inner).map(lambda both: Pair(*both)),
    ),
    max_leaves=12,
)


def key_of(value):
    """As the ledger reads a call `step({"kept": …, "value": value})` whose argument is named `state`."""
    argument = {"kept": ARRAY, "value": value}
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(argument)]
    leaves = tuple(Leaf("state" + jax.tree_util.keystr(path), (), "float32") for path in paths)
    return Key(Function("step", "train.py", 1, identity=1), leaves, call_tree({"state": argument}))


def places(value, path=()):
    """(path, what stands there) of every node."""
    yield path, value
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, (list, tuple)):
        inside = enumerate(value)
    else:
        inside = ()
    for step, child in inside:
        yield from places(child, (*path, step))


def changed(value, path, new):
    if not path:
        return new
    step, rest = path[0], path[1:]
    if isinstance(value, dict):
        return {key: changed(child, rest, new) if key == step else child for key, child in value.items()}
    children = [changed(child, rest, new) if i == step else child for i, child in enumerate(value)]
    return type(value)(*children) if isinstance(value, Pair) else type(value)(children)


def written(value, path):
    """The path as Python would write it."""
    text = "state['value']"
    for step in path:
        text += f".{Pair._fields[step]}" if isinstance(value, Pair) else f"[{step!r}]"
        value = value[step]
    return text


def mutations(path, there):
    """(what stands there now, the path that is named besides)."""
    yield (None if there == ARRAY else ARRAY), ()
    if isinstance(there, list):
        yield [*there, ARRAY], ()
        yield tuple(there), ()
    if isinstance(there, dict):
        new = 99 if any(isinstance(key, int) for key in there) else "new"
        yield {**there, new: ARRAY}, (new,)
    if isinstance(there, Pair):
        yield tuple(there), ()


def test_a_change_is_named_by_its_field_also_where_no_array_is_in_it():
    before, after = Pair(ARRAY, [[]]), Pair(ARRAY, [()])
    reason = explain(key_of(after), [key_of(before)], frozenset({"trace"}))
    assert (reason.kind, reason.leaf) == ("structure", "state['value'].second[0]")
    before, after = Pair(ARRAY, {"w": []}), Pair(ARRAY, {"w": [], "new": None})
    assert explain(key_of(after), [key_of(before)], frozenset({"trace"})).leaf == "state['value'].second['new']"


@pytest.mark.slow
@settings(max_examples=300)
@given(trees, st.data())
def test_the_one_place_that_changed_is_named(value, data):
    path, there = data.draw(st.sampled_from(list(places(value))))
    new, further = data.draw(st.sampled_from(list(mutations(path, there))))
    after = changed(value, path, new)
    reason = explain(key_of(after), [key_of(value)], frozenset({"trace"}))
    true = written(after, path) + "".join(f"[{step!r}]" for step in further)
    # A field without arrays in it has a name that neither tree says: then what it is in is named.
    named = true[: len(reason.leaf)] if ".f" in true or ".s" in true else true
    assert (reason.kind, reason.leaf) == ("structure", named)
    assert reason.text


@settings(max_examples=200)
@given(st.text(max_size=60), st.text(max_size=60))
def test_any_two_texts_for_trees_are_explained(after, before):
    leaf = Leaf("x", (), "float32")
    function = Function("step", "train.py", 1, identity=1)
    reason = explain(
        Key(function, (leaf,), tree=TreeNode("text", static=after)),
        [Key(function, (leaf,), tree=TreeNode("text", static=before))],
        frozenset({"trace", "compile"}),
    )
    assert reason.kind == ("structure" if after != before else "unknown")
