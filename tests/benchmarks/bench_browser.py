"""How long a person waits for the view of a 24-layer training step, in a real Chromium.

python -m tests.benchmarks.bench_browser [layers]
"""

import os
import shutil
import sys
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

import explorer as ex
from tests.benchmarks.table import row
from tests.examples.training import training_step

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
]  # fmt: skip
READY = '.explorer[data-ready="true"] .explorer-graph g:is([data-node], [data-group])'
EXPANSIONS = 40
WAIT = 60_000
SCREEN = {"width": 1500, "height": 1000}

# The clock is the page's own: from the start of the navigation, or from the click, to the frame after the change.
WATCH_READY = f"""
new MutationObserver((_, observer) => {{
    if (!document.querySelector('{READY}')) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => {{ window.painted = performance.now(); }}));
}}).observe(document, {{subtree: true, childList: true, attributes: true, attributeFilter: ["data-ready"]}});
"""
# A closed group that a person could click now: the topmost thing at its own middle, and none that was clicked before.
CLOSED = """
(done) => {
    for (const group of document.querySelectorAll('.explorer-graph g[data-group][aria-expanded="false"]')) {
        const { left, top, width, height } = group.getBoundingClientRect();
        const [x, y] = [left + width / 2, top + height / 2];
        if (done.includes(group.dataset.group) || !group.contains(document.elementFromPoint(x, y))) continue;
        return { name: group.dataset.group, x, y };
    }
}
"""
WATCH_CLICK = """
(name) => {
    window.expanded = undefined;
    const open = () => document.querySelector(`.explorer-graph g[data-group="${name}"][aria-expanded="true"]`);
    addEventListener("pointerup", () => {
        const start = performance.now();
        const look = () => {
            if (!open()) return requestAnimationFrame(look);
            requestAnimationFrame(() => setTimeout(() => { window.expanded = performance.now() - start; }));
        };
        look();
    }, { once: true, capture: true });
}
"""


def open_view(page, file):
    """Seconds from the start of the navigation to the first paint of the view."""
    page.add_init_script(WATCH_READY)
    page.goto(file.as_uri())
    page.wait_for_function("window.painted", timeout=WAIT)
    return page.evaluate("window.painted") / 1000


def everything(page):
    """The page with the whole graph in sight."""
    page.get_by_role("button", name="fit").click()
    page.wait_for_timeout(500)
    return page


def expand(page, wanted):
    """Seconds for each of so many groups, clicked one after the other, from the outside in."""
    times, clicked = [], []
    while len(times) < wanted:
        group = page.evaluate(CLOSED, clicked) or everything(page).evaluate(CLOSED, clicked)
        if group is None:
            break
        clicked.append(group["name"])
        page.evaluate(WATCH_CLICK, group["name"])
        page.mouse.click(group["x"], group["y"])
        page.wait_for_function("window.expanded", timeout=WAIT)
        times.append(page.evaluate("window.expanded") / 1000)
        page.mouse.move(0, 0)
    return times


def main(layers=24):
    step, arguments = training_step(layers)
    capture = ex.explore(step, *arguments)
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        sys.exit("the browser benchmark needs Chromium: 'chromium' was not found (set CHROMIUM=…)")
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = capture.to_html(Path(folder) / "report.html")
        print(f"{layers} layers, {len(capture.hlo.graph):,} instructions, page of {file.stat().st_size / 1e6:.1f} MB")
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        paints = []
        for _ in range(3):
            page = browser.new_page(viewport=SCREEN)
            paints.append(open_view(page, file))
            page.close()
        page = browser.new_page(viewport=SCREEN)
        open_view(page, file)
        times = expand(page, EXPANSIONS)
        browser.close()
    print(f"{len(times)} groups expanded\n")
    if len(times) < EXPANSIONS:
        sys.exit(f"too few for a percentile: {EXPANSIONS} are needed. Hint: more layers have more groups")
    slow = quantiles(times, n=20, method="inclusive")[-1]
    return all(
        [
            row("first paint, after navigation starts", sorted(paints)[1], 2.0, "s"),
            row("expanding a group, 95th percentile", slow, 0.200, "ms"),
        ]
    )


if __name__ == "__main__":
    sys.exit(not main(*map(int, sys.argv[1:])))
