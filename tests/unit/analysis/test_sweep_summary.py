"""A sweep in words; samples that are all alike have an interval of ±3 % (`Samples`), and figures follow from that."""

import numpy as np
import pytest

from explorer.analysis.measure_summary import growths, headline
from explorer.model.results.statistics import Axis
from explorer.model.results.sweep import Sweep, SweepRow
from explorer.model.results.timing import Samples


def axis(numbers, name="n"):
    return Axis(name, tuple(f"{number:g}" for number in numbers), tuple(map(float, numbers)))


def row(*at, took=None, compiled=None, size=None, error="", disturbed=False):
    stages = {} if compiled is None else {"trace": 0.0, "lower": 0.0, "compile": compiled}
    steady = None if took is None else Samples((took,) * 40, is_disturbed=disturbed)
    return SweepRow(at, {}, steady=steady, stages=stages, memory={} if size is None else {"temp": size}, error=error)


def times(numbers, *each, disturbed=False):
    rows = [row(i, took=took, disturbed=disturbed) for i, took in enumerate(each)]
    return Sweep("f", (axis(numbers),), rows)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([row(0, error="TypeError: no")], "it failed: TypeError: no"),
        ([row(0, error="TypeError: no"), row(1, error="other")], "all 2 points failed: TypeError: no"),
        ([row(0)], "1 point"),
        ([row(0), row(1)], "2 points"),
        ([row(0), row(1, error="no"), row(2, error="no")], "2 of 3 points failed, the first at n = 2"),
        ([row(0, took=1.0)], "1 point"),  # of one point nothing can be said to grow
        (
            [row(0, took=1.0), row(1, took=1.0, disturbed=True)],
            "whether time depends on n can't be told; 1 of 2 times is too noisy, known only to ±3 %",
        ),
    ],
)
def test_what_there_is_to_say_of_points_where_little_is_known(rows, sentence):
    assert headline(Sweep("f", (axis((1, 2, 4)),), rows)) == sentence


@pytest.mark.parametrize(
    ("numbers", "each", "sentence"),
    [
        # within ±10 % of one value while the slowest's 1.03 × 0.9 is no more than the fastest's 0.97 × 1.1: 1.151 times
        ((1, 2), (1.0, 1.15), "time doesn't depend on n: all within ±10 %"),
        ((1, 2), (1.15, 1.0), "time doesn't depend on n: all within ±10 %"),
        ((1, 2), (1.0, 1.152), "time grows 1.15× (1.08 … 1.22×) from n = 1 to 2"),
        # 4 × 0.97 / 1.03 = 3.77, 4 × 1.03 / 0.97 = 4.25
        ((1, 4), (1.0, 4.0), "time grows 4.0× (3.8 … 4.2×) from n = 1 to 4"),
        ((1, 4), (4.0, 1.0), "time falls 4.0× (3.8 … 4.2×) from n = 1 to 4"),
        ((1, 4), (0.125, 0.5), "time grows 4.0× (3.8 … 4.2×) from n = 1 to 4"),
        ((1, 2, 4), (4.0, 2.0, 1.0), "time falls 4.0× (3.8 … 4.2×) from n = 1 to 4"),
        ((1, 2, 4), (1.0, 2.0, 4.0), "time grows as n^1.0"),
        ((1, 2, 4), (1.0, 4.0, 16.0), "time grows as n^2.0"),
        # a power under a quarter is told as a factor: 16^0.2 = 1.74, 16^0.3 = 2.30
        ((1, 4, 16), (1.0, 4**0.2, 16**0.2), "time grows 1.74× (1.64 … 1.85×) from n = 1 to 16"),
        ((1, 4, 16), (1.0, 4**0.3, 16**0.3), "time grows as n^0.3"),
        # the same at both ends, and not between
        ((1, 2, 4), (1.0, 1.5, 1.0), "whether time depends on n can't be told"),
        # 1.06 × 0.97 / 1.03 is under 1, 1.07 × 0.97 / 1.03 over it
        ((1, 2, 4), (1.0, 2.0, 1.06), "whether time depends on n can't be told"),
        ((1, 2, 4), (1.0, 2.0, 1.07), "time grows 1.07× (1.01 … 1.14×) from n = 1 to 4"),
        ((1, 2, 4), (1.07, 2.0, 1.0), "time falls 1.07× (1.01 … 1.14×) from n = 1 to 4"),
        # numbers so near to each other leave the power open: half of log(1.03 / 0.97), over the root of 2 log(1.2)²
        ((1, 1.2, 1.44), (1.0, 2.0, 4.0), "time grows as n^3.8 (± 0.1)"),
        # by more than a half: over the root of 2 log(1.04)²
        ((1, 1.04, 1.0816), (1.0, 2.0, 4.0), "time grows 4.0× (3.8 … 4.2×) from n = 1 to 1.0816"),
    ],
)
def test_how_time_depends_on_a_number(numbers, each, sentence):
    assert headline(times(numbers, *each)) == sentence


