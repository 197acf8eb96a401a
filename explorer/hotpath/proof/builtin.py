"""Python's own: methods of lists, dicts, tuples and sets, and functions that ask something of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from inspect import isclass
from typing import Any, cast

import jax
import numpy as np
from jax.core import Tracer

from explorer._jax.arguments import Array
from explorer.capture.safe_reading import kind_of
from explorer.hotpath.proof import known
from explorer.hotpath.proof.attributes import attribute, classified_fields, elements, has_attribute, item, values_in
from explorer.hotpath.proof.known import note_all
from explorer.hotpath.proof.values import (
    DATA,
    NONE,
    PLAIN,
    Arguments,
    Buffer,
    Closure,
    Data,
    Fresh,
    Given,
    Items,
    Known,
    Made,
    Method,
    NotProven,
    Observation,
    Operation,
    Plain,
    Value,
    Walker,
    Wrapped,
    is_plain,
    join,
    join_all,
)


def method(walker: Walker, owner: Value, name: str, given: Arguments, text: str) -> Value:
    """What a method of a container gives, once it is known to change nothing but the call's own."""
    if isinstance(owner, Buffer):
        if "out" in given.named or not given.are_exact:
            raise NotProven(f"`{text}` may change a NumPy array")
        return owner
    if isinstance(owner, Fresh) and owner.kind is np.ndarray and name not in known.CHANGING_METHODS:
        return DATA
    if name in known.CHANGING_METHODS:
        return _changed(walker, owner, name, given, text)
    if isinstance(owner, Known) and name != "get":
        note_all(owner.value, walker.reads, text)
    match name:
        case "items":
            return Fresh(list, Items((PLAIN, values_in(owner, walker) or DATA)))
        case "values":
            return Fresh(list, values_in(owner, walker))
        case "keys":
            return Fresh(list, PLAIN)
        case "copy":
            return Fresh(_container_kind(owner), values_in(owner, walker))
        case "get" if given.positional:
            key, default = (*given.positional, NONE)[:2]
            return _got(walker, owner, key, default, text)
        case "index" | "count" if all(map(is_plain, given.all)):
            return PLAIN
        case "_replace" if isinstance(owner, Given) and given.are_exact:
            walker.reads.observed += [Observation(owner.example, name) for name in owner.example._fields]
            return Made(kind_of(owner.example), {**classified_fields(owner.example), **given.named})
        case _:
            raise NotProven(f"what `{text}` does isn't known")


def _got(walker: Walker, owner: Value, key: Value, default: Value, text: str) -> Value:
    """What `get` gives: the default alone, or the item alone, where guards hold which."""
    held: Any = owner.value if isinstance(owner, Known) else owner.example if isinstance(owner, Given) else None
    if isinstance(key, Known) and type(key.value) in (int, str) and type(held) is dict:
        is_there = key.value in cast(dict[Any, Any], held)
        inside = item(owner, key, walker, text)  # notes all keys where it isn't there
        return inside if is_there else default
    return join(item(owner, key, walker, text), default)


def _changed(walker: Walker, owner: Value, name: str, given: Arguments, text: str) -> Value:
    """A container gets or loses something; what comes out of it was in it."""
    if name == "sort" and (given.all or not is_plain(elements(owner, walker) or PLAIN)):
        raise NotProven(f"`{text}` compares what is in it", "jnp.sort sorts arrays")
    for value in _put_in(name, given, walker):
        walker.put(owner, value, text)
    if isinstance(owner, Fresh):
        left = owner.holds or DATA
        return join(left, given.positional[1]) if name == "pop" and len(given.positional) == 2 else left
    walker.put(owner, DATA, text)  # refuses what isn't the call's own
    return DATA


def _put_in(name: str, given: Arguments, walker: Walker) -> list[Value]:
    """What a method puts into its container."""
    if name in ("pop", "popitem", "remove", "discard", "clear"):
        return []
    parts = given.all
    if name in ("setdefault", "insert") and len(given.positional) == 2:
        parts = [given.positional[1]]
    if name == "update":
        return [values_in(value, walker) or PLAIN for value in parts]
    if name == "extend":
        return [inside for value in parts if (inside := elements(value, walker)) is not None]
    return parts


def _container_kind(owner: Value) -> type[Any]:
    if isinstance(owner, Fresh):
        return owner.kind
    example: Any = getattr(owner, "example", getattr(owner, "value", []))
    return kind_of(example)


def made_by(function: Any, given: Arguments, walker: Walker) -> Value | None:
    """What one of Python's own functions gives of containers and numbers; None for others."""
    maker = _MAKERS.get(id(function))
    if maker is not None:
        return maker(given, walker)
    if any(function is one for one in _NUMBERS) and all(map(_is_plain_like, given.all)):
        return PLAIN
    container = known.container_made(function)
    return Fresh(container, DATA) if container is not None else None


def _sequence(given: Arguments, walker: Walker) -> Value:
    return Fresh(list, elements(given.positional[0], walker) if given.positional else None)


def _tuple(given: Arguments, walker: Walker) -> Value:
    match given.positional:
        case (Items() as items,):
            return items
        case _:
            return _sequence(given, walker)


def _zip(given: Arguments, walker: Walker) -> Value:
    if given.rest is not None:  # zip(*rows)
        inside = [elements(one, walker) or DATA for one in (*given.positional, given.rest)]
        return Fresh(list, Fresh(tuple, join_all(inside)))
    return Fresh(list, Items(tuple(elements(one, walker) or DATA for one in given.positional)))


def _enumerate(given: Arguments, walker: Walker) -> Value:
    return Fresh(list, Items((PLAIN, *(elements(one, walker) or DATA for one in given.positional[:1]))))


def _dict(given: Arguments, walker: Walker) -> Value:
    parts = [value for one in given.positional if (value := values_in(one, walker)) is not None]
    parts += given.named.values()
    parts += [] if given.others is None else [given.others]
    return Fresh(dict, join_all(parts))


_MAKERS: dict[int, Callable[[Arguments, Walker], Value]] = {
    **{id(function): _sequence for function in (reversed, sorted, filter, list, set, frozenset)},
    id(tuple): _tuple,
    id(zip): _zip,
    id(enumerate): _enumerate,
    id(dict): _dict,
    id(range): lambda given, walker: Fresh(list, PLAIN),
    id(len): lambda given, walker: PLAIN,
}
_NUMBERS: tuple[Any, ...] = (abs, divmod, max, min, pow, round, sum, all, any)


def _is_plain_like(value: Value) -> bool:
    if not isinstance(value, Fresh):
        return is_plain(value)
    return value.kind is not np.ndarray and (value.holds is None or is_plain(value.holds))


Special = Callable[[Walker, Arguments, str], Value]


def _isinstance(walker: Walker, given: Arguments, text: str) -> Value:
    value, against = given.positional
    parts = against.items if isinstance(against, Items) else (against,)
    classes: list[Any] = []
    for part in parts:
        held: Any = part.value if isinstance(part, Known) else None
        classes += held if isinstance(held, tuple) else [held]
    if not all(map(isclass, classes)):
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
