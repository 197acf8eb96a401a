"""The page of a session as a person sees it: while cells run, saved, and as JupyterLab's sidebar."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from axe import violations
from lab import Browser, Lab, running_lab
from playwright.sync_api import Locator, Page, expect

import explorer

SETUP = """
%load_ext explorer
import jax, jax.numpy as jnp
import explorer as ex

@jax.jit
def step(x):
    return jnp.tanh(x @ x.T).sum()
""".strip()
CALLS = "for n in (3, 4, 5): step(jnp.ones((n, 8)))"
EXTENSION = Path(explorer.__file__).parent / "view" / "labextension"
SHOWN = ".jp-OutputArea .explorer-session[data-started]"


def row(view: Locator, name: str) -> Locator:
    return view.locator(f'.sp-row[data-key^="{name}|"]')


def test_it_keeps_up_while_cells_run_opens_what_is_clicked_and_is_there_without_a_kernel(lab: Lab, browser: Browser):
    notebook = browser.open(
        lab, lab.write("session.ipynb", SETUP, "%explorer", CALLS, "cap = ex.explore(step, jnp.ones((2, 8)))")
    )
    notebook.run_all()
    view = notebook.page.locator(SHOWN).first
    expect(view.locator("h2")).to_contain_text("compiled 3 times", timeout=60_000)
    expect(view.locator(".sp-head")).to_contain_text("step recompiled twice because x.shape[0] varied")
    expect(row(view, "step")).to_contain_text("2 recompiles")
    row(view, "step").get_by_role("button", name="ledger").click()
    expect(
        row(view, "step").locator(".sp-slot .ledger, .sp-slot .explorer-ledger, .sp-slot [data-explorer]").first
    ).to_be_visible()
    row(view, "step").get_by_role("button", name="capture (x: f32[2,8])").click()
    expect(row(view, "step").locator(".sp-slot .explorer")).to_be_visible(timeout=60_000)
    browser.keep(notebook.page, "session-live")
    notebook.set_theme("JupyterLab Dark")
    expect(view).to_contain_class("dark")
    browser.keep(notebook.page, "session-dark")
    notebook.save()
    notebook.shut_down()
    again = browser.open(lab, "session.ipynb")
    stored = again.page.locator(".jp-OutputArea .explorer-session").first
    expect(row(stored, "step")).to_contain_text("2 recompiles")
    assert not browser.errors


@pytest.mark.parametrize("dark", [False, True])
def test_a_saved_page_opens_what_there_is_without_a_kernel(browser: Browser, tmp_path: Path, dark: bool):
    @jax.jit
    def saved(x):
        return jnp.tanh(x) * 2

    with explorer.watch() as ledger:  # which the page reads for as long as somebody holds it
        for size in (3, 4):
            saved(jnp.ones(size))
        capture = explorer.explore(saved, jnp.ones(5))
    page = browser.open_file(explorer.session().save(tmp_path / "session.html"), dark)
    view = page.locator(".explorer-session")
    assert not violations(page)
    row(view, "saved").get_by_role("button", name="ledger").click()
    expect(row(view, "saved").locator(".sp-slot")).to_contain_text("saved compiled twice")
    row(view, "saved").get_by_role("button", name=f"capture {capture.signature}").last.click()
    expect(row(view, "saved").locator(".sp-slot .explorer > .bar")).to_be_visible()
    expect(view.locator(".sp-on")).to_have_count(0)  # a file watches nothing
    assert len(ledger)
    browser.keep(page, f"session-saved-{'dark' if dark else 'light'}")


@pytest.fixture
def lab_with_sidebar(tmp_path: Path) -> Iterator[Lab]:
    """A JupyterLab that has the extension where a wheel puts it."""
    shutil.copytree(EXTENSION, tmp_path / "home" / "data" / "labextensions" / "explorer-session")
    with running_lab(tmp_path / "home") as lab:
        yield lab


def sidebar(page: Page) -> Locator:
    return page.locator("#explorer-session")


@pytest.mark.slow
def test_the_sidebar_of_jupyterlab_lists_what_the_notebook_in_front_compiled(lab_with_sidebar: Lab, browser: Browser):
    lab = lab_with_sidebar
    notebook = browser.open(lab, lab.write("sidebar.ipynb", SETUP, CALLS))
    requests: list[str] = []
    notebook.page.on("websocket", lambda socket: socket.on("framesent", lambda frame: requests.append(str(frame))))
    tab = notebook.page.get_by_role("tab", name="Explorer: what was compiled in this session")
    tab.click()
    expect(sidebar(notebook.page)).to_contain_text("import explorer in this notebook", timeout=60_000)
    notebook.run_all()
    expect(row(sidebar(notebook.page), "step")).to_contain_text("unwatched", timeout=60_000)
    sidebar(notebook.page).get_by_role("button", name="watch from now on").click()
    expect(sidebar(notebook.page).locator(".sp-on")).to_be_visible(timeout=60_000)
    notebook.run_all()
    expect(row(sidebar(notebook.page), "step")).to_be_visible(timeout=60_000)
    browser.keep(notebook.page, "session-sidebar")
    row(sidebar(notebook.page), "step").get_by_role("button", name="capture (last compile)").click()
    opened = notebook.page.locator(".lm-DockPanel-widget .explorer")
    expect(opened.first).to_be_visible(timeout=60_000)
    browser.keep(notebook.page, "session-sidebar-opened")
    assert not browser.errors


@pytest.mark.slow
def test_a_sidebar_that_is_not_seen_asks_nothing(lab_with_sidebar: Lab, browser: Browser):
    lab = lab_with_sidebar
    notebook = browser.open(
        lab, lab.write("quiet.ipynb", SETUP, CALLS, "import sys; print('explorer.sessions.panel' in sys.modules)")
    )
    notebook.run_all()
    notebook.page.wait_for_timeout(1_000)
    notebook.run_all()
    assert "".join(notebook.outputs()[-1]["text"]) == "False\n"
