"""Values that don't belong, put into the structure of a file: other types, lengths, ranges, circles, names, nesting."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any

from tests.examples.hostile import MARKUP

Case = tuple[str, bytes]  # what was done, and the file
SEEDS = 300
SECRET = "SECRET_FILE"  # replaced by the path of a file that nothing may show
OUTSIDE = "OUTSIDE_FOLDER"  # replaced by a folder that nothing may be written to
KNOWN = "-----BEGIN PRIVATE KEY-----"  # its first line, which anybody knows
# What Python's own json can't write, put into the text afterwards.
_RAW = {
    "@deep list@": "[" * 100_000 + "]" * 100_000,
    "@deep object@": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "@long number@": "9" * 5_000,
    "@nan@": "NaN",
    "@infinity@": "1e999",
    "@wide list@": "[" + "[]," * 50_000 + "[]]",
    "@surrogate@": '"\\ud800"',
}
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31 - 1, 2**31, -(2**31), 2**63, 2**64, 10**30, 0.5, -0.0, 1e308),
    *("", "\0", "\x1b[2J\x1b]0;owned\a", MARKUP, "javascript:hacked=1", "{{7*7}}${7*7}", "../../../etc/passwd"),
    *(SECRET, OUTSIDE, "x" * 300_000, "é\u202e\u2028", "__class__", "os.system", "-" * 1_000),
    *([], {}, [[]], [0, 2**40], [-4, 8], [4, -4], [1, 3], ["a"], [None], {"a": 1}, {"": {}}, [1] * 10_000),
    *_RAW,
)


def dumps(value: Any) -> bytes:
    """JSON with what Python's own can't write."""
    text = json.dumps(value, separators=(",", ":"))
    for name, raw in _RAW.items():
        text = text.replace(f'"{name}"', raw)
    return text.encode("utf-8", "surrogatepass")


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to everything in a structure; of a long list the first few and the last."""
    yield way
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*way, key))
    elif isinstance(value, list):
        for i in sorted({0, 1, len(value) // 2, len(value) - 1} & set(range(len(value)))):
            yield from places(value[i], (*way, i))


def at(value: Any, way: tuple[Any, ...]) -> Any:
    for step in way:
        value = value[step]
    return value


ESCAPE = "\x1b[2J\x1b]0;owned\a"
_KEPT = ("kind", "explorer", "dtype", "zlib", "float", "blake2b", "severity", "kinds", "bound")


def with_suffix(value: Any, suffix: str, name: str = "") -> Any:
    """The structure with something after each of its texts, but for those that say what a value is."""
    if isinstance(value, dict):
        return {key: with_suffix(inner, suffix, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [with_suffix(inner, suffix, name) for inner in value]
    return value + suffix if isinstance(value, str) and name not in _KEPT else value


def mutated(value: Any, chance: Random) -> tuple[Any, str]:
    """The structure with an accident or three, and what was done."""
    value, done = copy.deepcopy(value), []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        ways = list(places(value))
        # Shallow places are few and matter most: a depth first, then a place.
        depth = chance.choice(sorted({len(way) for way in ways}))
        way = chance.choice([way for way in ways if len(way) == depth] if chance.random() < 0.6 else ways)
        value = _with_accident(value, way, ways, chance, done)
    return value, "; ".join(done)


def _with_accident(value: Any, way: tuple[Any, ...], ways: list[Any], chance: Random, done: list[str]) -> Any:
    if not way:
        return value
    owner, key = at(value, way[:-1]), way[-1]
    kind = chance.choice(("replace", "replace", "replace", "near", "copy", "delete", "grow", "rename"))
    done.append(f"{kind} {'.'.join(map(str, way))}")
    match kind:
        case "delete":
            del owner[key]
        case "copy":  # from elsewhere in the file: of the right type, perhaps, and in the wrong place
            owner[key] = copy.deepcopy(at(value, chance.choice(ways)))
        case "near":
            owner[key] = _near(owner[key], chance)
        case "grow" if isinstance(owner[key], list) and owner[key]:
            owner[key] = owner[key] * chance.choice((2, 50))
        case "rename" if isinstance(owner, dict):
            owner[chance.choice(("more", "__proto__", "", MARKUP, "file"))] = owner.pop(key)
        case _:
            owner[key] = copy.deepcopy(chance.choice(VALUES))  # what is in it may be changed next
            done.append(repr(owner[key])[:60])
    return value


def _near(value: Any, chance: Random) -> Any:
    """Of the same type, and nearly what it was."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + chance.choice((-1, 1, 2, -value, 1000, -1000, 2**20))
    if isinstance(value, float):
        return value * chance.choice((-1, 1e300, 1e-300))
    if isinstance(value, str):
        return chance.choice((value + "x", value[:-1], value * 3, MARKUP + value, value.upper(), value[::-1]))
    if isinstance(value, list):
        return chance.choice((value[:-1], value[::-1], value + value[:1], []))
    return {}
