"""How far kernels are from the machine's limit: which bound holds them back, on both sides counted alike."""

import math

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer as ex
from explorer.analysis.kernel_costs import kernel_kinds
from explorer.analysis.roofline import BOUNDS, op_costs
from explorer.model.results.roofline import Peaks, Point, Roofline
from explorer.model.units import duration_text, rate_text
from tests.support.quick import quick

MACHINE = Peaks(
    "a machine",
    bandwidth=10e9,
    matmul={"f32": 100e9, "bf16": 200e9},
    fma={"f32": 50e9},
    special={"tanh": 1e9},
    overhead=1e-6,
    caches={1_000_000: 100e9, 10_000_000: 40e9},
)

amounts = st.floats(0, 1e15)
positive = st.floats(1, 1e15)


def bound(flops, bytes_, seconds=1.0, **how):
    how = {"is_matmul": False, **how}
    return MACHINE.bound(flops, bytes_, "f32", seconds=seconds, **how)


def point(name="fusion", seconds=1.0, least=0.5, bound="memory", line=3, **more):
    places = ("train.py", line) if line else ("", 0)
    return Point(name, "fusion", "jit_f", seconds, 1e9, 1e9, 1.0, 1e9, least, bound, *places, **more)


# -- the machine


def test_a_large_copy_is_bound_by_memory_a_large_product_by_compute_a_tiny_kernel_by_overhead():
    assert bound(0, 1e9) == "memory"
    assert bound(2 * 4096**3, 3 * 4 * 4096**2, is_matmul=True) == "compute"
    assert bound(8, 32, seconds=2e-6) == "overhead"
    assert bound(math.nan, 1e9) == bound(1e9, math.nan) == "unknown"


def test_a_kernel_with_little_to_do_that_takes_long_is_not_excused_by_overhead():
    assert bound(8, 32, seconds=1e-3) == "memory"


def test_what_has_nothing_to_do_is_overhead():
    assert bound(0, 0, seconds=5.0) == "overhead"


def test_functions_that_take_longer_than_a_multiply_add_count_as_long_as_they_take():
    assert bound(1e8, 2e9) == "memory"
    assert bound(1e9, 2e9, special={"tanh": 1e9}) == "compute"
    assert MACHINE.least_seconds(1e9, 0, "f32", is_matmul=False, special={"tanh": 1e9}) == 1.0
    assert MACHINE.least_seconds(50e9, 0, "f32", is_matmul=False, special={"erf": 1e9}) == 1.0  # not measured: plain


def test_what_fits_in_a_cache_is_moved_as_fast_as_the_cache_is():
    assert MACHINE.bandwidth_of(500_000) == MACHINE.bandwidth_of(5_000_000) == 100e9
    assert MACHINE.bandwidth_of(20_000_000) == 40e9
    assert Peaks("no caches", 10e9).bandwidth_of(1) == 10e9


def test_what_a_loop_moves_is_as_much_a_run_as_a_run_moves():
    once = MACHINE.least_seconds(0, 900_000, "f32", is_matmul=False)
    assert MACHINE.least_seconds(0, 900_000 * 1000, "f32", is_matmul=False, runs=1000) == pytest.approx(1000 * once)


def test_a_dtype_that_was_not_measured_has_the_highest_roof():
    assert MACHINE.rate("f8e4m3fn", is_matmul=True) == 200e9
    assert MACHINE.rate("f64", is_matmul=False) == 50e9
    assert Peaks("nothing", 1.0).rate("f32", is_matmul=True) == 0


@given(flops=amounts, bytes_=amounts, runs=st.floats(1, 1e6), is_matmul=st.booleans())
def test_the_least_time_grows_with_the_work_and_is_never_negative(flops, bytes_, runs, is_matmul):
    def least(factor):
        return MACHINE.least_seconds(flops * factor, bytes_, "f32", is_matmul=is_matmul, runs=runs)

    assert 0 <= least(1) <= least(2)


@given(small=positive, large=positive)
def test_a_roof_never_rises_with_the_size(small, large):
    small, large = sorted((small, large))
    assert MACHINE.bandwidth_of(small) >= MACHINE.bandwidth_of(large)


