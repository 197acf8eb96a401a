"""time(): the duration of a function's eager, first and steady calls."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from statistics import median
from time import perf_counter
from typing import Any

import jax
import numpy as np

from explorer._jax.calls import steps_done
from explorer._jax.distributed import Processes, processes
from explorer._jax.interrupts import kept_for_xla
from explorer._jax.settings import as_written, nothing_cached
from explorer._jax.traces import uncached_traces
from explorer.capture.call import Call, takes_call
from explorer.capture.explore import CompileRequest, CompileSteps
from explorer.capture.origins import agree_on_time, is_explored
from explorer.capture.script import Prints, printed_once
from explorer.errors import NotRecordedError
from explorer.measure.calls import Calls, Subject, refuse_target, signature_of, subject_of, timed
from explorer.measure.compiled_subject import donated_leaves
from explorer.measure.disturbance import Observer
from explorer.measure.machine import busy_note, default_device, environment_with_cores
from explorer.measure.steady import Sampler, Steps, check_confidence, check_seconds, run_to_completion
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
# Each timing has keys of its own, because the store that processes share takes a key only once.
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

    The function really runs, many times. Every result is awaited. Donated arguments are copied outside of the clock,
    so your arrays survive. What it prints is shown for its first call and muted after that, with a note.

    An interval is that of the median call on this machine while no other program wants its cores. Other work is
    checked ten times a second, and samples taken meanwhile are left out. If too few remain, or the interval reaches
    more than 10 %, `steady.is_too_noisy` is True. A program outside of this virtual machine that only slows its memory
    is not noticed.

    The first call traces, lowers and compiles from scratch, as in a new process. JAX's caches and the persistent
    compilation cache are not used.

    With arguments on devices of several processes, each process calls this. All make the same number of calls, each
    starting together. A call takes as long as in the slowest process, and a note says how far the processes differ.

    Args:
        function: Any callable, a `jax.jit` function or method, or an `Executable`, which has no eager calls. A plain
            function is compiled with `jax.jit`.
        args, kwargs: Arguments of the call. For a keyword that is also an option here, see `explorer.Call`.
        eager: Also measure the function as written, operation by operation; for a `jax.jit` function, the function
            that it wraps.
        seconds: Time to spend on measuring, up to twice as long while other programs run. The first call and one eager
            call come in addition.
        confidence: Of the intervals, 0 to 1.
        precision: Stop early if the interval reaches less than this fraction of the median to each side.
        progress: Show a progress bar after one second; None shows it in interactive sessions.
        target: Refused: a program for other hardware can't be timed here. `explorer.roofline(f, x, target=…)`
            estimates it.

    Returns:
        `eager`, `first_call` and `steady`, each with `median`, `low`, `high` and `samples` in seconds; `stages`,
        `speedup`, `break_even`, `to_frame()`, `chart()`.

    Raises:
        NotCallableError: `function` can't be called.
        ArgumentsError: The arguments don't fit the signature; or only the results are on devices of several processes.
        NotRecordedError: Some of several processes didn't call this.
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
    leaves = jax.tree.leaves((call.args, call.kwargs))
    is_spread = any(isinstance(leaf, jax.Array) and not leaf.is_fully_addressable for leaf in leaves)
    shared = processes() if is_spread else None
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
    seconds: float
    confidence: float
    precision: float
    notify: ProgressCallback


def _timing_steps(subject: Subject, plan: _Plan, eager: bool, prints: Prints, is_kept: bool) -> Steps[Timing]:
    """Yield each sample to take, and return the timing; `is_kept` if JAX kept the program of the user's own call."""
    __tracebackhide__ = True
    notes = [*filter(None, [busy_note()])]
    part = 1 - _EAGER if eager and subject.eager is not None else 1.0
    with uncached_traces(), nothing_cached():
        stages, may_donate = _compiled_stages(subject, plan.notify) if subject.is_traced else ({}, True)
        calls = _called_once(subject, may_donate)
        prints.mute()
        if not subject.is_plain_jit:
            calls = _called_once(subject, may_donate)  # the first one compiled again, into a cache of its own
        if not subject.is_traced:
            notes.append("it was compiled before: its first call here only ran")
        stages["run"] = calls.first_seconds
        # A second call shows how long a warm one takes.
        calls.first()
        is_long = calls.first_seconds > _LONG and not is_kept
        steady = (yield from _sampled(plan, calls, part, "compiled", notes)) if is_long else None
    # Within a context that makes traces fresh, JAX finds what it compiled some microseconds later. For a short call
    # that counts, and it is compiled again, as the user's own. For a long one that would take as long again, unless it
    # was explored: then the program that is shown is measured.
    if steady is None:
        steady = yield from _sampled(plan, _called_once(subject, may_donate), part, "compiled", notes)
    of_eager = (yield from _eager_samples(subject, plan, may_donate, notes)) if eager else None
    plan.notify(1.0, "")
    if steady.samples.noise:
        notes.append(f"compiled: {steady.samples.noise}")
    return _timing(subject, plan, stages, steady.samples, of_eager, steady.warmed, notes)


def _timing(
    subject: Subject,
    plan: _Plan,
    stages: dict[str, float],
    steady: Samples,
    eager: Samples | None,
    warmed: Sequence[float],
    notes: Sequence[str],
) -> Timing:
    first, signature = sum(stages.values()), signature_of(subject.compiled, subject.args, subject.kwargs)
    first_call = Samples((first,), confidence=plan.confidence)
    warm_up, environment = (first, *warmed), environment_with_cores()
    return Timing(subject.name, signature, first_call, steady, eager, warm_up, stages, tuple(notes), environment)


