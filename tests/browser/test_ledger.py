"""The ledger's view: live while a cell runs, clicked, saved and opened again, small and large."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from axe import violations
from lab import Browser, Lab, Notebook
from playwright.sync_api import Locator, Page, expect

from explorer.model.events.ledger import Ledger
from tests.examples import ledgers

READY = '.explorer.ledger[data-ready="true"]'
SETUP = """
import time
import jax, jax.numpy as jnp
import explorer as ex

@jax.jit
def step(x):
    return jnp.tanh(x) * 2

sizes = [jnp.ones(n) for n in (2, 3, 4)]
ledger = ex.watch()
ledger
""".strip()
# Its first compile is long over when it ends, and it can't end before it is let.
SLOW = """
import re
from pathlib import Path
from typing import Any
step(sizes[0])
while not Path({gate!r}).exists():
    time.sleep(0.05)
step(sizes[1])
""".strip()

# Its trace can't end before it is let.
WAITS = """
from pathlib import Path
@jax.jit
def waits(x):
    while not Path({gate!r}).exists():
        time.sleep(0.05)
    return x
waits(sizes[0]);
""".strip()
# Without waiting for the end, which is noted.
START = "() => { window.jupyterapp.commands.execute('notebook:run-all-cells').then(() => { window.done = true; }); }"

# How long the page is busy with an input to the filter, until it is painted.
TYPED = """async words => {
  const input = document.querySelector(".ledger input");
  const began = performance.now();
  input.value = words;
  input.dispatchEvent(new Event("input"));
  await new Promise((next) => requestAnimationFrame(() => setTimeout(next)));
  return performance.now() - began;
}"""
VIEWS = "[...window.explorerLedgers.values()].flat().length"


def opened(lab: Lab, browser: Browser, name: str, *cells: str) -> Notebook:
    return browser.open(lab, lab.write(name, *cells))


def view(page: Page) -> Locator:
    page.wait_for_selector(READY, timeout=60_000)
    return page.locator(READY).last


def unfold(shown: Locator, name: str) -> None:
    """Show a function's compiles; those of the one that the verdict is about may be shown already."""
    group = shown.locator(".lg-group", has_text=name)
    if group.get_attribute("aria-expanded") == "false":
        group.click()
    expect(group).to_have_attribute("aria-expanded", "true")


def test_a_compile_is_seen_before_its_cell_has_ended(lab: Lab, browser: Browser, tmp_path: Path):
    gate = tmp_path / "gate"
    live = opened(lab, browser, "ledger.ipynb", SETUP, SLOW.format(gate=str(gate)))
    live.page.evaluate(START)
    shown = view(live.page)
    expect(shown.locator(".lg-title")).to_contain_text("step compiled once")
    expect(shown.locator(".lg-group", has_text="step")).to_contain_text("1 ×")
    assert not live.page.evaluate("window.done")
    gate.touch()
    expect(shown.locator(".lg-title")).to_contain_text("step compiled twice")
    expect(shown.locator(".lg-cause")).to_contain_text("x.shape[0] varied: 2 → 3")
    live.idle()
    browser.keep(live.page, "ledger-live")
    live.shut_down()


@pytest.mark.slow
def test_what_is_being_traced_now_is_said(lab: Lab, browser: Browser, tmp_path: Path):
    gate = tmp_path / "gate"
    waits = WAITS.format(gate=str(gate))
    live = opened(lab, browser, "running.ipynb", SETUP, waits)
    live.page.evaluate(START)
    running = view(live.page).locator(".lg-running")
    expect(running).to_contain_text("tracing waits…")
    expect(running).to_contain_text("cell [2]")
    expect(running).to_contain_text(re.compile(r"… ([2-9]|[1-5]\d)(\.\d)? s"), timeout=20_000)  # it goes on by itself
    browser.keep(live.page, "ledger-running")
    gate.touch()
    expect(running).to_be_hidden()
    live.idle()
    live.shut_down()


def test_a_click_brings_the_capture_and_the_diff(lab: Lab, browser: Browser):
    live = opened(lab, browser, "clicked.ipynb", SETUP, "step(sizes[0])\nstep(sizes[1]);")
    live.run_all()
    shown = view(live.page)
    unfold(shown, "step")
    assert live.page.evaluate(VIEWS) == 1, "a newer output takes over the view that was there"
    expect(live.page.locator(".explorer-static:visible")).to_have_count(0)
    shown.locator(".lg-event", has_text="[step/2]").click()
    shown.locator('[data-ask="capture"]').click()
    capture = shown.locator(".lg-slot .explorer[data-ready]")
    expect(capture).to_contain_text("step", timeout=30_000)
    expect(capture.locator(".explorer-source")).to_contain_text("jnp.tanh(x) * 2")
    browser.keep(live.page, "ledger-capture")
    shown.locator('[data-ask="diff"]').click()
    expect(shown.locator(".lg-slot .diff-facts")).to_be_visible(timeout=30_000)
    browser.keep(live.page, "ledger-diff")
    assert live.python("len(ledger.recompiles('step'))") == "1", "looking is not compiling"
    live.shut_down()


