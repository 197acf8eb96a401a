"""Sweeps: what a row holds, what a failing point costs, what is said of it, and how it is shown."""

import math
import sys
import xml.etree.ElementTree as ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer as ex
from explorer.model.results.statistics import Axis
from explorer.model.results.sweep import Sweep, SweepRow, text_table
from explorer.model.results.timing import Samples
from explorer.view.figure import series_style
from explorer.view.measure.sweep import SweepView, measures, swept_scale
from explorer.view.scale import Scale, scale_of, without_crowding

BRIEF = 1e-4  # seconds of measuring: what is tested here is not time


def square(x):
    return jnp.tanh(x @ x)


def made(times, n=(64, 128, 256, 512), name="n", noise=0.0, compile_seconds=0.1, memory=lambda n: 8 * n * n, **errors):
    """A sweep over one axis of numbers with these times."""
    axis = Axis(name, tuple(f"{v:,}" for v in n), tuple(map(float, n)))
    rows = [
        row((i,), {name: v}, t, noise, compile_seconds, memory(v))
        for i, (v, t) in enumerate(zip(n, times, strict=True))
    ]
    return Sweep(
        "f",
        (axis,),
        [
            rows[i] if f"at{i}" not in errors else SweepRow((i,), {name: v}, error=errors[f"at{i}"])
            for i, v in enumerate(n)
        ],
    )


def row(at, values, seconds, noise=0.0, compile_seconds=0.1, size=1000):
    samples = Samples(tuple(seconds * (1 + noise * (-1) ** k) for k in range(40)))
    stages = {"trace": 0.0, "lower": 0.0, "compile": compile_seconds, "run": seconds}
    return SweepRow(at, values, steady=samples, stages=stages, memory={"argument": int(size)}, kernels=3)


def two(first, second, labels=("float32", "bfloat16"), n=(64, 128, 256)):
    axes = Axis("n", tuple(map(str, n)), tuple(map(float, n))), Axis("dtype", labels)
    rows = [
        row((i, j), {"n": v, "dtype": d}, times[i])
        for i, v in enumerate(n)
        for j, (d, times) in enumerate(zip(labels, (first, second), strict=True))
    ]
    return Sweep("f", axes, rows)


def test_each_point_is_compiled_for_itself_and_has_every_figure():
    found = ex.sweep(square, over={"n": [8, 16]}, args=lambda n: jnp.ones((n, n)), seconds=BRIEF)
    assert [row.values["n"] for row in found] == [8, 16]
    for n, row in zip((8, 16), found, strict=True):
        assert row.memory["argument"] == 4 * n * n
        assert row.flops >= 2 * n**3
        assert row.kernels is not None
        assert row.kernels >= 1
        assert row.seconds > 0
        assert row.first_call == pytest.approx(sum(row.stages[step] for step in ("trace", "lower", "compile", "run")))
        assert row.capture is not None
        assert f"f32[{n},{n}]" in row.capture.signature


def test_a_point_that_fails_costs_only_its_own_row_which_says_why():
    found = ex.sweep(lambda x, n: x.reshape(n, -1), jnp.ones(8), over={"n": [2, 3, 4]}, seconds=BRIEF)
    assert [bool(row.error) for row in found] == [False, True, False]
    assert found.rows[1].error.startswith("TypeError: cannot reshape array of shape (8,)")
    assert math.isnan(found.rows[1].seconds)
    assert "1 of 3 points failed, the first at n = 3" in found.headline


def test_want_of_memory_is_a_row_too():
    found = ex.sweep(jnp.tanh, over={"n": [8, 1 << 50]}, args=lambda n: np.ones(n, np.float32), seconds=BRIEF)
    assert [bool(row.error) for row in found] == [False, True]
    assert "Unable to allocate 4.00 PiB" in found.rows[1].error


def test_an_error_in_args_is_a_row_too():
    def arguments(n):
        if n == 2:
            raise RuntimeError("no such size")
        return jnp.ones(n)

    found = ex.sweep(jnp.tanh, over={"n": [1, 2]}, args=arguments, seconds=BRIEF)
    assert [row.error for row in found] == ["", "RuntimeError: no such size"]


def test_options_reach_the_compiler_and_a_wrong_one_is_named_with_a_near_one():
    found = ex.sweep(
        square,
        jnp.ones((8, 8)),
        over={"options": [{}, {"xla_backend_optimization_level": 0}, {"xla_cpu_prefer_vector_widt": 1}]},
        seconds=BRIEF,
    )
    assert [bool(row.error) for row in found] == [False, False, True]
    assert "No such compile option: 'xla_cpu_prefer_vector_widt'" in found.rows[2].error
    assert "Did you mean `xla_cpu_prefer_vector_width`" in found.rows[2].error


