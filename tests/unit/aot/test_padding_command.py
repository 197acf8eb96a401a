"""`python -m explorer padding module:function`."""

import sys

import pytest

from explorer.__main__ import main

TEXT = """
import jax
import jax.numpy as jnp

print("imported")

def attention(x, scale=2.0):
    print("traced")
    return jax.nn.softmax(x @ x.transpose(0, 2, 1) * scale, axis=-1)

def mixing(x, w):
    y = x @ w
    return jax.lax.linalg.svd(y, compute_uv=False)

def branch(x):
    return x if x.shape[0] > 5 else -x
"""


@pytest.fixture(autouse=True)
def file(tmp_path, monkeypatch):
    (tmp_path / "sized_code.py").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    sys.modules.pop("sized_code", None)


def padding(capsys, target, *arguments):
    status = main(["padding", f"sized_code.py:{target}", *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_what_can_be_padded_is_said_with_its_ranges_and_the_users_prints_apart(capsys):
    status, out, err = padding(capsys, "attention", "--arg", "f32[batch,seq,8]", "--dim", "batch=1:8")
    assert status == 0
    assert "Padded: 1 binary serves all 512 sizes" in out
    assert "batch = 1 … 8, seq = 1 … 64" in out
    assert "imported" in err
    assert "traced" not in out


def test_what_cannot_be_padded_is_said_with_its_line_and_is_the_exit_status(capsys):
    status, out, _ = padding(capsys, "mixing", "--arg", "f32[b,8]", "--arg", "w=f32[8,8]", "--dim", "b=1:32")
    assert status == 1
    assert "Specialised: 1 equation prevents padding: `svd` at sized_code.py, line 13" in out
    assert "return jax.lax.linalg.svd(y, compute_uv=False)" in out


def test_an_argument_by_name_and_a_function_of_no_symbol(capsys, recwarn):
    status, out, _ = padding(capsys, "branch", "--arg", "x=f32[b]")
    assert status == 1
    assert "no symbol can stand for its sizes" in out
    assert "line 16" in out
    assert not recwarn.list


def test_where_nothing_varies_one_binary_serves(capsys):
    assert padding(capsys, "attention", "--arg", "f32[2,4,8]")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--arg", "f32[b,s,8]", "--dim", "c=1:8"], "--dim c is in no argument's shape"),
        (["--arg", "f32[b]"], "trace failed"),
        ([], "the argument `x` of attention is missing"),
    ],
)
def test_what_could_not_be_looked_at_is_told_apart(capsys, arguments, message):
    status, out, err = padding(capsys, "attention", *arguments)
    assert (status, out) == (2, "")
    assert message in err


@pytest.mark.parametrize("text", ["b", "b=8", "b=8:1", "b=x:1", "3=1:8"])
def test_a_range_that_is_none_is_refused(capsys, text):
    with pytest.raises(SystemExit):
        padding(capsys, "attention", "--arg", "f32[b,s,8]", "--dim", text)
    assert "is no range of sizes, as batch=1:64" in capsys.readouterr().err


def test_the_page_is_written(capsys, tmp_path):
    padding(capsys, "attention", "--arg", "f32[b,s,8]", "-o", str(tmp_path / "report.html"))
    assert "Padded: 1 binary serves" in (tmp_path / "report.html").read_text(encoding="utf-8")
