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
