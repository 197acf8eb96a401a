"""The public surface: what a user may rely on."""

import importlib
import inspect
import operator
import subprocess
import sys

import pytest

import explorer as ex
from explorer import _lazy, errors
from tests.support.public_types import returned_classes

PLACES = (ex, ex.types, ex.compat.tripy)
EVERY = [pytest.param(place, name, id=f"{place.__name__}.{name}") for place in PLACES for name in place.__all__]


@pytest.mark.parametrize(("place", "name"), EVERY)
def test_every_public_name_is_there_with_a_docstring(place, name):
    assert inspect.getdoc(getattr(place, name))
    assert name in dir(place)


@pytest.mark.parametrize("place", [ex, ex.types], ids=str)
def test_dir_is_all(place):
    assert dir(place) == sorted(place.__all__)


def test_each_name_has_one_place():
    names = [name for place in (*PLACES, errors) for name in place.__all__ if name != "ExplorerError"]
    assert len({*names}) == len(names)


def test_the_top_level_has_at_most_sixty_names():
    assert len(ex.__all__) <= 60


def test_the_stubs_name_what_each_module_has():
    for place in (ex, ex.types):
        for name, module in _lazy.names_of(place.__name__).items():
            if module.startswith("explorer."):
                assert getattr(place, name) is getattr(importlib.import_module(module), name)


@pytest.mark.parametrize(
    ("old", "new"),
    [("Fate", "types.Fate"), ("OptionError", "errors.OptionError"), ("Compiler", "compat.tripy.Compiler")],
)
def test_an_old_name_works_and_its_warning_names_the_new_place(old, new):
    with pytest.warns(DeprecationWarning, match=f"explorer.{old} is now explorer.{new}") as caught:
        value = getattr(ex, old)
    assert value is operator.attrgetter(new)(ex)
    assert caught[0].filename == __file__


def test_every_type_that_a_public_function_method_or_property_returns_is_public():
    public = {name: getattr(place, name) for place in PLACES for name in place.__all__}
    hidden = {
        f"{cls.__module__}.{cls.__name__}": by
        for cls, by in returned_classes(public).items()
        if public.get(cls.__name__) is not cls
    }
    assert hidden == {}, "returned by public functions, and not public themselves"


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'frobnicate'"):
        ex.frobnicate  # noqa: B018


def test_every_error_is_public_drawn_in_the_tree_and_an_explorer_error():
    for name in errors.__all__:
        kind = getattr(errors, name)
        assert issubclass(kind, UserWarning if name.endswith("Warning") else ex.ExplorerError)
        assert f"─ {name} " in (errors.__doc__ or "") or kind is ex.ExplorerError


def test_importing_explorer_imports_neither_jax_nor_the_view_nor_the_notebook():
    code = (
        "import sys, explorer; print(*sorted({'jax', 'anywidget', 'IPython', 'explorer.view.page'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
