"""Files, the environment, processes and the network: asked while the function is traced, and never again."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from typing import Any

from explorer.capture.sources import Span
from explorer.model.findings import Finding
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import FunctionSource
from explorer.pitfalls.recorder import Call
from explorer.pitfalls.rule import Rule

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


def check(evidence: Evidence) -> Iterator[Finding]:
    calls = [(call, function, what) for call, function in evidence.calls() if (what := _touches(call))]
    # Who opens a file reads it: that is said once.
    opened = {call.code for call, _, _ in calls if call.callee in _OPEN or call.callee.endswith("Path.open")}
    for call, function, what in calls:
        if call.callee in _OPEN or call.code not in opened or not call.callee.startswith("_io."):
            yield _finding(evidence, function, call.span, what, call.times)
    for function in evidence.functions:
        for node in function.walk(ast.Subscript):
            if function.value(node.value) is os.environ and function.reached(node):
                yield _finding(evidence, function, Span.of(node), "the environment", "once")


def _touches(call: Call) -> str:
    """What a call asks or changes outside of the program; empty if nothing."""
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
    node: Any = function.at(span) or function.call_at(span) if function is not None else None
    shown = f"`{function.source(node)}`" if function is not None and node is not None else "this"
    shown = shown if len(shown) < 60 and "\n" not in shown else "this"
    return RULE.finding(
        f"{shown} asks {what} while {evidence.name} is traced, and in no call after that: what it gave is baked in",
        function=function,
        span=span,
        evidence=f"it ran {times} in the trace",
        fix=f"do it outside of {evidence.name} and pass what it gives as an argument, or call it with "
        "jax.experimental.io_callback in each run",
    )


RULE = Rule(
    "impure-io",
    "EX004",
    "warning",
    "Files, the environment and the network are asked while a function is traced, and not when it runs.",
    "https://docs.jax.dev/en/latest/external-callbacks.html",
    check,
)
