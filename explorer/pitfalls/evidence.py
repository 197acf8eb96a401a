"""All that rules look at: one trace of a function, what ran and was called in it, and what it left changed."""

from __future__ import annotations

import ast
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import starmap
from types import CodeType, FunctionType, MethodType
from typing import Any, cast

import jax

from explorer._jax import Undecided
from explorer.analysis.sharding.program import Waste
from explorer.capture.frames import Step, users_steps
from explorer.capture.safe_reading import member
from explorer.capture.sources import Span
from explorer.capture.state import HoldsState
from explorer.model.capture import Capture
from explorer.model.declared import cached_property
from explorer.model.events.event import Event
from explorer.pitfalls.equations import Program
from explorer.pitfalls.function_source import FunctionSource, function_source, last_name, source_of, span_location
from explorer.pitfalls.gradients.faults import GradientFault, find_faults
from explorer.pitfalls.jits import CallArgument, call_arguments
from explorer.pitfalls.recorder import Call, Recording
from explorer.pitfalls.state import Change, Snapshot, reachable, snapshot


@dataclass(frozen=True)
class Argument:
    """One array argument, or one array in an argument."""

    path: str  # `x`, `state['step']`
    variable: Any  # of the jaxpr
    donated: bool  # whether the call may write over it

    @property
    def aval(self) -> Any:
        return self.variable.aval


