"""Retold from Equinox's tracker and documentation, and Optax's."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from tests.corpus_recompiles.causes import cause
from tests.corpus_recompiles.models import on_device, rows, weights

_EQX, _OPTAX = "docs.kidger.site/equinox", "optax.readthedocs.io"


class _Kinematics(eqx.Module):
    trajectory: eqx.nn.Linear
    forward: Callable

    def __init__(self, forward, seed=0):
        self.trajectory = eqx.nn.Linear(4, 3, key=jax.random.key(seed))
        self.forward = forward

    def __call__(self, x):
        return self.forward(self.trajectory(x))


def _run():
    @eqx.filter_jit
    def step(model, x):
        return jax.vmap(model)(x)

    return step


@cause("static", "model.forward", source="patrick-kidger/equinox#686")
def a_module_that_jits_a_function_when_it_is_made(cured):
    step, kept = _run(), jax.jit(lambda v: v * 2)
    step(_Kinematics(kept if cured else jax.jit(lambda v: v * 2)), rows())
    other = _Kinematics(kept if cured else jax.jit(lambda v: v * 2), 1)
    yield
    step(other, rows())


@cause("static", "model.forward", source=f"{_EQX}/faq")
def a_module_with_a_lambda_of_its_own(cured):
    step = _run()
    kept = jax.nn.relu
    step(_Kinematics(kept if cured else lambda v: v * 2), rows())
    other = _Kinematics(kept if cured else lambda v: v * 2, 1)
    yield
    step(other, rows())


@cause("weak-type", "x", source="patrick-kidger/equinox#817")
def a_weak_array_through_filter_jit(cured):
    @eqx.filter_jit
    def double(x):
        return x * 2

    double(jnp.asarray(1.0, jnp.float32))
    weak = jnp.asarray(1.0, jnp.float32) if cured else jnp.array(1.0)
    yield
    double(weak)


@cause("static", "tol", source=f"{_EQX}/api/transformations")
def a_python_float_is_static_to_filter_jit(cured):
    @eqx.filter_jit
    def solve(x, tol):
        return x / tol

    solve(rows(), 1e-3)
    yield
    solve(rows(), 1e-3 if cured else 1e-4)


@cause("static", "config['steps']", source=f"{_EQX}/api/transformations")
def an_int_in_a_dictionary_through_filter_jit(cured):
    @eqx.filter_jit
    def run(x, config):
        for _ in range(config["steps"]):
            x = x * 2
        return x

    run(rows(), {"steps": 2})
    yield
    run(rows(), {"steps": 2 if cured else 3})


class _Head(eqx.Module):
    weight: jax.Array
    width: int = eqx.field(static=True)


@cause("structure", "model.width", source=f"{_EQX}/api/module/advanced_fields")
def a_static_field_of_a_module(cured):
    total = jax.jit(lambda model: model.weight.sum() * model.width)
    total(_Head(rows(), 2))
    yield
    total(_Head(rows(), 2 if cured else 3))


@cause("structure", "model.width", source=f"{_EQX}/api/module/advanced_fields")
def a_static_field_through_filter_jit(cured):
    total = eqx.filter_jit(lambda model: model.weight.sum() * model.width)
    total(_Head(on_device(rows()), 2))
    yield
    total(_Head(on_device(rows()), 2 if cured else 3))


@cause("structure", "model.use_bias", source=f"{_EQX}/examples/frozen_layer")
def a_linear_layer_without_its_bias(cured):
    step = _run()
    step(eqx.nn.Linear(4, 2, key=jax.random.key(0)), rows())
    other = eqx.nn.Linear(4, 2, use_bias=cured, key=jax.random.key(0))
    yield
    step(other, rows())


@cause("dtype", "model.weight", "model.bias", source=f"{_EQX}/tricks")
def a_module_whose_weights_were_cast(cured):
    step = _run()
    model = eqx.nn.Linear(4, 2, key=jax.random.key(0))
    step(model, rows())
    half = jax.tree.map(lambda a: a.astype(jnp.bfloat16) if eqx.is_array(a) else a, model)
    yield
    step(model if cured else half, rows())


@cause("structure", "model.weight", source=f"{_EQX}/api/manipulation")
def a_partition_with_another_filter(cured):
    total = jax.jit(lambda model: sum(leaf.sum() for leaf in jax.tree.leaves(model)))
    model = eqx.nn.Linear(4, 2, key=jax.random.key(0))
    arrays = eqx.filter(model, eqx.is_array)
    frozen = eqx.tree_at(lambda m: m.weight, arrays, None)
    total(arrays)
    yield
    total(arrays if cured else frozen)


@cause("function", source="patrick-kidger/equinox#307")
def a_filter_jit_inside_of_the_training_loop(cured):
    model = eqx.nn.Linear(4, 2, key=jax.random.key(0))

    def make():
        return eqx.filter_jit(lambda m, x: jax.vmap(m)(x))

    once = make()
    for turn in range(3):
        if turn == 2:
            yield
        (once if cured else make())(model, rows())


@cause("function", source=f"{_EQX}/api/transformations")
def a_filter_grad_of_a_loss_written_in_the_loop(cured):
    model = eqx.nn.Linear(4, 2, key=jax.random.key(0))

    def make():
        return eqx.filter_jit(eqx.filter_grad(lambda m, x: jax.vmap(m)(x).sum()))

    once = make()
    for turn in range(3):
        if turn == 2:
            yield
        (once if cured else make())(model, rows())


@cause("shape", "x.shape[0]", source="patrick-kidger/equinox#151")
def a_filter_jit_on_another_batch(cured):
    step = _run()
    model = eqx.nn.Linear(4, 2, key=jax.random.key(0))
    step(model, rows(8))
    yield
    step(model, rows(8 if cured else 7))


@cause("shape", "model.layers[0].weight.shape[0]", "model.layers[0].bias.shape[0]", "model.layers[1].weight.shape[1]",
       source=f"{_EQX}/examples/mnist")  # fmt: skip
def a_wider_perceptron_without_static_fields(cured):
    total = jax.jit(lambda model: sum(leaf.sum() for leaf in jax.tree.leaves(model)))

    class Layer(eqx.Module):
        weight: np.ndarray
        bias: np.ndarray

    class Net(eqx.Module):
        layers: list

    def net(width):
        return Net([Layer(rows(width, 4), rows(width, 1)[:, 0]), Layer(rows(2, width), rows(2, 1)[:, 0])])

    total(net(8))
    yield
    total(net(8 if cured else 16))


@cause("structure", "model.inference", "model.layers[1].inference", source=f"{_EQX}/api/nn/inference")
def inference_mode_through_plain_jit(cured):
    model = eqx.nn.Dropout(0.5)

    class Wrapped(eqx.Module):
        w: np.ndarray
        inference: bool = eqx.field(static=True)

    total = jax.jit(lambda model: model.w.sum())
    assert model.p == 0.5
    total(Wrapped(rows(), False))
    yield
    total(Wrapped(rows(), not cured))


@cause("rank", "x.ndim", source=f"{_EQX}/faq")
def a_batch_given_to_a_filtered_function_of_one_example(cured):
    @eqx.filter_jit
    def norm(x):
        return (x**2).sum()

    norm(on_device(rows()))
    one = on_device(rows() if cured else rows()[0])
    yield
    norm(one)


@cause("structure", "state", "args[1]", source=f"{_EQX}/api/nn/stateful")
def a_filtered_function_with_one_argument_less(cured):
    @eqx.filter_jit
    def step(x, state=None):
        return x if state is None else x + state

    x = on_device(rows())
    step(x, x)
    yield
    step(x, x) if cured else step(x)


# Optax


@cause("static", "optimizer", source="google-deepmind/optax#353")
def an_optimizer_as_a_static_argument(cured):
    step = jax.jit(lambda optimizer, state: jax.tree.map(lambda s: s * 1, state), static_argnames="optimizer")
    kept = optax.adam(1e-2)
    params = {"foo": np.zeros((3, 3), np.float32)}
    state = kept.init(params)
    step(kept, state)
    other = kept if cured else optax.adam(1e-2)
    yield
    step(other, state)


@cause("function", source="google-deepmind/optax#577")
def an_update_of_an_optimizer_with_another_rate(cured):
    params = weights(4, 2)
    kept = optax.sgd(0.1)
    state = on_device(kept.init(params))
    once = jax.jit(kept.update)
    for turn in range(3):
        if turn == 2:
            yield
        (once if cured else jax.jit(optax.sgd(0.1 / (turn + 1)).update))(params, state)


@cause("weak-type", "state.hyperparams['learning_rate']", source="google-deepmind/optax#577")
def an_injected_rate_set_to_a_python_float(cured):
    tx = optax.inject_hyperparams(optax.sgd)(learning_rate=0.1)
    params = weights(4, 2)
    update = jax.jit(lambda grads, state: tx.update(grads, state))
    state = on_device(tx.init(params))
    _, state = update(params, state)
    rate = 0.05
    if cured:
        rate = jnp.asarray(rate, jnp.float32)
    state.hyperparams["learning_rate"] = rate
    yield
    update(params, state)


@cause("structure", "opt_state", "opt_state[0]", source=f"{_OPTAX}/api/combining_optimizers")
def a_chain_with_clipping_added(cured):
    params = weights(4, 2)
    plain, clipped = optax.adam(0.1), optax.chain(optax.clip(1.0), optax.adam(0.1))
    norm = jax.jit(lambda opt_state: optax.tree.norm(jax.tree.leaves(opt_state)))
    norm(plain.init(params))
    other = (plain if cured else clipped).init(params)
    yield
    norm(other)


@cause("structure", "opt_state", source=f"{_OPTAX}/api/optimizer_wrappers")
def gradients_accumulated_from_now_on(cured):
    params = weights(4, 2)
    plain, many = optax.sgd(0.1, momentum=0.9), optax.MultiSteps(optax.sgd(0.1, momentum=0.9), 2)
    norm = jax.jit(lambda opt_state: optax.tree.norm(jax.tree.leaves(opt_state)))
    norm(plain.init(params))
    other = (plain if cured else many).init(params)
    yield
    norm(other)


@cause("dtype", "opt_state[0].mu['layer0']['b']", "opt_state[0].mu['layer0']['w']", source="google-deepmind/optax#577")
def moments_in_half_precision(cured):
    params = weights(4, 2)
    norm = jax.jit(lambda opt_state: optax.tree.norm(jax.tree.leaves(opt_state)))
    norm(optax.adam(0.1).init(params))
    other = optax.adam(0.1, mu_dtype=None if cured else jnp.bfloat16).init(params)
    yield
    norm(other)


@cause("structure", "params['layer0']['b']", source=f"{_OPTAX}/api/transformations#optax.masked")
def a_mask_that_leaves_the_biases_out(cured):
    norm = jax.jit(lambda params: optax.tree.norm(params))
    params = weights(4, 2)
    norm(params)
    masked = jax.tree.map(lambda leaf: leaf, params)
    if not cured:
        masked["layer0"]["b"] = optax.MaskedNode()
    yield
    norm(masked)


@cause("weak-type", "opt_state[0].count", source=f"{_OPTAX}/api/optimizer_schedules")
def a_count_restored_as_a_python_int(cured):
    params = weights(4, 2)
    adam, rest = on_device(optax.adam(0.1).init(params))
    norm = jax.jit(lambda opt_state: optax.tree.norm(jax.tree.leaves(opt_state)))
    norm((adam, rest))
    other = adam if cured else adam._replace(count=7)
    yield
    norm((other, rest))


@cause("static", "schedule", source=f"{_OPTAX}/api/optimizer_schedules")
def a_schedule_as_a_static_argument(cured):
    rate = jax.jit(lambda step, schedule: schedule(step), static_argnames="schedule")
    kept = optax.cosine_decay_schedule(0.1, 100)
    rate(np.int32(0), schedule=kept)
    other = kept if cured else optax.cosine_decay_schedule(0.1, 200)
    yield
    rate(np.int32(1), schedule=other)


@cause("function", source=f"{_OPTAX}/getting_started")
def a_step_defined_for_each_optimizer_of_a_sweep(cured):
    params = weights(4, 2)

    def make(tx):
        @jax.jit
        def step(params, opt_state):
            updates, opt_state = tx.update(params, opt_state)
            return optax.apply_updates(params, updates), opt_state

        return step

    txs = [optax.sgd(0.1), optax.sgd(0.2), optax.sgd(0.3)]
    once = make(txs[0])
    state = txs[0].init(params)
    for turn in range(3):
        if turn == 2:
            yield
        (once if cured else make(txs[turn]))(params, state)


# A whole step: 24 layers with Adam, more than 20,000 characters of structure


def _transformer(layers=24, extra=()):
    names = ("ln1", "qkv", "out", "ln2", "up", "down")
    return {
        f"block_{i:02}": {n: {"kernel": rows(2, 3), "bias": rows(1, 3)[0]} for n in (*names, *extra)}
        for i in range(layers)
    }


def _adam_step():
    tx = optax.adam(1e-3)

    @jax.jit
    def step(params, opt_state, batch):
        def loss(params):
            return sum((leaf**2).sum() for leaf in jax.tree.leaves(params)) * batch["x"].mean()

        updates, opt_state = tx.update(jax.grad(loss)(params), opt_state, params)
        return optax.apply_updates(params, updates), opt_state

    return tx, step


@cause("dtype", "opt_state[0].nu['block_23']['up']['kernel']", source=f"{_OPTAX}/getting_started")
def one_moment_of_the_last_of_24_layers_in_another_type(cured):
    tx, step = _adam_step()
    params = _transformer()
    state = jax.tree.map(np.asarray, tx.init(params))
    step(params, state, {"x": rows()})
    if not cured:
        state[0].nu["block_23"]["up"]["kernel"] = state[0].nu["block_23"]["up"]["kernel"].astype(np.float16)
    yield
    step(params, state, {"x": rows()})


@cause("structure", "params['block_23']['up']['bias']", source=f"{_OPTAX}/getting_started")
def one_bias_of_the_last_of_24_layers_left_out(cured):
    norm = jax.jit(lambda params, opt_state: optax.tree.norm(jax.tree.leaves((params, opt_state))))
    tx, _ = _adam_step()
    params = _transformer()
    state = jax.tree.map(np.asarray, tx.init(params))
    norm(params, state)
    if not cured:
        del params["block_23"]["up"]["bias"]
    yield
    norm(params, state)


@cause("shape", "batch['x'].shape[0]", source=f"{_OPTAX}/getting_started")
def a_last_batch_for_24_layers_with_adam(cured):
    tx, step = _adam_step()
    params = _transformer()
    state = jax.tree.map(np.asarray, tx.init(params))
    step(params, state, {"x": rows()})
    yield
    step(params, state, {"x": rows(8 if cured else 5)})


@cause("structure", "params['block_24']", "params", source=f"{_OPTAX}/getting_started")
def one_layer_more_than_24(cured):
    norm = jax.jit(lambda params: optax.tree.norm(params))
    norm(_transformer())
    yield
    norm(_transformer(24 if cured else 25))
