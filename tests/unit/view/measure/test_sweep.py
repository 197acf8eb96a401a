"""Where a sweep's points, bars and names stand, and how many there are, on figures made by hand."""

import pytest

from explorer.model.results.statistics import Axis
from explorer.model.results.sweep import Sweep, SweepRow
from explorer.model.results.timing import Samples
from explorer.view.figure import GREY, INK, ORANGE, Bars, Label, Path, Points
from explorer.view.measure.sweep import SweepView, measures, swept_scale

STEADY = (0.9, 1.0, 1.1, 1.0, 0.9, 1.1, 1.0)  # median 1, its interval 0.9 … 1.1


def row(at, *, time=None, compiles=None, error="", memory=None, **values):
    steady = None if time is None else Samples(tuple(time * each for each in STEADY))
    stages = {} if compiles is None else {"trace": 0.0, "lower": 0.0, "compile": compiles}
    return SweepRow(at, values, steady=steady, stages=stages, error=error, memory=memory or {})


def numbers(name, *values, unit=""):
    return Axis(name, tuple(f"{value:g}" for value in values), tuple(map(float, values)), unit)


def over_n(*rows, sizes=(8, 16), **more):
    return Sweep("f", (numbers("n", *sizes),), rows, **more)


def kinds(count, **more):
    axis = Axis("kind", tuple(f"k{n}" for n in range(count)))
    return Sweep("f", (axis,), tuple(row((n,), time=1.0 + n, compiles=1.0, kind=f"k{n}") for n in range(count)), **more)


def figure(sweep):
    return SweepView().figure(sweep)


def texts(page):
    return [mark for mark in page.page if isinstance(mark, Label)]


def marks(panel, kind):
    return [mark for mark in panel.marks if isinstance(mark, kind)]


# Numbers --------------------------------------------------------------------------------------------------------------


def test_a_panel_for_each_figure_that_is_known_with_a_line_and_the_intervals():
    page = figure(over_n(row((0,), time=1.0, compiles=2.0, n=8), row((1,), time=4.0, compiles=3.0, n=16)))
    time, compiles = page.panels
    wide, thin = marks(time, Path)[:2], marks(time, Path)[2:]
    assert [(path.x, path.y) for path in wide] == [([8, 8], [0.9, 1.1]), ([16, 16], [pytest.approx(3.6), 4.4])]
    assert [(path.x, path.y) for path in thin] == [([8, 16], [1.0, 4.0])]
    points, failures = marks(time, Points)
    assert (points.x, points.y, failures.x) == ([8, 16], [1.0, 4.0], [])
    assert points.hover == ["n = 8\ntime 1 s", "n = 16\ntime 4 s"]
    assert [path.y for path in marks(compiles, Path)] == [[2.0, 3.0]]  # measured once: no interval
    assert (time.x_title, time.bottom - time.top, time.top) == ("n", 196, compiles.top)
    assert (time.left, time.right, compiles.right) == (86, 480, 940)
    titles = {label.text: label.x for label in texts(page)}
    assert (titles["time"], titles["compile time"]) == (24, 484)
    assert page.height == time.bottom + 62


def test_a_figure_alone_has_half_of_the_page():
    (panel,) = figure(over_n(row((0,), compiles=2.0, n=8), row((1,), compiles=3.0, n=16))).panels
    assert (panel.left, panel.right) == (86, 480)


def test_one_point_has_no_line_and_what_failed_is_a_cross_at_the_foot_of_the_times_alone():
    page = figure(over_n(row((0,), time=1.0, compiles=2.0, n=8), row((1,), error="OOM", n=16)))
    time, compiles = page.panels
    assert len(marks(time, Path)) == 1  # its interval
    cross = marks(time, Points)[1]
    assert (cross.x, cross.y, cross.symbol, cross.hover) == ([16], [0.0], "x", ["failed at n = 16: OOM"])
    assert marks(compiles, Points)[1].x == []


@pytest.mark.parametrize(("failed", "shown"), [(1, 1), (3, 3), (4, 3)])
def test_three_failures_are_told_below_each_in_its_row(failed, shown):
    rows = [row((n,), error="OOM " + "x" * 200, n=n + 1) for n in range(failed)]
    page = figure(over_n(*rows, row((failed,), time=1.0, compiles=1.0, n=failed + 1), sizes=range(1, failed + 2)))
    below = [label for label in texts(page) if label.text.startswith("×")]
    assert [label.text[:11] for label in below] == [f"× n = {n + 1}: OO" for n in range(shown)]
    assert all(len(label.text) == 118 for label in below)
    bottom = page.panels[0].bottom
    assert [label.y for label in below] == [bottom + 60 + 18 * n for n in range(shown)]
    assert page.height == bottom + 62 + 18 * shown


