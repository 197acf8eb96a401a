"""The frame around the panes: their sizes and what remembers them, the full screen, the sheet, the bar, the help."""

from __future__ import annotations

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from lab import Browser
from playwright.sync_api import Locator, Page, expect
from view import View

import explorer as ex
from tests.support.quick import quick


def loss(weights, x):
    hidden = jnp.tanh(x @ weights[0])
    return jnp.sum(jax.nn.softmax(hidden @ weights[1]) ** 2)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    square = jnp.ones((64, 64))
    capture = ex.explore(jax.value_and_grad(loss), [square, square], square)
    return capture.to_html(tmp_path_factory.mktemp("frame") / "report.html")


def opened(browser: Browser, report: Path, width: int = 1400, height: int = 900) -> View:
    return View(browser.open_file(report, size={"width": width, "height": height}))


def width_of(part: Locator) -> float:
    return part.evaluate("part => part.getBoundingClientRect().width")


def height_of(part: Locator) -> float:
    return part.evaluate("part => part.getBoundingClientRect().height")


def splitter(view: View, name: str) -> Locator:
    return view.root.get_by_role("separator", name=name)


def pull(page: Page, bar: Locator, right: float, down: float) -> None:
    box = bar.bounding_box()
    assert box
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + right, y + down, steps=4)
    page.mouse.up()


def test_a_splitter_is_pulled_and_another_view_finds_it_there(browser: Browser, report: Path):
    view = opened(browser, report)
    source = view.root.locator(".explorer-source")
    before = width_of(source)
    pull(view.page, splitter(view, "size of the source"), 150, 0)
    assert width_of(source) == pytest.approx(before + 150, abs=6)
    pull(view.page, splitter(view, "size of the details"), -90, 0)
    sizes = [width_of(source), width_of(view.root.locator(".sheet"))]
    again = opened(browser, report)
    found = [width_of(again.root.locator(part)) for part in (".explorer-source", ".sheet")]
    assert found == pytest.approx(sizes, abs=1)


def test_a_splitter_follows_the_arrows_and_says_where_it_is(browser: Browser, report: Path):
    view = opened(browser, report)
    bar, source = splitter(view, "size of the source"), view.root.locator(".explorer-source")
    before, value = width_of(source), int(bar.get_attribute("aria-valuenow") or 0)
    bar.focus()
    for _ in range(5):
        view.page.keyboard.press("ArrowLeft")
    expect(bar).to_have_attribute("aria-valuenow", str(value - 10))
    assert width_of(source) == pytest.approx(before - 0.1 * width_of(view.root.locator(".panes")), abs=8)
    view.page.keyboard.press("Enter")
    assert width_of(source) == pytest.approx(before, abs=1)


def test_without_storage_the_sizes_last_as_long_as_the_page(browser: Browser, report: Path):
    browser.context.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('denied', 'SecurityError') } })"
    )
    view = opened(browser, report)
    source = view.root.locator(".explorer-source")
    before = width_of(source)
    pull(view.page, splitter(view, "size of the source"), 100, 0)
    assert width_of(source) == pytest.approx(before + 100, abs=6)
    view.page.set_viewport_size({"width": 700, "height": 900})
    expect(view.root.locator(".panes")).to_have_attribute("data-layout", "narrow")
    view.page.set_viewport_size({"width": 1400, "height": 900})
    expect(view.root.locator(".panes")).to_have_attribute("data-layout", "wide")
    assert width_of(source) == pytest.approx(before + 100, abs=6)


@pytest.mark.parametrize("denied", [False, True], ids=["allowed", "denied"])
def test_f_fills_the_screen_or_else_the_window_and_leaves_it(browser: Browser, report: Path, denied: bool):
    if denied:
        browser.context.add_init_script("Element.prototype.requestFullscreen = () => Promise.reject(new TypeError())")
    view = opened(browser, report)
    view.page.evaluate("document.querySelector('main').prepend(document.createElement('p'))")
    view.graph.locator("g.box").first.focus()
    view.page.keyboard.press("f")
    expect(view.root).to_contain_class("full")
    view.page.wait_for_function("() => Boolean(document.fullscreenElement)" if not denied else "() => true")
    expect(view.root).to_have_css("width", "1400px")
    expect(view.root).to_have_css("height", "900px")
    assert view.root.bounding_box() == {"x": 0, "y": 0, "width": 1400, "height": 900}
    expect(view.root.get_by_role("button", name="leave the full screen (f)")).to_be_visible()
    view.page.keyboard.press("Escape" if denied else "f")
    expect(view.root).not_to_contain_class("full")
    view.page.wait_for_function("() => !document.fullscreenElement")


def test_letters_that_are_typed_are_no_keys_of_the_frame(browser: Browser, report: Path):
    view = opened(browser, report)
    view.root.locator("input").first.press_sequentially("f?")
    expect(view.root).not_to_contain_class("full")
    expect(view.root.locator("dialog.help")).to_be_hidden()


