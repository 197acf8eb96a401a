"""Which earlier call is the nearest, by weights added by hand: a size or a weak type 1, a dtype 1.2, a rank 1.5."""

from dataclasses import replace

import pytest

from explorer.analysis.recompiles.nearest import Difference, differences, nearest
from explorer.analysis.recompiles.reasons import explain
from explorer.model.events.key import Function, Key, Static
from tests.support.calls import LOWERED, STEP, TRACED, leaf, number


def of(*leaves, **more):
    return Key(STEP, leaves, **more)


NEW = of(leaf("x", (8, 4)), leaf("y", (8, 4)))


def shaped(first, second=(8, 4), **more):
    return of(leaf("x", first), leaf("y", second), **more)


@pytest.mark.parametrize(
    ("near", "far"),
    [
        (shaped((9, 4)), shaped((9, 4), (9, 4))),  # 1 and 1.1
        (shaped((9, 4), (9, 4)), shaped((9, 5))),  # 1.1 and 1.2: two dimensions of one
        (shaped((9, 4), (9, 4)), of(leaf("x", (8, 4), "int8"), leaf("y", (8, 4)))),  # 1.1 and 1.2: a dtype
        (shaped((9, 5)), shaped((8, 4, 1))),  # 1.2 and 1.5: a rank
        (of(leaf("x", (8, 4), weak=True), leaf("y", (8, 4))), shaped((9, 5))),
        (shaped((8, 4, 1)), of(leaf("x", (9, 4), "int8"), leaf("y", (9, 4)))),  # 1.5 and 1 + 0.5 + 0.1
        (shaped((9, 4)), shaped((9, 4), statics=(Static("n", "3", "int"),))),  # 1 and 2
        (shaped((8, 4, 1)), replace(NEW, function=replace(STEP, identity=2), options=(("a", "1"),))),  # 1.5 and 1.51
        (replace(NEW, context=(("a", "1"),)), replace(NEW, context=(("a", "1"), ("b", "2")))),  # 1.2 and 2.4
        (replace(NEW, structure=7), replace(NEW, function=replace(STEP, name="other"))),  # 2 and 3
        (replace(NEW, structure=7), of(leaf("x", (8, 4)), structure=7)),  # 2 and 2.1
    ],
)
def test_of_two_calls_the_one_that_differs_less_is_the_nearest(near, far):
    assert nearest(NEW, [near, far], TRACED) is near
    assert nearest(NEW, [far, near], TRACED) is near


def test_of_equally_near_calls_the_latest_is_it():
    calls = [shaped((9, 4)), shaped((7, 4))]
    assert nearest(NEW, calls, TRACED) is calls[1]
    assert nearest(NEW, calls[::-1], TRACED) is calls[0]


def test_settings_that_are_equal_and_another_object_are_no_difference():
    """A ledger of a file has a tuple of its own for each call."""
    more = {"options": (("a", "1"),), "donated": ("x",), "wrapping": (("inline", "True"),), "context": (("b", "2"),)}
    copied = {name: tuple(list(value)) for name, value in more.items()}
    new, equal = replace(NEW, **more), shaped((9, 4), **copied)
    assert all(getattr(new, name) is not getattr(equal, name) for name in more)
    other = shaped((9, 4), **{**more, "donated": ("y",)})
    for happened in (TRACED, LOWERED):
        assert nearest(new, [equal, other], happened) is equal
    # One difference of 1 and no other: a call behind it isn't looked at, though it is as near.
    assert nearest(new, [shaped((7, 4), **more), equal], TRACED) is equal


@pytest.mark.parametrize(
    ("near", "far"),
    [
        (replace(NEW, donated=("x",)), replace(NEW, donated=("x",), options=(("a", "1"),))),  # 1 and 2
        (replace(NEW, donated=("x",)), shaped((9, 4))),  # nothing was traced: equal types come first
        (of(leaf("x", (8, 4), committed=True), leaf("y", (8, 4))), replace(NEW, donated=("x",), options=(("a", "1"),))),
        (
            of(leaf("x", (8, 4), committed=True), leaf("y", (8, 4))),  # 1 and 1.1
            of(leaf("x", (8, 4), committed=True), leaf("y", (8, 4), committed=True)),
        ),
        (replace(NEW, donated=("x",), options=(("a", "1"),)), replace(NEW, context=(("a", "1"),))),
    ],
)
def test_where_nothing_was_traced_equal_types_come_first(near, far):
    assert nearest(NEW, [near, far], LOWERED) is near
    assert nearest(NEW, [far, near], LOWERED) is near


# In what two calls differ --------------------------------------------------------------------------------------------