def several(names):
    rows = [row((k, n), time=1.0 + n, compiles=1.0, n=(8, 16)[n]) for k in range(len(names)) for n in range(2)]
    return figure(Sweep("f", (Axis("kind", names), numbers("n", 8, 16)), rows))


def test_the_key_of_several_series_begins_a_row_where_one_is_full():
    page = several(("a", "b"))
    names = {label.text: (label.x, label.y) for label in texts(page)}
    assert names["b"] == (pytest.approx(41 + 36 + 6.6), names["a"][1])
    # 48 letters are 317 pixels: the third doesn't fit beside two; a longer name is cut to them.
    longer = several(("a" * 48, "b" * 49, "c" * 48))
    names = {label.text[0]: label for label in texts(longer) if label.text[:10] in ("a" * 10, "b" * 10, "c" * 10)}
    assert (names["a"].x, names["c"].x) == (41, 41)
    assert names["b"].y == names["a"].y == names["c"].y - 20
    assert names["b"].text == "b" * 47 + "…"
    assert names["b"].x + 6.6 * 48 < 960
    # In the key a series has the symbol that its points have.
    drawn = [mark for mark in longer.page if isinstance(mark, Points)]
    assert [(mark.symbol, mark.colour) for mark in drawn] == [
        (mark.symbol, mark.colour) for mark in marks(longer.panels[0], Points)[::2]
    ]
    assert {mark.y[0] + 4 for mark in drawn} == {label.y for label in names.values()}


def test_the_key_stands_between_the_subtitle_and_the_panels_and_one_series_has_none():
    one, two = figure(over_n(row((0,), time=1.0, compiles=1.0), row((1,), time=2.0, compiles=1.0))), several(("a", "b"))
    assert not [mark for mark in one.page if isinstance(mark, Points)]
    # Its points are 14 pixels below where the panels would begin, and these 12 below that.
    assert two.panels[0].top - two.page[-1].y > 0
    assert [mark.y[0] for mark in two.page if isinstance(mark, Points)] == [two.panels[0].top - 34 - 12 + 4] * 2


@pytest.mark.parametrize(
    ("axis", "texts"),
    [
        (numbers("n", 8, 16), ("8", "16")),
        (numbers("n", 16, 8), ("8", "16")),
        (numbers("size", 1000, 20000, unit="elements"), ("1,000", "20,000")),
        (Axis("n", ("a" * 14, "b" * 15), (1.0, 2.0)), ("a" * 14, "b" * 13 + "…")),
        (numbers("n", 1, 2, 1000), ("1", "2", "1000")),
        (numbers("n", 100, 101, 1000), ("100", "1000")),  # no room between
    ],
)
def test_the_swept_sizes_are_the_ticks(axis, texts):
    assert swept_scale(Sweep("f", (axis,), ())).texts == texts


@pytest.mark.parametrize(
    ("times", "growth"),
    [
        ((1.0, 4.0, 16.0), "as n^2.0"),
        ((1.0, 1.3, 1.69), "as n^0.4"),  # from a factor of one and a half on
        ((1.0, 1.2, 1.44), ""),
        ((1.0, 8.0, 2.0), ""),
    ],
)
def test_how_a_figure_grows_stands_behind_its_title(times, growth):
    sweep = over_n(*(row((n,), time=t, compiles=1.0) for n, t in enumerate(times)), sizes=(8, 16, 32))
    assert {measure.name: measure.growth for measure in measures(sweep)}["seconds"] == growth
    page = figure(sweep)
    (behind,) = (label for label in texts(page) if label.text == growth and label.x > 24 and label.x < 100)
    assert (behind.x, behind.colour) == (24 + 9 * 5, GREY)


def test_series_that_grow_otherwise_have_the_least_and_the_greatest_power():
    axes = (Axis("kind", ("a", "b")), numbers("n", 8, 16, 32))
    rows = [row((k, n), time=1.0 * (2, 4)[k] ** n) for k in range(2) for n in range(3)]
    assert measures(Sweep("f", axes, rows))[0].growth == "as n^1.0 … 2.0"
    rows[0] = row((0, 0), time=100.0)  # one of them has no power
    assert measures(Sweep("f", axes, rows))[0].growth == ""


