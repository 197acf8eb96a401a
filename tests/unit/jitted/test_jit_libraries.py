"""jit() with the state of libraries: equinox modules, flax nnx and struct, optax."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorer.jitted import StateError, jit

pytestmark = pytest.mark.slow

eqx = pytest.importorskip("equinox")
nnx = pytest.importorskip("flax.nnx")
struct = pytest.importorskip("flax.struct")
optax = pytest.importorskip("optax")

X = jnp.asarray(np.random.RandomState(0).uniform(size=(4, 10)), "float32")
Y = jnp.array([0.0, 1.0, 0.0, 1.0])


class Linear(eqx.Module):
    weight: jax.Array
    bias: jax.Array
    name: str = eqx.field(static=True)

    def __call__(self, x):
        return x @ self.weight + self.bias


def loss_of(model, x, y):
    return optax.sigmoid_binary_cross_entropy(model(x)[:, 0], y).mean()


def test_an_equinox_training_step_with_optax_equals_the_one_that_passes_state_by_hand():
    optimizer = optax.sgd(0.1, momentum=0.8)
    model = Linear(jnp.zeros((10, 1)), jnp.zeros(1), "linear")
    state = {"model": model, "optimizer": optimizer.init(model)}

    @jax.jit
    def by_hand(model, moments, x, y):
        loss, gradient = jax.value_and_grad(loss_of)(model, x, y)
        updates, moments = optimizer.update(gradient, moments)
        return loss, optax.apply_updates(model, updates), moments

    @jit(inputs=state, outputs=state)
    def step(x, y):
        loss, gradient = jax.value_and_grad(loss_of)(state["model"], x, y)
        updates, state["optimizer"] = optimizer.update(gradient, state["optimizer"])
        state["model"] = optax.apply_updates(state["model"], updates)
        return loss

    plain, moments, losses = model, optimizer.init(model), []
    for _ in range(5):
        loss, plain, moments = by_hand(plain, moments, X, Y)
        losses.append((float(loss), float(step(X, Y))))
    np.testing.assert_allclose(*zip(*losses, strict=True), rtol=1e-5)
    assert losses[-1][1] < losses[0][1]
    assert len(step.specializations) == 1
    assert state["model"] is not model
    assert jax.tree.structure(state) == jax.tree.structure({"model": plain, "optimizer": moments})
    np.testing.assert_allclose(state["model"].weight, plain.weight, rtol=1e-5)


def test_an_equinox_module_as_inputs_is_read_at_each_call_and_left_as_it_is():
    model = Linear(jnp.ones((10, 1)), jnp.zeros(1), "linear")
    weight = model.weight
    apply = jit(lambda x: model(x), inputs=model)
    np.testing.assert_allclose(apply(X), model(X), rtol=1e-6)
    assert model.weight is weight


def test_an_equinox_module_alone_as_outputs_is_refused():
    with pytest.raises(StateError, match=r"Linear, whose attributes can't be set.*\n.*\n.*\[module\]"):
        jit(lambda: None, outputs=Linear(jnp.ones((10, 1)), jnp.zeros(1), "linear"))


def test_a_static_field_of_a_module_that_changes_is_traced_anew():
    state = [Linear(jnp.ones((10, 1)), jnp.zeros(1), "one")]
    runs = []

    @jit(inputs=state)
    def name():
        runs.append(state[0].name)
        return state[0].bias

    name()
    name()
    state[0] = Linear(jnp.ones((10, 1)), jnp.zeros(1), "two")
    name()
    assert runs == ["one", "two"]


def test_a_flax_struct_in_a_list_is_replaced():
    @struct.dataclass
    class Moments:
        mean: jax.Array
        count: jax.Array

    state = [Moments(jnp.zeros(()), jnp.zeros(()))]

    @jit(inputs=state, outputs=state)
    def add(x):
        count = state[0].count + 1
        state[0] = state[0].replace(mean=state[0].mean + (x - state[0].mean) / count, count=count)

    for value in (1.0, 2.0, 6.0):
        add(value)
    assert isinstance(state[0], Moments)
    assert (float(state[0].mean), float(state[0].count)) == (3.0, 3.0)


class Net(nnx.Module):
    def __init__(self, rngs):
        self.dense = nnx.Linear(10, 8, rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)
        self.out = nnx.Linear(8, 1, rngs=rngs)

    def __call__(self, x):
        return self.out(self.dropout(jax.nn.relu(self.norm(self.dense(x)))))


def test_an_nnx_module_with_batch_norm_dropout_and_optimizer_trains_as_with_nnx_jit():
    def made():
        model = Net(nnx.Rngs(0))
        return model, nnx.Optimizer(model, optax.sgd(0.1, momentum=0.8), wrt=nnx.Param)

    def train(model, optimizer, x, y):
        loss, gradients = nnx.value_and_grad(loss_of)(model, x, y)
        optimizer.update(model, gradients)
        return loss

    plain, compiled = made(), made()
    kernel = compiled[0].dense.kernel
    theirs, step = nnx.jit(train), jit(lambda x, y: train(*compiled, x, y), inputs=compiled, outputs=compiled)
    losses = [(float(theirs(*plain, X, Y)), float(step(X, Y))) for _ in range(3)]
    np.testing.assert_allclose(*zip(*losses, strict=True), rtol=1e-4)
    assert len(step.specializations) == 1
    assert compiled[0].dense.kernel is kernel
    for one, other in zip(
        jax.tree.leaves(nnx.to_pure_dict(nnx.state(plain[0], nnx.Param))),
        jax.tree.leaves(nnx.to_pure_dict(nnx.state(compiled[0], nnx.Param))),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)
    compiled[0].dense.bias[...] = jnp.zeros(8)  # may be changed outside, as before


def test_nnx_rngs_advance_at_each_call():
    rngs = nnx.Rngs(0)
    draw = jit(lambda: jax.random.uniform(rngs(), ()), inputs=rngs, outputs=rngs)
    first, second = float(draw()), float(draw())
    assert first != second
    twin = nnx.Rngs(0)
    assert [float(jax.random.uniform(twin(), ())) for _ in range(2)] == pytest.approx([first, second])


def test_an_exception_in_a_step_leaves_an_nnx_module_as_it_was():
    model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
    before = model.kernel.get_value()

    def fail():
        model.kernel[...] = model.kernel + 1
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        jit(fail, inputs=model, outputs=model)()
    assert model.kernel.get_value() is before
    model.kernel[...] = before + 1


def test_what_an_nnx_function_makes_anew_is_whole():
    state = {"model": nnx.Linear(2, 2, rngs=nnx.Rngs(0))}

    @jit(outputs=state)
    def replace():
        state["model"] = nnx.Linear(2, 3, rngs=nnx.Rngs(1))

    replace()
    assert state["model"](jnp.ones((1, 2))).shape == (1, 3)
    state["model"].bias[...] = jnp.ones(3)
