"""Where values and ticks stand on an axis: by hand."""

import itertools
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from explorer.view.scale import Scale, log_ticks, ratio_scale, rows_scale, scale_of, without_crowding


@pytest.mark.parametrize(
    ("scale", "value", "place"),
    [
        (Scale(0, 10, (), ()), 2.5, 150),
        (Scale(10, 0, (), ()), 2.5, 250),  # from the other end
        (Scale(0, 10, (), ()), 20, 500),  # beyond it
        (Scale(3, 3, (), ()), 3, 200),  # of one value: in the middle
        (Scale(1, 100, (), (), True), 10, 200),
        (Scale(1, 100, (), (), True), 100, 300),
        (Scale(0.01, 1, (), (), True), 0.1, 200),
    ],
)
def test_a_value_stands_between_the_ends_in_proportion_or_by_its_factor(scale, value, place):
    assert scale.at(value, 100, 300) == pytest.approx(place)


def test_what_has_no_logarithm_stands_at_the_least_that_has_one():
    scale = Scale(1e-300, 1.0, (), (), True)
    assert scale.at(0.0, 0, 300) == pytest.approx(300 * (1 - math.log(2.2250738585072014e-308) / math.log(1e-300)))


@pytest.mark.parametrize(
    ("values", "ends", "ticks"),
    [
        # Up to a factor of ten from 0, with a sixteenth of room above.
        ([1.0, 4.5], (0, 4.77), (0, 1, 2, 3, 4)),
        ([1.0, 10.0], (0, 10.6), (0, 2, 4, 6, 8, 10)),
        ([6.0], (0, 6.36), (0, 1, 2, 3, 4, 5, 6)),
        ([6.1], (0, 6.466), (0, 2, 4, 6)),
        ([-1.0, 2.0], (-1, 2.18), (-1, -0.5, 0, 0.5, 1, 1.5, 2)),
        ([-4.0, -2.0], (-4, 1.3), (-4, -3, -2, -1, 0, 1)),
        ([0.0], (0, 1.06), (0, 0.2, 0.4, 0.6, 0.8, 1)),
        ([], (0, 1.06), (0, 0.2, 0.4, 0.6, 0.8, 1)),
        ([0.0, 30.0], (0, 31.8), (0, 5, 10, 15, 20, 25, 30)),  # 0 has no place on a logarithmic one
        ([math.nan, 4.5, math.inf, -math.inf], (0, 4.77), (0, 1, 2, 3, 4)),
    ],
)
def test_values_within_a_factor_of_ten_are_on_a_scale_from_zero(values, ends, ticks):
    scale = scale_of(values, "{:g}".format)
    assert not scale.is_log
    assert (scale.low, scale.high) == pytest.approx(ends)
    assert scale.ticks == pytest.approx(ticks)
    assert scale.texts == tuple(f"{tick:g}" for tick in ticks)


def test_values_further_apart_are_on_a_logarithmic_scale_with_room_at_both_ends():
    scale = scale_of([1.0, 1000.0], "{:g}".format)
    assert scale.is_log
    assert (scale.low, scale.high) == pytest.approx((1000**-0.06, 1000**1.06))
    assert scale.texts == ("1", "10", "100", "1000")
    assert scale_of([1.0, 10.01], "{:g}".format).is_log
    assert scale_of([1.0, 1000.0], "{:g}".format, room=0.0).low == pytest.approx(1.0)


def test_ticks_that_would_say_the_same_are_one():
    assert scale_of([0.4, 1.0], "{:.0f}".format).texts == ("0", "1")
    assert scale_of([0.4, 1.0], "{:.0f}".format).ticks == pytest.approx((0.0, 0.6))


def test_values_that_are_marked_have_their_ticks_and_the_scale_ends_near_them():
    marked = [(4.0, "four"), (8.0, "eight")]
    scale = scale_of([4.0, 8.0], str, marked=marked)
    assert (scale.low, scale.high, scale.ticks, scale.texts) == (
        pytest.approx(3.76), pytest.approx(8.24), (4.0, 8.0), ("four", "eight"),
    )  # fmt: skip
    assert scale_of([1.0, 100.0], str, marked=[(1.0, "one")]).texts == ("one",)
    # One value is in the middle, 0 as well.
    assert [scale_of([value], str, marked=[(value, "x")]).at(value, 0, 100) for value in (4.0, -4.0, 0.0)] == [50] * 3
    alone = scale_of([-4.0], str, marked=[(-4.0, "x")])
    assert (alone.low, alone.high) == (-8.0, 0.0)


