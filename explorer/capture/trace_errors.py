"""Messages for a failed trace in the user's terms: the line, the value it needs, its origin, and a hint."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import jax
import numpy as np
from jax.core import Tracer

from explorer.capture.concretization_site import ConcretizationSite, find_site, is_count, is_refusal, type_of
from explorer.capture.frames import Argument, Step, names_in, users_arguments, users_steps
from explorer.capture.origins import LeakedTracer
from explorer.capture.readers.graph_builder import is_runner
from explorer.capture.sources import Span, called_at, label, place, place_with_carets, syntax_at
from explorer.errors import DonatedInputError, ExploreError, ExplorerError, TracedValueError
from explorer.model.text import list_names

_TYPE = re.compile(r"(?:traced array with shape|must be concrete; got|value with type) (\w+\[[^\]]*\])")
_TRACED = re.compile(r"while tracing the function (.+?)(?: at (.+?):\d+)? for ")
_DEPENDS = re.compile(r"depends on the values? of the arguments? ([^\n]+)\.")
_MADE_AT = re.compile(r"(?:from|created on) line ([^\n]+?):(\d+)(?::\d+)? \(")
_LEAKED_FROM = re.compile(r"when the value leaked was (.+?)(?: at (.+?):\d+)? traced for")
# Boilerplate at the end of JAX's messages.
_BOILERPLATE = re.compile(
    r"\n?(?:See https://(?:docs\.jax|jax\.readthedocs)|The error occurred while tracing|If using `jit`)"
)
_ADDRESS = re.compile(r"<(?:function|bound method) ([^<>]*(?:<\w+>[^<>]*)*) at 0x[0-9a-f]+>")
_FILE = re.compile(r"((?:[A-Za-z]:)?[/\\][^\s:]+):(\d+)")
_MAX_MESSAGE_LINES = 6  # lines of JAX's or the user's own words
_MAX_STEPS = 5


def explain_trace_error(
    error: Exception, function: str, verb: str, step: str = "trace"
) -> tuple[type[ExploreError], str]:
    """Return the class and the message of the error to raise for one that ended a trace, a lowering or a compilation.

    `verb` is the word in "f could not be compiled".

    Example:
        >>> import jax
        >>> try:
        ...     jax.make_jaxpr(lambda x: float(x))(1.0)
        ... except Exception as error:
        ...     explain_trace_error(error, "f", "compiled")[0]
        <class 'explorer.errors.TracedValueError'>
    """
    steps = users_steps(error)
    lines: list[str]
    kind: type[ExploreError] = TracedValueError
    if isinstance(error, jax.errors.UnexpectedTracerError):
        lines = _leak(error, steps)
    elif (refused := refusal(error)) is not None:
        lines = _traced_value(refused, steps)
    else:
        lines, kind = _failure(error, steps, step), ExploreError
    return kind, f"{function} could not be {verb}: " + "\n".join(lines)


def users_place(error: BaseException) -> str:
    """Return the innermost line of the user's own code that an error went through, as text; empty without one."""
    steps = users_steps(error)
    return place(steps[0].file, steps[0].span.line) if steps else ""


@dataclass(frozen=True)
class Refusal:
    """An expression that needs the value of a traced array: problem, hint, origins, arguments to make static."""

    text: str
    problem: str
    hint: str
    origins: tuple[str, ...]
    counts: tuple[str, ...]
    step: Step | None
    span: Span | None


def refusal(error: BaseException) -> Refusal | None:
    """Return the expression that needs a traced value, from the error that ended a trace; None for other errors."""
    steps = users_steps(error)
    if isinstance(error, jax.errors.UnexpectedTracerError) or not is_refusal(error, steps):
        return None
    first = steps[0] if steps else None
    site = ConcretizationSite() if first is None else find_site(error, first)
    type_ = site.type or _first_group(_TYPE, error)
    arguments = _arguments(error, steps, site)
    none_yet = f"`{site.value}` has none yet" if site.value else "there is none yet"
    return Refusal(
        site.text,
        f"{f'`{site.text}`' if site.text else 'it'} needs a value, but while tracing {none_yet}"
        f"{f' ({type_})' if type_ else ''}",
        site.hint,
        (*_origins(error, steps, site.bound.values()), *_argument_line(arguments)),
        _counts(arguments, steps),
        first,
        site.span or (first and first.span),
    )


def _traced_value(refused: Refusal, steps: Sequence[Step]) -> list[str]:
    names = " and ".join(f"`{path}`" for path in refused.counts)
    return [
        f"{refused.problem}.",
        *_location_lines(steps, refused.span),
        *refused.origins,
        "  Hint: " + refused.hint.replace("\n", "\n        ") + ".",
        *([f"        Or make {names} {_CONSTANT}"] if names else ()),
    ]


_CONSTANT = "a constant: a number instead of an InputInfo; for jax.jit, a static argument."


def _leak(error: Exception, steps: Sequence[Step]) -> list[str]:
    type_, leaked = _first_group(_TYPE, error), _LEAKED_FROM.search(str(error))
    owner = f"the trace of {leaked[1]}" if leaked and not is_runner(leaked[2] or "") else "an earlier trace"
    named = f"`{error.names[0]}`, " if isinstance(error, LeakedTracer) and error.names[0] != "a value" else ""
    return [
        f"it uses {named}a value that was kept from {owner}{f' ({type_})' if type_ else ''}.",
        *_location_lines(steps),
        *_origins(error, steps),
        "  Hint: return it from there; a traced value in a list, a global or an attribute is no array after the trace.",
    ]


