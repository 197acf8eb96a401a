"""The user's function as a program of its inputs, traced once for all sizes if possible."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from weakref import ref

import jax
import numpy as np

from explorer._jax.calls import suppress_recording
from explorer._jax.rules import freeze_rules
from explorer._jax.symbolic import Undecided, at_sizes, undecided_equalities
from explorer._jax.traces import Literal, jaxpr_as_fun, uncached_programs
from explorer.aot.arguments import is_input, leaf_name
from explorer.aot.inputs import InputInfo, OutputInfo
from explorer.aot.symbols import Symbols, sizes_text
from explorer.capture.origins import refuse_leaks
from explorer.capture.script import printed_once
from explorer.capture.sources import called_at
from explorer.capture.trace_errors import users_place
from explorer.errors import ChangedFunctionError, OutputError, TransformationError
from explorer.runtime.traces import change, derivatives_need_python, disagreement, equations, trace_with_symbols

_MAX_APART = 3  # smallest sizes of a dimension that may be traced separately if the function tests for them


@dataclass(frozen=True)
class Outputs:
    structure: Any
    infos: dict[str, OutputInfo]


@dataclass(frozen=True, eq=False)  # jax.jit keys what it calls by identity
class Traced:
    """Program for given sizes: closed jaxpr of the arrays, outputs, and closed jaxprs of its derivative rules."""

    closed: Any
    outputs: Outputs
    rules: Sequence[Any] = ()

    @property
    def programs(self) -> list[Any]:
        """Return all closed jaxprs that the function's Python produced."""
        return [self.closed, *self.rules]

    def at(self, sizes: Mapping[str, Any]) -> Traced:
        return Traced(at_sizes(self.closed, sizes), self.outputs)

    def __call__(self, *arrays: Any) -> Any:
        __tracebackhide__ = True
        return jax.tree.unflatten(self.outputs.structure, cast(list[Any], jaxpr_as_fun(self.closed)(*arrays)))


