"""The ways from a node, from its details and by the keyboard, in a real browser."""

from __future__ import annotations

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from lab import Browser
from playwright.sync_api import expect
from view import View

import explorer as ex


def attention(x, w):
    q, k = x @ w, jnp.tanh(x)
    return jax.nn.softmax(q @ k.T / 4.0) @ x


@pytest.fixture(scope="module")
def page_of_attention(tmp_path_factory) -> Path:
    x = jnp.ones((64, 64))
    return ex.explore(attention, x, x).to_html(tmp_path_factory.mktemp("ways") / "attention.html")


def choose(view: View, place: int) -> None:
    """Click a kernel; they are numbered in the order of the picture as it was first drawn."""
    view.root.get_by_role("button", name="fit").click()
    nodes = [
        int(box.get_attribute("data-node")) for box in view.graph.locator('g[data-node][aria-label*=", fusion"]').all()
    ]
    box = view.graph.locator(f'g[data-node="{sorted(nodes)[place]}"]')
    box.dispatch_event("pointerdown", {"button": 0})
    box.dispatch_event("pointerup", {"button": 0})


def test_all_paths_to_what_is_chosen_next_are_shown_with_their_number(browser: Browser, page_of_attention: Path):
    page = browser.open_file(page_of_attention)
    view = View(page)
    hint = view.root.locator(".hint")
    choose(view, 0)
    view.root.get_by_role("button", name="paths to …").click()
    expect(hint).to_contain_text("select the other end")
    choose(view, 2)
    expect(hint).to_have_text(re.compile(r"^[\d,]+ paths?( through [\d,]+ nodes, the shortest)? of \d+ steps?: "))
    browser.keep(page, "paths")


def test_what_is_near_widens_and_narrows_by_keyboard(browser: Browser, page_of_attention: Path):
    page = browser.open_file(page_of_attention)
    view = View(page)
    hint = view.root.locator(".hint")
    view.graph.locator("svg").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("n")
    expect(hint).to_contain_text("at most 1 step away")
    page.keyboard.press("n")
    expect(hint).to_contain_text("at most 2 steps away")
    page.keyboard.press("Shift+N")
    expect(hint).to_contain_text("at most 1 step away")
    browser.keep(page, "near")


def test_the_details_give_the_call_that_extracts_an_instruction(browser: Browser, page_of_attention: Path):
    page = browser.open_file(page_of_attention)
    view = View(page)
    choose(view, 0)
    button = view.root.get_by_role("button", name="copy cap.extract(…)")
    expect(button).to_be_visible()
    call = (button.get_attribute("title") or "").removeprefix("copies ").partition(": ")[0]
    x = jnp.ones((64, 64))
    module = eval(call, {"cap": ex.explore(attention, x, x)})  # what a person would paste
    assert module.startswith("HloModule extract_")
