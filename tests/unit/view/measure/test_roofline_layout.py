"""Where kernels, roofs and names of a roofline stand, on figures made by hand."""

import math
from dataclasses import replace

import pytest

from explorer.model.results.roofline import Peaks, Point, Roofline
from explorer.view.measure.roofline import HIGH, WIDE, Kernel, Roof, _label, _side, layout_of, unknown_text

MACHINE = Peaks("m", bandwidth=10e9, matmul={"f32": 100e9}, fma={"f32": 50e9}, overhead=1e-7)


def point(name, seconds=1.0, flops=1e9, moved=1e9, least=0.5, bound="memory", line=3, text="y = x", **more):
    intensity = flops / moved if moved else math.inf
    place = ("/x/train.py", line) if line else ("", 0)
    return Point(
        name, "fusion", "jit_f", seconds, flops, moved, intensity, flops / seconds, least, bound, *place, text, **more
    )


def layout(*points, peaks=MACHINE):
    return layout_of(Roofline("f", "()", peaks, points))


def roofs(peaks, dtype="f32"):
    return {roof.kind: roof for roof in layout(point("a", dtype=dtype), peaks=peaks).roofs}


# Roofs ----------------------------------------------------------------------------------------------------------------


def test_a_slope_rises_with_the_bandwidth_and_meets_the_highest_level_where_both_are_equal():
    made = layout(point("a", dtype="f32"))
    by_kind = {roof.kind: roof for roof in made.roofs}
    slope, level = by_kind["memory"], by_kind["matmul"]
    assert slope.x == (made.x[0], 10.0)  # 100 GFLOP/s at 10 GB/s
    assert slope.y == (made.x[0] * 10e9, 100e9)
    assert (level.x, level.y) == ((10.0, made.x[1]), (100e9, 100e9))
    assert (by_kind["fma"].x[0], by_kind["fma"].y) == (5.0, (50e9, 50e9))
    assert [roof.name for roof in made.roofs] == [
        "memory 10 GB/s", "matmul f32 100 GFLOP/s", "arithmetic f32 50 GFLOP/s",
    ]  # fmt: skip


@pytest.mark.parametrize(("cache", "shown"), [(11.5e9, False), (11.6e9, True)])
def test_a_cache_is_a_roof_where_it_is_clearly_faster_than_memory(cache, shown):
    by_kind = roofs(replace(MACHINE, caches={1 << 20: cache, 1 << 24: 9e9}))
    assert ("cache" in by_kind) == shown
    # The levels begin where the fastest slope meets them.
    assert by_kind["matmul"].x[0] == pytest.approx(100e9 / max(cache, 10e9))
    if shown:
        assert by_kind["cache"].name == "cache 11.6 GB/s"


@pytest.mark.parametrize(
    ("fresh", "shown"), [(0.0, False), (1.0, True), (7.6e9, True), (7.8e9, False), (math.nan, False)]
)
def test_new_memory_is_a_roof_where_it_is_clearly_slower(fresh, shown):
    assert ("fresh" in roofs(replace(MACHINE, fresh=fresh))) == shown


@pytest.mark.parametrize(
    ("rates", "dtype", "names"),
    [
        ({"f32": 1e9, "bf16": 2e9, "f64": 3e9}, "bf16", {"matmul f32 1 GFLOP/s", "matmul bf16 2 GFLOP/s"}),
        ({"f32": 1e9, "bf16": 2e9}, "", {"matmul f32 1 GFLOP/s"}),
        ({"bf16": 2e9}, "f32", {"matmul bf16 2 GFLOP/s"}),  # there is no other
        ({}, "f32", set()),
    ],
)
def test_levels_are_those_of_the_types_that_are_computed_in(rates, dtype, names):
    made = layout(point("a", dtype=dtype), peaks=replace(MACHINE, matmul=rates, fma={}))
    assert {roof.name for roof in made.roofs if roof.kind == "matmul"} == names


def test_without_a_level_there_is_no_slope():
    assert layout(point("a"), peaks=replace(MACHINE, matmul={}, fma={})).roofs == []


# Kernels --------------------------------------------------------------------------------------------------------------


