"""Rules about traced values: those whose numbers Python needs, and those that outlive their trace."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache  # noqa: TID251 - the user's
from types import FunctionType, MethodType
from typing import Any, cast

import jax

from explorer.capture.safe_reading import class_name, class_variables, is_exactly, is_tracer, kind_of, mro
from explorer.capture.trace_errors import Refusal, refusal
from explorer.model.findings import Finding
from explorer.model.stage import is_library_file
from explorer.pitfalls.evidence import Evidence, list_traced, traced_in, traced_names
from explorer.pitfalls.function_source import FunctionSource, expression_on_line, last_name, span_location
from explorer.pitfalls.outside import Write, write_of
from explorer.pitfalls.rule import rule
from explorer.pitfalls.state import Change, Container, default_values, safe_text


@rule("concretization", "EX009", "error", "errors.html", passive=True)
def concretization(evidence: Evidence) -> Iterator[Finding]:
    """Python needs the value of a traced array, which has none.

    `if`, `float()`, `range()` and similar uses end the trace, because a traced array has no value yet.
    """
    error = evidence.error
    if error is None:
        yield from _swallowed(evidence)
        return
    refused = refusal(error)
    if refused is None or needs_size(error):
        return
    names = ", ".join(f'"{name}"' for name in refused.counts if name.isidentifier())
    origins = "; ".join(origin.strip() for origin in refused.origins)
    constant = f"\nor, if it may be a constant, jax.jit({evidence.name}, static_argnames=({names},))" if names else ""
    yield concretization.finding(
        f"{evidence.name} can't be traced: {refused.problem}",
        evidence=f"the trace ended with {type(error).__name__}{f'; the value came {origins}' if origins else ''}",
        fix=refused.hint + constant,
        **refused_at(refused),
    )


_NUMBERS = ("float", "int", "bool", "complex", "range", "item", "tolist")


def _swallowed(evidence: Evidence) -> Iterator[Finding]:
    """Yield findings for `try: float(x) except Exception`: it raises in each trace, and the fallback is compiled."""
    for function in evidence.functions:
        hiding = [(node, hidden) for node in function.walk(ast.Try, ast.With) if (hidden := _hidden(node))]
        traced = traced_names(evidence, function) if hiding else {}
        for block, hidden in hiding:
            parts = [part for statement in block.body for part in ast.walk(statement)]
            needed = (part for part in parts if _needs_number(function, part, traced) and function.reached(part))
            part = next(needed, None)
            if part is None:
                continue
            text = function.short(part)
            yield concretization.finding(
                f"`{text}` raises whenever {evidence.name} is traced, and `{hidden}` hides it: the compiled program "
                "always takes the path after the error",
                at=(function, part),
                evidence=f"{list_traced(traced, traced_in(part, traced) or [text])} has no value in a trace, and the "
                "trace went on",
                fix="compute with the array itself: jnp.where or jax.lax.cond instead of a branch; or pass the number "
                "as a static argument",
                severity="warning",
            )


def _hidden(node: Any) -> str:
    """Return the text that hides an error of JAX in a block: `except Exception`; "" if nothing does."""
    for text, types in _suppressed(node) if isinstance(node, ast.With) else _handled(node):
        names = {last_name(part) for kind in types for part in ast.walk(kind)}
        if not types or names & _CAUGHT:
            return text
    return ""


def _suppressed(node: ast.With) -> Iterator[tuple[str, list[ast.expr]]]:
    for item in node.items:
        call = item.context_expr
        if isinstance(call, ast.Call) and last_name(call.func) == "suppress":
            yield ast.unparse(call), call.args


def _handled(node: ast.Try) -> Iterator[tuple[str, list[ast.expr]]]:
    for handler in node.handlers:
        if not any(isinstance(part, ast.Raise) for part in handler.body):
            kind = handler.type
            yield ("except", []) if kind is None else (f"except {ast.unparse(kind)}", [kind])


_CAUGHT = frozenset(
    ("Exception", "BaseException", "TypeError", "ConcretizationTypeError", "TracerBoolConversionError")
).union(("TracerArrayConversionError", "TracerIntegerConversionError", "JAXTypeError"))


def _needs_number(function: FunctionSource, node: ast.AST, traced: dict[str, str]) -> bool:
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
            return bool(traced_in(test, traced)) and not isinstance(test, ast.Call)
        case ast.Call(func=ast.Attribute(value=owner, attr="item" | "tolist")):
            return bool(traced_in(owner, traced))
        case ast.Call(func=called, args=[first, *_]):
            is_number = isinstance(called, ast.Name) and called.id in _NUMBERS and function.is_builtin(called)
            return (is_number or function.callees[node].startswith("numpy.")) and bool(traced_in(first, traced))
        case _:
            return False


def needs_size(error: BaseException) -> bool:
    return isinstance(error, jax.errors.NonConcreteBooleanIndexError) or "size argument" in str(error)


def refused_at(refused: Refusal) -> dict[str, Any]:
    if refused.step is None or refused.span is None:
        return {}
    return span_location(refused.step.file, refused.span)


@rule("boolean-mask", "EX010", "error", "notebooks/Common_Gotchas_in_JAX.html#dynamic-shapes", passive=True)
def boolean_mask(evidence: Evidence) -> Iterator[Finding]:
    """The size of an array depends on values, which a compiled program doesn't allow.

    Examples are x[mask], and nonzero, unique or where(condition) without a size.
    """
    error = evidence.error
    refused = refusal(error) if error is not None and needs_size(error) else None
    if error is None or refused is None:
        return
    what = f"`{refused.text}`" if refused.text else "a result"
    yield boolean_mask.finding(
        f"{evidence.name} can't be traced: the shape of {what} depends on values, and a compiled program has one shape",
        evidence=f"the trace ended with {type(error).__name__}",
        fix=refused.hint,
        **refused_at(refused),
    )


@rule(
    "symbolic-equality",
    "EX028",
    "error",
    "export/shape_poly.html#comparison-of-symbolic-dimensions-is-partially-supported",
    passive=True,
)
def symbolic_equality(evidence: Evidence) -> Iterator[Finding]:
    """A comparison of a symbolic dimension with a number is decided once for all sizes.

    `if n == 1` is silently False for a symbolic dimension, even though the size may be 1.
    """
    reported: set[tuple[str, str, int]] = set()
    for test in evidence.undecided:
        key = test.text, test.file, test.line
        if key in reported or is_library_file(test.file):
            continue
        reported.add(key)
        answer = "True" if " != " in test.text else "False"
        yield symbolic_equality.finding(
            f"{evidence.name} tests whether {test.text}: JAX assumes {answer} for every size, which is wrong",
            evidence=f"the trace compared a symbolic dimension, and {test.text} holds for some sizes only",
            fix="compile the special sizes separately, as static sizes; or compute without a special case",
            **span_location(
                test.file,
                expression_on_line(test.file, test.line, lambda node: isinstance(node, ast.Compare)),
            ),
        )


_CACHED = kind_of(lru_cache(lambda: None))


@rule("leaked-tracer", "EX007", "error", "errors.html#jax.errors.UnexpectedTracerError")
def leaked_tracer(evidence: Evidence) -> Iterator[Finding]:
    """A traced value was kept, and can't be used after the trace.

    Globals, attributes, lists and caches keep it. A later use raises `jax.errors.UnexpectedTracerError`.
    """
    yield from _refused_by_flax(evidence)
    yield from _cached(evidence)
    earlier = {id(value) for _, value, _ in evidence.before.tracers()}
    seen: dict[object, int] = {}
    for path, value, holder in evidence.after.tracers():
        if id(value) in earlier:
            yield _from_before(evidence, path, value)
            continue
        change = _change(evidence, path, value, holder)
        write = write_of(evidence, change)
        if write is None and (read := _property(evidence, change)) is not None:
            yield read
            continue
        place: object = path if write is None else (write.function.file, write.span)
        seen[place] = seen.get(place, 0) + 1
        if seen[place] == 1:  # a list of a hundred tracers is one mistake
            yield _left(evidence, path, value, write)


def _change(evidence: Evidence, path: str, value: Any, holder: Container) -> Change:
    changes = evidence.changes
    exact = next((one for one in changes if one.path == path), None)
    outer = next((one for one in changes if one.how == "set" and path.startswith(one.path)), None)
    return exact or outer or Change(path, ..., value, "set", holder.value, holder.path)


def _refused_by_flax(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding if flax.nnx refused to store a traced value in a variable from outside."""
    error, step = evidence.error, evidence.failed_step
    if error is None or step is None or class_name(kind_of(error)) != "flax.errors.TraceContextError":
        return
    yield leaked_tracer.finding(
        f"{evidence.name} changes a variable of flax.nnx that it wasn't passed: a traced value would stay in it, and "
        "flax ends the trace",
        evidence=f"the trace ended with {type(error).__name__}",
        fix="pass the object that has the variable as an argument, and compile with nnx.jit, which returns the "
        "changes: nnx.jit(f)(model, x)",
        **span_location(step.file, step.span),
    )


