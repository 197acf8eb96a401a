"""profile(): the time of a compiled function, by instruction and by source line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from typing import Any

import jax
import numpy as np
from jax.profiler import TraceAnnotation

from explorer._jax.profiling import live_programs, profiling, read_profile
from explorer._jax.traces import calls_compiled
from explorer.analysis.profile_events import CALL, RESULT, events_of
from explorer.analysis.profile_recording import undisturbed
from explorer.analysis.profile_rows import build_profile, steady_runs
from explorer.analysis.profile_trees import merge_profiles as merged_profiles
from explorer.capture.backends import environment
from explorer.capture.call import Call, takes_call
from explorer.capture.equation_paths import rename_numbered, without_numbers
from explorer.capture.explore import Described, Explored
from explorer.capture.filtered import inner_jit
from explorer.capture.open import open_hlo
from explorer.capture.origins import agree_on_time, call_time
from explorer.capture.readers.jaxpr import read_jaxpr
from explorer.capture.script import printed_once
from explorer.errors import ArgumentsError, OptionError
from explorer.files.disk import process_names, with_files
from explorer.measure.calls import Calls, ready, refuse_target, signature_of, subject_of, timed
from explorer.measure.compiled_subject import compile_subject
from explorer.measure.machine import environment_with_cores
from explorer.measure.steady import steady
from explorer.model.capture import Capture
from explorer.model.results.profile import ProcessProfile, Profile
from explorer.model.results.profile_events import Events
from explorer.model.results.timing import Samples
from explorer.model.stage import Stage
from explorer.model.target import Target

_FEWEST, _MOST = 5, 30  # calls to record, unless the user sets their number
_BYTES = 24_000_000  # of a recording, some 200,000 events: a loop of many small steps is recorded less often
_PLAIN = 0.25  # of the time there is: for calls that are not recorded, before and again after
_BESIDE = 5  # such calls before and after, where the number of calls is given
_REPEATS = 2  # times that twice as many calls are recorded, where the order of the first lines is not clear
_LONG = 2e-3  # seconds: a single call that takes as long is timed as well as several together
_TIED = 0.9  # of the first: lines that may be as hot as that one, and are not much less, are a tie


@dataclass(frozen=True)
class ProfiledCall:
    """A call to profile.

    Args:
        call: The function to call: the user's, or its compiled form.
        function: The user's function.
        args, kwargs: The arguments of `call`.
        name, signature: As shown to the user.
        has_stages: True if JAX kept trace and program of `call`, so that compiling again costs nothing.
        may_donate: True if a call may delete its arguments.
        notes: Notes for the reader.
        whole: The capture that `explore` shows of the program; None if unknown.
        inner: By name, the jaxpr of each compiled function that it calls, if all its calls have the same jaxpr.
    """

    call: Callable[..., Any]
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    name: str
    signature: str
    has_stages: bool = False
    may_donate: bool = True
    notes: tuple[str, ...] = ()
    whole: Capture | None = None
    inner: Mapping[str, Any] = field(default_factory=dict[str, Any])


# A profile, the samples of calls that were not recorded, and the interrupt that ended it.
_Measured = tuple[Profile, Samples, BaseException | None]


@takes_call
def profile(
    function: Callable[..., Any] | Call,
    /,
    *args: Any,
    runs: int | None = None,
    warm_up: int = 2,
    seconds: float = 1.0,
    compiled: bool | None = None,
    target: str | Target | None = None,
    **kwargs: Any,
) -> Profile:
    """Measure where the time of a function's calls goes, by instruction and by source line.

    The function is called several times while XLA's profiler runs, and a few times without it. The profiler's own cost
    per event is subtracted. Lines whose times can't be told apart are reported as a tie. Donated arguments are copied
    before each call, so your arrays survive.

    Args:
        function: Any callable, a `jax.jit` function, or an `Executable`. A plain function is compiled first, unless it
            calls compiled functions itself or can't be compiled. Then it is called as it is.
        args, kwargs: Arguments of the call. For a keyword that is also an option here, see `explorer.Call`.
        runs: Number of calls to record. None records as many as fit in `seconds`, from 5 to 30, and up to 4 times as
            many while the order of the first lines is not clear.
        warm_up: Number of calls before recording. The first of them compiles.
        seconds: Approximate time to record, in seconds.
        compiled: True compiles a plain function whatever it calls. False calls it as it is.
        target: Refused: a program for other hardware can't be profiled here. `explorer.roofline(f, x, target=…)`
            estimates it.

    Raises:
        NotCallableError: `function` can't be called.
        ArgumentsError: An argument describes an array instead of being one.
        OptionError: An option is out of range.
        ProfilerBusyError: A trace is being recorded in this process already.
        KeyboardInterrupt, SystemExit: Raised again if it came while calls were recorded. If two calls were recorded
            before, their profile is its `.result`.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> measured = explorer.profile(jax.jit(lambda x: jnp.sin(x) @ x), jnp.ones((64, 64)), runs=3)
        >>> measured.runs <= 3, abs(sum(op.share for op in measured.ops) - 1) < 1e-6
        (True, True)
    """
    __tracebackhide__ = True
    refuse_target("profile", target, f"explorer.roofline(f, x, target={str(target)!r})")
    call = Call.of(function, args, kwargs)
    _check(runs, warm_up, seconds)
    subject = profiled_call(call.function, call.args, call.kwargs, compiled)
    captured = with_capture(subject)
    calls = Calls(captured.call, captured.args, captured.kwargs, captured.may_donate, is_counted=runs is not None)
    program = call.function, call.args, call.kwargs
    is_one = captured.whole is not None  # program, so that a call of it is one fact
    where = environment_with_cores()
    steady_time, note = call_time(*program) if is_one else None, ""
    with printed_once() as prints:
        calls.first()
        with prints.muted():
            if steady_time is None and is_one and runs is None:
                own = Calls(subject.call, subject.args, subject.kwargs, subject.may_donate)
                own.first()
                seconds_of_own = steady(own.call, prepare=own.prepare, seconds=_PLAIN * seconds)
                steady_time, note = agree_on_time(*program, seconds_of_own)
            measured, beside, stop = _measured(captured, calls, runs, warm_up, seconds)
    printed = prints.notes
    if stop is None and is_one and beside.median > _LONG:
        steady_time, note = agree_on_time(*program, beside)
    if steady_time is not None:
        measured = replace(measured, plain_seconds=steady_time.median)
    notes = [*subject.notes, *measured.notes, *filter(None, [note]), *printed]
    measured = replace(measured, notes=notes, environment=where)
    if stop is None:
        return measured
    stop.result = measured  # pyright: ignore[reportAttributeAccessIssue]
    raise stop


def _measured(target: ProfiledCall, calls: Calls, runs: int | None, warm_up: int, seconds: float) -> _Measured:
    """Return (profile, samples of calls without profiler, interrupt or None) of `runs` calls; None makes as many as it
    takes to know the hottest line.
    """
    once = _warmed_up(calls, warm_up)
    if runs is not None:  # every process of several makes the same number of calls
        return _recorded(target, calls, runs, _BESIDE)
    plain = max(2, min(_MOST, int(_PLAIN * seconds / max(once, 1e-9))))
    count = _affordable(calls, seconds / max(once, 1e-9))
    measured = _recorded(target, calls, count, plain)
    for _ in range(_REPEATS):
        count *= 2
        profile, _, stop = measured
        if is_settled(profile) or stop is not None or count * profile.seconds > 2 * seconds or count > 2 * _MOST:
            break
        measured = _recorded(target, calls, count, plain)
    return measured


def _recorded(target: ProfiledCall, calls: Calls, count: int, plain_calls: int) -> _Measured:
    """Record `count` calls, and time `plain_calls` calls without the profiler before and after them.

    Returns:
        The profile, the samples of the calls without profiler, and the interrupt that ended the recording, or None.
    """
    plain, stop = [timed(calls) for _ in range(plain_calls)], None
    with profiling() as recording:
        try:
            record(calls, count)
        except (KeyboardInterrupt, SystemExit) as error:
            stop = error
    events = events_of(read_profile(recording.data).planes)
    if stop is None:
        plain += [timed(calls) for _ in range(plain_calls)]
    elif len(events.windows) < 2:
        raise stop
    else:  # the last call is incomplete
        events = replace(events, windows=events.windows[:-1])
        recording.note = f"ended by {type(stop).__name__} after {len(events.windows)} of {count} calls"
    captures, events = captures_of(target, events)
    seconds = np.asarray(plain)
    profile = build_profile(target.name, target.signature, events, captures, undisturbed(seconds))
    notes = [*filter(None, [recording.note]), *profile.notes]
    return replace(profile, notes=notes, xspace=recording.data), Samples(tuple(seconds[steady_runs(seconds)])), stop


def is_settled(profile: Profile) -> bool:
    """Return True if one line is the hottest beyond doubt, or if the tied lines differ by at most 10 %."""
    hottest = profile.hottest
    return len(hottest) < 2 or hottest[-1].seconds >= _TIED * hottest[0].seconds


def _check(runs: Any, warm_up: Any, seconds: Any) -> None:
    __tracebackhide__ = True
    for name, value, least in (("runs", runs, 1), ("warm_up", warm_up, 1)):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
            raise OptionError(f"{name}={value!r}: it is a whole number of calls, at least {least}.")
    if not isinstance(seconds, int | float) or not 0 < seconds < float("inf"):
        raise OptionError(f"seconds={seconds!r}: it is a number of seconds above 0.")


def _warmed_up(calls: Calls, times: int) -> float:
    """Call `times - 1` times, at least once; return the seconds of the fastest call."""
    return min(timed(calls) for _ in range(max(times - 1, 1)))


def _affordable(calls: Calls, in_time: float) -> int:
    """Record one call, and return how many to record: 5 to 30, as time and the recording's size allow."""
    with profiling() as recording:
        record(calls, 1)
    return max(_FEWEST, min(_MOST, int(in_time), _BYTES // max(len(recording.data), 1)))


def record(calls: Calls, runs: int) -> None:
    """Make `runs` calls, with annotations for each call and for the wait for its result."""
    for _ in range(runs):
        given = calls.prepare() if calls.prepare is not None else ()
        with TraceAnnotation(CALL):
            result = calls.call(*given)
            with TraceAnnotation(RESULT):
                ready(result)
        del result, given  # what a call gives is freed between two calls, not in the next


def profiled_call(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], compiled: bool | None
) -> ProfiledCall:
    """Return the call to profile: the function if it is compiled or calls compiled functions, else its `jax.jit`.

    `compiled` True or False decides for a plain function.
    """
    __tracebackhide__ = True
    subject = subject_of(function, args, kwargs, "profile")
    _refuse_descriptions(args, kwargs)
    signature = signature_of(function, args, kwargs)
    call: Any = subject.compiled
    made = ProfiledCall(call, function, subject.args, subject.kwargs, subject.name, signature)
    if subject.eager is not function:  # some compiler's
        return replace(made, has_stages=subject.is_traced and subject.is_plain_jit)
    made = replace(made, has_stages=True, may_donate=False, notes=("compiled by jax.jit for this",))
    if compiled is True:
        return made
    as_it_is = replace(made, call=function, has_stages=False, may_donate=True, notes=())
    if compiled is False:
        return as_it_is
    try:
        inner = calls_compiled(call.trace(*args, **kwargs).jaxpr)
    except Exception as error:  # the user's own, or JAX's: a plain call will raise the former
        why = f"called as it is: it can't be compiled as a whole ({type(error).__name__})"
        return replace(as_it_is, notes=(why,))
    if not inner:
        return made
    why = f"called as it is: it calls compiled functions ({', '.join([*inner][:3])}); compiled=True compiles all of it"
    # A name with several jaxprs doesn't show which one a program is of.
    single = {name: jaxprs[0] for name, jaxprs in inner.items() if len({id(jaxpr) for jaxpr in jaxprs}) == 1}
    return replace(as_it_is, notes=(why,), inner=single)


def _refuse_descriptions(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    __tracebackhide__ = True
    leaves = jax.tree.leaves((args, kwargs), is_leaf=lambda leaf: isinstance(leaf, Described))
    for leaf in leaves:
        if isinstance(leaf, Described | jax.ShapeDtypeStruct):
            raise ArgumentsError(
                f"profile runs the function, so it takes arrays; it got {leaf!r}, which describes one.\n"
                "  Hint: explorer.explore compiles for descriptions; jnp.ones makes an array to run with."
            )


def with_capture(target: ProfiledCall) -> ProfiledCall:
    """Return a copy of the call with the capture of its program as `whole`, which runs that program.

    A function that JAX compiled before is compiled once more, as `explore` does: only then do instructions name their
    equations. Without a capture the call is returned unchanged.
    """
    call: Any = target.call
    with suppress(Exception):  # the call itself raises what is the user's own; without a capture the text is enough
        if isinstance(call, Explored):
            return replace(target, whole=call.explore())
        if target.has_stages or inner_jit(call) is not None:
            given: Any = target.function, target.args, target.kwargs
            built = compile_subject(*given, target=call, verb="profiled", is_known=True)
            return replace(target, call=built.call, args=built.args, kwargs=built.kwargs, whole=built.capture)
    return target


def captures_of(target: ProfiledCall, events: Events) -> tuple[Mapping[int, Capture], Events]:
    """Return (captures by XLA's program number, events), for the programs that ran.

    The events' instructions are renamed as in the captures.
    """
    wanted = {op.program: op.module for op in events.ops if op.program >= 0}
    modules = Counter(wanted.values())
    jaxprs = {f"jit_{name}": jaxpr for name, jaxpr in target.inner.items() if modules[f"jit_{name}"] == 1}
    captures: dict[int, Capture] = {}
    renamed: dict[int, Mapping[str, str]] = {}
    for number, read in live_programs(wanted).items():
        numbered, renamed[number] = rename_numbered(read())
        text = without_numbers(numbered)
        # The capture that `explore` shows has links to equations; one read from the text has none.
        if target.whole is not None and target.whole.hlo.text == text:
            captures[number] = target.whole
            continue
        capture = replace(open_hlo(text), environment=environment())
        if (jaxpr := jaxprs.get(wanted[number])) is not None:
            capture = replace(capture, stages=(Stage("jaxpr", partial(read_jaxpr, jaxpr)), *capture.stages))
        captures[number] = capture
    ops = [replace(op, name=renamed.get(op.program, {}).get(op.name, op.name)) for op in events.ops]
    return captures, replace(events, ops=ops)


Source = Profile | str | PathLike[str]


def merge_profiles(
    profiles: Iterable[Source] | str | PathLike[str], /, *, names: Iterable[str] | None = None
) -> ProcessProfile:
    """Merge the profiles of processes that run one function, and show the time lost waiting for each other.

    Files are read one after another and not kept.

    Args:
        profiles: One per process: a `Profile`, a file of `Profile.save`, or a folder of such files.
        names: Names of the processes; by default the file names, or 0, 1, ….

    Raises:
        OptionError: There is nothing to merge, or not one name per profile.
        ResultFileError: A file is no profile.
        FileNotFoundError: A file is missing.

    Example:
        >>> import explorer
        >>> alone = explorer.Profile("step", "()", 1, 0.002, 0.001, 0.001, (), (), 0.0)
        >>> explorer.merge_profiles([alone, alone])
        ProcessProfile(step in 2 processes: a call takes 2 ms in process 0; no time lost in collectives was measured)
    """
    alone = isinstance(profiles, (str, PathLike))
    sources = with_files([profiles] if alone else profiles)
    wanted = [str(name) for name in names] if names is not None else process_names(sources)
    if not sources or len(wanted) != len(sources):
        raise OptionError(
            f"merge_profiles got {len(sources):,} profiles and {len(wanted):,} names.\n"
            "  Hint: merge_profiles('folder'), of files of Profile.save."
        )
    profiles = (source if isinstance(source, Profile) else Profile.load(source) for source in sources)
    return merged_profiles(zip(wanted, profiles, strict=True))
