"""`.widget()`: the same viewer as an ipywidget; what is selected in it is a Python value."""

from __future__ import annotations

from lab import Browser, Lab
from playwright.sync_api import expect
from view import View

CODE = """
import jax.numpy as jnp
import explorer as ex

def f(x):
    y = jnp.tanh(x)
    return y * 2

cap = ex.explore(f, jnp.ones((8, 16)))
widget = cap.widget()
widget
""".strip()


def test_a_selection_in_the_widget_is_a_trait(lab: Lab, browser: Browser):
    live = browser.open(lab, lab.write("widget.ipynb", CODE))
    live.run_all()
    view = View(live.page)
    view.click_line("jnp.tanh")
    expect(view.root.locator(".explorer-details")).to_contain_text("line 5")
    assert "tanh" in live.python("widget.selection")
    assert live.python("cap.selection == cap.nodes_at(5) != ()") == "True"
    live.shut_down()