@pytest.mark.parametrize(
    ("numbers", "each", "end"),
    [
        ((1, 3, 9, 27), (1.0, 1.0, 3.0, 9.0), ", for the largest values as n^1.0"),
        ((1, 2, 4, 8), (1.3, 1.0, 1.5, 2.25), ", for the largest values as n^0.6"),
        ((1, 2, 4, 8), (1.3, 1.0, 2**0.5, 2.0), ""),  # that it doubles over all may be overhead still
        ((1, 3, 9), (1.0, 1.0, 3.0), ""),  # two values make no power
        ((1, 3, 9, 27), (1.0, 1.0, 1.0, 3.0), ""),
        ((1, 3, 9, 27, 81), (1.0, 1.0, 1.0, 3.0, 9.0), ", for the largest values as n^1.0"),
    ],
)
def test_what_begins_as_overhead_may_end_as_a_power_of_three_values(numbers, each, end):
    sentence = headline(times(numbers, *each))
    assert sentence.startswith("time grows ")
    assert sentence.partition(f" to {numbers[-1]}")[2] == end


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        ((1000, 1010, 1010), "memory doesn't depend on n"),
        ((1010, 1000, 1010), "memory doesn't depend on n"),
        ((1000, 1011), "memory grows 1.01× from n = 1 to 2"),
        ((2000, 1000), "memory falls 2.0× from n = 1 to 2"),
        ((1000, 2000, 4000), "memory grows as n^1.0"),
        # ln 1.17 off the line in the middle: two standard errors are 2 √(2/3 (ln 1.17)² / 1 / 2 (ln 2)²) = 0.26
        ((1000, 2340, 4000), "memory grows as n^1.0 (± 0.3)"),
        ((0, 0, 1000), "3 points"),  # how many times as much as nothing is that?
    ],
)
def test_how_memory_depends_on_a_number(sizes, sentence):
    rows = [row(i, size=size) for i, size in enumerate(sizes)]
    assert headline(Sweep("f", (axis((1, 2, 4)[: len(sizes)]),), rows)) == sentence


def test_how_far_a_power_may_be_off_is_two_standard_errors_and_the_intervals():
    numbers, sizes = np.array([1, 2, 3, 5, 7]), np.array([1000, 1900, 3700, 5000, 8000])
    _, covariance = np.polyfit(np.log(numbers), np.log(sizes), 1, cov=True)
    rows = [row(i, size=int(size)) for i, size in enumerate(sizes)]
    assert headline(Sweep("f", (axis(numbers),), rows)).endswith(f" (± {2 * covariance[0, 0] ** 0.5:.1f})")
    # and of times the half width of each interval, in the logarithm, carried through the same line
    half = np.log(1.03 / 0.97) / 2
    across = ((np.log(numbers) - np.log(numbers).mean()) ** 2).sum()
    unsure = (half**2 / across + 4 * covariance[0, 0]) ** 0.5
    assert headline(times(numbers, *sizes.astype(float))).endswith(f" (± {unsure:.1f})")


@pytest.mark.parametrize(
    ("seconds", "sentence"),
    [
        ((0.3, 0.1, 0.2), "compile time is 100 … 300 ms, each measured once"),
        ((0.1, 0.1, 0.1), "compile time is 100 … 100 ms, each measured once"),
        ((0.1, 0.2, 0.4), "compile time grows as n^1.0, each measured once"),
    ],
)
def test_compile_time_says_that_it_was_measured_once(seconds, sentence):
    rows = [row(i, compiled=compiled) for i, compiled in enumerate(seconds)]
    assert headline(Sweep("f", (axis((1, 2, 4)),), rows)) == sentence


def kinds(*labels):
    return Axis("dtype", labels)


def both(numbers, **each):
    """Times over numbers for each kind; None where it failed."""
    rows = [
        row(i, j, error="no") if took is None else row(i, j, took=took)
        for i in range(len(numbers))
        for j, took in enumerate(of[i] for of in each.values())
    ]
    return Sweep("f", (axis(numbers), kinds(*each)), rows)


