"""The same output in every place that shows notebooks: other servers, editors' webviews, iframes, strict policies."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from html import escape
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import jax.numpy as jnp
import nbformat
import pytest
from hosts import EDITOR, EDITORS_POLICY, page_of, policy
from lab import Browser, Lab
from playwright.sync_api import Frame, Page, expect
from view import READY, View

import explorer as ex
from explorer.view.capture.html import fragment

CODE = """
import jax.numpy as jnp
import explorer as ex

def f(x):
    y = jnp.tanh(x)
    return y @ y.T

ex.explore(f, jnp.ones(({rows}, 16)))
""".strip()
PICTURE = ".explorer-static img"
NOTE = ".explorer-static p:last-of-type"


def f(x):
    y = jnp.tanh(x)
    return y @ y.T


@pytest.fixture(scope="module")
def capture() -> ex.Capture:
    return ex.explore(f, jnp.ones((8, 16)))


def assert_interactive(page: Page | Frame, line: str = "jnp.tanh") -> None:
    page.wait_for_selector(READY, timeout=60_000)
    expect(page.locator(PICTURE).last).to_be_hidden()
    source = page.locator(".explorer-source [data-line]", has_text=line).last
    source.click()
    expect(source).to_contain_class("lit")
    expect(page.locator(".explorer-graph .box.lit, .explorer-graph .lit").first).to_be_attached()


def assert_drawn(page: Page) -> None:
    image = page.locator(PICTURE).last
    expect(image).to_be_visible()
    assert image.evaluate("async image => (await image.decode(), image.naturalWidth)") > 100
    expect(page.locator(".explorer")).to_have_count(0)


# Servers --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_in_notebook_7_the_view_is_live_and_still_there_without_a_kernel(notebook7: Lab, browser: Browser):
    name = notebook7.write("seven.ipynb", CODE.format(rows=8).replace("ex.explore", "cap = ex.explore") + "\ncap")
    opened = browser.open(notebook7, name)
    opened.run_all()
    View(opened.page).link()
    assert_interactive(opened.page)
    opened.wait_until("cap.selection == cap.nodes_at(5) != ()")
    browser.keep(opened.page, "notebook7")
    opened.save()
    opened.shut_down()
    again = browser.open(notebook7, name)
    assert again.python("'cap' in globals()") == "False"
    assert_interactive(again.page)
    assert "Error displaying widget" not in again.page.inner_text("body")
    again.shut_down()


PANES = ("text", "table", "lines", "why", "memory")


def assert_panes(view: View, *modes: str) -> None:
    for mode in modes:
        view.show(mode)
        expect(view.root.locator(f".middle > .shown.explorer-{mode}")).to_be_visible()
        expect(view.root.locator(".explorer-missing")).to_have_count(0)


# Chooses a pane of the first view as soon as it is ready, which in an old notebook is before there is a wire to Python.
CHOOSES_AT_ONCE = """
new MutationObserver((_, observer) => {
  const view = document.querySelector('.explorer[data-ready="true"]');
  if (!view || localStorage.chosen) return;
  observer.disconnect();
  localStorage.chosen = "once";
  view.querySelector('button[data-mode="memory"]').click();
}).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-ready"] });
"""


@pytest.mark.slow
def test_a_view_lives_whatever_became_of_the_outputs_before_it(lab: Lab, browser: Browser):
    """Cleared and saved, or a page that was reloaded without saving: code in another output would be gone."""
    name = lab.write("many.ipynb", *(CODE.format(rows=rows) for rows in (8, 9, 10)))
    opened = browser.open(lab, name)
    opened.run_all()
    expect(opened.page.locator(READY)).to_have_count(3, timeout=60_000)
    assert opened.page.evaluate("Object.keys(window.explorerCore).length") == 1  # the code runs once
    assert_panes(View(opened.page), *PANES)  # found in the first output
    opened.save()
    saved = nbformat.read(lab.root / name, as_version=4)
    for cell in saved.cells[:2]:
        cell.outputs = []
    nbformat.write(saved, lab.root / name)
    lab.trust(name)
    opened.page.close()  # the kernel lives on
    browser.context.add_init_script(CHOOSES_AT_ONCE)
    again = browser.open(lab, name)
    expect(again.page.locator(READY)).to_have_count(1, timeout=60_000)
    view = View(again.page)
    expect(view.root).to_have_attribute("data-mode", "memory")
    view.link()
    expect(view.root.locator(".explorer-memory.shown")).to_be_visible()
    expect(view.root.locator(".explorer-missing")).to_have_count(0)
    view.show("graph")
    view.click_line("jnp.tanh")
    assert_panes(view, *PANES)  # the kernel sends them
    again.shut_down()

    alone = browser.open(lab, name)
    view = View(alone.page)
    view.click_line("jnp.tanh")
    expect(view.lit_nodes.first).to_be_attached()
    view.show("memory")
    expect(view.root.locator(".explorer-missing")).to_contain_text("run this cell again")
    view.show("graph")
    alone.run_all()
    expect(alone.page.locator(READY)).to_have_count(3, timeout=60_000)
    assert_panes(View(alone.page), *PANES)
    alone.shut_down()


@contextmanager
def running_marimo(home: Path, capture: ex.Capture) -> Iterator[str]:
    capture.save(home / "f.capture")
    app = home / "app.py"
    app.write_text(
        "import marimo\napp = marimo.App()\n\n@app.cell\ndef _():\n    import explorer as ex\n"
        f"    ex.load({str(home / 'f.capture')!r})\n    return\n"
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "marimo", "-y", "run", str(app), "--headless", "--no-token", "--host=127.0.0.1"]
    command += [f"--port={port}"]
    own = {"HOME": str(home), "XDG_CONFIG_HOME": str(home), "XDG_CACHE_HOME": str(home), "XDG_STATE_HOME": str(home)}
    own |= {"MARIMO_SKIP_UPDATE_CHECK": "1"}
    with (home / "marimo.log").open("w") as log:
        server = subprocess.Popen(command, env=os.environ | own, cwd=home, stdout=log, stderr=subprocess.STDOUT)
        try:
            url = f"http://127.0.0.1:{port}/"
            for _ in range(600):
                with suppress(URLError, OSError), urlopen(f"{url}health"):
                    break
                assert server.poll() is None, (home / "marimo.log").read_text()
                time.sleep(0.1)
            yield url
        finally:
            server.terminate()
            server.wait(30)


@pytest.mark.slow
def test_in_marimo_the_view_is_interactive_and_not_cut_off(browser: Browser, capture: ex.Capture, tmp_path: Path):
    with running_marimo(tmp_path, capture) as url:
        page = browser.context.new_page()
        page.goto(url)
        handle = page.wait_for_selector("iframe", timeout=60_000)
        frame = handle.content_frame()
        assert frame
        assert_interactive(frame)
        expect(page.locator("iframe")).not_to_have_css("height", "0px")
        root = frame.locator(".explorer")
        assert root.bounding_box()["height"] <= page.locator("iframe").bounding_box()["height"]
        browser.keep(page, "marimo")


# Webviews and iframes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policed", [False, True], ids=["as it is", "with its policy"])
def test_in_an_editors_webview_the_view_is_interactive_and_dark(
    browser: Browser, capture: ex.Capture, tmp_path: Path, policed: bool
):
    head = policy(EDITORS_POLICY) if policed else ""
    body = '<body class="vscode-dark" data-vscode-theme-kind="vscode-dark"><div id="output"></div></body>'
    page = page_of(browser, tmp_path, head, body)
    page.evaluate(EDITOR, fragment(capture))
    assert_interactive(page)
    expect(page.locator(".explorer")).to_contain_class("dark")
    browser.keep(page, f"editor-{'policed' if policed else 'free'}")
    # Under that policy no worker can start from a blob: the layout is done on the page's own thread.
    if policed:
        browser.forgive("worker")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_sandboxed_iframe_of_nowhere_the_view_is_interactive(
    browser: Browser, capture: ex.Capture, tmp_path: Path, scheme: str
):
    inner = f"<!doctype html><meta name='color-scheme' content='light dark'><body>{fragment(capture)}</body>"
    frame = f'<iframe sandbox="allow-scripts" width="1200" height="700" srcdoc="{escape(inner)}"></iframe>'
    page = page_of(browser, tmp_path, "", f"<body>{frame}</body>")
    page.emulate_media(color_scheme=scheme)
    inside = page.query_selector("iframe").content_frame()
    assert inside
    assert_interactive(inside)
    browser.keep(page, f"sandbox-{scheme}")


def test_where_only_scripts_of_the_hosts_choice_may_run_the_view_starts_from_a_blob(
    browser: Browser, capture: ex.Capture, tmp_path: Path
):
    """A nonce holds for what the script with it imports, not for what it writes."""
    html = fragment(capture).replace('<script type="module">', '<script type="module" nonce="theirs">')
    page = page_of(browser, tmp_path, policy("script-src 'nonce-theirs'"), f"<body>{html}</body>")
    assert_interactive(page)
    browser.forgive("inline script", "worker")


# Where it can't run ---------------------------------------------------------------------------------------------------


def test_where_no_script_may_run_the_picture_stays(browser: Browser, capture: ex.Capture, tmp_path: Path):
    page = page_of(browser, tmp_path, policy("script-src 'none'"), f"<body>{fragment(capture)}</body>")
    assert_drawn(page)
    browser.forgive("inline script")


def test_where_the_viewer_may_not_run_the_picture_stays_and_one_line_says_so(
    browser: Browser, capture: ex.Capture, tmp_path: Path
):
    html = fragment(capture)
    loader = html.rpartition('<script type="module">')[2].removesuffix("</script>")
    known = b64encode(sha256(loader.encode()).digest()).decode()  # this script, and none that it writes or fetches
    page = page_of(browser, tmp_path, policy(f"script-src 'sha256-{known}'"), f"<body>{html}</body>")
    expect(page.locator(NOTE)).to_contain_text("could not start: this page allows no script of its own")
    assert_drawn(page)
    browser.forgive("Content Security Policy")


def test_an_old_browser_says_what_it_lacks(browser: Browser, capture: ex.Capture, tmp_path: Path):
    browser.context.add_init_script("delete window.DecompressionStream")
    page = page_of(browser, tmp_path, "", f"<body>{fragment(capture)}</body>")
    expect(page.locator(NOTE)).to_contain_text("could not start: DecompressionStream is not defined")
    assert_drawn(page)


# Pictures -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["graph", "memory"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_picture_in_sight_is_saved_as_svg_and_png(
    browser: Browser, capture: ex.Capture, tmp_path: Path, mode: str, scheme: str
):
    page = browser.open_file(capture.to_html(tmp_path / "report.html"), dark=scheme == "dark")
    View(page).show(mode)
    files = {}
    for format in ("svg", "png"):
        page.get_by_role("button", name="save the picture").click()
        with page.expect_download() as download:
            page.get_by_role("menuitem", name=format.upper()).click()
        assert download.value.suggested_filename == f"f-hlo-{mode}.{format}"
        files[format] = tmp_path / f"{mode}-{scheme}.{format}"
        download.value.save_as(files[format])
    texts = [text.text or "" for text in ElementTree.parse(files["svg"]).iter("{http://www.w3.org/2000/svg}text")]
    assert any("fusion" in text or "tanh" in text for text in texts)
    assert "var(" not in files["svg"].read_text()
    width = float(ElementTree.parse(files["svg"]).getroot().get("width"))
    pane = page.locator(".explorer-graph svg" if mode == "graph" else ".memory-curve svg").bounding_box()
    assert 100 < width <= pane["width"] + 1
    data = files["png"].read_bytes()
    assert data.startswith(b"\x89PNG")
    assert int.from_bytes(data[16:20]) == 2 * width


def test_where_nothing_is_drawn_there_is_nothing_to_save(browser: Browser, capture: ex.Capture, tmp_path: Path):
    page = browser.open_file(capture.to_html(tmp_path / "report.html"))
    View(page).show("text")
    expect(page.get_by_role("button", name="save the picture")).to_be_hidden()