@given(flops=amounts, bytes_=amounts, seconds=st.floats(1e-9, 1e6), runs=st.floats(1, 1e6))
def test_what_is_bound_by_memory_or_compute_takes_at_least_what_that_allows(flops, bytes_, seconds, runs):
    least = MACHINE.least_seconds(flops, bytes_, "f32", is_matmul=False, runs=runs)
    found = bound(flops, bytes_, seconds=seconds, runs=runs)
    parts = {
        "memory": MACHINE.memory_seconds(bytes_, runs),
        "compute": MACHINE.compute_seconds(flops, "f32", is_matmul=False),
    }
    assert found == "overhead" or parts[found] == least == max(parts.values())


# -- the whole function


def test_the_whole_is_the_sum_of_its_kernels():
    found = Roofline(
        "f", "()", MACHINE, [point(seconds=3.0, least=1.0), point(seconds=1.0, least=1.0, bound="compute")]
    )
    assert found.seconds == 4
    assert found.efficiency == 0.5
    assert found.speedup == 2
    assert found.shares == {"memory": 0.75, "compute": 0.25}


def test_kernels_without_costs_are_left_out_of_the_efficiency_and_said():
    unknown = point("cholesky", seconds=6.0, least=math.nan, bound="unknown", line=9)
    found = Roofline("f", "()", MACHINE, [unknown, point(seconds=4.0, least=2.0)])
    assert found.efficiency == 0.5
    assert found.speedup == 10 / 8
    assert "60%" in found.bounds_text
    assert "cholesky" in found.headline
    assert math.isnan(unknown.efficiency)
    assert Roofline("f", "()", MACHINE, [unknown]).headline.startswith("The minimum time of")


def test_a_kernel_faster_than_its_roof_makes_no_other_one_better():
    found = Roofline("f", "()", MACHINE, [point(seconds=1.0, least=5.0), point(seconds=1.0, least=0.5)])
    assert found.points[0].efficiency == 5
    assert found.points[0].wasted == 0
    assert found.efficiency == 0.75


def test_the_biggest_loss_is_the_line_that_wastes_most_not_the_longest():
    slow = point(seconds=2.0, least=0.1, line=14, text="y = x.T.copy()")
    found = Roofline("f", "()", MACHINE, [point(seconds=5.0, least=4.9, line=7), slow])
    assert [loss.line for loss in found.losses] == [14, 7]
    assert "line 14, `y = x.T.copy()`: 1.9 s of 2 s" in found.headline


def test_a_kernel_of_several_lines_is_split_over_them():
    both = point(seconds=4.0, least=2.0, lines=(("a.py", 3, 0.75), ("a.py", 4, 0.25)))
    losses = Roofline("f", "()", MACHINE, [both]).losses
    assert [(loss.line, loss.seconds, loss.wasted) for loss in losses] == [(3, 3.0, 1.5), (4, 1.0, 0.5)]


@given(st.lists(st.tuples(st.floats(1e-9, 1e3), st.floats(0, 1e3)), min_size=1, max_size=8))
def test_no_function_is_beyond_what_the_machine_can_do(times):
    found = Roofline("f", "()", MACHINE, [point(seconds=seconds, least=least) for seconds, least in times])
    assert 0 <= found.efficiency <= 1
    assert math.isnan(found.speedup) or found.speedup >= 1
    assert sum(found.shares.values()) == pytest.approx(1)


def test_nothing_measured_is_nothing_told():
    found = Roofline("f", "()", MACHINE, [])
    assert math.isnan(found.efficiency)
    assert "ran no kernel" in found.headline
    assert len(found.to_frame()) == 0


def test_its_repr_is_the_sentence_and_the_table_and_its_frame_has_all():
    found = Roofline("f", "(x: f32[8])", MACHINE, [point()])
    assert repr(found).startswith(found.headline)
    assert point().name in repr(found)
    assert list(found.to_frame()["efficiency"]) == [0.5]
    assert repr(MACHINE) == "Peaks(a machine)"
    assert "f32 100 GFLOP/s, bf16 200 GFLOP/s" in MACHINE.to_text()