def _cached(evidence: Evidence) -> Iterator[Finding]:
    seen: set[int] = set()
    for function in evidence.functions:
        for node in function.calls:
            cache = _cache_of(function, node)
            kept = next(filter(is_tracer, _results(cache)), None)
            if kept is None or id(cache) in seen or not function.reached(node):
                continue
            seen.add(id(cache))
            name = last_name(node.func)
            yield leaked_tracer.finding(
                f"the cache of `{name}` keeps a traced value of {evidence.name}: the next call of `{name}` gets it "
                "from there, and computing with it is an error",
                at=(function, node),
                evidence=_kept_text("the cache has", kept),
                fix=f"with jax.ensure_compile_time_eval(): in {name}, so that it computes numbers; or compute it with "
                "NumPy; or leave out the cache: a compiled function computes it once anyway",
            )


def _kept_text(where: str, value: Any) -> str:
    return f"after the trace {where} {safe_text(value)}, which no longer has a value"


def _cache_of(function: FunctionSource, call: ast.Call) -> Any:
    """Return the `functools.cache` that a call uses, as a function or a method; None for other calls."""
    value = function.resolve(call.func)
    if value is ... and isinstance(call.func, ast.Attribute):  # a cache is a descriptor, not a method
        owner = function.resolve(call.func.value)
        value = _held(owner, call.func.attr) if owner is not ... else None
    return value if kind_of(value) is _CACHED else None


