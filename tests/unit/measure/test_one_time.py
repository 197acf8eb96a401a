"""One number for the time of a program's call: whatever shows it shows the same, and a second one that differs too."""

import gc
from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.capture.origins import agree_on_time, call_time
from explorer.model.results.timing import Samples

X = jnp.ones((64, 64))


def make_step():
    @jax.jit
    def step(x):
        for _ in range(8):
            x = jnp.tanh(x @ x)
        return x

    return step


def test_the_time_that_was_asked_for_is_the_capture_s_and_the_session_s():
    step = make_step()
    capture = ex.explore(step, X)
    assert capture.steady is None
    timing = ex.time(step, X, seconds=0.05, eager=False)
    assert capture.steady is timing.steady
    assert ex.session()["step"].run == timing.steady.median


def test_every_view_shows_the_time_that_is_known_and_none_of_its_own():
    step = make_step()
    known = Samples((1e-7,) * 4 + (0.0123,) + (100.0,) * 4)  # so wide that whatever is measured agrees with it
    agree_on_time(step, (X,), {}, known)
    capture = ex.explore(step, X)
    profile = ex.profile(step, X, runs=3)
    roofline = ex.roofline(profile, peaks=ex.Peaks("some machine", bandwidth=1e9, matmul={"f32": 1e9}))
    found = ex.what_if(step, X, precision="highest", seconds=0.01)
    again = capture.what_if(precision="highest", seconds=0.01)
    seconds = [profile.seconds, found.plain.seconds, again.plain.seconds, ex.session()["step"].run]
    assert [*seconds, capture.steady.median] == [0.0123] * 5
    assert "a call takes 12.3 ms" in roofline.notes
    for shown in (repr(profile), found.to_text(), again.to_text(), profile.to_text()):
        assert "12.3 ms" in shown


def test_a_profile_that_comes_first_is_what_the_others_show():
    step = make_step()
    profile = ex.profile(step, X, seconds=0.1)
    capture = ex.explore(step, X)
    assert capture.steady.median == profile.seconds


def test_another_shape_is_another_program():
    step = make_step()
    ex.time(step, X, seconds=0.01, eager=False)
    assert ex.explore(step, jnp.ones((8, 8))).steady is None
    assert ex.explore(step, jax.ShapeDtypeStruct(X.shape, X.dtype)).steady is not None


EARLY = Samples((0.010,) * 9)


@pytest.mark.parametrize("is_latest", [False, True])
def test_a_second_measurement_that_disagrees_is_shown_as_such(is_latest):
    step = make_step()
    assert agree_on_time(step, (X,), {}, EARLY) == (EARLY, "")
    later = Samples((0.020,) * 9)
    shown, note = agree_on_time(step, (X,), {}, later, is_latest=is_latest)
    assert shown is later
    assert note == "measured earlier: 10 ms (9.7 … 10.3 ms); now: 20 ms (19.4 … 20.6 ms)"
    assert call_time(step, (X,), {}) is later


def test_of_two_that_agree_the_first_is_shown_unless_only_the_time_was_asked_for():
    step = make_step()
    agree_on_time(step, (X,), {}, EARLY)
    alike = Samples((0.0101,) * 9)
    assert agree_on_time(step, (X,), {}, alike) == (EARLY, "")
    assert agree_on_time(step, (X,), {}, alike, is_latest=True) == (alike, "")
    assert call_time(step, (X,), {}) is alike


def test_the_session_says_that_two_measurements_disagree():
    step = make_step()
    ex.time(step, X, seconds=0.01, eager=False)
    agree_on_time(step, (X,), {}, Samples((100.0,) * 9), is_latest=True)
    timing = ex.time(step, X, seconds=0.01, eager=False)
    assert any(note.startswith("measured earlier: 100 s") for note in timing.notes)
    assert any("measured earlier: 100 s" in note for note in ex.session().report().notes)


def test_a_profile_of_a_longer_call_is_compared_with_what_is_known():
    step = jax.jit(lambda x: jax.lax.fori_loop(0, 300, lambda _, x: jnp.tanh(x @ x), x))
    x = jnp.ones((128, 128))
    agree_on_time(step, (x,), {}, Samples((100.0,) * 9))
    profile = ex.profile(step, x, runs=3)
    assert any(note.startswith("measured earlier: 100 s") for note in profile.notes)
    assert profile.seconds < 10


def test_methods_have_times_and_what_is_gone_has_none():
    class Model:
        @jax.jit
        def double(self):
            return self

        def step(self, x):
            return x * 2

    model = Model()
    agree_on_time(model.step, (X,), {}, EARLY)
    assert call_time(model.step, (X,), {}) is EARLY
    assert call_time(Model().step, (X,), {}) is None
    assert call_time(model.step, (X,), {"y": object()}) is None
    del model
    gc.collect()
    assert call_time(Model().step, (X,), {}) is None


def test_what_can_t_be_held_weakly_has_no_time_that_is_kept():
    class Slotted:
        __slots__ = ()

        def __call__(self, x):
            return x * 2

    function = Slotted()
    assert agree_on_time(function, (X,), {}, EARLY) == (EARLY, "")
    assert call_time(function, (X,), {}) is None
    step = make_step()
    assert agree_on_time(step, (X, [], {"unhashable": {1, 2}}), {}, EARLY) == (EARLY, "")


def test_a_loaded_capture_has_no_time(tmp_path):
    step = make_step()
    capture = ex.explore(step, X)
    agree_on_time(step, (X,), {}, EARLY)
    assert capture.steady is EARLY
    capture.save(tmp_path / "step.capture")
    assert ex.load(tmp_path / "step.capture").steady is None
    assert replace(capture, function="other").steady is None


@pytest.mark.slow
def test_a_step_that_was_explored_is_timed_as_its_capture_shows_it():
    def repeated(x):
        return jax.lax.fori_loop(0, 300, lambda _, x: jnp.tanh(x @ x), x)

    step, x = jax.jit(repeated), jnp.ones((128, 128))
    ex.explore(step, x)
    compiled = []

    def count(event, duration, fun_name="", **_):  # copies of arguments are programs of their own, once in a process
        is_compile = event == "/jax/core/compile/backend_compile_duration"
        compiled.extend([event] * (is_compile and "repeated" in fun_name))

    jax.monitoring.register_event_duration_secs_listener(count)
    try:
        ex.time(step, x, seconds=0.01, eager=False)
        assert len(compiled) == 1  # that of the first call, which is timed
        ex.profile(step, x, runs=3)
        ex.what_if(step, x, precision="highest", seconds=0.01)
        assert len(compiled) == 2  # the variant
    finally:
        jax.monitoring.unregister_event_duration_listener(count)


def test_a_program_over_a_mesh_of_devices_that_are_not_here_has_no_time_and_no_error():
    mesh = jax.sharding.AbstractMesh((4, 2), ("rows", "columns"))
    rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("rows"))
    assert call_time(jnp.sin, (jax.ShapeDtypeStruct((8, 8), "float32", sharding=rows),), {}) is None
