"""largest_that_fits(): the bound is real, both sides of it compiled, and nothing is taken for granted between."""

import math
import re

import jax
import jax.numpy as jnp
import pytest

import explorer as ex


def rows(width: int, dtype: object = jnp.float32):
    return lambda b: jax.ShapeDtypeStruct((b, width), dtype)


def buffers(function, *shapes: jax.ShapeDtypeStruct) -> int:
    """What JAX itself says of a compiled program's buffers."""
    memory = jax.jit(function).lower(*shapes).compile().memory_analysis()
    code = memory.generated_code_size_in_bytes
    parts = memory.argument_size_in_bytes, memory.output_size_in_bytes, memory.temp_size_in_bytes
    return sum(parts) + code - memory.alias_size_in_bytes


@pytest.mark.parametrize(
    ("width", "limit", "multiple"),
    [
        (37, 10**5, 8),
        pytest.param(1000, 10**6, 1, marks=pytest.mark.slow),
        pytest.param(4096, 2 * 10**8, 64, marks=pytest.mark.slow),
    ],
)
def test_the_size_fits_and_the_next_one_does_not_by_jaxs_own_figures(width: int, limit: int, multiple: int) -> None:
    found = ex.largest_that_fits(jnp.sin, dimension="b", args=rows(width), limit=limit, multiple=multiple)
    assert found.is_exact
    assert found.size % multiple == 0
    assert buffers(jnp.sin, rows(width)(found.size)) <= limit < buffers(jnp.sin, rows(width)(found.size + multiple))
    assert found.is_monotone
    assert len(found) <= 12


def test_an_input_infos_dimension_is_varied_within_its_bounds_and_the_others_stay() -> None:
    batch, length = ex.NamedDimension("batch", 1, 8, 64), ex.NamedDimension("length", 1, 100, 200)
    info = ex.InputInfo((batch, length), jnp.float32)
    found = ex.largest_that_fits(jnp.tanh, info, dimension="batch", limit=10_000)
    assert found.size == 12  # 100 floats a row, of argument and result
    everything = ex.largest_that_fits(jnp.tanh, info, dimension="batch", limit=10**9)
    assert (everything.size, everything.too_large) == (64, None)
    assert "the largest requested size" in everything.headline
    nothing = ex.largest_that_fits(jnp.tanh, info, dimension="batch", limit=1)
    assert (nothing.size, nothing.is_exact) == (0, False)
    assert "no batch fits" in nothing.headline


def test_a_program_that_takes_less_from_some_size_on_is_found_out() -> None:
    """The function keeps all rows up to 40, and beyond that only a part of the last: a larger batch fits again."""

    def stepped(x):
        kept = jnp.sin(x)
        return kept if x.shape[0] <= 40 else kept[-1, :2]

    found = ex.largest_that_fits(stepped, dimension="b", args=rows(1000), limit=200_000, high=64)
    assert found.size < 40
    assert not found.is_monotone
    assert re.search(r", though [\d, ]+ fits? again", found.headline)


def test_what_is_no_dimension_or_size_is_refused_before_anything_is_compiled() -> None:
    info = ex.InputInfo((ex.NamedDimension("batch", 1, 8, 64), 4), jnp.float32)
    with pytest.raises(ex.errors.OptionError, match="that vary are batch"):
        ex.largest_that_fits(jnp.sin, info, dimension="time")
    for options in ({"multiple": 0}, {"low": -1}, {"high": 1.5}, {"limit": 0}, {"low": 70}):
        with pytest.raises(ex.errors.OptionError):
            ex.largest_that_fits(jnp.sin, info, dimension="batch", **options)
    with pytest.raises(ex.errors.NotCallableError):
        ex.largest_that_fits(jnp.ones(3), dimension="batch")


def test_what_fails_for_another_reason_than_its_memory_raises_as_ever() -> None:
    with pytest.raises(ex.errors.ExploreError, match="dot_general"):
        ex.largest_that_fits(lambda x: x @ x, dimension="b", args=lambda b: jax.ShapeDtypeStruct((b, b + 1), "float32"))


def test_an_interrupt_has_what_was_known_by_then() -> None:
    began = []

    def slow(x):
        began.append(x.shape)
        if len(began) == 3:
            raise KeyboardInterrupt  # as where Ctrl-C meets the trace; a worker of pytest-xdist hears no signal
        return jnp.sin(x)

    with pytest.raises(KeyboardInterrupt) as raised:
        ex.largest_that_fits(slow, dimension="b", args=rows(100), limit=10**6)
    known: ex.types.LargestFit = raised.value.result  # type: ignore[attr-defined]
    assert len(known) == 2
    assert "interrupted" in known.notes[0]


def test_its_table_has_every_size_in_text_and_html() -> None:
    found = ex.largest_that_fits(jnp.sin, dimension="b", args=rows(1000), limit=10**6)
    page = found._repr_mimebundle_()["text/html"]
    assert all(f"{trial.size:,}" in repr(found) and f"{trial.size:,}" in page for trial in found.trials)
    assert found.headline in found.to_text()


@pytest.mark.slow
def test_on_a_tpu_its_own_compiler_decides_and_on_a_gpu_the_published_memory(
    request: pytest.FixtureRequest,
) -> None:
    from tests.unit.hardware.conftest import require

    require("tpu")
    require("cuda")
    there = ex.largest_that_fits(jnp.sin, dimension="b", args=rows(8192), multiple=8, target="v5e")
    assert there.is_exact
    assert there.too_large is not None
    assert "RESOURCE_EXHAUSTED" in there.too_large.error
    assert 0.98 * 15.75 * 2**30 < 2 * 4 * 8192 * there.size <= 15.75 * 2**30
    gpu = ex.largest_that_fits(jnp.sin, dimension="b", args=rows(8192), multiple=8, target="h100")
    assert gpu.size == math.floor(0.75 * 84_942_979_072 / (2 * 4 * 8192) / 8) * 8
    assert "75%" in gpu.basis
