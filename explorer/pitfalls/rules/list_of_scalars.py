"""A long list of Python numbers as an argument: each of them is an argument of the program for itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, cast

from explorer.capture.safe_reading import is_exactly
from explorer.model.findings import Finding
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import source_of
from explorer.pitfalls.locations import span_location
from explorer.pitfalls.rule import Rule

_LONG = 16  # numbers; shapes, axes and coefficients are shorter
_DEEPEST = 4
_MOST = 10_000  # containers looked into
_NUMBERS = (bool, int, float, complex)
_LISTS = (list, tuple)


_REFUSED = re.compile(r"(\w+) requires ndarray or scalar arguments, got <class '(list|tuple)'>")


def check(evidence: Evidence) -> Iterator[Finding]:
    yield from _refused(evidence)
    for one in evidence.call_arguments:
        if one.static:
            continue
        for path, count, nested in _lists(one.name, one.value):
            function = source_of(evidence.function)
            yield RULE.finding(
                f"`{path}` is a list{' of lists' if nested else ''} of {count:,} numbers, and each of them becomes an "
                f"argument of {evidence.name} for itself: traced, converted and passed one by one in every call",
                function=function,
                span=None if function is None else function.parameter_span(one.name),
                evidence=f"{count:,} scalars where one array would do",
                fix=f"jnp.asarray({path}) before the call of {evidence.name}",
            )


def _refused(evidence: Evidence) -> Iterator[Finding]:
    """`jnp.sum([1, 2, 3])`: JAX takes no lists where NumPy does, for each number would be an argument for itself."""
    match, step = _REFUSED.search(str(evidence.error)), evidence.failed_step
    if match is None or step is None or type(evidence.error) is not TypeError:
        return
    yield RULE.finding(
        f"{evidence.name} can't be traced: jnp.{match[1]} takes arrays, and was given a {match[2]}",
        evidence="the trace ended with TypeError; NumPy takes a list for an array, which would be slow here",
        fix=f"jnp.{match[1]}(jnp.array(…))",
        severity="error",
        **span_location(step.file, step.span),
    )


def _lists(path: str, value: Any) -> Iterator[tuple[str, int, bool]]:
    """The long lists of numbers in a value, with how many numbers each has, and whether those are in lists in it."""
    waiting = [(path, value, 0)]
    for _ in range(_MOST):
        if not waiting:
            return
        path, value, depth = waiting.pop()
        count = _numbers(value) if type(value) in _LISTS else 0
        if count >= _LONG:
            yield path, count, count != len(value) or not is_exactly(value[0], *_NUMBERS)
        elif depth < _DEEPEST:
            waiting += [(path + key, item, depth + 1) for key, item in _inner(value)]


def _inner(value: Any) -> Iterator[tuple[str, Any]]:
    """The items of a short list, or of a dict with plain keys, by how Python goes on to them."""
    kind = cast(Any, type(value))
    if kind in _LISTS and len(value) <= _LONG:
        yield from ((f"[{i}]", item) for i, item in enumerate(value))
    elif kind is dict:
        items = islice(value.items(), _MOST)
        yield from ((f"[{key!r}]", item) for key, item in items if type(key) in (str, int))


def _numbers(value: Any) -> int:
    """How many numbers a list of nothing else has, one of lists all of theirs; 0 for one with anything else in it."""
    if all(is_exactly(item, *_NUMBERS) for item in value):
        return len(value)
    if all(is_exactly(row, list, tuple) and row and all(is_exactly(item, *_NUMBERS) for item in row) for row in value):
        return sum(map(len, value)) if len(set(map(len, value))) == 1 else 0
    return 0


RULE = Rule(
    "list-of-scalars",
    "EX024",
    "warning",
    "A list of Python numbers is as many arguments as it has numbers.",
    "https://docs.jax.dev/en/latest/pytrees.html",
    check,
    passive=True,
)
