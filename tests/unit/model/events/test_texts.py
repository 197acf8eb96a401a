"""What is said of compiles: which values varied, a storm, the tree of calls; each sentence to the letter."""

import pytest

from explorer.model.events.event import Event, Place, Reason
from explorer.model.events.family_counts import Storm, Summary
from explorer.model.events.variations import StackTree, Value, Variation, Variations

SIZES = Variation("x", "shape[0]", (Value("8", 1, ("[f/0]",)), Value("9", 3, ("[f/1]", "[f/2]", "[f/3]"))))
TYPE = Variation("x", "dtype", (Value("float32", 4),))


@pytest.mark.parametrize(
    ("leaf", "aspect", "name"),
    [
        ("x", "shape[0]", "x.shape[0]"),
        ("x", "dtype", "x dtype"),
        ("n", "value", "n value"),
        ("", "structure", "structure"),
        ("", "jax_enable_x64", "jax_enable_x64"),
    ],
)
def test_a_property_is_named_with_what_it_is_of(leaf, aspect, name):
    assert Variation(leaf, aspect, ()).name == name


def values(*counts):
    return tuple(Value(f"v{i}", count) for i, count in enumerate(counts))


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ((1,), "Variation(n value: v0 1×)"),
        ((1, 2, 3, 4), "Variation(n value: v0 1×, v1 2×, v2 3×, v3 4×)"),
        ((1, 2, 3, 4, 5), "Variation(n value: v0 1×, v1 2×, v2 3×, v3 4×, …)"),
    ],
)
def test_a_property_shows_four_of_its_values(counts, text):
    assert repr(Variation("n", "value", values(*counts))) == text


def test_what_varies_comes_first_with_the_most_frequent_value_first_and_what_does_not_below():
    assert Variations("f", 4, (SIZES, TYPE)).text == (
        "f: 4 compiled calls\n"
        "  x.shape[0]  9 3×, 8 1× [f/0]\n"  # ids where there are one or two
        "The same in all: x dtype = float32"
    )


@pytest.mark.parametrize(
    ("rows", "calls", "lines"),
    [
        ((), 1, ["f: 1 compiled call"]),  # of one call there is nothing to compare
        ((), 2, ["f: 2 compiled calls", "  Nothing that could be seen varies."]),
        (
            (Variation("n", "value", (Value("", 1, ("[f/0]", "[f/1]")), Value("2", 1))),),
            2,
            ["f: 2 compiled calls", "  n value  none 1× [f/0] [f/1], 2 1×"],
        ),
        (
            (Variation("n", "value", values(1, 2, 3, 4, 5, 6)),),
            21,
            ["f: 21 compiled calls", "  n value  v5 6×, v4 5×, v3 4×, v2 3×, v1 2×, v0 1×"],
        ),
        (
            (Variation("n", "value", values(1, 2, 3, 4, 5, 6, 7)),),
            28,
            ["f: 28 compiled calls", "  n value  v6 7×, v5 6×, v4 5×, v3 4×, v2 3×, v1 2×, … (7 in all)"],
        ),
        # Names stand in one column.
        ((SIZES, Variation("n", "value", values(2, 2))), 4, [
            "f: 4 compiled calls", "  x.shape[0]  9 3×, 8 1× [f/0]", "  n value     v0 2×, v1 2×",
        ]),
        # What never changes is worth a word where it is a size, a dtype or a value of an argument.
        ((SIZES, *(Variation(*of, values(4)) for of in (("x", "layout"), ("", "value"), ("x", "shape[1]")))), 4, [
            "f: 4 compiled calls", "  x.shape[0]  9 3×, 8 1× [f/0]", "The same in all: x.shape[1] = v0",
        ]),
    ],
)  # fmt: skip
def test_calls_are_compared_line_by_line(rows, calls, lines):
    assert str(Variations("f", calls, rows)).splitlines() == lines


def test_of_what_is_the_same_twelve_are_shown():
    rows = tuple(Variation(f"x{i}", "dtype", values(1)) for i in range(13))
    twelve = ", ".join(f"x{i} dtype = v0" for i in range(12))
    assert Variations("f", 1, rows[:12]).text == f"f: 1 compiled call\nThe same in all: {twelve}"
    assert Variations("f", 1, rows).text == f"f: 1 compiled call\nThe same in all: {twelve} and 1 more"


def test_in_short_four_properties_are_named():
    rows = tuple(Variation(f"x{i}", "dtype", values(1, 2)) for i in range(5))
    assert repr(Variations("f", 3, rows)) == "Variations(f, 3 compiled calls: x0 dtype, x1 dtype, x2 dtype, x3 dtype)"
    assert repr(Variations("f", 1, (TYPE,))) == "Variations(f, 1 compiled call: nothing varies)"
    assert (len(Variations("f", 3, rows)), list(Variations("f", 3, rows))) == (5, list(rows))


