"""What kernels are expected to take on hardware that isn't here, and who expects it."""

from dataclasses import replace

import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.hardware.names import estimates

TEXT = """HloModule m, is_scheduled=true

ENTRY e (x: f32[1024]) -> f32[1024] {
  x = f32[1024]{0} parameter(0)
  a = f32[1024]{0} sine(x), backend_config={CONFIG}
  ROOT b = f32[1024]{0} negate(a)
}
"""
MODELS = (
    '{"reification_cost":[{"end_to_end_cycles":99.5,"exec_time_us":8630.15,"compute_time_us":1,"name":""},'
    '{"end_to_end_cycles":5091.57,"exec_time_us":2.5,"compute_time_us":1.3,"name":"indexing-cost-model"},'
    '{"end_to_end_cycles":0,"exec_time_us":0.01,"compute_time_us":0,"name":"sol"}]}'
)


def capture_for(target: str, config: str) -> ex.Capture:
    capture = ex.open_hlo(TEXT.replace("{CONFIG}", config))
    return replace(capture, environment={**capture.environment, "target": target})


def by_name(capture: ex.Capture) -> dict[str, ex.types.Estimate]:
    return {row.node.name: row for row in estimates(capture)}


def test_a_gpus_estimate_is_the_one_of_the_model_that_knows_the_tiles() -> None:
    rows = by_name(capture_for("h100", MODELS))
    assert rows["a"].seconds == pytest.approx(2.5e-6)
    assert rows["a"].by == "XLA's cost model"


def test_a_gpus_estimate_without_tiles_is_that_of_the_only_model() -> None:
    config = '{"reification_cost":[{"exec_time_us":1.963,"name":""},{"exec_time_us":0.877,"name":"sol"}]}'
    assert by_name(capture_for("h100", config))["a"].seconds == pytest.approx(1.963e-6)


def test_a_tpus_cycles_are_seconds_where_its_clock_is_known_and_nothing_else_where_not() -> None:
    config = '{"window_config":{"estimated_cycles":"3000"}}'
    row = by_name(capture_for("v5e:2x2", config))["a"]
    assert row.seconds == pytest.approx(3000 / 1.5e9)
    assert "1.5 GHz" in row.by
    assert by_name(capture_for("v6e", config))["a"].by == "published peaks"


def test_where_the_compiler_says_nothing_it_is_the_least_by_published_peaks() -> None:
    rows = by_name(capture_for("h100", MODELS))
    # 1024 numbers are read and written, at 3.352 TB a second
    assert rows["b"].seconds == pytest.approx(8192 / 3.352e12, rel=0.01)
    assert rows["b"].by == "published peaks"
    alone = by_name(capture_for("h100", "{}"))
    assert {row.by for row in alone.values()} == {"published peaks"}
    assert capture_for("h100", "{}").estimates.total.startswith("≥ ")


def test_the_sum_names_all_who_expect_it_and_is_never_called_measured() -> None:
    capture = capture_for("h100", MODELS)
    assert capture.estimates.seconds == pytest.approx(2.5e-6 + 8192 / 3.352e12, rel=0.01)
    text = capture.estimates.to_text()
    assert "XLA's cost model and published peaks" in text
    assert "Nothing is measured" in text
    assert "Estimated" in capture.summary[-1].text
    assert "time" not in capture.hlo.graph.measures  # which is of profiles


def test_a_file_of_it_gives_the_same(tmp_path) -> None:
    capture = capture_for("h100", MODELS)
    capture.save(tmp_path / "f.capture")
    loaded = ex.load(tmp_path / "f.capture")
    assert [(row.node.name, row.seconds, row.by) for row in loaded.estimates] == [
        (row.node.name, row.seconds, row.by) for row in capture.estimates
    ]


def test_a_program_for_what_is_here_has_none() -> None:
    assert not ex.explore(jnp.sin, jnp.ones(8)).estimates


@pytest.mark.slow
def test_a_gpus_own_compiler_estimates_every_kernel(cuda) -> None:
    capture = ex.explore(lambda x: jnp.tanh(x @ x).sum(0), jnp.ones((512, 512)), target=cuda)
    assert capture.estimates.by == "XLA's cost model"
    assert capture.estimates.unknown == 0
    assert 1e-7 < capture.estimates.seconds < 1e-2


@pytest.mark.slow
def test_a_tpus_own_compiler_estimates_its_fusions(tpu) -> None:
    capture = ex.explore(lambda x: jnp.tanh(x @ x).sum(0), jnp.ones((512, 512)), target=tpu)
    assert "cycles at 1.5 GHz" in capture.estimates.by
