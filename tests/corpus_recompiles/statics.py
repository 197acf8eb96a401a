"""Static arguments."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

from tests.corpus_recompiles.causes import cause
from tests.corpus_recompiles.models import rows, weights


@cause("static", "step")
def a_step_number_that_is_static(cured):
    def decayed(x, step):
        return x * 0.9**step

    advance = jax.jit(decayed) if cured else jax.jit(decayed, static_argnames="step")
    for step in range(3):
        advance(rows(), step=step)
    yield
    advance(rows(), step=3)


@cause("static", "rate")
def a_learning_rate_that_is_static(cured):
    def descend(x, rate):
        return x - rate * x

    step = jax.jit(descend) if cured else jax.jit(descend, static_argnums=1)
    step(rows(), 0.1)
    yield
    step(rows(), 0.05)


class _Config:
    def __init__(self, width):
        self.width = width

    def __repr__(self):
        return f"Config(width={self.width})"


@dataclass(frozen=True)
class _ValueConfig:
    width: int
    layers: int = 1


@cause("static", "config")
def a_config_made_for_each_call_without_equality(cured):
    @partial(jax.jit, static_argnames="config")
    def widened(x, config):
        return jnp.tile(x, (1, config.width))

    kind = _ValueConfig if cured else _Config
    widened(rows(), config=kind(2))
    yield
    widened(rows(), config=kind(2))


@cause("static", "config", "config.width")
def a_config_with_another_field(cured):
    @partial(jax.jit, static_argnums=0)
    def widened(config, x):
        return jnp.tile(x, (1, config.width))

    widened(_ValueConfig(2), rows())
    yield
    widened(_ValueConfig(2 if cured else 3), rows())


@cause("static", "mode")
def training_and_evaluation(cured):
    @partial(jax.jit, static_argnames="mode")
    def forward(x, mode):
        return x * 2 if mode == "train" else x

    forward(rows(), mode="train")
    yield
    forward(rows(), mode="train" if cured else "eval")


@cause("static", "activation")
def an_activation_written_as_a_lambda(cured):
    @partial(jax.jit, static_argnames="activation")
    def layer(x, activation):
        return activation(x)

    layer(rows(), activation=jnp.tanh if cured else lambda x: jnp.tanh(x))
    yield
    layer(rows(), activation=jnp.tanh if cured else lambda x: jnp.tanh(x))


@cause("static", "n")
def a_default_left_out_and_then_another_value(cured):
    @partial(jax.jit, static_argnames="n")
    def power(x, n=2):
        return x**n

    power(rows())
    yield
    power(rows()) if cured else power(rows(), n=3)


@cause("static", "n")
def a_static_by_position_and_by_name(cured):
    @partial(jax.jit, static_argnames="n")
    def power(x, n):
        return x**n

    power(rows(), 2)
    yield
    power(rows(), 2) if cured else power(rows(), n=2)


class _Schedule:
    def __init__(self, *steps):
        self.steps = list(steps)

    def __hash__(self):
        return hash(tuple(self.steps))

    def __eq__(self, other):
        return isinstance(other, _Schedule) and self.steps == other.steps

    def __repr__(self):
        return f"Schedule({self.steps})"


@cause("static", "schedule")
def a_static_object_with_one_step_more(cured):
    @partial(jax.jit, static_argnames="schedule")
    def scaled(x, schedule):
        return x * sum(schedule.steps)

    scaled(rows(), schedule=_Schedule(1, 2))
    yield
    scaled(rows(), schedule=_Schedule(1, 2) if cured else _Schedule(1, 2, 3))


@cause("static", "tx")
def an_optimiser_made_for_each_step(cured):
    @partial(jax.jit, static_argnames="tx")
    def step(params, tx):
        return tx.update(params, tx.init(params), params)[0]

    once = optax.sgd(0.1)
    step(weights(4, 2), tx=once)
    yield
    step(weights(4, 2), tx=once if cured else optax.sgd(0.1))


@cause("static", "shape", "shape[0]")
def a_static_shape(cured):
    @partial(jax.jit, static_argnames="shape")
    def zeros(x, shape):
        return jnp.zeros(shape) + x.sum()

    zeros(rows(), shape=(8, 8))
    yield
    zeros(rows(), shape=(8, 8) if cured else (16, 16))


class _Hashed:
    """Hashable by value, but equal to itself alone."""

    def __init__(self, name):
        self.name = name

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return f"Hashed({self.name!r})"


@cause("static", "kernel")
def a_hash_without_an_equality(cured):
    @partial(jax.jit, static_argnames="kernel")
    def convolved(x, kernel):
        return x * len(kernel.name)

    one = _Hashed("gauss")
    convolved(rows(), kernel=one)
    yield
    convolved(rows(), kernel=one if cured else _Hashed("gauss"))


@cause("static", "transform")
def a_partial_as_a_static_argument(cured):
    @partial(jax.jit, static_argnums=(1,))
    def applied(x, transform):
        return transform(x)

    once = partial(jnp.sum, axis=0)
    applied(rows(), once)
    yield
    applied(rows(), once if cured else partial(jnp.sum, axis=0))


@cause("static", "length")
def the_length_of_each_generation(cured):
    def generate(x, length):
        return jax.lax.fori_loop(0, length, lambda i, y: y * 0.5 + i, x)

    run = jax.jit(generate) if cured else jax.jit(generate, static_argnames=("length",))
    for length in (4, 9):
        run(rows(), length=length)
    yield
    run(rows(), length=6)


@cause("static", "self")
def a_method_with_a_static_self(cured):
    class Model:
        def __init__(self, scale):
            self.scale = scale

        @partial(jax.jit, static_argnums=0)
        def apply(self, x):
            return x * self.scale

    model = Model(2)
    model.apply(rows())
    yield
    (model if cured else Model(2)).apply(np.asarray(rows()))


@cause("static", "n")
def static_in_one_of_two_wrappers(cured):
    def power(x, n):
        return x**n

    jax.jit(power)(rows(), 2)
    yield
    (jax.jit(power) if cured else jax.jit(power, static_argnames="n"))(rows(), 2)
