"""What is said of kernels against a machine's peaks: the sentence, the table, the sums."""

from math import isnan, nan

import pytest

from explorer.model.results.roofline import Peaks, Point, Roofline

MACHINE = Peaks("a chip", bandwidth=1e9)
BUSY = Peaks("a chip", bandwidth=1e9, is_provisional=True)


def point(name="a", seconds=1.0, least=0.5, bound="memory", line=3, text="y = f(x)", **more):
    place = ("/m/train.py", line) if line else ("", 0)
    return Point(name, "fusion", "jit_f", seconds, 1e9, 1e9, 1.0, 1e9, least, bound, *place, text, **more)


def unknown(name="u", seconds=1.0, **more):
    return point(name, seconds, nan, "unknown", **more)


def roofline(*points, peaks=MACHINE, **more):
    return Roofline("f", "()", peaks, points, **more)


@pytest.mark.parametrize(
    ("found", "figures"),
    [
        # seconds, those without costs, the least, efficiency, how much faster it could be
        (roofline(point(), point(least=1.0)), (2.0, 0.0, 1.5, 0.75, 2 / 1.5)),
        (roofline(point(), unknown(seconds=3.0)), (4.0, 3.0, 0.5, 0.5, 4 / 3.5)),
        (roofline(point(least=2.0)), (1.0, 0.0, 1.0, 1.0, 1.0)),  # faster than its roof: it needs what it took
        (roofline(unknown()), (1.0, 1.0, 0.0, nan, 1.0)),
        (roofline(), (0.0, 0.0, 0.0, nan, nan)),
        (roofline(point(seconds=0.0, least=0.0)), (0.0, 0.0, 0.0, nan, nan)),
    ],
)
def test_the_whole_is_made_of_what_is_known_of_its_kernels(found, figures):
    computed = (found.seconds, found.unknown, found.least, found.efficiency, found.speedup)
    assert computed == pytest.approx(figures, nan_ok=True)


@pytest.mark.parametrize(
    ("one", "efficiency", "wasted"),
    [
        (point(), 0.5, 0.5),
        (point(least=2.0), 2.0, 0.0),
        (unknown(), nan, nan),
        (point(seconds=0.0, least=0.0), nan, 0.0),
    ],
)
def test_a_kernel_is_as_efficient_as_its_least_time_is_of_its_time(one, efficiency, wasted):
    assert (one.efficiency, one.wasted) == pytest.approx((efficiency, wasted), nan_ok=True)


def test_shares_are_of_the_time_by_what_holds_kernels_back():
    found = roofline(point(), point(bound="compute"), point(bound="overhead"), unknown())
    assert dict(found.shares) == {"memory": 0.25, "compute": 0.25, "overhead": 0.25, "unknown": 0.25}
    assert found.bounds_text == (
        "25% of the time is bound by memory, 25% by compute, 25% by overhead, 25% has no known minimum time"
    )
    assert roofline(unknown()).bounds_text == "100% has no known minimum time"


def test_losses_are_by_line_the_largest_first():
    split = point("s", 1.0, 0.0, lines=(("/m/train.py", 3, 0.25), ("/m/a.py", 9, 0.75)))
    found = roofline(point(seconds=2.0, least=1.0), split, unknown(line=0, text=""))
    assert [(loss.file, loss.line, loss.text, loss.seconds, loss.wasted) for loss in found.losses] == [
        ("/m/train.py", 3, "y = f(x)", 2.25, 1.25),
        ("/m/a.py", 9, "", 0.75, 0.75),
        ("", 0, "", 1.0, 0.0),
    ]


LOSS = "The biggest loss is line 3, `y = f(x)`: 500 ms of 500 ms."


@pytest.mark.parametrize(
    ("found", "headline"),
    [
        (roofline(), "f ran no kernel that could be measured."),
        (roofline(unknown()), "The minimum time of the kernels of f is unknown."),
        (
            roofline(point(), point("b", 1.01, 0.5, "overhead")),
            "f spends 50% of its time on starting kernels that do almost no work.",
        ),
        (
            roofline(point()),
            f"f reaches 50% of what this machine can do: its kernels could be at most 2.0× faster. {LOSS}",
        ),
        (
            roofline(point(), peaks=BUSY),
            "f reaches 50% of this machine's peak, measured while other programs ran: by that peak, its kernels could "
            f"be at most 2.0× faster. {LOSS}",
        ),
        (
            roofline(point(least=0.95)),
            "f reaches 95% of what this machine can do: its kernels, as they are, can't be much faster here.",
        ),
        (
            roofline(point(line=0, text="")),
            "f reaches 50% of what this machine can do: its kernels could be at most 2.0× faster. "
            "The biggest loss is in kernels without a known line: 500 ms of 500 ms.",
        ),
        (
            roofline(point(), unknown("cholesky")),
            "f reaches 50% of what this machine can do, but for cholesky, whose minimum time is unknown: "
            f"50% of the time. {LOSS}",
        ),
        (
            roofline(point(), unknown("cholesky"), unknown("qr")),
            "f reaches 50% of what this machine can do, but for cholesky and others, whose minimum time is unknown: "
            f"67% of the time. {LOSS}",
        ),
        (roofline(point(least=1.0), peaks=BUSY), "f reaches 100% of this machine's peak, measured while other programs "
         "ran: by that peak, its kernels could be at most 1.00× faster."),
    ],
)  # fmt: skip
def test_the_result_is_said_in_a_sentence_or_two(found, headline):
    assert found.headline == headline


@pytest.mark.parametrize(
    ("points", "headline"),
    [
        ((), "The time of f on a chip is unknown."),
        (
            (point(seconds=0.0019999, least=0.0019999),),
            "f needs 1.99 ms or more on a chip, by published figures: estimated, not measured. "
            "The most is for line 3, `y = f(x)`: 2 ms.",
        ),
        (
            (point(seconds=0.5), unknown(seconds=0.0), unknown(seconds=0.0)),
            "f needs 500 ms or more on a chip, by published figures, without 2 kernels of unknown cost: "
            "estimated, not measured. The most is for line 3, `y = f(x)`: 500 ms.",
        ),
        (
            (point(seconds=0.5, line=0, text=""),),
            "f needs 500 ms or more on a chip, by published figures: estimated, not measured. "
            "The most is for kernels without a known line: 500 ms.",
        ),
    ],
)
def test_what_was_not_run_is_called_an_estimate(points, headline):
    assert roofline(*points, is_estimated=True).headline == headline


def test_the_table_has_the_longest_kernels_and_what_the_rest_take_together():
    points = (point("fusion.1", 0.002, 0.001), unknown("u", 0.001, line=0), point("b", 0.0005), point("c", 0.0005))
    assert roofline(*points).table(2).splitlines() == [
        "  seconds  efficiency  bound    FLOP/byte  kernel    line",
        "     2 ms         50%  memory           1  fusion.1  train.py:3",
        "     1 ms              unknown          1  u",
        "  and 2 more, together 1 ms",
    ]
    assert roofline(points[0], is_estimated=True).table().splitlines() == [
        "  least  bound   FLOP/byte  kernel    line",
        "   2 ms  memory          1  fusion.1  train.py:3",
    ]


def test_nothing_is_wasted_that_is_not_known_to_be():
    assert isnan(unknown().wasted)
    assert roofline(unknown()).losses[0].wasted == 0
