"""Where the cells and frames of the grid stand, and the marks of its picture: by hand, from the sizes."""

import itertools
import re
from dataclasses import replace

import pytest

import explorer as ex
from explorer.view.figure import Bars, Label, Path
from explorer.view.padding import Cell, content, figure, grid_of
from tests.unit.view.hotpath.test_hot_paths_view import Page
from tests.unit.view.padding.test_dynamic_report_view import LARGE, PADDED, ROW


def called(calls, padded, **sizes):
    """A size of `calls` calls, of whose FLOPs `padded` are padding."""
    bucket = dict.fromkeys(sizes, 64)
    return ex.types.PaddedSizes(sizes, bucket, calls, (0.001,) * calls, True, 1, 1, 100.0 * (1 - padded), 100.0)


def grid(*rows, b=(1, 8, 64), s=(1, 8, 64), **more):
    return grid_of(replace(PADDED, dimensions={"b": b, "s": s}, sizes=rows, **more))


def test_the_last_cell_ends_where_the_sizes_end():
    # 33 sizes do not fit into 32 cells: two sizes share each, and the last one has its cell alone.
    (cell,) = grid(called(1, 0.5, b=33, s=33), b=(1, 8, 33), s=(1, 8, 33)).cells
    assert (cell.left, cell.right, cell.low, cell.high) == (32.5, 33.5, 32.5, 33.5)


@pytest.mark.parametrize(("most", "wide"), [(2, 1), (32, 1), (33, 2), (64, 2), (65, 3)], ids="{} sizes".format)
def test_as_many_sizes_share_a_cell_as_32_cells_need(most, wide):
    (cell,) = grid(called(1, 0.0, b=1, s=1), b=(1, 1, most)).cells
    assert (cell.left, cell.right) == (0.5, 0.5 + wide)


def test_cells_begin_at_the_least_size_and_an_empty_size_has_no_cell():
    (cell,) = grid(called(1, 0.0, b=12, s=7), b=(10, 12, 20), s=(0, 3, 9)).cells
    assert (cell.left, cell.right, cell.low, cell.high) == (11.5, 12.5, 6.5, 7.5)
    assert grid(called(1, 0.0, b=12, s=7), s=(0, 3, 9)).y.low == 0.5
    assert grid(called(1, 0.0, b=12, s=7), b=(10, 12, 20)).x.low == 9.5
    assert grid(called(1, 0.0, b=12, s=7), b=(10, 12, 20)).x.high == 20.5


def test_a_cells_waste_is_that_of_its_calls_and_it_says_of_how_many_sizes():
    # One call is all for nothing, three are a fifth: (1 + 3 × 0.2) / 4.
    shared = grid(called(1, 1.0, b=1, s=1), called(3, 0.2, b=2, s=1), called(1, 0.5, b=3, s=1)).cells
    assert [cell.waste for cell in shared] == pytest.approx([0.4, 0.5])
    assert [cell.hover for cell in shared] == [
        "b = 1, s = 1 and 1 size near it: 40% padding, 4 calls",
        "b = 3, s = 1: 50% padding, 1 call",
    ]


@pytest.mark.parametrize(
    ("waste", "level"), [(0.0, 0.0), (0.12, 0.0), (0.13, 0.25), (0.37, 0.25), (0.6, 0.5), (0.7, 0.75), (0.9, 1.0)]
)
def test_the_key_has_the_nearest_shade(waste, level):
    assert Cell(0, 1, 0, 1, waste, "").level == level


def test_ticks_are_the_ends_and_the_buckets_between_them():
    made = grid(called(1, 0.0, b=1, s=1), buckets={"b": (1, 16, 64), "s": (8, 32)})
    assert (made.x.ticks, made.y.ticks) == ((1, 16, 64), (1, 8, 32, 64))
    assert grid(called(1, 0.0, b=1, s=1), buckets=None).x.ticks == (1, 64)


def test_two_dimensions_must_vary_and_one_that_has_a_single_size_does_not():
    assert grid(called(1, 0.0, b=1, s=1), s=(8, 8, 9)) is not None
    assert grid(called(1, 0.0, b=1, s=1), s=(8, 8, 8)) is None


def test_elements_of_the_page_stand_at_their_part_of_the_axes():
    # From 0.5 to 4.5: a size is a quarter of the axis.
    dimensions = {"b": (1, 2, 4), "s": (1, 2, 4)}
    binary = replace(LARGE, sizes={"b": 2, "s": 4})
    page = Page(
        content(replace(PADDED, dimensions=dimensions, sizes=(called(1, 0.5, b=2, s=3),), binaries=(binary,),
                        buckets={"b": (2,), "s": (4,)}))
    )  # fmt: skip
    assert next(tag["style"] for tag in page.of("pd-cell")) == (
        "left:25.00%;bottom:50.00%;width:25.00%;height:25.00%;--pd-waste:50%"
    )
    assert [tag["style"] for tag in page.of("pd-border")] == ["width:50.0%;height:100.0%"]
    assert [tag["style"] for tag in page.of("pd-bare")] == ["bottom:12.5%", "bottom:87.5%"]
    below = [tag["style"] for tag in page.of("pd-x")][-3:]
    assert below == ["left:12.5%", "left:37.5%", "left:87.5%"]
    assert [tag["style"] for tag in page.of("pd-cell")][1:] == [
        f"--pd-waste:{share}%" for share in (0, 25, 50, 75, 100)
    ]


