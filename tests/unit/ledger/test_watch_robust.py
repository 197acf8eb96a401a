"""What a watch never does: reach the user's call, lose what it saw, or leave something behind."""

import gc
import importlib
import os
import subprocess
import sys
import threading
import time
import traceback
import weakref
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax._src import monitoring, pjit, util

import explorer as ex
from explorer.ledger.recorder import recorder

pytestmark = pytest.mark.slow

SMALL, LARGE = jnp.ones(3), jnp.ones(4)
PATCHED = ("_infer_params", "_run_python_pjit", "_pjit_call_impl_python")


def registered():
    return (
        *(getattr(pjit, name) for name in PATCHED),
        util.test_event_listener,
        *monitoring.get_event_listeners(),
        *monitoring.get_event_duration_listeners(),
        *monitoring.get_event_time_span_listeners(),
        *monitoring.get_scalar_listeners(),
    )


@pytest.fixture(autouse=True)
def nothing_is_left():
    before = registered()
    yield
    after = registered()
    assert len(before) == len(after)
    assert all(old is new for old, new in zip(before, after, strict=True))
    assert recorder.running == ()


def compiles(ledger, function="double"):
    return [event for event in ledger if event.kind == "compile" and event.function == function]


def doubling():
    def double(x):
        return x * 2

    return jax.jit(double)


