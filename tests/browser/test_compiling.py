"""While a program compiles, its first stages are there to look at; the finished view goes on where one was in them."""

from __future__ import annotations

import pytest
from lab import Browser, Lab
from playwright.sync_api import expect

# The compiler begins when the person has looked: how long it takes would else depend on the machine.
SETUP = """
import os, time
%load_ext explorer
import jax, jax.numpy as jnp
from explorer.capture.backends import HereBackend

compiles = HereBackend.compile
def when_looked_at(*arguments):
    while not os.path.exists("looked"):
        time.sleep(0.05)
    return compiles(*arguments)
HereBackend.compile = when_looked_at

def curve(x):
    return jnp.tanh(x) * jnp.exp(x) + jnp.sort(x)
""".strip()
# Where one is, which is kept a moment after one went there.
KEPT = """() => /"stage":"jaxpr".*"selection"/.test(localStorage.getItem("explorer.places"))"""
START = "void window.jupyterapp.commands.execute('notebook:run-all-cells');"


@pytest.mark.slow
def test_the_stages_before_can_be_used_while_it_compiles(lab: Lab, browser: Browser):
    notebook = browser.open(lab, lab.write("compiling.ipynb", SETUP, "%explore curve(jnp.ones(8))"))
    notebook._do(START)
    page = notebook.page
    view = page.locator('section.explorer[data-capture^="compiling-"][data-ready="true"]')
    expect(view).to_be_visible(timeout=120_000)
    expect(view.locator(".pending")).to_have_text("HLO: compiling")
    expect(view.locator('[role=tab][data-stage="hlo"]')).to_have_count(0)
    view.get_by_role("tab", name="jaxpr").click()
    view.locator("g.box", has_text="tanh").click()
    expect(view.locator("g.box.chosen")).to_contain_text("tanh")
    page.wait_for_function(KEPT)
    browser.keep(page, "compiling")
    (lab.root / "looked").touch()
    notebook.idle()
    whole = page.locator('section.explorer[data-ready="true"]')
    expect(whole).to_have_count(1, timeout=60_000)
    expect(whole.locator(".pending")).to_have_count(0)
    expect(whole.locator('[role=tab][data-stage="hlo"]')).to_be_visible()
    expect(whole.get_by_role("tab", name="jaxpr")).to_have_attribute("aria-selected", "true")
    expect(whole.locator("g.box.chosen")).to_contain_text("tanh")
    browser.keep(page, "compiled")
    # Nothing of it stays in the notebook.
    assert not [output for output in notebook.outputs() if "compiling-" in str(output)]
    notebook.shut_down()