@pytest.mark.parametrize("width", [700, 480, 360])
def test_where_it_is_narrow_a_click_still_tells_what_was_chosen(browser: Browser, report: Path, width: int):
    view = opened(browser, report, width, 900)
    sheet, details = view.root.locator(".sheet-head"), view.root.locator(".explorer-details")
    expect(sheet).to_have_attribute("aria-expanded", "false")
    expect(sheet).to_contain_text("loss")
    expect(details).to_be_hidden()
    view.click_line("jnp.tanh")
    expect(details.locator(".title")).to_be_visible()
    line = f"line {view.line('jnp.tanh').get_attribute('data-line')}"
    expect(details.locator(".title")).to_have_text(line)
    sheet.click()
    expect(details).to_be_hidden()
    expect(sheet).to_contain_text(line)
    view.click_line("softmax")  # closed by hand it stays closed, and still says what is chosen
    expect(details).to_be_hidden()
    expect(sheet).to_contain_text(f"line {view.line('softmax').get_attribute('data-line')}")


@pytest.mark.parametrize("width", quick([1400, 1000, 700, 480, 360], [1400, 700, 360]))
def test_every_part_is_on_the_page_at_every_width(browser: Browser, report: Path, width: int):
    """700 px are what is left of 1400 at 200 %."""
    view = opened(browser, report, width, 450)
    view.click_line("jnp.tanh")
    for part in (".explorer-source", ".middle", ".explorer-details", ".explorer-foot", ".explorer-graph .canvas"):
        box = view.root.locator(part).bounding_box()
        assert box, part
        assert box["height"] > 30, part
        assert box["width"] > 100, part
        assert 0 <= box["x"] <= width - box["width"], part
    assert view.page.evaluate("document.documentElement.scrollWidth") <= width
    labels = ["jaxpr", "StableHLO", "passes", "HLO", "Graph", "Text", "Table", "Lines", "Why", "Memory"]
    tools = ["full screen", "keys and marks", "fit the whole", "save the picture"]
    more = view.root.get_by_role("button", name="more tools")
    if width <= 900:
        more.click()
    for name in labels:
        expect(view.root.get_by_role("tab", name=re.compile(f"^{name}"))).to_be_visible()
    for name in tools:
        expect(view.root.get_by_role("button", name=name)).to_be_visible()


@pytest.mark.parametrize("width", quick([1400, 1000, 700, 480], [1400, 480]))
def test_the_bar_stays_where_it_is_whatever_is_chosen(browser: Browser, report: Path, width: int):
    view = opened(browser, report, width)
    places = "bar => [...bar.querySelectorAll('*')].map((part) => JSON.stringify(part.getBoundingClientRect()))"
    bar, strip = view.root.locator("> .bar"), view.root.locator(".panel-head")
    before = bar.evaluate(places), height_of(strip)
    view.click_line("jnp.tanh")
    for mode in ("text", "table", "lines", "why", "memory", "passes", "graph"):
        view.show(mode)
        assert (bar.evaluate(places), height_of(strip)) == before, mode
    for stage in ("jaxpr", "stablehlo", "hlo"):
        view.root.locator(f'[data-stage="{stage}"][role=tab]').click()
        expect(view.root).to_have_attribute("data-stage", stage)
        assert (bar.evaluate(places), height_of(strip)) == before, stage


def test_the_tabs_are_of_one_panel_and_follow_the_arrows(browser: Browser, report: Path):
    view = opened(browser, report)
    panel = view.root.get_by_role("tabpanel")
    for tablist in ("stage", "representation"):
        tabs = view.root.get_by_role("tablist", name=tablist).get_by_role("tab")
        for tab in tabs.all():
            expect(tab).to_have_attribute("aria-controls", panel.get_attribute("id") or "")
        expect(tabs.and_(view.root.locator("[tabindex='0']"))).to_have_count(1)
    view.root.locator('[data-mode="graph"]').focus()
    view.page.keyboard.press("ArrowRight")
    expect(view.root).to_have_attribute("data-mode", "text")
    expect(view.root.locator('[data-mode="text"]')).to_be_focused()
    expect(panel).to_have_accessible_name(re.compile("^HLO.* Text$"))
    view.page.keyboard.press("End")
    expect(view.root).to_have_attribute("data-mode", "memory")


def test_the_help_says_the_keys_and_gives_the_focus_back(browser: Browser, report: Path):
    view = opened(browser, report)
    view.click_line("jnp.tanh")
    line = view.line("jnp.tanh")
    line.focus()
    view.page.keyboard.press("?")
    help = view.page.get_by_role("dialog", name="Keys and marks")
    expect(help).to_be_visible()
    for text in ("full screen", "critical path", "inferred", "communicates with other devices"):
        expect(help).to_contain_text(text)
    view.page.keyboard.press("Escape")
    expect(help).to_be_hidden()
    expect(line).to_be_focused()
    expect(line).to_contain_class("lit")  # the choice stays
