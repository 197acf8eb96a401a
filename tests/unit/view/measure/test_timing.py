"""Where a timing's and a comparison's marks stand, and what they say, on samples made by hand."""

import itertools

import pytest

from explorer.model.results.timing import Comparison, Samples, Timing
from explorer.view.figure import BLUE, GREY, ORANGE, Band, Bars, Label, Path, Points
from explorer.view.measure.timing import ComparisonView, TimingView, calls_shown, histogram

STEADY = (0.99, 1.0, 1.01, 1.0, 0.99, 1.01, 1.0) * 3


def samples(median=1.0, **more):
    return Samples(tuple(median * each for each in STEADY), **more)


def timing(steady=None, eager=None, first=5.0, **more):
    return Timing("f", "(x)", Samples((first,)), steady or samples(), eager, **more)


def figure(value):
    return TimingView().figure(value)


def texts(page):
    return [mark.text for mark in page.page if isinstance(mark, Label)]


def marks(panel, kind):
    return [mark for mark in panel.marks if isinstance(mark, kind)]


def label(panel, text):
    return next(mark for mark in marks(panel, Label) if mark.text == text)


# Words ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("eager", "first", "text"),
    [
        (None, 5.0, "f(x): the first call took 5 s"),
        # Each call spares 9 s: the 5 s of the first are less than one eager call.
        (10.0, 5.0, "f(x): the 5 s first call pays off after 1 call"),
        (2.0, 5.0, "f(x): the 5 s first call pays off after 4 calls"),
        (2.0, 2000.6, "f(x): the 2,000 s first call pays off after 2,000 calls"),
        (0.5, 5.0, "f(x): the first call took 5 s"),  # eager is faster
        (1.0, 5.0, "f(x): the first call took 5 s"),
    ],
)
def test_when_the_first_call_has_paid_for_itself(eager, first, text):
    page = figure(timing(eager=None if eager is None else samples(eager), first=first))
    assert texts(page)[1] == text


def test_what_is_too_noisy_is_said_to_be_about():
    noisy = Samples((1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.5))
    assert texts(figure(timing(noisy)))[0] == "about 1.5 s compiled, too noisy"
    assert texts(figure(timing()))[0] == "1 s compiled"
    assert texts(figure(timing(eager=samples(3.0))))[0].startswith("1 s compiled, 3.0× faster than eager")


@pytest.mark.parametrize(
    ("steady", "text"),
    [
        (samples(), "21 steady samples"),
        (samples(calls=2), "21 steady samples of 2 calls"),
        (Samples((1.0,)), "1 steady sample"),
    ],
)
def test_how_many_samples_there_are(steady, text):
    assert text in texts(figure(timing(steady)))


# The curve ------------------------------------------------------------------------------------------------------------


def test_ten_eager_calls_are_shown_the_first_compiled_one_and_twenty_four_after_it():
    eager, compiled = calls_shown(timing(samples(), samples(3.0), warm_up=(5.0, 1.5)))
    assert eager == [3 * each for each in STEADY[:10]]
    assert compiled == [5.0, 1.5, *STEADY]
    assert len(calls_shown(timing(warm_up=(5.0, *[1.5] * 9)))[1]) == 25
    assert calls_shown(timing()) == ([], [5.0, *STEADY])  # no warm-up is kept: the first call alone


def test_calls_stand_a_unit_apart_and_the_first_compiled_one_away_from_both_sides():
    panel = figure(timing(samples(), samples(3.0))).panels[0]
    eager, later, first = marks(panel, Points)
    assert list(eager.x) == pytest.approx([n + 0.8 for n in range(10)])
    assert first.x == [pytest.approx(11.6)]
    assert list(later.x) == pytest.approx([13.5 + n for n in range(21)])
    assert (first.y, list(later.y)) == ([5.0], list(STEADY))
    assert (eager.hollow, later.hollow, first.symbol) == (True, False, "diamond")
    assert (eager.hover[0], first.hover, later.hover[1]) == (
        "eager call: 2.97 s",
        ["first call: 5 s"],
        "compiled call: 1 s",
    )
    assert panel.x.high > later.x[-1]
    assert (panel.y.low, panel.y.high) == (pytest.approx(0.99 / 1.4), 8.0)
    alone = marks(figure(timing()).panels[0], Points)
    assert alone[1].x == [pytest.approx(0.8)]
    # Each median is a line under its calls, its figure at the end of it.
    levels = [mark for mark in marks(panel, Path) if mark.y[0] == mark.y[1]]
    assert [(path.x, path.y[0], path.colour) for path in levels] == [
        ([pytest.approx(0.5), pytest.approx(33.9)], 3.0, ORANGE),
        ([pytest.approx(13.2), pytest.approx(33.9)], 1.0, BLUE),
    ]  # fmt: skip
    assert label(panel, "first call 5 s").y == 5.0


