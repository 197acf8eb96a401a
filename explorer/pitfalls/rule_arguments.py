"""Rules about arguments: changes to them, lists of Python numbers, and state whose type changes."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator
from itertools import islice
from typing import Any, cast

import jax
import numpy as np

from explorer.analysis.recompiles.reasons import Part, predictions
from explorer.capture.safe_reading import class_name, is_exactly, is_users_object, kind_of, mro
from explorer.capture.sources import Span
from explorer.model.events.key import Function, Leaf
from explorer.model.findings import Finding
from explorer.model.text import root_of
from explorer.pitfalls.evidence import Evidence, parameter_location
from explorer.pitfalls.function_source import AT_METHODS, FunctionSource, last_name, source_of, span_location
from explorer.pitfalls.outside import Write, write_of
from explorer.pitfalls.rule import rule
from explorer.pitfalls.state import Change

_SHARING = frozenset(("asarray", "device_put", "from_dlpack"))


@rule("argument-mutation", "EX011", "warning", "notebooks/Common_Gotchas_in_JAX.html#in-place-updates")
def argument_mutation(evidence: Evidence) -> Iterator[Finding]:
    """A compiled function can't change its caller's arguments.

    JAX passes copies of lists and dicts, and its arrays can't be changed in place.
    """
    yield from _containers(evidence)
    yield from _arrays(evidence)
    yield from _in_place(evidence)
    yield from _shared(evidence)


def _containers(evidence: Evidence) -> Iterator[Finding]:
    seen: set[Span] = set()
    for change in evidence.argument_changes:
        if id(change.holder) in evidence.before.holders or change.holder is None:
            continue  # reachable by name too: `state-write` reports it
        write, function = write_of(evidence, change), _own(evidence)
        # flax.nnx.jit also returns the content of nnx's modules.
        is_returned = (_is_of_nnx(evidence.target) and _is_of_nnx(change.holder)) or (
            function is not None and _gives_back(function, root_of(change.path))
        )
        if write is not None and write.span not in seen and not is_returned:
            seen.add(write.span)
            yield _changed(evidence, change, write)


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
    """Return True for a call whose result contains its arguments, as `dict(state)` or `State(…)`, or for a keyword."""
    name = last_name(node.func) if isinstance(node, ast.Call) else ""
    return isinstance(node, ast.keyword) or name in ("dict", "list", "tuple", "replace", "copy") or name[:1].isupper()


def _changed(evidence: Evidence, change: Change, write: Write) -> Finding:
    root = root_of(change.holder_path or change.path)
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


def _copied(evidence: Evidence, change: Change, root: str) -> str:
    if (change.holder_path or root) != root:
        return f"copy `{change.holder_path}` and the containers around it, and change the copies"
    value = next((one.value for one in evidence.call_arguments if one.name == root), None)
    return f"change a copy: {root} = {_COPIES.get(kind_of(value), 'copy.copy({0})').format(root)}"


def _is_copied(evidence: Evidence, holder: Any) -> bool:
    """Return True if JAX flattened an object of this class, so that the function has a copy."""
    return any(kind is kind_of(holder) for kind, _ in evidence.tree_nodes())


_COPIES = {dict: "{{**{0}, …}}", list: "[*{0}, …]", set: "{{*{0}, …}}"}


def _arrays(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding if the trace ended at `x[0] = 1`."""
    error, step = evidence.error, evidence.failed_step
    if step is None or type(error) is not TypeError or not any(text in str(error) for text in _REFUSALS):
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


_REFUSALS = ("item assignment", "in-place", "are immutable")


def _assignment(function: FunctionSource, span: Span) -> tuple[ast.Assign | ast.AugAssign, ast.Subscript] | None:
    for node in function.walk(ast.Assign, ast.AugAssign):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if isinstance(target, ast.Subscript) and span in Span.of(node):
            return node, target
    return None


def _at(function: FunctionSource, node: ast.Assign | ast.AugAssign, target: ast.Subscript) -> str:
    """Return `x = x.at[i].set(v)` with the user's names; words if `x` isn't local or several are set."""
    owner, index, value = (function.source(part) for part in (target.value, target.slice, node.value))
    method = "set" if isinstance(node, ast.Assign) else AT_METHODS.get(type(node.op), "")
    if not method and isinstance(node, ast.AugAssign):
        value, method = ast.unparse(ast.BinOp(ast.Name(f"{owner}[{index}]"), node.op, node.value)), "set"
    changed = f"{owner}.at[{index}].{method}({value})"
    if isinstance(node, ast.Assign) and len(node.targets) > 1:
        return f"{changed} makes the changed array, for each of the names that it is assigned to"
    if not isinstance(target.value, ast.Name):
        return (
            f"{changed} makes a changed array: give it a name of its own, and return it where `{owner}` should have it"
        )
    if owner in function.locals - function.declared:
        return f"{owner} = {changed}"
    # Assigning a name from outside would make it local from the start.
    name = "changed" if "changed" not in function.locals else "changed_array"
    return f"{name} = {changed}, and use {name} instead of {owner} from there on"


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


_MIN_NUMBERS = 16  # numbers; shapes, axes and coefficients are shorter
_MAX_DEPTH = 4
_MAX_CONTAINERS = 10_000  # containers looked into
_NUMBERS = (bool, int, float, complex)
_LISTS = (list, tuple)


_REFUSED_LIST = re.compile(r"(\w+) requires ndarray or scalar arguments, got <class '(list|tuple)'>")


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
    match, step = _REFUSED_LIST.search(str(evidence.error)), evidence.failed_step
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
    reported: set[str] = set()
    for predicted in predictions(Function(evidence.name), arguments, list(_results(evidence, program.main.raw))):
        root = root_of(predicted.leaf)
        # One for an argument: the leaves of a state were made in one way.
        if root in reported or ("weak" in predicted.before) == ("weak" in predicted.after):
            continue
        reported.add(root)
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
    results = [("result", out, avals)]
    if type(out) in (tuple, list):
        left = iter(avals)
        results += [(f"result[{i}]", one, list(islice(left, len(jax.tree.leaves(one))))) for i, one in enumerate(out)]
    for path, tree, own in results:
        yield Part(path, _structure(tree), tuple(_leaf(path, aval) for aval in own))


def _structure(tree: Any) -> object:
    return cast(object, jax.tree.structure(tree))


def _leaf(path: str, aval: Any) -> Leaf:
    # Types of libraries, such as flax's Variable, may have no shape.
    shape = tuple(size if isinstance(size, int) else str(size) for size in getattr(aval, "shape", ()))
    return Leaf(path, shape, str(getattr(aval, "dtype", aval)), bool(getattr(aval, "weak_type", False)))
