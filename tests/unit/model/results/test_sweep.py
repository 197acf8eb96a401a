"""Points of a sweep: along what they are told, in which series, and as a table."""

from dataclasses import replace

import pytest

from explorer.model.results.statistics import Axis
from explorer.model.results.sweep import Sweep, SweepRow, text_table
from explorer.model.results.timing import Samples

N = Axis("n", ("64", "16", "256"), (64.0, 16.0, 256.0))
TYPES = Axis("dtype", ("f32", "bf16"))
ONE = Axis("batch", ("8",), (8.0,))


def rows(*axes):
    points = [()]
    for axis in axes:
        points = [(*point, at) for point in points for at in range(len(axis))]
    return [SweepRow(at, {axis.name: axis.labels[i] for axis, i in zip(axes, at, strict=True)}) for at in points]


def swept(*axes, **more):
    return Sweep("f", axes, more.pop("rows", None) or rows(*axes), **more)


@pytest.mark.parametrize(
    ("axes", "over"),
    [
        ((N,), 0),
        ((TYPES, N), 1),  # numbers before kinds
        ((ONE, TYPES), 1),  # one value is nothing to go along
        ((TYPES, ONE), 0),
        ((ONE,), 0),
    ],
)
def test_a_sweep_is_told_along_its_first_numbers(axes, over):
    assert swept(*axes).over == over


@pytest.mark.parametrize(
    ("axes", "series"),
    [
        ((N,), {"": ["16", "64", "256"]}),  # by size, not as given
        ((TYPES, N), {"f32": ["16", "64", "256"], "bf16": ["16", "64", "256"]}),
        ((N, Axis("k", ("1", "2"), (1.0, 2.0))), {"k = 1": ["16", "64", "256"], "k = 2": ["16", "64", "256"]}),
        ((N, ONE), {"": ["16", "64", "256"]}),  # what has one value goes without saying
    ],
)
def test_rows_are_in_series_by_what_they_have_in_common(axes, series):
    assert {one.label: [row.values["n"] for row in one.rows] for one in swept(*axes).series} == series


def test_kinds_stay_in_their_order():
    (series,) = swept(TYPES, ONE).series
    assert [row.values["dtype"] for row in series.rows] == ["f32", "bf16"]


def test_a_point_is_named_by_all_its_values_and_those_that_failed_are_known():
    points = rows(TYPES, ONE)
    points[1] = replace(points[1], error="no bf16 here")
    sweep = swept(TYPES, ONE, rows=points)
    assert [sweep.label(row) for row in sweep] == ["dtype = f32, batch = 8", "dtype = bf16, batch = 8"]
    assert (sweep.failed, len(sweep)) == ((points[1],), 2)


def test_what_took_no_time_has_no_bar():
    text = repr(swept(ONE, rows=[replace(rows(ONE)[0], steady=Samples((0.0,)))]))
    assert "▏" not in text


def test_figures_stand_to_the_right_and_words_to_the_left():
    table = [("n", "±", "kind", ""), ("8", "–", "f32", ""), ("128", "±3 %", "8", "an error")]
    assert text_table(table) == ["    n     ±  kind", "    8     –  f32", "  128  ±3 %  8     an error"]
    assert text_table([("n", "bar"), ("8",), ("16",)]) == ["   n  bar", "   8", "  16"]


STEADY = Samples((0.001,) * 9)
MEMORY = {"argument": 1_000, "output": 2_000, "temp": 500, "alias": 0, "generated code": 0}
STAGES = {"trace": 0.001, "lower": 0.002, "compile": 0.003, "run": 0.004}


def test_a_table_has_times_where_they_were_measured_and_what_is_known_of_each_point():
    first, second, third = rows(N)
    points = [
        replace(first, steady=STEADY, stages=STAGES, memory=MEMORY, kernels=1234),
        replace(second, error="e" * 100),
        third,
    ]
    assert swept(N, rows=points).table() == [
        ("n", "time", "", "±", "compile", "memory", "kernels"),
        ("64", "1 ms", "█" * 12, "±3 %", "6 ms", "3.5 kB", "1,234"),
        ("16", "–", "", "", "–", "–", "–", "e" * 90),
        ("256", "–", "", "", "–", "–", "–"),
    ]
    assert (points[0].first_call, points[0].seconds, points[0].peak) == (pytest.approx(0.01), 0.001, 3_500)


def test_an_estimate_is_called_one_and_stands_where_nothing_was_measured():
    first, second, third = rows(N)
    points = [replace(first, least=0.002), replace(second, least=0.003), third]
    head, *cells = swept(N, rows=points).table()
    assert head == ("n", "least, estimated", "compile", "memory", "kernels")
    assert [row[1] for row in cells] == ["2 ms", "3 ms", "–"]
    assert swept(N).table()[0] == ("n", "compile", "memory", "kernels")
