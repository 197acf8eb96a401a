"""The pass timeline and the view of a diff, used as a person would."""

from __future__ import annotations

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from lab import Browser
from playwright.sync_api import Page, expect
from view import READY

import explorer as ex

X = jnp.ones((128, 64))


def attention(q, k, v):
    scores = q @ k.T / jnp.sqrt(q.shape[-1] * 1.0)
    return jax.nn.softmax(scores) @ v


def masked(q, k, v):
    scores = q @ k.T / jnp.sqrt(q.shape[-1] * 1.0)
    scores = jnp.where(jnp.tril(jnp.ones_like(scores)) > 0, scores, -1e9)
    return jax.nn.softmax(scores) @ v


@pytest.fixture(scope="module")
def capture() -> ex.Capture:
    return ex.explore(attention, X, X, X)


@pytest.fixture(params=["light", "dark"])
def timeline(request: pytest.FixtureRequest, browser: Browser, capture: ex.Capture, tmp_path: Path) -> Page:
    page = browser.open_file(capture.to_html(tmp_path / "passes.html"), dark=request.param == "dark")
    page.wait_for_selector(READY)
    page.locator('[data-mode="passes"], [data-stage="passes"]').locator("visible=true").first.click()
    expect(page.locator(".explorer-passes .cell").first).to_be_visible()
    return page


def division(capture: ex.Capture) -> str:
    """The division by a constant, which the simplifier turns into a multiplication."""
    lines = capture.passes["algsimp"].before.splitlines()
    return next(line for line in lines if " divide(" in line and "%dot_general" in line).split(" = ")[0].split("%")[-1]


def test_the_timeline_tells_what_each_pass_did(timeline: Page, capture: ex.Capture, browser: Browser):
    cells = timeline.locator(".cell")
    expect(cells).to_have_count(len(capture.passes))
    for cell, one in zip(cells.all(), capture.passes, strict=True):
        assert (cell.get_attribute("aria-label") or "").startswith(one.name)
    title = timeline.locator(".pass-title")
    expect(title).to_contain_text(f"+{capture.passes[0].born}")
    expect(title).to_contain_text(f"of {len(capture.passes)} that changed something, of {len(capture.passes.all)}")
    expect(title).to_contain_text(f"−{capture.passes[0].died}")
    for shown in (title.locator(".gone"), timeline.locator(".cell .gone").first):
        expect(shown).to_be_visible()
    timeline.locator(".change-text").press("ArrowRight")
    expect(title.locator("b")).to_have_text(capture.passes[1].name)
    timeline.locator(".pass-steps").press("End")
    expect(title.locator("b")).to_have_text(capture.passes[-1].name)
    timeline.locator('.controls input[type="range"]').fill("0")
    expect(title.locator("b")).to_have_text(capture.passes[0].name)
    browser.keep(timeline, "passes-text")


def test_text_shows_old_and_new_side_by_side_too(timeline: Page, capture: ex.Capture):
    name = division(capture)
    gone = timeline.locator(".change-text .gone", has_text=f"%{name} =")
    expect(gone.first).to_be_visible()
    expect(gone.first.locator("i")).to_have_text("−")
    timeline.locator('[data-look="split"]').click()
    row = timeline.locator(".change-text .row.changed").first
    expect(row.locator(".side")).to_have_count(2)
    old, new = row.locator(".side .code").all_inner_texts()
    assert old.split(" = ")[0] == new.split(" = ")[0]
    assert old != new
    expect(row.locator("mark")).to_have_count(2)


def test_the_history_of_an_instruction_leads_to_its_passes_and_its_line(timeline: Page, capture: ex.Capture):
    name = division(capture)
    timeline.locator(".change-text .side", has_text=f"%{name} =").first.click()
    history = timeline.locator(".history")
    expect(history).to_contain_text(f"{name} is replaced by multiply")
    expect(history).to_contain_text("is fused into fused_computation")
    expect(history).to_contain_text("inferred")
    history.locator("button", has_text="is fused into").first.click()
    expect(timeline.locator(".pass-title b")).not_to_have_text("algsimp")
    line = attention.__code__.co_firstlineno + 1
    history.locator(".place", has_text=f"line {line}").click()
    expect(timeline.locator(f'.explorer-source [data-line="{line}"]').first).to_contain_class("lit")
    timeline.locator(".change-text").press("Escape")
    expect(history).to_be_hidden()
    # And by the keyboard alone.
    timeline.locator(".pass-steps").press("Home")
    rows = timeline.locator(".change-text")
    rows.focus()
    for _ in range(9):
        rows.press("ArrowDown")
    timeline.keyboard.press("Enter")
    expect(history).to_be_visible()


def test_the_graph_of_a_change_keeps_every_box_in_its_place(timeline: Page, capture: ex.Capture, browser: Browser):
    timeline.locator('[data-look="graph"]').click()
    boxes = timeline.locator(".change-graph g.box")
    expect(timeline.locator(".change-graph g.box.new")).to_have_count(capture.passes[0].born)
    expect(timeline.locator(".change-graph g.box.gone")).to_have_count(capture.passes[0].died)
    expect(timeline.locator(".change-graph g.box.changed")).to_have_count(capture.passes[0].changed)
    kept = "boxes => boxes.map(box => box.getAttribute('transform'))"
    places = boxes.evaluate_all(kept)
    for side, hidden in (("before", "new"), ("after", "gone")):
        timeline.locator(".sides button", has_text=re.compile(f"^{side}$")).click()
        expect(timeline.locator(f".change-graph g.box.{hidden}").first).to_be_hidden()
        assert boxes.evaluate_all(kept) == places
    timeline.locator(".sides button", has_text="both").click()
    gone = timeline.locator(".change-graph g.box.gone").first
    assert re.search("removed$", gone.get_attribute("aria-label") or "")
    gone.focus()
    gone.press("Enter")
    expect(timeline.locator(".history")).to_be_visible()
    browser.keep(timeline, "passes-graph")


def test_a_program_without_its_passes_says_how_to_have_them(browser: Browser, tmp_path: Path):
    page = browser.open_file(ex.explore(attention, X, X, X, record=False).to_html(tmp_path / "without.html"))
    page.wait_for_selector(READY)
    page.locator('[data-mode="passes"], [data-stage="passes"]').locator("visible=true").first.click()
    expect(page.locator(".explorer-passes")).to_contain_text("%explore --passes f(x)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_diff_shows_what_differs_and_leads_to_it(browser: Browser, capture: ex.Capture, tmp_path: Path, scheme: str):
    difference = ex.diff(capture, ex.explore(masked, X, X, X))
    page = browser.open_file(difference.to_html(tmp_path / "diff.html"), dark=scheme == "dark")
    page.wait_for_selector(READY)
    expect(page.locator(".explorer-static")).to_be_hidden()
    facts = page.locator(".diff-facts")
    expect(facts).to_contain_text("flops")
    expect(facts.locator("button.new")).to_have_count(len(difference.fusions_gained))
    expect(page.locator(".cell")).to_have_count(3)
    gained = next(fusion for fusion in difference.fusions_gained if "select" in fusion.holds)
    facts.locator("button", has_text=gained.holds).click()
    expect(page.locator(".pass-title b")).to_have_text("hlo")
    expect(page.locator(".change-text .side.chosen").first).to_contain_text(difference.hlo.name_of(gained.node))
    expect(page.locator(".history")).to_contain_text("has no such instruction")
    browser.keep(page, f"diff-{scheme}")