def rows(new, old):
    return [(d.kind, d.leaf, d.before, d.after, d.axis, d.places) for d in differences(new, old)]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ([leaf("x", (8, 4))], [leaf("x", (9, 5))],
         [("shape", "x.shape[0]", "8", "9", 0, (0,)), ("shape", "x.shape[1]", "4", "5", 1, (0,))]),
        ([leaf("x", (8,))], [leaf("x", (8, 1), "int8")],
         [("rank", "x.ndim", "1", "2", -1, (0,)), ("dtype", "x", "float32", "int8", -1, (0,))]),
        ([leaf("x", (8,))], [leaf("x", (9,), "int8", weak=True)],
         [("shape", "x.shape[0]", "8", "9", 0, (0,)), ("dtype", "x", "float32", "int8", -1, (0,))]),
        ([number("n", "int", "int32")], [leaf("n", (), "int32")],
         [("weak-type", "n", "int32, weak", "int32", -1, (0,)),]),
        ([leaf("k", (2,), "uint32")], [leaf("k", (), "key<fry>")], [("dtype", "k", "uint32", "key<fry>", -1, (0,))]),
        # Leaves that changed alike are one, in the order of the call.
        ([leaf(p) for p in "abc"], [leaf("a", (9,)), leaf("b", (7,)), leaf("c", (9,))],
         [("shape", "a.shape[0]", "8", "9", 0, (0, 2)), ("shape", "b.shape[0]", "8", "7", 0, (1,))]),
        ([leaf("a", (8, 2)), leaf("b", (8,), "int8")], [leaf("a", (9, 2)), leaf("b", (9,), "int8")],
         [("shape", "a.shape[0]", "8", "9", 0, (0, 1))]),
        # A leaf that only one of them has is the structure's.
        ([leaf("a")], [leaf("a"), leaf("b")], []),
        ([leaf("b", (7,)), leaf("a")], [leaf("a", (9,)), leaf("b")],
         [("shape", "a.shape[0]", "8", "9", 0, (0,)), ("shape", "b.shape[0]", "7", "8", 0, (1,))]),
    ],
)  # fmt: skip
def test_in_what_arrays_differ(old, new, expected):
    assert rows(of(*new), of(*old)) == expected


PLACE = {"committed": True, "devices": ("gpu:0",)}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {"layout": "{0,1}", **PLACE}, ("layout", "default", "{0,1}")),  # what follows from it isn't named
        ({"layout": "{0,1}"}, {}, ("layout", "{0,1}", "default")),
        ({}, PLACE, ("device", "cpu:0", "gpu:0")),
        ({"devices": ()}, PLACE, ("committed", "uncommitted", "committed to gpu:0")),
        (PLACE, {"committed": None, "devices": (), "given": "float"},
         ("committed", "committed to gpu:0", "uncommitted (float)")),
        ({"committed": True, "devices": ()}, {"committed": False, "devices": ()},
         ("committed", "committed", "uncommitted")),
        ({}, {"sharding": "S", **PLACE}, ("sharding", "cpu:0", "S")),
        ({"sharding": "S", "spread": ("P('a')", "a=2", "")}, {"sharding": "T", "spread": ("P('b')", "a=2", "")},
         ("sharding", "P('a')", "P('b')")),  # on one mesh the partition says it
        ({"sharding": "S", "spread": ("P('a')", "a=2", "")}, {"sharding": "T", "spread": ("P('a')", "a=4", "")},
         ("sharding", "P('a') over a=2", "P('a') over a=4")),
        ({"sharding": "S", "spread": ("P('a')", "a=2", "host")}, {},
         ("sharding", "P('a') over a=2, memory host", "cpu:0")),
        ({"sharding": "S", "spread": ("", "", "host")}, {}, ("sharding", "cpu:0, memory host", "cpu:0")),
        ({"committed": None, "given": "numpy"}, {"committed": False}, None),
    ],
)  # fmt: skip
def test_where_an_array_lies_differs_in_one_thing(old, new, expected):
    found = differences(of(leaf("x", **new)), of(leaf("x", **old)))
    assert [(d.kind, d.before, d.after) for d in found] == ([expected] if expected else [])


def test_settings_and_options_differ_by_name():
    old = of(context=(("a", "1"), ("b", "2")), options=(("o", "1"),), donated=("x", "y"))
    new = of(context=(("b", "3"), ("c", "4")), wrapping=(("inline", "True"), ("backend", "gpu")), donated=("y", "z"))
    assert [d[:4] for d in differences(new, old)] == [
        ("context", "b", "2", "3"), ("context", "c", "not set", "4"), ("context", "a", "1", "not set"),
        ("donation", "z", "kept", "donated"), ("options", "o", "1", "not set"),
        ("options", "inline", "not set", "True"), ("device", "backend", "not set", "gpu"),
    ]  # fmt: skip
    assert [d[:4] for d in differences(of(donated=("x",)), of(donated=("x", "y")))] == [
        ("donation", "y", "donated", "kept")
    ]


