"""Public names that are imported at first use: a module's stub lists them, for type checkers and at run time.

A report opens without JAX, and a script pays only for the names that it uses.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from importlib import import_module
from pkgutil import get_data


def names_of(module: str) -> Mapping[str, str]:
    """Return a dict from each public name in a module's `.pyi` stub to the module that defines it.

    The value is an empty string for names that the module itself defines.
    """
    package, _, last = module.rpartition(".")
    # By the package's loader: the package may be in a zip file.
    stub = get_data(package or module, f"{last if package else '__init__'}.pyi")
    places: dict[str, str] = {}
    for node in ast.parse(stub or b"").body:
        match node:
            case ast.ImportFrom(module=str(place), names=names):
                # In a stub `import x as x` makes a name public; other imports are for annotations.
                places |= {name.asname: place for name in names if name.asname is not None}
            case ast.Assign(targets=[ast.Name(id=name)]) if not name.startswith("_"):
                places[name] = ""
            case _:
                pass
    return places


def load(place: str, name: str) -> object:
    """Return the object `name` of the module `place`, or the module `explorer.NAME` if `place` is `explorer`."""
    return import_module(f"explorer.{name}") if place == "explorer" else getattr(import_module(place), name)
