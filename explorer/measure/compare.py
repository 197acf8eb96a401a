"""compare(): several callables, measured alternately, so that a slow moment of the machine affects all."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, cast

import jax
import numpy as np

from explorer.capture.call import Call, takes_call
from explorer.capture.origins import hot_status
from explorer.capture.script import Prints, printed_once
from explorer.errors import ArgumentsError, NotCallableError, OptionError
from explorer.measure.calls import Calls, signature_of
from explorer.measure.machine import busy_note, environment_with_cores
from explorer.measure.steady import Sampler, check_confidence, check_seconds
from explorer.model.results.statistics import ratio_interval
from explorer.model.results.timing import Comparison
from explorer.view.progress_bar import ProgressCallback, progress_bar

_WARM_UP = 0.2  # of the time there is, for all of them together
_FEWEST = 3  # rounds, if they don't take many times the time there is
_PATIENCE = 5
_ENOUGH = 30  # rounds, before few of them may be called precise
_PART = 0.4  # of the time there is: what is used at least
_SHORT = 5e-3  # seconds; after others, a call as short as that finds the caches cold
_MOST = 2000  # rounds
_ALIKE = 1e-3  # of the largest number: what float32 and another order of operations make of equal results
_CHECKED = 64 << 20  # bytes of results that are compared


@takes_call
def compare(
    candidates: Mapping[str, Any],
    /,
    *args: Any,
    baseline: str | None = None,
    seconds: float = 3.0,
    confidence: float = 0.95,
    precision: float = 0.02,
    check: bool = True,
    progress: bool | None = None,
    **kwargs: Any,
) -> Comparison:
    """Measure several callables alternately, and return the ratio of each time to one of them.

    In each round every callable has its turn, in a random order. A slow moment of the machine affects all, and the
    ratios stay. Each callable is warmed up first and called as it is: wrap it in `jax.jit` to compare it compiled. If
    hot paths run one compiled, a note says so.

    Args:
        candidates: Callables by name; one with arguments of its own is `explorer.Call(f, x, y=1)` or `(callable,
            args)`. Results of torch and MLX are awaited too.
        args, kwargs: Arguments of all others. A keyword that is a parameter of one of them is passed to them, even if
            an option of `compare` has the same name: see `explorer.Call`.
        baseline: Name of the candidate that the others are compared with; None takes the first.
        seconds: Time to spend on all together. Their first calls come in addition.
        confidence: Of the intervals, 0 to 1.
        precision: Stop early if the interval of each ratio reaches less than this fraction of it to each side.
        check: Also compare what they return; a difference is a note.
        progress: Show a progress bar after one second; None shows it in interactive sessions.

    Returns:
        `comparison[name]` has `ratio`, `low`, `high`; also `samples`, `headline`, `to_frame()`, `chart()`. "No
        difference seen" means that the interval holds 1, and nothing more.

    Raises:
        NotCallableError: A candidate can't be called.
        ArgumentsError: `candidates` is no mapping of at least two.
        OptionError: There is no such baseline, or an option is out of range.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> f = lambda x: jnp.tanh(x) * 2 + 1
        >>> compared = explorer.compare({"eager": f, "jit": jax.jit(f)}, jnp.ones(8), seconds=0.1)
        >>> list(compared.samples), compared.baseline, compared["jit"].name
        (['eager', 'jit'], 'eager', 'jit')
    """
    __tracebackhide__ = True
    check_seconds(seconds)
    check_confidence(confidence, precision)
    call = Call.of(candidates, args, kwargs)
    candidates = call.function
    entrants = _entrants(candidates, call.args, call.kwargs)
    if baseline is not None and baseline not in candidates:
        raise OptionError(f"there is no candidate {baseline!r} for the baseline; there are {', '.join(candidates)}.")
    baseline = baseline or next(iter(candidates))
    notes = [note for note in (busy_note(),) if note]
    with progress_bar(f"comparing {len(entrants)}", progress) as notify, printed_once() as prints:
        for entrant in entrants:
            notify(0.0, f"first calls of {entrant.name}")
            entrant.warm(_WARM_UP * seconds / len(entrants), confidence, prints)
        prints.mute()
        if check:
            notes += _differences(entrants, baseline)
        _take_turns(entrants, seconds, lambda: _is_precise(entrants, baseline, confidence, precision), notify)
    samples = {entrant.name: entrant.sampler.samples for entrant in entrants}
    notes += [*_hot_notes(entrants), *_unsteady_notes(entrants, seconds), *prints.notes]
    return Comparison(samples, baseline, _shared_signature(entrants), tuple(notes), environment_with_cores())


def _hot_notes(entrants: Sequence[_Entrant]) -> list[str]:
    """Return one note that names the eager candidates that hot paths run compiled; empty without any."""
    statuses = {entrant.name: hot_status(entrant.function) for entrant in entrants}
    names = [name for name, status in statuses.items() if status and status.is_on and status.row.state == "compiled"]
    listed = " and ".join(f"`{name}`" for name in names)
    what = f"{listed} {'run' if names[1:] else 'runs'} compiled by hot paths, which are on: that was measured"
    return [f"{what}; stop them to compare eager calls"] if names else []


def _shared_signature(entrants: Sequence[_Entrant]) -> str:
    """Return the shared arguments with their types, as `(x: f32[8])`; "" if a candidate has its own."""
    first = entrants[0]
    is_shared = all(entrant.args is first.args for entrant in entrants)
    return signature_of(first.function, first.args, first.kwargs) if is_shared else ""


@dataclass
class _Entrant:
    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any = None
    sampler: Any = None  # a Sampler, once it is warm

    def warm(self, seconds: float, confidence: float, prints: Prints) -> None:
        calls = Calls(self.function, self.args, self.kwargs)
        self.result = calls.first()
        self.sampler = Sampler(
            calls.bare,
            args=calls.args,
            prepare=calls.prepare,
            confidence=confidence,
            prepared_bytes=calls.prepared_bytes,
        )
        with prints.muted():
            self.sampler.warm_up(seconds)

    def turn(self) -> None:
        sampler: Sampler = self.sampler
        if sampler.warmed[-1] < _SHORT:
            sampler.once()  # its data and code are in no cache any more, which is not what is compared
        sampler.taken.append(sampler.sample())


def _take_turns(
    entrants: Sequence[_Entrant], seconds: float, is_precise: Callable[[], bool], notify: ProgressCallback
) -> None:
    """Append a sample of each entrant per round to its sampler, until the ratios are precise or the time is up."""
    # A seed of its own: an order that is the same each time, and the user's random numbers stay as they are.
    order, draw = list(entrants), random.Random(0)
    began, check_at = perf_counter(), _ENOUGH
    for rounds in range(1, _MOST + 1):
        draw.shuffle(order)
        for entrant in order:
            entrant.turn()
        spent = (perf_counter() - began) / seconds
        notify(min(spent, 1.0), f"round {rounds}")
        if (spent >= 1 and rounds >= _FEWEST) or spent * seconds >= max(_PATIENCE * seconds, 1.0):
            break
        if rounds >= check_at and spent >= _PART:
            check_at = rounds * 3 // 2  # seldom: a check after each round would stop where it is precise by chance
            if is_precise():
                break


def _is_precise(entrants: Sequence[_Entrant], baseline: str, confidence: float, precision: float) -> bool:
    """Return True if each ratio's interval reaches less than `precision` of it to each side."""
    taken = {entrant.name: entrant.sampler.taken for entrant in entrants}
    base = taken.pop(baseline)
    intervals = [ratio_interval(samples, base, confidence) for samples in taken.values()]
    return all(max(high - ratio, ratio - low) <= precision * ratio for ratio, low, high in intervals)


