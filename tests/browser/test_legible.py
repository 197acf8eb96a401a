"""What a page shows at first can be read: no text is small, none lies over another, and what costs most is in sight."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page, expect
from view import READY

import explorer as ex
from tests.examples.training import training_step
from tests.support.quick import quick

LEAST = 11  # pixels
WIDTHS = (1400, 1000, 700)

# The names in the source that a line's end splits.
SPLIT_NAMES = r"""() => [...document.querySelectorAll(".explorer-source .code")].flatMap((code) => {
  const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
  const split = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode())
    for (const { 0: name, index } of node.data.matchAll(/\w+/g)) {
      const range = document.createRange();
      range.setStart(node, index);
      range.setEnd(node, index + name.length);
      if (new Set([...range.getClientRects()].map((box) => box.top)).size > 1) split.push(name);
    }
  return split;
})"""

# Every text that is in sight: its size on the screen, through all zooms, and the box of each of its lines, as far as
# nothing cuts it off. What another element covers isn't in sight.
TEXTS = """() => {
  const texts = [];
  const cutBy = (element) => {
    const cut = [0, 0, innerWidth, innerHeight];
    for (let at = element; at; at = at.parentElement) {
      if (getComputedStyle(at).overflow === "visible") continue;
      const { left, top, right, bottom } = at.getBoundingClientRect();
      [cut[0], cut[1]] = [Math.max(cut[0], left), Math.max(cut[1], top)];
      [cut[2], cut[3]] = [Math.min(cut[2], right), Math.min(cut[3], bottom)];
    }
    return cut;
  };
  let id = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const { parentElement: of } = node;
    id++;
    if (!node.data.trim() || of.closest("script, style, title, option, template, noscript")) continue;
    if (!of.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const matrix = of.getScreenCTM?.();
    const size = parseFloat(getComputedStyle(of).fontSize) * (matrix ? Math.hypot(matrix.b, matrix.d) : 1);
    const range = document.createRange();
    range.selectNodeContents(node);
    const cut = cutBy(of);
    for (const { left, top, right, bottom } of range.getClientRects()) {
      const box = [Math.max(left, cut[0]), Math.max(top, cut[1]), Math.min(right, cut[2]), Math.min(bottom, cut[3])];
      if (box[2] - box[0] < 2 || box[3] - box[1] < 3) continue;
      const over = document.elementFromPoint((box[0] + box[2]) / 2, (box[1] + box[3]) / 2);
      const isDrawn = of.closest("svg") && over?.closest("svg") === of.closest("svg");
      if (isDrawn || over?.contains(of) || of.contains(over)) texts.push({ text: node.data.trim(), size, box, id });
    }
  }
  return texts;
}"""


def attention(q, k, v, mask):
    scores = jnp.einsum("bshd,bthd->bhst", q, k) / 4
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9))
    weights = weights * 1.0
    return jnp.einsum("bhst,bthd->bshd", weights, v)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    folder = tmp_path_factory.mktemp("legible")
    x = jnp.ones((8, 128, 4, 16), jnp.bfloat16)
    step, arguments = training_step(3)
    captures = {
        "attention": ex.explore(attention, x, x, x, jnp.ones((128, 128), bool)),
        "step": ex.explore(step, *arguments),
        "one": ex.explore(lambda x: x + 1, jnp.ones(3)),
    }
    return {name: capture.to_html(folder / f"{name}.html") for name, capture in captures.items()}


@pytest.fixture(params=quick(["light", "dark"], ["light"]))
def page(chromium: Chromium, request: pytest.FixtureRequest) -> Iterator[Page]:
    context = chromium.new_context(color_scheme=request.param, reduced_motion="reduce")
    yield context.new_page()
    context.close()


def show(page: Page, file: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(file.as_uri())
    page.wait_for_selector(READY)
    page.wait_for_timeout(300)


def overlap(one: list[float], other: list[float]) -> bool:
    """True if two boxes share more than an edge: rounding and the space of a line below letters are none."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    least = min((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
    return width > 1 and height > 3 and width * height > 0.15 * least


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["attention", "step", "one"])
def test_every_text_can_be_read(page: Page, pages: Mapping[str, Path], name: str, width: int):
    show(page, pages[name], width)
    texts = page.evaluate(TEXTS)
    assert len(texts) > 30
    assert not {text["text"]: text["size"] for text in texts if text["size"] < LEAST - 0.05}
    pairs = [(one, other) for i, one in enumerate(texts) for other in texts[:i] if one["id"] != other["id"]]
    assert not [(one["text"], other["text"]) for one, other in pairs if overlap(one["box"], other["box"])]


@pytest.mark.parametrize("width", [1400, 900])
def test_a_source_line_wraps_between_names(page: Page, pages: Mapping[str, Path], width: int):
    show(page, pages["step"], width)
    heights = page.locator(".explorer-source .code").evaluate_all("codes => codes.map(code => code.offsetHeight)")
    assert max(heights) > min(heights)  # some lines do wrap
    assert page.evaluate(SPLIT_NAMES) == []


def test_the_costliest_line_and_the_box_that_costs_most_are_in_sight_at_first(page: Page, pages: Mapping[str, Path]):
    show(page, pages["step"], 1400)
    line = page.locator(".explorer-source .line", has_text="jax.nn.gelu(")
    pane = page.locator(".explorer-source").bounding_box()
    place = line.bounding_box()
    assert pane
    assert place
    assert pane["y"] <= place["y"] <= pane["y"] + pane["height"] - place["height"]
    shares = page.locator(".explorer-graph g.box:not([aria-expanded='true'])").evaluate_all(
        """boxes => {
            const area = document.querySelector(".explorer-graph").getBoundingClientRect();
            return boxes.map((box) => {
                const { left, right, top, bottom } = box.getBoundingClientRect();
                const share = parseFloat(/([\\d.]+)% of/.exec(box.textContent)?.[1] ?? 0);
                const isIn = left > area.left && right < area.right && top > area.top && bottom < area.bottom;
                return [share, isIn];
            });
        }"""
    )
    most, is_in_sight = max(shares)
    assert most > 20
    assert is_in_sight


def test_a_box_of_the_overview_leads_to_what_it_is_of_and_the_keyboard_reaches_each(
    page: Page, pages: Mapping[str, Path]
):
    show(page, pages["step"], 1400)
    line = page.locator(".overview .part.line").filter(has_text="jax.nn").first
    number = line.locator("b").inner_text()
    line.click()
    chosen = page.locator(f'.explorer-source [data-line="{number}"]')
    expect(chosen).to_contain_class("lit")
    colours = [
        shown.evaluate("e => getComputedStyle(e).getPropertyValue('--c')")
        for shown in (line, chosen.locator("i").first)
    ]
    assert colours[0] == colours[1]
    kernel = page.locator(".overview .part.kernel").first
    kernel.click()
    expect(page.locator(".explorer-graph g.box.chosen")).to_have_count(1)
    expect(page.locator(".overview [tabindex='0']")).to_have_count(1)
    kernel.press("ArrowUp")
    expect(page.locator(":focus")).to_contain_class("line")


def test_another_measure_is_that_of_every_share(page: Page, pages: Mapping[str, Path]):
    show(page, pages["step"], 1400)
    expect(page.locator(".share-of")).to_have_text(re.compile("^% of the bytes moved"))
    page.locator(".overview header button").click()
    for place in (".share-of", ".overview header", ".explorer-graph"):
        expect(page.locator(place)).to_contain_text("of the FLOPs")
    expect(page.locator(".explorer-graph")).not_to_contain_text("of the bytes")
