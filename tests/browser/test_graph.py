"""The graph of a training step in a page: it tells its story, and every box, way and colour is reached."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Locator, Page, expect
from view import READY

import explorer as ex
from tests.examples.training import training_step

LAYERS = 5  # so that there are more inputs than one page shows
MOST_BOXES = 500


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    step, arguments = training_step(LAYERS)
    return ex.explore(step, *arguments).to_html(tmp_path_factory.mktemp("graph") / "step.html")


@pytest.fixture
def page(chromium: Chromium, page_file: Path) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": 1500, "height": 1000}, reduced_motion="reduce")
    shown = context.new_page()
    faults: list[str] = []
    shown.on("pageerror", lambda error: faults.append(str(error)))
    shown.goto(page_file.as_uri())
    shown.wait_for_selector(READY)
    whole(shown)
    yield shown
    context.close()
    assert not faults


def whole(page: Page) -> None:
    """Show all of the picture, however small: what isn't in sight is no element."""
    page.get_by_role("button", name="fit").click()


def box(page: Page, label: str) -> Locator:
    """The first box whose label starts so."""
    return page.locator(f'.explorer-graph g.box[aria-label^="{label}"]').first


def press_header(group: Locator) -> None:
    """Click the title of a group: the middle of an open one is another box."""
    group.locator("text.title").first.dispatch_event("pointerdown", {"button": 0})
    place = group.bounding_box()
    assert place
    group.page.mouse.click(place["x"] + 20, place["y"] + 6)


def labels(page: Page) -> list[str]:
    return [(shown.get_attribute("aria-label") or "").split(",")[0] for shown in page.locator("g.box").all()]


def turn_to(page: Page, name: str) -> None:
    page.locator(f'button[data-stage="{name}"]').click()
    expect(page.locator(f'.explorer[data-stage="{name}"]')).to_be_visible()


def stage(page: Page, name: str) -> None:
    turn_to(page, name)
    expect(page.locator("g.box").first).to_be_attached()  # while it is laid out there is none
    whole(page)


@pytest.mark.slow
def test_the_small_picture_is_drawn_again_when_the_theme_changes(page: Page):
    page.get_by_role("button", name="zoom in").click()
    small = page.locator(".minimap canvas")
    expect(small).to_be_visible()
    light = small.evaluate("canvas => canvas.toDataURL()")
    page.emulate_media(color_scheme="dark")
    expect(page.locator(".explorer").first).to_contain_class("dark")
    seen = [small.element_handle(), light]
    page.wait_for_function("([canvas, light]) => canvas.toDataURL() !== light", arg=seen)
    page.emulate_media(color_scheme="light")
    expect(page.locator(".explorer").first).not_to_contain_class("dark")
    page.wait_for_function("([canvas, light]) => canvas.toDataURL() === light", arg=seen)


def test_the_first_view_tells_the_story_of_the_step(page: Page):
    stage(page, "jaxpr")
    expect(box(page, "forward")).to_have_attribute("aria-expanded", "true")
    expect(box(page, "backward")).to_have_attribute("aria-expanded", "true")
    seen = labels(page)
    assert seen.count(f"block ×{LAYERS}") == 2
    assert {"inputs", "forward", "backward", "embed", "loss"} <= set(seen)
    assert any(label.startswith("update") for label in seen)


def test_a_repeat_opens_to_one_iteration_and_steps_through_the_others(page: Page):
    stage(page, "jaxpr")
    block = box(page, f"block ×{LAYERS}")
    block.click()
    expect(block).to_have_attribute("aria-expanded", "true")
    expect(block.locator(".step-at")).to_have_text(f"1 of {LAYERS}")
    first = page.locator("g.box[data-node]").evaluate_all("boxes => boxes.map(box => box.dataset.node)")
    block.locator('[data-step="1"]').click()
    expect(box(page, f"block ×{LAYERS}").locator(".step-at")).to_have_text(f"2 of {LAYERS}")
    second = page.locator("g.box[data-node]").evaluate_all("boxes => boxes.map(box => box.dataset.node)")
    assert first != second
    page.keyboard.press("Escape")


