"""Hot paths as a person sees them: while a cell runs, saved, and without a kernel."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from axe import THEMES, violations
from lab import Browser, Lab
from playwright.sync_api import Locator, Page, expect

from explorer.model.results.hot_paths import CallTimes, HeldValue, HotPaths, HotRow

SETUP = """
%load_ext explorer
import pathlib, time
import jax, jax.numpy as jnp

def chain(x):
    for _ in range(8):
        x = jnp.tanh(x * 1.01 + 0.1) - x * 0.5
    return x

def loud(x):
    y = chain(x)
    print(end="")
    return y

x = jnp.ones((256, 256))
""".strip()
# It goes on until it was looked at.
RUN = """
%%hotpaths hot
least, most = time.monotonic() + 12, time.monotonic() + 120
while time.monotonic() < least or (time.monotonic() < most and not pathlib.Path({gate!r}).exists()):
    chain(x).block_until_ready()
    loud(x).block_until_ready()
""".strip()
SHOWN = ".explorer-hot[data-started]"


def shown(page: Page) -> Locator:
    page.wait_for_selector(SHOWN, timeout=60_000)
    return page.locator(SHOWN).last


def row(view: Locator, name: str) -> Locator:
    return view.locator(f'[data-key="{name}"]')


@pytest.mark.slow
def test_it_moves_while_the_cell_runs_opens_the_capture_and_is_there_without_a_kernel(
    lab: Lab, browser: Browser, tmp_path: Path
):
    gate = tmp_path / "gate"
    live = browser.open(lab, lab.write("hot.ipynb", SETUP, RUN.format(gate=str(gate))))
    live.page.evaluate("() => void window.jupyterapp.commands.execute('notebook:run-all-cells')")
    view = shown(live.page)
    expect(view.locator(".hp-on")).to_be_visible(timeout=60_000)
    expect(row(view, "loud")).to_contain_text("print", timeout=60_000)
    first = view.locator(".hp-sub").inner_text()
    row(view, "loud").locator("> summary").click()  # what a person folds stays folded
    expect(row(view, "loud")).not_to_have_attribute("open", "")
    expect(view.locator(".hp-sub")).not_to_have_text(first)
    expect(row(view, "loud")).not_to_have_attribute("open", "")
    browser.keep(live.page, "hotpaths-live")
    gate.touch()
    live.idle()
    expect(view.locator(".hp-on")).to_have_count(0, timeout=60_000)
    expect(view.locator(".hp-headline")).to_contain_text("chain")
    expect(row(view, "chain").locator(".hp-state")).to_contain_text("compiled")
    row(view, "chain").get_by_role("button", name="open its capture").click()
    expect(row(view, "chain").locator(".hp-slot .explorer")).to_be_visible(timeout=60_000)
    live.set_theme("JupyterLab Dark")
    expect(view).to_contain_class("dark")
    browser.keep(live.page, "hotpaths-dark")
    link = row(view, "chain").locator(".xf-body button.hp-where")
    expect(link).to_have_text(re.compile(r"cell \[\d+\], line 5"))
    link.click()
    expect(live.page.locator(".cm-line", has_text="def chain(x):")).to_be_in_viewport()
    live.save()
    live.shut_down()

    again = browser.open(lab, "hot.ipynb")
    again._do("await panel.sessionContext.shutdown();")
    view = shown(again.page)
    expect(row(view, "chain").locator(".hp-plot .hp-compiled")).not_to_have_count(0)
    expect(row(view, "loud")).to_contain_text("print")
    expect(view.get_by_role("button", name="open its capture")).to_have_count(0)
    again.page.close()


WAYS = ["eager"] * 10 + ["both"] * 3 + ["compiled"] * 27
SECONDS = {"eager": 0.013, "both": 0.015, "compiled": 0.0016}


def paths() -> HotPaths:
    seconds = tuple(SECONDS[way] for way in WAYS)
    times = CallTimes(tuple(range(1, 41)), tuple(sum(seconds[:i]) for i in range(40)), seconds, tuple(WAYS))
    step = HotRow(
        "train_step", "train.py", 12, "compiled", eager_calls=13, compiled_calls=27, eager_seconds=0.0131,
        compiled_seconds=0.0016, eager_samples=3, compiled_samples=3, basis="both ways", compile_seconds=0.4,
        holds=(HeldValue("loss", "global"), HeldValue("weights", "global", True)), misses={"RATE": 2}, times=times,
    )  # fmt: skip
    log = HotRow("log", "train.py", 30, "eager", "it prints", "train.py", 31, "print outside", eager_calls=40)
    compiling = replace(step, name="compiling_now", state="compiling", compiled_seconds=float("nan"))
    return HotPaths((step, compiling, log, HotRow("helper", "train.py", 2)), seconds=0.6, is_on=True, notes=("a note",))


@THEMES
def test_axe_finds_nothing(browser: Browser, tmp_path: Path, dark: bool):
    page = browser.open_file(paths().to_html(tmp_path / "hot.html"), dark=dark)
    page.wait_for_selector(SHOWN)
    page.evaluate("document.querySelectorAll('details').forEach((details) => (details.open = true))")
    assert violations(page) == []
    browser.keep(page, f"hotpaths-page-{'dark' if dark else 'light'}")


@pytest.mark.parametrize("width", [380, 1500])
def test_nothing_sticks_out(browser: Browser, tmp_path: Path, width: int):
    long = HotRow("f" * 80, "x" * 90, 3, "eager", "word " * 60, "x" * 90, 3, "cure" * 80, eager_calls=9)
    few = paths()
    page = browser.open_file(replace(few, functions=(*few.functions, long)).to_html(tmp_path / "hot.html"))
    page.set_viewport_size({"width": width, "height": 800})
    page.wait_for_selector(SHOWN)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    browser.keep(page, f"hotpaths-{width}")
