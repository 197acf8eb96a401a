"""The viewer in a page, used with the mouse as a person would."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

READY = '.explorer[data-ready="true"]'
# Of several outputs the one that is ready first isn't the last one of the page.
ALL_READY = """ready => {
  const outputs = [...document.querySelectorAll("[data-explorer][data-started]")];
  return document.querySelector(ready) && outputs.every((output) => output.querySelector(ready));
}"""

# The middle of the first box that fits a selector, lies inside the pane and is not covered by another.
IN_SIGHT = """(pane, selector) => {
  const area = pane.getBoundingClientRect();
  for (const box of pane.querySelectorAll(selector)) {
    const { left, top, width, height } = box.getBoundingClientRect();
    const [x, y] = [left + width / 2, top + height / 2];
    if (x < area.left || x > area.right || y < area.top || y > area.bottom) continue;
    if (document.elementFromPoint(x, y)?.closest("g[data-node], g[data-group]") !== box) continue;
    return { x, y, node: box.dataset.node ?? null, group: box.dataset.group };
  }
  return null;
}"""

CLOSED_FUSION = 'g[data-node][data-group][aria-expanded="false"][aria-label*=", fusion"]'
CLOSED_GROUP = 'g[data-group]:not([data-node])[aria-expanded="false"]:not(.inputs)'


class View:
    """One viewer of a page; `number` counts from the last one, -1."""

    def __init__(self, page: Page, number: int = -1) -> None:
        page.wait_for_function(ALL_READY, arg=READY, timeout=60_000)
        self.page = page
        self.root = page.locator(READY).nth(number)
        self.graph = self.root.locator(".explorer-graph")

    def link(self) -> View:
        """This view, once it is linked to its kernel: who is quicker is told nothing, and tells nobody."""
        capture = self.root.get_attribute("data-capture")
        self.page.wait_for_function("id => window.explorerModels?.has(id)", arg=capture, timeout=60_000)
        return self

    def centre(self) -> None:
        self.graph.evaluate("pane => pane.scrollIntoView({ block: 'center', behavior: 'instant' })")

    def open_fusion(self) -> Locator:
        """Open boxes from the outside in until a fusion is in sight, and open that; the fusion's box, open."""
        self.centre()
        for _ in range(12):
            fusion = self.graph.evaluate(IN_SIGHT, CLOSED_FUSION)
            if fusion is not None:
                return self._click(fusion)
            group = self.graph.evaluate(IN_SIGHT, CLOSED_GROUP)
            assert group is not None, "neither a fusion nor a closed group is in sight"
            self._click(group)
        raise AssertionError("a fusion is more than twelve groups deep")

    def light(self, text: str) -> list[int]:
        """Click a source line and open what is lit, from the outside in, until nodes are: the nodes' indices."""
        self.click_line(text)
        self.centre()
        for _ in range(12):
            if self.lit_nodes.count():
                return [int(node.get_attribute("data-node") or -1) for node in self.lit_nodes.all()]
            group = self.graph.evaluate(IN_SIGHT, f"{CLOSED_GROUP}.lit")
            assert group is not None, f"{text!r} lights nothing in sight"
            self._click(group)
            self.click_line(text)
        raise AssertionError(f"the nodes of {text!r} are more than twelve groups deep")

    def _click(self, place: dict[str, str]) -> Locator:
        self.page.mouse.click(float(place["x"]), float(place["y"]))
        node = f'[data-node="{place["node"]}"]' if place["node"] else ":not([data-node])"
        box = self.graph.locator(f'g[data-group="{place["group"]}"]{node}')
        expect(box).to_have_attribute("aria-expanded", "true")
        return box

    def line(self, text: str) -> Locator:
        """The first source line that holds a text."""
        return self.root.locator(".explorer-source [data-line]", has_text=text).first

    def click_line(self, text: str) -> None:
        self.line(text).click()
        expect(self.line(text)).to_contain_class("lit")

    @property
    def lit_nodes(self) -> Locator:
        """The nodes of the graph that are lit; a lit group may hide more."""
        return self.graph.locator("g.lit[data-node]")

    def show(self, mode: str) -> None:
        """Switch between `graph`, `text` and `table`."""
        self.root.locator(f'button[data-mode="{mode}"]').click()
        expect(self.root).to_have_attribute("data-mode", mode)
