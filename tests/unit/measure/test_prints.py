"""What a measured function prints is shown for one call, then muted and counted; what other threads print, never."""

import io
import re
import sys
import threading
import time

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.capture.script import printed_once

X = jnp.arange(4.0)
QUICK = {"seconds": 0.05, "progress": False}


def talking(x):
    jax.debug.print("it is {}", x.sum())
    return x * 2


@pytest.mark.parametrize(
    "measure",
    [
        lambda: ex.time(jax.jit(talking), X, eager=False, **QUICK),
        lambda: ex.time(talking, X, **QUICK),
        lambda: ex.profile(jax.jit(talking), X, runs=5),
        lambda: ex.sweep(talking, X, over={"dtype": [jnp.float32]}, **QUICK),
    ],
)
def test_a_callback_prints_once_and_the_rest_is_counted(measure, capsys):
    found = measure()
    jax.effects_barrier()
    assert capsys.readouterr().out == "it is 6.0\n"
    (note,) = [note for note in found.notes if "it prints" in note]
    assert int(re.search(r"then ([\d,]+) line", note)[1].replace(",", "")) >= 5


def test_each_of_what_is_compared_prints_once(capsys):
    def other(x):
        jax.debug.print("other")
        return x * 2

    found = ex.compare({"one": jax.jit(talking), "two": jax.jit(other)}, X, **QUICK)
    assert capsys.readouterr().out == "it is 6.0\nother\n"
    assert any("it prints" in note for note in found.notes)


def test_what_prints_nothing_has_no_note_and_the_stream_is_the_users_again(capsys):
    before = sys.stdout
    found = ex.time(jax.jit(lambda x: x + 1), X, **QUICK)
    assert not any("print" in note for note in found.notes)
    assert sys.stdout is before


def test_the_stream_is_the_users_again_after_an_error():
    def fails(x):
        raise ValueError("no")

    before = sys.stdout
    with pytest.raises(ValueError, match="no"):
        ex.profile(fails, X, compiled=False)
    assert sys.stdout is before


def test_other_threads_print_as_ever(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    with printed_once() as prints, prints.muted():
        thread = threading.Thread(target=print, args=("from a thread",))
        thread.start()
        thread.join()
        print("muted")
        time.sleep(0)
    assert stream.getvalue() == "from a thread\n"
    assert prints.lines == 1
