"""The one surface of everything that a public function returns."""

import gc
import subprocess
import sys

import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.model.declared import Displayable
from explorer.model.results.roofline import Peaks
from explorer.view import display
from explorer.view.registry import _VIEWS, view_of

ONES = jnp.ones(4)


def double(x):
    return x * 2


@pytest.fixture(scope="module")
def values():
    capture = ex.explore(double, ONES)
    executable = ex.compile(double, args=[ex.InputInfo((4,), jnp.float32)])
    peaks = Peaks("a <machine>", 10e9, {"f32": 1e11}, {"f32": 2e10})
    return [capture, ex.diff(capture, capture), capture.findings, ex.Ledger(), peaks, executable]


def test_every_value_is_text_page_and_output(values, tmp_path):
    for value in values:
        assert isinstance(value, Displayable)
        bundle = value._repr_mimebundle_()
        assert "the view failed" not in bundle["text/plain"]
        assert value._repr_html_()[:20] == bundle["text/html"][:20]
        assert value.to_text(80)
        page = value.to_html(tmp_path / "page.html").read_text(encoding="utf-8")
        assert page.startswith("<!doctype html>")
        assert "<machine>" not in page


def test_every_registered_view_exists():
    for name in _VIEWS:
        assert type(view_of(type(name, (Displayable,), {}))).__name__.endswith("View")


def test_a_subclass_is_shown_as_its_base_is():
    assert type(view_of(type("Watch", (ex.Ledger,), {}))) is type(view_of(ex.Ledger))


def test_in_a_terminal_a_value_is_text_alone(values, monkeypatch):
    monkeypatch.setattr(display, "in_terminal", lambda: True)
    for value in values:
        assert set(value._repr_mimebundle_()) == {"text/plain"}


def test_a_value_without_a_view_is_still_shown_as_text():
    class Unknown(Displayable):
        def __repr__(self):
            return "Unknown()"

    assert Unknown()._repr_mimebundle_() == {
        "text/plain": "Unknown()\n(the view failed: LookupError: Unknown has no view)"
    }


@pytest.mark.parametrize("collects", [True, False])
def test_a_display_leaves_the_garbage_collector_as_it_was(collects):
    value = ex.explore(jnp.sin, jnp.ones(8))
    before = gc.isenabled()
    try:
        (gc.enable if collects else gc.disable)()
        value._repr_mimebundle_()
        assert gc.isenabled() is collects
    finally:
        (gc.enable if before else gc.disable)()


def test_importing_explorer_loads_nothing_of_the_view():
    code = "import sys, explorer; print([name for name in sys.modules if name.startswith('explorer.view')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
