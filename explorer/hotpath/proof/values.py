"""What the proof knows of a value: abstract values, from what is known exactly to what is only known to be data."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_MOST = 8  # values that one name may have; more are too many to follow


class Value:
    """What is known of a value."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Data(Value):
    """Arrays, numbers, and containers of these: what pure operations made of the arguments."""


@dataclass(frozen=True, slots=True)
class Plain(Value):
    """A Python number, a text, a dtype or a tuple of these that rests on no array's values: a trace has it as well."""


@dataclass(frozen=True, slots=True, eq=False)
class Known(Value):
    """This very object: a constant of the code, or read from outside of the call, which a guard holds.

    Args:
        value: The object.
    """

    value: Any


@dataclass(frozen=True, slots=True)
class Buffer(Value):
    """A NumPy array from outside, or a part of one: a guard holds what is in it, and the call mustn't change it."""


@dataclass(frozen=True, slots=True, eq=False)
class Given(Value):
    """An argument of the call, or a part of one. Guards hold its structure and classes; its arrays vary.

    Args:
        example: That of the call that is looked at.
    """

    example: Any


@dataclass(slots=True, eq=False)
class Fresh(Value):
    """A container that the call itself made, and may change.

    Args:
        kind: `list`, `dict`, `set`, or `numpy.ndarray`.
        holds: What is in it, all taken together; None for nothing.
    """

    kind: type[Any]
    holds: Value | None = None

    def add(self, value: Value) -> None:
        self.holds = value if self.holds is None else join(self.holds, value)


@dataclass(frozen=True, slots=True, eq=False)
class Items(Value):
    """A tuple that the call itself made.

    Args:
        items: What is in it, in order.
    """

    items: tuple[Value, ...]


@dataclass(slots=True, eq=False)
class Made(Value):
    """An object that the call itself made of one of the user's classes.

    Args:
        kind: The class.
        fields: Its attributes so far.
    """

    kind: type[Any]
    fields: dict[str, Value] = field(default_factory=dict[str, Value])


@dataclass(frozen=True, slots=True, eq=False)
class Closure(Value):
    """A function that the call itself defined.

    Args:
        node: Its `def` or `lambda`.
        names: The local names around it, as they are when it is called.
        home: The function whose globals it has.
        defaults: Of its parameters, by name.
    """

    node: ast.FunctionDef | ast.Lambda
    names: Scope
    home: Any
    defaults: Mapping[str, Value]


@dataclass(frozen=True, slots=True, eq=False)
class Method(Value):
    """A function with its first argument: of an object that was given or made.

    Args:
        function: The function.
        owner: The first argument.
    """

    function: Value
    owner: Value


@dataclass(frozen=True, slots=True, eq=False)
class Wrapped(Value):
    """What a transformation made of a function: `jax.grad(f)`, `functools.partial(f, 1)`.

    Args:
        wrapper: The transformation.
        function: What it was given.
        args, keywords: Given besides; of `partial`.
    """

    wrapper: Any
    function: Value
    args: tuple[Value, ...] = ()
    keywords: Mapping[str, Value] = field(default_factory=dict[str, Value])


@dataclass(frozen=True, slots=True, eq=False)
class Operation(Value):
    """Something that may be called with data and does nothing but give data: a method of an array, a layer.

    Args:
        name: As the source has it.
    """

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Either(Value):
    """One of several, by what the call does.

    Args:
        values: Each that it may be.
    """

    values: tuple[Value, ...]


@dataclass(slots=True, eq=False)
class Scope:
    """The local names of a call, and those around it.

    Args:
        names: Each local name that has a value.
        outer: The scope in which the function was defined; None at the top of what is looked at.
    """

    names: dict[str, Value]
    outer: Scope | None = None

    def find(self, name: str) -> Value | None:
        """The value of a name, here or further out."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return None


DATA = Data()
PLAIN = Plain()
BUFFER = Buffer()
NONE = Known(None)


def join(first: Value, second: Value) -> Value:
    """What is known of a value that is one of two.

    Example:
        >>> join(DATA, Known(3))
        Data()
        >>> len(join(DATA, NONE).values)
        2
    """
    values: list[Value] = []
    for value in (*_parts(first), *_parts(second)):
        if not any(is_same(value, one) for one in values):
            values.append(value)
    values = _without_numbers(values)
    if len(values) == 1:
        return values[0]
    if len(values) > _MOST:
        raise TooManyValues
    return Either(tuple(values))


class TooManyValues(Exception):
    """A name may stand for more values than can be followed."""


def _parts(value: Value) -> tuple[Value, ...]:
    return value.values if isinstance(value, Either) else (value,)


def _without_numbers(values: list[Value]) -> list[Value]:
    """Several plain values are one that is plain, and with arrays they are data."""
    plain = [value for value in values if is_plain(value)]
    rest = [value for value in values if not is_plain(value) and not isinstance(value, Data)]
    number = [DATA] if DATA in values else plain if len(plain) < 2 else [PLAIN]
    return [*number, *rest]


def is_plain(value: Value) -> bool:
    """Whether it is a Python number or text that a trace has as well."""
    return isinstance(value, Plain) or (isinstance(value, Known) and type(value.value) in PLAIN_TYPES)


PLAIN_TYPES = (bool, int, float, complex, str, bytes)


def is_same(first: Value, second: Value) -> bool:
    """Whether the same is known of both."""
    if first is second:
        return True
    if isinstance(first, Known) and isinstance(second, Known):
        if type(first.value) in PLAIN_TYPES:
            return type(first.value) is type(second.value) and first.value == second.value
        return first.value is second.value
    if isinstance(first, Given) and isinstance(second, Given):
        return first.example is second.example
    if isinstance(first, Items) and isinstance(second, Items):
        return len(first.items) == len(second.items) and all(map(is_same, first.items, second.items))
    return type(first) is type(second) and isinstance(first, (Data, Plain, Buffer))
