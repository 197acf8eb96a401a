"""Programs in which something is replicated that nobody meant; the line is marked."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from tests.corpus_sharding.programs import Program, array, keep, mesh_of, norm

PLANTED: list[Program] = []


def planted(rule: str, marker: str = "HERE") -> Any:
    def add(make: Any) -> Any:
        PLANTED.append(Program(make.__name__, make, rule, marker))
        return make

    return add


@planted("gathered-operand")
def both_weights_by_column():
    mesh = mesh_of(data=4, model=2)

    def mlp(x, up, down):
        h = jax.nn.relu(x @ up)
        return h @ down  # HERE

    up, down = array(mesh, (512, 4096), None, "model"), array(mesh, (4096, 512), None, "model")
    return mlp, array(mesh, (4096, 512), "data"), up, down


@planted("gathered-operand")
def batch_folded_behind_the_sequence():
    mesh = mesh_of(data=8)

    def project(x, w):
        tokens = jnp.tanh(x).transpose(1, 0, 2).reshape(-1, 512)  # HERE
        return (tokens @ w).sum()

    return project, array(mesh, (64, 128, 512), "data"), array(mesh, (512, 512))


@planted("gathered-operand")
def top_k_of_a_split_vocabulary():
    mesh = mesh_of(data=4, model=2)

    def sample(x, head):
        logits = x @ head
        return jax.lax.top_k(logits, 8)  # HERE

    return sample, array(mesh, (256, 512), "data"), array(mesh, (512, 32768), None, "model")


@planted("gathered-operand")
def running_sum_along_a_split_sequence():
    mesh = mesh_of(seq=8)

    def positions(x, w):
        return (jnp.cumsum(jnp.sin(x), axis=1) @ w) * 2  # HERE

    return positions, array(mesh, (8, 2048, 256), None, "seq"), array(mesh, (256, 64))


@planted("replicated-output")
def output_flattened_across_the_split():
    mesh = mesh_of(data=8)

    def flat(x):
        return jnp.sin(x).T.reshape(-1)  # HERE

    return flat, array(mesh, (1024, 512), "data")


@planted("replicated-output", "")
def state_made_by_zeros_like():
    mesh = mesh_of(data=8)

    def init(params):
        return jax.tree.map(jnp.zeros_like, params)

    return init, {"w": array(mesh, (1024, 512), "data"), "b": array(mesh, (512, 1024), None, "data")}


@planted("replicated-output")
def state_made_beside_a_step():
    mesh = mesh_of(data=8)

    def first_step(w, x):
        moments = jnp.zeros(w.shape)  # HERE
        return w - 0.1 * x, moments

    return first_step, array(mesh, (1024, 512), "data"), array(mesh, (1024, 512), "data")


@planted("replicated-argument", "def loss")
def batch_passed_whole_and_split_inside():
    mesh = mesh_of(data=8)

    def loss(x, w):
        x = keep(mesh, x, "data")
        return ((x @ w) ** 2).sum()

    return loss, array(mesh, (4096, 512)), array(mesh, (512, 64))


@planted("replicated-argument", "def loss")
def one_layer_without_fsdp():
    mesh = mesh_of(fsdp=8)

    def loss(params, x):
        for w in params:
            x = jax.nn.relu(x @ w)
        return x.sum()

    split, whole = array(mesh, (1024, 1024), "fsdp"), array(mesh, (1024, 1024))
    return jax.grad(loss), [split, split, whole, split], array(mesh, (256, 1024), "fsdp")


@planted("replicated-argument", "def forward")
def one_weight_without_tensor_parallelism():
    mesh = mesh_of(data=2, model=4)

    def forward(x, up, down, head):
        h = jax.nn.relu(x @ up) @ down
        return (norm(h) @ head).sum(-1)

    up, down = array(mesh, (512, 2048), None, "model"), array(mesh, (2048, 512), "model")
    return forward, array(mesh, (1024, 512), "data"), up, down, array(mesh, (512, 2048))


@planted("idle-axis", "")
def mesh_with_an_axis_for_nothing():
    mesh = mesh_of(data=4, model=2)

    def step(w, x):
        return w - 0.1 * jax.grad(lambda w: ((x @ w) ** 2).sum())(w)

    return step, array(mesh, (512, 1024)), array(mesh, (2048, 512), "data")


@planted("idle-axis", "")
def nothing_is_split_at_all():
    mesh = mesh_of(data=8)

    def forward(x, w):
        return jax.nn.relu(x @ w)

    return forward, array(mesh, (1024, 512)), array(mesh, (512, 512))


@planted("replicated-intermediate")
def table_sorted_whole_by_everybody():
    mesh = mesh_of(data=8)

    def scaled(x, table):
        order = jnp.sort(table)  # HERE
        return x * order.reshape(x.shape)

    return scaled, array(mesh, (1024, 512), "data"), array(mesh, (1024 * 512,))


@planted("gathered-operand")
def fourier_transform_along_the_split():
    mesh = mesh_of(data=8)

    def spectrum(x):
        return jnp.abs(jnp.fft.fft(x, axis=0))[:4]  # HERE

    return spectrum, array(mesh, (1024, 512), "data")


@planted("gathered-operand")
def scan_over_a_split_axis():
    mesh = mesh_of(data=8)

    def rnn(x, w):
        def cell(h, row):
            h = jnp.tanh(row + h @ w)
            return h, None

        return jax.lax.scan(cell, jnp.zeros(x.shape[1:]), x)[0]  # HERE

    return rnn, array(mesh, (512, 16, 256), "data"), array(mesh, (256, 256))


@planted("gathered-operand")
def triangle_solved_along_the_split():
    mesh = mesh_of(data=8)

    def solve(factor, x):
        return jax.scipy.linalg.solve_triangular(factor, jnp.exp(x), lower=True).sum()  # HERE

    return solve, array(mesh, (1024, 1024)), array(mesh, (1024, 512), "data")


@planted("gathered-operand")
def factorised_matrix_that_was_split():
    mesh = mesh_of(data=8)

    def whiten(x):
        return jnp.linalg.qr(x * 2.0)[1]  # HERE

    return whiten, array(mesh, (1024, 512), "data")


@planted("gathered-operand")
def loss_of_shuffled_rows():
    mesh = mesh_of(data=8)

    def loss(x, w):
        pairs = jnp.tanh(x).reshape(2, -1, 512)
        rows = pairs.transpose(1, 0, 2).reshape(-1, 512)[::-1]
        mixed = rows.reshape(4, 512, 512).swapaxes(0, 1).reshape(-1, 512)  # HERE
        return ((mixed @ w) ** 2).sum()

    return loss, array(mesh, (2048, 512), "data"), array(mesh, (512, 512))


@planted("gathered-operand")
def slice_at_a_place_that_is_computed():
    mesh = mesh_of(data=8)

    def window(x, start, w):
        part = jax.lax.dynamic_slice_in_dim(jnp.sin(x), start, 512)  # HERE
        return part @ w

    return window, array(mesh, (4096, 512), "data"), array(mesh, (), dtype=jnp.int32), array(mesh, (512, 512))


@planted("gathered-operand")
def cache_written_along_a_split_sequence():
    mesh = mesh_of(seq=8)

    def decode(cache, fresh, at, w):
        cache = jax.lax.dynamic_update_slice(cache * 1.5, fresh, (at, 0))  # HERE
        return jax.nn.softmax(cache @ w, axis=0)

    scalar = array(mesh, (), dtype=jnp.int32)
    return decode, array(mesh, (4096, 256), "seq"), array(mesh, (64, 256)), scalar, array(mesh, (256, 16))


@planted("sum-in-loop")
def gradients_summed_in_each_microbatch():
    mesh = mesh_of(data=8)

    def step(w, batches):
        def accumulate(total, x):
            gradient = jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w)))(w)  # HERE
            return total + keep(mesh, gradient, None, None), None

        return jax.lax.scan(accumulate, jnp.zeros_like(w), batches)[0]

    return step, array(mesh, (512, 1024)), array(mesh, (4, 64, 512), None, "data")


@planted("sum-in-loop")
def psum_in_a_scan():
    mesh = mesh_of(data=8)
    spec = jax.sharding.PartitionSpec

    def covariance(batches):
        def local(batches):
            def add(total, x):
                return total + jax.lax.psum(x.T @ x, "data") / 8, None  # HERE

            return jax.lax.scan(add, jnp.zeros((768, 768)), batches)[0]

        return jax.shard_map(local, mesh=mesh, in_specs=spec(None, "data"), out_specs=spec(), check_vma=False)(batches)

    return covariance, array(mesh, (4, 64, 768), None, "data")


@planted("resharding-back")
def moved_for_an_elementwise_function():
    mesh = mesh_of(data=4, model=2)

    def f(x):
        y = keep(mesh, jnp.sin(x), None, "data")  # HERE
        return keep(mesh, jnp.cos(y * 2), "data", None)

    return f, array(mesh, (1024, 512), "data")


@planted("replicated-output", "")
def result_requested_whole():
    mesh = mesh_of(data=8)
    whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    return jax.jit(lambda x: jnp.sin(x) * 2, out_shardings=whole), array(mesh, (4096, 512), "data")
