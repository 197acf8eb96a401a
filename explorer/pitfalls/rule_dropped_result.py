"""Functional updates whose result is dropped: `x.at[0].set(1.)` returns a new array, and leaves `x` unchanged."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any, cast

import jax

from explorer.capture.safe_reading import attributes, callee_name
from explorer.model.findings import Finding
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import FunctionSource, is_users_jitted, last_name
from explorer.pitfalls.rule import rule

_UPDATES = frozenset(("set", "add", "subtract", "multiply", "mul", "divide", "power", "min", "max", "apply"))
# These are called for their result only. `jax.tree.map` may be called for side effects.
_MODULES = ("jax._src.random.", "jax.random.", "jax._src.numpy.", "jax._src.nn.", "jax._src.ops.", "jax._src.lax.")
_CONTROL_FLOW = "jax._src.lax.control_flow."  # their callees may have side effects, or be called to be traced
_FUNCTIONS = ("equinox._tree.tree_at", "equinox._update.apply_updates", "jax._src.prng.")
_MAPS = ("jax._src.tree_util.tree_map", "jax._src.tree.map")
# These raise for invalid arguments, and may be called as a check.
_CHECKS = frozenset(
    ("broadcast_shapes", "broadcast_to", "broadcast_arrays", "result_type", "promote_types", "can_cast")
)
_METHODS = frozenset(("apply_gradients", "replace", "_replace"))
_LIBRARIES = ("flax.", "collections.", "jax.", "optax.", "equinox.", "chex.", "dataclasses.")


@rule("dropped-result", "EX030", "warning", "notebooks/Common_Gotchas_in_JAX.html#in-place-updates", drivers=True)
def dropped_result(evidence: Evidence) -> Iterator[Finding]:
    """Arrays are never changed in place: an update returns a changed copy, which is lost if nothing uses it."""
    recorded = {node: _name(call.callee, call.receiver) for call, _, node in evidence.calls if node is not None}
    for function in evidence.functions:
        unread = _unread(function)
        for node in (*function.by_type[ast.Expr], *function.by_type[ast.Assign]):
            call = node.value
            if isinstance(call, ast.Call) and _is_dropped(function, node, unread, recorded) and function.reached(call):
                yield _finding(evidence, function, node, call)


def _unread(function: FunctionSource) -> frozenset[str]:
    parts = [part for part in ast.walk(function.node) if isinstance(part, ast.Name)]
    read = {part.id for part in parts if not isinstance(part.ctx, ast.Store)}
    return frozenset(part.id for part in parts) - read - function.declared


def _is_dropped(function: FunctionSource, node: Any, unread: frozenset[str], recorded: Mapping[ast.Call, str]) -> bool:
    """Return True if a call has no effect but its result, and the result is discarded.

    The call is a statement, or nothing reads the names that its result is assigned to.
    """
    call: ast.Call = node.value
    names = [] if isinstance(node, ast.Expr) else _names(node.targets, last_name(call.func) == "update")
    if isinstance(node, ast.Assign) and not (names and unread.issuperset(names)):
        return _drops_state(function, node, unread, _callee(function, call, recorded))
    callee = _callee(function, call, recorded)
    return _is_update(call, callee) or (isinstance(node, ast.Expr) and _is_computed(function, call, callee))


def _drops_state(function: FunctionSource, node: ast.Assign, unread: frozenset[str], callee: str) -> bool:
    """Return True if the second result of a call, the new state, is in a name that nothing reads."""
    name = _state_name(node)
    call = cast(ast.Call, node.value)
    if last_name(call.func) == "apply" and any(keyword.arg == "mutable" for keyword in call.keywords):  # flax's
        return name in unread and not name.startswith("_")
    if not (callee.startswith("optax.") and last_name(call.func) == "update") or name not in unread:
        return False
    # The state of an optimizer without momentum is empty, and dropped on purpose.
    state = function.resolve(call.args[1]) if len(call.args) > 1 else ...
    return not name.startswith("_") if state is ... else bool(jax.tree.leaves(state))


def _state_name(node: Any) -> str:
    """Return `state` for `updates, state = …`; "" for other statements."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=[_, ast.Name(id=name)])]):
            return name
        case _:
            return ""


def _callee(function: FunctionSource, call: ast.Call, recorded: Mapping[ast.Call, str]) -> str:
    value = function.resolve(call.func)
    if is_users_jitted(value):  # may be called to warm up or measure
        return ""
    return recorded.get(call, "") if value is ... else _name(*callee_name(value))


def _name(callee: str, receiver: Any) -> str:
    """Return a callable's qualified name, for a jitted function that of the wrapped function."""
    for _ in range(8):  # a wrapper around a wrapper
        inner = attributes(receiver).get("__wrapped__") if callee.endswith(".__call__") else None
        if inner is None:
            break
        callee, receiver = callee_name(inner)
    return callee


def _is_update(call: ast.Call, callee: str) -> bool:
    """Return True if a call returns an updated copy or new keys, so that its result matters."""
    if _updated(call) is not None:
        return True
    last = callee.rpartition(".")[2]
    if last in _METHODS:
        return callee.startswith(_LIBRARIES)
    is_optax = callee.startswith("optax.") and ("update" in last or last == "init")
    return is_optax or callee in _FUNCTIONS or (callee.startswith(("jax._src.random.", "jax.random.")))


