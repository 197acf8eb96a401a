"""Holds a padded program against the function itself, which plain JAX runs at every size: exact, refused, or wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from explorer._jax.symbolic import undecided_equalities
from explorer.padding.program import padded, prove
from explorer.padding.transfer import Resize
from tests.corpus_padding.cases import POISONS, Case, Sizes
from tests.support.padding import QUICKLY

EXACT, REFUSED, UNTRACED, WRONG, CRASHED = "exact", "refused", "untraced", "wrong", "crashed"
NO_CASE = "no case"  # the function itself fails at a single size: a gradient that JAX doesn't have
# By the size of a float in bytes, relative: the oracle's order of additions is another.
RELATIVE = {8: 1e-8, 4: 2e-4, 2: 3e-2, 1: 0.3}


@dataclass(frozen=True)
class Verdict:
    """What became of a case, and why.

    Args:
        outcome: Of those above.
        reasons: Of a refusal each; of a wrong number the first.
        rules: How often each of the proof's rules was used.
        comparisons: How many outputs, at sizes and poisons, were compared.
    """

    case: Case
    outcome: str
    reasons: Sequence[str] = ()
    rules: Mapping[str, int] = field(default_factory=dict)
    comparisons: int = 0


def trace(case: Case) -> tuple[Any, Case]:
    """The function as a jaxpr of symbolic sizes, and the case at the sizes that it is for.

    Where the function asks whether a size is 1, that is from 2 on, as in `explorer.compile`: a call with 1 is served by
    a binary of its own, which is the function itself.

    Raises:
        Exception: It can't be traced so, or only with an answer that holds for some sizes.
    """
    limits = [f"{s} >= {case.smallest.get(s, 1)}" for s in case.symbols]
    limits += [f"{s} <= {largest}" for s, largest in case.bucket.items()]
    dimensions = export.symbolic_shape(",".join(case.symbols), constraints=limits) if case.symbols else ()
    sizes = dict(zip(case.symbols, dimensions, strict=True))
    structs = [jax.ShapeDtypeStruct(argument.shape_at(sizes), argument.dtype) for argument in case.arguments]
    with undecided_equalities() as undecided:
        closed = jax.make_jaxpr(case.function)(*structs)
    if not undecided:
        return closed, case
    apart = dict(question.only_at or ("", 0) for question in undecided)
    if any(size != case.smallest.get(symbol, 1) for symbol, size in apart.items()):
        raise ValueError(f"{undecided[0].text} holds for some sizes only")
    return trace(replace(case, smallest={**case.smallest, **{symbol: size + 1 for symbol, size in apart.items()}}))


def runs_at_one_size(case: Case) -> bool:
    """Whether the function itself takes such arguments."""
    try:
        jax.eval_shape(case.function, *case.valid(case.bucket))
    except Exception:
        return False
    return True


def judge(case: Case, few: bool = False, options: Mapping[str, Any] = QUICKLY) -> Verdict:
    """Prove the case, run it at every size with every poison, and compare.

    Args:
        case: The case.
        few: Only some of its sizes.
        options: Of XLA.
    """
    with warnings.catch_warnings(), jax.enable_x64(True):
        warnings.simplefilter(
            "ignore"
        )  # of a complex number's part that is dropped, of empty slices: the function's own
        try:
            closed, case = trace(case)
        except Exception as error:
            outcome = UNTRACED if runs_at_one_size(case) else NO_CASE
            return Verdict(case, outcome, [f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"])
        try:
            proof = prove(closed, case.symbols)
            if proof.refusals:
                return Verdict(case, REFUSED, [f"{r.primitive}: {r.reason}" for r in proof.refusals])
            run = compiled(case, padded(closed, case.bucket), options)
            filled = compiled_for_fills(case, closed, proof.fills, options)
        except Exception as error:
            return Verdict(case, CRASHED, [f"{type(error).__name__}: {str(error)[:500]}"])
        rules = dict(proof.rules)
        count, fault = compare(case, closed, run, filled, few, options)
        return Verdict(case, WRONG if fault else EXACT, [fault] if fault else [], rules, count)


def compiled_for_fills(
    case: Case, closed: Any, fills: Sequence[Any], options: Mapping[str, Any]
) -> Callable[..., Any] | None:
    """The program of padding that is filled as the proof wishes, by the valid arrays; None if that changes nothing."""
    program, of_any = padded(closed, case.bucket, fills=fills), padded(closed, case.bucket)
    given = {symbol: np.int32(1) for symbol in case.symbols}, *case.valid(case.bucket)
    if str(jax.make_jaxpr(program)(*given)) == str(jax.make_jaxpr(of_any)(*given)):
        return None
    run = compiled(case, program, options)

    def fill_and_run(true: Any, *valid: Any) -> Any:
        shapes = [argument.shape_at(case.bucket) for argument in case.arguments]
        pad = Resize([array.shape for array in valid], shapes, fills=fills)
        return run(true, *pad.pad(valid, is_on_host=True))

    return fill_and_run


def compiled(case: Case, program: Callable[..., Any], options: Mapping[str, Any]) -> Callable[..., Any]:
    """The padded program of the case's bucket."""
    structs = [jax.ShapeDtypeStruct(argument.shape_at(case.bucket), argument.dtype) for argument in case.arguments]
    sizes = {symbol: jax.ShapeDtypeStruct((), np.int32) for symbol in case.symbols}
    return jax.jit(program, keep_unused=True).lower(sizes, *structs).compile(dict(options))


