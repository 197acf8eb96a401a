"""Whose compiled copy a program is: hot paths note it at the program, for who watches what is compiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from explorer.model.events.event import Place

if TYPE_CHECKING:
    from explorer.model.capture import Capture

_MARK = "explored_hot"


class WrittenCall(NamedTuple):
    """A call as its author wrote it, of what hands all of it to one `jax.jit` in another form.

    Args:
        function: The user's.
        paths: Of the array arguments, in JAX's order.
        order: Their places in JAX's order, in the order of the tree.
        tree: The structure of the arguments.
        statics: (path, value) of all that is no array.
    """

    function: Any
    paths: tuple[str, ...]
    order: tuple[int, ...]
    tree: Any
    statics: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True, eq=False)
class HotCopy:
    """The compiled copy of a hot function.

    Args:
        call: What it was compiled for.
        guard: What a guard saw changed since the copy before it: name, before, after; empty for none.
        stack: The user's frames when it was found worth compiling, innermost first.
        trace_seconds: How long tracing the user's function took; the copy's own trace comes after it.
        capture: What it was compiled to; None once the copy isn't there any more.
    """

    call: WrittenCall
    guard: tuple[str, ...]
    stack: tuple[Place, ...]
    trace_seconds: float
    capture: Callable[[], Capture | None]


def mark_hot_copy(program: Any, copy: HotCopy) -> None:
    """Note at the function that is given to `jax.jit` whose copy it is."""
    program.__dict__[_MARK] = copy


def hot_copy_of(program: Any) -> HotCopy | None:
    """Whose copy a function that was given to `jax.jit` is; None if hot paths didn't make it."""
    return getattr(program, "__dict__", {}).get(_MARK)
