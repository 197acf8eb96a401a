"""Evidence for the rules: one trace of a function, its calls, and its side effects."""

from __future__ import annotations

import ast
import inspect
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import starmap
from types import CodeType, FunctionType, MethodType
from typing import Any, cast

import jax

from explorer._jax.symbolic import Undecided
from explorer.analysis.sharding.program import Waste
from explorer.capture.explore import HoldsState
from explorer.capture.frames import Step, users_steps
from explorer.capture.origins import HotStatus, hot_status
from explorer.capture.safe_reading import member
from explorer.capture.sources import Span
from explorer.model.capture import Capture
from explorer.model.declared import cached_property
from explorer.model.events.event import Event
from explorer.model.graph import Node
from explorer.pitfalls.checked_run import CheckedRun, check_gradient, check_values
from explorer.pitfalls.equations import Equation, Program
from explorer.pitfalls.function_source import (
    CallArgument,
    FunctionSource,
    call_arguments,
    function_source,
    last_name,
    source_of,
    span_location,
    targets_of,
)
from explorer.pitfalls.gradient_faults import GradientFault, find_faults
from explorer.pitfalls.gradient_slices import flat_arguments
from explorer.pitfalls.recorder import Call, Recording
from explorer.pitfalls.state import Change, Snapshot, reachable, snapshot


@dataclass(frozen=True)
class Argument:
    path: str  # `x`, `state['step']`
    variable: Any  # of the jaxpr
    donated: bool  # whether the call may write over it

    @property
    def aval(self) -> Any:
        return self.variable.aval


