"""A padded program held against the function itself at each size, in float64; and what it takes for granted against
the numbers that are there."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from explorer.padding import Proof, prove
from explorer.padding.interpreter import Tally
from explorer.padding.program import _walk

POISONS = ("nan", "inf", "lowest", "huge")
BUCKET = {"b": 5, "s": 7}
SIZES = ({"b": 1, "s": 2}, {"b": 3, "s": 5})


def _is_option(name):
    with suppress(jax.errors.JaxRuntimeError):
        jax.jit(lambda: 0).lower().compile({name: False})
        return True
    return False


# XLA's optimizations would take most of the time, and what is judged is the program it is given. Its emitters of
# fusions take as long as all the rest (25 oracles: 7.0 s, without 3.5 s, jax 0.10.2); the newest XLA has no others.
QUICKLY = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
if _is_option("xla_cpu_use_fusion_emitters"):
    QUICKLY["xla_cpu_use_fusion_emitters"] = False

Spec = tuple[Sequence[str | int], type]


def traced(function, specs: Sequence[Spec], names=("b", "s")):
    """The function as a jaxpr of symbolic sizes."""
    dims = export.symbolic_shape(
        ",".join(names), constraints=[f"{name} >= 1" for name in names] + [f"{name} <= 60" for name in names]
    )
    known = dict(zip(names, dims, strict=True))
    structs = [jax.ShapeDtypeStruct(shape_at(shape, known), dtype) for shape, dtype in specs]
    return jax.jit(function).trace(*structs).jaxpr


def shape_at(shape, sizes):
    return tuple(eval(size, {}, dict(sizes)) if isinstance(size, str) else size for size in shape)


def poison(dtype, kind: str | float):
    """What lies in the padding: the worst there is of its type, or a number."""
    if not isinstance(kind, str):
        return kind
    if dtype == np.bool_:
        return True
    if np.issubdtype(dtype, np.inexact):
        return {"nan": np.nan, "inf": np.inf, "lowest": -np.inf, "huge": 1e308}[kind]
    return np.iinfo(dtype).min if kind == "lowest" else np.iinfo(dtype).max


def sample(rng, shape, dtype):
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if np.issubdtype(dtype, np.inexact):
        return (2 * rng.standard_normal(shape)).astype(dtype)
    return rng.integers(0, 4, shape).astype(dtype)


def check(function, *specs: Spec, sizes=SIZES, bucket: Mapping[str, int] = BUCKET, arrays=None, fill=None) -> Proof:
    """Fail unless the padded program gives at every size what the function gives, whatever lies in the padding.

    Where there is a `fill`, that lies in the padding of all that goes in, and the program relies on it.
    """
    with jax.enable_x64(True):
        closed = traced(function, specs, tuple(bucket))
        proof = prove(closed, bucket)
        assert proof.is_exact, "\n".join(map(str, proof.refusals))
        given = [given_at(specs, size, arrays) for size in sizes]
        structs = [jax.ShapeDtypeStruct(shape_at(shape, bucket), dtype) for shape, dtype in specs]
        scalars = {name: jax.ShapeDtypeStruct((), np.int32) for name in bucket}
        facts: list[Facts] = []
        program = jax.jit(with_facts(closed, bucket, facts, fill), keep_unused=True)
        program = program.lower(scalars, *structs).compile(QUICKLY)
        # One program for all sizes: it is compiling that takes long.
        wanted = jax.jit(lambda given: [jax.tree.leaves(function(*a)) for a in given]).lower(given).compile(QUICKLY)
        for size, valid, results in zip(sizes, given, wanted(given), strict=True):
            for kind in POISONS if fill is None else (fill,):
                poisoned = [in_bucket(a, s.shape, kind) for a, s in zip(valid, structs, strict=True)]
                got, arrays_within = program({name: np.int32(n) for name, n in size.items()}, *poisoned)
                for one, want in zip(got, results, strict=True):
                    assert_close(one, want, f"{size}, {kind} in the padding")
                for array, fact in zip(arrays_within, facts, strict=True):
                    fact.assert_true(np.asarray(array), bucket, size, kind)
        return proof


LOOPS = {"scan", "while", "cond"}  # whose bodies' arrays are theirs alone


class Facts:
    """What the walk holds to be true of the padding of one array, and by which equation."""

    def __init__(self, value, path):
        self.layout, self.fills, self.or_nan = value.layout, value.fills, dict(value.or_nan)
        self.shape = value.shape
        self.path = " / ".join(equation.primitive.name for equation in path)

    def assert_true(self, array, bucket, size, kind):
        message = f"{self.path}: {self.layout} {self.fills} {self.or_nan}, {size}, {kind} in the padding"
        for axis in (axis for axis, length in enumerate(self.shape) if export.is_symbolic_dim(length)):
            ours = np.moveaxis(array, axis, 0)
            if not self.layout[axis]:  # the same all along
                np.testing.assert_array_equal(ours, np.broadcast_to(ours[:1], ours.shape), message)
            padding = ours[~valid_positions(self.layout[axis] or (self.shape[axis],), len(ours), bucket, size)]
            if self.fills[axis] is not None:
                np.testing.assert_array_equal(padding, np.full_like(padding, self.fills[axis]), message)
            if axis in self.or_nan:
                there = padding[~np.isnan(padding)]
                np.testing.assert_array_equal(there, np.full_like(there, self.or_nan[axis]), message)


class TallyOfFacts(Tally):
    """A walk's tally that keeps every array with what is held to be true of it."""

    def __init__(self, facts):
        super().__init__(collects=False)
        self.arrays, self.facts = [], facts

    def note(self, value):
        is_extended = jnp.issubdtype(value.aval.dtype, jax.dtypes.extended)
        if value.padded_axes and not is_extended and not LOOPS & {equation.primitive.name for equation in self.path}:
            self.arrays.append(value.array)
            self.facts.append(Facts(value, self.path))
        return super().note(value)


