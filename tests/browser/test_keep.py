"""Where a person is, and what they wrote: in the address, in a saved page, in the kernel, after another run."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import jax.numpy as jnp
import pytest
from lab import Browser, Lab
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page, expect
from view import READY, View

import explorer as ex
from tests.examples import small

CODE = """
import jax.numpy as jnp
import explorer as ex

def f(x):
    y = jnp.tanh(x) @ jnp.cos(x).T
    return jnp.sin(y) * 2

cap = ex.explore(f, jnp.ones((8, 16)))
""".strip()


def f(x):
    y = jnp.tanh(x) @ jnp.cos(x).T
    return jnp.sin(y) * 2


@pytest.fixture(scope="module")
def capture() -> ex.Capture:
    return ex.explore(f, jnp.ones((8, 16)))


@pytest.fixture
def path(capture: ex.Capture, tmp_path: Path) -> Path:
    return capture.to_html(tmp_path / "f.html")


def write(view: View, text: str) -> None:
    """Write a note on what is chosen."""
    field = view.root.locator(".note-field")
    if field.locator("button").count():
        field.locator("button").click()
    field.locator("textarea").fill(text)


def address(page: Page, part: str) -> ex.Bookmark:
    """The place that the page's address names, once that part is in it."""
    page.wait_for_function("part => decodeURIComponent(location.hash).includes(part)", arg=part)
    return ex.Bookmark.from_address(page.url)


def title(view: View, text: str) -> None:
    expect(view.root.locator(".explorer-details .title").first).to_contain_text(text)


def test_an_address_opens_the_same_place_elsewhere(browser: Browser, path: Path, chromium: Chromium):
    page = browser.open_file(path)
    view = View(page)
    assert "#" not in page.url  # nobody has been anywhere yet
    steps = page.evaluate("history.length")
    view.root.locator('button[data-stage="jaxpr"]').click()
    view.show("text")
    view.click_line("jnp.tanh(x)")
    number = view.line("jnp.tanh(x)").get_attribute("data-line")
    write(view, "which one is slow?")
    mark = address(page, "slow")
    assert mark == ex.Bookmark(
        "jaxpr", "text", selection=(f":{number}",), notes=(ex.Note(f":{number}", "which one is slow?"),)
    )
    assert page.evaluate("history.length") == steps
    with chromium.new_context() as other:
        there = other.new_page()
        there.goto(page.url)
        same = View(there)
        expect(same.root).to_have_attribute("data-stage", "jaxpr")
        expect(same.root).to_have_attribute("data-mode", "text")
        title(same, f"line {number}")
        expect(same.line("jnp.tanh(x)")).to_contain_class("noted")
        expect(same.root.locator(".note-field textarea")).to_have_value("which one is slow?")
        there.close()


def test_a_page_that_is_loaded_again_is_where_it_was(browser: Browser, tmp_path: Path):
    capture = ex.explore(small.two_steps, jnp.ones((8, 16)))
    page = browser.open_file(capture.to_html(tmp_path / "fusions.html"))
    view = View(page)
    fusion = view.open_fusion()
    node = int(fusion.get_attribute("data-node") or -1)
    name = capture.hlo.graph.names[node]
    expect(page).to_have_url(re.compile(rf"[#&]open=([^&]*,)?{re.escape(name)}(,|&|$)"))
    view.root.locator('input[type="search"]').fill("op:tanh")
    assert address(page, "find=").search == "op:tanh"
    page.reload()
    view = View(page)
    expect(view.graph.locator(f'g[data-node="{node}"]').first).to_have_attribute("aria-expanded", "true")
    title(view, "op:tanh")
    expect(view.root.locator('input[type="search"]')).to_have_value("op:tanh")


def test_what_an_address_names_and_is_gone_is_said(browser: Browser, path: Path):
    page = browser.context.new_page()
    page.goto(f"{path.as_uri()}#stage=hlo&at=no_such.7,:900&open=/nowhere&note=gone.1,still%20here,hlo")
    view = View(page)
    expect(view.root.locator(".kept")).to_contain_text("no longer there: nowhere".replace("nowhere", "/nowhere"))
    listed = view.root.locator(".note-list")
    expect(listed).to_contain_text("gone.1")
    expect(listed).to_contain_text("no longer there")
    expect(listed).to_contain_text("still here")
    assert not browser.errors


def test_another_address_put_into_an_open_page_is_gone_to(browser: Browser, path: Path):
    page = browser.open_file(path)
    view = View(page)
    view.click_line("jnp.sin(y)")
    address(page, "at=")
    page.evaluate("location.hash = 'stage=jaxpr&pane=table'")
    expect(view.root).to_have_attribute("data-stage", "jaxpr")
    expect(view.root).to_have_attribute("data-mode", "table")