def test_without_time_nothing_runs():
    def loud(x):
        jax.debug.callback(lambda: calls.append(1))
        return x

    calls = []
    found = ex.sweep(loud, over={"n": [1, 2]}, args=lambda n: jnp.ones(n), time=False)
    jax.effects_barrier()
    assert not calls
    assert all(row.steady is None and row.memory and not row.error for row in found)
    assert "time" not in repr(found).splitlines()[1]


def test_a_function_that_was_called_before_is_traced_and_compiled_anew():
    traced = []

    @jax.jit
    def known(x):
        traced.append(x.shape)
        return x * 2

    known(jnp.ones(3))
    found = ex.sweep(known, jnp.ones(3), over={"options": [{}, {"xla_backend_optimization_level": 1}]}, seconds=BRIEF)
    assert len(traced) == 3
    assert all(row.stages["compile"] > 1e-4 for row in found)


def test_donated_arguments_survive():
    x = jnp.ones(4)
    found = ex.sweep(jax.jit(lambda x, n: x * n, donate_argnums=0), x, over={"n": [2, 3]}, seconds=BRIEF)
    assert not found.failed
    assert not x.is_deleted()


def test_static_arguments_are_left_out_of_the_call():
    function = jax.jit(lambda x, n: x.reshape(n, -1), static_argnames="n")
    assert not ex.sweep(function, jnp.ones(8), over={"n": [2, 4]}, seconds=BRIEF).failed


def test_captured_state_is_called_as_ever_and_takes_no_options():
    state = {"w": jnp.ones(3)}
    step = ex.jit(lambda x: x * state["w"], inputs=state)
    assert not ex.sweep(step, over={"n": [3]}, args=lambda n: jnp.ones(n), seconds=BRIEF).failed
    found = ex.sweep(step, jnp.ones(3), over={"options.xla_backend_optimization_level": [1]}, seconds=BRIEF)
    assert "captured state" in found.rows[0].error


def test_seconds_that_are_none_and_names_that_are_nothing_are_refused_before_anything_runs():
    with pytest.raises(ex.errors.OptionError, match="seconds is 0"):
        ex.sweep(square, jnp.ones((2, 2)), over={"dtype": [jnp.float32]}, seconds=0)
    with pytest.raises(ex.errors.OptionError, match="over has `m`"):
        ex.sweep(square, jnp.ones((2, 2)), over={"m": [1]})
    with pytest.raises(ex.errors.ArgumentsError):
        ex.sweep(square, over={"m": [1]}, args=lambda m: (m, m, m))


def test_a_power_is_told_where_it_fits():
    found = made([1e-6 * n**2.9 for n in (64, 128, 256, 512)])
    assert found.headline == (
        "time grows as n^2.9; compile time is 100 … 100 ms, each measured once; memory grows as n^2.0"
    )


def test_overhead_at_first_and_a_power_in_the_end():
    found = made([1e-3, 1.05e-3, 8e-3, 64e-3, 512e-3], n=(16, 32, 64, 128, 256))
    assert found.headline.startswith("time grows 512× (482 … 544×) from n = 16 to 256, for the largest values as n^3.0")


def test_what_is_no_power_is_told_from_first_to_last():
    assert made([1e-3, 9e-3, 2e-3, 1.2e-2]).headline.startswith("time grows 12.0× (11.3 … 12.7×) from n = 64 to 512;")


def test_what_falls_and_what_hardly_grows_is_no_power():
    assert made([8e-3, 4e-3, 2e-3, 1e-3]).headline.startswith("time falls 8.0× (7.5 … 8.5×) from n = 64 to 512;")
    assert made([1e-3 * n**0.1 for n in (64, 128, 256, 512)]).headline.startswith(
        "time grows 1.23× (1.16 … 1.31×) from n = 64 to 512;"
    )


def test_what_does_not_change_does_not_depend():
    assert "time doesn't depend on n: all within ±10 %" in made([1e-3, 1.02e-3, 1e-3, 1.01e-3]).headline


def test_noise_is_neither_growth_nor_independence():
    found = made([1e-3, 1.2e-3, 1.1e-3, 1.3e-3], noise=0.5)
    assert found.headline.startswith("whether time depends on n can't be told")
    assert "4 of 4 times are too noisy" in found.headline
    # From at most 0.125 ms to at least 7.5 ms.
    steep = made([1e-4, 5e-4, 6e-4, 1e-2], noise=0.25).headline
    assert steep.startswith("time grows at least 60.0× from n = 64 to 512;")
    assert "4 of 4 times are too noisy" in steep