class Program:
    """A function with its constants filled in, called with its inputs only."""

    def __init__(self, function: Callable[..., Any], bound: inspect.BoundArguments, symbols: Symbols) -> None:
        self.function = function
        self.symbols = symbols
        self.named_arrays = {
            leaf_name(name, path): leaf
            for name, value in bound.arguments.items()
            for path, leaf in cast(list[Any], jax.tree_util.tree_flatten_with_path(value, is_leaf=is_input)[0])
            if not is_input(leaf)
        }
        self._bound = bound
        values = list(bound.arguments.values())
        self._leaves, self._structure = cast(tuple[list[Any], Any], jax.tree.flatten(values, is_leaf=is_input))
        self._positions = [i for i, leaf in enumerate(self._leaves) if is_input(leaf)]
        self._traced: dict[tuple[int, ...], Traced] = {}
        self._own = OwnConstants()
        # One trace for every size from `symbols.least` on; None, with the reason in `why_each_shape`, if impossible.
        self.symbolic: Traced | None = None
        self.why_apart = ""  # why smaller sizes are traced separately
        # Sizes and result of the first concrete trace. Later traces are compared with it.
        self._first: tuple[Mapping[str, Any], Traced] | None = None
        self.why_each_shape = self._trace_symbolically() if symbols.is_dynamic else ""

    def at(self, sizes: Mapping[str, int]) -> Traced:
        """Return the program for these sizes.

        The user's Python runs, once, only if no symbolic trace covers the sizes: an empty dimension, or a size that the
        function tests for.
        """
        __tracebackhide__ = True
        key = tuple(sizes.values())
        is_traced = self.symbolic is not None and self.symbols.are_traced(sizes)
        if self.symbolic is not None and any(map(jax.export.is_symbolic_dim, key)):  # the caller exports this
            if not is_traced:
                raise TransformationError(
                    f"{self.name} has no program for every size at once: {self.why_apart}.\n{called_at()}"
                    f"  Hint: symbols of at least {sizes_text(self.symbols.least)}."
                )
            return self.symbolic.at(sizes)
        if key not in self._traced:
            self._traced[key] = self.symbolic.at(sizes) if self.symbolic and is_traced else self._trace_again(sizes)
        return self._traced[key]

    def differentiable(self, sizes: Mapping[str, int]) -> Traced:
        """Return the program for these sizes, to be differentiated.

        The user's Python runs if the symbolic trace lacks derivatives at given sizes.
        """
        is_new = self.symbolic is not None and derivatives_need_python(self.symbolic.closed)
        return self._trace_again(sizes) if is_new else self.at(sizes)

    def with_fixed(self, sizes: Mapping[str, int]) -> Traced | None:
        """Return the program with these sizes fixed and symbols for the others; None if it can't be traced so."""
        try:
            with undecided_equalities() as undecided:
                traced = self._trace_again(self.symbols.symbolic(sizes))
        except ChangedFunctionError:
            raise
        except Exception:  # as in _trace_symbolically
            return None
        return None if undecided else traced

    @property
    def outputs(self) -> Outputs:
        return (self.symbolic or next(iter(self._traced.values()))).outputs

    @property
    def name(self) -> str:
        plain = inspect.unwrap(self.function)
        return getattr(plain, "__name__", type(plain).__name__)

    def why(self, sizes: Mapping[str, int]) -> str:
        """Return the reason why these sizes were traced separately; empty if they weren't."""
        if self.symbolic is not None and 0 in sizes.values():
            return "traced separately, because no symbol can be 0"
        if self.symbolic is not None and not self.symbols.are_traced(sizes):
            return f"traced separately, because {self.why_apart}"
        return f"traced separately, because {self.why_each_shape}" if self.why_each_shape else ""

    def discard(self, sizes: Mapping[str, int]) -> None:
        # Later traces are compared with the first one.
        if self._first is None or self._first[0] != sizes:
            self._traced.pop(tuple(sizes.values()), None)

    def _trace_again(self, sizes: Mapping[str, Any]) -> Traced:
        """Return a trace of the function at these sizes; raise ChangedFunctionError if its Python reads other values by
        now.
        """
        # A changed global, closure or attribute would mix old and new values in one executable. Only a second trace at
        # the first sizes shows that; compiling takes far longer.
        __tracebackhide__ = True
        if self._first is None:
            self._first = sizes, self._trace(sizes)
        first_sizes, first = self._first
        are_numbers = all(isinstance(size, int) for size in sizes.values())
        if are_numbers and sizes == first_sizes:  # comparing symbols with numbers would record an undecided equality
            return first
        traced = self._trace(sizes)
        if are_numbers and self.symbolic is not None and self.symbols.are_traced(sizes):
            given = [at_sizes(closed, sizes) for closed in self.symbolic.programs]
            if change(given, traced.programs) is None:  # equal to the trace of the compile: no second trace needed
                return traced
        other = change(first.programs, self._trace(first_sizes).programs)
        if other:
            where = f"  at  {other.place}\n" if other.place else ""
            raise ChangedFunctionError(
                f"{self.name} gives another program now than when it was compiled: what its Python reads has changed.\n"
                f"{where}  it was  {other.before}\n  it is   {other.now}\n{called_at()}"
                "  Hint: compile it again for today's values, or give what changes as an input."
            )
        return traced

    def _trace(self, sizes: Mapping[str, Any]) -> Traced:
        __tracebackhide__ = True
        outputs: list[Outputs] = []

        def run(*arrays: Any) -> Any:
            __tracebackhide__ = True
            result = self._call(sizes, arrays)
            outputs.append(_outputs_of(result))
            return result

        arrays = [struct for struct in self.symbols.structs(sizes) if isinstance(struct, jax.ShapeDtypeStruct)]
        run.__dict__.update(explored=self.function, explored_names=tuple(self.symbols.arrays))  # read by the ledger
        with uncached_programs():  # JAX's cached jaxprs of inner functions may hold values that changed since
            traced = jax.jit(run).trace(*arrays)
        refuse_leaks(traced, inspect.unwrap(self.function), self.named_arrays)
        return self._with_rules(Traced(self._own.in_program(traced.jaxpr), outputs[0]))

    def _with_rules(self, traced: Traced) -> Traced:
        """Return the trace with the jaxprs of the user's derivative rules, without them if a rule needs a size."""
        with (
            suppress_recording(),
            uncached_programs(),
            printed_once() as prints,
            prints.muted(),
            undecided_equalities() as undecided,
        ):
            closed, rules = freeze_rules(traced.closed, self._own.in_program)
        return traced if undecided else Traced(closed, traced.outputs, rules)

    def _call(self, sizes: Mapping[str, Any], arrays: Sequence[Any]) -> Any:
        """Return the result of the user's function for its constants and these inputs."""
        __tracebackhide__ = True
        filled, given, shapes = list(self._leaves), iter(arrays), self.symbols.shapes(sizes)
        for position, (name, info) in zip(self._positions, self.symbols.inputs.items(), strict=True):
            filled[position] = next(given) if isinstance(info, InputInfo) else shapes[name]
        values = jax.tree.unflatten(self._structure, filled)
        call = inspect.BoundArguments(self._bound.signature, dict(zip(self._bound.arguments, values, strict=True)))
        return self.function(*call.args, **call.kwargs)

    def _trace_symbolically(self) -> str:
        """Trace the function once for all sizes, and store the trace in `symbolic`.

        Return an empty string, or the reason if no trace fits all sizes.
        """
        traced, why, undecided = trace_with_symbols(
            lambda: self._trace(self.symbols.symbolic()), lambda traced: traced.closed, self.symbols.corners[0]
        )
        if traced is None:
            least = _least_without(undecided, self.symbols) if undecided else None
            return why if least is None else self._trace_from(least, why)
        why = self._disagreement(traced)
        if not why:
            self.symbolic = traced
            # These were traced at single sizes, to be compared.
            self._traced.clear()
        return why

    def _trace_from(self, least: Mapping[str, int], why: str) -> str:
        """Trace for all sizes from `least` on; return `why`, the reason against others, if that fails, else ""."""
        before, why_before = dict(self.symbols.least), self.why_apart
        self.symbols.least |= least
        self.why_apart = self.why_apart or why
        with printed_once() as prints, prints.muted():
            failed = self._trace_symbolically()
        if failed:
            self.symbols.least, self.why_apart = before, why_before
        return failed and why

    def _disagreement(self, symbolic: Traced) -> str:
        """Return a difference of the symbolic trace from traces at given sizes, with its place; empty if they agree."""
        # Python can inspect a size in ways that can't be observed: `isinstance(n, int)`, `{4: 2.0}.get(n)`, a text.
        # A trace at the smallest, the usual and the largest sizes finds those whose answers differ there.
        for sizes in self.symbols.corners:
            try:
                with suppress_recording(), printed_once() as prints, prints.muted():
                    single = self._trace(sizes)
            except Exception as error:  # the function doesn't accept such sizes
                where = users_place(error)
                failure = f"a trace for {sizes_text(sizes)} fails: {type(error).__name__}"
                return f"{failure}  at  {where}" if where else failure
            self._traced[tuple(sizes.values())] = single
            self._first = self._first or (sizes, single)
            given = at_sizes(symbolic.closed, sizes)
            has_other_tree = symbolic.outputs.structure != single.outputs.structure
            other = disagreement(given, single.closed, has_other_tree=has_other_tree)
            if other is not None:
                where = f"  at  {other.place}" if other.place else ""
                return f"a trace for {sizes_text(sizes)} computes something else: {other.now}{where}"
        return ""


