"""The memory pane: the curve, its moment, and the links to the other panes."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from lab import Browser
from playwright.sync_api import Page, expect
from view import View

import explorer as ex
from explorer.model.units import bytes_text


def loss(weights, x):
    hidden = jnp.tanh(x @ weights[0])
    return jnp.sum((hidden @ weights[1]) ** 2)


def step(weights, x):
    value, gradients = jax.value_and_grad(loss)(weights, x)
    return value, [weight - 0.1 * gradient for weight, gradient in zip(weights, gradients, strict=True)]


@pytest.fixture(scope="module")
def capture() -> ex.Capture:
    square = jnp.ones((256, 256))
    return ex.explore(step, [square, square], square)


@pytest.fixture
def page(browser: Browser, capture: ex.Capture, tmp_path: Path) -> Page:
    opened = browser.open_file(capture.to_html(tmp_path / "report.html"))
    View(opened).show("memory")
    return opened


def test_the_pane_tells_what_python_tells(page: Page, capture: ex.Capture):
    memory = capture.live_memory
    head = page.locator(".memory-head")
    expect(head).to_contain_text(f"peak {bytes_text(memory.peak)} at {memory.peak_at.name}")
    expect(head).to_contain_text(f"{len(memory.donations)} arguments")
    expect(head).to_contain_text("Explorer's figure, from live ranges")
    uses = capture.memory
    allocated = uses["argument"] + uses["output"] + uses["temp"] - uses["alias"]
    expect(head).to_contain_text(f"XLA allocates {bytes_text(allocated)}")
    page.locator('[data-by="buffers"]').click()
    rows = page.locator(".memory-table [data-row]")
    expect(rows).to_have_count(len(memory.at()))
    for row, buffer in enumerate(memory.at()):
        expect(rows.nth(row)).to_contain_text(buffer.type)
        expect(rows.nth(row)).to_contain_text(bytes_text(buffer.bytes))


def test_a_text_without_a_schedule_has_no_peak_and_other_memories_count_for_themselves(
    browser: Browser, tmp_path: Path
):
    text = """HloModule m

ENTRY e (x: f32[1024]) -> f32[1024] {
  x = f32[1024]{0} parameter(0)
  a = f32[1024]{0:S(5)} sine(x)
  ROOT b = f32[1024]{0} cosine(a)
}"""
    page = browser.open_file(ex.open_hlo(text).to_html(tmp_path / "m.html"))
    View(page).show("memory")
    head = page.locator(".explorer-memory")
    expect(head).to_contain_text("no schedule, so the peak is unknown")
    expect(head).to_contain_text("in the order of the text at most 8.2 kB")
    expect(head).to_contain_text("plus 4.1 kB in host memory S(5)")
    expect(page.locator(".memory-curve text.peak")).to_have_text("most 8.2 kB")


def test_the_keyboard_moves_the_moment(page: Page, capture: ex.Capture):
    memory = capture.live_memory
    slider = page.get_by_role("slider", name="moment of the schedule")
    slider.focus()
    page.keyboard.press("Home")
    expect(slider).to_have_attribute("aria-valuenow", "0")
    page.keyboard.press("ArrowRight")
    first = memory.graph.names[memory.order[1]]
    expect(slider).to_have_attribute("aria-valuetext", f"step 1, {first}, {bytes_text(int(memory.timeline[1]))}")
    page.keyboard.press("End")
    expect(slider).to_have_attribute("aria-valuenow", str(len(memory.order) - 1))
    page.keyboard.press("p")
    expect(slider).to_have_attribute("aria-valuenow", str(memory.peak_step))


def test_a_line_of_the_list_is_the_line_of_the_source_and_back(page: Page):
    page.locator(".memory-table [data-row]", has_text="jnp.tanh").click()
    source = page.locator(".explorer-source [data-line]", has_text="jnp.tanh").first
    expect(source).to_contain_class("lit")
    expect(page.locator(".memory-curve .area.lit")).to_be_attached()
    page.locator('[data-by="buffers"]').click()
    expect(page.locator(".memory-table [data-row].lit").first).to_be_visible()


def test_the_peaks_instruction_is_found_in_the_graph(page: Page, capture: ex.Capture):
    name = capture.live_memory.peak_at.name
    page.locator(".memory-head .link").first.click()
    expect(page.locator(".explorer-details .title")).to_have_text(name)


def test_other_stages_have_no_schedule_and_no_pane(page: Page):
    page.locator('button[data-stage="jaxpr"]').click()
    expect(page.locator('button[data-mode="memory"]')).to_be_hidden()
    expect(page.locator(".explorer")).to_have_attribute("data-mode", "graph")
