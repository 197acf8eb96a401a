"""The examples in the docstrings run and print what they say."""

import doctest
from importlib import import_module
from pkgutil import walk_packages

import pytest

import explorer

MODULES = [module.name for module in walk_packages(explorer.__path__, "explorer.") if "notebook" not in module.name]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_run(name):
    assert doctest.testmod(import_module(name)).failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    with_examples = {name for name in MODULES for test in finder.find(import_module(name)) if test.examples}
    assert {
        "explorer.capture.explore",
        "explorer.aot.compile",
        "explorer.aot.inputs",
        "explorer.model.graph",
    } <= with_examples
