"""A figure, and that both renderers draw the same of it."""

import importlib.util
import math
import re
import xml.etree.ElementTree as ElementTree

import pytest

from explorer.view.figure import Band, Bars, Figure, Label, Panel, Path, Points, rows_of_text, sentence_rows
from explorer.view.figure_plotly import plotly_of
from explorer.view.figure_svg import svg_of
from explorer.view.scale import Scale, ratio_scale, rows_scale

SVG = "{http://www.w3.org/2000/svg}"


def figure():
    page = Figure(400, 200)
    page.text(10, 20, "a <headline>", size=18.0, bold=True)
    page.swatch(10, 30, 10, "#123456")
    across = Scale(1.0, 100.0, (1.0, 10.0, 100.0), ("1", "10", "100"), True)
    marks = [
        Band(2.0, 5.0, 0.1, 0.9, "#2878b8"),
        Path([1.0, 100.0], [0.5, 0.5], "#c8730a", 2, "dash"),
        Points([10.0], [0.5], "#2878b8", "diamond", hover=["ten\nof <them>"]),
        Bars([(1.0, 3.0, 1.2, 1.8)], "#2878b8", hover=["three"]),
        Label(10.0, 0.5, "ten\x07", anchor="middle", dy=-8, halo=True),
    ]
    page.panels.append(Panel(100, 300, 50, 150, across, rows_scale(2), marks, "what", grid="x", strong=10.0))
    return page


def test_the_picture_is_xml_with_every_mark_at_its_place():
    svg = svg_of(figure())
    root = ElementTree.fromstring(svg)
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"a <headline>", "ten ", "1", "10", "100", "what"} <= set(texts)
    label = next(text for text in root.iter(f"{SVG}text") if text.text == "ten ")
    assert (float(label.get("x")), float(label.get("y"))) == (200.0, 67.0)
    assert all(float(size) >= 11 for size in re.findall(r"font:\d+ ([\d.]+)px", svg))


def test_the_chart_has_the_same_marks_in_the_same_places():
    pytest.importorskip("plotly")
    chart = plotly_of(figure())
    layout = chart.layout
    assert (layout.width, layout.height) == (400, 200)
    assert (layout.xaxis2.domain, layout.yaxis2.domain) == ((0.25, 0.75), (0.25, 0.75))
    assert (layout.xaxis2.type, layout.yaxis2.range) == ("log", (2.0, 0.0))
    texts = {label.text: label for label in layout.annotations}
    assert {"<b>a &lt;headline&gt;</b>", "what"} <= set(texts)
    assert texts["ten\x07"].x == math.log10(10.0)
    hovers = [row[0] for trace in chart.data for row in (trace.customdata if trace.customdata is not None else ())]
    assert hovers == ["ten<br>of &lt;them&gt;", "three"]


def test_a_scale_of_ratios_has_one_in_it_and_the_rounder_ticks_first():
    scale = ratio_scale(0.3, 4.0, 300)
    assert {0.5, 1.0, 2.0} <= set(scale.ticks)
    assert ratio_scale(0.97, 1.04, 300).texts == ("0.98×", "1×", "1.02×")


def test_rows_go_from_the_top():
    rows = rows_scale(4)
    assert rows.at(0.5, 100, 0) < rows.at(3.5, 100, 0)


def test_code_in_a_sentence_is_set_as_code_by_both_also_where_the_row_ends():
    page = Figure(300, 80)
    for number, row in enumerate(sentence_rows("The biggest loss is line 3, `y = x @ w`: 2 ms", 34, 2)):
        page.text(10, 20 + 20 * number, row)
    root = ElementTree.fromstring(svg_of(page))
    assert ["".join(text.itertext()) for text in root.iter(f"{SVG}text")] == [
        "The biggest loss is line 3, y = x",
        "@ w: 2 ms",
    ]
    assert [span.text for span in root.iter(f"{SVG}tspan")] == ["y = x", "@ w"]
    if importlib.util.find_spec("plotly"):
        texts = [label.text for label in plotly_of(page).layout.annotations]
        assert texts[1] == '<span style="font-family:monospace">@ w</span>: 2 ms'


def test_a_sentence_that_is_cut_says_so():
    assert sentence_rows("one two three four", 8, 2) == ["one two", "three …"]


def test_a_long_note_is_broken_and_none_of_it_is_lost():
    page = Figure(640)
    long = " ".join(f"word{number}" for number in range(30))
    end = rows_of_text(page, 10, ["short", long, "last"])
    rows = [(mark.x, mark.y, mark.text) for mark in page.page]
    assert [row[2] for row in rows if row[0] == 24] == ["short", rows[1][2], "last"]
    broken = rows[1:-1]
    assert " ".join(text for _, _, text in broken) == long
    assert len(broken) == 3
    assert {x for x, _, _ in broken[1:]} == {38}
    assert [y for _, y, _ in rows] == [10 + 17 * number for number in range(5)]
    assert end == 95


def test_of_many_notes_the_last_row_says_how_many_more_there_are():
    page = Figure(640)
    rows_of_text(page, 0, [f"note {number}" for number in range(6)])
    assert [mark.text for mark in page.page] == ["note 0", "note 1", "note 2", "and 3 more notes in the text"]


def test_in_the_dark_text_lines_and_ground_give_way_and_series_stay():
    svg = svg_of(figure())
    style = svg[svg.index("@media(prefers-color-scheme:dark)") : svg.index("</style>")]
    root = ElementTree.fromstring(svg)
    kinds = {name for part in root.iter() for name in (part.get("class") or "").split()}
    assert {"ground", "ink", "grey"} <= kinds
    assert all(f".{kind}" in style for kind in kinds)
    assert all(not part.get("class") for part in root.iter() if part.get("fill") == "#123456")