def _least_without(undecided: Sequence[Undecided], symbols: Symbols) -> dict[str, int] | None:
    """Return the smallest size of each tested symbol from which on the function makes no such test.

    None if a test isn't for one size of an input, or is for a size far from the smallest.
    """
    least: dict[str, int] = {}
    for question in undecided:
        if question.only_at is None or question.only_at[0] not in symbols.bounds:
            return None
        symbol, size = question.only_at
        its = symbols.bounds[symbol]
        if not size < min(its.max - 1, max(1, its.min) + _MAX_APART):
            return None
        least[symbol] = max(least.get(symbol, 0), size + 1)
    return least


def _outputs_of(result: Any) -> Outputs:
    """Return a description of the arrays that the function returns; raise OutputError for other values."""
    infos: dict[str, OutputInfo] = {}
    # JAX doesn't count None as a leaf; here it is refused as a value that isn't an array.
    leaves = cast(list[tuple[Any, Any]], jax.tree_util.tree_flatten_with_path(result, is_leaf=_is_none)[0])
    for path, leaf in leaves:
        name = leaf_name("result", path)
        try:
            aval = jax.typeof(leaf)
        except TypeError:
            raise OutputError(
                f"the function returns {leaf!r} as `{name}`; only arrays can be returned.\n"
                "  Hint: return arrays, and keep the rest outside the function."
            ) from None
        shape = (size if isinstance(size, int) else re.sub(r"\s+", "", str(size)) for size in aval.shape)
        infos[name] = OutputInfo(tuple(shape), aval.dtype)
    return Outputs(jax.tree.structure(result), infos)


def _is_none(leaf: Any) -> bool:
    return leaf is None


class OwnConstants:
    """Copies of the NumPy constants of programs, because users may write to the originals.

    Equal constants share a copy, which lives as long as a program has it.
    """

    def __init__(self) -> None:
        self._copies: dict[tuple[Any, ...], list[Callable[[], Any]]] = {}

    def in_program(self, closed: Any) -> Any:
        """Return a closed jaxpr with copies as its constants. Copies also replace array literals, in place."""
        for equation in equations(closed):
            for operand in equation.invars:
                if isinstance(operand, Literal) and not np.isscalar(operand.val):  # an array of no dimensions
                    operand.val = copy.deepcopy(operand.val)
        return closed.replace(consts=[self._of(constant) for constant in closed.consts])

    def _of(self, constant: Any) -> Any:
        # Immutable: a copy would only take memory.
        if isinstance(constant, jax.Array):
            return constant
        if not isinstance(constant, np.ndarray):
            return copy.deepcopy(constant)
        array = cast("np.ndarray[Any, Any]", constant)
        copies = self._copies.setdefault((type(array), array.shape, str(array.dtype)), [])
        alive = [(kept, reference) for reference in copies if (kept := reference()) is not None]
        copies[:] = [reference for _, reference in alive]
        for kept, _ in alive:
            if np.array_equal(_bytes(kept), _bytes(array)):
                return kept
        own = copy.deepcopy(array)
        copies.append(ref(own))
        return own


def _bytes(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    # Arrays are compared bit by bit, so that nan equals nan. Contiguous ones aren't copied.
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
