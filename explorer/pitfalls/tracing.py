"""Evidence of a function: from its trace under observation or, for a driver, from its text.

Drivers are plain Python functions that run jitted steps and read their results. A trace of `for batch in batches:
params, loss = step(params, batch); print(float(loss))` would end at `float(loss)`, which is right as it is: nobody
compiles the loop. To run it would train the model.
"""

from __future__ import annotations

import ast
import inspect
import os
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from inspect import signature
from itertools import count
from threading import get_ident
from types import FunctionType, MethodType
from typing import Any, cast

import jax
from jax import export

from explorer._jax.arguments import is_jitted
from explorer._jax.symbolic import undecided_equalities
from explorer._jax.traces import uncached_traces
from explorer.capture.explore import Described
from explorer.capture.filtered import arrays_of, filtered, is_filtered
from explorer.capture.safe_reading import closure_variables, is_users_object, kind_of
from explorer.capture.sources import Span
from explorer.model.stage import is_library_file
from explorer.pitfalls.evidence import Evidence, comprehensions
from explorer.pitfalls.function_source import (
    FunctionSource,
    function_source,
    hash_of,
    is_compiled,
    jitted_calls,
    last_name,
    targets_of,
)
from explorer.pitfalls.recorder import Call, ExecutedFunction, Recording, record_calls
from explorer.pitfalls.state import reachable, snapshot


def gather(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], record: bool = True) -> Evidence:
    """Return the evidence of one trace of a function, which the rules check. Without `record`, calls are not recorded.

    A driver, which runs jitted steps and reads their results, is read instead of traced.
    """
    users = unwrap(function)
    target: Any = function
    evidence = Evidence(users, function, args, kwargs)
    # A driver's trace would end at the first result that it reads.
    if read_driver(evidence):
        return evidence.collect()
    if isinstance(target, MethodType) and is_jitted(target.__func__):  # its `trace` doesn't pass self
        args = (target.__self__, *args)
        target = target.__func__
    if is_filtered(target):
        target = filtered(target, args, kwargs)
        args, kwargs = arrays_of((tuple(args), kwargs))
    evidence.before = snapshot(reachable(users))
    with (
        _recorded_warnings() as evidence.warnings,
        uncached_traces(),
        undecided_equalities() as evidence.undecided,
        record_calls(users) if record else nullcontext() as evidence.recording,
    ):
        try:
            target = target if hasattr(target, "trace") else jax.jit(_hashable(target))  # jit refuses some callables
            traced = target.trace(*args, **kwargs)
            evidence.leaves = jax.tree.leaves((args, kwargs))
            evidence.traced = traced if hasattr(traced, "jaxpr") else traced.traced  # flax.nnx.jit wraps JAX's
        except Exception as error:  # the rules say why
            evidence.error = error
    evidence.after = snapshot(reachable(users))
    return evidence.collect()


def _hashable(function: Any) -> Any:
    """Return a callable object that hashes by value in a `partial`, others as they are: a model may hold arrays, which
    have no hash, and `jax.jit` hashes its function.
    """
    if type(function) is FunctionType:
        return function
    by_value = hash_of(kind_of(function)) is not object.__hash__
    return partial(function) if by_value and is_users_object(function) else function


def unwrap(function: Any) -> Any:
    """Return the user's function below jit, partial() and decorators that set `__wrapped__`."""
    for _ in range(100):  # a decorator may name itself
        if isinstance(function, partial):
            function = function.func
        elif type(function) is MethodType and is_jitted(function.__func__):
            function = MethodType(unwrap(function.__func__), function.__self__)
        elif type(function) is not MethodType and "__wrapped__" in getattr(function, "__dict__", {}):
            if _only_takes_its_name(function):
                break
            function = function.__wrapped__
        else:
            break
    return function


def _only_takes_its_name(function: Any) -> bool:
    """Return True if a user's function wraps a library's function, as `@wraps(jnp.sin)` does."""
    own, wrapped = file_of(function), file_of(unwrap(function.__wrapped__))
    return bool(own) and not is_library_file(own) and (not wrapped or is_library_file(wrapped))


def file_of(function: Any) -> str:
    """Return the file that defines a Python function, and "" for other callables."""
    return getattr(getattr(function, "__code__", None), "co_filename", "")


