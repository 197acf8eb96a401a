"""Each moment of each thread goes to the instruction that it works for."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.analysis.profile_attribution import regions, segments, shares, timeline_of
from explorer.analysis.profile_recording import host_times, host_words, without_overhead
from explorer.analysis.profile_rows import steady_runs
from explorer.model.results.profile_events import BETWEEN, HOST, RECORD, REGION, THUNK, WAIT, Events, Op

OPS = tuple(Op(1, "jit_f", f"op.{i}") for i in range(6))


def events(*rows, windows=((0.0, 100.0),), names=("Python", "dispatch"), ops=OPS):
    """Rows of thread, start, end, kind, what."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * 5
    thread, start, end, kind, what = columns
    return Events(
        np.asarray(thread, np.int32),
        np.asarray(start, np.float64),
        np.asarray(end, np.float64),
        np.asarray(kind, np.int32),
        np.asarray(what, np.int64),
        tuple(f"thread {i}" for i in range(1 + max(thread, default=0))),
        ops,
        names,
        np.asarray(windows, np.float64).reshape(-1, 2),
        0,
    )


def seconds(given_events, control=()):
    is_control = np.asarray([i in control for i in range(len(given_events.ops))])
    return shares(given_events, segments(given_events, is_control)).seconds[0].tolist()


def test_an_instruction_alone_has_all_of_its_time():
    assert seconds(events((0, 10, 14, THUNK, 2))) == [0, 0, 4, 0, 0, 0]


def test_a_loop_has_what_its_instructions_leave():
    rows = ((0, 0, 20, THUNK, 0), (0, 2, 5, THUNK, 1), (0, 6, 16, THUNK, 2), (0, 8, 9, THUNK, 3))
    assert seconds(events(*rows), control=(0, 2)) == [7, 3, 9, 1, 0, 0]


def test_two_threads_share_a_moment():
    assert seconds(events((0, 0, 10, THUNK, 0), (1, 4, 10, THUNK, 1))) == [4 + 3, 3, 0, 0, 0, 0]


def test_an_instruction_on_three_threads_has_three_quarters_of_a_moment_shared_with_one():
    rows = ((0, 0, 8, THUNK, 0), (0, 0, 0, RECORD, 7), (0, 0, 0, RECORD, 8))
    more = ((1, 0, 8, REGION, 7), (2, 0, 8, REGION, 8), (3, 0, 8, THUNK, 1))
    assert seconds(events(*rows, *more)) == [6, 2, 0, 0, 0, 0]


def test_work_handed_over_belongs_to_who_gave_it_though_its_own_event_has_ended():
    rows = ((0, 0, 3, THUNK, 0), (0, 1, 1, RECORD, 5), (1, 6, 9, REGION, 5))
    assert seconds(events(*rows)) == [6, 0, 0, 0, 0, 0]
    assert regions(events(*rows)) == {2: 0}


def test_work_handed_on_from_thread_to_thread_belongs_to_the_first():
    rows = (
        *((0, 0, 1, THUNK, 3), (0, 0.5, 0.5, RECORD, 1)),
        *((1, 2, 4, REGION, 1), (1, 3, 3, RECORD, 2)),
        (2, 5, 9, REGION, 2),
    )
    assert seconds(events(*rows)) == [0, 0, 0, 1 + 2 + 4, 0, 0]


def test_what_the_runtime_runs_inside_of_a_region_is_not_its_givers():
    """The last thread to finish a product goes on with the next instructions, inside of the region of the product."""
    rows = ((0, 0, 2, THUNK, 0), (0, 1, 1, RECORD, 5))
    inside = ((1, 2, 20, REGION, 5), (1, 6, 9, THUNK, 1), (1, 10, 16, THUNK, 2))
    assert seconds(events(*rows, *inside)) == [2 + 4, 3, 6, 0, 0, 0]


