"""time(): how long a function takes eager, at its first call, and once it is compiled."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from statistics import median
from time import perf_counter
from typing import Any

import jax
import numpy as np

from explorer._jax import as_written
from explorer._jax.calls import steps_done
from explorer._jax.distributed import Processes, processes
from explorer._jax.traces import uncached_traces
from explorer.capture.call import Call, takes_call
from explorer.capture.explore import CompileRequest, CompileSteps
from explorer.capture.origins import agree_on_time, is_explored
from explorer.capture.prints import Prints, printed_once
from explorer.errors import NotRecordedError
from explorer.measure.calls import Calls, ready
from explorer.measure.device import default_device, environment_with_cores
from explorer.measure.disturbance import Observer
from explorer.measure.for_target import refuse_target
from explorer.measure.machine import busy_note
from explorer.measure.steady import Sampler, Steps, check_confidence, check_seconds, run_to_completion
from explorer.measure.subject import Subject, signature_of, subject_of
from explorer.model.results.timing import Samples, Timing
from explorer.model.target import Target
from explorer.model.units import duration_text
from explorer.view.progress_bar import ProgressCallback, progress_bar

_EAGER = 1 / 3  # of the time there is
_WARM_UP = 0.3  # of each part's time
_LEAST = 0.3  # of it: what is left to measure, however long the warm-up took
_LONG = 2e-3  # seconds: of a call that takes longer, some microseconds more or less are nothing
_CALLS_BEFORE = 3  # that don't count, as many in each process
_FEWEST, _MOST = 5, 500  # calls in each of several processes
_PATIENCE = 300.0  # seconds for a process that comes late
_turns = count()


@takes_call
def time(
    function: Callable[..., Any] | Call,
    /,
    *args: Any,
    eager: bool = True,
    seconds: float = 1.5,
    confidence: float = 0.95,
    precision: float = 0.02,
    progress: bool | None = None,
    target: str | Target | None = None,
    **kwargs: Any,
) -> Timing:
    """Measure how long a function takes: eager, at its first call, and once it is compiled.

    The function really runs, many times. Every call is waited for until its results are there, its arguments were there
    before, and what it donates is copied for each call outside of the clock, so that your arrays survive.

    A time's interval is of what the median call takes on this machine while no other program wants its cores. What
    others do is looked at ten times a second, and samples taken meanwhile are left out; where too few are left, or the
    interval reaches more than 10 %, the result says that it is too noisy to tell (`steady.is_too_noisy`). Not seen is
    a program on the same host outside of this virtual machine that only makes memory slower for all of the time.

    What the function prints is shown for its first call, then muted, with a note of how many lines that were.

    The first call traces, lowers and compiles from scratch, as in a new process: nothing that JAX remembers of earlier
    calls is used, nor anything from the persistent compilation cache.

    With arguments on devices of several processes, each of them calls this: as many calls are made in all, each begun
    together, a call takes as long as in the slowest process, and a note says how far they differ.

    Args:
        function: Any callable, a `jax.jit` function or method, or an `Executable` (which has no eager calls, and was
            compiled before). A plain function is compiled with `jax.jit`.
        args, kwargs: As for a call. A keyword that is a parameter of the function is given to it, whatever stands
            below: see `explorer.Call`.
        eager: Whether to measure the function as it is written too, operation by operation: of a `jax.jit` function
            the one that it wraps.
        seconds: To spend on measuring, and up to twice as long while other programs run; the first call and one eager
            call come on top.
        confidence: Of the intervals, 0 to 1.
        precision: Stop early where the interval reaches less than this part of the median to each side.
        progress: Whether to show a bar once a second has gone by; None shows it where somebody can look on.
        target: Refused: hardware that isn't here can't be timed. `explorer.roofline(f, x, target=…)` estimates.

    Returns:
        `eager`, `first_call` and `steady`, each with `median`, `low`, `high` and `samples` in seconds; `stages`,
        `speedup`, `break_even`, `to_frame()`, `chart()`.

    Raises:
        NotCallableError: `function` can't be called.
        ArgumentsError: The arguments don't fit the function's signature; or its results alone are on devices of several
            processes.
        NotRecordedError: Of several processes, some didn't call this.
        OptionError: An option is out of range.
        ExploreError: Tracing, lowering or compiling failed.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> timing = explorer.time(lambda x: jnp.tanh(x) * 2, jnp.ones(8), seconds=0.05)
        >>> timing.first_call.median > timing.steady.median > 0
        True
    """
    __tracebackhide__ = True
    refuse_target("time", target, f"explorer.roofline(f, x, target={str(target)!r})")
    call = Call.of(function, args, kwargs)
    check_seconds(seconds)
    check_confidence(confidence, precision)
    subject = subject_of(call.function, call.args, call.kwargs)
    shared = shared_processes((call.args, call.kwargs))
    with progress_bar(f"timing {subject.name}", progress) as notify:
        plan = _Plan(seconds, confidence, precision, notify)
        with printed_once() as prints:
            if shared is not None:
                timing = _timed_in_step(subject, plan, shared, prints)
            else:
                is_kept = is_explored(call.function, call.args, call.kwargs)
                timing = run_to_completion(_timing_steps(subject, plan, eager, prints, is_kept))
    _, note = agree_on_time(call.function, call.args, call.kwargs, timing.steady, is_latest=True)
    return replace(timing, notes=(*timing.notes, *filter(None, [note]), *prints.notes))


@dataclass(frozen=True)
class _Plan:
    """How long and how surely to measure, and whom to notify of the progress."""

    seconds: float
    confidence: float
    precision: float
    notify: ProgressCallback


def _timing_steps(subject: Subject, plan: _Plan, eager: bool, prints: Prints, is_kept: bool) -> Steps[Timing]:
    """Yield each sample to take of the subject, and return what they amount to.

    Args:
        subject, plan, eager, prints: What is measured, and how.
        is_kept: Whether JAX keeps the program of the user's own call, so that it compiles nothing.
    """
    __tracebackhide__ = True
    notes = [note for note in (busy_note(),) if note]
    part = 1 - _EAGER if eager and subject.eager is not None else 1.0
    with uncached_traces(), _nothing_cached():
        stages, may_donate = _compiled_stages(subject, plan.notify) if subject.is_traced else ({}, True)
        calls = _called_once(subject, may_donate)
        prints.mute()
        if not subject.is_plain_jit:
            calls = _called_once(subject, may_donate)  # the first has compiled once more, into a cache of its own
        if not subject.is_traced:
            notes.append("it was compiled before: its first call here only ran")
        stages["run"] = calls.first_seconds
        calls.first()
        is_long = calls.first_seconds > _LONG and not is_kept
        steady = (yield from _sampled(plan, calls, part, "compiled", notes)) if is_long else None
    # Within a context that makes traces fresh, JAX finds what it compiled some microseconds later. For a short call
    # that counts, and it is compiled again, as the user's own; for a long one that would take as long again, unless it
    # was explored: then the program that is shown is measured.
    if steady is None:
        steady = yield from _sampled(plan, _called_once(subject, may_donate), part, "compiled", notes)
    of_eager = (yield from _eager_samples(subject, plan, may_donate, notes)) if eager else None
    plan.notify(1.0, "")
    first = sum(stages.values())
    _add_noise(notes, "compiled", steady.samples)
    return Timing(
        subject.name,
        signature_of(subject.compiled, subject.args, subject.kwargs),
        Samples((first,), confidence=plan.confidence),
        steady.samples,
        of_eager,
        (first, *steady.warmed),
        stages,
        tuple(notes),
        environment_with_cores(),
    )


def _timed_in_step(subject: Subject, plan: _Plan, shared: Processes, prints: Prints) -> Timing:
    """The time of a call over devices of several processes, each of which asks for it."""
    __tracebackhide__ = True
    with uncached_traces(), _nothing_cached():
        stages, may_donate = _compiled_stages(subject, plan.notify) if subject.is_traced else ({}, True)
        calls = Calls(subject.compiled, subject.args, subject.kwargs, may_donate, is_counted=True)
        calls.first()
    prints.mute()
    stages["run"] = calls.first_seconds
    steady, notes = sample_in_step(calls, shared, plan.seconds, plan.confidence)
    first = sum(stages.values())
    return Timing(
        subject.name,
        signature_of(subject.compiled, subject.args, subject.kwargs),
        Samples((first,), confidence=plan.confidence),
        steady,
        None,
        (first,),
        stages,
        (*filter(None, [busy_note()]), *notes),
        environment_with_cores(),
    )


def _compiled_stages(subject: Subject, notify: ProgressCallback) -> tuple[dict[str, float], bool]:
    """Trace, lower and compile, with the errors that explore() has for them.

    Returns:
        The seconds of each step, and whether a call may delete arguments.
    """
    __tracebackhide__ = True
    request = CompileRequest(subject.compiled, subject.args, subject.kwargs, verb="timed")
    request.check_arguments()
    notify(0.0, "tracing and compiling")
    with steps_done() as events:
        steps = CompileSteps(request, events)
        traced = steps.run("trace", request.trace).plain
        lowered = steps.run("lower", traced.lower)
        steps.run("compile", lowered.compile)
    return dict(steps.durations.seconds), not subject.is_plain_jit or _donates(traced, lowered)


def _called_once(subject: Subject, may_donate: bool) -> Calls:
    calls = Calls(subject.compiled, subject.args, subject.kwargs, may_donate)
    calls.first()
    return calls


def _eager_samples(subject: Subject, plan: _Plan, may_donate: bool, notes: list[str]) -> Steps[Samples | None]:
    """The calls of the function as it is written; None with a note where it can't run so."""
    if subject.eager is None:
        notes.append("no eager calls: there is no Python left of what was compiled")
        return None
    calls = Calls(subject.eager, subject.args, subject.kwargs, may_donate)
    try:
        with as_written():  # also what hot paths compiled
            calls.first()
            sampler = yield from _sampled(plan, calls, _EAGER, "eager", notes)
    except Exception as error:
        notes.append(f"no eager calls: it only runs compiled ({type(error).__name__}: {_line(error)})")
        return None
    _add_noise(notes, "eager", sampler.samples)
    return sampler.samples


