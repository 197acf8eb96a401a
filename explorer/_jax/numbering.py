"""Rewritten traces: numbers of equations in their name stacks, other names of arguments, other shardings.

XLA's `op_name` then names the equation of each instruction. A numbered program differs from the plain one only in these
names: its StableHLO is the same to the letter, and XLA compiles it to the same program. So its executable can replace
the plain one in JAX's cache: the user's call runs it, and one compile serves both. A program with other shardings is
compiled in addition to the user's program.

The traced jaxpr itself stays without numbers. JAX shares jaxprs of inner functions between programs, and caches what it
derives from them while it lowers: numbers written there, even if removed again, turned up in later programs (jax
0.10.2: 7 of 45 in a second function that calls the same inner one).
"""

from __future__ import annotations

import copy
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import jax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from explorer._jax.traces import Var, change_jaxprs, inner_jaxprs, replaced

NUMBERED_SCOPE = "~eq{}"
"""Scope of an equation's number. XLA ends an `op_name` at `@` but keeps `~`; in names of instructions it writes `_`."""


class NumberedProgram(NamedTuple):
    """A `jax.stages.Traced` with numbered equations, to be lowered, and the path of each row of the jaxpr's graph.

    A path has the numbers of the equations around an equation, outermost first, and its own; arguments have empty
    paths.
    """

    traced: Any
    paths: Sequence[tuple[int, ...]]


def number_equations(traced: Any) -> NumberedProgram | None:
    """Return a copy of a `jax.stages.Traced` with numbered equations, and their paths; None where this JAX can't."""
    numbering = _Numbering()
    try:
        jaxpr = numbering.rewrite(traced.jaxpr)
        numbered = with_jaxpr(traced, jaxpr)
    except (AttributeError, TypeError, KeyError):
        return None
    return NumberedProgram(numbered, [*numbering.paths(getattr(jaxpr, "jaxpr", jaxpr), ())])


def with_argument_names(traced: Any, names: Sequence[str]) -> Any:
    """Return a copy of a `jax.stages.Traced` with other argument names.

    `traced` itself is returned if a name is empty or the number of names differs from that of the arguments.
    """
    jaxpr = traced.jaxpr
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    if not all(names) or len(names) != len(inner.invars):
        return traced
    named = replaced(inner, debug_info=inner.debug_info._replace(arg_names=tuple(names)))
    return with_jaxpr(traced, named if inner is jaxpr else jaxpr.replace(jaxpr=named))


def with_jaxpr(traced: Any, jaxpr: Any) -> Any:
    """Return a copy of a `jax.stages.Traced` with another jaxpr, for `lower`; nothing public does that."""
    other = copy.copy(traced)
    other._params = {**traced._params, "jaxpr": jaxpr}
    if getattr(other, "_lojax", None) is not None:  # 0.12 keeps here what it lowers, once it is made
        other._lojax = None
    return other


def keep_executable(lowered: Any, compiled: Any) -> bool:
    """Put `compiled` where JAX keeps `lowered.compile()`, so that the user's next call runs it; return True if done.

    False if JAX keeps a program there already, which stays. JAX itself keeps none that was compiled with options, such
    as a dump.
    """
    lowering, executable = kept_lowering(lowered), getattr(compiled, "_executable", None)
    if executable is None or getattr(lowering, "_executable", executable) is not None:
        return False
    lowering._executable = executable
    return True


def kept_lowering(lowered: Any) -> Any:
    """Return the object that JAX keeps for all calls of a program; None where this JAX has no such object."""
    return getattr(lowered, "_lowering", None)


class _Rewriter:
    """Visitor that makes another jaxpr of a jaxpr and of its inner jaxprs."""

    def __init__(self) -> None:
        # By id, with the original, so that the id stays valid. An inner function that is called twice is one object and
        # stays one: JAX lowers it once.
        self._made: dict[int, tuple[Any, Any]] = {}

    def rewrite(self, jaxpr: Any) -> Any:
        if id(jaxpr) not in self._made:
            inner = getattr(jaxpr, "jaxpr", jaxpr)  # up to 0.10 one with its constants is around one without
            made = self._open(jaxpr) if inner is jaxpr else jaxpr.replace(jaxpr=self.rewrite(inner))
            self._made[id(jaxpr)] = made, jaxpr
        return self._made[id(jaxpr)][0]

    def _open(self, jaxpr: Any) -> Any:
        raise NotImplementedError


