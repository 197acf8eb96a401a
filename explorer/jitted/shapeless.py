"""One run of a function's Python for all shapes of a rank and dtype, where the function allows it.

jax.jit compiles for the first shape. What it traces is not the user's Python but the jaxpr of one symbolic trace, with
the sizes put in; which sizes are one symbol is tried from the general to the special (`padding/growing.py`). From the
second shape on calls are padded, where that is proven to change no result; else jax.jit compiles for each shape, as
ever. Shapes that no trace covers are traced anew. A function that asks for a size in a way that no symbol can answer is
traced for each shape, with a warning that names the line.

jax.jit answers the shapes that it knows in C++; what it would trace and compile for comes by `PaddedShapes` first.
Whether a call may be padded is decided within that trace, where the kind of its arguments is known (`Shapeless`), and
raised out of it; the next call of the same kind, at whatever sizes, is answered without one.
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
from jax.extend.core import jaxpr_as_fun

from explorer._jax import at_sizes, foreign_tracers, is_top_level, undecided_equalities
from explorer._jax.arguments import trace_context
from explorer._jax.calls import suppress_recording
from explorer.capture.prints import printed_once
from explorer.capture.sources import place
from explorer.capture.trace_errors import users_place
from explorer.jitted.state import constant
from explorer.jitted.trial import Captured
from explorer.model.events.event import CallLeft
from explorer.model.results.dynamic_report import Specialization
from explorer.padding import padded, prove
from explorer.padding.growing import GrowingProgram, Pattern, Shapes, patterns, varies
from explorer.runtime.traces import derivatives_need_python, disagreement

_KEPT = 1024  # kinds of calls that are known to be padded
Answer = tuple[Any, Any, Any]  # of what jax.jit's dispatcher asks: the result, its entry for such calls, and a flag


@dataclass(eq=False)
class Padding:
    """The padded program of one symbolic trace."""

    program: GrowingProgram  # in its buckets
    pattern: Pattern  # what its sizes are of the arrays that vary
    structure: Any  # of what comes out

    @classmethod
    def of(
        cls, closed: Any, pattern: Pattern, structure: Any, run: Callable[..., Any], varying: Sequence[int]
    ) -> Padding | None:
        """None where it isn't proven that padding changes no result; it is called as `run` is."""
        symbols = dict.fromkeys(pattern.names, pattern.least)
        proof = prove(closed, symbols)
        if not proof.is_exact:
            return None

        def program(sizes: Mapping[str, Any], arrays: Sequence[Any]) -> Any:
            bucket = pattern.sizes([arrays[i].shape for i in varying])
            return padded(closed, bucket or {}, fills=proof.fills)(sizes, *arrays)

        program.__name__ = program.__qualname__ = run.__name__
        program.__dict__["__wrapped__"] = vars(run).get("__wrapped__")  # its place; it mustn't be kept alive
        jitted: Any = jax.jit(program)
        return cls(GrowingProgram(closed, symbols, lambda _: jitted, proof.fills), pattern, structure)


@dataclass(frozen=True)
class Places:
    """Where the arrays of a call are among its leaves."""

    count: int  # of leaves
    traced: tuple[int, ...]  # those that are arrays
    varying: tuple[int, ...]  # of those, the ones whose shape may be another


class ServePadded(CallLeft):
    """Out of a trace that is about to be compiled: the call is to be padded."""

    def __init__(self, padding: Padding, places: Places) -> None:
        super().__init__("served by a padded binary")
        self.padding, self.places = padding, places


class _Offer(local):
    """Which function's next trace on this thread may be left, for the call to be padded."""

    to: Any = None


_offer = _Offer()


def take_offer(whose: Any) -> bool:
    """Whether the trace that begins may be left; it may be once."""
    is_offered, _offer.to = _offer.to is whose, None
    return is_offered


@contextmanager
def _offered(whose: Any) -> Any:
    before, _offer.to = _offer.to, whose
    try:
        yield
    finally:
        _offer.to = before