def _sampled(plan: _Plan, calls: Calls, part: float, what: str, notes: list[str]) -> Steps[Sampler]:
    """Warm up and measure for this part of the time; a note is added where the calls had not settled."""
    sampler = Sampler(
        calls.bare,
        args=calls.args,
        prepare=calls.prepare,
        confidence=plan.confidence,
        prepared_bytes=calls.prepared_bytes,
        observer=Observer() if default_device().platform == "cpu" else None,
    )
    seconds = part * plan.seconds
    done = 0.0 if what == "compiled" else 1 - part  # of all the work: eager calls are the last of it
    began = perf_counter()
    yield from sampler.warming_up(_WARM_UP * seconds)
    left = max(seconds - (perf_counter() - began), _LEAST * seconds)
    yield from sampler.measuring(left, plan.precision, lambda share: plan.notify(done + part * share, f"{what} calls"))
    if sampler.is_unsettled:
        notes.append(
            f"the {what} calls had not settled after {duration_text(_WARM_UP * seconds)} of warm-up. "
            f"Hint: seconds={2 * plan.seconds:g}"
        )
    return sampler


def _add_noise(notes: list[str], what: str, samples: Samples) -> None:
    if samples.noise:
        notes.append(f"{what}: {samples.noise}")


def _donates(traced: Any, lowered: Any) -> bool:
    """Whether a call deletes arguments: its own donations, and those of functions that it calls when it is eager."""
    jaxpr = getattr(traced.jaxpr, "jaxpr", traced.jaxpr)
    within = any(any(equation.params.get("donated_invars", ())) for equation in jaxpr.eqns)
    return within or any(info.donated for info in jax.tree.leaves(lowered.args_info, is_leaf=_has_donated))