def _held(owner: Any, name: str) -> Any:
    return next((names[name] for names in map(class_variables, mro(owner)) if name in names), None)


def _results(cache: Any) -> Iterator[Any]:
    """Yield what a `functools.lru_cache` keeps, and the items of lists and tuples, without running user code."""
    for held in gc.get_referents(cache) if cache is not None else ():
        results: Iterable[Any] = cast(dict[Any, Any], held).values() if type(held) is dict else (held,)
        for result in results:
            yield from result if is_exactly(result, list, tuple) else (result,)


def _property(evidence: Evidence, change: Change) -> Finding | None:
    """Return a finding at the first read of a `functools.cached_property` that kept the value; None for others."""
    name = change.path.rpartition(".")[2]
    if kind_of(_held(change.holder, name)) is not cached_property:
        return None
    reads = (
        (function, node)
        for function in evidence.functions
        for node in function.by_type[ast.Attribute]
        if node.attr == name and function.reached(node) and function.resolve(node.value) is change.holder
    )
    function, node = next(reads, (None, None))
    if function is None or node is None:
        return None
    return leaked_tracer.finding(
        f"`{change.path}` is computed once and kept: it keeps a traced value of {evidence.name}, and using it after "
        "the trace is an error",
        at=(function, node),
        evidence=_kept_text(f"`{change.path}` is", change.after),
        fix=f"make {name} a plain property: a compiled function computes it once anyway; or compute it where the "
        "object is made",
    )


def _left(evidence: Evidence, path: str, value: Any, write: Write | None) -> Finding:
    function = write.function if write is not None else next(iter(evidence.functions), None)
    return leaked_tracer.finding(
        f"{evidence.name} leaves a traced value in `{path}`: using it after the trace is an error",
        at=(function, write.span if write is not None else None if function is None else function.header),
        evidence=_kept_text(f"`{path}` is", value),
        fix=_returned(evidence, path.partition("[")[0]),
    )


def _returned(evidence: Evidence, name: str) -> str:
    function: Any = evidence.function
    function = function.__func__ if type(function) is MethodType else function
    default = default_values(function).get(name) if type(function) is FunctionType else None
    if default is None:
        return f"return it from {evidence.name} instead, and set {name} where {evidence.name} is called"
    return (
        f"{name}=None in the head of {evidence.name}, and in it: {name} = {kind_of(default)()!r} if {name} is None "
        f"else {name}; a default is made once, and kept, so what is to be collected has to be returned"
    )


def _from_before(evidence: Evidence, path: str, value: Any) -> Finding:
    function = next(iter(evidence.functions), None)
    return leaked_tracer.finding(
        f"`{path}` holds a traced value that an earlier trace left: {evidence.name} can't compute with it",
        at=(function, None if function is None else function.header),
        evidence=f"before the trace `{path}` was {safe_text(value)} already",
        fix=f"reset {path.partition('[')[0]}, and return the values to keep from the function that set it",
    )
