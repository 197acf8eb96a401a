"""A profile of what runs on a GPU."""

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer._jax.profiling import read_profile

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(jax.default_backend() != "gpu", reason="there is no GPU that JAX can use"),
]

X = jnp.ones((2048, 2048)) * 1e-3


def looped(x):
    def body(carry, _):
        return jnp.tanh(carry @ x), carry.sum()

    last, sums = jax.lax.scan(body, x, None, length=8)
    return jnp.sort(last, axis=0), sums


@pytest.fixture(scope="module")
def found():
    return ex.profile(jax.jit(looped), X, runs=5)


def test_the_gpu_has_a_plane_of_its_own_with_streams(found):
    planes = {plane.name: plane for plane in read_profile(found.xspace).planes}
    lines = [line.name for name, plane in planes.items() if name.startswith("/device:GPU") for line in plane.lines]
    assert any(line.startswith("Stream #") for line in lines)


def test_instructions_and_lines_add_up_to_the_devices_time(found):
    assert found.device_seconds > 0
    assert sum(op.seconds for op in found.ops) == pytest.approx(found.device_seconds)
    assert sum(line.seconds for line in found.lines) + found.unattributed == pytest.approx(found.device_seconds)
    assert found.device_seconds <= found.wall_seconds * 1.02


def test_nearly_all_of_it_has_a_line_and_an_instruction_of_the_program(found):
    assert found.unattributed <= 0.05 * found.device_seconds
    graph = found.capture.hlo.graph
    assert sum(op.seconds for op in found.ops if op.name in graph) >= 0.95 * found.device_seconds


def test_the_product_in_the_loop_runs_as_often_as_the_loop_turns(found):
    longest = max((op for op in found.ops if op.count > 1), key=lambda op: op.seconds)
    assert longest.count == pytest.approx(8, abs=1)
