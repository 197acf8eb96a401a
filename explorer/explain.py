"""`python -m explorer explain NAME`: the documentation of a public name, an error or a rule, in a terminal."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import explorer as ex
from explorer import errors
from explorer.errors import UnknownNameError
from explorer.model.text import did_you_mean


def add_explain(verbs: Any) -> None:
    about = "Print what there is to know of an error, a rule or a public name: meaning, what to do, an example."
    verb = verbs.add_parser("explain", help="say what an error, a rule or a name is", description=about)
    verb.add_argument("name", metavar="NAME", help="InputShapeError, EX012, unrolled-loop, explore, Capture.fate")
    verb.set_defaults(run=_explain)


def _explain(given: argparse.Namespace) -> int:
    print(explain(given.name))
    return 0


def explain(name: str) -> str:
    """Return the documentation of an error, a rule, a public name, or a method or property of a public type.

    Raises:
        UnknownNameError: Nothing has this name.

    Example:
        >>> print(explain("OptionError").splitlines()[2])
        An option of compile(), lint(), time(), sweep(), watch(), … is out of range, or one in pyproject.toml.
    """
    name = name.removeprefix("explorer.")
    public, _, member = re.sub(r"^(types|errors|compat\.tripy)\.", "", name).partition(".")
    if text := _documentation(public, member, ("explorer", "explorer.types", "explorer.errors")):
        return text
    from explorer.pitfalls.rule import all_rules, explain_rule, rule_named  # the verbs start without JAX

    if rule := rule_named(name):
        return explain_rule(rule)
    if text := _documentation(public, member, ("explorer.compat.tripy",)):
        return text
    names = (*dir(ex), *dir(ex.types), *errors.__all__)
    near = did_you_mean(name, (*names, *(name for rule in all_rules() for name in (rule.code, rule.name))))
    raise UnknownNameError(f"there is no error, rule or public name {name!r}.{near}")


def _documentation(public: str, member: str, modules: Sequence[str]) -> str:
    for module in map(import_module, modules):
        if public in module.__all__:
            value = getattr(module, public)
            documented = getattr(value, member, None) if member else value
            if documented is not None and (text := inspect.getdoc(documented)):
                name = ".".join(filter(None, (module.__name__, public, member)))
                return f"{name}{_signature(documented)}\n\n{text}"
    return ""


def _signature(value: Any) -> str:
    if not callable(value) or value in (getattr(errors, name) for name in errors.__all__):
        return ""
    return str(inspect.signature(value)).replace("'", "")
