"""Changes to arguments: JAX passes copies of lists and dicts, and its arrays can't be changed in place."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator
from typing import Any

import numpy as np

from explorer.capture.safe_reading import class_name, is_users_object, kind_of, mro
from explorer.capture.sources import Span
from explorer.model.findings import Finding
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import AT_METHODS, FunctionSource, root_of
from explorer.pitfalls.outside import Write, write_of
from explorer.pitfalls.rule import rule
from explorer.pitfalls.state import Change

_SHARING = frozenset(("asarray", "device_put", "from_dlpack"))


@rule("argument-mutation", "EX011", "warning", "notebooks/Common_Gotchas_in_JAX.html#in-place-updates")
def argument_mutation(evidence: Evidence) -> Iterator[Finding]:
    """A compiled function can't change its caller's arguments."""
    yield from _containers(evidence)
    yield from _arrays(evidence)
    yield from _in_place(evidence)
    yield from _shared(evidence)


def _containers(evidence: Evidence) -> Iterator[Finding]:
    seen: set[Span] = set()
    for change in evidence.argument_changes:
        if id(change.holder) in evidence.before.holders or change.holder is None:
            continue  # reachable by name too: `state-write` reports it
        write = write_of(evidence, change)
        if write is None or write.span in seen or _is_returned(evidence, change):
            continue
        seen.add(write.span)
        yield _changed(evidence, change, write)


def _is_returned(evidence: Evidence, change: Change) -> bool:
    # flax.nnx.jit also returns the content of nnx's modules.
    is_carried_back = _is_of_nnx(evidence.target) and _is_of_nnx(change.holder)
    function = _own(evidence)
    return is_carried_back or (function is not None and _gives_back(function, root_of(change.path)))


def _is_of_nnx(value: Any) -> bool:
    return any(class_name(kind).startswith("flax.nnx.") for kind in mro(value))


def _own(evidence: Evidence) -> FunctionSource | None:
    code = None if evidence.recording is None else evidence.recording.watched
    return next((one for one in evidence.functions if one.executed.code is code), None)


def _gives_back(function: FunctionSource, name: str) -> bool:
    if isinstance(function.node, ast.Lambda):
        return True
    returned = (node.value for node in function.walk(ast.Return) if node.value is not None)
    return any(name in _whole(value) for value in returned)


def _whole(node: ast.AST) -> Iterator[str]:
    """Yield the names that an expression's value contains whole: `state` for `(state, state["n"])`."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, (ast.Tuple, ast.List, ast.Dict, ast.Starred, ast.IfExp)) or _holds(node):
        for part in ast.iter_child_nodes(node):
            yield from _whole(part)


def _holds(node: ast.AST) -> bool:
    """Return True for a call that keeps its arguments: `dict(state)`, `State(…)`, `replace(state, …)`."""
    called = node.func if isinstance(node, ast.Call) else node if isinstance(node, ast.keyword) else None
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return isinstance(node, ast.keyword) or name in ("dict", "list", "tuple", "replace", "copy") or name[:1].isupper()


def _changed(evidence: Evidence, change: Change, write: Write) -> Finding:
    name = change.holder_path or change.path
    root = root_of(name)
    if is_users_object(change.holder) and not _is_copied(evidence, change.holder):
        message = (
            f"`{write.text}` changes the caller's `{root}` while {evidence.name} is traced, and in no call after that"
        )
    else:
        message = (
            f"`{write.text}` changes the copy of `{root}` that {evidence.name} was given, not the caller's: "
            "compiled, it changes nothing that anyone sees"
        )
    return argument_mutation.finding(
        message,
        at=(write.function, write.span),
        evidence=f"after the trace `{change.path}` is "
        + ("gone" if change.after is ... else "another" if change.before is not ... else "new"),
        fix=f"return {root}, and write {root} = {evidence.name}(…) where it is called; or "
        + _copied(evidence, change, root),
        # Removing an item from a batch is often intended, and works on the copy.
        severity="note" if change.after is ... else None,
    )


def _is_copied(evidence: Evidence, holder: Any) -> bool:
    """Return True if JAX flattened an object of this class, so that the function has a copy."""
    tree = getattr(evidence.traced, "in_tree", None)
    waiting: list[Any] = [] if tree is None else [tree]
    while waiting:
        node = waiting.pop()
        kind, _ = node.node_data() or (None, None)
        if kind is kind_of(holder):
            return True
        waiting += node.children()
    return False


_COPIES = {dict: "{{**{0}, …}}", list: "[*{0}, …]", set: "{{*{0}, …}}"}


def _copied(evidence: Evidence, change: Change, root: str) -> str:
    if (change.holder_path or root) != root:
        return f"copy `{change.holder_path}` and the containers around it, and change the copies"
    value = next((one.value for one in evidence.call_arguments if one.name == root), None)
    return f"change a copy: {root} = {_COPIES.get(kind_of(value), 'copy.copy({0})').format(root)}"


