"""What was compiled is freed when it is dropped, with the function and all that it closes over: nobody waits for gc."""

import gc
import weakref
from contextlib import contextmanager

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex

X = jnp.arange(4, dtype=jnp.float32)
RANGE = ex.InputInfo(((1, 4, 8),), "float32")


class Weights:
    """Something that a function closes over, with arrays that are constants of its program."""

    def __init__(self):
        self.array = jnp.ones((3, 4))
        self.of_numpy = np.ones((3, 1), np.float32)

    def references(self):
        return [weakref.ref(self), weakref.ref(self.array), weakref.ref(self.of_numpy)]


def closing_over(weights):
    def function(x):
        return x * 2 + (weights.array * weights.of_numpy).sum()

    return function


def with_state(function):
    state = {"total": jnp.zeros(4)}

    @ex.jit(inputs=state, outputs=state)
    def advance(x):
        state["total"] = state["total"] + function(x)
        return state["total"]

    return advance


MADE = {
    "jax.jit": jax.jit,
    "one shape": lambda f: ex.compile(f, args=[ex.InputInfo((4,), "float32")]),
    "a range": lambda f: ex.compile(f, args=[RANGE]),
    "one shape, a constant in its tree": lambda f: ex.compile(lambda x, n: f(x), args=[RANGE, 3]),
    "jit": ex.jit,
    "jit with state": with_state,
}
USED = {
    "called": lambda compiled: compiled(X),
    "batched": lambda compiled: jax.vmap(compiled)(X[None]),
    "differentiated": lambda compiled: jax.grad(lambda x: compiled(x).sum())(X),
    "inside jit": lambda compiled: jax.jit(lambda x: compiled(x) + 1)(X),
}


@contextmanager
def without_collector():
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("used", USED)
@pytest.mark.parametrize("made", MADE)
def test_a_closure_dies_with_what_was_compiled_of_it(made, used):
    if made == "jit with state" and used != "called":
        pytest.skip("state isn't changed inside of another trace")
    with without_collector():
        weights = Weights()
        references = weights.references()
        compiled = MADE[made](closing_over(weights))
        USED[used](compiled)
        del weights, compiled
        assert [reference() is None for reference in references] == [True] * len(references)


def test_what_is_taken_out_of_an_executable_holds_it():
    call = MADE["a range"](lambda x: x + 1).__call__
    gc.collect()
    assert call(jnp.ones(3)).tolist() == [2, 2, 2]
    assert call(jnp.ones(5)).shape == (5,)


def test_saving_and_loading_hold_neither(tmp_path):
    with without_collector():
        weights = Weights()
        references = weights.references()
        compiled = MADE["a range"](closing_over(weights))
        compiled.save(tmp_path / "f")
        loaded = ex.Executable.load(tmp_path / "f")
        loaded(X)
        references += [weakref.ref(compiled), weakref.ref(loaded)]
        del weights, compiled, loaded
        assert [reference() is None for reference in references] == [True] * 5


def test_a_graph_knows_its_lines_when_its_capture_is_gone():
    def product(x):
        y = jnp.sin(x) * 2
        return y @ y

    line = product.__code__.co_firstlineno + 1
    capture = ex.explore(product, jnp.ones((8, 8)))
    graph, there = capture.hlo.graph, [node.name for node in capture.hlo.graph.where(f"line:{line}")]
    gone, alone = weakref.ref(capture), ex.explore(product, jnp.ones((8, 8))).hlo.graph
    with without_collector():
        del capture
        assert gone() is None
    assert there
    for each in (graph, alone):
        assert [node.name for node in each.where(f"line:{line}")] == there
