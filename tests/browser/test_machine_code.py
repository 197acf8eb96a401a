"""The pane of the code below HLO: its kernels, their facts and text, and the links to the other panes."""

from __future__ import annotations

import re
from pathlib import Path

import jax.numpy as jnp
import pytest
from lab import Browser
from playwright.sync_api import Page, expect

import explorer as ex


def program(x):
    first = jnp.sort(jnp.tanh(x) * 2.0)
    return jnp.sort(jnp.exp(first) + 1.0)


@pytest.fixture(scope="module")
def capture() -> ex.Capture:
    capture = ex.explore(program, jnp.ones((64, 64)))
    assert len(capture.machine_code) > 2
    return capture


@pytest.fixture
def page(browser: Browser, capture: ex.Capture, tmp_path: Path) -> Page:
    opened = browser.open_file(capture.to_html(tmp_path / "report.html"))
    opened.get_by_role("tab", name="machine code").click()
    return opened


def test_each_kernel_has_its_facts_and_its_code_as_python_has_it(page: Page, capture: ex.Capture):
    kernels = page.locator(".code-kernels [role=option]")
    expect(kernels).to_have_count(len(capture.machine_code))
    for at, row in enumerate(capture.machine_code):
        kernels.nth(at).click()
        expect(kernels.nth(at)).to_contain_text(row.kernels[0])
        page.get_by_role("tab", name="LLVM IR").click()
        expect(page.locator(".code-text .row").first).to_contain_text(row.texts["llvm"].partition("\n")[0][:60])
        expect(page.locator(".code-head dl")).to_contain_text("vectors")


def test_a_kernel_and_its_line_find_each_other(page: Page, capture: ex.Capture):
    line = program.__code__.co_firstlineno + 2
    row = next(row for row in capture.machine_code if capture.hlo.graph[row.kernels[0]].place.line == line)
    kernel = page.locator(".code-kernels [role=option]", has_text=row.kernels[0]).first
    source = page.locator(f'.explorer-source [data-line="{line}"], [data-line="{line}"]').first
    kernel.hover()
    expect(source).to_have_class(classed("over"))
    page.mouse.move(0, 0)
    source.click()
    expect(kernel).to_have_class(classed("lit"))


def classed(name: str) -> re.Pattern[str]:
    return re.compile(rf"(^|\s){name}(\s|$)")


def test_a_page_without_it_says_how_to_have_it(browser: Browser, tmp_path: Path):
    page = browser.open_file(ex.explore(jnp.sin, jnp.ones(8)).to_html(tmp_path / "report.html"))
    page.get_by_role("tab", name="machine code").click()
    expect(page.locator(".middle .empty")).to_contain_text("capture.machine_code")
