"""What can be read off a ledger: a frame, the tree of stacks, what varies."""

import builtins
from dataclasses import replace

import pandas as pd
import pytest

from explorer.errors import MissingPackageError, NotRecordedError
from explorer.files.frames import EVENT
from explorer.model.events.event import Event, Place, Reason
from explorer.model.events.key import Function, Key, Leaf, Static, TreeNode
from explorer.model.events.ledger import Ledger
from tests.support.ledger_events import FULL, HERE, MAIN, call, first, storm

# Frame ---------------------------------------------------------------------------------------------------------------


def test_the_frame_has_a_row_for_each_event_and_all_columns():
    frame = storm(3).to_frame()
    assert list(frame.columns) == [column.name for column in EVENT]
    assert len(frame) == 9
    row = frame.iloc[-1]
    assert (row["kind"], row["function"], row["file"], row["line"]) == ("compile", "step", "train.py", 3)
    assert (row["reason"], row["leaf"], row["before"], row["after"], row["fix"]) == (
        "shape",
        "x.shape[0]",
        "2",
        "3",
        "pad x",
    )
    assert (row["signature"], row["call_site"]) == ("x: float32[3,4]", "train.py, line 12")
    assert (row["seconds"], row["total"]) == (0.25, 2.25)


def test_a_frame_can_be_grouped_and_its_times_are_times():
    ledger = Ledger()
    ledger.add((replace(FULL, start=1_760_000_000.5, process=""),))
    frame = ledger.to_frame()
    assert frame["start"][0] == pd.Timestamp("2025-10-09 08:53:20.5", tz="UTC")
    assert frame.groupby("kind", observed=True)["seconds"].sum().to_dict() == {"compile": 0.5}


def test_an_empty_ledger_has_the_same_columns_and_dtypes():
    empty, full = Ledger().to_frame(), storm(2).to_frame()
    assert len(empty) == 0
    assert empty.dtypes.equals(full.dtypes)
    assert {str(dtype) for dtype in full.dtypes[["kind", "reason"]]} == {"category"}


def test_a_frame_says_what_was_dropped():
    assert storm(5, limit=6).to_frame().attrs["dropped"] == 9


def test_without_pandas_the_way_out_is_named(monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name == "pandas":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingPackageError, match="pip install pandas, or"):
        storm(1).to_frame()


def test_every_column_is_documented():
    meanings = {column.name: column.meaning for column in EVENT}
    assert all(len(text) > 5 for text in meanings.values())
    assert all("seconds" in meanings[name] for name in ("seconds", "saved", "total"))


# Tree ----------------------------------------------------------------------------------------------------------------

DEEP = Place("train.py", 2, "train.py", "g(x)", "inner")


def test_the_tree_has_the_stacks_roots_first_with_what_compiled_at_their_ends():
    ledger = storm(2)
    ledger.add(first(3, function="g", stack=(DEEP, HERE, MAIN), call_site=DEEP))
    ledger.add(first(4, function="loss", stack=(MAIN,), call_site=MAIN))
    assert str(ledger.tree()) == (
        "4 compiled calls, 3 s\n"
        "└─ train.py, line 40  4× 3 s\n"
        "   ├─ train.py, line 12 (train)  3× 2.25 s\n"
        "   │  ├─ step  [step/1] [step/2]  2× 1.5 s\n"
        "   │  └─ train.py, line 2 (inner)  1× 0.75 s\n"
        "   │     └─ g  [g/3]  1× 0.75 s\n"
        "   └─ loss  [loss/4]  1× 0.75 s"
    )


def test_a_frames_own_seconds_are_of_what_compiled_from_its_very_line():
    ledger = storm(2)
    ledger.add(first(3, function="g", stack=(DEEP, HERE, MAIN), call_site=DEEP))
    nodes = {node.label: node for _, node in ledger.tree()}
    train = nodes["train.py, line 12 (train)"]
    assert (train.self_seconds, train.seconds, train.count) == (1.5, 2.25, 3)
    assert nodes["train.py, line 40"].self_seconds == 0
    root = ledger.tree()
    assert root.seconds == pytest.approx(sum(event.seconds for event in ledger))


def test_what_has_no_stack_hangs_from_the_root_and_misses_are_no_compiles():
    ledger = Ledger()
    ledger.add((Event("compile", "f", call=1, seconds=1.0),))
    ledger.add((Event("miss", "f", call=2, seconds=1.0),))
    assert str(ledger.tree()) == "1 compiled call, 1 s\n└─ f  1× 1 s"


def test_a_stack_as_deep_as_pythons_is_drawn():
    stack = tuple(Place("r.py", line, "r.py") for line in range(5000))
    ledger = Ledger()
    ledger.add((Event("compile", "f", call=1, stack=stack),))
    assert len(ledger.tree().text.splitlines()) == 5002
    assert repr(ledger.tree()) == "StackTree(1 compiled call; 1 child)"


def test_processes_are_branches_of_their_own():
    whole = Ledger.merge(storm(2), storm(1), names=["host0", "host1"])
    assert [child.label for child in whole.tree().children] == ["host0", "host1"]


# What varies ---------------------------------------------------------------------------------------------------------


def compiled(*keys):
    ledger = Ledger()
    for number, key in enumerate(keys):
        ledger.add((Event("compile", key.function.name, key=key, id=f"[step/{number}]", call=number + 1),))
    return ledger


def key(*leaves, **more):
    return Key(more.pop("function", Function("step")), leaves, **more)


