"""Functions that are made anew."""

import linecache
from functools import partial

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp

from tests.corpus_recompiles.causes import cause
from tests.corpus_recompiles.models import batch, loss, on_device, predict, rows, weights


def _kept(make, cured):
    """What is called twice: made each time, or, cured, once."""
    once = make()
    return (lambda: once) if cured else make


@cause("function")
def a_lambda_in_a_loop(cured):
    made = _kept(lambda: jax.jit(lambda x: x * 2 + 1), cured)
    for turn in range(3):
        if turn == 2:
            yield
        made()(rows())


@cause("function")
def a_partial_in_a_loop(cured):
    made = _kept(lambda: jax.jit(partial(predict, weights(4, 2))), cured)
    for turn in range(3):
        if turn == 2:
            yield
        made()(rows())


@cause("function")
def a_gradient_in_a_loop(cured):
    made = _kept(lambda: jax.jit(jax.grad(loss)), cured)
    for turn in range(3):
        if turn == 2:
            yield
        made()(weights(4, 2), batch())


@cause("function")
def a_value_and_gradient_in_a_loop(cured):
    made = _kept(lambda: jax.jit(jax.value_and_grad(loss)), cured)
    for turn in range(3):
        if turn == 2:
            yield
        made()(weights(4, 2), batch())


@cause("function")
def a_batched_function_in_a_loop(cured):
    def norm(x):
        return (x**2).sum()

    made = _kept(lambda: jax.jit(jax.vmap(norm)), cured)
    for turn in range(3):
        if turn == 2:
            yield
        made()(rows())


@cause("function")
def a_rematerialised_function_in_a_loop(cured):
    made = _kept(lambda: jax.jit(jax.checkpoint(predict)), cured)
    for turn in range(3):
        if turn == 2:
            yield
        made()(weights(4, 2), rows())


@cause("function")
def a_hessian_in_a_loop(cured):
    def energy(x):
        return (x**3).sum()

    made = _kept(lambda: jax.jit(jax.hessian(energy)), cured)
    for turn in range(3):
        if turn == 2:
            yield
        made()(rows(1)[0])


class _Model:
    def __init__(self, scale):
        self.scale = scale

    def apply(self, x):
        return x * self.scale


@cause("function")
def a_bound_method_jitted_where_it_is_used(cured):
    model = _Model(2)
    made = _kept(lambda: jax.jit(model.apply), cured)
    for turn in range(3):
        if turn == 2:
            yield
        made()(rows())


@cause("function")
def a_method_of_a_new_object(cured):
    made = _kept(lambda: jax.jit(_Model(2).apply), cured)
    for turn in range(3):
        if turn == 2:
            yield
        made()(rows())


@cause("function")
def a_function_defined_where_it_is_used(cured):
    def evaluate():
        @jax.jit
        def accuracy(x):
            return (x > 0).mean()

        return accuracy

    made = _kept(evaluate, cured)
    for turn in range(3):
        if turn == 2:
            yield
        made()(rows())


@cause("function")
def a_factory_called_for_each_epoch(cured):
    def make_step(decay):
        def step(x):
            return x * decay

        return jax.jit(step)

    made = _kept(lambda: make_step(0.5), cured)
    for turn in range(3):
        if turn == 2:
            yield
        made()(rows())


def _cell(number, source):
    """What a notebook does with a cell: text that is compiled under a file's name of its own."""
    file = f"/tmp/ipykernel_4711/{number}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names = {"jax": jax, "jnp": jnp, "__name__": "__main__"}
    exec(compile(source, file, "exec"), names)
    return names["normalise"]


_CELL = "@jax.jit\ndef normalise(x):\n    return x / x.sum()\n"


@cause("function")
def a_cell_run_again(cured):
    normalise = _cell(1, _CELL)
    normalise(rows())
    yield
    (normalise if cured else _cell(1, _CELL))(rows())


@cause("function")
def a_cell_edited_and_run_again(cured):
    normalise = _cell(2, _CELL)
    normalise(rows())
    yield
    (normalise if cured else _cell(3, f"# a remark\n{_CELL}"))(rows())


@cause("function")
def a_callable_object_made_anew(cured):
    class Scaled:
        def __call__(self, x):
            return x * 3

    made = _kept(lambda: jax.jit(Scaled()), cured)
    for turn in range(3):
        if turn == 2:
            yield
        made()(rows())


@cause("function")
def a_flax_model_applied_through_a_new_jit(cured):
    model = nn.Dense(2)
    variables = on_device(model.init(jax.random.key(0), rows()))
    made = _kept(lambda: jax.jit(model.apply), cured)
    for turn in range(3):
        if turn == 2:
            yield
        made()(variables, rows())


@cause("function")
def an_equinox_model_closed_over_by_a_lambda(cured):
    model = eqx.nn.Linear(4, 2, key=jax.random.key(0))
    made = _kept(lambda: jax.jit(lambda x: jax.vmap(model)(x)), cured)
    for turn in range(3):
        if turn == 2:
            yield
        made()(rows())


@cause("function")
def a_new_function_for_each_size_too(cured):
    made = _kept(lambda: jax.jit(lambda x: x.sum()), cured)
    for turn in range(3):
        if turn == 2:
            yield
        made()(rows(8 if cured else 8 + turn))
