"""State whose type a function changes: a Python number goes in, an array comes out, and the next call recompiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import jax

from explorer.analysis.recompiles.reasons import Part, predictions
from explorer.model.events.key import Function, Leaf
from explorer.model.findings.finding import Finding
from explorer.pitfalls.arguments import parameter_location
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.rule import Rule
from explorer.pitfalls.syntax_trees import root_of


def check(evidence: Evidence) -> Iterator[Finding]:
    program = evidence.program
    if not any(getattr(one.aval, "weak_type", False) for one in _ends(program.main.raw)):
        return
    arguments = list(_arguments(evidence))
    # Two numbers that become two numbers may be any two: state has names, or arrays.
    several = {
        argument.path for argument in arguments if len(argument.leaves) > 1 and any(map(_is_distinct, argument.leaves))
    }
    for predicted in predictions(Function(evidence.name), arguments, list(_results(evidence, program.main.raw))):
        if ("weak" in predicted.before) == ("weak" in predicted.after):
            continue
        root = root_of(predicted.leaf)
        yield RULE.finding(
            predicted.text.rstrip("."),
            evidence=f"{predicted.before} and {predicted.after} are two types for jax.jit; a weak type is that "
            "of a Python number, which takes on the other operand's",
            fix=predicted.fix,
            severity=None if root in several else "note",
            **parameter_location(evidence, root),
        )


def _is_distinct(leaf: Leaf) -> bool:
    return bool(leaf.shape) or any(mark in leaf.path for mark in ".'")


def _ends(raw: Any) -> list[Any]:
    return [*raw.invars, *raw.outvars]


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
    # What a library adds to JAX's types, as flax's Variable, need have no shape.
    shape = tuple(size if isinstance(size, int) else str(size) for size in getattr(aval, "shape", ()))
    return Leaf(path, shape, str(getattr(aval, "dtype", aval)), bool(getattr(aval, "weak_type", False)))


RULE = Rule(
    "weak-type",
    "EX015",
    "warning",
    "A value comes back with another type than it was passed with, and the next call compiles again.",
    "https://docs.jax.dev/en/latest/type_promotion.html#weak-types",
    check,
    passive=True,
)
