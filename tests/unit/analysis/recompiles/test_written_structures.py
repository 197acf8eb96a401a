"""Where two calls had other structures, and what to write: each text worked out by hand."""

from collections import OrderedDict, namedtuple
from dataclasses import replace

import pytest

from explorer.analysis.recompiles.nearest import changes
from explorer.analysis.recompiles.reasons import explain
from explorer.model.events.key import LEAF, Key, Leaf, TreeNode
from tests.support.calls import STEP, TRACED
from tests.support.pytrees import call_tree, paths_of

State = namedtuple("State", "a b")
WRAPPERS = "or make two jax.jit wrappers"
NEUTRAL = "if this value changes no result"


def call_of(arguments, *, dtype="float32", keywords=None, **more):
    """A call with these arguments by name, all of whose arrays have one type."""
    paths = [*paths_of(arguments), *paths_of(keywords or {})]
    return Key(STEP, tuple(Leaf(path, (8,), dtype) for path in paths), call_tree(arguments, keywords), **more)


def reason(old, new):
    given = explain(new, [old], TRACED)
    assert given.kind == "structure"
    return given.leaf, given.text, given.fix


def lacks(path, **more):
    """The cure of what is not always there."""
    dtype = more.get("dtype", "float32")
    kind = "ones" if dtype == "bool" or "mask" in path or "weight" in path else "zeros"
    return f"jnp.{kind}((8,), jnp.{'bool_' if dtype == 'bool' else dtype})"


@pytest.mark.parametrize(
    ("name", "more"),
    [("y", {}), ("mask", {}), ("weights_of_loss", {}), ("y", {"dtype": "bool"}), ("y", {"dtype": "int8"})],
)
def test_an_argument_that_is_given_in_one_of_two_calls(name, more):
    without, given = call_of({"x": 0}, **more), call_of({"x": 0, name: 0}, **more)
    fix = f"{NEUTRAL}: {name} = {lacks(name, **more)} where it is not given, {WRAPPERS}"
    assert reason(without, given) == (name, f"argument `{name}` is given (array), which it was not before", fix)
    assert reason(given, without) == (name, f"argument `{name}` is no longer given", fix)


@pytest.mark.parametrize("name", ["y", "mask"])
def test_a_key_of_a_dictionary_that_is_there_in_one_of_two_calls(name):
    without, given = call_of({"batch": {"x": 0}}), call_of({"batch": {"x": 0, name: 0}})
    path = f"batch['{name}']"
    fix = f"if this value changes no result: batch.setdefault('{name}', {lacks(path)}), or make two jax.jit wrappers"
    assert reason(without, given) == (path, f"key '{name}' was added to `batch`", fix)
    assert reason(given, without) == (path, f"key '{name}' was removed from `batch`", fix)


def test_of_what_isnt_one_array_no_neutral_value_is_known():
    same = "give `batch` the same keys in every call, or make two jax.jit wrappers"
    assert reason(call_of({"batch": {"x": 0}}), call_of({"batch": {"x": 0, "y": [0, 0]}}))[2] == same
    arguments = "give `step` the same arguments in every call, or make two jax.jit wrappers"
    assert reason(call_of({"x": 0}), call_of({"x": 0, "y": [0, 0]}))[1:] == (
        "argument `y` is given (list of 2), which it was not before",
        arguments,
    )
    keys = {"dtype": "key<fry>"}
    assert reason(call_of({"x": 0}, **keys), call_of({"x": 0, "y": 0}, **keys))[2] == arguments


def test_more_positional_arguments_are_one_list():
    fix = "give `args` as one list, padded to one length, or the same number of arguments in every call"
    assert reason(call_of({"args[0]": 0}), call_of({"args[0]": 0, "args[1]": 0}))[2] == fix