@pytest.mark.parametrize(
    ("low", "high", "most", "ticks"),
    [
        (1.0, 10.0, 4, [1, 2, 5, 10]),
        (1.0, 10.0, 3, [1, 10]),
        (0.9, 110.0, 7, [1, 2, 5, 10, 20, 50, 100]),
        (0.9, 110.0, 6, [1, 10, 100]),
        (1.0, 1e6, 3, [1, 1e3, 1e6]),
        (1.0, 1e6, 4, [1, 1e2, 1e4, 1e6]),
        (3.0, 4.0, 4, []),
        (2.0, 2.0, 4, [2]),
    ],
)
def test_logarithmic_ticks_are_round_and_few(low, high, most, ticks):
    assert log_ticks(low, high, most) == pytest.approx(ticks)


@pytest.mark.parametrize(
    ("ticks", "room", "kept"),
    [
        ([], 100, ()),
        ([(1.0, "1")], 100, ("1",)),
        ([(0.0, "0"), (10.0, "10")], 1, ("0", "10")),  # the ends always
        # Each letter has 7 pixels, and another one is between: `0` and `5` need 14, `5` and `10` 17.5.
        ([(0.0, "0"), (5.0, "5"), (10.0, "10")], 35, ("0", "5", "10")),
        ([(0.0, "0"), (5.0, "5"), (10.0, "10")], 34, ("0", "10")),
        ([(0.0, "0"), (4.0, "4"), (10.0, "10")], 35, ("0", "4", "10")),
        ([(0.0, "0"), (3.9, "3"), (10.0, "10")], 35, ("0", "10")),
        ([(0.0, "0"), (4.0, "4"), (5.0, "5"), (10.0, "10")], 35, ("0", "4", "10")),
        ([(0.0, "0"), (1.0, "1"), (5.0, "5"), (10.0, "10")], 35, ("0", "5", "10")),
    ],
)
def test_ticks_that_crowd_are_left_out_but_for_the_first_and_the_last(ticks, room, kept):
    assert without_crowding(ticks, Scale(0.0, 10.0, (), ()), room, 7.0).texts == kept


def test_a_scale_without_its_crowd_spans_what_it_did():
    scale = without_crowding([(1.0, "a"), (100.0, "b")], Scale(1.0, 100.0, (), (), True), 100, 7.0)
    assert (scale.low, scale.high, scale.is_log, scale.ticks) == (1.0, 100.0, True, (1.0, 100.0))


@pytest.mark.parametrize(
    ("low", "high", "room", "texts"),
    [
        (0.5, 2.0, 84, ("0.5×", "1×", "2×")),  # 42 pixels apart
        (0.5, 2.0, 83, ("1×",)),
        (0.09, 11.0, 300, ("0.1×", "0.2×", "0.5×", "1×", "2×", "5×", "10×")),
        (0.99, 1.01, 300, ("1×",)),
        (0.97, 1.04, 300, ("0.98×", "1×", "1.02×")),
        (0.001, 1000.0, 300, ("0.001×", "0.01×", "0.1×", "1×", "10×", "100×", "1000×")),
    ],
)
def test_ratios_have_round_ticks_42_pixels_apart(low, high, room, texts):
    scale = ratio_scale(low, high, room)
    assert (scale.low, scale.high, scale.is_log) == (low, high, True)
    assert set(texts) <= set(scale.texts)
    places = [scale.at(tick, 0, room) for tick in scale.ticks]
    assert places == sorted(places)
    assert all(after - before >= 42 for before, after in itertools.pairwise(places))


def test_rows_begin_at_the_top():
    rows = rows_scale(4)
    # A panel's y goes from the bottom, 200, to the top, 100.
    assert [rows.at(row, 200, 100) for row in (0, 1, 4)] == [100, 125, 200]
    assert (rows.ticks, rows.texts) == ((), ())


@example([1.0, 2.2250738585072014e-308], 2)  # the least there is but for those that have fewer digits
@example([1.0, 5e-324], 2)
@example([1.7e308, 1.0], 3)
@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=8), st.integers(2, 8))
@example(values=[5e-324], most=2)
def test_any_scale_holds_its_values_and_its_ticks_and_these_are_few(values, most):
    scale = scale_of(values, "{:.12g}".format, most=most)
    assert all(scale.low <= value <= scale.high or value == 0 for value in values)
    assert all(scale.low <= tick <= scale.high * (1 + 1e-9) for tick in scale.ticks)
    assert len(scale.ticks) <= most + 3
