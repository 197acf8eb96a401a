"""An executable's calls, answered by padded binaries, of which more are compiled beside the program when they pay.

When another binary is worth compiling is the ski rental rule: as soon as it would have paid for itself. Whoever buys
skis once the rent paid equals their price spends at most twice of what they would have spent, had they known how often
they go. Rent is what calls waste by running in a larger bucket; the price is a compile, taken to be what the largest
bucket's was. A bucket saves for all sizes that it serves, an exact binary for one size alone.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from math import prod
from threading import Lock, Thread, main_thread
from time import perf_counter
from typing import Any
from weakref import ref

import jax
import numpy as np
from jax.sharding import Sharding

from explorer._jax import is_top_level
from explorer.aot.binaries import Binary
from explorer.aot.inputs import InputInfo
from explorer.aot.padding.verdict import Buckets, PaddedProgram, Sizes, serves
from explorer.aot.symbols import Symbols, sizes_text
from explorer.padding.sizes import Sizes as SymbolicSizes
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
    """How calls of some sizes are served."""

    by: PaddedBinary  # what serves them
    pad: Resize  # its inputs, arrays only
    cut: Resize  # its outputs
    true: dict[str, Any]  # the sizes, as the binary takes them


@dataclass(eq=False)
class Usage:
    """The calls of some sizes that were padded."""

    bucket: Sizes
    calls: int = 0
    is_waited: bool = False
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=_SECONDS))


class PaddedCalls:
    """Serves every size by a few binaries; the largest bucket's at once, others when they are worth it."""

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
            self._fault(f"a call with {sizes_text(sizes)}", error)
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
            self._fault(f"compiling for {sizes_text(self.buckets.named(wish.sizes))}", error)
        self._demand.finish(wish)

    def _fault(self, what: str, error: Exception) -> None:
        first = str(error).strip().partition("\n")[0]
        self.faults = [*self.faults[-_FAULTS:], f"{what}: {type(error).__name__}: {first}"]


Shapes = list[tuple[int, ...]]

_COUNTED = 4096  # sizes whose elements are counted already; past it all are counted anew


class Footprint:
    """Shapes of inputs and outputs, and what they come to."""

    def __init__(self, symbols: Symbols, program: PaddedProgram, buckets: Buckets) -> None:
        self._symbols = symbols
        self._outputs = program.outputs
        self._buckets = buckets
        self._arrays = {name: info for name, info in symbols.inputs.items() if isinstance(info, InputInfo)}
        self._elements: dict[Sizes, float] = {}
        self.shardings = [info.sharding for info in self._arrays.values()]

    def inputs(self, sizes: Sizes) -> Shapes:
        """Of each input that is an array, its shape."""
        shapes = self._symbols.shapes(self._buckets.named(sizes))
        return [shapes[name] for name in self._arrays]

    def outputs(self, sizes: Sizes) -> Shapes:
        """Of each output its shape."""
        at = SymbolicSizes(self._buckets.named(sizes), {})
        return [at.shape(output.shape) for output in self._outputs]

    def elements(self, sizes: Sizes) -> float:
        """How many numbers go in and come out: what a program's work is taken to grow with."""
        if sizes not in self._elements:
            if len(self._elements) >= _COUNTED:
                self._elements.clear()
            self._elements[sizes] = float(sum(map(prod, [*self.inputs(sizes), *self.outputs(sizes)])))
        return self._elements[sizes]

    def bytes(self, sizes: Sizes) -> int:
        """Of all of them."""
        dtypes = [*(info.dtype for info in self._arrays.values()), *(output.dtype for output in self._outputs)]
        shapes = [*self.inputs(sizes), *self.outputs(sizes)]
        return sum(prod(shape) * dtype.itemsize for shape, dtype in zip(shapes, dtypes, strict=True))

    def can_be_spread(self, sizes: Sizes) -> bool:
        """Whether each input of these sizes can be split over its devices."""
        try:
            for sharding, shape in zip(self.shardings, self.inputs(sizes), strict=True):
                if isinstance(sharding, Sharding):  # compile() has made one of each spec
                    sharding.shard_shape(shape)
        except ValueError:
            return False
        return True


# Of a call at a bucket's own size: what masks cost. Measured 0 to 20 % for most functions, 120 % for a softmax over
# the padded axis.
_MASKS = 0.1
_NEVER = float("-inf")  # saved by what is there, or was tried: it isn't named again
_REMEMBERED = 4096  # sizes whose demand is kept; past it the demand of exact sizes starts anew


@dataclass(frozen=True)
class Wish:
    """A binary that is worth having: of a bucket, or of one exact size."""

    sizes: Sizes
    is_padded: bool


