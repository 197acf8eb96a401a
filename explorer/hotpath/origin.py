"""Whose compiled copy a program is, and why it was compiled: what the ledger of compiles says of it."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from types import BuiltinFunctionType, FrameType, FunctionType
from typing import Any, cast

from jax import tree_util

from explorer.capture.call_sites import user_places
from explorer.capture.safe_reading import kind_of
from explorer.hotpath.arguments import Call
from explorer.hotpath.captured import capture_of
from explorer.hotpath.codes import entered_by
from explorer.hotpath.guards import Guards
from explorer.hotpath.proof.reads import Read
from explorer.model.capture import Capture
from explorer.model.events.event import HotCopy, Place, WrittenCall
from explorer.model.text import cut_middle

_trees: Any = tree_util  # its annotations are partial
_PRINTED = frozenset((bool, int, float, complex, str, bytes, type(None)))  # whose repr runs nothing of the user's
_NAMED = (FunctionType, BuiltinFunctionType, type)


@dataclass(frozen=True, slots=True)
class Origin:
    """Why a copy is made.

    Args:
        stack: The user's frames at the call that was one too many, innermost first.
        missed: What a guard of the copy before it saw changed; None if there was none for such calls.
    """

    stack: tuple[Place, ...] = ()
    missed: Read | None = None


def call_stack(owner: object) -> tuple[Place, ...]:
    """The user's frames below the hot function whose call asks `owner`, innermost first."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - documented, for debuggers
    innermost = frame
    while frame is not None:
        if entered_by(frame.f_code) is owner:
            return user_places(frame.f_back)
        frame = frame.f_back
    return user_places(innermost)  # the statements of a cell, which stand in no function


def hot_copy(call: Call, guards: Guards, origin: Origin, trace_seconds: float) -> HotCopy:
    """What the ledger knows of a copy.

    Args:
        call: What it is compiled for.
        guards: Which hold what it reads.
        origin: Why.
        trace_seconds: How long tracing the user's function took.
    """
    held = weakref.ref(call)
    return HotCopy(
        _written(call, guards), _changed(guards, origin.missed), origin.stack, trace_seconds, lambda: _capture(held())
    )


def _capture(call: Call | None) -> Capture | None:
    return None if call is None else capture_of(cast(FunctionType, call.function), call, call.arrays)


def _written(call: Call, guards: Guards) -> WrittenCall:
    """The call with the names of parameters, and what is read after them, as if it were given."""
    names, places = call.paths, call.places
    read = guards.array_names
    given = [path for at, path in enumerate(names) if at in places]
    leaves = [0 if at in places else None for at in range(len(names))]
    values: tuple[Any, ...] = _trees.tree_unflatten(call.structure, leaves)
    count = len(read)
    return WrittenCall(
        call.function,
        (*read, *given),
        (*range(count, count + len(given)), *range(count)),
        _trees.tree_structure(((*values, *[0] * count), {})),
        tuple((path, value) for path, value in call.others() if _is_printable(value)),
    )


def _is_printable(value: Any) -> bool:
    return type(value) in _PRINTED or isinstance(value, _NAMED)


def _changed(guards: Guards, missed: Read | None) -> tuple[str, ...]:
    """The name of what a guard saw changed, what it was and what it is now."""
    if missed is None:
        return ()
    now = next((read for read in guards.reads if (read.where, read.name) == (missed.where, missed.name)), None)
    before = _described(missed)
    after = _described(now) if now is not None else "not read any more"
    return missed.name, before, f"another {after}" if after == before else after


def _described(read: Read) -> str:
    if read.where == "absent":
        return "not there"
    if read.where == "code":
        return f"function {read.holder.__name__}"
    if read.where == "contents":
        is_mapping = isinstance(read.holder, Mapping)
        return f"{kind_of(read.holder).__name__} of {len(read.value) // (1 + is_mapping)}"
    return _text(read.value) if type(read.value) in _PRINTED else _kind_text(read.value)


def _kind_text(value: Any) -> str:
    if isinstance(value, _NAMED):
        return f"{'class' if isinstance(value, type) else 'function'} {value.__name__}"
    return kind_of(value).__name__


def _text(value: Any) -> str:
    """A value that prints without running anything of the user's; of others their class."""
    return cut_middle(repr(value)) if type(value) in _PRINTED else kind_of(value).__name__
