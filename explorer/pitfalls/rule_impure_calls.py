"""Rules about calls that happen while tracing only: clocks, random numbers, files, networks and iterators."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from typing import Any

from explorer._jax.arguments import is_jitted
from explorer.capture.safe_reading import class_name, class_variables, kind_of, mro
from explorer.capture.sources import Span
from explorer.model.findings import Finding
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import FunctionSource, is_users_jitted, last_name
from explorer.pitfalls.recorder import Call
from explorer.pitfalls.rule import rule
from explorer.pitfalls.tracing import BLOCKING_FUNCTIONS, BLOCKING_METHODS

_CLOCKS = ("time", "perf_counter", "monotonic", "process_time", "thread_time", "clock_gettime")
_TIMES = (
    *(f"time.{clock}{unit}" for clock in _CLOCKS for unit in ("", "_ns")),
    *(f"time.{name}" for name in ("localtime", "gmtime", "ctime", "asctime", "strftime")),
    *(f"datetime.datetime.{name}" for name in ("now", "utcnow", "today")),
    "datetime.date.today",
)


@rule("impure-time", "EX002", "warning", "notebooks/Common_Gotchas_in_JAX.html#pure-functions")
def impure_time(evidence: Evidence) -> Iterator[Finding]:
    """A clock in a compiled function always shows the time of the trace.

    The time that was read while tracing is a constant of the compiled program.
    """
    # A function that measures jitted functions isn't meant to be compiled: `async-timing` checks it.
    measuring = {id(call) for _, *clocks, _ in timed_calls(evidence) for call in clocks}
    for call, function, _ in evidence.calls:
        if call.callee not in _TIMES or id(call) in measuring:
            continue
        name = call.callee.removeprefix("datetime.")
        started = 0.0 if evidence.recording is None else evidence.recording.started
        moment = datetime.fromtimestamp(started).strftime("%H:%M:%S on %Y-%m-%d")
        yield impure_time.finding(
            f"{name}() is called only while {evidence.name} is traced: each later call sees that same moment",
            at=(function, call.span),
            evidence=f"it was called {call.times}, in a trace at {moment}",
            fix=f"call {name}() outside of {evidence.name}, and pass the result; to measure, call it before and "
            f"after jax.block_until_ready({evidence.name}(…))",
        )
    for call, function, _ in evidence.calls:
        if call.callee != "time.sleep":
            continue
        yield impure_time.finding(
            f"time.sleep() waits while {evidence.name} is traced, and in no call after that",
            at=(function, call.span),
            evidence=f"it waited {call.times}",
            fix=f"wait outside of {evidence.name}",
        )


_MEASURING = tuple(f"time.{clock}{unit}" for clock in ("time", "perf_counter", "monotonic") for unit in ("", "_ns"))


@rule("async-timing", "EX031", "warning", "async_dispatch.html", drivers=True)
def async_timing(evidence: Evidence) -> Iterator[Finding]:
    """A clock that doesn't wait for the result measures only the start of a call.

    A jitted function returns before the device has computed anything.
    """
    for function, _, stop, jitted in timed_calls(evidence):
        if jitted is None:
            continue
        call = function.short(jitted)
        yield async_timing.finding(
            f"the time up to here is that of starting `{call}`, not of computing it: a jitted function returns before "
            "the device is done",
            at=(function, stop.span),
            evidence="nothing between the two clocks waits for the result",
            fix=f"jax.block_until_ready({call}) before the clock is read again; or explorer.time, which waits",
        )


def timed_calls(evidence: Evidence) -> Iterator[tuple[FunctionSource, Call, Call, ast.Call | None]]:
    """Yield pairs of successive clocks around a jitted call; none if the target is jitted.

    Yields:
        The function, the two clock calls, and the last jitted call between them; None if a call between them blocks.
    """
    by_function: dict[int, tuple[FunctionSource, list[Call]]] = {}
    for call, function, _ in evidence.calls:
        if function is not None and call.callee in _MEASURING:
            by_function.setdefault(id(function), (function, []))[1].append(call)
    if not by_function or is_jitted(evidence.target):
        return
    for function, clocks in by_function.values():
        for start, stop in pairwise(sorted(clocks, key=lambda one: one.span)):
            # In the order of execution, which is that of their ends.
            calls = sorted(function.calls, key=lambda node: Span.of(node)[2:])
            between = [node for node in calls if start.span[2:] < Span.of(node)[2:] < stop.span[2:]]
            jitted = [node for node in between if is_users_jitted(function.resolve(node.func))]
            if jitted:
                waits = any(last_name(node.func) in BLOCKING_METHODS | BLOCKING_FUNCTIONS for node in between)
                yield function, start, stop, None if waits else jitted[-1]


_RANDOM = (
    "random.",
    "_random.",
    "numpy.random.",
    "uuid.uuid1",
    "uuid.uuid4",
    "secrets.",
    "posix.urandom",
    "nt.urandom",
)
_IDS = ("uuid.", "secrets.token", "posix.urandom", "nt.urandom")
_AS_NUMBERS = frozenset(("int", "fields", "node", "time", "time_low"))
_AS_TEXT = frozenset(("str", "repr", "hex", "format", "hash", "print", "bytes", "b64encode", "append", "add"))
# These draw nothing: they make a generator, or read or set its state.
_MAKERS = frozenset[str]().union(
    ("default_rng", "RandomState", "Generator", "Random", "SystemRandom", "SeedSequence"),
    ("BitGenerator", "__init__", "PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64", "seed"),
    ("getstate", "setstate", "get_state", "set_state", "spawn", "generate_state", "get_bit_generator"),
    ("set_bit_generator",),
)
# Functions of jax.random, with the names that Python and NumPy have for them; the last ones have the same name.
_OF_JAX = {
    **dict.fromkeys(("randn", "standard_normal", "gauss", "normalvariate"), "normal"),
    **dict.fromkeys(("rand", "random", "random_sample"), "uniform"),
    **dict.fromkeys(("integers", "randrange"), "randint"),
    **dict.fromkeys(("standard_exponential", "expovariate"), "exponential"),
    **{"shuffle": "permutation", "sample": "choice", "standard_gamma": "gamma"},
    **{name: name for name in ("normal", "uniform", "randint", "permutation", "choice", "exponential", "gamma")},
    **{name: name for name in ("beta", "binomial", "poisson", "laplace", "gumbel", "dirichlet", "multivariate_normal")},
    **{name: name for name in ("rayleigh", "pareto", "logistic", "geometric")},
}


@rule("impure-random", "EX003", "warning", "random-numbers.html")
def impure_random(evidence: Evidence) -> Iterator[Finding]:
    """Random numbers that Python or NumPy draws while tracing are constants of the compiled program.

    Each later call uses the same numbers again. `jax.random` draws when the program runs.
    """
    for call, function, node in evidence.calls:
        name = call.callee.rpartition(".")[2]
        if name in _MAKERS or not call.callee.startswith(_RANDOM):
            continue
        text = name
        if function is not None and node is not None:
            is_id = call.callee.startswith(_IDS) and _is_name(function, node)
            if is_id or _is_seeded_here(function, node):
                continue
            text = function.source(node.func) if isinstance(node.func, (ast.Name, ast.Attribute)) else name
        yield impure_random.finding(
            f"{text}() draws while {evidence.name} is traced: each call after that gets the same numbers again",
            at=(function, call.span),
            evidence=f"it drew {call.times} in the trace, and won't draw again",
            fix=_random_fix(evidence, call, name),
        )


def _is_name(function: FunctionSource, node: ast.Call) -> bool:
    """Return True if random bytes or a UUID only serve as a name, not as numbers."""
    outer = function.parents.get(node)
    named = outer.targets[0] if isinstance(outer, ast.Assign) else None
    if not isinstance(named, ast.Name):
        return not _is_computed_with(function, node)
    uses = (part for part in function.walk(ast.Name) if part.id == named.id and isinstance(part.ctx, ast.Load))
    return not any(_is_computed_with(function, use) for use in uses)


def _is_computed_with(function: FunctionSource, use: ast.expr) -> bool:
    """Return True if a value is an operand, or is passed to something that makes no text of it."""
    for inner, outer in pairwise([use, *function.around(use)]):
        match outer:
            case ast.Attribute(attr=name) if name in _AS_NUMBERS:
                return True
            case ast.Subscript():
                return True
            case ast.Call(func=called) if inner is not called:
                return last_name(called) not in _AS_TEXT
            case ast.Attribute() | ast.Call():  # of a method: `.hex()`
                continue
            case _:
                return isinstance(outer, ast.BinOp)
    return False


def _is_seeded_here(function: FunctionSource, node: ast.Call) -> bool:
    """Return True if the function itself makes the generator from a seed: it then draws the same without jit."""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if isinstance(owner, ast.Name) and owner.id in function.locals - set(function.parameters):
        assigned = [(target, made.value) for made in function.walk(ast.Assign) for target in made.targets]
        values = [value for target, value in assigned if isinstance(target, ast.Name) and target.id == owner.id]
        owner = values[0] if len(values) == 1 else owner
    if not isinstance(owner, ast.Call) or not (owner.args or owner.keywords):
        return False
    return function.callees[owner].rpartition(".")[2] in _MAKERS


def _random_fix(evidence: Evidence, call: Call, name: str) -> str:
    if name == "randint" and call.callee.startswith("random."):  # Python's randint includes its upper bound
        return f"give {evidence.name} an argument `key`, and draw with jax.random.randint(key, (), low, high + 1)"
    if jax_name := _OF_JAX.get(name, ""):
        return f"give {evidence.name} an argument `key`, and draw with jax.random.{jax_name}(key, …)"
    if call.callee.startswith(("uuid.", "secrets.", "posix.", "nt.")):
        return f"make it outside of {evidence.name}, and pass it as an argument"
    return f"draw outside of {evidence.name} and pass the numbers, or give it an argument `key` for jax.random"


_OPEN = ("builtins.open", "io.open", "_io.open")
_ENVIRONMENT = ("os.getenv", "os.putenv", "os.unsetenv", "os._Environ.", "collections.abc.", "_collections_abc.")
_NETWORK = ("socket.", "_socket.", "urllib.request.", "requests.", "httpx.", "http.client.", "aiohttp.", "ssl.")
_PROCESSES = ("subprocess.", "os.system", "posix.system", "nt.system", "os.popen")
_PATHS = ("pathlib.", "posix.", "nt.", "genericpath.", "posixpath.", "ntpath.", "shutil.", "tempfile.", "glob.")
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
            yield _io_finding(evidence, function, call.span, what, call.times)
    for function in evidence.functions:
        for node in function.by_type[ast.Subscript]:
            if function.value(node.value) is os.environ and function.reached(node):
                yield _io_finding(evidence, function, Span.of(node), "the environment", "once")


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
        standard = sys.stdout, sys.stderr, sys.stdin, sys.__stdout__, sys.__stderr__
        is_memory = callee.startswith(("_io.StringIO", "_io.BytesIO"))
        return not is_memory and not any(call.receiver is stream for stream in standard)
    if callee.startswith("numpy.") and name in _ARRAYS:
        return "npyio" in callee or callee.count(".") == 1
    return callee in _OPEN or (callee.startswith(_PATHS) and name in _TOUCHES)


def _io_finding(evidence: Evidence, function: FunctionSource | None, span: Span, what: str, times: str) -> Finding:
    nodes = [] if function is None else function.walk(ast.expr, ast.stmt)
    node = next((node for node in nodes if Span.of(node) == span), None)
    shown = f"`{function.source(node)}`" if function is not None and node is not None else "this"
    shown = shown if len(shown) < 60 and "\n" not in shown else "this"
    return impure_io.finding(
        f"{shown} accesses {what} while {evidence.name} is traced, and not in later calls: its result is baked in",
        at=(function, span),
        evidence=f"it ran {times} in the trace",
        fix=f"do it outside of {evidence.name} and pass its result as an argument, or call it with "
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
                yield _iterator_finding(evidence, function, node, source, value)


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


def _iterator_finding(
    evidence: Evidence, function: FunctionSource, node: ast.AST, source: ast.expr, value: Any
) -> Finding:
    name = function.source(source)
    is_next = isinstance(node, ast.Call) and last_name(node.func) in ("next", "__next__")
    took, passed = ("the next item", f"next({name})") if is_next else ("items", f"list({name})")
    return iterator.finding(
        f"`{function.source(node)}` takes {took} of {name} while {evidence.name} is traced: "
        f"later calls get the same item, and {name} doesn't advance",
        at=(function, node),
        evidence=f"{name} is a {class_name(kind_of(value)).removeprefix('builtins.')} from outside of the trace",
        fix=f"take {'the item' if is_next else 'the items'} where {evidence.name} is called, and pass "
        f"{'it' if is_next else 'them'}: {evidence.name}(…, {passed}); the body of a compiled loop takes an "
        "array with an item for each turn",
    )
