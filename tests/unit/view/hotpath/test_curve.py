"""Where the calls of a hot function stand, and the operations of a timeline, on figures made by hand."""

import re
from dataclasses import replace
from math import inf, nan

import pytest

from explorer.model.results.hot_paths import (
    CallTimes,
    HotEvent,
    HotPaths,
    HotRow,
    LoggedCompile,
    OperationTimeline,
    ThreadOperations,
)
from explorer.view.figure import BLUE, ORANGE, Bars, Label, Path, Points
from explorer.view.hotpath.curve import call_table, curve, describe, figure, points_of, runs
from explorer.view.hotpath.log import OperationTimelineView
from tests.unit.view.hotpath.test_hot_paths_view import Page

RETURNED = "time until a call returned, its result may have come later"


def timed(*seconds, ways=None, numbers=None, every=10.0):
    """Calls that begin every ten seconds: a function that takes little of its loop."""
    count = len(seconds)
    starts = tuple(every * n for n in range(count))
    return CallTimes(tuple(numbers or range(1, count + 1)), starts, seconds, tuple(ways or ["eager"] * count))


def row(times, **more):
    return HotRow("f", "a.py", 3, more.pop("state", "compiled"), times=times, **more)


# Points ---------------------------------------------------------------------------------------------------------------


def test_calls_stand_side_by_side_and_those_that_were_not_kept_are_two_and_a_half_wide():
    points = points_of(row(timed(1, 1, 1, 1, numbers=(1, 2, 7, 8))))
    # Twelve calls at least fill the plot: each is a twelfth.
    assert points.across == pytest.approx([100 / 12 * at for at in (0.5, 1.5, 5.0, 6.0)])
    assert [(at, count) for at, count in points.gaps] == [(pytest.approx(100 / 12 * 3.25), 4)]
    assert points.what == RETURNED
    many = points_of(row(timed(*[1.0] * 20)))
    assert many.across[-1] == pytest.approx(97.5)
    assert many.gaps == ()


@pytest.mark.parametrize(("count", "left_out"), [(120, 0), (121, 1), (200, 80)])
def test_of_many_calls_the_first_sixty_and_the_last_are_drawn(count, left_out):
    points = points_of(row(timed(*[1.0] * count)))
    assert len(points.times) == 120
    assert [gap for _, gap in points.gaps] == [left_out] * bool(left_out)
    assert points.times.numbers[:60] == tuple(range(1, 61))
    assert points.times.numbers[-1] == count


def test_runs_of_calls_of_one_way():
    assert list(runs(["eager", "eager", "both", "eager"])) == [("eager", 0, 2), ("both", 2, 1), ("eager", 3, 1)]
    assert list(runs([])) == []


@pytest.mark.parametrize(
    ("seconds", "every", "is_loop"),
    [(1.0, 2.0, True), (1.0, 2.1, False), (1.0, 1.0, True)],
)
def test_where_eager_calls_take_half_of_each_turn_the_turns_are_drawn(seconds, every, is_loop):
    points = points_of(row(timed(*[seconds] * 4, every=every)))
    assert (points.what == "time from one call to the next") == is_loop
    assert points.times.seconds == ((every,) * 3 if is_loop else (seconds,) * 4)


def test_a_turn_is_from_a_call_to_the_very_next_one():
    points = points_of(row(timed(*[1.0] * 4, numbers=(1, 2, 9, 10), every=1.0)))
    assert (points.times.numbers, points.times.seconds) == ((1, 9), (1.0, 1.0))


def test_without_an_eager_call_at_first_nothing_says_that_it_is_a_loop():
    assert points_of(row(timed(*[1.0] * 4, ways=["compiled"] * 4, every=1.0))).what == RETURNED
    # What is measured both ways counts for eager calls: 1.5 of 2 s.
    both = row(timed(0.1, 0.1, 0.1, every=2.0), basis="both ways", eager_seconds=1.5)
    assert points_of(both).what == "time from one call to the next"
    assert points_of(replace(both, basis="before")).what == RETURNED


# The curve ------------------------------------------------------------------------------------------------------------


def styles(page, name):
    return [
        {
            key: float(re.match(r"[-\d.]+", value)[0])
            for key, value in (part.split(":") for part in tag["style"].split(";"))
        }
        for tag in page.of(name)
        if tag.get("style")
    ]


