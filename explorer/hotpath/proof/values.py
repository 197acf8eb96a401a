"""What the proof knows of a value, reads from outside, refuses and binds: the words that its rules are written in."""

from __future__ import annotations

import ast
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from types import CellType, FunctionType
from typing import Any, Literal, Protocol, cast

import jax

from explorer.model.stage import is_library_file


@dataclass(frozen=True, slots=True)
class Refusal:
    """What can't be proven of a function, and where."""

    reason: str  # a sentence without its full stop
    file: str = ""  # of the line
    line: int = 0  # its number, from 1; 0 where there is none
    cure: str = ""  # what would make it provable; empty where nobody knows


class NotProven(Exception):
    def __init__(self, reason: str, cure: str = "", file: str = "", line: int = 0) -> None:
        super().__init__(reason)
        self.refusal = Refusal(reason, file, line, cure)


def refusal_of(error: Exception) -> Refusal:
    """Why a trace or a compiled call raised, with the user's line."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not is_library_file(frame.filename)]
    file, line = (frames[-1].filename, frames[-1].lineno or 0) if frames else ("", 0)
    if isinstance(error, jax.errors.TracerBoolConversionError):
        return Refusal("it decides by the value of an array", file, line, "jnp.where chooses without reading")
    if isinstance(error, (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError)):
        return Refusal("it reads the value of an array", file, line, "read it outside of the function")
    text = str(error).splitlines()[0] if str(error) else ""
    return Refusal(f"compiled it raises {type(error).__name__}: {text}", file, line)


Where = Literal["global", "cell", "attribute", "absent", "item", "contents", "code", "buffer"]


@dataclass(frozen=True, slots=True)
class Read:
    """A value that was read from outside."""

    where: Where  # what kind of place it lies in; `absent` where it is known that there is nothing
    holder: Any  # the namespace, cell, object, container or function
    key: Any  # the name, index or key in it
    # What was there; of contents a tuple, of a function its code, defaults and closure, of a NumPy array what `buffer`
    # gives
    value: Any
    name: str  # as the source reaches it, for people: `CONFIG['rate']`


def contents(container: Any) -> tuple[Any, ...]:
    """All that is in a list, tuple, dict or set, to be compared by identity."""
    if isinstance(container, Mapping):
        mapping = cast(Mapping[Any, Any], container)
        return (*mapping.keys(), *mapping.values())
    return tuple(container)


def buffer(array: Any) -> tuple[Any, ...]:
    """All that a NumPy array is: its class, shape and bytes."""
    return array.dtype, array.shape, array.tobytes()


@dataclass(frozen=True, slots=True)
class Observation:
    """What was asked of an argument, or a part of one, that its tree doesn't say."""

    example: Any  # the dict or object
    name: str | None = None  # of a setting; None for the order of a dict


@dataclass(slots=True)
class Reads:
    """The reads of a proof, each place once."""

    observed: list[Observation] = field(default_factory=list[Observation])

    _by_place: dict[tuple[str, int, Any], Read] = field(default_factory=dict[tuple[str, int, Any], Read])

    def add(self, where: Where, holder: Any, key: Any, value: Any, name: str) -> None:
        place = where, id(holder), key  # holders live as long as the reads, which keep them
        self._by_place.setdefault(place, Read(where, holder, key, value, name))

    def all(self) -> tuple[Read, ...]:
        return tuple(self._by_place.values())


def cell_value(cell: CellType) -> Any:
    """What is in a closure's cell; `Ellipsis` where it has nothing yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return ...


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
    """This very object: a constant of the code, or read from outside of the call, which a guard holds."""

    value: Any  # the object


@dataclass(frozen=True, slots=True)
class Buffer(Value):
    """A NumPy array from outside, or a part of one: a guard holds what is in it, and the call mustn't change it."""


@dataclass(frozen=True, slots=True, eq=False)
class Given(Value):
    """An argument of the call, or a part of one. Guards hold its structure and classes; its arrays vary."""

    example: Any  # that of the call that is looked at


@dataclass(slots=True, eq=False)
class Fresh(Value):
    """A container that the call itself made, and may change."""

    kind: type[Any]  # `list`, `dict`, `set`, or `numpy.ndarray`
    holds: Value | None = None  # what is in it, all taken together; None for nothing

    def add(self, value: Value) -> None:
        self.holds = value if self.holds is None else join(self.holds, value)


@dataclass(frozen=True, slots=True, eq=False)
class Items(Value):
    """A tuple that the call itself made."""

    items: tuple[Value, ...]  # what is in it, in order


@dataclass(slots=True, eq=False)
class Made(Value):
    """An object that the call itself made of one of the user's classes."""

    kind: type[Any]  # the class
    fields: dict[str, Value] = field(default_factory=dict[str, Value])  # its attributes so far


