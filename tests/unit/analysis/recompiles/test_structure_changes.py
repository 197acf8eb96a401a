"""Where two argument trees differ, however large they are."""

import dataclasses
from collections import OrderedDict, namedtuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import explorer as ex
from explorer.analysis.recompiles.nearest import changes
from explorer.model.events.key import Function, Key, Leaf, TreeNode
from tests.support.pytrees import call_tree, paths_of

LAYERS = 24


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class TrainState:
    params: object
    opt_state: object
    name: str = dataclasses.field(metadata={"static": True}, default="a transformer")


def train_state():
    """The state of a training step of many layers, with Adam's: a tree of a thousand containers."""
    shapes = {
        "attention": {"qkv": (8, 24), "out": (8, 8)},
        "mlp": {"up": (8, 32), "down": (32, 8)},
        "norm": {"g": (8,)},
    }
    params = {
        f"layer_{i}": {
            name: {part: {"w": np.zeros(shape, np.float32), "b": np.zeros(shape[-1:], np.float32)}
                   for part, shape in parts.items()}
            for name, parts in shapes.items()
        }
        for i in range(LAYERS)
    }  # fmt: skip
    return TrainState(params, optax.adam(1e-3).init(params))


def with_adams(state, change):
    """The state with Adam's first moments changed by `change`, which gets a copy of them."""
    adam, *rest = state.opt_state
    mu = jax.tree.map(lambda array: array, adam.mu)
    change(mu)
    return dataclasses.replace(state, opt_state=(adam._replace(mu=mu), *rest))


def recompiled(*states):
    """The reason of the last of some calls of a step, and the step."""

    @jax.jit
    def step(state):
        return sum(array.sum() for array in jax.tree.leaves(state))

    with ex.watch() as ledger:
        for state in states:
            step.trace(state)
    return ledger.events[-1].reason


def test_of_a_24_layer_step_with_adam_the_one_leaf_that_became_none_is_named_and_its_cure_cures():
    state = train_state()

    def drop(mu):
        mu["layer_17"]["mlp"]["up"]["w"] = None

    broken = with_adams(state, drop)
    reason = recompiled(state, broken)
    leaf = "state.opt_state[0].mu['layer_17']['mlp']['up']['w']"
    assert (reason.kind, reason.leaf, reason.before, reason.after) == ("structure", leaf, "array", "None")
    assert reason.text == f"`{leaf}` was an array and is now None"
    value = f"jnp.zeros((8, 32), jnp.float32) instead of None for `{leaf}`"
    assert reason.fix.startswith(f"if this value changes no result: {value}")
    exec(f"{leaf} = jnp.zeros((8, 32), jnp.float32)", {"jnp": jnp, "state": broken})
    assert jax.tree.structure(broken) == jax.tree.structure(state)


def test_of_a_24_layer_step_with_adam_the_one_key_that_was_added_is_named():
    state = train_state()

    def add(mu):
        mu["layer_17"]["mlp"]["scale"] = np.ones(3, np.float32)

    reason = recompiled(with_adams(state, add), state)
    leaf = "state.opt_state[0].mu['layer_17']['mlp']['scale']"
    assert (reason.kind, reason.leaf, reason.before, reason.after) == ("structure", leaf, "array", "absent")
    assert reason.fix == f"give `state` the same keys in every call: with and without `{leaf}` it is another model"


def test_what_a_class_keeps_is_named_behind_a_thousand_containers():
    state = train_state()
    reason = recompiled(state, dataclasses.replace(state, name="a mixer"))
    assert (reason.kind, reason.leaf) == ("structure", "state.name")
    assert (reason.before, reason.after) == ("'a transformer'", "'a mixer'")


def key(positional, keywords=None, **more):
    paths = [*paths_of(positional), *paths_of(dict(sorted((keywords or {}).items())))]
    leaves = tuple(Leaf(path, (), "float32") for path in paths)
    return Key(Function("step", "train.py", 3, identity=1), leaves, call_tree(positional, keywords), **more)


def changed(before, after):
    return [(change.path, change.before, change.after, change.how) for change in changes(key(after), key(before))]


def test_all_places_that_differ_are_named_in_the_order_of_the_arguments():
    before = {"x": 0, "batch": {"a": 0, "b": [0, 0], "c": 0}, "rate": 0}
    after = {"x": None, "batch": {"a": (0,), "b": [0], "d": 0}, "rate": 0}
    assert changed(before, after) == [
        ("x", "array", "None", "other"),
        ("batch['a']", "array", "tuple of 1", "other"),
        ("batch['b']", "list of 2", "list of 1", "other"),
        ("batch['d']", "absent", "array", "added"),
        ("batch['c']", "array", "absent", "removed"),
    ]


