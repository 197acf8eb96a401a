"""Calls that are made again and again: waited for, with arguments that survive, until they are steady."""

import gc
import threading
import time
from itertools import count

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from explorer.measure.calls import Calls, ready
from explorer.measure.steady import Sampler, steady

X = jnp.arange(8.0)
QUICK = {"seconds": 0.02, "progress": False}


def wavy(x):
    return jnp.tanh(x) * 2 + jnp.sin(x)


@jax.jit
def long_loop(x):
    """Long enough for JAX to return before it is through."""
    return jax.lax.fori_loop(0, 2000, lambda _, carry: jnp.tanh(carry) + 1e-3, x)


def take_samples(call):
    """Samples by a clock that advances 1 ms whenever it is read: how many there are does not depend on the machine."""
    readings = count()
    sampler = Sampler(call, clock=lambda: next(readings) / 1000)
    sampler.warm_up(0.02)
    sampler.measure(0.05, 0.02)


# Waiting ------------------------------------------------------------------------------------------------------------


def test_no_call_begins_before_the_result_of_the_one_before_is_there():
    was_ready, results = [], []

    def call():
        if results:
            was_ready.append(results.pop().is_ready())
        results.append(long_loop(jnp.ones(1000)))
        return results[0]

    take_samples(call)
    assert len(was_ready) > 5
    assert all(was_ready)


def test_a_tree_of_results_is_waited_for_as_a_whole():
    was_ready, results = [], []

    def call():
        if results:
            was_ready.append(results.pop()[1]["late"].is_ready())
        results.append((X, {"late": long_loop(jnp.ones(1000))}))
        return results[0]

    take_samples(call)
    assert len(was_ready) > 5
    assert all(was_ready)


def test_the_effects_of_what_returns_nothing_are_waited_for():
    def sleep(_):
        time.sleep(0.01)

    timing = ex.time(lambda x: jax.debug.callback(sleep, x), X, **QUICK)
    assert timing.steady.fastest >= 0.01
    assert timing.eager.fastest >= 0.01


def test_arguments_are_there_before_the_clock_starts():
    came = threading.Event()

    def late(x):
        time.sleep(0.05)
        came.set()
        return np.asarray(x)

    pending = jax.jit(lambda x: jax.pure_callback(late, jax.ShapeDtypeStruct((8,), jnp.float32), x))(X)
    Calls(wavy, (pending,), {})
    assert came.is_set()


def test_ready_passes_over_what_was_deleted_and_what_is_no_array():
    gone = X + 0
    gone.delete()
    value = {"gone": gone, "text": "a", "none": None, "there": X}
    assert ready(value) is value


# Donation -----------------------------------------------------------------------------------------------------------


def test_donated_arguments_survive():
    step = jax.jit(lambda state, x: {"w": state["w"] + x}, donate_argnums=0)
    state = {"w": X + 0}
    timing = ex.time(step, state, X, **QUICK)
    assert timing.steady.count >= 3
    np.testing.assert_array_equal(state["w"], X)
    step(state, X)
    assert state["w"].is_deleted(), "the function does donate"


def test_arguments_donated_by_name_or_deeper_within_survive():
    by_name = jax.jit(lambda x, y: x + y, donate_argnames="y")
    y = X + 0
    ex.time(by_name, X, y=y, **QUICK)
    assert not y.is_deleted()

    inner = jax.jit(lambda x: x + 1, donate_argnums=0)
    timing = ex.time(lambda x: inner(x) * 2, y, **QUICK)
    assert timing.eager.count >= 3
    assert not y.is_deleted()


def test_copies_of_donated_arguments_are_as_the_arguments_were():
    seen = []
    step = jax.jit(lambda key, x: (jax.random.fold_in(key, 1), x), donate_argnums=(0, 1))
    key, committed = jax.random.key(0), jax.device_put(X, jax.devices()[0])

    def watched(key, x):
        seen.append((key.dtype, x.committed, x.sharding, x.weak_type))
        return step(key, x)

    calls = Calls(watched, (key, committed), {})
    calls.first()
    calls.call(*calls.prepare())
    assert seen[0] == seen[1] == (key.dtype, True, committed.sharding, False)
    assert not committed.is_deleted()


def test_what_donates_nothing_is_not_copied():
    calls = Calls(jax.jit(wavy), (X,), {})
    calls.first()
    assert calls.prepare is None
    assert calls.prepared_bytes == 0


# Sampling, by a clock that only the calls move ----------------------------------------------------------------------


class Work:
    """Calls that take what they are told, by a clock of their own; the last of them again and again."""

    def __init__(self, *seconds):
        self.now, self.count, self.seconds = 0.0, 0, seconds

    def clock(self):
        return self.now

    def __call__(self):
        self.now += self.seconds[min(self.count, len(self.seconds) - 1)]
        self.count += 1

    def sampler(self, **options):
        return Sampler(self, clock=self.clock, wait=lambda result: result, **options)