@dataclass(repr=False)
class Evidence:
    """Record of one trace of a function, and the facts about it that the rules read."""

    function: Callable[..., Any]  # the user's function below `jax.jit`, `partial` and decorators
    target: Any  # what was traced: `function`, or the `jax.jit` around it
    args: Sequence[Any] = ()  # args, kwargs: as they were passed
    kwargs: dict[str, Any] = field(default_factory=dict[str, Any])
    # what ran and was called; None where only rules that need none run (`Rule.passive`)
    recording: Recording | None = None
    # before, after: what the function can reach by name, around the trace
    before: Snapshot = field(default_factory=Snapshot)
    after: Snapshot = field(default_factory=Snapshot)
    traced: Any = None  # the `jax.stages.Traced`; None if the trace failed, or none was made
    error: BaseException | None = None  # what ended the trace
    warnings: Sequence[tuple[str, str, int]] = ()  # warnings of Python and JAX meanwhile: message, file, line
    leaves: Sequence[Any] = ()  # the passed values in the order of the jaxpr, where nothing static is among them
    deadline: float = 0.0  # of the thread's time: what runs or compiles pieces of the program stops then
    undecided: Sequence[Undecided] = ()  # the comparisons of symbolic dimensions that hold for some sizes only
    events: Sequence[Event] = ()  # the compiles in a ledger, where one was passed
    # of the compiled program, where it spans several devices or is for a target; rules look at it then
    capture: Capture | None = None
    waste: Sequence[Waste] | None = None  # what `sharded.wastes` found in it; None before it looked
    # reports the gain of fixing a waste on a line, by one compile; None if fixes aren't tried
    try_fix: Callable[[Evidence, Waste, int], str] | None = None
    # Collected once after the trace, so that the rules read plain data.
    name: str = field(init=False)
    is_driver: bool = False  # it runs jitted steps, and was read and not traced
    is_jitted: bool = field(init=False)  # it was passed as a `jax.jit` function or its like
    jaxpr: Any = None  # the closed jaxpr; None if the trace failed
    program: Program = field(init=False)  # all equations; none if the trace failed
    arguments: Sequence[Argument] = ()  # array arguments in the order of the jaxpr
    call_arguments: Sequence[CallArgument] = ()  # passed arguments by parameter name
    passed: Sequence[tuple[str, Any]] = ()  # passed values, leaf by leaf, with their paths
    failed_step: Step | None = None  # innermost frame of the user that the trace's error came through
    functions: Sequence[FunctionSource] = ()  # functions of the user that ran, in the order of their first call
    by_code: Mapping[CodeType, FunctionSource] = field(default_factory=dict[CodeType, FunctionSource])
    # the recorded calls, each with its function and syntax node, where their text is available
    calls: Sequence[tuple[Call, FunctionSource | None, ast.Call | None]] = ()
    argument_changes: Sequence[Change] = ()  # changes of the trace in its containers, JAX's copies of the caller's
    changes: Sequence[Change] = ()  # changes of the trace outside of its own variables
    captured: frozenset[int] = frozenset()  # addresses of containers that are read on every call, as declared state
    faults: list[str] = field(default_factory=list[str])  # what could not be collected

    def __post_init__(self) -> None:
        function = self.function
        self.is_jitted = self.target is not function
        self.name = getattr(function, "__name__", type(function).__name__)
        # `@wraps(jnp.sin)` gives the user's function a library's name: the code object has its own.
        if type(function) is FunctionType and "__wrapped__" in function.__dict__:
            self.name = function.__code__.co_name

    def collect(self) -> Evidence:
        """Fill in the facts for the rules, from the trace and its recording, and return `self`."""
        self.jaxpr = None if self.traced is None else self.traced.jaxpr
        self.deadline = time.thread_time() + MAX_SECONDS
        self.program = Program(_no_equations() if self.jaxpr is None else self.jaxpr)
        for part in (self._collect_arguments, self._collect_functions, self._collect_changes):
            try:
                part()
            except Exception as error:  # an object of the user may raise anything
                self.faults.append(f"evidence: {type(error).__name__}: {error}")
        return self

    def _collect_arguments(self) -> None:
        self.failed_step = None if self.error is None else next(iter(users_steps(self.error)), None)
        if self.traced is not None:
            raw = self.program.main.raw
            names = tuple(map(str, getattr(raw.debug_info, "arg_names", None) or ()))
            infos: list[Any] = jax.tree.leaves(self.traced.args_info)
            if not len(names) == len(infos) == len(raw.invars):
                self.arguments = tuple(Argument("", variable, False) for variable in raw.invars)
            else:
                donated = (bool(info.donated) for info in infos)
                self.arguments = tuple(starmap(Argument, zip(names, raw.invars, donated, strict=True)))
        self.passed = tuple(_passed_values(self))
        self.call_arguments = tuple(call_arguments(self.target, self.args, self.kwargs))

    def _collect_functions(self) -> None:
        executed = {} if self.recording is None else self.recording.executed
        sources = (
            function_source(function, (executed[code] for code in comprehensions(function.code) if code in executed))
            for function in executed.values()
        )
        self.functions = tuple(source for source in sources if source is not None)
        self.by_code = {
            code: function
            for function in self.functions
            for code in (function.executed.code, *comprehensions(function.executed.code))
        }
        calls: list[tuple[Call, FunctionSource | None, ast.Call | None]] = []
        for call in () if self.recording is None else self.recording.calls:
            function = self.by_code.get(call.code)
            node = None if function is None else function.calls_by_end.get(call.span[2:])
            if node is not None:  # of a call over several lines Python gives another start
                call.span = Span.of(node)
            calls.append((call, function, node))
        self.calls = tuple(calls)

    def _collect_changes(self) -> None:
        self.changes = tuple(self.before.changes(self.after))
        if self.recording is not None:
            self.argument_changes = tuple(self.recording.arguments_before.changes(snapshot(self.recording.arguments)))
        if issubclass(type(self.target), HoldsState):
            self.captured = frozenset(snapshot({"state": self.target.captured}).holders)

    def tree_nodes(self) -> Iterator[tuple[Any, Any]]:
        """Yield the class and the static data of each container in the arguments, as JAX flattened them."""
        tree = getattr(self.traced, "in_tree", None)
        waiting: list[Any] = [] if tree is None else [tree]
        while waiting:
            node = waiting.pop()
            waiting += reversed(node.children())
            if (data := node.node_data()) is not None:
                yield data

    @cached_property
    def gradient_faults(self) -> tuple[GradientFault, ...]:
        """Return the values whose gradient is NaN for some input. Pieces of the program are compiled and run."""
        return find_faults(self.program, _MAX_PIECES, self.deadline)

    @cached_property
    def flat_arguments(self) -> dict[int, Equation]:
        """Return the arguments whose gradient is always zero, by number, with the operation that has no derivative."""
        return flat_arguments(self.program)

    @cached_property
    def checked(self) -> CheckedRun | None:
        """Run of the program on the passed arguments; None if it can't be run, or not in time."""
        return None if self.jaxpr is None else check_values(self)

    @cached_property
    def checked_gradient(self) -> CheckedRun | None:
        """Run of the gradient by the passed arguments; None if it wasn't run, or not in time."""
        return None if self.checked is None else check_gradient(self, self.checked)

    @cached_property
    def hot_status(self) -> HotStatus | None:
        """Status of the function on the hot paths; None for a jitted one, or if it wasn't called often while on."""
        return None if self.is_jitted else hot_status(self.function)

    @cached_property
    def lowered(self) -> Any:
        """Return the `jax.stages.Lowered` of the function, or None if lowering failed. Nothing is compiled."""
        with warnings.catch_warnings():
            # Such as donations that no result can use: a rule reports these.
            warnings.simplefilter("ignore")
            try:
                return None if self.traced is None else self.traced.lower()
            except Exception:
                return None


