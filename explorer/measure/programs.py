"""The call to profile, and the captures of the programs that it ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import jax

from explorer._jax.profiling import live_programs
from explorer._jax.traces import calls_compiled
from explorer.capture.backends import environment
from explorer.capture.equation_paths import rename_numbered, without_numbers
from explorer.capture.explore import Described, Explored
from explorer.capture.filtered import inner_jit
from explorer.capture.open import open_hlo
from explorer.capture.readers.jaxpr import read_jaxpr
from explorer.errors import ArgumentsError
from explorer.measure.compiled_subject import compile_subject
from explorer.measure.subject import signature_of, subject_of
from explorer.model.capture import Capture
from explorer.model.results.profile_events import Events
from explorer.model.stage import Stage


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


def profiled_call(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], compiled: bool | None
) -> ProfiledCall:
    """Return the call for a function: itself if it is compiled or calls compiled functions, else its `jax.jit`."""
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
    except Exception as error:  # the user's own, or JAX's: a plain call will tell which
        why = f"called as it is: it can't be compiled as a whole ({type(error).__name__})"
        return replace(as_it_is, notes=(why,))
    if not inner:
        return made
    why = f"called as it is: it calls compiled functions ({', '.join([*inner][:3])}); compiled=True compiles all of it"
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
    """Return the call with the capture of its program, and let it run that program.

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
    """Return the captures of the programs that ran, by number, and the events with their instruction names."""
    wanted = {op.program: op.module for op in events.ops if op.program >= 0}
    shown = {number: rename_numbered(read()) for number, read in live_programs(wanted).items()}
    names = Counter(wanted.values())
    jaxprs = {f"jit_{name}": jaxpr for name, jaxpr in target.inner.items() if names[f"jit_{name}"] == 1}
    whole, captures = target.whole, dict[int, Capture]()
    for number, (numbered, _) in shown.items():
        text = without_numbers(numbered)
        if whole is not None and whole.hlo.text == text:
            captures[number] = whole
        else:
            captures[number] = _from_text(text, jaxprs.get(wanted[number]))
    renamed = {number: others for number, (_, others) in shown.items()}
    ops = [replace(op, name=renamed.get(op.program, {}).get(op.name, op.name)) for op in events.ops]
    return captures, replace(events, ops=ops)


def _from_text(text: str, jaxpr: Any) -> Capture:
    capture = replace(open_hlo(text), environment=environment())
    if jaxpr is None:
        return capture
    return replace(capture, stages=(Stage("jaxpr", lambda: read_jaxpr(jaxpr)), *capture.stages))
