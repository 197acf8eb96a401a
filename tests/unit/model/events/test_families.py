"""The counts of one function's family, event by event, and which family a name or a function means."""

import functools
import json

import jax
import pytest

import explorer as ex
from explorer.model.events.event import Event, Place, Reason
from explorer.model.events.family_counts import FamilyCounts, Totals, by_frequency, families_of, family_key
from explorer.model.events.key import AHEAD, Function, Key

KEY = Key(Function("f", "m.py", 3))
SHAPE, DTYPE = Reason("shape", "x.shape[0]"), Reason("dtype", "x")


def event(kind, call=1, reason=SHAPE, seconds=0.25, **more):
    return Event(kind, "f", seconds=seconds, call=call, reason=reason, **{"key": KEY, **more})


def counted(*events, **more):
    counts = FamilyCounts(("", "f", "m.py", 3), **more)
    return counts, [counts.add(each) for each in events]


def test_the_family_is_known_by_its_key_or_where_there_is_none_by_its_name():
    assert family_key(event("trace", process="p")) == ("p", "f", "m.py", 3)
    assert family_key(event("trace", key=None, process="p")) == ("p", "f", "", 0)


def test_the_first_event_of_a_call_that_builds_again_says_so():
    first = Reason("first")
    counts, again = counted(
        event("trace", 1, first), event("compile", 1, first), event("trace", 2), event("lower", 2), event("miss", 3),
    )  # fmt: skip
    assert again == [False, False, True, False, False]
    assert (counts.calls, counts.built, counts.recompiles) == (3, 2, 1)
    assert counts.counts == {"trace": 2, "compile": 1, "lower": 1, "miss": 1}


def test_a_miss_is_no_building_and_what_it_took_no_compiling():
    counts, again = counted(event("miss"), event("miss", 2), event("cache-hit", 2, saved=1.5))
    assert again == [False, False, True]
    assert (counts.calls, counts.built, counts.total, counts.saved) == (2, 1, 0.25, 1.5)


def test_events_without_a_number_are_calls_of_their_own():
    counts, again = counted(event("compile", 0), event("compile", 0))
    assert (counts.calls, counts.built, again) == (2, 2, [True, True])


@pytest.mark.parametrize(
    ("reason", "key", "again"),
    [
        (Reason("first"), KEY, [False, False]),
        (SHAPE, KEY, [True, True]),
        (Reason("raised"), KEY, [False, True]),  # nothing was kept of an earlier one, so the first is a first
        (Reason("unknown"), None, [False, True]),  # only its name is known
        (Reason("unknown"), KEY, [True, True]),
    ],
)
def test_only_what_was_built_before_is_built_again(reason, key, again):
    assert counted(event("compile", 1, reason, key=key), event("compile", 2, reason, key=key))[1] == again


def test_what_is_compiled_because_somebody_asked_for_it_is_no_recompile():
    ahead = Key(Function("f", "m.py", 3, (AHEAD,)))
    counts, again = counted(event("compile", 1, key=ahead), event("compile", 2, key=ahead))
    assert (counts.built, counts.recompiles, again, counts.total) == (0, 0, [False, False], 0.5)


def test_of_single_operations_the_lines_that_compile_are_counted():
    here, there = Place("m.py", 4), Place("m.py", 9)
    events = [event("compile", number, call_site=site) for number, site in enumerate((here, here, there), 1)]
    assert counted(*events, eager=True)[0].sites == {here: 2, there: 1}
    assert counted(*events)[0].sites == {}


def test_the_cause_that_came_most_often_is_the_main_one_with_its_last_reason():
    last = Reason("shape", "x.shape[0]", "8", "9")
    counts, _ = counted(event("compile", 1, DTYPE), event("compile", 2, SHAPE), event("compile", 3, last))
    cause = counts.main_cause()
    assert (cause.count, cause.last) == (2, last)
    assert counted(event("compile", 1, DTYPE), event("compile", 2, SHAPE))[0].main_cause().last == DTYPE  # the earliest
    assert counted()[0].main_cause() is None


