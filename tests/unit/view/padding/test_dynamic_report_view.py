"""How a report of sizes is told, shown and saved; on values alone, and once on an executable's own."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

import explorer as ex
from explorer.analysis.padding_summary import obstacles, total_waste
from explorer.errors import ResultFileError
from explorer.view.figure_svg import svg_of
from explorer.view.padding import content, figure, grid_of, plots_of
from tests.unit.view.hotpath.test_hot_paths_view import ATTACK, Page

WHEN = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
LARGE = ex.types.DynamicBinary({"b": 64, "s": 64}, True, "padded, the largest sizes", False, 0.4, WHEN, 3, 8192.0)
SMALL = replace(LARGE, sizes={"b": 16, "s": 64}, reason="padded, compiled ahead", calls=1)
ROW = ex.types.PaddedSizes(
    {"b": 32, "s": 48}, {"b": 64, "s": 64}, 3, (0.002, 0.004, 0.003), True, 600, 1600, 2500.0, 10000.0
)
OTHER = ex.types.PaddedSizes({"b": 16, "s": 64}, {"b": 16, "s": 64}, 1, (0.001,), True, 500, 500, 2000.0, 2000.0)
BOUNDS = {"b": (1, 8, 64), "s": (1, 32, 64)}
PADDED = ex.types.DynamicReport(
    "f", BOUNDS, "pad", "padded", "all are proven", rules={"add": 2, "dot_general": 5}, masks=1,
    buckets={"b": (16, 64), "s": (64,)}, binaries=(LARGE, SMALL), waiting=({"b": 2, "s": 2},), sizes=(OTHER, ROW),
)  # fmt: skip
SVD = ex.types.PaddingRefusal(
    "f32[b] = svd f32[b,b]", "svd", "/x/m.py", 12, "`svd` has no rule", "solve outside", "m.py", "y = svd(x)"
)
FFT = ex.types.PaddingRefusal("c64[b] = fft c64[b]", "fft", "", 0, "`fft` has no rule")
SPECIALISED = ex.types.DynamicReport(
    "g", {"b": (1, 8, 64)}, "auto", "specialised", "it can't be padded", (SVD, SVD, FFT)
)


def test_the_sentence_says_how_many_binaries_serve_how_many_sizes_and_what_is_padding():
    # 3 calls compute 7,500 of 30,000, one 2,000 of 2,000: 22,500 of 32,000 are for nothing.
    assert total_waste(PADDED) == (22_500 / 32_000, "FLOPs")
    assert PADDED.headline == (
        "Padded: 2 binaries serve all 4,096 sizes; 70% of the FLOPs of 4 calls are padding, most at b = 32, s = 48"
    )


@pytest.mark.parametrize(
    ("changed", "headline"),
    [
        ({"sizes": ()}, "Padded: 2 binaries serve all 4,096 sizes; no call was padded yet"),
        ({"sizes": (OTHER,)}, "Padded: 2 binaries serve all 4,096 sizes; no padding in 1 call"),
        (
            {"sizes": (replace(ROW, flops=None),), "binaries": (LARGE, replace(SMALL, is_padded=False, calls=None))},
            "Padded: 1 binary serves all 4,096 sizes, 1 of them has a binary of its own; "
            "62% of the bytes of 3 calls are padding at b = 32, s = 48",
        ),
        ({"sizes": (), "dimensions": {"b": (1, 2, 3)}}, "Padded: 2 binaries serve all 3 sizes; no call was padded yet"),
        ({"sizes": (), "dimensions": {"b": (0, 1, 2)}}, "Padded: 2 binaries serve both sizes; no call was padded yet"),
        (
            {"sizes": (), "dimensions": {"b": (4, 4, 4)}},
            "Padded: 2 binaries serve the one size; no call was padded yet",
        ),
        ({"verdict": "static"}, "Static: no size varies"),
        ({"verdict": "specialised", "why": "only 3 sizes"}, "Specialised: only 3 sizes"),
    ],
)
def test_the_sentence_of_other_cases(changed, headline):
    assert replace(PADDED, **changed).headline == headline


def test_an_empty_size_is_not_among_those_that_can_be_padded():
    empty = replace(SMALL, sizes={"b": 0, "s": 64}, is_padded=False, calls=None)
    assert replace(PADDED, binaries=(LARGE, empty)).headline.startswith("Padded: 1 binary serves all 4,096 sizes; ")


def test_where_no_flops_are_known_bytes_are_told_once():
    report = replace(PADDED, sizes=(replace(ROW, flops=None),))
    assert "padding, of the FLOPs" in PADDED.to_text()
    assert "padding, of the FLOPs" not in report.to_text()
    assert report.to_text().count("of the bytes") == 2  # in the sentence, and above the column
    assert plots_of(report)[1].values == [1000 / 1600]
    some = replace(PADDED, sizes=(replace(ROW, flops=None), OTHER))  # one measure for all of a picture
    assert sorted(plots_of(some)[1].values) == [0.0, 1000 / 1600]


def test_the_sentence_names_what_prevents_padding_each_line_once_and_counts_every_equation():
    assert [(each.name, each.count) for each in obstacles(SPECIALISED)] == [("`svd` at m.py, line 12", 2), ("`fft`", 1)]
    assert SPECIALISED.headline == "Specialised: 3 equations prevent padding: `svd` at m.py, line 12 and `fft`"


def test_the_text_has_the_line_the_equation_and_the_cure():
    text = SPECIALISED.to_text()
    for part in (
        "`svd` has no rule (2 equations)",
        "m.py, line 12:   y = svd(x)",
        SVD.equation,
        "fix       solve outside",
    ):
        assert part in text
    assert "add 2" in PADDED.to_text()
    assert "on its way b = 2, s = 2" in PADDED.to_text()


def test_the_page_has_every_obstacle_and_figure_without_a_script():
    page = Page(content(SPECIALISED))
    assert page.of("xf-line")
    for part in ("y = svd(x)", SVD.equation, "and 1 more of this line", "solve outside", "m.py, line 12"):
        assert part in page.text
    page = Page(content(PADDED))
    assert len(page.of("hp-point")) == 2 * 2 + 1  # two sizes in two plots, and the key
    assert len(page.of("pd-bucket")) == 2 * 2
    assert "b = 32, s = 48" in page.text


def test_points_stand_where_their_figures_are():
    took, waste = plots_of(PADDED)
    assert dict(zip([row.calls for row in waste.points], waste.values, strict=True)) == {3: 0.75, 1: 0.0}
    assert dict(zip([row.calls for row in took.points], took.values, strict=True)) == {3: 0.003, 1: 0.001}
    assert all(plot.x.low < 16 * 64 < 64 * 64 < plot.x.high for plot in (took, waste))


def test_a_grid_has_a_cell_where_sizes_were_called_and_a_frame_for_each_bucket():
    grid = grid_of(PADDED)
    assert (grid.across, grid.upwards, grid.what) == ("b", "s", "FLOPs")
    # 64 sizes in 32 cells: two sizes each.
    cells = {(cell.left, cell.right, cell.low, cell.high): cell.waste for cell in grid.cells}
    assert cells == {(14.5, 16.5, 62.5, 64.5): 0.0, (30.5, 32.5, 46.5, 48.5): 0.75}
    assert grid.buckets == [(64.5, 64.5, "64 × 64"), (16.5, 64.5, "16 × 64")]
    assert (grid.x.texts, grid.y.texts) == (("1", "16", "64"), ("1", "64"))
    page = Page(content(PADDED))
    assert len(page.of("pd-border")) == 2
    assert len(page.of("pd-cell")) == 2 + 5  # and the key
    assert "padding by b and s, part of the FLOPs" in svg_of(figure(PADDED))


def test_there_is_no_grid_of_one_dimension_of_three_or_of_none_that_was_called():
    one = {"b": (1, 8, 64), "s": (64, 64, 64)}
    for report in (
        replace(PADDED, dimensions=one),
        replace(PADDED, sizes=()),
        replace(PADDED, dimensions={**BOUNDS, "t": (1, 2, 3)}),
    ):
        assert grid_of(report) is None


@pytest.mark.parametrize(
    ("waited", "title"),
    [
        ((True, True), "a call, median, until its results were there"),
        ((False, False), "a call, median, until it returned"),
        ((True, False), "a call, median, until its results were there, or it returned"),
    ],
)
def test_what_was_measured_is_said(waited, title):
    rows = tuple(replace(ROW, is_waited=each) for each in waited)
    plot = plots_of(replace(PADDED, sizes=rows))[0]
    assert plot.title == title
    assert ["until it returned" in text for text in plot.hover] == [not each for each in waited]


def test_names_from_elsewhere_are_text():
    odd = replace(SVD, equation=ATTACK, reason=ATTACK, hint=ATTACK, label=ATTACK, text=ATTACK)
    report = replace(
        PADDED, function=ATTACK, refusals=(odd,), faults=(ATTACK,), dimensions={**BOUNDS, ATTACK: (1, 1, 1)}
    )
    page = Page(content(report))
    assert not [tag for tag, _ in page.tags if tag in ("script", "img")]
    assert "alert(1)" in page.text


def test_it_is_a_picture_and_a_bundle(tmp_path):
    assert "Specialised: 3 equations" in svg_of(figure(SPECIALISED))
    assert svg_of(figure(PADDED)).count("<circle") == 4
    assert PADDED._repr_mimebundle_()["text/plain"] == repr(PADDED)
    assert "Padded: 2 binaries" in PADDED.to_html(tmp_path / "x.html").read_text(encoding="utf-8")


def test_it_is_a_chart():
    pytest.importorskip("plotly")
    assert PADDED.chart().figure.data


def test_a_frame_has_a_row_for_each_size():
    pytest.importorskip("pandas")
    frame = PADDED.to_frame()
    assert frame["waste"].tolist() == [0.0, 0.75]
    assert frame["bucket_b"].tolist() == [16, 64]
    assert "calls_" in replace(PADDED, sizes=(replace(ROW, sizes={"calls": 3}, bucket={"calls": 4}),)).to_frame()


@pytest.mark.parametrize("report", [PADDED, SPECIALISED], ids=["padded", "specialised"])
def test_it_is_saved_and_loaded(tmp_path, report):
    report.save(tmp_path / "report.json")
    assert ex.types.DynamicReport.load(tmp_path / "report.json") == report


def test_a_file_whose_sizes_have_no_time_is_refused(tmp_path):
    replace(PADDED, sizes=(replace(ROW, seconds=()),)).save(tmp_path / "report.json")
    with pytest.raises(ResultFileError, match="sizes have no time"):
        ex.types.DynamicReport.load(tmp_path / "report.json")


sizes = st.integers(1, 2**40)
rows = st.builds(
    ex.types.PaddedSizes, st.fixed_dictionaries({"b": sizes}), st.fixed_dictionaries({"b": sizes}), st.integers(1, 9),
    st.lists(st.floats(1e-7, 1e3), min_size=1).map(tuple), st.booleans(), st.integers(0, 99), st.integers(0, 10**12),
    st.none() | st.floats(0, 1e18), st.none() | st.floats(0, 1e18),
)  # fmt: skip


@given(st.lists(rows, max_size=5).map(tuple))
def test_any_report_can_be_shown(sizes):
    report = replace(PADDED, dimensions={"b": (1, 8, 2**40)}, sizes=sizes)
    assert report.headline in Page(content(report)).text.replace("  ", " ")
    assert svg_of(figure(report))
    json.dumps(repr(report))


def helper(x):
    return lax.linalg.svd(x, compute_uv=False).sum()


def test_an_executables_own_report_names_the_users_line():
    n = ex.NamedDimension("n", 1, 4, 16)
    report = ex.compile(helper, args=[ex.InputInfo((n, n), "float32")], dynamic="auto").dynamic_report
    line = helper.__code__.co_firstlineno + 1
    assert f"svd` at {__name__.rpartition('.')[2]}.py, line {line}" in report.headline
    assert report.refusals[0].text == "return lax.linalg.svd(x, compute_uv=False).sum()"


def test_an_executables_own_report_counts_its_calls():
    n = ex.NamedDimension("n", 1, 4, 16)
    exe = ex.compile(lambda x: x @ x.T, args=[ex.InputInfo((n, 8), "float32")], dynamic="pad")
    exe(np.ones((4, 8), np.float32))
    # (4 × 4 × 16 + 32) of (16 × 16 × 16 + 128) operations: the product, and an array that is transposed.
    assert exe.dynamic_report.headline.startswith(
        "Padded: 1 binary serves all 16 sizes; 93% of the FLOPs of 1 call are"
    )
