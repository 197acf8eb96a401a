"""Amounts in words, at the places where the number of digits, the unit or the wording changes."""

import math

import pytest

from explorer.model.units import (
    amount_text,
    bytes_text,
    count_text,
    duration_text,
    factor_text,
    factors_text,
    fine_share_text,
    least_duration_text,
    range_text,
    rate_text,
    share_text,
)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),  # bytes are whole
        (1000, "1.0 kB"),
        (99_940, "99.9 kB"),
        (99_990, "100.0 kB"),  # below a hundred: to a tenth
        (100_400, "100 kB"),
        (999_400, "999 kB"),
        (999_600, "1.0 MB"),  # never 1,000 kB
        (999.6e6, "1.0 GB"),
        (1e12, "1.0 TB"),
        (1e18, "1.0 EB"),
        (1.5e21, "1,500 EB"),  # there is no larger unit
    ],
)
def test_bytes_have_three_digits_and_a_unit(size, text):
    assert bytes_text(size) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "0 "), (999, "999 "), (1000, "1.0 k"), (999_900, "999.9 k"), (999_960, "1.0 M"), (2e21, "2,000.0 E")],
)
def test_operations_have_a_digit_behind_the_point_from_a_thousand_on(amount, text):
    assert amount_text(amount) == text


def test_things_are_several_unless_they_are_one():
    assert [count_text(number, "size") for number in (0, 1, 2, 1000)] == ["0 sizes", "1 size", "2 sizes", "1,000 sizes"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1.0, "1 s"),
        (0.9999, "1 s"),  # as it is printed, and not 1e+03 ms
        (0.999, "999 ms"),
        (1234.0, "1,230 s"),
        (99.96, "100 s"),
        (0.00009994, "99.9 µs"),
        (1e-6, "1 µs"),
        (9.99e-7, "999 ns"),
        (1e-10, "0.1 ns"),
        (math.inf, "inf s"),
        (math.nan, "nan s"),
    ],
)
def test_seconds_are_in_the_unit_in_which_they_are_one_or_more(seconds, text):
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1.999, "1.99 s"),  # less than it is, never more
        (1.28, "1.28 s"),
        (0.0, "0 s"),
        (1e-11, "0.01 ns"),
        (1.99e-11, "0.01 ns"),  # not finer than that
        (math.nan, "nan s"),
        (math.inf, "inf s"),
    ],
)
def test_the_least_of_a_time_is_rounded_down(seconds, text):
    assert least_duration_text(seconds) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.5, 2.0, "0.5 … 2 s"),
        (0.5e-3, 999.9e-3, "0.0005 … 1 s"),
        (0.0, 0.0, "0 … 0 s"),
        (math.nan, 1.0, "nan … 1 s"),
        (1.0, math.inf, "1 … inf s"),
    ],
)
def test_a_range_is_in_the_unit_of_its_end(low, high, text):
    assert range_text(low, high) == text


@pytest.mark.parametrize(
    ("factor", "text"),
    [(1.994, "1.99×"), (1.996, "2.0×"), (99.94, "99.9×"), (99.96, "100×"), (1234.5, "1,234×"), (0.5, "0.50×")],
)
def test_a_factor_has_fewer_digits_the_larger_it_is(factor, text):
    assert factor_text(factor) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.5, 1.994, "0.50 … 1.99×"),
        (0.5, 1.996, "0.5 … 2.0×"),
        (10, 99.94, "10.0 … 99.9×"),
        (10, 99.96, "10 … 100×"),
        (1000, 2000, "1,000 … 2,000×"),
    ],
)
def test_an_interval_of_factors_has_the_digits_of_its_end(low, high, text):
    assert factors_text(low, high) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (0.0, "0 FLOP/s"),
        (999, "999 FLOP/s"),
        (999.6, "1 kFLOP/s"),
        (1000, "1 kFLOP/s"),
        (999.9e6, "1 GFLOP/s"),
        (1e18, "1 EFLOP/s"),
        (5e20, "500 EFLOP/s"),
        (5e21, "5e+03 EFLOP/s"),  # there is no larger unit
    ],
)
def test_a_rate_has_three_digits_and_a_unit(rate, text):
    assert rate_text(rate) == text


@pytest.mark.parametrize(
    ("share", "text", "fine"),
    [
        (0.0, "0%", "0%"),
        (-0.01, "-1%", "0%"),
        (0.0009, "under 1%", "<0.1%"),
        (0.001, "under 1%", "0.1%"),
        (0.00499, "under 1%", "0.5%"),
        (0.0051, "1%", "0.5%"),
        (0.0994, "10%", "9.9%"),
        (0.0996, "10%", "10%"),  # and not 10.0%
        (1.0, "100%", "100%"),
    ],
)
def test_a_share_is_in_percent_and_never_nothing_for_something(share, text, fine):
    assert (share_text(share), fine_share_text(share)) == (text, fine)