# The picture ----------------------------------------------------------------------------------------------------------

ONE = replace(PADDED, sizes=(ROW,))


def test_in_the_picture_a_cell_is_as_strong_as_the_key_says_of_its_level():
    page = figure(ONE)
    (cell,) = (mark for mark in page.panels[2].marks if isinstance(mark, Bars))
    assert cell.boxes == [(30.5, 32.5, 48.5, 46.5)]
    assert cell.opacity == pytest.approx(0.1 + 0.85 * 0.75)
    swatches = [mark for mark in page.page if isinstance(mark, Bars)]
    assert [mark.opacity for mark in swatches] == pytest.approx([0.1, 0.3125, 0.525, 0.7375, 0.95])
    for swatch, text in zip(swatches, ("0%", "25%", "50%", "75%", "100%"), strict=True):
        ((left, right, top, bottom),) = swatch.boxes
        (label,) = (mark for mark in page.page if isinstance(mark, Label) and mark.text == f"{text} padding")
        assert (right - left, bottom - top) == (12, 12)
        assert (label.x - right, label.y) == (8, bottom - 2)
        assert right < label.x < page.width


def test_in_the_picture_a_frame_goes_from_the_axes_to_the_ends_of_its_bucket():
    frames = [mark for mark in figure(ONE).panels[2].marks if isinstance(mark, Path)]
    assert [(frame.x, frame.y) for frame in frames] == [
        ([0.5, 64.5, 64.5], [64.5, 64.5, 0.5]),
        ([0.5, 16.5, 16.5], [64.5, 64.5, 0.5]),
    ]


@pytest.mark.parametrize(
    ("place", "other"), [(64, 64), (64, 60), (64, 32), (64, 8), (64, 1)], ids=lambda size: str(size)
)
def test_the_names_of_two_buckets_stand_apart_or_the_second_has_none(place, other):
    binaries = tuple(replace(LARGE, sizes={"b": size, "s": 64}) for size in (place, other))
    panel = figure(replace(ONE, binaries=binaries)).panels[0]
    assert sum(isinstance(mark, Path) for mark in panel.marks) == 2  # each bucket has its line
    xs = [panel.place(mark.x, mark.y)[0] for mark in panel.marks if isinstance(mark, Label)]
    apart = abs(panel.x.at(place * 64, 0, 365) - panel.x.at(other * 64, 0, 365))
    assert len(xs) == (2 if apart > 54 else 1)


def test_panels_stand_beside_each_other_below_the_sentence_and_the_grid_below_them():
    page = figure(PADDED)
    first, second, below = page.panels
    assert first.right < second.left
    assert second.right <= page.width
    assert (first.top, first.bottom - first.top) == (second.top, 200)
    assert below.top > first.bottom + 40  # its ticks and their title
    assert page.height > below.bottom + 34
    # Where two dimensions don't both vary, the page ends below the two.
    assert figure(replace(PADDED, dimensions={"b": (1, 8, 64), "s": (64, 64, 64)})).height == first.bottom + 56


def test_each_obstacle_has_its_row_and_its_cure_below_it():
    svd = ex.types.PaddingRefusal("e", "svd", "/x/m.py", 12, "`svd` has no rule", "solve outside", "m.py", "y = svd(x)")
    several = tuple(replace(svd, line=line, hint="solve outside" if line % 2 else "") for line in range(1, 11))
    report = ex.types.DynamicReport("g", {"b": (1, 8, 64)}, "auto", "specialised", "", several)
    page = figure(report)
    rows = [(mark.text, mark.x, mark.y) for mark in page.page if isinstance(mark, Label)]
    obstacles = [row for row in rows if "`svd` has" in row[0] or row[0] == "solve outside"]
    assert [text for text, *_ in obstacles] == [
        text
        for line in range(1, 9)  # of ten, eight
        for text in (f"m.py, line {line}: `svd` has no rule", *["solve outside"] * (line % 2))
    ]
    ys = [y for *_, y in obstacles]
    assert {after - before for before, after in itertools.pairwise(ys)} == {18}
    assert {x for text, x, _ in obstacles if text == "solve outside"} == {40}
    assert ys[0] > max(y for text, _, y in rows if re.match("Specialised|g:", text))
    assert page.height > ys[-1]
