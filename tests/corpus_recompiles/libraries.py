"""Equinox, Flax and Optax, with jits of their own."""

import equinox as eqx
import flax.nnx as nnx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from tests.corpus_recompiles.causes import cause
from tests.corpus_recompiles.models import rows


def _mlp(depth=1, seed=0):
    return eqx.nn.MLP(4, 2, 8, depth, key=jax.random.key(seed))


@cause("static", "rate")
def a_python_float_through_filter_jit(cured):
    @eqx.filter_jit
    def step(model, x, rate):
        return jax.vmap(model)(x) * rate

    model = _mlp()
    rates = [jnp.asarray(rate) for rate in (0.1, 0.05)] if cured else [0.1, 0.05]
    step(model, rows(), rates[0])
    yield
    step(model, rows(), rates[1])


@cause("shape", "x.shape[0]", "y.shape[0]")
def a_last_batch_through_filter_jit(cured):
    @eqx.filter_jit
    def evaluate(model, x, y):
        return ((jax.vmap(model)(x) - y) ** 2).mean()

    model = _mlp()
    evaluate(model, rows(8), y=np.zeros((8, 2), np.float32))
    yield
    size = 8 if cured else 3
    evaluate(model, rows(size), y=np.zeros((size, 2), np.float32))


@cause("function")
def a_lambda_through_filter_jit(cured):
    model = _mlp()
    once = eqx.filter_jit(lambda x: jax.vmap(model)(x))
    for turn in range(3):
        if turn == 2:
            yield
        (once if cured else eqx.filter_jit(lambda x: jax.vmap(model)(x)))(rows())


@cause("structure", "model.depth", "model.layers")
def a_deeper_model_through_filter_jit(cured):
    @eqx.filter_jit
    def forward(model, x):
        return jax.vmap(model)(x)

    shallow, deep = _mlp(1), _mlp(2)
    forward(shallow, rows())
    yield
    forward(shallow if cured else deep, rows())


@cause("static", "model.layers[1].inference")
def dropout_switched_off_through_filter_jit(cured):
    @eqx.filter_jit
    def forward(model, x, key):
        return jax.vmap(lambda row: model(row, key=key))(x)

    model = eqx.nn.Sequential([eqx.nn.Linear(4, 2, key=jax.random.key(0)), eqx.nn.Dropout(0.5)])
    key = jax.random.key(1)
    forward(model, rows(), key)
    yield
    forward(model if cured else eqx.nn.inference_mode(model), rows(), key)


@cause("shape", "x.shape[0]")
def a_filtered_method_on_another_size(cured):
    class Scaled(eqx.Module):
        weight: jax.Array

        @eqx.filter_jit
        def __call__(self, x):
            return x * self.weight

    model = Scaled(jnp.ones(4))
    model(rows(8))
    yield
    model(rows(8 if cured else 6))


@cause("shape", "x.shape[0]")
def a_last_batch_through_nnx_jit(cured):
    model = nnx.Linear(4, 2, rngs=nnx.Rngs(0))

    @nnx.jit
    def forward(model, x):
        return model(x)

    forward(model, rows(8))
    yield
    forward(model, rows(8 if cured else 5))


@cause("structure", "model.training")
def an_nnx_module_switched_to_evaluation(cured):
    class Model(nnx.Module):
        def __init__(self):
            self.scale = nnx.Param(jnp.ones(4))
            self.training = True

        def __call__(self, x):
            return x * self.scale.value if self.training else x

    @nnx.jit
    def forward(model, x):
        return model(x)

    model = Model()
    forward(model, rows())
    yield
    model.training = cured
    forward(model, rows())


@cause("structure", "opt_state[0]")
def another_optimiser_halfway(cured):
    params = {"w": rows()}
    adam, sgd = optax.adam(0.1), optax.sgd(0.1, momentum=0.9)
    states = adam.init(params), sgd.init(params)

    @jax.jit
    def norm(params, opt_state):
        return optax.global_norm((params, opt_state))

    norm(params, states[0])
    yield
    norm(params, states[0 if cured else 1])


@cause("weak-type", "opt_state[0].count", "opt_state[0].mu['w']", "opt_state[0].nu['w']")
def moments_that_were_made_by_hand(cured):
    tx = optax.adam(0.1)
    params = {"w": np.float32(1)}

    @jax.jit
    def step(params, opt_state):
        updates, opt_state = tx.update(params, opt_state, params)
        return optax.apply_updates(params, updates), opt_state

    adam, rest = tx.init(params)
    started = adam if cured else adam._replace(mu={"w": 0.0})
    params, opt_state = step(params, (started, rest))
    yield
    step(params, opt_state)
