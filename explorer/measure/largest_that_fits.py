"""largest_that_fits(): the largest size with which a program fits into a device's memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from explorer.capture.backends import Backend, backend_of
from explorer.capture.call import Call, takes_call
from explorer.errors import ExploreError, NotCallableError, OptionError
from explorer.hardware.limits import Capacity, capacity_of, read_overflow
from explorer.hardware.names import parse_target
from explorer.measure.arguments import abstract_maker, ranges_of, sized_maker
from explorer.measure.calls import name_of
from explorer.measure.grid import grid_of
from explorer.measure.memory import check_limit, compile_point, here
from explorer.measure.targets import target_notes
from explorer.model.live_memory import needed_bytes
from explorer.model.results.memory_use import fitted_size
from explorer.model.results.targets import LargestFit, Trial
from explorer.model.target import Target
from explorer.view.progress_bar import ProgressCallback, progress_bar

_MOST = 60  # sizes: twice what bisecting takes of all that an int32 counts
_LARGEST = 1 << 31  # a size beyond is no answer
_CHECKED = 2  # sizes on each side of the bound that show whether it is the only one
_NEAR = 2.0  # times the bound, up and down: where they are


@takes_call
def largest_that_fits(
    function: Callable[..., Any] | Call,
    /,
    *given: Any,
    dimension: str,
    target: str | Target | None = None,
    args: Callable[..., Any] | None = None,
    low: int | None = None,
    high: int | None = None,
    multiple: int = 1,
    limit: int | None = None,
    progress: bool | None = None,
    **named: Any,
) -> LargestFit:
    """Find the largest size of a dimension with which a function's program fits into a device's memory.

    Each size tried is compiled, and nothing is run. A curve through known sizes predicts the next size, and at least
    every other step halves the gap. The search ends with a size that fits and the next one, which doesn't. Some sizes
    on both sides of that bound are compiled too, because memory need not grow monotonically.

    If interrupted, KeyboardInterrupt is raised with the result so far as `.result`.

    Args:
        function: Any callable, or a `jax.jit` function.
        given, named: Its arguments: arrays, `jax.ShapeDtypeStruct`, or `InputInfo`; one has the dimension. A keyword
            that is a parameter of `function` is passed to it, even if an option has the same name: see
            `explorer.Call`.
        dimension: Name of a `NamedDimension` of the `InputInfo`s, or of a parameter of `args`.
        target: Hardware to compile for, present or not, as for `explore`. A TPU's compiler refuses what doesn't fit,
            and that decides. A GPU's compiler doesn't: the buffers are compared with what XLA's allocator takes, three
            quarters of the published memory, and the result says so. None uses the memory of the device here.
        args: Makes the arguments from the dimension's size: a tuple, or a single one. Arrays that JAX makes there take
            no memory.
        low, high: Range of sizes; None takes those of the `NamedDimension`, or 1 and no upper bound.
        multiple: Sizes are multiples of it, for example of the number of devices that a batch is split over.
        limit: Bytes that a program may take, instead of the device's memory.
        progress: Show a progress bar after one second; None shows it in interactive sessions.

    Raises:
        NotCallableError: `function` or `args` can't be called.
        OptionError: There is no such dimension, or an option is out of range.
        ArgumentsError: The function can't take these arguments.
        UnknownTargetError, MissingCompilerError: As for `explore`.
        ExploreError: The smallest size can't be compiled, for another reason than its memory.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> x = lambda b: jax.ShapeDtypeStruct((b, 1000), jnp.float32)
        >>> found = explorer.largest_that_fits(jnp.sin, dimension="b", args=x, limit=10**6)
        >>> found.size, found.is_exact, found.is_monotone
        (125, True, True)
    """
    __tracebackhide__ = True
    call = Call.of(function, given, named)
    if not callable(call.function):
        raise NotCallableError(
            f"largest_that_fits takes a function; it got {type(call.function).__name__}. "
            "Hint: largest_that_fits(f, x, dimension='batch')."
        )
    meant = None if target is None else parse_target(target)
    start, end, maker = _range(call, dimension, args, low, high, multiple)
    device, capacity = _capacity(meant, limit)
    backend = backend_of(meant)
    search = _Search(call, dimension, maker, backend, capacity, multiple)

    def result(*notes: str) -> LargestFit:
        trials = tuple(trial for _, trial in sorted(search.trials.items()))
        target, low, high = str(meant or ""), start * multiple, end * multiple if end < _LARGEST else 0
        of = name_of(call.function), dimension, device, target, capacity.bytes, capacity.basis
        return LargestFit(*of, trials, multiple, low, high, notes)

    with progress_bar(f"the largest {dimension} that fits on {device}", progress) as notify:
        try:
            search.run(start, end, notify)
        except KeyboardInterrupt as interrupt:
            partial = result("interrupted before it was done")
            interrupt.add_note(partial.headline)
            interrupt.result = partial  # pyright: ignore[reportAttributeAccessIssue]
            raise
    return result(*target_notes(meant))


def _range(
    call: Call, dimension: str, args: Callable[..., Any] | None, low: int | None, high: int | None, multiple: int
) -> tuple[int, int, Callable[..., Any]]:
    """Return the first and last size to try, in units of `multiple`, and the function that makes arguments."""
    __tracebackhide__ = True
    _check_sizes(low=low, high=high, multiple=multiple)
    if args is None:
        ranges = ranges_of(call.args)
        if dimension not in ranges:
            there = f"their dimensions that vary are {', '.join(ranges)}" if ranges else "none of them varies"
            raise OptionError(
                f"dimension is {dimension!r}, and of the arguments {there}.\n"
                "  Hint: InputInfo((NamedDimension('batch', 1, 8, 4096), 128), jnp.float32), dimension='batch'; or "
                "args=lambda batch: …, which makes the arguments."
            )
        least, _, most = ranges[dimension]
        maker = sized_maker(call.args)
    else:
        if not callable(args):
            raise NotCallableError(f"args is {type(args).__name__}; allowed is what makes the arguments from a size.")
        least, most, maker = 1, _LARGEST, abstract_maker(args)
    start = -(-(least if low is None else low) // multiple)
    end = (most if high is None else high) // multiple
    if end < start:
        raise OptionError(f"there is no multiple of {multiple} from {low or least} to {high or most}.")
    return start, end, maker


def _check_sizes(**sizes: int | None) -> None:
    __tracebackhide__ = True
    for name, value in sizes.items():
        if value is not None and (type(value) is not int or value < 1):
            raise OptionError(f"{name} is {value!r}; allowed is a whole number from 1 on.")


def _capacity(target: Target | None, limit: int | None) -> tuple[str, Capacity]:
    """Return the device's name and the bytes that a program may take there: `limit` if given, else the device's.

    Raises:
        OptionError: `limit` is no positive number, or the device's memory is unknown.
    """
    __tracebackhide__ = True
    check_limit(limit)
    if target is None:
        device, there = here()
        capacity = Capacity(there, "the available memory, for XLA's buffers only")
    else:
        device, capacity = target.device.name, capacity_of(target)
    if limit is not None:
        capacity = Capacity(limit, "the limit that was given")
    if not capacity.bytes:
        raise OptionError(f"the memory of {device} is unknown.\n  Hint: limit= sets the number of bytes.")
    return device, capacity


@dataclass
class _Search:
    """Search for the largest size that fits; `trials` has those compiled so far, by size in units of `multiple`."""

    call: Call
    dimension: str
    maker: Callable[..., Any]
    backend: Backend
    capacity: Capacity
    multiple: int
    trials: dict[int, Trial] = field(default_factory=dict[int, Trial])
    level: float = 0.0

    def __post_init__(self) -> None:
        self.level = self.capacity.bytes  # less, once the compiler reports how much it has

    def run(self, start: int, end: int, notify: ProgressCallback) -> None:
        """Compile sizes until the bound is known and checked; add each to `trials`.

        `start` and `end` are the least and the largest size, in units of `multiple`.
        """
        __tracebackhide__ = True
        for tried, at in enumerate(self._sizes(start, end)):
            # The number of trials is unknown, so the bar comes near its end and never reaches it.
            notify(tried / (tried + 4), self._text(at))
            self.trials[at] = self._trial(at * self.multiple)

    def _sizes(self, start: int, end: int) -> Iterator[int]:
        """Yield each size to compile, in units of `multiple`; the next depends on the trials so far."""
        yield start
        halves = False
        while len(self.trials) < _MOST and self.trials[start].fits:
            below, above = self._bound(end)
            if above - below <= 1:
                break
            gap = above - below
            yield self._next(below, above, above > end, halves)
            below, above = self._bound(end)
            # A guess that left more than half of the gap is followed by the middle: the search ends like a bisection.
            halves = above - below > gap / 2
        yield from self._checks(start, end)

    def _bound(self, end: int) -> tuple[int, int]:
        """Return the largest size that fits below the smallest that doesn't, and the latter (`end + 1` if all fit)."""
        above = min((at for at, trial in self.trials.items() if not trial.fits), default=end + 1)
        return max(at for at, trial in self.trials.items() if trial.fits and at < above), above

    def _next(self, below: int, above: int, is_open: bool, halves: bool) -> int:
        """Return a size between two: where a curve through the known sizes meets the capacity, or the middle."""
        # A refusing compiler rounds the bytes it would need; those of a program that fits are exact.
        needed = {at: trial.needed for at, trial in self.trials.items() if trial.fits and math.isfinite(trial.needed)}
        guess = fitted_size([*needed], [*needed.values()], self.level) if needed else math.nan
        if math.isnan(guess) or (halves and not is_open):
            return min(2 * below, above - 1) if is_open else (below + above) // 2
        # Far away, a curve is wrong about memory that grows in steps: go no farther than 64 times a known size.
        farthest = 64 * below if is_open and above > _LARGEST // self.multiple else above - 1
        return max(below + 1, min(math.floor(guess), farthest, above - 1))

    def _checks(self, start: int, end: int) -> Iterator[int]:
        """Yield untried sizes around the bound, until each side has enough; none if all sizes fit."""
        if all(trial.fits for trial in self.trials.values()):
            return
        below, above = self._bound(end) if self.trials[start].fits else (start, start)
        for low, high in ((max(start, math.ceil(below / _NEAR)), below), (above, min(end, math.floor(above * _NEAR)))):
            there = sum(low <= at <= high for at in self.trials) - 1
            step = (high - low) / (_CHECKED + 1)
            wanted = {round(low + step * (number + 1)) for number in range(_CHECKED - max(there, 0))}
            yield from (at for at in sorted(wanted) if low <= at <= high and at not in self.trials)

    def _text(self, at: int) -> str:
        fits = max((trial.size for trial in self.trials.values() if trial.fits), default=0)
        large = min((trial.size for trial in self.trials.values() if not trial.fits), default=0)
        parts = [f"{fits:,} fits"] * bool(fits) + [f"{large:,} doesn't"] * bool(large)
        return f"{self.dimension} = {at * self.multiple:,} is compiled" + f"; {', '.join(parts)}" * bool(parts)

    def _trial(self, size: int) -> Trial:
        __tracebackhide__ = True
        began = perf_counter()
        over = {self.dimension: [size]}
        made = grid_of(self.call.function, (), self.call.kwargs, over, self.maker, "largest_that_fits").points[0].make()
        try:
            capture = compile_point(self.call.function, made, self.backend).capture
        except ExploreError as error:
            return self._refused(size, error, perf_counter() - began)
        needed = needed_bytes(capture.memory)
        fits = self.capacity.is_compilers or needed <= self.capacity.bytes
        return Trial(size, fits, needed, "", perf_counter() - began, capture)

    def _refused(self, size: int, error: ExploreError, seconds: float) -> Trial:
        """Return the trial of a size that the compiler refused, which doesn't fit.

        Raise `error` if it is not about memory and no size fits so far.
        """
        __tracebackhide__ = True
        reason = str(error.__cause__ or error).strip().partition("\n")[0].rstrip(".")
        overflow = read_overflow(reason)
        if overflow is None and not any(trial.fits for trial in self.trials.values()):
            raise error
        if overflow is not None:
            self.level = min(self.level, overflow.available)
        return Trial(size, False, overflow.needed if overflow else math.nan, reason, seconds)
