"""The public surface: what a user may rely on."""

import inspect
import subprocess
import sys

import pytest

import explorer as ex
from explorer import errors
from tests.support.public_types import returned_classes


@pytest.mark.parametrize("name", ex.__all__)
def test_every_public_name_is_there_with_a_docstring(name):
    assert inspect.getdoc(getattr(ex, name))
    assert name in dir(ex)


def test_dir_is_all_and_each_name_stands_in_it_once():
    assert dir(ex) == sorted(ex.__all__)
    assert len(set(ex.__all__)) == len(ex.__all__)


def test_every_type_that_a_public_function_method_or_property_returns_is_public():
    public = {name: getattr(ex, name) for name in ex.__all__}
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
        kind = getattr(ex, name)
        assert issubclass(kind, UserWarning if name.endswith("Warning") else ex.ExplorerError)
        assert f"─ {name} " in (errors.__doc__ or "") or kind is ex.ExplorerError


def test_importing_explorer_imports_neither_jax_nor_the_view_nor_the_notebook():
    code = (
        "import sys, explorer; print(*sorted({'jax', 'anywidget', 'IPython', 'explorer.view.page'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
