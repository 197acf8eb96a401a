"""The steady state of a call: warm up until stable, then sample until the median is precise."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from itertools import repeat
from statistics import median
from time import perf_counter
from typing import Any, TypeVar

import jax

from explorer.capture.script import printed_once
from explorer.errors import OptionError
from explorer.measure.calls import quick_wait, ready
from explorer.measure.disturbance import BLOCK, Block, Observer, Quiet
from explorer.model.results.statistics import interval_of_median
from explorer.model.results.timing import Samples

_Result = TypeVar("_Result")
# Yields one callable after the other, is sent the seconds of the sample that it took, and returns what they lead to.
Steps = Generator[Callable[[], float], float, _Result]

# Seconds that a sample takes at least. The clock's 50 ns are nothing of it; and longer ones are interrupted by other
# programs more often, so that the median would be an interrupted one.
_SAMPLE = 2e-4
_WARM_UP = 0.3  # of the time there is: the most that may go by before it counts
_SHORT = 0.7  # of it for calls that are made many times a sample: their warm-up takes most of the time
_WINDOW = 5  # samples that are compared with those before them
_STABLE = 0.02  # two windows that differ by less are the same
_FEWEST = 3  # samples, if a call isn't so long that
_PATIENCE = 5  # times the time there is, and a second at least, goes by before there are fewer
_ENOUGH = 30  # samples, before few of them may be called precise
_PART = 0.4  # of the time there is: what is used at least, for the machine to show how it changes
_COPIES = 64 << 20  # bytes of fresh arguments at a time
_MOST = 4000  # samples; more are no help
_HALF, _FASTER = 100, 0.005  # samples of a half, and by how much the second is faster, for the first not to count
_CALM = 5  # samples taken while nothing else was seen, for the others not to count
_EXTENDED = 2  # times the time there is, until as much of it was quiet


def steady(
    call: Callable[..., Any],
    *,
    seconds: float = 1.0,
    confidence: float = 0.95,
    precision: float = 0.02,
    prepare: Callable[[], tuple[Any, ...]] | None = None,
    progress: Callable[[float], None] | None = None,
) -> Samples:
    """Call a function repeatedly until its warm duration is known.

    Every result is awaited. A call too short for the clock is made many times per sample. Garbage collection is off
    while the clock runs, and printing is muted. Samples taken while other programs wanted the same cores are left out
    if enough others remain.

    Args:
        call: Called without arguments, or with the result of `prepare`. Its first call should be done already.
        seconds: Time to spend, up to twice as long while other programs run. At least three samples are taken, if five
            times `seconds` is enough for them.
        confidence: Of the interval of the median, 0 to 1.
        precision: Stop early if the interval reaches less than this fraction of the median to each side: 0.02 is 2 %.
            It never reaches less than 3 %.
        prepare: Makes the arguments of one call, unmeasured. `Calls` has one for functions that donate.
        progress: Called with the fraction of work done, 0 to 1.

    Raises:
        OptionError: `seconds`, `confidence` or `precision` is out of range.

    Example:
        >>> samples = steady(lambda: sum(range(100)), seconds=0.01)
        >>> samples.low <= samples.median <= samples.high
        True
    """
    check_seconds(seconds)
    check_confidence(confidence, precision)
    sampler = Sampler(call, prepare=prepare, confidence=confidence, observer=Observer())
    with printed_once() as prints, prints.muted():
        sampler.warm_up(_WARM_UP * seconds)
        sampler.measure(seconds, precision, progress)
        return sampler.samples


def settled(values: Sequence[float]) -> list[float]:
    """Return the samples without a slow start; all samples if they did not become faster.

    Halves are compared, twice at most: the truncation of a transient as in White (1997), *An Effective Truncation
    Heuristic for Bias Reduction in Simulation Output*, in a form that bursts of noise don't mislead.

    Example:
        >>> settled([1.1] * 100 + [1.0] * 300) == [1.0] * 200, len(settled([1.0, 1.1] * 200))
        (True, 400)
    """
    kept = list(values)
    for _ in range(2):
        half = len(kept) // 2
        if half < _HALF or median(kept[:half]) <= (1 + _FASTER) * median(kept[half:]):
            break
        kept = kept[half:]
    return kept


def run_to_completion(steps: Steps[_Result]) -> _Result:
    """Take each sample that the steps yield, and return their result.

    JAX records the Python stack with each array that a call makes, 20 ns per frame: six frames of measurement would be
    3 % of a call of 5 µs. A suspended generator is in no stack.
    """
    __tracebackhide__ = True
    try:
        sample = next(steps)
        while True:
            try:
                seconds = sample()
            except BaseException as error:
                # Raised within the steps, so that their contexts see it as in a plain call.
                sample = steps.throw(error)
            else:
                sample = steps.send(seconds)
    except StopIteration as end:
        return end.value


class Sampler:
    """Sampler of one call.

    Args:
        call, prepare: As for `steady`.
        args: The call's arguments if nothing is prepared.
        confidence: Of the interval of the samples.
        prepared_bytes: Size of one set of fresh arguments.
        clock: Returns seconds.
        wait: Waits for a result; None chooses the fastest for the first result.
        observer: Observer of other work on the machine; None observes nothing.

    Attributes:
        taken: Seconds per call of each sample; after `measure`, only of those that count.
        warmed: Seconds of each warm-up call.
        is_stable: True if the warm-up ended because times no longer changed.
    """

    def __init__(
        self,
        call: Callable[..., Any],
        *,
        args: tuple[Any, ...] = (),
        prepare: Callable[[], tuple[Any, ...]] | None = None,
        confidence: float = 0.95,
        prepared_bytes: int = 0,
        clock: Callable[[], float] = perf_counter,
        wait: Callable[[Any], Any] | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._call, self._args, self._prepare, self._clock = call, args, prepare, clock
        self._wait, self._may_choose = wait or ready, wait is None
        self._confidence = confidence
        self._most_calls = _COPIES // prepared_bytes if prepared_bytes else 1 << 30
        self._is_array = False
        self.calls = 1
        self._observer = observer
        self._quiet: Quiet | None = None
        self.left_out = 0
        self.taken: list[float] = []
        self.warmed: list[float] = []
        self.is_stable = False

    def warm_up(self, seconds: float) -> None:
        """Call until two windows of calls agree, at most `seconds`; then set the number of calls per sample."""
        run_to_completion(self.warming_up(seconds))

    def measure(self, seconds: float, precision: float, progress: Callable[[float], None] | None = None) -> None:
        """Take samples into `taken` until their median is precise or time is up; keep those that count.

        Time is up after `seconds`, or after twice as long on a busy machine.
        """
        run_to_completion(self.measuring(seconds, precision, progress))

    def warming_up(self, seconds: float) -> Steps[None]:
        """Yield `sample` as each next step, until the times in `warmed` settle or `seconds` are over."""
        began = self._clock()
        self._choose_wait()
        while self._clock() - began < seconds:
            self.warmed.append((yield self.sample))
            if self._has_settled():
                self.is_stable = True
                break
        self.calls = self._calls_for(min(self.warmed[-2 * _WINDOW :]))
        if self.calls > 1:  # a single cold call doesn't show what one of a batch costs
            self.calls = self._calls_for(min((yield self.sample), (yield self.sample)))
            # After a compile these take some percent longer for 100,000 calls, until what it left in memory is used up;
            # too slowly for windows to see.
            while self._clock() - began < _SHORT / _WARM_UP * seconds:
                yield self.sample

    def _calls_for(self, seconds: float) -> int:
        return max(1, min(self._most_calls, round(_SAMPLE / max(seconds, 1e-9))))

    def measuring(
        self, seconds: float, precision: float, progress: Callable[[float], None] | None = None
    ) -> Steps[None]:
        """Yield `sample` as each next step, and append the results to `taken`.

        At the end, `taken` has only the samples that count.
        """
        observer, began, block_began = self._observer, self._clock(), self._clock()
        check_at, notify_at = _ENOUGH, 0.0
        blocks: list[Block] = []
        in_blocks = 0
        if observer is not None:
            observer.begin()
        while len(self.taken) < _MOST:
            self.taken.append((yield self.sample))
            now = self._clock()
            spent = (now - began) / seconds
            if observer is not None and now - block_began >= BLOCK:
                blocks.append(observer.block(len(self.taken) - in_blocks, now - block_began))
                in_blocks, block_began = len(self.taken), self._clock()
                self._quiet = observer.quiet(blocks, _CALM)
            if progress is not None and spent >= notify_at:  # seldom: it fills the caches between two samples
                progress(min(spent, 1.0))
                notify_at = spent + 0.05
            if self._is_time_up(seconds, spent):
                break
            # Seldom: a check after every sample would stop at one where the median seems precise by chance.
            if len(self.taken) >= check_at and spent >= _PART:
                check_at = len(self.taken) * 3 // 2
                if self._is_precise(precision):
                    break
        if observer is not None and in_blocks < len(self.taken):
            blocks.append(observer.block(len(self.taken) - in_blocks, self._clock() - block_began))
            self._quiet = observer.quiet(blocks, _CALM)
        counted = self._counted()
        self.left_out = len(self.taken) - len(counted)
        self.taken = settled(counted) if self.calls > 1 else counted
        if progress is not None:
            progress(1.0)

    def _is_time_up(self, seconds: float, spent: float) -> bool:
        if spent * seconds >= max(_PATIENCE * seconds, 1.0):
            return True
        # On a busy machine only quiet time counts, up to a limit.
        quiet = len(self._counted()) / len(self.taken) if self._quiet is not None else 1.0
        is_disturbed = self._quiet is not None and self._quiet.is_disturbed
        needed = _EXTENDED if is_disturbed else min(1 / quiet, _EXTENDED)
        return spent >= needed and len(self.taken) >= _FEWEST

    def _is_precise(self, precision: float) -> bool:
        counted = self._counted()
        if len(counted) < _ENOUGH or (self._quiet is not None and self._quiet.is_disturbed):
            return False
        low, high = interval_of_median(counted, self._confidence)
        middle = median(counted)
        return max(high - middle, middle - low) <= precision * middle

    def _counted(self) -> list[float]:
        """Return the samples that count: those of quiet blocks, and of the block that is not over."""
        if self._quiet is None:
            return list(self.taken)
        counted = self._quiet.counted
        rest = self.taken[len(counted) :]
        return [*(sample for sample, counts in zip(self.taken, counted, strict=False) if counts), *rest]

    def sample(self) -> float:
        """Make `calls` calls, await their results, and return the mean seconds of a call."""
        call, args, calls, clock = self._call, self._args, self.calls, self._clock
        if not self._is_array:
            return self._sample_of_any()
        with _no_collection():
            try:
                if calls > 1:
                    call(*args).block_until_ready()  # other code ran since the last sample, and is in the caches
                # Here and not in a method: with each array JAX notes the stack, which takes longer the deeper it is.
                start = clock()
                for _ in repeat(None, calls):
                    call(*args).block_until_ready()
                taken = clock() - start
            except AttributeError as error:
                return self._otherwise(error)
        jax.effects_barrier()  # the effects have run with the arrays; their callbacks take a moment
        return taken / calls

    @property
    def samples(self) -> Samples:
        taken, quiet = (tuple(self.taken), self.calls, self._confidence), self._quiet
        if quiet is None:
            return Samples(*taken)
        return Samples(*taken, quiet.others, quiet.slowed, self.left_out, quiet.is_disturbed, quiet.own)

    @property
    def is_unsettled(self) -> bool:
        """Return True if the warm-up ended while times still changed; False for too few calls to know."""
        return not self.is_stable and len(self.warmed) >= 2 * _WINDOW

    def once(self) -> None:
        """Make a call that doesn't count."""
        self._wait(self._call(*(self._prepare() if self._prepare is not None else self._args)))

    def _choose_wait(self) -> None:
        arguments = self._prepare() if self._prepare is not None else self._args
        start = self._clock()
        result = self._wait(self._call(*arguments))
        self.warmed.append(self._clock() - start)
        if self._may_choose:
            self._is_array = self._prepare is None and isinstance(result, jax.Array)
            self._wait = quick_wait(result)

    def _has_settled(self) -> bool:
        if len(self.warmed) < 2 * _WINDOW:
            return False
        before, after = sorted(self.warmed[-2 * _WINDOW : -_WINDOW]), sorted(self.warmed[-_WINDOW:])
        middle, now = before[_WINDOW // 2], after[_WINDOW // 2]
        # The same, or within what the calls of one window differ by.
        return abs(now - middle) <= _STABLE * middle or (before[1] <= now <= before[-2])

    def _sample_of_any(self) -> float:
        """Return what `sample` does, for calls that return no single array or take fresh arguments."""
        prepared = [self._prepare() for _ in range(self.calls)] if self._prepare is not None else None
        call, wait = self._call, self._wait
        with _no_collection():
            try:
                if self.calls > 1 and not prepared:
                    wait(call(*self._args))
                start = self._clock()
                for arguments in prepared or repeat(self._args, self.calls):
                    wait(call(*arguments))  # and the result is freed at once: the next may use its memory
                taken = self._clock() - start
            except AttributeError as error:
                return self._otherwise(error)
        jax.effects_barrier()
        return taken / self.calls

    def _otherwise(self, error: AttributeError) -> float:
        """Return a new sample (seconds per call) if the call returned another type than before; else raise `error`."""
        if error.name != "block_until_ready" or self._wait is ready:
            raise error
        self._is_array, self._wait, self._may_choose = False, ready, False
        return self._sample_of_any()


@contextmanager
def _no_collection() -> Generator[None]:
    # A collection within a sample would count as the call's time.
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def check_seconds(seconds: Any) -> None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < float("inf"):
        raise OptionError(
            f"seconds is {seconds!r}; allowed is a number above 0.\n"
            "  Hint: seconds=1 is the default; longer is more precise."
        )


def check_confidence(confidence: Any, precision: Any = 0.02) -> None:
    for name, value in (("confidence", confidence), ("precision", precision)):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
            raise OptionError(
                f"{name} is {value!r}; allowed is a number between 0 and 1.\n  Hint: confidence=0.95 is 95 %."
            )
