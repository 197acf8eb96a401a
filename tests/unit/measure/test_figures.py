"""When a measurement counts, when it ends and how often it is made, at the borders of each rule; times made by hand."""

import math
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

import explorer as ex
from explorer.analysis.profile_events import CALL, RESULT, events_of
from explorer.measure import disturbance
from explorer.measure import profile as profile_module
from explorer.measure.disturbance import Block, Observer, ProcessorTimes, Quiet, is_busy, quiet_samples
from explorer.measure.profile import _affordable, _check, _measured, _warmed_up, is_settled, record
from explorer.measure.steady import Sampler
from explorer.model.results.profile_events import Op

NAN = float("nan")

# What else runs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("others", "own", "seconds", "cores", "busy"),
    [
        (0.08, 1.6, 1.0, 2, True),  # more than two ticks and a twentieth, and more than 80 % of two cores
        (0.06, 1.9, 1.0, 2, False),  # the system's own may be as much
        (0.08, 1.5, 1.0, 2, False),  # a core was free
        (0.08, 1.6, 1.0, 4, False),
        (0.03, 0.14, 0.1, 2, True),
        (0.024, 0.2, 0.1, 2, False),
        (NAN, NAN, 0.1, 2, False),
    ],
)
def test_others_disturb_where_they_ran_and_the_cores_were_in_use(others, own, seconds, cores, busy):
    assert is_busy(Block(1, seconds, others, own), cores) is busy


def test_slower_work_and_busy_cores_leave_samples_out_until_too_few_are_left():
    calm, busy, slow = Block(2, 0.5, 0.0, 0.5, 1.0), Block(3, 0.5, 0.5, 0.5, 1.0), Block(1, 0.5, 0.0, 0.5, 1.125)
    found = quiet_samples([calm, busy, slow, calm], 1, 1.0, fewest=4)
    assert found == Quiet((True,) * 2 + (False,) * 4 + (True,) * 2, 0.0, 0.0, False, 1.0)
    found = quiet_samples([calm, busy, slow, calm], 1, 1.0, fewest=5)  # 4 are fewer
    assert found == Quiet((True,) * 8, 0.25, 0.0, True, 1.0)
    # 4 of 20 are a fifth, of 21 less.
    assert not quiet_samples([calm, calm, Block(16, 0.5, 0.5, 0.5, 1.0)], 1, 1.0, fewest=1).is_disturbed
    assert quiet_samples([calm, calm, Block(17, 0.5, 0.5, 0.5, 1.0)], 1, 1.0, fewest=1).is_disturbed
    # Of few samples that are all quiet nothing is disturbed, and of none.
    assert not quiet_samples([calm], 1, 1.0, fewest=5).is_disturbed
    nothing = quiet_samples([], 1, 1.0, fewest=5)
    assert (nothing.counted, nothing.is_disturbed, math.isnan(nothing.others)) == ((), False, True)
    assert math.isnan(nothing.slowed)
    assert math.isnan(nothing.own)


def test_fixed_work_may_take_six_percent_longer_and_the_median_of_that_is_said():
    blocks = [Block(1, 1.0, 0.0, 0.0, work) for work in (1.0, 1.05, 1.03, 1.0625)]
    found = quiet_samples(blocks, 1, 1.0, fewest=1)
    assert found.counted == (True, True, True, False)
    assert found.slowed == pytest.approx(0.03)


def test_a_block_is_what_went_on_since_the_one_before_without_the_fixed_work(monkeypatch):
    monkeypatch.setattr(Observer, "best", 5.0)
    account = iter([(10.0, 4.0), (11.0, 4.25), (11.5, 4.5), (12.0, 4.75), (13.0, 5.0), (13.0, 5.5), (13.0, 5.5)])
    work = iter([4.0, 3.0, 3.5])
    observer = Observer(lambda: next(account), lambda: next(work), cores=2)
    observer.begin()
    assert observer.block(3, 0.5) == Block(3, 0.5, 0.75, 0.25, 4.0)
    assert observer.block(2, 0.5) == Block(2, 0.5, 0.25, 0.25, 3.0)
    assert observer.block(1, 0.5) == Block(1, 0.5, 0.0, 0.5, 3.5)  # the accounts' ticks differ: not less than nothing
    assert Observer.best == 3.0


