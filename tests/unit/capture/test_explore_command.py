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


def test_an_interrupt_is_a_line_that_says_in_which_step_and_the_status_that_shells_know(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slow.py").write_text("def step(x):\n    raise KeyboardInterrupt\n")
    assert main(["explore", "slow.py:step", "--arg", "f32[8]"]) == 130
    assert capsys.readouterr().err == "step: interrupted in trace\n"
