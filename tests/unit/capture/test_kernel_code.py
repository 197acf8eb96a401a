"""cap.machine_code, of programs that are compiled for the CPU that is here."""

import os

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.capture.kernel_code import equal_kernels
from explorer.errors import NotRecordedError, UnknownNameError


@pytest.fixture(scope="module")
def capture():
    return ex.explore(lambda x: jnp.sort(jnp.tanh(x) * 2 + 1), jnp.ones(4096))


def test_each_kernel_has_its_code_and_says_how_wide_it_computes(capture):
    code = capture.machine_code
    assert code.platform == "cpu"
    for row in code:
        assert row.texts["llvm"].startswith("define ")
        for kernel in row.kernels:
            assert kernel in capture.hlo.graph
            assert code[kernel] is row
    fused = next(row for row in code if "fusion" in row.function)
    # SSE2 and Neon, which every CPU that JAX runs on has; the suite compiles without LLVM's optimisation.
    assert fused.vector_bits >= 128 or "optimization_level=0" in os.environ.get("XLA_FLAGS", "")


def test_the_code_stays_with_the_capture_and_is_in_its_file(capture, tmp_path):
    code = capture.machine_code
    assert capture.has_machine_code
    capture.save(tmp_path / "f.capture")
    loaded = ex.load(tmp_path / "f.capture")
    assert loaded.has_machine_code
    assert loaded.machine_code == code
    assert loaded.wire == capture.wire


def test_without_it_a_saved_capture_says_that_it_has_none(tmp_path):
    capture = ex.explore(lambda x: x + 1, jnp.ones(8))
    assert not capture.has_machine_code
    capture.save(tmp_path / "f.capture")
    with pytest.raises(NotRecordedError, match=r"look at `\.machine_code` before saving"):
        _ = ex.load(tmp_path / "f.capture").machine_code


def test_a_name_that_is_no_kernels_says_what_is_near(capture):
    name = capture.machine_code[0].kernels[0]
    with pytest.raises(UnknownNameError, match=name):
        _ = capture.machine_code[name + "x"]


def test_kernels_that_are_equal_share_their_code():
    def chain(x):
        for _ in range(3):
            x = jnp.sort(jnp.tanh(x) * 2.0)
        return x

    capture = ex.explore(chain, jnp.ones((64, 64)))
    fused = [node.name for node in capture.hlo.graph.nodes if node.op == "fusion"]
    assert len(fused) == 3
    first, second, third = (capture.machine_code[name] for name in fused)
    assert second is third
    # The first one reads the argument, the others may write over what they read: XLA makes two codes.
    assert first is not second
    assert first.texts["llvm"].replace(first.function, "") != second.texts["llvm"].replace(second.function, "")
    # A sort's own code is its comparison.
    sort = next(node.name for node in capture.hlo.graph.nodes if node.op == "sort")
    assert "fcmp" in capture.machine_code[sort].texts["llvm"] or "icmp" in capture.machine_code[sort].texts["llvm"]


def test_kernels_of_other_constants_are_not_equal():
    graph = ex.explore(lambda x: (jnp.cumsum(jnp.sin(x) * 2), jnp.cumsum(jnp.sin(x) * 3)), jnp.ones(4096)).hlo.graph
    for names in equal_kernels(graph).values():
        assert (
            len({tuple(sorted(node.attributes.get("literal", "") for node in _inside(graph, name))) for name in names})
            == 1
        )


def _inside(graph, name):
    row = graph[name].index
    return [node for node in graph.nodes if graph.kernel[node.index] == row and node.index != row]


def test_text_has_a_line_for_each_kernel_and_what_is_not_known(capture):
    text = capture.machine_code.to_text()
    for row in capture.machine_code:
        assert row.kernels[0] in text
    assert repr(capture.machine_code) == f"MachineCode(cpu: {len(capture.machine_code)} kernels)"


def test_a_program_of_libraries_alone_has_no_code_and_says_whose_it_is():
    code = ex.explore(lambda x: jnp.linalg.cholesky(x), jnp.eye(64)).machine_code
    assert any("lapack" in note for note in code.notes)


def test_the_users_function_runs_no_more_than_once():
    calls = []

    def f(x):
        calls.append(1)
        return jax.lax.sin(x)

    _ = ex.explore(f, jnp.ones(8)).machine_code
    assert calls == [1]
