"""One program for several kinds of hardware."""

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.analysis.least_time import least_times
from explorer.hardware.names import peaks_of
from tests.unit.hardware.conftest import require


def test_the_least_time_of_a_product_is_its_operations_at_the_published_rate() -> None:
    """By hand: 2·4096³ operations at 989.4 TFLOP/s, more than its 3 × 33.5 MB take at 3.35 TB/s."""
    text = """HloModule m, is_scheduled=true

ENTRY %main (x: bf16[4096,4096], y: bf16[4096,4096]) -> bf16[4096,4096] {
  %x = bf16[4096,4096]{1,0} parameter(0)
  %y = bf16[4096,4096]{1,0} parameter(1)
  ROOT %dot = bf16[4096,4096]{1,0} dot(%x, %y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
    graph = ex.open_hlo(text).hlo.graph
    times = least_times(graph, peaks_of(ex.targets()["h100"].device))
    assert times.sum() == pytest.approx(2 * 4096**3 / 989.4e12)
    slow = least_times(graph, peaks_of(ex.targets()["l4"].device))
    assert slow.sum() == pytest.approx(2 * 4096**3 / 121e12)


def test_what_lies_on_the_chip_moves_no_memory() -> None:
    text = """HloModule m, is_scheduled=true

ENTRY %main (x: f32[1024,1024]) -> f32[1024,1024] {
  %x = f32[1024,1024]{1,0} parameter(0)
  %near = f32[1024,1024]{1,0:S(1)} negate(%x)
  ROOT %y = f32[1024,1024]{1,0} negate(%near)
}
"""
    device = ex.targets()["v5e"].device
    times = least_times(ex.open_hlo(text).hlo.graph, peaks_of(device))
    assert times.sum() == pytest.approx(2 * 4 * 1024**2 / device.bandwidth)  # read once, written once


@pytest.mark.parametrize(
    ("targets", "error", "said"),
    [
        ("h100", ex.errors.OptionError, "allowed is a list"),
        ([], ex.errors.OptionError, "allowed is a list"),
        (["abacus"], ex.errors.UnknownTargetError, "'abacus' names no hardware"),
    ],
)
def test_targets_that_are_none_are_refused(targets, error, said) -> None:
    with pytest.raises(error, match=said):
        ex.compare_targets(jnp.sin, jnp.ones(3), targets=targets)


def test_a_compiler_that_is_not_installed_is_a_row_that_says_so(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("EXPLORER_CACHE_DIR", str(tmp_path))
    compared = ex.compare_targets(jnp.sin, jnp.ones(3), targets=["h100"])
    assert compared["h100"].fits is None
    assert "not installed" in compared.to_text()
    assert "Hint: python -m explorer targets install cuda\n" in compared.to_text()
    assert compared.to_text().partition("\n")[0].endswith("fits on 0 of 1 target; for 1 that is unknown.")
    with pytest.raises(ex.errors.MissingCompilerError, match="it also needs AMD's ROCm libraries"):
        ex.explore(jnp.sin, jnp.ones(3), target="mi300x")


@pytest.mark.slow
def test_a_program_that_fits_one_and_not_the_other_says_so() -> None:
    require("cuda")
    require("tpu")

    def step(w, x):
        return jax.grad(lambda w: jnp.mean((jax.nn.gelu(x @ w[0]) @ w[1]) ** 2))(w)

    w = (jax.ShapeDtypeStruct((4096, 16384), jnp.bfloat16), jax.ShapeDtypeStruct((16384, 4096), jnp.bfloat16))
    x = jax.ShapeDtypeStruct((1 << 18, 4096), jnp.bfloat16)
    compared = ex.compare_targets(step, w, x, targets=["h100", "v5e"])
    assert [row.fits for row in compared] == [True, False]
    assert compared["h100"].memory > 2 * (1 << 18) * 4096 * 2  # the batch, and the result of the first product
    assert compared["h100"].seconds >= 4 * 2 * (1 << 18) * 4096 * 16384 / 989.4e12  # forward and back, at least
    text = compared.to_text()
    assert text.startswith("step fits on 1 of 2 targets.")
    assert "Ran out of memory" in text
    # XLA's own model of untuned products is far above what the published rate lets one hope for.
    assert compared["h100"].estimated > compared["h100"].seconds
    assert "by XLA's cost model" in text
    assert "h100: no GPU here: tiles of matrix products untuned" in text
    assert compared.to_frame()["fits"].tolist() == [True, False]
    assert "h100" in compared._repr_mimebundle_()["text/html"]
    with pytest.raises(ex.errors.UnknownNameError, match="v5e"):
        compared["v6e"]
