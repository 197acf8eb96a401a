"""Arguments by shape and dtype only: `f32[8,128]` on a command line or annotation, jaxtyping's `Float[Array, "8"]`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from explorer.errors import OptionError

# Of one letter those of `_SHORT` alone and with their bits, not NumPy's `d`, `f` and `m8`: `f[3]` is an item of the
# user's `f`.
_TYPED = re.compile(
    r"\s*((?:[fisuc]\d+|[a-z]{2,}\d*)(?:_\w+)?)\s*\[\s*((?:\d+\s*(?:,\s*\d+\s*)*,?)?)\s*\]\s*", re.IGNORECASE
)
_SYMBOLIC = re.compile(r"([^\[]+)\[\s*([^\]]*?)\s*,?\s*\]\s*")
_SHORT = {"f": "float", "i": "int", "s": "int", "u": "uint", "c": "complex", "bf": "bfloat"}
_SCALARS: Mapping[Any, Any] = {float: 1.0, int: 1, bool: True, "float": 1.0, "int": 1, "bool": True}


def parse_shape_spec(text: str) -> jax.ShapeDtypeStruct | None:
    """Return the array that `f32[8,128]`, `int8[4]` or `bool[]` describes; None for other text.

    Example:
        >>> parse_shape_spec("f32[8,128]")
        ShapeDtypeStruct(shape=(8, 128), dtype=float32)
        >>> parse_shape_spec("jnp.ones(3)")
    """
    match = _TYPED.fullmatch(text)
    if match is None:
        return None
    letters, digits = re.fullmatch(r"([a-z]+)(.*)", match[1].lower()).groups()  # pyright: ignore[reportOptionalMemberAccess]
    name = "bool" if match[1].lower() in ("bool", "pred") else _SHORT.get(letters, letters) + digits
    try:
        dtype = jnp.dtype(name)
    except TypeError:
        return None
    if dtype.kind == "m" or (not jnp.issubdtype(dtype, jnp.number) and dtype != np.bool_):  # a duration is a number
        return None
    return jax.ShapeDtypeStruct(tuple(int(size) for size in match[2].replace(" ", "").split(",") if size), dtype)


def parse_symbolic_spec(text: str) -> tuple[tuple[int | str, ...], np.dtype[Any]] | None:
    """Return the shape and dtype of `f32[batch,seq,64]`, where some sizes have a name; None for other text.

    Example:
        >>> parse_symbolic_spec("f32[batch,seq,64]")
        (('batch', 'seq', 64), dtype('float32'))
        >>> parse_symbolic_spec("f32[8]"), parse_symbolic_spec("table[row,column]")
        (None, None)
    """
    match = _SYMBOLIC.fullmatch(text)
    sizes = [size.strip() for size in match[2].split(",")] if match else []
    if match is None or not all(size.isdecimal() or size.isidentifier() for size in sizes):
        return None
    # Parsed with numbers for the names, so that the dtypes are listed once.
    fixed = parse_shape_spec(f"{match[1]}[{','.join(['1'] * len(sizes))}]")
    shape = tuple(int(size) if size.isdecimal() else size for size in sizes)
    return (shape, fixed.dtype) if fixed is not None and any(isinstance(size, str) for size in shape) else None


def annotated_arguments(
    function: Callable[..., Any], given: int, named: Container[str]
) -> Iterator[tuple[str | None, Any]]:
    """Yield the missing arguments as the function's annotations describe them, by name; None for by position.

    Args:
        function: The annotated function.
        given: The number of arguments given by position.
        named: The names of the arguments given by name.

    Raises:
        OptionError: An argument has neither a default nor an annotation with shape and dtype.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return
    for i, parameter in enumerate(parameters):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or parameter.name in named or i < given:
            continue
        value = _from_annotation(parameter.annotation)
        if value is not None:
            yield None if parameter.kind is parameter.POSITIONAL_ONLY else parameter.name, value
        elif parameter.default is parameter.empty:
            raise OptionError(
                f"the argument `{parameter.name}` of {getattr(function, '__name__', function)} is not given, and no "
                f"annotation says what it is.\n  Hint: --arg '{parameter.name}=f32[8,128]', or "
                f"--arg '{parameter.name}=jnp.ones(3)'; or annotate it: {parameter.name}: \"f32[8,128]\""
            )


def _from_annotation(annotation: Any) -> Any:
    if isinstance(annotation, str):
        return _SCALARS.get(annotation, parse_shape_spec(annotation.strip("'\"")))
    if hasattr(annotation, "to_struct"):
        return annotation.to_struct()
    if isinstance(annotation, jax.ShapeDtypeStruct):
        return annotation
    sizes, dtypes = getattr(annotation, "dim_str", None), getattr(annotation, "dtypes", None)
    if isinstance(sizes, str) and dtypes and all(size.isdigit() for size in sizes.split()):
        usual = [name for name in ("float32", "int32", "bool", "complex64") if name in dtypes]
        return jax.ShapeDtypeStruct(tuple(map(int, sizes.split())), jnp.dtype((usual or list(dtypes))[0]))
    return _SCALARS.get(annotation) if isinstance(annotation, type) else None