def expected(case: Case, all_sizes: Sequence[Sizes], options: Mapping[str, Any]) -> list[list[Any]]:
    """What the function gives at each of the sizes by itself: one program of them all, as compiling takes longest."""
    given = [case.valid(sizes) for sizes in all_sizes]

    def at_each_size(given: Any) -> Any:
        return [jax.tree.leaves(case.function(*arrays)) for arrays in given]

    return jax.jit(at_each_size).lower(given).compile(dict(options))(given)


def compare(
    case: Case,
    closed: Any,
    run: Callable[..., Any],
    filled: Callable[..., Any] | None,
    few: bool,
    options: Mapping[str, Any],
) -> tuple[int, str]:
    """How many outputs were compared, and the first that differs, in words; empty if none does."""
    count, width = 0, narrowest(closed)
    all_sizes = list(case.sizes(few))
    for sizes, right in zip(all_sizes, expected(case, all_sizes, options), strict=True):
        shapes = [tuple(evaluate(size, sizes) for size in aval.shape) for aval in closed.out_avals]
        generator = case.generator({"poison": 0, **sizes})
        true = {symbol: np.int32(size) for symbol, size in sizes.items()}
        valid = case.valid(sizes)
        runs: list[tuple[str, Any]] = [] if filled is None else [("filled", partial(filled, true, *valid))]
        for poison in range(len(POISONS) if dict(sizes) != case.bucket else 1):
            arrays = [
                argument.poisoned(array, case.bucket, poison, generator)
                for argument, array in zip(case.arguments, valid, strict=True)
            ]
            runs.append((f"poison {POISONS[poison][0]}", partial(run, true, *arrays)))
        for what, give in runs:
            results = give()
            for i, (result, shape, wanted) in enumerate(zip(results, shapes, right, strict=True)):
                count += 1
                fault = difference(result, shape, wanted, width)
                # XLA makes NaN · 0 zero where the 0 is a mask: one operation after the other it is NaN.
                if fault and difference(result, shape, one_by_one(case, valid)[i], width):
                    return count, f"output {i} at {sizes}, {what}: {fault}"
    return count, ""


def one_by_one(case: Case, valid: Sequence[Any]) -> list[Any]:
    """What the function gives where each operation is a program of its own."""
    return jax.tree.leaves(case.function(*valid))


def evaluate(size: Any, sizes: Sizes) -> int:
    return int(size._evaluate(sizes)) if export.is_symbolic_dim(size) else size


def narrowest(closed: Any) -> int:
    """Bytes of the narrowest float that a function computes with: JAX's attention takes its softmax in f32."""
    text = str(closed)
    return next((size for size, name in ((1, "f8"), (2, "f16["), (4, "f32[")) if name in text), 8)


def difference(result: Any, shape: tuple[int, ...], wanted: Any, narrowest: int = 8) -> str:
    """In which way the valid region of a result isn't what is wanted; empty if it is.

    Args:
        narrowest: Bytes of the narrowest float on its way.
    """
    if result.dtype != wanted.dtype:
        return f"its dtype is {result.dtype}, not {wanted.dtype}"
    if shape != wanted.shape or any(a < b for a, b in zip(result.shape, shape, strict=True)):
        return f"its shape is {shape} out of {result.shape}, not {wanted.shape}"
    if jnp.issubdtype(wanted.dtype, jax.dtypes.prng_key):
        result, wanted = jax.random.key_data(result), jax.random.key_data(wanted)
    got = np.asarray(result)[tuple(slice(0, size) for size in shape)]
    right = np.asarray(wanted)
    if jnp.issubdtype(right.dtype, jnp.inexact):
        relative = RELATIVE[min(narrowest, jnp.finfo(right.dtype).bits // 8)]
        wide = np.complex128 if np.issubdtype(right.dtype, np.complexfloating) else np.float64
        got, right = got.astype(wide), right.astype(wide)
        finite = np.abs(right[np.isfinite(right)])
        largest = float(finite.max()) if finite.size else 0.0
        # What cancels to 0, of numbers around 1, is rounding.
        same = np.isclose(got, right, relative, relative * min(1.0, max(largest, 1e-5)), equal_nan=True)
    else:
        same = got == right
    if np.all(same):
        return ""
    at = tuple(int(i) for i in np.argwhere(~np.asarray(same))[0]) if np.ndim(same) else ()
    return f"{got[at]} instead of {right[at]} at {at}, {np.sum(~same)} of {right.size} differ"
