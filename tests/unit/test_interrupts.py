"""Ctrl-C at any time of twelve actions leaves the program as it was: see `tests/interrupts.py`."""

import os
import subprocess
import sys
import threading
import time

import pytest

from explorer.view.progress_bar import step_progress
from tests.interrupts import ACTIONS

pytestmark = pytest.mark.skipif(
    sys.gettrace() is not None, reason="what measures coverage has locks of its own, which an interrupt leaves closed"
)


@pytest.mark.parametrize("count", [12, pytest.param(1000, marks=pytest.mark.slow)])
def test_an_interrupt_at_any_time_of_an_action_leaves_no_thread_hook_or_changed_state(count):
    assert len(ACTIONS) == 12
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "tests.interrupts", "--count", f"{count}", "--seed", f"{count}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=1800)
    assert f"{count} interrupts" in done.stdout, done.stderr[-3000:]
    assert "0 left something" in done.stdout, done.stderr[-3000:]


def threads():
    return [thread for thread in threading.enumerate() if thread.name in ("explorer-progress", "explorer-passes")]


@pytest.mark.parametrize("place", ["before", "after"])
def test_an_interrupt_in_the_start_of_a_thread_that_shows_progress_ends_the_thread(monkeypatch, place):
    start = threading.Thread.start

    def interrupted(thread):
        if place == "after":
            start(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt), step_progress("f", {}, 1):
        pass
    until = time.monotonic() + 10
    while threads() and time.monotonic() < until:
        time.sleep(0.01)
    assert threads() == []


@pytest.mark.parametrize("number", [1, 2])
def test_an_interrupt_as_the_thread_is_asked_to_end_ends_it(monkeypatch, number):
    set_event, calls = threading.Event.set, []

    def interrupted(event):
        if threading.current_thread() is threading.main_thread():
            calls.append(event)
            if len(calls) == number:
                raise KeyboardInterrupt
        set_event(event)

    with pytest.raises(KeyboardInterrupt), step_progress("f", {}, 1):
        monkeypatch.setattr(threading.Event, "set", interrupted)
    monkeypatch.undo()
    until = time.monotonic() + 10
    while threads() and time.monotonic() < until:
        time.sleep(0.01)
    assert threads() == []


INTERRUPTED_COMPILE = """
import gc, os, signal, sys, time
import jax, jax.numpy as jnp, numpy as np
import explorer as ex

def new_function():
    def chain(x):
        for i in range(1500):
            x = jnp.tanh(x) * i + x
        return x
    return chain

def watched(function, x):
    with ex.watch():
        jax.jit(function)(x)

def observe(frame, event, _):
    if event == "call" and frame.f_code.co_name == "backend_compile_and_load":
        main = next(iter(frame.f_locals["module"].body.operations))
        if len(list(main.regions[0].blocks[0].operations)) > 1000:
            sys.setprofile(None)
            signal.setitimer(signal.ITIMER_REAL, 0.01)  # XLA reads this module for a tenth of a second

signal.signal(signal.SIGALRM, signal.default_int_handler)
action = {"explore": ex.explore, "time": ex.time, "watch": watched}[sys.argv[1]]
action(lambda x: x + 1, np.ones(8, np.float32))  # imports
try:
    sys.setprofile(observe)
    action(new_function(), np.ones(8, np.float32))
except KeyboardInterrupt:
    print("interrupted")
sys.setprofile(None)
jax.clear_caches()
gc.collect()
jax.jit(lambda x: x + 2).lower(np.ones(3)).as_text()
time.sleep(1)
sys.stdout.flush()
os._exit(0)  # the interpreter's end, while XLA works, is jaxlib's own
"""


@pytest.mark.parametrize("action", ["explore", "time", "watch"])
def test_a_compile_that_an_interrupt_leaves_running_does_not_crash_the_process(action):
    # XLA of jax 0.10 reads the module after the interrupt; a freed one crashes the process.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-X", "faulthandler", "-c", INTERRUPTED_COMPILE, action]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=300)
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr[-3000:]
