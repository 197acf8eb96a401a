"""Proof, from its source, that a function may be compiled unasked: that nobody could tell but by the clock.

What the proof took for granted of the arguments beyond their tree is a fact: the order of a dict, the class of a
setting. A tree of JAX's sorts the keys of dicts, and calls two settings the same that are equal, as 1, 1.0 and True
are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from inspect import CO_VARKEYWORDS
from types import FunctionType
from typing import Any, cast

from explorer.capture.safe_reading import kind_of
from explorer.hotpath.proof.attributes import classify
from explorer.hotpath.proof.calls import call
from explorer.hotpath.proof.statements import Interpreter
from explorer.hotpath.proof.syntax import check_names
from explorer.hotpath.proof.values import Arguments, Known, NotProven, Observation, Read, Refusal
from explorer.hotpath.swap import code_of
from explorer.runtime.generated import compiled


@dataclass(frozen=True, slots=True)
class Proof:
    """A function that is known to compute, and do nothing else, for arguments like those it was looked at with."""

    reads: tuple[Read, ...]  # what it reads from outside of its call; the proof holds as long as all of it is the same
    facts: tuple[Fact, ...] = ()  # what must hold of later arguments besides their tree


def prove(function: FunctionType, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Proof | Refusal:
    """Go through a function's source with the arguments of a call as examples. Nothing of the user's is run."""
    interpreter = Interpreter()
    given = Arguments(tuple(map(classify, args)), {name: classify(value) for name, value in kwargs.items()})
    try:
        call(interpreter, Known(function), given, function.__name__)
        takes_any = bool(code_of(function).co_flags & CO_VARKEYWORDS)
        facts = tuple(facts_of(args, kwargs, interpreter.reads.observed, takes_any))
        check_names(function, interpreter.reads.all())
    except NotProven as refused:
        return refused.refusal
    except RecursionError:
        return Refusal("it goes too deep to follow")
    return Proof(interpreter.reads.all(), facts)


_NUMBERS = (bool, int, float, complex)


@dataclass(frozen=True, slots=True)
class Fact:
    """Assumption of a proof about later arguments, beyond their tree."""

    path: str  # from the arguments to where it lies, as Python reaches it: `args[0]['w']`
    expected: Any  # the keys of a dict in their order; a number


def facts_of(
    args: Sequence[Any], kwargs: Mapping[str, Any], observed: Sequence[Observation], takes_any: bool
) -> list[Fact]:
    """What must hold of later arguments; a function that `takes_any` keywords sees their order."""
    names: dict[int, list[str | None]] = {}
    for one in observed:
        names.setdefault(id(one.example), []).append(one.name)
    facts: list[Fact] = []
    for path, part in _parts(tuple(args), "args", 0):
        facts += _facts_at(path, part, names.get(id(part), []))
    for key, value in kwargs.items():
        for path, part in _parts(value, f"kwargs[{key!r}]", 0):
            facts += _facts_at(path, part, names.get(id(part), []))
    if takes_any and len(kwargs) > 1:
        facts.append(Fact("kwargs", tuple(kwargs)))
    return facts


def _facts_at(path: str, part: Any, names: list[str | None]) -> Iterator[Fact]:
    if type(part) is dict:
        mapping = cast(dict[Any, Any], part)
        has_texts = all(type(key) is str for key in mapping)
        if not has_texts or (None in names and len(mapping) > 1):
            yield Fact(path, tuple(mapping))
        return
    for name in names:
        if name is not None and type(value := getattr(part, name, None)) in _NUMBERS:
            yield Fact(f"{path}.{name}", value)


def _parts(value: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    """All containers and objects in an argument, with the way there."""
    yield path, value
    if depth > 20:
        return
    if type(value) is dict:
        if any(type(key) not in (str, int, bool, float) for key in cast(dict[Any, Any], value)):
            raise NotProven("a key of a dict that it is given is an object", "use texts as keys")
        inside = [(f"{path}[{key!r}]", one) for key, one in cast(dict[Any, Any], value).items()]
    elif isinstance(value, (list, tuple)):
        inside = [(f"{path}[{at}]", one) for at, one in enumerate(cast(list[Any], value))]
    elif is_dataclass(kind_of(value)):
        names = [field.name for field in fields(value)]
        inside = [(f"{path}.{name}", getattr(value, name)) for name in names if hasattr(value, name)]
    else:
        inside = []
    for inner, one in inside:
        yield from _parts(one, inner, depth + 1)


def check_of(facts: Sequence[Fact]) -> Callable[[Any, Any], bool] | None:
    """A function of positional and keyword arguments that gives whether all facts hold; None where there are none."""
    if not facts:
        return None
    values: dict[str, Any] = {}
    conditions: list[str] = []
    for number, fact in enumerate(facts):
        name = f"v{number}"
        if isinstance(fact.expected, tuple):
            values[name] = fact.expected
            conditions.append(f"tuple({fact.path}) == {name}")
            if not all(type(key) is str for key in cast(Any, fact.expected)):
                values[f"k{number}"] = tuple(map(kind_of, cast(Any, fact.expected)))
                conditions.append(f"tuple(map(type, {fact.path})) == k{number}")
        elif isinstance(fact.expected, (float, complex)):
            values[name] = repr(fact.expected)
            conditions.append(f"repr({fact.path}) == {name}")
        else:
            values[name] = type(fact.expected)
            conditions.append(f"type({fact.path}) is {name}")
    text = f"def check(args, kwargs):\n  return {' and '.join(conditions)}\n"
    return compiled("check", text, values)