def test_a_point_is_as_high_as_its_logarithm_and_says_its_call():
    page = Page(curve(row(timed(1.0, 0.1, 0.01, ways=["eager", "both", "compiled"], numbers=(1, 2, 1200))), ()))
    # From 0.01 / 1.5 to 1.5: 10 times is 46 % of the way.
    points = [tag for tag in page.of("hp-point") if tag.get("style")]
    assert [style["bottom"] for style in styles(page, "hp-point")] == pytest.approx([92.5, 50.0, 7.5], abs=0.06)
    assert [tag["title"] for tag in points] == [
        "call 1, eager: 1 s", "call 2, both ways, compared: 100 ms", "call 1,200, compiled: 10 ms",
    ]  # fmt: skip
    assert [tag["title"] for tag in page.of("hp-gap")] == ["1,197 more calls"]


@pytest.mark.parametrize(
    ("times", "empty"), [(timed(), True), (timed(1.0), True), (timed(0.0, 0.0), True), (timed(0.0, 1.0), False)]
)
def test_a_curve_needs_two_calls_that_took_time(times, empty):
    assert (curve(row(times), ()) == "") == empty


@pytest.mark.parametrize(
    ("eager", "compiled", "bottoms"),
    [
        # 12 pixels are 8 % of the plot: labels of levels further apart stand at them, else each gives way by half.
        (1.0, 0.01, [-6.0, -6.0]),
        (1.0, 1.0, [-12.0, 0.0]),
        (1.0, nan, [-6.0]),
        (inf, 1.0, [-6.0]),
    ],
)
def test_labels_of_levels_give_way_to_each_other(eager, compiled, bottoms):
    made = row(timed(1.0, 0.01), eager_seconds=eager, compiled_seconds=compiled)
    html = curve(made, ())
    places = [float(place) for place in re.findall(r'class="hp-level[^>]*><b style="bottom:([-\d.]+)px"', html)]
    assert places == bottoms
    assert ("hp-eager" in html, "hp-compiled" in re.sub("hp-point hp-compiled", "", html)) == (
        True, compiled == compiled,
    )  # fmt: skip


def test_a_band_is_over_the_calls_that_began_while_it_was_compiled():
    times = timed(*[1.0] * 6)  # they begin at 0, 10, …, 50
    events = [HotEvent(10.0, "f", "compile"), HotEvent(0.0, "g", "compiled"), HotEvent(30.0, "f", "compiled")]
    page = Page(curve(row(times, compile_seconds=20.0), events))
    (band,) = styles(page, "hp-beside")
    assert (band["left"], band["width"]) == (pytest.approx(12.5), pytest.approx(16.67))
    assert page.of("hp-beside")[0]["title"] == "compiled in the background in 20 s"
    for other in (
        [HotEvent(11.0, "f", "compile"), HotEvent(19.0, "f", "compiled")],  # none began meanwhile
        [HotEvent(30.0, "f", "compiled")],
        [HotEvent(10.0, "g", "compile"), HotEvent(30.0, "f", "compiled")],
    ):
        assert not styles(Page(curve(row(times), other)), "hp-beside")
    assert not styles(Page(curve(row(times, is_background=False), events)), "hp-beside")
    single = [HotEvent(10.0, "f", "compile"), HotEvent(11.0, "f", "compiled")]
    assert styles(Page(curve(row(times), single)), "hp-beside")[0]["width"] == 1  # so that it is seen


def test_the_key_counts_calls_also_those_that_are_not_drawn():
    ways = ["eager", "both", "compiled", "compiled", "eager"]
    page = Page(curve(row(timed(*[1.0] * 5, ways=ways, numbers=(1, 2, 3, 1000, 1001)), compile_seconds=0.5), ()))
    assert f"{RETURNED}, call 1 to 1,001" in page.text
    for part in ("eager, 2", "both ways, compared, 1", "compiled, 998", "compiled in 500 ms in the background"):
        assert part in page.text
    waited = Page(curve(row(timed(1.0, 1.0), compile_seconds=0.5, is_background=False), ()))
    assert waited.text.endswith("compiled in 500 ms")
    assert "compiled in" not in Page(curve(row(timed(1.0, 1.0)), ())).text


