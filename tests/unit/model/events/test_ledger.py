"""The ledger as data: what it keeps, counts, and says of itself."""

import functools
import sys
import threading
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.errors import NotRecordedError
from explorer.model.events.event import REASONS, Event, Place, Reason
from explorer.model.events.key import Function, Key, Leaf
from explorer.model.events.leaves import Compactor, Leaves
from explorer.model.events.ledger import Ledger
from tests.support.ledger_events import FULL, call, first, storm

# What it says of itself ----------------------------------------------------------------------------------------------


def test_an_empty_ledger_says_so():
    assert repr(Ledger()) == "Ledger(0 compiles)"
    assert (Ledger().events, Ledger().recompiles(), Ledger().functions()) == ((), (), ())


def test_the_repr_names_the_worst_function_and_its_leaf_and_no_time():
    ledger = storm(4)
    ledger.add(first(9, function="loss", line=9))
    assert repr(ledger) == "Ledger(5 compiles of 2 functions; step: x.shape[0] changed 3 times)"


def test_the_repr_tells_single_operations_and_the_persistent_cache_apart():
    ledger = Ledger()
    ledger.add(first())
    ledger.add(call(2, "trace", "cache-hit", size=9))
    ledger.add(first(3, function="add", file="", line=0, eager=True))
    assert repr(ledger) == (
        "Ledger(2 compiles of 1 function, 1 from the persistent cache, 1 of single operations; "
        "step: x.shape[0] changed once)"
    )


def test_a_reason_without_a_leaf_is_named_by_its_kind():
    ledger = Ledger()
    ledger.add(first())
    ledger.add(call(2, reason=Reason("evicted")))
    ledger.add(call(3, reason=Reason("evicted")))
    assert repr(ledger) == "Ledger(3 compiles of 1 function; step: compiled again twice (evicted))"


# Recompiles ----------------------------------------------------------------------------------------------------------


def test_there_is_one_recompile_for_each_call_beyond_the_first():
    ledger = storm(4)
    assert [(event.kind, event.id) for event in ledger.recompiles()] == [
        ("compile", f"[step/{number}]") for number in (2, 3, 4)
    ]


def test_a_call_that_only_missed_the_fast_path_is_no_recompile():
    ledger = storm(1)
    ledger.add(call(2, "miss"))
    assert ledger.recompiles() == ()
    assert ledger.totals.misses == 1
    assert ledger.totals.seconds == pytest.approx(0.75)


def test_a_call_that_failed_while_it_was_traced_counts_with_how_far_it_got():
    ledger = storm(1)
    ledger.add(call(2, "trace", error="TypeError"))
    assert [event.kind for event in ledger.recompiles()] == ["trace"]


def test_a_first_call_whose_reason_could_not_be_seen_is_no_recompile_the_next_is():
    ledger = Ledger()
    ledger.add((Event("compile", "f", call=1),))
    ledger.add((Event("compile", "f", call=2),))
    assert len(ledger.recompiles("f")) == 1


def test_what_compiled_before_the_watch_began_is_a_recompile_by_its_reason():
    ledger = Ledger()
    ledger.add(call(1))
    assert len(ledger.recompiles()) == 1


def test_families_of_one_name_at_two_places_are_counted_for_themselves():
    ledger = Ledger()
    ledger.add(first(1))
    ledger.add(first(2, line=99))
    ledger.add(call(3, line=99))
    assert [row.recompiles for row in sorted(ledger.functions(), key=lambda row: row.line)] == [0, 1]
    assert len(ledger.recompiles("step")) == 1


def test_recompiles_are_found_by_name_id_function_partial_and_wrapper():
    def step(x):
        return x

    @functools.wraps(step)
    def wrapped(x):
        return step(x)

    code = step.__code__
    ledger = Ledger()
    for number in (1, 2):
        given = {"file": code.co_filename, "line": code.co_firstlineno}
        ledger.add(first(1, **given) if number == 1 else call(2, **given))
    ledger.add(first(3, function="other"))
    ledger.add(call(4, function="other"))
    for which in (
        "step",
        "[step/2]",
        "[step/1]",
        step,
        wrapped,
        functools.partial(step, 1),
        functools.partial(wrapped),
    ):
        assert [event.id for event in ledger.recompiles(which)] == ["[step/2]"], which


