"""The examples in the docstrings run and print what they say; those of public names for whoever copies them alone."""

import doctest
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType

import pytest

import explorer
from docs.pages.members import members

MODULES = [module.name for module in walk_packages(explorer.__path__, "explorer.") if "__main__" not in module.name]


@cache
def public_names():
    """What documents itself in the reference: `explorer.capture.explore.explore`, each method of a public type."""
    places = (explorer, explorer.types, explorer.errors, explorer.compat.tripy)
    values = [getattr(place, name) for place in places for name in place.__all__]
    values = [value for value in values if not isinstance(value, ModuleType)]
    methods = [member.function for value in values if isinstance(value, type) for member in members(value)]
    return {f"{value.__module__}.{value.__qualname__}" for value in (*values, *methods)}


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_run(name):
    # What an error says of a place ends with `<doctest …>`, and its long lines are wrapped.
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE if name.startswith("explorer.errors") else 0
    runner = doctest.DocTestRunner(optionflags=flags)
    for example in doctest.DocTestFinder(exclude_empty=True).find(import_module(name)):
        if example.name in public_names():
            example.globs = {"__name__": "__main__"}
        runner.run(example)
    assert runner.failures == 0