@pytest.mark.parametrize("kind", ["positional", "keyword"])
def test_an_argument_given_by_name_or_by_position(kind):
    calls = [call_of({"x": 0, "y": 0}), call_of({"x": 0}, keywords={"y": 0})]
    calls = calls if kind == "keyword" else calls[::-1]
    before = {"keyword": "positional", "positional": "keyword"}[kind]
    assert reason(*calls) == (
        "y",
        f"`y` was a {before} argument and is now a {kind} one",
        "step(…, y=y)  # by name in every call, or by position in every call",
    )


@pytest.mark.parametrize(
    ("before", "after", "text", "fix"),
    [
        (None, 0, "was None and is now an array", f"{NEUTRAL}: {lacks('y')} instead of None for `y`, {WRAPPERS}"),
        (0, None, "was an array and is now None", f"{NEUTRAL}: {lacks('y')} instead of None for `y`, {WRAPPERS}"),
        (None, {"a": 0}, "was None and is now a dict of 1",
         "give `y` in every call: zeros like it (dict of 1) instead of None; or make two jax.jit wrappers"),
        ([0, 0], None, "was a list of 2 and is now None",
         "give `y` in every call: zeros like it (list of 2) instead of None; or make two jax.jit wrappers"),
        ([0, 0], (0, 0), "was a list of 2 and is now a tuple of 2", "y = list(y)"),
        ((0, 0), [0, 0], "was a tuple of 2 and is now a list of 2", "y = tuple(y)"),
        ([0, 0], (0, [0]), "was a list of 2 and is now a tuple of 2",
         "give `y` one structure in all calls, inside too: restore it with the first one as the target"),
        ([0, 0], [0], "was a list of 2 and is now a list of 1",
         "2 items in `y` always; or one array of all, padded to one length, and jax.lax.scan over it"),
        ((0,), (0, 0, 0), "was a tuple of 1 and is now a tuple of 3",
         "1 items in `y` always; or one array of all, padded to one length, and jax.lax.scan over it"),
        (State(0, 0), (0, 0), "was a State and is now a tuple of 2", "y = State(*y)"),
        (State(0, 0), [0, 0], "was a State and is now a list of 2", "y = State(*y)"),
        ((0, 0), State(0, 0), "was a tuple of 2 and is now a State",
         "give `y` one structure in all calls: tuple of 2 or State"),
        (0, {"a": 0}, "was an array and is now a dict of 1",
         "give `y` one structure in all calls: array or dict of 1"),
        ({"a": 0}, [0], "was a dict of 1 and is now a list of 1",
         "give `y` one structure in all calls: dict of 1 or list of 1"),
        (0, [0], "was an array and is now a list of 1", "give `y` one structure in all calls: array or list of 1"),
        (OrderedDict(b=0, a=0), OrderedDict(a=0, b=0),
         "changed: OrderedDict[('b', 'a')] → OrderedDict[('a', 'b')]",
         "y = dict(y)  # whose keys JAX sorts; or give it its keys in one order"),
    ],
)  # fmt: skip
def test_an_argument_of_another_structure(before, after, text, fix):
    text = f"the static data of `y` {text}" if text.startswith("changed") else f"`y` {text}"
    assert reason(call_of({"x": 0, "y": before}), call_of({"x": 0, "y": after})) == ("y", text, fix)


def node(kind, name="", **children):
    fields = children.pop("fields", ())
    static = children.pop("static", "")
    return TreeNode(kind, name, tuple(f".{child}" for child in children), static, tuple(children.values()), fields)


def call_with(tree, **more):
    """A call of one argument `y` of this structure."""
    whole = TreeNode("tuple", "", ("[0]", "[1]"), "", (TreeNode("tuple", "", ("[0]",), "", (tree,)), TreeNode("dict")))
    steps = "".join(tree.steps_to_leaf())
    return Key(STEP, (Leaf(f"y{steps}", (8,), "float32"),), whole, **more)


def kept(text, **more):
    return node("class", "Net", w=LEAF, static=text, **more)


KEPT = "make what changes in it an array: all else in it is static"