def test_where_no_account_is_kept_a_block_says_how_long_the_work_took_alone(monkeypatch):
    monkeypatch.setattr(Observer, "best", 5.0)
    observer = Observer(lambda: None, lambda: 4.0, cores=2)
    observer.begin()
    block = observer.block(3, 0.5)
    assert (block.samples, block.seconds, block.work) == (3, 0.5, 4.0)
    assert math.isnan(block.others)
    assert math.isnan(block.own)


#          user nice system idle iowait irq softirq steal guest
STAT = b"""cpu  1100 220 330 9000 800 44 55 66 7 0
cpu0 100 20 30 4000 400 4 5 6 7 0
cpu1 1000 200 300 5000 400 40 50 60 0 0
intr 123 456
"""


@pytest.mark.parametrize(
    ("cores", "count", "ticks"), [({0, 1}, 2, 1815), ({0}, 2, 165), ({1}, 2, 1650), ({0}, 1, 1815)]
)
def test_the_account_is_of_the_cores_that_this_process_may_use(cores, count, ticks, monkeypatch):
    monkeypatch.setattr(disturbance, "usable_cores", lambda: frozenset(cores))
    monkeypatch.setattr(disturbance.os, "cpu_count", lambda: count)
    monkeypatch.setattr(disturbance.os, "sysconf", lambda name: {"SC_CLK_TCK": 50}[name])
    monkeypatch.setattr(disturbance.os, "pread", lambda file, most, start: STAT[start : start + most])
    monkeypatch.setattr(disturbance, "process_time", lambda: 1.5)
    read = ProcessorTimes().read()
    if read is None:
        pytest.skip("the system doesn't tell others' processor time")
    assert read == (pytest.approx(ticks / 50), 1.5)


# Steady -------------------------------------------------------------------------------------------------------------


def sampler(taken=(), quiet=None, warmed=(), **options):
    made = Sampler(int, **options)
    made.taken, made._quiet, made.warmed = list(taken), quiet, list(warmed)
    return made


def quiet(counted, is_disturbed=False):
    return Quiet(tuple(counted), 0.0, 0.0, is_disturbed, 0.0)


@pytest.mark.parametrize(
    ("seconds", "prepared_bytes", "calls"),
    [(1e-4, 0, 2), (1e-3, 0, 1), (1e-6, 0, 200), (1e-6, 16 << 20, 4), (1e-4, 16 << 20, 2), (0.0, 0, 200_000)],
)
def test_a_sample_takes_a_fifth_of_a_millisecond_of_calls_whose_arguments_fit(seconds, prepared_bytes, calls):
    made = sampler(prepared_bytes=prepared_bytes)
    assert made._calls_for(seconds) == calls


SPREAD = [95.0, 90.0, 110.0, 105.0, 100.0]


@pytest.mark.parametrize(
    ("warmed", "is_settled"),
    [
        ([100.0] * 5 + [102.0] * 5, True),  # two percent
        ([100.0] * 5 + [103.0] * 5, False),
        ([100.0] * 5 + [98.0] * 5, True),
        ([100.0] * 5 + [97.0] * 5, False),
        ([100.0] * 9, False),
        ([300.0] * 7 + [100.0] * 10, True),  # what was before doesn't count
        (SPREAD + [105.0] * 5, True),  # within what the calls of one window differ by, but for the outermost
        (SPREAD + [106.0] * 5, False),
        (SPREAD + [95.0] * 5, True),
        (SPREAD + [94.0] * 5, False),
        ([100.0] * 5 + [1.0, 1.0, 101.0, 300.0, 300.0], True),  # medians are compared
    ],
)
def test_calls_have_settled_where_two_windows_are_alike(warmed, is_settled):
    assert sampler(warmed=warmed)._has_settled() is is_settled


@pytest.mark.parametrize(("count", "is_stable", "unsettled"), [(9, False, False), (10, False, True), (10, True, False)])
def test_of_a_few_calls_nobody_can_tell_that_they_change(count, is_stable, unsettled):
    made = sampler(warmed=[1.0] * count)
    made.is_stable = is_stable
    assert made.is_unsettled is unsettled


HALF = quiet([True, False] * 5)
FOUR_FIFTHS = quiet([True, True, True, True, False] * 2)