def test_what_was_to_be_donated_is_said_by_what_is():
    wrapping = {"wrapping": (("donate_argnums", "(0,)"),)}
    assert [d.kind for d in differences(of(donated=("x",), **wrapping), of())] == ["donation"]
    assert [d[:2] for d in differences(of(**wrapping), of())] == [("options", "donate_argnums")]


def test_a_mesh_is_one_setting_though_jax_has_several():
    new = of(context=(("abstract_mesh", "a"), ("mesh", "m"), ("x", "1")))
    assert [d[:4] for d in differences(new, of())] == [
        ("context", "mesh", "not set", "m"),
        ("context", "x", "not set", "1"),
    ]
    assert [d[:4] for d in differences(of(context=(("physical_mesh", "p"),)), of())] == [
        ("context", "mesh", "not set", "p")
    ]


@pytest.mark.parametrize(
    ("new", "old", "is_other"),
    [
        (Static("n", "3", "int"), Static("n", "3", "int"), False),
        (Static("n", "3", "int"), Static("n", "4", "int"), True),
        (Static("n", "3", "int", token=1), Static("n", "4", "int", token=1), False),  # equal, whatever they print
        (Static("n", "3", "int", token=1), Static("n", "3", "int", token=2), True),
        (Static("n", "3", "int", token=1), Static("n", "3", "int"), False),  # where no number is known, the print says
        (Static("n", "3", "int"), Static("n", "3", "float"), True),
        (Static("n", "3", "int", keyword=True), Static("n", "3", "int"), True),
        (Static("n", "f", "F", identity=1), Static("n", "f", "F", identity=2), True),
    ],
)
def test_static_arguments_are_compared_as_the_cache_does(new, old, is_other):
    found = differences(of(statics=(new,)), of(statics=(old,)))
    assert found == ((Difference("static", "n", old.value, new.value),) if is_other else ())


def test_a_function_made_again_comes_first_and_a_derivative_only_where_nothing_else_is_new():
    again = replace(of(leaf("x", (9,))), function=replace(STEP, identity=2))
    assert [d.kind for d in differences(again, of(leaf("x")))] == ["function", "shape"]
    derived = Function("step", "train.py", 3, made=("derived",), identity=2)
    assert [d.kind for d in differences(replace(again, function=derived), of(leaf("x")))] == ["shape"]
    assert [d.kind for d in differences(replace(of(leaf("x")), function=derived), of(leaf("x")))] == ["function"]
    guard = replace(again, guard=("RATE", "1", "2"))
    assert [d[:4] for d in differences(guard, of(leaf("x")))][1] == ("guard", "RATE", "1", "2")


def test_of_many_leaves_that_changed_each_weighs_a_tenth():
    new = of(*(leaf(f"x{i}", (8, i)) for i in range(40)))
    alike = of(*(leaf(f"x{i}", (9, i)) for i in range(40)))  # 1 + 39 · 0.1 = 4.9
    other = of(*(leaf(f"x{i}", (9, i, 1) if i == 7 else (9, i)) for i in range(40)))  # one of them otherwise: more
    assert nearest(new, [alike, other], TRACED) is nearest(new, [other, alike], TRACED) is alike
    statics = (Static("n", "3", "int"), Static("m", "3", "int"))
    apart = replace(new, function=replace(STEP, identity=2), statics=statics)  # 1.5 + 2
    assert nearest(new, [alike, apart], TRACED) is nearest(new, [apart, alike], TRACED) is apart


@pytest.mark.parametrize(
    ("name", "values", "happened"),
    [
        ("context", ((("a", "1"), ("b", "1")), (("a", "2"), ("b", "1")), (("a", "2"), ("b", "2"))), TRACED),
        (
            "statics",
            tuple(
                tuple(Static(name, value, "int") for name, value in zip("ab", pair, strict=True))
                for pair in ("11", "21", "22")
            ),
            TRACED,
        ),
        ("options", ((("a", "1"), ("b", "1")), (("a", "2"), ("b", "1")), (("a", "2"), ("b", "2"))), LOWERED),
        ("wrapping", ((("a", "1"), ("b", "1")), (("a", "2"), ("b", "1")), (("a", "2"), ("b", "2"))), LOWERED),
    ],
)
def test_of_two_causes_the_one_that_no_earlier_call_had_is_named(name, values, happened):
    """The first call is the nearest: the second one's array has another number of dimensions."""
    first, second, last = values
    earlier = [of(leaf("x"), **{name: first}), of(leaf("x", (8, 1, 1)), **{name: second})]
    assert explain(of(leaf("x"), **{name: last}), earlier, happened).leaf == "b"
    assert explain(of(leaf("x"), **{name: last}), earlier[:1], happened).leaf == "a"