class PaddedShapes:
    """What stands between jax.jit's dispatcher and its trace."""

    def __init__(self, whose: Any) -> None:
        self._whose = whose
        self._places: dict[Any, Places] = {}  # by tree of a call
        self._known: dict[Any, list[Padding]] = {}  # by all of a call but its sizes

    def clear(self) -> None:
        self._places.clear()
        self._known.clear()

    def answer(self, miss: Callable[..., Answer], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
        """The answer to a call that the dispatcher doesn't know."""
        __tracebackhide__ = True
        leaves, tree = cast("tuple[list[Any], Any]", jax.tree.flatten((args, kwargs)))
        if not _may_be_padded(leaves):
            with _offered(None):
                return miss(*args, **kwargs)
        result = self._served(leaves, tree)
        if result is None:
            try:
                with _offered(self._whose):
                    return miss(*args, **kwargs)
            except ServePadded as decision:
                self._learn(decision, leaves, tree)
                result = self._served(leaves, tree)
        if result is None:
            with _offered(None):
                return miss(*args, **kwargs)
        return result[0], None, False

    def _learn(self, decision: ServePadded, leaves: list[Any], tree: Any) -> None:
        if decision.places.count != len(leaves):  # jax.jit took the call apart otherwise
            return
        if len(self._known) >= _KEPT:
            self.clear()
        self._places[tree] = decision.places
        key = self._key(leaves, tree)
        if key is not None:
            self._known.setdefault(key, []).append(decision.padding)

    def _served(self, leaves: list[Any], tree: Any) -> tuple[Any] | None:
        """The result of a call; None where jax.jit is to compile for its sizes alone, or to say what it is."""
        places, key = self._places.get(tree), self._key(leaves, tree)
        if places is None or key is None:
            return None
        for padding in self._known.get(key, ()):
            sizes = padding.pattern.sizes([np.shape(leaves[i]) for i in places.varying])
            if sizes is None or padding.program.is_worth_its_own(sizes):
                continue
            try:
                outputs = padding.program.call(sizes, [leaves[i] for i in places.traced])
            except Exception:  # out of memory: the call by itself needs less, or says what is wrong with it
                padding.program.give_up(sizes)
                return None
            return (jax.tree.unflatten(padding.structure, outputs),)
        return None

    def _key(self, leaves: list[Any], tree: Any) -> Any:
        """What calls that are padded alike have in common; None for a call of which nothing is known yet."""
        places = self._places.get(tree)
        if places is None:
            return None
        kinds = [_kind(leaf, with_shape=True) for leaf in leaves]
        for i in places.varying:
            kinds[i] = _kind(leaves[i], with_shape=False)
        for i in set(range(len(leaves))).difference(places.traced):
            kinds[i] = type(leaves[i]), leaves[i]
        try:
            key = tree, tuple(kinds), trace_context()[1]
            hash(key)
        except TypeError:  # a constant without a hash, which jax.jit refuses
            return None
        return key


def _kind(leaf: Any, *, with_shape: bool) -> Any:
    if not hasattr(leaf, "dtype"):
        return leaf.__class__
    shape = leaf.shape if with_shape else len(leaf.shape)
    if not hasattr(leaf, "sharding"):  # NumPy's
        return shape, leaf.dtype
    return shape, leaf.dtype, jax.typeof(leaf).weak_type, leaf.sharding, leaf.committed


def _may_be_padded(leaves: Sequence[Any]) -> bool:
    """Whether a call is one of numbers that are there, each on one device, and JAX checks nothing in between."""
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


_MOST = 16  # traces of one rank and dtype; past it the oldest goes


@dataclass
class _Trace:
    """A jaxpr with symbols, of the arrays that vary and those that don't."""

    pattern: Pattern
    closed: Any
    structure: Any  # of what comes out
    needs_python: bool  # for its derivatives
    record: Any = None  # of the run of Python that it is
    padding: Padding | None = None
    is_tried: bool = False  # whether padding was

    def padded(self, run: Callable[..., Any], varying: Sequence[int]) -> Padding | None:
        """The same in buckets, where that is proven to be exact."""
        if not self.is_tried:
            self.is_tried = True
            with suppress_recording():
                self.padding = Padding.of(self.closed, self.pattern, self.structure, run, varying)
        return self.padding

    def run(self, sizes: Mapping[str, int], python: Callable[..., Any], arrays: Sequence[Any]) -> Any:
        def run(*arrays: Any) -> Any:
            return tuple(cast("list[Any]", jaxpr_as_fun(at_sizes(self.closed, sizes))(*arrays)))

        if self.needs_python:
            # Custom derivatives are the user's Python, and know the symbols: they are taken of a trace of these shapes.
            run = jax.custom_jvp(run)

            @run.defjvp
            def derivative(primals: Any, tangents: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
                return jax.jvp(python, primals, tangents)

        return jax.tree.unflatten(self.structure, run(*arrays))


@dataclass
class _Call:
    """What jax.jit gave to be traced: arrays that vary, arrays that don't, and constants."""

    run: Callable[..., Any]
    leaves: list[Any]
    structure: Any
    traced: list[int]  # the positions of arrays
    varying: list[int]  # of those, the ones whose shape may be another

    @property
    def arrays(self) -> list[Any]:
        return [self.leaves[i] for i in self.traced]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [tuple(self.leaves[i].shape) for i in self.varying]

    @property
    def key(self) -> Any:
        """What a trace is for, besides sizes."""
        varying, traced = set(self.varying), set(self.traced)
        parts: list[Any] = []
        for i, leaf in enumerate(self.leaves):
            if i in traced:
                weak = getattr(leaf.aval, "weak_type", False)
                parts.append((len(leaf.shape) if i in varying else tuple(leaf.shape), str(leaf.dtype), weak))
            else:
                parts.append((type(leaf), constant(leaf)))
        return self.structure, tuple(parts), trace_context()

    def structs(self, shapes: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Of all arrays, those that vary with these shapes."""
        given = dict(zip(self.varying, shapes, strict=True))
        return [
            jax.ShapeDtypeStruct(
                given.get(i, self.leaves[i].shape),
                self.leaves[i].dtype,
                weak_type=getattr(self.leaves[i].aval, "weak_type", False),
            )
            for i in self.traced
        ]

    def python(self, structures: list[Any], *arrays: Any) -> tuple[Any, ...]:
        """The function on these arrays: the leaves of what it returns."""
        __tracebackhide__ = True
        leaves = list(self.leaves)
        for i, array in zip(self.traced, arrays, strict=True):
            leaves[i] = array
        args, kwargs = jax.tree.unflatten(self.structure, leaves)
        flat = cast("tuple[list[Any], Any]", jax.tree.flatten(self.run(*args, **kwargs)))
        structures.append(flat[1])
        return tuple(flat[0])

    def trace(self, shapes: Sequence[tuple[Any, ...]]) -> tuple[Any, Any]:
        """A trace at these shapes, and the structure of what comes out."""
        structures: list[Any] = []
        traced = jax.jit(partial(self.python, structures)).trace(*self.structs(shapes))
        return traced, structures[-1]


@dataclass
class _Kind:
    """What is known of calls whose arguments have the same ranks and dtypes."""

    traces: list[_Trace] = field(default_factory=list["_Trace"])
    history: list[Shapes] = field(default_factory=list["Shapes"])
    failed: set[Pattern] = field(default_factory=set["Pattern"])
    reason: str = ""  # why the last of them did
    is_refused: bool = False


class Shapeless:
    """What jax.jit traces in place of a function, so that the function's own Python runs once for many shapes."""

    def __init__(self, run: Callable[..., Any], records: list[Any], on_refusal: Callable[[str], None]) -> None:
        self.run, self.records, self.on_refusal = run, records, on_refusal
        self.kinds: dict[Any, _Kind] = {}

    def clear(self) -> None:
        self.kinds.clear()

    @property
    def padded(self) -> list[Specialization]:
        """The padded binaries that there are."""
        return [
            _specialization(trace.record, bucket, seconds)
            for kind in list(self.kinds.values())
            for trace in kind.traces
            if trace.padding is not None
            for bucket, seconds in trace.padding.program.buckets
        ]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        may_leave = take_offer(self)
        call = self._call(args, kwargs)
        if call is None or not any(call.shapes):
            return self.run(*args, **kwargs)
        kind = self.kinds.setdefault(call.key, _Kind())
        for trace in kind.traces:
            sizes = trace.pattern.sizes(call.shapes)
            if sizes is not None:
                if may_leave:
                    self._leave(trace, sizes, call)
                return trace.run(sizes, partial(call.python, []), call.arrays)
        trace = None if kind.is_refused else self._trace(call, kind)
        if trace is None:
            return self.run(*args, **kwargs)
        kind.traces.append(trace)
        del kind.traces[:-_MOST]
        return trace.run(trace.pattern.sizes(call.shapes) or {}, partial(call.python, []), call.arrays)

    def _leave(self, trace: _Trace, sizes: Mapping[str, int], call: _Call) -> None:
        """Leave the trace that is under way, if the call can be padded: sizes of a kind that there was a call of."""
        padding = trace.padded(self.run, [call.traced.index(i) for i in call.varying])
        if padding is not None and not padding.program.is_worth_its_own(sizes):
            raise ServePadded(padding, Places(len(call.leaves), tuple(call.traced), tuple(call.varying)))

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call | None:
        """None for what has no shape that could be left open, such as a mutable array."""
        leaves, structure = cast("tuple[list[Any], Any]", jax.tree.flatten((args, kwargs)))
        of_state = len(args[0].arrays) if args and isinstance(args[0], Captured) else 0
        traced = [i for i, leaf in enumerate(leaves) if isinstance(leaf, jax.core.Tracer)]
        if any(not isinstance(leaves[i].aval, jax.core.ShapedArray) for i in traced):
            return None
        varying = [i for i in traced if i >= of_state and not jnp.issubdtype(leaves[i].dtype, jax.dtypes.extended)]
        return _Call(self.run, leaves, structure, traced, varying)

    def _trace(self, call: _Call, kind: _Kind) -> _Trace | None:
        """A trace for more shapes than these."""
        before = list(self.records)
        kind.history = [*kind.history[1 - _MOST :], call.shapes]
        with ExitStack() as stack:
            stack.enter_context(suppress_recording())
            prints = stack.enter_context(printed_once())
            for pattern in patterns(kind.history):
                if pattern in kind.failed:
                    continue
                trace, reason = self._try(call, pattern, prints)
                if trace is not None:
                    trace.record = self.records[len(before)]
                    del self.records[len(before) + 1 :]  # the one at sizes, which it was held against
                    return trace
                self.records[:] = before
                if not reason:  # it is part of another trace
                    return None
                kind.failed.add(pattern)
                kind.reason = reason
                stack.enter_context(prints.muted())
        if kind.reason and varies(kind.history):
            kind.is_refused = True
            self.on_refusal(kind.reason)
        return None

    def _try(self, call: _Call, pattern: Pattern, prints: Any) -> tuple[_Trace | None, str]:
        # Whatever is raised may be JAX's or the user's own: a trace with sizes, which follows, tells.
        try:
            with undecided_equalities() as undecided:
                traced, structure = call.trace(pattern.symbolic())
            if foreign_tracers(traced):
                return None, ""
            given = at_sizes(traced.jaxpr, pattern.sizes(call.shapes) or {})
        except Exception as error:
            first, where = str(error).strip().partition("\n")[0] or type(error).__name__, users_place(error)
            return None, first + (f"\n  at  {where}" if where else "")
        if undecided:
            question = undecided[0]
            return None, f"`{question.text}` holds for some sizes only\n  at  {place(question.file, question.line)}"
        try:
            with prints.muted():
                single, single_structure = call.trace(call.shapes)
        except Exception as error:
            return None, f"a trace for these sizes fails: {type(error).__name__}"
        if structure.num_leaves != single_structure.num_leaves or disagreement(given, single.jaxpr):
            return None, "a trace for one shape computes something else: a size is asked in a way that can't be seen"
        return _Trace(pattern, traced.jaxpr, structure, derivatives_need_python(traced.jaxpr)), ""


def _specialization(record: Any, bucket: Mapping[str, int], seconds: float) -> Specialization:
    shapes: dict[str, Any] = {
        name: tuple(bucket.get(size, size) for size in shape) for name, shape in record.shapes.items()
    }
    return Specialization(shapes, "padded: for these shapes, and all that are smaller", seconds)


def alike(run: Callable[..., Any], shapeless: Shapeless) -> Callable[..., Any]:
    """A function that calls `shapeless` and looks like `run`, for jax.jit."""

    def run_shapeless(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return shapeless(*args, **kwargs)

    run_shapeless.__name__, run_shapeless.__qualname__ = run.__name__, run.__qualname__
    run_shapeless.__dict__.update(vars(run))
    return run_shapeless