def test_what_the_runtime_hands_over_after_that_is_nobodys():
    rows = ((0, 0, 2, THUNK, 0), (0, 1, 1, RECORD, 5), (1, 2, 20, REGION, 5), (1, 6, 9, THUNK, 1))
    after = ((1, 12, 12, RECORD, 6), (2, 13, 18, REGION, 6), (2, 15, 17, THUNK, 2))
    assert seconds(events(*rows, *after)) == [2 + 4, 3, 2, 0, 0, 0]


def test_the_runtime_between_instructions_is_nobodys_but_in_a_loop_the_loops():
    assert seconds(events((0, 0, 9, BETWEEN, 0), (0, 3, 5, THUNK, 1))) == [0, 2, 0, 0, 0, 0]
    rows = ((0, 0, 10, THUNK, 0), (0, 1, 9, BETWEEN, 0), (0, 3, 5, THUNK, 1))
    assert seconds(events(*rows), control=(0,)) == [8, 2, 0, 0, 0, 0]


def test_a_thread_that_waits_has_no_part_unless_all_do():
    rows = ((0, 0, 10, THUNK, 0), (0, 4, 10, WAIT, 0), (1, 4, 8, THUNK, 1))
    assert seconds(events(*rows)) == [4 + 2, 4, 0, 0, 0, 0]


def test_a_collective_has_what_is_not_hidden_behind_other_work():
    given_events = events((0, 0, 10, THUNK, 0), (1, 2, 7, THUNK, 1))
    is_collective = np.asarray([True] + [False] * 5)
    found = shares(given_events, segments(given_events, None, is_collective))
    assert found.seconds[0, :2].tolist() == [5, 5]


def test_work_done_while_waiting_is_its_own_and_the_wait_goes_on():
    rows = ((0, 0, 10, THUNK, 0), (0, 2, 10, WAIT, 0), (1, 0, 10, THUNK, 1), (1, 1, 1, RECORD, 3), (0, 4, 6, REGION, 3))
    assert seconds(events(*rows)) == [1, 9, 0, 0, 0, 0]


def test_a_region_that_the_recording_cut_off_ends_with_the_call():
    rows = ((0, 0, 2, THUNK, 0), (0, 1, 1, RECORD, 5), (1, 3, 500, REGION, 5))
    assert seconds(events(*rows, windows=((0, 10),))) == [9, 0, 0, 0, 0, 0]


def test_a_region_whose_giver_was_not_seen_is_nobodys():
    assert seconds(events((0, 0, 5, REGION, 99), (0, 1, 2, THUNK, 4), (1, 0, 5, REGION, -1))) == [0, 0, 0, 0, 1, 0]


def test_work_that_gives_itself_away_in_a_damaged_recording_is_nobodys():
    rows = ((0, 0, 5, REGION, 1), (0, 1, 1, RECORD, 2), (1, 0, 5, REGION, 2), (1, 1, 1, RECORD, 1))
    assert seconds(events(*rows)) == [0] * 6


def test_what_runs_between_two_calls_is_in_neither():
    rows = ((0, 1, 2, THUNK, 0), (0, 12, 15, THUNK, 0), (0, 21, 25, THUNK, 1))
    given_events = events(*rows, windows=((0, 10), (20, 30)))
    found = shares(given_events, segments(given_events))
    assert found.seconds[:, :2].tolist() == [[1, 0], [0, 4]]
    assert found.count[:, :2].tolist() == [[1, 0], [0, 1]]
    assert found.busy.tolist() == [1, 4]


def test_nothing_recorded_is_nothing_attributed():
    found = shares(events(windows=()), segments(events(windows=())))
    assert found.seconds.shape == (0, 6)
    assert len(segments(events())) == 0


def test_a_loop_that_ends_before_its_instructions_by_the_clock_cuts_them_off():
    assert seconds(events((0, 0, 10, THUNK, 0), (0, 8, 12, THUNK, 1)), control=(0,)) == [8, 2, 0, 0, 0, 0]


# Any timeline ---------------------------------------------------------------------------------------------------------