def test_a_change_by_more_than_the_margin_is_no_independence_however_the_intervals_overlap():
    headline = made([1e-3, 1.15e-3, 1.1e-3, 1.25e-3], noise=0.02).headline
    assert "doesn't depend on n" not in headline.partition(";")[0]


def test_a_power_that_the_intervals_leave_open_says_how_far():
    clean, noisy = (made([1e-6 * n**1.5 for n in (64, 128, 256, 512)], noise=noise).headline for noise in (0.0, 0.25))
    assert clean.startswith("time grows as n^1.5;")
    assert "(± 0." in noisy.partition(";")[0]


@pytest.mark.parametrize("each", [(0.2, 0.1, 0.4, 0.15), (0.4, 0.3, 0.2, 0.1)])
def test_compile_time_that_goes_up_and_down_or_falls_is_no_growth(each):
    found = made([1e-3] * 4)
    rows = [row(r.at, r.values, 1e-3, compile_seconds=c) for r, c in zip(found.rows, each, strict=True)]
    assert (
        f"compile time is {1000 * min(each):.0f} … 400 ms, each measured once" in Sweep("f", found.axes, rows).headline
    )


def test_compile_time_that_grows_is_told():
    found = made([1e-3] * 4)
    rows = [row(r.at, r.values, 1e-3, compile_seconds=0.01 * n) for r, n in zip(found.rows, (1, 2, 4, 8), strict=True)]
    assert "compile time grows as n^1.0, each measured once" in Sweep("f", found.axes, rows).headline


def test_kinds_are_compared_at_the_largest_number():
    assert (
        "at n = 256 bfloat16 is 1.80× (1.70 … 1.91×) slower than float32"
        in two([1e-3, 4e-3, 16e-3], [1.8e-3, 7.2e-3, 28.8e-3]).headline
    )
    assert (
        "float32 and bfloat16 take the same time within ±10 %" in two([1e-3, 4e-3, 16e-3], [1e-3, 4e-3, 16e-3]).headline
    )


def test_kinds_alone_are_compared():
    axis = Axis("dtype", ("float32", "bfloat16"))
    found = Sweep("f", (axis,), [row((0,), {}, 1e-3), row((1,), {}, 2e-3)])
    assert found.headline == "bfloat16 is 2.0× (1.9 … 2.1×) slower than float32"


def test_where_all_fail_the_headline_says_why():
    found = made([1, 1], n=(1, 2), at0="TypeError: no", at1="TypeError: no")
    assert found.headline == "all 2 points failed: TypeError: no"
    assert found.failed == tuple(found.rows)


def test_series_are_the_rows_that_differ_in_the_swept_number_in_its_order():
    axes = Axis("n", ("4", "1"), (4.0, 1.0)), Axis("k", ("a", "b"))
    found = Sweep("f", axes, [row((i, j), {}, 1.0) for i in range(2) for j in range(2)])
    assert [(one.label, [r.at for r in one.rows]) for one in found.series] == [
        ("a", [(1, 0), (0, 0)]),
        ("b", [(1, 1), (0, 1)]),
    ]


def test_the_table_has_every_figure_and_a_swept_name_does_not_hide_one():
    pytest.importorskip("pandas")
    frame = made([1e-3, 2e-3], n=(1, 2), name="seconds").to_frame()
    assert frame["seconds_"].tolist() == [1, 2]
    assert frame["seconds"].tolist() == [1e-3, 2e-3]
    assert {"low", "high", "first_call", "compile", "peak", "kernels", "error"} <= set(frame.columns)


def test_the_text_is_a_table_with_bars():
    lines = repr(made([1e-3, 2e-3, 4e-3, 8e-3], at1="ValueError: too small")).splitlines()
    assert lines[0].startswith("Sweep(f over n: time grows")
    assert lines[1].split() == ["n", "time", "±", "compile", "memory", "kernels"]
    assert "█" * 12 in lines[-1]
    assert "ValueError: too small" in lines[3]


@given(st.lists(st.lists(st.sampled_from(["1", "a", "", "–"]), min_size=1, max_size=3), min_size=2, max_size=4))
def test_rows_of_any_length_make_lines(rows):
    assert len(text_table(rows)) == len(rows)


