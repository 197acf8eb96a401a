"""Vocabulary of the proof: abstract values, reads from outside the call, refusals and argument binding."""

from __future__ import annotations

import ast
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from types import CellType, FunctionType
from typing import Any, Literal, Protocol, cast

import jax

from explorer._jax.calls import raise_interrupt
from explorer.model.stage import is_library_file


@dataclass(frozen=True, slots=True)
class Refusal:
    """Reason why a function can't be proven, with its place and a hint."""

    reason: str  # a sentence without its full stop
    file: str = ""
    line: int = 0  # from 1; 0 if unknown
    cure: str = ""  # hint that would make it provable; may be empty


class NotProven(Exception):
    def __init__(self, reason: str, cure: str = "", file: str = "", line: int = 0) -> None:
        super().__init__(reason)
        self.refusal = Refusal(reason, file, line, cure)


def refusal_of(error: Exception) -> Refusal:
    """Return a refusal for the error of a trace or of a compiled call, with the innermost line of the user's.

    If an interrupt caused the error, raise the interrupt.
    """
    raise_interrupt(error)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not is_library_file(frame.filename)]
    file, line = (frames[-1].filename, frames[-1].lineno or 0) if frames else ("", 0)
    if isinstance(error, jax.errors.TracerBoolConversionError):
        return Refusal("it branches on the value of an array", file, line, "jnp.where chooses without reading")
    if isinstance(error, (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError)):
        return Refusal("it reads the value of an array", file, line, "read it outside of the function")
    text = str(error).splitlines()[0] if str(error) else ""
    return Refusal(f"compiled it raises {type(error).__name__}: {text}", file, line)


Where = Literal["global", "cell", "attribute", "absent", "item", "contents", "code", "buffer"]


@dataclass(frozen=True, slots=True)
class Read:
    where: Where  # kind of place; `absent` if the proof relies on an attribute that doesn't exist
    holder: Any  # the namespace, cell, object, container or function
    key: Any  # the name, index or key in it
    # For `contents` a tuple, for `code` (code, defaults, keyword defaults), for `buffer` the result of `buffer()`.
    value: Any
    name: str  # source text of the read, for messages: `CONFIG['rate']`


def contents(container: Any) -> tuple[Any, ...]:
    """Return all keys and values of a dict, or all items of a list, tuple or set."""
    if isinstance(container, Mapping):
        mapping = cast(Mapping[Any, Any], container)
        return (*mapping.keys(), *mapping.values())
    return tuple(container)


def buffer(array: Any) -> tuple[Any, ...]:
    return array.dtype, array.shape, array.tobytes()


@dataclass(frozen=True, slots=True)
class Observation:
    """Property of an argument that the proof used and that its tree doesn't show."""

    example: Any  # the dict or object
    name: str | None = None  # the field that was read; None if the order of a dict was used


@dataclass(slots=True)
class Reads:
    observed: list[Observation] = field(default_factory=list[Observation])
    _by_place: dict[tuple[str, int, Any], Read] = field(default_factory=dict[tuple[str, int, Any], Read])

    def add(self, where: Where, holder: Any, key: Any, value: Any, name: str) -> None:
        place = where, id(holder), key  # the reads keep their holders alive, so no address is reused
        # The first value: the proof rests on it, whatever another thread stores meanwhile.
        self._by_place.setdefault(place, Read(where, holder, key, value, name))

    def all(self) -> tuple[Read, ...]:
        return tuple(self._by_place.values())


