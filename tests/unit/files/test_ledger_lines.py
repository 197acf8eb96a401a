"""A ledger as JSON lines: round trips, sharing, damage, spilling, and ledgers of several processes."""

import json
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from explorer.errors import LedgerFileError, OptionError
from explorer.model.events.event import KINDS, REASONS, Event, Place, Reason
from explorer.model.events.family_counts import Prediction
from explorer.model.events.key import LEAF, NONE, Function, Key, Leaf, Static, TreeNode
from explorer.model.events.ledger import Ledger
from tests.support.ledger_events import FULL, call, first, storm


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.jsonl"


def loaded(ledger, path):
    ledger.save(path)
    return Ledger.load(path)


# Round trips ---------------------------------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=()), max_size=6)  # lone surrogates too: a file's name may have them
counts = st.integers(0, 2**63)
seconds = st.floats(0, 1e12)
pairs = st.lists(st.tuples(texts, texts), max_size=2).map(tuple)
places = st.builds(Place, texts, st.integers(), texts, texts, texts)
sizes = st.lists(st.one_of(counts, texts), max_size=3).map(tuple)
leaves = st.builds(
    Leaf, texts, sizes, texts, st.booleans(), texts, st.sampled_from([None, True, False]), texts,
    st.lists(texts, max_size=2).map(tuple), texts,
)  # fmt: skip
functions = st.builds(
    Function, texts, texts, counts, st.lists(texts, max_size=2).map(tuple), counts, counts, st.booleans()
)
trees = st.recursive(
    st.sampled_from([LEAF, NONE]) | st.builds(lambda text: TreeNode("text", static=text), texts),
    lambda inner: st.builds(
        lambda kind, name, static, children: TreeNode(kind, name, tuple(children), static, tuple(children.values())),
        st.sampled_from(["tuple", "list", "dict", "namedtuple", "class"]), texts, texts,
        st.dictionaries(texts, inner, max_size=3),
    ),
    max_leaves=6,
)  # fmt: skip
statics = st.builds(Static, texts, texts, texts, counts, st.integers(), st.booleans())
keys = st.builds(
    Key, functions, st.lists(leaves, max_size=3).map(tuple), st.none() | trees,
    st.lists(statics, max_size=2).map(tuple),
    st.lists(texts, max_size=2).map(tuple), pairs, pairs, pairs, counts,
)  # fmt: skip
reasons = st.builds(Reason, st.sampled_from(REASONS), texts, texts, texts, texts, texts)
events = st.builds(
    Event, st.sampled_from(KINDS), texts, st.none() | places, seconds, reasons, texts, counts, seconds,
    st.lists(places, max_size=2).map(tuple), st.none() | keys, texts, texts, seconds, seconds, texts, texts, counts,
)  # fmt: skip


@given(st.lists(events, max_size=6))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_events_come_back_as_they_were(path, some):
    ledger = Ledger()
    for event in some:
        ledger.add((event,))
    again = loaded(ledger, path)
    assert again.events == ledger.events
    assert again.totals == ledger.totals
    assert repr(again) == repr(ledger)


def test_every_field_comes_back(path):
    ledger = Ledger()
    ledger.add((FULL,))
    assert loaded(ledger, path).events == (FULL,)


def test_an_empty_ledger_comes_back(path):
    assert loaded(Ledger(), path).events == ()
    assert path.read_text() == '{"explorer":"ledger","version":2}\n'


def test_storms_summaries_and_predictions_come_back(path):
    ledger = storm(12)
    ledger.predict(
        [Prediction("step", "n", "int32, weak", "int32", "fix", "text", "result", ("n",), ("", "step", "", 3))]
    )
    again = loaded(ledger, path)
    assert again.storms == ledger.storms
    assert again.functions() == ledger.functions()
    assert again.predictions == ledger.predictions
    assert again.recompiles() == ledger.recompiles()


def test_what_was_dropped_is_still_said_after_loading(path):
    again = loaded(storm(5, limit=6), path)
    assert again.dropped == 9
    assert "the oldest 9 events dropped" in repr(again)


def test_what_repeats_is_written_once_and_is_one_object_again(path):
    again = loaded(storm(50), path)
    lines = path.read_text().splitlines()
    kinds = [next(iter(json.loads(line))) for line in lines[1:]]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        "event": 150, "key": 50, "reason": 50, "place": 2, "function": 1, "form": 1,
    }  # fmt: skip
    assert again.events[0].key is again.events[2].key
    assert len({id(event.stack) for event in again}) == 1


def test_numbering_begins_anew_when_there_is_much_to_remember(path, monkeypatch):
    monkeypatch.setattr("explorer.files.ledger_lines._REMEMBERED", 20)
    ledger = storm(60)
    again = loaded(ledger, path)
    assert path.read_text().count('{"forget":true}\n') == 3
    assert again.events == ledger.events


