"""What the compiler printed of a node is listed in its details, and found by the search field."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import jax.scipy.linalg
import pytest
from axe import violations
from lab import Browser
from playwright.sync_api import expect
from view import View

import explorer as ex


def solve(matrix, vector):
    return jax.scipy.linalg.lu_solve(jax.scipy.linalg.lu_factor(matrix), vector) @ vector


@pytest.fixture(scope="module")
def capture() -> ex.Capture:
    return ex.explore(solve, jnp.eye(8), jnp.ones(8))


@pytest.fixture
def view(browser: Browser, capture: ex.Capture, tmp_path: Path) -> View:
    return View(browser.open_file(capture.to_html(tmp_path / "report.html")))


def search(view: View, query: str) -> None:
    view.root.locator('input[type="search"]').fill(query)


def test_a_custom_call_is_found_by_its_target_and_its_attributes_are_listed(view: View, capture: ex.Capture):
    call = next(node for node in capture.hlo.graph.nodes if "getrf" in target_of(node))
    search(view, "target:getrf")
    details = view.root.locator(".explorer-details")
    details.get_by_role("button", name=call.name).first.click()
    expect(details.locator(".title")).to_have_text(call.name)
    listed = details.locator(".attributes span")
    expect(listed).to_have_text(list(call.attributes))
    expect(details.locator(".attributes")).to_contain_text(target_of(call))
    assert violations(view.page) == []


def test_a_long_value_is_cut_whole_in_its_tooltip_and_opens(view: View, capture: ex.Capture):
    node, key, value = next(
        (node, key, value)
        for node in capture.hlo.graph.nodes
        for key, value in node.attributes.items()
        if len(value) > 60
    )
    search(view, f'attr:"{key}" name == {node.name}')
    details = view.root.locator(".explorer-details")
    details.get_by_role("button", name=node.name).first.click()
    row = details.locator(".attributes details", has_text=key)
    cut, whole = row.locator("em"), row.locator("p")
    expect(cut).to_have_attribute("title", value)
    assert len(cut.inner_text()) < len(value)
    expect(whole).to_be_hidden()
    cut.click()
    expect(whole).to_be_visible()
    expect(whole).to_have_text(value)


@pytest.mark.parametrize("query", ["attr:custom_call_target", "attr:api_version", "target:getrf"])
def test_the_view_finds_what_python_finds_in_the_attributes(view: View, capture: ex.Capture, query: str):
    search(view, query)
    key, _, value = query.replace(" == ", ":").partition(":")
    of = {"attr": lambda node: value in node.attributes, "target": lambda node: value in target_of(node)}
    names = [node.name for node in capture.hlo.graph.nodes if of[key](node)]
    count = f"{len(names)} instruction{'' if len(names) == 1 else 's'}"
    expect(view.root.locator(".explorer-details .note").first).to_contain_text(count)
    for name in names:
        expect(view.root.locator(".explorer-details .list button", has_text=name).first).to_be_attached()


def target_of(node: ex.types.Node) -> str:
    return node.attributes.get("custom_call_target", "")
