"""What open_hlo() gives, in a real browser: names are text, and what can't be read is shown."""

from __future__ import annotations

from pathlib import Path

from lab import Browser
from playwright.sync_api import expect
from view import View

import explorer as ex
from tests.examples.hostile import MARKUP, MODULE_OF_MARKUP

MODES = ("text", "table", "lines", "memory", "graph")


def test_names_that_are_markup_are_shown_and_do_nothing(browser: Browser, tmp_path: Path):
    capture = ex.open_hlo(MODULE_OF_MARKUP)
    page = browser.open_file(capture.to_html(tmp_path / "hostile.html"))
    view = View(page)
    for mode in MODES:
        view.show(mode)
        page.mouse.move(700, 300)
        for box in view.root.locator(".row[data-row]:visible").all()[:3]:
            box.click()
    for box in view.graph.locator("g[data-node]").all():
        box.dispatch_event("click")
    view.root.locator("input").first.fill(MARKUP)
    view.show("text")
    expect(view.root.locator(".explorer-text .row.unread").last).to_contain_text("?? </script><script>")
    expect(view.root).to_contain_text("2 lines unread")
    assert page.evaluate("window.hacked") is None
    # Nothing of it became an element: our scripts stand outside of the view.
    expect(view.root.locator("script, img")).to_have_count(0)
    browser.keep(page, "hostile")


def test_a_text_that_cannot_be_read_is_shown_as_text(browser: Browser, tmp_path: Path):
    capture = ex.open_hlo("HloModule broken\n\nENTRY {\n  ???\n}\n")
    page = browser.open_file(capture.to_html(tmp_path / "broken.html"))
    view = View(page)
    expect(view.root).to_have_attribute("data-mode", "text")
    expect(view.root.locator(".explorer-text .row.unread")).to_have_text("4  ???not read")
    expect(view.root).to_contain_text("this text holds no HLO instruction")
    for mode in MODES:
        view.show(mode)