def _arrays(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding if the trace ended at `x[0] = 1`."""
    error, step = evidence.error, evidence.failed_step
    if step is None or type(error) is not TypeError or not any(text in str(error) for text in _REFUSED):
        return
    function = evidence.by_code.get(step.frame.f_code)
    assignment = _assignment(function, step.span) if function is not None else None
    if function is not None and assignment is not None:
        node, target = assignment
        yield argument_mutation.finding(
            f"`{function.source(target)} = …` can't change `{function.source(target.value)}`: "
            "a JAX array is never changed in place",
            at=(function, node),
            evidence=f"the trace ended there: {str(error).splitlines()[0].split('. ')[0][:160]}",
            fix=_at(function, node, target),
            severity="error",
        )


_REFUSED = ("item assignment", "in-place", "are immutable")


def _assignment(function: FunctionSource, span: Span) -> tuple[ast.Assign | ast.AugAssign, ast.Subscript] | None:
    for node in function.walk(ast.Assign, ast.AugAssign):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if isinstance(target, ast.Subscript) and span in Span.of(node):
            return node, target
    return None


def _at(function: FunctionSource, node: ast.Assign | ast.AugAssign, target: ast.Subscript) -> str:
    """Return `x = x.at[i].set(v)` with the user's names, or words if `x` isn't a local name."""
    owner, index, value = (function.source(part) for part in (target.value, target.slice, node.value))
    method = "set" if isinstance(node, ast.Assign) else AT_METHODS.get(type(node.op), "")
    if not method and isinstance(node, ast.AugAssign):
        value, method = ast.unparse(ast.BinOp(ast.Name(f"{owner}[{index}]"), node.op, node.value)), "set"
    changed = f"{owner}.at[{index}].{method}({value})"
    if isinstance(node, ast.Assign) and len(node.targets) > 1:
        return f"{changed} makes the changed array, for each of the names that it is assigned to"
    return _held(function, target.value, owner, changed)


def _held(function: FunctionSource, node: ast.expr, owner: str, changed: str) -> str:
    """Return how to keep a changed array. Assigning a name from outside would make it local from the start."""
    if not isinstance(node, ast.Name):
        return (
            f"{changed} makes a changed array: give it a name of its own, and return it where `{owner}` should have it"
        )
    if owner in function.locals - function.declared:
        return f"{owner} = {changed}"
    name = "changed" if "changed" not in function.locals else "changed_array"
    return f"{name} = {changed}, and {name} in the place of {owner} from there on"


def _in_place(evidence: Evidence) -> Iterator[Finding]:
    """Yield findings for `stats *= 0.9` on a passed NumPy array: NumPy changes the caller's, JAX makes another."""
    function = _own(evidence)
    passed = {path: value for path, value in evidence.passed if type(value) is np.ndarray and value.ndim}
    for node in _first_in_place(function, passed) if function is not None and passed else ():
        name = node.target.id
        if function is not None and function.reached(node) and not _gives_back(function, name):
            yield argument_mutation.finding(
                f"`{function.source(node)}` changes the caller's NumPy array `{name}` where {evidence.name} runs as it "
                f"is; compiled, `{name}` is another array from here on, and the caller's stays as it was",
                at=(function, node),
                evidence=f"`{name}` was passed as NumPy's {passed[name].dtype.name}{list(passed[name].shape)}, and "
                f"{evidence.name} doesn't return it",
                fix=f"return {name} too, and write {name} = … where {evidence.name} is called",
            )


def _first_in_place(function: FunctionSource, names: Container[str]) -> Iterator[Any]:
    stored = sorted(function.walk(ast.Name), key=lambda name: (name.lineno, name.col_offset), reverse=True)
    first = {name.id: name for name in stored if not isinstance(name.ctx, ast.Load)}
    for node in function.walk(ast.AugAssign):
        name = getattr(node.target, "id", "")
        if name in names and name in function.parameters and first.get(name) is node.target:
            yield node


def _shared(evidence: Evidence) -> Iterator[Finding]:
    """Yield findings for NumPy arrays from outside that JAX may not have copied."""
    for call, function, node in evidence.calls:
        is_sharing = call.callee.startswith("jax.") and call.callee.rpartition(".")[2] in _SHARING
        if not is_sharing or function is None or node is None or not node.args:
            continue
        value = function.value(node.args[0])
        if type(value) is np.ndarray and value.flags.writeable and value.ndim:
            name = function.source(node.args[0])
            yield argument_mutation.finding(
                f"`{function.source(node)}` may share its memory with the NumPy array `{name}`: writing to `{name}` "
                "later may or may not change results",
                at=(function, call.span),
                evidence=f"`{name}` is a NumPy {value.dtype.name}{list(value.shape)} that can be written to",
                fix=f"jnp.array({name}) copies; or pass {name} as an argument",
                severity="note",
            )
