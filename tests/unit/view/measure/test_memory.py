"""Where the lines, bars and names of memory stand, and which there are, on figures made by hand."""

import math
from itertools import pairwise

import pytest

from explorer.model.results.memory_use import Largest, MemoryRow, MemoryUse
from explorer.model.results.statistics import Axis
from explorer.view.figure import Bars, Label, Path, Points
from explorer.view.measure.memory import MemoryView, is_curve


def numbers(name, *values):
    return Axis(name, tuple(f"{value:g}" for value in values), tuple(map(float, values)))


def marks(panel, kind):
    return [mark for mark in panel.marks if isinstance(mark, kind)]


def use(*needed, limit=0, largest=None, **more):
    axis = numbers("n", *(2**i for i in range(len(needed))))
    rows = [MemoryRow((i,), {"n": 2**i}, {"argument": size}) for i, size in enumerate(needed)]
    return MemoryUse("f", "", (axis,), rows, "", limit, largest, **more)


@pytest.mark.parametrize(
    ("limit", "shown"), [(0, False), (7999, True), (8000, False), (100, True)], ids=lambda value: str(value)
)
def test_the_limit_is_a_line_unless_it_is_twenty_times_what_is_needed(limit, shown):
    panel = MemoryView().figure(use(200, 400, limit=limit)).panels[0]
    assert any(mark.text.startswith("limit") for mark in marks(panel, Label)) == shown


@pytest.mark.parametrize(("limit", "shown"), [(0, False), (2999, True), (3000, False)])
def test_of_bars_it_is_one_unless_it_is_three_times_that(limit, shown):
    made = MemoryUse("f", "", (), [MemoryRow((), {}, {"argument": 900, "temp": 100})], "", limit)
    panel = MemoryView().figure(made).panels[0]
    assert any(mark.text.startswith("limit") for mark in marks(panel, Label)) == shown
    assert panel.x.high == max(1000, limit if shown else 0)
    assert [bars.boxes for bars in marks(panel, Bars)][:3] == [
        [(0.0, 900.0, 0.15, 0.85)], [], [(900.0, 1000.0, 0.15, 0.85)],
    ]  # fmt: skip


def test_names_at_the_ends_of_lines_stand_apart_or_are_left_out():
    rows = [
        MemoryRow((i,), {"n": 2**i}, dict.fromkeys(("argument", "output", "temp", "generated code"), 1000 * 2**i))
        for i in range(3)
    ]
    made = MemoryUse("f", "", (numbers("n", 1, 2, 4),), rows, "", 0)
    panel = MemoryView().figure(made).panels[0]
    labels = marks(panel, Label)
    ys = sorted(panel.place(mark.x, mark.y)[1] + mark.dy for mark in labels)
    assert labels[0].text == "all together"
    assert len(ys) >= 4
    assert all(after - before > 12 for before, after in pairwise(ys))


@pytest.mark.parametrize(("part", "shown"), [(5, False), (6, True)])
def test_a_use_of_half_a_percent_of_all_has_no_line(part, shown):
    rows = [MemoryRow((i,), {"n": i}, {"argument": 1000 - part, "temp": part}) for i in range(2)]
    made = MemoryUse("f", "", (numbers("n", 1, 2),), rows, "", 0)
    assert is_curve(made)
    assert len(marks(MemoryView().figure(made).panels[0], Points)) == 2 + shown


def test_the_largest_that_fits_hangs_on_the_last_size_and_the_axes_reach_it():
    panel = MemoryView().figure(use(100, 200, limit=1000, largest=Largest("n", 9, 900.0, 9.1, 10))).panels[0]
    dotted = [mark for mark in marks(panel, Path) if mark.dash == "dot"]
    assert [(mark.x, mark.y) for mark in dotted] == [([2.0, 9.0], [200.0, 900.0])]
    assert panel.x.high >= 9
    assert panel.y.high >= 1000
    none = MemoryView().figure(use(100, 200, limit=1000, largest=Largest("n", 0, math.nan, math.nan, 1))).panels[0]
    assert not [mark for mark in marks(none, Path) if mark.dash == "dot"]
