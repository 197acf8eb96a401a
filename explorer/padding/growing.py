"""Padded programs without declared bounds: a larger size compiles another bucket.

`patterns` proposes symbolic dimensions from the shapes of earlier calls, the most general pattern first:

1. each dimension is a symbol of its own;
2. dimensions of size 1 stay 1 (they broadcast), every other is at least 2;
3. in addition, dimensions that had equal sizes in every call share one symbol, as `x + y` requires;
4. in addition, only dimensions whose size varied are symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import ge
from threading import Lock
from time import perf_counter
from typing import Any

import jax
from jax import export

from explorer._jax.interrupts import kept_for_xla
from explorer.padding.interpreter import Fill
from explorer.padding.sizes import Sizes
from explorer.padding.transfer import Footprint, Key, Served, Shapes, sizes_as_arrays, unguarded

# A bucket may have this many times the elements of the power of two that a call needs; else a smaller one is compiled.
_MAX_WASTE = 4
_MAX_SERVED = 1024  # sizes whose padding is cached

Run = Callable[..., Sequence[Any]]


@dataclass(eq=False)
class _Bucket:
    sizes: Key
    run: Run
    seconds: float = 0.0


class GrowingProgram:
    """One proven program for all sizes, compiled on demand for buckets of powers of two.

    Args:
        closed: Closed jaxpr with symbolic sizes, proven exact.
        symbols: Name and smallest size of each symbol.
        make: Return the program of a bucket, given its sizes by name: a function of the true sizes by name, the arrays
            in the bucket's shapes, and the further arguments of `call`. It compiles at its first call.
        fills: Padding value of each array.
    """

    def __init__(
        self,
        closed: Any,
        symbols: Mapping[str, int],
        make: Callable[[Mapping[str, int]], Run],
        fills: Sequence[Fill] = (),
    ) -> None:
        inputs = [aval.shape for aval in closed.in_avals]
        self._footprint = Footprint(
            tuple(symbols),
            lambda sizes: [*map(Sizes(sizes, {}).shape, inputs)],
            [aval.shape for aval in closed.out_avals],
            fills=fills,
        )
        self._least, self._make = tuple(symbols.values()), make
        self._lock = Lock()
        self._buckets: dict[Key, _Bucket] = {}
        self._served: dict[Key, Served[_Bucket]] = {}
        self._alone: set[Key] = set()

    @property
    def buckets(self) -> list[tuple[dict[str, int], float]]:
        return [(self._footprint.named(each.sizes), each.seconds) for each in list(self._buckets.values())]

    def call(self, sizes: Mapping[str, int], arrays: Sequence[Any], *others: Any) -> list[Any]:
        """Return the results at the call's own sizes; arrays are on one device or from NumPy."""
        key = self._footprint.key(sizes)
        served = self._served.get(key) or self._serve(key)
        by, (is_on_host, device) = served.by, _device(arrays)
        timed = served.call(by.run, arrays, is_on_host, device, others, waits=not by.seconds)
        # A bucket's first run includes its compile, which is what another binary would cost.
        by.seconds = by.seconds or timed.run
        served.spent += timed.overhead
        if is_on_host and served.cut.changed:  # the time in the binary is known
            elements = self._footprint.elements
            served.spent += timed.run * (1 - elements(key) / elements(by.sizes))
        return timed.outputs

    def is_worth_its_own(self, sizes: Mapping[str, int]) -> bool:
        """Return True if padding at these sizes failed, or took as long as the bucket's first run and compile."""
        key = self._footprint.key(sizes)
        served = self._served.get(key)
        return key in self._alone or (served is not None and served.spent >= served.by.seconds > 0)

    def give_up(self, sizes: Mapping[str, int]) -> None:
        with self._lock:
            self._alone.add(self._footprint.key(sizes))

    def is_ready(self, sizes: Mapping[str, int]) -> bool:
        return self._fitting(self._footprint.key(sizes)) is not None

    def prepare(self, sizes: Mapping[str, int], arrays: Sequence[Any], *others: Any) -> None:
        """Compile a bucket for these sizes, without running it, unless one that fits is there.

        `make` must return a jax.jit function.
        """
        key = self._footprint.key(sizes)
        if self._fitting(key) is not None:
            return
        own, begun = self._own(key), perf_counter()
        run: Any = self._make(self._footprint.named(own))
        with unguarded():
            padded = self._footprint.pad(key, own).pad(arrays, _device(arrays)[0])
            with kept_for_xla():
                run.lower(sizes_as_arrays(sizes), padded, *others).compile()  # JAX caches it for the call
        bucket = _Bucket(own, run, perf_counter() - begun)
        with self._lock:
            self._buckets[own] = bucket

    def _serve(self, key: Key) -> Served[_Bucket]:
        with self._lock:
            bucket = self._fitting(key)
            if bucket is None:
                own = self._own(key)
                bucket = self._buckets[own] = _Bucket(own, self._make(self._footprint.named(own)))
        served = self._footprint.served(key, bucket, bucket.sizes)
        with self._lock:
            if len(self._served) >= _MAX_SERVED:
                self._served.clear()
            # Another thread may have made it meanwhile; the costs of all calls are counted in one.
            return self._served.setdefault(key, served)

    def _own(self, key: Key) -> Key:
        return tuple([max(least, _power(size)) for least, size in zip(self._least, key, strict=True)])

    def _fitting(self, key: Key) -> _Bucket | None:
        """Return the smallest bucket that holds these sizes; None if it is missing or far too large."""
        elements = self._footprint.elements
        fitting = [each for each in list(self._buckets.values()) if all(map(ge, each.sizes, key))]
        best = min(fitting, key=lambda each: elements(each.sizes), default=None)
        return None if best is None or elements(best.sizes) > _MAX_WASTE * elements(self._own(key)) else best


