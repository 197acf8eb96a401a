"""Facts that a proof assumes of arguments beyond their tree: the order of a dict, the class of a number.

JAX's trees sort dict keys and treat 1, 1.0 and True as equal settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import chain
from typing import Any, cast

from explorer.capture.safe_reading import kind_of
from explorer.hotpath.proof.values import NotProven, Observation
from explorer.runtime.generated import compiled

_NUMBERS = (bool, int, float, complex)


@dataclass(frozen=True, slots=True)
class Fact:
    path: str  # as a Python expression: `args[0]['w']`
    expected: Any  # the keys of a dict in order, or a number


def facts_of(
    args: Sequence[Any], kwargs: Mapping[str, Any], observed: Sequence[Observation], takes_any: bool
) -> list[Fact]:
    names: dict[int, list[str | None]] = {}
    for one in observed:
        names.setdefault(id(one.example), []).append(one.name)
    facts: list[Fact] = []
    given = {"args": tuple(args), **{f"kwargs[{key!r}]": value for key, value in kwargs.items()}}
    for path, part in chain.from_iterable(_parts(value, path, 0) for path, value in given.items()):
        facts += _facts_at(path, part, names.get(id(part), []))
    # `**kwargs` shows the function the order of its keywords.
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
    yield path, value
    if depth > 20:
        return
    if type(value) is dict:
        if any(type(key) not in (str, int, bool, float) for key in cast(dict[Any, Any], value)):
            raise NotProven("an argument is a dict with an object as key", "use strings as keys")
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
    """Return a predicate of `(args, kwargs)` that is True if all facts hold; None without facts."""
    if not facts:
        return None
    values: dict[str, Any] = {}
    conditions: list[str] = []
    for number, fact in enumerate(facts):
        name = f"v{number}"
        if isinstance(fact.expected, tuple):
            values[name] = fact.expected
            conditions.append(f"tuple({fact.path}) == {name}")
            # Equal keys may be of other classes, such as 1 and True.
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
