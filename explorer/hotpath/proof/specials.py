"""Python's own functions that ask something of their arguments, or do something to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.core import Tracer

from explorer._jax.array_types import Array
from explorer.hotpath.proof.attributes import attribute
from explorer.hotpath.proof.binding import Arguments
from explorer.hotpath.proof.conditions import has_attribute
from explorer.hotpath.proof.refusal import NotProven
from explorer.hotpath.proof.values import (
    DATA,
    PLAIN,
    Buffer,
    Closure,
    Data,
    Given,
    Items,
    Known,
    Made,
    Method,
    Operation,
    Plain,
    Value,
    Wrapped,
    is_plain,
)
from explorer.hotpath.proof.walker import Walker

Special = Callable[[Walker, Arguments, str], Value]


def _isinstance(walker: Walker, given: Arguments, text: str) -> Value:
    value, against = given.positional
    parts = against.items if isinstance(against, Items) else (against,)
    classes: list[Any] = []
    for part in parts:
        held: Any = part.value if isinstance(part, Known) else None
        classes += held if isinstance(held, tuple) else [held]
    if not all(isinstance(kind, type) for kind in classes):
        return PLAIN
    match value:
        case Known(held) | Given(held):
            return Known(isinstance(held, tuple(classes)))
        case Made(kind):
            return Known(issubclass(kind, tuple(classes)))
        case _:
            pass
    if jax.Array in classes:  # which a trace's arrays are as well
        return PLAIN
    if any(issubclass(kind, Tracer) or kind in ARRAY_CLASSES for kind in classes):
        raise NotProven("it asks for an array's class, and a trace's are others")
    return PLAIN


ARRAY_CLASSES = frozenset((Array,))


def _callable(walker: Walker, given: Arguments, text: str) -> Value:
    match given.positional:
        case (Known(held) | Given(held),):
            return Known(callable(held))
        case (Closure() | Wrapped() | Method() | Operation(),):
            return Known(True)
        case (Data() | Plain(),):
            return Known(False)
        case _:
            return PLAIN


def _getattr(walker: Walker, given: Arguments, text: str) -> Value:
    match given.positional:
        case (owner, Known(str(name))):
            return attribute(owner, name, walker, f"{text}(…, {name!r})")
        case (owner, Known(str(name)), default):
            has_it = has_attribute(owner, name, walker, f"{text}(…, {name!r})")
            return attribute(owner, name, walker, f"{text}(…, {name!r})") if has_it else default
        case _:
            raise NotProven(f"what `{text}(…)` gives isn't known")


def _hasattr(walker: Walker, given: Arguments, text: str) -> Value:
    match given.positional:
        case (owner, Known(str(name))):
            return Known(has_attribute(owner, name, walker, f"{text}(…, {name!r})"))
        case _:
            raise NotProven(f"what `{text}(…)` gives isn't known")


def _number(walker: Walker, given: Arguments, text: str) -> Value:
    if not all(is_plain(value) or isinstance(value, Buffer) for value in given.all):
        raise NotProven(f"`{text}(…)` reads a value", "leave it an array, and read it outside of the function")
    return PLAIN


def _text(walker: Walker, given: Arguments, text: str) -> Value:
    if not all(map(is_plain, given.all)) and not walker.in_error:
        raise NotProven(f"`{text}(…)` writes a value into a text", "write texts outside of the function")
    return PLAIN


def _vjp(walker: Walker, given: Arguments, text: str) -> Value:
    """`jax.vjp(f, *args)`: the function's value, and one that computes derivatives."""
    if not given.positional or not given.are_exact or given.named.keys() - {"has_aux"}:
        raise NotProven(f"what `{text}` is given isn't followed")
    function, *args = given.positional
    walker.call(function, Arguments(tuple(args)), text)
    return Items((DATA, Operation(text), *([DATA] if given.named else [])))


def _refused(reason: str, cure: str = "") -> Special:
    def refuse(walker: Walker, given: Arguments, text: str) -> Value:
        raise NotProven(reason, cure)

    return refuse


SPECIALS: dict[int, Special] = {
    id(isinstance): _isinstance,
    id(callable): _callable,
    id(getattr): _getattr,
    id(hasattr): _hasattr,
    **{id(number): _number for number in (float, int, bool, complex)},
    **{id(maker): _text for maker in (str, repr, format)},
    **{id(vars(jax)[name]): _vjp for name in ("vjp", "linearize")},
    id(print): _refused("it prints", "jax.debug.print prints in compiled code too"),
    id(input): _refused("it asks for input"),
    id(open): _refused("it opens a file"),
    id(type): _refused("it asks for a value's class, and a trace's are others"),
    id(id): _refused("it asks for an object's address"),
    id(hash): _refused("it asks for an object's hash"),
    id(setattr): _refused("it changes an attribute", "return the new value instead of changing the old one"),
    id(next): _refused("it takes the next of what lives outside of the call"),
    id(jax.device_get): _refused("it reads a value", "read it outside of the function"),
}
