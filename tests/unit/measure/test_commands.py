"""`python -m explorer time module:function` and `python -m explorer profile module:function`."""

import json
import sys

import pytest

from explorer.__main__ import main

TEXT = """
import jax
import jax.numpy as jnp

def layer(x: "f32[16,8]", w: "f32[8,8]", seconds=2.0):
    h = jnp.tanh(x @ w)
    return h * seconds

@jax.jit
def picked(table: "f32[4]", index: "i32[3]"):
    return table[index]

def told(x: "f32[2]"):
    print("spoken")
    return x + 1

def varied(x: "f32[64]"):
    jax.debug.callback(lambda least, most: print("differs" if most > least else "the same"), x.min(), x.max())
    return x

number = 3
"""
SOON = ("--seconds", "0.02")


@pytest.fixture
def file(tmp_path, monkeypatch):
    (tmp_path / "users_measured.py").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield "users_measured.py"
    sys.modules.pop("users_measured", None)


def test_a_function_is_timed_with_arrays_as_its_annotations_say(file, capsys):
    assert main(["time", f"{file}:layer", *SOON]) == 0
    told = capsys.readouterr().out
    assert "layer(x: f32[16,8], w: f32[8,8]" in told
    assert "eager" in told


def test_eager_can_be_left_out(file, capsys):
    assert main(["time", f"{file}:layer", "--no-eager", *SOON]) == 0
    assert "eager" not in capsys.readouterr().out


def test_a_function_is_profiled_by_its_lines(file, capsys):
    assert main(["profile", f"{file}:layer", "--runs", "3"]) == 0
    assert "h = jnp.tanh(x @ w)" in capsys.readouterr().out


def test_an_argument_may_have_the_name_of_an_option(file, capsys):
    assert main(["profile", f"{file}:layer", "--runs", "2", "--arg", "seconds=3."]) == 0
    assert main(["time", f"{file}:layer", "--no-eager", *SOON, "--arg", "seconds=3."]) == 0
    assert "seconds" in capsys.readouterr().out


def test_described_indices_are_within_any_array_and_described_floats_differ(file, capsys):
    assert main(["profile", f"{file}:picked", "--runs", "2"]) == 0
    assert main(["profile", f"{file}:varied", "--runs", "2"]) == 0
    assert "the same" not in capsys.readouterr().err


def test_what_the_users_code_prints_is_no_part_of_the_report(file, capsys):
    assert main(["profile", f"{file}:told", "--runs", "2"]) == 0
    told = capsys.readouterr()
    assert "spoken" in told.err
    assert not told.out.startswith("spoken")


def test_a_page_and_a_trace_are_written(file, tmp_path, capsys):
    assert main(["profile", f"{file}:layer", "--runs", "2", "-o", "p.html", "--perfetto", "p.json"]) == 0
    assert "layer" in (tmp_path / "p.html").read_text()
    assert json.loads((tmp_path / "p.json").read_text())["traceEvents"]
    assert "p.html: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["time", "users_measured.py:none"], "it has: layer, picked"),
        (["time", "users_measured.py"], "names no function"),
        (["profile", "users_measured.py:number"], "NotCallableError"),
        (["profile", "users_measured.py:layer", "--runs", "0"], "runs=0"),
        (["time", "users_measured.py:layer", "--seconds", "-1"], "seconds"),
        (["time", "users_measured.py:layer", "--arg", "nonsense("], "can't be evaluated"),
    ],
)
def test_what_cannot_be_measured_is_refused(file, capsys, given, said):
    assert main(given) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("name", ["page.txt", "nowhere/page.html"])
def test_a_file_that_cannot_be_written_is_refused_before_the_work(file, capsys, name):
    with pytest.raises(SystemExit):
        main(["profile", f"{file}:layer", "-o", name])
    assert name in capsys.readouterr().err
