"""What repeated measurements say of a figure, and how surely."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.model.results.statistics import (
    attained,
    drift_of,
    effective_count,
    interval_of_median,
    ratio_interval,
    spread_of,
)

SECONDS = st.floats(1e-7, 1e3, allow_nan=False)
SERIES = st.lists(SECONDS, min_size=1, max_size=80)


def independent(rng, count):
    """A floor with a long tail, as timings have."""
    return 1 + rng.lognormal(-3, 1, count)


def spiked(rng, count):
    """One in ten is hit by something else."""
    return 1 + np.abs(rng.normal(0, 0.01, count)) + (rng.random(count) < 0.1) * rng.exponential(1, count)


def drifting(rng, count, memory=0.9):
    """What is slow now is slow a moment later too: autoregressive, of the first order."""
    shocks = rng.normal(0, math.sqrt(1 - memory**2), count)
    level, found = rng.normal(), []
    for shock in shocks:
        level = memory * level + shock
        found.append(level)
    return np.exp(0.05 * np.asarray(found))


def switching(rng, count, stay=15):
    """A machine that is fast for a while, then slow for a while."""
    is_slow = np.cumsum(rng.random(count) < 1 / stay) % 2 == rng.integers(2)
    return 1 + 0.2 * is_slow + np.abs(rng.normal(0, 0.03, count))


@pytest.mark.parametrize(
    ("noise", "count"),
    [(independent, 8), (independent, 40), (independent, 300), (spiked, 12), (spiked, 300), (drifting, 150),
     (drifting, 400), (switching, 300)],
)  # fmt: skip
def test_the_interval_holds_the_median_in_nine_of_ten_runs_whatever_the_noise(noise, count):
    rng = np.random.default_rng(7)
    truth = np.median(np.concatenate([noise(rng, 1000) for _ in range(100)]))
    runs = [interval_of_median(noise(rng, count).tolist()) for _ in range(200)]
    assert sum(low <= truth <= high for low, high in runs) >= 0.9 * len(runs)


def test_samples_that_follow_each_other_give_a_wider_interval_than_the_same_ones_shuffled():
    rng = np.random.default_rng(1)
    series = drifting(rng, 200, 0.95)
    low, high = interval_of_median(series.tolist())
    shuffled_low, shuffled_high = interval_of_median(rng.permutation(series).tolist())
    assert high - low > 1.5 * (shuffled_high - shuffled_low)


def test_the_ranks_of_independent_samples_are_those_of_the_binomial_distribution():
    # Published tables: of 10 samples the 2nd and 9th (97.9 %), of 20 the 6th and 15th (95.9 %), of 9 the 2nd and 8th.
    for count, rank in ((9, 2), (10, 2), (20, 6)):
        values = [float(i) for i in np.random.default_rng(0).permutation(count)]
        worth = effective_count(values)
        low, high = interval_of_median(values)
        if worth == count:
            assert (low, high) == (rank - 1, count - rank)
        assert low <= rank - 1
        assert high >= count - rank


@given(SERIES)
def test_the_median_is_in_its_interval(values):
    low, high = interval_of_median(values)
    # Computed from the median and its spread, the ends may be off by a rounding.
    assert low <= np.median(values) * (1 + 1e-12)
    assert high >= np.median(values) * (1 - 1e-12)


@given(SERIES, st.floats(1e-3, 1e3))
def test_the_interval_of_the_same_in_another_unit_is_the_same(values, unit):
    scaled = interval_of_median([value * unit for value in values])
    assert scaled == pytest.approx([end * unit for end in interval_of_median(values)], rel=1e-6)


@given(SERIES)
def test_more_confidence_takes_a_wider_interval(values):
    low, high = interval_of_median(values, 0.8)
    wider_low, wider_high = interval_of_median(values, 0.99)
    assert wider_low <= low
    assert high <= wider_high


@given(SERIES)
def test_samples_are_worth_at_least_one_and_at_most_their_number(values):
    assert 1 <= effective_count(values) <= len(values)


def test_equal_samples_have_no_spread_and_still_an_interval_for_what_other_runs_would_say():
    assert spread_of([0.5] * 20) == 0
    assert interval_of_median([0.5] * 20) == pytest.approx((0.495, 0.505))


def test_the_confidence_that_few_samples_reach_is_said():
    assert [round(attained(count, 0.95), 3) for count in (1, 3, 5, 6, 100)] == [0, 0.75, 0.938, 0.95, 0.95]


@given(st.lists(st.floats(0.9, 1.1), min_size=1, max_size=60), st.floats(0.2, 5))
def test_a_constant_ratio_is_found_however_both_change(baseline, factor):
    ratio, low, high = ratio_interval([factor * value for value in baseline], baseline)
    assert [ratio, low, high] == pytest.approx([factor, 0.99 * factor, 1.01 * factor])


def test_ratios_of_the_same_moment_hold_while_the_machine_becomes_slower():
    rng = np.random.default_rng(3)
    load = np.linspace(1, 3, 60)
    baseline = load * (1 + np.abs(rng.normal(0, 0.02, 60)))
    values = 2 * load * (1 + np.abs(rng.normal(0, 0.02, 60)))
    ratio, low, high = ratio_interval(values.tolist(), baseline.tolist())
    assert low <= 2 <= high
    assert high - low < 0.1
    assert ratio == pytest.approx(2, rel=0.03)


def test_a_drift_is_seen_and_noise_is_none():
    rng = np.random.default_rng(5)
    steady = 1 + np.abs(rng.normal(0, 0.05, 90))
    assert drift_of(steady.tolist()) == 0
    assert drift_of((steady * np.linspace(1, 1.5, 90)).tolist()) == pytest.approx(0.27, abs=0.08)
    assert drift_of([1.0, 2.0, 3.0]) == 0
