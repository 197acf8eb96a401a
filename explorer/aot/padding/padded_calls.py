"""An executable's calls, answered by padded binaries."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from threading import Lock
from time import perf_counter
from typing import Any

import jax
import numpy as np

from explorer._jax import is_top_level
from explorer.aot.binaries import Binary
from explorer.aot.padding.background import Background
from explorer.aot.padding.buckets import Buckets, Sizes, serves
from explorer.aot.padding.demand import Demand, Wish
from explorer.aot.padding.footprint import Footprint
from explorer.aot.padding.padded_program import PaddedProgram
from explorer.aot.symbols import Symbols
from explorer.padding.transfer import Resize, sizes_as_arrays, unguarded

_KEPT = 1024  # sizes for which it is known how they are padded; past it all are worked out anew
_SECONDS = 32  # of the latest calls of each size
_MOST = 16  # padded binaries that are compiled by demand: each takes memory, and the gain of more is small
_PRICE = 0.5  # seconds of a compile where nobody knows, for the largest came from a file
_FAULTS = 32  # that are remembered
UNPADDED: Any = object()
IN_BACKGROUND = "compiled in the background"
_NOT_WAITED = 64  # times as long as a call took to return, where its results aren't waited for


@dataclass(eq=False)
class PaddedBinary:
    """A compiled padded program, and how often it served."""

    bucket: Sizes
    binary: Binary
    is_background: bool
    calls: int = 0


@dataclass(frozen=True, eq=False)
class Served:
    """How calls of some sizes are served.

    Args:
        by: What serves them.
        pad: Its inputs, arrays only.
        cut: Its outputs.
        true: The sizes, as the binary takes them.
    """

    by: PaddedBinary
    pad: Resize
    cut: Resize
    true: dict[str, Any]


@dataclass(eq=False)
class Usage:
    """The calls of some sizes that were padded."""

    bucket: Sizes
    calls: int = 0
    is_waited: bool = False
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=_SECONDS))


class PaddedCalls:
    """Serves every size by a few binaries; the largest bucket's at once, others when they are worth it.

    Args:
        symbols: Of the executable's inputs.
        program: What is compiled.
        buckets: The sizes that inputs may be padded to.
        compile: Compiles a bucket, by name, for a reason.
        compile_exact: Compiles exact sizes, by name, for the executable to keep.
        ready: Binaries that were compiled elsewhere, each with its bucket.
    """

    def __init__(
        self,
        symbols: Symbols,
        program: PaddedProgram,
        buckets: Buckets,
        compile: Callable[[Mapping[str, int], str], Binary],
        compile_exact: Callable[[Mapping[str, int], str], Any],
        ready: Sequence[tuple[Mapping[str, int], Binary]] = (),
    ) -> None:
        self._symbols, self._program = symbols, program
        self.buckets = buckets
        self._compile = compile
        self._compile_exact = compile_exact
        self._lock = Lock()
        self._ready: tuple[PaddedBinary, ...] = ()
        self._served: dict[Sizes, Served] = {}
        self._refused: set[Sizes] = set()
        self.usage: dict[Sizes, Usage] = {}
        self.faults: list[str] = []
        self.footprint = Footprint(symbols, program, buckets)
        self._background = Background(self, PaddedCalls._do)
        for sizes, binary in ready:
            self._ready = (*self._ready, PaddedBinary(self._key(sizes), binary, is_background=False))
        self.largest = self._largest()
        devices = [*self.largest.binary.devices]
        self.is_on_host = all(device.platform == "cpu" for device in devices)
        # Where there are others, results are bound to this one if an input is; NumPy doesn't keep that.
        self._device = devices[0] if len(devices) == 1 < jax.device_count() else None
        self.candidates = self._candidates()
        price = self.largest.binary.specialization.seconds or _PRICE
        self._demand = Demand(self.candidates, self.footprint.elements, price)

    def _largest(self) -> PaddedBinary:
        largest = self.buckets.largest
        there = [binary for binary in self._ready if binary.bucket == largest]
        reason = "the largest sizes, which serve every other"
        return there[0] if there else self._add(largest, reason, is_background=False)

    def _candidates(self) -> list[Sizes]:
        """Other buckets that there may be."""
        compiled = {binary.bucket for binary in self._ready}
        buckets = [b for b in self.buckets.combinations if b not in compiled and self.footprint.can_be_spread(b)]
        if self._program.buckets is None:
            return buckets
        saved = [self._key(sizes) for sizes in self._program.buckets]
        return [bucket for bucket in buckets if bucket in saved]

    @property
    def ready(self) -> tuple[PaddedBinary, ...]:
        """The padded binaries that there are, the largest first."""
        return tuple(sorted(self._ready, key=lambda binary: self.footprint.elements(binary.bucket), reverse=True))

    @property
    def waiting(self) -> list[dict[str, int]]:
        """What is to be compiled in the background."""
        return [self.buckets.named(wish.sizes) for wish in self._background.waiting]

    def join(self, timeout: float | None = None) -> bool:
        """Wait for what is compiled in the background; whether it is done."""
        return self._background.join(timeout)

    def is_for(self, sizes: Mapping[str, int]) -> bool:
        """Whether calls of these sizes can be padded: the proof is for them, and JAX checks nothing but the user's."""
        config: Any = jax.config
        if config.jax_debug_nans or config.jax_debug_infs or not self._symbols.are_traced(sizes):
            return False
        return self._key(sizes) not in self._refused

    def binary(self, sizes: Mapping[str, int]) -> Binary:
        """What serves calls of these sizes now."""
        return self._smallest(self._key(sizes)).binary

    def call(self, sizes: Mapping[str, int], given: Sequence[Any], arguments: Callable[..., Any]) -> Any:
        """The result of a call.

        Args:
            sizes: Its own, at least 1 each.
            given: What a binary gets for each input.
            arguments: Makes the values of the parameters of those.

        Returns:
            `UNPADDED` where that went wrong: then calls of these sizes aren't padded any more.
        """
        __tracebackhide__ = True
        key = self._key(sizes)
        try:
            # Within a trace of the user's, where all that is given here are arrays, nothing may become a part of it.
            with nullcontext() if is_top_level() else jax.ensure_compile_time_eval():
                return self._call(key, self._served.get(key) or self._serve(key), given, arguments)
        except Exception as error:
            if any(isinstance(leaf, jax.Array) and leaf.is_deleted() for leaf in given):
                raise
            self._refused.add(key)
            self._fault(f"a call with {_text(sizes)}", error)
            return UNPADDED

    def _call(self, key: Sizes, served: Served, given: Sequence[Any], arguments: Callable[..., Any]) -> Any:
        start = perf_counter()
        arrays = [leaf for leaf in given if not isinstance(leaf, int)]
        padded = iter(served.pad.pad(arrays, self.is_on_host))
        filled = arguments([leaf if isinstance(leaf, int) else next(padded) for leaf in given])
        begun = perf_counter()
        outputs = self._run(served, arrays, filled)
        ended = perf_counter()
        outputs = self._cut(served, arrays, outputs)
        now = perf_counter()
        is_waited = self.is_on_host and bool(served.cut.changed)
        self._note(key, served.by, now - start, (begun - start) + (now - ended), is_waited)
        return jax.tree.unflatten(self._program.structure, outputs)

    def _run(self, served: Served, arrays: Sequence[Any], filled: tuple[Any, ...]) -> list[Any]:
        """The outputs in the bucket's shapes; where NumPy is to cut them, once they are there."""
        # What NumPy padded was on the device all along to a user who gave no NumPy array.
        is_given_by_numpy = any(isinstance(array, (np.ndarray, np.generic)) for array in arrays)
        with nullcontext() if is_given_by_numpy else unguarded():
            outputs: list[Any] = jax.tree.leaves(served.by.binary.compiled(served.true, *filled))
        if self.is_on_host and served.cut.changed:
            jax.block_until_ready(outputs)
        return outputs

    def _cut(self, served: Served, arrays: Sequence[Any], outputs: list[Any]) -> list[Any]:
        with unguarded():
            outputs = served.cut.cut(outputs, self.is_on_host)
            if self._device is None or not any(getattr(array, "committed", False) for array in arrays):
                return outputs
            return [jax.device_put(output, self._device) for output in outputs]

    def _note(self, key: Sizes, by: PaddedBinary, seconds: float, overhead: float, is_waited: bool) -> None:
        by.calls += 1
        usage = self.usage.setdefault(key, Usage(by.bucket))
        usage.is_waited = is_waited
        usage.bucket = by.bucket
        usage.calls += 1
        usage.seconds.append(seconds)
        wish = self._demand.note(key, by.bucket, seconds * (1 if is_waited else _NOT_WAITED), overhead)
        if wish is None:
            return
        if wish.is_padded and len(self._ready) >= _MOST:
            self._demand.finish(wish)
        else:
            self._background.add(wish)

    def _serve(self, key: Sizes) -> Served:
        """Find the binary for these sizes, and work out what is padded and cut."""
        by = self._smallest(key)
        shapes = self.footprint
        pad = Resize(shapes.inputs(key), shapes.inputs(by.bucket), shapes.shardings, self._program.fills)
        cut = Resize(shapes.outputs(by.bucket), shapes.outputs(key))
        with unguarded():
            served = Served(by, pad, cut, sizes_as_arrays(self.buckets.symbols, key))
        with self._lock:
            if len(self._served) >= _KEPT:
                self._served.clear()
            if by is self._smallest(key):  # no other came meanwhile
                self._served[key] = served
        return served

    def _key(self, sizes: Mapping[str, int]) -> Sizes:
        return tuple([sizes[symbol] for symbol in self.buckets.symbols])

    def _smallest(self, key: Sizes) -> PaddedBinary:
        return min((b for b in self._ready if serves(b.bucket, key)), key=lambda b: self.footprint.elements(b.bucket))

    # Compiling ---------------------------------------------------------------------------------------------------

    def ensure(self, bucket: Sizes, reason: str) -> None:
        """Compile a bucket now, unless there is one."""
        if all(binary.bucket != bucket for binary in self._ready):
            self._add(bucket, reason, is_background=False)
            self._demand.add(bucket)

    def _add(self, bucket: Sizes, reason: str, *, is_background: bool) -> PaddedBinary:
        __tracebackhide__ = True
        binary = self._compile(self.buckets.named(bucket), f"padded, {reason}")
        padded = PaddedBinary(bucket, binary, is_background)
        with self._lock:
            self._ready = (*self._ready, padded)
            self._served.clear()
        return padded

    def _do(self, wish: Wish) -> None:
        """Compile what is worth it, in the background: whatever is raised there costs nobody a result."""
        try:
            if wish.is_padded:
                self._add(wish.sizes, "for what smaller sizes waste in larger buckets", is_background=True)
                self._demand.add(wish.sizes)
            else:
                self._compile_exact(self.buckets.named(wish.sizes), f"called often, {IN_BACKGROUND}")
        except Exception as error:
            self._fault(f"compiling for {_text(self.buckets.named(wish.sizes))}", error)
        self._demand.finish(wish)

    def _fault(self, what: str, error: Exception) -> None:
        first = str(error).strip().partition("\n")[0]
        self.faults = [*self.faults[-_FAULTS:], f"{what}: {type(error).__name__}: {first}"]


def _text(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{symbol} = {size}" for symbol, size in sizes.items())