def _power(size: int) -> int:
    return 1 << max(0, size - 1).bit_length()


def _device(arrays: Sequence[Any]) -> tuple[bool, Any]:
    """Return (True if the arrays are in host memory, the device to which one of them is committed or None)."""
    platform, device = jax.default_backend(), None
    for array in arrays:
        if isinstance(array, jax.Array):
            its = next(iter(array.devices()))
            platform = its.platform
            device = its if array.committed else device
    return platform == "cpu", device


@dataclass(frozen=True)
class Pattern:
    shapes: tuple[tuple[int | str, ...], ...]
    least: int  # smallest size of a symbol

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(d for shape in self.shapes for d in shape if isinstance(d, str)))

    def sizes(self, shapes: Shapes) -> dict[str, int] | None:
        """Return the size of each symbol, by name, for these shapes; None if the pattern doesn't match."""
        sizes: dict[str, int] = {}
        for mine, theirs in zip(self.shapes, shapes, strict=True):
            for dimension, size in zip(mine, theirs, strict=True):
                expected = sizes.setdefault(dimension, size) if isinstance(dimension, str) else dimension
                if expected != size or (isinstance(dimension, str) and size < self.least):
                    return None
        return sizes

    def symbolic(self) -> list[tuple[Any, ...]]:
        limits = [f"{name} >= {self.least}" for name in self.names]
        symbols = dict(zip(self.names, export.symbolic_shape(", ".join(self.names), constraints=limits), strict=True))
        return [tuple(symbols[d] if isinstance(d, str) else d for d in shape) for shape in self.shapes]


def patterns(history: Sequence[Shapes]) -> Iterator[Pattern]:
    """Yield patterns of symbolic dimensions, the most general first; an empty dimension is never a symbol.

    Args:
        history: Shapes of several calls; the last one is to be traced.

    Example:
        >>> [pattern.shapes for pattern in patterns([[(2, 3), (3,)]])][-1]
        (('n0', 'n1'), ('n1',))
    """
    seen: set[Pattern] = set()
    groups: dict[tuple[int, ...], str] = {}

    def dimension(i: int, j: int, least: int, is_shared: bool, varies_only: bool) -> int | str:
        sizes = tuple(shapes[i][j] for shapes in history)
        if sizes[-1] < least or (varies_only and len(set(sizes)) == 1):
            return sizes[-1]
        return groups.setdefault(sizes, f"n{len(groups)}") if is_shared else f"d{i}_{j}"

    for how in ((1, False, False), (2, False, False), (2, True, False), (2, True, True)):
        shapes = tuple(tuple(dimension(i, j, *how) for j in range(len(s))) for i, s in enumerate(history[-1]))
        pattern = Pattern(shapes, how[0])
        if pattern not in seen and pattern.names:
            seen.add(pattern)
            yield pattern


def varies(history: Sequence[Shapes]) -> bool:
    """Return True if a dimension above 1 of the last call had another size before."""
    return any(
        size > 1 and any(shapes[i][j] != size for shapes in history)
        for i, shape in enumerate(history[-1])
        for j, size in enumerate(shape)
    )
