"""Program of symbolic sizes for all sizes up to a bucket's, with the proof that it is exact."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from linecache import getline
from math import prod
from typing import Any

import jax
import jax.numpy as jnp

from explorer._jax.symbolic import bounds_of
from explorer._jax.traces import inner_jaxprs, user_stack
from explorer.capture.sources import label
from explorer.model.results.dynamic_report import PaddingRefusal
from explorer.padding import combining, elementwise, indexing, loops, shape
from explorer.padding.interpreter import Fill, Interpreter, Notes, Tally, Value, make_value
from explorer.padding.sizes import Refused, Sizes, is_symbolic


@dataclass(frozen=True)
class Proof:
    """Verdict on whether one padded program gives the function's results at every size up to the bucket's."""

    refusals: tuple[PaddingRefusal, ...] = ()
    rules: Mapping[str, int] = field(default_factory=dict[str, int])  # equations with padded axes, by primitive
    masks: int = 0  # number of masked arrays
    relayouts: int = 0  # number of gathers into another layout, the most expensive operation of padding
    axes: tuple[str, ...] = ()  # the named dimensions
    fills: tuple[Fill, ...] = ()  # best padding value of each input, which saves a mask; None for any

    @property
    def is_exact(self) -> bool:
        """True if no equation is refused; results then differ at most by the order of sums."""
        return not self.refusals


REGISTERED = (combining, elementwise, indexing, loops, shape)  # importing a module registers its rules


def padded(
    closed: Any, bucket: Mapping[str, int], notes: Notes | None = None, fills: Sequence[Fill] = ()
) -> Callable[..., list[Any]]:
    """Return the program of a symbolic jaxpr for every size up to a bucket's.

    Args:
        closed: Closed jaxpr with symbolic sizes.
        bucket: Largest size of each dimension, by name.
        notes: Filled during the trace with the padded axes and masks of each variable of the new jaxpr.
        fills: Padding value of each array, such as `Proof.fills`, on which the program relies.

    Returns:
        A function of the true sizes (int32 scalars from 1 to the bucket's, by name) and of the arrays in the bucket's
        shapes. Padding without a fill may hold anything. It returns results in the bucket's shapes, whose valid part is
        the unpadded function's. Compile it with `jax.jit`; don't differentiate it.

    Raises:
        Refused: During the trace, if `prove` refuses an equation.
    """

    def run(sizes: Mapping[str, Any], *arrays: Any) -> list[Any]:
        return _walk(closed, bucket, sizes, arrays, Tally(collects=False, notes=notes), fills)[0]

    return run


def prove(closed: Any, names: Iterable[str]) -> Proof:
    """Return the proof for a symbolic jaxpr on padded arrays; its `refusals` are the equations that aren't exact.

    Args:
        closed: Closed jaxpr with symbolic sizes.
        names: Names of its dimensions.

    No content of the jaxpr makes it raise.
    """
    names = tuple(names)
    fills = [_zero(v.aval) for v in getattr(closed, "jaxpr", closed).invars]
    proof, mask_fills = _prove(closed, names, fills)
    if proof.refusals or all(fill in (None, 0) for fill in mask_fills):
        return proof
    # Pad with the fill of the first mask: padding copies the array anyway, and the mask is saved.
    best = [fill if of_mask is None else of_mask for fill, of_mask in zip(fills, mask_fills, strict=True)]
    return _prove(closed, names, best)[0]


def _zero(aval: Any) -> Fill:
    is_padded = any(map(is_symbolic, getattr(aval, "shape", ())))
    return None if not is_padded or jnp.issubdtype(aval.dtype, jax.dtypes.extended) else 0


def _prove(closed: Any, names: Sequence[str], fills: Sequence[Fill]) -> tuple[Proof, list[Fill]]:
    """Return the proof for these fills, and the fill of each array's first mask (None without a mask)."""
    tally = Tally(collects=True)
    bucket = _any_bucket(closed, names)
    sizes = {name: jax.ShapeDtypeStruct((), jnp.int32) for name in bucket}
    shapes = Sizes(bucket, {})
    inputs: list[Value] = []

    def walk(sizes: Mapping[str, Any], *arrays: Any) -> list[Any]:
        results, values = _walk(closed, bucket, sizes, arrays, tally, fills)
        inputs.extend(values)
        return results

    avals = [v.aval for v in getattr(closed, "jaxpr", closed).invars]
    structs = [jax.ShapeDtypeStruct(shapes.shape(aval.shape), aval.dtype) for aval in avals]
    refusals: list[PaddingRefusal] = []
    try:
        jax.eval_shape(walk, sizes, *structs)
    except Exception as fault:  # not tied to one equation
        text = str(fault).strip().partition("\n")[0]
        refusals.append(PaddingRefusal("", "", "", 0, f"the program can't be walked: {type(fault).__name__}: {text}"))
    refusals = [_refusal(path, refused) for path, refused in tally.refused.values()] + refusals
    proof = Proof(tuple(refusals), dict(tally.rules), tally.masks, tally.relayouts, tuple(bucket), tuple(fills))
    return proof, [value.mask_fill for value in inputs]


def _any_bucket(closed: Any, names: Iterable[str]) -> dict[str, int]:
    """Return a size for each dimension, different where bounds allow: it exposes a rule that confuses two of them."""
    sizes = (size for v in getattr(closed, "jaxpr", closed).invars for size in getattr(v.aval, "shape", ()))
    scope = next((size.scope for size in sizes if is_symbolic(size)), None)
    bucket: dict[str, int] = {}
    for at, name in enumerate(names):
        least, most = (1, None) if scope is None else bounds_of(jax.export.symbolic_shape(name, scope=scope)[0])
        wish = least + 10 + 2 * at
        bucket[name] = wish if most is None else min(wish, most)
    return bucket


def _walk(
    closed: Any,
    bucket: Mapping[str, int],
    sizes: Mapping[str, Any],
    arrays: Sequence[Any],
    tally: Tally,
    fills: Sequence[Fill],
) -> tuple[list[Any], list[Value]]:
    true = {name: jnp.asarray(size, jnp.int32) for name, size in sizes.items()}
    inputs = getattr(closed, "jaxpr", closed).invars
    given = fills or (None,) * len(inputs)
    values = [
        tally.note(make_value(array, v.aval, fills=[fill if is_symbolic(size) else None for size in v.aval.shape]))
        for array, v, fill in zip(arrays, inputs, given, strict=True)
    ]
    interpreter = Interpreter(Sizes(bucket, true), tally)
    results = interpreter.run(closed, values)
    return [interpreter.unmerged(value).array for value in results], values


def _refusal(path: Sequence[Any], refused: Refused) -> PaddingRefusal:
    # JAX traces its own functions once for all callers, so the place is that of the innermost call with a user's line.
    stacks = (user_stack(equation.source_info.traceback) for equation in reversed(path))
    stack = next(filter(None, stacks), ())
    file, line = (stack[0].file, stack[0].line) if stack else ("", 0)
    equation, name = path[-1], path[-1].primitive.name
    results, operands = (
        " ".join(str(v.aval.str_short(short_dtypes=True)) for v in part) for part in (equation.outvars, equation.invars)
    )
    text = getline(file, line).strip()
    return PaddingRefusal(
        f"{results} = {name} {operands}", name, file, line, refused.reason, refused.hint, label(file), text
    )


def count_flops(closed: Any, sizes: Mapping[str, int]) -> float:
    """Return the number of multiplications and additions in products, plus one for each element of any other result.

    Scans count their length, other loops one iteration, and a `cond` its most expensive branch. The figure only
    compares the same program at two sizes.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> count_flops(jax.make_jaxpr(lambda x: x @ x + 1)(jnp.ones((8, 8))), {})
        1088.0
    """
    at = Sizes(sizes, {})
    return float(sum(_flops(equation, at, sizes) for equation in getattr(closed, "jaxpr", closed).eqns))


def _flops(equation: Any, at: Sizes, sizes: Mapping[str, int]) -> float:
    inner = [count_flops(jaxpr, sizes) for _, jaxpr in inner_jaxprs(equation.params)]
    name = equation.primitive.name
    if inner:
        times = at.bucket(equation.params["length"]) if name == "scan" else 1
        return times * (max(inner) if name == "cond" else sum(inner))
    elements = sum(prod(at.shape(v.aval.shape)) for v in equation.outvars if hasattr(v.aval, "shape"))
    return elements * _per_element(equation, at)


def _per_element(equation: Any, at: Sizes) -> float:
    if equation.primitive.name == "dot_general":
        (contracted, _), _ = equation.params["dimension_numbers"]
        shape = at.shape(equation.invars[0].aval.shape)
        return 2.0 * prod(map(shape.__getitem__, contracted))
    if equation.primitive.name == "conv_general_dilated":
        kernel = equation.params["dimension_numbers"].rhs_spec
        shape = at.shape(equation.invars[1].aval.shape)
        return 2.0 * prod(map(shape.__getitem__, kernel[1:]))
    return 1.0
