"""Linear algebra and Fourier transforms: whole matrices and signals, of which there may be any number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from explorer.padding.interpreter import Call
from explorer.padding.refused import Refused
from explorer.padding.registry import rule
from explorer.padding.sizes import is_symbolic
from explorer.padding.values import Value

_MATRICES = """
cholesky_update eig eigh geqrf geqp3 hessenberg householder_product ormqr qr schur svd symmetric_product tridiagonal
tridiagonal_solve
"""
_HINT = "pad to a fixed size, or keep it out of the function"
_PARAMETERS = """
symmetrize_input lower sort_eigenvalues subset_by_index algorithm compute_left_eigenvectors compute_right_eigenvectors
implementation pivoting full_matrices use_magma compute_uv left_side transpose_a conjugate_a unit_diagonal
compute_schur_vectors sort_eig_vals select_callable perturbation_m perturbation_eps left transpose enable_eigvec_derivs
"""


@rule(_MATRICES, _PARAMETERS)
def of_matrices(call: Call) -> Sequence[Value]:
    return _batched(call, 2)


@rule("cholesky lu", "symmetrize_input")
def square_factors(call: Call) -> Sequence[Value]:
    return call.values(_results(call, [_extended(call, call.inputs[0])]))


@rule("triangular_solve", "left_side lower transpose_a conjugate_a unit_diagonal")
def triangular_solve(call: Call) -> Sequence[Value]:
    matrix, right = call.inputs
    return call.values(_results(call, [_extended(call, matrix), call.masked(call.unmerged(right), 0)]))


def _extended(call: Call, value: Value) -> Any:
    """A matrix, or many, extended by the identity: nothing of that mixes with what is valid.

    Raises:
        Refused: It may not be square.
    """
    rows, columns = value.shape[-2:]
    array = call.masked(call.unmerged(value), 0)
    if not is_symbolic(rows) and not is_symbolic(columns):
        return array
    if not rows == columns:
        raise Refused(f"`{call.name}` of a matrix that isn't square, along a padded axis", _HINT)
    shape, last = array.shape, array.ndim - 1
    row, column = (lax.broadcasted_iota(jnp.int32, shape, axis) for axis in (last - 1, last))
    is_new = (row == column) & (row >= jnp.int32(call.sizes.true(rows)))
    return lax.select(is_new, lax.full(shape, 1, array.dtype), array)


@rule("lu_pivots_to_permutation", "permutation_size")
def of_vectors(call: Call) -> Sequence[Value]:
    return _batched(call, 1)


@rule("fft", "fft_type fft_lengths")
def fft(call: Call) -> Sequence[Value]:
    return _batched(call, len(call.params["fft_lengths"]))


def _batched(call: Call, inner: int) -> Sequence[Value]:
    """An operation on the last axes of each operand, which mustn't be padded."""
    for value in call.inputs:
        if any(axis >= value.rank - inner for axis in value.padded_axes):
            raise Refused(f"`{call.name}` along a padded axis", _HINT)
    # Of zeros an iteration converges, of NaN it may not.
    return call.values(_results(call, [call.masked(call.unmerged(value), 0) for value in call.inputs]))


def _results(call: Call, arrays: Sequence[Any]) -> list[Any]:
    results: Any = call.bind(*arrays)
    return results if call.equation.primitive.multiple_results else [results]


@rule("custom_linear_solve", "const_lengths jaxprs")
def linear_solve(call: Call) -> Sequence[Value]:
    lengths = call.params["const_lengths"]
    before = lengths.matvec + lengths.vecmat
    after = before + lengths.solve + lengths.transpose_solve
    operands = [*call.inputs[before : before + lengths.solve], *call.inputs[after:]]
    return call.interpreter.run(call.params["jaxprs"].solve, operands)
