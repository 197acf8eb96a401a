"""The values at which a piece of a program is run, and what came out: held against JAX's own gradient there."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorer.pitfalls.equations import Program
from explorer.pitfalls.gradient_probes import Results, probes_of, run_at, singular_at
from explorer.pitfalls.gradient_slices import ValueSlice, singularity


def sliced(function, *args):
    """What the choice of a function gives, back to the arguments."""
    program = Program(jax.make_jaxpr(function)(*args))
    return ValueSlice(program, next(one for one in program.equations if one.op == "select_n"))


def by_argument(sliced, columns):
    """What a slice has of each of its inputs, in the order of the function's arguments."""
    order = list(sliced.program.main.raw.invars)
    pairs = zip((order.index(atom) for _, atom in sliced.inputs.values()), columns, strict=True)
    return [column for _, column in sorted(pairs, key=lambda pair: pair[0])]


def chosen(x, y):
    return jnp.where(x > 0.75, jnp.log(x) * y, y)


PIECE = sliced(chosen, jnp.float32(1), jnp.float32(1))


def test_each_input_has_every_value_that_programs_compare_with():
    probes, common = probes_of(PIECE)
    assert len(probes) == 2
    assert {probe.dtype for probe in probes} == {np.dtype(np.float32)}
    pairs = {tuple(map(float, pair)) for pair in zip(*(probe[:common] for probe in probes), strict=True)}
    # Zero, one and what the text compares with, each way and one further; of both inputs all combinations.
    values = (0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0, 0.75, -0.75, 1.75)
    assert {(x, y) for x in values for y in values} <= pairs
    far = {tuple(map(float, pair)) for pair in zip(*(probe[common:] for probe in probes), strict=True)}
    assert {(x, y) for x in (100.0, -100.0, 1e3, -1e3) for y in (100.0, -100.0, 1e3, -1e3)} <= far
    assert not any(abs(x) >= 100 for pair in pairs for x in pair)


def test_each_input_has_its_shape_and_values_of_its_kind():
    def mixed(x, n, u, mask):
        return jnp.where(mask, x * n * u, 0.0)

    args = jnp.ones((2, 3), jnp.bfloat16), jnp.int32(3), jnp.uint8(3), jnp.zeros((2, 3), bool)
    piece = sliced(mixed, *args)
    x, n, u, mask = by_argument(piece, probes_of(piece)[0])
    assert [probe.shape[1:] for probe in (x, n, u, mask)] == [(2, 3), (), (), (2, 3)]
    assert [str(probe.dtype) for probe in (x, n, u, mask)] == ["float32", "int32", "uint8", "bool"]
    assert {0, 1, -1, 2, -2, 3, 100, -1000} <= set(n.tolist())
    assert {0, 1, 2, 3, 100} <= set(u.tolist())  # which has no 1,000
    assert len({len(probe) for probe in (x, n, u, mask)}) == 1
    assert {True, False} == set(mask.reshape(-1).tolist())
    # Some with one value in all of it, some with one that is another, some with any.
    kinds = {len(set(row.reshape(-1).tolist())) for row in x}
    assert {1, 6} <= kinds


def test_the_gradient_at_each_probe_is_jaxs():
    probes, common = probes_of(PIECE)
    at = [probe[:common] for probe in probes]
    results = run_at(PIECE, at)
    x, y = by_argument(PIECE, at)
    values, gradients = jax.vmap(jax.value_and_grad(chosen, (0, 1)))(x, y)
    is_nan = np.isnan(gradients).any(0)
    np.testing.assert_allclose(results.values, values, rtol=1e-6)
    np.testing.assert_allclose(by_argument(PIECE, results.gradients.T), gradients, rtol=1e-6)
    np.testing.assert_array_equal(results.is_finite, np.isfinite(values))
    np.testing.assert_array_equal(results.is_nan, is_nan)
    np.testing.assert_array_equal(results.has_gradient, np.isfinite(gradients).all(0))
    np.testing.assert_array_equal(results.both, np.stack([x > 0.75, ~(x > 0.75)], 1))
    assert set(results.witnesses) == set(np.flatnonzero(np.isfinite(values) & is_nan))
    witnesses = {float(x[row]) for row in results.witnesses}
    assert 0.0 in witnesses
    assert max(witnesses) == 0.0


@pytest.mark.parametrize(("x", "is_singular"), [([1.0, 2.0], False), ([1.0, 0.0], True), ([-1.0, -1.0], True)])
def test_an_operation_is_singular_where_any_probe_makes_it_so(x, is_singular):
    (logarithm,) = [one for one in PIECE.equations if one.op == "log"]
    probes = by_argument(PIECE, [np.float32(x), np.ones(2, np.float32)])  # of two the order is its own inverse
    assert singular_at(PIECE, probes, [logarithm], [singularity(logarithm).is_regular]) == [is_singular]


def results(is_finite, is_nan):
    nothing = np.zeros(len(is_finite))
    return Results(nothing, np.array(is_finite), np.array(is_nan), ~np.array(is_nan), nothing, nothing)


def test_a_witness_is_protected_where_the_value_is_finite_at_all_of_its_signs():
    x = np.array([[100.0, 100], [100, 100], [-100, -100], [100, -100], [-5, -5]])
    found = results([True, False, True, True, True], [True, False, True, True, False])
    assert found.witnesses.tolist() == [0, 2, 3]
    assert found.protected([x]).tolist() == [2]  # at 100 it overflows itself; the fourth has several values
    assert found.rows(slice(2, 4)).witnesses.tolist() == [0, 1]
    two = [x, np.array([1.0, -1, 1, 1, 1])]
    assert found.protected(two).tolist() == [0, 2]  # it overflows with another sign of the other input
