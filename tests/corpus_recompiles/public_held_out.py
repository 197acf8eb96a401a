"""Retold from public threads, and put down with their true reasons before the ledger saw them."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from tests.corpus_recompiles.causes import cause
from tests.corpus_recompiles.models import rows


class _Scene(eqx.Module):
    flux: jax.Array
    step: object


@cause("static", "model.step", source="patrick-kidger/equinox#1062")
def a_module_that_counts_its_steps_in_an_int(cured):
    @eqx.filter_jit
    def fit(model):
        return eqx.tree_at(lambda m: m.flux, model, model.flux * 0.9)

    count = (lambda n: jnp.asarray(n)) if cured else int
    fit(_Scene(jnp.ones(3), count(0)))
    yield
    fit(_Scene(jnp.ones(3), count(1)))


@cause("shape", "batch['observed'].shape[0]", "batch['times'].shape[0]", source="patrick-kidger/diffrax#111")
def what_is_left_of_a_data_set_after_its_whole_batches(cured):
    @jax.jit
    def train(params, batch):
        return params - 0.1 * (batch["observed"] * batch["times"]).mean()

    data = np.ones((40, 3), np.float32)
    params = jnp.float32(1)
    for start in (0, 16):
        params = train(params, {"observed": data[start : start + 16], "times": data[start : start + 16]})
    yield
    rest = data[:16] if cured else data[32:]
    train(params, {"observed": rest, "times": rest})


@cause("static", "setting", source="jax-ml/jax#13992")
def a_static_object_that_was_changed(cured):
    class Setting:
        def __init__(self, value):
            self.value = value

        def __hash__(self):
            return hash(self.value)

        def __eq__(self, other):
            return isinstance(other, Setting) and self.value == other.value

        def __repr__(self):
            return f"Setting({self.value})"

    @partial(jax.jit, static_argnums=0)
    def add(setting, y):
        return y + setting.value

    y = np.ones(3, np.float32)
    add(Setting(100), y)
    yield
    add(Setting(100 if cured else 0), y)


@cause("shape", "indices.shape[0]", source="jax-ml/jax#15761")
def indices_of_another_number(cured):
    @jax.jit
    def gather(vec, indices):
        return vec[indices].sum()

    vec = np.ones(20, np.float32)
    for count in (5, 8):
        gather(vec, np.arange(count))
    yield
    gather(vec, np.arange(8 if cured else 10))


@cause("function", source="google/flax#1218")
def a_loss_that_is_jitted_where_it_is_used(cured):
    def train(params, batch):
        def loss(w):
            return ((batch @ w) ** 2).mean()

        return params - 0.1 * jax.jit(jax.grad(loss))(params)

    @jax.jit
    def whole(params, batch):
        return params - 0.1 * jax.grad(lambda w: ((batch @ w) ** 2).mean())(params)

    step = whole if cured else train
    batch = rows(4, 3)
    params = step(jnp.ones(3), batch)
    yield
    step(params, batch)


@cause("weak-type", "carry", source="jax-ml/jax#9046")
def a_carry_that_begins_as_a_python_number(cured):
    @jax.jit
    def advance(carry, x):
        return carry + x

    x = np.ones((), np.float32)
    carry = advance(np.float32(0) if cured else 0.0, x)
    yield
    advance(carry, x)


@cause("static", "power", source="google-deepmind/optax#328")
def a_bias_correction_by_the_step_number(cured):
    @partial(jax.jit, static_argnames="power")
    def correct(moment, decay, power):
        return moment / (1 - decay**power)

    moment, decay = np.ones(3, np.float32), np.float32(0.9)
    for step in (1, 2):
        correct(moment, decay, power=step)
    yield
    correct(moment, decay, power=2 if cured else 3)
