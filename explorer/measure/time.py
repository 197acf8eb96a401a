"""time(): how long a function takes eager, at its first call, and once it is compiled."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import jax

from explorer._jax.uncached_traces import uncached_traces
from explorer.capture.explore import CompileRequest, environment, run_step
from explorer.measure.calls import Calls
from explorer.measure.machine import cores, load
from explorer.measure.progress import Tell, progress_bar
from explorer.measure.steady import Sampler, Steps, check_confidence, check_seconds, driven
from explorer.measure.subject import Subject, signature_of, subject_of
from explorer.model.results.timing import Samples, Timing
from explorer.model.units import duration_text

__all__ = ["busy_note", "time", "timed", "timing"]

_EAGER = 1 / 3  # of the time there is
_WARM_UP = 0.3  # of each part's time
_LEAST = 0.3  # of it: what is left to measure, however long the warm-up took
_LONG = 2e-3  # seconds


def time(
    function: Callable[..., Any],
    /,
    *args: Any,
    eager: bool = True,
    seconds: float = 1.5,
    confidence: float = 0.95,
    precision: float = 0.02,
    progress: bool | None = None,
    **kwargs: Any,
) -> Timing:
    """Measure how long a function takes: eager, at its first call, and once it is compiled.

    The function really runs, many times. Every call is waited for until its results are there, its arguments were there
    before, and what it donates is copied for each call outside of the clock, so that your arrays survive.

    The first call traces, lowers and compiles from scratch, as in a new process: nothing that JAX remembers of earlier
    calls is used, nor anything from the persistent compilation cache.

    Args:
        function: Any callable, a `jax.jit` function or method, or an `Executable` (which has no eager calls, and was
            compiled before). A plain function is compiled with `jax.jit`.
        args, kwargs: As for a call. One of a name below is given by position.
        eager: Whether to measure the function as it is written too, operation by operation: of a `jax.jit` function
            the one that it wraps.
        seconds: To spend on measuring; the first call and one eager call come on top.
        confidence: Of the intervals, 0 to 1.
        precision: Stop early where the interval reaches less than this part of the median to each side.
        progress: Whether to show a bar once a second has gone by; None shows it where somebody can look on.

    Returns:
        `eager`, `first_call` and `steady`, each with `median`, `low`, `high` and `samples` in seconds; `stages`,
        `speedup`, `break_even`, `to_frame()`, `chart()`.

    Raises:
        NotCallableError: `function` can't be called.
        ArgumentsError: The arguments don't fit the function's signature.
        OptionError: An option is out of range.
        ExploreError: Tracing, lowering or compiling failed.

    Example:
        >>> import jax.numpy as jnp
        >>> timing = time(lambda x: jnp.tanh(x) * 2, jnp.ones(8), seconds=0.05)
        >>> timing.first_call.median > timing.steady.median > 0
        True
    """
    __tracebackhide__ = True
    asked: dict[str, Any] = {"confidence": confidence, "precision": precision, "progress": progress}
    return driven(timing(function, args, kwargs, eager=eager, seconds=seconds, **asked))


def timing(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    eager: bool = True,
    seconds: float = 1.5,
    confidence: float = 0.95,
    precision: float = 0.02,
    progress: bool | None = None,
) -> Steps[Timing]:
    """The steps of time(), for arguments of any name."""
    __tracebackhide__ = True
    check_seconds(seconds)
    check_confidence(confidence, precision)
    subject = subject_of(function, args, kwargs)
    with progress_bar(f"timing {subject.name}", progress) as tell:
        return (yield from _Timer(subject, seconds, confidence, precision, tell).run(eager))


def timed(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], **options: Any) -> Timing:
    """time(), for arguments of any name."""
    __tracebackhide__ = True
    return driven(timing(function, args, kwargs, **options))


class _Timer:
    """One run of `time`: what is known so far, and the notes that it leaves."""

    def __init__(self, subject: Subject, seconds: float, confidence: float, precision: float, tell: Tell) -> None:
        self.subject, self.tell = subject, tell
        self.seconds, self.confidence, self.precision = seconds, confidence, precision
        self.notes: list[str] = [note for note in (busy_note(),) if note]
        self.stages: dict[str, float] = {}
        self.may_donate = True

    def run(self, eager: bool) -> Steps[Timing]:
        __tracebackhide__ = True
        subject = self.subject
        part = 1 - _EAGER if eager and subject.eager is not None else 1.0
        with uncached_traces(), _nothing_cached():
            if subject.is_traced:
                self.compile()
            calls = self.first_run()
            long = self.is_long(calls)
            steady = (yield from self.sampled(calls, part, "compiled", 0.0)) if long else None
        # Within a context that makes traces fresh, JAX finds what it compiled some microseconds later. For a short call
        # that counts, and it is compiled again, as the user's own; for a long one that would take as long again.
        steady = steady or (yield from self.sampled(self.ran_once(), part, "compiled", 0.0))
        timed_eager = (yield from self.eager()) if eager else None
        self.tell(1.0, "")
        first = sum(self.stages.values())
        self.note_noise("compiled", steady.samples)
        return Timing(
            subject.name,
            signature_of(self.subject.compiled, subject.args, subject.kwargs),
            Samples((first,), confidence=self.confidence),
            steady.samples,
            timed_eager,
            (first, *steady.warmed),
            self.stages,
            tuple(self.notes),
            {**environment(), "cores": str(cores())},
        )

    def compile(self) -> None:
        """Trace, lower and compile, one step after the other, with the errors that explore() has for them."""
        __tracebackhide__ = True
        subject = self.subject
        request = CompileRequest(subject.compiled, subject.args, subject.kwargs, verb="timed")
        request.check_arguments()
        self.tell(0.0, "tracing and compiling")
        traced, capture = run_step("trace", request.trace, request, request.empty_capture())
        lowered, capture = run_step("lower", traced.lower, request, capture)
        _, capture = run_step("compile", lowered.compile, request, capture)
        self.stages |= {step: getattr(capture.durations, step) for step in ("trace", "lower", "compile")}
        self.may_donate = not subject.is_plain_jit or _donates(traced, lowered)

    def first_run(self) -> Calls:
        calls = self.ran_once()
        if not self.subject.is_plain_jit:
            calls = self.ran_once()  # the first has compiled once more, into a cache of its own
        if not self.subject.is_traced:
            self.notes.append("it was compiled before: its first call here only ran")
        self.stages["run"] = calls.first_seconds
        return calls

    def is_long(self, calls: Calls) -> bool:
        """Whether microseconds more or less don't count in a call."""
        calls.first()
        return calls.first_seconds > _LONG

    def ran_once(self) -> Calls:
        subject = self.subject
        calls = Calls(subject.compiled, subject.args, subject.kwargs, self.may_donate)
        calls.first()
        return calls

    def eager(self) -> Steps[Samples | None]:
        """The calls of the function as it is written; None with a note where it can't run so."""
        subject = self.subject
        if subject.eager is None:
            self.notes.append("no eager calls: there is no Python left of what was compiled")
            return None
        calls = Calls(subject.eager, subject.args, subject.kwargs, self.may_donate)
        try:
            calls.first()
            sampler = yield from self.sampled(calls, _EAGER, "eager", 1 - _EAGER)
        except Exception as error:
            self.notes.append(f"no eager calls: it only runs compiled ({type(error).__name__}: {_line(error)})")
            return None
        self.note_noise("eager", sampler.samples)
        return sampler.samples

    def sampled(self, calls: Calls, part: float, what: str, before: float) -> Steps[Sampler]:
        sampler = Sampler(
            calls.bare,
            args=calls.args,
            prepare=calls.prepare,
            confidence=self.confidence,
            prepared_bytes=calls.prepared_bytes,
        )
        seconds = part * self.seconds
        began = perf_counter()
        yield from sampler.warming_up(_WARM_UP * seconds)
        left = max(seconds - (perf_counter() - began), _LEAST * seconds)
        yield from sampler.measuring(
            left, self.precision, lambda share: self.tell(before + part * share, f"{what} calls")
        )
        if sampler.is_unsettled:
            self.notes.append(
                f"the {what} calls had not settled after {duration_text(_WARM_UP * seconds)} of warm-up. "
                f"Hint: seconds={2 * self.seconds:g}"
            )
        return sampler

    def note_noise(self, what: str, samples: Samples) -> None:
        if samples.noise:
            self.notes.append(f"{what}: {samples.noise}")


def busy_note() -> str:
    """That other programs keep the machine busy, where the system tells; empty if they don't."""
    wanting, there = load(), cores()
    if wanting <= there + 0.5:
        return ""
    return f"the machine is busy with other things: {wanting:.1f} programs want to run on {there} cores"


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
