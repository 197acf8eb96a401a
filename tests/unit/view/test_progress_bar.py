"""The bar of a long measurement comes after a second, not too often, where it is wanted, and goes again."""

import io
import sys
import time

import pytest

import explorer as ex
from explorer.view import progress_bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Drawn(list):
    """A bar that keeps what it was asked to show."""

    def show(self, done, doing):
        self.append((done, doing))

    def close(self):
        self.append("closed")


@pytest.fixture
def drawn(monkeypatch):
    """What is drawn on a stream in a measurement of four seconds that says each eighth of one how far it is."""

    def run(stream, wanted):
        clock = iter(number / 8 for number in range(-1, 1000))
        bar = Drawn()
        monkeypatch.setattr(progress_bar, "perf_counter", lambda: next(clock))
        monkeypatch.setattr(progress_bar, "terminal_bar", lambda title, wanted: bar if wanted else Drawn())
        monkeypatch.setattr(sys, "stderr", stream)
        with progress_bar.progress_bar("timing", wanted) as notify:
            for step in range(33):
                notify(step / 32, f"run {step}")
        return bar

    return run


def test_it_is_for_who_looks_on(drawn):
    assert drawn(Terminal(), None)
    assert not drawn(io.StringIO(), None)
    assert not drawn(None, None)


def test_it_can_be_had_and_be_left_out(drawn):
    assert not drawn(Terminal(), False)
    assert drawn(io.StringIO(), True)


def test_it_waits_a_second_and_then_comes_five_times_a_second_at_most(drawn):
    *shown, last = drawn(Terminal(), True)
    assert shown == [(step / 32, f"run {step}") for step in range(7, 33, 2)]
    assert last == "closed"


def test_another_wish_is_refused():
    with pytest.raises(ex.ExplorerError, match="progress is 'yes'"), progress_bar.progress_bar("timing", "yes"):
        pass


def test_steps_say_which_are_done_and_how_long_the_current_one_runs(monkeypatch):
    bar = Drawn()
    monkeypatch.setattr(progress_bar, "_PATIENCE", 0.02)
    monkeypatch.setattr(progress_bar, "_TICK", 0.01)
    monkeypatch.setattr(progress_bar, "_bar", lambda title, wanted: bar)
    began = {}
    with progress_bar.step_progress("f is compiled", began, 3):
        for step in ("trace", "lower"):
            began[step] = time.perf_counter()
            while not any(shown[1].split(" · ")[-1].startswith(f"{step} …") for shown in bar):
                time.sleep(0.005)
    *shown, last = bar
    assert shown[0] == (0, "trace … 0 s")
    assert shown[-1][0] == 1 / 3
    assert shown[-1][1].startswith("trace ✓ ")
    assert last == "closed"


def test_quick_steps_show_nothing():
    with progress_bar.step_progress("f is compiled", {"trace": time.perf_counter()}, 1):
        pass
