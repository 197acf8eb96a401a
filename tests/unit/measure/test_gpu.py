"""Profile, roofline, peaks and memory on a GPU. Skipped where JAX has none."""

import math

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.measure import peaks as peaks_module


def has_gpu():
    try:
        return bool(jax.devices("gpu"))
    except RuntimeError:  # this JAX knows no such backend
        return False


pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not has_gpu(), reason="JAX has no GPU here")]


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EXPLORER_CACHE_DIR", str(tmp_path_factory.mktemp("peaks")))
        patch.setattr(peaks_module, "_kept", {})
        yield ex.peaks()


def block(x, w):
    h = jax.nn.gelu(x @ w)
    return jax.nn.softmax(h, axis=-1).sum()


@pytest.fixture(scope="module")
def profiled():
    x, w = jnp.ones((4096, 2048), jnp.bfloat16), jnp.ones((2048, 2048), jnp.bfloat16)
    return ex.profile(jax.jit(block), x, w, runs=5)


# -- profile


def test_each_kernel_has_its_time_and_they_add_up(profiled):
    assert profiled.ops
    assert all(op.seconds >= 0 for op in profiled.ops)
    assert sum(op.seconds for op in profiled.ops) == pytest.approx(profiled.device_seconds, rel=0.02)
    assert profiled.device_seconds <= profiled.wall_seconds * 1.02


def test_kernels_are_instructions_of_the_program_that_ran(profiled):
    (capture,) = [one for one in profiled.captures.values() if "block" in one.function]
    known = [op for op in profiled.ops if op.name in capture.hlo.graph]
    assert sum(op.seconds for op in known) > 0.9 * profiled.device_seconds


def test_most_of_the_time_is_on_lines_of_the_function(profiled):
    first = block.__code__.co_firstlineno
    own = [row for row in profiled.lines if row.file == __file__ and first < row.line <= first + 2]
    assert sum(row.seconds for row in own) > 0.7 * profiled.device_seconds
    assert sum(row.seconds for row in profiled.lines) + profiled.unattributed == pytest.approx(
        profiled.device_seconds, rel=0.02
    )


def test_a_loop_in_a_command_buffer_has_the_time_of_its_kernels():
    """XLA records runs of small kernels as CUDA graphs; what is in one is still told kernel by kernel."""

    def steps(x):
        return jax.lax.fori_loop(0, 50, lambda i, v: jnp.sin(v) + v.sum(), x)

    found = ex.profile(jax.jit(steps), jnp.ones(4096), runs=3)
    hlo = next(one for one in found.captures.values() if "steps" in one.function).hlo
    kernels = [op for op in found.ops if op.name in hlo.graph and op.seconds > 0]
    assert kernels
    if "command_buffer" in hlo.text:
        assert any(graph.name.startswith("command_buffer") for graph in hlo.graph.groups)


# -- roofline


def test_a_product_is_bound_by_compute_and_a_large_copy_by_memory(machine):
    x = jnp.ones((8192, 8192), jnp.bfloat16)
    product = ex.roofline(jax.jit(lambda x: x @ x), x, peaks=machine).points[0]
    copy = ex.roofline(jax.jit(lambda x: x + 1), jnp.ones(1 << 28), peaks=machine).points[0]
    assert (product.bound, product.is_matmul, product.dtype) == ("compute", True, "bf16")
    assert copy.bound == "memory"
    assert 0.3 < product.efficiency < 1.15
    assert 0.3 < copy.efficiency < 1.15


def test_a_library_call_is_a_product_if_it_is_one(machine):
    """cuBLAS calls are custom calls named `__cublas$…`, those of Triton fusions named `__triton_gemm`."""
    x = jnp.ones((4096, 4096), jnp.float32)
    found = ex.roofline(jax.jit(lambda x: x @ x), x, peaks=machine)
    product = max(found.points, key=lambda point: point.seconds)
    assert product.is_matmul
    assert product.flops == pytest.approx(2 * 4096**3)


def test_a_convolution_of_cudnn_has_costs_and_its_name(machine):
    x, w = jnp.ones((32, 64, 56, 56), jnp.float16), jnp.ones((64, 64, 3, 3), jnp.float16)

    def convolve(x, w):
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME")

    hlo = ex.explore(convolve, x, w).hlo
    called = [node for node in hlo.graph.nodes if node.op in ("custom-call", "convolution", "fusion")]
    assert called
    found = ex.roofline(jax.jit(convolve), x, w, peaks=machine)
    products = [point for point in found.points if point.is_matmul]
    assert products
    assert all(math.isfinite(point.flops) for point in products)


# -- peaks and memory


def test_the_peaks_of_a_gpu_are_those_of_a_gpu(machine):
    assert machine.environment["backend"] == "gpu"
    assert machine.bandwidth > 50e9
    assert machine.matmul["f32"] > 1e12
    assert machine.matmul["bf16"] > machine.fma["f32"] / 4
    assert 0 < machine.overhead < 1e-3
    assert not machine.notes


def test_the_limit_is_the_devices():
    use = ex.memory(block, jnp.ones((64, 64)), jnp.ones((64, 64)))
    assert use.limit == jax.devices("gpu")[0].memory_stats()["bytes_limit"]
    assert use.fits(use.rows[0])