@contextmanager
def _recorded_warnings() -> Generator[list[tuple[str, str, int]]]:
    """Yield a list that gets the warnings of this thread as (message, file, line), whatever the user's filters are.

    Warnings are shown as usual, but none is raised: a filter "error" would end the trace at the first one.
    """
    recorded: list[tuple[str, str, int]] = []
    thread = get_ident()
    filters = tuple(warnings.filters)
    with warnings.catch_warnings():
        show = warnings.showwarning

        def listen(message: Any, category: Any, filename: str, lineno: int, *rest: Any, **named: Any) -> None:
            is_new = True
            if get_ident() == thread:  # filters are shared by all threads
                at = _users_line(filename, lineno) if is_library_file(filename) else (filename, lineno)
                is_new = (str(message), *at) not in recorded
                recorded.append((str(message), *at))
            if is_new and _is_shown(filters, str(message), category, filename, lineno):
                show(message, category, filename, lineno, *rest, **named)

        warnings.simplefilter("always")
        warnings.showwarning = listen
        yield recorded


def _is_shown(filters: Sequence[Any], message: str, category: type[Warning], file: str, line: int) -> bool:
    name = os.path.splitext(os.path.basename(file))[0]  # filters match the module's name
    for action, text, kind, module, at in filters:
        if issubclass(category, kind) and at in (0, line) and _matches(text, message) and _matches(module, name):
            return action != "ignore"
    return True


def _matches(pattern: Any, text: str) -> bool:
    """Return True if a warning filter's pattern matches. None matches all; Python's own filters hold plain strings."""
    return pattern is None or (pattern == text if type(pattern) is str else pattern.search(text) is not None)


def _users_line(file: str, line: int) -> tuple[str, int]:
    """Return (file, line) of the user's that is running, else those given: JAX gives many warnings its own lines."""
    frame = inspect.currentframe()
    while frame is not None and is_library_file(frame.f_code.co_filename):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else (file, line)


def symbolic_arguments(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]] | None:
    """Return the arguments with symbols for sizes that vary; None if no size varies, or JAX can't take the bounds."""
    leaves, tree = cast(tuple[list[Any], Any], jax.tree.flatten((list(args), kwargs), is_leaf=_is_described))
    bounds: dict[str, tuple[int, int]] = {}
    numbers = count()
    shapes = {
        id(leaf): _shape(leaf, bounds, numbers)
        for leaf in leaves
        if _is_described(leaf) and hasattr(leaf, "shape_bounds") and leaf.shape_bounds.min != leaf.shape_bounds.max
    }
    if not shapes:
        return None
    limits: list[str] = []
    for name, (low, high) in bounds.items():
        limits += [f"{name} >= {max(low, 1)}", f"{name} <= {high}"]

    def symbolic(leaf: Any) -> Any:
        if id(leaf) in shapes:
            return jax.ShapeDtypeStruct(export.symbolic_shape(shapes[id(leaf)], scope=scope), leaf.dtype)
        return _plain(leaf)

    try:
        scope = export.SymbolicScope(limits)
        described = list(map(symbolic, leaves))
    except ValueError:  # the bounds admit no size
        return None
    return cast(tuple[list[Any], dict[str, Any]], jax.tree.unflatten(tree, described))


