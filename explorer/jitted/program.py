"""What all jit() of one function share: the compiled variants, the state they capture, and the record of the traces."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import RLock, local
from types import SimpleNamespace
from typing import Any, cast
from weakref import WeakSet, ref

import jax
import jax.core
from jax.extend.core import get_opaque_trace_state  # pyright: ignore[reportUnknownVariableType] - half annotated

from explorer._jax import is_in_jaxpr_trace, is_top_level
from explorer._jax.dispatch import with_explained_misses
from explorer.capture.explore import CompileRequest
from explorer.capture.trace_errors import explain_trace_error, guarded
from explorer.errors import ExplorerError, TracedValueError
from explorer.jitted.readers import make_reader
from explorer.jitted.shapeless import PaddedShapes, Shapeless, alike
from explorer.jitted.state import JAX_ARRAY, Reference, Same, paths, read
from explorer.jitted.surface import Passed, also_jax_error, check_positions, name_of_function
from explorer.jitted.switch import is_enabled
from explorer.jitted.traces import (
    Trace,
    explain_call_error,
    measure,
    refuse_frozen,
    refuse_leak,
    warn_full,
    warn_shapes,
    warn_storm,
    warn_unwritten,
    why,
)
from explorer.jitted.trial import Captured, Plan, Structure, Trial
from explorer.model.events.family_counts import warned_functions

_CONVENTION = "nnx"  # the one there is: it says whether two moments are in the same trace
_TIMES = 2  # that a state is read the long way before a short one is made: many a structure comes but once
# What C++ and the end of a trace raise: a user's own errors come out of the trace as they are.
_EXPLAINED = (ValueError, RuntimeError, jax.errors.UnexpectedTracerError)
STORM = 8  # traces of one function, or functions from one line, past which something is wrong

# One call with captured state at a time, whichever the function: several may capture the same state, and while
# one is traced its state holds traced values.
_lock = RLock()


class _Tracing(local):
    """The holders that ongoing traces of this thread will put back, by address, and which trace; innermost last."""

    def __init__(self) -> None:
        self.placed: list[tuple[Mapping[int, int], Any]] = []


_tracing = _Tracing()


@dataclass(frozen=True)
class Options:
    """What jax.jit is told, and how many variants are kept."""

    static_argnums: tuple[int, ...] | None = None
    static_argnames: tuple[str, ...] | None = None
    donate_argnums: tuple[int, ...] | None = None
    donate_argnames: tuple[str, ...] | None = None
    max_specializations: int = 128
    shapeless: bool = False
    passed: Passed = field(default_factory=Passed)

    def for_jax(self, shift: int) -> dict[str, Any]:
        """With the positions moved; one from the end stays. What is passed on as it is isn't among them."""
        given = {name: value for name, value in vars(self).items() if name.startswith(("static", "donate"))}
        for name in ("static_argnums", "donate_argnums"):
            if given[name] is not None:
                given[name] = tuple(i + shift if i >= 0 else i for i in given[name])
        return given


