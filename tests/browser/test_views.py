"""The same output where there is no kernel, no trust or no JupyterLab: it shows as much as the place allows."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
import pytest
from lab import Browser, Lab
from nbconvert import HTMLExporter
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page, expect
from view import READY, View

from explorer.files.capture import decode
from explorer.model.capture import Capture
from explorer.view.page import unpack

NAME = "00_start_here.ipynb"
LINE = "scores = "
PICTURE = ".explorer-static img"


@pytest.fixture
def tutorial(notebooks: Path) -> nbformat.NotebookNode:
    return nbformat.read(notebooks / NAME, as_version=4)


def assert_interactive(page: Page) -> View:
    view = View(page)
    expect(page.locator(PICTURE).last).to_be_hidden()
    view.open_fusion()
    assert view.light(LINE)
    return view


def assert_drawn(page: Page) -> None:
    """The last static picture is there and decodes."""
    image = page.locator(PICTURE).last
    expect(image).to_be_visible()
    assert image.evaluate("async image => (await image.decode(), image.naturalWidth)") > 100
    assert image.get_attribute("alt")


def test_an_untrusted_notebook_shows_the_static_picture(lab: Lab, browser: Browser, notebooks: Path):
    shutil.copy(notebooks / NAME, lab.root / "stranger.ipynb")
    opened = browser.open(lab, "stranger.ipynb")
    assert not opened.trusted()
    assert_drawn(opened.page)
    opened.page.locator(".explorer-static summary").last.click()
    expect(opened.page.locator(".explorer-static table").last).to_contain_text("kernels")
    expect(opened.page.locator(".explorer")).to_have_count(0)
    opened.screenshot("untrusted", PICTURE)
    opened.shut_down()


def test_a_trusted_notebook_is_interactive_without_running_it_in_dark_too(lab: Lab, browser: Browser, notebooks: Path):
    shutil.copy(notebooks / NAME, lab.root / "dark.ipynb")
    lab.trust("dark.ipynb")
    opened = browser.open(lab, "dark.ipynb")
    assert opened.trusted()
    view = assert_interactive(opened.page)
    light = view.root.evaluate("root => getComputedStyle(root).backgroundColor")
    opened.set_theme("JupyterLab Dark")
    expect(view.root).not_to_have_css("background-color", light)
    opened.screenshot("dark", READY)
    opened.shut_down()


def test_nbconvert_makes_an_interactive_page(browser: Browser, tutorial: nbformat.NotebookNode, tmp_path: Path):
    exporter = HTMLExporter()
    page = tmp_path / "tutorial.html"
    page.write_text(exporter.from_notebook_node(tutorial)[0], encoding="utf-8")
    opened = browser.open_file(page)
    view = assert_interactive(opened)
    view.centre()
    browser.keep(opened, "nbconvert")
    # nbconvert's own page asks for these, and does without them.
    own = {urlsplit(url).netloc for url in (exporter.require_js_url, exporter.mathjax_url, exporter.jquery_url)}
    browser.forgive_requests(lambda url: urlsplit(url).netloc in own)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_from_to_html_is_interactive_from_a_file(
    browser: Browser, tutorial: nbformat.NotebookNode, tmp_path: Path, scheme: str
):
    capture = last_capture(tutorial)
    opened = browser.open_file(capture.to_html(tmp_path / "report.html"), dark=scheme == "dark")
    assert_interactive(opened)
    browser.keep(opened, f"page-{scheme}")


def test_a_page_without_scripts_shows_the_static_picture(
    chromium: Chromium, tutorial: nbformat.NotebookNode, tmp_path: Path
):
    capture = last_capture(tutorial)
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(capture.to_html(tmp_path / "report.html").as_uri())
    expect(page.locator(PICTURE)).to_be_visible()
    expect(page.locator(".explorer")).to_have_count(0)
    context.close()


def last_capture(notebook: nbformat.NotebookNode) -> Capture:
    """The one in the last output that carries any."""
    html = [o.data.get("text/html", "") for cell in notebook.cells for o in cell.get("outputs", []) if "data" in o]
    return decode(unpack(re.findall(r'data-part="capture">([^<]*)<', "".join(html))[-1]))
