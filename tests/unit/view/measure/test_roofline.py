"""How rooflines and memory are shown: what matters is in the picture, in plotly and in words alike."""

import json
import math
import re
import sys
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.model.results.memory_use import Largest, MemoryRow, MemoryUse
from explorer.model.results.roofline import BOUNDS, Peaks, Point, Roofline
from explorer.model.results.statistics import Axis
from explorer.view.chart import PLOTLY
from explorer.view.measure.memory import MemoryView, is_curve
from explorer.view.measure.roofline import RooflineView, layout_of, unknown_text

MACHINE = Peaks(
    "a machine with 2 cores",
    bandwidth=20e9,
    matmul={"f32": 300e9, "bf16": 200e9},
    fma={"f32": 100e9, "f64": 50e9},
    overhead=1e-7,
    caches={1 << 20: 80e9},
    fresh=5e9,
)


def point(name, seconds, flops, moved, least, bound, line=0, text="", **more):
    intensity = flops / moved if moved else math.inf
    place = ("train.py", line) if line else ("", 0)
    rate = flops / seconds
    return Point(name, "fusion", "jit_f", seconds, flops, moved, intensity, rate, least, bound, *place, text, **more)


KERNELS = [
    point("dot.1", 20e-3, 2e9, 12e6, 7e-3, "compute", 6, "h = x @ w", dtype="f32", is_matmul=True),
    point("fusion.2", 10e-3, 3e7, 2.6e7, 1.3e-3, "memory", 7, "jax.nn.gelu(h) < 1", dtype="f32"),
    point("copy.3", 5e-3, 0.0, 2.6e7, 1.3e-3, "memory", 8, "h.T"),
    point("cholesky.4", 5e-3, math.nan, 1e6, math.nan, "unknown", 9),
    point("tiny.5", 1e-6, 8, 32, 1e-9, "overhead"),
]


def roofline(points=KERNELS, **more):
    return Roofline("block", "(x: f32[8])", MACHINE, points, **more)


