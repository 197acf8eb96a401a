"""Rules about globals, closures and attributes that a function reads and writes while it is traced."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice
from keyword import iskeyword
from typing import Any

import jax
import numpy as np

from explorer.capture.safe_reading import is_a, is_exactly
from explorer.errors import NotRecordedError
from explorer.model.findings import Finding, Findings
from explorer.pitfalls.equations import Equation, is_literal
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import FunctionSource, last_name
from explorer.pitfalls.outside import (
    MUTATORS,
    LaterAssignment,
    Read,
    Write,
    holds_data,
    holds_tracer,
    is_constant,
    later_assignments,
    reads,
    write_of,
)
from explorer.pitfalls.rule import rule
from explorer.pitfalls.rule_large_constant import same_array
from explorer.pitfalls.state import Change, exact_items, reachable, safe_text, same, snapshot


@rule("stale-closure", "EX005", "warning", "notebooks/Common_Gotchas_in_JAX.html#pure-functions")
def stale_closure(evidence: Evidence) -> Iterator[Finding]:
    """A compiled function reads values from outside once, while it is traced.

    The compiled program keeps the values that globals, closures and attributes had at the trace.
    """
    if _is_guarded(evidence):
        return
    for read in reads(evidence):
        if any(_is_at_or_in(change.path, read.path) for change in evidence.changes):
            continue  # `state-write` reports it
        if _is_own_stack(evidence, read):
            continue
        # Private values are the author's business, as long as no number of them is in the program.
        if is_private(read.text) and not reaches_program(evidence, read.function, read.value):
            continue
        # A value that never changes is as good as a constant: findings about it would hide others.
        assignment = next(later_assignments(read, evidence), None)
        is_data = holds_data(read.value) or (not read.value and not is_constant(read.root))
        if (assignment is not None and is_data) or _is_changeable(read):
            yield _may_change(evidence, read, assignment if is_data else None)


def _is_guarded(evidence: Evidence) -> bool:
    hot = evidence.hot_status
    return hot is not None and hot.is_on and hot.row.state != "eager"


def _is_at_or_in(path: str, outer: str) -> bool:
    return path == outer or path.startswith((f"{outer}[", f"{outer}."))


def _is_own_stack(evidence: Evidence, read: Read) -> bool:
    """Return True for an empty list, dict or set that the trace changed meanwhile, given that it ends as it began."""
    is_empty = is_exactly(read.value, list, dict, set) and not read.value
    return is_empty and any(
        call.receiver is read.value and call.callee.rpartition(".")[2] in MUTATORS for call, _, _ in evidence.calls
    )


def _is_changeable(read: Read) -> bool:
    """Return True for a list or dict with data, and for an item of one, unless it is named as a constant."""
    container = read.holder if is_exactly(read.holder, list, dict) else read.value
    return is_exactly(container, list, dict) and not is_constant(read.root) and holds_data(container)


def _may_change(evidence: Evidence, read: Read, assignment: LaterAssignment | None) -> Finding:
    """Return the finding about a value that a later assignment changes, or that may be changed."""
    if assignment is not None:
        what = f"`{assignment.text}` in {assignment.place} is not seen by a compiled {evidence.name}"
        then = ", which is a constant of the program now"
    else:
        what = f"if it is changed, a compiled {evidence.name} doesn't see it"
        then = "; nothing in this file changes it later"
    return stale_closure.finding(
        f"{evidence.name} reads `{read.text}` while it is traced, and keeps what it was then: {what}",
        at=(read.function, read.span),
        evidence=f"at the trace `{read.text}` was {safe_text(read.value)}{then}",
        fix=_fix(evidence, read),
        severity=None if assignment is not None else "note",
    )


def _stale(evidence: Evidence, read: Read, now: object) -> Finding:
    """Return the finding about a value that has changed since the trace."""
    name = evidence.name
    before, after = safe_text(read.value), safe_text(now)
    seen = f"`{read.text}` was {before} at the trace and is {after} now"
    if now is read.value:
        seen = f"what is in `{read.text}` is not what it was at the trace"
    elif before == after:  # an array's numbers may be on a device, and aren't in its text
        seen = f"`{read.text}` was {before} at the trace, and another {after} is there now"
    return stale_closure.finding(
        f"stale now: a compiled {name} still uses the `{read.text}` of its trace, which has changed since",
        at=(read.function, read.span),
        evidence=seen,
        fix=_fix(evidence, read),
        severity="error",
    )


def _fix(evidence: Evidence, read: Read) -> str:
    name, argument = evidence.name, _argument(read)
    instead = "" if argument == read.text else f", with {argument} instead of {read.text}"
    if _decides_structure(evidence, read):
        return (
            f"pass it as a static argument, since a shape or a branch depends on it: def {name}(…, {argument}){instead}"
            f', jitted with jax.jit({name}, static_argnames="{argument}"), which compiles once for each value'
        )
    return (
        f"pass it as an argument: def {name}(…, {argument}){instead}, called as {name}(…, {read.text}); "
        f"or hold it as state: explorer.jit({name}, inputs=…)"
    )


_SIZES = frozenset(
    ("zeros", "ones", "full", "empty", "arange", "linspace", "eye", "range", "reshape", "broadcast_to", "tile")
).union(("repeat", "split", "normal", "uniform", "bernoulli", "one_hot", "top_k", "iota", "slice_in_dim", "astype"))


def _decides_structure(evidence: Evidence, read: Read) -> bool:
    """Return True for a text or bool, and for a number or tuple that is a size, an axis or a condition.

    None of them can be traced.
    """
    if is_exactly(read.value, str, bool):
        return True
    if type(read.value) is not int and not is_exactly(read.value, tuple):
        return False
    for outer in read.function.around(read.node):
        match outer:
            case ast.Call(func=called) if last_name(called) in _SIZES:
                return True
            case ast.keyword(arg="axis" | "shape" | "length" | "num_classes" | "dtype"):
                return True
            case ast.If() | ast.IfExp() | ast.While():
                return any(part is read.node for part in ast.walk(outer.test))
            case ast.stmt():
                return False
            case _:
                continue
    return False


def _argument(read: Read) -> str:
    """Return a parameter name for what was read: `rate` for `settings["rate"]`, `rates_0` for `rates[0]`."""
    match read.node:
        case ast.Subscript(slice=ast.Constant(value=str() as key)) if key.isidentifier() and not iskeyword(key):
            return key
        case ast.Subscript(slice=ast.Constant(value=int() as key)) if key >= 0:
            return f"{_last(read.text)}_{key}"
        case ast.Subscript():
            return f"{_last(read.text)}_item"
        case _:
            return _last(read.text)


def _last(path: str) -> str:
    return path.partition("[")[0].rpartition(".")[2]


def recheck(findings: Findings) -> Findings:
    """Return `stale-closure` findings for values that the trace of `findings` read and that changed since.

    Raises:
        NotRecordedError: What the trace read is not recorded.
    """
    if findings.record is None:
        raise NotRecordedError(
            f"what {findings.function} read while it was traced is no longer known.\n"
            "  Hint: keep the result of explorer.lint(f, x), and use that."
        )
    return stale_values(findings.record.evidence)


def stale_values(evidence: Evidence) -> Findings:
    """Return the values that a function read while it was traced and that have changed since.

    Nothing is traced or run: two snapshots are compared, in milliseconds.

    Args:
        evidence: Evidence from `explorer.pitfalls.tracing.gather`.

    Returns:
        A `stale-closure` finding of severity *error* for each: compiled calls still use the old value.

    Example:
        >>> import jax.numpy as jnp
        >>> from explorer.pitfalls.tracing import gather
        >>> scale = [2.0]
        >>> evidence = gather(lambda x: x * scale[0], [jnp.ones(3)], {})
        >>> stale_values(evidence)
        Findings(<lambda>: nothing found)
    """
    now = snapshot(reachable(evidence.function))
    changes = list(evidence.after.changes(now))
    values = now.values
    findings = (
        _stale(evidence, read, values.get(read.path, ...))
        for read in (reads(evidence) if changes else ())
        if any(_concerns(change, read, values) for change in changes)
    )
    return Findings(findings, evidence.name)


def _concerns(change: Change, read: Read, values: dict[str, Any]) -> bool:
    if _is_at_or_in(change.path, read.path):
        return True
    # A container around it was replaced, maybe by one with the same value.
    return _is_at_or_in(read.path, change.path) and not same(values.get(read.path, ...), read.value)


@rule("state-write", "EX006", "warning", "stateful-computations.html")
def state_write(evidence: Evidence) -> Iterator[Finding]:
    """A compiled function writes to outside state once, while it is traced.

    Writes to globals, closures, `self` and containers don't happen again when the compiled program runs.
    """
    by_place: dict[tuple[str, object], list[tuple[Change, Write]]] = {}
    leaked = {path for path, _, _ in evidence.after.tracers()}
    for change in evidence.changes:
        write = write_of(evidence, change)
        if write is not None and not _is_same_number(change):
            by_place.setdefault((write.function.file, write.span), []).append((change, write))
    for made in by_place.values():
        # `leaked-tracer` reports traced values.
        if not any(change.path in leaked or holds_tracer(change.after) for change, _ in made):
            yield _found(evidence, *made[0])


def _found(evidence: Evidence, change: Change, write: Write) -> Finding:
    name = change.holder_path if isinstance(write.node, ast.Call) or change.how == "content" else change.path
    before, after = safe_text(change.before), safe_text(change.after)
    seen = f"`{change.path}` was {before} before the trace and is {after} after it"
    if change.before is ...:
        seen = f"the trace left `{change.path}` = {after}"
    elif change.after is ...:
        seen = f"the trace took `{change.path}` away, which was {before}"
    elif change.how == "content":
        seen = f"the trace changed what is in `{change.path}`"
    return state_write.finding(
        f"`{write.text}` changes {name} while {evidence.name} is traced, and in no call after that",
        at=(write.function, write.span),
        evidence=seen,
        fix=f"return the new value from {evidence.name}, and set {name} where it is called; arrays that it should keep "
        f"can be state of explorer.jit({evidence.name}, inputs=…, outputs=…)",
        severity="note" if _is_memo(write) or _is_bookkeeping(evidence, change, write) else None,
    )


def _is_same_number(change: Change) -> bool:
    before, after = change.before, change.after
    return type(before) in (int, float) and type(after) in (int, float) and before == after


def _is_bookkeeping(evidence: Evidence, change: Change, write: Write) -> bool:
    values = change.before, change.after
    return is_private(change.path) and not reaches_program(evidence, write.function, *values)


def _is_memo(write: Write) -> bool:
    """Return True for writes that happen once: `if x is None`, `if key not in cache`, `setdefault`."""
    match write.node:
        case ast.Call(func=ast.Attribute(attr="setdefault")):
            return True
        case _:
            pass
    tests = [outer.test for outer in write.function.around(write.node) if isinstance(outer, ast.If)]
    absences = (ast.Is, ast.NotIn)
    return any(isinstance(test, ast.Compare) and isinstance(test.ops[0], absences) for test in tests)


_MAX_ITEMS = 8  # items of a container


def is_private(path: str) -> bool:
    """Return True if a name in a path starts with one underscore.

    Example:
        >>> is_private("self._state.depth"), is_private("self.rate"), is_private("__version__")
        (True, False, False)
    """
    names = path.replace("[", ".").split(".")
    return any(name.startswith("_") and not name.startswith("__") for name in names)


def reaches_program(evidence: Evidence, function: FunctionSource, *values: Any) -> bool:
    """Return True if a value is a constant of the program, or a number that the function computes with.

    Values that decide an `if`, are counted or name something aren't in the program: the result is False.
    """
    return any(_is_in(evidence, function, part) for value in values for part in _parts(value))


def _parts(value: Any, depth: int = 0) -> Iterator[Any]:
    items = exact_items(value)
    if items is None:
        yield value
    for item in islice(items, _MAX_ITEMS) if items is not None and depth < 3 else ():
        yield from _parts(item, depth + 1)


def _is_in(evidence: Evidence, function: FunctionSource, value: Any) -> bool:
    if is_a(value, np.ndarray, jax.Array):
        constants = (const for body in evidence.program.bodies for const in body.consts.values())
        return any(const is value or same_array(const, value) for const in constants)
    if type(value) not in (int, float, complex):  # True and False decide what Python does
        return False
    return any(
        _is_number(atom, value) and _is_of(evidence, equation, function)
        for equation in evidence.program.equations
        for atom in equation.inputs
    )


def _is_number(atom: Any, value: complex) -> bool:
    is_scalar = is_literal(atom) and atom.aval.shape == () and getattr(atom.aval.dtype, "kind", "") in "iufc"
    return is_scalar and bool(np.isclose(np.asarray(atom.val).item(), value, rtol=1e-6))


def _is_of(evidence: Evidence, equation: Equation, function: FunctionSource) -> bool:
    first, last = function.node.lineno, function.node.end_lineno or 0
    stack = evidence.program.stack(equation)
    return any(frame.file == function.file and first <= frame.line <= last for frame in stack)