def _failure(error: Exception, steps: Sequence[Step], step: str) -> list[str]:
    words = _words(error)
    return [
        f"{step} failed: {type(error).__name__}" + (f": {words[0]}" if words else "."),
        *(f"  {line}" for line in words[1:]),
        *_location_lines(steps),
        *(_operands(steps[0]) if steps else ()),
    ]


def _words(error: Exception) -> list[str]:
    """Return the lines of an error's message, without JAX's boilerplate, addresses and this machine's folders.

    Of many lines, the first ones and `…`.
    """
    text = _BOILERPLATE.split(str(error).strip(), maxsplit=1)[0]
    text = _FILE.sub(lambda at: f"{label(at[1])}, line {at[2]}", _ADDRESS.sub(r"\1", text))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[:_MAX_MESSAGE_LINES] + (["…"] if len(lines) > _MAX_MESSAGE_LINES else [])


def _first_group(pattern: re.Pattern[str], error: BaseException) -> str:
    match = pattern.search(str(error))
    return match[1] if match else ""


# Lines on the path ---------------------------------------------------------------------------------------------------


def _location_lines(steps: Sequence[Step], span: Span | None = None) -> list[str]:
    """Return the user's lines from the failing one outwards."""
    if not steps:
        return []
    # A lambda or a comprehension is on its caller's line: list it once.
    others = [step for inner, step in pairwise(steps) if (step.file, step.span.line) != (inner.file, inner.span.line)]
    lines = [f"  in  {step.function}, {place(step.file, step.span.line)}" for step in others]
    if len(lines) > _MAX_STEPS:
        lines[2:-2] = [f"  …   {len(lines) - 4} more"]
    return place_with_carets("  at  ", steps[0].file, span or steps[0].span) + lines


def _operands(step: Step) -> list[str]:
    path = syntax_at(step.file, step.span)
    operands: dict[str, str] = {}
    for name in names_in(path[-1]) if path and isinstance(path[-1], ast.expr) else ():
        value = step.value_of(name.id)
        if isinstance(value, (jax.Array, np.ndarray)):
            operands[name.id] = f"`{name.id}` is {type_of(value, short_dtypes=True)}"
    return [f"  with  {', '.join(list(operands.values())[:4])}"] if operands else []


# Origins of a value ---------------------------------------------------------------------------------------------------


def _origins(error: BaseException, steps: Sequence[Step], lines: Iterable[int | None] = ()) -> list[str]:
    """Return the places of lines that made a value, as text, at most three: the `lines`, and those in JAX's message."""
    places = [(steps[0].file, line) for line in lines if line]
    places += [(at[1], int(at[2])) for at in _MADE_AT.finditer(str(error)) if not is_runner(at[1])]
    at = (steps[0].file, steps[0].span.line) if steps else None
    return [f"  from  {place(*origin)}" for origin in dict.fromkeys(places) if origin != at][:3]


def _argument_line(arguments: Sequence[Argument]) -> list[str]:
    if not arguments:
        return []
    names = [f"`{argument.path}`" for argument in arguments]
    return [f"  from  argument{'s' if names[1:] else ''} {list_names(names)} of {arguments[0].function}"]


def _arguments(error: BaseException, steps: Sequence[Step], site: ConcretizationSite) -> list[Argument]:
    """Return the arguments that a value depends on: from JAX's message, or those that the expression names."""
    if not steps:
        return []
    traced, depends = _TRACED.search(str(error)), _first_group(_DEPENDS, error)
    if traced is not None and depends:
        return users_arguments(error, steps, traced[1], traced[2], re.split(r", and |, | and ", depends))
    names = [name for name, line in site.bound.items() if line == 0 and name in steps[0].parameters]
    return [Argument(name, steps[0].function, steps[0].value_of(name)) for name in names]


def _counts(arguments: Sequence[Argument], steps: Sequence[Step]) -> tuple[str, ...]:
    """Return the paths of the arguments if all are traced integers without axes; else an empty tuple."""
    counts = [a.path for a in arguments if is_count(a.value) and steps[-1].value_at(a.path) is a.value]
    return tuple(counts) if len(counts) == len(arguments) else ()


# Arrays that were donated before --------------------------------------------------------------------------------------


def explain_donated(name: str, given: Mapping[str, Any]) -> DonatedInputError | None:
    """Return the error for a call that XLA refused for a deleted input of `given`; None without such an input."""
    leaves = (
        (parameter + jax.tree_util.keystr(path), leaf)
        for parameter, value in given.items()
        for path, leaf in cast("list[tuple[Any, Any]]", jax.tree_util.tree_leaves_with_path(value))
    )
    arrays = ((path, leaf) for path, leaf in leaves if isinstance(leaf, jax.Array) and not isinstance(leaf, Tracer))
    gone = next((path for path, array in arrays if array.is_deleted()), None)
    if gone is None:
        return None
    return DonatedInputError(
        f"input `{gone}` of {name} was donated to an earlier call, which may have overwritten it.\n{called_at()}"
        f"  Hint: use what that call returned, or donate a copy: {gone}.copy()."
    )


def guarded(call: Callable[..., Any], explain: Callable[[tuple[Any, ...], dict[str, Any]], Exception | None]) -> Any:
    """Return a function that calls `call`, and on a `ValueError` or `RuntimeError` raises what `explain` returns.

    For errors that C++ raises without asking Python. Explorer's own errors, and those for which `explain` returns None,
    pass unchanged. The wrapper costs a call 0.3 µs.
    """

    def guarded_call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            return call(*args, **kwargs)
        except (ValueError, RuntimeError) as error:
            explained = None if isinstance(error, ExplorerError) else explain(args, kwargs)
            if explained is None:
                raise
            raise explained from error

    return guarded_call
