"""`python -m explorer lint module:function`."""

import json
import sys

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer as ex
from explorer.__main__ import main
from explorer.capture.command_target import annotated_arguments, parse_shape_spec

TEXT = """
import functools
import jax
import jax.numpy as jnp

print("imported")
WIDE = 8

def printing(x: "f32[8,4]", scale=2.0):
    print(x)
    return x * scale

def clean(x: jax.ShapeDtypeStruct((3,), jnp.float32), y: float):
    return x * y

def broken(x):
    return x * float(x.sum())

def failing(x: "f32[3]"):
    raise KeyError("mine")

def options(x, rules):
    return x + rules

class Model:
    def __call__(self, x):
        return x

model = Model()
number = 3
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    (tmp_path / "users_code.py").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield "users_code.py"
    sys.modules.pop("users_code", None)


def lint(capsys, *arguments):
    status = main(["lint", *arguments])
    told = capsys.readouterr()
    return status, told.out, told.err


def test_a_function_of_a_file_or_module_is_linted_with_arguments_from_its_annotations(file, capsys):
    for target in (f"{file}:printing", "users_code:printing"):
        status, out, err = lint(capsys, target)
        assert (status, "users_code.py:10:5: warning EX001 impure-print" in out) == (0, True)
        assert "float32[8,4]" in err  # what the function printed
        assert "float32[8,4]]" not in out.splitlines()[0]
    assert lint(capsys, f"{file}:clean")[:2] == (0, "clean: nothing found\n")


def test_the_exit_status_says_whether_something_as_grave_was_found(file, capsys):
    assert lint(capsys, f"{file}:printing", "--fail-on", "warning")[0] == 1
    assert lint(capsys, f"{file}:printing", "--fail-on", "error")[0] == 0
    assert lint(capsys, f"{file}:broken", "--arg", "f32[3]")[0] == 1
    assert lint(capsys, f"{file}:broken", "--arg", "f32[3]", "--fail-on", "never")[0] == 0
    assert lint(capsys, f"{file}:printing", "--fail-on", "warning", "--ignore", "EX001")[0] == 0
    assert lint(capsys, f"{file}:printing", "--fail-on", "note", "--rules", "EX012")[0] == 0


def test_a_trace_that_failed_for_another_reason_is_told_and_has_status_two(file, capsys):
    status, out, _ = lint(capsys, f"{file}:failing")
    assert (status, out) == (2, "failing: nothing found; its trace failed: KeyError: mine\n")
    run = json.loads(lint(capsys, f"{file}:failing", "--format", "sarif")[1])["runs"][0]
    assert run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"] == "KeyError: mine"


def test_json_and_sarif_are_all_that_is_printed(file, capsys):
    found = ex.Findings.from_json(lint(capsys, f"{file}:printing", "--format", "json")[1])
    assert [one.rule for one in found] == ["impure-print"]
    log = json.loads(lint(capsys, f"{file}:printing", "--format", "sarif")[1])
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "users_code.py"


def test_arguments_are_python_or_shapes_by_position_or_name(file, capsys):
    for arguments in (["jnp.ones(WIDE)"], ["x=f32[8]"], ["int8[2,2]", "scale=jnp.ones(2)"]):
        given = [part for one in arguments for part in ("--arg", one)]
        assert lint(capsys, f"{file}:printing", *given)[0] == 0
    assert lint(capsys, f"{file}:options", "--arg", "f32[3]", "--arg", "rules=f32[3]")[0] == 0
    assert lint(capsys, f"{file}:model", "--arg", "x=f32[3]")[0] == 0
    assert lint(capsys, f"{file}:model.__call__", "--arg", "x=f32[3]")[0] == 0


def test_rewrites_are_shown_as_diffs(file, capsys):
    out = lint(capsys, f"{file}:printing", "--fix")[1]
    assert "-    print(x)" in out
    assert '+    jax.debug.print("{}", x)' in out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere:f"], "nowhere can't be imported: ModuleNotFoundError"),
        (["nowhere.py:f"], "file 'nowhere.py' doesn't exist"),
        (["users_code.py"], "names no function"),
        (["users_code.py:missing"], "it has: printing, clean, broken, failing"),
        (["users_code.py:number"], "lint takes a function"),
        (["users_code.py:broken"], "the argument `x` of broken is missing(?s:.*)--arg 'x=f32"),
        (["users_code.py:broken", "--arg", "nonsense("], "can't be evaluated: SyntaxError"),
        (["users_code.py:clean", "--rules", "EX999"], "there is no rule 'EX999'"),
    ],
)
def test_what_cannot_be_looked_at_has_status_two_and_says_why(arguments, told, file, capsys):
    import re

    status, out, err = lint(capsys, *arguments)
    assert (status, out) == (2, "")
    assert re.search(told, err)


@given(
    st.lists(st.integers(0, 999), max_size=4), st.sampled_from(["f32", "float32", "bf16", "i8", "s32", "u4", "bool"])
)
def test_a_described_shape_is_read_as_it_is_written(shape, dtype):
    read = parse_shape_spec(f"{dtype}[{', '.join(map(str, shape))}]")
    assert read.shape == tuple(shape)
    named = {"f32": "float32", "bf16": "bfloat16", "i8": "int8", "s32": "int32", "u4": "uint4"}
    assert read.dtype == jnp.dtype(named.get(dtype, dtype))


def test_predicates_are_booleans_as_in_xla_s_own_text():
    assert parse_shape_spec("pred[2]").dtype == parse_shape_spec("PRED[2]").dtype == jnp.bool_


@given(st.text(max_size=20))
def test_other_texts_describe_nothing_or_an_array(text):
    assert parse_shape_spec(text) is None or isinstance(parse_shape_spec(text), jax.ShapeDtypeStruct)


def test_annotations_of_jaxtyping_and_input_infos_describe_arguments():
    jaxtyping = pytest.importorskip("jaxtyping")

    def f(
        x: jaxtyping.Float[jax.Array, "3 4"],  # noqa: F722
        y: ex.InputInfo((2,), "int32"),
        n: int,
        /,
        z: jaxtyping.Bool[jax.Array, "5"],
    ):
        return x

    given = dict(enumerate(annotated_arguments(f, 0, ())))
    assert [name for name, _ in given.values()] == [None, None, None, "z"]
    assert [getattr(value, "shape", value) for _, value in given.values()] == [(3, 4), (2,), 1, (5,)]
    assert [value.dtype for _, value in given.values() if hasattr(value, "dtype")] == ["float32", "int32", "bool"]