def memory(*needed, largest=None, limit=1000, error=""):
    axis = Axis("n", tuple(map(str, range(len(needed)))), tuple(float(2**i) for i in range(len(needed))))
    rows = [
        MemoryRow((i,), {"n": 2**i}, {"argument": size, "temp": size // 2}, error=error)
        for i, size in enumerate(needed)
    ]
    return MemoryUse("f", "", (axis,), rows, "a <device>", limit, largest)


def words_in(svg):
    return " ".join(
        "".join(text.itertext()) for text in ElementTree.fromstring(svg).iter() if text.tag.endswith("text")
    )


# -- roofline


def test_the_picture_says_the_result_first_and_names_the_largest_kernels():
    words = words_in(RooflineView().svg(roofline()))
    assert words.startswith("block reaches")
    assert "6: h = x @ w" in words
    assert "memory 20 GB/s" in words
    assert "matmul f32 300 GFLOP/s" in words
    assert "new memory 5 GB/s" in words
    assert "bf16" not in words  # no kernel computes in it


def test_kernels_without_costs_are_listed_beside():
    assert unknown_text(roofline()) == "No costs are known of: cholesky.4 5 ms (12% of the time)"
    assert "cholesky.4 5 ms" in words_in(RooflineView().svg(roofline()))
    assert all("cholesky" not in mark.tooltip[0] for mark in layout_of(roofline()).kernels)


def test_a_kernel_without_arithmetic_has_a_column_of_its_own():
    layout = layout_of(roofline())
    copy = next(mark for mark in layout.kernels if mark.tooltip[0].startswith("copy.3"))
    assert copy.x == layout.column
    assert copy.y / copy.roof == pytest.approx(1.3 / 5)  # as far below its roof as its time is above the least
    assert layout_of(roofline(KERNELS[:2])).column is None


def test_a_kernel_is_as_far_below_its_roof_as_it_is_inefficient():
    for mark, kernel in zip(layout_of(roofline()).kernels, KERNELS, strict=False):
        assert mark.y / mark.roof == pytest.approx(kernel.efficiency)


def test_the_area_of_a_kernel_is_its_time():
    first, second = layout_of(roofline()).kernels[:2]
    assert (first.radius / second.radius) ** 2 == pytest.approx(2)


kernels = st.builds(
    point,
    name=st.text("ab.", min_size=1, max_size=30),
    seconds=st.floats(1e-9, 10),
    flops=st.floats(0, 1e14) | st.just(math.nan),
    moved=st.floats(0, 1e12),
    least=st.floats(0, 20),
    bound=st.sampled_from(BOUNDS),
    line=st.integers(0, 3),
    text=st.text(max_size=60),
)


@given(st.lists(kernels, max_size=12))
def test_any_roofline_can_be_drawn_and_no_two_labels_meet(points):
    points = [one for one in points if (one.bound == "unknown") == math.isnan(one.flops)]
    found = roofline(sorted(points, key=lambda one: -one.seconds))
    ElementTree.fromstring(RooflineView().svg(found))
    layout = layout_of(found)
    assert len(layout.kernels) <= len(points)
    for mark in layout.kernels:
        assert layout.x[0] <= mark.x <= layout.x[1]
        assert mark.y > 0
    assert bool([mark for mark in layout.kernels if mark.label]) <= bool(points)


def test_the_chart_carries_the_picture_the_words_and_every_figure():
    pytest.importorskip("plotly")
    bundle = roofline(notes=["one thing to know"])._repr_mimebundle_()
    assert set(bundle) == {PLOTLY, "text/html", "text/plain"}
    figure = json.dumps(bundle[PLOTLY])
    assert "block reaches" in figure
    assert "one thing to know" in figure
    assert "jax.nn.gelu(h) &lt; 1" in figure
    assert "bound by compute" in figure
    assert "data:image/svg+xml" in bundle["text/html"]
    assert bundle["text/html"].count("<tr>") > len(KERNELS)
    assert bundle["text/plain"].startswith("block reaches")


def test_a_roofline_of_nothing_is_shown_all_the_same():
    pytest.importorskip("plotly")
    assert "ran no kernel" in json.dumps(roofline([])._repr_mimebundle_()[PLOTLY])
    assert "is unknown" in words_in(RooflineView().svg(roofline([KERNELS[3]])))


@pytest.mark.parametrize("shown", [roofline(), memory(10, 20)], ids=["roofline", "memory"])
def test_without_plotly_the_picture_is_shown(monkeypatch, shown):
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    bundle = shown._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    assert "<img alt=" in bundle["text/html"]


@pytest.mark.parametrize("shown", [roofline(), memory(10, 20)], ids=["roofline", "memory"])
def test_a_fault_of_the_view_costs_nobody_the_result(monkeypatch, shown):
    def broken(_):
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("explorer.view.interface.svg_of", broken)
    (text,) = shown._repr_mimebundle_().values()
    assert text.startswith(shown.headline)
    assert "the view failed: ZeroDivisionError: ours" in text


# -- memory


def test_memory_is_a_curve_over_a_number_and_bars_over_kinds():
    assert is_curve(memory(10, 20, 40))
    assert not is_curve(memory(10))
    kinds = Axis("dtype", ("f32", "bf16"))
    rows = [MemoryRow((i,), {"dtype": name}, {"argument": 10}) for i, name in enumerate(kinds.labels)]
    assert not is_curve(MemoryUse("f", "", (kinds,), rows, "", 100))


def test_the_limit_and_the_largest_that_fits_are_in_the_picture():
    use = memory(100, 200, 400, largest=Largest("n", 6, 950.0, 6.5, 7))
    words = words_in(MemoryView().svg(use))
    assert "limit 1.0 kB" in words
    assert "n = 6 fits" in words
    assert "and no more, by XLA's buffers alone" in words


def test_a_limit_far_away_is_no_reason_to_make_the_bars_small():
    assert "limit" not in words_in(MemoryView().svg(memory(100, limit=10**9)))
    assert "limit" in words_in(MemoryView().svg(memory(800)))


@given(st.lists(st.integers(0, 10**15), min_size=1, max_size=6), st.integers(0, 10**15))
def test_any_memory_can_be_drawn(needed, limit):
    use = memory(*sorted(needed), limit=limit)
    ElementTree.fromstring(MemoryView().svg(use))
    assert not re.search(r"\bnan\b|\binf\b", MemoryView().svg(use))


@pytest.mark.parametrize(
    "use", [memory(10, 20, largest=Largest("n", 90, 990.0, 91.0, 91)), memory(900), memory(1, error="no")]
)
def test_the_chart_of_memory_carries_the_picture_and_every_figure(use):
    pytest.importorskip("plotly")
    bundle = use._repr_mimebundle_()
    assert set(bundle) == {PLOTLY, "text/html", "text/plain"}
    assert "<device>" not in json.dumps(bundle[PLOTLY]["layout"])
    assert "data:image/svg+xml" in bundle["text/html"]
    assert repr(use) == bundle["text/plain"]
