"""Training steps of flax, equinox and optax: the program that is shown is measured, and state stays as it is."""

import gc
import weakref
from functools import partial

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from flax.training.train_state import TrainState

import explorer as ex

BRIEF = 1e-3  # seconds of measuring: what is tested here is not time
KEY = jax.random.key(0)
X, Y = jnp.ones((4, 6)), jnp.ones((4, 3))
ADAM = optax.adam(1e-3)


def error(predicted):
    return ((predicted - Y) ** 2).mean()


class Net(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(6, 5, rngs=rngs)
        self.norm = nnx.BatchNorm(5, rngs=rngs)
        self.drop = nnx.Dropout(0.2, rngs=rngs)
        self.last = nnx.Linear(5, 3, rngs=rngs)

    def __call__(self, x):
        return self.last(self.drop(jax.nn.relu(self.norm(self.first(x)))))


@nnx.jit
def nnx_step(model, optimizer, x):
    loss, grads = nnx.value_and_grad(lambda model: error(model(x)))(model)
    optimizer.update(model, grads)
    return loss


@nnx.jit(donate_argnames=("model", "optimizer"), static_argnames="scale")
def nnx_donating_step(model, optimizer, metrics, x, scale):
    loss, grads = nnx.value_and_grad(lambda model: scale * error(model(x)))(model)
    optimizer.update(model, grads)
    metrics.update(loss=loss)


def nnx_arguments():
    model = Net(nnx.Rngs(0))
    return model, nnx.Optimizer(model, ADAM, wrt=nnx.Param)


@eqx.filter_jit
def equinox_step(model, state, x):
    loss, grads = eqx.filter_value_and_grad(lambda model: error(jax.vmap(model)(x)))(model)
    updates, state = ADAM.update(grads, state, eqx.filter(model, eqx.is_array))
    return loss, eqx.apply_updates(model, updates), state


def equinox_arguments():
    model = eqx.nn.MLP(6, 3, 5, 1, key=KEY)
    return model, ADAM.init(eqx.filter(model, eqx.is_array)), X


@partial(jax.jit, donate_argnums=(0, 1), static_argnames="steps")
def optax_step(weights, state, x, steps):
    def one(carry, _):
        weights, state = carry
        loss, grads = jax.value_and_grad(lambda weights: error(x @ weights))(weights)
        updates, state = ADAM.update(grads, state, weights)
        return (optax.apply_updates(weights, updates), state), loss

    return jax.lax.scan(one, (weights, state), None, length=steps)


@jax.jit
def linen_step(state, x):
    loss, grads = jax.value_and_grad(lambda params: error(state.apply_fn(params, x)))(state.params)
    return state.apply_gradients(grads=grads), loss


def linen_state():
    module = nn.Dense(3)
    return TrainState.create(apply_fn=module.apply, params=module.init(KEY, X), tx=ADAM)


def step_call(name):
    weights = jnp.ones((6, 3))
    return {
        "nnx": lambda: ex.Call(nnx_step, *nnx_arguments(), X),
        "nnx donating": lambda: ex.Call(
            nnx_donating_step, *nnx_arguments(), nnx.MultiMetric(loss=nnx.metrics.Average("loss")), X, scale=2
        ),
        "equinox": lambda: ex.Call(equinox_step, *equinox_arguments()),
        "optax": lambda: ex.Call(optax_step, weights, ADAM.init(weights), X, steps=3),
        "linen": lambda: ex.Call(linen_step, linen_state(), X),
    }[name]()


STEPS = ["nnx", "nnx donating", "equinox", "optax", "linen"]


def instructions(capture):
    return sorted(node.op for node in capture.hlo.graph.nodes)


@pytest.mark.slow
@pytest.mark.parametrize("name", STEPS)
def test_the_baseline_of_a_what_if_is_the_program_that_is_shown(name):
    call = step_call(name)
    capture = ex.explore(call)
    tried = ex.what_if(call, precision="highest", seconds=BRIEF)
    assert [row.error for row in tried] == ["", ""]
    again = capture.what_if(precision="highest", options={"xla_cpu_enable_fast_math": True}, time=False)
    for plain in (tried.plain, again.plain):
        assert instructions(plain.capture) == instructions(capture)
    assert "HIGHEST" in again.variants[0].capture.stablehlo.text
    # Nothing that is computed is lost: a step without its updates has half the instructions.
    assert all(row.kernels >= 0.9 * tried.plain.kernels for row in [*tried, *again])
    assert all(row.difference.relative < 1e-3 for row in tried.variants)


@pytest.mark.slow
def test_state_that_a_step_updates_is_an_output_that_donated_memory_is_reused_for():
    model, optimizer = nnx_arguments()
    row = ex.what_if(nnx_step, model, optimizer, X, donate=["model", True], time=False).variants
    weights = sum(leaf.nbytes for leaf in jax.tree.leaves(nnx.state(model, nnx.Param)))
    assert row[0].memory["alias"] >= weights
    assert row[1].name == "donate model, optimizer"
    assert row[1].memory["alias"] >= 3 * weights  # Adam's two moments are as large


def test_the_dtype_of_a_module_s_state_is_cast_in_a_copy_of_it():
    model = nnx.Linear(6, 5, rngs=nnx.Rngs(0))
    row = ex.what_if(nnx.jit(lambda model, x: model(x)), model, X, dtype="bfloat16", seconds=BRIEF).variants[0]
    assert not row.error
    assert "bf16[6,5]" in row.capture.jaxpr.text
    assert model.kernel.dtype == jnp.float32


def values(arguments):
    leaves = jax.tree.leaves(nnx.state(arguments))
    is_key = [jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) for leaf in leaves]
    return [np.asarray(jax.random.key_data(leaf) if key else leaf) for leaf, key in zip(leaves, is_key, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nnx", "nnx donating"])
@pytest.mark.parametrize(
    "measure",
    [
        partial(ex.time, seconds=BRIEF),
        partial(ex.profile, runs=2),
        partial(ex.what_if, precision="highest", seconds=BRIEF),
        lambda call: ex.compare({"a": call, "b": call}, seconds=BRIEF),
        lambda call: ex.sweep(call, over={"options": [{"xla_cpu_enable_fast_math": True}]}, seconds=BRIEF),
    ],
    ids=["time", "profile", "what_if", "compare", "sweep"],
)
def test_measuring_a_step_trains_nothing_of_the_user_s(name, measure):
    call = step_call(name)
    before = values(call.args)
    result = measure(call)
    np.testing.assert_equal(values(call.args), before)
    if isinstance(result, ex.Sweep):
        assert not result.rows[0].error


def test_modules_that_two_arguments_share_are_shared_in_the_copies_too():
    @nnx.jit
    def both(pair, x):
        pair[0].kernel[...] += 1.0
        return pair[1](x)

    layer = nnx.Linear(6, 6, rngs=nnx.Rngs(0))
    x = jnp.ones((2, 6))
    expected = x @ (layer.kernel[...] + 1.0) + layer.bias[...]
    row = ex.what_if(both, (layer, layer), x, precision="highest", seconds=BRIEF).plain
    assert not row.error
    assert instructions(row.capture) == instructions(ex.explore(both, (layer, layer), x))
    assert ex.time(both, (layer, layer), x, seconds=BRIEF, eager=False).steady.median > 0
    np.testing.assert_allclose(both((layer, layer), x), expected, rtol=1e-5)


def test_a_derivative_of_what_updates_state_is_refused():
    with pytest.raises(ex.errors.OptionError, match="inside of the function"):
        ex.what_if(nnx_step, *nnx_arguments(), X, grad=True, remat=True)


def test_a_derivative_of_a_filtered_function_is_taken():
    loss = eqx.filter_jit(lambda w, x: jnp.sum(jnp.sin(x @ w) ** 2))
    found = ex.what_if(loss, jnp.ones((3, 3)), jnp.ones((3, 3)), grad=True, remat=True, time=False)
    assert not found.variants[0].error


def test_a_jit_that_says_where_its_arguments_are_placed_is_not_changed_silently():
    place = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    step = nnx.jit(lambda model, x: model(x), in_shardings=(place, place))
    found = ex.what_if(step, nnx.Linear(6, 3, rngs=nnx.Rngs(0)), X, precision="highest", time=False)
    assert found.plain.kernels
    assert "sets where its arguments are placed" in found.variants[0].error


def test_a_function_that_gives_another_program_by_now_has_no_baseline():
    layers = [1]

    @jax.jit
    def deep(x):
        for _ in layers:
            x = jnp.sin(x @ x)
        return x

    capture = ex.explore(deep, jnp.ones((8, 8)))
    layers.append(2)
    deep.clear_cache()
    with pytest.raises(ex.errors.ChangedFunctionError, match=r"explore it again"):
        capture.what_if(precision="highest", time=False)


def test_a_capture_keeps_no_array_of_its_arguments():
    model = Net(nnx.Rngs(0))
    x = X + 1
    alive = [weakref.ref(x), weakref.ref(model.first.kernel[...])]
    capture = ex.explore(nnx.jit(lambda model, x: model(x)), model, x)
    del model, x
    gc.collect()
    assert [one() for one in alive] == [None, None]
    assert capture.signature


@pytest.mark.parametrize("is_called_before", [False, True])
def test_a_profile_of_a_step_has_all_stages_and_shows_no_numbers(is_called_before):
    call = step_call("nnx")
    if is_called_before:
        call.function(*call.args)
    found = ex.profile(call, runs=2)
    assert [stage.name for stage in found.capture.stages] == ["jaxpr", "stablehlo", "hlo"]
    assert "~eq" not in found.capture.hlo.text
    assert {op.name for op in found.ops} <= {node.name for node in found.capture.hlo.graph.nodes}
    assert found.equations
