"""Retold from public threads: states, sizes and types that change on the way."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.corpus_recompiles.causes import cause
from tests.corpus_recompiles.models import rows


class _Adapting(NamedTuple):
    mean: object
    count: object
    step_size: object


@cause("weak-type", "state.step_size", "state.count", source="pyro-ppl/numpyro#463")
def a_sampler_whose_warm_up_ends_in_strong_types(cured):
    @jax.jit
    def sample(state):
        return _Adapting(state.mean + 1, state.count + np.int32(1), state.step_size * np.float32(0.5))

    count, size = (np.int32(0), np.float32(1)) if cured else (0, 1.0)
    warm = sample(_Adapting(np.zeros(3, np.float32), count, size))
    yield
    sample(warm)


@cause("weak-type", "opt_state[0].value", "opt_state.value", source="google-deepmind/optax#1171")
def a_line_search_that_starts_at_infinity(cured):
    def loss(params):
        return jnp.sum((params - 3) ** 2)

    @jax.jit
    def search(params, opt_state):
        value = loss(params)
        return params - 0.1 * jax.grad(loss)(params), opt_state._replace(value=value)

    class Search(NamedTuple):
        value: object
        learning_rate: object

    start = jnp.full((), jnp.inf, jnp.float32) if cured else jnp.asarray(float("inf"))
    params, opt_state = search(jnp.ones(3), Search(start, np.float32(1)))
    yield
    search(params, opt_state)


@cause("weak-type", "integrator['log_z']", "integrator['log_x']", source="handley-lab/blackjax#60")
def evidence_that_is_summed_from_python_zeros(cured):
    @jax.jit
    def shrink(integrator, losses):
        log_x = integrator["log_x"] - 1 / losses.shape[0]
        return {"log_x": log_x + 0 * losses[0], "log_z": jnp.logaddexp(integrator["log_z"], log_x + losses[0])}

    losses = jnp.ones(4)
    zero = np.float32(0) if cured else 0.0
    integrator = shrink({"log_x": zero, "log_z": zero}, losses)
    yield
    shrink(integrator, losses)


@cause("weak-type", "thing.scale", source="PlasmaControl/DESC#1963")
def a_setter_that_casts_with_float(cured):
    @jax.tree_util.register_dataclass
    @dataclasses.dataclass
    class Coil:
        scale: object
        points: object

    @jax.jit
    def field(thing):
        return thing.points * thing.scale

    field(Coil(np.float32(2), rows()))
    scale = jnp.float32(3)
    yield
    field(Coil(scale if cured else float(scale), rows()))


@cause("sharding", "x", devices=4, source="jax-ml/jax#31250")
def a_result_that_comes_back_replicated_over_a_mesh(cured):
    mesh = Mesh(np.array(jax.devices()[:4]), ("device",))
    everywhere = NamedSharding(mesh, P())

    @jax.jit
    def step(x):
        return jax.lax.with_sharding_constraint(x + 1, everywhere)

    x = jax.device_put(np.zeros(4, np.float32), everywhere if cured else None)
    x = step(x)
    yield
    step(x)


@cause("shape", "parameters.shape[0]", source="jax-ml/jax#2521")
def a_chain_that_jumps_between_dimensions(cured):
    likelihood = jax.jit(lambda parameters, data: jnp.sum((data[:, None] - parameters) ** 2))
    data = np.arange(6, dtype=np.float32)
    for count in (3, 4, 3):
        likelihood(np.ones(8 if cured else count, np.float32), data)
    yield
    likelihood(np.ones(8 if cured else 5, np.float32), data)


@cause("shape", "x.shape[0]", source="jax-ml/jax#10550")
def one_wrapper_for_each_power_of_two(cured):
    wrappers = {}

    def norm(x):
        return jnp.linalg.norm(x, axis=-1)

    def chunked(count):
        size = 512 if cured else 1 << (count - 1).bit_length()
        if size not in wrappers:
            wrappers[size] = jax.jit(norm)
        return wrappers[size](np.ones((size, 3), np.float32))

    chunked(100)
    chunked(200)
    yield
    chunked(400)


@cause("shape", "samples.shape[1]", source="qiskit-community/qiskit-dynamics#135")
def schedules_padded_to_the_longest_of_their_list(cured):
    solve = jax.jit(lambda samples, durations: (samples * (jnp.arange(samples.shape[1]) < durations[:, None])).sum())

    def solve_all(lengths):
        longest = 64 if cured else max(lengths)
        return solve(np.ones((len(lengths), longest), np.float32), np.array(lengths, np.int32))

    solve_all([20, 30])
    yield
    solve_all([25, 48])


@cause("shape", "ids.shape[0]", source="vllm-project/vllm#16726")
def a_buffer_shorter_than_its_bucket(cured):
    embed = jax.jit(lambda table, ids: table[ids])
    table = rows(16)
    buffer = np.zeros(512 if cured else 317, np.int32)

    def serve(count):
        bucket = next(size for size in (128, 512) if size >= count)
        return embed(table, buffer[:512] if cured else buffer[:bucket])

    serve(100)
    yield
    serve(300)


@cause("shape", "graph['nodes'].shape[0]", "graph['edges'].shape[0]", source="atomicarchitects/nequix#22")
def materials_padded_by_a_tenth(cured):
    @jax.jit
    def energy(graph):
        return graph["nodes"].sum() + graph["edges"].sum()

    def relax(atoms, bonds):
        atoms, bonds = (-(-atoms // 8) * 8, 64) if cured else (atoms + 1, int(bonds * 1.1))
        energy({"nodes": np.ones((atoms, 3), np.float32), "edges": np.ones(bonds, np.float32)})

    relax(10, 40)
    yield
    relax(12, 48)


@cause("shape", "neighbours.idx.shape[1]", source="jax-md/jax-md#75")
def a_neighbour_list_that_overflowed(cured):
    @jax.tree_util.register_dataclass
    @dataclasses.dataclass(frozen=True)
    class Neighbours:
        idx: object
        reference: object

    @jax.jit
    def move(position, neighbours):
        return position + 0.1 * position[neighbours.idx].sum(1)

    position = rows(8, 2)

    def allocate(capacity):
        return Neighbours(np.zeros((8, capacity), np.int32), position)

    move(position, allocate(6 if cured else 4))
    yield
    move(position, allocate(6))


@cause("shape", "positions.shape[0]", "edges.shape[1]", source="ACEsuit/mace#1590")
def a_trajectory_whose_neighbours_are_found_anew(cured):
    @jax.jit
    def forces(positions, edges):
        return jax.ops.segment_sum(positions[edges[0]] - positions[edges[1]], edges[1], positions.shape[0])

    positions = rows(6, 3)
    for count in (10, 14):
        forces(positions, np.zeros((2, 32 if cured else count), np.int32))
    yield
    forces(positions, np.zeros((2, 32 if cured else 23), np.int32))


@cause("rank", "receivers", "receivers.ndim", source="patrick-kidger/equinox#903")
def book_keeping_with_a_batch_dimension(cured):
    pool = jax.jit(lambda nodes, receivers: jax.ops.segment_sum(nodes, receivers.ravel(), 4))
    nodes = rows(8)
    pool(nodes, np.zeros(8, np.int32))
    other = np.zeros(8 if cured else (1, 8), np.int32)
    yield
    pool(nodes, other)


@cause("structure", "opt_state[0]", "state.opt_state[0]", source="google/flax#1429")
def moments_restored_as_a_class_of_another_name(cured):
    optimizer = optax.adam(0.1)

    @jax.jit
    def apply(params, opt_state):
        adam = opt_state[0]
        return jax.tree.map(lambda p, m: p - m, params, adam.mu)

    params = {"w": np.ones(3, np.float32)}
    opt_state = jax.tree.map(np.asarray, optimizer.init(params))

    class Restored(NamedTuple):
        count: object
        mu: object
        nu: object

    apply(params, opt_state)
    other = (opt_state[0] if cured else Restored(*opt_state[0]), *opt_state[1:])
    yield
    apply(params, other)


@cause("structure", "past", source="huggingface/transformers#29410")
def a_cache_that_is_none_for_the_prompt(cured):
    @jax.jit
    def decode(params, token, past):
        if past is None:
            past = {"k": jnp.zeros((4, 2), jnp.float32)}
        return {"k": past["k"] + token * params}

    params = np.float32(2)
    past = decode(params, np.int32(1), {"k": np.zeros((4, 2), np.float32)} if cured else None)
    yield
    decode(params, np.int32(2), past)


@cause("shape", "input_ids.shape[1]", "attention_mask.shape[1]", source="huggingface/transformers#8909")
def sentences_tokenised_to_their_own_length(cured):
    @jax.jit
    def encode(params, input_ids, attention_mask):
        return params[input_ids] * attention_mask[..., None]

    params = rows(16)
    for length in (7, 12):
        ids = np.zeros((1, 16 if cured else length), np.int32)
        if length == 12:
            yield
        encode(params, ids, np.ones_like(ids))


@cause("dtype", "params['w']", source="huggingface/diffusers#1096")
def parameters_swapped_for_those_in_half_precision(cured):
    @jax.jit
    def denoise(params, latents, guidance):
        return latents - guidance * (latents @ params["w"])

    latents = jnp.ones((2, 4))
    params = {"w": jnp.ones((4, 4))}
    denoise(params, latents, np.float32(7.5))
    half = {"w": params["w"].astype(jnp.bfloat16)}
    yield
    denoise(params if cured else half, latents, np.float32(7.5))


@cause("dtype", "x", source="jax-ml/jax#4274")
def a_count_made_with_arange_of_an_int(cured):
    total = jax.jit(lambda x: x.sum())
    total(jnp.ones(4))
    other = jnp.arange(4.0) if cured else jnp.arange(4)
    yield
    total(other)