def test_the_curve_in_words():
    made = row(timed(1.0, 3.0, 2.0, 0.5, ways=["eager"] * 3 + ["compiled"]))
    assert describe(made) == f"{RETURNED}, f: calls 1 to 3 eager, 2 s each; calls 4 compiled, 500 ms each."


@pytest.mark.parametrize(("count", "rows"), [(40, 40), (41, 40), (3, 3)])
def test_the_table_has_the_first_twenty_calls_and_the_last(count, rows):
    html = call_table(row(timed(*[1.0] * count)))
    assert html.count("<tr>") == rows + 1
    assert ("the first and the last 20" in html) == (count > 40)
    assert f"<td>{count}</td>" in html
    assert call_table(row(timed())) == ""


# The picture ----------------------------------------------------------------------------------------------------------


def labels(page):
    return [(mark.text, mark.x, mark.y) for mark in page.page if isinstance(mark, Label)]


def test_a_panel_for_each_of_four_functions_with_a_curve_and_a_row_for_each_that_stays_eager():
    calls = timed(1.0, 0.5)
    stays = HotRow("g", state="eager", reason="it reads a value", reason_file="/x/a.py", reason_line=7, times=calls)
    made = HotPaths((*(replace(row(calls), name=f"f{n}") for n in range(5)), stays, replace(stays, reason_line=0),
                     row(timed(1.0))))  # fmt: skip
    page = figure(made)
    assert len(page.panels) == 4
    assert [panel.top - page.panels[0].top for panel in page.panels] == [0, 184, 368, 552]
    assert {panel.bottom - panel.top for panel in page.panels} == {110}
    rows = [(text, y) for text, _, y in labels(page) if "stays eager" in text]
    assert [text for text, _ in rows] == [
        "g stays eager: it reads a value (a.py, line 7)", "g stays eager: it reads a value",
    ]  # fmt: skip
    assert rows[0][1] > page.panels[-1].bottom
    assert rows[1][1] - rows[0][1] == 20
    assert page.height > rows[1][1]
    titles = [(text, y) for text, _, y in labels(page) if re.match(r"f\d: ", text)]
    assert [panel.top - y for (_, y), panel in zip(titles, page.panels, strict=True)] == [26] * 4


@pytest.mark.parametrize(
    ("eager", "compiled", "apart"),
    [(1.0, 0.001, None), (1.0, 1.0, 13), (0.999, 1.0, 13), (nan, 1.0, None), (0.0, 1.0, None)],
)
def test_figures_of_both_medians_stand_thirteen_pixels_apart_at_least(eager, compiled, apart):
    panel = figure(HotPaths((row(timed(1.0, 0.001), eager_seconds=eager, compiled_seconds=compiled),))).panels[0]
    lines = [mark for mark in panel.marks if isinstance(mark, Path)]
    texts = [mark for mark in panel.marks if isinstance(mark, Label)]
    assert len(lines) == len(texts) == (2 if eager > 0 else 1)
    ys = [panel.place(text.x, text.y)[1] + text.dy for text in texts]
    if len(ys) > 1:
        assert ys[1] - ys[0] == pytest.approx(apart, abs=0.2) if apart else ys[1] - ys[0] > 50
    assert ys[0] - panel.place(0, lines[0].y[0])[1] == pytest.approx(4)


def test_calls_of_each_way_have_their_symbol():
    ways = ["eager", "both", "compiled", "missed"]
    panel = figure(HotPaths((row(timed(1.0, 0.5, 0.1, 0.0, ways=ways)),))).panels[0]
    points = [mark for mark in panel.marks if isinstance(mark, Points)]
    assert [(mark.symbol, mark.hollow) for mark in points] == [
        ("circle", True), ("diamond", False), ("circle", False), ("triangle-up", False),
    ]  # fmt: skip
    assert points[3].y == [panel.y.low]  # what took no time that a clock saw stands on the ground
    assert points[0].hover == ["call 1, eager: 1 s"]


# The timeline of operations -------------------------------------------------------------------------------------------


def timeline(*compiles, threads=None, end=10.0):
    threads = threads or (ThreadOperations("main", (4, 0, 2), (0, 0, 6)),)
    return OperationTimeline("a.log", 0.0, end, threads, compiles, {("add", False): 6, ("step", True): 6})