@pytest.mark.slow
def test_the_saved_notebook_shows_what_came_after_the_cell_and_needs_no_kernel(lab: Lab, browser: Browser):
    live = opened(
        lab, browser, "saved.ipynb", SETUP, "step(sizes[0])\nstep(sizes[1]);", "step(sizes[2])\nledger.stop()"
    )
    live.run_all()
    shown = view(live.page)
    expect(shown.locator(".lg-title")).to_contain_text("step compiled 3 times")
    expect(shown.locator(".lg-watched")).to_be_empty()
    unfold(shown, "step")
    expect(shown.locator(".lg-event")).to_have_count(3)
    threads = "[t.name for t in __import__('threading').enumerate() if 'ledger' in t.name]"
    live.wait_until(f"{threads} == []")
    live.save()
    live.shut_down()
    [output] = [out for out in live_outputs(lab, "saved.ipynb") if "text/html" in out.get("data", {})]
    assert "step compiled 3 times" in output["data"]["text/html"], "the table stands there without a script, too"
    again = browser.open(lab, "saved.ipynb")
    shown = view(again.page)
    expect(shown.locator(".lg-title")).to_contain_text("step compiled 3 times")
    unfold(shown, "step")
    shown.locator(".lg-event", has_text="[step/3]").click()
    expect(shown.locator(".lg-look")).to_contain_text("needs the kernel")
    again.shut_down()


def live_outputs(lab: Lab, name: str) -> list[dict[str, Any]]:
    cells = nbformat.read(lab.root / name, as_version=4).cells
    return [output for cell in cells for output in cell.get("outputs", [])]


def page_of(browser: Browser, tmp_path: Path, ledger: Ledger, dark: bool = False) -> Page:
    page = browser.open_file(ledger.to_html(tmp_path / "ledger.html"), dark=dark)
    page.wait_for_selector(READY)
    return page


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("tab", ["functions", "stacks", "arguments"])
def test_axe_finds_nothing(browser: Browser, tmp_path: Path, tab: str, dark: bool):
    page = page_of(browser, tmp_path, ledgers.typical(), dark)
    page.locator(f'[data-tab="{tab}"]').click()
    assert violations(page) == []
    if tab == "functions":
        page.locator(".lg-event").nth(2).click()
        assert violations(page) == [], "with a compile in detail"
        browser.keep(page, f"ledger-{'dark' if dark else 'light'}")


def test_names_that_are_markup_are_text(browser: Browser, tmp_path: Path):
    page = page_of(browser, tmp_path, ledgers.hostile())
    for tab in ("stacks", "arguments", "functions"):
        page.locator(f'[data-tab="{tab}"]').click()
    page.locator(".lg-event").first.click()
    page.locator(".lg-mark").first.hover()
    expect(page.locator(".lg-title")).to_contain_text(ledgers.HOSTILE)
    assert page.evaluate("typeof hacked") == "undefined"


@pytest.mark.slow
def test_ten_thousand_calls_stay_quick(browser: Browser, tmp_path: Path):
    page = page_of(browser, tmp_path, ledgers.many(10_000))
    assert page.locator("*").count() < 10_000, "what is not in sight is drawn together"
    for act in ("cell [7]", "static", ""):
        took = min(page.evaluate(TYPED, act) for _ in range(3))  # the machine does other things, too
        assert took < 1000, f"the filter {act!r} took {took:.0f} ms"
    page.locator(".lg-more").click()
    expect(page.locator(".lg-event")).to_have_count(210)
    browser.keep(page, "ledger-many")


def test_a_filter_keeps_what_is_of_a_cell_a_function_or_a_reason(browser: Browser, tmp_path: Path):
    page = page_of(browser, tmp_path, ledgers.typical())
    search = page.locator('input[type="search"]')
    for words, kept in (
        ("cell [6]", ["evaluate", "<lambda>"]),
        ("weak-type", ["evaluate"]),
        ("eager", ["eager operations"]),
    ):
        search.fill(words)
        expect(page.locator(".lg-group .lg-what")).to_have_count(len(kept))
        for name in kept:
            expect(page.locator(".lg-functions")).to_contain_text(name)


def test_the_keyboard_goes_along_the_timeline_and_opens_a_compile(browser: Browser, tmp_path: Path):
    page = page_of(browser, tmp_path, ledgers.typical())
    page.locator(".lg-mark[tabindex='0']").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    expect(page.locator(".lg-tip")).to_contain_text("[step/4]")
    page.keyboard.press("Enter")
    expect(page.locator(".lg-event.chosen")).to_contain_text("[step/4]")
    expect(page.locator(".lg-detail")).to_contain_text("loss = step(params, batch)")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".lg-tip")).not_to_contain_text("[step/")


def test_without_scripts_the_picture_the_cure_and_the_tables_stand(browser: Browser, tmp_path: Path):
    context = browser.context.browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(ledgers.typical().to_html(tmp_path / "ledger.html").as_uri())
    expect(page.locator(".explorer-static img")).to_be_visible()
    expect(page.locator(".explorer-static pre")).to_contain_text("NamedDimension")
    page.locator("summary").first.click()
    expect(page.locator("table").first).to_contain_text("batch['x'].shape[0]")
    context.close()


@pytest.mark.slow
def test_a_chart_grows_while_its_ledger_is_watched(lab: Lab, browser: Browser):
    live = opened(lab, browser, "chart.ipynb", SETUP + ".timeline()", "step(sizes[0])\nstep(sizes[1]);")
    live.run_all()
    live.page.wait_for_selector(".js-plotly-plot .barlayer .point path", state="attached")
    browser.keep(live.page, "ledger-chart")
    live.save()
    live.shut_down()
    [output] = [out for out in live_outputs(lab, "chart.ipynb") if "text/html" in out.get("data", {})]
    assert "compiles" in output["data"]["text/plain"]
    assert {"text/html", "application/vnd.plotly.v1+json"} <= set(output["data"])
    assert any("step" in str(trace["y"]) for trace in output["data"]["application/vnd.plotly.v1+json"]["data"])