def test_a_method_is_found_by_its_function():
    class Model:
        def step(self):
            pass

    code = Model.step.__code__
    ledger = Ledger()
    ledger.add(call(2, file=code.co_filename, line=code.co_firstlineno))
    assert len(ledger.recompiles(Model().step)) == 1


@pytest.mark.parametrize("which", ["stp", "[stp/1]"])
def test_an_unknown_function_is_refused_with_the_names_that_there_are(which):
    ledger = storm(2)
    ledger.add(first(8, function="loss"))
    with pytest.raises(NotRecordedError, match="it has step, loss"):
        ledger.recompiles(which)


def test_a_function_inside_of_a_librarys_wrapper_is_found_by_its_name():
    def step():
        pass

    ledger = Ledger()
    ledger.add(call(2, file="/venv/lib/site-packages/equinox/_jit.py", line=43))
    assert len(ledger.recompiles(step)) == 1


def test_another_function_of_the_same_name_in_another_file_is_not_meant():
    def step():
        pass

    assert storm(3).recompiles(step) == ()


def test_a_function_that_was_not_compiled_has_no_recompiles():
    assert storm(2).recompiles(functools.partial) == ()


def test_of_many_names_only_some_are_listed():
    ledger = Ledger()
    for number in range(40):
        ledger.add(first(number + 1, function=f"f{number}"))
    with pytest.raises(NotRecordedError, match=r"f19, … \(40 in all\)"):
        ledger.recompiles("g")


# Summaries -----------------------------------------------------------------------------------------------------------


def test_a_functions_row_has_its_counts_seconds_share_reasons_and_leaf():
    ledger = storm(3)
    ledger.add(call(4, "lower", "compile", reason=Reason("committed", "y")))
    ledger.add(first(5, function="loss", seconds=0.125))
    row, loss = ledger.functions()
    assert (row.name, row.file, row.line, row.calls, row.recompiles) == ("step", "train.py", 3, 4, 3)
    assert (row.traces, row.lowers, row.compiles, row.cache_hits) == (3, 4, 4, 0)
    assert (row.trace, row.lower, row.compile, row.seconds) == (0.75, 1.0, 1.0, 2.75)
    assert row.share == pytest.approx(2.75 / 3.125)
    assert loss.share == pytest.approx(0.375 / 3.125)
    assert row.reasons == (("shape", 2), ("committed", 1))
    assert row.varying == (("x.shape[0]", 2), ("y", 1))
    assert (row.leaf, row.last.id) == ("x.shape[0]", "[step/4]")
    assert repr(row) == "Summary(step at train.py:3: 4 compiles; again for shape 2, committed 1; x.shape[0] varies)"


def test_the_totals_are_the_sums_of_the_rows():
    ledger = storm(3)
    ledger.add(call(9, "trace", "cache-hit", function="loss", saved=1.0))
    totals, rows = ledger.totals, ledger.functions()
    assert totals.functions == 2
    assert totals.saved == 2.0
    for name in ("calls", "recompiles", "traces", "lowers", "compiles", "cache_hits", "seconds"):
        assert getattr(totals, name) == sum(getattr(row, name) for row in rows)


def test_each_event_says_what_its_function_has_cost_so_far():
    assert [event.total for event in storm(2)] == [0.25, 0.5, 0.75, 1.0, 1.25, 1.5]


kinds = st.lists(st.sampled_from(["trace", "lower", "compile", "cache-hit", "miss"]), min_size=1, max_size=3)
some_calls = st.lists(st.tuples(kinds, st.sampled_from("fgh"), st.sampled_from(REASONS), st.booleans()), max_size=12)


@given(some_calls)
def test_what_is_counted_is_what_is_listed(calls):
    ledger = Ledger()
    for number, (happened, function, reason, is_seen) in enumerate(calls, 1):
        more = {} if is_seen else {"key": None}
        ledger.add(call(number, *happened, function=function, reason=Reason(reason), **more))
    assert ledger.totals.recompiles == len(ledger.recompiles())
    assert ledger.totals.calls == len(calls)
    assert ledger.totals.seconds == pytest.approx(sum(event.seconds for event in ledger if event.kind != "miss"))


# Dropping ------------------------------------------------------------------------------------------------------------


def test_past_the_limit_the_oldest_are_dropped_and_counted_visibly():
    ledger = storm(10, limit=6)
    assert (len(ledger), ledger.dropped) == (6, 24)
    assert "the oldest 24 events dropped" in repr(ledger)
    assert [event.id for event in ledger.recompiles()] == ["[step/9]", "[step/10]"]


