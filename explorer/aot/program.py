"""The user's function as a program of its inputs alone, traced once for all sizes if that can be."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import jax
import numpy as np
from jax.extend.core import Literal, jaxpr_as_fun

from explorer._jax import Undecided, at_sizes, freeze_rules, undecided_equalities
from explorer._jax.calls import suppress_recording
from explorer._jax.traces import uncached_programs
from explorer.aot.arguments import is_input, leaf_name
from explorer.aot.encoding import OwnConstants
from explorer.aot.inputs import InputInfo, OutputInfo
from explorer.aot.symbols import Symbols, sizes_text
from explorer.capture.constants import refuse_leaks
from explorer.capture.prints import printed_once
from explorer.capture.sources import called_at, place
from explorer.capture.trace_errors import users_place
from explorer.errors import ChangedFunctionError, OutputError, TransformationError
from explorer.runtime.traces import change, derivatives_need_python, disagreement, equations

_APART = 3  # sizes of a dimension, its smallest, that have programs of their own where the function asks for them


@dataclass(frozen=True)
class Outputs:
    """What the function returns: arrays, by name, in its own tree."""

    structure: Any
    infos: dict[str, OutputInfo]


@dataclass(frozen=True, eq=False)  # jax.jit keys what it calls by identity
class Traced:
    """A program for given sizes: a jaxpr of the arrays, what its results are, and its rules of custom derivatives."""

    closed: Any
    outputs: Outputs
    rules: Sequence[Any] = ()

    @property
    def programs(self) -> list[Any]:
        """All that the function's Python gave, as closed jaxprs."""
        return [self.closed, *self.rules]

    def __call__(self, *arrays: Any) -> Any:
        __tracebackhide__ = True
        return jax.tree.unflatten(self.outputs.structure, cast(list[Any], jaxpr_as_fun(self.closed)(*arrays)))