@pytest.mark.parametrize("eager", [1.0, 1.01, 0.99, 1.02])
def test_figures_of_two_medians_that_are_near_stand_a_line_apart(eager):
    panel = figure(timing(samples(), samples(eager))).panels[0]
    ends = [mark for mark in marks(panel, Label) if mark.dx == 5]
    upper, lower = sorted(panel.place(0, mark.y)[1] + mark.dy for mark in ends)
    assert lower - upper == pytest.approx(14)
    far = figure(timing(samples(), samples(4.0))).panels[0]
    assert {mark.dy for mark in marks(far, Label) if mark.dx == 5} == {4}


# The samples ----------------------------------------------------------------------------------------------------------


def test_every_sample_is_in_a_bin_or_beyond():
    counts, borders, beyond = histogram(samples())
    assert (sum(counts), len(borders), beyond) == (21, 23, 0)
    assert borders[0] <= 0.99 < 1.01 <= borders[-1]
    # One that is far away is counted, and the others are still told apart.
    counts, borders, beyond = histogram(Samples((*STEADY, 50.0)))
    assert (sum(counts), beyond) == (21, 1)
    assert borders[-1] < 2
    counts, borders, beyond = histogram(Samples((*STEADY, 0.01)))
    assert (sum(counts), beyond) == (21, 1)
    assert borders[0] > 0.5


def test_the_histogram_has_the_median_and_its_interval_in_it():
    steady = Samples((*STEADY, 50.0))
    panel = figure(timing(steady)).panels[1]
    (band,), (bars,) = marks(panel, Band), marks(panel, Bars)
    assert (band.left, band.right) == (pytest.approx(steady.low), pytest.approx(steady.high))
    assert panel.x.low <= band.left <= 1.0 <= band.right <= panel.x.high
    tallest = max(top for *_, top, _ in bars.boxes)
    assert panel.y.high == pytest.approx(1.05 * tallest)
    assert sum(top for *_, top, _ in bars.boxes) == 21
    assert all(bottom == 0 for *_, bottom in bars.boxes)
    assert {text.partition(" of ")[0] for text in bars.hover} <= {"1 sample", "6 samples", "9 samples"}
    (middle, ground) = marks(panel, Path)
    assert (middle.x, middle.y) == ([1.0, 1.0], [0.0, panel.y.high])
    assert (ground.x, ground.y) == ([panel.x.low, panel.x.high], [0.0, 0.0])
    assert marks(panel, Label)[1].text.endswith(", 1 beyond")
    assert "beyond" not in marks(figure(timing()).panels[1], Label)[1].text


# The first call -------------------------------------------------------------------------------------------------------


def test_the_first_calls_bar_is_its_steps_in_their_order_each_as_long_as_it_took():
    page = figure(timing(stages={"run": 1.0, "trace": 2.0, "compile": 5.0}))
    bars = [mark for mark in page.page if isinstance(mark, Bars)]
    steps, swatches = bars[::2], bars[1::2]
    # 808 pixels are 8 s; a pixel and a half between them.
    assert [mark.boxes[0][:2] for mark in steps] == [
        (24, 24 + 202 - 1.5), (226, 226 + 505 - 1.5), (731, 731 + 101 - 1.5),
    ]  # fmt: skip
    assert [mark.hover for mark in steps] == [["trace: 2 s"], ["compile: 5 s"], ["run: 1 s"]]
    assert [mark.colour for mark in steps] == [mark.colour for mark in swatches]
    names = ["trace 2 s", "XLA compile 5 s", "run 1 s"]
    assert [text for text in texts(page) if text in names] == names
    assert "first call 8 s" in texts(page)
    keys = [mark for mark in page.page if isinstance(mark, Label) and mark.text in names]
    assert [mark.x for mark in keys] == [swatch.boxes[0][0] + 15 for swatch in swatches]
    assert [b.x - a.x - 6.7 * len(a.text) for a, b in itertools.pairwise(keys)] == pytest.approx([36, 36])
    short = figure(timing(stages={"trace": 1e-9, "compile": 5.0}))
    first = next(mark for mark in short.page if isinstance(mark, Bars))
    assert first.boxes[0][1] - first.boxes[0][0] == pytest.approx(0.8)  # what took no time to see is seen


