"""Why an equation left no instruction: the pane that names the pass, with the lines before and after it."""

from __future__ import annotations

import re
from pathlib import Path

import jax.numpy as jnp
import pytest
from lab import Browser
from playwright.sync_api import Locator, expect
from view import View

import explorer as ex

GONE = ("eliminated", "merged", "folded", "rewritten", "unknown")


def simplified(x):
    moved = x + 2 - 2
    chosen = jnp.where(True, moved, 0)
    twice = jnp.tanh(chosen) * jnp.tanh(chosen)
    return (twice * 1.0).sum()


@pytest.fixture(scope="module")
def capture() -> ex.Capture:
    capture = ex.explore(simplified, jnp.ones((13, 17)))
    _ = capture.passes
    return capture


@pytest.fixture
def view(capture: ex.Capture, browser: Browser, tmp_path: Path) -> View:
    view = View(browser.open_file(capture.to_html(tmp_path / "simplified.html")))
    view.show("why")
    return view


def rows(view: View) -> Locator:
    return view.root.locator(".why-list [data-at]")


def answer(view: View) -> Locator:
    return view.root.locator(".why-answer")


def fates_of(capture: ex.Capture, *kinds: str):
    return [(node, fate) for node in capture.jaxpr.graph.nodes if (fate := capture.fate(node)).kind in (kinds or GONE)]


def test_every_equation_without_an_instruction_is_listed_with_its_pass(view: View, capture: ex.Capture):
    gone = fates_of(capture)
    expect(rows(view)).to_have_count(len(gone))
    for node, fate in gone:
        row = view.root.locator(f'.why-list [data-at="{node.index}"]')
        expect(row).to_contain_text(node.op)
        expect(row).to_contain_text(fate.kind)
        expect(row).to_contain_text(fate.step.replace("import", "the import").replace("lowering", "JAX's lowering"))
    expect(view.root.locator(".why-head")).to_contain_text(f"{len(gone)} of ")


def test_a_chosen_equation_is_answered_with_the_lines_before_and_after(view: View, capture: ex.Capture, browser):
    (node, fate), *_ = [pair for pair in fates_of(capture, "eliminated") if pair[0].op == "add"]
    view.root.locator(f'.why-list [data-at="{node.index}"]').click()
    for text in (f"eliminated by {fate.step}", fate.why, fate.before, fate.after):
        expect(answer(view)).to_contain_text(text)
    expect(view.line("moved = x + 2 - 2")).to_contain_class("lit")
    browser.keep(view.page, "why")


def test_from_the_answer_one_comes_to_the_pass(view: View, capture: ex.Capture):
    (node, fate), *_ = [pair for pair in fates_of(capture, "merged")]
    view.root.locator(f'.why-list [data-at="{node.index}"]').click()
    answer(view).get_by_role("button", name=f"open {fate.step}").click()
    expect(view.root.locator(".pass-title")).to_contain_text(f"{fate.pass_number} of ")
    expect(view.root.locator(".pass-title b")).to_have_text(fate.pass_name)


def test_a_pass_says_what_it_did_to_each_line(view: View, capture: ex.Capture, browser: Browser):
    (node, fate), *_ = [pair for pair in fates_of(capture, "eliminated") if pair[0].op == "sub"]
    view.root.locator(f'.why-list [data-at="{node.index}"]').click()
    answer(view).get_by_role("button", name="what else it did to your lines").click()
    heads = view.root.locator(".why-list tbody th")
    steps = {fate.step: [] for _, fate in fates_of(capture)}
    for other, its in fates_of(capture):
        steps[its.step].append(other)
    expect(heads).to_have_count(len(steps))
    head = heads.filter(has_text=fate.step)
    expect(head).to_contain_text("eliminated")
    row = view.root.locator(f'.why-list [data-at="{node.index}"]')
    expect(row).to_have_attribute("aria-selected", "true")
    expect(row).to_contain_text("moved = x + 2 - 2")
    below = head.locator("xpath=../following-sibling::tr[1]")
    expect(below).to_have_attribute("data-at", str(min(each.index for each in steps[fate.step])))
    browser.keep(view.page, "why-by-pass")


def test_a_line_that_is_clicked_is_asked_about(view: View, capture: ex.Capture):
    view.click_line("chosen = jnp.where")
    (node, fate) = next(pair for pair in fates_of(capture) if pair[0].source[0].line == line_of(capture, "chosen ="))
    expect(view.root.locator(f'.why-list [data-at="{node.index}"]')).to_have_attribute("aria-selected", "true")
    expect(answer(view)).to_contain_text(fate.kind)


def line_of(capture: ex.Capture, text: str) -> int:
    source = capture.sources[capture.file]
    return next(i for i, line in enumerate(source.text.splitlines(), 1) if line.strip().startswith(text))


def test_the_list_is_walked_by_keyboard(view: View, capture: ex.Capture):
    first = rows(view).first
    first.click()
    first.press("ArrowDown")
    second = rows(view).nth(1)
    expect(second).to_have_attribute("aria-selected", "true")
    expect(second).to_be_focused()
    second.press("End")
    expect(rows(view).last).to_be_focused()
    expect(rows(view).and_(view.root.locator("[tabindex='0']"))).to_have_count(1)


def test_without_the_passes_it_says_what_is_not_known_and_what_would_help(browser: Browser, tmp_path: Path):
    unrecorded = ex.explore(simplified, jnp.ones((13, 17)), record=False)
    view = View(browser.open_file(unrecorded.to_html(tmp_path / "unrecorded.html")))
    view.show("why")
    expect(view.root.locator(".why-head")).to_contain_text("This capture does not say which passes did it")
    rows(view).filter(has_text="unknown").first.click()
    expect(answer(view)).to_contain_text(re.compile("capture.passes"))
