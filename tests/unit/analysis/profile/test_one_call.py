"""From events to one call: what the calling thread did itself, the call that is drawn, and the recorder's own time."""

import math

import numpy as np
import pytest

from explorer.analysis.profile_attribution import Segments, timeline_of
from explorer.analysis.profile_recording import host_times, host_words, undisturbed, without_overhead
from explorer.model.results.profile_events import BETWEEN, HOST, REGION, THUNK, WAIT, Events, Op

NAMES = ("Python", "call", "wait", "between")
OPS = (Op(7, "m", "a"), Op(7, "m", "b"), Op(7, "m", "gone"))


def events(rows, windows, python=1):
    """Of rows (thread, start, end, kind, what)."""
    thread, start, end, kind, what = (list(column) for column in zip(*rows, strict=True)) if rows else ([],) * 5
    return Events(
        np.asarray(thread, np.int32), np.asarray(start, float), np.asarray(end, float), np.asarray(kind, np.int32),
        np.asarray(what, np.int64), ("w0", "w1"), OPS, NAMES, np.asarray(windows, float).reshape(-1, 2), python,
    )  # fmt: skip


TWO_CALLS = events(
    [
        (1, 0, 10, HOST, 0),
        (1, 1, 7, HOST, 1),
        (1, 2, 4, THUNK, 0),
        (1, 5, 6, WAIT, 2),
        (1, 8, 9, BETWEEN, 3),
        (1, 12, 13, HOST, 1),  # between the calls
        (1, 20, 30, HOST, 0),
        (0, 1, 9, HOST, 1),  # another thread's
        (1, 3, 9, REGION, 1),
    ],
    [(0, 10), (20, 30)],
)


def test_what_the_calling_thread_did_is_without_what_it_did_inside():
    # Python: 10 less 6 of the call and 1 between; the call: 6 less 2 of an instruction and 1 of waiting
    first = host_times(TWO_CALLS, np.array([True, False]))
    assert list(first.items()) == [("Python", 3.0), ("call", 3.0), ("between", 1.0), ("wait", 1.0)]
    both = host_times(TWO_CALLS, np.array([True, True]))
    assert list(both.items()) == [("Python", 6.5), ("call", 1.5), ("between", 0.5), ("wait", 0.5)]


def test_what_ends_after_what_is_around_it_is_cut_there():
    late = events([(1, 0, 4, HOST, 0), (1, 3, 6, HOST, 1)], [(0, 10)])
    assert host_times(late, np.array([True])) == {"Python": 3.0, "call": 1.0}
    after = events([(1, 0, 4, HOST, 0), (1, 4, 6, HOST, 1)], [(0, 10)])
    assert host_times(after, np.array([True])) == {"Python": 4.0, "call": 2.0}


def test_where_nobody_knows_the_calling_thread_nothing_is_said():
    assert host_times(events([(1, 0, 4, HOST, 0)], [(0, 10)], python=-1), np.array([True])) == {}
    assert host_times(TWO_CALLS, np.array([False, False])) == {}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("PjitFunction(f)", "jit's call of f"),
        ("ParseArguments", "reading the arguments"),
        ("BatchedDevicePut", "copying arguments to the device"),
        ("np.asarray(jax.Array)", "copying results to NumPy"),
        ("AllocateOutputBuffers", "allocating results"),
        ("TfrtCpuExecutable::Execute", "starting programs"),
        ("Wait for donation holds", "starting programs"),
        ("CollectGarbage", "freeing Python's objects"),
        ("block_until_ready", "waiting for the result"),
        ("anything", "anything"),
    ],
)
def test_what_the_runtime_calls_things_is_told_in_words(name, words):
    assert host_words({name: 1.0}) == {words: 1.0}


def test_what_is_split_up_is_told_together_the_longest_first():
    split = host_words({"a": 2.0, "BatchedDevicePut": 1.5, "BufferFromHost": 1.0, "b": 2.0})
    assert list(split.items()) == [("copying arguments to the device", 2.5), ("a", 2.0), ("b", 2.0)]