class Program:
    """The variants of one function."""

    def __init__(
        self,
        function: Reference,
        inputs: Reference | None,
        outputs: Reference | None,
        options: Options,
        names: tuple[str, str] = ("inputs", "outputs"),
    ) -> None:
        self.function, self.inputs, self.outputs, self.options = function, inputs, outputs, options
        # By reference, each once, and beside it what messages call it.
        named = {root: name for root, name in zip((inputs, outputs), names, strict=True) if root is not None}
        self.root_references, self.names = tuple(named), tuple(named.values())
        self.has_state = bool(named)
        # Containers that can't be referred to weakly are kept anyway.
        is_kept = all(isinstance(root, Same) for root in named)
        self.kept = tuple(root() for root in named) if is_kept else ()
        self.traces: list[Trace] = []
        self.structures: dict[tuple[Any, ...], Structure] = {}
        self.current: Structure | None = None  # of the last call
        self.has_warned = False
        self.has_warned_full = False
        self.was_full = False
        self.users: WeakSet[Any] = WeakSet()  # the functions that run it
        original = function()
        self.name = name_of_function(original)
        self.signature = _signature(original)
        check_positions(self.name, self.signature, options.for_jax(0))
        passed = options.passed
        also = passed.behind_state(self.signature, self.static_names) if self.has_state else passed.values
        run = self._run()
        self.shapeless = self._shapeless(run) if options.shapeless else None
        run = run if self.shapeless is None else alike(run, self.shapeless)
        self.jitted: Any = jax.jit(run, **options.for_jax(1 if self.has_state else 0), **also)
        self.padded_shapes = self._padded_shapes()
        self.dispatch, self.later_call = self._later_call()

    def _run(self) -> Callable[..., Any]:
        """What jax.jit traces. It doesn't keep this program alive, which keeps it: no collector is needed for them."""
        program = ref(self)

        def run(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True  # IPython leaves such a frame out of a traceback
            self = _living(program())
            trace = self.begin(self.names_of(args, kwargs))
            try:
                return self.run_users(args, kwargs)
            finally:
                measure(self.name, trace)

        def run_with_state(captured: Captured, /, *args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            self = _living(program())
            trial = Trial(iter(captured.arrays))
            try:
                for root, name in zip(self.roots(), self.names, strict=True):
                    trial.place(root, name)
                trace = self.begin([*self.names_of(args, kwargs), *trial.leaves])
                _tracing.placed.append((trial.index, get_opaque_trace_state(convention=_CONVENTION)))
                try:
                    result = self.run_users(args, kwargs)
                finally:
                    _tracing.placed.pop()
                    measure(self.name, trace)
                plan, outputs, outside = trial.changes(() if self.outputs is None else (self.outputs(),))
                if outside:
                    warn_unwritten(self.name, outside)
                # A container that the function returns is emptied of its traced values below: JAX gets another.
                return _copy_containers(result), Captured(plan, outputs)
            finally:
                trial.restore()

        run = run_with_state if self.has_state else run
        run.__name__ = run.__qualname__ = self.name
        code = getattr(self.function(), "__code__", None)
        if code is not None:  # JAX names the place of what is wrapped; the function itself must not be kept alive
            run.__dict__["__wrapped__"] = SimpleNamespace(__name__=self.name, __code__=code)
        if self.signature is not None:
            given = self.signature.parameters
            name = self.names[0] if len(self.names) == 1 else "captured"
            captured = inspect.Parameter(name + "_" * (name in given), inspect.Parameter.POSITIONAL_ONLY)
            run.__signature__ = inspect.Signature([captured, *given.values()] if self.has_state else [*given.values()])
        return run

    def _shapeless(self, run: Callable[..., Any]) -> Shapeless:
        program = ref(self)
        return Shapeless(run, self.traces, lambda reason: warn_shapes(_living(program()).name, reason))

    def _padded_shapes(self) -> PaddedShapes | None:
        """What answers calls of a shapeless function at new shapes; where JAX is told more about arrays, JAX does."""
        options = self.options
        is_plain = not (options.donate_argnums or options.donate_argnames or options.passed.values)
        return PaddedShapes(self.shapeless) if self.shapeless is not None and is_plain else None

    def run_users(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        __tracebackhide__ = True
        function = self.function()
        try:
            return function(*args, **kwargs)
        except Exception as error:
            self.raise_traced_value_error(error)
            raise

    def raise_call_error(self, error: Exception, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Raise what a call failed of in the user's terms, if that is known; else it stays as it is."""
        __tracebackhide__ = True
        if isinstance(error, ExplorerError):  # it is told already
            return
        if isinstance(error, jax.errors.UnexpectedTracerError):  # it comes at the end of a trace, after the function
            self.raise_traced_value_error(error)
        explained = explain_call_error(self.name, self.signature, self.static_names, args, kwargs)
        if explained is not None:
            raise explained from error

    def raise_traced_value_error(self, error: Exception) -> None:
        """Raise a TracedValueError if `error` is about a traced value; other errors are the user's own, and stay."""
        __tracebackhide__ = True
        kind, message = explain_trace_error(error, self.name, "compiled")
        if kind is TracedValueError:
            request = CompileRequest(self.function(), (), {})
            capture = request.empty_capture(f"trace failed: {type(error).__name__}")
            raise also_jax_error(TracedValueError, type(error))(message, capture) from error

    def roots(self) -> tuple[Any, ...]:
        return self.kept or tuple(root() for root in self.root_references)

    def structure(self, key: tuple[Any, ...]) -> Structure:
        """What stands for a key in jax.jit's own cache."""
        structure = self.structures.get(key)
        if structure is None:
            if len(self.structures) >= self.options.max_specializations:
                self.clear()
                self.was_full = True
            structure = self.structures[key] = Structure(self.names_of_state())
        return structure

    def names_of_state(self) -> list[str]:
        """The paths of the captured arrays, below the name of the parameter that stands for them."""
        roots = dict(zip(self.names, self.roots(), strict=True))
        return paths(roots.items() if len(roots) > 1 else [("", *roots.values())])

    def call(self, /, *args: Any, **kwargs: Any) -> Any:
        """A call with captured state: read it, run, write it."""
        __tracebackhide__ = True
        with _lock:
            roots = self.kept or self.roots()
            structure = self.current
            state = None if structure is None or structure.reader is None else structure.reader(*roots)
            if structure is None or state is None:
                structure, state = self.read_the_long_way(roots)
            arrays, holders = state
            is_nested = not is_top_level()
            if is_nested:
                self.check_frozen(arrays)
            try:
                result, written = self.dispatch(Captured(structure, arrays), *args, **kwargs)
            except _EXPLAINED as error:
                self.raise_call_error(error, args, kwargs)
                raise
            plan: Plan = written.form
            if plan.writes:
                outputs = written.arrays
                if is_nested and not JAX_ARRAY.issuperset(map(type, outputs)):
                    self.check_leaks(plan, holders, outputs)
                plan.write(holders, arrays, outputs)
            return result

    def read_the_long_way(self, roots: Sequence[Any]) -> tuple[Structure, tuple[list[Any], Sequence[Any]]]:
        """The state, value by value. If it comes by here again as it is, there will be a shorter way."""
        key, arrays, holders = read(roots)
        structure = self.current = self.structures.get(key) or self.structure(key)
        structure.times_read += 1
        if structure.times_read == _TIMES and structure.reader is None:
            structure.reader = make_reader(roots)
        return structure, (arrays, holders)

    def _later_call(self) -> tuple[Any, Callable[..., Any]]:
        """jax.jit's dispatcher, and what a call calls that isn't the first: without state the same, as a rule.

        What fails is told in the user's terms where Python takes part, in tracing; and where C++ refuses a donated
        array.
        """
        answer = None if self.padded_shapes is None else self.padded_shapes.answer
        if self.has_state:  # what fails is told where the state is read
            dispatch = self.jitted if answer is None else with_explained_misses(self.jitted, _as_it_is, answer)
            return dispatch, dispatch
        program = ref(self)

        def explain(error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            __tracebackhide__ = True
            if (self := program()) is not None and isinstance(error, _EXPLAINED):
                self.raise_call_error(error, args, kwargs)

        dispatch = with_explained_misses(self.jitted, explain, answer)
        if not (self.options.donate_argnums or self.options.donate_argnames):
            return dispatch, dispatch
        names = self.name, self.signature, self.static_names
        return dispatch, guarded(dispatch, partial(explain_call_error, *names))

    def first_call(self, /, *args: Any, **kwargs: Any) -> Any:
        """A call without captured state that is the first: it alone is told all in the user's terms.

        The later ones are jax.jit's C++, with nothing around it.
        """
        __tracebackhide__ = True
        try:
            result = self.dispatch(*args, **kwargs)
        except _EXPLAINED as error:
            self.raise_call_error(error, args, kwargs)
            raise
        self.switch()
        return result

    def switch(self) -> None:
        """Give the functions that run this program the call that is due."""
        for user in list(self.users):
            user.__call__ = self.due(user.__wrapped__)

    def due(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What a call calls now: a method that calls jax.jit's C++ would cost a tenth of a small call."""
        if not is_enabled():
            return function
        return self.call if self.has_state else self.later_call if self.traces else self.first_call

    def trace(self, /, *args: Any, **kwargs: Any) -> Any:
        try:
            if not self.has_state:
                return self.jitted.trace(*args, **kwargs)
            with _lock:
                key, arrays, _ = read(self.roots())
                return self.jitted.trace(Captured(self.structure(key), arrays), *args, **kwargs)
        except TracedValueError as error:  # who asks for a trace tells it in words of their own
            raise error.__cause__ or error from None

    def clear(self) -> None:
        self.jitted.clear_cache()
        self.dispatch._clear_cache()
        self.structures.clear()
        self.current = None
        if self.shapeless is not None:
            self.shapeless.clear()
        if self.padded_shapes is not None:
            self.padded_shapes.clear()
        self.traces.clear()

    def begin(self, leaves: Iterable[tuple[str, Any]]) -> Trace:
        """Note that a trace begins, and warn if it is one too many."""
        trace = Trace.of(leaves)
        trace.reason = why(trace, self.traces)
        if len(self.traces) >= self.options.max_specializations:
            self.clear()
            self.was_full = True
        if self.was_full:
            self.was_full = False
            trace.reason = f"evicted: {self.options.max_specializations} variants were kept, and all let go"
            if not self.has_warned_full:
                self.has_warned_full = True
                warn_full(self.name, self.options.max_specializations)
        self.traces.append(trace)
        if len(self.traces) > STORM and not self.has_warned:
            self.has_warned = True
            code = getattr(self.function(), "__code__", None)
            if code is None or warned_functions.add(self.name, code.co_filename, code.co_firstlineno):
                warn_storm(self.name, self.traces)
        return trace

    def names_of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """The leaves of a call's arguments, by path."""
        named: dict[str, Any] = {f"argument {i}": value for i, value in enumerate(args)} | dict(kwargs)
        if self.signature is not None:
            named = dict(self.signature.bind(*args, **kwargs).arguments)
        static = self.static_names
        leaves: list[tuple[str, Any]] = []
        for name, value in named.items():
            if name in static:
                leaves.append((name, value))
                continue
            inner = cast("list[tuple[Any, Any]]", jax.tree_util.tree_leaves_with_path(value))
            leaves += [(name + jax.tree_util.keystr(path), leaf) for path, leaf in inner]
        return leaves

    @property
    def static_names(self) -> set[str]:
        """The static parameters, however they were given."""
        parameters = list(self.signature.parameters) if self.signature is not None else []
        positions = [i for i in self.options.static_argnums or () if -len(parameters) <= i < len(parameters)]
        return {*(self.options.static_argnames or ()), *(parameters[i] for i in positions)}

    def check_frozen(self, arrays: Sequence[Any]) -> None:
        """Refuse to read state that an outer trace doesn't capture: it would be a constant there."""
        is_concrete = [not isinstance(array, jax.core.Tracer) for array in arrays]
        if any(is_concrete) and is_in_jaxpr_trace():
            refuse_frozen(self.name, self.names_of_state()[is_concrete.index(True)].lstrip("."))

    def check_leaks(self, plan: Plan, holders: Sequence[Any], values: Sequence[Any]) -> None:
        """Refuse to leave values of an outer trace where that trace won't take them out."""
        if not any(isinstance(value, jax.core.Tracer) for value in values):
            return
        now = get_opaque_trace_state(convention=_CONVENTION)
        for write in plan.writes:
            holder = holders[write.holder]
            traces = [trace for holders, trace in _tracing.placed if id(holder) in holders]
            # What nobody captures but holds traced values already was made within that trace.
            is_local = any(isinstance(item, jax.core.Tracer) for item in write.kind.open(holder)[1])
            if traces[-1] != now if traces else not is_local:
                refuse_leak(self.name, holder)


def _as_it_is(error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """What a call fails of stays as it is."""


def _living(program: Program | None) -> Program:
    if program is None:  # only what was taken out of a jitted function outlives it
        raise ReferenceError("the function that was jitted is gone")
    return program


def _copy_containers(tree: Any) -> Any:
    flat = cast("tuple[Any, Any]", jax.tree.flatten(tree))
    return jax.tree.unflatten(flat[1], flat[0])


def _signature(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):  # some builtins have none
        return None
