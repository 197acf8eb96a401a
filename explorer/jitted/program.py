"""State shared by all `jit()` of one function: compiled variants, captured state, and the record of traces."""

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

from explorer._jax.dispatch import with_explained_misses
from explorer._jax.traces import (
    get_opaque_trace_state,  # pyright: ignore[reportUnknownVariableType] - half annotated
    is_in_jaxpr_trace,
    is_top_level,
)
from explorer.capture.explore import CompileRequest
from explorer.capture.trace_errors import explain_trace_error, guarded
from explorer.errors import ExplorerError, TracedValueError
from explorer.jitted.shapeless import Shapeless, alike
from explorer.jitted.state import JAX_ARRAY, Reference, Same, paths, read
from explorer.jitted.surface import Passed, also_jax_error, check_positions, given_arguments, name_of_function
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
from explorer.jitted.trial import Captured, Plan, Structure, Trial, make_reader
from explorer.model.events.family_counts import warned_functions
from explorer.runtime.generated import never

_CONVENTION = "nnx"  # the only convention of `get_opaque_trace_state`, which identifies a trace
_READS = 2  # slow reads of a structure before a reader is generated: many structures come only once
# Errors from C++ and from the end of a trace. The user's own errors leave the trace unchanged.
_EXPLAINED = (ValueError, RuntimeError, jax.errors.UnexpectedTracerError)
STORM = 8  # traces of one function, or functions from one line, beyond which something is wrong

# One call with captured state at a time, for all functions: several may capture the same state, which holds traced
# values while one of them is traced.
_lock = RLock()


class _Tracing(local):
    """Holders that this thread's ongoing traces will restore, by address, with the trace; innermost last."""

    def __init__(self) -> None:
        self.placed: list[tuple[Mapping[int, int], Any]] = []


_tracing = _Tracing()


@dataclass(frozen=True)
class Options:
    static_argnums: tuple[int, ...] | None = None
    static_argnames: tuple[str, ...] | None = None
    donate_argnums: tuple[int, ...] | None = None
    donate_argnames: tuple[str, ...] | None = None
    max_specializations: int = 128
    shapeless: bool = False
    passed: Passed = field(default_factory=Passed)

    def for_jax(self, shift: int) -> dict[str, Any]:
        """Return `jax.jit`'s options of static and donated arguments; `shift` moves positions that aren't negative."""
        given = {name: value for name, value in vars(self).items() if name.startswith(("static", "donate"))}
        for name in ("static_argnums", "donate_argnums"):
            if given[name] is not None:
                given[name] = tuple(i + shift if i >= 0 else i for i in given[name])
        return given