def cell_value(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return ...


_MAX_ALTERNATIVES = 8  # values of one `Either`


class Value:
    """Abstract value: the facts that the proof has about a value."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Data(Value):
    """Arrays, numbers and containers of them, computed from the arguments."""


@dataclass(frozen=True, slots=True)
class Plain(Value):
    """Python number, text or dtype that doesn't depend on array values, so a trace computes the same."""


@dataclass(frozen=True, slots=True, eq=False)
class Known(Value):
    """One specific object: a constant of the code, or an object from outside that a guard checks."""

    value: Any


@dataclass(frozen=True, slots=True)
class Buffer(Value):
    """NumPy array from outside, or a view of one. A guard compares its bytes; the call must not change it."""


@dataclass(frozen=True, slots=True, eq=False)
class Given(Value):
    """Argument of the call, or a part of one. Guards check structure and classes; its arrays vary."""

    example: Any  # its value in the call that is being proven


@dataclass(slots=True, eq=False)
class Fresh(Value):
    """Container that the call created itself, and may change."""

    kind: type[Any]  # `list`, `dict`, `set`, or `numpy.ndarray`
    holds: Value | None = None  # join of all its elements; None if it is empty

    def add(self, value: Value) -> None:
        self.holds = value if self.holds is None else join(self.holds, value)


@dataclass(frozen=True, slots=True, eq=False)
class Items(Value):
    """Tuple that the call created itself."""

    items: tuple[Value, ...]


@dataclass(slots=True, eq=False)
class Made(Value):
    """Instance of a user's class that the call created itself."""

    kind: type[Any]
    fields: dict[str, Value] = field(default_factory=dict[str, Value])  # attributes assigned so far


@dataclass(frozen=True, slots=True, eq=False)
class Closure(Value):
    """Function that the call defined itself."""

    node: ast.FunctionDef | ast.Lambda
    names: Scope  # the enclosing local names; read when the closure is called
    home: Any  # the function whose globals it uses
    defaults: Mapping[str, Value]  # by parameter


@dataclass(frozen=True, slots=True, eq=False)
class Method(Value):
    """Function bound to its first argument."""

    function: Value
    owner: Value


@dataclass(frozen=True, slots=True, eq=False)
class Wrapped(Value):
    """Result of a transformation of a function, such as `jax.grad(f)` or `functools.partial(f, 1)`."""

    wrapper: Any  # the transformation
    function: Value
    args: tuple[Value, ...] = ()  # further arguments of `partial`
    keywords: Mapping[str, Value] = field(default_factory=dict[str, Value])


@dataclass(frozen=True, slots=True, eq=False)
class Operation(Value):
    """Callable that only computes from data: a method of an array, a layer."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Either(Value):
    """One of several values, depending on a branch."""

    values: tuple[Value, ...]


@dataclass(slots=True, eq=False)
class Scope:
    names: dict[str, Value]
    outer: Scope | None = None  # of the enclosing function, if the proof has entered it

    def find(self, name: str) -> Value | None:
        if name in self.names:
            return self.names[name]
        return self.outer.find(name) if self.outer is not None else None


DATA = Data()
PLAIN = Plain()
BUFFER = Buffer()
NONE = Known(None)


def join(first: Value, second: Value) -> Value:
    """Return the abstract value that covers both values; raise TooManyValues beyond eight alternatives.

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
    # Several plain values are one plain value, and together with data they are data.
    plain = [value for value in values if is_plain(value)]
    rest = [value for value in values if not is_plain(value) and not isinstance(value, Data)]
    values = [*([DATA] if DATA in values else plain if len(plain) < 2 else [PLAIN]), *rest]
    if len(values) == 1:
        return values[0]
    if len(values) > _MAX_ALTERNATIVES:
        raise TooManyValues
    return Either(tuple(values))


class TooManyValues(NotProven):
    def __init__(self) -> None:
        super().__init__("a name has too many different values to follow")


def join_all(values: Iterable[Value]) -> Value | None:
    joined: Value | None = None
    for value in values:
        joined = value if joined is None else join(joined, value)
    return joined


def _parts(value: Value) -> tuple[Value, ...]:
    return value.values if isinstance(value, Either) else (value,)


def is_plain(value: Value) -> bool:
    return isinstance(value, Plain) or (isinstance(value, Known) and type(value.value) in PLAIN_TYPES)


PLAIN_TYPES = (bool, int, float, complex, str, bytes)


def is_same(first: Value, second: Value) -> bool:
    if first is second:
        return True
    match first, second:
        case Known(one), Known(other) if type(one) in PLAIN_TYPES:
            return type(one) is type(other) and one == other
        case (Known(one), Known(other)) | (Given(one), Given(other)):
            return one is other
        case Items(some), Items(others):
            return len(some) == len(others) and all(map(is_same, some, others))
        case _:
            return type(first) is type(second) and isinstance(first, (Data, Plain, Buffer))


@dataclass(frozen=True, slots=True)
class Arguments:
    positional: tuple[Value, ...] = ()
    named: Mapping[str, Value] = field(default_factory=dict[str, Value])
    rest: Value | None = None  # join of the elements of `*rest`
    others: Value | None = None  # join of the values of `**others`

    @property
    def all(self) -> list[Value]:
        more = [value for value in (self.rest, self.others) if value is not None]
        return [*self.positional, *self.named.values(), *more]

    @property
    def are_exact(self) -> bool:
        return self.rest is None and self.others is None

    def after(self, first: Iterable[Value], named: Mapping[str, Value] | None = None) -> Arguments:
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
    """Join `value`, the content of a starred argument, into every parameter that it may reach."""
    if value is None:
        return
    for name in names:
        if name not in given.named:
            values[name] = join(values[name], value) if name in values else value


class Walker(Protocol):
    reads: Reads
    in_error: bool

    def run_in(self, node: ast.FunctionDef | ast.Lambda, home: FunctionType, scope: Scope) -> Value: ...
    def call(self, function: Value, given: Arguments, text: str) -> Value: ...
    def call_method(self, owner: Value, name: str, argument: Value) -> Value: ...
    def put(self, owner: Value, value: Value, name: str) -> None: ...
