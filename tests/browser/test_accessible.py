"""What the eye and the mouse can do, a screen reader and the keyboard can: axe-core over every mode, in both themes."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from axe import violations
from lab import Browser
from playwright.sync_api import expect
from view import View

import explorer as ex

MODES = ("graph", "text", "table", "lines", "why", "memory", "passes")


def loss(weights, x):
    hidden = jnp.tanh(x @ weights[0])
    return jnp.sum(jax.nn.softmax(hidden @ weights[1]) ** 2)


@pytest.fixture(scope="module")
def capture() -> ex.Capture:
    square = jnp.ones((64, 64))
    return ex.explore(jax.value_and_grad(loss), [square, square], square)


def opened(browser: Browser, capture: ex.Capture, tmp_path: Path, dark: bool = False) -> View:
    return View(browser.open_file(capture.to_html(tmp_path / "report.html"), dark=dark))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("mode", MODES)
def test_axe_finds_nothing(browser: Browser, capture: ex.Capture, tmp_path: Path, mode: str, dark: bool):
    view = opened(browser, capture, tmp_path, dark)
    view.show(mode)
    assert violations(view.page) == []
    view.click_line("jnp.tanh")
    assert violations(view.page) == [], "with a line chosen"


@pytest.mark.parametrize("stage", ["jaxpr", "stablehlo"])
def test_axe_finds_nothing_in_other_stages(browser: Browser, capture: ex.Capture, tmp_path: Path, stage: str):
    view = opened(browser, capture, tmp_path)
    view.root.locator(f'button[data-stage="{stage}"]').click()
    for mode in ("graph", "text", "table"):
        view.show(mode)
        assert violations(view.page) == [], mode


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_in_a_diff(browser: Browser, capture: ex.Capture, tmp_path: Path, dark: bool):
    other = ex.explore(lambda x: jnp.tanh(x @ x), jnp.ones((64, 64)))
    page = browser.open_file(ex.diff(capture, other).to_html(tmp_path / "diff.html"), dark=dark)
    page.wait_for_selector('[data-ready="true"]')
    assert violations(page) == []


def test_the_static_picture_has_a_description_and_a_table(browser: Browser, capture: ex.Capture, tmp_path: Path):
    browser.context.add_init_script("delete window.DecompressionStream")
    page = browser.open_file(capture.to_html(tmp_path / "report.html"))
    expect(page.locator(".explorer-static p")).to_be_visible()
    page.locator("summary").click()
    assert violations(page) == []


def test_every_button_and_pane_is_reached_by_tab(browser: Browser, capture: ex.Capture, tmp_path: Path):
    view = opened(browser, capture, tmp_path)
    wanted = view.root.locator("button, input, select, [tabindex='0']").filter(visible=True).count()
    assert wanted > 10
    view.page.locator("body").click(position={"x": 2, "y": 2})
    seen: set[str] = set()
    for _ in range(3 * wanted):
        view.page.keyboard.press("Tab")
        seen.add(view.page.evaluate("document.activeElement.outerHTML.slice(0, 120)"))
    for label in ('data-mode="text"', 'data-stage="jaxpr"', 'type="search"', 'aria-label="graph"', "save the picture"):
        assert any(label in html for html in seen), label


@pytest.mark.parametrize("mode", ["text", "table", "memory"])
def test_the_keyboard_chooses_a_row(browser: Browser, capture: ex.Capture, tmp_path: Path, mode: str):
    view = opened(browser, capture, tmp_path)
    view.show(mode)
    rows = view.root.locator(".middle .rows").filter(visible=True).first
    rows.focus()
    view.page.keyboard.press("End")
    expect(rows.locator(".row.at")).to_be_in_viewport()
    expect(rows.locator(".row.at")).to_be_focused()
    view.page.keyboard.press("Home")
    lit = view.root.locator(".explorer-source .line.lit")
    for _ in range(500):  # the text starts with tables, as long as the stack is deep; the nodes with parameters
        view.page.keyboard.press("Enter")
        if lit.count():
            break
        view.page.keyboard.press("ArrowDown")
    expect(lit).not_to_have_count(0)
    expect(rows.locator(".row.at")).to_be_focused()


def test_the_keyboard_chooses_a_source_line(browser: Browser, capture: ex.Capture, tmp_path: Path):
    view = opened(browser, capture, tmp_path)
    line = view.line("jnp.tanh")
    line.focus()
    view.page.keyboard.press("Enter")
    expect(line).to_contain_class("lit")


def test_nothing_moves_for_who_asked_for_less_motion(browser: Browser, capture: ex.Capture, tmp_path: Path):
    view = opened(browser, capture, tmp_path)
    view.page.emulate_media(reduced_motion="reduce")
    moving = view.page.evaluate(
        """() => [...document.querySelectorAll(".explorer, .explorer *")].filter((node) => {
          const { transitionDuration, animationDuration } = getComputedStyle(node);
          return `${transitionDuration},${animationDuration}`.split(",").some((time) => parseFloat(time) > 0);
        }).length"""
    )
    assert moving == 0