def test_a_kernel_stands_at_its_intensity_and_rate_under_the_rate_that_it_could_have():
    (mark,) = layout(point("a", seconds=2.0, flops=4e9, moved=2e9, least=0.5)).kernels
    assert (mark.x, mark.y, mark.roof) == (2.0, 2e9, 8e9)
    assert mark.radius == 13.0
    copy, _ = layout(point("copy", flops=0.0, moved=3e9, seconds=2.0, least=0.5), point("b")).kernels
    # Without arithmetic: on the left, as high as its bandwidth, and its roof as the least time's.
    left = layout(point("copy", flops=0.0, moved=3e9, seconds=2.0, least=0.5), point("b")).column
    assert (copy.x, copy.y, copy.roof) == (left, left * 1.5e9, left * 6e9)


def test_the_axis_holds_the_kernels_and_both_sides_of_the_ridge():
    # The ridge is at 10; a twentieth and four times of it are there in any case, and a factor of 1.6 beside them.
    made = layout(point("a"))
    assert made.x == (pytest.approx(0.5 / 1.6), pytest.approx(40 * 1.6))
    made = layout(point("a", moved=1e12), point("b", flops=1e12))
    assert made.x == (pytest.approx(1e-3 / 1.6), pytest.approx(1e3 * 1.6))
    made = layout(point("a", flops=0.0))
    assert made.column == pytest.approx(0.5 / 6)
    assert made.x[0] == pytest.approx(made.column / 1.6)
    assert layout(point("a", moved=0.0)).kernels[0].x == 40  # without a byte: at the right end


def test_the_axis_of_rates_begins_below_what_takes_time():
    # A hundredth of the highest level, halved; or what is slower and takes more than a thousandth of the time.
    assert layout(point("a", flops=50e9)).y == (pytest.approx(0.5e9), pytest.approx(220e9))
    assert layout(point("a", flops=0.1e9)).y[0] == pytest.approx(0.05e9)
    tiny = point("b", seconds=1e-4, flops=1e2, moved=1e2)
    assert layout(point("a", flops=50e9), tiny).y[0] == pytest.approx(0.5e9)
    assert [mark.tooltip[0][:1] for mark in layout(point("a", flops=50e9), tiny).kernels] == ["a"]
    assert layout(point("a", flops=1.0)).y[0] == pytest.approx(1e4)  # never more than seven powers of ten


@pytest.mark.parametrize(("count", "drawn"), [(80, 80), (81, 80)])
def test_eighty_kernels_are_drawn(count, drawn):
    assert len(layout(*(point(f"k{n}") for n in range(count))).kernels) == drawn


def test_kernels_without_costs_or_a_least_time_are_not_drawn():
    made = layout(point("a"), point("b", bound="unknown"), point("c", least=0.0))
    assert [mark.tooltip[0][:1] for mark in made.kernels] == ["a"]


def test_kernels_at_one_place_that_are_called_alike_have_one_label_with_their_number():
    same = {"flops": 1e12, "moved": 1e9, "line": 7, "computes": "add, multiply"}
    made = layout(*(point(name, **same) for name in "abc"))
    assert [mark.label for mark in made.kernels] == ["7: add, multiply ×3", "", ""]
    assert [bool(mark.side) for mark in made.kernels] == [True, False, False]
    # Another name, or another place, is another label.
    named = layout(point("a", **same), point("b", **{**same, "computes": "tanh"}))
    assert {mark.label for mark in named.kernels} == {"7: add, multiply", "7: tanh"}
    apart = layout(point("a", **same), point("b", **{**same, "flops": 1e10}))
    assert [mark.label for mark in apart.kernels] == ["7: add, multiply"] * 2


def test_the_five_longest_that_are_worth_it_have_names():
    spread = [point(f"k{n}", flops=2e9 * 1.6**n, moved=1e9, line=n + 1, text=f"t{n}") for n in range(7)]
    labels = [mark.label for mark in layout(*spread).kernels]
    assert sum(map(bool, labels)) == 5
    assert not any(labels[5:])
    # From three percent of the time on.
    for seconds, named in ((3.0, True), (2.9, False)):
        whole = [point("a", seconds=100 - seconds, flops=1e12), point("b", seconds=seconds, flops=2e10)]
        assert bool(layout(*whole).kernels[1].label) == named


def test_the_area_is_the_time_down_to_a_point_that_can_be_seen():
    marks = layout(point("a", seconds=4.0), point("b", seconds=1.0), point("c", seconds=0.01)).kernels
    assert [mark.radius for mark in marks] == [13.0, 6.5, 3.5]


