"""Run a slice of a program at many inputs, to find finite values with NaN gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import islice, pairwise, product
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from explorer._jax.calls import suppress_recording
from explorer._jax.evaluation import Evaluation, Value
from explorer._jax.settings import settings_restored
from explorer.pitfalls.equations import Equation
from explorer.pitfalls.gradient_slices import Guard, ValueSlice

_MAX_PROBES = 192  # values of the inputs; a run at all of them takes some milliseconds
_MAX_ELEMENTS = 4_000_000
_MAX_SECONDS = 1.0  # of a run at all probes
_COMMON = (0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0)
# Beyond what exp takes in float32 (88.7) and in float64 (709.8), both ways.
_EXTREME = (100.0, -100.0, 1_000.0, -1_000.0)
_MAX_LITERALS = 6


@dataclass(frozen=True)
class Results:
    values: np.ndarray  # its value, probe by probe
    is_finite: np.ndarray  # whether all of the value is
    is_nan: np.ndarray  # whether any of the gradient by any input is NaN
    has_gradient: np.ndarray  # whether all of the gradient is finite
    gradients: np.ndarray  # the gradient by all inputs, flat, probe by probe
    both: np.ndarray  # whether the condition of the choice held somewhere, and whether it failed somewhere

    def rows(self, chosen: slice) -> Results:
        return Results(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))

    def protected(self, probes: Probes) -> np.ndarray:
        """Return the indices of witnesses whose inputs have signs that never give an infinite value.

        A witness is a probe with a finite value and a NaN gradient. Only probes with one value per input count.
        """
        rows = [probe.reshape(len(probe), -1).astype(float) for probe in probes]
        even = np.all([row.max(axis=1) == row.min(axis=1) for row in rows], axis=0)
        signs = np.sign(np.stack([row.mean(axis=1) for row in rows], axis=1))
        bad = {tuple(row) for row in signs[even & ~self.is_finite].tolist()}
        shown = [row for row in self.witnesses if even[row] and tuple(signs[row].tolist()) not in bad]
        return np.array(shown, int)

    @property
    def witnesses(self) -> np.ndarray:
        """Indices of the probes with a finite value and a NaN gradient."""
        return np.flatnonzero(self.is_finite & self.is_nan)


Probes = list[np.ndarray]  # for each input an array with the probes along axis 0


def probes_of(sliced: ValueSlice) -> tuple[Probes, int]:
    """Return inputs to try, and how many of them, the first ones, are of ordinary size.

    First come values that programs compare with and derivatives are singular at: as constants, as one element among
    others, and random.
    """
    literals = dict.fromkeys(abs(number) for number in sliced.literals if 0 < abs(number) < 1e6)
    further = [value for number in islice(literals, _MAX_LITERALS) for value in (number, -number, number + 1)]
    common = _probes(sliced, list(dict.fromkeys((*_COMMON, *further))))
    extreme = _probes(sliced, list(_EXTREME))
    return [np.concatenate(pair) for pair in zip(common, extreme, strict=True)], len(common[0])


def _probes(sliced: ValueSlice, pool: list[float]) -> Probes:
    # One seed: the same function has the same findings each time.
    random = np.random.default_rng(0)
    avals = sliced.avals
    count = max(8, min(_MAX_PROBES, _MAX_ELEMENTS // max(1, sum(math.prod(aval.shape) for aval in avals) * 8)))
    first = list(_held(sliced, avals, random))
    rows = first + list(_constants(avals, pool, random)) + list(_mixed(avals, pool, random))
    if len(rows) > count:
        generic, rest = rows[: len(first) + 4], rows[len(first) + 4 :]
        rows = generic + [rest[i] for i in np.linspace(0, len(rest) - 1, count - len(generic)).astype(int)]
    return [np.stack([row[i] for row in rows]) for i in range(len(avals))]


def _held(sliced: ValueSlice, avals: Sequence[Any], random: np.random.Generator) -> Generator[list[np.ndarray]]:
    for (i, aval), array in product(enumerate(avals), sliced.arrays):
        sizes = zip(reversed(array.shape), reversed(aval.shape), strict=False)
        fits = array.ndim <= len(aval.shape) and all(size in (1, whole) for size, whole in sizes)
        if _is_float(aval) and fits:
            row = [_any(other, random) for other in avals]
            row[i] = np.broadcast_to(array, aval.shape).astype(_host(aval))
            yield row


def _constants(avals: Sequence[Any], pool: list[float], random: np.random.Generator) -> Generator[list[np.ndarray]]:
    """Yield random inputs, then inputs filled with one value, in all combinations for one or two inputs."""
    for scale in (1.0, 0.1):
        yield [_any(aval, random) * scale if _is_float(aval) else _any(aval, random) for aval in avals]
        yield [np.abs(_any(aval, random)) if _is_float(aval) else _any(aval, random) for aval in avals]
    if len(avals) <= 2:
        choices = [_pool(aval, pool) for aval in avals]
        yield from ([_full(aval, value) for aval, value in zip(avals, row, strict=True)] for row in product(*choices))
        return
    for value in pool:
        yield [_full(aval, value) for aval in avals]
    for _ in range(64):
        yield [_full(aval, random.choice(_pool(aval, pool))) for aval in avals]


def _mixed(avals: Sequence[Any], pool: list[float], random: np.random.Generator) -> Generator[list[np.ndarray]]:
    """Yield inputs with one special value among random ones, and inputs that are equal."""
    for i, aval in enumerate(avals):
        rank = len(aval.shape)
        places = [..., *([(0,) * rank] if math.prod(aval.shape) > 1 else []), *([(0,)] if rank > 1 else [])]
        for value, place in product(_pool(aval, pool), places):
            row = [_any(other, random) for other in avals]
            row[i][place] = value
            yield row
    same = [_any(aval, np.random.default_rng(1)) for aval in avals]
    if len(avals) > 1 and any(a.shape == b.shape for a, b in pairwise(avals)):
        yield same


def _pool(aval: Any, pool: list[float]) -> list[Any]:
    kind = aval.dtype.kind
    if kind == "b":
        return [True, False]
    if kind not in "iu":
        return pool
    limits = np.iinfo(aval.dtype)  # an image's uint8 has no 1,000
    return [value for value in pool if value == int(value) and limits.min <= value <= limits.max]


def _full(aval: Any, value: Any) -> np.ndarray:
    return np.full(tuple(aval.shape), value, _host(aval))


def _any(aval: Any, random: np.random.Generator) -> np.ndarray:
    kind, shape = aval.dtype.kind, tuple[int, ...](aval.shape)
    if kind == "b":
        return np.asarray(random.random(shape) < 0.5)
    if kind in "iu":
        return np.asarray(random.integers(0, 5, shape)).astype(_host(aval))
    return np.asarray(random.normal(size=shape)).astype(_host(aval))


def _host(aval: Any) -> Any:
    """Return the NumPy dtype for probes. JAX's small floats are converted from float32."""
    return np.dtype(np.float32) if aval.dtype.kind == "V" else np.dtype(aval.dtype)


