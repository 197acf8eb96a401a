"""`python -m explorer explore`: what a terminal and files get."""

from pathlib import Path

import pytest

import explorer as ex
from explorer.__main__ import main

PROGRAM = """
import jax.numpy as jnp

def step(x, scale=2.0):
    print("traced")
    return jnp.tanh(x) * scale
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    (tmp_path / "step_to_explore.py").write_text(PROGRAM)
    return f"{tmp_path / 'step_to_explore.py'}:step"


def test_it_shows_the_capture_and_not_what_the_function_prints(script, capsys) -> None:
    assert main(["explore", script, "--arg", "f32[8,128]"]) == 0
    shown = capsys.readouterr()
    assert "1 kernel" in shown.out
    assert shown.out.startswith("step(x: f32[8,128])")
    assert "traced" not in shown.out
    assert "traced" in shown.err


def test_it_writes_files_by_their_ending(script, tmp_path, capsys) -> None:
    page, kept = tmp_path / "a.html", tmp_path / "a.capture"
    assert main(["explore", script, "--arg", "f32[8]", "--passes", "-o", str(page), "-o", str(kept)]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{path}: {path.stat().st_size:,} bytes" for path in (page, kept)]
    capture = ex.load(kept)
    assert capture.function == "step"
    assert len(capture.passes.all) > 10


def test_an_error_is_one_sentence_and_a_status(script, capsys) -> None:
    assert main(["explore", script, "--arg", "f32[8]", "--target", "abacus"]) == 1
    assert "'abacus' names no hardware that is known" in capsys.readouterr().err


UNCOMPILED = """
import jax
from jax.ffi import ffi_call

def step(x):
    return ffi_call("a_routine_that_nobody_registered", jax.ShapeDtypeStruct(x.shape, x.dtype))(x + 1)
"""


def test_of_a_compile_that_fails_the_stages_before_it_are_written(tmp_path, capsys) -> None:
    (tmp_path / "uncompiled.py").write_text(UNCOMPILED)
    page, kept = tmp_path / "a.html", tmp_path / "a.capture"
    status = main(
        ["explore", f"{tmp_path / 'uncompiled.py'}:step", "--arg", "f32[8]", "-o", str(page), "-o", str(kept)]
    )
    shown = capsys.readouterr().err
    assert status == 1
    assert "a_routine_that_nobody_registered" in shown
    assert f"{page}: the stages before it, jaxpr and stablehlo" in shown
    assert [stage.name for stage in ex.load(kept).stages] == ["jaxpr", "stablehlo"]
    assert "explorer-page" in page.read_text()


def test_of_a_trace_that_fails_there_is_nothing_to_write(tmp_path, capsys) -> None:
    (tmp_path / "untraced.py").write_text("def step(x):\n    return x if x.sum() > 0 else -x\n")
    page = tmp_path / "a.html"
    assert main(["explore", f"{tmp_path / 'untraced.py'}:step", "--arg", "f32[8]", "-o", str(page)]) == 1
    assert str(page) not in capsys.readouterr().err
    assert not page.exists()


def test_an_interrupt_is_a_line_that_says_in_which_step_and_the_status_that_shells_know(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slow.py").write_text("def step(x):\n    raise KeyboardInterrupt\n")
    assert main(["explore", "slow.py:step", "--arg", "f32[8]"]) == 130
    assert capsys.readouterr().err == "step: interrupted in trace\n"
