"""Values that no argument decides: what is computed of them is what JAX computes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from explorer.pitfalls.constant_values import ConstantValues
from explorer.pitfalls.equations import Program

TABLE = np.array([[3, 1, 2], [6, 5, 4]], np.int32)
WHICH = np.array([0, 1, 2, 1], np.int32)
X = jnp.ones(3)


def constant_of(function, *args):
    """The value of what a function returns, as far as its program alone says it."""
    program = Program(jax.make_jaxpr(function)(*args))
    return ConstantValues(program).value(program.main, program.main.raw.outvars[0])


def table():
    return jnp.asarray(TABLE)


def row(start=0):
    return lax.iota(jnp.int32, 4) + start


OPERATIONS = {
    "add": lambda: row() + 2,
    "sub": lambda: 7 - row(),
    "mul": lambda: row() * row(2),
    "neg": lambda: -row(),
    "max": lambda: jnp.maximum(row(), 2),
    "min": lambda: jnp.minimum(row(), 2),
    "clamp": lambda: lax.clamp(jnp.int32(1), row(), jnp.int32(2)),
    "lt": lambda: lax.lt(row(), row() * 0 + 2),
    "gt": lambda: lax.gt(row(), row() * 0 + 2),
    "ge": lambda: lax.ge(row(), row() * 0 + 2),
    "le": lambda: lax.le(row(), row() * 0 + 2),
    "eq": lambda: lax.eq(row(), row() * 0 + 2),
    "ne": lambda: lax.ne(row(), row() * 0 + 2),
    "a choice": lambda: lax.select(lax.lt(row(), row() * 0 + 2), row(10), row(20)),
    "a choice of three": lambda: lax.select_n(jnp.asarray(WHICH), row(10), row(20), row(30)),
    "a cast": lambda: row().astype(jnp.float32),
    "squeeze": lambda: lax.squeeze(table()[:, None, :], (1,)),
    "expand_dims": lambda: lax.expand_dims(table(), (1,)),
    "reshape": lambda: table().reshape(3, 2),
    "transpose": lambda: table().T,
    "concatenate": lambda: lax.concatenate([table(), table() + 10], 1),
    "concatenate rows": lambda: lax.concatenate([table(), table() + 10], 0),
    "broadcast to rows": lambda: lax.broadcast_in_dim(row(), (2, 4), (1,)),
    "broadcast to columns": lambda: lax.broadcast_in_dim(row(), (4, 2), (0,)),
    "slice": lambda: lax.slice(table(), (0, 1), (2, 3)),
    "slice with steps": lambda: lax.slice(table(), (0, 0), (2, 3), (1, 2)),
    "iota by rows": lambda: lax.broadcasted_iota(jnp.int32, (2, 3), 0),
    "iota by columns": lambda: lax.broadcasted_iota(jnp.int32, (2, 3), 1),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_value_is_the_one_that_the_program_computes(name):
    expected = np.asarray(OPERATIONS[name]())
    value = constant_of(OPERATIONS[name])
    np.testing.assert_array_equal(value, expected)
    assert value.dtype == expected.dtype


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: x, "an argument decides it"),
        (lambda x: row() + x.astype(jnp.int32).sum(), "an argument takes part in it"),
        (lambda x: jnp.sin(row().astype(jnp.float32)), "it is no operation that indices are made with"),
        (lambda x: jnp.asarray(np.ones(3, np.float32)), "an array of floats is no index"),
        (lambda x: lax.iota(jnp.int32, 65_537), "it would be computed for nothing"),
    ],
)
def test_nothing_is_said_of_what_arguments_decide_or_of_what_is_no_index(function, why):
    assert constant_of(function, X) is None


def test_a_grid_of_65_536_points_is_still_computed():
    np.testing.assert_array_equal(constant_of(lambda: lax.iota(jnp.int32, 65_536)), np.arange(65_536))


@pytest.mark.parametrize(("steps", "is_computed"), [(28, True), (29, True), (30, False)])
def test_of_a_chain_thirty_values_are_computed(steps, is_computed):
    def chained():
        value = lax.iota(jnp.int32, 2)
        for _ in range(steps):
            value = -value
        return value

    assert (constant_of(chained) is not None) is is_computed


def test_of_indices_the_columns_that_are_constant_are_computed_each_for_itself():
    def indices(i):
        columns = [lax.broadcast(i, (2, 1)), lax.broadcasted_iota(jnp.int32, (2, 2), 0)]
        return lax.concatenate(columns, 1)

    program = Program(jax.make_jaxpr(indices)(jnp.int32(1)))
    first, *rest = ConstantValues(program).columns(program.main, program.main.raw.outvars[0])
    assert first is None
    assert [column.tolist() for column in rest] == [[0, 1], [0, 1]]


@pytest.mark.parametrize(
    ("function", "columns"),
    [
        (lambda i: jnp.asarray(TABLE), [[3, 6], [1, 5], [2, 4]]),
        (lambda i: lax.concatenate([lax.broadcast(i, (1, 2)), jnp.asarray(TABLE)[:, :2]], 0), [None, None]),
        (lambda i: lax.broadcast(i, (2, 3)), [None, None, None]),
        (lambda i: i, [None]),
        (lambda i: jnp.int32(7) + jnp.int32(1) * 0, [7]),
    ],
)
def test_indices_have_a_column_for_each_axis_they_index(function, columns):
    program = Program(jax.make_jaxpr(function)(jnp.int32(1)))
    found = ConstantValues(program).columns(program.main, program.main.raw.outvars[0])
    assert [column if column is None else column.tolist() for column in found] == columns
