"""Rules about slow calls: transfers to the host, effects, and functions that aren't compiled."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import takewhile
from math import isfinite

import jax

from explorer.capture.safe_reading import is_a, is_tracer, kind_of
from explorer.capture.sources import Span
from explorer.model.findings import Finding
from explorer.model.units import count_text, duration_text
from explorer.pitfalls.equations import Equation
from explorer.pitfalls.evidence import Evidence, traced_in
from explorer.pitfalls.function_source import FunctionSource, frame_location, last_name, span_location
from explorer.pitfalls.rule import rule
from explorer.pitfalls.state import JITTED, safe_text
from explorer.pitfalls.tracing import BLOCKING_FUNCTIONS, BLOCKING_METHODS, taken_results

_LOOPS = (ast.For, ast.While)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@rule("host-transfer", "EX027", "warning", "async_dispatch.html", drivers=True)
def host_transfer(evidence: Evidence) -> Iterator[Finding]:
    """Transferring values to the host in a loop makes device and host wait for each other in each turn.

    A transfer while tracing is wasted too: its value becomes a constant.
    """
    if evidence.is_driver:
        yield from _in_driver(evidence)
        return
    yield from _callbacks(evidence)
    for function in evidence.functions:
        waits = {id(node): name for node, name in _waits(function)}
        for node in function.calls:
            if name := waits.get(id(node), ""):
                yield host_transfer.finding(
                    f"`{function.source(node)}` waits for the device in each turn of the loop: the next step starts "
                    "only after it",
                    at=(function, node),
                    evidence=f"`{name}` is the result of a jitted function in the same loop",
                    fix=f"keep `{name}` as it is, in a list, and bring all to the host after the loop, or every "
                    "hundredth turn",
                )
            elif (value := _from_outside(function, node)) is not ...:
                yield host_transfer.finding(
                    f"`{function.source(node)}` brings an array to the host while {evidence.name} is traced, and "
                    "bakes it in",
                    at=(function, node),
                    evidence=f"it is {safe_text(value)}, and not traced; the trace waited until it was computed",
                    fix="compute with the array itself, or pass it as an argument",
                    severity="note",
                )


def _in_driver(evidence: Evidence) -> Iterator[Finding]:
    """Yield a note for each place in a loop where a driver, an uncompiled training loop, waits for a result.

    After the loop that is right.
    """
    for function in evidence.functions:
        reported: set[int] = set()
        for node, result in taken_results(function):
            loops = [outer for outer in function.around(node) if isinstance(outer, (*_LOOPS, *_COMPREHENSIONS))]
            place = node.test if isinstance(node, (ast.If, ast.While)) else node
            if not loops or _is_rare(function, node, loops[0]) or place.lineno in reported:
                continue
            reported.add(place.lineno)
            yield host_transfer.finding(
                f"`{function.short(place)}` waits for the device in each turn of the loop: the next step starts only "
                "after it",
                at=(function, place),
                evidence=f"`{result}` is the result of a jitted function in the same loop",
                fix=f"keep `{result}` as it is, in a list, and bring all to the host after the loop, or every "
                "hundredth turn",
                severity="note",
            )


def _callbacks(evidence: Evidence) -> Iterator[Finding]:
    program = evidence.program
    for equation in program.of("io_callback", "pure_callback"):
        if in_loop(equation):
            frame = program.called_from(equation)
            yield host_transfer.finding(
                f"{CALLBACKS[equation.op]} calls back into Python in each turn of a compiled loop",
                evidence=f"the loop's body has {equation.op}: arguments go to the host, and results come back",
                fix="compute it with JAX in the loop; or collect what is needed, and call back once after it",
                **frame_location(frame),
            )


def _waits(function: FunctionSource) -> Iterator[tuple[ast.Call, str]]:
    """Yield the calls in Python loops that bring a jitted function's result to the host, with its name."""
    for loop in [node for kind in _LOOPS for node in function.by_type[kind]]:
        results = dict.fromkeys(_jitted_results(function, loop), "")
        calls = [node for node in ast.walk(loop) if isinstance(node, ast.Call)]
        jitted = {id(node): function.short(node) for node in calls if _is_jitted_call(function, node)}
        for node in calls if results or jitted else ():
            source = None if _is_jax_numpy(function, node) else _taken(node)
            if source is not None and not _is_rare(function, node, loop):
                unnamed = [jitted[id(part)] for part in ast.walk(source) if id(part) in jitted]
                yield from ((node, name) for name in (traced_in(source, results) or unnamed)[:1])


def _jitted_results(function: FunctionSource, loop: ast.AST) -> Iterator[str]:
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign) and _is_jitted_call(function, node.value) and function.reached(node):
            yield from (name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name))