def test_what_is_lit_in_every_iteration_lights_the_one_that_is_drawn(page: Page):
    stage(page, "jaxpr")
    box(page, f"block ×{LAYERS}").click()
    page.get_by_label("find").fill("scope:jvp op:exp")
    expect(box(page, "attention")).to_have_class("box group function lit")
    expect(page.locator(".hint")).to_contain_text(f"lit in {LAYERS} of {LAYERS}")


def test_breadcrumbs_lead_back(page: Page):
    stage(page, "jaxpr")
    box(page, f"block ×{LAYERS}").click()
    box(page, "attention").click()
    crumbs = page.locator(".crumbs button")
    expect(crumbs).to_have_text(["forward", f"block ×{LAYERS}", "attention"])
    crumbs.first.click()
    expect(crumbs).to_have_text(["forward"])
    expect(box(page, "forward")).to_contain_class("chosen")


def test_boxes_are_coloured_by_any_column_with_a_legend(page: Page):
    menu = page.get_by_label("color by")
    names = menu.locator("option").evaluate_all("options => options.map(option => option.value)")
    assert {"line", "op", "dtype", "fusion", "flops", "bytes"} <= set(names)
    expect(page.locator(".legend")).to_be_hidden()
    for name in names[1:]:
        menu.select_option(name)
        expect(page.locator(".legend")).to_be_visible()
    menu.select_option("bytes")
    assert page.locator("g.box.measured").count() > 4
    colours = page.locator("g.box.measured").evaluate_all("boxes => boxes.map(b => b.style.getPropertyValue('--c'))")
    assert len(set(colours)) > 2
    menu.select_option("line")
    expect(page.locator("g.box.measured")).to_have_count(0)


def test_all_inputs_and_outputs_of_a_box_are_shown_and_hidden_again(page: Page):
    expect(page.get_by_role("button", name="inputs", exact=True).first).to_be_disabled()
    box(page, "loss").click()
    inputs = page.locator(".graph-tools button", has_text="inputs")
    inputs.click()
    expect(inputs).to_have_attribute("aria-pressed", "true")
    expect(box(page, "embed")).to_contain_class("on-way")
    expect(page.locator(".hint")).to_contain_text("feed it")
    page.locator(".graph-tools button", has_text="outputs").click()
    page.get_by_role("button", name="fit").click()
    expect(box(page, "outputs")).to_contain_class("on-way")
    page.locator(".graph-tools button", has_text="outputs").click()
    expect(page.locator("g.on-way")).to_have_count(0)


def test_shift_click_shows_the_way_between_two_boxes(page: Page):
    box(page, "embed").click()
    box(page, "loss").click(modifiers=["Shift"])
    expect(page.locator(".hint")).to_contain_text("step")
    assert page.locator("g.on-way").count() > 2
    page.keyboard.press("Escape")


def test_the_critical_path_is_a_toggle(page: Page):
    button = page.locator(".graph-tools button", has_text="critical path")
    button.click()
    expect(page.locator(".hint")).to_contain_text("critical path")
    assert page.locator("g.on-way").count() > 3
    button.click()
    expect(page.locator("g.on-way")).to_have_count(0)


def test_a_chosen_boxs_lines_say_what_flows(page: Page):
    box(page, "embed").click()
    expect(page.locator("text.flow", has_text="·")).not_to_have_count(0)


def test_the_minimap_shows_where_one_is_and_moves_there(page: Page):
    box(page, "block").click()
    for _ in range(4):
        page.get_by_role("button", name="zoom in").click()
    minimap = page.locator(".minimap")
    expect(minimap).to_be_visible()
    world = page.locator("svg.canvas > g")
    before = world.get_attribute("transform")
    minimap.click(position={"x": 5, "y": 5})
    assert world.get_attribute("transform") != before
    page.get_by_role("button", name="fit").click()
    expect(minimap).to_be_hidden()