@dataclass(repr=False)
class Evidence:
    """What is recorded of one function, called with some arguments."""

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
    warnings: Sequence[tuple[str, str, int]] = ()  # what Python and JAX warned of meanwhile: message, file, line
    undecided: Sequence[Undecided] = ()  # the comparisons of symbolic dimensions that hold for some sizes only
    events: Sequence[Event] = ()  # the compiles in a ledger, where one was passed
    # of the compiled program, where it spans several devices or is for a target; rules look at it then
    capture: Capture | None = None
    waste: Sequence[Waste] | None = None  # what `sharded.wastes` found in it; None before it looked
    # says what the cure of a waste on a line brings, by compiling the program with it; None where it isn't to be
    # tried
    try_cure: Callable[[Evidence, Waste, int], str] | None = None

    @property
    def name(self) -> str:
        # `@wraps(jnp.sin)` gives the user's function the name of a library's: what its `def` says is its own.
        if type(self.function) is FunctionType and "__wrapped__" in self.function.__dict__:
            return self.function.__code__.co_name
        return getattr(self.function, "__name__", type(self.function).__name__)

    @property
    def is_jitted(self) -> bool:
        """Whether its author put it under `jax.jit`, or what compiles as that does."""
        return self.target is not self.function

    @cached_property
    def jaxpr(self) -> Any:
        """The closed jaxpr; None if the trace failed."""
        return None if self.traced is None else self.traced.jaxpr

    @cached_property
    def program(self) -> Program:
        """All its equations; none if the trace failed."""
        return Program(_no_equations() if self.jaxpr is None else self.jaxpr)

    @cached_property
    def arguments(self) -> tuple[Argument, ...]:
        """The arrays that the function was traced with, in the order of the jaxpr's; none if the trace failed."""
        if self.traced is None:
            return ()
        raw = self.program.main.raw
        names = tuple(map(str, getattr(raw.debug_info, "arg_names", None) or ()))
        infos: list[Any] = jax.tree.leaves(self.traced.args_info)
        if not len(names) == len(infos) == len(raw.invars):
            return tuple(Argument("", variable, False) for variable in raw.invars)
        donated = (bool(info.donated) for info in infos)
        return tuple(starmap(Argument, zip(names, raw.invars, donated, strict=True)))

    @cached_property
    def call_arguments(self) -> tuple[CallArgument, ...]:
        """What was passed, by the names of the parameters."""
        return tuple(call_arguments(self.target, self.args, self.kwargs))

    def gather(self) -> None:
        """Work out now what most rules look at; what fails here fails again in the rule that needs it."""
        for name in ("program", "functions", "failed_step", "arguments", "call_arguments"):
            with suppress(Exception):
                getattr(self, name)

    def close(self) -> None:
        """Let go of the program: its equations refer to each other, which would keep its constants."""
        if "program" in vars(self):
            self.program.close()

    @cached_property
    def gradient_faults(self) -> tuple[GradientFault, ...]:
        """Its values whose gradient is NaN somewhere; pieces of the program are run for it."""
        return find_faults(self.program, _MOST_PIECES)

    @cached_property
    def failed_step(self) -> Step | None:
        """The user's innermost step that the error came through; None if the trace worked."""
        return None if self.error is None else next(iter(users_steps(self.error)), None)

    @cached_property
    def functions(self) -> tuple[FunctionSource, ...]:
        """The user's functions that ran, those whose text can be had, in the order in which they first did."""
        executed = {} if self.recording is None else self.recording.executed
        sources = (
            function_source(function, (executed[code] for code in comprehensions(function.code) if code in executed))
            for function in executed.values()
        )
        return tuple(source for source in sources if source is not None)

    @cached_property
    def by_code(self) -> dict[CodeType, FunctionSource]:
        """Each function by its code, and by that of its comprehensions where Python made functions of them."""
        return {
            code: function
            for function in self.functions
            for code in (function.executed.code, *comprehensions(function.executed.code))
        }

    def calls(self, *callees: str) -> Iterator[tuple[Call, FunctionSource | None]]:
        """The calls of these, by name with module (`time.time`); one that ends in a dot stands for all below it.

        Without names: all calls.
        """
        for call, function in self._calls:
            if not callees or any(
                call.callee.startswith(name) if name[-1] == "." else call.callee == name for name in callees
            ):
                yield call, function

    @cached_property
    def _calls(self) -> tuple[tuple[Call, FunctionSource | None], ...]:
        calls = () if self.recording is None else self.recording.calls
        pairs = tuple((call, self.by_code.get(call.code)) for call in calls)
        for call, function in pairs:
            node = function.call_at(call.span) if function is not None else None
            if node is not None:  # of a call over several lines Python gives another start
                call.span = Span.of(node)
        return pairs

    def call_nodes(self, *callees: str) -> Iterator[tuple[Call, FunctionSource, ast.Call]]:
        """`calls`, each with its node; without those whose text can't be had."""
        for call, function in self.calls(*callees):
            node = function.call_at(call.span) if function is not None else None
            if function is not None and node is not None:
                yield call, function, node

    @cached_property
    def captured(self) -> frozenset[int]:
        """The addresses of the containers whose content the function reads anew in each call, as state."""
        if not issubclass(type(self.target), HoldsState):
            return frozenset()
        return frozenset(snapshot({"state": self.target.captured}).holders)

    @property
    def started(self) -> float:
        """When it was traced, in seconds since 1970."""
        return 0.0 if self.recording is None else self.recording.started

    @cached_property
    def argument_changes(self) -> tuple[Change, ...]:
        """What the trace left changed in the containers that the function was given: JAX's copies of the user's."""
        recording = self.recording
        return () if recording is None else tuple(recording.arguments_before.changes(snapshot(recording.arguments)))

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """What the trace left changed outside of its own variables."""
        return tuple(self.before.changes(self.after))

    @cached_property
    def lowered(self) -> Any:
        """The `jax.stages.Lowered`; None if that failed. Nothing is compiled, and nobody is warned: rules say it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return None if self.traced is None else self.traced.lower()
            except Exception:
                return None


_MOST_PIECES = 24  # each is compiled, in some tenths of a second: too long for the findings that ride on a capture
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


@cache
def _no_equations() -> Any:
    return jax.make_jaxpr(lambda: ())()


def comprehensions(code: CodeType) -> Iterator[CodeType]:
    """What Python made functions of in a function, besides its own `def` and `lambda`."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and constant.co_name in _COMPREHENSIONS:
            yield constant
            yield from comprehensions(constant)


