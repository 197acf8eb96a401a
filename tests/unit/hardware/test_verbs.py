"""`target=` of every verb: for hardware that isn't here, compiled by its own compiler, and never called measured."""

import math

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.hardware.limits import capacity_of, read_overflow
from explorer.hardware.names import parse_target
from explorer.model.results.targets import TargetResult


def array(*shape: int, dtype: object = jnp.bfloat16) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def mean_square(first, second, x):
    hidden = jax.nn.gelu(x @ first)
    return jnp.mean((hidden @ second) ** 2)


WEIGHTS = array(256, 512), array(512, 256)
STEP = jax.grad(mean_square)
TARGETS = pytest.mark.parametrize("fixture", ["cuda", "tpu"])


@pytest.mark.slow
@TARGETS
def test_memory_is_what_the_targets_compiler_allocates(fixture: str, request: pytest.FixtureRequest) -> None:
    target = request.getfixturevalue(fixture)
    use = ex.memory(STEP, *WEIGHTS, array(128, 256), target=target)
    row, device = use.rows[0], parse_target(target).device
    assert row.uses == dict(ex.explore(STEP, *WEIGHTS, array(128, 256), target=target).memory)
    assert device.name in use.headline
    assert use.limit == (device.memory if fixture == "tpu" else device.memory * 3 // 4)
    assert math.isnan(row.measured)
    assert device.name in use.notes[0]
    # One figure, whoever shows it; on a TPU with the code, which lies in the same memory.
    (compared,) = ex.compare_targets(ex.Call(STEP, *WEIGHTS, array(128, 256)), targets=[target])
    tried = ex.what_if(STEP, *WEIGHTS, array(128, 256), donate=0, target=target)
    assert row.needed == compared.memory == tried.plain.peak
    assert row.needed - compared.capture.memory["generated code"] == sum(
        row.uses[use] for use in ("argument", "output", "temp")
    )
    assert (row.uses["generated code"] > 0) == (fixture == "tpu")
    with pytest.raises(ex.errors.OptionError, match="can't run here"):
        ex.memory(STEP, *WEIGHTS, array(128, 256), target=target, measure=True)


@pytest.mark.slow
def test_a_size_that_a_tpus_compiler_refuses_does_not_fit_and_the_largest_that_does_is_found(tpu: str) -> None:
    use = ex.memory(
        lambda x: jnp.sin(x),
        over={"n": [1 << 14, 1 << 19]},
        args=lambda n: array(n, 8192, dtype=jnp.float32),
        target=tpu,
    )
    assert [use.fits(row) for row in use] == [True, False]
    assert use.largest is not None
    # 15.75 GiB hold the argument and the result, of 32 kiB a row each.
    most = 15.75 * 2**30 / 2**16
    assert 0.9 * most < use.largest.size <= most
    assert use.largest.size < (use.largest.too_large or math.inf)
    assert 0.999 * most < (use.largest.too_large or math.inf)  # the compiler keeps some of it for itself


@pytest.mark.slow
@TARGETS
def test_a_roofline_is_estimated_by_published_peaks_and_says_so(fixture: str, request: pytest.FixtureRequest) -> None:
    target = request.getfixturevalue(fixture)
    roofline = ex.roofline(STEP, *WEIGHTS, array(128, 256), target=target)
    assert roofline.is_estimated
    assert roofline.peaks.device == parse_target(target).device.name
    assert "estimated, not measured" in roofline.headline
    assert "efficiency" not in repr(roofline)
    assert any(point.is_matmul and point.line for point in roofline.points)
    # Two products forward and two back, at the published rate, are a lower bound of what stands there.
    least = 4 * 2 * 128 * 256 * 512 / parse_target(target).device.flops["bf16"]
    assert roofline.seconds >= least
    assert "least, estimated" in roofline._repr_mimebundle_()["text/html"]


@pytest.mark.slow
@TARGETS
def test_a_what_if_and_a_sweep_for_a_target_are_compiled_and_not_run(
    fixture: str, request: pytest.FixtureRequest
) -> None:
    target = request.getfixturevalue(fixture)
    tried = ex.what_if(STEP, *WEIGHTS, array(128, 256), donate=0, target=target)
    # A TPU's compiler also reserves less beside it.
    assert 256 * 512 * 2 <= tried["donate first"].saved(tried.plain) <= 1.1 * 256 * 512 * 2
    assert tried.plain.steady is None
    assert tried.plain.least > 0
    assert tried.environment["target"] == target
    swept = ex.sweep(mean_square, *WEIGHTS, over={"x": [array(128, 256), array(4096, 256)]}, target=target)
    small, large = swept.rows
    assert (small.steady, large.steady) == (None, None)
    assert small.least < large.least
    assert "estimated" in repr(swept)
    assert "estimated" in repr(tried)
    assert any(parse_target(target).device.name in note for note in swept.notes)
    for verb in (lambda: ex.what_if(STEP, *WEIGHTS, array(8, 256), target=target, time=True),
                 lambda: ex.sweep(jnp.sin, over={"x": [array(8)]}, target=target, time=True)):  # fmt: skip
        with pytest.raises(ex.errors.OptionError, match="can't run here"):
            verb()


@pytest.mark.slow
def test_a_capture_is_held_against_the_same_for_other_hardware_and_changed_there(cuda: str, tpu: str) -> None:
    here = ex.explore(STEP, *WEIGHTS, array(128, 256))
    difference = ex.diff(here, target=cuda)
    assert difference.b.environment["target"] == cuda
    assert difference.stage("jaxpr").is_empty
    assert not difference.stage("hlo").is_empty
    there = difference.b.compiled_for(tpu)
    assert there.environment["target"] == tpu
    assert there.compiled_for(None).environment.get("target") is None
    assert there.what_if(donate=0)["donate first"].capture.environment["target"] == tpu
    with pytest.raises(ex.errors.ArgumentsError, match="not both"):
        ex.diff(here, there, target=cuda)


@pytest.mark.parametrize("verb", [ex.time, ex.profile])
def test_what_can_only_be_measured_is_refused_and_the_estimate_is_named(verb) -> None:
    with pytest.raises(ex.errors.OptionError, match=r"explorer\.roofline\(f, x, target='8xh100'\)"):
        verb(jnp.sin, jnp.ones(3), target="8xh100")
    with pytest.raises(ex.errors.UnknownTargetError):
        verb(jnp.sin, jnp.ones(3), target="abacus")


@pytest.mark.parametrize(
    ("message", "needed", "available"),
    [
        ("Ran out of memory on HBM, the total memory required for HLO temporaries (32.00G) exceeds available HBM "
         "(15.75G).", 32.0, 15.75),
        ("Ran out of memory in memory space hbm. Used 16.50G of 15.75G hbm. Exceeded hbm capacity by 768.00M.",
         16.5, 15.75),
    ],
)  # fmt: skip
def test_a_tpus_error_has_its_figures(message: str, needed: float, available: float) -> None:
    overflow = read_overflow(f"RESOURCE_EXHAUSTED: {message}")
    assert overflow is not None
    assert (overflow.needed / 2**30, overflow.available / 2**30) == (needed, available)
    assert read_overflow("INTERNAL: something else") is None
    assert TargetResult("v5e", "TPU v5e", None, message).fits is False


@pytest.mark.parametrize(
    "failure",
    [
        "v5e: its compiler came to its limit of 300 MB, and ended by SIGABRT.",
        "v5e: its compiler was ended by SIGKILL: probably the system is out of memory.",
        "RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem. Used 33.00M of 16.00M vmem.",
    ],
)
def test_only_the_devices_own_memory_says_that_a_program_does_not_fit(failure: str) -> None:
    assert TargetResult("v5e", "TPU v5e", None, failure).fits is None
    assert read_overflow(failure) is None


def test_what_a_gpu_may_take_is_the_fraction_that_the_user_gives_xla(monkeypatch: pytest.MonkeyPatch) -> None:
    target = parse_target("h100")
    assert capacity_of(target).bytes == target.device.memory * 3 // 4
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", ".9")
    assert capacity_of(target).bytes == int(target.device.memory * 0.9)
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", "all")
    assert capacity_of(target).bytes == target.device.memory * 3 // 4
