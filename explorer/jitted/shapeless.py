"""One run of a function's Python for all shapes of a rank and dtype, if the function allows it.

jax.jit compiles for the first shape. It traces the jaxpr of one symbolic trace, with concrete sizes substituted, in
place of the user's Python. `padding/growing.py` tries which sizes are one symbol, from the general to the special.
From the second shape on, calls are padded if that is proven to change no result; otherwise jax.jit compiles for each
shape. Shapes that no trace covers are traced again. A function that tests a size in a way that no symbol can answer is
traced for each shape, with a warning that names the line.

jax.jit answers known shapes in C++; a new one comes to `Shapeless.answer` before it is traced. The decision to pad is
made inside the trace (`Shapeless.__call__`), where the kinds of the arguments are known, and raised out of it. Later
calls of the same kind, at any sizes, need no trace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import local
from typing import Any, cast

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from explorer._jax.arguments import trace_context
from explorer._jax.calls import suppress_recording
from explorer._jax.symbolic import at_sizes
from explorer._jax.traces import foreign_tracers, is_top_level, jaxpr_as_fun
from explorer.capture.script import printed_once
from explorer.jitted.state import constant
from explorer.jitted.trial import Captured
from explorer.model.events.event import CallLeft
from explorer.model.results.dynamic_report import Specialization
from explorer.padding import padded, prove
from explorer.padding.growing import GrowingProgram, Pattern, Shapes, patterns, varies
from explorer.runtime.traces import derivatives_need_python, disagreement, trace_with_symbols

_MAX_KNOWN = 1024  # kinds of calls that are known to be padded
_MAX_TRACES = 16  # of one rank and dtype; beyond it the oldest is dropped
Answer = tuple[Any, Any, Any]  # for jax.jit's dispatcher: the result, its entry for such calls, and a flag


@dataclass(eq=False)
class _Trace:
    """Symbolic jaxpr of a call's arrays, and its padded program if one is proven."""

    pattern: Pattern  # symbols of the varying arrays
    closed: Any
    structure: Any  # of the result
    needs_python: bool  # for derivatives
    record: Any = None  # the `Trace` of this run of Python
    program: GrowingProgram | None = None
    is_tried: bool = False  # whether a proof for padding was attempted

    def pad(self, run: Callable[..., Any], varying: Sequence[int]) -> GrowingProgram | None:
        """Return the padded program, named like `run`, if padding is proven to change no result; None otherwise."""
        if self.is_tried:
            return self.program
        self.is_tried = True
        pattern, closed = self.pattern, self.closed
        symbols = dict.fromkeys(pattern.names, pattern.least)
        with suppress_recording():
            proof = prove(closed, symbols)
        if not proof.is_exact:
            return None

        def program(sizes: Mapping[str, Any], arrays: Sequence[Any]) -> Any:
            bucket = pattern.sizes([arrays[i].shape for i in varying])
            return padded(closed, bucket or {}, fills=proof.fills)(sizes, *arrays)

        program.__name__ = program.__qualname__ = run.__name__
        program.__dict__["__wrapped__"] = vars(run).get("__wrapped__")  # JAX reads name and place from it
        jitted: Any = jax.jit(program)
        self.program = GrowingProgram(closed, symbols, lambda _: jitted, proof.fills)
        return self.program

    def run(self, sizes: Mapping[str, int], python: Callable[..., Any], arrays: Sequence[Any]) -> Any:
        def run(*arrays: Any) -> Any:
            return tuple(cast("list[Any]", jaxpr_as_fun(at_sizes(self.closed, sizes))(*arrays)))

        if self.needs_python:
            # Custom rules are the user's Python and hold symbols: derivatives come from a trace at these shapes.
            run = jax.custom_jvp(run)

            @run.defjvp
            def derivative(primals: Any, tangents: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
                return jax.jvp(python, primals, tangents)

        return jax.tree.unflatten(self.structure, run(*arrays))


class ServePadded(CallLeft):
    """Raised out of a trace that is about to be compiled, because the call is to be padded."""

    def __init__(self, trace: _Trace, call: _Call) -> None:
        super().__init__("served by a padded binary")
        self.trace, self.leaf_count = trace, len(call.leaves)
        self.places = tuple(call.traced), tuple(call.varying)


class _Offer(local):
    """The `Shapeless` whose next trace on this thread may raise `ServePadded`."""

    to: Any = None


_offer = _Offer()


@contextmanager
def _offered(to: Any) -> Any:
    before, _offer.to = _offer.to, to
    try:
        yield
    finally:
        _offer.to = before


@dataclass
class _Call:
    """A call that jax.jit traces: arrays and constants."""

    run: Callable[..., Any]
    leaves: list[Any]
    structure: Any
    traced: list[int]  # positions of arrays
    varying: list[int]  # positions of arrays whose shape may vary

    @property
    def arrays(self) -> list[Any]:
        return [self.leaves[i] for i in self.traced]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [tuple(self.leaves[i].shape) for i in self.varying]

    @property
    def key(self) -> Any:
        """Return everything that selects a trace, except sizes: structure, rank or shape and dtype of arrays,
        constants, JAX's settings.
        """
        varying, traced = set(self.varying), set(self.traced)
        parts: list[Any] = []
        for i, leaf in enumerate(self.leaves):
            if i in traced:
                weak = getattr(leaf.aval, "weak_type", False)
                parts.append((len(leaf.shape) if i in varying else tuple(leaf.shape), str(leaf.dtype), weak))
            else:
                parts.append((type(leaf), constant(leaf)))
        return self.structure, tuple(parts), trace_context()

    def python(self, structures: list[Any], *arrays: Any) -> tuple[Any, ...]:
        """Run the function on these arrays; return the result's leaves and append its structure to `structures`."""
        __tracebackhide__ = True
        leaves = list(self.leaves)
        for i, array in zip(self.traced, arrays, strict=True):
            leaves[i] = array
        args, kwargs = jax.tree.unflatten(self.structure, leaves)
        flat = cast("tuple[list[Any], Any]", jax.tree.flatten(self.run(*args, **kwargs)))
        structures.append(flat[1])
        return tuple(flat[0])

    def trace(self, shapes: Sequence[tuple[Any, ...]]) -> tuple[Any, Any]:
        """Return a trace with these shapes of the varying arrays, and the structure of its result."""
        given = dict(zip(self.varying, shapes, strict=True))
        structs = [
            jax.ShapeDtypeStruct(given.get(i, leaf.shape), leaf.dtype, weak_type=getattr(leaf.aval, "weak_type", False))
            for i, leaf in zip(self.traced, self.arrays, strict=True)
        ]
        structures: list[Any] = []
        traced = jax.jit(partial(self.python, structures)).trace(*structs)
        return traced, structures[-1]


@dataclass
class _Kind:
    """State of calls whose arguments have the same ranks and dtypes."""

    traces: list[_Trace] = field(default_factory=list["_Trace"])
    history: list[Shapes] = field(default_factory=list["Shapes"])
    failed: set[Pattern] = field(default_factory=set["Pattern"])
    reason: str = ""  # why the last pattern failed
    is_refused: bool = False


class Shapeless:
    """Function that jax.jit traces in place of the user's, and answer to calls that the dispatcher doesn't know."""

    def __init__(self, run: Callable[..., Any], records: list[Any], on_refusal: Callable[[str], None]) -> None:
        self.run, self.records, self.on_refusal = run, records, on_refusal
        self.kinds: dict[Any, _Kind] = {}
        self._places: dict[Any, tuple[tuple[int, ...], tuple[int, ...]]] = {}  # of arrays, by the call's tree
        self._known: dict[Any, list[_Trace]] = {}  # by everything about a call but its sizes

    def clear(self) -> None:
        for table in (self.kinds, self._places, self._known):
            table.clear()

    @property
    def padded(self) -> list[Specialization]:
        padded: list[Specialization] = []
        for trace in [trace for kind in list(self.kinds.values()) for trace in kind.traces]:
            for bucket, seconds in trace.program.buckets if trace.program is not None else ():
                named = trace.record.shapes.items()
                shapes: dict[str, Any] = {name: tuple(bucket.get(s, s) for s in shape) for name, shape in named}
                padded.append(Specialization(shapes, "padded: for these shapes, and all that are smaller", seconds))
        return padded

    # Calls that the dispatcher doesn't know --------------------------------------------------------------------------

    def answer(self, miss: Callable[..., Answer], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
        """Answer a call that the dispatcher doesn't know: by a padded program if possible, else by `miss`.

        `miss` traces and compiles. Return the result, the dispatcher's entry for such calls or None, and a flag of the
        dispatcher.
        """
        __tracebackhide__ = True
        leaves, tree = cast("tuple[list[Any], Any]", jax.tree.flatten((args, kwargs)))
        result = None
        if _may_be_padded(leaves):
            result = self._served(leaves, tree)
            if result is None:
                try:
                    with _offered(self):
                        return miss(*args, **kwargs)
                except ServePadded as decision:
                    self._learn(decision, leaves, tree)
                    result = self._served(leaves, tree)
        if result is None:
            with _offered(None):
                return miss(*args, **kwargs)
        return result[0], None, False

    def _learn(self, decision: ServePadded, leaves: list[Any], tree: Any) -> None:
        if decision.leaf_count != len(leaves):  # jax.jit flattened the call differently
            return
        if len(self._known) >= _MAX_KNOWN:
            self._places.clear()
            self._known.clear()
        self._places[tree] = decision.places
        key = self._key(leaves, tree)
        if key is not None:
            self._known.setdefault(key, []).append(decision.trace)

    def _served(self, leaves: list[Any], tree: Any) -> tuple[Any] | None:
        """Return a call's result in a tuple; None if jax.jit must compile for its sizes."""
        key = self._key(leaves, tree)
        if key is None:
            return None
        traced, varying = self._places[tree]
        for trace in self._known.get(key, ()):
            sizes, program = trace.pattern.sizes([np.shape(leaves[i]) for i in varying]), trace.program
            if sizes is None or program is None or program.is_worth_its_own(sizes):
                continue
            try:
                outputs = program.call(sizes, [leaves[i] for i in traced])
            except Exception:  # out of memory, for example: the unpadded call needs less or gives a better error
                program.give_up(sizes)
                return None
            return (jax.tree.unflatten(trace.structure, outputs),)
        return None

    def _key(self, leaves: list[Any], tree: Any) -> Any:
        """Return a key of the calls that are padded alike; None for an unknown structure or a constant without hash."""
        places = self._places.get(tree)
        if places is None:
            return None
        traced, varying = map(set, places)
        kinds: list[Any] = [
            _kind(leaf, with_shape=i not in varying) if i in traced else (type(leaf), leaf)
            for i, leaf in enumerate(leaves)
        ]
        try:
            key = tree, tuple(kinds), trace_context()[1]
            hash(key)
        except TypeError:  # an unhashable constant, which jax.jit refuses
            return None
        return key

    # Traces ----------------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        # Once: a trace inside this one must end in a jaxpr.
        may_leave, _offer.to = _offer.to is self, None
        call = self._call(args, kwargs)
        if call is None or not any(call.shapes):
            return self.run(*args, **kwargs)
        kind = self.kinds.setdefault(call.key, _Kind())
        for trace in kind.traces:
            sizes = trace.pattern.sizes(call.shapes)
            if sizes is not None:
                program = trace.pad(self.run, [call.traced.index(i) for i in call.varying]) if may_leave else None
                if program is not None and not program.is_worth_its_own(sizes):
                    raise ServePadded(trace, call)
                return trace.run(sizes, partial(call.python, []), call.arrays)
        trace = None if kind.is_refused else self._trace(call, kind)
        if trace is None:
            return self.run(*args, **kwargs)
        kind.traces.append(trace)
        del kind.traces[:-_MAX_TRACES]
        return trace.run(trace.pattern.sizes(call.shapes) or {}, partial(call.python, []), call.arrays)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call | None:
        """Return a call's description; None if an array has no shape that could vary, such as a mutable array."""
        leaves, structure = cast("tuple[list[Any], Any]", jax.tree.flatten((args, kwargs)))
        of_state = len(args[0].arrays) if args and isinstance(args[0], Captured) else 0
        traced = [i for i, leaf in enumerate(leaves) if isinstance(leaf, jax.core.Tracer)]
        if any(not isinstance(leaves[i].aval, jax.core.ShapedArray) for i in traced):
            return None
        varying = [i for i in traced if i >= of_state and not jnp.issubdtype(leaves[i].dtype, jax.dtypes.extended)]
        return _Call(self.run, leaves, structure, traced, varying)

    def _trace(self, call: _Call, kind: _Kind) -> _Trace | None:
        """Return a symbolic trace for more shapes than the call's; None if no choice of symbols works."""
        before = list(self.records)
        kind.history = [*kind.history[1 - _MAX_TRACES :], call.shapes]
        with ExitStack() as stack:
            stack.enter_context(suppress_recording())
            prints = stack.enter_context(printed_once())
            for pattern in patterns(kind.history):
                if pattern in kind.failed:
                    continue
                trace, reason = self._try(call, pattern, prints)
                if trace is not None:
                    trace.record = self.records[len(before)]
                    del self.records[len(before) + 1 :]  # the concrete trace that it was compared with
                    return trace
                # Runs of Python for a pattern that failed are no variants of the function.
                self.records[:] = before
                if not reason:  # the call depends on another trace's values
                    return None
                kind.failed.add(pattern)
                kind.reason = reason
                stack.enter_context(prints.muted())
        if kind.reason and varies(kind.history):
            kind.is_refused = True
            self.on_refusal(kind.reason)
        return None

    def _try(self, call: _Call, pattern: Pattern, prints: Any) -> tuple[_Trace | None, str]:
        sizes = pattern.sizes(call.shapes) or {}
        symbolic, reason, _ = trace_with_symbols(
            lambda: call.trace(pattern.symbolic()), lambda traced: traced[0].jaxpr, sizes
        )
        if symbolic is None:
            return None, reason.replace("  at  ", "\n  at  ")
        traced, structure = symbolic
        # Values of another trace would become constants here.
        if foreign_tracers(traced):
            return None, ""
        given = at_sizes(traced.jaxpr, sizes)
        try:
            with prints.muted():
                single, single_structure = call.trace(call.shapes)
        except Exception as error:
            return None, f"a trace for these sizes fails: {type(error).__name__}"
        if structure.num_leaves != single_structure.num_leaves or disagreement(given, single.jaxpr):
            return (
                None,
                "a trace for one shape computes something else: a size is read in a way that Explorer can't detect",
            )
        return _Trace(pattern, traced.jaxpr, structure, derivatives_need_python(traced.jaxpr)), ""


def _kind(leaf: Any, *, with_shape: bool) -> Any:
    if not hasattr(leaf, "dtype"):
        return leaf.__class__
    shape = leaf.shape if with_shape else len(leaf.shape)
    if not hasattr(leaf, "sharding"):  # a NumPy array
        return shape, leaf.dtype
    return shape, leaf.dtype, jax.typeof(leaf).weak_type, leaf.sharding, leaf.committed


def _may_be_padded(leaves: Sequence[Any]) -> bool:
    """Return False inside a trace, under JAX's debug checks, and for a tracer, a deleted array, or an array on several
    devices; else True.
    """
    config: Any = jax.config
    return (
        not (config.jax_debug_nans or config.jax_debug_infs or config.jax_disable_jit)
        and is_top_level()
        and not any(
            isinstance(leaf, jax.core.Tracer)
            or (isinstance(leaf, jax.Array) and (leaf.is_deleted() or len(leaf.devices()) > 1))
            for leaf in leaves
        )
    )


def alike(run: Callable[..., Any], shapeless: Shapeless) -> Callable[..., Any]:
    """Return a function that calls `shapeless` and has the names and attributes of `run`, for jax.jit."""

    def run_shapeless(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return shapeless(*args, **kwargs)

    run_shapeless.__name__, run_shapeless.__qualname__ = run.__name__, run.__qualname__
    run_shapeless.__dict__.update(vars(run))
    return run_shapeless