def test_a_family_is_summed_up_in_a_row():
    other = Reason("shape", "y.shape[1]")
    reasons = [Reason("first"), SHAPE, other, DTYPE, SHAPE, Reason("evicted")]
    counts, _ = counted(*(event("compile", number, reason) for number, reason in enumerate(reasons, 1)))
    counts.add(event("trace", 7, DTYPE, 0.5))
    counts.add(event("cache-hit", 7, DTYPE, 0.125, saved=2.0))
    counts.add(event("miss", 8, seconds=9.0))
    row = counts.summary(4.25)
    assert (row.name, row.file, row.line, row.eager) == ("f", "m.py", 3, False)
    assert (row.calls, row.recompiles, row.functions) == (8, 6, 1)
    assert (row.traces, row.lowers, row.compiles, row.cache_hits, row.misses) == (1, 0, 6, 1, 1)
    assert (row.trace, row.lower, row.compile, row.saved) == (0.5, 0.0, 1.625, 2.0)
    assert (row.seconds, row.share) == (2.125, 0.5)
    assert row.reasons == (("shape", 3), ("dtype", 2), ("evicted", 1))
    assert row.varying == (("x.shape[0]", 2), ("x", 2), ("y.shape[1]", 1))
    assert (row.leaf, row.last.kind) == ("x.shape[0]", "miss")
    assert counted()[0].summary(0.0).share == 0
    assert counted(event("compile"), eager=True)[0].summary(1.0).functions == 0


def test_totals_are_the_sums_of_all_families():
    one, _ = counted(event("trace", 1), event("compile", 1))
    other, _ = counted(event("compile", 1), event("miss", 2), eager=True)
    assert FamilyCounts.totals_of([one, other]) == Totals(
        calls=3, recompiles=2, functions=1, traces=1, compiles=2, misses=1, trace=0.25, compile=0.5
    )
    assert FamilyCounts.totals_of([]) == Totals()
    assert by_frequency({"a": 1, "b": 3, "c": 1}) == (("b", 3), ("a", 1), ("c", 1))


def step(x):
    return x


def other(x):
    return x


LINE = step.__code__.co_firstlineno
STEP, ELSEWHERE, LIBRARY = ("", "step", __file__, LINE), ("", "step", "/m/train.py", 3), ("", "step", json.__file__, 9)
NAMELESS, NAMED_AS_ID = ("", "step", "", 0), ("", "[step/0]", "/m/train.py", 7)
ALL = [STEP, ELSEWHERE, LIBRARY, NAMED_AS_ID]


@pytest.mark.parametrize(
    ("which", "families", "meant"),
    [
        ("step", ALL, {STEP, ELSEWHERE, LIBRARY}),
        ("[step/3]", ALL, {STEP, ELSEWHERE, LIBRARY}),
        ("[step]", ALL, {STEP, ELSEWHERE, LIBRARY}),
        ("[step/0]", ALL, {NAMED_AS_ID}),  # a function may be called so
        (step, ALL, {STEP}),
        (jax.jit(step), ALL, {STEP}),
        (functools.partial(functools.partial(step, 1)), ALL, {STEP}),
        # Where its own line isn't known, what may be it by name: of a library that wraps it, or of nobody knows where.
        (step, [ELSEWHERE, LIBRARY, NAMELESS], {LIBRARY, NAMELESS}),
    ],
)
def test_a_name_an_id_or_the_function_says_which_families_are_meant(which, families, meant):
    assert families_of(which, families) == meant


@pytest.mark.parametrize(
    ("which", "families", "message"),
    [
        (other, ALL, "the ledger has no function 'other': it has step, [step/0]."),
        (step, [ELSEWHERE], "the ledger has no function 'step': it has step."),
        ("[loss/0]", [ELSEWHERE], "the ledger has no function 'loss': it has step."),
        ("loss", [], "the ledger has no function 'loss': nothing was compiled while it watched."),
        (
            "loss",
            [("", f"f{i}", "", 0) for i in range(20)],
            f"the ledger has no function 'loss': it has {', '.join(f'f{i}' for i in range(20))}.",
        ),
        (
            "loss",
            [("", f"f{i}", "", 0) for i in range(21)],
            f"the ledger has no function 'loss': it has {', '.join(f'f{i}' for i in range(20))}, … (21 in all).",
        ),
    ],
)
def test_who_names_none_is_told_those_there_are(which, families, message):
    with pytest.raises(ex.errors.NotRecordedError) as caught:
        families_of(which, families)
    hint = "give a function's name, the function, or the id of one of its compiles, such as '[step/0]'."
    assert str(caught.value) == f"{message}\n  Hint: {hint}"