def _is_jitted_call(function: FunctionSource, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and kind_of(function.value(node.func)) is JITTED


def _is_jax_numpy(function: FunctionSource, node: ast.Call) -> bool:
    return function.callees[node].startswith(("jax.numpy", "jax._src.numpy"))


def _taken(node: ast.Call) -> ast.expr | None:
    """Return the expression whose value a call brings to the host; None for other calls."""
    if isinstance(node.func, ast.Attribute) and node.func.attr in BLOCKING_METHODS and not node.args:
        return node.func.value
    return node.args[0] if node.args and last_name(node.func) in BLOCKING_FUNCTIONS else None


def _is_rare(function: FunctionSource, node: ast.AST, loop: ast.AST) -> bool:
    return any(isinstance(outer, ast.If) for outer in takewhile(lambda outer: outer is not loop, function.around(node)))


def _from_outside(function: FunctionSource, node: ast.Call) -> object:
    """Return the concrete array from outside that a call brings to the host; `...` for none."""
    called, callee = node.func, function.callees[node]
    is_known = callee.rpartition(".")[2] in BLOCKING_FUNCTIONS and callee.startswith(("numpy.", "jax.", "builtins."))
    if isinstance(called, ast.Attribute) and called.attr in BLOCKING_METHODS:
        value = function.value(called.value)
    elif node.args and is_known and callee != "builtins.print" and not _is_jax_numpy(function, node):
        value = function.value(node.args[0])
    else:
        return ...
    is_concrete = is_a(value, jax.Array) and not is_tracer(value)
    return value if is_concrete and function.reached(node) else ...


CALLBACKS = {
    "debug_callback": "jax.debug.print or jax.debug.callback",
    "debug_print": "jax.debug.print",
    "io_callback": "io_callback",
    "pure_callback": "pure_callback",
}
_ON_REFERENCES = ("get", "swap", "addupdate")


@rule("slow-path-effect", "EX025", "note", "external-callbacks.html", passive=True)
def slow_path_effect(evidence: Evidence) -> Iterator[Finding]:
    """A program with effects is dispatched in Python on each call.

    Debug callbacks, I/O callbacks and mutable references keep calls off jit's fast path.
    """
    program = evidence.program
    reported: set[tuple[str, str, int]] = set()
    for equation in program.of(*CALLBACKS, *_ON_REFERENCES):
        name = _effect(equation)
        frame = program.called_from(equation) if name else None
        place = (name, "", 0) if frame is None else (name, frame.file, frame.line)
        if name and place not in reported:
            reported.add(place)
            ordered = any("Ordered" in type(effect).__name__ for effect in getattr(equation.raw, "effects", ()))
            yield slow_path_effect.finding(
                f"{name} keeps every call of a compiled {evidence.name} off jit's fast path"
                + (", and makes calls wait for each other" if ordered else ""),
                evidence=f"the program has {'an ordered' if ordered else 'the'} effect {equation.op}: "
                "calls with effects are dispatched in Python",
                fix=f"take {name} out where calls are short and many, or switch it by a static argument",
                **frame_location(frame),
            )


def _effect(equation: Equation) -> str:
    """Return the name of an effect; "" for none, and for callbacks that `host-transfer` reports."""
    if equation.op in CALLBACKS:
        is_transfer = equation.op in ("io_callback", "pure_callback") and in_loop(equation)
        return "" if is_transfer else CALLBACKS[equation.op]
    # Only references from outside: a function's own are gone when it returns.
    is_outer = equation.body.caller is None and equation.op in _ON_REFERENCES
    return "a mutable reference" if is_outer and equation.inputs[0] in equation.body.raw.constvars else ""


def in_loop(equation: Equation) -> bool:
    callers = takewhile(lambda caller: caller.op != "cond", equation.callers())
    return any(caller.op in ("scan", "while") for caller in callers)


@rule("stays-eager", "EX032", "note", "notebooks/Common_Gotchas_in_JAX.html#pure-functions")
def stays_eager(evidence: Evidence) -> Iterator[Finding]:
    """Hot paths compile only functions that just compute and are worth it; this function isn't compiled.

    The finding gives the reason why hot paths leave the function eager.
    """
    status = evidence.hot_status
    if status is None or not status.row.reason:
        return
    row = status.row
    file, line = (row.reason_file, row.reason_line) if row.reason_line else (row.file, row.line)
    cost = f", {duration_text(row.eager_seconds)} each" if isfinite(row.eager_seconds) else ""
    yield stays_eager.finding(
        f"hot paths leave {evidence.name} as it is written: {row.reason}",
        evidence=f"it was called {count_text(row.eager_calls, 'time')} at top level before that was found{cost}",
        fix=row.cure,
        **span_location(file, Span(line, 0, line, 0)),
    )