def test_calls_that_are_not_warm_yet_don_t_count():
    work = Work(*[0.1] * 7, *[0.05] * 3, 0.01)
    sampler = work.sampler()
    sampler.warm_up(3.0)
    sampler.measure(1.0, 0.02)
    assert sampler.is_stable
    assert sampler.warmed[:10] == pytest.approx([0.1] * 7 + [0.05] * 3)
    assert set(np.round(sampler.taken, 9)) == {0.01}


def test_a_warm_up_that_never_settles_ends_with_its_time():
    sampler = Work(*(0.001 * 1.1**i for i in range(200))).sampler()
    sampler.warm_up(0.5)
    assert not sampler.is_stable
    assert sampler.is_unsettled
    assert sum(sampler.warmed) < 0.6


def test_short_calls_are_made_many_times_a_sample():
    work = Work(1e-6)
    sampler = work.sampler()
    sampler.warm_up(0.1)
    sampler.measure(0.1, 0.01)
    assert sampler.samples.calls == 200
    assert sampler.samples.median == pytest.approx(1e-6)


def test_samples_of_many_calls_that_were_still_becoming_faster_don_t_count():
    sampler = Work(*[1e-6] * 40, *[2e-6] * 60_000, 1e-6).sampler()
    sampler.warm_up(1e-5)
    sampler.measure(0.2, 0.0)
    assert sampler.calls > 1
    assert sampler.left_out == 0
    assert max(sampler.taken) == pytest.approx(1e-6)


def test_samples_of_one_call_stay_as_they_are():
    sampler = Work(*[0.002] * 200, 0.001).sampler()
    sampler.warm_up(0.05)
    sampler.measure(1.0, 0.0)
    assert sampler.calls == 1
    assert max(sampler.taken) == pytest.approx(0.002)


def test_a_call_longer_than_all_the_time_is_measured_once():
    work = Work(10.0)
    sampler = work.sampler()
    sampler.warm_up(0.3)
    sampler.measure(1.0, 0.02)
    assert work.count == 2
    assert sampler.samples.noise == "only one sample: no error estimate"


def test_three_samples_are_taken_where_that_is_not_too_long():
    sampler = Work(1.2).sampler()
    sampler.warm_up(0.3)
    sampler.measure(1.0, 0.02)
    assert sampler.samples.count == 3


def test_measuring_ends_early_once_the_median_is_known_and_not_before_much_of_the_time_is_used():
    quiet, noisy = Work(0.001), Work(*(0.001 * (1 + i % 7) for i in range(3000)))
    counts = []
    for work in (quiet, noisy):
        sampler = work.sampler()
        sampler.warm_up(0.1)
        sampler.measure(1.0, 0.02)
        counts.append(sum(sampler.taken))
    assert 0.4 <= counts[0] <= 0.8
    assert counts[1] == pytest.approx(1.0, abs=0.02)


def test_preparing_arguments_is_not_measured():
    work = Work(0.01)

    def prepare():
        work.now += 0.5
        return ()

    sampler = work.sampler(prepare=prepare)
    sampler.warm_up(1.0)
    sampler.measure(3.0, 0.01)
    assert sampler.samples.median == pytest.approx(0.01)


def test_few_fresh_arguments_are_made_at_a_time_where_they_are_large():
    sampler = Work(1e-6).sampler(prepare=lambda: (), prepared_bytes=16 << 20)
    sampler.warm_up(0.01)
    assert sampler.calls == 4


def test_a_result_of_another_kind_than_the_first_ones_is_waited_for_too():
    results = iter([X] * 40)
    samples = steady(lambda: next(results, None), seconds=0.02)
    assert samples.count >= 3


# What the user had stays as it was ----------------------------------------------------------------------------------


@pytest.mark.parametrize("was_on", [True, False])
def test_garbage_is_not_collected_while_the_clock_runs_and_after_it_as_before(was_on):
    during = []
    (gc.enable if was_on else gc.disable)()
    try:
        steady(lambda: during.append(gc.isenabled()), seconds=0.01)
        assert gc.isenabled() is was_on
    finally:
        gc.enable()
    assert during[1:]
    assert not any(during[1:])


def test_an_interrupt_goes_through_and_leaves_everything_as_it_was():
    name = "jax_persistent_cache_min_compile_time_secs"
    before = getattr(jax.config, name)
    inner, ran = jax.jit(lambda x: x + 1, donate_argnums=0), []

    def interrupted(x):
        ran.append(1)
        if len(ran) == 6:  # the first is the trace, the others are eager calls
            raise KeyboardInterrupt
        return inner(x)

    x = X + 0
    with pytest.raises(KeyboardInterrupt):
        ex.time(interrupted, x, **QUICK)
    assert gc.isenabled()
    assert getattr(jax.config, name) == before
    assert not x.is_deleted()


def test_nothing_is_written_to_the_persistent_compilation_cache_and_its_setting_stays():
    name = "jax_persistent_cache_min_compile_time_secs"
    before = getattr(jax.config, name)
    seen = []

    def watched(x):
        seen.append(getattr(jax.config, name))
        return x + 1

    ex.time(watched, X, eager=False, **QUICK)
    assert seen[0] == float("inf")
    assert getattr(jax.config, name) == before
