"""Types: dtypes, and weak ones."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from tests.corpus_recompiles.causes import cause
from tests.corpus_recompiles.models import batch, fresh, predict, rows, update, weights


@cause("weak-type", "rate")
def a_schedule_that_warms_up_with_python_floats(cured):
    step = jax.jit(fresh(update))
    schedule = [0.0, 0.05, np.float32(0.1)]  # after the warm-up it comes from an array
    params = weights(4, 2)
    for rate in schedule[:2]:
        params = step(params, batch(), np.float32(rate) if cured else rate)
    yield
    step(params, batch(), schedule[2])


@cause("weak-type", "total")
def a_running_total_that_starts_at_zero(cured):
    @jax.jit
    def accumulate(total, x):
        return total + x.sum()

    total = np.float32(0) if cured else 0.0
    total = accumulate(total, rows())
    yield
    accumulate(total, rows())


@cause("weak-type", "state[1]")
def a_counter_in_the_carried_state(cured):
    @jax.jit
    def step(state):
        x, count = state
        return x + 1, count + jnp.int32(1)

    state = (rows(), np.int32(0) if cured else 0)
    state = step(state)
    yield
    step(state)


@cause("dtype", "temperature")
def a_temperature_of_one_and_of_a_half(cured):
    @jax.jit
    def probabilities(logits, temperature):
        return jax.nn.softmax(logits / temperature)

    probabilities(rows(), 1.0 if cured else 1)
    yield
    probabilities(rows(), 0.5)


@cause("dtype", "images")
def images_as_bytes_and_as_floats(cured):
    @jax.jit
    def normalised(images):
        return (images / 255.0).mean()

    normalised(np.ones((2, 8, 8), np.float32))
    yield
    images = np.ones((2, 8, 8), np.uint8)
    normalised(images.astype(np.float32) if cured else images)


@cause("dtype", "batch['x']")
def half_precision_from_a_loader(cured):
    step = jax.jit(fresh(update))
    params = weights(4, 2)
    step(params, batch())
    yield
    step(params, batch(dtype=np.float32 if cured else np.float16))


@cause("dtype", "params['layer0']['w']", "params['layer0']['b']")
def weights_cast_for_evaluation(cured):
    apply = jax.jit(fresh(predict))
    params = weights(4, 2)
    half = jax.tree.map(lambda p: p.astype(jnp.bfloat16), params)
    apply(params, rows())
    yield
    apply(params if cured else half, rows())


@cause("dtype", "mask")
def a_mask_of_numbers(cured):
    @jax.jit
    def masked(x, mask):
        return jnp.where(mask, x, 0).sum()

    masked(rows(), np.ones((8, 1), bool))
    yield
    mask = np.ones((8, 1), np.int32)
    masked(rows(), mask.astype(bool) if cured else mask)


@cause("dtype", "flag")
def a_flag_as_a_number(cured):
    @jax.jit
    def chosen(x, flag):
        return jnp.where(flag, x, -x)

    chosen(rows(), True)
    yield
    chosen(rows(), True if cured else 1)


@cause("dtype", "signal")
def a_real_signal_after_a_complex_one(cured):
    spectrum = jax.jit(lambda signal: jnp.abs(signal).sum())
    spectrum(np.ones(16, np.complex64))
    yield
    spectrum(np.ones(16, np.complex64 if cured else np.float32))


@cause("dtype", "key")
def raw_and_typed_random_keys(cured):
    @jax.jit
    def noise(key):
        return jax.random.normal(key, (4,))

    raw, typed = jax.random.PRNGKey(0), jax.random.key(0)
    noise(typed if cured else raw)
    yield
    noise(typed)


@cause("weak-type", "x")
def numpy_float64_beside_python_floats(cured):
    @jax.jit
    def doubled(x):
        return 2 * x

    prices = np.array([1.5, 2.5])
    doubled(float(prices[0]))
    yield
    doubled(float(prices.mean()) if cured else prices.mean())


@cause("weak-type", "bias")
def an_array_made_from_a_number(cured):
    @jax.jit
    def shifted(x, bias):
        return x + bias

    strong, weak = jnp.zeros((), jnp.float32), jnp.asarray(0.0)
    shifted(rows(), strong)
    yield
    shifted(rows(), strong if cured else weak)


@cause("weak-type", "scale")
def a_loss_scale_that_is_halved_on_the_device(cured):
    @jax.jit
    def scaled_step(x, scale):
        finite = jnp.isfinite(x * scale).all()
        return jnp.where(finite, scale, scale / 2).astype(jnp.float32)

    scale = np.float32(2**15) if cured else 2.0**15
    scale = scaled_step(rows(), scale)
    yield
    scaled_step(rows(), scale)


@cause("weak-type", "state.hyperparams['learning_rate']", "opt_state.hyperparams['learning_rate']")
def a_learning_rate_set_by_hand_in_optax(cured):
    tx = optax.inject_hyperparams(optax.sgd)(learning_rate=0.1)
    params = weights(4, 2)

    @jax.jit
    def step(params, opt_state, batch):
        grads = jax.tree.map(jnp.ones_like, params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state

    opt_state = tx.init(params)
    params, opt_state = step(params, opt_state, batch())
    params, opt_state = step(params, opt_state, batch())
    yield
    opt_state.hyperparams["learning_rate"] = np.float32(0.01) if cured else 0.01
    step(params, opt_state, batch())


@cause("dtype", "key")
def random_keys_of_two_kinds(cured):
    draw = jax.jit(lambda key: jax.random.bits(key))
    one, other = jax.random.key(0), jax.random.key(0, impl="rbg")
    draw(one)
    yield
    draw(one if cured else other)


@cause("weak-type", "n")
def a_numpy_integer_and_a_python_one(cured):
    advance = jax.jit(lambda x, n: x + n)
    advance(rows(), np.int32(3))
    yield
    advance(rows(), np.int32(3) if cured else 3)