class Program:
    """A function, with its constants in place, to be called with its inputs alone."""

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
        self._with_own_constants = partial(with_own_constants, own=OwnConstants())
        # For every size at once from `symbols.least` on, and if there is none, why.
        self.symbolic: Traced | None = None
        self.why_apart = ""  # why smaller sizes than those are traced by themselves
        # The sizes of the first trace with numbers, and what it gave: what any later one is held against.
        self._first: tuple[Mapping[str, Any], Traced] | None = None
        self.why_each_shape = self._trace_symbolically() if symbols.is_dynamic else ""

    def at(self, sizes: Mapping[str, int]) -> Traced:
        """The program for these sizes.

        It runs the user's Python, once, only where one trace doesn't serve every size; there, or where a dimension is
        smaller than that trace is for: empty, which no symbol can say, or of a size that the function asks for.

        Raises:
            ChangedFunctionError: It had to, and the Python gives another program than it gave at first.
            TransformationError: The sizes are another's symbols, which may be smaller than the trace is for.
        """
        __tracebackhide__ = True
        key = tuple(sizes.values())
        is_traced = self.symbolic is not None and self.symbols.are_traced(sizes)
        if self.symbolic is not None and any(map(jax.export.is_symbolic_dim, key)):  # of a caller that exports this
            if not is_traced:
                raise TransformationError(
                    f"{self.name} has no program for every size at once: {self.why_apart}.\n{called_at()}"
                    f"  Hint: symbols of at least {sizes_text(self.symbols.least)}."
                )
            return Traced(at_sizes(self.symbolic.closed, sizes), self.symbolic.outputs)
        if key not in self._traced:
            if self.symbolic is None or not is_traced:
                self._traced[key] = self._trace_again(sizes)
            else:
                self._traced[key] = Traced(at_sizes(self.symbolic.closed, sizes), self.symbolic.outputs)
        return self._traced[key]

    def differentiable(self, sizes: Mapping[str, int]) -> Traced:
        """The program for these sizes where derivatives are asked of it.

        It runs the user's Python where one trace serves every size but not its derivatives.

        Raises:
            ChangedFunctionError: It had to, and the Python gives another program than it gave at first.
        """
        is_new = self.symbolic is not None and derivatives_need_python(self.symbolic.closed)
        return self._trace_again(sizes) if is_new else self.at(sizes)

    def with_fixed(self, sizes: Mapping[str, int]) -> Traced | None:
        """The program with these sizes, symbols for the others; None if it can't be traced so. It runs the Python."""
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
        """What comes out: for every size at once, or else for the sizes that were first traced."""
        return (self.symbolic or next(iter(self._traced.values()))).outputs

    def outputs_at(self, sizes: Mapping[str, int]) -> Outputs:
        """What comes out, for these sizes."""
        return self.at(sizes).outputs

    @property
    def name(self) -> str:
        """What the compiler calls it: as the function."""
        plain = inspect.unwrap(self.function)
        return getattr(plain, "__name__", type(plain).__name__)

    def why(self, sizes: Mapping[str, int]) -> str:
        """Why the program for these sizes was traced for them alone; empty if it wasn't."""
        if self.symbolic is not None and 0 in sizes.values():
            return "traced by itself, because no symbol can be 0"
        if self.symbolic is not None and not self.symbols.are_traced(sizes):
            return f"traced by itself, because {self.why_apart}"
        return f"traced by itself, because {self.why_each_shape}" if self.why_each_shape else ""

    def discard(self, sizes: Mapping[str, int]) -> None:
        """Let go of the program for these sizes; the first stays, which later ones are held against."""
        if self._first is None or self._first[0] != sizes:
            self._traced.pop(tuple(sizes.values()), None)

    def _trace_again(self, sizes: Mapping[str, Any]) -> Traced:
        """A trace for these sizes, if the function is still what it was when it was traced first.

        What its Python reads may be another: a global, a closure, an attribute. Then a part of the executable would be
        of the old world and a part of the new. Only a trace at the same sizes tells; compiling takes far longer.
        """
        __tracebackhide__ = True
        if self._first is None:
            self._first = sizes, self._trace(sizes)
        first_sizes, first = self._first
        are_numbers = all(isinstance(size, int) for size in sizes.values())
        if are_numbers and sizes == first_sizes:  # a symbol that equals a number only at times is told
            return first
        traced = self._trace(sizes)
        if are_numbers and self._is_as_symbolic(sizes, traced):
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

    def _is_as_symbolic(self, sizes: Mapping[str, Any], traced: Traced) -> bool:
        """Whether a trace is surely the one for every size, which was of the compile: a second one needn't tell."""
        if self.symbolic is None or not self.symbols.are_traced(sizes):
            return False
        return change([at_sizes(closed, sizes) for closed in self.symbolic.programs], traced.programs) is None

    def _trace(self, sizes: Mapping[str, Any]) -> Traced:
        __tracebackhide__ = True
        outputs: list[Outputs] = []

        def run(*arrays: Any) -> Any:
            __tracebackhide__ = True
            result = self._call(sizes, arrays)
            outputs.append(_outputs_of(result))
            return result

        named = zip(self.symbols.inputs, self.symbols.structs(sizes), strict=True)
        arrays = {name: struct for name, struct in named if isinstance(struct, jax.ShapeDtypeStruct)}
        run.__dict__.update(explored=self.function, explored_names=tuple(arrays))  # for who watches what is traced
        with uncached_programs():  # what JAX remembers of an inner function is of what that read once
            traced = jax.jit(run).trace(*arrays.values())
        refuse_leaks(traced, inspect.unwrap(self.function), self.named_arrays)
        return self._with_rules(Traced(self._with_own_constants(traced.jaxpr), outputs[0]))

    def _with_rules(self, traced: Traced) -> Traced:
        """With what the user's rules of derivatives give now; those that ask for a size that isn't known run later."""
        with (
            suppress_recording(),
            uncached_programs(),
            printed_once() as prints,
            prints.muted(),
            undecided_equalities() as undecided,
        ):
            closed, rules = freeze_rules(traced.closed, self._with_own_constants)
        return traced if undecided else Traced(closed, traced.outputs, rules)

    def _call(self, sizes: Mapping[str, Any], arrays: Sequence[Any]) -> Any:
        """The user's function with its constants and these inputs."""
        __tracebackhide__ = True
        filled, given, shapes = list(self._leaves), iter(arrays), self.symbols.shapes(sizes)
        for position, (name, info) in zip(self._positions, self.symbols.inputs.items(), strict=True):
            filled[position] = next(given) if isinstance(info, InputInfo) else shapes[name]
        values = jax.tree.unflatten(self._structure, filled)
        call = inspect.BoundArguments(self._bound.signature, dict(zip(self._bound.arguments, values, strict=True)))
        return self.function(*call.args, **call.kwargs)

    def _trace_symbolically(self) -> str:
        """Trace for every size at once; if that fails, why.

        Whatever is raised here may be JAX's or the user's: a trace with sizes, which follows, tells.
        """
        try:
            with undecided_equalities() as undecided:
                traced = self._trace(self.symbols.symbolic())
                # Not every program can be given its sizes afterwards.
                at_sizes(traced.closed, self.symbols.corners[0])
        except Exception as error:
            where, first = users_place(error), str(error).strip().partition("\n")[0]
            return f"{first or type(error).__name__}  at  {where}" if where else first
        if undecided:
            equality = undecided[0]
            why = f"`{equality.text}` holds for some sizes only  at  {place(equality.file, equality.line)}"
            least = _least_without(undecided, self.symbols)
            return why if least is None else self._trace_from(least, why)
        lie = self._lie(traced)
        if not lie:
            self.symbolic = traced
            self._traced.clear()
        return lie

    def _trace_from(self, least: Mapping[str, int], why: str) -> str:
        """Trace for every size from a larger one on: of those that are asked for each has a program of its own."""
        before, why_before = dict(self.symbols.least), self.why_apart
        self.symbols.least |= least
        self.why_apart = self.why_apart or why
        with printed_once() as prints, prints.muted():
            failed = self._trace_symbolically()
        if failed:
            self.symbols.least, self.why_apart = before, why_before
        return failed and why

    def _lie(self, symbolic: Traced) -> str:
        """Where the trace for every size computes something else than one for a single size; empty if nowhere.

        Python has more ways to ask for a size than can be watched: `isinstance(n, int)`, `{4: 2.0}.get(n)`, a text.
        Those whose answer differs at the smallest size, the usual or the largest are found out here.
        """
        for sizes in self.symbols.corners:
            try:
                with suppress_recording(), printed_once() as prints, prints.muted():
                    single = self._trace(sizes)
            except Exception as error:  # the function's own: it takes no such size
                where = users_place(error)
                return f"a trace for {sizes_text(sizes)} fails: {type(error).__name__}" + (
                    f"  at  {where}" * bool(where)
                )
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
    """From which sizes on none of these is asked any more; None where those are too few, or too many are left out."""
    least: dict[str, int] = {}
    for question in undecided:
        if question.only_at is None or question.only_at[0] not in symbols.bounds:
            return None
        symbol, size = question.only_at
        its = symbols.bounds[symbol]
        if not size < min(its.max - 1, max(1, its.min) + _APART):
            return None
        least[symbol] = max(least.get(symbol, 0), size + 1)
    return least


def _outputs_of(result: Any) -> Outputs:
    """What the function returns, by name; only arrays can be returned, for nothing else comes out of a program."""
    infos: dict[str, OutputInfo] = {}
    # To JAX None is no leaf at all.
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
        infos[name] = OutputInfo(tuple(map(_size, aval.shape)), aval.dtype)
    return Outputs(jax.tree.structure(result), infos)


def _size(size: Any) -> int | str:
    return size if isinstance(size, int) else re.sub(r"\s+", "", str(size))


def _is_none(leaf: Any) -> bool:
    return leaf is None


def with_own_constants(closed: Any, own: OwnConstants) -> Any:
    """A closed jaxpr whose NumPy constants are copies: the user's own arrays can be written to, later."""
    for equation in equations(closed):
        for operand in equation.invars:
            if isinstance(operand, Literal) and not np.isscalar(operand.val):  # an array of no dimensions
                operand.val = copy.deepcopy(operand.val)
    return closed.replace(consts=[own.of(constant) for constant in closed.consts])