class Demand:
    """What calls would have saved with binaries that there aren't."""

    def __init__(self, candidates: Sequence[Sizes], work: Callable[[Sizes], float], price: float) -> None:
        self._work = work
        self._price = price
        self._lock = Lock()
        self._saved = dict.fromkeys(candidates, 0.0)
        self._saved_exact: dict[Sizes, float] = {}
        # What was named and isn't there yet: calls count as if it were, else every larger bucket would be named too.
        self._pending: set[Wish] = set()
        self._shares: dict[tuple[Sizes, Sizes], tuple[float, list[tuple[Sizes, float]]]] = {}

    def note(self, sizes: Sizes, bucket: Sizes, seconds: float, overhead: float) -> Wish | None:
        """A call was padded.

        Args:
            sizes: Its own.
            bucket: What served it.
            seconds: What it took.
            overhead: Of those, what padding and cutting took.

        Returns:
            What is worth compiling now; it isn't named again.
        """
        with self._lock:
            if Wish(sizes, is_padded=False) in self._pending:
                return None
            coming = [wish.sizes for wish in self._pending if wish.is_padded and serves(wish.sizes, sizes)]
            smallest = min((bucket, *coming), key=self._work)
            spent = (seconds - overhead) * self._work(smallest) / (self._work(bucket) or 1.0)
            wish = self._add(sizes, smallest, spent, overhead)
            if wish is not None:
                self._pending.add(wish)
            return wish

    def _add(self, sizes: Sizes, bucket: Sizes, seconds: float, overhead: float) -> Wish | None:
        """A call took so many seconds, and some more for padding and cutting."""
        exact_share, shares = self._shares_of(sizes, bucket)
        for candidate, share in shares:
            self._saved[candidate] += seconds * share
        if len(self._saved_exact) >= _REMEMBERED:
            self._saved_exact.clear()
        saved = self._saved_exact.get(sizes, 0.0) + overhead + seconds * exact_share
        self._saved_exact[sizes] = saved
        if saved >= self._price:
            self._saved_exact[sizes] = _NEVER
            return Wish(sizes, is_padded=False)
        best = max(shares, key=lambda pair: self._saved[pair[0]], default=None)
        if best is None or self._saved[best[0]] < self._price:
            return None
        self._saved[best[0]] = _NEVER
        return Wish(best[0], is_padded=True)

    def finish(self, wish: Wish) -> None:
        """What was named is there, or never will be."""
        with self._lock:
            self._pending.discard(wish)

    def add(self, bucket: Sizes) -> None:
        """A bucket is there now: what others would save is counted from here on."""
        with self._lock:
            self._saved.pop(bucket, None)
            self._saved = {candidate: min(saved, 0.0) for candidate, saved in self._saved.items()}
            self._shares.clear()

    def _shares_of(self, sizes: Sizes, bucket: Sizes) -> tuple[float, list[tuple[Sizes, float]]]:
        """Of a call's seconds, what an exact binary would save, and each bucket that is smaller than its own."""
        key = sizes, bucket
        if key not in self._shares:
            if len(self._shares) >= _REMEMBERED:
                self._shares.clear()
            whole = self._work(bucket) or 1.0
            smaller = [(c, 1 - self._work(c) / whole) for c in self._saved if c != bucket and serves(c, sizes)]
            exact = 1 - (1 - _MASKS) * self._work(sizes) / whole
            self._shares[key] = exact, [(candidate, share) for candidate, share in smaller if share > 0]
        return self._shares[key]


# Seconds after which Python hands the interpreter to another thread. Tracing holds it, and a call needs it several
# times: with Python's own 5 ms, calls of 3.2 ms took 17 ms beside a trace, with this 7 ms (two cores, jax 0.10.2).
_SWITCH = 0.0005


class Background:
    """Jobs of an owner, done one after the other in a thread of their own.

    The thread isn't a daemon: one that is still in XLA when the interpreter is taken down crashes the process. So the
    end of a program waits for the compile that is under way, and no other is begun.
    """

    def __init__(self, owner: Any, run: Callable[[Any, Any], None]) -> None:
        self._owner = ref(owner)
        self._run = run
        self._jobs: deque[Any] = deque()
        self._lock = Lock()
        self._thread: Thread | None = None

    @property
    def waiting(self) -> list[Any]:
        """The jobs that are not done yet, the one that is under way first."""
        with self._lock:
            return [*self._jobs]

    def add(self, job: Any) -> None:
        """Have a job done."""
        with self._lock:
            self._jobs.append(job)
            if self._thread is None:
                self._thread = Thread(target=_work, args=(self._owner, self), name="explorer-padding")
                self._thread.start()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until everything is done; whether it is."""
        thread = self._thread
        if thread is not None:
            thread.join(timeout)
        return self._thread is None

    def do_next(self, owner: Any) -> bool:
        """Do the next job; False if there is none, and the thread is to end."""
        with self._lock:
            if not self._jobs or not main_thread().is_alive():
                self._thread = None
                return False
            job = self._jobs[0]
        try:
            with _switching_often():
                self._run(owner, job)
        finally:
            with self._lock:
                self._jobs.popleft()
        return True


def _work(owner: ref[Any], background: Background) -> None:
    while True:
        held = owner()
        if held is None or not background.do_next(held):
            return
        del held  # between two jobs nothing keeps the owner


@contextmanager
def _switching_often() -> Generator[None]:
    before = sys.getswitchinterval()
    if before <= _SWITCH:
        yield
        return
    sys.setswitchinterval(_SWITCH)
    try:
        yield
    finally:
        if abs(sys.getswitchinterval() - _SWITCH) < _SWITCH / 100:  # nobody else has set another meanwhile
            sys.setswitchinterval(before)
