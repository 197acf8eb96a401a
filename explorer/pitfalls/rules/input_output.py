"""Rules about files, the environment, the network and iterators that are read while tracing."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from typing import Any

from explorer.capture.safe_reading import class_name, class_variables, kind_of, mro
from explorer.capture.sources import Span
from explorer.model.findings import Finding
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import FunctionSource, last_name
from explorer.pitfalls.recorder import Call
from explorer.pitfalls.rule import rule

_OPEN = ("builtins.open", "io.open", "_io.open")
_ENVIRONMENT = ("os.getenv", "os.putenv", "os.unsetenv", "os._Environ.", "collections.abc.", "_collections_abc.")
_NETWORK = ("socket.", "_socket.", "urllib.request.", "requests.", "httpx.", "http.client.", "aiohttp.", "ssl.")
_PROCESSES = ("subprocess.", "os.system", "posix.system", "nt.system", "os.popen")
_PATHS = ("pathlib.", "posix.", "nt.", "genericpath.", "posixpath.", "ntpath.", "shutil.", "tempfile.", "glob.")
_NUMPY = ("numpy.",)
_TOUCHES = frozenset[str]().union(
    ("read_text", "read_bytes", "write_text", "write_bytes", "open", "exists", "is_file", "is_dir"),
    ("stat", "lstat", "unlink", "mkdir", "rmdir", "rename", "replace", "touch", "iterdir", "glob"),
    ("rglob", "isfile", "isdir", "getsize", "getmtime", "listdir", "scandir", "remove", "makedirs"),
    ("copy", "copyfile", "move", "rmtree", "mkstemp", "mkdtemp", "NamedTemporaryFile"),
    ("TemporaryDirectory", "TemporaryFile", "iglob", "copytree"),
)
_ARRAYS = frozenset(("load", "save", "savez", "savez_compressed", "loadtxt", "savetxt", "genfromtxt", "fromfile"))
_FILES = frozenset(("read", "readline", "readlines", "write", "writelines", "seek", "truncate", "flush"))


@rule("impure-io", "EX004", "warning", "external-callbacks.html")
def impure_io(evidence: Evidence) -> Iterator[Finding]:
    """Files, the environment and the network are accessed while tracing, not when the program runs.

    This also applies to other processes: the result of the access is a constant of the program.
    """
    calls = [(call, function, what) for call, function, _ in evidence.calls if (what := _touches(call))]
    # A function that opens a file also reads it: report the open call only.
    opened = {call.code for call, _, _ in calls if call.callee in _OPEN or call.callee.endswith("Path.open")}
    for call, function, what in calls:
        if call.callee in _OPEN or call.code not in opened or not call.callee.startswith("_io."):
            yield _finding(evidence, function, call.span, what, call.times)
    for function in evidence.functions:
        for node in function.by_type[ast.Subscript]:
            if function.value(node.value) is os.environ and function.reached(node):
                yield _finding(evidence, function, Span.of(node), "the environment", "once")


def _touches(call: Call) -> str:
    if _touches_file(call):
        return "a file"
    if call.callee.startswith(_ENVIRONMENT):
        return "the environment" if call.callee.startswith("os.") or call.receiver is os.environ else ""
    if call.callee.startswith(_PROCESSES):
        return "another process"
    return "the network" if call.callee.startswith(_NETWORK) else ""


def _touches_file(call: Call) -> bool:
    callee, name = call.callee, call.callee.rpartition(".")[2]
    if callee.startswith("_io.") and name in _FILES:
        return not callee.startswith(("_io.StringIO", "_io.BytesIO")) and not _is_standard(call.receiver)
    if callee.startswith(_NUMPY) and name in _ARRAYS:
        return "npyio" in callee or callee.count(".") == 1
    return callee in _OPEN or (callee.startswith(_PATHS) and name in _TOUCHES)


def _is_standard(file: Any) -> bool:
    return any(file is stream for stream in (sys.stdout, sys.stderr, sys.stdin, sys.__stdout__, sys.__stderr__))


def _finding(evidence: Evidence, function: FunctionSource | None, span: Span, what: str, times: str) -> Finding:
    nodes = [] if function is None else function.walk(ast.expr, ast.stmt)
    node = next((node for node in nodes if Span.of(node) == span), None)
    shown = f"`{function.source(node)}`" if function is not None and node is not None else "this"
    shown = shown if len(shown) < 60 and "\n" not in shown else "this"
    return impure_io.finding(
        f"{shown} asks {what} while {evidence.name} is traced, and in no call after that: what it gave is baked in",
        at=(function, span),
        evidence=f"it ran {times} in the trace",
        fix=f"do it outside of {evidence.name} and pass what it gives as an argument, or call it with "
        "jax.experimental.io_callback in each run",
    )


# Functions that take items from their arguments.
_TAKERS = frozenset(
    ("next", "zip", "enumerate", "map", "filter", "list", "tuple", "set", "dict", "sum", "max", "min", "sorted")
).union(("any", "all", "islice", "takewhile", "chain", "reduce", "deque"))


@rule("iterator", "EX008", "warning", "notebooks/Common_Gotchas_in_JAX.html#pure-functions")
def iterator(evidence: Evidence) -> Iterator[Finding]:
    """A compiled function consumes an iterator once, while it is traced.

    Later calls of the function get no further items of iterators, generators and files.
    """
    before = () if evidence.recording is None else evidence.recording.arguments_before.values.values()
    outside = set(map(id, (*evidence.before.values.values(), *before)))
    for function in evidence.functions:
        for node, source in _gone_through(function):
            value = function.resolve(source)
            # An iterator from the trace itself is created again in the next trace.
            if value is ... or id(value) not in outside or not function.reached(source):
                continue
            if any("__next__" in class_variables(base) for base in mro(value)):
                yield _found(evidence, function, node, source, value)


def _gone_through(function: FunctionSource) -> Iterator[tuple[ast.AST, ast.expr]]:
    for node in function.nodes:
        match node:
            case ast.For() | ast.AsyncFor() | ast.comprehension():
                yield node.iter, node.iter
            case ast.Starred() | ast.YieldFrom():
                yield node, node.value
            case _:
                continue
    for node in function.calls:
        match node.func:
            case ast.Attribute(attr="__next__", value=owner):
                yield node, owner
            case called if last_name(called) in _TAKERS:
                yield from ((node, argument) for argument in node.args)
            case _:
                continue


def _found(evidence: Evidence, function: FunctionSource, node: ast.AST, source: ast.expr, value: Any) -> Finding:
    name = function.source(source)
    is_next = isinstance(node, ast.Call) and last_name(node.func) in ("next", "__next__")
    took, passed = ("the next item", f"next({name})") if is_next else ("items", f"list({name})")
    return iterator.finding(
        f"`{function.source(node)}` takes {took} of {name} while {evidence.name} is traced: "
        f"calls after that get the same again, and {name} goes no further",
        at=(function, node),
        evidence=f"{name} is a {class_name(kind_of(value)).removeprefix('builtins.')} from outside of the trace",
        fix=f"take {'the item' if is_next else 'the items'} where {evidence.name} is called, and pass "
        f"{'it' if is_next else 'them'}: {evidence.name}(…, {passed}); the body of a compiled loop takes an "
        "array with an item for each turn",
    )
