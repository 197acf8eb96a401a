"""A function and its arguments on a command line: `module:function --arg f32[8,128]`."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Any

from explorer.capture.shape_specs import annotated_arguments, parse_shape_spec
from explorer.errors import ExplorerError, OptionError


def add_target(verb: Any) -> None:
    """Add the arguments of the command line that name a function and its arguments."""
    verb.add_argument("target", metavar="MODULE:FUNCTION", help="package.module:function, or path/to/file.py:function")
    add_arguments(verb)


def add_arguments(verb: Any) -> None:
    """Add `--arg`."""
    verb.add_argument(
        "--arg",
        metavar="[NAME=]VALUE",
        action="append",
        default=[],
        help="an argument, by position or name: Python, as jnp.ones(3), or a shape, as f32[8,128]; "
        "those that are not given come from the function's annotations and defaults",
    )


def function_of(target: str) -> tuple[Any, ModuleType]:
    """Return a function by `module:name` or `file.py:name`, and its module."""
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name:
        raise OptionError(
            f"{target!r} names no function.\n  Hint: package.module:function, or path/to/file.py:function."
        )
    try:
        module = _from_file(Path(place)) if place.endswith(".py") else _from_path(place)
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
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    return importlib.import_module(name)


def _from_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise OptionError(f"there is no file {str(path)!r}.")
    sys.path.insert(0, str(path.resolve().parent))  # as where `python file.py` looks for what it imports
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def arguments_of(function: Any, texts: list[str], names: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments that `--arg` gave, and for the others those that annotations describe."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    space = {"jax": jax, "jnp": jnp, "np": np, "ex": importlib.import_module("explorer"), **names}
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for text in texts:
        name, equal, value = text.partition("=")
        named = bool(equal) and name.strip().isidentifier() and not value.startswith("=")
        value = value if named else text
        argument = parse_shape_spec(value)
        if argument is None:
            try:
                argument = eval(value, space)  # it is the user's own command line
            except Exception as error:
                raise OptionError(
                    f"--arg {text!r} can't be evaluated: {type(error).__name__}: {error}.\n"
                    "  Hint: Python, as jnp.ones(3), with the names of the module; or a shape, as f32[8,128]."
                ) from None
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
