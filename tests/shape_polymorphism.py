"""JAX's own programs of symbolic shapes, each compiled here for a range of sizes and held against the function itself.

    python -m tests.shape_polymorphism PATH [--log FILE] [--sample N] [--only TEXT] [--pad]

PATH is a checkout of jax-ml/jax at the tag of the JAX that is installed. Its `tests/shape_poly_test.py` lists programs
and says which of their dimensions are symbols, and which programs JAX itself can't trace so. Each is compiled with such
dimensions as `NamedDimension`s and called at the smallest sizes, the usual and the largest, and held against what
`jax.jit` gives there. They come in an order that is random and always the same, so any first N are a sample. What a log
has already isn't run again.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import random
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

import explorer as ex

# What is asked is what is traced; XLA's optimizations would take most of the time.
LEVEL, OPTIONS = 0, {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
STEPS = (1, 2, 3, 4, 8)  # by which sizes are smaller and larger than the harness's own: the first that fits
RIGHT = ("symbolic", "each shape, as in JAX", "each shape", "refused, as in JAX")
OPERATIONS = {"floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "max": max, "min": min}

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Row:
    """What became of one program."""

    name: str
    outcome: str
    reason: str = ""
    seconds: float = 0.0


class Described:
    """A program of the harness with its arguments at any sizes.

    Args:
        harness: JAX's.
    """

    def __init__(self, harness: Any) -> None:
        self.harness = harness
        given = jax.tree.map(jnp.array, harness.dyn_args_maker(np.random.RandomState(0)))
        self.given, self.structure = jax.tree.flatten(given)
        structs = jax.tree.leaves(export.symbolic_args_specs(given, harness.polymorphic_shapes))
        self.shapes: list[tuple[int | str, ...]] = [
            tuple(size if isinstance(size, int) else str(size) for size in struct.shape) for struct in structs
        ]
        sizes = (item for shape in self.shapes for item in shape if isinstance(item, str))
        self.expressions = tuple(dict.fromkeys(sizes))
        self.usual = self._solve()

    def function(self, args: Any) -> Any:
        return self.harness.dyn_fun(*args)

    def _solve(self) -> dict[str, int]:
        """The symbols' sizes in the arguments as they are."""
        known = {
            expression: array.shape[axis]
            for array, shape in zip(self.given, self.shapes, strict=True)
            for axis, expression in enumerate(shape)
            if isinstance(expression, str)
        }
        names = {n for e in self.expressions for n in re.findall(r"[A-Za-z_]\w*", e)} - set(OPERATIONS)
        sizes = {name: known[name] for name in names if name in known}
        for name in sorted(names - set(sizes)):  # it stands in expressions only, such as 2*n
            sizes[name] = next(
                size
                for size in range(1, 1000)
                if all(at({**sizes, name: size}, e) in (None, known[e]) for e in self.expressions)
            )
        return sizes

    def meets_constraints(self, sizes: Sizes) -> bool:
        texts = self.harness.symbolic_constraints
        return all(eval(text, {**OPERATIONS, **sizes}) for text in texts)  # the harness's own text

    def shapes_at(self, sizes: Sizes) -> list[tuple[int, ...]]:
        return [tuple(s if isinstance(s, int) else int(at(sizes, s) or 0) for s in shape) for shape in self.shapes]

    def structs(self, sizes: Sizes) -> Any:
        pairs = zip(self.shapes_at(sizes), self.given, strict=True)
        return self.structure.unflatten([jax.ShapeDtypeStruct(shape, array.dtype) for shape, array in pairs])

    def arrays(self, sizes: Sizes) -> Any:
        """The arguments, cut or repeated to these sizes."""
        arrays = list(self.given)
        for i, shape in enumerate(self.shapes_at(sizes)):
            for axis, size in enumerate(shape):
                if arrays[i].shape[axis] != size:
                    taken = np.arange(size) % max(1, arrays[i].shape[axis])
                    arrays[i] = arrays[i][(*[slice(None)] * axis, taken)]
        return self.structure.unflatten(arrays)

    def infos(self, ranges: Sequence[Sizes]) -> Any:
        """The inputs, with a range wherever the harness has a symbol or an expression of some."""
        names = {e: e if e.isidentifier() else f"size_{i}" for i, e in enumerate(self.expressions)}
        dimensions: dict[int | str, Any] = {}
        for e in self.expressions:
            low, usual, high = sorted(int(at(sizes, e) or 0) for sizes in ranges)
            dimensions[e] = ex.NamedDimension(names[e], low, usual, high)
        infos = [
            ex.InputInfo(tuple(dimensions.get(s, s) for s in shape), array.dtype)
            for shape, array in zip(self.shapes, self.given, strict=True)
        ]
        return self.structure.unflatten(infos)


