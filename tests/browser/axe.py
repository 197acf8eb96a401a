"""axe-core, which looks for what a screen reader or the keyboard would miss."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.support.quick import quick

# Pages share a style sheet; test_accessible.py looks at a diff in both themes for every change.
THEMES = pytest.mark.parametrize("dark", quick([False, True], [False]), ids=["light", "dark"])
AXE = Path(__file__).parents[2] / "explorer" / "view" / "js" / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice", "experimental"]
# Two experiments of axe are wrong about us: it takes a tooltip in a picture for words that stand there, and a splitter,
# which ARIA lets have the focus, for a line.
OFF = ["label-content-name-mismatch", "focus-order-semantics"]
NARROW = 700  # pixels: what 200 % leave of 1400
CHECK = """async ([rules, off]) => {
  const result = await axe.run(document, {
    runOnly: { type: "tag", values: rules },
    rules: Object.fromEntries(off.map((rule) => [rule, { enabled: false }])),
  });
  const line = (id, help, { html }) => `${id}: ${help}: ${html.slice(0, 160)}`;
  return result.violations.flatMap(({ id, help, nodes }) => nodes.map((node) => line(id, help, node)));
}"""
# axe lets a small target pass that has room around it. What is drawn in a picture is as large as the picture is.
SMALL = """() => [...document.querySelectorAll(
  "button, input, select, summary, [role=tab], [role=button], [role=option], [role=link]",
)].flatMap((target) => {
  const { width, height } = target.getBoundingClientRect();
  const isSeen = width && height && target.checkVisibility({ visibilityProperty: true }) && !target.closest("svg");
  return isSeen && height < 23.9 ? [`${Math.round(height)} px high: ${target.outerHTML.slice(0, 160)}`] : [];
})"""


def violations(page: Page) -> list[str]:
    """What axe-core finds against its rules, and targets under 24 px, one line for each element; wide and narrow."""
    if not AXE.exists():
        reason = "axe-core is not there: npm ci in explorer/view/js, or make bundle"
        pytest.fail(reason) if os.environ.get("EXPLORER_CI") == "1" else pytest.skip(reason)
    page.add_script_tag(path=AXE)
    size = page.viewport_size
    assert size
    found = [*page.evaluate(CHECK, [RULES, OFF]), *page.evaluate(SMALL)]
    page.set_viewport_size({"width": NARROW, "height": size["height"]})
    page.evaluate(
        "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )  # it reacts to that
    found += [*page.evaluate(CHECK, [RULES, OFF]), *page.evaluate(SMALL)]
    page.set_viewport_size(size)
    return list(dict.fromkeys(found))