@pytest.mark.parametrize(
    ("numbers", "each", "sentence"),
    [
        # two powers are a range; 8 / 4 times, by 0.97 / 1.03 and 1.03 / 0.97
        (
            (1, 2, 4),
            {"a": (1.0, 2.0, 4.0), "b": (0.5, 2.0, 8.0)},
            "time grows as n^1.0 to n^2.0; at n = 4 b is 2.0× (1.9 … 2.1×) slower than a",
        ),
        # the largest number, wherever it stands
        (
            (4, 2, 1),
            {"a": (4.0, 2.0, 1.0), "b": (8.0, 4.0, 2.0)},
            "time grows as n^1.0; at n = 4 b is 2.0× (1.9 … 2.1×) slower than a",
        ),
        # one of them is no power: that which changes most is told; the other falls by less
        (
            (1, 2),
            {"a": (1.0, 4.0), "b": (4.0, 2.0)},
            "time grows 4.0× (3.8 … 4.2×) from n = 1 to 2; at n = 2 a is 2.0× (1.9 … 2.1×) slower than b",
        ),
        (
            (1, 2),
            {"a": (1.0, 2.0), "b": (8.0, 2.0)},
            "time falls 4.0× (3.8 … 4.2×) from n = 1 to 2; at n = 2 a and b take the same time within ±10 %",
        ),
        (
            (1, 2),
            {"a": (1.0, 3.0), "b": (4.0, 2.0)},
            "time grows 3.0× (2.8 … 3.2×) from n = 1 to 2; at n = 2 a is 1.50× (1.41 … 1.59×) slower than b",
        ),
        # where one failed, the largest number that both have
        (
            (1, 2, 4),
            {"a": (1.0, 2.0, None), "b": (2.0, 4.0, 8.0)},
            "time grows 4.0× (3.8 … 4.2×) from n = 1 to 4; at n = 2 b is 2.0× (1.9 … 2.1×) slower than a; "
            "1 of 6 points failed, the first at n = 4, dtype = a",
        ),
        (
            (1, 2),
            {"a": (1.0, None), "b": (None, 4.0)},
            "2 of 4 points failed, the first at n = 1, dtype = b",
        ),
    ],
)
def test_kinds_are_compared_where_both_have_the_largest_number(numbers, each, sentence):
    assert headline(both(numbers, **each)) == sentence


@pytest.mark.parametrize(
    ("each", "disturbed", "sentence"),
    [
        ((1.0, 1.15), False, "k0 and k1 take the same time within ±10 %"),
        ((1.0, 1.1, 1.15), False, "all take the same time within ±10 %"),
        ((1.0, 1.152), False, "k1 is 1.15× (1.08 … 1.22×) slower than k0"),
        ((3.0, 1.0, 2.0), False, "k0 is 3.0× (2.8 … 3.2×) slower than k1"),
        ((1.0, 1.06), True, "no difference was seen between k0 and k1"),
        ((1.0, 1.06, 1.0), True, "no difference was seen between the 3"),
        ((1.0, 1.07), True, "k1 is at least 1.01× slower than k0"),
        ((1.0,), False, "1 point"),
    ],
)
def test_the_slowest_kind_is_held_against_the_fastest(each, disturbed, sentence):
    rows = [row(i, took=took, disturbed=disturbed) for i, took in enumerate(each)]
    noise = f"; {len(each)} of {len(each)} times are too noisy, known only to ±3 %" if disturbed else ""
    assert headline(Sweep("f", (kinds(*(f"k{i}" for i in range(len(each)))),), rows)) == sentence + noise


def test_a_kind_has_the_labels_of_what_is_varied_alone():
    axes = Axis("n", ("8",), (8.0,)), kinds("f32", "bf16"), Axis("mode", ("fast", "slow"))
    rows = [row(0, i, j, took=1.0 + 2 * i + j) for i in range(2) for j in range(2)]
    assert headline(Sweep("f", axes, rows)) == "bf16, slow is 4.0× (3.8 … 4.2×) slower than f32, fast"


def test_the_noisiest_time_says_how_far_it_reaches():
    wide = Samples((1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0))  # a median of 1.5 that is anywhere from 1 to 2
    rows = [row(0, took=1.0, disturbed=True), SweepRow((1,), {}, steady=wide), row(2, took=1.0)]
    assert headline(Sweep("f", (axis((1, 2, 4)),), rows)).endswith("; 2 of 3 times are too noisy, known only to ±33 %")


def test_of_several_figures_that_of_time_comes_first_with_the_kinds_held_against_each_other():
    axes = axis((1, 1.2, 1.44)), kinds("a", "b")
    rows = [row(i, j, took=2.0**i * (1 + j), size=1000 * 2**i) for i in range(3) for j in range(2)]
    # memory is exact, so its power is; the times leave theirs open
    assert headline(Sweep("f", axes, rows)) == (
        "time grows as n^3.8 (± 0.1); at n = 1.44 b is 2.0× (1.9 … 2.1×) slower than a; memory grows as n^3.8"
    )


def test_growths_are_none_where_no_number_is_swept_or_too_few_are_known():
    swept = times((1, 2, 4), 1.0, 2.0, 4.0)
    ((series, growth),) = growths(swept, "seconds")
    assert (len(series.rows), growth.power, growth.fit, growth.spread) == (3, 1.0, 1.0, 4.0)
    assert [growth for _, growth in growths(swept, "peak")] == [None]
    assert [growth for _, growth in growths(Sweep("f", (kinds("a"),), [row(0, took=1.0)]), "seconds")] == [None]