def _is_float(aval: Any) -> bool:
    return aval.dtype.kind in "fVc"


@contextmanager
def quiet(is_trace: bool = False) -> Generator[None]:
    """Context for Explorer's own runs: NaNs are allowed, nothing is recorded, and outer traces are left.

    With `is_trace` constants of a trace stay equations: computed at once, each would be compiled.
    """
    with (
        suppress_recording(),
        settings_restored(),
        jax.debug_nans(False),
        jax.debug_infs(False),
        jax.disable_jit(False),
        jax.numpy_dtype_promotion("standard"),
        jax.transfer_guard("allow"),
        nullcontext() if is_trace else jax.ensure_compile_time_eval(),
    ):
        yield


def run_at(sliced: ValueSlice, probes: Probes, guards: Sequence[Guard] = ()) -> Results:
    """Return a slice's value and gradient at each probe, computed by JAX as for the user.

    Raises:
        ValueError: The guards can't be applied.
    """
    avals = sliced.avals
    floats = [i for i, aval in enumerate(avals) if _is_float(aval)]
    choice = sliced.sink

    def one(values: Sequence[Any]) -> Any:
        values = [value.astype(aval.dtype) for value, aval in zip(values, avals, strict=True)]

        def value_of(*chosen: Any) -> Any:
            every = list(values)
            for i, value in zip(floats, chosen, strict=True):
                every[i] = value
            return sliced.run(every, guards)

        value, pullback = cast(tuple[Any, Any], jax.vjp(value_of, *(values[i] for i in floats)))
        gradients: list[Any] = pullback(jnp.ones_like(value))
        flat = jnp.concatenate([_wide(gradient).ravel() for gradient in gradients])
        if choice.op == "select_n":
            test = jnp.asarray(sliced.operands(values, [choice])[0][0]).astype(bool)
            both = jnp.stack([test.any(), (~test).any()])
        else:
            both = jnp.ones(2, bool)
        value = _wide(value)
        return value, jnp.isfinite(value).all(), jnp.isnan(flat).any(), jnp.isfinite(flat).all(), flat, both

    return Results(*_at_all(one, probes))


def _wide(array: Any) -> Any:
    """Return an array as it is, or as float32 for JAX's small floats, which NumPy doesn't know."""
    return array.astype(jnp.float32) if array.dtype.kind == "V" else array


def singular_at(sliced: ValueSlice, probes: Probes, equations: Sequence[Equation], tests: Sequence[Any]) -> list[bool]:
    """Return for each equation True if its test fails, so that its derivative isn't finite, at any probe."""

    def one(values: Sequence[Any]) -> Any:
        values = [value.astype(aval.dtype) for value, aval in zip(values, sliced.avals, strict=True)]
        operands = sliced.operands(values, equations)
        return [jnp.any(~jnp.asarray(test(*each))) for test, each in zip(tests, operands, strict=True)]

    return [bool(result.any()) for result in _at_all(one, probes)]


def _at_all(function: Callable[[Sequence[Any]], Any], probes: Probes) -> list[np.ndarray]:
    """Return a function's results at each probe, stacked. `vmap` would turn branches into choices.

    NumPy runs the traced function: a compile would take ten times as long as all probes.
    """
    with quiet(is_trace=True):
        closed = jax.make_jaxpr(function)([jnp.array(probe[0]) for probe in probes])
    with quiet():
        evaluation = Evaluation(lambda _, __, results: [None] * len(results), _MAX_SECONDS)
        rows = [evaluation.run(closed, [Value(np.asarray(one)) for one in row]) for row in zip(*probes, strict=True)]
    return [np.stack([value.array for value in column]) for column in zip(*rows, strict=True)]