def test_a_failed_save_leaves_the_old_file_whole(path, monkeypatch):
    storm(2).save(path)
    before = path.read_bytes()
    monkeypatch.setattr("explorer.files.ledger_lines.Writer.events", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        storm(3).save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


# Damage --------------------------------------------------------------------------------------------------------------


def test_a_last_line_that_was_cut_off_is_left_out_and_that_is_said(path):
    storm(3).save(path)
    path.write_bytes(path.read_bytes()[:-20])
    again = Ledger.load(path)
    assert len(again) == 8
    assert "the file's last line was cut off and is left out" in repr(again)


def test_a_file_cut_anywhere_is_read_up_to_there_or_refused(path):
    storm(1).save(path)
    whole = path.read_bytes()
    header = whole.index(b"\n")
    for end in range(0, header - 1, 5):
        path.write_bytes(whole[:end])
        with pytest.raises(LedgerFileError, match="this is no ledger"):
            Ledger.load(path)
    kept = []
    for end in range(header, len(whole), 3):
        path.write_bytes(whole[:end])
        kept.append(len(Ledger.load(path)))
    assert kept == sorted(kept)
    assert kept[-1] in (2, 3)


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"EXPLORER\x01", b"{}", b'{"explorer":"capture","version":1}', b"[]", b"null", b"\xff\xfe", b"1"],
)
def test_what_is_no_ledger_is_refused_with_what_came_and_a_hint(path, content):
    path.write_bytes(content)
    with pytest.raises(
        LedgerFileError, match=r"this is no ledger: it starts with .* Hint: ledgers are what Ledger.save"
    ):
        Ledger.load(path)


def test_a_ledger_of_version_0_1_0_opens_with_its_printed_structures(path):
    path.write_text(
        '{"explorer":"ledger","version":1}\n'
        '{"function":{"name":"step","file":"train.py","line":3}}\n'
        '{"form":{"path":"x","dtype":"float32"}}\n{"form":{"path":"y","dtype":"float32"}}\n'
        """{"tree":"((*,), {})"}\n{"tree":"((*,), {'y': *})"}\n"""
        '{"key":{"function":0,"leaves":[[0,8]],"tree":0}}\n'
        '{"key":{"function":0,"leaves":[[0,8],[1,8]],"tree":1,"structure":2}}\n'
        '{"reason":{"kind":"first"}}\n{"reason":{"kind":"structure","leaf":"y","before":"absent","after":"array"}}\n'
        '{"event":{"kind":"compile","function":"step","reason":0,"key":0,"id":"[step/0]","call":1,"seconds":0.5}}\n'
        '{"event":{"kind":"compile","function":"step","reason":1,"key":1,"id":"[step/1]","call":2,"seconds":0.5}}\n'
    )
    ledger = Ledger.load(path)
    assert repr(ledger) == "Ledger(2 compiles of 1 function; step: y changed once)"
    assert [str(event.key.tree) for event in ledger] == ["((*,), {})", "((*,), {'y': *})"]
    (structures,) = [row for row in ledger.varying() if row.aspect == "structure"]
    assert [value.text for value in structures.values] == ["((*,), {})", "((*,), {'y': *})"]
    again = loaded(ledger, path)
    assert again.events == ledger.events


@pytest.mark.parametrize("version", ["true", '"1"', "null", "1.5"])
def test_a_version_that_is_no_number_is_no_ledgers(path, version):
    path.write_text(f'{{"explorer":"ledger","version":{version}}}\n')
    with pytest.raises(LedgerFileError, match="this is no ledger"):
        Ledger.load(path)


def test_a_newer_ledger_is_refused_with_both_formats(path):
    path.write_text('{"explorer":"ledger","version":7,"more":{}}\n{"new":1}\n')
    with pytest.raises(LedgerFileError, match=r"format 7; .* formats up to 2\. Hint: upgrade explorer"):
        Ledger.load(path)


