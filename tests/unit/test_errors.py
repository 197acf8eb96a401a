"""Errors of public calls: each is an ExplorerError, and reads as a sentence."""

import inspect

import jax.numpy as jnp
import pytest

import explorer as ex
from explorer import errors


@pytest.fixture(scope="module")
def capture():
    return ex.explore(lambda x: jnp.tanh(x) * 2, jnp.ones(8))


@pytest.mark.parametrize(
    ("call", "kind", "base"),
    [
        (lambda cap: cap.stage("llvm"), ex.UnknownNameError, KeyError),
        (lambda cap: cap.coverage("llvm"), ex.UnknownNameError, KeyError),
        (lambda cap: cap.nodes_at(1, stage="llvm"), ex.UnknownNameError, KeyError),
        (lambda cap: cap.hlo.graph["nobody"], ex.UnknownNameError, KeyError),
        (lambda cap: cap.passes["nobody"], ex.UnknownNameError, KeyError),
        (lambda cap: cap.passes.history("nobody"), ex.UnknownNameError, KeyError),
        (lambda cap: ex.diff(cap, cap).stage("llvm"), ex.UnknownNameError, KeyError),
        (lambda cap: cap.live_memory.at(10_000), ex.OutOfRangeError, IndexError),
        (lambda cap: cap.fate(next(iter(cap.hlo.graph.nodes))), ex.ForeignNodeError, ValueError),
        (lambda cap: ex.diff(cap, 3), ex.ArgumentsError, TypeError),
        (lambda cap: cap.hlo.graph.where("flops>"), ex.QueryError, ValueError),
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


def test_errors_is_the_ground_floor_and_imports_nothing_of_explorer():
    assert "explorer." not in "".join(line for line in inspect.getsource(errors).splitlines() if "import" in line)
