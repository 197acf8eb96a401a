"""Sizes and ranks."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tests.corpus_recompiles.causes import cause
from tests.corpus_recompiles.models import batch, fresh, predict, rows, update, weights


@cause("shape", "batch['x'].shape[0]", "batch['y'].shape[0]")
def last_batch_of_an_epoch(cured):
    step = jax.jit(fresh(update))
    params = weights(4, 16, 2)
    for _ in range(3):
        params = step(params, batch(8))
    yield
    step(params, batch(8 if cured else 5))


@cause("shape", "cache['k'].shape[1]", "cache['v'].shape[1]")
def generation_with_a_growing_cache(cured):
    @jax.jit
    def decode(cache, token, position):
        key = jnp.full((1, 1, 4), token, jnp.float32)
        if cured:
            return jax.tree.map(lambda c: jax.lax.dynamic_update_slice(c, key, (0, position, 0)), cache)
        return jax.tree.map(lambda c: jnp.concatenate([c, key], axis=1), cache)

    cache = {
        "k": np.zeros((1, 16 if cured else 3, 4), np.float32),
        "v": np.zeros((1, 16 if cured else 3, 4), np.float32),
    }
    for position in range(3):
        cache = decode(cache, np.int32(7), np.int32(position))
    yield
    decode(cache, np.int32(7), np.int32(3))


@cause("shape", "tokens.shape[1]")
def each_prompt_has_a_length_of_its_own(cured):
    @jax.jit
    def embed(table, tokens):
        return table[tokens].sum(axis=1)

    table = rows(32, 4)
    for length in (7, 12, 9):
        embed(table, np.zeros((1, 16 if cured else length), np.int32))
    yield
    embed(table, np.zeros((1, 16 if cured else 11), np.int32))


@cause("shape", "kept.shape[0]")
def rows_chosen_by_a_mask(cured):
    @jax.jit
    def mean(kept):
        return kept.mean(axis=0)

    x = rows(8)
    mean(np.where(x > 10, x, 0) if cured else x[x[:, 0] > 10])
    yield
    mean(np.where(x > 20, x, 0) if cured else x[x[:, 0] > 20])


@cause("shape", "ids.shape[0]")
def unique_ids_of_each_batch(cured):
    @jax.jit
    def gather(table, ids):
        return table[ids]

    def ids(*found):
        unique = np.unique(np.array(found, np.int32))
        return np.resize(unique, 8) if cured else unique

    table = rows(16)
    gather(table, ids(1, 2, 2, 3))
    yield
    gather(table, ids(4, 5, 6, 7, 8))


@cause("shape", "observations.shape[0]", "actions.shape[0]")
def replay_buffer_that_fills_up(cured):
    @jax.jit
    def value(observations, actions):
        return (observations.sum(axis=1) * actions).mean()

    def buffer(filled):
        size = 16 if cured else filled
        return rows(size), np.ones(size, np.float32)

    for filled in (2, 3, 4):
        value(*buffer(filled))
    yield
    value(*buffer(5))


@cause("shape", "images.shape[1]", "images.shape[2]")
def images_of_another_resolution(cured):
    @jax.jit
    def pooled(images):
        return images.mean(axis=(1, 2))

    pooled(np.ones((2, 8, 8, 3), np.float32))
    yield
    pooled(np.ones((2, 8, 8, 3) if cured else (2, 12, 12, 3), np.float32))


@cause("shape", *(f"batch['f{i:02}'].shape[0]" for i in range(40)))
def forty_columns_of_one_table(cured):
    @jax.jit
    def summed(batch, scale):
        return sum(column.sum() for column in batch.values()) * scale

    def table(rows):
        return {f"f{i:02}": np.ones((rows, i + 1), np.float32) for i in range(40)}

    summed(table(32), np.float32(1))
    yield
    summed(table(32 if cured else 33), np.float32(1))


@cause("shape", "params['layer0']['w'].shape[1]", "params['layer0']['b'].shape[0]", "params['layer1']['w'].shape[0]")
def sweep_over_the_width_of_a_layer(cured):
    apply = jax.jit(fresh(predict))
    apply(weights(4, 16, 2), rows(8))
    yield
    apply(weights(4, 16 if cured else 32, 2), rows(8))


@cause("shape", "window.shape[0]")
def window_at_the_start_of_a_series(cured):
    @jax.jit
    def smoothed(window):
        return window.mean()

    series = rows(32, 1)[:, 0]
    for end in (2, 3):
        smoothed(np.pad(series[:end], (8 - end, 0)) if cured else series[:end])
    yield
    smoothed(np.pad(series[:4], (4, 0)) if cured else series[:4])


@cause("rank", "image.ndim")
def one_image_without_its_batch(cured):
    @jax.jit
    def brightness(image):
        return image.mean(axis=(-3, -2))

    brightness(np.ones((1, 8, 8, 3), np.float32))
    yield
    image = np.ones((8, 8, 3), np.float32)
    brightness(image[None] if cured else image)


@cause("rank", "scale.ndim")
def a_scale_that_became_an_array_of_one(cured):
    @jax.jit
    def scaled(x, scale):
        return x * scale

    scaled(rows(), np.float32(2))
    yield
    scale = np.array([2], np.float32)
    scaled(rows(), scale.reshape(()) if cured else scale)


@cause("rank", "momentum['layer0']['w'].ndim", "momentum['layer0']['b'].ndim")
def momentum_that_starts_as_a_number(cured):
    @jax.jit
    def step(params, momentum):
        momentum = jax.tree.map(lambda m, p: 0.9 * m + 0.1 * p, momentum, params)
        return jax.tree.map(lambda p, m: p - m, params, momentum), momentum

    params = weights(4, 2)
    momentum = jax.tree.map(np.zeros_like, params) if cured else jax.tree.map(lambda p: np.float32(0), params)
    params, momentum = step(params, momentum)
    yield
    step(params, momentum)


@cause("shape", "x.shape[0]", "y.shape[0]")
def an_eager_operation_on_another_size(cured):
    small, large = jax.device_put(rows(8)), jax.device_put(rows(8 if cured else 9))
    jax.block_until_ready(jnp.add(small, small))
    yield
    jnp.add(large, large)


@cause("shape", "graph.nodes.shape[0]")
def graphs_of_different_numbers_of_nodes(cured):
    class Graph(NamedTuple):
        nodes: np.ndarray
        edges: np.ndarray

    @jax.jit
    def messages(graph):
        return jax.ops.segment_sum(graph.nodes[graph.edges[0]], graph.edges[1], graph.nodes.shape[0])

    edges = np.zeros((2, 4), np.int32)
    messages(Graph(rows(16 if cured else 6), edges))
    yield
    messages(Graph(rows(16 if cured else 9), edges))