@st.composite
def timelines(draw):
    """Threads with nested events of any kind at whole seconds, handing work to each other."""
    rows, works = [], draw(st.integers(1, 5))

    def nested(thread, start, end, depth):
        at = start
        while at < end and len(rows) < 40:
            begin = draw(st.integers(at, end))
            stop = draw(st.integers(begin, end))
            kind = draw(st.sampled_from([THUNK, THUNK, REGION, WAIT, BETWEEN, HOST]))
            what = draw(st.integers(0, {THUNK: len(OPS) - 1, REGION: works}.get(kind, 1)))
            rows.append((thread, begin, stop, kind, what))
            if draw(st.booleans()) and begin < stop:
                moment = draw(st.integers(begin, stop))
                rows.append((thread, moment, moment, RECORD, draw(st.integers(0, works))))
            if depth < 3 and draw(st.booleans()):
                nested(thread, begin, stop, depth + 1)
            at = stop + 1

    for thread in range(draw(st.integers(1, 4))):
        nested(thread, 0, draw(st.integers(1, 40)), 0)
    edges = sorted(draw(st.lists(st.integers(0, 45), min_size=2, max_size=6, unique=True)))
    windows = [pair for pair in zip(edges[::2], edges[1::2], strict=False)]
    control = np.asarray(draw(st.lists(st.booleans(), min_size=len(OPS), max_size=len(OPS))))
    return events(*rows, windows=windows), control


def union(starts, ends):
    """The seconds in which any of the stretches is open."""
    total, until = 0.0, -np.inf
    for start, end in sorted(zip(starts, ends, strict=True)):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


@given(timelines())
def test_what_instructions_have_adds_up_to_the_time_in_which_any_ran(given_timeline):
    given_events, control = given_timeline
    cut = segments(given_events, control)
    found = shares(given_events, cut)
    assert (found.seconds >= -1e-12).all()
    for run, (begin, end) in enumerate(given_events.windows):
        inside = (cut.start >= begin) & (cut.start < end)
        busy = union(cut.start[inside], np.minimum(cut.end[inside], end))
        assert found.seconds[run].sum() == pytest.approx(busy, abs=1e-9)
        assert busy <= end - begin + 1e-9


@given(timelines())
def test_the_stretches_of_a_thread_do_not_overlap_and_lie_in_events(given_timeline):
    given_events, control = given_timeline
    cut = segments(given_events, control)
    for thread in range(len(given_events.threads)):
        mine = cut.thread == thread
        starts, ends = cut.start[mine], cut.end[mine]
        assert (starts < ends).all()
        assert (starts[1:] >= ends[:-1]).all()
        own = (given_events.thread == thread) & (given_events.kind != HOST)
        whole = union(given_events.start[own], given_events.end[own])
        assert (ends - starts).sum() <= whole + 1e-9


@given(timelines(), st.randoms(use_true_random=False))
def test_the_order_of_events_does_not_matter(given_timeline, random):
    given_events, control = given_timeline
    order = list(range(len(given_events)))
    random.shuffle(order)
    mixed = replace(
        given_events,
        **{name: getattr(given_events, name)[order] for name in ("thread", "start", "end", "kind", "what")},
    )
    there = shares(given_events, segments(given_events, control)).seconds
    assert shares(mixed, segments(mixed, control)).seconds == pytest.approx(there)


@given(timelines())
def test_what_the_host_did_adds_up_to_its_time_without_the_instructions_on_its_thread(given_timeline):
    given_events, _ = given_timeline
    found = host_times(given_events, np.ones(len(given_events.windows), bool))
    assert all(seconds > 0 for seconds in found.values())
    mine = given_events.thread == 0
    whole = union(given_events.start[mine], given_events.end[mine])
    assert sum(found.values()) * max(len(given_events.windows), 1) <= whole + 1e-9


# The host, the runs, the timeline -------------------------------------------------------------------------------------