ROWS = [(7, "b"), (7, "a")]
CALLS = events([], [(0, 10), (20, 24), (40, 46)])
CUT = Segments(
    thread=np.array([0, 1, 0, 1, 0, 0, 0], np.int32),
    start=np.array([5, 41, 41, 40, 45, 44, 46], float),
    end=np.array([6, 43, 42, 40.5, 47, 45, 47], float),
    op=np.array([0, 0, 1, 0, 0, 2, 0], np.int32),
    waits=np.array([False, False, False, False, True, False, False]),
)


def test_the_call_that_took_about_as_long_as_most_is_drawn():
    # of 10, 4 and 6 seconds the last: from 40 to 46; what is no row, or begins as it ends, isn't in it
    drawn = timeline_of(CALLS, CUT, np.array([True] * 3), ROWS)
    assert (drawn.start.tolist(), drawn.end.tolist()) == ([0, 1, 1, 5], [0.5, 2, 3, 6])
    assert (drawn.thread.tolist(), drawn.op.tolist()) == ([1, 0, 1, 0], [1, 0, 1, 1])
    assert drawn.waits.tolist() == [False, False, False, True]
    assert (list(drawn.threads), drawn.seconds, drawn.left_out) == (["w0", "w1"], 6.0, 0)
    # of two the longer; a call that doesn't count isn't drawn
    first = timeline_of(CALLS, CUT, np.array([True, False, True]), ROWS)
    assert (first.seconds, first.start.tolist(), list(first.threads)) == (10.0, [5], ["w0"])
    none = timeline_of(CALLS, CUT, np.array([False] * 3), ROWS)
    assert (len(none), none.seconds, none.left_out) == (0, 0.0, 0)


@pytest.mark.parametrize(("most", "start", "left_out"), [(4, [0, 1, 1, 5], 0), (3, [1, 1, 5], 1), (2, [1, 5], 2)])
def test_where_there_is_no_room_the_shortest_are_left_out(most, start, left_out):
    drawn = timeline_of(CALLS, CUT, np.array([True] * 3), ROWS, most)
    assert (drawn.start.tolist(), drawn.left_out) == (start, left_out)


SECONDS, WEIGHT = np.array([1e-3, 2e-4]), np.array([10.0, 100.0])


def test_the_recorders_time_is_taken_off_each_event_alike():
    left, each = without_overhead(SECONDS, WEIGHT, 5.5e-5)
    assert (left.tolist(), each) == (pytest.approx([1e-3 - 5e-6, 2e-4 - 5e-5]), pytest.approx(5e-7))
    # others' events cost as much: 1,110 of them
    left, each = without_overhead(SECONDS, WEIGHT, 1.11e-4, others=1000.0)
    assert (left.tolist(), each) == (pytest.approx([1e-3 - 1e-6, 2e-4 - 1e-5]), pytest.approx(1e-7))


def test_what_is_over_the_most_an_event_can_cost_is_not_the_recorders():
    left, each = without_overhead(SECONDS, WEIGHT, 1.0)
    assert (left.tolist(), each) == (pytest.approx([1e-3 - 1.5e-5, 2e-4 - 1.5e-4]), 1.5e-6)


def test_from_no_op_nearly_all_is_taken():
    # as much as all is spare: a tenth of 30 % is left, 3 %
    left, _ = without_overhead(np.array([1e-6, 1e-3]), np.array([100.0, 1.0]), 1.0)
    assert left.tolist() == pytest.approx([3e-8, 1e-3 - 1.5e-6])
    # half is spare: half of 30 % is left of what had the more events
    left, _ = without_overhead(np.array([1e-4, 1e-4]), np.array([1000.0, 1.0]), 1e-4)
    assert left[0] == pytest.approx(1.5e-5)


@pytest.mark.parametrize("spare", [math.nan, 0.0, -1.0])
def test_where_nothing_is_known_to_be_spare_nothing_is_taken(spare):
    left, each = without_overhead(SECONDS, WEIGHT, spare)
    assert (left.tolist(), each) == (SECONDS.tolist(), 0.0)
    assert without_overhead(np.zeros(2), WEIGHT, 1.0)[1] == 0.0


def test_of_several_times_the_one_at_a_quarter_is_little_disturbed():
    assert undisturbed(np.array([5.0, 1.0, 3.0, 2.0, 4.0])) == 2.0
    assert math.isnan(undisturbed(np.zeros(0)))
