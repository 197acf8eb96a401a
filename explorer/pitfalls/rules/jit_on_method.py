"""`@jax.jit` on a method: `self` becomes an argument, and JAX can rarely take it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from types import MethodType
from typing import Any

import jax
import numpy as np

from explorer._jax.arguments import Array, is_jitted, static_arguments
from explorer.capture.safe_reading import (
    attributes,
    class_variables,
    init_parameters,
    is_a,
    is_exactly,
    is_tracer,
    kind_of,
    mro,
)
from explorer.capture.sources import Span
from explorer.model.findings import Finding
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import FunctionSource, decorator, hash_of, short_name, source_of
from explorer.pitfalls.rule import rule


@rule("jit-on-method", "EX023", "warning", "faq.html#how-to-use-jit-with-methods", passive=True)
def jit_on_method(evidence: Evidence) -> Iterator[Finding]:
    """jax.jit on a method makes `self` an argument: the call fails, or `self` is kept alive and hashed by identity."""
    seen: set[int] = set()
    for function, jitted, owner in _methods(evidence):
        if id(jitted) not in seen:
            seen.add(id(jitted))
            yield from _judged(function, jitted, owner)


def _methods(evidence: Evidence) -> Iterator[tuple[FunctionSource | None, Any, Any]]:
    target = evidence.target
    if type(target) is MethodType and is_jitted(target.__func__):
        yield source_of(getattr(target.__func__, "__wrapped__", None)), target.__func__, target.__self__
    for function in evidence.functions:
        owner, name = function.executed.owner, function.executed.code.co_name
        classes = map(class_variables, mro(owner)) if owner is not None else ()
        jitted = next((variables[name] for variables in classes if name in variables), None)
        if jitted is not None and is_jitted(jitted):
            yield function, jitted, owner


def _judged(function: FunctionSource | None, jitted: Any, owner: Any) -> Iterator[Finding]:
    if is_a(owner, type) or is_tracer(owner):
        return
    kind, name, span = short_name(kind_of(owner)), "the method", None
    if function is not None:
        name, span = function.executed.code.co_name, Span.of(decorator(function) or function.node)
    numbers, _ = static_arguments(jitted)
    if 0 in numbers:
        if hash_of(kind_of(owner)) in (None, object.__hash__):
            yield _static(function, span, name, kind, owner)
    elif jax.tree_util.all_leaves([owner]):
        yield jit_on_method.finding(
            f"jax.jit takes `self` of {kind}.{name} for an argument to be traced, and a {kind} is no "
            "array: every call fails",
            at=(function, span),
            evidence=f"{kind} is no pytree",
            fix=_registered(kind, owner, name),
            severity="error",
        )


def _static(function: FunctionSource | None, span: Span | None, name: str, kind: str, owner: Any) -> Finding:
    if hash_of(kind_of(owner)) is None:
        message = f"`self` of {kind}.{name} is static, and a {kind} has no hash: every call fails"
        evidence, severity = f"{kind} defines __eq__ and no __hash__", "error"
    else:
        message = (
            f"`self` of {kind}.{name} is static and hashed by identity: each new {kind} recompiles "
            "and is kept alive by JAX's cache, and later changes to it have no effect"
        )
        evidence, severity = f"{kind} has the hash of `object`", "warning"
    fields = ", ".join(f"self.{field}" for field in islice(attributes(owner), 3))
    return jit_on_method.finding(
        message,
        at=(function, span),
        evidence=evidence + (f"; it holds {fields}" if fields else ""),
        fix=f"plain @jax.jit, and {_registered(kind, owner, name)}",
        severity=severity,
    )


def _registered(kind: str, owner: Any, method: str) -> str:
    """Return how to make an object's arrays arguments: by its class, if the class can be rebuilt from its fields."""
    fields = attributes(owner)
    data = [name for name, value in fields.items() if _is_data(value)]
    if fields and set(fields) == init_parameters(owner):
        meta = [name for name in fields if name not in data]
        return (
            f"jax.tree_util.register_dataclass({kind}, data_fields={data}, meta_fields={meta}), "
            "so that its arrays are arguments"
        )
    arrays = data or ["arrays"]
    return (
        f"a jitted function of the arrays it needs: def {method}({', '.join(arrays)}, …), "
        f"called with {', '.join(f'self.{name}' for name in arrays)}"
    )


def _is_data(value: Any) -> bool:
    leaves = jax.tree_util.tree_leaves(value) if is_exactly(value, list, tuple, dict) else [value]
    return bool(leaves) and all(is_a(leaf, jax.Array, np.ndarray, float, complex, Array) for leaf in leaves)