def varying(*keys):
    return {
        row.name: [(value.text, value.count) for value in row.values] for row in compiled(*keys).varying("step").varying
    }


def test_only_what_changed_varies_with_its_values_counts_and_ids():
    found = storm(4).varying("step")
    assert [row.name for row in found.varying] == ["x.shape[0]"]
    assert [(value.text, value.count, value.ids) for value in found.varying[0].values] == [
        ("8", 1, ("[step/1]",)), ("2", 1, ("[step/2]",)), ("3", 1, ("[step/3]",)), ("4", 1, ("[step/4]",)),
    ]  # fmt: skip
    assert {row.name: row.values[0].text for row in found.constant}["x.shape[1]"] == "4"
    assert "The same in all: x.shape[1] = 4, x dtype = float32" in str(found)
    assert repr(found) == "Variations(step, 4 compiled calls: x.shape[0])"


@pytest.mark.parametrize(
    ("changes", "name", "values"),
    [
        ({"dtype": "int32"}, "x dtype", ["float32", "int32"]),
        ({"weak": True}, "x weak type", ["no", "yes"]),
        ({"committed": True}, "x committed", ["no", "yes"]),
        ({"sharding": "P('a')"}, "x sharding", ["", "P('a')"]),
        ({"devices": ("cpu:1",)}, "x devices", ["cpu:0", "cpu:1"]),
        ({"layout": "{0}"}, "x layout", ["", "{0}"]),
        ({"given": "numpy"}, "x given", ["jax", "numpy"]),
        ({"shape": ("b",)}, "x.shape[0]", ["3", "b"]),
    ],
)
def test_each_property_of_an_array_is_told(changes, name, values):
    leaf = Leaf("x", (3,), "float32", committed=False, devices=("cpu:0",))
    found = varying(key(leaf), key(leaf._replace(**changes)))
    assert found == {name: [(value, 1) for value in values]}


def test_another_rank_is_told_and_sizes_are_compared_where_they_are():
    found = varying(key(Leaf("x", (3,), "f")), key(Leaf("x", (2, 4), "f")))
    assert found == {"x rank": [("1", 1), ("2", 1)], "x.shape[0]": [("3", 1), ("2", 1)]}


def test_an_option_that_only_some_calls_have_is_absent_from_the_others():
    assert varying(key(), key(options=(("xla_o", "1"),))) == {"xla_o": [("(absent)", 1), ("1", 1)]}


def test_an_argument_that_is_not_in_each_call_makes_another_structure_alone():
    one, both = (
        key(Leaf("x", (), "f"), tree=TreeNode("text", static="(*)")),
        key(Leaf("x", (), "f"), Leaf("y", (), "f"), tree=TreeNode("text", static="(*, *)")),
    )
    assert varying(one, both) == {"structure": [("(*)", 1), ("(*, *)", 1)]}


def test_statics_functions_wrappers_settings_and_options_are_told():
    a = key(
        function=Function("step", identity=7, wrapper=1), statics=(Static("n", "1", "int"),),
        context=(("jax_enable_x64", "False"),), options=(("xla_o", "1"),), donated=("x",),
    )  # fmt: skip
    b = key(
        function=Function("step", identity=9, wrapper=2), statics=(Static("n", "2", "int"),),
        context=(("jax_enable_x64", "True"),), options=(("xla_o", "2"),),
    )  # fmt: skip
    assert varying(a, b, b) == {
        "n value": [("1", 1), ("2", 2)],
        "function object": [("object 1", 1), ("object 2", 2)],
        "wrapper": [("object 1", 1), ("object 2", 2)],
        "donated": [("x", 1), ("", 2)],
        "jax_enable_x64": [("False", 1), ("True", 2)],
        "xla_o": [("1", 1), ("2", 2)],
    }


def test_the_function_with_the_most_recompiles_is_meant_if_none_is_named():
    ledger = storm(2)
    for number in range(5, 9):
        ledger.add(call(number, function="other"))
    assert ledger.varying().function == "other"


def test_the_last_calls_alone_can_be_asked_for():
    found = storm(6).varying("step", calls=2)
    assert (found.calls, [value.text for value in found.varying[0].values]) == (2, ["5", "6"])


def test_what_varies_is_read_anew_when_there_is_more():
    ledger = storm(3)
    before = ledger.varying("step")
    assert ledger.varying("step") is before
    ledger.add(call(4, size=99))
    assert [value.text for value in ledger.varying("step").varying[0].values] == ["8", "2", "3", "99"]


def test_nothing_that_could_be_seen_varies():
    same = key(Leaf("x", (), "f"))
    assert str(compiled(same, same).varying()).splitlines()[1] == "  Nothing that could be seen varies."


def test_of_many_values_the_most_frequent_are_shown():
    line = str(storm(40).varying("step")).splitlines()[1]
    assert line.endswith("… (39 in all)")
    assert "8 2× [step/1] [step/8]" in line


def test_a_function_that_is_not_there_is_refused():
    with pytest.raises(NotRecordedError, match="it has step"):
        storm(2).varying("loss")
    with pytest.raises(NotRecordedError, match="nothing was compiled"):
        Ledger().varying()


def test_events_without_a_key_are_counted_and_nothing_is_invented():
    ledger = Ledger()
    ledger.add((Event("compile", "f", reason=Reason("first"), call=1),))
    assert (ledger.varying("f").calls, ledger.varying("f").rows) == (0, ())
