"""What else the machine does: told apart, and never a time claimed that it may have made."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from explorer.measure.disturbance import Block, Observer, ProcessorTimes, fixed_work, quiet_samples
from tests.benchmarks.noise import KINDS, WORK, Machine, Neighbour, timed

SPIN = "import os; os.sched_setaffinity(0, {cores!r})\nwhile True: pass"
WORKS = pytest.mark.skipif(ProcessorTimes().read() is None, reason="the system doesn't tell others' processor time")


@pytest.fixture(autouse=True)
def _calm_before(monkeypatch):
    monkeypatch.setattr(Observer, "best", WORK)


@pytest.mark.slow
@WORKS
def test_a_program_beside_is_seen_in_the_systems_account():
    cores = sorted(os.sched_getaffinity(0))[:1]
    # The account is of all cores that this process may use: what runs there already counts as well.
    process = subprocess.Popen([sys.executable, "-c", SPIN.format(cores=cores)])
    try:
        time.sleep(0.3)
        start, before = time.perf_counter(), ProcessorTimes().read()
        while time.perf_counter() < start + 0.5:
            pass
        after = ProcessorTimes().read()
        own = after[1] - before[1]
        assert after[0] - before[0] - own > 0.1
        assert own > 0
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def test_samples_of_quiet_blocks_count_and_all_do_where_those_are_too_few():
    calm, busy = Block(2, 0.1, 0.0, 0.2, WORK), Block(2, 0.1, 0.1, 0.1, WORK)
    slow = Block(2, 0.1, 0.0, 0.2, 1.3 * WORK)
    found = quiet_samples([calm, busy, slow, calm], 2, WORK, fewest=3)
    assert found.counted == (True, True, False, False, False, False, True, True)
    assert not found.is_disturbed
    found = quiet_samples([busy, busy, slow, calm], 2, WORK, fewest=3)
    assert all(found.counted)
    assert found.is_disturbed
    assert found.others == pytest.approx(0.5)
    assert found.own == pytest.approx(1.5)


def test_a_program_on_cores_that_nobody_needs_is_no_disturbance():
    found = quiet_samples([Block(5, 0.1, 0.1, 0.1, WORK)] * 3, 8, WORK, fewest=3)
    assert not found.is_disturbed
    assert found.others == pytest.approx(1.0)


def test_where_nobody_tells_nothing_is_claimed_of_others():
    found = quiet_samples([Block(5, 0.1, work=WORK)] * 3, 2, WORK, fewest=3)
    assert not found.is_disturbed
    assert found.others != found.others


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "memory" not in kind])
def test_beside_any_neighbour_the_interval_holds_the_truth_or_claims_nothing(kind):
    verdicts = []
    for number in range(10):
        own = 1.0 + number % 2
        samples = timed(Machine(5e-3, random.Random(f"{kind} {number}"), own=own, neighbours=KINDS[kind]), 0.7)
        verdicts.append(samples.is_too_noisy or samples.low <= 5e-3 * 1.007 <= samples.high)
    assert sum(verdicts) >= 9


def test_alone_something_is_claimed_and_beside_a_program_that_never_rests_nothing():
    alone = [timed(Machine(5e-3, random.Random(number)), 0.7) for number in range(10)]
    assert not any(samples.is_too_noisy for samples in alone)
    never = [Neighbour(1.0, 0.0, (1.5, 1.5))]
    busy = [timed(Machine(5e-3, random.Random(number), neighbours=never), 0.7) for number in range(10)]
    assert all(samples.is_too_noisy for samples in busy)


def test_quiet_time_is_waited_for_while_a_program_comes_and_goes():
    comes_and_goes = [Neighbour(0.15, 0.3, (2.0, 2.0))]
    machines = [Machine(5e-3, random.Random(number), neighbours=comes_and_goes) for number in range(10)]
    samples = [timed(machine, 0.7) for machine in machines]
    assert max(machine.now for machine in machines) <= 0.21 + 2 * 0.7 + 0.1
    left_out = [one for one in samples if one.left_out]
    assert len(left_out) >= 3
    assert all(one.median == pytest.approx(5e-3 * 1.007, rel=0.04) for one in left_out if not one.is_too_noisy)


@pytest.mark.slow  # a busy machine decides
def test_the_fixed_work_is_short_and_repeats_itself():
    start = time.perf_counter()
    took = sorted(fixed_work() for _ in range(20))
    assert (time.perf_counter() - start) / 20 < 0.05
    assert took[5] <= 1.5 * took[0]