def _unsteady_notes(entrants: Sequence[_Entrant], seconds: float) -> list[str]:
    notes: list[str] = []
    unsettled = [entrant.name for entrant in entrants if entrant.sampler.is_unsettled]
    if unsettled:
        notes.append(f"{', '.join(unsettled)} had not settled after warm-up. Hint: seconds={2 * seconds:g}")
    spreads = {e.name: e.sampler.samples.spread for e in entrants if e.sampler.samples.is_noisy}
    if spreads:
        noise = ", ".join(f"{name} ±{spread * 100:.0f} %" for name, spread in spreads.items())
        notes.append(f"noisy: samples differ from their median by {noise}; a ratio compares calls of the same moment")
    return notes


def _entrants(candidates: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[_Entrant]:
    __tracebackhide__ = True
    if not isinstance(candidates, Mapping) or len(cast("Mapping[Any, Any]", candidates)) < 2:
        raise ArgumentsError(
            f"compare takes two callables or more by name; it got {_count_or_type(candidates)}.\n"
            '  Hint: compare({"old": f, "new": g}, x).'
        )
    entrants: list[_Entrant] = []
    for name, given in cast("Mapping[Any, Any]", candidates).items():
        function, own, named = given, args, kwargs
        if isinstance(given, Call):
            function, own, named = given.function, given.args, given.kwargs
        elif isinstance(given, tuple) and len(cast("tuple[Any, ...]", given)) == 2:
            function, values = cast("tuple[Any, Any]", given)
            own = tuple(cast("Sequence[Any]", values)) if isinstance(values, tuple | list) else (values,)
            named = {}
        if not callable(function):
            raise NotCallableError(
                f"candidate {name!r} is of type {type(function).__name__}, which can't be called.\n"
                '  Hint: compare({"old": f, "new": (g, (y,))}, x): a callable, or one with arguments of its own.'
            )
        entrants.append(_Entrant(str(name), cast("Callable[..., Any]", function), own, named))
    return entrants


def _differences(entrants: Sequence[_Entrant], baseline: str) -> list[str]:
    """Return a note for each result that differs from the baseline's or can't be compared, and free the results."""
    results = {entrant.name: entrant.result for entrant in entrants}
    # Kept, they would take memory from the calls that are measured.
    for entrant in entrants:
        entrant.result = None
    base = results.pop(baseline)
    return [note for name, result in results.items() if (note := _difference(name, result, baseline, base))]


def _largest_difference(left: np.ndarray, right: np.ndarray) -> float:
    """Return the largest difference divided by the largest absolute value of `right`; NaNs are left out."""
    # Also for equal infinities, whose difference is NaN.
    if np.array_equal(left, right, equal_nan=True):
        return 0.0
    scale = float(np.nanmax(np.abs(right))) or 1.0
    return float(np.nanmax(np.abs(left - right))) / scale


def _difference(name: str, result: Any, baseline: str, base: Any) -> str:
    ours, theirs = jax.tree.leaves(result), jax.tree.leaves(base)
    if len(ours) != len(theirs):
        return f"{name} returns {len(ours)} arrays, {baseline} {len(theirs)}"
    if sum(getattr(leaf, "nbytes", 0) for leaf in ours) > _CHECKED:
        return f"whether {name} and {baseline} return the same was not looked at: it is more than 64 MB"
    worst = 0.0
    for one, other in zip(ours, theirs, strict=True):
        try:
            left, right = _numbers(one), _numbers(other)
        except Exception as error:
            return f"whether {name} and {baseline} return the same can't be seen: {type(error).__name__}: {error}"
        if left.shape != right.shape:
            return f"{name} returns an array of shape {left.shape}, {baseline} of {right.shape}"
        worst = max(worst, _largest_difference(left, right))
        if np.isnan(left).any() != np.isnan(right).any():
            return f"one of {name} and {baseline} returns NaN where the other does not"
    if worst <= _ALIKE:
        return ""
    return f"{name} and {baseline} return different numbers: by up to {worst:.2g} of the largest"


def _numbers(leaf: Any) -> np.ndarray:
    if type(leaf).__module__.partition(".")[0] == "torch":
        leaf = leaf.detach().cpu()
    array = np.asarray(leaf)
    # So that differences of integers don't wrap, and those of short floats don't round.
    return array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)


def _count_or_type(value: Any) -> str:
    return str(len(cast("Mapping[Any, Any]", value))) if isinstance(value, Mapping) else type(value).__name__
