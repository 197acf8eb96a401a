"""Retold from JAX's documentation and tracker: arrays over several devices, and `shard_map`."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.corpus_recompiles.causes import cause
from tests.corpus_recompiles.models import rows

_DOCS = "docs.jax.dev"


def _mesh(*names, shape=(4,)):
    return Mesh(np.array(jax.devices()[:4]).reshape(shape), names or ("data",))


@cause("function", devices=4, source="jax-ml/jax#21236")
def a_shard_map_made_in_each_step(cured):
    mesh = _mesh()

    def double(x):
        return x * 2

    once = jax.jit(jax.shard_map(double, mesh=mesh, in_specs=P("data"), out_specs=P("data")))
    for turn in range(3):
        if turn == 2:
            yield
        made = jax.jit(jax.shard_map(double, mesh=mesh, in_specs=P("data"), out_specs=P("data")))
        (once if cured else made)(rows())


@cause("function", devices=4, source=f"{_DOCS}/notebooks/shard_map")
def a_shard_map_of_a_lambda(cured):
    mesh = _mesh()
    once = jax.jit(jax.shard_map(lambda x: jax.lax.psum(x, "data"), mesh=mesh, in_specs=P("data"), out_specs=P()))
    for turn in range(3):
        if turn == 2:
            yield
        made = jax.jit(jax.shard_map(lambda x: jax.lax.psum(x, "data"), mesh=mesh, in_specs=P("data"), out_specs=P()))
        (once if cured else made)(rows())


@cause("shape", "x.shape[0]", devices=4, source=f"{_DOCS}/notebooks/shard_map")
def a_shard_map_on_another_batch(cured):
    f = jax.jit(jax.shard_map(lambda x: x * 2, mesh=_mesh(), in_specs=P("data"), out_specs=P("data")))
    f(rows(8))
    yield
    f(rows(8 if cured else 16))


@cause("function", devices=4, source=f"{_DOCS}/notebooks/shard_map")
def a_shard_map_with_other_specs(cured):
    mesh = _mesh()

    def scale(x):
        return x * 2

    def wrapped(spec):
        return jax.jit(jax.shard_map(scale, mesh=mesh, in_specs=spec, out_specs=spec))

    first, second = wrapped(P("data")), wrapped(P(None, "data"))
    first(rows(8, 4))
    yield
    (first if cured else second)(rows(8, 4))


@cause("sharding", "x", devices=4, source=f"{_DOCS}/notebooks/Distributed_arrays_and_automatic_parallelization")
def an_input_spread_the_other_way(cured):
    mesh = _mesh("a", "b", shape=(2, 2))
    f = jax.jit(lambda x: jnp.sin(x))
    f(jax.device_put(rows(8, 4), NamedSharding(mesh, P("a", "b"))))
    other = jax.device_put(rows(8, 4), NamedSharding(mesh, P("a", "b") if cured else P("b", "a")))
    yield
    f(other)


@cause("sharding", "x", devices=4, source=f"{_DOCS}/notebooks/Distributed_arrays_and_automatic_parallelization")
def an_input_replicated_over_one_axis(cured):
    mesh = _mesh("a", "b", shape=(2, 2))
    f = jax.jit(lambda x: x + 1)
    f(jax.device_put(rows(8, 4), NamedSharding(mesh, P("a", "b"))))
    other = jax.device_put(rows(8, 4), NamedSharding(mesh, P("a", "b") if cured else P("a")))
    yield
    f(other)


@cause("sharding", "params['w']", "params['b']", devices=4, source="vllm-project/tpu-inference#176")
def warmed_up_with_params_on_one_device(cured):
    replicated = NamedSharding(_mesh(), P())
    f = jax.jit(lambda params, x: x @ params["w"] + params["b"])
    params = {"w": rows(4, 2), "b": np.ones(2, np.float32)}
    f(jax.device_put(params, replicated if cured else jax.devices()[0]), rows())
    served = jax.device_put(params, replicated)
    yield
    f(served, rows())


@cause("sharding", "state['w']", devices=4, source=f"{_DOCS}/sharded-computation")
def a_state_that_comes_back_replicated(cured):
    mesh = _mesh()
    spread, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    step = jax.jit(lambda state: {"w": state["w"] * 2}, out_shardings={"w": spread if cured else whole})
    state = step({"w": jax.device_put(rows(8), spread)})
    yield
    step(state)


@cause("context", "mesh", devices=4, source=f"{_DOCS}/notebooks/explicit-sharding")
def a_mesh_set_after_the_first_call(cured):
    f = jax.jit(lambda x: x * 2)
    if cured:
        with jax.set_mesh(_mesh()):
            f(rows())
    else:
        f(rows())
    yield
    with jax.set_mesh(_mesh()):
        f(rows())


@cause("sharding", "out_shardings", devices=4, source="keras-team/keras#22834")
def a_trainer_that_rebuilds_its_out_shardings(cured):
    mesh = _mesh()

    def step(x):
        return x * 2

    first = jax.jit(step, out_shardings=NamedSharding(mesh, P()))
    second = jax.jit(step, out_shardings=NamedSharding(mesh, P() if cured else P("data")))
    first(rows())
    yield
    second(rows())


@cause("sharding", "batch", devices=4, source=f"{_DOCS}/notebooks/Distributed_arrays_and_automatic_parallelization")
def a_last_batch_that_was_not_spread(cured):
    spread = NamedSharding(_mesh(), P("data"))
    f = jax.jit(lambda batch: batch.sum())
    f(jax.device_put(rows(8), spread))
    last = jax.device_put(rows(8), spread if cured else jax.devices()[0])
    yield
    f(last)


@cause("sharding", "x", devices=4, source=f"{_DOCS}/notebooks/host-offloading")
def a_tensor_offloaded_to_the_host(cured):
    f = jax.jit(lambda x: x.sum())
    device = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    kinds = {memory.kind for memory in jax.devices()[0].addressable_memories()}
    host = device.with_memory_kind("pinned_host" if "pinned_host" in kinds else "unpinned_host")
    f(jax.device_put(rows(), device))
    other = jax.device_put(rows(), device if cured else host)
    yield
    f(other)


@cause("sharding", "x", devices=4, source=f"{_DOCS}/notebooks/explicit-sharding")
def a_mesh_over_fewer_devices(cured):
    f = jax.jit(lambda x: x * 2)
    two = Mesh(np.array(jax.devices()[:2]), ("data",))
    f(jax.device_put(rows(8), NamedSharding(_mesh(), P("data"))))
    other = jax.device_put(rows(8), NamedSharding(_mesh() if cured else two, P("data")))
    yield
    f(other)


@cause("shape", "v.shape[1]", devices=4, source=f"{_DOCS}/_autosummary/jax.pmap")
def a_pmap_with_an_axis_name_on_another_size(cured):
    def norm(v):
        return v / jax.lax.psum(v.sum(), "i")

    f = jax.pmap(norm, axis_name="i")
    f(np.ones((4, 6), np.float32))
    yield
    f(np.ones((4, 6 if cured else 5), np.float32))
