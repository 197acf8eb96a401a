"""Padded server of an executable: a few binaries for all sizes, and background compiles of others once they pay off.

The ski rental rule decides: a binary is compiled when it would have paid for itself. Someone who buys skis once the
rent paid equals their price spends at most twice the optimum. Here the rent is the time that calls waste in a larger
bucket. The price is a compile, estimated by the largest bucket's. A bucket saves time for every size that it serves,
an exact binary for one size.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from math import prod
from threading import Lock, Thread, main_thread
from typing import Any
from weakref import ref

import jax
from jax.sharding import Sharding

from explorer._jax.traces import is_top_level
from explorer.aot.binaries import Binaries, Binary
from explorer.aot.symbols import Symbols, sizes_text
from explorer.aot.verdict import Buckets, PaddedProgram, serves
from explorer.padding.transfer import Footprint, Key, Served, Shapes, Timed

_MAX_SERVED = 1024  # cached ways to pad; beyond it the cache starts again
_SAMPLES = 32  # latest call times that are kept per size
_MAX_BINARIES = 16  # padded binaries on demand: each takes memory, and more gain little
_DEFAULT_PRICE = 0.5  # seconds of a compile if the largest bucket came from a file, without its time
_MAX_FAULTS = 32
UNPADDED: Any = object()
IN_BACKGROUND = "compiled in the background"
_UNAWAITED_FACTOR = 64  # estimated run time over time to return, if results aren't waited for


@dataclass(eq=False)
class PaddedBinary:
    bucket: Key
    binary: Binary
    is_background: bool
    calls: int = 0


@dataclass(eq=False)
class Usage:
    bucket: Key
    calls: int = 0
    is_waited: bool = False
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=_SAMPLES))


class PaddedCalls:
    """Server of every size by a few binaries: the largest bucket's at once, others when they pay off."""

    def __init__(
        self,
        symbols: Symbols,
        program: PaddedProgram,
        buckets: Buckets,
        binaries: Binaries,
        ready: Sequence[tuple[Mapping[str, int], Binary]] = (),
    ) -> None:
        self._symbols, self._program, self._binaries = symbols, program, binaries
        self.buckets = buckets
        self.footprint = _footprint(symbols, program, buckets)
        self._lock = Lock()
        self._ready = tuple(PaddedBinary(self._key(sizes), binary, is_background=False) for sizes, binary in ready)
        self._served: dict[Key, Served[PaddedBinary]] = {}
        self._refused: set[Key] = set()
        self.usage: dict[Key, Usage] = {}
        self.faults: list[str] = []
        self._background = Background(self, PaddedCalls._do)
        largest = [each for each in self._ready if each.bucket == buckets.largest]
        reason = "the largest sizes, whose binary serves all others"
        self.largest = largest[0] if largest else self._add(buckets.largest, reason, is_background=False)
        devices = [*self.largest.binary.devices]
        self.is_on_host = all(device.platform == "cpu" for device in devices)
        # Among several devices, a committed input commits the results. Cutting by NumPy would lose that.
        self._device = devices[0] if len(devices) == 1 < jax.device_count() else None
        self.candidates = self._candidates()
        price = self.largest.binary.specialization.seconds or _DEFAULT_PRICE
        self._demand = Demand(self.candidates, self.footprint.elements, price)

    def _candidates(self) -> list[Key]:
        compiled = {binary.bucket for binary in self._ready}
        buckets = [b for b in self.buckets.combinations if b not in compiled and self._can_be_spread(b)]
        if self._program.buckets is None:
            return buckets
        saved = [self._key(sizes) for sizes in self._program.buckets]
        return [bucket for bucket in buckets if bucket in saved]

    def _can_be_spread(self, bucket: Key) -> bool:
        """Return True if each input with these sizes can be split over its devices."""
        try:
            for info, shape in zip(self._symbols.arrays.values(), self.footprint.inputs(bucket), strict=True):
                if isinstance(info.sharding, Sharding):  # compile() has resolved each PartitionSpec
                    info.sharding.shard_shape(shape)
        except ValueError:
            return False
        return True

    @property
    def ready(self) -> tuple[PaddedBinary, ...]:
        return tuple(sorted(self._ready, key=lambda binary: self.footprint.elements(binary.bucket), reverse=True))

    @property
    def waiting(self) -> list[dict[str, int]]:
        return [self.buckets.named(wish.sizes) for wish in self._background.waiting]

    def join(self, timeout: float | None = None) -> bool:
        return self._background.join(timeout)

    def is_for(self, sizes: Mapping[str, int]) -> bool:
        config: Any = jax.config
        # JAX's debug checks would see padding values, and the proof holds for traced sizes only.
        if config.jax_debug_nans or config.jax_debug_infs or not self._symbols.are_traced(sizes):
            return False
        return self._key(sizes) not in self._refused

    def binary(self, sizes: Mapping[str, int]) -> Binary:
        return self._smallest(self._key(sizes)).binary

    def bytes(self, sizes: Key) -> int:
        """Return the bytes of all inputs and outputs at these sizes."""
        arrays = [*self._symbols.arrays.values(), *self._program.outputs]
        shapes = [*self.footprint.inputs(sizes), *self.footprint.outputs(sizes)]
        return sum(prod(shape) * array.dtype.itemsize for shape, array in zip(shapes, arrays, strict=True))

    def call(self, sizes: Mapping[str, int], given: Sequence[Any]) -> Any:
        """Return the result of a call with these sizes and inputs.

        If padding fails, return `UNPADDED`; calls with these sizes are then no longer padded.
        """
        __tracebackhide__ = True
        key = self._key(sizes)
        try:
            # All inputs are concrete. Inside a user's trace, padding must not become part of that trace.
            with nullcontext() if is_top_level() else jax.ensure_compile_time_eval():
                return self._call(key, self._served.get(key) or self._serve(key), given)
        except Exception as error:
            # A donated array fails in the exact binary too: padding isn't the cause.
            if any(isinstance(leaf, jax.Array) and leaf.is_deleted() for leaf in given):
                raise
            self._refused.add(key)
            self._fault(f"a call with {sizes_text(sizes)}", error)
            return UNPADDED

    def _call(self, key: Key, served: Served[PaddedBinary], given: Sequence[Any]) -> Any:
        def run(true: Mapping[str, Any], padded: list[Any]) -> list[Any]:
            arrays = iter(padded)
            filled = self._binaries.arguments([leaf if isinstance(leaf, int) else next(arrays) for leaf in given])
            return jax.tree.leaves(served.by.binary.compiled(true, *filled))

        arrays = [leaf for leaf in given if not isinstance(leaf, int)]
        is_committed = self._device is not None and any(getattr(array, "committed", False) for array in arrays)
        timed = served.call(run, arrays, self.is_on_host, self._device if is_committed else None)
        self._note(key, served.by, timed)
        return jax.tree.unflatten(self._program.structure, timed.outputs)

    def _note(self, key: Key, by: PaddedBinary, timed: Timed) -> None:
        seconds = timed.run + timed.overhead
        by.calls += 1
        usage = self.usage.setdefault(key, Usage(by.bucket))
        usage.is_waited = timed.is_waited
        usage.bucket = by.bucket
        usage.calls += 1
        usage.seconds.append(seconds)
        estimate = seconds * (1 if timed.is_waited else _UNAWAITED_FACTOR)
        wish = self._demand.note(key, by.bucket, estimate, timed.overhead)
        if wish is None:
            return
        # Over the limit the wish ends here; its savings are used up, so it isn't wished again.
        if wish.is_padded and len(self._ready) >= _MAX_BINARIES:
            self._demand.finish(wish)
        else:
            self._background.add(wish)

    def _serve(self, key: Key) -> Served[PaddedBinary]:
        by = self._smallest(key)
        served = self.footprint.served(key, by, by.bucket)
        with self._lock:
            if len(self._served) >= _MAX_SERVED:
                self._served.clear()
            if by is self._smallest(key):  # another thread may have added a better one
                self._served[key] = served
        return served

    def _key(self, sizes: Mapping[str, int]) -> Key:
        return self.footprint.key(sizes)

    def _smallest(self, key: Key) -> PaddedBinary:
        return min((b for b in self._ready if serves(b.bucket, key)), key=lambda b: self.footprint.elements(b.bucket))

    # Compiling ---------------------------------------------------------------------------------------------------

    def ensure(self, bucket: Key, reason: str) -> None:
        if all(binary.bucket != bucket for binary in self._ready):
            self._add(bucket, reason, is_background=False)
            self._demand.add(bucket)

    def _add(self, bucket: Key, reason: str, *, is_background: bool) -> PaddedBinary:
        __tracebackhide__ = True
        binary = self._binaries.compile_padded(self._program, self.buckets.named(bucket), f"padded, {reason}")
        padded = PaddedBinary(bucket, binary, is_background)
        with self._lock:
            # A new tuple: calls on other threads read it without the lock.
            self._ready = (*self._ready, padded)
            # The new binary may serve known sizes better.
            self._served.clear()
        return padded

    def _do(self, wish: Wish) -> None:
        """Compile the binary that a wish names, in the background. An error is recorded in `faults` and affects no
        call.
        """
        try:
            if wish.is_padded:
                self._add(wish.sizes, "because smaller sizes waste too much in larger buckets", is_background=True)
                self._demand.add(wish.sizes)
            else:
                self._binaries.binary(self.buckets.named(wish.sizes), f"called often, {IN_BACKGROUND}")
        except Exception as error:
            self._fault(f"compiling for {sizes_text(self.buckets.named(wish.sizes))}", error)
        self._demand.finish(wish)

    def _fault(self, what: str, error: Exception) -> None:
        first = str(error).strip().partition("\n")[0]
        # A new list: reports read it without a lock.
        self.faults = [*self.faults[-_MAX_FAULTS:], f"{what}: {type(error).__name__}: {first}"]


