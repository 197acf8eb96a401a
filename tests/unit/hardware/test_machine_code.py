"""The code that the real compilers of hardware that isn't here make."""

import jax
import jax.numpy as jnp
import pytest

import explorer as ex

pytestmark = pytest.mark.slow  # a compiler of its own each

X = jax.ShapeDtypeStruct((4, 256, 64), jnp.bfloat16)


def attention(q, k, v):
    return jax.nn.softmax(q @ k.swapaxes(-1, -2) / 8.0) @ v


def test_a_gpus_kernels_have_their_code_registers_launch_and_tensor_cores(cuda, tmp_path) -> None:
    capture = ex.explore(attention, X, X, X, target=cuda)
    code = capture.machine_code
    running = [node for node in capture.hlo.graph.nodes if node.op == "fusion" and not node.group]
    assert {name for row in code for name in row.kernels} >= {node.name for node in running}
    assert not code.notes
    for row in code:
        assert {"ptx", "llvm"} <= set(row.texts)
        assert row.function in row.texts["ptx"]
        assert 0 < row.registers <= 255  # what a thread can have at most
        assert row.stack == 0
        assert row.has_spills is False
        assert 0 < row.occupancy <= 1
    products = [row for row in code if "mma" in row.texts["ptx"]]
    assert products
    assert all(row.matrix_instructions and "triton" in row.texts for row in products)
    assert "tensor cores" in code.to_text()
    capture.save(tmp_path / "f.capture")
    assert ex.load(tmp_path / "f.capture").machine_code == code


def test_a_tpus_kernels_have_their_bundles(tpu) -> None:
    capture = ex.explore(attention, X, X, X, target=tpu)
    code = capture.machine_code
    assert code.platform == "tpu"
    assert all(row.kernels and row.bundles and row.spills is not None for row in code)
    assert any("vmatmul" in name for row in code for name in row.matrix_instructions)
    assert ex.explore(attention, X, X, X, target=tpu).hlo.text == capture.hlo.text  # the next compile is as before
