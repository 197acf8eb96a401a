"""axe-core, which looks for what a screen reader or the keyboard would miss."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page

AXE = Path(__file__).parents[2] / "explorer" / "view" / "js" / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# The page around the view is not ours: these ask of it a main landmark, and a heading. The last is an experiment of
# axe: it takes a tooltip in a picture for words that stand there.
OFF = ["region", "landmark-one-main", "page-has-heading-one", "label-content-name-mismatch"]
CHECK = """async ([rules, off]) => {
  const result = await axe.run(document, {
    runOnly: { type: "tag", values: rules },
    rules: Object.fromEntries(off.map((rule) => [rule, { enabled: false }])),
  });
  const line = (id, help, { html }) => `${id}: ${help}: ${html.slice(0, 160)}`;
  return result.violations.flatMap(({ id, help, nodes }) => nodes.map((node) => line(id, help, node)));
}"""


def violations(page: Page) -> list[str]:
    """What axe-core finds against its rules, one line for each element: `rule: what to do: its HTML`."""
    if not AXE.exists():
        reason = "axe-core is not there: npm ci in explorer/view/js, or make bundle"
        pytest.fail(reason) if os.environ.get("EXPLORER_CI") == "1" else pytest.skip(reason)
    page.add_script_tag(path=AXE)
    return page.evaluate(CHECK, [RULES, OFF])