def test_totals_rows_and_storms_outlive_what_is_dropped():
    whole, bounded = storm(30), storm(30, limit=3)
    assert bounded.totals == whole.totals
    assert bounded.storms == whole.storms
    assert [replace(row, last=None) for row in bounded.functions()] == [
        replace(row, last=None) for row in whole.functions()
    ]


def test_a_recompile_stays_one_when_the_first_of_its_function_was_dropped():
    ledger = Ledger(limit=1)
    ledger.add((Event("compile", "f", call=1),))
    ledger.add((Event("compile", "f", call=2),))
    assert len(ledger.recompiles()) == 1
    assert (len(ledger), ledger.dropped) == (1, 1)


# Threads and listeners -----------------------------------------------------------------------------------------------


def test_many_threads_add_while_others_read_and_nothing_is_lost():
    ledger = Ledger()
    errors = []

    def add(thread):
        for number in range(200):
            ledger.add(call(thread * 1000 + number + 1, function=f"f{thread}"))

    def read():
        try:
            for _ in range(30):
                assert len(list(ledger)) % 3 == 0
                ledger.recompiles()
                repr(ledger)
                ledger.functions()
        except Exception as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=add, args=(i,)) for i in range(4)] + [threading.Thread(target=read)] * 1
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    finally:
        sys.setswitchinterval(interval)
    assert not errors
    assert len(ledger) == 4 * 200 * 3
    assert {row.name: row.compiles for row in ledger.functions()} == {f"f{i}": 200 for i in range(4)}
    calls = [event.call for event in ledger]
    assert all(calls[i] == calls[i + 1] == calls[i + 2] for i in range(0, len(calls), 3))


def test_a_ledger_can_be_read_while_it_is_iterated_and_added_to():
    ledger = storm(2)
    for _ in ledger:
        ledger.add(call(50))
    assert len(ledger) == 6 + 6 * 3


def test_a_listener_hears_each_call_and_one_that_fails_is_let_go():
    ledger, heard = Ledger(), []
    ledger.listen(lambda events: 1 / 0)
    end = ledger.listen(lambda events: heard.append([event.id for event in events]))
    ledger.add(call(1))
    ledger.add(call(2))
    end()
    end()
    ledger.add(call(3))
    assert heard == [["[step/1]"] * 3, ["[step/2]"] * 3]


# Compactness ---------------------------------------------------------------------------------------------------------


def holders(value):
    """A dataclass and all within it."""
    yield value
    for field in fields(value):
        held = getattr(value, field.name)
        for inner in held if isinstance(held, tuple) else (held,):
            if hasattr(inner, "__dataclass_fields__"):
                yield from holders(inner)


def test_the_example_of_everything_has_no_field_at_its_default():
    for value in holders(FULL):
        for field in fields(value):
            is_usual = getattr(value, field.name) == field.default and not isinstance(value, Place)
            assert not is_usual, (value, field.name)
    assert not any(getattr(FULL.key.leaves[0], name) == usual for name, usual in Leaf._field_defaults.items())


def test_no_field_of_an_event_is_lost_when_it_is_held():
    ledger = Ledger()
    ledger.add((FULL,))
    (held,) = ledger.events
    assert held == FULL
    assert FULL.__eq__(held)
    assert hash(held) == hash(FULL)
    assert repr(held) == repr(FULL)
    assert held.key.leaves == FULL.key.leaves
    assert FULL.key.leaves == held.key.leaves
    assert repr(held.key) == repr(FULL.key)


@pytest.mark.parametrize("shape", [(), (0,), (3, 65535), (65536,), (2**40, 1), (2**70,), ("b", 3), ("b",)])
def test_leaves_of_any_size_come_back_as_they_were(shape):
    leaves = (Leaf("a", (2,), "f"), Leaf("b", shape, "f"), Leaf("c", (), "f"))
    held = Compactor().key(Key(Function("f"), leaves)).leaves
    assert isinstance(held, Leaves)
    assert (tuple(held), len(held), held[1], held[-1], held[:2]) == (leaves, 3, leaves[1], leaves[2], leaves[:2])
    assert held + leaves == leaves + leaves


def test_events_of_one_call_share_their_key_and_calls_what_they_have_in_common():
    ledger = storm(3)
    one, two, three, four, *_ = ledger.events
    assert one.key is two.key is three.key
    assert three.key is not four.key
    assert one.stack is four.stack
    assert one.key.function is four.key.function
