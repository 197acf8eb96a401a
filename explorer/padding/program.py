"""A function of symbolic sizes as one program for every size of a bucket, with the proof that it is exact."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import jax.numpy as jnp

from explorer._jax import inner_jaxprs, user_stack
from explorer._jax.symbolic import bounds_of
from explorer.capture.sources import place
from explorer.padding import rules
from explorer.padding.interpreter import Interpreter, Notes, Tally
from explorer.padding.sizes import Refused, Sizes, is_symbolic
from explorer.padding.values import Fill, Value, make_value


@dataclass(frozen=True)
class Refusal:
    """An equation that can't be computed exactly on padded arrays."""

    equation: str  # as text: `f32[b] = cumsum[axis=0] f32[b]`
    primitive: str  # its name
    file: str  # of the user's line that made it; empty if it isn't known
    line: int  # of that file, from 1; 0 if it isn't known
    reason: str  # why it can't
    hint: str  # what would help; empty if nothing is known to

    def __str__(self) -> str:
        where = f"\n  at  {place(self.file, self.line)}" if self.file else ""
        hint = f"\n  Hint: {self.hint}" if self.hint else ""
        return f"{self.reason}: {self.equation}{where}{hint}"


@dataclass(frozen=True)
class Proof:
    """Whether one program for arrays of a bucket's size gives what the function gives at every smaller size."""

    refusals: tuple[Refusal, ...]  # every equation that prevents it
    rules: Mapping[str, int]  # by primitive, how many equations of padded axes it has
    masks: int  # how many arrays are masked
    relayouts: int  # how many arrays are gathered into other places, which costs most
    axes: tuple[str, ...]  # the named dimensions
    # of each array that goes in what is best put in its padding, for it needs no mask then; None where that may be
    # anything
    fills: tuple[Fill, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Whether nothing prevents it: results are those of the unpadded function up to the order of sums."""
        return not self.refusals


REGISTERED = rules  # which is imported for that


def padded(
    closed: Any, bucket: Mapping[str, int], notes: Notes | None = None, fills: Sequence[Fill] = ()
) -> Callable[..., list[Any]]:
    """The program of a symbolic jaxpr for every size up to a bucket's.

    Args:
        closed: A closed jaxpr whose sizes are symbolic.
        bucket: By name of a dimension, its largest size.
        notes: When it is traced, gets by variable of the new jaxpr which axes are padded, and what masks fill.
        fills: Of each array what its padding will hold, such as `Proof.fills`: it is relied upon.

    Returns:
        A function of the true sizes by name, int32 scalars of at least 1 and at most the bucket's, and the arrays, in
        the bucket's shapes; in padding whose fill isn't given there may be anything at all. It gives the results in the
        bucket's shapes, whose valid part is the unpadded function's. It is to be compiled by `jax.jit`, and isn't to be
        differentiated.

    Raises:
        Refused: When it is traced, of what `prove` says isn't exact.
    """

    def run(sizes: Mapping[str, Any], *arrays: Any) -> list[Any]:
        return _walk(closed, bucket, sizes, arrays, Tally(collects=False, notes=notes), fills)[0]

    return run


def prove(closed: Any, names: Iterable[str]) -> Proof:
    """Whether a symbolic jaxpr can be computed exactly on padded arrays, and every equation that can't be.

    Args:
        closed: A closed jaxpr whose sizes are symbolic.
        names: Of its dimensions.

    It raises for nothing that is in the jaxpr.
    """
    names = tuple(names)
    fills = [_zero(v.aval) for v in getattr(closed, "jaxpr", closed).invars]
    proof, wished = _prove(closed, names, fills)
    if proof.refusals or all(wish in (None, 0) for wish in wished):
        return proof
    # What its first mask writes is written where an array is padded, which copies it anyway.
    return _prove(closed, names, [fill if wish is None else wish for fill, wish in zip(fills, wished, strict=True)])[0]


def _zero(aval: Any) -> Fill:
    """What padding holds by itself; of a key of random numbers nothing that is known, nor where there is none."""
    is_padded = any(map(is_symbolic, getattr(aval, "shape", ())))
    return None if not is_padded or jnp.issubdtype(aval.dtype, jax.dtypes.extended) else 0


def _prove(closed: Any, names: Sequence[str], fills: Sequence[Fill]) -> tuple[Proof, list[Fill]]:
    """The proof where the padding of each array is filled so, and with what it is masked first."""
    tally = Tally(collects=True)
    bucket = _any_bucket(closed, names)
    sizes = {name: jax.ShapeDtypeStruct((), jnp.int32) for name in bucket}
    shapes = Sizes(bucket, {})
    inputs: list[Value] = []

    def walk(sizes: Mapping[str, Any], *arrays: Any) -> list[Any]:
        results, values = _walk(closed, bucket, sizes, arrays, tally, fills)
        inputs.extend(values)
        return results

    structs = [
        jax.ShapeDtypeStruct(shapes.shape(v.aval.shape), v.aval.dtype) for v in getattr(closed, "jaxpr", closed).invars
    ]
    refusals: list[Refusal] = []
    try:
        jax.eval_shape(walk, sizes, *structs)
    except Exception as fault:  # of what isn't about one equation
        text = str(fault).strip().partition("\n")[0]
        refusals.append(Refusal("", "", "", 0, f"the program can't be walked: {type(fault).__name__}: {text}", ""))
    refusals = [_refusal(path, refused) for path, refused in tally.refused.values()] + refusals
    proof = Proof(tuple(refusals), dict(tally.rules), tally.masks, tally.relayouts, tuple(bucket), tuple(fills))
    return proof, [value.wished for value in inputs]


def _any_bucket(closed: Any, names: Iterable[str]) -> dict[str, int]:
    """A size for each dimension, within its bounds: no rule looks at it.

    Where the bounds let them they differ, which shows a rule that mixes up two of them.
    """
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
    """The results, and what went in."""
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


def _refusal(path: Sequence[Any], refused: Refused) -> Refusal:
    # JAX traces its own functions once for all who call them: what they do is where they are called.
    stacks = (user_stack(equation.source_info.traceback) for equation in reversed(path))
    stack = next(filter(None, stacks), ())
    file, line = (stack[0].file, stack[0].line) if stack else ("", 0)
    equation = path[-1]
    return Refusal(_text(equation), equation.primitive.name, file, line, refused.reason, refused.hint)


def _text(equation: Any) -> str:
    results, operands = (
        " ".join(str(v.aval.str_short(short_dtypes=True)) for v in part) for part in (equation.outvars, equation.invars)
    )
    return f"{results} = {equation.primitive.name} {operands}"


def count_flops(closed: Any, sizes: Mapping[str, int]) -> float:
    """Multiplications and additions of products, and one for each element of any other result.

    A scan counts as often as it is long, another loop once, of a branch the longest: it is for comparing the same
    program at two sizes.

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


def _shape_of(variable: Any, at: Sizes) -> tuple[int, ...]:
    return at.shape(variable.aval.shape)


def _per_element(equation: Any, at: Sizes) -> float:
    if equation.primitive.name == "dot_general":
        (contracted, _), _ = equation.params["dimension_numbers"]
        shape = _shape_of(equation.invars[0], at)
        return 2.0 * prod(map(shape.__getitem__, contracted))
    if equation.primitive.name == "conv_general_dilated":
        kernel = equation.params["dimension_numbers"].rhs_spec
        shape = _shape_of(equation.invars[1], at)
        return 2.0 * prod(map(shape.__getitem__, kernel[1:]))
    return 1.0