HEADER = '{"explorer":"ledger","version":2}'
REASON = '{"reason":{"kind":"first"}}'


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["{"], "line 2"),
        (["[]"], "an object was expected, not list"),
        (["{}"], "a line has one entry, not 0"),
        (['{"event":1}'], "an object was expected, not int"),
        (['{"event":{}}'], "missing"),
        (['{"code":"import os"}'], "can't be of 'code'"),
        (['{"event":{"kind":"boom","function":"f"}}'], "'boom' is none of trace, lower"),
        (['{"event":{"kind":["trace"],"function":"f"}}'], "is none of trace"),
        (['{"event":{"kind":"trace","function":1}}'], "a text was expected, not int"),
        (['{"event":{"kind":"trace","function":"f","seconds":"1"}}'], "a number was expected, not str"),
        (['{"event":{"kind":"trace","function":"f","seconds":NaN}}'], "NaN is no number"),
        (['{"event":{"kind":"trace","function":"f","seconds":1e999}}'], "1e999 is no number"),
        (['{"event":{"kind":"trace","function":"f","call":true}}'], "an integer was expected, not bool"),
        (['{"event":{"kind":"trace","function":"f","reason":0}}'], "there is no reason 0"),
        ([REASON, '{"event":{"kind":"trace","function":"f","reason":-1}}'], "there is no reason -1"),
        ([REASON, '{"forget":true}', '{"event":{"kind":"trace","function":"f","reason":0}}'], "line 4"),
        (['{"event":{"kind":"trace","function":"f","stack":7}}'], "a list was expected, not int"),
        (['{"event":{"kind":"trace","function":"f","__class__":"x"}}'], "is no field of Event"),
        (['{"reason":{"kind":"because"}}'], "'because' is none of first"),
        (['{"form":{"path":"x","dtype":"f","shape":[1]}}'], "a form has no shape"),
        (['{"form":{"path":"x","dtype":"f","weak":1}}'], "true or false was expected, not int"),
        (['{"form":{"path":"x","dtype":"f","devices":"cpu"}}'], "a list of texts was expected"),
        (['{"settings":[["a"]]}'], "not enough values"),
        (['{"tree":7}'], "an object was expected"),
        (['{"tree":{"kind":"set"}}'], "'set' is none of leaf, None"),
        (['{"tree":{"kind":"list","steps":["[0]"],"children":[0]}}'], "there is no tree 0"),
        (['{"tree":{"kind":"list","steps":["[0]"]}}'], "1 steps lead to 0 children"),
        (['{"tree":{"kind":"leaf","leaves":7}}'], "'leaves' is no field of a tree of arguments"),
        (
            ['{"tree":{"kind":"leaf"}}']
            + [f'{{"tree":{{"kind":"list","steps":["[0]","[1]"],"children":[{i},{i}]}}}}' for i in range(40)],
            "a tree can't have",
        ),
        (['{"key":{"function":0}}'], "there is no function 0"),
        (['{"function":{"name":"f"}}', '{"key":{"function":0,"leaves":[[0]]}}'], "there is no form 0"),
        (
            [
                '{"function":{"name":"f"}}',
                '{"form":{"path":"x","dtype":"f"}}',
                '{"key":{"function":0,"leaves":[[0,-1]]}}',
            ],
            "a count can't be -1",
        ),
        (["[" * 100_000], "nested too deeply"),
        (['{"prediction":{"function":"f"}}'], "missing"),
        (["\x00"], "line 2"),
    ],
)
def test_hostile_lines_are_refused_with_their_number(path, lines, said):
    path.write_text("\n".join([HEADER, *lines, REASON, ""]))
    with pytest.raises(LedgerFileError, match="of this ledger does not fit its format") as refused:
        Ledger.load(path)
    assert said in str(refused.value)


@pytest.mark.parametrize("dropped", ["-1", '"3"', "true"])
def test_a_header_that_lies_is_refused(path, dropped):
    path.write_text(f'{{"explorer":"ledger","version":1,"dropped":{dropped}}}\n')
    with pytest.raises(LedgerFileError, match="line 1 of this ledger"):
        Ledger.load(path)