@dataclass(frozen=True, slots=True, eq=False)
class Closure(Value):
    """A function that the call itself defined."""

    node: ast.FunctionDef | ast.Lambda  # its `def` or `lambda`
    names: Scope  # the local names around it, as they are when it is called
    home: Any  # the function whose globals it has
    defaults: Mapping[str, Value]  # of its parameters, by name


@dataclass(frozen=True, slots=True, eq=False)
class Method(Value):
    """A function with its first argument: of an object that was given or made."""

    function: Value  # the function
    owner: Value  # the first argument


@dataclass(frozen=True, slots=True, eq=False)
class Wrapped(Value):
    """What a transformation made of a function: `jax.grad(f)`, `functools.partial(f, 1)`."""

    wrapper: Any  # the transformation
    function: Value  # what it was given
    args: tuple[Value, ...] = ()  # (args, keywords) given besides; of `partial`
    keywords: Mapping[str, Value] = field(default_factory=dict[str, Value])


@dataclass(frozen=True, slots=True, eq=False)
class Operation(Value):
    """Something that may be called with data and does nothing but give data: a method of an array, a layer."""

    name: str  # as the source has it


@dataclass(frozen=True, slots=True, eq=False)
class Either(Value):
    """One of several, by what the call does."""

    values: tuple[Value, ...]  # each that it may be


@dataclass(slots=True, eq=False)
class Scope:
    """The local names of a call, and those around it."""

    names: dict[str, Value]  # each local name that has a value
    outer: Scope | None = None  # the scope in which the function was defined; None at the top of what is looked at

    def find(self, name: str) -> Value | None:
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


def join_all(values: Iterable[Value]) -> Value | None:
    """What is known of a value that is one of several; None of none."""
    joined: Value | None = None
    for value in values:
        joined = value if joined is None else join(joined, value)
    return joined


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


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call."""

    positional: tuple[Value, ...] = ()  # those by position
    named: Mapping[str, Value] = field(default_factory=dict[str, Value])  # those by name
    rest: Value | None = None  # what `*rest` holds, taken together; None where there is none
    others: Value | None = None  # what `**others` holds, taken together; None where there is none

    @property
    def all(self) -> list[Value]:
        more = [value for value in (self.rest, self.others) if value is not None]
        return [*self.positional, *self.named.values(), *more]

    @property
    def are_exact(self) -> bool:
        """Whether it is known how many there are."""
        return self.rest is None and self.others is None

    def after(self, first: Iterable[Value], named: Mapping[str, Value] | None = None) -> Arguments:
        """These, after some more by position and by name."""
        return Arguments((*first, *self.positional), {**(named or {}), **self.named}, self.rest, self.others)


def parameters(
    node: ast.FunctionDef | ast.Lambda, defaults: Mapping[str, Value], given: Arguments, text: str
) -> dict[str, Value]:
    arguments = node.args
    positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    every = [*positional, *(a.arg for a in arguments.kwonlyargs)]
    values: dict[str, Value] = {**defaults, **dict(zip(positional, given.positional, strict=False))}
    values |= {name: value for name, value in given.named.items() if name in every}
    _spread(values, given, given.rest, positional[len(given.positional) :])
    _spread(values, given, given.others, every)
    extra = given.positional[len(positional) :]
    if extra and arguments.vararg is None:
        raise NotProven(f"`{text}` is called with more arguments than it takes")
    if arguments.vararg is not None:
        rest = given.rest
        values[arguments.vararg.arg] = Items(extra) if rest is None else Fresh(tuple, reduce(join, extra, rest))
    if arguments.kwarg is not None:
        more = [value for name, value in given.named.items() if name not in every]
        values[arguments.kwarg.arg] = Fresh(dict, join_all(more if given.others is None else [*more, given.others]))
    return values


def _spread(values: dict[str, Value], given: Arguments, value: Value | None, names: Iterable[str]) -> None:
    """Any of these parameters may be among what a star spreads out."""
    if value is None:
        return
    for name in names:
        if name not in given.named:
            values[name] = join(values[name], value) if name in values else value


class Walker(Protocol):
    """Goes through functions; see `statements.Interpreter`."""

    reads: Reads
    in_error: bool

    def run_in(self, node: ast.FunctionDef | ast.Lambda, home: FunctionType, scope: Scope) -> Value: ...

    def property(self, function: FunctionType, owner: Value, text: str) -> Value: ...

    def call(self, function: Value, given: Arguments, text: str) -> Value: ...

    def call_method(self, owner: Value, name: str, argument: Value) -> Value: ...

    def put(self, owner: Value, value: Value, name: str) -> None: ...
