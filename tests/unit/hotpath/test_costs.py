"""What hot paths say that a call took, and what was saved, against what a clock outside of them shows."""

from math import isnan
from statistics import median
from time import perf_counter

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.hotpath.hot import HotFunction, Options
from explorer.hotpath.report import row_of
from explorer.hotpath.timing import CallCosts

X = jnp.linspace(0.1, 1.0, 64 * 64).reshape(64, 64)


def chain(x):
    for _ in range(12):
        x = jnp.tanh(x * 1.01) + 0.1
    return x


def seconds_of(function, calls):
    """What so many calls took, each with its results there."""
    seconds = []
    for _ in range(calls):
        begun = perf_counter()
        jax.block_until_ready(function(X))
        seconds.append(perf_counter() - begun)
    return seconds


def twin(function):
    return type(function)(function.__code__, function.__globals__, function.__name__)


@pytest.fixture
def watched():
    """A function, hot, whose compile waits in a list."""
    function, works = twin(chain), []
    hot = HotFunction(function, Options(10, 0.0, works.append, is_forced=True))
    hot.watch()
    yield function, hot, works
    hot.release()


def test_what_disturbs_the_compared_calls_is_not_taken_for_what_eager_calls_take():
    costs = CallCosts()
    for seconds in (0.0041, 0.0040, 0.0044) * 4:
        costs.note_before(seconds)
    for seconds in (0.016, 0.020, 0.015):  # while another compile went on
        costs.note_both(eager=seconds, left=0.0005, compiled=0.0001)
    eager, basis = costs.eager()
    assert basis == "before"
    assert eager.seconds == pytest.approx(0.0046)
    assert 0.0045 <= eager.low <= eager.seconds <= eager.high <= 0.0049


def compile_now(watched):
    function, hot, works = watched
    seconds_of(function, 12)
    works[0]()
    while hot.state != "compiled":
        jax.block_until_ready(function(X))
    return function, hot


def test_what_was_saved_is_the_difference_of_both_estimates_for_each_compiled_call(watched):
    function, hot = compile_now(watched)
    seconds_of(function, 10)
    row = row_of(hot, 0.0)
    assert row.compiled_calls >= 10
    saved = row.saved_seconds + row.compile_seconds  # which the program waited for here
    assert saved == pytest.approx(row.compiled_calls * (row.eager_seconds - row.compiled_seconds))


@pytest.mark.slow  # a busy machine decides
def test_both_estimates_are_about_those_of_a_clock(watched):
    function, hot = compile_now(watched)
    compiled, eager = median(seconds_of(function, 300)), median(seconds_of(twin(chain), 100))
    row = row_of(hot, 0.0)
    # A few samples, of other moments than the clock's, on a machine that may be busy.
    assert eager / 5 < row.eager_seconds < 5 * eager
    assert compiled / 5 < row.compiled_seconds < 5 * compiled


def test_what_a_call_leaves_running_when_it_returns_is_part_of_what_it_takes():
    costs = CallCosts()
    for _ in range(10):
        costs.note_before(0.001)  # JAX only puts it into its queue
    for _ in range(3):
        costs.note_both(eager=0.030, left=0.029, compiled=0.020)
    eager, basis = costs.eager()
    assert eager.seconds == pytest.approx(0.030)
    assert basis in ("both ways", "before")
    assert costs.compiled().seconds == 0.020


@pytest.mark.slow
def test_kinds_of_calls_have_costs_of_their_own():
    small, large, function = X[:2, :2], jnp.tile(X, (8, 8)), twin(chain)
    hot = HotFunction(function, Options(3, 0.0, lambda work: work(), is_forced=True))
    hot.watch()
    for x, calls in ((large, 10), (small, 200)):
        for _ in range(calls):
            jax.block_until_ready(function(x))
    hot.release()
    row = row_of(hot, 0.0)
    assert row.variants == 2
    as_written = twin(chain)
    took = sum(hot_calls * median(timed(as_written, x)) for x, hot_calls in ((large, 4), (small, 194)))
    assert row.saved_seconds < 2 * took  # not 198 times what the large ones saved


def timed(function, x):
    seconds = []
    for _ in range(9):
        begun = perf_counter()
        jax.block_until_ready(function(x))
        seconds.append(perf_counter() - begun)
    return seconds


def test_where_nothing_was_compiled_nothing_is_known_of_what_that_saved():
    row = ex.types.HotRow("f", eager_calls=10, eager_seconds=0.01)
    assert row.saved_seconds == 0.0
    assert all(map(isnan, row.saved_interval))


def test_a_single_operation_is_not_compiled_before_that_can_pay(monkeypatch):
    monkeypatch.setattr("explorer.hotpath.hot._PATIENT", 1e12)  # a busy machine takes its time

    def f(x):
        return jnp.sin(x)

    f(X)
    hot = HotFunction(f, Options(3, 1e-6, lambda work: work()))  # which no machine is too quick for
    hot.watch()
    for _ in range(300):
        f(X)
    hot.release()
    assert hot.trigger.is_waiting
    assert (hot.state, hot.compile_seconds, hot.calls) == ("counting", 0.0, {"eager": 300, "compiled": 0})
