"""Modules as a user writes them, and what becomes of their functions."""

import importlib.util
import itertools
import sys
import textwrap

import pytest

import explorer as ex

__all__ = ["body", "fixed", "load_module"]

numbers = itertools.count()
HEAD = "import functools\nimport jax\nimport jax.numpy as jnp\nimport numpy as np\n"


@pytest.fixture(name="load")
def load_module(tmp_path):
    """Gives a module of some text, under imports."""
    names = []

    def load(text, head=HEAD):
        path = tmp_path / f"users_fixed_{next(numbers)}.py"
        path.write_text(head + textwrap.dedent(text))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
        names.append(path.stem)
        spec.loader.exec_module(module)
        return module

    yield load
    for name in names:
        del sys.modules[name]


def fixed(function, *args, rule=None):
    found = ex.lint(function, *args)
    found = found.of(rule) if rule else found
    return found.fix(0)


def body(fix):
    """What stands under the head of the function."""
    return textwrap.dedent(fix.code.split("\n", 1)[1]).strip()