class Program:
    """Compiled variants of one function."""

    def __init__(
        self,
        function: Reference,
        inputs: Reference | None,
        outputs: Reference | None,
        options: Options,
        names: tuple[str, str] = ("inputs", "outputs"),
    ) -> None:
        self.function, self.inputs, self.outputs, self.options = function, inputs, outputs, options
        # A root that is both inputs and outputs is kept once; messages use its name.
        named = {root: name for root, name in zip((inputs, outputs), names, strict=True) if root is not None}
        self.root_references, self.names = tuple(named), tuple(named.values())
        self.has_state = bool(named)
        # Containers without weak references are kept alive anyway.
        is_kept = all(isinstance(root, Same) for root in named)
        self.kept = tuple(root() for root in named) if is_kept else ()
        self.traces: list[Trace] = []
        self.structures: dict[tuple[Any, ...], Structure] = {}
        self.current = Structure(())  # structure of the last call
        self.has_warned = False
        self.has_warned_full = False
        self.was_full = False
        self.users: WeakSet[Any] = WeakSet()  # the `Jitted` objects that run it
        original = function()
        self.name = name_of_function(original)
        self.signature = _signature(original)
        check_positions(self.name, self.signature, options.for_jax(0))
        passed = options.passed
        also = passed.behind_state(self.signature, self.static_names) if self.has_state else passed.values
        run = self._run()
        self.shapeless: Shapeless | None = None
        answer: Any = None
        if options.shapeless:
            program = ref(self)

            def refuse(reason: str) -> None:
                warn_shapes(_living(program()).name, reason)

            self.shapeless = Shapeless(run, self.traces, refuse)
            run = alike(run, self.shapeless)
            # With donation, shardings or compiler options, JAX alone places the arrays.
            if not (options.donate_argnums or options.donate_argnames or passed.values):
                answer = self.shapeless.answer
        self.jitted: Any = jax.jit(run, **options.for_jax(1 if self.has_state else 0), **also)
        self.dispatch, self.later_call = self._later_call(answer)

    def _run(self) -> Callable[..., Any]:
        """Return the function that jax.jit traces. It refers to this program weakly, to avoid a reference cycle."""
        program = ref(self)

        def run(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True  # IPython hides such a frame in a traceback
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
                # Below, containers get their own values back. JAX gets copies of those that the function returns.
                return _copy_containers(result), Captured(plan, outputs)
            finally:
                trial.restore()

        run = run_with_state if self.has_state else run
        run.__name__ = run.__qualname__ = self.name
        code = getattr(self.function(), "__code__", None)
        if code is not None:  # JAX reads the function's place here; the function itself must not be kept alive
            run.__dict__["__wrapped__"] = SimpleNamespace(__name__=self.name, __code__=code)
        if self.signature is not None:
            given = self.signature.parameters
            name = self.names[0] if len(self.names) == 1 else "captured"
            captured = inspect.Parameter(name + "_" * (name in given), inspect.Parameter.POSITIONAL_ONLY)
            run.__signature__ = inspect.Signature([captured, *given.values()] if self.has_state else [*given.values()])
        return run

    def run_users(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        __tracebackhide__ = True
        function = self.function()
        try:
            return function(*args, **kwargs)
        except Exception as error:
            self.raise_traced_value_error(error)
            raise

    def raise_call_error(self, error: Exception, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Raise the error of a failed call in the user's terms, if Explorer can explain it; otherwise return."""
        __tracebackhide__ = True
        if isinstance(error, ExplorerError):  # already explained
            return
        if isinstance(error, jax.errors.UnexpectedTracerError):  # raised at the end of a trace, after the function
            self.raise_traced_value_error(error)
        explained = explain_call_error(self.name, self.signature, self.static_names, args, kwargs)
        if explained is not None:
            raise explained from error

    def raise_traced_value_error(self, error: Exception) -> None:
        """Raise a TracedValueError if `error` is about a traced value; otherwise return."""
        __tracebackhide__ = True
        kind, message = explain_trace_error(error, self.name, "compiled")
        if kind is TracedValueError:
            request = CompileRequest(self.function(), (), {})
            capture = request.empty_capture(f"trace failed: {type(error).__name__}")
            raise also_jax_error(TracedValueError, type(error))(message, capture) from error

    def roots(self) -> tuple[Any, ...]:
        return self.kept or tuple(root() for root in self.root_references)

    def structure(self, key: tuple[Any, ...]) -> Structure:
        structure = self.structures.get(key)
        if structure is None:
            if len(self.structures) >= self.options.max_specializations:
                self.clear()
                self.was_full = True
            structure = self.structures[key] = Structure(self.names_of_state())
        return structure

    def names_of_state(self) -> list[str]:
        """Return the paths of the captured arrays, in order: `.weights[0]`. With two containers each starts with the
        container's name.
        """
        roots = dict(zip(self.names, self.roots(), strict=True))
        return paths(roots.items() if len(roots) > 1 else [("", *roots.values())])

    def call(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the result of a call with captured state: read the state, run, write it."""
        __tracebackhide__ = True
        with _lock:
            roots = self.kept or self.roots()
            structure = self.current
            state = structure.reader(*roots)
            if state is None:
                structure, state = self.read_state(roots)
            arrays, holders = state
            # Only inside a trace can an array of the state, or a result, be a tracer.
            is_nested = not is_top_level()
            if is_nested:
                self.check_frozen(arrays)
            try:
                result, written = self.dispatch(Captured(structure, arrays), *args, **kwargs)
            except _EXPLAINED as error:
                self.raise_call_error(error, args, kwargs)
                raise
            plan: Plan = written.form
            if plan.written:
                outputs = written.arrays
                if is_nested and not JAX_ARRAY.issuperset(map(type, outputs)):
                    self.check_leaks(plan, holders, outputs)
                plan.write(holders, arrays, outputs)
            return result

    def read_state(self, roots: Sequence[Any]) -> tuple[Structure, tuple[list[Any], Sequence[Any]]]:
        """Return the state's structure, and a pair of its arrays and its holders (the containers that can be changed).

        The second read of a structure generates a function that reads it faster.
        """
        key, arrays, holders = read(roots)
        structure = self.current = self.structures.get(key) or self.structure(key)
        structure.times_read += 1
        if structure.times_read == _READS:
            structure.reader = make_reader(roots)
        return structure, (arrays, holders)

    def _later_call(self, answer: Callable[..., Any] | None) -> tuple[Any, Callable[..., Any]]:
        """Return the dispatcher of `jax.jit`, and the function that answers every call but the first.

        Errors are explained in the user's terms if Python takes part (tracing), and if C++ refuses a donated array.
        """
        if self.has_state:  # `call` explains errors
            dispatch = self.jitted if answer is None else with_explained_misses(self.jitted, never, answer)
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
        """Return the result of the first call without captured state; explain all errors. Later calls stay in C++."""
        __tracebackhide__ = True
        try:
            result = self.dispatch(*args, **kwargs)
        except _EXPLAINED as error:
            self.raise_call_error(error, args, kwargs)
            raise
        self.switch()
        return result

    def switch(self) -> None:
        for user in list(self.users):
            user.__call__ = self.due(user.__wrapped__)

    def due(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the callable for the next call: the function itself while compilation is switched off.

        It is stored in each object, because a method that forwards to C++ would cost a tenth of a small call.
        """
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
        except TracedValueError as error:  # the caller of `trace` explains JAX's own error
            raise error.__cause__ or error from None

    def clear(self) -> None:
        self.jitted.clear_cache()
        # It may be Explorer's own dispatcher, with a cache that jax.jit doesn't know.
        self.dispatch._clear_cache()
        self.structures.clear()
        self.current = Structure(())
        if self.shapeless is not None:
            self.shapeless.clear()
        self.traces.clear()

    def begin(self, leaves: Iterable[tuple[str, Any]]) -> Trace:
        """Return the record of a trace that begins, after adding it to `traces`; warn if there are too many."""
        trace = Trace.of(leaves)
        trace.reason = why(trace, self.traces)
        if len(self.traces) >= self.options.max_specializations:
            self.clear()
            self.was_full = True
        if self.was_full:
            self.was_full = False
            trace.reason = f"evicted: {self.options.max_specializations} variants were kept, and all were dropped"
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
        static = self.static_names
        leaves: list[tuple[str, Any]] = []
        for name, value in given_arguments(self.signature, args, kwargs).items():
            inner = [((), value)] if name in static else cast(Any, jax.tree_util.tree_leaves_with_path(value))
            leaves += [(name + jax.tree_util.keystr(path), leaf) for path, leaf in inner]
        return leaves

    @property
    def static_names(self) -> set[str]:
        parameters = list(self.signature.parameters) if self.signature is not None else []
        positions = [i for i in self.options.static_argnums or () if -len(parameters) <= i < len(parameters)]
        return {*(self.options.static_argnames or ()), *(parameters[i] for i in positions)}

    def check_frozen(self, arrays: Sequence[Any]) -> None:
        """Raise LeakedStateError for state that an outer trace doesn't capture: it would become a constant there."""
        is_concrete = [not isinstance(array, jax.core.Tracer) for array in arrays]
        if any(is_concrete) and is_in_jaxpr_trace():
            refuse_frozen(self.name, self.names_of_state()[is_concrete.index(True)].lstrip("."))

    def check_leaks(self, plan: Plan, holders: Sequence[Any], values: Sequence[Any]) -> None:
        """Raise LeakedStateError for traced values of an outer trace in a holder that this trace won't restore."""
        if not any(isinstance(value, jax.core.Tracer) for value in values):
            return
        now = get_opaque_trace_state(convention=_CONVENTION)
        for index, kind in plan.written:
            holder = holders[index]
            traces = [trace for holders, trace in _tracing.placed if id(holder) in holders]
            # A holder that no trace captured, but that already holds traced values, was made within that trace.
            is_local = any(isinstance(item, jax.core.Tracer) for item in kind.open(holder)[1])
            if traces[-1] != now if traces else not is_local:
                refuse_leak(self.name, holder)


def _living(program: Program | None) -> Program:
    if program is None:  # the caller kept `lower()` or `trace()` results longer than the function
        raise ReferenceError("the function that was jitted is gone")
    return program


def _copy_containers(tree: Any) -> Any:
    flat = cast("tuple[Any, Any]", jax.tree.flatten(tree))
    return jax.tree.unflatten(flat[1], flat[0])


def _signature(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):  # some builtins have no signature
        return None
