"""Structures of arguments."""

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import NamedTuple

import equinox as eqx
import flax
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from tests.corpus_recompiles.causes import cause
from tests.corpus_recompiles.models import batch, fresh, on_device, predict, rows, update, weights


@cause("structure", "batch['mask']")
def a_mask_in_some_batches(cured):
    step = jax.jit(fresh(update))
    params, mask = weights(4, 2), np.ones(8, np.float32)
    step(params, {**batch(), "mask": mask} if cured else batch())
    yield
    step(params, {**batch(), "mask": mask})


@cause("structure", "mask")
def none_or_an_array(cured):
    @jax.jit
    def attend(x, mask):
        return x.sum() if mask is None else (x * mask).sum()

    mask = np.ones((8, 1), np.float32)
    attend(rows(), mask if cured else None)
    yield
    attend(rows(), mask)


@cause("structure", "noise")
def an_optional_argument_now_given(cured):
    @jax.jit
    def forward(x, noise=None):
        return x if noise is None else x + noise

    noise = np.ones((8, 1), np.float32)
    forward(rows(), noise=noise) if cured else forward(rows())
    yield
    forward(rows(), noise=noise)


@cause("structure", "scale")
def by_position_and_by_name(cured):
    @jax.jit
    def scaled(x, scale):
        return x * scale

    scaled(rows(), np.float32(2))
    yield
    scaled(rows(), np.float32(2)) if cured else scaled(rows(), scale=np.float32(2))


@cause("structure", "layers")
def a_list_of_layers_that_grows(cured):
    @jax.jit
    def forward(layers, x):
        for w in layers:
            x = x @ w
        return x

    forward([rows(4)] * 2, rows())
    yield
    forward([rows(4)] * (2 if cured else 3), rows())


@cause("structure", "state")
def a_tuple_that_came_back_as_a_list(cured):
    @jax.jit
    def step(state, x):
        return [s + x.sum() for s in state]

    state = (np.float32(0), np.float32(1))
    after = step(state, rows())
    yield
    step(tuple(after) if cured else after, rows())


class _TrainState(NamedTuple):
    params: np.ndarray
    momentum: np.ndarray


@cause("structure", "state")
def a_named_tuple_replaced_by_a_tuple(cured):
    @jax.jit
    def step(state):
        return state[0] - state[1], state[1]

    state = _TrainState(rows(), rows())
    after = step(state)
    yield
    step(_TrainState(*after) if cured else after)


@cause("structure", "features")
def an_ordered_dict_in_another_order(cured):
    @jax.jit
    def total(features):
        return sum(value.sum() for value in features.values())

    total(OrderedDict(age=np.ones(3, np.float32), height=np.ones(3, np.float32)))
    yield
    names = ("age", "height") if cured else ("height", "age")
    total(OrderedDict((name, np.ones(3, np.float32)) for name in names))


@cause("structure", "metrics['accuracy']")
def metrics_that_grow_after_the_first_step(cured):
    @jax.jit
    def averaged(metrics):
        return {name: value.mean() for name, value in metrics.items()}

    loss = {"loss": np.ones(4, np.float32)}
    both = {**loss, "accuracy": np.ones(4, np.float32)}
    averaged(both if cured else loss)
    yield
    averaged(both)


@cause("structure", "params['layer1']", "params['layer1']['w']", "params['layer1']['b']")
def a_model_with_one_layer_more(cured):
    apply = jax.jit(fresh(predict))
    apply(weights(4, 4), rows())
    yield
    apply(weights(4, 4) if cured else weights(4, 4, 4), rows())


def _registered():
    @dataclass
    class Simulation:
        position: np.ndarray
        steps: int

    return jax.tree_util.register_dataclass(Simulation, data_fields=["position"], meta_fields=["steps"])


@cause("structure", "simulation.steps")
def a_counter_kept_as_metadata_of_a_dataclass(cured):
    Simulation = _registered()

    @jax.jit
    def advance(simulation):
        return simulation.position * 2

    advance(Simulation(rows(), 0))
    yield
    advance(Simulation(rows(), 0 if cured else 1))


class _Regulariser(eqx.Module):
    weight: jax.Array
    inference: bool = eqx.field(static=True)

    def __call__(self, x):
        return x if self.inference else x * self.weight


@cause("structure", "model.inference")
def an_equinox_module_switched_to_inference(cured):
    @jax.jit
    def forward(model, x):
        return model(x)

    model = _Regulariser(jnp.ones(4), False)
    forward(model, rows())
    yield
    forward(model if cured else replace(model, inference=True), rows())


@cause("structure", "model.activation")
def an_equinox_module_with_a_new_lambda(cured):
    class Block(eqx.Module):
        weight: jax.Array
        activation: object = eqx.field(static=True)

    @jax.jit
    def forward(model, x):
        return model.activation(x @ model.weight)

    weight = on_device(rows(4))
    once = jnp.tanh

    def block():
        return Block(weight, once if cured else lambda x: jnp.tanh(x))

    forward(block(), rows())
    yield
    forward(block(), rows())


@cause("structure", "variables", "variables['params']")
def flax_parameters_frozen_and_not(cured):
    model = nn.Dense(2)
    variables = on_device(model.init(jax.random.key(0), rows()))

    @jax.jit
    def apply(variables, x):
        return model.apply(variables, x)

    apply(variables, rows())
    yield
    apply(variables if cured else flax.core.freeze(variables), rows())


@cause("structure", "variables['batch_stats']")
def flax_batch_statistics_left_out(cured):
    @jax.jit
    def scaled(variables, x):
        stats = variables.get("batch_stats", {"mean": 0.0})
        return x * variables["params"]["scale"] - stats["mean"]

    params, stats = {"scale": np.float32(2)}, {"mean": np.float32(1)}
    scaled({"params": params, "batch_stats": stats}, rows())
    yield
    scaled({"params": params, "batch_stats": stats} if cured else {"params": params}, rows())


@cause("structure", "xs[2]")
def one_positional_argument_more(cured):
    @jax.jit
    def total(*xs):
        return sum(x.sum() for x in xs)

    total(rows(), rows())
    yield
    total(*([rows()] * (2 if cured else 3)))


@cause("structure", "layers[2]")
def layers_by_number(cured):
    @jax.jit
    def forward(layers, x):
        for number in sorted(layers):
            x = x @ layers[number]
        return x

    forward({number: rows(4) for number in range(2)}, rows())
    yield
    forward({number: rows(4) for number in range(2 if cured else 3)}, rows())


@cause("structure", "carry")
def an_array_that_became_a_pair(cured):
    @jax.jit
    def step(carry):
        first = carry[0] if isinstance(carry, tuple) else carry
        return first + 1

    step(rows())
    yield
    step(rows() if cured else (rows(), rows()))