def test_where_all_failed_the_sentence_is_orange():
    all_failed = figure(over_n(row((0,), error="no"), row((1,), error="no")))
    some = figure(over_n(row((0,), error="no"), row((1,), time=1.0)))
    assert [page.page[0].colour for page in (all_failed, some)] == [ORANGE, INK]


# Kinds ----------------------------------------------------------------------------------------------------------------


def test_bars_are_as_long_as_their_figures_and_say_them():
    page = figure(kinds(3))
    time, compiles = page.panels
    (bars,) = marks(time, Bars)
    assert [(left, right, round(top, 2), round(bottom, 2)) for left, right, top, bottom in bars.boxes] == [
        (0.0, 1.0, 0.19, 0.81), (0.0, 2.0, 1.19, 1.81), (0.0, 3.0, 2.19, 2.81),
    ]  # fmt: skip
    assert time.x.high == pytest.approx(3.3)  # the end of the longest interval
    assert next((path.x, path.y) for path in marks(time, Path)) == ([0.9, 1.1], [0.5, 0.5])
    assert [(label.x, label.y, label.text, label.bold) for label in marks(time, Label)][:2] == [
        (1.1, 0.5, "1 s", True), (2.2, 1.5, "2 s", True),
    ]  # fmt: skip
    assert [label.bold for label in marks(compiles, Label)] == [False] * 3
    assert marks(compiles, Path) == []
    assert time.bottom - time.top == 3 * 26
    names = [label for label in texts(page) if label.text in ("k0", "k1", "k2")]
    assert [(label.text, label.x, label.y) for label in names] == [
        (f"k{n}", 24, time.top + 26 * n + 16) for n in range(3)
    ]
    assert page.height == time.bottom + 16
    # Two letters are 14.4 pixels; the rest of the width is the two figures'.
    assert time.left == pytest.approx(24 + 2 * 7.2 + 24)
    assert compiles.left - time.left == pytest.approx((936 - time.left) / 2)
    assert time.right - time.left == pytest.approx(220)


@pytest.mark.parametrize(("count", "more"), [(40, []), (41, ["and 1 more, in the table"])])
def test_forty_kinds_have_a_row(count, more):
    page = figure(kinds(count))
    assert len(marks(page.panels[0], Bars)[0].boxes) == 40
    assert [label.text for label in texts(page) if label.text.startswith("and ")] == more
    assert page.height == page.panels[0].bottom + 16 + 26 * len(more)
    assert page.panels[0].x.high == pytest.approx(1.1 * count)  # of all rows


def test_a_kind_that_failed_says_why_in_its_row():
    sweep = kinds(2)
    page = figure(Sweep("f", sweep.axes, (sweep.rows[0], row((1,), error="e" * 200))))
    (error,) = (label for label in texts(page) if label.text.startswith("eee"))
    left = page.panels[0].left
    assert (error.x, error.y, error.colour) == (left, page.panels[0].top + 26 + 16, ORANGE)
    assert len(error.text) == int((936 - left) / 7.6)
    assert len(marks(page.panels[0], Bars)[0].boxes) == 1


@pytest.mark.parametrize(
    ("axes", "names"),
    [
        ((Axis("kind", ("a", "b")), Axis("n", ("64",), (64.0,))), ["a", "b"]),
        ((Axis("kind", ("a",)), Axis("n", ("64",), (64.0,))), ["a, n = 64"]),
        ((Axis("kind", ("a", "b")), Axis("how", ("x", "y"))), ["a, x", "b, x", "a, y", "b, y"]),
        ((Axis("kind", ("a" * 44, "b" * 45)),), ["a" * 44, "b" * 43 + "…"]),
    ],
)
def test_a_row_is_called_what_differs(axes, names):
    ats = [(k, n) for k in range(len(axes[0])) for n in range(len(axes[1]))] if len(axes) > 1 else [(0,), (1,)]
    page = figure(Sweep("f", axes, [row(at, time=1.0) for at in ats]))
    top = page.panels[0].top
    assert sorted(label.text for label in texts(page) if label.y >= top) == sorted(names)


def test_the_sentence_and_the_table_name_all_that_was_swept():
    axes = Axis("kind", ("a", "b")), numbers("n", 8, unit="elements")
    rows = [row((k, 0), time=1.0) for k in range(2)]
    sweep = Sweep("f", axes, rows, environment={"device": "cpu", "jax": "0.10.2"})
    assert "f over kind, n (elements): 2 points · cpu · jax 0.10.2" in [label.text for label in texts(figure(sweep))]
    assert SweepView().chart_text(sweep) == "sweep: f over kind, n, 2 points"