def storm(reason, **given):
    more = {"changes": 11, "label": "train.py", **given}
    return Storm("step", ("", "step", "/home/me/train.py", 3), 12, 1.2345, reason=reason, **more)


SHAPE = Reason("shape", "x.shape[0]", "7", "8", "pad x\nto 8", "x.shape[0] is 8")


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (
            storm(SHAPE),
            "step (train.py, line 3) was compiled 12 times, 1.23 s in all; `x.shape[0]` changed 11 times "
            "(lately 7 → 8).\n  Hint: pad x\n    to 8",
        ),
        (
            storm(Reason("shape", "x.shape[0]")),
            "step (train.py, line 3) was compiled 12 times, 1.23 s in all; `x.shape[0]` changed 11 times.",
        ),
        (
            storm(Reason("static", "n", "", "3")),
            "step (train.py, line 3) was compiled 12 times, 1.23 s in all; `n` changed 11 times (lately – → 3).",
        ),
        (
            storm(Reason("static", "n", "3")),
            "step (train.py, line 3) was compiled 12 times, 1.23 s in all; `n` changed 11 times (lately 3 → –).",
        ),
        (
            storm(Reason("evicted", text="it was thrown out")),
            "step (train.py, line 3) was compiled 12 times, 1.23 s in all; 11 times as it was thrown out.",
        ),
        (storm(Reason("unknown")), "step (train.py, line 3) was compiled 12 times, 1.23 s in all."),
        (storm(Reason("shape", "x"), changes=0), "step (train.py, line 3) was compiled 12 times, 1.23 s in all."),
        (storm(Reason("unknown"), eager=True), "the operation step was compiled 12 times, 1.23 s in all."),
    ],
)
def test_a_storm_says_what_it_cost_what_varied_and_what_helps(found, text):
    assert found.text == text


def test_a_storm_in_short_names_what_varies_or_why():
    assert repr(storm(SHAPE)) == "Storm(step: 12 compiles; x.shape[0] varies)"
    assert repr(storm(Reason("evicted"))) == "Storm(step: 12 compiles; evicted)"


def function(name, ids, **more):
    return StackTree(function=name, ids=ids, count=len(ids), seconds=0.5 * len(ids), **more)


MAIN, LOOP = Place("/m/train.py", 9, "train.py", function="main"), Place("/m/train.py", 12, "train.py")
TREE = StackTree(
    count=7,
    seconds=3.5,
    children=[
        StackTree(MAIN, count=6, seconds=3.0, children=[
            StackTree(LOOP, count=1, seconds=0.5, children=[function("f", ["[f/0]"])]),
            function("g", [f"[g/{i}]" for i in range(5)]),
        ]),
        function("h", []),
    ],
)  # fmt: skip


def test_the_tree_of_calls_is_drawn_with_what_each_cost():
    assert str(TREE) == (
        "7 compiled calls, 3.5 s\n"
        "├─ train.py, line 9 (main)  6× 3 s\n"
        "│  ├─ train.py, line 12  1× 0.5 s\n"
        "│  │  └─ f  [f/0]  1× 0.5 s\n"
        "│  └─ g  [g/0] … [g/4]  5× 2.5 s\n"
        "└─ h  0× 0 s"
    )
    assert [(depth, node.function) for depth, node in TREE if node.function] == [(3, "f"), (2, "g"), (1, "h")]
    assert repr(TREE) == "StackTree(7 compiled calls; 2 children)"
    assert repr(TREE.children[0].children[0]) == "StackTree(train.py, line 12; 1 child)"


@pytest.mark.parametrize(("count", "text"), [(3, "g  [g/0] [g/1] [g/2]"), (4, "g  [g/0] [g/1] [g/2] [g/3]")])
def test_up_to_four_compiles_are_named_each(count, text):
    assert function("g", [f"[g/{i}]" for i in range(count)]).label == text


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"compiles": 2, "cache_hits": 1}, "Summary(f: 3 compiles)"),
        ({"compiles": 2, "file": "m.py", "line": 3}, "Summary(f at m.py:3: 2 compiles)"),
        (
            {"compiles": 4, "reasons": (("shape", 2), ("dtype", 1)), "varying": (("x.shape[0]", 2), ("x", 1))},
            "Summary(f: 4 compiles; again for shape 2, dtype 1; x.shape[0] varies)",
        ),
    ],
)
def test_a_function_in_short_is_its_compiles_and_why_they_came_again(given, text):
    assert repr(Summary(name="f", **given)) == text


def test_an_event_in_short_is_what_was_done_to_what_where_and_why():
    event = Event("compile", "f", Place("/m/t.py", 4, "t.py"), id="[f/2]", reason=SHAPE)
    assert repr(event) == "Event(compile [f/2] at t.py, line 4: x.shape[0] is 8)"
    assert repr(Event("miss", "f", Place("t.py", 4))) == "Event(miss f at t.py, line 4: unknown)"
    assert repr(Event("miss", "f")) == "Event(miss f: unknown)"