def at(sizes: Sizes, expression: str) -> int | None:
    """What an expression of symbols is at these sizes; None where one of them is not given."""
    try:
        return int(eval(expression.replace("^", "**"), {**OPERATIONS, **sizes}))
    except NameError:
        return None


def traced(described: Described, sizes: Sizes) -> Any:
    """`jax.jit` of the function at these sizes, or the error that it gives."""
    try:
        return jax.jit(described.function).trace(described.structs(sizes))
    except Exception as error:
        return error


def ranges_of(described: Described) -> dict[str, tuple[Sizes, Any]]:
    """The smallest sizes, the usual and the largest, each with the trace of the function at these."""
    usual = described.usual
    found: dict[str, tuple[Sizes, Any]] = {"usual": (usual, traced(described, usual))}
    for which, sign in (("smallest", -1), ("largest", 1)):
        found[which] = found["usual"]
        for step in STEPS:
            sizes = {name: max(1, size + sign * step) if size else 0 for name, size in usual.items()}
            if sizes == usual or not described.meets_constraints(sizes):
                continue
            trace = traced(described, sizes)
            if not isinstance(trace, Exception) or isinstance(found["usual"][1], Exception):
                found[which] = sizes, trace
                break
    return found


def is_close(result: Any, wanted: Any, tolerance: float) -> bool:
    if (result.shape, result.dtype) != (wanted.shape, wanted.dtype):
        return False
    if jnp.issubdtype(wanted.dtype, jax.dtypes.prng_key):
        result, wanted = jax.random.key_data(result), jax.random.key_data(wanted)
    if not jnp.issubdtype(wanted.dtype, jnp.inexact):
        return bool((np.asarray(result) == np.asarray(wanted)).all())
    one, other = (np.asarray(array).astype(np.complex128) for array in (result, wanted))
    scale = float(np.abs(other[np.isfinite(other)]).max(initial=0.0))
    with np.errstate(invalid="ignore"):
        return bool(np.allclose(one, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True))


def examine(harness: Any, options: Mapping[str, Any]) -> tuple[str, str]:
    """The outcome of one program, compiled with these options, and the reason."""
    described = Described(harness)
    ranges = ranges_of(described)
    error = ranges["usual"][1]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            infos = described.infos([sizes for sizes, _ in ranges.values()])
            executable = ex.compile(described.function, LEVEL, args=[infos], **options)
            results = {which: executable(described.arrays(sizes)) for which, (sizes, _) in ranges.items()}
    except Exception as failure:
        text = f"{type(failure).__name__}: {failure}"
        if isinstance(error, Exception):
            return "refused, as in JAX", text
        return ("refused" if isinstance(failure, ex.ExplorerError) else "crashed"), text
    for which, (sizes, trace) in ranges.items():
        if isinstance(trace, Exception):
            return "wrong", f"a result at {dict(sizes)}, where the function gives {type(trace).__name__}: {trace}"
        wanted = jax.tree.leaves(trace.lower().compile(OPTIONS)(described.arrays(sizes)))
        tolerance = max(harness.tol or 0.0, 1e-2 if any(w.dtype.itemsize <= 2 for w in wanted) else 1e-5)
        leaves = jax.tree.leaves(results[which])
        if len(leaves) != len(wanted):
            return "wrong", f"{len(leaves)} results at {dict(sizes)}, and {len(wanted)} of the function"
        for result, other in zip(leaves, wanted, strict=True):
            if not is_close(result, other, tolerance):
                return "wrong", f"at {dict(sizes)}: {result} and not {other}"
    why = executable.plan.program.why_each_shape
    return ("symbolic" if not why else "each shape, as in JAX" if harness.expect_error else "each shape"), why


