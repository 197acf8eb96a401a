"""Rules about donated arguments that are used again, or whose memory no result can reuse."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

import jax

from explorer._jax.arguments import donated_arguments, is_jitted
from explorer.analysis.updates import SCALED, may_update
from explorer.capture.safe_reading import is_a
from explorer.capture.sources import Span, parse, read_source, users_frame
from explorer.model.findings import Finding
from explorer.model.text import root_of
from explorer.pitfalls.equations import is_literal
from explorer.pitfalls.evidence import Argument, Evidence, parameter_location, reachable_values, source_of_target
from explorer.pitfalls.function_source import FunctionSource, span_location
from explorer.pitfalls.rule import rule

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@rule("donated-reuse", "EX019", "error", "buffer_donation.html", passive=True, drivers=True)
def donated_reuse(evidence: Evidence) -> Iterator[Finding]:
    """A donated array can't be used after the call.

    The call may overwrite the array's memory, and JAX deletes the array.
    """
    donated = {argument.path for argument in evidence.arguments if argument.donated}
    if donated:
        yield from _twice(evidence, donated)
        yield from _captured(evidence, donated)
        yield from _after(evidence, {root_of(path) for path in donated})
    if not evidence.is_jitted:  # inside a compiled program a call donates nothing
        for function in evidence.functions:
            for call, jitted in function.jitted.items():
                yield from _inside(evidence, function, call, jitted)


def _inside(evidence: Evidence, function: FunctionSource, call: ast.Call, jitted: Any) -> Iterator[Finding]:
    """Yield findings for arrays that a function donates to a call and then passes again or reads."""
    positions, keywords = donated_arguments(jitted)
    passed = [(i in positions, node) for i, node in enumerate(call.args)]
    passed += [(keyword.arg in keywords, keyword.value) for keyword in call.keywords]
    names = [(is_donated, node.id) for is_donated, node in passed if isinstance(node, ast.Name)]
    for name in dict.fromkeys(name for is_donated, name in names if is_donated):
        if not function.reached(call):
            continue
        callee = function.source(call.func)
        again = _read_later([*function.around(call)][::-1], call, name)
        if sum(name == other for _, other in names) > 1:
            yield donated_reuse.finding(
                f"`{name}` is given to {callee} twice, which donates it: where {evidence.name} runs uncompiled, "
                "that fails",
                at=(function, call),
                evidence=f"one array is two arguments of {callee}, and one of them is donated",
                fix=f"give {callee} a copy, jnp.copy({name}), the second time; "
                f"of a tree jax.tree.map(jnp.copy, {name})",
                severity="warning",  # compiled with the function around it, the call donates nothing
            )
        elif again is not None:
            yield donated_reuse.finding(
                f"`{name}` is read after it was donated to {callee}: where {evidence.name} runs uncompiled, it "
                "is deleted by then",
                at=(function, again),
                evidence=f"donated in line {call.lineno}, and not given another value since",
                fix=f"{name} = … of what {callee} returns, or {callee}(jnp.copy({name}), …)",
                severity="warning",
            )


def _twice(evidence: Evidence, donated: set[str]) -> Iterator[Finding]:
    paths: dict[int, str] = {}
    pairs_of: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for path, value in evidence.passed:
        if not is_a(value, jax.Array):
            continue
        before = paths.setdefault(id(value), path)
        if before != path and {before, path} & donated:
            gone, other = (before, path) if before in donated else (path, before)
            pairs_of.setdefault((root_of(gone), root_of(other)), []).append((gone, other))
    for pairs in pairs_of.values():
        gone, other = pairs[0]
        more = f", and so are {len(pairs) - 1} more" if len(pairs) > 1 else ""
        yield donated_reuse.finding(
            f"`{other}` is the same array as `{gone}`{more}, which {evidence.name} donates: the call fails",
            evidence=f"one array was passed as both; {gone} is donated",
            fix=f"pass a copy of one of them, jnp.copy, or don't donate `{root_of(gone)}`",
            **parameter_location(evidence, other),
        )


def _captured(evidence: Evidence, donated: set[str]) -> Iterator[Finding]:
    """Yield findings for donated arrays that the function also reads by name."""
    consts = {id(const) for body in evidence.program.bodies for const in body.consts.values()}
    passed = {id(value): path for path, value in evidence.passed if path in donated and id(value) in consts}
    names = {id(value): name for name, value in reversed(reachable_values(evidence).items())} if passed else {}
    for address, path in passed.items():
        name = names.get(address, "a value from outside")
        yield donated_reuse.finding(
            f"`{path}`, which {evidence.name} donates, is also `{name}`, which it reads: the first call deletes it",
            evidence=f"the array passed as `{path}` is a constant of the program too",
            fix=f"use the argument `{root_of(path)}` instead of `{name}`, or don't donate it",
            severity="warning",
            **parameter_location(evidence, path),
        )


def _after(evidence: Evidence, roots: set[str]) -> Iterator[Finding]:
    """Yield findings for reads of donated arrays after a call, in the function's file or the caller's."""
    function, caller = source_of_target(evidence), users_frame()
    spaces: list[tuple[str, Mapping[str, Any]]] = []
    parameters: Sequence[str] = ()
    if function is not None:
        parameters = function.parameters
        spaces += [(function.file, function.executed.globals)]
    if caller is not None:
        spaces += [(caller.f_code.co_filename, names) for names in (caller.f_locals, caller.f_globals)]
    names = {name for _, space in spaces for name, value in space.items() if value is evidence.target}
    for file in sorted({file for file, _ in spaces}) if names else ():
        for call, enclosing in _calls(file, names):
            for name in _donated_names(call, parameters, roots):
                node = _read_later(enclosing, call, name)
                if node is None:
                    continue
                span = Span.of(node)
                message = f"`{name}` is read after it was donated to {evidence.name}: it is deleted"
                if span in Span.of(call):
                    message = f"`{name}` is donated to {evidence.name} in each turn of the loop, and is deleted after "
                    message += "the first"
                yield donated_reuse.finding(
                    message,
                    evidence=f"donated in line {call.lineno}, and not given another value since",
                    fix=f"{name} = … of what {evidence.name} returns, or {evidence.name}(jnp.copy({name}), …)",
                    **span_location(file, span),
                )


def _calls(file: str, names: set[str]) -> Iterator[tuple[ast.Call, list[ast.AST]]]:
    source = read_source(file)
    tree = parse(source.text) if source is not None else None
    waiting: list[tuple[ast.AST, list[ast.AST]]] = [(tree, [])] if tree is not None else []
    while waiting:
        node, enclosing = waiting.pop()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            yield node, enclosing
        waiting += [(part, [*enclosing, node]) for part in ast.iter_child_nodes(node)]


def _donated_names(call: ast.Call, parameters: Sequence[str], roots: set[str]) -> Iterator[str]:
    passed: list[tuple[str, ast.expr]] = list(zip(parameters, call.args, strict=False))
    passed += [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg]
    for parameter, value in passed:
        if parameter in roots and isinstance(value, ast.Name):
            yield value.id


def _read_later(enclosing: list[ast.AST], call: ast.Call, name: str) -> ast.Name | None:
    """Return the next read of a name after a call, before another assignment; None without a certain one."""
    statement = next((node for node in reversed(enclosing) if isinstance(node, ast.stmt)), None)
    if statement is not None and _stores(statement, name):  # state = step(state)
        return None
    for inner, outer in pairwise(cast(list[Any], [call, *reversed(enclosing)])):  # from the call outwards
        node = next(filter(None, (_next(below, name) for below in _below(outer, inner))), None)
        if node is not None:
            return node if isinstance(node.ctx, ast.Load) else None
        if isinstance(outer, (ast.For, ast.While)) and inner in outer.body:
            return None if _stores(outer, name) else _next(call, name)  # the next turn calls again
        if isinstance(outer, _SCOPES):
            break
    return None


def _below(outer: ast.AST, inner: ast.AST) -> list[ast.stmt]:
    blocks = [cast(list[ast.stmt], part) for _, part in ast.iter_fields(outer) if isinstance(part, list)]
    block = next((block for block in blocks if isinstance(inner, ast.stmt) and inner in block), list[ast.stmt]())
    return block[block.index(inner) + 1 :] if isinstance(inner, ast.stmt) and block else []


def _stores(node: ast.AST, name: str) -> bool:
    return any(one.id == name and not isinstance(one.ctx, ast.Load) for one in _names(node))


def _next(node: ast.AST, name: str) -> ast.Name | None:
    """Return a statement's first use of a name in order of execution: an assignment's value first; None without one."""
    is_value_first = isinstance(node, (ast.Assign, ast.AnnAssign))
    return min(
        (one for one in _names(node) if one.id == name),
        key=lambda one: (is_value_first and not isinstance(one.ctx, ast.Load), one.lineno, one.col_offset),
        default=None,
    )


def _names(node: ast.AST) -> Iterator[ast.Name]:
    if isinstance(node, ast.Name):
        yield node
    for part in ast.iter_child_nodes(node) if not isinstance(node, _SCOPES) else ():
        yield from _names(part)


@rule("unusable-donation", "EX020", "warning", "buffer_donation.html", passive=True)
def unusable_donation(evidence: Evidence) -> Iterator[Finding]:
    """A donated argument can only be reused by a result of the same shape and dtype.

    Without such a result no memory is saved, and the argument is deleted after the call.
    """
    program = evidence.program
    arguments = evidence.arguments
    unusable: dict[str, list[Argument]] = defaultdict(list)
    for argument in _left_over([argument for argument in arguments if argument.donated], program.main.raw):
        unusable[root_of(argument.path)].append(argument)
    for root, several in unusable.items():
        first = several[0]
        more = f" and {len(several) - 1} more arrays of `{root}`" if len(several) > 1 else ""
        yield unusable_donation.finding(
            f"{evidence.name} donates `{first.path}`{more}, and no result can take its memory: nothing is saved, and "
            "it is gone after the call",
            evidence=f"no result is left that is {_short(first.aval)}: there are "
            + (", ".join(dict.fromkeys(_short(output.aval) for output in program.main.raw.outvars)) or "none"),
            fix=f"leave `{root}` out of donate_argnums and donate_argnames, or return an array of its shape and dtype",
            **parameter_location(evidence, root),
        )


def _left_over(donated: Sequence[Argument], raw: Any) -> Sequence[Argument]:
    """Return the used donated arguments that no result matches, paired as JAX does: by type, then by size."""
    if not donated:
        return donated
    used = {id(operand) for equation in raw.eqns for operand in equation.invars} | set(map(id, raw.outvars))
    # JAX drops unused arguments, and keeps their arrays.
    donated = [argument for argument in donated if id(argument.variable) in used]
    free = [variable.aval for variable in raw.outvars]
    for key in (_type, _bytes):
        left: list[Argument] = []
        for argument in donated:
            keys = list(map(key, free))
            if key(argument.aval) in keys:
                del free[keys.index(key(argument.aval))]
            else:
                left.append(argument)
        donated = left
    return donated


def _type(aval: Any) -> str:
    return f"{aval.shape} {aval.dtype}"


def _bytes(aval: Any) -> str:
    try:
        return str(aval.size * aval.dtype.itemsize)
    except (AttributeError, TypeError):  # of an extended dtype, such as that of keys
        return f"{aval.size} {aval.dtype}"


def _short(aval: Any) -> str:
    return aval.str_short(short_dtypes=True)


_WORTH_BYTES = 1_000_000  # of arguments, from which on their memory matters
_MAX_OPERATIONS = 40  # from a result backwards


@rule("missing-donation", "EX044", "note", "buffer_donation.html")
def missing_donation(evidence: Evidence) -> Iterator[Finding]:
    """State that is returned updated takes its memory twice: the old state is kept while the new one is written.

    A donated argument gives its memory to the result. The caller must not use it after the call.
    """
    # equinox and flax have donation of their own.
    if not is_jitted(evidence.target) or any(argument.donated for argument in evidence.arguments):
        return
    roots = list(_state(evidence))
    size = sum(_size(argument.aval) for argument in evidence.arguments if root_of(argument.path) in roots)
    if size < _WORTH_BYTES:
        return
    names = ", ".join(f'"{root}"' for root in roots)
    listed = " and ".join(f"`{root}`" for root in roots)
    yield missing_donation.finding(
        f"{evidence.name} returns {listed} updated, and doesn't donate: old and new are in memory at once",
        evidence=f"{size / 1e6:,.1f} MB of arguments have a result of their type that is computed from them",
        fix=f"donate_argnames=({names},) in jax.jit, where the caller writes {roots[0]} = {evidence.name}(…)",
        **parameter_location(evidence, roots[0]),
    )


def _state(evidence: Evidence) -> Iterator[str]:
    """Yield the names of the arguments all of whose arrays are replaced: of others the caller still needs the rest."""
    replaced = _replaced(evidence)
    by_root: dict[str, list[Argument]] = defaultdict(list)
    for argument in evidence.arguments:
        by_root[root_of(argument.path)].append(argument)
    yield from (root for root, several in by_root.items() if all(id(one.variable) in replaced for one in several))


def _replaced(evidence: Evidence) -> set[int]:
    """Return the `id` of each argument's variable with a result of the same type that is an update of it."""
    program = evidence.program
    replaced: set[int] = set()
    for result in program.main.raw.outvars:
        waiting, at = [(program.main, result, False)], 0
        while waiting and at < _MAX_OPERATIONS:
            body, atom, is_updated = waiting.pop(0)
            at += 1
            body, atom = program.origin(body, atom)
            if is_literal(atom) or _type(atom.aval) != _type(result.aval):
                continue
            maker = body.makers.get(atom)
            if maker is None:
                if is_updated and body is program.main and id(atom) not in replaced:
                    replaced.add(id(atom))
                    break
            elif "transpose" in maker.transform:  # a gradient has the type of its parameter, and is no update of it
                continue
            elif maker.op in SCALED or may_update(maker.op):
                is_updated = is_updated or maker.op not in SCALED
                waiting += [(maker.body, operand, is_updated) for operand in maker.inputs]
    return replaced


def _size(aval: Any) -> int:
    return getattr(aval, "size", 0) * getattr(aval.dtype, "itemsize", 0)