@pytest.mark.parametrize(
    ("seconds", "text"), [(1.5, "1.5 s"), (0.9999, "1 s"), (250e-6, "250 µs"), (3e-12, "0.003 ns"), (1234.5, "1,230 s")]
)
def test_a_duration_has_three_digits(seconds, text):
    assert duration_text(seconds) == text


def test_a_rate_has_three_digits():
    assert rate_text(999.9e9) == "1 TFLOP/s"


# -- real functions


def points_of(function, *args):
    return {
        point.op + (" " + point.dtype if point.is_matmul else ""): point
        for point in ex.roofline(function, *args, peaks=MACHINE).points
    }


@pytest.mark.slow
def test_a_product_is_a_product_of_its_dtype_and_what_is_not_is_not():
    def both(x, y):
        return x @ x, jnp.tanh(y)

    found = ex.roofline(jax.jit(both), jnp.ones((128, 128)), jnp.ones(500_000), peaks=MACHINE)
    (product,) = (point for point in found.points if point.is_matmul)
    (tanh,) = (point for point in found.points if point.special)
    assert product.flops == 2 * 128**3
    assert product.dtype == tanh.dtype == "f32"
    assert tanh.special == {"tanh": 500_000}
    assert tanh.least == pytest.approx(500_000 / 1e9)
    assert product.line == tanh.line == both.__code__.co_firstlineno + 1


def test_a_product_in_half_precision_is_measured_by_that_roof():
    text = ex.explore(lambda x: x @ x, jnp.ones((64, 64), jnp.bfloat16)).hlo
    kinds = kernel_kinds(text.graph)
    products = [kinds.dtype[i] for i, is_product in enumerate(kinds.is_matmul) if is_product]
    assert products  # what a CPU multiplies is widened first
    assert set(products) <= {"bf16", "f32"}


def scanned(x, steps):
    return jax.lax.fori_loop(0, steps, lambda i, v: v @ v, x)


def product_of(found):
    return next(point for point in found.points if point.is_matmul)


@pytest.mark.slow
def test_a_loop_counts_as_often_as_it_runs_whether_its_length_is_known_or_not():
    x = jnp.ones((64, 64))
    known = product_of(ex.roofline(jax.jit(lambda x: scanned(x, 10)), x, peaks=MACHINE))
    measured = product_of(ex.roofline(jax.jit(scanned), x, 7, peaks=MACHINE))
    assert (known.runs, known.flops) == (10, 10 * 2 * 64**3)
    assert (measured.runs, measured.flops) == (7, 7 * 2 * 64**3)


@pytest.mark.slow
def test_a_loop_of_unknown_length_in_one_of_known_length_counts_both():
    def nested(x, steps):
        return jax.lax.fori_loop(0, 3, lambda i, v: scanned(v, steps), x)

    found = product_of(ex.roofline(jax.jit(nested), jnp.ones((64, 64)), 5, peaks=MACHINE))
    assert (found.runs, found.flops) == (15, 15 * 2 * 64**3)


def test_a_program_that_a_call_executes_several_times_counts_as_often():
    step = jax.jit(lambda x: x @ x)

    def thrice(x):
        return step(step(step(x)))

    found = product_of(ex.roofline(thrice, jnp.ones((64, 64)), peaks=MACHINE))
    assert (found.runs, found.flops) == (3, 3 * 2 * 64**3)


def test_seconds_wasted_are_the_same_in_profile_and_roofline():
    profile = ex.profile(jax.jit(scanned), jnp.ones((64, 64)), 7, runs=3)
    roofline = ex.roofline(profile, peaks=MACHINE)
    wasted = {op.name: op.wasted for op in profile.with_peaks(MACHINE).ops if op.seconds > 0}
    assert {point.name: point.wasted for point in roofline.points} == wasted
    assert sum(loss.seconds for loss in roofline.losses) == pytest.approx(roofline.seconds)
    graph = profile.with_peaks(MACHINE).capture.hlo.graph
    for point in roofline.points:
        node = graph.names.index(point.name)
        if point.bound == "unknown":
            assert math.isnan(graph.measures["wasted"][node])
        else:
            assert BOUNDS[int(graph.measures["bound"][node])] == point.bound
            assert graph.measures["wasted"][node] == pytest.approx(point.wasted, rel=1e-5)
    assert "wasted" not in profile.capture.hlo.graph.measures, "nothing is said of a machine that wasn't given"


