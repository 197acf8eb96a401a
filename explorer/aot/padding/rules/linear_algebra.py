"""Linear algebra and Fourier transforms: whole matrices and signals, of which there may be any number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from explorer.aot.padding.interpreter import Call
from explorer.aot.padding.refused import Refused
from explorer.aot.padding.registry import rule
from explorer.aot.padding.values import Value

_MATRICES = """
cholesky cholesky_update eig eigh geqrf geqp3 hessenberg householder_product lu ormqr qr schur svd symmetric_product
triangular_solve tridiagonal tridiagonal_solve
"""
_PARAMETERS = """
symmetrize_input lower sort_eigenvalues subset_by_index algorithm compute_left_eigenvectors compute_right_eigenvectors
implementation pivoting full_matrices use_magma compute_uv left_side transpose_a conjugate_a unit_diagonal
compute_schur_vectors sort_eig_vals select_callable perturbation_m perturbation_eps left transpose
"""


@rule(_MATRICES, _PARAMETERS)
def of_matrices(call: Call) -> Sequence[Value]:
    return _batched(call, 2)


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
            raise Refused(f"`{call.name}` along a padded axis", "pad to a fixed size, or keep it out of the function")
    values = [call.unmerged(value) for value in call.inputs]
    # Of zeros an iteration converges, of NaN it may not.
    results: Any = call.bind(*(call.masked(value, 0) for value in values))
    return call.values(results if call.equation.primitive.multiple_results else [results])


@rule("custom_linear_solve", "const_lengths jaxprs")
def linear_solve(call: Call) -> Sequence[Value]:
    lengths = call.params["const_lengths"]
    before = lengths.matvec + lengths.vecmat
    after = before + lengths.solve + lengths.transpose_solve
    operands = [*call.inputs[before : before + lengths.solve], *call.inputs[after:]]
    return call.interpreter.run(call.params["jaxprs"].solve, operands)
