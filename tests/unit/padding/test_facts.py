"""What is known of the padding after each operation, with how many masks: by operation, whose padding went in as 0.

A fill that isn't known costs a mask, and one that isn't true a wrong result; so each is worked out by hand here, and
held against the numbers that are there.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from explorer.padding.interpreter import Interpreter, Tally, make_value
from explorer.padding.sizes import Sizes, is_symbolic
from tests.support.padding import check, traced

MATRIX = (("b", "s"), np.float64)
ROWS = (("b", 4), np.float64)
EVEN = (("b", "2*s"), np.float64)
LONG = (("b", "s+3"), np.float64)
INF = np.inf
ANY = None  # anything may lie there


def facts(function, spec):
    """Of each result what fills its padded axes; how many arrays are masked, and how many moved to other places."""
    with jax.enable_x64(True):
        return facts_of(traced(function, [spec]))


def facts_of(closed):
    tally = Tally(collects=False)
    known = []

    def walk(sizes, array):
        (aval,) = closed.in_avals
        value = make_value(array, aval, fills=[0 if is_symbolic(size) else None for size in aval.shape])
        results = Interpreter(Sizes({"b": 11, "s": 13}, sizes), tally).run(closed, [value])
        known.extend(tuple(result.fills[axis] for axis in result.padded_axes) for result in results)
        return [result.array for result in results]

    shape = Sizes({"b": 11, "s": 13}, {}).shape(closed.in_avals[0].shape)
    true = jax.ShapeDtypeStruct((), np.int32)
    jax.eval_shape(walk, {"b": true, "s": true}, jax.ShapeDtypeStruct(shape, np.float64))
    return known, tally.masks, tally.relayouts


def along_rows(x):
    """1 in the padding of the first axis, and the same all along the second."""
    return jnp.broadcast_to(lax.slice_in_dim(x, 0, 1, axis=1) + 1, x.shape)


def behind(x, number):
    """Two columns more in front and three behind."""
    return lax.pad(x, np.float64(number), ((0, 0, 0), (2, 3, 0)))


EACH = {
    "plus 1": (lambda x: x + 1, 1),
    "minus 1": (lambda x: x - 1, -1),
    "times 3": (lambda x: x * 3, 0),
    "plus 3, which rounding may change": (lambda x: x + 3, ANY),
    "negated": (lambda x: -(x + 1), -1),
    "without its sign": (lambda x: jnp.abs(x - 1), 1),
    "squared": (lambda x: lax.square(x - 1), 1),
    "at least 1": (lambda x: lax.max(x, jnp.ones_like(x)), 1),
    "at most -inf": (lambda x: lax.min(x, jnp.full_like(x, -INF)), -INF),
    ">": (lambda x: x > 0, False),
    ">=": (lambda x: x >= 0, True),
    "<": (lambda x: x < 0, False),
    "<=": (lambda x: x <= 0, True),
    "==": (lambda x: x == 0, True),
    "!=": (lambda x: x != 0, False),
    "not": (lambda x: ~(x > 0), True),
    "and": (lambda x: (x >= 0) & (x > 0), False),
    "or": (lambda x: (x >= 0) | (x > 0), True),
    "chosen where true": (lambda x: jnp.where(x >= 0, x, 7), 0),
    "chosen where false": (lambda x: lax.select(x > 0, x, jnp.full_like(x, 7)), 7),
    "either of equal ones": (lambda x: jnp.where(jnp.sin(x) > 0, x, 2 * x), 0),
    "either of two": (lambda x: jnp.where(jnp.sin(x) > 0, x, x + 1), ANY),
    "as integers": (lambda x: x.astype(np.int32), 0),
    "as booleans": (lambda x: (x + 1).astype(bool), True),
    "of another type, which rounding may change": (lambda x: (x - 1).astype(np.int32), ANY),
    "what compilers compute each in its way": (jnp.sin, ANY),
    "with garbage": (lambda x: x + jnp.sin(x), ANY),
    "without derivatives": (lax.stop_gradient, 0),
    "a number": (lambda x: jnp.full_like(x, 2), 2),
    "positions": (lambda x: lax.broadcasted_iota(np.int32, x.shape, 0), ANY),
}

MOVED = {
    "transposed": (lambda x: along_rows(x).T, [(ANY, 1)], 0, 0),
    "reversed": (lambda x: (lax.rev(x, (1,)), lax.rev(x, (0,))), [(0, ANY), (ANY, 0)], 0, 0),
    "a column": (lambda x: lax.squeeze(lax.slice_in_dim(x, 0, 1, axis=1), (1,)), [(0,)], 0, 0),
    "a new axis": (lambda x: x[:, None], [(0, 0)], 0, 0),
    "joined": (lambda x: jnp.concatenate([x, x], 1), [(0, ANY)], 0, 0),
    "joined with other fills": (lambda x: jnp.concatenate([x, x + 1], 1), [(ANY, ANY)], 0, 0),
    "joined behind what has no padding": (
        lambda x: jnp.concatenate([jnp.zeros((x.shape[0], 2)), x], 1), [(0, 0)], 0, 0),
    "joined behind ones": (lambda x: jnp.concatenate([jnp.ones((x.shape[0], 2)), x], 1), [(ANY, 0)], 0, 0),
    "padded with what is there": (lambda x: behind(x, 0), [(0, 0)], 0, 0),
    "padded with another number": (lambda x: behind(x, 7), [(ANY, 7)], 1, 0),
    "padded with what isn't known": (
        lambda x: lax.pad(x, x[0, 0], ((0, 0, 0), (0, 1, 0))), [(ANY, ANY)], 0, 0),
    "merged": (lambda x: x.reshape(-1), [(0,)], 0, 0),
    "merged with other fills": (lambda x: along_rows(x).reshape(-1), [(ANY,)], 0, 0),
    "merged and taken apart": (lambda x: (x.reshape(-1) + 1).reshape(x.shape), [(1, 1)], 0, 0),
    "merged numbers": (lambda x: jnp.full_like(x, 2).reshape(-1), [(2,)], 0, 0),
    "the other way round": (lambda x: x.reshape(x.shape[1], x.shape[0]), [(ANY, ANY)], 0, 1),
    "a row written": (lambda x: x.at[0].set(1.0), [(0, ANY)], 0, 0),
    "a column added to": (lambda x: x.at[:, 0].add(1.0), [(ANY, 0)], 0, 0),
    "a row written at a place": (
        lambda x: lax.dynamic_update_slice_in_dim(x, x[:1] + 1, x[0, 0].astype(int), 0), [(0, ANY)], 0, 0),
    "a row read at a place": (lambda x: lax.dynamic_slice_in_dim(x, x[0, 0].astype(int), 1, 0), [(0,)], 0, 0),
    "summed, over rows": (lambda x: x.sum(1), [(0,)], 0, 0),
    "summed, over all": (lambda x: x.sum(), [()], 0, 0),
    "the largest, which masks": (lambda x: x.max(1), [(ANY,)], 1, 0),
    "the smallest": (lambda x: x.min(1), [(ANY,)], 1, 0),
    "the product": (lambda x: x.prod(1), [(ANY,)], 1, 0),
    "the place of the largest": (lambda x: x.argmax(1), [(ANY,)], 1, 0),
    "sums of a mask that is there": (lambda x: (lambda y: (y.sum(1), y.sum(1) * 2))(jnp.cos(x)), [(ANY,)] * 2, 1, 0),
    "two masks of one": (lambda x: (lambda y: (y.max(1), y.sum(1)))(jnp.cos(x)), [(ANY,)] * 2, 2, 0),
    "the same mask once more": (
        lambda x: (lambda y: (y.max(1), y.sum(1), y.max(1)))(jnp.cos(x)), [(ANY,)] * 3, 2, 0),
    "a mask along one axis, and the other": (
        lambda x: (lambda y: (y.sum(1), y.sum(0)))(jnp.cos(x)), [(ANY,)] * 2, 2, 0),
    "the sum of what is the same all along": (lambda x: jnp.full_like(x, 2).sum(1), [(ANY,)], 1, 0),
    "summed along": (lambda x: jnp.cumsum(jnp.cos(x), 1), [(ANY, ANY)], 0, 0),
    "summed from the end": (lambda x: lax.cumsum(jnp.cos(x), 1, reverse=True), [(ANY, ANY)], 1, 0),
    "summed along merged axes": (lambda x: jnp.cumsum(jnp.cos(x).reshape(-1)), [(ANY,)], 1, 0),
    "a product of matrices": (lambda x: x @ x.T, [(ANY, ANY)], 0, 0),
    "a product of masked ones": (lambda x: jnp.cos(x) @ jnp.sin(x).T, [(ANY, ANY)], 2, 0),
    "a loop's rows": (lambda x: lax.scan(lambda c, r: (c, jnp.cos(r)), 0.0, x)[1], [(0, ANY)], 0, 0),
}  # fmt: skip

OF_ROWS = {
    "largest": (lambda v: v.max(1), [(0,)], 0, 0),
    "smallest": (lambda v: v.min(1), [(0,)], 0, 0),
    "sum": (lambda v: v.sum(1), [(0,)], 0, 0),
    "product": (lambda v: v.prod(1), [(0,)], 0, 0),
    "sum of ones": (lambda v: (v + 1).sum(1), [(ANY,)], 0, 0),
    "largest of ones": (lambda v: (v + 1).max(1), [(1,)], 0, 0),
    "product of ones": (lambda v: (v + 1).prod(1), [(1,)], 0, 0),
    "product of -1": (lambda v: (v - 1).prod(1), [(ANY,)], 0, 0),
    "any": (lambda v: (v >= 0).any(1), [(True,)], 0, 0),
    "all": (lambda v: ((v >= 0).all(1), (v > 0).all(1)), [(True,), (False,)], 0, 0),
    "taken apart": (lambda v: v.reshape(v.shape[0], 2, 2), [(0,)], 0, 0),
    "into more rows": (lambda v: v.reshape(2 * v.shape[0], 2), [(0,)], 0, 0),
    "into one row": (lambda v: v.reshape(4 * v.shape[0]), [(0,)], 0, 0),
    "with ones around": (lambda v: v.reshape(1, v.shape[0], 1, 4), [(0,)], 0, 0),
    "into columns": (lambda v: v.reshape(4, v.shape[0]), [(ANY,)], 0, 1),
    "halves": (lambda v: lax.split(v, [1, 3], 1), [(0,), (0,)], 0, 0),
}

OTHERS = {
    "pairs": (EVEN, lambda x: x.reshape(x.shape[0], -1, 2), [(0, 0)], 0),
    "halves of rows": (EVEN, lambda x: x.reshape(x.shape[0], 2, -1), [(ANY, ANY)], 1),
    "front and rest": (LONG, lambda x: lax.split(x, [3, x.shape[1] - 3], 1), [(0,), (0, ANY)], 0),
    "but the last three": (LONG, lambda x: lax.slice_in_dim(x, 0, x.shape[1] - 3, axis=1), [(0, ANY)], 0),
    "but the first three": (LONG, lambda x: lax.slice_in_dim(x, 3, x.shape[1], axis=1), [(0, 0)], 0),
    "less than nothing behind": (LONG, lambda x: lax.pad(x, np.float64(0), ((0, 0, 0), (1, -2, 0))), [(0, ANY)], 0),
    "apart and cut": (LONG, lambda x: lax.pad(x, np.float64(0), ((0, 0, 0), (0, -1, 1))), [(0, ANY)], 0),
    "less than nothing in front": (LONG, lambda x: lax.pad(x, np.float64(0), ((0, 0, 0), (-2, 1, 0))), [(0, 0)], 0),
}


@pytest.mark.parametrize("name", EACH)
def test_of_each_element_the_fill_is_what_the_operation_makes_of_it(name):
    function, fill = EACH[name]
    assert facts(function, MATRIX) == ([(fill, fill)], 0, 0)


@pytest.mark.parametrize("name", MOVED)
def test_what_moves_or_reduces_an_axis_keeps_the_fills_of_the_others(name):
    function, *wanted = MOVED[name]
    assert facts(function, MATRIX) == tuple(wanted)


@pytest.mark.parametrize("name", OF_ROWS)
def test_what_changes_an_axis_without_padding_keeps_what_is_certain(name):
    function, *wanted = OF_ROWS[name]
    assert facts(function, ROWS) == tuple(wanted)


@pytest.mark.parametrize("name", OTHERS)
def test_an_axis_cut_or_taken_apart_keeps_its_fill_where_its_end_stays(name):
    spec, function, fills, relayouts = OTHERS[name]
    assert facts(function, spec) == (fills, 0, relayouts)


# One program each, for compiling is what takes long.
ALL = {
    "each": (MATRIX, [row[0] for row in EACH.values()]),
    "moved": (MATRIX, [row[0] for row in MOVED.values()]),
    "rows": (ROWS, [row[0] for row in OF_ROWS.values()]),
    "pairs": (EVEN, [row[1] for row in OTHERS.values() if row[0] is EVEN]),
    "long": (LONG, [row[1] for row in OTHERS.values() if row[0] is LONG]),
}


@pytest.mark.parametrize("group", ALL)
def test_all_of_it_is_true_of_the_numbers_and_results_are_those_without_padding(group):
    spec, functions = ALL[group]
    check(lambda x: [function(x) for function in functions], spec, fill=0)


def test_what_padding_cuts_off_the_end_is_in_no_sum():
    def squares(x):
        return (jnp.cumsum(jnp.pad(x, (1, 2))) ** 2).sum()

    check(lambda x: (lax.pad(x, np.float64(0), ((0, -1, 0),)).sum(), jax.grad(squares)(x).sum()), (("b",), np.float64))


def test_an_array_that_nobody_wrote_to_is_zeros_all_along():
    assert facts(lambda x: lax.empty(x.shape, x.dtype), MATRIX) == ([(0, 0)], 0, 0)
    assert facts(lambda x: lax.empty(x.shape, x.dtype).reshape(-1), MATRIX) == ([(0,)], 0, 0)


# What a number that JAX's own functions convert first fills: 0 goes in, and each sum and product is of that fill.
CHOSEN = {
    "a choice of 0": (lambda x: jnp.where(x > 1, x, 0), [(0, 0)], 0),
    "a choice of -inf": (lambda x: jnp.where(x > 1, x, -jnp.inf), [(-INF, -INF)], 0),
    "a choice of 1": (lambda x: jnp.where(x == 0, 1, x), [(1, 1)], 0),
    "a choice of -1 as 16 bits": (lambda x: jnp.where(x == 0, jnp.bfloat16(-1), 1).astype(x.dtype), [(ANY, ANY)], 0),
    "a choice of 7": (lambda x: jnp.where(x > 1, x, 7), [(ANY, ANY)], 0),
    "the sum of a choice": (lambda x: jnp.where(x > 1, x, 0).sum(), [()], 0),
    "the maximum of a choice": (lambda x: jnp.where(x > 1, x, -jnp.inf).max(), [()], 0),
    "padded": (lambda x: jnp.pad(x, ((0, 2), (1, 1))), [(0, 0)], 0),
    "the sum of what is padded": (lambda x: jnp.pad(x, ((0, 0), (1, 1))).sum(), [()], 0),
    "padded with 1": (lambda x: jnp.pad(x, ((0, 0), (1, 1)), constant_values=1), [(ANY, 1)], 1),
    "padded with 7": (lambda x: jnp.pad(x, ((0, 0), (1, 1)), constant_values=7), [(ANY, ANY)], 0),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_a_number_that_is_converted_on_its_way_stays_known(name):
    function, fills, masks = CHOSEN[name]
    assert facts(function, MATRIX)[:2] == (fills, masks)
    check(function, MATRIX)
    check(function, MATRIX, fill=0)