MAX_SECONDS = 1.5  # seconds after the trace for runs and compiles; one that has begun is finished
_MAX_PIECES = 24  # each compile takes some tenths of a second
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


@cache
def _no_equations() -> Any:
    return jax.make_jaxpr(lambda: ())()


def comprehensions(code: CodeType) -> Iterator[CodeType]:
    """Yield the code objects of comprehensions and generator expressions in `code`: Python 3.12 inlines most."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and constant.co_name in _COMPREHENSIONS:
            yield constant
            yield from comprehensions(constant)


def _passed_values(evidence: Evidence) -> Iterator[tuple[str, Any]]:
    function = _called(evidence)
    if function is None:
        return
    try:
        bound = inspect.signature(function).bind(*evidence.args, **evidence.kwargs).arguments
        flat: list[tuple[str, list[tuple[Any, Any]]]] = [
            (name, cast(list[tuple[Any, Any]], jax.tree_util.tree_flatten_with_path(value)[0]))
            for name, value in bound.items()
        ]
    except Exception:  # arguments that don't fit, or a tree of the user's own that can't be taken apart
        return
    for name, leaves in flat:
        for path, leaf in leaves:
            yield name + jax.tree_util.keystr(path), leaf


def reachable_values(evidence: Evidence) -> dict[str, Any]:
    """Return values that the function reaches by name from outside, by path."""
    before = evidence.before if evidence.before.holders else snapshot(reachable(evidence.function))
    return before.values


def _called(evidence: Evidence) -> Any:
    """Return the Python function or method that a call runs, else None. No attribute of a user's object is read."""
    function: Any = evidence.function
    if type(function) is FunctionType:
        return function
    if type(function) is MethodType:
        return function if type(function.__func__) is FunctionType else None
    call = member(function, "__call__")
    return call if type(call) is MethodType and type(call.__func__) is FunctionType else None


def parameter_location(evidence: Evidence, path: str) -> dict[str, Any]:
    """Return a finding's location fields for a parameter in the function's head, else for its first line; {} without
    source.
    """
    source = source_of_target(evidence)
    if source is None:
        return {}
    return span_location(source.file, source.parameter_span(path) or source.header)


def entry_parameter(capture: Capture, number: int) -> Node | None:
    """Return the compiled program's `parameter` instruction with a number; None without one."""
    graph = capture.hlo.graph
    entry = (node for node in graph.nodes if node.op == "parameter" and node.group and node.group.kind == "entry")
    return next((node for node in entry if int(graph.parameter_number[node.index]) == number), None)


