"""Whatever the pointer is over lights wherever else it is: in the source, and in each way to look at the program."""

from __future__ import annotations

import jax.numpy as jnp
import pytest
from lab import Browser
from playwright.sync_api import Locator, expect
from view import View

import explorer as ex

MODES = ("graph", "text", "table", "lines", "why", "memory", "passes")


def layer(x, w):
    product = x @ w
    same = product * 1.0
    return jnp.tanh(same) + 1


FIRST = layer.__code__.co_firstlineno
LINE = {mode: FIRST + 2 if mode == "why" else FIRST + 1 for mode in MODES}


@pytest.fixture(scope="module")
def capture() -> ex.Capture:
    capture = ex.explore(layer, jnp.ones((64, 128)), jnp.ones((128, 32)))
    assert len(capture.passes)
    return capture


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest, browser: Browser, capture: ex.Capture, tmp_path) -> tuple[View, str]:
    view = View(browser.open_file(capture.to_html(tmp_path / "hover.html")))
    if request.param != "graph":
        view.root.locator(f'[data-mode="{request.param}"]').locator("visible=true").first.click()
    if request.param == "passes":
        view.root.locator('.cell[aria-label^="fusion:"]').click()
    return view, request.param


def place(view: View, mode: str, capture: ex.Capture) -> Locator:
    """What can be hovered there, of the line that makes the product."""
    first = capture.nodes_at(FIRST + 1)[0]  # an open box is but a frame, and only the first lines are in sight
    row = f'[data-at="{first.index}"]'
    selector = {
        "graph": f'g.box[data-node="{first.index}"]',
        "lines": '.explorer-lines .row:has-text("product =")',
        "why": '.why-list [data-at]:has-text("mul")',
        "memory": '.explorer-memory .rows .row:has-text("product =")',
        "passes": ".change-text .row:has-text(' dot(')",
    }.get(mode, row)
    return view.root.locator(".middle").locator(selector).locator("visible=true").first


def source(view: View, line: int) -> Locator:
    return view.root.locator(f'.explorer-source [data-line="{line}"]').first


def test_a_line_of_the_source_lights_what_it_became(mode: tuple[View, str], capture: ex.Capture):
    view, name = mode
    expect(place(view, name, capture)).not_to_contain_class("over")
    source(view, LINE[name]).hover()
    expect(place(view, name, capture)).to_contain_class("over")
    expect(source(view, LINE[name])).to_contain_class("over")
    view.root.locator(".explorer-foot").hover()
    expect(view.root.locator(".middle .over")).to_have_count(0)


@pytest.mark.slow
def test_what_the_pointer_is_over_lights_its_line(mode: tuple[View, str], capture: ex.Capture):
    view, name = mode
    place(view, name, capture).hover()
    expect(source(view, LINE[name])).to_contain_class("over")
    view.root.locator(".explorer-foot").hover()
    expect(view.root.locator(".over")).to_have_count(0)


def test_the_curve_of_memory_and_the_sentences_light_lines_too(browser: Browser, tmp_path):
    capture = ex.explore(layer, jnp.ones((1024, 512)), jnp.ones((512, 1024)))
    view = View(browser.open_file(capture.to_html(tmp_path / "sentence.html")))
    view.root.locator(".summary button", has_text="Memory peaks").hover()
    expect(view.root.locator(".explorer-source .over").first).to_be_visible()
    view.show("memory")
    curve = view.root.locator(".memory-curve")
    size = curve.bounding_box()
    assert size is not None
    curve.hover(position={"x": size["width"] - 4, "y": size["height"] / 2})
    expect(view.root.locator(".explorer-source .over").first).to_be_visible()
