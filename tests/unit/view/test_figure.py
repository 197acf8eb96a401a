"""A figure, and that both renderers draw the same of it."""

import math
import re
import xml.etree.ElementTree as ElementTree

import pytest

from explorer.view.figure import Band, Bars, Figure, Label, Panel, Path, Points
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
