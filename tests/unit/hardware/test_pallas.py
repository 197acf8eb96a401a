"""Pallas kernels and cuDNN attention for hardware that isn't here: their costs, grids, blocks and memory spaces.

The counts are closed forms of the kernels' shapes, and XLA's own sum where a kernel has a `pl.CostEstimate`.
"""

import math

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

import explorer as ex
from explorer.analysis.pallas_costs import read_estimate

ROWS = jax.ShapeDtypeStruct((512, 128), jnp.float32)
TILE = pl.BlockSpec((128, 128), lambda i: (i, 0))
ESTIMATE = pl.CostEstimate(flops=12345, transcendentals=7, bytes_accessed=999)


def elementwise(x_ref, y_ref, o_ref):
    o_ref[...] = jnp.exp(x_ref[...]) + y_ref[...] * 2


def run(kernel, **options):
    call = pl.pallas_call(kernel, out_shape=ROWS, grid=(4,), in_specs=[TILE] * 2, out_specs=TILE, **options)
    return lambda x, y: call(x, y)


def cost_of_call(capture: ex.Capture) -> tuple[float, float]:
    (call,) = capture.hlo.graph.where("op:custom-call")
    measures = capture.hlo.graph.measures
    return float(measures["flops"][call.index]), float(measures["bytes"][call.index])


def test_a_kernel_costs_its_jaxpr_times_its_grid(tpu) -> None:
    capture = ex.explore(run(elementwise), ROWS, ROWS, target=tpu)
    assert cost_of_call(capture) == (3 * 512 * 128, 3 * 512 * 128 * 4)  # exp, add, multiply; two reads and a write
    assert not capture.lines().notes


def test_an_authors_estimate_comes_first_as_in_xlas_own_sum(tpu) -> None:
    capture = ex.explore(run(elementwise, cost_estimate=ESTIMATE), ROWS, ROWS, target=tpu)
    assert cost_of_call(capture) == (12345 + 7, 999)
    assert capture.cost["flops"] + capture.cost["transcendentals"] == 12345 + 7
    assert ex.open_hlo(capture.hlo.text).cost["flops"] == 12345 + 7  # the text alone has it too


def test_a_kernels_cost_counts_in_each_run_of_a_loop(tpu) -> None:
    step = run(elementwise)

    def repeated(x, y):
        return jax.lax.fori_loop(0, 5, lambda _, value: step(value, y), x)

    capture = ex.explore(repeated, ROWS, ROWS, target=tpu)
    assert cost_of_call(capture)[0] == 5 * 3 * 512 * 128


def product(x_ref, y_ref, o_ref, sum_ref):
    @pl.when(pl.program_id(2) == 0)
    def _():
        sum_ref[...] = jnp.zeros_like(sum_ref)

    sum_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

    @pl.when(pl.program_id(2) == 3)
    def _():
        o_ref[...] = sum_ref[...].astype(o_ref.dtype)


def tiled_product(x, y):
    from jax.experimental.pallas import tpu as pltpu

    return pl.pallas_call(
        product,
        out_shape=jax.ShapeDtypeStruct((512, 256), jnp.bfloat16),
        grid=(4, 2, 4),
        in_specs=[pl.BlockSpec((128, 256), lambda i, j, k: (i, k)), pl.BlockSpec((256, 128), lambda i, j, k: (k, j))],
        out_specs=pl.BlockSpec((128, 128), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((128, 128), jnp.float32)],
    )(x, y)


X, Y = jax.ShapeDtypeStruct((512, 1024), jnp.bfloat16), jax.ShapeDtypeStruct((1024, 256), jnp.bfloat16)


@pytest.fixture(scope="module")
def tiled(tpu) -> ex.Capture:
    return ex.explore(tiled_product, X, Y, target=tpu)


def test_a_branch_of_some_grid_positions_counts_there_alone(tiled: ex.Capture) -> None:
    products = 2 * 512 * 1024 * 256 + 4 * 512 * 256  # and a sum into the scratch for each of the 4 parts
    cast = 512 * 256  # at the last part alone
    steps = 4 * 2 * 4
    scalars = cost_of_call(tiled)[0] - products - cast
    assert 0 <= scalars <= 6 * steps  # comparisons and casts of the grid's positions


def test_a_data_dependent_branch_leaves_the_cost_unknown(tpu) -> None:
    def kernel(x_ref, y_ref, o_ref):
        @pl.when(x_ref[0, 0] > 0)
        def _():
            o_ref[...] = x_ref[...] * y_ref[...]

    capture = ex.explore(run(kernel), ROWS, ROWS, target=tpu)
    assert math.isnan(cost_of_call(capture)[0])
    assert "FLOPs of 1 kernel not known" in capture.lines().notes[0]


def test_a_kernels_grid_blocks_and_memory_spaces_are_its_nodes_attributes(tiled: ex.Capture) -> None:
    graph = tiled.jaxpr.graph
    (call,) = graph.where("op:pallas_call")
    assert call.attributes["grid"] == "(4, 2, 4)"
    assert call.attributes["block args[0]"] == "Ref<default>{bf16[128,256]} of bf16[512,1024] at (a, b, c) → (a, c)"
    assert call.attributes["block outputs"] == "Ref<default>{bf16[128,128]} of bf16[512,256] at (a, b, c) → (a, b)"
    scratch = [node.type for node in graph.nodes if node.op == "parameter" and "vmem" in node.type]
    assert "Ref<vmem>{f32[128,128]}" in scratch


@pytest.mark.parametrize("text", ["", "CostEstimate()", "{}", '"cost_estimate":{}'])
def test_a_text_without_figures_is_no_estimate(text: str) -> None:
    assert read_estimate(text) is None


@pytest.mark.slow
def test_a_triton_kernel_has_the_same_cost_and_a_line_for_its_code(cuda) -> None:
    capture = ex.explore(run(elementwise, compiler_params=triton.CompilerParams()), ROWS, ROWS, target=cuda)
    assert cost_of_call(capture)[0] == 3 * 512 * 128
    (code,) = capture.machine_code
    assert repr(code) == f"KernelCode({code.function} of {code.kernels[0]}: llvm, ptx)"


@pytest.mark.slow
def test_a_mosaic_kernel_opens_for_a_gpu(cuda) -> None:
    from jax.experimental.pallas import mosaic_gpu

    def body(x_ref, y_ref, o_ref):
        part = pl.ds(jax.lax.axis_index("rows") * 128, 128)
        o_ref[part] = x_ref[part] + y_ref[part] * 2

    kernel = mosaic_gpu.kernel(body, out_type=ROWS, grid=(4,), grid_names=("rows",))
    capture = ex.explore(lambda x, y: kernel(x, y), ROWS, ROWS, target=cuda)
    (call,) = capture.hlo.graph.where("op:custom-call")
    assert "mosaic_gpu" in call.attributes["custom_call_target"]
    assert cost_of_call(capture)[0] == 2 * 512 * 128 + 4  # and the first row of each part


@pytest.mark.slow
def test_cudnn_attention_opens_for_a_gpu(cuda) -> None:
    x = jax.ShapeDtypeStruct((4, 512, 8, 64), jnp.bfloat16)

    def attention(q, k, v):
        return jax.nn.dot_product_attention(q, k, v, implementation="cudnn")

    capture = ex.explore(attention, x, x, x, target=cuda)
    assert any("fmha" in node.attributes["custom_call_target"] for node in capture.hlo.graph.where("op:custom-call"))
    with pytest.raises(ex.errors.ExploreError, match="cuDNN is not detected"):  # here there is still none
        ex.explore(attention, x, x, x)
