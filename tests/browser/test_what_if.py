"""The switches over a function: each compiled for real in the kernel, and what a page without one says."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
from lab import Browser, Lab
from playwright.sync_api import expect

import explorer as ex

SETUP = """
%load_ext explorer
import jax, jax.numpy as jnp
def scaled(x):
    return jnp.tanh(x) * 2
""".strip()
WHAT_IF = "compile it with a change, and compare"


def test_a_switch_compiles_it_so_and_the_picture_and_figures_change(lab: Lab, browser: Browser):
    notebook = browser.open(lab, lab.write("what_if.ipynb", SETUP, "%explore scaled(jnp.ones((256, 256)))"))
    notebook.run_all()
    view = notebook.page.locator(".jp-OutputArea .explorer").first
    view.get_by_role("button", name=WHAT_IF).click()
    panel = view.get_by_role("region", name="what if")
    act = panel.locator(".act")
    expect(act).to_be_disabled(timeout=60_000)
    panel.get_by_label("donate all arguments that can be reused").check()
    expect(act).to_have_text("compile it so")
    act.click()
    expect(panel.locator(".verdict")).to_contain_text("saves 262 kB of memory", timeout=120_000)
    # The picture is now of the program with the donation: its figures say so, and the way back is one click.
    expect(view).to_contain_text("alias memory")
    browser.keep(notebook.page, "what-if-changed")
    panel.get_by_role("button", name="as it is").click()
    expect(view).not_to_contain_text("alias memory")
    expect(panel).to_be_visible()
    # What is selected in the variant's picture is not told to Python, where it would be another node.
    panel.get_by_role("button", name="changed").click()
    expect(view).to_contain_text("alias memory")
    panel.get_by_label("options of XLA").fill("no_such_option=1")
    panel.get_by_label("options of XLA").press("Tab")
    act.click()
    expect(panel.locator(".verdict")).to_contain_text("No such compile option", timeout=120_000)
    expect(view).not_to_contain_text("alias memory")  # it is shown as it is, for there is nothing else to show
    notebook.set_theme("JupyterLab Dark")
    expect(notebook.page.locator("#jupyterlab-splash")).to_have_count(0, timeout=30_000)
    browser.keep(notebook.page, "what-if-dark")


def test_a_saved_page_offers_no_switches_that_only_a_kernel_has(browser: Browser, tmp_path: Path):
    def scaled(x):
        return jnp.tanh(x) * 2

    page = browser.open_file(ex.explore(scaled, jnp.ones((8, 8))).to_html(tmp_path / "scaled.html"))
    expect(page.get_by_role("toolbar", name="tools")).to_contain_text("full screen")
    expect(page.get_by_role("button", name=WHAT_IF)).to_have_count(0)
