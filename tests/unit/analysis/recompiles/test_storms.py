"""Recompile storms: said once, at the user's line, with what varies, what it cost and the cure."""

import inspect
import warnings

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.errors import RecompilationWarning
from explorer.ledger.watch import watch
from explorer.model.events.event import Reason
from explorer.model.events.ledger import Ledger
from tests.support.ledger_events import HERE, call, first, storm

INPUTS = [jnp.ones(size) for size in range(1, 14)]


def storms(times, **more):
    return [(found.function, found.compiles) for found in storm(times, **more).storms]


def told(record):
    return [warning for warning in record if issubclass(warning.category, RecompilationWarning)]


# As data -------------------------------------------------------------------------------------------------------------


def test_a_function_is_in_a_storm_past_eight_compiles():
    assert storms(8) == []
    assert storms(9) == [("step", 9)]


def test_how_many_are_too_many_can_be_set_and_zero_means_never():
    assert storms(4, storm=3) == [("step", 4)]
    assert storms(40, storm=0) == []


def test_a_storm_says_leaf_seconds_cure_and_place():
    (found,) = storm(9).storms
    assert (found.leaf, found.cure, found.seconds, found.at) == ("x.shape[0]", "pad x", 6.75, HERE)
    assert found.text == (
        "step (train.py, line 3) was compiled 9 times, 6.75 s in all; `x.shape[0]` changed 8 times (lately 8 → 9).\n"
        "  Hint: pad x"
    )
    assert repr(found) == "Storm(step: 9 compiles; x.shape[0] varies)"


def test_a_storm_without_a_leaf_says_its_reason_and_of_what_cant_be_seen_nothing():
    ledger = Ledger(storm=1)
    ledger.add(first())
    ledger.add(call(2, reason=Reason("function", text="a lambda was made anew", fix="f = jax.jit(f)\nonce")))
    assert ledger.storms[0].text == (
        "step (train.py, line 3) was compiled 2 times, 1.5 s in all; 1 times as a lambda was made anew.\n"
        "  Hint: f = jax.jit(f)\n    once"
    )
    assert ledger.storms[0].leaf == ""
    unseen = Ledger(storm=1)
    unseen.add(call(1, reason=Reason("unknown"), key=None))
    unseen.add(call(2, reason=Reason("unknown"), key=None))
    assert unseen.storms[0].text == "step was compiled 2 times, 1.5 s in all."


def test_of_several_reasons_the_most_frequent_is_named():
    ledger = storm(6, storm=5)
    ledger.add(call(7, reason=Reason("dtype", "y")))
    assert ledger.storms[0].leaf == "x.shape[0]"


def test_the_worst_storm_comes_first():
    ledger = storm(9)
    for number in range(20):
        ledger.add(call(100 + number, function="loss"))
    assert [found.function for found in ledger.storms] == ["loss", "step"]


def test_a_single_operation_storms_only_where_one_line_repeats_it_far_more_often():
    ledger = Ledger(storm=2)
    for number in range(1, 9):
        ledger.add(call(number, function="add", eager=True))
    assert ledger.storms == ()
    ledger.add(call(9, function="add", eager=True))
    assert [found.text.partition(" was")[0] for found in ledger.storms] == ["the operation add"]


# As a warning --------------------------------------------------------------------------------------------------------


def test_a_storm_is_warned_about_exactly_once_at_the_users_line():
    @jax.jit
    def grow(x):
        return x * 2

    with watch() as ledger, warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        for x in INPUTS:
            grow(x)
            line = inspect.currentframe().f_lineno - 1
    (warning,) = told(record)
    assert (warning.filename, warning.lineno) == (__file__, line)
    text = str(warning.message)
    assert text.startswith("grow (test_storms.py, line ")
    assert "was compiled 9 times" in text
    assert "`x.shape[0]` changed 8 times (lately 8 → 9)" in text
    assert "\n  Hint: " in text
    assert [found.compiles for found in ledger.storms] == [13]
    assert ledger.faults == ()


def test_function_objects_that_are_new_each_time_are_one_storm():
    def loop():
        for _ in range(6):
            jax.jit(lambda x: x + 1)(INPUTS[0])

    with watch(storm=3) as ledger, pytest.warns(RecompilationWarning, match=r"<lambda> .* compiled 4 times") as record:
        loop()
    assert len(told(record)) == 1
    assert [(found.function, found.compiles) for found in ledger.storms] == [("<lambda>", 6)]


def test_watches_inside_of_each_other_warn_once_between_them():
    step = jax.jit(lambda x: x - 1)
    with watch(), watch(storm=4), pytest.warns(RecompilationWarning) as record:
        [step(x) for x in INPUTS]
    assert len(told(record)) == 1


def test_a_watch_after_the_last_one_ended_may_warn_again():
    for _ in range(2):
        step = jax.jit(lambda x: x - 3)
        with watch(storm=2), pytest.warns(RecompilationWarning) as record:
            [step(x) for x in INPUTS[:5]]
        assert len(told(record)) == 1


@pytest.mark.parametrize("storm", [4, 8, 11])
def test_a_function_of_explorers_own_jit_is_warned_about_once_whoever_comes_first(storm):
    step = ex.jit(lambda x, n=storm: x * n)
    with watch(storm=storm), pytest.warns(RecompilationWarning) as record:
        [step(x) for x in INPUTS]
    assert len(told(record)) == 1
    assert record[0].filename == __file__


def test_lambdas_given_to_explorers_own_jit_are_warned_about_once():
    def loop():
        for _ in range(12):
            ex.jit(lambda x: x + 5)(INPUTS[0])

    with watch(), pytest.warns(RecompilationWarning) as record:
        loop()
    assert len(told(record)) == 1


def test_a_filter_that_makes_warnings_errors_does_not_cost_the_call_its_result():
    step = jax.jit(lambda x: x - 4)
    with watch(storm=2) as ledger, warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("error")
        results = [step(x) for x in INPUTS[:5]]
    assert [len(result) for result in results] == [1, 2, 3, 4, 5]
    assert [warning.filename for warning in told(record)] == [__file__]
    assert ledger.faults == ()


def test_a_filter_that_ignores_it_is_obeyed(recwarn):
    step = jax.jit(lambda x: x - 6)
    with watch(storm=2), warnings.catch_warnings():
        warnings.simplefilter("ignore", RecompilationWarning)
        [step(x) for x in INPUTS[:5]]
    assert not told(recwarn)


def test_a_way_of_showing_that_fails_is_a_fault_and_not_the_calls(monkeypatch):
    step = jax.jit(lambda x: x - 7)
    with watch(storm=2) as ledger, warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", lambda *_, **__: 1 / 0)
        assert len([step(x) for x in INPUTS[:5]]) == 5
    assert [type(fault) for fault in ledger.faults] == [ZeroDivisionError]