def source_of_target(evidence: Evidence) -> FunctionSource | None:
    """Return the source of the evidence's function, or of its object's `__call__`; None without a source."""
    return source_of(_called(evidence))


# Attributes of a traced array that are known while tracing.
_KNOWN = frozenset(
    ("shape", "ndim", "dtype", "size", "itemsize", "nbytes", "aval", "weak_type", "sharding", "__class__", "__name__")
)
_ASKING = frozenset[str]().union(
    ("len", "type", "isinstance", "issubclass", "id", "hasattr", "callable", "shape", "ndim", "size"),
    ("result_type", "typeof", "structure", "tree_structure", "eval_shape", "issubdtype"),
    ("iscomplexobj", "isrealobj", "finfo"),
)


def traced_in(node: ast.AST, names: Mapping[str, str]) -> list[str]:
    """Return those of `names`, the traced ones, that an expression's value depends on, each once.

    What is known while tracing, such as `x.shape`, doesn't count.
    """
    return list(dict.fromkeys(name for name in _names(node) if name in names))


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif not _is_known(node):
        for part in ast.iter_child_nodes(node):
            yield from _names(part)


def _is_known(node: ast.AST) -> bool:
    """Return True if an expression's value is known while tracing, even for a traced operand."""
    match node:
        case ast.Attribute(attr=name):
            return name in _KNOWN
        case ast.Call(func=called):
            return last_name(called) in _ASKING
        case ast.Compare(ops=operators):
            return all(isinstance(operator, (ast.Is, ast.IsNot)) for operator in operators)
        case _:
            return isinstance(node, ast.Lambda)


def traced_names(evidence: Evidence, function: FunctionSource) -> dict[str, str]:
    """Return the local names that held traced values, with their types, or "" for a type that wasn't recorded.

    Types are recorded at calls. Other names follow from the text: names assigned from operators and JAX functions of
    traced values.
    """
    codes = {executed.code for executed in (function.executed, *function.inner)}
    names: dict[str, str] = dict(function.executed.traced)
    for call in evidence.recording.calls if evidence.recording is not None else ():
        if call.code in codes:
            names |= call.traced
    assigned = [node for node in function.walk(ast.Assign, ast.AugAssign, ast.AnnAssign) if node.value is not None]
    # Two passes reach what one turn of a loop hands to the next; a chain over more turns is left out, not guessed.
    for _ in range(2):
        for node in assigned:
            if _computes(function, node.value, names):
                names = {target.id: "" for target in targets_of(node) if isinstance(target, ast.Name)} | names
    return names


def _computes(function: FunctionSource, node: ast.expr, names: Mapping[str, str]) -> bool:
    """Return True if an expression is certainly traced: operators, indexing or JAX functions of traced values."""
    match node:
        case ast.Name(id=name):
            return name in names
        case ast.BinOp(left=left, right=right):
            return any(_computes(function, side, names) for side in (left, right))
        case ast.UnaryOp(operand=operand) if not isinstance(node.op, ast.Not):
            return _computes(function, operand, names)
        case ast.Compare(left=left, comparators=others) if all(isinstance(op, _ORDER) for op in node.ops):
            return any(_computes(function, side, names) for side in (left, *others))
        case ast.Subscript(value=value):
            return _computes(function, value, names)
        case ast.Call(func=called, args=arguments):
            is_jax = function.callees[node].startswith(("jax.", "jaxlib.")) and last_name(called) not in _ASKING
            return is_jax and any(_computes(function, argument, names) for argument in arguments)
        case _:
            return False


_ORDER = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def list_traced(names: Mapping[str, str], some: list[str]) -> str:
    parts = [f"{name}, a traced {names[name]}" if names.get(name) else name for name in some]
    return " and ".join(parts) if len(parts) < 3 else "; ".join(parts[:-1]) + f"; and {parts[-1]}"
