"""How a figure grows, and how what is varied is called."""

from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.model.results.statistics import Axis, Growth, growth_of


def test_a_kind_speaks_for_itself_and_a_number_has_its_name():
    sizes, types = Axis("n", ("8", "16"), (8.0, 16.0), "elements"), Axis("dtype", ("float32", "bfloat16"))
    assert (sizes.named(1), types.named(1)) == ("n = 16", "bfloat16")
    assert (sizes.title, types.title) == ("n (elements)", "dtype")
    assert (len(sizes), len(types)) == (2, 2)


NUMBERS = st.floats(0.1, 1e4)


@given(st.lists(NUMBERS, min_size=3, max_size=8, unique=True), st.data())
def test_the_power_and_its_fit_are_those_of_a_straight_line_through_the_logarithms(x, data):
    y = data.draw(st.lists(NUMBERS, min_size=len(x), max_size=len(x)))
    if np.ptp(np.log(x)) < 1e-3 or np.ptp(np.log(y)) < 1e-3:  # NumPy's line is none then
        return
    slope, start = np.polyfit(np.log(x), np.log(y), 1)
    found = growth_of(x, y)
    assert found.power == pytest.approx(slope, abs=1e-6)
    explained = 1 - np.var(np.log(y) - slope * np.log(x) - start) / np.var(np.log(y))
    assert found.fit == pytest.approx(explained, abs=1e-6)
    assert found.spread == pytest.approx(max(y) / min(y))


@pytest.mark.parametrize(
    ("x", "y", "growth"),
    [
        ([1, 2, 4], [5, 5, 5], Growth(0.0, 1.0, 1.0)),  # it doesn't grow, and that is all of it
        ([1, 2, 4], [8, 4, 2], Growth(-1.0, 1.0, 4.0)),
        ([1, 2], [1, 2], None),  # two sizes are on any line
        ([1, 2, 2], [1, 2, 3], None),
        ([1, 2, 4], [1, 0, 4], None),
        ([0, 1, 2], [1, 2, 4], None),
        ([1, 2, 4], [1, nan, 4], None),
        ([1, 2, 4], [1, inf, 4], None),
        ([1e15, 1e15 + 0.25, 1e15 + 0.5], [1, 2, 3], None),
    ],
)
def test_what_can_not_be_told_from_three_sizes_is_not(x, y, growth):
    assert growth_of(x, y) == growth


def test_each_size_has_one_figure():
    with pytest.raises(ValueError, match="zip"):
        growth_of([1, 2, 3], [1, 2])
