"""A function and its arguments on a command line: `module:function --arg f32[8,128]`."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Container, Iterator, Mapping
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from explorer.errors import ExplorerError, OptionError


def add_target(verb: Any) -> None:
    """Add to a parser of the command line the arguments that name a function and its arguments."""
    verb.add_argument("target", metavar="MODULE:FUNCTION", help="package.module:function, or path/to/file.py:function")
    add_arguments(verb)


def add_arguments(verb: Any) -> None:
    verb.add_argument(
        "--arg",
        metavar="[NAME=]VALUE",
        action="append",
        default=[],
        help="an argument, by position or name: Python, as jnp.ones(3), or a shape, as f32[8,128]; "
        "those that are not given come from the function's annotations and defaults",
    )


def function_of(target: str) -> tuple[Any, ModuleType]:
    """Return the value named by `module:name` or `file.py:name`, and its module; raise OptionError if it is missing."""
    place, _, name = parts = target.rpartition(":")
    if not all(parts):
        raise OptionError(
            f"{target!r} names no function.\n  Hint: package.module:function, or path/to/file.py:function."
        )
    try:
        module = _from_file(Path(place)) if place.endswith(".py") else _from_path(place)
    # A missing file has a better message already.
    except ExplorerError:
        raise
    except Exception as error:
        raise OptionError(f"{place} can't be imported: {type(error).__name__}: {error}.") from error
    try:
        return reduce(getattr, name.split("."), module), module
    except AttributeError:
        callables = ", ".join(key for key, value in vars(module).items() if callable(value) and not key.startswith("_"))
        raise OptionError(f"{place} has no {name!r}; it has: {callables or 'no functions'}.") from None


def _from_path(name: str) -> ModuleType:
    # With -P, as `bisect` runs this command, Python leaves the working folder out.
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    return importlib.import_module(name)


def _from_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise OptionError(f"file {str(path)!r} doesn't exist.")
    sys.path.insert(0, str(path.resolve().parent))  # as where `python file.py` looks for what it imports
    module = importlib.util.module_from_spec(spec)
    # Before it runs: dataclasses and pickle look a class's module up by name.
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _argument(text: str, value: str, space: dict[str, Any]) -> Any:
    """Return the struct of a shape such as `f32[8,128]`, else the value of Python; raise OptionError, with `text`."""
    argument = parse_shape_spec(value)
    if argument is not None:
        return argument
    try:
        return eval(value, space)  # it is the user's own command line
    except Exception as error:
        raise OptionError(
            f"--arg {text!r} can't be evaluated: {type(error).__name__}: {error}.\n"
            "  Hint: Python, as jnp.ones(3), with the names of the module; or a shape, as f32[8,128]."
        ) from None


def arguments_of(function: Any, texts: list[str], names: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return (args, kwargs): the values of the `--arg` texts, and of missing ones as the function's annotations say.

    `names` are the names that a text may use, in addition to `jax`, `jnp`, `np` and `ex`.
    """
    space = {"jax": jax, "jnp": jnp, "np": np, "ex": importlib.import_module("explorer"), **names}
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for text in texts:
        name, equal, value = text.partition("=")
        named = bool(equal) and name.strip().isidentifier() and not value.startswith("=")
        value = value if named else text
        argument = _argument(text, value, space)
        if named:
            kwargs[name.strip()] = argument
        else:
            args.append(argument)
    if callable(function):
        for name, value in annotated_arguments(function, len(args), kwargs):
            if name is None:
                args.append(value)
            else:
                kwargs[name] = value
    return args, kwargs


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
    """Yield (name, value) of each argument that isn't given, from its annotation; (None, value) if positional-only.

    Raises OptionError for an argument with neither a usable annotation nor a default.
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
                f"the argument `{parameter.name}` of {getattr(function, '__name__', function)} is missing, and no "
                f"annotation describes it.\n  Hint: --arg '{parameter.name}=f32[8,128]', or "
                f"--arg '{parameter.name}=jnp.ones(3)'; or annotate it: {parameter.name}: \"f32[8,128]\""
            )


def _from_annotation(annotation: Any) -> Any:
    if isinstance(annotation, str):
        return _SCALARS.get(annotation, parse_shape_spec(annotation.strip("'\"")))
    if hasattr(annotation, "to_struct"):
        return annotation.to_struct()
    if isinstance(annotation, jax.ShapeDtypeStruct):
        return annotation
    # An annotation of jaxtyping, such as `Float[Array, "8 128"]`, which is not imported for it.
    sizes, dtypes = getattr(annotation, "dim_str", None), getattr(annotation, "dtypes", None)
    if isinstance(sizes, str) and dtypes and all(size.isdigit() for size in sizes.split()):
        usual = [name for name in ("float32", "int32", "bool", "complex64") if name in dtypes]
        return jax.ShapeDtypeStruct(tuple(map(int, sizes.split())), jnp.dtype((usual or list(dtypes))[0]))
    return _SCALARS.get(annotation) if isinstance(annotation, type) else None