@pytest.mark.slow
def test_a_library_call_that_tells_no_costs_is_said_to_have_none():
    found = ex.roofline(jax.jit(lambda x: jax.lax.top_k(x, 3)[0]), jnp.ones((64, 64)), peaks=MACHINE)
    call = next(point for point in found.points if point.op == "custom-call")
    assert call.bound == "unknown"
    assert math.isnan(call.flops)
    assert math.isnan(call.least)
    assert math.isnan(call.wasted)
    assert any("the minimum costs of" in note and call.name in note for note in found.notes)


@pytest.mark.parametrize("make", quick([jnp.sort, jnp.argsort], [jnp.sort]))
def test_a_sort_has_no_bound_and_no_speedup(make):
    found = ex.roofline(jax.jit(make), jax.random.normal(jax.random.key(0), (64, 64)), peaks=MACHINE)
    slow = [point for point in found.points if point.op == "sort"]
    assert slow
    assert all(point.bound == "unknown" and math.isnan(point.wasted) for point in slow)


def test_a_profile_of_no_known_program_has_the_costs_that_its_rows_tell():
    profile = ex.profile(jax.jit(lambda x: x @ x), jnp.ones((64, 64)), runs=3)
    from dataclasses import replace

    bare = replace(profile, captures={}, events=None)
    assert [cost.flops for cost in op_costs(bare)] == [op.flops for op in bare.ops]


@pytest.mark.slow
def test_a_large_result_in_new_memory_is_said_and_a_donated_one_is_not():
    slow = Peaks("a machine", 10e9, {"f32": 1e9}, {"f32": 1e9}, fresh=2e9)
    x = jnp.ones(9 << 20)
    keeping = ex.roofline(jax.jit(lambda x: x + 1), x, peaks=slow)
    assert "writes a result of 37.7 MB into memory that was not used before" in keeping.to_text()
    assert "2 GB/s; a donated argument" in keeping.to_text()
    donating = ex.roofline(jax.jit(lambda x: x + 1, donate_argnums=0), x, peaks=slow)
    assert "not used before" not in "".join(donating.notes)
    small = ex.roofline(jax.jit(lambda x: x + 1), jnp.ones(100), peaks=slow)
    assert "not used before" not in "".join(small.notes)


def test_what_is_no_function_profile_or_peaks_is_refused():
    with pytest.raises(ex.errors.NotCallableError, match="roofline takes a function"):
        ex.roofline(3)
    with pytest.raises(ex.errors.OptionError, match="peaks is float; allowed is a Peaks"):
        ex.roofline(jnp.sin, 1.0, peaks=3.0)
    with pytest.raises(ex.errors.OptionError, match="profile is list; allowed is a Profile"):
        ex.roofline(jnp.sin, 1.0, profile=[])


@pytest.mark.parametrize(
    ("factorise", "flops"),
    [
        (jnp.linalg.cholesky, 64**3 / 3),
        (lambda x: jax.lax.linalg.lu(x)[0], 64**3 * 2 / 3),
        (lambda x: jnp.linalg.qr(x, mode="r"), 64**3 * 4 / 3),
        (lambda x: jax.lax.linalg.triangular_solve(x, x, left_side=True), 64**3),
    ],
)
def test_a_factorisation_does_what_its_textbook_says(factorise, flops):
    hlo = ex.explore(factorise, jnp.eye(64)).hlo
    known = hlo.graph.measures["flops"]
    calls = [float(known[node.index]) for node in hlo.graph.nodes if node.op == "custom-call"]
    assert max(calls) == pytest.approx(flops)


def test_a_kernel_that_beats_the_peaks_casts_doubt_on_them():
    slow = Peaks("a machine", 1e6, {"f32": 1e6}, {"f32": 1e6})
    found = ex.roofline(jax.jit(lambda x: x @ x), jnp.ones((128, 128)), peaks=slow)
    assert found.points[0].efficiency > 1.1
    assert any("is faster than the peaks of this machine allow" in note for note in found.notes)
    assert "can't be much faster" in found.headline