def _has_donated(value: Any) -> bool:
    return hasattr(value, "donated")


@contextmanager
def _nothing_cached() -> Generator[None]:
    """Nothing goes into the persistent compilation cache: nobody would find it there again."""
    name = "jax_persistent_cache_min_compile_time_secs"
    before: Any = getattr(jax.config, name)
    jax.config.update(name, float("inf"))  # pyright: ignore[reportUnknownMemberType]
    try:
        yield
    finally:
        jax.config.update(name, before)  # pyright: ignore[reportUnknownMemberType]


def _line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200]


def shared_processes(values: Any) -> Processes | None:
    """The processes among which arrays of these values are spread; None if they all are this one's."""
    leaves = jax.tree.leaves(values)
    spread = any(isinstance(leaf, jax.Array) and not leaf.is_fully_addressable for leaf in leaves)
    return processes() if spread else None


def sample_in_step(calls: Calls, shared: Processes, seconds: float, confidence: float) -> tuple[Samples, list[str]]:
    """Make as many calls in each process, each begun by all at a barrier; a call takes as long as where it takes most.

    Args:
        calls: What is called; its first call has been made.
        shared: The processes, every one of which calls this.
        seconds: To spend, about; the first process decides how many calls that is.
        confidence: Of the interval.

    Returns:
        The samples, the same in each process, and how far the processes differ, in words.

    Raises:
        NotRecordedError: Some process didn't come.
    """
    turn = f"explorer/time/{next(_turns)}"
    try:
        once = min(_timed(calls) for _ in range(_CALLS_BEFORE))
        many = _agreed(shared, turn, max(_FEWEST, min(_MOST, int(seconds / max(once, 1e-6)))))
        own: list[float] = []
        for at in range(many):
            own.append(_timed(calls, lambda at=at: shared.wait(f"{turn}/{at}", _PATIENCE)))
        shared.write(f"{turn}/samples/{shared.index}", json.dumps(own).encode())
        every = [json.loads(shared.read(f"{turn}/samples/{at}", _PATIENCE)) for at in range(shared.count)]
    except TimeoutError as error:
        raise NotRecordedError(
            f"a process didn't make the same calls: {error}.\n"
            f"  Hint: all {shared.count} processes call explorer.time with the same function."
        ) from error
    table = np.asarray(every)
    return Samples(tuple(map(float, table.max(axis=0))), confidence=confidence), [_spread_text(table)]


def _timed(calls: Calls, begin: Any = None) -> float:
    given = calls.prepare() if calls.prepare is not None else ()
    if begin is not None:
        begin()
    start = perf_counter()
    ready(calls.call(*given))
    return perf_counter() - start


def _agreed(shared: Processes, turn: str, own: int) -> int:
    """How many calls the first process wants to make."""
    if shared.index == 0:
        shared.write(f"{turn}/many", str(own).encode())
    return int(shared.read(f"{turn}/many", _PATIENCE))


def _spread_text(table: Any) -> str:
    """How far the processes differ: a row of `table` is of one process."""
    medians = [median(row) for row in table]
    slowest, fastest = int(np.argmax(medians)), int(np.argmin(medians))
    often, times = Counter(map(int, table.argmax(axis=0))).most_common(1)[0]
    reach = " to ".join(f"{duration_text(medians[at])} in process {at}" for at in (fastest, slowest))
    return (
        f"all {len(medians)} processes begin each call at a barrier, and it takes as long as in the slowest: most "
        f"often process {often}, {times:,} of {table.shape[1]:,} times; medians reach from {reach}"
    )