KINDS = Axis("dtype", ("f<4>", "g&8"))
PAIR = Axis("n", ("1", "2"), (1.0, 2.0))
SWEEPS = {
    "numbers": made([1e-6 * n**2.9 for n in (64, 128, 256, 512)]),
    "one point": made([1e-3], n=(64,)),
    "two series": two([1e-3, 4e-3, 16e-3], [2e-3, 8e-3, 3e-2]),
    "a failure": made([1e-3, 2e-3, 3e-3, 4e-3], at3="JaxRuntimeError: <out> of memory & more"),
    "only failures": made([1, 1], n=(1, 2), at0="TypeError: no", at1="TypeError: no"),
    "kinds": Sweep("<lambda>", (KINDS,), [row((0,), {}, 1e-3), SweepRow((1,), {}, error="E<x>")]),
    "not timed": Sweep("f", (PAIR,), [SweepRow((i,), {}, memory={"temp": 8}) for i in range(2)]),
    "nothing known": Sweep("f", (PAIR,), [SweepRow((0,), {})]),
}


@pytest.mark.parametrize("name", SWEEPS)
def test_every_sweep_has_a_picture_that_is_xml_and_needs_no_script(name):
    found = SWEEPS[name]
    root = ElementTree.fromstring(SweepView().svg(found))
    told = " ".join(root.itertext())
    assert found.headline.partition(";")[0][:40].split()[0] in told
    assert "nan" not in SweepView().svg(found).lower().replace("mnan", "")
    bundle = found._repr_mimebundle_()
    assert "the view failed" not in bundle["text/plain"]
    assert "<script" not in bundle["text/html"]


@pytest.mark.parametrize("name", SWEEPS)
def test_every_sweep_has_a_chart(name):
    pytest.importorskip("plotly")
    bundle = SWEEPS[name].chart().bundle
    assert bundle["application/vnd.plotly.v1+json"]["layout"]["annotations"]
    assert bundle["text/html"] == SweepView().html(SWEEPS[name])


def test_without_plotly_the_picture_stands_for_the_chart(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    bundle = SWEEPS["numbers"]._repr_mimebundle_()
    assert "image/svg+xml" in bundle["text/html"]
    assert "application/vnd.plotly.v1+json" not in bundle
    with pytest.raises(ex.errors.MissingPackageError):
        SWEEPS["numbers"].chart()


def test_the_page_is_whole_and_has_the_figures(tmp_path):
    page = SWEEPS["a failure"].to_html(tmp_path / "sweep.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "&lt;out&gt; of memory &amp; more" in page
    assert SweepView().html(SWEEPS["a failure"]) in page


def test_times_that_span_more_than_ten_times_are_on_a_logarithmic_axis():
    wide, narrow = made([1e-6, 1e-5, 1e-4, 1e-3]), made([1e-3, 2e-3, 3e-3, 4e-3])
    assert measures(wide)[0].scale.is_log
    assert not measures(narrow)[0].scale.is_log
    assert swept_scale(made([1e-3] * 4, n=(1, 10, 100, 1000))).is_log
    assert not swept_scale(made([1e-3] * 4, n=(1, 2, 3, 4))).is_log


@given(st.lists(st.floats(1e-9, 1e12), min_size=1, max_size=12))
def test_a_scale_holds_its_values_and_its_ticks_ascend(values):
    scale = scale_of(values, "{:g}".format)
    assert all(-1e-6 <= scale.at(value, 0, 1) <= 1 + 1e-6 for value in values)
    assert list(scale.ticks) == sorted(scale.ticks)
    assert 1 <= len(scale.ticks) <= 9
    assert len(set(scale.texts)) == len(scale.texts)


@given(st.lists(st.floats(1, 1e6), min_size=1, max_size=40, unique=True))
def test_ticks_do_not_crowd_and_the_ends_are_among_them(values):
    ticks = [(value, f"{value:,.0f}") for value in sorted(values)]
    scale = without_crowding(ticks, scale_of(values, "{:g}".format, marked=ticks), 240, 7)
    assert (scale.ticks[0], scale.ticks[-1]) == (ticks[0][0], ticks[-1][0])
    at = [scale.at(tick, 0, 240) for tick in scale.ticks]
    wide = [7 * len(text) for text in scale.texts]
    assert all(b - a >= (x + y) / 2 for a, b, x, y in zip(at[:-2], at[1:-1], wide[:-2], wide[1:-1], strict=True))


def test_no_two_series_look_alike():
    assert len({series_style(number) for number in range(36)}) == 36


def test_a_scale_of_one_value_has_its_middle():
    assert Scale(2.0, 2.0, (2.0,), ("2",)).at(2.0, 0, 10) == 5
