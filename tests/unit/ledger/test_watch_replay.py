"""Looking again at what an event compiled: `capture` and `diff` of a watch."""

import gc
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex

SMALL, LARGE = jnp.ones(3), jnp.ones(4)


def compiles(ledger):
    return [event for event in ledger if event.kind == "compile"]


def test_an_event_leads_to_what_it_compiled_without_the_python_being_run_again():
    runs = []

    @jax.jit
    def double(x):
        runs.append(x.shape)
        return jnp.sin(x) * 2

    with ex.watch() as ledger:
        double(SMALL)
        double(LARGE)
        count = len(ledger)
        capture = ledger.capture(ledger.events[0])
        assert len(ledger) == count
    assert runs == [(3,), (4,)]
    assert capture.signature == "(x: f32[3])"
    assert "f32[3]" in capture.hlo.text
    assert ledger.capture(ledger.events[-1]).signature == "(x: f32[4])"
    assert runs == [(3,), (4,)]
    trace, lower, compile = ledger.events[:3]
    assert capture.durations == type(capture.durations)(trace.seconds, lower.seconds, compile.seconds)


def test_the_program_is_not_traced_again_and_compiled_once_more_for_exact_links():
    heard = []
    double = jax.jit(lambda x: jnp.sin(x) * 2)
    with ex.watch() as ledger:
        double(SMALL)
        double(jax.device_put(LARGE, jax.devices()[0]))
        double(np.ones(5, "int32"))
        double(1.0)

    def hear(event, seconds, **known):
        heard.append(event)

    jax.monitoring.register_event_duration_secs_listener(hear)
    try:
        captures = [ledger.capture(event) for event in compiles(ledger)]
    finally:
        jax.monitoring.unregister_event_duration_listener(hear)
    assert [c.signature for c in captures] == ["(x: f32[3])", "(x: f32[4])", "(x: i32[5])", "(x: f32[])"]
    assert "/jax/core/compile/jaxpr_trace_duration" not in heard
    assert heard.count("/jax/core/compile/backend_compile_duration") == 4
    for capture in captures:
        (sine,) = capture.hlo.graph.where("op:sine")
        assert capture.links.grade(sine, "jaxpr") == "exact"


def test_of_what_compile_made_the_executable_has_the_capture():
    with ex.watch() as ledger:
        executable = ex.compile(lambda x: x * 2, args=[ex.InputInfo((3,), "float32")])
    with pytest.raises(ex.errors.NotRecordedError, match=r"the Executable has it: \.explore\(\)"):
        ledger.capture(compiles(ledger)[-1])
    assert executable.explore().signature == "(x: f32[3])"


def test_static_arguments_keywords_and_trees_are_put_together_again():
    @partial(jax.jit, static_argnums=(1, 3), static_argnames="mode")
    def step(params, n, x, m, *, mode="a", scale=1.0):
        return {"y": params["w"] * n + x[0] * m * scale, "mode": 1 if mode == "a" else 2}

    with ex.watch() as ledger:
        step({"w": LARGE}, 3, (2.0, SMALL), 5, mode="b", scale=LARGE)
    capture = ledger.capture(ledger.events[-1])
    assert capture.signature == "(params: f32[4], x: 2 arrays, scale: f32[4])"


def test_the_difference_is_to_the_nearest_earlier_call():
    double = jax.jit(lambda x: x * 2)
    with ex.watch() as ledger:
        for size in (30, 40, 41):
            double(jnp.ones((size, 2)))
        double(jnp.ones(7))
        double(jnp.ones((41, 2), "int32"))
    last = compiles(ledger)[-1]
    assert last.reason.kind == "dtype"
    difference = ledger.diff(last)
    assert (difference.a.signature, difference.b.signature) == ("(x: f32[41,2])", "(x: i32[41,2])")


def test_a_call_that_jax_forgot_is_held_against_the_same_one():
    double = jax.jit(lambda x: x * 2)
    with ex.watch() as ledger:
        double(jnp.ones(30))
        double(jnp.ones(40))
        jax.clear_caches()
        double(jnp.ones(30))
    difference = ledger.diff(compiles(ledger)[-1])
    assert (difference.a.signature, difference.b.signature) == ("(x: f32[30])", "(x: f32[30])")


def test_of_a_first_call_there_is_no_difference():
    double = jax.jit(lambda x: x * 2)
    with ex.watch() as ledger:
        double(SMALL)
    with pytest.raises(ex.errors.NotRecordedError, match="no earlier call"):
        ledger.diff(ledger.events[-1])


def test_a_function_that_is_gone_is_said_to_be():
    with ex.watch() as ledger:
        jax.jit(lambda x: x * 2)(SMALL)
        jax.clear_caches()
        gc.collect()
    with pytest.raises(ex.errors.NotRecordedError, match=r"<lambda> \(test_watch_replay.py, line \d+\) is gone"):
        ledger.capture(ledger.events[-1])


def test_a_setting_that_is_another_now_is_named():
    double = jax.jit(lambda x: x * 2)
    with ex.watch() as ledger, jax.enable_x64(True):
        double(np.ones(3))
    with pytest.raises(ex.errors.NotRecordedError, match="jax_enable_x64 was True; now it is False"):
        ledger.capture(ledger.events[-1])


def test_a_trace_that_failed_and_an_event_of_a_file_have_nothing_to_show(tmp_path):
    @jax.jit
    def choose(x):
        return x if x > 0 else -x

    with ex.watch() as ledger, pytest.raises(jax.errors.TracerBoolConversionError):
        choose(1.0)
    with pytest.raises(ex.errors.NotRecordedError, match="never traced to its end"):
        ledger.capture(ledger.events[-1])
    with ex.watch() as other, pytest.raises(ex.errors.NotRecordedError, match="is not kept any more"):
        other.capture(ledger.events[-1])


def test_of_many_calls_the_last_ones_are_kept(monkeypatch):
    from explorer.ledger import replay

    monkeypatch.setattr(replay, "_MANY", 2)
    double = jax.jit(lambda x: x * 2)
    with ex.watch() as ledger:
        for size in (1, 2, 3):
            double(np.ones(size))
    assert ledger.capture(compiles(ledger)[1]).signature == "(x: f32[2])"
    with pytest.raises(ex.errors.NotRecordedError, match="last 2 calls"):
        ledger.capture(compiles(ledger)[0])


def test_a_function_that_jax_has_forgotten_is_traced_again_and_its_frames_are_the_users_alone():
    runs = []

    @jax.jit
    def double(x):
        runs.append(1)
        return jnp.sin(x) * 2

    with ex.watch() as ledger:
        double(SMALL)
    jax.clear_caches()
    capture = ledger.capture(ledger.events[-1])
    assert len(runs) == 2
    assert {frame.file for frame in capture.jaxpr.graph.frames} == {__file__}
