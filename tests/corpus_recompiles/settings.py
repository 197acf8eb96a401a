"""Settings, options of jax.jit and of XLA, donation, and caches that forget."""

from contextlib import nullcontext

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.corpus_recompiles.causes import cause
from tests.corpus_recompiles.models import batch, fresh, on_device, rows, update, weights


def _in(cured, context, *value):
    """A setting around one call; cured, around none."""
    return nullcontext() if cured else context(*value)


@cause("context", "jax_default_matmul_precision")
def a_precision_around_one_call(cured):
    multiply = jax.jit(lambda x: x @ x.T)
    multiply(rows())
    yield
    with _in(cured, jax.default_matmul_precision, "float32"):
        multiply(rows())


@cause("context", "jax_enable_x64")
def double_precision_around_one_call(cured):
    total = jax.jit(lambda x: x.sum())
    total(rows())
    yield
    with _in(cured, jax.enable_x64, True):
        total(rows())


@cause("context", "jax_enable_x64")
def double_precision_with_arrays_that_follow_it(cured):
    total = jax.jit(lambda x: x.sum())
    x = np.ones(8, np.float64)
    total(x)
    yield
    with _in(cured, jax.enable_x64, True):
        total(x)


@cause("context", "jax_numpy_rank_promotion")
def strict_ranks_around_one_call(cured):
    step = jax.jit(lambda x: x * 2)
    step(rows())
    yield
    with _in(cured, jax.numpy_rank_promotion, "raise"):
        step(rows())


@cause("context", "jax_numpy_dtype_promotion")
def strict_types_around_one_call(cured):
    step = jax.jit(lambda x: x * x)
    step(rows())
    yield
    with _in(cured, jax.numpy_dtype_promotion, "strict"):
        step(rows())


@cause("context", "jax_threefry_partitionable")
def random_numbers_of_the_old_kind(cured):
    noise = jax.jit(lambda key: jax.random.normal(key, (4,)))
    key = jax.random.key(0)
    noise(key)
    yield
    with _in(cured, jax.threefry_partitionable, False):
        noise(key)


@cause("context", "jax_default_device", devices=2)
def another_default_device_around_one_call(cured):
    step = jax.jit(lambda x: x * 2)
    step(rows())
    yield
    with _in(cured, jax.default_device, jax.devices()[1]):
        step(rows())


@cause("context", "mesh", devices=4)
def a_mesh_around_one_call(cured):
    step = jax.jit(lambda x: x * 2)
    mesh = jax.make_mesh((4,), ("data",), axis_types=(AxisType.Auto,))
    step(rows())
    yield
    with _in(cured, jax.set_mesh, mesh):
        step(rows())


@cause("context", "mesh", devices=4)
def meshes_of_two_shapes(cured):
    step = jax.jit(lambda x: x * 2)
    line = jax.make_mesh((4,), ("data",), axis_types=(AxisType.Auto,))
    square = jax.make_mesh((2, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    with jax.set_mesh(line):
        step(rows())
    yield
    with jax.set_mesh(line if cured else square):
        step(rows())


@cause("options", "xla_cpu_enable_fast_math")
def a_compiler_option_in_one_of_two_wrappers(cured):
    def exponential(x):
        return jnp.exp(x).sum()

    plain = jax.jit(exponential)
    fast = jax.jit(exponential, compiler_options={"xla_cpu_enable_fast_math": True})
    plain(rows())
    yield
    (plain if cured else fast)(rows())


@cause("options", "xla_backend_optimization_level")
def another_level_of_optimisation(cured):
    def exponential(x):
        return jnp.exp(x).sum()

    def wrapped(level):
        return jax.jit(exponential, compiler_options={"xla_backend_optimization_level": level})

    wrapped(1)(rows())
    yield
    wrapped(1 if cured else 0)(rows())


@cause("sharding", "out_shardings", devices=4)
def a_second_wrapper_that_spreads_its_result(cured):
    def doubled(x):
        return x * 2

    plain = jax.jit(doubled)
    spread = jax.jit(doubled, out_shardings=NamedSharding(jax.make_mesh((4,), ("data",)), P("data")))
    plain(rows())
    yield
    (plain if cured else spread)(rows())


@cause("donation", *(f"params['layer0']['{name}']" for name in "bw"))
def a_second_wrapper_that_donates(cured):
    function = fresh(update)
    evaluate, train = jax.jit(function), jax.jit(function, donate_argnums=0)
    params = on_device(weights(4, 2))
    evaluate(params, batch())
    yield
    (evaluate if cured else train)(params, batch())


@cause("donation", "x")
def donated_by_one_script_and_kept_by_another(cured):
    def doubled(x):
        return x * 2

    x, y = (on_device(rows()) for _ in range(2))
    jax.jit(doubled, donate_argnames="x")(x)
    yield
    jax.jit(doubled, donate_argnames="x" if cured else ())(y)


@cause("donation", "state['m']", "state['w']")
def donation_switched_off_for_debugging(cured):
    def step(state):
        return jax.tree.map(lambda s: s * 2, state)

    one, two = (on_device({"w": rows(), "m": rows()}) for _ in range(2))
    jax.jit(step, donate_argnums=0)(one)
    yield
    jax.jit(step, donate_argnums=0 if cured else ())(two)


@cause("evicted")
def caches_cleared_between_two_epochs(cured):
    step = jax.jit(fresh(update))
    step(weights(4, 2), batch())
    yield
    if not cured:
        jax.clear_caches()
    step(weights(4, 2), batch())


@cause("evicted")
def the_cache_of_one_function_cleared(cured):
    step = jax.jit(lambda x: x * 2)
    step(rows())
    yield
    if not cured:
        step.clear_cache()
    step(rows())


@cause("evicted")
def caches_cleared_to_save_memory_in_a_loop(cured):
    total = jax.jit(lambda x, y: (x + y).sum())
    for size in (4, 8):
        total(rows(size), rows(size))
    yield
    if not cured:
        jax.clear_caches()
    total(rows(4), rows(4))


@cause("sharding", "in_shardings", devices=4)
def a_second_wrapper_that_spreads_its_argument(cured):
    def doubled(x):
        return x * 2

    plain = jax.jit(doubled)
    spread = jax.jit(doubled, in_shardings=NamedSharding(jax.make_mesh((4,), ("data",)), P("data")))
    plain(rows())
    yield
    (plain if cured else spread)(rows())


@cause("context", "axis_env_state")
def a_named_axis_around_one_call(cured):
    step = jax.jit(lambda x: x * 2)
    x = on_device(rows())
    jax.block_until_ready(jax.vmap(step)(x))
    yield
    (jax.vmap(step) if cured else jax.vmap(step, axis_name="rows"))(x)
