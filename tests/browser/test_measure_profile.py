"""The view of a profile: clicked, by keyboard, live in a notebook, saved and opened again, small and large."""

from __future__ import annotations

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from axe import THEMES, violations
from lab import Browser, Lab, Notebook
from playwright.sync_api import Locator, Page, expect
from view import READY as VIEWER

import explorer as ex
from explorer.model.graph import Frame
from explorer.model.results.profile import LineTime, Profile
from tests.examples.profiles import ops_of, profile_of

READY = '.explorer.profile[data-ready="true"]'
CODE = """
import jax, jax.numpy as jnp
import explorer as ex

@jax.jit
def attention(q, k, v):
    scores = q @ k.T
    with jax.named_scope("softmax"):
        weights = jax.nn.softmax(scores / 8.0)
    return weights @ v

x = jnp.ones((512, 64))
found = ex.profile(attention, x, x, x, runs=5)
found
""".strip()


def layered(x, weights):
    for i in range(4):
        with jax.named_scope(f"layer{i}"):
            x = jnp.tanh(x @ weights)
            x = jnp.sort(x, axis=0)  # nothing is fused across it
    return x.sum(0)


@pytest.fixture(scope="module")
def profile() -> Profile:
    return profile_of(ex.explore(layered, jnp.ones((256, 256)), jnp.ones((256, 256))), gap=0.25, wasted=True)