def _timed_in_step(subject: Subject, plan: _Plan, shared: Processes, prints: Prints) -> Timing:
    """Return the timing of a call over devices of several processes, without eager calls; all of them call this."""
    __tracebackhide__ = True
    with uncached_traces(), nothing_cached():
        stages, may_donate = _compiled_stages(subject, plan.notify) if subject.is_traced else ({}, True)
        calls = Calls(subject.compiled, subject.args, subject.kwargs, may_donate, is_counted=True)
        calls.first()
    prints.mute()
    stages["run"] = calls.first_seconds
    steady, notes = sample_in_step(calls, shared, plan.seconds, plan.confidence)
    return _timing(subject, plan, stages, steady, None, (), [*filter(None, [busy_note()]), *notes])


def _compiled_stages(subject: Subject, notify: ProgressCallback) -> tuple[dict[str, float], bool]:
    """Trace, lower and compile; return the seconds of each step by name, and True if a call may delete arguments."""
    __tracebackhide__ = True
    request = CompileRequest(subject.compiled, subject.args, subject.kwargs, verb="timed")
    request.check_arguments()
    notify(0.0, "tracing and compiling")
    with steps_done() as events:
        steps = CompileSteps(request, events)
        traced = steps.run("trace", request.trace).plain
        lowered = steps.run("lower", traced.lower)
        steps.run("compile", kept_for_xla()(lowered.compile))
    # A call deletes its own donated arguments, and those of functions that it calls when it is eager.
    equations = getattr(traced.jaxpr, "jaxpr", traced.jaxpr).eqns
    is_donated_within = any(any(equation.params.get("donated_invars", ())) for equation in equations)
    may_donate = not subject.is_plain_jit or is_donated_within or any(donated_leaves(lowered))
    return dict(steps.durations.seconds), may_donate


def _called_once(subject: Subject, may_donate: bool) -> Calls:
    calls = Calls(subject.compiled, subject.args, subject.kwargs, may_donate)
    calls.first()
    return calls


def _eager_samples(subject: Subject, plan: _Plan, may_donate: bool, notes: list[str]) -> Steps[Samples | None]:
    """Yield each sample to take of eager calls, and return them; None, with a note added, if none can run."""
    if subject.eager is None:
        notes.append("no eager calls: a compiled program has no Python left")
        return None
    calls = Calls(subject.eager, subject.args, subject.kwargs, may_donate)
    try:
        with as_written():  # hot paths run no compiled copy
            calls.first()
            sampler = yield from _sampled(plan, calls, _EAGER, "eager", notes)
    except Exception as error:
        line = str(error).strip().partition("\n")[0][:200]
        notes.append(f"no eager calls: it only runs compiled ({type(error).__name__}: {line})")
        return None
    if sampler.samples.noise:
        notes.append(f"eager: {sampler.samples.noise}")
    return sampler.samples


def _sampled(plan: _Plan, calls: Calls, part: float, what: str, notes: list[str]) -> Steps[Sampler]:
    """Yield each sample to take, for `part` (0 to 1) of the plan's time; return the sampler, which has them.

    A note is added if the calls did not settle.
    """
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


def sample_in_step(calls: Calls, shared: Processes, seconds: float, confidence: float) -> tuple[Samples, list[str]]:
    """Make the same number of calls in each process, each call starting at a barrier.

    Args:
        calls: The call; its first call has been made.
        shared: The processes; all of them call this.
        seconds: Approximate time to spend; process 0 decides how many calls that is.
        confidence: Of the interval.

    Returns:
        Samples of the slowest process per call, the same everywhere, and notes on how far the processes differ.

    Raises:
        NotRecordedError: A process didn't come.
    """
    turn = f"explorer/time/{next(_turns)}"
    try:
        once = min(timed(calls) for _ in range(_CALLS_BEFORE))
        if shared.index == 0:
            wanted = max(_FEWEST, min(_MOST, int(seconds / max(once, 1e-6))))
            shared.write(f"{turn}/many", str(wanted).encode())
        many = int(shared.read(f"{turn}/many", _PATIENCE))
        own = [timed(calls, partial(shared.wait, f"{turn}/{at}", _PATIENCE)) for at in range(many)]
        shared.write(f"{turn}/samples/{shared.index}", json.dumps(own).encode())
        every = [json.loads(shared.read(f"{turn}/samples/{at}", _PATIENCE)) for at in range(shared.count)]
    except TimeoutError as error:
        raise NotRecordedError(
            f"a process didn't make the same calls: {error}.\n"
            f"  Hint: all {shared.count} processes call explorer.time with the same function."
        ) from error
    table = np.asarray(every)
    # A call has ended only when it has in the slowest process.
    return Samples(tuple(map(float, table.max(axis=0))), confidence=confidence), [_spread_text(table)]


def _spread_text(table: Any) -> str:
    """Return a sentence on how far the processes differ; a row of `table` is one process."""
    medians = [median(row) for row in table]
    slowest, fastest = int(np.argmax(medians)), int(np.argmin(medians))
    often, times = Counter(map(int, table.argmax(axis=0))).most_common(1)[0]
    reach = " to ".join(f"{duration_text(medians[at])} in process {at}" for at in (fastest, slowest))
    return (
        f"all {len(medians)} processes begin each call at a barrier, and it takes as long as in the slowest: most "
        f"often process {often}, {times:,} of {table.shape[1]:,} times; medians reach from {reach}"
    )
