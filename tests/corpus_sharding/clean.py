"""Sharded programs as they should be: what each gathers, it needs; what each repeats, is small or asked for."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, NamedSharding

from tests.corpus_sharding.programs import P, Program, array, keep, mesh_of, norm

CLEAN: list[Program] = []
BATCH, SEQ, WIDTH, HIDDEN, HEADS, VOCAB = 16, 256, 512, 2048, 8, 8192


def clean(make: Any) -> Any:
    CLEAN.append(Program(make.__name__, make))
    return make


def sgd(loss: Any) -> Any:
    def step(params, *batch):
        value, grads = jax.value_and_grad(loss)(params, *batch)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), value

    return step


def adam(loss: Any) -> Any:
    def step(params, state, *batch):
        value, grads = jax.value_and_grad(loss)(params, *batch)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state[0], grads)
        second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, state[1], grads)
        params = jax.tree.map(lambda p, m, v: p - 0.01 * m / (jnp.sqrt(v) + 1e-8), params, first, second)
        return params, (first, second), value

    return step


def mlp_loss(params, x, y):
    for up, down in params:
        x = x + jax.nn.gelu(norm(x) @ up) @ down
    return ((x - y) ** 2).mean()


def attention(x, weights, keep_heads=lambda v: v, mask=None):
    q, k, v = (keep_heads((x @ weights[n]).reshape(*x.shape[:2], HEADS, -1)) for n in "qkv")
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8.0
    scores = scores if mask is None else jnp.where(mask, scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)
    return mixed.reshape(*x.shape[:2], -1) @ weights["o"]


def block(x, weights, keep_heads=lambda v: v, mask=None):
    x = x + attention(norm(x), weights, keep_heads, mask)
    return x + jax.nn.gelu(norm(x) @ weights["up"]) @ weights["down"]


def block_weights(mesh, column=(None, "model"), row=("model", None), stack=()):
    def weight(shape, spec):
        return array(mesh, (*stack, *shape), *(None,) * len(stack), *spec)

    return {
        **{name: weight((WIDTH, WIDTH), column) for name in "qkv"},
        "o": weight((WIDTH, WIDTH), row),
        "up": weight((WIDTH, HIDDEN), column),
        "down": weight((HIDDEN, WIDTH), row),
    }


@clean
def data_parallel_sgd():
    mesh = mesh_of(data=8)
    layer = array(mesh, (WIDTH, HIDDEN)), array(mesh, (HIDDEN, WIDTH))
    x = array(mesh, (1024, WIDTH), "data")
    return sgd(mlp_loss), [layer, layer], x, x


@clean
def data_parallel_adam_under_shard_map():
    mesh = mesh_of(data=8)

    def step(params, state, x, y):
        def loss(params):
            return lax.pmean(mlp_loss(params, x, y), "data")

        return adam(lambda params: loss(params))(params, state)

    mapped = jax.shard_map(step, mesh=mesh, in_specs=(P(), P(), P("data"), P("data")), out_specs=P(), check_vma=False)
    layer = array(mesh, (WIDTH, HIDDEN)), array(mesh, (HIDDEN, WIDTH))
    x = array(mesh, (1024, WIDTH), "data")
    return mapped, [layer], ([layer], [layer]), x, x


@clean
def tensor_parallel_mlp():
    mesh = mesh_of(data=2, model=4)
    layer = array(mesh, (WIDTH, HIDDEN), None, "model"), array(mesh, (HIDDEN, WIDTH), "model")
    x = array(mesh, (1024, WIDTH), "data")
    return sgd(mlp_loss), [layer, layer], x, x


@clean
def tensor_parallel_block():
    mesh = mesh_of(data=2, model=4)

    def loss(weights, x):
        return (block(x, weights, lambda v: keep(mesh, v, "data", None, "model")) ** 2).mean()

    return sgd(loss), block_weights(mesh), array(mesh, (BATCH, SEQ, WIDTH), "data")


@clean
def tensor_parallel_in_explicit_mode():
    mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)

    def forward(x, up, down):
        h = jax.nn.relu(jnp.einsum("bd,df->bf", x, up))
        return jnp.einsum("bf,fd->bd", h, down, out_sharding=NamedSharding(mesh, P("data", None)))

    x = array(mesh, (4096, WIDTH), "data", None)
    return forward, x, array(mesh, (WIDTH, HIDDEN), None, "model"), array(mesh, (HIDDEN, WIDTH), "model", None)


@clean
def fsdp_adam():
    mesh = mesh_of(fsdp=8)
    layer = array(mesh, (WIDTH, HIDDEN), "fsdp"), array(mesh, (HIDDEN, WIDTH), "fsdp")
    x = array(mesh, (2048, WIDTH), "fsdp")
    return adam(mlp_loss), [layer, layer], ([layer, layer], [layer, layer]), x, x


@clean
def fsdp_scan_over_layers_with_remat():
    mesh = mesh_of(fsdp=8)

    def loss(weights, x):
        def body(x, layer):
            layer = jax.tree.map(lambda w: keep(mesh, w), layer)
            return keep(mesh, block(x, layer), "fsdp"), None

        return (lax.scan(jax.checkpoint(body), x, weights)[0] ** 2).mean()

    weights = block_weights(mesh, ("fsdp", None), ("fsdp", None), stack=(4,))
    return sgd(loss), weights, array(mesh, (BATCH, SEQ, WIDTH), "fsdp")


@clean
def fsdp_and_tensor_parallel_block():
    mesh = mesh_of(fsdp=4, model=2)

    def loss(weights, x):
        x = block(x, weights, lambda v: keep(mesh, v, "fsdp", None, "model"))
        return (keep(mesh, x, "fsdp") ** 2).mean()

    return (
        sgd(loss),
        block_weights(mesh, ("fsdp", "model"), ("model", "fsdp")),
        array(mesh, (BATCH, SEQ, WIDTH), "fsdp"),
    )


@clean
def replicas_of_fsdp():
    mesh = mesh_of(replica=2, fsdp=4)
    layer = array(mesh, (WIDTH, HIDDEN), "fsdp"), array(mesh, (HIDDEN, WIDTH), "fsdp")
    x = array(mesh, (2048, WIDTH), ("replica", "fsdp"))
    return sgd(mlp_loss), [layer, layer], x, x


@clean
def data_fsdp_and_tensor():
    mesh = mesh_of(data=2, fsdp=2, model=2)

    def loss(weights, x):
        x = block(x, weights, lambda v: keep(mesh, v, ("data", "fsdp"), None, "model"))
        return (keep(mesh, x, ("data", "fsdp")) ** 2).mean()

    weights = block_weights(mesh, ("fsdp", "model"), ("model", "fsdp"))
    return sgd(loss), weights, array(mesh, (BATCH, SEQ, WIDTH), ("data", "fsdp"))


@clean
def optimiser_state_alone_is_split():
    mesh = mesh_of(data=8)
    whole, split = (NamedSharding(mesh, spec) for spec in (P(), P("data")))

    def step(params, state, x, y):
        grads = jax.grad(lambda p: ((jax.nn.relu(x @ p) - y) ** 2).mean())(params)
        state = 0.9 * state + lax.with_sharding_constraint(grads, split)
        return lax.with_sharding_constraint(params - 0.01 * state, whole), state

    jitted = jax.jit(step, out_shardings=(whole, split))
    weight, x = array(mesh, (WIDTH, HIDDEN)), array(mesh, (1024, WIDTH), "data")
    return jitted, weight, array(mesh, (WIDTH, HIDDEN), "data"), x, array(mesh, (1024, HIDDEN), "data")


@clean
def sequence_split_between_products():
    mesh = mesh_of(data=2, model=4)

    def loss(weights, x):
        x = keep(mesh, x, "data", "model")
        x = block(x, weights, lambda v: keep(mesh, v, "data", None, "model"))
        return (keep(mesh, x, "data", "model") ** 2).mean()

    return sgd(loss), block_weights(mesh), array(mesh, (BATCH, SEQ, WIDTH), "data", "model")


@clean
def context_parallel_by_the_compiler():
    mesh = mesh_of(data=2, context=4)

    def loss(weights, x):
        mask = jnp.tril(jnp.ones((1024, 1024), bool))
        x = block(x, weights, lambda v: keep(mesh, v, "data", "context"), mask)
        return (keep(mesh, x, "data", "context") ** 2).mean()

    weights = block_weights(mesh, (None, None), (None, None))
    return sgd(loss), weights, array(mesh, (4, 1024, WIDTH), "data", "context")


@clean
def ring_attention():
    mesh = mesh_of(ring=8)

    def local(q, k, v):
        def turn(_, carry):
            k, v, top, total, out = carry
            scores = jnp.einsum("bqd,bkd->bqk", q, k)
            new = jnp.maximum(top, scores.max(-1, keepdims=True))
            weight, old = jnp.exp(scores - new), jnp.exp(top - new)
            out, total = out * old + jnp.einsum("bqk,bkd->bqd", weight, v), total * old + weight.sum(-1, keepdims=True)
            send = partial(lax.ppermute, axis_name="ring", perm=[(i, (i + 1) % 8) for i in range(8)])
            return send(k), send(v), new, total, out

        zero = jnp.zeros_like(q[..., :1])
        return (lambda c: c[4] / c[3])(lax.fori_loop(0, 8, turn, (k, v, zero - jnp.inf, zero, jnp.zeros_like(q))))

    ring = P(None, "ring")
    mapped = jax.shard_map(local, mesh=mesh, in_specs=(ring,) * 3, out_specs=ring, check_vma=False)
    return mapped, *(array(mesh, (2, 4096, 256), None, "ring") for _ in range(3))


@clean
def pipeline_of_stages():
    mesh = mesh_of(stage=8)

    def local(weights, batches):
        stage, weights = lax.axis_index("stage"), weights[0]

        def tick(carry, at):
            inside, out = carry
            fresh = lax.dynamic_index_in_dim(batches, jnp.minimum(at, 7), keepdims=False)
            inside = jax.nn.relu(jnp.where(stage == 0, fresh, inside) @ weights)
            out = lax.dynamic_update_index_in_dim(out, inside, jnp.maximum(at - 7, 0), 0)
            return (lax.ppermute(inside, "stage", [(i, (i + 1) % 8) for i in range(8)]), out), None

        start = jnp.zeros(batches.shape[1:]), jnp.zeros_like(batches)
        (_, out), _ = lax.scan(tick, start, jnp.arange(15))
        return out[None]

    mapped = jax.shard_map(local, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P("stage"), check_vma=False)
    return mapped, array(mesh, (8, WIDTH, WIDTH), "stage"), array(mesh, (8, 128, WIDTH))


@clean
def experts_by_all_to_all():
    mesh = mesh_of(expert=8)

    def local(x, gate, up, down):
        tokens, experts = x.shape[0], 8
        capacity = 2 * tokens // experts
        probabilities = jax.nn.softmax(x @ gate)
        choice = jax.nn.one_hot(probabilities.argmax(-1), experts)
        place = (jnp.cumsum(choice, 0) - 1) * choice
        slot = jax.nn.one_hot(place.sum(-1).astype(int), capacity)
        dispatch = choice[:, :, None] * slot[:, None, :]
        sent = lax.all_to_all(jnp.einsum("tec,td->ecd", dispatch, x), "expert", 0, 1, tiled=True)
        done = jax.nn.relu(sent[0] @ up[0]) @ down[0]
        back = lax.all_to_all(done[None], "expert", 1, 0, tiled=True)
        return jnp.einsum("tec,ecd->td", dispatch * probabilities[:, :, None], back)

    e = P("expert")
    mapped = jax.shard_map(local, mesh=mesh, in_specs=(e, P(), e, e), out_specs=e, check_vma=False)
    up, down = array(mesh, (8, WIDTH, HIDDEN), "expert"), array(mesh, (8, HIDDEN, WIDTH), "expert")
    return mapped, array(mesh, (4096, WIDTH), "expert"), array(mesh, (WIDTH, 8)), up, down


@clean
def experts_by_constraints():
    mesh = mesh_of(data=2, expert=4)

    def layer(x, gate, up, down):
        probabilities = jax.nn.softmax(jnp.einsum("gtd,de->gte", x, gate))
        choice = jax.nn.one_hot(probabilities.argmax(-1), 4)
        slot = jax.nn.one_hot(((jnp.cumsum(choice, 1) - 1) * choice).sum(-1).astype(int), 64)
        dispatch = jnp.einsum("gte,gtc->gtec", choice, slot)
        inside = keep(mesh, jnp.einsum("gtec,gtd->egcd", dispatch, x), "expert", "data")
        h = jax.nn.relu(jnp.einsum("egcd,edf->egcf", inside, up))
        out = keep(mesh, jnp.einsum("egcf,efd->egcd", h, down), "expert", "data")
        return keep(mesh, jnp.einsum("gtec,egcd->gtd", dispatch, out), "data")

    up, down = array(mesh, (4, WIDTH, HIDDEN), "expert"), array(mesh, (4, HIDDEN, WIDTH), "expert")
    return layer, array(mesh, (16, 128, WIDTH), ("data", "expert")), array(mesh, (WIDTH, 4)), up, down


@clean
def vocabulary_split_loss():
    mesh = mesh_of(data=2, model=4)

    def loss(weights, tokens, targets):
        x = jax.nn.one_hot(tokens, VOCAB) @ weights["embed"]
        logits = keep(mesh, norm(x) @ weights["embed"].T, "data", None, "model")
        shifted = logits - lax.stop_gradient(logits.max(-1, keepdims=True))
        picked = (shifted * jax.nn.one_hot(targets, VOCAB)).sum(-1)
        return (jnp.log(jnp.exp(shifted).sum(-1)) - picked).mean()

    tokens = array(mesh, (BATCH, 64), "data", dtype=jnp.int32)
    return sgd(loss), {"embed": array(mesh, (VOCAB, WIDTH), "model")}, tokens, tokens


@clean
def convolutions_of_a_split_batch():
    mesh = mesh_of(data=8)

    def loss(filters, images, labels):
        x = images
        for kernel in filters:
            x = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = jax.nn.relu((x - x.mean((0, 1, 2))) * lax.rsqrt(x.var((0, 1, 2)) + 1e-5))
        return -(jax.nn.log_softmax(x.mean((1, 2))) * labels).sum(-1).mean()

    filters = [array(mesh, (3, 3, 32, 64)), array(mesh, (3, 3, 64, 64))]
    return sgd(loss), filters, array(mesh, (64, 32, 32, 32), "data"), array(mesh, (64, 64), "data")


@clean
def decode_with_a_cache():
    mesh = mesh_of(data=2, model=4)

    def decode(weights, cache, x, at):
        heads = partial(keep, mesh)
        q, k, v = ((x @ weights[n]).reshape(BATCH, HEADS, 64) for n in "qkv")
        keys = lax.dynamic_update_slice(cache[0], heads(k, "data", "model")[:, None], (0, at, 0, 0))
        values = lax.dynamic_update_slice(cache[1], heads(v, "data", "model")[:, None], (0, at, 0, 0))
        scores = jax.nn.softmax(jnp.einsum("bhd,bkhd->bhk", q, keys))
        mixed = jnp.einsum("bhk,bkhd->bhd", scores, values).reshape(BATCH, -1)
        return mixed @ weights["o"], (keys, values)

    cache = array(mesh, (BATCH, 1024, HEADS, 64), "data", None, "model")
    weights = block_weights(mesh)
    return decode, weights, (cache, cache), array(mesh, (BATCH, WIDTH), "data"), array(mesh, (), dtype=jnp.int32)


@clean
def gradients_of_several_batches():
    mesh = mesh_of(fsdp=8)

    def step(params, batches):
        def add(total, batch):
            return jax.tree.map(jnp.add, total, jax.grad(mlp_loss)(params, batch, batch)), None

        grads, _ = lax.scan(add, jax.tree.map(lambda p: p * 0, params), batches)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads)

    layer = array(mesh, (WIDTH, HIDDEN), "fsdp"), array(mesh, (HIDDEN, WIDTH), None, "fsdp")
    return step, [layer, layer], array(mesh, (4, 512, WIDTH), None, "fsdp")


@clean
def low_rank_weights_beside_frozen_ones():
    mesh = mesh_of(data=4, model=2)

    def loss(small, frozen, x, y):
        for (a, b), (up, down) in zip(small, frozen, strict=True):
            x = x + jax.nn.relu(x @ up + (x @ a) @ b) @ down
        return ((x - y) ** 2).mean()

    frozen = array(mesh, (WIDTH, HIDDEN), None, "model"), array(mesh, (HIDDEN, WIDTH), "model")
    small = array(mesh, (WIDTH, 8)), array(mesh, (8, HIDDEN), None, "model")
    x = array(mesh, (1024, WIDTH), "data")
    return sgd(loss), [small, small], [frozen, frozen], x, x