class _Numbering(_Rewriter):
    """Visitor that numbers each equation, in order."""

    def __init__(self) -> None:
        super().__init__()
        self._next = count()
        self._numbers: dict[int, list[int]] = {}  # of the equations of each jaxpr made here, by its id

    def _open(self, jaxpr: Any) -> Any:
        numbers: list[int] = []
        equations: list[Any] = []
        for equation in jaxpr.eqns:
            numbers.append(next(self._next))
            info = equation.source_info
            stack = info.name_stack.extend(NUMBERED_SCOPE.format(numbers[-1]))
            params = change_jaxprs(equation.params, partial(self._branch, seen=set[int]()))
            equations.append(equation.replace(params=params, source_info=info.replace(name_stack=stack)))
        made = replaced(jaxpr, eqns=equations)
        self._numbers[id(made)] = numbers
        return made

    def _branch(self, jaxpr: Any, seen: set[int]) -> Any:
        """Return the numbered copy of a jaxpr in an equation's parameters.

        `seen` collects the ids of this equation's jaxprs: one that occurs twice, as equal branches, is numbered twice.
        """
        if id(jaxpr) in seen:
            self._made.pop(id(jaxpr), None)
            self._made.pop(id(getattr(jaxpr, "jaxpr", jaxpr)), None)
        seen.add(id(jaxpr))
        return self.rewrite(jaxpr)

    def paths(self, jaxpr: Any, around: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """Yield the path of each row of a jaxpr made here: `()` for a constant or argument, numbers for an equation.

        These are `around`, the numbers of the equations around it from the outermost on, and its own.
        """
        for _ in (*jaxpr.constvars, *jaxpr.invars):
            yield ()
        for equation, number in zip(jaxpr.eqns, self._numbers[id(jaxpr)], strict=True):
            own = (*around, number)
            yield own
            for _, inner in inner_jaxprs(equation.params):
                yield from self.paths(inner, own)


try:
    # JAX's own evaluation of a jaxpr enters this around each equation; without it lines point into Explorer.
    from jax._src import source_info_util as _source  # pyright: ignore
except ImportError:  # pragma: no cover - degrades to no source lines
    _source: Any = None


def variable_of(array: Any) -> Any:
    """Return the jaxpr variable of a traced array; None where JAX doesn't show it.

    The attribute isn't public; without it captures of padded programs don't say what is padding.
    """
    variable = getattr(array, "val", None)
    return variable if isinstance(variable, Var) else None


@contextmanager
def at_equation(equation: Any) -> Generator[None]:
    """Trace in this context with the equation's place in the source, its scope and its settings."""
    info = equation.source_info
    settings = getattr(getattr(equation, "ctx", None), "manager", None) or nullcontext()
    if _source is None:  # pragma: no cover
        with settings:
            yield
        return
    stack = _source.current_name_stack() + info.name_stack
    with _source.user_context(info.traceback, name_stack=stack), settings:
        yield


def expanded(equation: Any) -> Any:
    """Return a `call_hi_primitive` equation (from 0.12) as a jaxpr; raise an AttributeError or NotImplementedError."""
    primitive = equation.params["_prim"]
    structs = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in equation.invars]
    return jax.make_jaxpr(primitive.expand)(*jax.tree.unflatten(primitive.in_tree, structs))


def mesh_in(traced: Any) -> Any:
    """Return the mesh of a traced program's arguments or constraints; None without one.

    None for a mesh with explicit axes too: there shardings are types of the program, which can't be exchanged.
    """
    try:
        shardings: list[Any] = [meta.sharding for meta in traced._meta_tys_flat]
    except AttributeError:
        return None
    jaxpr = getattr(traced.jaxpr, "jaxpr", traced.jaxpr)
    shardings += [equation.params.get("sharding") for equation in jaxpr.eqns]
    mesh: Any = next((sharding.mesh for sharding in shardings if isinstance(sharding, NamedSharding)), None)
    return None if mesh is None or AxisType.Explicit in (mesh.axis_types or ()) else mesh


def resharded(
    traced: Any, arguments: Mapping[int, PartitionSpec], results: Mapping[int, tuple[int, PartitionSpec]]
) -> Any:
    """Return the program with some other shardings; None where this JAX keeps them otherwise.

    The specs of `arguments` are by position among the passed arrays; those of `results` by the `id` of the equation,
    with the position of its output.
    """
    mesh = mesh_in(traced)
    try:
        changed = with_jaxpr(traced, _Constraining(mesh, results).rewrite(traced.jaxpr))
        metas = list(traced._meta_tys_flat)  # `lower` reads the arguments' shardings here
        given = list(traced._params["in_shardings"])
        for at, spec in arguments.items():
            sharding = NamedSharding(mesh, spec)
            metas[at] = metas[at].replace(sharding=sharding, format=None, committed=True)
            if isinstance(given[at], NamedSharding):
                given[at] = sharding
        changed._params["in_shardings"] = tuple(given)
        changed._meta_tys_flat = metas
    except (AttributeError, TypeError, KeyError, IndexError):
        return None
    return changed


class _Constraining(_Rewriter):
    """Visitor that inserts sharding constraints after equations."""

    def __init__(self, mesh: Any, results: Mapping[int, tuple[int, PartitionSpec]]) -> None:
        super().__init__()
        self._mesh, self._results = mesh, results

    def _open(self, jaxpr: Any) -> Any:
        return replaced(jaxpr, eqns=[made for equation in jaxpr.eqns for made in self._equations(equation)])

    def _equations(self, equation: Any) -> Sequence[Any]:
        made = equation.replace(params=change_jaxprs(equation.params, self.rewrite))
        if id(equation) not in self._results:
            return (made,)
        at, spec = self._results[id(equation)]
        if made.primitive.name == "sharding_constraint":  # another one behind it would move the array twice
            return (made.replace(params={**made.params, "sharding": NamedSharding(self._mesh, spec)}),)
        outputs = list(made.outvars)
        # Later equations read the old variable: now the constraint defines it.
        whole, outputs[at] = outputs[at], type(outputs[at])(outputs[at].aval)
        sharding = NamedSharding(self._mesh, spec)
        struct = jax.ShapeDtypeStruct(whole.aval.shape, whole.aval.dtype)
        constrain: Any = partial(jax.lax.with_sharding_constraint, shardings=sharding)
        # Traced rather than built: the parameters of a constraint are JAX's own and differ between versions.
        template: Any = jax.make_jaxpr(constrain)(struct)
        constraint = template.eqns[-1].replace(invars=[outputs[at]], outvars=[whole], source_info=equation.source_info)
        return made.replace(outvars=outputs), constraint