def plain_arguments(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    return jax.tree.map(_plain, (args, kwargs), is_leaf=_is_described)


def _plain(leaf: Any) -> Any:
    return leaf.to_struct() if _is_described(leaf) else leaf


def _is_described(leaf: Any) -> bool:
    return issubclass(type(leaf), Described)


def _shape(leaf: Any, bounds: dict[str, tuple[int, int]], numbers: Any) -> str:
    """Return a shape as JAX parses it: `(batch, 128,)`. `bounds` collects the bounds of the symbols."""
    low, high = leaf.shape_bounds.min, leaf.shape_bounds.max
    sizes: list[str] = []
    for axis, dimension in enumerate(leaf.shape):
        if low[axis] == high[axis]:
            sizes.append(str(low[axis]))
            continue
        name = getattr(dimension, "name", None) or f"size_{next(numbers)}"
        bounds[name] = low[axis], high[axis]
        sizes.append(name)
    return f"({', '.join(sizes)},)"


# Calls that wait until a value is computed.
BLOCKING_METHODS = frozenset(("item", "tolist", "block_until_ready", "__array__", "__float__", "__int__"))
BLOCKING_FUNCTIONS = frozenset(("float", "int", "bool", "asarray", "array", "device_get", "block_until_ready", "print"))
_TAKING = frozenset(("float", "int", "bool", "str", "print", "device_get", "block_until_ready", "format"))
_TAKING_METHODS = frozenset(("item", "tolist", "block_until_ready"))
_PASSES = 2  # over assignments: what is computed of a result is a result, and what is computed of that


def read_driver(evidence: Evidence) -> bool:
    """Fill an evidence from the text, if its function is a driver, and return True; else return False.

    A driver is a function that isn't compiled, runs jitted functions and takes the values of their results.
    """
    function: Any = evidence.function
    plain = function.__func__ if type(function) is MethodType else function
    if type(plain) is not FunctionType or is_jitted(evidence.target) or evidence.is_jitted:
        return False
    if not _names_jitted(plain):
        return False
    owner = function.__self__ if type(function) is MethodType else None
    executed = _executed(plain, owner, evidence.args, evidence.kwargs)
    inner = [_of_code(code, executed) for code in comprehensions(plain.__code__)]
    source = function_source(executed, inner)
    if source is None or next(taken_results(source), None) is None:
        return False
    recording = Recording(watched=plain.__code__)
    recording.executed = {one.code: one for one in (executed, *inner)}
    for node in source.calls:
        if callee := source.callees[node]:
            recording.keep(Call(plain.__code__, Span.of(node), callee, _receiver(source, node)))
    evidence.recording, evidence.is_driver = recording, True
    return True


def _names_jitted(function: FunctionType) -> bool:
    """Return True if a function names a jitted function, or `jit`: most name none, and are not parsed for this."""
    code, values = function.__code__, {**function.__globals__, **closure_variables(function)}
    names = {*code.co_names, *code.co_freevars, *(name for one in comprehensions(code) for name in one.co_names)}
    return any("jit" in name or is_compiled(values.get(name, ...)) for name in names)


def _executed(plain: FunctionType, owner: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> ExecutedFunction:
    """Return the record of a function with all of its code marked as executed; the function doesn't run."""
    try:
        given = args if owner is None else (owner, *args)
        arguments = dict(signature(plain).bind(*given, **kwargs).arguments)
    except TypeError:  # arguments that don't fit
        arguments = {}
    one = ExecutedFunction(plain.__code__, plain.__globals__, closure_variables(plain), owner, arguments=arguments)
    return _of_code(plain.__code__, one)


def _of_code(code: Any, outer: ExecutedFunction) -> ExecutedFunction:
    offsets = set(range(0, len(code.co_code), 2))
    return ExecutedFunction(code, outer.globals, outer.free, outer.owner, offsets=offsets, arguments=outer.arguments)


def _receiver(source: FunctionSource, node: ast.Call) -> Any:
    value = source.value(node.func.value) if isinstance(node.func, ast.Attribute) else ...
    return None if value is ... else value


def result_names(source: FunctionSource) -> dict[str, str]:
    """Return the names, as keys, that have results of jitted calls or what is computed of them; each value is ""."""
    called = {id(call) for call in jitted_calls(source)}
    names: dict[str, str] = {}
    assigned = [node for node in source.walk(ast.Assign, ast.AugAssign, ast.AnnAssign) if node.value is not None]
    for _ in range(_PASSES):
        for node in assigned:
            parts = list(ast.walk(node.value))
            is_result = any(id(part) in called for part in parts) or any(
                isinstance(part, ast.Name) and part.id in names for part in parts
            )
            if is_result and not any(_takes(source, part, names, called) for part in parts):
                names |= {last_name(target): "" for target in targets_of(node) if isinstance(target, ast.Name)}
        names |= dict.fromkeys(_lists_of_results(source, names, called), "")
    return names


def _lists_of_results(source: FunctionSource, names: dict[str, str], called: set[int]) -> Iterator[str]:
    """Yield the names of the lists that results are appended to as they are."""
    for node in source.calls:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[given]):
                if _result_in(source, [given], names, called) and not _takes(source, given, names, called):
                    yield name
            case _:
                continue


def taken_results(source: FunctionSource) -> Iterator[tuple[Any, str]]:
    """Yield (syntax node, text of the result) where Python takes the value of a result of a jitted call."""
    called = {id(call) for call in jitted_calls(source)}
    names = result_names(source) if called else {}
    for node in source.nodes if called else ():
        taken = _takes(source, node, names, called)
        if taken:
            yield node, taken


def _takes(source: FunctionSource, node: ast.AST, names: dict[str, str], called: set[int]) -> str:
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in _TAKING_METHODS:
            return _result_in(source, [owner], names, called)
        case ast.Call(func=function, args=given):
            callee = source.callees[node]
            takes = last_name(function) in _TAKING or callee.startswith(("numpy.", "builtins.print"))
            is_jax = callee.startswith("jax.") and last_name(function) not in _TAKING
            return _result_in(source, given, names, called) if takes and not is_jax else ""
        case ast.FormattedValue(value=value):
            return _result_in(source, [value], names, called)
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
            # `is None` asks nothing of an array.
            is_plain = isinstance(test, ast.Compare) and all(isinstance(op, (ast.Is, ast.IsNot)) for op in test.ops)
            return "" if is_plain or isinstance(test, ast.Call) else _result_in(source, [test], names, called)
        case _:
            return ""


def _result_in(source: FunctionSource, nodes: Sequence[ast.AST], names: dict[str, str], called: set[int]) -> str:
    for node in nodes:
        for part in ast.walk(node):
            if id(part) in called or (isinstance(part, ast.Name) and part.id in names):
                return source.short(part)
    return ""
