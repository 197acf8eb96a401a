"""Rules about the types of arguments: lists of Python numbers, and state whose type changes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, cast

import jax

from explorer.analysis.recompiles.reasons import Part, predictions
from explorer.capture.safe_reading import is_exactly
from explorer.model.events.key import Function, Leaf
from explorer.model.findings import Finding
from explorer.pitfalls.evidence import Evidence, parameter_location
from explorer.pitfalls.function_source import root_of, source_of, span_location
from explorer.pitfalls.rule import rule

_MIN_NUMBERS = 16  # numbers; shapes, axes and coefficients are shorter
_MAX_DEPTH = 4
_MAX_CONTAINERS = 10_000  # containers looked into
_NUMBERS = (bool, int, float, complex)
_LISTS = (list, tuple)


_REFUSED = re.compile(r"(\w+) requires ndarray or scalar arguments, got <class '(list|tuple)'>")


@rule("list-of-scalars", "EX024", "warning", "pytrees.html", passive=True)
def list_of_scalars(evidence: Evidence) -> Iterator[Finding]:
    """A list of Python numbers becomes one argument per number.

    Each number of a long list is traced, converted and passed separately on every call.
    """
    yield from _refused(evidence)
    for one in evidence.call_arguments:
        if one.static:
            continue
        for path, count, nested in _lists(one.name, one.value):
            function = source_of(evidence.function)
            yield list_of_scalars.finding(
                f"`{path}` is a list{' of lists' if nested else ''} of {count:,} numbers, and each of them becomes an "
                f"argument of {evidence.name} for itself: traced, converted and passed one by one in every call",
                at=(function, None if function is None else function.parameter_span(one.name)),
                evidence=f"{count:,} scalars where one array would do",
                fix=f"jnp.asarray({path}) before the call of {evidence.name}",
            )


def _refused(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for `jnp.sum([1, 2, 3])`: JAX refuses lists, since each number would be an argument."""
    match, step = _REFUSED.search(str(evidence.error)), evidence.failed_step
    if match is None or step is None or type(evidence.error) is not TypeError:
        return
    yield list_of_scalars.finding(
        f"{evidence.name} can't be traced: jnp.{match[1]} takes arrays, and was given a {match[2]}",
        evidence="the trace ended with TypeError; NumPy takes a list for an array, which would be slow here",
        fix=f"jnp.{match[1]}(jnp.array(…))",
        severity="error",
        **span_location(step.file, step.span),
    )


def _lists(path: str, value: Any) -> Iterator[tuple[str, int, bool]]:
    waiting = [(path, value, 0)]
    for _ in range(_MAX_CONTAINERS):
        if not waiting:
            return
        path, value, depth = waiting.pop()
        count = _numbers(value) if type(value) in _LISTS else 0
        if count >= _MIN_NUMBERS:
            yield path, count, count != len(value) or not is_exactly(value[0], *_NUMBERS)
        elif depth < _MAX_DEPTH:
            waiting += [(path + key, item, depth + 1) for key, item in _inner(value)]


def _inner(value: Any) -> Iterator[tuple[str, Any]]:
    kind = cast(Any, type(value))
    if kind in _LISTS and len(value) <= _MIN_NUMBERS:
        yield from ((f"[{i}]", item) for i, item in enumerate(value))
    elif kind is dict:
        items = islice(value.items(), _MAX_CONTAINERS)
        yield from ((f"[{key!r}]", item) for key, item in items if type(key) in (str, int))


def _numbers(value: Any) -> int:
    """Return the count of numbers in a list of numbers, or of equal-length lists of numbers; 0 for others."""
    if all(is_exactly(item, *_NUMBERS) for item in value):
        return len(value)
    if all(is_exactly(row, list, tuple) and row and all(is_exactly(item, *_NUMBERS) for item in row) for row in value):
        return sum(map(len, value)) if len(set(map(len, value))) == 1 else 0
    return 0


@rule("weak-type", "EX015", "warning", "type_promotion.html#weak-types", passive=True)
def weak_type(evidence: Evidence) -> Iterator[Finding]:
    """A value is returned with another type than it was passed with, so the next call recompiles.

    A typical case is state that starts as a Python number: the function returns an array of another type.
    """
    program = evidence.program
    ends = (*program.main.raw.invars, *program.main.raw.outvars)
    if not any(getattr(one.aval, "weak_type", False) for one in ends):
        return
    arguments = list(_arguments(evidence))
    # Two plain numbers need not be state: state has names, or arrays.
    several = {
        argument.path
        for argument in arguments
        if len(argument.leaves) > 1 and any(one.shape or not {".", "'"}.isdisjoint(one.path) for one in argument.leaves)
    }
    for predicted in predictions(Function(evidence.name), arguments, list(_results(evidence, program.main.raw))):
        if ("weak" in predicted.before) == ("weak" in predicted.after):
            continue
        root = root_of(predicted.leaf)
        yield weak_type.finding(
            predicted.text.rstrip("."),
            evidence=f"{predicted.before} and {predicted.after} are two types for jax.jit; a weak type is that "
            "of a Python number, which takes on the other operand's",
            fix=predicted.fix,
            severity=None if root in several else "note",
            **parameter_location(evidence, root),
        )


def _arguments(evidence: Evidence) -> Iterator[Part]:
    arguments = iter(evidence.arguments)
    args, kwargs = evidence.traced.args_info
    for tree in (*args, *kwargs.values()):
        pairs = zip(jax.tree.leaves(tree), arguments, strict=False)
        leaves = tuple(_leaf(argument.path, argument.aval) for _, argument in pairs)
        if leaves:
            yield Part(root_of(leaves[0].path), _structure(tree), leaves)


def _results(evidence: Evidence, raw: Any) -> Iterator[Part]:
    out = evidence.traced.out_info
    avals = [variable.aval for variable in raw.outvars]
    if len(avals) != len(jax.tree.leaves(out)):
        return
    yield _result("result", out, avals)
    if type(out) in (tuple, list):
        at = 0
        for i, one in enumerate(out):
            count = len(jax.tree.leaves(one))
            yield _result(f"result[{i}]", one, avals[at : at + count])
            at += count


def _result(path: str, tree: Any, avals: list[Any]) -> Part:
    return Part(path, _structure(tree), tuple(_leaf(path, aval) for aval in avals))


def _structure(tree: Any) -> object:
    return cast(object, jax.tree.structure(tree))


def _leaf(path: str, aval: Any) -> Leaf:
    # Types of libraries, such as flax's Variable, may have no shape.
    shape = tuple(size if isinstance(size, int) else str(size) for size in getattr(aval, "shape", ()))
    return Leaf(path, shape, str(getattr(aval, "dtype", aval)), bool(getattr(aval, "weak_type", False)))
