"""Line tables folded by call stack and by named scope, against counts by hand and the table that isn't folded."""

import math

import jax
import jax.numpy as jnp
import pytest

import explorer as ex


def product(a, b):
    return jnp.einsum("ij,jk->ik", a, b)  # "helper"


def layer(x, w1, w2):
    hidden = jax.nn.relu(product(x, w1))  # "up"
    return product(hidden, w2)  # "down"


def step(x, w1, w2, w3):
    with jax.named_scope("block"):
        y = layer(x, w1, w2)  # "block"
    with jax.named_scope("head"):
        return product(y, w3).sum()  # "head"


def array(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


UP, DOWN, HEAD = 2 * 64 * 128 * 256, 2 * 64 * 256 * 32, 2 * 64 * 32 * 512
RELU, SUM = 64 * 256, 64 * 512 - 1


@pytest.fixture(scope="module")
def capture() -> ex.Capture:
    return ex.explore(step, array(64, 128), array(128, 256), array(256, 32), array(32, 512))


def named(row: ex.types.LineRow) -> str:
    """Return the comment of a row's line, or the name of its scope."""
    return row.text.split('"')[-2] if "#" in row.text else row.text


def test_a_line_of_a_helper_has_the_products_of_all_callers(capture: ex.Capture) -> None:
    of_line = {named(row): row.flops for row in capture.lines()}
    assert of_line == {"helper": UP + DOWN + HEAD, "up": RELU, "head": SUM}


def test_folded_by_stack_each_caller_has_its_own_with_the_helpers_line_inside(capture: ex.Capture) -> None:
    rows = [(row.depth, named(row), row.flops) for row in capture.lines("stack")]
    assert rows == [
        (0, "block", UP + RELU + DOWN),
        (1, "up", UP + RELU),
        (2, "helper", UP),
        (1, "down", DOWN),
        (2, "helper", DOWN),
        (0, "head", HEAD + SUM),
        (1, "helper", HEAD),
    ]


def test_folded_by_scope_each_named_scope_has_its_lines_inside(capture: ex.Capture) -> None:
    rows = [(row.depth, named(row), row.flops, row.file == "") for row in capture.lines("scope")]
    assert rows == [
        (0, "block", UP + DOWN + RELU, True),
        (1, "helper", UP + DOWN, False),
        (1, "up", RELU, False),
        (0, "head", HEAD + SUM, True),
        (1, "helper", HEAD, False),
        (1, "head", SUM, False),
    ]


@pytest.mark.parametrize("by", ["stack", "scope"])
def test_the_outermost_rows_are_the_whole_program(capture: ex.Capture, by: str) -> None:
    plain, table = capture.lines(), capture.lines(by)  # type: ignore[arg-type]
    outermost = [row for row in table if not row.depth]
    assert (table.flops, table.bytes) == pytest.approx((plain.flops, plain.bytes))
    assert math.fsum(row.flops for row in outermost) == pytest.approx(table.flops)
    assert math.fsum(row.bytes for row in outermost) == pytest.approx(table.bytes)
    assert sum(row.equations for row in outermost) == sum(row.equations for row in plain)
    assert math.fsum(row.flops_share for row in outermost) == pytest.approx(1.0)


def test_rows_inside_are_indented_in_the_text(capture: ex.Capture) -> None:
    lines = repr(capture.lines("stack")).splitlines()
    helpers = [line for line in lines if "einsum" in line]
    assert [line.index("return") - lines[1].index("y =") for line in helpers] == [4, 4, 2]


def test_any_other_fold_is_refused(capture: ex.Capture) -> None:
    with pytest.raises(ex.errors.OptionError, match="'line', 'stack' or 'scope', not 'caller'"):
        capture.lines("caller")  # type: ignore[arg-type]


def test_a_capture_from_a_file_folds_alike(capture: ex.Capture, tmp_path) -> None:
    capture.save(tmp_path / "step.explorer")
    loaded = ex.load(tmp_path / "step.explorer")
    for by in ("stack", "scope"):
        assert repr(loaded.lines(by)) == repr(capture.lines(by))


def test_without_source_positions_everything_is_in_the_row_without_a_line() -> None:
    text = """HloModule m
ENTRY main { x = f32[8] parameter(0)
  ROOT y = f32[8] add(x, x) }"""
    (row,) = ex.open_hlo(text).lines("stack")
    assert (row.file, row.line, row.flops, row.kernels, row.depth) == ("", 0, 8.0, 1, 0)


def test_a_profiles_seconds_fold_by_its_captures() -> None:
    x, w1, w2, w3 = (jnp.ones(shape) for shape in ((64, 128), (128, 256), (256, 32), (32, 512)))
    profile = ex.profile(jax.jit(step), x, w1, w2, w3, runs=1)
    (capture,) = profile.captures.values()
    outermost = [row for row in capture.lines("stack") if not row.depth]
    assert math.fsum(row.seconds or 0.0 for row in outermost) == pytest.approx(capture.lines().seconds)
    block = next(row for row in outermost if named(row) == "block")
    assert 0 < (block.seconds or 0.0) < (capture.lines().seconds or 0.0)