def passed_values(evidence: Evidence) -> Iterator[tuple[str, Any]]:
    """What was passed, array by array, by path."""
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
    """What the function has by name besides its arguments, by path."""
    before = evidence.before if evidence.before.holders else snapshot(reachable(evidence.function))
    return before.values


def _called(evidence: Evidence) -> Any:
    """What Python calls: a function or a method with its object; None if that is neither. Asks the object nothing."""
    function: Any = evidence.function
    if type(function) is FunctionType:
        return function
    if type(function) is MethodType:
        return function if type(function.__func__) is FunctionType else None
    call = member(function, "__call__")
    return call if type(call) is MethodType and type(call.__func__) is FunctionType else None


def parameter_location(evidence: Evidence, path: str) -> dict[str, Any]:
    """Where an argument stands in the head of the function; its first line if the argument has no name there."""
    source = source_of_target(evidence)
    if source is None:
        return {}
    return span_location(source.file, source.parameter_span(path) or source.header)


def source_of_target(evidence: Evidence) -> FunctionSource | None:
    """The text of the function itself; of an object, that of its `__call__`."""
    return source_of(_called(evidence))


# What is known of an array while it is traced, and so isn't traced itself.
_KNOWN = frozenset(
    ("shape", "ndim", "dtype", "size", "itemsize", "nbytes", "aval", "weak_type", "sharding", "__class__", "__name__")
)
_ASKING = frozenset[str]().union(
    ("len", "type", "isinstance", "issubclass", "id", "hasattr", "callable", "shape", "ndim", "size"),
    ("result_type", "typeof", "structure", "tree_structure", "eval_shape", "issubdtype"),
    ("iscomplexobj", "isrealobj", "finfo"),
)


def traced_in(node: ast.AST, names: Mapping[str, str]) -> list[str]:
    """The names in an expression whose traced values its value is made of, each once."""
    return list(dict.fromkeys(name for name in _names(node) if name in names))


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif not _is_known(node):
        for part in ast.iter_child_nodes(node):
            yield from _names(part)


def _is_known(node: ast.AST) -> bool:
    """Whether a value isn't traced though what it is asked of may be."""
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
    """A function's own names that stood for traced values, with their types where those were recorded.

    Recorded are those at its calls. The others follow from its text: names that are assigned what operators and JAX
    make of traced values.
    """
    codes = {executed.code for executed in (function.executed, *function.inner)}
    names: dict[str, str] = dict(function.executed.traced)
    for call in evidence.recording.calls if evidence.recording is not None else ():
        if call.code in codes:
            names |= call.traced
    assigned = [node for node in function.walk(ast.Assign, ast.AugAssign, ast.AnnAssign) if node.value is not None]
    # Two passes reach what one turn of a loop hands to the next; a chain over more turns is left out, not guessed.
    for _ in range(2):  # the second time for what a loop's turn reads of the one before
        for node in assigned:
            if _computes(function, node.value, names):
                targets = getattr(node, "targets", None) or [node.target]
                names = {name: "" for target in targets for name in _stored(target)} | names
    return names


def _computes(function: FunctionSource, node: ast.expr, names: Mapping[str, str]) -> bool:
    """Whether a value is certainly traced: made of traced ones by operators, indexing and JAX's functions."""
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
            is_jax = function.callee(node).startswith(("jax.", "jaxlib.")) and last_name(called) not in _ASKING
            return is_jax and any(_computes(function, argument, names) for argument in arguments)
        case _:
            return False


_ORDER = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def _stored(target: ast.AST) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for part in target.elts:
            yield from _stored(part)


def list_traced(names: Mapping[str, str], some: list[str]) -> str:
    """`x, a traced float32[3], and y`."""
    parts = [f"{name}, a traced {names[name]}" if names.get(name) else name for name in some]
    return " and ".join(parts) if len(parts) < 3 else "; ".join(parts[:-1]) + f"; and {parts[-1]}"
