"""What the eye and the mouse can do, a screen reader and the keyboard can: axe-core over every mode, in both themes."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from axe import THEMES, violations
from lab import Browser
from playwright.sync_api import Page, expect
from view import View

import explorer as ex
from tests.support.displays import saved

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


@THEMES
@pytest.mark.parametrize("mode", MODES)
def test_axe_finds_nothing(browser: Browser, capture: ex.Capture, tmp_path: Path, mode: str, dark: bool):
    view = opened(browser, capture, tmp_path, dark)
    view.show(mode)
    assert violations(view.page) == []
    view.click_line("jnp.tanh")
    assert violations(view.page) == [], "with a line chosen"


@pytest.mark.slow
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
    expect(page.locator(".explorer-static p").last).to_be_visible()
    page.locator("summary").click()
    assert violations(page) == []


# What Tab comes to: its part of the view, with what it is.
AT = """() => {
  const at = document.activeElement;
  return at.closest("[role=tablist], [role=toolbar]")?.getAttribute("aria-label")
    ?? at.getAttribute("aria-label") ?? at.className.baseVal ?? at.className;
}"""


def test_the_graph_is_at_most_eight_tabs_away(browser: Browser, capture: ex.Capture, tmp_path: Path):
    view = opened(browser, capture, tmp_path)
    view.page.locator("body").click(position={"x": 2, "y": 2})
    stops: list[str] = []
    while "graph" not in stops and len(stops) < 9:
        view.page.keyboard.press("Tab")
        stops.append(view.page.evaluate(AT))
    # The first Tab comes to the first of them; from there it is one less.
    assert stops[0] == "stage"
    assert "graph" in stops, stops


def test_every_tab_and_tool_is_reached_by_the_keyboard(browser: Browser, capture: ex.Capture, tmp_path: Path):
    view = opened(browser, capture, tmp_path)
    for bar in view.root.locator(":is(.bar, .panel-head) :is([role=tablist], [role=toolbar])").all():
        parts = [part for part in bar.locator("button:not([role=menuitem])").all() if part.is_visible()]
        stops = [part for part in parts if part.get_attribute("tabindex") == "0"]
        assert len(stops) == 1
        stops[0].focus()
        view.page.keyboard.press("Home")
        for part in parts:
            expect(part).to_be_focused()
            view.page.keyboard.press("ArrowRight")


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


def test_the_source_is_one_tab_stop_and_arrows_go_from_line_to_line(
    browser: Browser, capture: ex.Capture, tmp_path: Path
):
    view = opened(browser, capture, tmp_path)
    used = view.root.locator(".explorer-source .line.used")
    stops = view.root.locator('.explorer-source .line[tabindex="0"]')
    expect(stops).to_have_count(1)
    assert used.count() > 1
    stops.focus()
    view.page.keyboard.press("Home")
    expect(used.first).to_be_focused()
    view.page.keyboard.press("ArrowDown")
    expect(used.nth(1)).to_be_focused()
    expect(stops).to_have_count(1)
    view.page.keyboard.press("Tab")
    assert not view.page.evaluate("document.activeElement.matches('.line')")
    view.page.keyboard.press("Shift+Tab")
    expect(used.nth(1)).to_be_focused()
    view.root.locator('button[data-stage="jaxpr"]').click()  # drawn anew, the stop stays
    expect(stops).to_have_count(1)


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


def matmuls(x, weights):
    with jax.named_scope("small"):
        small = jnp.tanh(x[:16] @ weights[:, :16])
    return x @ weights @ weights.T + small.sum()


def press_to(page: Page, wanted: str) -> None:
    """Press Tab until a part of that name has the focus."""
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate(AT) == wanted:
            return
    raise AssertionError(f"no twelve Tabs come to {wanted!r}")


def test_a_whole_task_by_keyboard_alone(browser: Browser, tmp_path: Path):
    """Open the report, find the costliest kernel, see its line, see which pass made it."""
    capture = ex.explore(matmuls, jnp.ones((128, 128)), jnp.ones((128, 128)))
    assert len(capture.passes)
    view = opened(browser, capture, tmp_path)
    page, details = view.page, view.root.locator(".explorer-details")
    press_to(page, "representation")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(view.root).to_have_attribute("data-mode", "table")
    press_to(page, "rows explorer-rows")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    kernel = details.locator(".title").inner_text()
    # Of the two products of 128³ one comes first; the small one and all that only moves data come after.
    assert {node.type for node in capture.hlo.graph.nodes if node.name == kernel} == {"f32[128,128]{1,0}"}
    lit = view.root.locator(".explorer-source .line.lit")
    expect(lit).to_have_count(1)
    expect(lit).to_contain_text("x @ weights @ weights.T")
    expect(lit).to_be_in_viewport()
    page.keyboard.press("/")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("ArrowLeft")
    expect(view.root).to_have_attribute("data-mode", "passes")
    press_to(page, "touched")
    page.keyboard.press("Enter")
    press_to(page, "what changed, step by step")
    page.keyboard.press("End")
    step = view.root.locator(".pass-steps [aria-selected=true]")
    made = [event.pass_name for event in capture.passes.history(kernel) if event.says == "is made"]
    expect(step).to_be_visible()
    expect(step.locator("b")).to_have_text(made[-1])


# Results, as pages: what has a picture, and a table that says the same.
FIGURES = ("Comparison", "MemoryUse", "Roofline", "Sweep", "Timing", "WhatIf")


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_in_the_pages_of_results(browser: Browser, tmp_path: Path, dark: bool):
    for name in FIGURES:
        page = browser.open_file(saved(name).to_html(tmp_path / f"{name}.html"), dark=dark)
        page.evaluate("document.querySelectorAll('details').forEach((details) => (details.open = true))")
        assert violations(page) == [], name
        page.close()