def test_an_argument_that_moved_is_no_argument_more_and_one_less():
    (change,) = changes(key({"x": 0}, {"y": {"a": 0}}), key({"x": 0, "y": {"a": 0}}))
    assert (change.path, change.before, change.after, change.how) == ("y", "positional", "keyword", "moved")


def test_a_field_without_arrays_has_its_name():
    state = namedtuple("State", "first second")
    assert changed({"s": state(0, [[]])}, {"s": state(0, [()])}) == [
        ("s.second[0]", "list of 0", "tuple of 0", "other")
    ]


def test_an_ordered_dictionary_in_another_order_is_no_other_set_of_keys():
    (change,) = changes(key({"x": OrderedDict(a=0, b=0)}), key({"x": OrderedDict(b=0, a=0)}))
    assert (change.path, change.how) == ("x", "kept")
    assert change.before.startswith("OrderedDict[")


def test_keys_with_quotes_dots_and_brackets_are_keys():
    hostile = {"it's": 0, "a.b": {"['x']": 0}, 'say "no"': [0]}
    assert changed({"t": {**hostile, "a.b": {"['x']": None}}}, {"t": hostile}) == [
        ("""t['a.b']["['x']"]""", "None", "array", "other")
    ]


def test_a_tree_deeper_than_pythons_stack_is_compared():
    def nested(leaf, depth=5_000):
        for _ in range(depth):
            leaf = [leaf]
        return leaf

    def key_of(leaf):
        tree = TreeNode("tuple", steps=("[0]", "[1]"), children=(
            TreeNode("tuple", steps=("[0]",), children=(node_of(leaf),)), TreeNode("dict")))  # fmt: skip
        return Key(Function("step", "train.py", 3, identity=1), tree=tree)

    def node_of(kind):
        node = TreeNode(kind)
        for _ in range(5_000):
            node = TreeNode("list", steps=("[0]",), children=(node,))
        return node

    (change,) = changes(key_of("leaf"), key_of("None"))
    assert change.path.count("[0]") == 5_000
    assert (change.before, change.after) == ("None", "array")


def test_subtrees_that_are_the_same_are_not_entered(monkeypatch):
    entered = []
    import explorer.analysis.recompiles.nearest as module

    real = module._pair_children
    monkeypatch.setattr(module, "_pair_children", lambda *args: entered.append(args[0].path) or real(*args))
    before = {"state": {f"layer_{i}": {"w": 0, "b": [0] * 50, "c": {str(i): 0}} for i in range(200)}}
    after = jax.tree.map(lambda leaf: leaf, before)
    after["state"]["layer_7"]["w"] = None
    assert changed(before, after) == [("state['layer_7']['w']", "array", "None", "other")]
    assert entered == ["state", "state['layer_7']"]


class Aux:
    """What a class keeps: code of the user's, which fails."""

    def __repr__(self):
        raise RuntimeError("no repr")


@jax.tree_util.register_pytree_node_class
class Box:
    """One array or tree, with what is kept beside it."""

    def __init__(self, x, kept):
        self.x, self.kept = x, kept

    def tree_flatten(self):
        return (self.x,), self.kept

    @classmethod
    def tree_unflatten(cls, kept, children):
        return cls(*children, kept)


@pytest.mark.parametrize("kept", [Aux(), (Aux(), 1)])
def test_code_of_the_users_that_fails_costs_the_print_of_what_is_kept_and_nothing_else(kept):
    first, second = ({"x": Box(leaf, kept)} for leaf in (0, {"w": 0}))
    assert changed(first, second) == [("x[<flat index 0>]", "array", "dict of 1", "other")]


def test_long_metadata_that_differs_at_its_end_differs():
    words = tuple(f"word {i}" for i in range(5_000))
    ((path, before, after, how),) = changed({"x": Box(0, (*words, "a"))}, {"x": Box(0, (*words, "b"))})
    assert (path, how) == ("x", "kept")
    assert before != after


def test_a_tree_of_which_only_the_print_is_known_is_compared_by_the_paths_of_its_leaves():
    old = Key(Function("f"), (Leaf("x", (), "f"),), TreeNode("text", static="(*)"))
    new = Key(Function("f"), (Leaf("x", (), "f"), Leaf("y['b']", (), "f")), TreeNode("text", static="(*, {'b': *})"))
    assert [(change.path, change.how, change.parent) for change in changes(new, old)] == [("y['b']", "added", "y")]
    assert changes(old, old) == ()