@pytest.mark.parametrize(
    ("count", "quiet", "seconds", "spent", "is_over"),
    [
        (3, None, 1.0, 1.0, True),
        (3, None, 1.0, 0.99, False),
        (2, None, 1.0, 1.0, False),  # three samples at least
        (2, None, 1.0, 4.9, False),
        (2, None, 1.0, 5.0, True),  # but for five times the time
        (2, None, 0.125, 7.0, False),  # and a second
        (2, None, 0.125, 8.0, True),
        (10, HALF, 1.0, 1.9, False),  # until as much time was quiet
        (10, HALF, 1.0, 2.0, True),
        (10, FOUR_FIFTHS, 1.0, 1.2, False),
        (10, FOUR_FIFTHS, 1.0, 1.25, True),
        (10, quiet([True] * 10, is_disturbed=True), 1.0, 1.9, False),
        (10, quiet([True] * 10, is_disturbed=True), 1.0, 2.0, True),
    ],
)
def test_the_time_is_up_once_as_much_of_it_was_quiet(count, quiet, seconds, spent, is_over):
    assert sampler([1.0] * count, quiet)._is_time_up(seconds, spent) is is_over


def test_samples_of_blocks_that_are_not_over_count():
    assert sampler([1.0, 2.0, 3.0], quiet([True, False]))._counted() == [1.0, 3.0]
    assert sampler([1.0, 2.0, 3.0])._counted() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("taken", "quiet", "precision", "is_precise"),
    [
        ([1.0] * 30, None, 0.02, True),
        ([1.0] * 29, None, 0.02, False),
        ([1.0] * 30, quiet([True] * 30, is_disturbed=True), 0.02, False),
        ([1.0] * 30, quiet([False]), 0.02, False),
        ([0.5, 1.0, 1.5] * 10, None, 0.02, False),
        ([1.0, 1.5] * 20, None, 0.2, True),  # 1.25 ± 0.25, a fifth
        ([1.0, 1.5] * 20, None, 0.19, False),
    ],
)
def test_samples_are_precise_if_their_median_is(taken, quiet, precision, is_precise):
    assert sampler(taken, quiet)._is_precise(precision) is is_precise


# Profiles -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "is_known"),
    [([], True), ([1.0], True), ([1.0, 0.9], True), ([1.0, 0.89], False), ([1.0, 0.95, 0.5], False)],
)
def test_the_hottest_line_is_known_where_one_stands_out_or_ties_are_close(seconds, is_known):
    assert is_settled(SimpleNamespace(hottest=[SimpleNamespace(seconds=one) for one in seconds])) is is_known


RECORDED = {
    # of a call's seconds, how many there is time and space for, what a recorded one takes: (recorded, beside)
    "settled at once": ((0.01, 10, 0.01, 1), [(10, 25)]),
    "twice as often, two times at most": ((0.01, 10, 0.01, 9), [(10, 25), (20, 25), (40, 25)]),
    "until it is": ((0.01, 10, 0.01, 2), [(10, 25), (20, 25)]),
    "60 calls at most": ((0.01, 30, 0.01, 9), [(30, 25), (60, 25)]),
    "twice the time at most": ((0.01, 10, 0.0625, 9), [(10, 25), (20, 25)]),
    "which may be used up": ((0.01, 10, 0.1, 9), [(10, 25), (20, 25)]),
    "of long calls two beside": ((1.0, 5, 1.0, 9), [(5, 2)]),
    "of short ones thirty": ((1e-4, 30, 1e-4, 1), [(30, 30)]),
}


@pytest.mark.parametrize("name", RECORDED)
def test_more_calls_are_recorded_until_the_hottest_line_is_known(name, monkeypatch):
    (once, affordable, seconds, settled_after), wanted = RECORDED[name]
    recorded = []

    def record_calls(target, calls, count, beside):
        recorded.append((count, beside))
        hottest = [SimpleNamespace(seconds=1.0), SimpleNamespace(seconds=0.5)]
        profile = SimpleNamespace(hottest=hottest[: 1 if len(recorded) >= settled_after else 2], seconds=seconds)
        return profile, None, None

    def afford(calls, in_time):
        assert in_time == pytest.approx(1.0 / once)
        return affordable

    monkeypatch.setattr(profile_module, "_warmed_up", lambda calls, times: once)
    monkeypatch.setattr(profile_module, "_affordable", afford)
    monkeypatch.setattr(profile_module, "_recorded", record_calls)
    _measured(None, None, None, 2, 1.0)
    assert recorded == wanted
    _measured(None, None, 7, 2, 1.0)  # where the number is given
    assert recorded[len(wanted) :] == [(7, 5)]


