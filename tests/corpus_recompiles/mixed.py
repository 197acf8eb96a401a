"""Several things at once, of which one is the cause; and programs inside of programs."""

import jax
import jax.numpy as jnp
import numpy as np

from tests.corpus_recompiles.causes import cause
from tests.corpus_recompiles.models import batch, fresh, on_device, rows, update, weights


@cause("shape", "x.shape[0]")
def a_size_beside_an_array_that_is_now_committed(cured):
    step = jax.jit(lambda x: x * 2)
    few, more = on_device(rows(8)), jax.device_put(rows(9), jax.devices()[0])
    step(few)
    yield
    step(few if cured else more)


@cause("static", "n")
def a_static_beside_numpy_in_place_of_jax(cured):
    def power(x, n):
        return x**n

    step = jax.jit(power, static_argnames="n")
    step(on_device(rows()), n=2)
    yield
    step(rows(), n=2 if cured else 3)


@cause("dtype", "features['height']")
def a_type_beside_a_dict_in_another_order(cured):
    total = jax.jit(lambda features: sum(value.sum() for value in features.values()))
    total({"age": np.ones(3, np.float32), "height": np.ones(3, np.float32)})
    yield
    total({"height": np.ones(3, np.float32 if cured else np.float16), "age": np.ones(3, np.float32)})


@cause("dtype", "offset")
def one_type_after_many_sizes(cured):
    shifted = jax.jit(lambda x, offset: x.sum() + offset)
    for size in range(1, 13):
        shifted(rows(size), np.float32(1))
    yield
    shifted(rows(4), np.float32(1) if cured else np.int32(1))


@cause("shape", "x.shape[0]")
def a_size_beside_another_wrapper_of_the_same_function(cured):
    def doubled(x):
        return x * 2

    jax.jit(doubled)(rows(8))
    yield
    jax.jit(doubled)(rows(8 if cured else 9))


@cause("weak-type", "rate")
def a_number_in_one_call_of_a_storm_of_sizes(cured):
    step = jax.jit(lambda x, rate: x * rate)
    for size in (3, 5, 7):
        step(rows(size), np.float32(0.1))
    yield
    step(rows(5), np.float32(0.1) if cured else 0.1)


@cause("shape", "x.shape[1]")
def the_second_of_two_dimensions_that_both_vary(cured):
    step = jax.jit(lambda x: x.sum())
    for shape in ((2, 3), (4, 3), (4, 5), (6, 5)):
        step(np.ones(shape, np.float32))
    yield
    step(np.ones((6, 5) if cured else (6, 7), np.float32))


@cause("shape", "x.shape[0]")
def a_jitted_function_inside_of_another(cured):
    @jax.jit
    def inner(x):
        return jnp.sin(x)

    @jax.jit
    def outer(x):
        return inner(x).sum()

    inner(rows(9))
    outer(rows(8))
    yield
    outer(rows(8 if cured else 9))


@cause("first")
def two_functions_of_one_name(cured):
    def one():
        @jax.jit
        def step(x):
            return x + 1

        return step

    def other():
        @jax.jit
        def step(x):
            return x + 2

        return step

    first, second = one(), other()
    first(rows())
    yield
    (first if cured else second)(rows())


@cause("first")
def two_lambdas(cured):
    double = jax.jit(lambda x: x * 2)
    half = jax.jit(lambda x: x / 2)
    double(rows())
    yield
    (double if cured else half)(rows())


@cause("structure", "batch['y']")
def a_key_beside_a_size(cured):
    predicted = jax.jit(lambda batch: batch["x"].sum())
    predicted({"x": rows(8), "y": rows(8)})
    predicted({"x": rows(9), "y": rows(9)})
    yield
    predicted({"x": rows(9), "y": rows(9)} if cured else {"x": rows(9)})


@cause("function")
def a_scan_with_a_body_made_each_time(cured):
    xs, zero = on_device(rows()), on_device(np.zeros(4, np.float32))

    def body(total, x):
        return total + x, total

    for turn in range(3):
        if turn == 2:
            yield
        jax.lax.scan(body if cured else lambda total, x: (total + x, total), zero, xs)


@cause("shape", "x.shape[0]")
def a_gradient_of_a_jitted_function_on_another_size(cured):
    @jax.jit
    def energy(x):
        return (x**2).sum()

    few, more = on_device(rows(8)), on_device(rows(8 if cured else 9))
    jax.block_until_ready(jax.grad(energy)(few))
    yield
    jax.grad(energy)(more)


@cause("shape", "x.shape[0]")
def a_jitted_function_mapped_over_another_size(cured):
    @jax.jit
    def norm(x):
        return (x**2).sum()

    few, more = on_device(rows(8)), on_device(rows(8 if cured else 9))
    jax.block_until_ready(jax.vmap(norm)(few))
    yield
    jax.vmap(norm)(more)


@cause("context", "jax_default_matmul_precision")
def a_setting_that_was_updated_for_good(cured):
    multiply = jax.jit(lambda x: x @ x.T)
    multiply(rows())
    before = jax.config.jax_default_matmul_precision
    yield
    try:
        if not cured:
            jax.config.update("jax_default_matmul_precision", "highest")
        multiply(rows())
    finally:
        jax.config.update("jax_default_matmul_precision", before)


@cause("shape", "batch['x'].shape[0]", "batch['y'].shape[0]")
def a_train_step_for_the_second_epoch_of_a_longer_loader(cured):
    step = jax.jit(fresh(update), donate_argnums=0)
    params = on_device(weights(4, 8, 2))
    for _ in range(2):
        params = step(params, batch(16))
        params = step(params, batch(16 if cured else 7))
    yield
    step(params, batch(16 if cured else 3))


@cause("committed", "x")
def a_batch_put_on_its_device_after_many_sizes(cured):
    total = jax.jit(lambda x: x.sum())
    for size in range(2, 9):
        total(rows(size))
    bound = jax.device_put(rows(4), jax.devices()[0])
    yield
    total(rows(4) if cured else bound)
