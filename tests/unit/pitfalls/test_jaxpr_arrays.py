"""Indices outside of arrays, large constants, and what nobody uses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import explorer as ex
from tests.support.jaxpr_rules import findings, only, piece

X = jnp.arange(5.0)
M = jnp.arange(24.0).reshape(4, 6)
PLACES = jnp.array([1, 9])


@pytest.mark.parametrize(
    ("function", "array", "meant", "told"),
    [
        (lambda x: x[10], X, "x[10]", "position 10 of axis 0, which has 5"),
        (lambda x: x[-7], X, "x[-7]", "position -7 of axis 0"),
        (lambda x: x.at[10].set(1.0), X, "x.at[10].set(1.0)", "position 10"),
        (lambda x: x[jnp.array([1, 9])], X, "x[jnp.array([1, 9])]", "position 9"),
        (lambda x: x[np.array([1, 9])], X, "x[np.array([1, 9])]", "position 9"),
        (lambda x: x[PLACES], X, "x[PLACES]", "position 9"),
        (lambda x: jnp.take(x, 10), X, "jnp.take(x, 10)", "position 10"),
        (lambda x: x.take(10), X, "x.take(10)", "position 10"),
        (lambda x: lax.dynamic_slice(x, (4,), (3,)), X, "lax.dynamic_slice(x, (4,), (3,))", "positions 4 to 6"),
        (lambda m: m[2, 6], M, "m[2, 6]", "position 6 of axis 1, which has 6"),
        (lambda m: m[:, 7], M, "m[:, 7]", "axis 1"),
        (lambda m: m.at[1, -9].add(2.0), M, "m.at[1, -9].add(2.0)", "position -9 of axis 1"),
        (lambda m: m[jnp.argmax(m) % 4, 11], M, "m[jnp.argmax(m) % 4, 11]", "position 11 of axis 1"),
        (lambda m: sum(m[i, 0] for i in range(6)), M, "m[i, 0]", "position 4 of axis 0"),
        (lambda m: m[jnp.arange(6)], M, "m[jnp.arange(6)]", "position 5"),
        (lambda m: lax.scan(lambda c, row: (c + row[6], None), 0.0, m)[0], M, "row[6]", "position 6 of axis 0"),
        (lambda m: jax.grad(lambda m: m[0, 8] ** 2)(m), M, "m[0, 8]", "position 8 of axis 1"),
        (lambda m: jax.jit(lambda y: y[9])(m), M, "y[9]", "position 9 of axis 0"),
    ],
)
def test_an_index_outside_is_pointed_at_with_what_it_asks_for(function, array, meant, told):
    found = only("out-of-bounds", function, array)
    assert (found.severity, piece(found)) == ("error", meant)
    assert told in found.evidence


def test_what_it_says_happens_is_what_happens():
    assert "reads from position 4 instead" in only("out-of-bounds", lambda x: x[10], X).message
    assert jax.jit(lambda x: x[10])(X) == X[4]
    assert "reads from position 0 instead" in only("out-of-bounds", lambda x: x[-7], X).message
    assert jax.jit(lambda x: x[-7])(X) == X[0]
    assert "nothing is written" in only("out-of-bounds", lambda x: x.at[10].set(9.0), X).message
    assert jnp.array_equal(jax.jit(lambda x: x.at[10].set(9.0))(X), X)
    assert "reads nan" in only("out-of-bounds", lambda x: jnp.take(x, 10), X).message
    assert jnp.isnan(jax.jit(lambda x: jnp.take(x, 10))(X))
    finding = only("out-of-bounds", lambda x: lax.dynamic_slice(x, (4,), (3,)), X)
    assert "from position 2 instead" in finding.message
    assert finding.fix.text == "an index from 0 to 2"
    assert jnp.array_equal(jax.jit(lambda x: lax.dynamic_slice(x, (4,), (3,)))(X), X[2:])


def inside(m):
    rows = m[1, 2], m[-4, -6], m[:, -1], m[..., 0], m[::2, 1:3], m[None, 2], m[2:100], m[jnp.array([0, -1])]
    written = m.at[3, 5].set(1.0), m.at[-1].add(2.0), lax.dynamic_update_slice(m, m[:2], (2, 0))
    return rows, written, lax.dynamic_slice(m, (1, 0), (3, 6)), jnp.take_along_axis(m, jnp.zeros((4, 1), int), 1)


def of_libraries(m):
    sized = jnp.nonzero(m, size=30), jnp.unique(m, size=30)
    inner = jnp.pad(m, 1), jnp.roll(m, 9), jnp.diff(m), jnp.interp(m, jnp.arange(3.0), jnp.arange(3.0))
    return sized, inner, jnp.linalg.det(m[:4, :4]), jnp.median(m), jnp.percentile(m, 30.0), jnp.sort(m)


def meant_to_be_outside(m):
    return m.at[10].set(1.0, mode="drop"), m.at[10].get(mode="fill", fill_value=0), jnp.take(m, 40, mode="clip")


@pytest.mark.parametrize("function", [inside, of_libraries, meant_to_be_outside, lambda m: m[jnp.argmax(m), 5]])
def test_indices_inside_unknown_ones_and_chosen_modes_are_fine(function):
    assert findings("out-of-bounds", function, M) == []


# Constants -----------------------------------------------------------------------------------------------------------

WEIGHTS = jnp.ones((600, 600))
TABLE = np.random.default_rng(0).random((600, 600))
PARAMS = {"a": jnp.ones((400, 400)), "b": [jnp.ones((400, 400))]}
SMALL = jnp.ones((10, 10))


class Model:
    def __init__(self):
        self.weights = jnp.ones((600, 600))

    def __call__(self, x):
        return x @ self.weights


@jax.jit
def scaled(x):
    return x * WEIGHTS


def two_of_one_name(x):
    y = x @ PARAMS["a"]
    return y @ PARAMS["b"][0]


@pytest.mark.parametrize(
    ("function", "size", "meant", "named"),
    [
        (lambda x: x @ WEIGHTS, 600, "x @ WEIGHTS", "`WEIGHTS` is a constant"),
        (lambda x: x @ TABLE, 600, "x @ TABLE", "`TABLE` is a constant"),
        (two_of_one_name, 400, 'x @ PARAMS["a"]', "the 2 arrays of `PARAMS` are constants"),
        (lambda x: scaled(x) + 1, 600, "x * WEIGHTS", "`WEIGHTS` is a constant"),
        (Model(), 600, "x @ self.weights", "`self.weights` is a constant"),
        (Model().__call__, 600, "x @ self.weights", "`self.weights` is a constant"),
        (lambda x: x + np.ones((600, 600), np.float32), 600, "x + np.ones((600, 600), np.float32)", "made in Python"),
    ],
)
def test_a_large_array_from_outside_is_named_and_pointed_at_where_it_is_used(function, size, meant, named):
    found = only("large-constant", function, jnp.ones((size, size)))
    assert (found.severity, piece(found)) == ("warning", meant)
    assert named in found.message
    assert f"{1_280_000 if size == 400 else 1_440_000:,} bytes" in found.evidence


def test_it_is_named_when_it_rides_on_a_capture():
    found = ex.explore(lambda x: x @ WEIGHTS, WEIGHTS).findings.of("large-constant")
    assert [piece(one) for one in found] == ["x @ WEIGHTS"]
    assert "`WEIGHTS` is a constant" in found[0].message


def test_arguments_small_arrays_and_what_jax_makes_itself_are_fine():
    def clean(x, weights):
        return x @ weights + jnp.ones((600, 600)) + SMALL[0, 0] + np.float32(3) + jnp.arange(600)

    assert findings("large-constant", clean, WEIGHTS, WEIGHTS) == []


# Dead code -----------------------------------------------------------------------------------------------------------


def unused_product(x, y):
    z = x @ x
    _ = jnp.sin(z)
    return x + y


def unused_in_an_inner_function(x):
    return jax.jit(unused_product)(x, 1.0) + 1


def test_a_line_whose_result_nobody_uses_is_pointed_at():
    found = only("dead-code", unused_product, jnp.ones((3, 3)), 1.0)
    assert (found.severity, piece(found)) == ("note", "x @ x")
    assert "dot_general" in found.evidence
    assert only("dead-code", unused_in_an_inner_function, jnp.ones((3, 3))).line == found.line


def test_an_argument_that_isnt_used_is_pointed_at_in_the_head():
    found = only("dead-code", lambda x, mask: x + 1, X, X)
    assert (found.severity, piece(found)) == ("note", "mask")
    found = only("dead-code", lambda x, like: x + jnp.zeros_like(like), X, X)
    assert piece(found) == "like"


def test_what_is_used_in_loops_branches_effects_and_derivatives_is_fine():
    def clean(state, x, _unused):
        y = lax.scan(lambda c, r: (c + r, c * r), state["a"], x)[1]
        z = lax.cond(y[0] > 0, lambda: jnp.sin(state["b"]), lambda: state["b"])
        jax.debug.print("{}", x @ x)
        return jax.grad(lambda z: (z * y.sum()) ** 2)(z)

    state = {"a": jnp.ones(()), "b": jnp.ones(()), "small": jnp.ones(3)}
    assert findings("dead-code", clean, state, X, X) == []
    assert findings("dead-code", jax.grad(lambda x: jnp.sin(x @ x)), X) == []