@pytest.mark.parametrize(
    ("before", "after", "at", "text", "fix"),
    [
        (kept("2"), kept("3"), "y", "the static data of `y` changed: Net[2] → Net[3]",
         f"pass the same `y` each time, or {KEPT}"),
        (kept("<function f>"), kept("<function g>"), "y",
         "the static data of `y` changed: Net[<function f>] → Net[<function g>]",
         "make the function in `y` once, outside of the loop: a new one is unequal to the last"),
        (kept("2", fields=((".size", "2", 5),)), kept("3", fields=((".size", "3", 6),)), "y.size",
         "`y.size`, which is not an array and so part of the program, was 2 and is now 3",
         "make `y.size` an array, if no shape and no Python branch depends on it: as it is, each value compiles"),
        (kept("a", fields=((".mode", "'a'", 5),)), kept("b", fields=((".mode", "'b'", 6),)), "y.mode",
         "`y.mode`, which is not an array and so part of the program, was 'a' and is now 'b'",
         "keep `y.mode` the same; if both values are intended, each is compiled once, as a program of its own"),
        (kept("f", fields=((".f", "<f>", 5),)), kept("f ", fields=((".f", "<f>", 6),)), "y.f",
         "`y.f`, not an array, is a new object: it prints the same, <f>, but is unequal",
         "make `y.f` once, before the loop, and build each `y` with that one"),
        # A number of what is equal goes before how it prints; where there is none, the print decides.
        (kept("1", fields=((".a", "x", 5), (".b", "1", 0))), kept("2", fields=((".a", "y", 5), (".b", "2", 7))), "y.b",
         "`y.b`, which is not an array and so part of the program, was 1 and is now 2",
         "make `y.b` an array, if no shape and no Python branch depends on it: as it is, each value compiles"),
        (kept("1", fields=((".a", "x", 5),)), kept("2", fields=((".a", "x", 5), (".b", "1", 0))), "y.b",
         "`y.b`, which is not an array and so part of the program, was absent and is now 1",
         "make `y.b` an array, if no shape and no Python branch depends on it: as it is, each value compiles"),
        (kept("1", fields=((".a", "x", 5), (".b", "q", 0))), kept("2", fields=((".a", "x", 5),)), "y.b",
         "`y.b`, which is not an array and so part of the program, was q and is now absent",
         "keep `y.b` the same; if both values are intended, each is compiled once, as a program of its own"),
        (kept("1", fields=((".a", "x", 5),)), kept("2", fields=((".a", "x", 5),)), "y",
         "the static data of `y` changed: Net[1] → Net[2]", f"pass the same `y` each time, or {KEPT}"),
        (TreeNode("dict", "", ("['w']",), "", (LEAF,)), TreeNode("class", "FrozenDict", ("['w']",), "", (LEAF,)), "y",
         "`y` was a dict of 1 and is now a FrozenDict", "y = flax.core.unfreeze(y)  # in every call"),
        (TreeNode("class", "FrozenDict", ("['w']",), "", (LEAF,)), TreeNode("dict", "", ("['w']",), "", (LEAF,)), "y",
         "`y` was a FrozenDict and is now a dict of 1", "y = flax.core.unfreeze(y)  # in every call"),
        (node("class", "Net", w=LEAF), node("class", "Adam", w=LEAF), "y", "`y` was a Net and is now an Adam",
         "give `y` one structure in all calls: Net or Adam"),
    ],
)  # fmt: skip
def test_what_a_class_keeps_beside_its_arrays(before, after, at, text, fix):
    assert reason(call_with(before), call_with(after)) == (at, text, fix)


