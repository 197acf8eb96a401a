"""`python -m explorer lint module:function`: a function's pitfalls, in the terminal, or as JSON or SARIF."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import sys
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Any

from explorer.errors import ExplorerError, OptionError
from explorer.model.finding import SEVERITIES
from explorer.model.findings import Findings

__all__ = ["add_lint"]

_FORMATS = {"text": Findings.to_text, "json": Findings.to_json, "sarif": Findings.to_sarif}
_NEVER = "never"
_NOT_LOOKED_AT = 2


def add_lint(verbs: Any) -> None:
    """Add `lint` to the command line."""
    about = (
        "Trace a function once, compile and run nothing, and say what may go wrong with it. Exit status: 1 if "
        "something as grave as --fail-on was found, 2 if it could not be looked at, or traced."
    )
    verb = verbs.add_parser("lint", help="find the pitfalls of a function", description=about)
    verb.add_argument("target", metavar="MODULE:FUNCTION", help="package.module:function, or path/to/file.py:function")
    verb.add_argument(
        "--arg",
        metavar="[NAME=]VALUE",
        action="append",
        default=[],
        help="an argument, by position or name: Python, as jnp.ones(3), or a shape, as f32[8,128]; "
        "those that are not given come from the function's annotations and defaults",
    )
    verb.add_argument("--format", choices=tuple(_FORMATS), default="text", help="text if not given")
    verb.add_argument("--rules", metavar="RULES", help="ask only these: EX001,impure-time")
    verb.add_argument("--ignore", metavar="RULES", default="", help="don't ask these")
    verb.add_argument("--thorough", action="store_true", help="trace twice, and compare: finds what was baked in")
    verb.add_argument("--fix", action="store_true", help="show rewrites; each is proven by one more trace")
    verb.add_argument(
        "--fail-on", choices=(*SEVERITIES, _NEVER), default="error", help="from where on the exit status is 1: error"
    )
    verb.set_defaults(run=_lint)


def _lint(given: argparse.Namespace) -> int:
    from explorer.pitfalls.lint import Asked, looked_at

    try:
        # What the user's code prints while it is imported and traced is no part of the report.
        with contextlib.redirect_stdout(sys.stderr):
            function, module = _function(given.target)
            args, kwargs = _arguments(function, given.arg, vars(module))
            asked = Asked(given.rules, given.ignore, given.thorough, given.fix)
            found = looked_at(function, args, kwargs, asked)
    except (ExplorerError, OSError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return _NOT_LOOKED_AT
    print(_FORMATS[given.format](found))
    grave = SEVERITIES[: SEVERITIES.index(given.fail_on) + 1] if given.fail_on != _NEVER else ()
    if any(one.severity in grave for one in found):
        return 1
    return _NOT_LOOKED_AT if found.failure else 0


def _function(target: str) -> tuple[Any, ModuleType]:
    """A function by its name, and the module that it is in."""
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
        known = ", ".join(key for key, value in vars(module).items() if callable(value) and not key.startswith("_"))
        raise OptionError(f"{place} has no {name!r}; it has: {known or 'no functions'}.") from None


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


def _arguments(function: Any, texts: list[str], names: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    import jax
    import jax.numpy as jnp
    import numpy as np

    import explorer
    from explorer.pitfalls.described import annotated, described

    space = {"jax": jax, "jnp": jnp, "np": np, "ex": explorer, **names}
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for text in texts:
        name, equal, value = text.partition("=")
        named = bool(equal) and name.strip().isidentifier() and not value.startswith("=")
        value = value if named else text
        found = described(value)
        if found is None:
            try:
                found = eval(value, space)  # it is the user's own command line
            except Exception as error:
                raise OptionError(
                    f"--arg {text!r} can't be evaluated: {type(error).__name__}: {error}.\n"
                    "  Hint: Python, as jnp.ones(3), with the names of the module; or a shape, as f32[8,128]."
                ) from None
        if named:
            kwargs[name.strip()] = found
        else:
            args.append(found)
    if callable(function):
        for name, value in annotated(function, len(args), kwargs):
            if name is None:
                args.append(value)
            else:
                kwargs[name] = value
    return args, kwargs
