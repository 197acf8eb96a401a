"""What lines cost and what became of equations, in the page: beside the source, in the line table, in the details."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from lab import Browser
from playwright.sync_api import Locator, expect
from view import View

import explorer as ex


def attention(q, k, v):
    scores = q @ k.T / jnp.sqrt(q.shape[-1] * 1.0)
    weights = jax.nn.softmax(scores)
    return weights @ v


@pytest.fixture(scope="module")
def capture() -> ex.Capture:
    x = jnp.ones((128, 64))
    return ex.explore(attention, x, x, x)


@pytest.fixture
def view(capture: ex.Capture, browser: Browser, tmp_path: Path) -> View:
    return View(browser.open_file(capture.to_html(tmp_path / "attention.html")))


def row(view: View, text: str) -> Locator:
    return view.root.locator(".explorer-lines [data-line]", has_text=text)


def shares(view: View) -> list[str]:
    return view.root.locator(".explorer-source .count:has(.bar)").all_inner_texts()


def percent(share: float) -> str:
    return f"{int(share * 100 + 0.5)}%" if share >= 0.005 else "<1%" if share > 0 else ""


def test_each_line_shows_its_share_of_what_the_header_names(view: View, capture: ex.Capture):
    costs = [line for line in capture.lines() if line.file]
    head = view.root.locator(".share-of")
    expect(head).to_contain_text("% of the bytes moved")
    assert shares(view) == [percent(line.bytes_share) for line in costs]
    head.click()
    expect(head).to_contain_text("% of the FLOPs")
    assert shares(view) == [percent(line.flops_share) for line in costs]
    view.root.locator('button[data-stage="jaxpr"]').click()
    expect(view.root).to_have_attribute("data-stage", "jaxpr")
    expect(head).to_contain_text("% of the FLOPs")
    assert shares(view) == [percent(line.flops_share) for line in costs]


def test_a_row_of_the_line_table_lights_its_line_everywhere(view: View, browser: Browser):
    view.show("lines")
    row(view, "jax.nn.softmax").click()
    expect(row(view, "jax.nn.softmax")).to_contain_class("lit")
    expect(view.line("jax.nn.softmax")).to_contain_class("lit")
    details = view.root.locator(".explorer-details")
    expect(details).to_contain_text("bytes moved")
    browser.keep(view.page, "lines")
    view.show("graph")
    expect(view.root.locator(".explorer-graph .box.lit")).not_to_have_count(0)


def test_the_line_table_is_sorted_by_any_column(view: View, capture: ex.Capture):
    view.show("lines")
    body = view.root.locator(".explorer-lines .body [data-line]")

    def column(name: str) -> list[int]:
        order = {line.line: getattr(line, name) for line in capture.lines()}
        return [order[int(one.get_attribute("data-line") or 0)] for one in body.all()]

    for title, name in (("FLOPs", "flops"), ("equations", "equations"), ("kernels", "kernels")):
        head = view.root.locator(".explorer-lines .head button", has_text=title)
        head.click()
        expect(view.root.locator('.explorer-lines [aria-sort="descending"]')).to_contain_text(title)
        assert column(name) == sorted(column(name), reverse=True)
        head.click()
        expect(view.root.locator('.explorer-lines [aria-sort="ascending"]')).to_contain_text(title)
        assert column(name) == sorted(column(name))


def test_the_line_table_is_used_with_the_keyboard(view: View):
    view.show("lines")
    first = view.root.locator(".explorer-lines .body .row").first
    first.focus()
    view.page.keyboard.press("ArrowDown")
    view.page.keyboard.press("Enter")
    second = view.root.locator(".explorer-lines .body .row").nth(1)
    expect(second).to_be_focused()
    expect(second).to_contain_class("lit")


def test_an_equation_tells_what_became_of_it_and_leads_to_its_kernel(view: View, capture: ex.Capture):
    (tanh,) = [node for node in capture.jaxpr.graph.nodes if node.op == "exp"]
    fate = capture.fate(tanh)
    view.root.locator('button[data-stage="jaxpr"]').click()
    view.graph.locator(f'g[data-node="{tanh.index}"]').click()
    details = view.root.locator(".explorer-details")
    expect(details.locator(".fate")).to_contain_text(fate.kind)
    details.get_by_role("button", name=fate.kernels[0].name).click()
    expect(view.root).to_have_attribute("data-stage", "hlo")
    expect(details.locator(".title")).to_have_text(fate.kernels[0].name)


def test_a_kernel_lists_the_equations_it_was_made_of(view: View, capture: ex.Capture):
    softmax = next(node for node in capture.jaxpr.graph.nodes if node.op == "exp")
    (kernel,) = capture.fate(softmax).kernels
    view.root.locator("input[type=search]").fill(f"name:{kernel.name}")
    view.show("table")
    view.root.locator(".explorer-table .rows .row", has_text=kernel.name).first.click()
    made = view.root.locator(".explorer-details .heading", has_text="made of")
    expect(made).to_be_visible()
    inside = made.locator("xpath=following-sibling::*[1]")
    for node in capture.jaxpr.graph.nodes:
        fate = capture.fate(node)
        if kernel in fate.kernels:
            told = inside.get_by_role("button").filter(has_text=re.compile(rf"^{node.op}.*{fate.kind}", re.DOTALL))
            expect(told.first).to_be_visible()
            assert told.first.locator(".inferred").count() == fate.inferred


def test_the_foot_says_that_links_are_exact_and_what_is_not_known(view: View, capture: ex.Capture):
    named = [node for node in capture.hlo.graph.nodes if node.scope and capture.hlo.graph.is_equation[node.index]]
    exact = sum(capture.links.grade(node, "jaxpr") == "exact" for node in named)
    foot = view.root.locator(".explorer-foot")
    expect(foot).to_contain_text(f"source mapping exact {100 * exact // len(named)}%")
    expect(foot).not_to_contain_text("inferred")
    unknown = capture.fates("jaxpr").get("unknown", 0)
    if unknown:
        expect(foot).to_contain_text(f"what happened to {unknown} of")
    else:
        expect(foot).not_to_contain_text("what happened to")


def test_links_of_a_program_without_numbers_are_said_to_be_inferred(browser: Browser, tmp_path: Path):
    x = jnp.ones((128, 64))
    untouched = ex.explore(attention, x, x, x, record=False)
    view = View(browser.open_file(untouched.to_html(tmp_path / "untouched.html")))
    foot = view.root.locator(".explorer-foot")
    expect(foot).to_contain_text(re.compile(r"source mapping inferred \d+%"))
    expect(foot.locator("[title*='from names and places']")).to_be_visible()
    expect(foot).not_to_contain_text("exact")


def test_without_the_optimised_program_lines_count_their_operations(
    capture: ex.Capture, browser: Browser, tmp_path: Path
):
    failed = replace(capture, stages=capture.stages[:2], failure="compile failed: XlaRuntimeError")
    view = View(browser.open_file(failed.to_html(tmp_path / "failed.html")))
    assert shares(view) == []
    assert any(view.root.locator(".explorer-source .count").all_inner_texts())
    view.show("lines")
    expect(view.root.locator(".explorer-lines")).to_contain_text("this capture has no optimized program")