def with_facts(closed, bucket, facts, fill=None):
    """The padded program, that also returns the arrays within, of which `facts` tells."""

    def run(sizes, *arrays):
        tally = TallyOfFacts(facts)
        return _walk(closed, bucket, sizes, arrays, tally, [fill] * len(arrays))[0], tally.arrays

    return run


def valid_positions(factors, length, bucket, size):
    """By position on an axis of these factors whether it is valid, from the text of the sizes."""
    lengths = [length] if len(factors) == 1 else [size_at(factor, bucket) for factor in factors]
    parts = [np.arange(n) < size_at(factor, size) for n, factor in zip(lengths, factors, strict=True)]
    return reduce(np.logical_and.outer, parts).reshape(-1)


def size_at(size, sizes):
    functions = {"floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "max": max, "min": min}
    return eval(str(size).replace("^", "**"), functions, dict(sizes))


def given_at(specs: Sequence[Spec], size, arrays):
    rng = np.random.default_rng(0)
    return [
        sample(rng, shape_at(shape, size), np.dtype(dtype)) if arrays is None else arrays(rng, at, size)
        for at, (shape, dtype) in enumerate(specs)
    ]


def in_bucket(array, shape, kind: str | float):
    held = np.full(shape, poison(array.dtype, kind), array.dtype)
    held[tuple(map(slice, array.shape))] = array
    return held


def assert_close(result, want, message: str):
    if jnp.issubdtype(want.dtype, jax.dtypes.prng_key):
        result, want = jax.random.key_data(result), jax.random.key_data(want)
    valid = np.asarray(result)[tuple(map(slice, want.shape))]
    np.testing.assert_allclose(valid, np.asarray(want), rtol=1e-8, atol=1e-10, err_msg=message)


def refusals(function, *specs: Spec, names=("b", "s")):
    """What prevents an exact program."""
    with jax.enable_x64(True):
        return prove(traced(function, specs, names), names).refusals
