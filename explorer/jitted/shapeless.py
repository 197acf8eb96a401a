"""One run of a function's Python for all shapes of a rank and dtype, where the function allows it.

jax.jit compiles for the first shape. What it traces is not the user's Python but the jaxpr of one symbolic trace, with
the sizes put in; which sizes are one symbol is tried from the general to the special (`padding/patterns.py`). From the
second shape on calls are padded, where that is proven to change no result (`padded_shapes.py`); else jax.jit compiles
for each shape, as ever.

Shapes that no trace covers are traced anew. A function that asks for a size in a way that no symbol can answer is
traced for each shape, with a warning that names the line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import jax
import jax.core
import jax.numpy as jnp
from jax.extend.core import jaxpr_as_fun

from explorer._jax import at_sizes, foreign_tracers, inner_jaxprs, undecided_equalities
from explorer._jax.arguments import trace_context
from explorer._jax.suppress_recording import suppress_recording
from explorer.capture.agreement import differ
from explorer.capture.prints import printed_once
from explorer.capture.sources import place
from explorer.capture.trace_errors import users_place
from explorer.jitted.captured import Captured
from explorer.jitted.padded_shapes import Padding, Places, ServePadded, take_offer
from explorer.jitted.reading import constant
from explorer.model.results.dynamic_report import Specialization
from explorer.padding.patterns import Pattern, Shapes, patterns, varies

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
    """What jax.jit traces in place of a function, so that the function's own Python runs once for many shapes.

    Args:
        run: The function, with or without captured state as its first argument.
        records: Of its traces, kept by the program; a trial that fails leaves none.
        on_refusal: Called with the reason why a function is traced for each shape.
    """

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
        is_open = [i >= of_state and not jnp.issubdtype(leaves[i].dtype, jax.dtypes.extended) for i in traced]
        varying = [i for i, open_ in zip(traced, is_open, strict=True) if open_]
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
        if structure.num_leaves != single_structure.num_leaves or (
            str(given) != str(single.jaxpr) and _differ(given, single.jaxpr)
        ):
            return None, "a trace for one shape computes something else: a size is asked in a way that can't be seen"
        return _Trace(pattern, traced.jaxpr, structure, _needs_python(traced.jaxpr)), ""


def _specialization(record: Any, bucket: Mapping[str, int], seconds: float) -> Specialization:
    shapes: dict[str, Any] = {
        name: tuple(bucket.get(size, size) for size in shape) for name, shape in record.shapes.items()
    }
    return Specialization(shapes, "padded: for these shapes, and all that are smaller", seconds)


def _differ(one: Any, other: Any) -> bool:
    with jax.ensure_compile_time_eval():  # a trace is under way
        return differ(one, other)


def alike(run: Callable[..., Any], shapeless: Shapeless) -> Callable[..., Any]:
    """A function that calls `shapeless` and looks like `run`, for jax.jit."""

    def run_shapeless(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return shapeless(*args, **kwargs)

    run_shapeless.__name__, run_shapeless.__qualname__ = run.__name__, run.__qualname__
    run_shapeless.__dict__.update(vars(run))
    return run_shapeless


def _needs_python(closed: Any) -> bool:
    """Whether its derivatives are not those of a trace with sizes: custom ones, and those of a loop over a size."""
    return any(
        e.primitive.name == "while"
        or e.primitive.name.startswith("custom_")
        or any(_needs_python(inner) for _, inner in inner_jaxprs(e.params))
        for e in getattr(closed, "jaxpr", closed).eqns
    )