def _footprint(symbols: Symbols, program: PaddedProgram, buckets: Buckets) -> Footprint:
    arrays = symbols.arrays

    def inputs(sizes: Mapping[str, int]) -> Shapes:
        shapes = symbols.shapes(sizes)
        return [shapes[name] for name in arrays]

    outputs = [output.shape for output in program.outputs]
    return Footprint(buckets.symbols, inputs, outputs, [info.sharding for info in arrays.values()], program.fills)


# Share of a call's time that masks take at the bucket's own size. Measured 0 to 20 % for most functions, 120 % for a
# softmax over the padded axis.
_MASKS = 0.1
_NEVER = float("-inf")  # savings of a binary that is compiled or was tried: it can't be wished again
_REMEMBERED = 4096  # sizes whose demand is kept; beyond it the demand of exact sizes starts again


@dataclass(frozen=True)
class Wish:
    """Binary that is worth compiling: of a bucket, or of one exact size."""

    sizes: Key
    is_padded: bool


class Demand:
    """Seconds that calls would have saved with binaries that don't exist yet."""

    def __init__(self, candidates: Sequence[Key], work: Callable[[Key], float], price: float) -> None:
        self._work = work
        self._price = price
        self._lock = Lock()
        self._saved = dict.fromkeys(candidates, 0.0)
        self._saved_exact: dict[Key, float] = {}
        # Wishes that aren't compiled yet. Calls count as if they were, else every larger bucket would follow.
        self._pending: set[Wish] = set()
        self._shares: dict[tuple[Key, Key], tuple[float, list[tuple[Key, float]]]] = {}

    def note(self, sizes: Key, bucket: Key, seconds: float, overhead: float) -> Wish | None:
        """Record a padded call.

        Args:
            sizes: The call's sizes.
            bucket: The bucket that served it.
            seconds: Duration of the call.
            overhead: Part of `seconds` that padding and cutting took.

        Returns:
            The binary that is now worth compiling, once, or None.
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

    def _add(self, sizes: Key, bucket: Key, seconds: float, overhead: float) -> Wish | None:
        """Add the seconds of a call to the savings of each candidate binary.

        Return a wish for a binary whose savings reached the price of a compilation, or None.
        """
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
        with self._lock:
            self._pending.discard(wish)

    def add(self, bucket: Key) -> None:
        """Remove a bucket that was compiled from the candidates, and start the savings of the other candidates again at
        0.
        """
        with self._lock:
            self._saved.pop(bucket, None)
            self._saved = {candidate: min(saved, 0.0) for candidate, saved in self._saved.items()}
            self._shares.clear()

    def _shares_of(self, sizes: Key, bucket: Key) -> tuple[float, list[tuple[Key, float]]]:
        """Return the shares of a call's seconds, 0 to 1, that other binaries would save: the exact one's, and a list of
        `(bucket, share)` for each smaller bucket that serves the sizes.
        """
        key = sizes, bucket
        if key not in self._shares:
            if len(self._shares) >= _REMEMBERED:
                self._shares.clear()
            whole = self._work(bucket) or 1.0
            smaller = [(c, 1 - self._work(c) / whole) for c in self._saved if c != bucket and serves(c, sizes)]
            exact = 1 - (1 - _MASKS) * self._work(sizes) / whole
            self._shares[key] = exact, [(candidate, share) for candidate, share in smaller if share > 0]
        return self._shares[key]


# Thread switch interval in seconds. Tracing holds the interpreter, and a call needs it several times. With Python's
# default of 5 ms, calls of 3.2 ms took 17 ms during a trace; with this, 7 ms (two cores, jax 0.10.2).
_SWITCH = 0.0005


class Background:
    """Queue of an owner's jobs, run one after the other in a thread.

    The thread isn't a daemon: a daemon thread inside XLA crashes the process when the interpreter shuts down. The end
    of a program waits for the compile that is under way; no further one starts.
    """

    def __init__(self, owner: Any, run: Callable[[Any, Any], None]) -> None:
        self._owner = ref(owner)
        self._run = run
        self._jobs: deque[Any] = deque()
        self._lock = Lock()
        self._thread: Thread | None = None

    @property
    def waiting(self) -> list[Any]:
        with self._lock:
            return [*self._jobs]

    def add(self, job: Any) -> None:
        with self._lock:
            self._jobs.append(job)
            if self._thread is None:
                self._thread = Thread(target=_work, args=(self._owner, self), name="explorer-padding")
                self._thread.start()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until all jobs are done. Return True if they are."""
        thread = self._thread
        if thread is not None:
            thread.join(timeout)
        return self._thread is None

    def do_next(self, owner: Any) -> bool:
        """Run the next job and return True. Return False, which ends the thread, if the queue is empty or the program
        ends.
        """
        with self._lock:
            if not self._jobs or not main_thread().is_alive():
                self._thread = None
                return False
            # It stays in the queue while it runs: `waiting` lists it.
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
        del held  # between two jobs the owner can be collected


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
        if abs(sys.getswitchinterval() - _SWITCH) < _SWITCH / 100:  # other code may have set another interval
            sys.setswitchinterval(before)