def test_without_steps_there_is_no_bar():
    page = figure(timing(notes=("a", "b")))
    assert not [mark for mark in page.page if isinstance(mark, Bars)]
    with_steps = figure(timing(notes=("a", "b"), stages={"trace": 1.0}))
    assert page.height == with_steps.height
    notes = [mark for mark in page.page if isinstance(mark, Label) and mark.text.startswith("note: ")]
    assert [mark.y for mark in notes] == [page.height + 2 - 34, page.height + 2 - 17]


def test_the_tables_of_a_timing():
    view = TimingView()
    calls, steps = view.tables(timing(eager=samples(3.0), stages={"run": 1.0, "trace": 2.0}))
    assert [row[:2] for row in calls.rows] == [("steady", "1 s"), ("eager", "3 s")]
    assert calls.rows[0][-2:] == ("21", "1")
    assert steps.rows == [("trace", "2 s"), ("run", "1 s"), ("first call", "5 s")]
    assert [table.title for table in view.tables(timing(notes=("a",)))][-1] == "notes"


# Comparisons ----------------------------------------------------------------------------------------------------------


def compared(**medians):
    return Comparison({name: samples(median) for name, median in medians.items()}, "old")


def test_each_name_has_its_row_with_its_ratio_and_the_baseline_a_diamond_at_one():
    page = ComparisonView().figure(compared(old=1.0, new=0.5, slow=3.0, same=1.0))
    (panel,) = page.panels
    points, bands = marks(panel, Points), marks(panel, Band)
    assert [(mark.x, mark.y) for mark in points] == [
        ([1.0], [0.5]), ([pytest.approx(0.5)], [1.5]), ([pytest.approx(3.0)], [2.5]), ([pytest.approx(1.0)], [3.5]),
    ]  # fmt: skip
    assert [(mark.symbol, mark.hollow, mark.colour) for mark in points[1:]] == [
        ("circle", False, BLUE), ("circle", False, ORANGE), ("circle", True, GREY),
    ]  # fmt: skip
    assert points[0].symbol == "diamond"
    assert [(round(band.top, 2), round(band.bottom, 2)) for band in bands] == [(1.32, 1.68), (2.32, 2.68), (3.32, 3.68)]
    assert all(band.left <= mark.x[0] <= band.right for band, mark in zip(bands, points[1:], strict=True))
    # The axis holds each interval, and 1.
    assert panel.x.low < min(band.left for band in bands)
    assert panel.x.high > max(band.right for band in bands)
    assert (panel.strong, 1.0 in panel.x.ticks, panel.bottom - panel.top) == (1, True, 4 * 34)
    names = [mark for mark in page.page if isinstance(mark, Label) and mark.text in ("old", "new", "slow", "same")]
    assert [mark.y for mark in names] == [panel.top + 34 * n + 21 for n in range(4)]
    beside = [mark.text for mark in page.page if isinstance(mark, Label) and mark.x > panel.right]
    assert beside[0] == "the baseline"
    assert [text.partition(" (")[0] for text in beside[1:]] == ["2.0× faster", "3.0× slower", "no difference seen"]


def test_an_axis_of_equals_is_not_a_point():
    panel = ComparisonView().figure(compared(old=1.0, new=1.0)).panels[0]
    assert panel.x.low < 0.99 < 1.01 < panel.x.high
    assert panel.place(1.0, 0)[0] == pytest.approx((panel.left + panel.right) / 2, abs=3)
