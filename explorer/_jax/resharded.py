"""A traced program with other shardings of its arguments and of the results of some equations.

For JAX's caches it is another program, compiled in addition to the user's program.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import jax
from jax.extend.core import Var
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from explorer._jax.numbering import with_jaxpr
from explorer._jax.traces import change_jaxprs, replaced

try:
    # JAX's own evaluation of a jaxpr enters this around each equation; without it lines point into Explorer.
    from jax._src import source_info_util as _source  # pyright: ignore
except ImportError:  # pragma: no cover - degrades to no source lines
    _source: Any = None


def variable_of(array: Any) -> Any:
    """Return the jaxpr variable of a traced array; None where JAX doesn't say.

    The attribute isn't public; without it captures of padded programs don't say what is padding.
    """
    variable = getattr(array, "val", None)
    return variable if isinstance(variable, Var) else None


@contextmanager
def at_equation(equation: Any) -> Generator[None]:
    """Trace within with the equation's place in the source, its scope and its settings."""
    info = equation.source_info
    settings = getattr(getattr(equation, "ctx", None), "manager", None) or nullcontext()
    if _source is None:  # pragma: no cover
        with settings:
            yield
        return
    stack = _source.current_name_stack() + info.name_stack
    with _source.user_context(info.traceback, name_stack=stack), settings:
        yield


def bind_with(equation: Any, params: Mapping[str, Any], operands: Sequence[Any]) -> list[Any]:
    """Bind an equation's primitive with other parameters to operands; return the results."""
    primitive = equation.primitive
    results = primitive.bind(*operands, **primitive.get_bind_params(dict(params)))
    return list(results) if primitive.multiple_results else [results]


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


class _Constraining:
    """Visitor that inserts constraints after equations, in inner jaxprs too."""

    def __init__(self, mesh: Any, results: Mapping[int, tuple[int, PartitionSpec]]) -> None:
        self._mesh, self._results = mesh, results
        self._made: dict[int, Any] = {}  # by id: an inner function that is called twice is one object and stays one

    def rewrite(self, jaxpr: Any) -> Any:
        if id(jaxpr) not in self._made:
            inner = getattr(jaxpr, "jaxpr", jaxpr)  # up to 0.10 one with its constants is around one without
            made = self._open(jaxpr) if inner is jaxpr else jaxpr.replace(jaxpr=self.rewrite(inner))
            self._made[id(jaxpr)] = made
        return self._made[id(jaxpr)]

    def _open(self, jaxpr: Any) -> Any:
        return replaced(jaxpr, eqns=[made for equation in jaxpr.eqns for made in self._equations(equation)])

    def _equations(self, equation: Any) -> Sequence[Any]:
        made = equation.replace(params=change_jaxprs(equation.params, self.rewrite))
        if id(equation) not in self._results:
            return (made,)
        at, spec = self._results[id(equation)]
        outputs = list(made.outvars)
        whole, outputs[at] = outputs[at], type(outputs[at])(outputs[at].aval)
        sharding = NamedSharding(self._mesh, spec)
        struct = jax.ShapeDtypeStruct(whole.aval.shape, whole.aval.dtype)
        constrain: Any = partial(jax.lax.with_sharding_constraint, shardings=sharding)
        template: Any = jax.make_jaxpr(constrain)(struct)
        constraint = template.eqns[-1].replace(invars=[outputs[at]], outvars=[whole], source_info=equation.source_info)
        return made.replace(outvars=outputs), constraint
