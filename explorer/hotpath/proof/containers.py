"""Methods of lists, dicts, tuples and sets, and what Python's own functions make of them."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from explorer.hotpath.proof import known
from explorer.hotpath.proof.attributes import classify, elements, item, values_in
from explorer.hotpath.proof.binding import Arguments
from explorer.hotpath.proof.refusal import NotProven
from explorer.hotpath.proof.values import (
    DATA,
    NONE,
    PLAIN,
    Fresh,
    Given,
    Items,
    Made,
    Value,
    is_plain,
    join,
)
from explorer.hotpath.proof.walker import Walker
from explorer.pitfalls.safe import kind_of


def method(walker: Walker, owner: Value, name: str, given: Arguments, text: str) -> Value:
    """What a method of a container gives, once it is known to change nothing but the call's own."""
    if isinstance(owner, Fresh) and owner.kind is np.ndarray and name not in known.CHANGING_METHODS:
        return DATA
    if name in known.CHANGING_METHODS:
        return _changed(walker, owner, name, given, text)
    match name:
        case "items":
            return Fresh(list, Items((PLAIN, values_in(owner, walker) or DATA)))
        case "values":
            return Fresh(list, values_in(owner, walker))
        case "keys":
            return Fresh(list, PLAIN)
        case "copy":
            return Fresh(_kind_of(owner), values_in(owner, walker))
        case "get" if given.positional:
            key, default = (*given.positional, NONE)[:2]
            return join(item(owner, key, walker, text), default)
        case "index" | "count" if all(map(is_plain, given.all)):
            return PLAIN
        case "_replace" if isinstance(owner, Given) and given.are_exact:
            return Made(kind_of(owner.example), {**_fields(owner.example), **given.named})
        case _:
            raise NotProven(f"what `{text}` does isn't known")


def _changed(walker: Walker, owner: Value, name: str, given: Arguments, text: str) -> Value:
    """A container gets or loses something; what comes out of it was in it."""
    for value in given.all:
        inside = (values_in(value, walker) or PLAIN) if name == "update" else value
        inside = elements(value, walker) if name == "extend" else inside
        if inside is not None:
            walker.put(owner, inside, text)
    if isinstance(owner, Fresh):
        return owner.holds or DATA
    walker.put(owner, DATA, text)  # refuses what isn't the call's own
    return DATA


def _kind_of(owner: Value) -> type[Any]:
    if isinstance(owner, Fresh):
        return owner.kind
    example: Any = getattr(owner, "example", getattr(owner, "value", []))
    return kind_of(example)


def _fields(example: Any) -> dict[str, Value]:
    return {name: classify(getattr(example, name)) for name in example._fields}


def made_by(function: Any, given: Arguments, walker: Walker) -> Value | None:
    """What one of Python's own functions gives of containers and numbers; None for others."""
    first = given.positional[0] if given.positional else None
    if function is tuple and isinstance(first, Items):
        return first
    if function is len or (any(function is one for one in _NUMBERS) and all(map(_is_plain_like, given.all))):
        return PLAIN
    if function is range:
        return Fresh(list, PLAIN)
    if function is zip:
        return Fresh(list, Items(tuple(elements(one, walker) or DATA for one in given.positional)))
    if function is enumerate and first is not None:
        return Fresh(list, Items((PLAIN, elements(first, walker) or DATA)))
    if function is dict:
        parts = [value for one in given.positional if (value := values_in(one, walker)) is not None]
        parts += given.named.values()
        parts += [] if given.others is None else [given.others]
        return Fresh(dict, reduce(join, parts) if parts else None)
    if any(function is one for one in _SEQUENCES):
        return Fresh(list, elements(first, walker) if first is not None else None)
    container = known.container_made(function)
    return Fresh(container, DATA) if container is not None else None


_NUMBERS: tuple[Any, ...] = (abs, divmod, max, min, pow, round, sum, all, any)
_SEQUENCES: tuple[Any, ...] = (reversed, sorted, filter, list, tuple, set, frozenset)


def _is_plain_like(value: Value) -> bool:
    if not isinstance(value, Fresh):
        return is_plain(value)
    return value.kind is not np.ndarray and (value.holds is None or is_plain(value.holds))