def _is_computed(function: FunctionSource, call: ast.Call, callee: str) -> bool:
    """Return True if a call only computes a result."""
    if callee in _MAPS:
        mapped = call.args[0] if call.args else None
        # A map to a constant checks that trees have the same structure.
        is_constant = isinstance(mapped, ast.Lambda) and isinstance(mapped.body, ast.Constant)
        return isinstance(mapped, ast.Lambda) and not is_constant and _is_pure(function, mapped.body)
    is_pure = callee.startswith(_MODULES) and not callee.startswith(_CONTROL_FLOW)
    return is_pure and callee.rpartition(".")[2] not in _CHECKS


def _is_pure(function: FunctionSource, body: ast.expr) -> bool:
    parts = list(ast.walk(body))
    calls = [part for part in parts if isinstance(part, ast.Call)]
    if any(isinstance(part, ast.NamedExpr) for part in parts):
        return False
    return all(function.callees[part].startswith(("jax.", "jaxlib.")) or _updated(part) is not None for part in calls)


def _updated(call: ast.Call) -> ast.expr | None:
    """Return `x` for `x.at[…].set(…)`; None for other calls."""
    match call.func:
        case ast.Attribute(attr=method, value=ast.Subscript(value=ast.Attribute(attr="at", value=array))):
            return array if method in _UPDATES else None
        case _:
            return None


def _names(targets: list[ast.expr], first: bool) -> list[str]:
    """Return the names that an assignment sets; empty if it sets anything else, or marks all as unused by a `_`.

    Args:
        targets: Targets of the assignment.
        first: Count the first name only, as in Optax's `updates, state = optimizer.update(…)`.
    """
    parts = [part for one in targets for part in (one.elts if isinstance(one, (ast.Tuple, ast.List)) else [one])]
    parts = parts[:1] if first else parts
    names = [part.id for part in parts if isinstance(part, ast.Name)]
    return names if len(names) == len(parts) and not all(name.startswith("_") for name in names) else []


def _finding(evidence: Evidence, function: FunctionSource, node: ast.stmt, call: ast.Call) -> Finding:
    text = function.short(call)
    updated = _updated(call)
    name = _state_name(node)
    if name in _unread(function) and last_name(call.func) in ("update", "apply"):  # "" is no name that is assigned
        return _finding_of_state(evidence, function, node, call, name)
    if updated is not None:
        while isinstance(updated, ast.Call) and (inner := _updated(updated)) is not None:  # x.at[0].set(1).at[1].set(2)
            updated = inner
        name = function.source(updated)
        message = f"`{text}` makes a changed copy of `{name}` that nothing uses: `{name}` itself stays as it was"
        # Assigning a name from outside would make it local, and an attribute would keep a tracer.
        is_own = isinstance(updated, ast.Name) and updated.id in function.locals
        whole = function.short(call, 200)
        fix = f"{name} = {whole}" if is_own else f"return {whole}, and set {name} to it where this is called"
    elif last_name(call.func) in ("split", "fold_in"):
        message = f"`{text}` makes new keys that nothing uses: the key itself is unchanged"
        fix = _new_keys(function, call)
    else:
        message = f"what `{text}` returns isn't used, and it doesn't change its arguments"
        fix = _assigned(function, call, text)
    return dropped_result.finding(
        message,
        at=(function, node),
        evidence=f"{'the call is a statement' if isinstance(node, ast.Expr) else 'nothing reads the names it is given'}"
        f" in {evidence.name}; JAX's functions change nothing in place",
        fix=fix,
    )


def _finding_of_state(
    evidence: Evidence, function: FunctionSource, node: ast.stmt, call: ast.Call, name: str
) -> Finding:
    text = function.short(call)
    is_optax = last_name(call.func) == "update"
    old = function.short(call.args[1]) if is_optax and len(call.args) > 1 else "the variables"
    return dropped_result.finding(
        f"`{name}`, the new state that `{text}` returns, isn't used: "
        + ("each step starts with the first moments again" if is_optax else "running averages stay as they are"),
        at=(function, node),
        evidence=f"nothing reads `{name}` in {evidence.name}; the call doesn't change `{old}`",
        fix=f"return `{name}` instead of `{old}`"
        if is_optax
        else f"return {name} too, and pass {{**variables, **{name}}} to the next call",
    )


def _new_keys(function: FunctionSource, call: ast.Call) -> str:
    text, key = function.short(call), next((_own_name(function, given) for given in call.args), "")
    if last_name(call.func) == "fold_in":
        return f"{key} = {text}" if key else f"subkey = {text}, and draw with that"
    counts = [*call.args[1:], *(keyword.value for keyword in call.keywords if keyword.arg == "num")]
    if not all(isinstance(count, ast.Constant) and count.value == 2 for count in counts):
        return f"keys = {text}, and draw with these, each once"
    return f"{key}, subkey = {text}" if key else f"key, subkey = {text}, and draw with subkey"


def _assigned(function: FunctionSource, call: ast.Call, text: str) -> str:
    name, given = last_name(call.func), [_own_name(function, argument) for argument in call.args]
    if name == "apply_updates":
        return f"{(*given, '')[0] or 'params'} = {text}"
    if name == "update":
        _, state, params, *_ = (*given, "", "", "")
        params = params or "params"
        return f"updates, {state or 'state'} = {text}, then {params} = optax.apply_updates({params}, updates)"
    receiver = _own_name(function, call.func.value) if isinstance(call.func, ast.Attribute) else ""
    if receiver and name in _METHODS:
        return f"{receiver} = {text}"
    return f"take what it returns: result = {text}, and use that; or leave it out"


def _own_name(function: FunctionSource, node: ast.expr | None) -> str:
    name = node.id if isinstance(node, ast.Name) else ""
    return name if name in function.locals - function.declared else ""