def test_what_the_host_did_is_without_what_it_did_inside():
    given_events = events((0, 0, 10, HOST, 0), (0, 2, 5, HOST, 1), (0, 6, 7, THUNK, 0), (1, 0, 9, HOST, 1))
    assert host_times(given_events, np.asarray([True])) == {"Python": 6.0, "dispatch": 3.0}


def test_what_the_host_did_is_said_in_words_and_what_belongs_together_once():
    told = host_words({"CommonPjRtLoadedExecutable::ExecutePrepare": 1.0, "Handle inputs": 2.0, "some more": 0.5})
    assert told == {"starting programs": 3.0, "some more": 0.5}
    assert host_words({"np.asarray(jax.Array)": 1.0}) == {"copying results to NumPy": 1.0}


def test_a_call_that_was_disturbed_is_left_out():
    assert steady_runs(np.asarray([10, 10.1, 9.9, 30, 10.2])).tolist() == [True, True, True, False, True]
    assert steady_runs(np.asarray([10.0])).tolist() == [True]
    assert steady_runs(np.zeros(0)).tolist() == []


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=50))
def test_at_least_a_quarter_of_the_calls_count(walls):
    assert steady_runs(np.asarray(walls)).sum() * 4 >= len(walls)


def test_where_others_run_more_than_half_of_the_time_the_undisturbed_calls_count():
    assert steady_runs(np.asarray([1.0, 2.1, 1.01, 2.4, 1.9, 2.2, 0.99])).tolist() == [
        True, False, True, False, False, False, True,
    ]  # fmt: skip


def test_the_timeline_is_of_the_call_in_the_middle_with_the_longest_stretches():
    rows = [(0, 100 + i, 100 + i + 0.1 + i / 100, THUNK, i % 2) for i in range(10)]
    given_events = events((0, 1, 2, THUNK, 0), *rows, windows=((0, 5), (100, 111), (200, 230)))
    cut = segments(given_events)
    keys = [(1, "op.1"), (1, "op.0")]
    found = timeline_of(given_events, cut, np.asarray([True] * 3), keys, most=4)
    assert (len(found), found.left_out, found.seconds) == (4, 6, 11)
    assert found.start.tolist() == [6, 7, 8, 9]
    assert found.op.tolist() == [1, 0, 1, 0]
    assert found.threads == ["thread 0"]


@given(
    st.lists(st.tuples(st.floats(1e-7, 1e-2), st.integers(1, 5000)), min_size=1, max_size=20),
    st.floats(0, 1e-2),
)
def test_no_more_is_taken_off_than_recording_cost_and_no_op_loses_all(ops, spare):
    seconds, weight = np.asarray([op[0] for op in ops]), np.asarray([float(op[1]) for op in ops])
    left, each = without_overhead(seconds, weight, spare)
    assert (seconds - left).sum() <= spare * (1 + 1e-6) + 1e-12
    assert (left <= seconds).all()
    assert 0 <= each <= 1.5e-6
    assert (left > 0).all()


def test_what_each_event_costs_is_found_where_the_truth_is_known():
    truth, count = np.asarray([1e-3, 2e-4, 5e-4]), np.asarray([1.0, 300.0, 300.0])
    left, each = without_overhead(truth + 0.6e-6 * count, count, 0.6e-6 * count.sum())
    assert left == pytest.approx(truth, rel=1e-3)
    assert each == pytest.approx(0.6e-6, rel=1e-3)


def test_of_a_short_call_whose_recording_is_the_hosts_its_instructions_lose_their_part_alone():
    left, each = without_overhead(np.asarray([2e-5]), np.asarray([3.0]), 2e-5, others=17.0)
    assert each == pytest.approx(1e-6)
    assert left == pytest.approx([1.7e-5])


def test_nothing_is_taken_off_where_a_plain_call_is_not_known_or_no_faster():
    for spare in (float("nan"), 0.0, -1e-3):
        left, each = without_overhead(np.asarray([1e-3]), np.asarray([10.0]), spare)
        assert (left.tolist(), each) == ([1e-3], 0.0)