@pytest.fixture(scope="module")
def page_file(profile: Profile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return profile.to_html(tmp_path_factory.mktemp("profile") / "profile.html")


def view(page: Page) -> Locator:
    page.wait_for_selector(READY, timeout=60_000)
    return page.locator(READY).last


def opened(browser: Browser, path: Path, dark: bool = False) -> Locator:
    return view(browser.open_file(path, dark=dark))


def line(shown: Locator, text: str) -> Locator:
    return shown.locator(".pf-hot", has_text=text)


def test_threads_are_drawn_again_when_the_theme_changes(browser: Browser, tmp_path: Path):
    measured = ex.profile(layered, jnp.ones((256, 256)), jnp.ones((256, 256)), runs=3)
    page_file = measured.to_html(tmp_path / "measured.html")
    in_the_dark = opened(browser, page_file, dark=True).locator("canvas").evaluate("canvas => canvas.toDataURL()")
    shown = opened(browser, page_file)
    canvas = shown.locator("canvas")
    assert canvas.evaluate("canvas => canvas.toDataURL()") != in_the_dark
    is_as = "([canvas, drawn]) => canvas.toDataURL() === drawn"
    shown.page.emulate_media(color_scheme="dark")
    expect(shown).to_contain_class("dark")
    shown.page.wait_for_function(is_as, arg=[canvas.element_handle(), in_the_dark])
    # JupyterLab hides the page while it puts on another style sheet: no observer sees a size that came back at once.
    shown.page.evaluate("""async () => {
      document.body.style.display = "none";
      document.body.classList.add("light");
      await 0;
      await 0;
      document.body.style.display = "";
    }""")
    expect(shown).not_to_contain_class("dark")
    shown.page.wait_for_function(
        "([canvas, drawn]) => canvas.toDataURL() !== drawn", arg=[canvas.element_handle(), in_the_dark]
    )


def test_the_hottest_line_is_said_first_and_in_sight(browser: Browser, page_file: Path):
    shown = opened(browser, page_file)
    expect(shown.locator(".pf-title")).to_contain_text(
        re.compile(r"layered: .* a call; (\d+% of the device's time is line|a tie: lines|no line dominates)")
    )
    expect(shown.locator(".pf-waits")).to_contain_text("the device waited 25% of the time")
    expect(shown.locator(".pf-facts")).to_contain_text("without a line")
    expect(line(shown, "jnp.tanh(x @ weights)")).to_be_in_viewport()
    expect(shown.locator(".pf-folded").first).to_contain_text("without time")


def test_a_click_on_a_line_shows_its_kernels_here_and_in_the_flame_graph(browser: Browser, page_file: Path):
    shown = opened(browser, page_file)
    every = shown.locator(".pf-kernel-row").count()
    line(shown, "jnp.sort").click()
    expect(line(shown, "jnp.sort")).to_have_attribute("aria-pressed", "true")
    kernels = shown.locator(".pf-kernel-row")
    expect(shown.locator(".pf-kernels .pf-tools b")).to_contain_text(re.compile(r"\d+ kernels? of line \d+"))
    assert 0 < kernels.count() < every
    for row in kernels.all():
        expect(row).to_have_attribute("aria-selected", "true")
        expect(row.locator(".pf-c-of")).to_contain_text("%")
    expect(shown.locator(".pf-box.pf-kernel.lit")).to_have_count(kernels.count())
    line(shown, "jnp.sort").click()
    expect(kernels).to_have_count(every)


def test_a_click_on_a_kernel_shows_its_lines_and_what_is_known_of_it(browser: Browser, page_file: Path):
    shown = opened(browser, page_file)
    kernel = shown.locator(".pf-kernel-row").first
    kernel.click()
    expect(shown.locator(".pf-detail")).to_contain_text("FLOP a call")
    expect(shown.locator(".pf-detail")).to_contain_text("layer")
    expect(shown.locator('.pf-hot[aria-pressed="true"]').first).to_be_visible()
    expect(shown.locator(".pf-box.pf-kernel.lit")).to_have_count(1)


def test_lines_are_sorted_by_time_and_by_what_is_wasted(browser: Browser, page_file: Path, profile: Profile):
    shown = opened(browser, page_file)
    for order in ("time", "wasted"):
        shown.locator(f'[data-order="{order}"]').click()
        expect(shown.locator(".pf-cold")).to_have_count(0)
        numbers = [int(row.get_attribute("data-line") or 0) for row in shown.locator(".pf-hot").all()]
        assert numbers == [one.line for one in profile.lines]
    shown.locator('[data-order="source"]').click()
    expect(shown.locator(".pf-cold").first).to_be_visible()


def test_kernels_are_sorted_by_any_column(browser: Browser, page_file: Path, profile: Profile):
    shown = opened(browser, page_file)
    expect(shown.locator(".pf-c-time[aria-sort]")).to_have_attribute("aria-sort", "descending")
    shown.locator(".pf-columns .pf-c-name button").click()
    names = shown.locator(".pf-kernel-row code").all_inner_texts()
    assert names == sorted(names)
    shown.locator(".pf-columns .pf-c-wasted button").press("Enter")
    first = max(profile.ops, key=lambda op: op.wasted or 0).name
    expect(shown.locator(".pf-kernel-row code").first).to_have_text(first)


def test_the_flame_graph_goes_by_scope_too_and_a_click_shows_one_box_alone(browser: Browser, page_file: Path):
    shown = opened(browser, page_file)
    boxes = shown.locator(".pf-box")
    expect(boxes.first).to_have_text("layered")
    shown.locator('[data-by="scope"]').click()
    layer = shown.locator(".pf-box", has_text="layer2")
    before = layer.bounding_box()
    layer.click()
    after = layer.bounding_box()
    assert before is not None
    assert after is not None
    assert after["width"] > 2 * before["width"]
    expect(shown.locator(".pf-box", has_text="layer1")).to_have_count(0)
    expect(shown.locator(".pf-summary")).to_contain_text("layer2")
    shown.locator(".pf-whole").click()
    expect(shown.locator(".pf-box", has_text="layer1")).to_have_count(1)


def test_everything_is_reached_by_keyboard(browser: Browser, page_file: Path):
    shown = opened(browser, page_file)
    page = shown.page
    lines = shown.locator(".pf-hot")
    shown.locator('.pf-hot[tabindex="0"]').focus()
    page.keyboard.press("Home")
    expect(lines.first).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(lines.nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(lines.nth(1)).to_have_attribute("aria-pressed", "true")
    shown.locator('.pf-box[tabindex="0"]').focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    focused = shown.locator(".pf-box:focus")
    expect(focused).to_have_attribute("aria-level", "3")
    name = focused.get_attribute("aria-label")
    expect(shown.locator(".pf-summary b")).to_have_text((name or "").split(", ")[1])
    page.keyboard.press("Escape")
    shown.locator('.pf-kernel-row[tabindex="0"]').focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(shown.locator(".pf-detail")).to_be_visible()
    expect(shown.locator(".pf-kernel-row").nth(1)).to_be_focused()


@THEMES
def test_axe_finds_nothing(browser: Browser, page_file: Path, dark: bool):
    shown = opened(browser, page_file, dark)
    assert violations(shown.page) == []
    line(shown, "jnp.tanh").click()
    assert violations(shown.page) == [], "with a line chosen"
    shown.locator('[data-order="time"]').click()
    shown.locator(".pf-kernel-row").first.click()
    assert violations(shown.page) == [], "with a kernel open"
    browser.keep(shown.page, f"profile-{'dark' if dark else 'light'}")


def test_on_a_narrow_page_nothing_is_wider_than_it(browser: Browser, page_file: Path):
    shown = opened(browser, page_file)
    shown.page.set_viewport_size({"width": 400, "height": 900})
    expect(shown.locator(".pf-kernels")).to_be_visible()
    wide = """() => [...document.querySelectorAll(".explorer.profile, .explorer.profile > *")]
      .filter((one) => one.getBoundingClientRect().right > innerWidth).map((one) => one.className)"""
    assert shown.page.evaluate(wide) == []
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= 400
    browser.keep(shown.page, "profile-narrow")


def test_a_profile_of_one_line_and_one_kernel(browser: Browser, tmp_path: Path):
    one = profile_of(ex.explore(jnp.tanh, jnp.ones((64, 64))), gap=0.01)
    shown = opened(browser, one.to_html(tmp_path / "one.html"))
    expect(shown.locator(".pf-title")).to_contain_text("tanh")
    expect(shown.locator(".pf-kernel-row")).to_have_count(1)


@pytest.mark.slow
def test_a_profile_of_95_513_instructions_opens_and_says_what_is_left_out(browser: Browser, tmp_path: Path):
    stack = tuple(Frame("/home/ada/deep.py", f"f{i}", i) for i in range(1, 30))
    ops = ops_of(
        [(f"fusion.{i}", 1e-6 * (1 + i % 7), f"net/layer{i % 90}/b{i % 7}", stack[i % 29 :]) for i in range(95_513)]
    )
    device = sum(op.seconds for op in ops)
    lines = [
        LineTime("/home/ada/deep.py", i, f"x = f{i}(x)", device / 600, 1 / 600, 9, None, 0, 0) for i in range(1, 601)
    ]
    many = Profile("step", "()", 1, device, device, 0.0, ops, lines, 0.0)
    shown = opened(browser, many.to_html(tmp_path / "many.html"))
    expect(shown.locator(".pf-folded").last).to_contain_text("and 200 more lines")
    more = shown.locator(".pf-rest button")
    while more.count():
        more.click()
    expect(shown.locator(".pf-rest")).to_contain_text("and 94,513 more kernels")
    assert shown.locator(".pf-box").count() < 4_000


# In a notebook --------------------------------------------------------------------------------------------------------


def notebook(lab: Lab, browser: Browser, name: str) -> Notebook:
    live = browser.open(lab, lab.write(name, CODE))
    live.run_all()
    return live


def test_a_click_opens_what_was_compiled_coloured_by_its_time(lab: Lab, browser: Browser):
    live = notebook(lab, browser, "profile.ipynb")
    shown = view(live.page)
    expect(line(shown, "q @ k.T")).to_be_visible()
    expect(shown.locator(".pf-threads canvas")).to_have_attribute("aria-label", re.compile("the device was busy"))
    browser.keep(live.page, "profile-live")
    shown.locator(".pf-opens button").first.click()
    capture = shown.locator(f".pf-slot {VIEWER}")
    expect(capture).to_be_visible(timeout=60_000)
    expect(capture.locator(".share-of")).to_contain_text("of the measured time")
    browser.keep(live.page, "profile-capture")
    live.shut_down()


@pytest.mark.slow
def test_a_saved_notebook_shows_the_profile_without_a_kernel(lab: Lab, browser: Browser):
    live = notebook(lab, browser, "saved-profile.ipynb")
    title = view(live.page).locator(".pf-title").inner_text()
    live.save()
    live.shut_down()
    lab.trust("saved-profile.ipynb")
    page = browser.context.new_page()
    page.goto(lab.address("saved-profile.ipynb"))
    shown = view(page)
    expect(shown.locator(".pf-title")).to_have_text(title)
    line(shown, "q @ k.T").click()
    expect(shown.locator(".pf-kernels .pf-tools b")).to_contain_text("of line")
    expect(shown.locator(".pf-opens button")).to_have_count(0)
    page.close()