def test_compiled_operations_stand_upon_single_ones_each_in_its_part_of_the_time():
    (panel,) = OperationTimelineView().figure(timeline(end=9.0)).panels
    single, compiled = [mark for mark in panel.marks if isinstance(mark, Bars)]
    assert (single.colour, single.boxes) == (ORANGE, [(0.0, 3.0, 4.0, 0.0), (6.0, 9.0, 2.0, 0.0)])
    assert (compiled.colour, compiled.boxes) == (BLUE, [(6.0, 9.0, 8.0, 2.0)])
    assert (panel.x.high, panel.y.low) == (9.0, 0.0)
    assert panel.y.high >= 8
    empty = timeline(threads=(ThreadOperations("main", (0, 0), (0, 0)),))
    assert OperationTimelineView().figure(empty).panels[0].y.high >= 1.0


@pytest.mark.parametrize("count", [6, 7])
def test_six_threads_are_drawn_below_each_other(count):
    page = OperationTimelineView().figure(timeline(threads=(ThreadOperations("t", (1,), (0,)),) * count))
    assert len(page.panels) == 6
    assert [panel.top - page.panels[0].top for panel in page.panels] == [172 * n for n in range(6)]
    assert page.height == page.panels[-1].bottom + 48


def test_a_compile_is_a_bar_at_its_time_with_its_name_where_there_is_room():
    page = OperationTimelineView().figure(
        timeline(LoggedCompile("late", 7.1, 9.0, True), LoggedCompile("early", 7.0, 7.5, False),
                 LoggedCompile("f" * 41, 1.0, 1.0, True))
    )  # fmt: skip
    panel = page.panels[1]
    boxes = [mark.boxes[0] for mark in panel.marks if isinstance(mark, Bars)]
    names = [mark for mark in panel.marks if isinstance(mark, Label)]
    pixel = 10.0 / 834  # what took no time has one
    assert [(left, right) for left, right, *_ in boxes] == [(1.0, pytest.approx(1 + pixel)), (7.0, 7.5), (7.1, 9.0)]
    assert [(round(top, 1), round(bottom, 1)) for *_, top, bottom in boxes] == [(0.2, 0.8), (1.2, 1.8), (2.2, 2.8)]
    assert [(name.text, name.anchor) for name in names] == [
        ("f" * 39 + "…, 0 s", "start"), ("early, 500 ms", "start"), ("late, 1.9 s", "end"),
    ]  # fmt: skip
    # Behind the bar, or before it: never on it.
    ends = [panel.place(name.x, name.y)[0] + name.dx for name in names]
    assert ends == pytest.approx([panel.place(x, 0)[0] + dx for x, dx in ((1 + pixel, 6), (7.5, 6), (7.1, -6))])
    assert panel.bottom - panel.top == 3 * 20
    assert page.height == panel.bottom + 46


@pytest.mark.parametrize(("count", "title"), [(12, "compiles"), (13, "compiles, the longest 12")])
def test_the_twelve_longest_compiles_are_rows_in_the_order_of_time(count, title):
    compiles = [LoggedCompile(f"f{n}", float(n), n + 1.0 + n % 3, True) for n in range(count)]
    page = OperationTimelineView().figure(timeline(*compiles, end=20.0))
    starts = [mark.boxes[0][0] for mark in page.panels[1].marks if isinstance(mark, Bars)]
    assert len(starts) == 12
    assert starts == sorted(starts)
    assert title in [text for text, *_ in labels(page)]


def test_the_key_has_what_there_is():
    page = OperationTimelineView().figure(timeline(LoggedCompile("f", 0.0, 1.0, True)))
    shown = [(text, x) for text, x, _ in labels(page) if text in ("one by one", "compiled functions", "compiling")]
    assert shown == [("one by one", 40), ("compiled functions", 40 + 40 + 70), ("compiling", 150 + 40 + 126)]
    alone = OperationTimelineView().figure(timeline(threads=(ThreadOperations("main", (1,), (0,)),)))
    assert not {"compiled functions", "compiling"} & {text for text, *_ in labels(alone)}


def test_the_tables_of_a_timeline():
    operations, compiles = OperationTimelineView().tables(timeline(LoggedCompile("f", 0.5, 0.75, True)))
    assert operations.rows == [("add", "6"), ("step (compiled)", "6")]
    assert compiles.rows == [("f", "500 ms", "250 ms")]
    assert len(OperationTimelineView().tables(timeline())) == 1