@pytest.mark.slow
def test_however_much_is_opened_no_more_than_five_hundred_boxes_are_drawn(page: Page):
    page.get_by_role("button", name="fit").click()
    for _ in range(25):
        # The closed box with the most inside that can be clicked.
        opened = page.evaluate(
            """() => {
                const closed = [...document.querySelectorAll('g.box[aria-expanded="false"]')];
                const free = closed.find((box) => {
                    const { left, top, width, height } = box.getBoundingClientRect();
                    return box.contains(document.elementFromPoint(left + width / 2, top + height / 2));
                });
                if (!free) return false;
                const { left, top, width, height } = free.getBoundingClientRect();
                window.next = [left + width / 2, top + height / 2];
                return true;
            }"""
        )
        if not opened:
            break
        page.mouse.click(*page.evaluate("window.next"))
        page.wait_for_timeout(60)
        page.get_by_role("button", name="fit").click()
    assert 0 < page.locator("g.box").count() <= MOST_BOXES


def test_a_wide_group_is_paged(page: Page):
    box(page, "inputs").click()
    expect(box(page, "inputs")).to_have_attribute("aria-expanded", "true")  # so many are laid out by a worker
    whole(page)
    more = page.locator("g.box.rest")
    expect(more).to_have_count(1)
    expect(more).to_have_attribute("aria-label", re.compile("more"))
    page.locator("svg.canvas").focus()
    more.dispatch_event("pointerdown", {"button": 0})
    more.dispatch_event("pointerup", {"button": 0})
    whole(page)
    expect(page.locator('g.box[aria-label^="… and 150 more"]')).to_have_count(1)


def test_every_action_is_reached_by_the_keyboard(page: Page):
    page.locator("svg.canvas").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("g.box.chosen")).to_have_count(1)
    page.keyboard.press("o")
    expect(page.locator(".hint")).to_contain_text("need it")
    page.keyboard.press("c")
    expect(page.locator(".hint")).to_contain_text("critical path")
    page.keyboard.press("c")
    page.keyboard.press("p")
    expect(page.locator(".hint")).to_contain_text("path from")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("p")
    expect(page.locator(".hint")).to_contain_text("the shortest of")
    page.keyboard.press("Escape")


def test_a_function_of_one_operation_and_one_of_none_are_shown(chromium: Chromium, tmp_path: Path):
    for name, function in (("one", lambda x: x + 1), ("none", lambda x: x)):
        context = chromium.new_context()
        page = context.new_page()
        page.goto(ex.explore(function, jnp.ones(3)).to_html(tmp_path / f"{name}.html").as_uri())
        page.wait_for_selector(READY)
        for shown in ("jaxpr", "stablehlo", "hlo"):
            turn_to(page, shown)
            whole(page)
        context.close()


def test_a_scans_body_says_how_often_it_runs(chromium: Chromium, tmp_path: Path):
    def scanned(weights, x):
        return jax.lax.scan(lambda x, w: (jnp.tanh(x @ w) * 2, None), x, weights)[0]

    context = chromium.new_context()
    page = context.new_page()
    file = ex.explore(scanned, jnp.ones((9, 4, 4)), jnp.ones(4)).to_html(tmp_path / "scan.html")
    page.goto(file.as_uri())
    page.wait_for_selector(READY)
    assert any("×9" in label for label in labels(page))
    context.close()


def test_the_bar_of_a_kernel_is_as_long_as_its_share(page: Page):
    box(page, f"block ×{LAYERS}").click()
    box(page, "feed_forward").click()
    whole(page)
    expect(page.locator("g.box > rect.share").first).to_be_visible()
    measured = page.locator("g.box:has(> rect.share)").evaluate_all(
        """boxes => boxes.filter(box => / of /.test(box.textContent)).map(box => {
            const width = (part) => box.querySelector(part).getBoundingClientRect().width;
            return [width(".share") / width(".shape"), parseFloat(/([\\d.]+)% of/.exec(box.textContent)[1]) / 100];
        })"""
    )
    assert measured
    for drawn, said in measured:
        assert drawn == pytest.approx(said, abs=0.04)
