"""The report of a padded executable, and of one that can't be padded, as a person sees them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from axe import THEMES, violations
from lab import Browser, Lab
from playwright.sync_api import expect

import explorer as ex

SHOWN = ".explorer-padding[data-started]"
SETUP = """
import jax, numpy as np, explorer as ex
batch = ex.NamedDimension("batch", 1, 8, 16)
info = ex.InputInfo((batch, 8), "float32")
exe = ex.compile(lambda x: jax.nn.softmax(x, axis=0), args=[info], dynamic="pad")
_ = [exe(np.ones((size, 8), "float32")) for size in (2, 3, 16)]
exe.dynamic_report
""".strip()
BLOCKED = """
def blocked(x):
    return jax.lax.linalg.svd(x, compute_uv=False)

ex.compile(blocked, args=[info], dynamic="auto").dynamic_report
""".strip()


@pytest.mark.slow
def test_it_is_shown_in_a_notebook_its_line_is_a_link_and_it_is_there_without_a_kernel(lab: Lab, browser: Browser):
    live = browser.open(lab, lab.write("padding.ipynb", SETUP, BLOCKED))
    live.page.evaluate("() => void window.jupyterapp.commands.execute('notebook:run-all-cells')")
    views = live.page.locator(SHOWN)
    expect(views).to_have_count(2, timeout=60_000)
    padded, blocked = views.first, views.last
    expect(padded.locator(".hp-headline")).to_contain_text("Padded: 1 binary serves all 16 sizes")
    expect(padded.locator(".pd-plot .hp-point")).to_have_count(2 * 3)
    link = blocked.locator("button.hp-where")
    expect(link).to_have_text("cell [2], line 2")
    link.click()
    expect(live.page.locator(".cm-line", has_text="jax.lax.linalg.svd")).to_be_in_viewport()
    live.set_theme("JupyterLab Dark")
    expect(padded).to_contain_class("dark")
    browser.keep(live.page, "padding-dark")
    live.idle()
    live.save()
    live.shut_down()

    again = browser.open(lab, "padding.ipynb")
    again._do("await panel.sessionContext.shutdown();")
    expect(again.page.locator(SHOWN).first.locator(".pd-plot .hp-point")).to_have_count(2 * 3, timeout=60_000)
    again.page.close()


def report() -> ex.types.DynamicReport:
    when = datetime(2026, 1, 1, tzinfo=UTC)
    binaries = tuple(
        ex.types.DynamicBinary({"b": size, "s": 64}, True, "padded, compiled ahead", False, 0.4, when, 9, None)
        for size in (64, 16)
    )
    sizes = tuple(
        ex.types.PaddedSizes(
            {"b": b, "s": s}, {"b": 16 if b <= 16 else 64, "s": 64}, 2, (b * s / 1e6,), True, b * s, 4096, b * s, 4096.0
        )
        for b in (1, 9, 16, 40, 64)
        for s in (3, 30, 64)
    )  # fmt: skip
    refusal = ex.types.PaddingRefusal(
        "f32[b] = svd f32[b,b]", "svd", "/m.py", 12, "`svd` has no rule", "solve outside", "m.py", "y = svd(x)"
    )
    return ex.types.DynamicReport(
        "classify", {"b": (1, 8, 64), "s": (1, 32, 64)}, "auto", "padded", "", (refusal,), {"add": 2}, 1,
        {"b": (16, 64), "s": (64,)}, binaries, ({"b": 4, "s": 4},), sizes, ("a fault",),
    )  # fmt: skip


@THEMES
def test_axe_finds_nothing(browser: Browser, tmp_path: Path, dark: bool):
    page = browser.open_file(report().to_html(tmp_path / "padding.html"), dark=dark)
    page.wait_for_selector(SHOWN)
    page.evaluate("document.querySelectorAll('details').forEach((details) => (details.open = true))")
    assert violations(page) == []
    browser.keep(page, f"padding-page-{'dark' if dark else 'light'}")


@pytest.mark.parametrize("width", [380, 1500])
def test_nothing_sticks_out(browser: Browser, tmp_path: Path, width: int):
    long = replace(report().refusals[0], reason="word " * 60, equation="x" * 300, label="m" * 90, hint="cure" * 80)
    page = browser.open_file(replace(report(), refusals=(long,)).to_html(tmp_path / "padding.html"))
    page.set_viewport_size({"width": width, "height": 800})
    page.wait_for_selector(SHOWN)
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
