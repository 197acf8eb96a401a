"""Where arrays lie: committed, devices, shardings, layouts."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.layout import Format, Layout
from jax.sharding import AxisType, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from tests.corpus_recompiles.causes import cause
from tests.corpus_recompiles.models import fresh, on_device, predict, rows, weights


def _mesh(*shape, names=("data",)):
    return jax.make_mesh(shape, names, axis_types=(AxisType.Auto,) * len(shape))


def _put(value, where):
    return jax.block_until_ready(jax.device_put(value, where))


def _doubled():
    return jax.jit(lambda x: x * 2)


@cause("committed", "params['layer0']['w']", "params['layer0']['b']")
def parameters_that_were_put_on_the_device_late(cured):
    apply = jax.jit(fresh(predict))
    params = on_device(weights(4, 2))
    bound = _put(params, jax.devices()[0])
    apply(bound if cured else params, rows())
    yield
    apply(bound, rows())


@cause("committed", "x")
def numpy_first_and_a_prefetched_batch_then(cured):
    step = _doubled()
    bound = _put(rows(), jax.devices()[0])
    step(bound if cured else rows())
    yield
    step(bound)


@cause("committed", "state['count']", "state['w']")
def a_checkpoint_that_was_restored(cured):
    @jax.jit
    def step(state, x):
        return {"count": state["count"] + 1, "w": state["w"] * x.sum()}

    fresh = on_device({"count": np.int32(0), "w": rows()})
    restored = fresh if cured else _put(fresh, jax.devices()[0])
    step(fresh, rows())
    yield
    step(restored, rows())


@cause("device", "x", devices=2)
def a_batch_on_another_device(cured):
    step = _doubled()
    first, second = (_put(rows(), device) for device in jax.devices()[:2])
    step(first)
    yield
    step(first if cured else second)


@cause("device", "params['layer0']['w']", "params['layer0']['b']", "x", devices=2)
def a_model_moved_to_another_device(cured):
    apply = jax.jit(fresh(predict))
    here, there = ((_put(weights(4, 2), device), _put(rows(), device)) for device in jax.devices()[:2])
    apply(*here)
    yield
    apply(*(here if cured else there))


@cause("sharding", "x", devices=4)
def a_batch_spread_over_the_devices(cured):
    step = _doubled()
    spread = _put(rows(), NamedSharding(_mesh(4), P("data")))
    step(spread if cured else _put(rows(), jax.devices()[0]))
    yield
    step(spread)


@cause("sharding", "w", devices=4)
def another_partition(cured):
    @jax.jit
    def squared(w):
        return (w**2).sum()

    mesh = _mesh(4)
    by_row, by_column = (_put(rows(8, 8), NamedSharding(mesh, spec)) for spec in (P("data", None), P(None, "data")))
    squared(by_row)
    yield
    squared(by_row if cured else by_column)


@cause("sharding", "x", devices=4)
def a_mesh_of_another_shape(cured):
    step = _doubled()
    line = _put(rows(8, 8), NamedSharding(_mesh(4), P("data")))
    square = _put(rows(8, 8), NamedSharding(_mesh(2, 2, names=("data", "model")), P("data", "model")))
    step(line)
    yield
    step(line if cured else square)


@cause("sharding", "state", devices=4)
def a_state_that_comes_back_spread(cured):
    spread = NamedSharding(_mesh(4), P("data"))

    @jax.jit
    def step(state):
        return jax.lax.with_sharding_constraint(state * 2, spread)

    state = _put(rows(), spread if cured else NamedSharding(_mesh(4), P()))
    state = step(state)
    yield
    step(state)


@cause("sharding", "x", devices=4)
def a_type_that_says_how_it_is_spread(cured):
    mesh = jax.make_mesh((4,), ("data",), axis_types=(AxisType.Explicit,))
    step = _doubled()
    by_row, whole = (_put(rows(8, 8), NamedSharding(mesh, spec)) for spec in (P("data"), P()))
    step(by_row)
    yield
    step(by_row if cured else whole)


@cause("layout", "x")
def a_matrix_that_lies_by_columns(cured):
    @jax.jit
    def total(x):
        return x @ x.T

    device = SingleDeviceSharding(jax.devices()[0])
    by_row = _put(rows(8, 8), device)
    by_column = _put(rows(8, 8), Format(Layout((1, 0)), device))
    total(by_row)
    yield
    total(by_row if cured else by_column)


@cause("layout", "cache['k']", "cache['v']")
def a_cache_in_the_layout_of_another_program(cured):
    @jax.jit
    def attend(cache, q):
        return jnp.einsum("bth,bh->bt", cache["k"], q) + cache["v"].sum()

    device = SingleDeviceSharding(jax.devices()[0])
    cache = {name: np.ones((2, 8, 4), np.float32) for name in ("k", "v")}
    plain = _put(cache, device)
    other = _put(cache, Format(Layout((0, 2, 1)), device))
    q = np.ones((2, 4), np.float32)
    attend(plain, q)
    yield
    attend(plain if cured else other, q)


@cause("sharding", "x")
def an_array_kept_in_the_memory_of_the_host(cured):
    step = _doubled()
    device = jax.devices()[0]
    near, far = (_put(rows(), SingleDeviceSharding(device, memory_kind=kind)) for kind in ("device", "pinned_host"))
    step(near)
    yield
    step(near if cured else far)


@cause("device", "device", devices=2)
def a_second_wrapper_for_another_device(cured):
    def doubled(x):
        return x * 2

    plain = jax.jit(doubled)
    plain(rows())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the argument is deprecated, and still in use
        other = jax.jit(doubled, device=jax.devices()[1])
    yield
    (plain if cured else other)(rows())
