"""A padded program gives what the function gives, whatever lies in the padding; or says all that prevents it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorer.padding import padded, prove
from explorer.padding.sizes import Refused
from tests.support.padding import assert_close, check, refusals, traced

X = (("b", "s", 8), np.float64)
MATRIX = (("b", "s"), np.float64)
MASK = (("b", "s"), np.bool_)

EXACT = {
    "element-wise": (lambda x: jnp.sin(x) * 2 + jnp.where(x > 0, x, -1), X),
    "integer powers": (lambda x: (x**3).sum(1), X),
    "sum": (lambda x: x.sum(0), X),
    "mean of all": (lambda x: x.mean(), X),
    "variance": (lambda x: x.var(1), X),
    "product": (lambda x: x.prod(1), X),
    "minimum": (lambda x: x.min((0, 1)), X),
    "any and all": (lambda m: (m.any(1), m.all(0)), MASK),
    "softmax": (lambda x: jax.nn.softmax(x, 1), X),
    "gradient of softmax": (jax.grad(lambda x: (jax.nn.softmax(x, 1) ** 2).sum()), X),
    "log-sum-exp": (lambda x: jax.nn.logsumexp(x, (0, 1)), X),
    "gelu": (jax.nn.gelu, X),
    "attention": (lambda x: jax.nn.dot_product_attention(*[x[:, :, None]] * 3), X),
    "layer norm over a padded axis": (lambda x: (x - x.mean(1, keepdims=True)) / jnp.sqrt(x.var(1, keepdims=True)), X),
    "cumulative sum": (lambda x: jnp.cumsum(x, 1), X),
    "place of the largest": (lambda x: x.argmax(1), X),
    "concatenation": (lambda x: jnp.concatenate([x, 2 * x, jax.lax.slice_in_dim(x, 0, 1, axis=1)], 1), X),
    "stack": (lambda x: jnp.stack([x, x + 1], 1), X),
    "padding": (lambda x: jnp.pad(x, ((0, 0), (2, 3), (0, 0)), constant_values=7), X),
    "tile": (lambda x: jnp.tile(x, (1, 3, 1)), X),
    "repeat": (lambda x: jnp.repeat(x, 3, 1), X),
    "causal mask": (lambda x: jnp.tril(jnp.ones((x.shape[1], x.shape[1]))) @ x, X),
    "remat": (jax.grad(lambda x: jax.checkpoint(lambda y: jnp.sin(jnp.sin(y)).mean())(x)), X),
    "sizes as numbers": (lambda x: jnp.arange(x.shape[1]) * x.shape[0], MATRIX),
}


@pytest.mark.parametrize("name", EXACT)
def test_it_gives_what_the_function_gives(name):
    check(*EXACT[name])


SHRINKING = {
    "rolled": (lambda x: (jnp.roll(x, 1, 1), jnp.roll(x, -2, 0), jnp.roll(x, x.shape[1] // 2, 1)), X),
    "to a fixed length": (lambda x: jnp.concatenate([x, jnp.ones((x.shape[0], 64 - x.shape[1], 8))], 1).cumsum(1), X),
    "padded behind": (lambda x: jnp.pad(x, ((0, 0), (0, 64 - x.shape[1]), (0, 0))), X),
    "padded in front": (lambda x: jnp.pad(x, ((0, 0), (64 - x.shape[1], 0), (0, 0)), constant_values=3), X),
    "summed": (lambda x: jnp.ones(64 - x.shape[0]).sum() + x.sum(), X),
}


@pytest.mark.parametrize("name", SHRINKING)
def test_sizes_may_shrink_where_there_is_room_for_the_largest(name):
    check(*SHRINKING[name])


MERGED = {
    "taken apart again": (lambda x: (jnp.tanh(x.reshape(-1, 8)) @ jnp.ones((8, 3))).reshape(*x.shape[:2], 3).sum(1), 0),
    "reduced": (lambda x: jax.nn.softmax(x.reshape(-1, 8), 0).sum(0), 0),
    "heads": (lambda x: x.reshape(*x.shape[:2], 2, 4).swapaxes(1, 2).reshape(-1, x.shape[1], 4).sum(1), 0),
    "returned": (lambda x: x.reshape(-1, 8), 1),
    "in another order": (lambda x: jax.lax.reshape(x, (x.shape[0] * x.shape[1] * 8,), (1, 0, 2)).sum(), 0),
    "against an axis in one piece": (lambda x: x.reshape(-1, 8) + jnp.arange(x.shape[0] * x.shape[1])[:, None], 2),
    "place of the largest of all": (lambda x: x.argmax(), 1),
    "cumulative": (lambda x: jnp.cumsum(x.reshape(-1, 8), 0), 1),
}


@pytest.mark.parametrize("name", MERGED)
def test_merged_axes_stay_apart_and_elements_move_only_where_they_must(name):
    function, relayouts = MERGED[name]
    assert check(function, X).relayouts == relayouts


def test_what_is_masked_once_isnt_masked_again():
    def function(x):
        y = jnp.cos(x)
        return y.sum(1), y.mean(1), y.sum((0, 1))

    assert check(function, X).masks == 2


def test_what_goes_in_is_filled_with_what_its_first_mask_would_write_and_isnt_masked():
    for function, fill, masks in (
        (lambda x: x.sum(0), 0, 0),
        (lambda x: jax.nn.softmax(x, 1), -np.inf, 0),
        (lambda x: (x.max(1), x.sum(1)), -np.inf, 1),
        (lambda x: jnp.cos(x).max(1), 0, 1),
    ):
        with jax.enable_x64(True):
            closed = traced(function, [MATRIX])
            proof = prove(closed, ["b", "s"])
            assert (proof.fills, proof.masks) == ((fill,), masks)
            x = np.random.default_rng(0).normal(size=(3, 4))
            held = np.full((5, 7), fill, float)
            held[:3, :4] = x
            sizes = {"b": np.int32(3), "s": np.int32(4)}
            given = jax.jit(padded(closed, {"b": 5, "s": 7}, fills=proof.fills))(sizes, held)
            for result, wanted in zip(given, jax.tree.leaves(function(jnp.asarray(x))), strict=True):
                assert_close(result, wanted, f"{fill}")


def test_every_equation_that_prevents_it_is_named_with_its_line():
    def function(x):
        first = jax.lax.reduce(x, np.float32(0), lambda a, b: a + b * 1, (0,))
        return first, jax.lax.reduce(x, np.float32(0), lambda a, b: a - b, (1,))

    found = refusals(function, (("b", "s"), np.float32))
    first_line = function.__code__.co_firstlineno
    assert [(r.primitive, r.line, r.file) for r in found] == [
        ("reduce", first_line + 1, __file__),
        ("reduce", first_line + 2, __file__),
    ]
    assert "without a known neutral element" in found[0].reason
    assert found[0].hint


def test_what_prevents_it_inside_of_a_library_function_is_where_that_is_called():
    def function(x):
        return jnp.fft.fft(x, axis=0) + jnp.fft.fft(2 * x, axis=0)

    lines = [r.line for r in refusals(function, (("b", 4), np.float32))]
    assert lines == [function.__code__.co_firstlineno + 1] * 2


@pytest.mark.timeout(60)
def test_garbage_makes_no_iteration_last():
    check(lambda x: jax.scipy.special.gammainc(jnp.abs(x), jnp.abs(x)), (("b", 3), np.float64))


def test_a_primitive_without_a_rule_is_refused():
    (refusal,) = refusals(lambda x: jax.pure_callback(np.sin, x, x), (("b",), np.float32))
    assert "no rule" in refusal.reason


def test_a_program_that_isnt_exact_isnt_made():
    closed = traced(lambda x: jax.pure_callback(np.sin, x, x), [(("b",), np.float32)], ("b",))
    with pytest.raises(Refused, match="no rule"):
        jax.jit(padded(closed, {"b": 4}))({"b": np.int32(2)}, np.zeros(4, np.float32))


def test_a_size_that_shrinks_as_another_grows_is_refused_where_shapes_must_add_up():
    (refusal, *_) = refusals(lambda x: jnp.ones((64 - x.shape[0], 2)).reshape(-1), (("b",), np.float32))
    assert "may get smaller as b grows" in refusal.reason


def test_what_was_proven_is_counted():
    proof = prove(traced(lambda x: jnp.cos(x).sum(), [(("b",), np.float32)], ("b",)), ["b"])
    assert (proof.rules, proof.masks, proof.axes, proof.is_exact) == ({"cos": 1, "reduce_sum": 1}, 1, ("b",), True)


def test_what_is_the_same_all_along_is_masked_without_harm_to_who_reads_it_next():
    def function(x):
        row = jnp.broadcast_to(x[0, 0], (x.size,))
        return row.sum(), (row + x.reshape(-1)).sum(), (jnp.zeros(x.size).at[0].add(1.0) + x.reshape(-1)).sum()

    check(function, MATRIX)


def test_sizes_of_a_dimension_that_is_never_small_are_proven_within_its_bounds():
    closed = traced(lambda x: x[:50].sum(), [(("b + 49",), np.float32)], ("b",))
    assert prove(closed, ["b"]).is_exact
    (size,) = jax.export.symbolic_shape("n", constraints=["n >= 50", "n <= 55"])
    closed = jax.jit(lambda x: x[:50].sum()).trace(jax.ShapeDtypeStruct((size,), np.float32)).jaxpr
    assert prove(closed, ["n"]).is_exact


def test_a_mask_of_infinities_is_added_where_padding_is_known_to_be_finite():
    def function(x):
        return jax.nn.softmax(x * x, 1), (x * x).min((0, 1)), jnp.where(x > 1, -0.0, x * 0.5).max(0)

    check(function, MATRIX)
    with jax.enable_x64(True):
        closed = traced(function, [MATRIX])
        program = padded(closed, {"b": 5, "s": 7}, fills=[0])
        held = np.zeros((5, 7))
        held[:3, :4] = x = np.random.default_rng(0).choice([np.nan, np.inf, -np.inf, 1.0, -0.0, 0.0], (3, 4))
        sizes = {"b": np.int32(3), "s": np.int32(4)}
        given = jax.jit(program)(sizes, held)
        assert "add" in str(jax.make_jaxpr(program)(sizes, held))
        for result, wanted in zip(given, jax.tree.leaves(function(jnp.asarray(x))), strict=True):
            assert_close(result, wanted, "with infinities and NaN")