@pytest.mark.parametrize(
    ("size", "in_time", "calls"),
    [(1_000_000, 100, 24), (1_000_000, 7.9, 7), (12_000_000, 100, 5), (10, 100, 30), (0, 9, 9)],
)
def test_as_many_calls_are_recorded_as_there_is_time_and_space_for(size, in_time, calls, monkeypatch):
    @contextmanager
    def profiling():
        yield SimpleNamespace(data=bytes(size))

    monkeypatch.setattr(profile_module, "profiling", profiling)
    assert _affordable(SimpleNamespace(call=int, prepare=None), in_time) == calls


@pytest.mark.parametrize(("times", "calls"), [(1, 1), (2, 1), (5, 4)])
def test_the_first_call_was_a_warm_up_too_and_the_fastest_counts(times, calls, monkeypatch):
    now, took = [0.0], iter([3.0, 1.0, 2.0, 4.0])

    def call():
        now[0] += next(took)

    monkeypatch.setattr("explorer.measure.calls.perf_counter", lambda: now[0])
    made = SimpleNamespace(call=call, prepare=None)
    assert _warmed_up(made, times) == [None, 3.0, None, None, 1.0][calls]


def test_each_recorded_call_has_its_own_fresh_arguments():
    given = iter([(1,), (2,), (3,)])
    seen = []
    record(SimpleNamespace(call=seen.append, prepare=lambda: next(given)), 3)
    assert seen == [1, 2, 3]


@pytest.mark.parametrize("name", ["runs", "warm_up"])
def test_numbers_of_calls_are_whole_and_seconds_are_more_than_none(name):
    _check(1, 1, 0.1)
    _check(None, 1, 1)
    for value in (0, 1.5, True, "2"):
        with pytest.raises(ex.errors.OptionError) as raised:
            _check(**{"runs": 1, "warm_up": 1, "seconds": 1.0, name: value})
        assert str(raised.value) == f"{name}={value!r}: it is a whole number of calls, at least 1."
    for value in (0, -1, float("inf"), NAN, "1"):
        with pytest.raises(ex.errors.OptionError) as raised:
            _check(1, 1, value)
        assert str(raised.value) == f"seconds={value!r}: it is a number of seconds above 0."


def event(name, start, duration, **stats):
    return SimpleNamespace(name=name, start_ns=start, duration_ns=duration, stats=list(stats.items()))


def test_an_event_says_what_it_can_of_its_program_and_of_work_without_a_number():
    line = SimpleNamespace(
        name="worker",
        events=[
            event("dot", 1e9, 2e9, hlo_op="dot.1"),
            event("ThreadpoolListener::Record", 4e9, 0, _p=7),
            event("ThreadpoolListener::Record", 5e9, 0, _pt=7),
            event("ThreadpoolListener::StartRegion", 6e9, 0, _c=9),
        ],
    )
    calls = SimpleNamespace(name="python", events=[event(CALL, 5e9, 1e9), event(CALL, 0, 3e9), event(RESULT, 2e9, 1e9)])
    found = events_of([SimpleNamespace(name="/host:CPU", lines=[line, calls])])
    assert found.ops == (Op(-1, "", "dot.1"),)
    assert found.what.tolist() == [0, 7, -1, 9, 0, 0, 1]
    assert found.start.tolist() == [1, 4, 5, 6, 5, 0, 2]
    assert found.end.tolist() == [3, 4, 5, 6, 6, 3, 3]  # a region without an end lasts as long as its thread
    assert found.windows.tolist() == [[0, 3], [5, 6]]
    assert found.python == 1


def test_what_a_gpu_records_of_no_length_is_nothing():
    stream = SimpleNamespace(
        name="Stream #1", events=[event("k", 1e9, 0, hlo_op="a"), event("k", 2e9, 1e9, hlo_op="b")]
    )
    found = events_of([SimpleNamespace(name="/device:GPU:0", lines=[stream])])
    assert found.ops == (Op(-1, "", "b", "k"),)
    assert (found.start.tolist(), found.end.tolist()) == ([2], [3])