def test_a_page_saved_with_its_notes_has_them_elsewhere(
    browser: Browser, path: Path, chromium: Chromium, tmp_path: Path
):
    page = browser.open_file(path)
    view = View(page)
    view.click_line("jnp.sin(y)")
    long = "a long note, " * 400  # more than an address holds
    write(view, long)
    expect(view.root.locator(".kept")).to_contain_text("1 note")
    assert "note=" not in unquote(page.url)
    page.reload()  # the browser has it
    view = View(page)
    expect(view.root.locator(".note-field textarea")).to_have_value(long)
    with page.expect_download() as download:
        view.root.get_by_role("button", name="save the page with its notes").click()
    download.value.save_as(tmp_path / "saved.html")
    with chromium.new_context() as other:
        there = other.new_page()
        there.goto((tmp_path / "saved.html").as_uri())
        same = View(there)
        expect(same.root.locator(".note-field textarea")).to_have_value(long)
        assert there.locator(READY).count() == 1
        there.close()
    with chromium.new_context(java_script_enabled=False) as plain:
        there = plain.new_page()
        there.goto((tmp_path / "saved.html").as_uri())
        expect(there.locator(".explorer-notes li")).to_contain_text("a long note")
        expect(there.locator(".explorer-static img")).to_be_visible()
        there.close()


def test_a_page_opens_where_python_put_it_and_marks_what_was_written_on(
    browser: Browser, capture: ex.Capture, tmp_path: Path
):
    kernel = next(node for node in capture.hlo.graph.nodes if node.op == "dot")
    mark = ex.Bookmark("hlo", selection=(kernel.name,), notes=(ex.Note(kernel.name, "cuBLAS?", "hlo"),))
    page = browser.open_file(capture.to_html(tmp_path / "marked.html", bookmark=mark))
    view = View(page)
    title(view, kernel.name)
    box = view.graph.locator(f'g[data-node="{kernel.index}"]')
    expect(box.locator(".note-mark")).to_be_visible()
    view.root.locator(".note-field textarea").fill("")
    expect(box.locator(".note-mark")).to_have_count(0)
    expect(view.root.locator(".kept")).not_to_contain_text("note")


def test_the_link_is_copied(browser: Browser, path: Path):
    browser.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = browser.open_file(path)
    view = View(page)
    view.click_line("jnp.sin(y)")
    view.root.get_by_role("button", name="copy the address").click()
    page.wait_for_function("async () => (await navigator.clipboard.readText()).includes('#stage=hlo&at=:')")


def test_a_kernel_knows_the_place_and_the_notes_and_a_cell_that_runs_again_keeps_them(lab: Lab, browser: Browser):
    live = browser.open(lab, lab.write("keep.ipynb", CODE, "cap", "cap"))
    live.run_all()
    expect(live.page.locator(READY)).to_have_count(2, timeout=60_000)
    first, second = View(live.page, 0).link(), View(live.page, 1)
    first.click_line("jnp.sin(y)")
    write(first, "why not fused?")
    live.wait_until("cap.bookmark == ex.Bookmark('hlo', selection=(':6',), notes=(ex.Note(':6', 'why not fused?'),))")
    expect(second.line("jnp.sin(y)")).to_contain_class("noted")  # but it is not taken there
    expect(second.line("jnp.sin(y)")).not_to_contain_class("lit")
    live.python("setattr(cap.view, 'bookmark', ex.Bookmark('jaxpr', 'table', selection=('b',)))")
    for view in (first, second):
        expect(view.root).to_have_attribute("data-stage", "jaxpr")
        expect(view.root).to_have_attribute("data-mode", "table")
        title(view, "b")
    first.root.locator('button[data-stage="hlo"]').click()
    first.show("graph")
    first.click_line("jnp.sin(y)")
    write(first, "again")
    live.wait_until("[note.text for note in cap.bookmark.notes] == ['again']")
    live.run_all()  # another capture, of the same function
    view = View(live.page, 0)
    title(view, "line 6")
    expect(view.root.locator(".note-field textarea")).to_have_value("again")
    live.wait_until("[note.text for note in cap.bookmark.notes] == ['again']")
    live.save()
    live.shut_down()
    closed = browser.open(lab, "keep.ipynb")
    view = View(closed.page, 0)
    title(view, "line 6")
    expect(view.line("jnp.sin(y)")).to_contain_class("noted")
    closed.shut_down()