def run(harness: Any, context: Callable[..., Any], options: Mapping[str, Any]) -> Row:
    start = time.perf_counter()
    try:
        with context(**harness.override_jax_config_flags):
            outcome, reason = examine(harness, options)
    except Exception as error:  # of this file, or the harness
        outcome, reason = "not run", f"{type(error).__name__}: {error}"
    return Row(harness.fullname, outcome, reason[:1000], round(time.perf_counter() - start, 2))


def harnesses(path: Path) -> tuple[list[Any], Callable[..., Any]]:
    """JAX's programs, and its own context for the options that some of them need."""
    file = path if path.is_file() else path / "tests" / "shape_poly_test.py"
    spec = importlib.util.spec_from_file_location("shape_poly_test", file)
    assert spec is not None
    assert spec.loader is not None
    sys.argv = sys.argv[:1]  # the module reads options of its own
    module: Any = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    np.random.seed(0)  # some programs have random numbers from here
    spec.loader.exec_module(module)
    listed = sorted(module._flatten_harnesses(module._POLY_SHAPE_TEST_HARNESSES), key=lambda h: h.fullname)
    random.Random(0).shuffle(listed)
    return listed, module.jtu.thread_local_config_context


def rows(path: Path, log: Path | None, sample: int | None, only: str, options: Mapping[str, Any]) -> Iterator[Row]:
    listed, context = harnesses(path)
    is_there = log is not None and log.exists()
    done = [Row(**json.loads(line)) for line in log.read_text().splitlines()] if is_there and log else []
    left = Counter(row.name for row in done)
    yield from done
    for number, harness in enumerate(itertools.islice((h for h in listed if only in h.fullname), sample)):
        if left[harness.fullname]:
            left[harness.fullname] -= 1
            continue
        row = run(harness, context, options)
        if log is not None:
            with log.open("a") as file:
                file.write(json.dumps(asdict(row)) + "\n")
        if number % 50 == 0:
            jax.clear_caches()
        yield row


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.shape_polymorphism", description=__doc__)
    parser.add_argument("path", type=Path, help="a checkout of jax-ml/jax")
    parser.add_argument("--log", type=Path, help="a file of one JSON object for each program")
    parser.add_argument("--sample", type=int, help="how many, of all in a random order")
    parser.add_argument("--only", default="", help="those whose name has this")
    parser.add_argument("--pad", action="store_true", help="by one binary for all sizes, or not at all")
    options = parser.parse_args()
    compiled = {"dynamic": "pad"} if options.pad else {}
    all_rows = list(rows(options.path, options.log, options.sample, options.only, compiled))
    counts = Counter(row.outcome for row in all_rows)
    for outcome in sorted(counts, key=lambda outcome: -counts[outcome]):
        print(f"{counts[outcome]:6,}  {outcome}")
    right = sum(counts[outcome] for outcome in RIGHT)
    print(f"{right:6,}  of {len(all_rows):,} give what the function gives: {right / max(1, len(all_rows)):.2%}")
    for row in sorted(all_rows, key=lambda row: (row.outcome, row.reason)):
        if row.outcome not in ("symbolic", "each shape, as in JAX", "refused, as in JAX"):
            print(f"{row.outcome}: {row.name}\n    {' '.join(row.reason.split())[:300]}")
    return int(right < len(all_rows))


if __name__ == "__main__":
    sys.exit(main())
