"""Padded programs where nobody says how large sizes get: a bucket more whenever a larger size comes.

Which dimensions of a function's arrays may be symbols is told by what calls had, the most general first:

1. each dimension is a symbol of its own;
2. dimensions of size 1, which broadcast, stay 1, and every other is at least 2;
3. besides, dimensions that were of one size in every call are one symbol: `x + y` wants that;
4. besides, only what was of several sizes is a symbol, from the second call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from math import prod
from threading import Lock
from time import perf_counter
from typing import Any

import jax
import numpy as np
from jax import export

from explorer.padding.sizes import Sizes
from explorer.padding.transfer import Resize, sizes_as_arrays, unguarded
from explorer.padding.values import Fill

# What a bucket may have more elements than the power of two that a call needs: past it a smaller one is compiled.
_WASTE = 4
_KEPT = 1024  # sizes of which it is known how they are padded
_JAX: Any = jax  # whose trees have no types

Run = Callable[..., Sequence[Any]]
Key = tuple[int, ...]  # of each symbol its size, in the order of the symbols


@dataclass(eq=False)
class _Bucket:
    """A compiled bucket: what it is, what runs it, what its compile took."""

    sizes: Key
    run: Run
    seconds: float = 0.0


@dataclass(eq=False)
class _Served:
    """How calls of some sizes are padded, and what padding has cost them so far."""

    by: _Bucket
    pad: Resize
    cut: Resize
    true: dict[str, Any]
    spent: float = 0.0


class GrowingProgram:
    """One proven program for every size, in buckets of powers of two that are compiled when they are needed.

    Args:
        closed: A closed jaxpr of symbolic sizes, whose proof is exact.
        symbols: The names of those, each with the smallest size that it stands for.
        make: Of a bucket, by name, what runs it: a function of the true sizes by name, the arrays in the bucket's
            shapes, and whatever else `call` is given. It compiles when it is called first.
        fills: Of each array what its padding is to hold.
    """

    def __init__(
        self,
        closed: Any,
        symbols: Mapping[str, int],
        make: Callable[[Mapping[str, int]], Run],
        fills: Sequence[Fill] = (),
    ) -> None:
        self._inputs = [aval.shape for aval in closed.in_avals]
        self._outputs = [aval.shape for aval in closed.out_avals]
        self._symbols, self._least = tuple(symbols), tuple(symbols.values())
        self._make, self._fills = make, fills
        self._lock = Lock()
        self._buckets: dict[Key, _Bucket] = {}
        self._served: dict[Key, _Served] = {}
        self._alone: set[Key] = set()

    @property
    def buckets(self) -> list[tuple[dict[str, int], float]]:
        """The buckets that are compiled, with the seconds that each took, the latest last."""
        return [(self._named(each.sizes), each.seconds) for each in list(self._buckets.values())]

    def call(self, sizes: Mapping[str, int], arrays: Sequence[Any], *others: Any) -> list[Any]:
        """The results at the call's own sizes, of arrays on one device, or NumPy's."""
        key = tuple([sizes[symbol] for symbol in self._symbols])
        served = self._served.get(key) or self._serve(key)
        begun = perf_counter()
        on_host, device = _device(arrays)
        padded = served.pad.pad(arrays, on_host)
        called = perf_counter()
        # What NumPy padded was on the device all along, to a user who gave no NumPy array.
        with nullcontext() if any(isinstance(array, np.ndarray) for array in arrays) else unguarded():
            outputs = list(served.by.run(served.true, padded, *others))
        if not served.by.seconds:
            _JAX.block_until_ready(outputs)
            served.by.seconds = perf_counter() - called
        is_waited = on_host and bool(served.cut.changed)
        if is_waited:
            _JAX.block_until_ready(outputs)
        ran = perf_counter()
        with unguarded():
            outputs = served.cut.cut(outputs, on_host)
            outputs = outputs if device is None else [jax.device_put(output, device) for output in outputs]
        wasted = (ran - called) * (1 - self._work(key) / self._work(served.by.sizes)) if is_waited else 0.0
        served.spent += (called - begun) + (perf_counter() - ran) + wasted
        return outputs

    def is_worth_its_own(self, sizes: Mapping[str, int]) -> bool:
        """Whether calls of these sizes spent as much on padding as a compile for them alone takes."""
        key = tuple(sizes[symbol] for symbol in self._symbols)
        served = self._served.get(key)
        return key in self._alone or (served is not None and served.spent >= served.by.seconds > 0)

    def give_up(self, sizes: Mapping[str, int]) -> None:
        """From now on calls of these sizes are worth a binary of their own, whatever they spent."""
        key = tuple(sizes[symbol] for symbol in self._symbols)
        with self._lock:
            self._alone.add(key)

    def is_ready(self, sizes: Mapping[str, int]) -> bool:
        """Whether there is a bucket for calls of these sizes."""
        return self._fitting(tuple(sizes[symbol] for symbol in self._symbols)) is not None

    def prepare(self, sizes: Mapping[str, int], arrays: Sequence[Any], *others: Any) -> None:
        """Compile the bucket for calls of these sizes, of which there is one, without running it; `make` is jax.jit."""
        key = tuple(sizes[symbol] for symbol in self._symbols)
        if self._fitting(key) is not None:
            return
        own, begun = self._own(key), perf_counter()
        pad = self._pad(Sizes(self._named(key), {}), Sizes(self._named(own), {}))
        run: Any = self._make(self._named(own))
        with unguarded():
            padded = pad.pad(arrays, _device(arrays)[0])
            run.lower(sizes_as_arrays(self._symbols, key), padded, *others).compile()  # which a call of the same finds
        bucket = _Bucket(own, run, perf_counter() - begun)
        with self._lock:
            self._buckets[own] = bucket

    def _serve(self, key: Key) -> _Served:
        bucket = self._bucket(key)
        there, target = Sizes(self._named(key), {}), Sizes(self._named(bucket.sizes), {})
        pad = self._pad(there, target)
        cut = Resize([*map(target.shape, self._outputs)], [*map(there.shape, self._outputs)])
        with unguarded():
            served = _Served(bucket, pad, cut, sizes_as_arrays(self._symbols, key))
        with self._lock:
            if len(self._served) >= _KEPT:
                self._served.clear()
            return self._served.setdefault(key, served)

    def _pad(self, there: Sizes, target: Sizes) -> Resize:
        return Resize([*map(there.shape, self._inputs)], [*map(target.shape, self._inputs)], fills=self._fills)

    def _bucket(self, key: Key) -> _Bucket:
        """The smallest bucket that there is, or a new one where that is far too large."""
        with self._lock:
            best = self._fitting(key)
            if best is None:
                own = self._own(key)
                best = self._buckets[own] = _Bucket(own, self._make(self._named(own)))
            return best

    def _own(self, key: Key) -> Key:
        return tuple([max(least, _power(size)) for least, size in zip(self._least, key, strict=True)])

    def _fitting(self, key: Key) -> _Bucket | None:
        fitting = [each for each in list(self._buckets.values()) if all(map(_holds, each.sizes, key))]
        best = min(fitting, key=lambda each: self._work(each.sizes), default=None)
        return None if best is None or self._work(best.sizes) > _WASTE * self._work(self._own(key)) else best

    def _work(self, key: Key) -> float:
        """How many numbers go in and come out: what a program's work is taken to grow with."""
        at = Sizes(self._named(key), {})
        return float(sum(prod(at.shape(shape)) for shape in (*self._inputs, *self._outputs))) or 1.0

    def _named(self, key: Key) -> dict[str, int]:
        return dict(zip(self._symbols, key, strict=True))