# Names ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("taken", "side"),
    [
        ([], "right"),
        ([(420, 430, 100)], "left"),
        ([(420, 430, 113)], "left"),
        ([(420, 430, 114)], "right"),  # more than 13 pixels above
        ([(420, 430, 86)], "right"),
        ([(479, 500, 100)], "left"),  # ten letters are 63 pixels, from 416 to 479
        ([(480, 500, 100)], "right"),
        ([(0, 415, 100)], "right"),
        ([(0, 416, 100)], "below"),
        ([(0, 840, 100)], "below"),
        ([(0, 840, 100), (0, 840, 78)], ""),
    ],
)
def test_a_name_stands_right_left_or_below_where_none_meets_it(taken, side):
    mark = Kernel(1.0, 1.0, 1.0, 10.0, "memory", "a" * 10, ())
    places = list(taken)
    assert _side(mark, 400.0, 100.0, places) == side
    assert len(places) == len(taken) + bool(side)
    if side == "right":
        assert places[-1] == (416.0, pytest.approx(479.0), 100.0)
    if side == "left":
        assert places[-1] == (pytest.approx(321.0), 384.0, 100.0)
    if side == "below":
        assert places[-1] == (pytest.approx(368.5), pytest.approx(431.5), 78.0)


@pytest.mark.parametrize(
    ("x", "y", "side"), [(762.0, 100.0, "left"), (760.0, 100.0, "right"), (2.0, 1.0, "right"), (838.0, 0.0, "")]
)
def test_a_name_stands_within_the_plot(x, y, side):
    mark = Kernel(1.0, 1.0, 1.0, 10.0, "memory", "a" * 10, ())
    assert _side(mark, x, y, []) == side


def test_a_name_meets_neither_the_name_of_a_level_nor_another_kernel():
    made = layout(*(point(f"k{n}", flops=2e9 + n, moved=1e9, line=n + 1) for n in range(5)), point("z", flops=3e9))
    ys = [math.log(mark.y / made.y[0]) / math.log(made.y[1] / made.y[0]) * HIGH for mark in made.kernels if mark.label]
    sides = [mark.side for mark in made.kernels if mark.label]
    assert len(set(sides)) == len(sides)  # they stand on one spot: each has another side
    assert all(0 < y < HIGH < WIDE for y in ys)
    assert all(bool(mark.label) == bool(mark.side) for mark in made.kernels)
    assert isinstance(made.roofs[0], Roof)


@pytest.mark.parametrize(
    ("given", "label"),
    [
        (point("fusion.1", computes="tanh, multiply"), "3: tanh, multiply"),
        (point("fusion.1"), "3: y = x"),
        (point("fusion.1", text=""), "3: fusion.1"),
        (point("fusion.1", line=0, text=""), "fusion.1"),
        (point("k", text="t" * 26), "3: " + "t" * 26),
        (point("k", text="t" * 27), "3: " + "t" * 25 + "…"),
    ],
)
def test_a_kernel_is_called_what_it_computes_or_its_line_or_its_name(given, label):
    assert _label(given) == label


def test_a_tooltip_has_the_figures():
    slow = point("fusion.1", seconds=0.5, flops=1e9, moved=2e9, least=0.1, dtype="f32", computes="tanh", runs=3.0,
                 special={"tanh": 1200.0, "exp": 7.0})  # fmt: skip
    (mark, _) = layout(slow, point("b", seconds=0.5)).kernels
    assert mark.tooltip == (
        "tanh", "fusion.1 (fusion of f32)", "train.py:3  y = x", "500 ms a call, 50% of the time, 3 runs",
        "bound by memory: reaches 20%, could take 100 ms", "2 GFLOP/s, 4 GB/s, 0.5 FLOPs a byte",
        "computes tanh ×1,200, exp ×7",
    )  # fmt: skip
    (plain,) = layout(point("b", line=0, text="", runs=1.0)).kernels
    assert plain.tooltip[:3] == ("b (fusion)", "no line is known", "1 s a call, 100% of the time")


def test_kernels_without_costs_are_named_with_their_part_of_the_time():
    unknown = [point(f"u{n}", bound="unknown", flops=math.nan) for n in range(4)]
    assert unknown_text(Roofline("f", "()", MACHINE, [point("a")])) == ""
    three = Roofline("f", "()", MACHINE, [point("a"), *unknown[:3]])
    assert unknown_text(three) == "No costs are known of: u0 1 s, u1 1 s, u2 1 s (75% of the time)"
    four = Roofline("f", "()", MACHINE, [point("a"), *unknown])
    assert unknown_text(four) == "No costs are known of: u0 1 s, u1 1 s, u2 1 s and 1 more (80% of the time)"
    assert unknown_text(four, most=1) == "No costs are known of: u0 1 s and 3 more (80% of the time)"
