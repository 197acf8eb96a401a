"""What can go wrong while a function is profiled, and that it costs nobody anything."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from explorer._jax import profiling as profiling_module
from explorer._jax.profiling import live_programs, profiling
from explorer.analysis.profile_recording import Overhead
from explorer.analysis.profile_rows import overhead_notes

X = jnp.ones((128, 128)) * 0.01


def mixed(x):
    return jnp.sort(jnp.tanh(x @ x), axis=0).sum()


def test_what_is_no_function_is_refused():
    with pytest.raises(ex.errors.NotCallableError, match=r"write profile\(f, x\)"):
        ex.profile(X)


@pytest.mark.parametrize("described", [jax.ShapeDtypeStruct((3,), jnp.float32), ex.InputInfo((3,), jnp.float32)])
def test_a_description_of_an_array_is_refused(described):
    with pytest.raises(ex.errors.ArgumentsError, match="it takes arrays"):
        ex.profile(mixed, {"x": described})


@pytest.mark.parametrize("options", [{"runs": 0}, {"runs": 2.5}, {"warm_up": 0}, {"seconds": 0}, {"seconds": "1"}])
def test_options_out_of_range_are_refused_before_anything_runs(options):
    with pytest.raises(ex.errors.OptionError, match=next(iter(options))):
        ex.profile(pytest.fail, X, **options)


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_what_the_function_raises_in_a_run_is_raised_and_the_profiler_is_free_again(kind):
    calls = []

    def fails(x):
        calls.append(1)
        if len(calls) > 4:
            raise kind("in a run")
        return x

    with pytest.raises(kind, match="in a run"):
        ex.profile(fails, X, runs=10, compiled=False)
    assert ex.profile(jax.jit(mixed), X, runs=3).ops


def test_the_users_own_trace_is_not_disturbed(tmp_path):
    jax.profiler.start_trace(tmp_path)
    try:
        with pytest.raises(ex.errors.ProfilerBusyError, match="stop_trace"):
            ex.profile(jax.jit(mixed), X, runs=3)
    finally:
        jax.profiler.stop_trace()
    assert list(tmp_path.rglob("*.xplane.pb"))
    assert ex.profile(jax.jit(mixed), X, runs=3).ops


def test_a_profile_inside_of_a_profile_is_refused():
    inner = jax.jit(mixed)

    def nested(x):
        return ex.profile(inner, x, runs=3).runs

    with pytest.raises(ex.errors.ProfilerBusyError, match="records a profile already"), profiling():
        nested(X)
    assert ex.profile(inner, X, runs=3).ops


def test_threads_wait_for_each_other():
    function = jax.jit(mixed)
    found, errors = [], []

    def one():
        try:
            found.append(ex.profile(function, X, runs=3))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=one) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert all(profile.ops for profile in found)
    assert len(found) == 3


def test_without_a_profile_in_memory_it_goes_through_files(monkeypatch):
    monkeypatch.setattr(profiling_module, "_session", None)
    found = ex.profile(jax.jit(mixed), X, runs=3)
    assert found.ops
    assert "through files" in " ".join(found.notes)


def test_a_program_that_tells_no_text_keeps_its_time(monkeypatch):
    monkeypatch.setattr("explorer.measure.profile.live_programs", lambda wanted: {})
    found = ex.profile(jax.jit(mixed), X, runs=3)
    assert sum(op.seconds for op in found.ops) == pytest.approx(found.device_seconds)
    assert found.unattributed == pytest.approx(found.device_seconds)
    assert (list(found.lines), dict(found.captures)) == ([], {})
    assert "no line known" in repr(found)


def test_programs_are_found_by_their_number():
    def tripled(x):
        return x * 3

    function = jax.jit(tripled)
    for size in (4, 5):
        function(jnp.ones(size))
    assert live_programs({-5: "jit_tripled"}) == {}  # there are two, and none of this number
    assert live_programs({-5: "jit_no_such_module"}) == {}
    found = ex.profile(function, jnp.ones(5), runs=3)
    assert [capture.hlo.text.splitlines()[0].count("f32[5]") > 0 for capture in found.captures.values()] == [True]


def test_it_is_said_where_recording_took_its_time_too():
    little, much = Overhead(np.zeros(1), 1e-6, 1e-5, 10.0), Overhead(np.zeros(1), 1e-6, 2e-2, 20_000.0)
    assert overhead_notes(little, 0.011, 0.010) == []
    assert overhead_notes(much, 0.010, 0.010)[0].startswith(
        "20 ms that recording took were subtracted from a call: 1 µs for each of"
    )
    (note,) = overhead_notes(little, 0.030, 0.010)
    assert note.startswith("recorded, a call took 30 ms without that; not recorded, 10 ms")


@pytest.mark.slow
def test_a_loop_of_very_many_steps_is_recorded_less_often(monkeypatch):
    monkeypatch.setattr("explorer.measure.profile._BYTES", 1)
    found = ex.profile(jax.jit(mixed), X, seconds=100)
    assert len(found.events.windows) in (5, 10, 20)  # twice as many where it isn't clear which line takes most


def test_numpy_arguments_are_profiled_with_their_transfer():
    found = ex.profile(jax.jit(mixed), np.ones((128, 128), np.float32), runs=3)
    assert found.ops