def _power(size: int) -> int:
    return 1 << max(0, size - 1).bit_length()


def _holds(bucket: int, size: int) -> bool:
    return size <= bucket


def _device(arrays: Sequence[Any]) -> tuple[bool, Any]:
    """Whether arrays are in the host's memory; and the device that they are bound to, if any is."""
    platform, device = jax.default_backend(), None
    for array in arrays:
        if isinstance(array, jax.Array):
            its = next(iter(array.devices()))
            platform = its.platform
            device = its if array.committed else device
    return platform == "cpu", device


Shapes = Sequence[tuple[int, ...]]


@dataclass(frozen=True)
class Pattern:
    """Of each array its dimensions, a number or a symbol's name."""

    shapes: tuple[tuple[int | str, ...], ...]  # of each array
    least: int  # the smallest size that a symbol stands for

    @property
    def names(self) -> list[str]:
        """Of its symbols, in order."""
        return list(dict.fromkeys(d for shape in self.shapes for d in shape if isinstance(d, str)))

    def sizes(self, shapes: Shapes) -> dict[str, int] | None:
        """What the symbols are for these shapes; None if it doesn't cover them."""
        sizes: dict[str, int] = {}
        for mine, theirs in zip(self.shapes, shapes, strict=True):
            for dimension, size in zip(mine, theirs, strict=True):
                expected = sizes.setdefault(dimension, size) if isinstance(dimension, str) else dimension
                if expected != size or (isinstance(dimension, str) and size < self.least):
                    return None
        return sizes

    def symbolic(self) -> list[tuple[Any, ...]]:
        """The shapes, with JAX's symbols."""
        limits = [f"{name} >= {self.least}" for name in self.names]
        symbols = dict(zip(self.names, export.symbolic_shape(", ".join(self.names), constraints=limits), strict=True))
        return [tuple(symbols[d] if isinstance(d, str) else d for d in shape) for shape in self.shapes]


def patterns(history: Sequence[Shapes]) -> Iterator[Pattern]:
    """Which dimensions may be symbols, the most general first; an empty one is never one.

    Args:
        history: The shapes of several calls, the last of which is to be traced.

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
    """Whether the last call has a size that could be a symbol and was another before: one call tells of none."""
    return any(
        size > 1 and any(shapes[i][j] != size for shapes in history)
        for i, shape in enumerate(history[-1])
        for j, size in enumerate(shape)
    )