def test_jax_is_as_it_was_after_a_watch_that_ended_with_an_error():
    before = registered()
    with pytest.raises(ZeroDivisionError), ex.watch():
        doubling()(SMALL / (1 // 0))
    assert registered() == before


def test_a_watch_goes_on_where_nobody_holds_it_and_its_listeners_are_told():
    told = []
    ex.watch().listen(lambda events: told.extend(events))
    gc.collect()
    doubling()(SMALL)
    assert [event.kind for event in told] == ["trace", "lower", "compile"]
    for sink in recorder.watches:
        sink.stop()


def test_stopping_twice_or_from_another_thread_or_within_a_call_is_stopping():
    watches = [ex.watch() for _ in range(4)]
    watches[0].stop(), watches[0].stop()
    thread = threading.Thread(target=watches[1].stop)
    thread.start(), thread.join()

    @jax.jit
    def stops(x):
        watches[2].stop()
        return x * 2

    stops(SMALL)
    doubling()(SMALL)
    watches[3].stop()
    assert [len(watch) for watch in watches] == [0, 0, 0, 6]
    assert not any(watch.on for watch in watches)


def test_the_last_watch_stopped_within_a_call_leaves_the_call_alone():
    @jax.jit
    def stops(x):
        ledger.stop()
        return x * 2

    ledger = ex.watch()
    assert stops(SMALL).tolist() == [2, 2, 2]
    assert len(ledger) == 0
    assert ledger.faults == ()


def test_nested_watches_each_see_everything_of_their_time():
    with ex.watch() as outer:
        doubling()(SMALL)
        with ex.watch() as inner:
            doubling()(LARGE)
        doubling()(jnp.ones(5))
    assert len(compiles(outer)) == 3
    assert [event.call for event in compiles(inner)] == [compiles(outer)[1].call]


def test_a_listener_that_fails_reaches_nobody_and_loses_nothing():
    def fail(events):
        raise RuntimeError("mine")

    with ex.watch() as ledger:
        ledger.listen(fail)
        doubling()(SMALL)
        doubling()(LARGE)
    assert len(compiles(ledger)) == 2


def test_a_fault_in_the_ledger_never_reaches_the_call_and_is_kept(monkeypatch):
    double = doubling()

    def fail(*args):
        raise RuntimeError("the ledger's own")

    for name in (
        "begin",
        "traced",
        "run",
        "end",
        "_read_key",
        "_emit_call",
        "_add_step",
        "_emit_miss",
        "_announce_compile",
    ):
        with monkeypatch.context() as broken, ex.watch() as ledger:
            broken.setattr(recorder, name, fail)
            assert double(jnp.ones(7)).tolist() == [2] * 7
            jax.clear_caches()
        assert all(str(fault) == "the ledger's own" for fault in ledger.faults), name
        assert ledger.faults or name in ("_emit_miss", "_announce_compile"), name


def test_another_listener_of_jax_that_fails_leaves_no_call_open():
    def fail(event, seconds, **known):
        if "backend_compile" in event:
            raise RuntimeError("somebody's")

    double = doubling()
    jax.monitoring.register_event_duration_secs_listener(fail)
    try:
        with ex.watch() as ledger:
            with pytest.raises(RuntimeError, match="somebody's"):
                double(SMALL)
            jax.monitoring.unregister_event_duration_listener(fail)
            double(LARGE)
    finally:
        if fail in monitoring.get_event_duration_listeners():
            jax.monitoring.unregister_event_duration_listener(fail)
    assert [event.error for event in ledger][:3].count("RuntimeError") == 1
    assert [event.kind for event in ledger][-3:] == ["trace", "lower", "compile"]
    assert len({event.call for event in ledger}) == 2


EXPLORER = str(Path(ex.__file__).parent)


class Hostile:
    """Equal to itself for JAX, and no help to anybody else."""

    calls = 0

    def __hash__(self):
        if sys._getframe(1).f_code.co_filename.startswith(EXPLORER):
            raise RuntimeError("no hash for you")
        return 1

    def __eq__(self, other):
        if sys._getframe(1).f_code.co_filename.startswith(EXPLORER):
            raise RuntimeError("no comparison")
        return self is other

    def __repr__(self):
        raise RuntimeError("no repr")


def test_a_static_argument_that_can_be_neither_hashed_nor_printed_is_told_by_its_type():
    @jax.jit(static_argnums=1)
    def scale(x, by):
        return x * 2

    with ex.watch() as ledger:
        scale(SMALL, Hostile())
        scale(LARGE, Hostile())
    (static,) = ledger.events[-1].key.statics
    assert (static.value, static.type, static.token) == ("<Hostile instance>", "Hostile", 0)
    assert len(compiles(ledger, "scale")) == 2


def test_an_interrupt_in_a_trace_passes_through_and_the_ledger_goes_on():
    interrupts = [KeyboardInterrupt]

    @jax.jit
    def double(x):
        if interrupts:
            raise interrupts.pop()
        return x * 2

    with ex.watch() as ledger:
        with pytest.raises(KeyboardInterrupt):
            double(SMALL)
        assert recorder.running == ()
        double(SMALL)
    assert [(event.kind, event.error) for event in ledger] == [
        ("trace", "KeyboardInterrupt"), ("trace", ""), ("lower", ""), ("compile", ""),
    ]  # fmt: skip
    assert [event.reason.kind for event in ledger] == ["raised", "first", "first", "first"]


def test_an_interrupt_in_a_compile_passes_through_and_the_ledger_goes_on(monkeypatch):
    from jax._src import compiler

    interrupts = [KeyboardInterrupt]
    compile_or_get_cached = compiler.compile_or_get_cached

    def interrupted(*args, **kwargs):
        if interrupts:
            raise interrupts.pop()
        return compile_or_get_cached(*args, **kwargs)

    monkeypatch.setattr(compiler, "compile_or_get_cached", interrupted)
    double = doubling()
    with ex.watch() as ledger:
        with pytest.raises(KeyboardInterrupt):
            double(SMALL)
        double(SMALL)
    assert [(event.kind, event.error) for event in ledger][:3] == [
        ("trace", ""), ("lower", ""), ("compile", "KeyboardInterrupt"),
    ]  # fmt: skip
    assert ledger.events[-1].kind == "compile"
    assert ledger.events[-1].error == ""


@pytest.mark.parametrize("where", ["begin", "traced", "run", "_read_key", "_emit_call"])
def test_an_interrupt_within_the_ledger_is_the_users_and_the_next_call_is_seen(monkeypatch, where):
    double = doubling()

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    with ex.watch() as ledger:
        with monkeypatch.context() as patched:
            patched.setattr(recorder, where, interrupted)
            with pytest.raises(KeyboardInterrupt):
                double(SMALL)
        double(LARGE)
    assert len(compiles(ledger)) == 1
    assert ledger.events[-1].error == ""
    assert ledger.faults == ()


def test_threads_that_compile_at_once_are_all_seen_each_under_its_name():
    names = [f"worker-{i}" for i in range(6)]
    gate = threading.Barrier(len(names))

    def work(i):
        gate.wait()
        for size in range(4):
            doubling()(jnp.ones(10 * i + size + 20))

    with ex.watch(storm=0) as ledger:
        threads = [threading.Thread(target=work, args=(i,), name=name) for i, name in enumerate(names)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    assert not ledger.faults
    for name in names:
        mine = [event for event in ledger if event.thread == name and event.function == "double"]
        assert [event.kind for event in mine] == ["trace", "lower", "compile"] * 4
    calls = [event.call for event in compiles(ledger)]
    assert len(set(calls)) == len(calls) == 24


def test_one_thread_shows_what_another_compiles():
    seen, begun, done = [], threading.Event(), threading.Event()

    @jax.jit
    def slow(x):
        begun.set()
        done.wait(10)
        return x * 2

    with ex.watch() as ledger:
        thread = threading.Thread(target=slow, args=(SMALL,), name="worker")
        thread.start()
        begun.wait(10)
        seen = ledger.running
        done.set()
        thread.join()
        assert ledger.running == ()
    (running,) = seen
    assert (running.function, running.stage, running.thread) == ("slow", "trace", "worker")
    assert running.call_site.text == "done.wait(10)"
    assert 0 <= time.time() - running.since < 20


def test_reloading_explorer_leaves_a_watch_on(monkeypatch):
    with ex.watch() as ledger:
        importlib.reload(sys.modules["explorer"])
        importlib.reload(sys.modules["explorer._jax.calls"])
        doubling()(SMALL)
    assert len(compiles(ledger)) == 1


def test_a_function_of_a_reloaded_module_is_a_new_function_of_its_family(tmp_path, monkeypatch):
    (tmp_path / "users_model.py").write_text("import jax\n@jax.jit\ndef double(x):\n    return x * 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("users_model")
    with ex.watch() as ledger:
        module.double(SMALL)
        importlib.reload(module).double(SMALL)
    first, second = compiles(ledger)
    assert (second.id, second.reason.kind) == ("[double/2]", "function")
    assert second.key.function.family == first.key.function.family
    del sys.modules["users_model"]


def test_a_second_explorer_on_top_does_not_disturb_the_first():
    here = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "explorer"}
    with ex.watch() as ledger:
        for name in here:
            del sys.modules[name]
        try:
            with importlib.import_module("explorer").watch() as second:
                doubling()(SMALL)
        finally:
            for name in [name for name in sys.modules if name.partition(".")[0] == "explorer"]:
                del sys.modules[name]
            sys.modules.update(here)
        doubling()(LARGE)
    assert [event.kind for event in second] == ["trace", "lower", "compile"]
    assert len(compiles(ledger)) == 2


def test_somebodys_own_function_on_top_of_ours_stays_and_is_told_no_lies():
    calls = []
    with ex.watch() as ledger:
        ours = pjit._infer_params

        def theirs(*args):
            calls.append(args)
            return ours(*args)

        pjit._infer_params = theirs
        doubling()(SMALL)
    assert pjit._infer_params is theirs
    with ex.watch() as again:
        doubling()(SMALL)
    doubling()(SMALL)
    assert len([args for args in calls if args[0].__name__ == "double"]) == 3
    assert [event.kind for event in ledger] == [event.kind for event in again] == ["trace", "lower", "compile"]
    pjit._infer_params = next(cell.cell_contents for cell in ours.__closure__ if callable(cell.cell_contents))


def test_all_listeners_cleared_by_somebody_ends_the_ledger_in_peace():
    before = monitoring.get_event_duration_listeners()
    with ex.watch():
        monitoring.get_event_duration_listeners()
        for listener in monitoring.get_event_duration_listeners():
            if listener not in before:
                jax.monitoring.unregister_event_duration_listener(listener)
        assert doubling()(SMALL).tolist() == [2, 2, 2]


def test_an_error_of_the_users_has_no_line_of_ours_in_its_traceback():
    @jax.jit
    def choose(x):
        return x if x > 0 else -x

    def told():
        with pytest.raises(jax.errors.TracerBoolConversionError) as caught:
            choose(1.0)
        return [
            (frame.filename, frame.lineno) for frame in traceback.extract_tb(caught.tb) if "jax/" not in frame.filename
        ], str(caught.value)

    plain = told()
    with ex.watch():
        watched = told()
    assert watched == plain


def test_a_program_is_the_same_to_the_last_source_line_with_a_watch():
    def texts():
        def step(x):
            y = jnp.sin(x)
            return jax.lax.scan(lambda c, _: (c * y, c), x, length=3)[0]

        step.__code__ = code
        traced = jax.jit(step).trace(SMALL)
        lowered = traced.lower()
        return [
            str(traced.jaxpr),
            [str(eqn.source_info.traceback) for eqn in traced.jaxpr.eqns],
            lowered.as_text(debug_info=True),
            lowered.compile().as_text(),
        ]

    def step(x):
        return jnp.sin(x) * jnp.cos(x)

    code = step.__code__
    texts()  # what it calls is traced, and keeps the stack of that
    found = []
    for watched in (False, True):
        watch = ex.watch() if watched else None
        found.append(texts())
        if watch is not None:
            watch.stop()
    plain, seen = found
    assert seen[0] == plain[0]
    assert seen[2] == plain[2]
    assert seen[3] == plain[3]


def test_nothing_that_was_called_is_kept_alive():
    class Weights:
        def __call__(self, x):
            return x * 2

    with ex.watch() as ledger:
        weights = Weights()
        array = jnp.ones(31)
        jax.jit(weights)(array)
        gone = weakref.ref(weights), weakref.ref(array)
        del weights, array
        jax.clear_caches()
        gc.collect()
        assert [reference() for reference in gone] == [None, None]
    assert len(ledger) > 0


FORK = """
import os, sys, threading, warnings
import jax, jax.numpy as jnp, explorer as ex
warnings.simplefilter("ignore")
double, x, y = jax.jit(lambda x: x * 2), jnp.ones(3), jnp.ones(4)
with ex.watch() as ledger:
    double(x)
    child = os.fork()
    if child == 0:
        ledger.stop()
        assert len(ledger) == 3
        from jax._src import pjit
        assert pjit._infer_params.__module__ == "jax._src.pjit"
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    double(y)
assert len(ledger) == 6, ledger
print("ok")
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_can_stop_its_watch_and_the_parents_goes_on():
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "ok", done.stderr


def test_without_jaxs_private_parts_listeners_alone_tell_names_and_seconds(monkeypatch):
    from explorer._jax import calls

    monkeypatch.setattr(calls, "_parts", None)
    before = registered()[:3]
    with ex.watch() as ledger:
        assert registered()[:3] == before
        doubling()(SMALL)
    assert [(event.kind, event.function) for event in ledger] == [
        ("trace", "double"), ("lower", "double"), ("compile", "double"),
    ]  # fmt: skip
    assert {event.reason.kind for event in ledger} == {"unknown"}
    assert all(event.seconds > 0 and event.call_site.text == "doubling()(SMALL)" for event in ledger)
    assert "listeners" in ledger.note


LOADED = """
import jax, jax.numpy as jnp, jax.monitoring
steps = []
jax.monitoring.register_event_duration_secs_listener(lambda event, seconds, **_: steps.append(event))
double, x = jax.jit(lambda x: x * 2), jnp.ones(3)
double(x)
steps.clear()
import explorer as ex
with ex.watch() as ledger:
    double(x)
assert not [step for step in steps if "/core/compile/" in step], steps
assert not ledger.events, ledger.events
"""


def test_a_watch_that_is_loaded_late_makes_no_compiled_function_compile_again():
    """On JAX 0.12 the import of `jax.extend` adds settings to every cache key."""
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