def test_structures_that_print_alike_are_named_where_one_class_alone_can_be_unequal():
    def key(structure, *opaque):
        inner = [kept(f"<object {at}>" if at in opaque else "2") for at in range(3)]
        return call_with(TreeNode("list", "", ("[0]", "[1]", "[2]"), "", tuple(inner)), structure=structure)

    assert reason(key(1, 1), key(2, 1)) == (
        "y[1]",
        "the static data of `y[1]`, Net[<object 1>], prints the same but is unequal",
        f"pass the same `y[1]` each time, or {KEPT}",
    )
    for several in ((), (0, 1), (0, 1, 2)):
        assert reason(key(1, *several), key(2, *several)) == (
            "",
            "the structure of the arguments changed: static data of a class prints the same but is unequal",
            "give the class whose objects differ an __eq__ and a __hash__ over what it keeps, or pass the same object",
        )


def test_what_has_no_path_is_an_argument_or_the_arguments():
    """A structure that isn't a call's: of a function that JAX flattens otherwise."""
    first, second = (Key(STEP, (Leaf("x", (8,), "f"),), kept(text)) for text in ("2", "3"))
    assert reason(first, second)[1] == "the static data of `an argument` changed: Net[2] → Net[3]"
    lists = [
        Key(STEP, (Leaf("x", (8,), "f"),), TreeNode(kind, "", ("[0]",), "", (LEAF,))) for kind in ("list", "tuple")
    ]
    assert reason(*lists)[1] == "`the arguments` was a list of 1 and is now a tuple of 1"
    opaque = [Key(STEP, (Leaf("x", (8,), "f"),), kept("<object>"), structure=number) for number in (1, 2)]
    assert reason(*opaque)[1] == "the static data of `an argument`, Net[<object>], prints the same but is unequal"


# As data -------------------------------------------------------------------------------------------------------------


def changed(new, old):
    return [(c.path, c.before, c.after, c.how, c.parent) for c in changes(new, old)]


def test_an_argument_without_arrays_has_no_name_but_its_number():
    """Only a leaf's path says what an argument is called."""
    old, new = (call_of({"x": [], "y": empty}) for empty in (None, ()))
    assert changed(new, old) == [("argument 1", "None", "tuple of 0", "other", "")]


def test_an_argument_is_named_by_the_call_that_had_an_array_in_it():
    some, none = call_of({"x": 0, "y": {"a": [0]}}), call_of({"x": 0, "y": {"a": [None]}})
    assert changed(none, some) == [("y['a'][0]", "array", "None", "other", "")]
    assert changed(some, none) == [("y['a'][0]", "None", "array", "other", "")]


def test_arguments_are_added_and_removed_in_order():
    first = call_of({"x": 0, "y": 0}, keywords={"a": 0, "b": 0})
    second = call_of({"x": 0}, keywords={"b": [0], "c": 0})
    assert changed(second, first) == [
        ("y", "array", "absent", "removed", ""),
        ("b", "array", "list of 1", "other", ""),
        ("c", "absent", "array", "added", ""),
        ("a", "array", "absent", "removed", ""),
    ]


@pytest.mark.parametrize(("inside", "is_outer"), [((0, 0), True), ((0,), False), ((0, [0]), False)])
def test_a_container_of_the_same_children_differs_itself_alone(inside, is_outer):
    (change,) = changes(call_of({"y": inside}), call_of({"y": [0, 0]}))
    assert (change.path, change.is_outer) == ("y", is_outer)


def test_the_keys_of_a_dictionary_have_it_for_a_parent():
    assert changed(call_of({"t": {"a": {"b": 0}}}), call_of({"t": {"a": {"c": 0}}})) == [
        ("t['a']['b']", "absent", "array", "added", "t['a']"),
        ("t['a']['c']", "array", "absent", "removed", "t['a']"),
    ]


def test_below_a_step_without_a_name_the_place_is_that_of_what_is_around_it():
    def tree(leaf):
        return replace(call_with(TreeNode("class", "Net", ("",), "", (leaf,))), leaves=(Leaf("y[<0>]", (8,), "f"),))

    (change,) = changes(tree(LEAF), tree(TreeNode("list")))
    assert (change.path, change.before, change.after) == ("y", "list of 0", "array")
