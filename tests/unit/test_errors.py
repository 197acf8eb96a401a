"""Errors of public calls: each is an ExplorerError, and reads as a sentence."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import pytest

import explorer as ex
from docs.pages.docstrings import parse
from explorer import errors


@pytest.fixture(scope="module")
def capture():
    return ex.explore(lambda x: jnp.tanh(x) * 2, jnp.ones(8))


@pytest.mark.parametrize(
    ("call", "kind", "base"),
    [
        (lambda cap: cap.stage("llvm"), ex.errors.UnknownNameError, KeyError),
        (lambda cap: cap.coverage("llvm"), ex.errors.UnknownNameError, KeyError),
        (lambda cap: cap.nodes_at(1, stage="llvm"), ex.errors.UnknownNameError, KeyError),
        (lambda cap: cap.hlo.graph["nobody"], ex.errors.UnknownNameError, KeyError),
        (lambda cap: cap.passes["nobody"], ex.errors.UnknownNameError, KeyError),
        (lambda cap: cap.passes.history("nobody"), ex.errors.UnknownNameError, KeyError),
        (lambda cap: ex.diff(cap, cap).stage("llvm"), ex.errors.UnknownNameError, KeyError),
        (lambda cap: cap.live_memory.at(10_000), ex.errors.OutOfRangeError, IndexError),
        (lambda cap: cap.fate(next(iter(cap.hlo.graph.nodes))), ex.errors.ForeignNodeError, ValueError),
        (lambda cap: ex.diff(cap, 3), ex.errors.ArgumentsError, TypeError),
        (lambda cap: cap.hlo.graph.where("flops>"), ex.errors.QueryError, ValueError),
    ],
)
def test_errors_of_public_calls_are_explorers_and_of_the_builtin_kind_too(capture, call, kind, base):
    with pytest.raises(kind) as caught:
        call(capture)
    assert isinstance(caught.value, ex.ExplorerError)
    assert isinstance(caught.value, base)
    assert not str(caught.value).startswith(("'", '"'))


def test_a_name_that_is_not_there_is_told_as_a_sentence_not_as_a_key(capture):
    with pytest.raises(KeyError) as caught:
        capture.stage("llvm")
    assert str(caught.value) == "this capture has no stage 'llvm'; it has: jaxpr, stablehlo, hlo"


def test_errors_is_the_ground_floor_and_imports_nothing_else_of_explorer():
    nodes = ast.walk(ast.parse(Path(errors.__file__).read_text()))
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {getattr(node, "module", None) or node.names[0].name for node in imports}
    assert not {module for module in modules if "explorer" in module}


@pytest.mark.parametrize("name", errors.__all__)
def test_each_error_says_what_to_do_and_has_an_example(name):
    docstring = parse(getattr(errors, name).__doc__)
    assert docstring.sections["What to do"]
    assert name in docstring.examples[0] or issubclass(getattr(errors, name), UserWarning)


@pytest.mark.slow
def test_the_example_of_a_device_runs_where_there_are_two():
    example = parse(ex.errors.InputDeviceError.__doc__).examples[0]
    lines = [line.removeprefix(">>> ") for line in example.splitlines() if line.startswith(">>> ")]
    script = "\n".join(lines)
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    ended = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert "InputDeviceError: input `x`" in ended.stderr
