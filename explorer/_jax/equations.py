"""An equation of a jaxpr run by itself, as if it stood where the user wrote it."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import jax
from jax.extend.core import Var

try:
    # What JAX's own evaluation of a jaxpr enters around each equation; without it lines point into Explorer.
    from jax._src import source_info_util as _source  # pyright: ignore
except ImportError:  # pragma: no cover - degrades to no source lines
    _source: Any = None


def variable_of(array: Any) -> Any:
    """What stands for a traced array in the jaxpr that it becomes part of; None where JAX doesn't say.

    The attribute isn't public; without it captures of padded programs don't say what is padding.
    """
    variable = getattr(array, "val", None)
    return variable if isinstance(variable, Var) else None


@contextmanager
def at_equation(equation: Any) -> Generator[None]:
    """Within: what is traced has the equation's place in the source, its scope and its settings."""
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
    """What an equation's primitive gives with other parameters and these operands."""
    primitive = equation.primitive
    results = primitive.bind(*operands, **primitive.get_bind_params(dict(params)))
    return list(results) if primitive.multiple_results else [results]


def expanded(equation: Any) -> Any:
    """What a `call_hi_primitive` equation (from 0.12) does, as a jaxpr of other primitives.

    Raises:
        AttributeError: It is of a kind that has no such form.
        NotImplementedError: Likewise.
    """
    primitive = equation.params["_prim"]
    structs = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in equation.invars]
    return jax.make_jaxpr(primitive.expand)(*jax.tree.unflatten(primitive.in_tree, structs))