@given(st.data())
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_altered_bytes_are_read_or_refused_and_nothing_else(path, data):
    storm(2).save(path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        ledger = Ledger.load(path)
    except LedgerFileError:
        return
    repr(ledger), str(ledger.tree()), ledger.to_frame(), ledger.storms


# Spilling ------------------------------------------------------------------------------------------------------------


def test_the_oldest_events_are_spilled_instead_of_dropped_and_can_be_read_back(path):
    ledger = storm(20, limit=10, spill=path)
    assert (ledger.dropped, ledger.spilled, len(ledger)) == (0, 50, 10)
    assert "the oldest 50 events spilled" in repr(ledger)
    oldest = Ledger.load(path)
    assert oldest.events + ledger.events == storm(20).events


def test_a_spilled_part_and_the_rest_are_merged_to_the_whole(path):
    ledger = storm(20, limit=10, spill=path)
    whole = Ledger.merge(Ledger.load(path), ledger, names=["early", "late"])
    assert len(whole) == 60


def test_nothing_is_written_over_by_spilling(path):
    path.write_text("mine")
    with pytest.raises(LedgerFileError, match="is there already, and nothing is written over it"):
        Ledger(spill=path)
    assert path.read_text() == "mine"


def test_a_full_disk_turns_spilling_into_dropping_and_says_so(path, monkeypatch):
    ledger = Ledger(limit=3, spill=path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ledger._spill._writer, "_write", full)
    for number in (1, 2, 3):
        ledger.add(call(number))
    assert (ledger.dropped, ledger.spilled, len(ledger)) == (6, 0, 3)
    assert "No space left on device" in repr(ledger)


def test_a_process_that_was_forked_does_not_write_into_its_parents_file(path, monkeypatch):
    ledger = Ledger(limit=3, spill=path)
    monkeypatch.setattr("os.getpid", lambda: -1)
    for number in (1, 2):
        ledger.add(call(number))
    assert (ledger.dropped, ledger.spilled) == (3, 0)
    assert "forked" in ledger.note


def test_a_saved_ledger_says_that_older_events_are_in_another_file(path, tmp_path):
    again = loaded(storm(20, limit=10, spill=path), tmp_path / "rest.jsonl")
    assert "50 older events are in another file" in repr(again)


# Merging -------------------------------------------------------------------------------------------------------------


def process(starts, function="step"):
    ledger = Ledger()
    for number, start in enumerate(starts, 1):
        ledger.add((first if number == 1 else call)(number, function=function, start=float(start)))
    return ledger


def test_ledgers_are_merged_in_the_order_of_the_clock_and_keep_their_names_and_ids():
    whole = Ledger.merge(process([1, 4]), process([2, 3]), names=["host0", "host1"])
    assert [(event.process, event.id, event.call) for event in whole][::3] == [
        ("host0", "[step/1]", 1), ("host1", "[step/1]", 2), ("host1", "[step/2]", 3), ("host0", "[step/2]", 4),
    ]  # fmt: skip


def test_each_process_has_its_own_first_compile():
    whole = Ledger.merge(process([1, 4]), process([2, 3]))
    assert {event.process for event in whole} == {"0", "1"}
    assert len(whole.recompiles("step")) == 2
    assert [(row.process, row.recompiles) for row in whole.functions()] == [("0", 1), ("1", 1)]


def test_a_merged_ledger_can_be_saved_loaded_and_merged_again(path):
    whole = Ledger.merge(process([1, 4]), process([2, 3]), names=["a", "b"])
    assert loaded(whole, path).events == whole.events
    again = Ledger.merge(whole, process([0]), names=["x", "y"])
    assert {event.process for event in again} == {"x/a", "x/b", "y"}


def test_processes_that_have_names_keep_them():
    a = Ledger.merge(process([1]), names=["a"])
    b = Ledger.merge(process([2]), names=["b"])
    assert {event.process for event in Ledger.merge(a, b)} == {"a", "b"}


def test_calls_stay_whole_though_they_overlap_in_time():
    whole = Ledger.merge(process([1, 1, 1]), process([1, 1, 1]))
    calls = [event.call for event in whole]
    assert calls == sorted(calls)
    assert all(calls.count(call) == 3 for call in calls)


def test_names_that_do_not_fit_are_refused():
    with pytest.raises(OptionError, match="2 ledgers and 1 names"):
        Ledger.merge(Ledger(), Ledger(), names=["a"])
    with pytest.raises(OptionError, match="the name 'a' for several"):
        Ledger.merge(Ledger(), Ledger(), names=["a", "a"])


def test_what_each_dropped_is_added_up():
    assert Ledger.merge(storm(5, limit=6), storm(4, limit=6)).dropped == 15


PROGRAM = """
import sys
import jax, jax.numpy as jnp
import explorer as ex

@jax.jit
def step(x):
    return x * 2

inputs = [jnp.ones(int(size)) for size in sys.argv[2:]]
with ex.watch() as ledger:
    for x in inputs:
        step(x)
ledger.save(sys.argv[1])
"""


@pytest.mark.slow
def test_the_ledgers_of_real_processes_are_one(tmp_path):
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    paths = [tmp_path / f"{name}.jsonl" for name in ("host0", "host1")]
    started = [
        subprocess.Popen([sys.executable, program, path, *sizes])
        for path, sizes in zip(paths, (["3", "4"], ["3", "4", "5"]), strict=True)
    ]
    assert [process.wait(120) for process in started] == [0, 0]
    whole = Ledger.merge(*map(Ledger.load, paths), names=["host0", "host1"])
    assert {(row.process, row.name, row.recompiles) for row in whole.functions()} == {
        ("host0", "step", 1), ("host1", "step", 2),
    }  # fmt: skip
    begun = [event.start for event in whole if event.kind == "trace"]
    assert begun == sorted(begun)
    assert [(row.name, len(row.values)) for row in whole.varying("step").varying] == [("x.shape[0]", 3)]
