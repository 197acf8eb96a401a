"""How long a person waits for the view of a 24-layer training step, in a real Chromium; beside Model Explorer.

python -m tests.benchmarks.bench_browser [layers or a capture's file]
"""

import os
import shutil
import sys
from math import ceil, log, log2
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

from playwright.sync_api import TimeoutError, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "browser"))
from lab import Browser, running_lab
from test_rerun import CODE, growth

import explorer as ex
from explorer.capture.readers.hlo import read_hlo
from explorer.files.exports import write_graph
from explorer.model.capture import Capture
from explorer.model.stage import Durations, Stage
from tests.benchmarks.bench import repeated
from tests.benchmarks.model_explorer import is_installed, seconds_to_paint
from tests.benchmarks.table import row
from tests.examples.training import training_step

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
]  # fmt: skip
NO_MACHINE_CODE = "--js-flags=--no-opt --no-maglev --no-sparkplug"
READY = '.explorer[data-ready="true"] .explorer-graph g:is([data-node], [data-group])'
EXPANSIONS = 40
HOVERS = 60
FRAMES = 120
RERUNS = 50
BOXES = 480  # in sight while the picture moves: the view draws 500 at most
BIG = 20  # pixels that a group is high once it was zoomed in on
AIM = 4  # pixels of a group on each side of where it is clicked
WAIT = 120_000
OPENS = 20_000  # a click that opens nothing by then opens nothing
SCREEN = {"width": 1500, "height": 1000}

# The clock is the page's own: from the start of the navigation, or from the click, to the frame after the change.
WATCH_READY = f"""
new MutationObserver((_, observer) => {{
    if (!document.querySelector('{READY}')) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => {{ window.painted = performance.now(); }}));
}}).observe(document, {{subtree: true, childList: true, attributes: true, attributeFilter: ["data-ready"]}});
"""
# A closed group that a person could click now: it is the topmost thing around its own middle, and none that was clicked
# before. Around it, for at a pane's edge elementFromPoint and the pointer differ by a part of a pixel.
CLOSED = """
([done, aim]) => {
    for (const group of document.querySelectorAll('.explorer-graph g[data-group][aria-expanded="false"]')) {
        const { left, top, width, height } = group.getBoundingClientRect();
        const [x, y] = [Math.round(left + width / 2), Math.round(top + height / 2)];
        const around = [[x, y], [x - aim, y], [x + aim, y], [x, y - aim], [x, y + aim]];
        if (done.includes(group.dataset.group)) continue;
        if (!around.every((place) => group.contains(document.elementFromPoint(...place)))) continue;
        return { name: group.dataset.group, x, y, height };
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
# All that the page does for one move of the pointer, its layout included: source lines light boxes, boxes light lines.
HOVER = """
(most) => {
    const over = new PointerEvent("pointerover", { bubbles: true });
    const things = [...document.querySelectorAll(".explorer-source .line.used, .explorer-graph g.box")].slice(0, most);
    return things.map((thing) => {
        const start = performance.now();
        thing.dispatchEvent(over);
        document.body.offsetHeight;
        return performance.now() - start;
    });
}
"""
# Moves and zooms the picture in every frame; the milliseconds between the frames.
MOVE = """
(frames) => new Promise((done) => {
    const canvas = document.querySelector(".explorer-graph svg.canvas");
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const middle = { clientX: left + width / 2, clientY: top + height / 2, bubbles: true, cancelable: true };
    const times = [];
    canvas.focus();
    const step = (now) => {
        times.push(now);
        if (times.length > frames) return done(times.slice(1).map((time, i) => time - times[i]));
        const zooms = times.length % 2 === 0;
        const by = times.length % 40 < 20 ? 6 : -6;
        const move = { ...middle, ctrlKey: zooms, deltaX: zooms ? 0 : by, deltaY: by };
        canvas.dispatchEvent(new WheelEvent("wheel", move));
        requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
})
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


def closer(page, clicked):
    """A closed group that was too small to click, after zooming in on it as a person would; None if there is none."""
    small = everything(page).evaluate(CLOSED, [clicked, 0])
    if small is None:
        return None
    page.mouse.move(small["x"], small["y"])
    page.keyboard.down("Control")
    for _ in range(ceil(log2(max(BIG / small["height"], 1)))):
        page.mouse.wheel(0, -200 * log(2))  # twice as large, around the pointer
    page.keyboard.up("Control")
    page.wait_for_timeout(200)
    return page.evaluate(CLOSED, [clicked, AIM])


def main_thread(page):
    """A function for the seconds of a processor that the page's main thread has used: load leaves them as they are."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def used():
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(metric["value"] for metric in metrics if metric["name"] == "ThreadTime")

    return used


def expand(page, wanted):
    """For each of so many groups, clicked one after the other, from the outside in: seconds, and the main thread's."""
    times, used, clicked = [], [], []
    thread_time = main_thread(page)
    while len(times) < wanted:
        group = page.evaluate(CLOSED, [clicked, AIM]) or closer(page, clicked)
        if group is None:
            break
        clicked.append(group["name"])
        page.evaluate(WATCH_CLICK, group["name"])
        before = thread_time()
        page.mouse.click(group["x"], group["y"])
        try:
            page.wait_for_function("window.expanded", timeout=OPENS)
        except TimeoutError:
            sys.exit(f"a click on the closed group {group} opened nothing")
        used.append(thread_time() - before)
        times.append(page.evaluate("window.expanded") / 1000)
        page.mouse.move(0, 0)
    return times, used


def fill(page, wanted):
    """Open groups until so many boxes are drawn; how many are."""
    clicked = []
    while page.locator("g.box").count() < wanted:
        group = page.evaluate(CLOSED, [clicked, AIM]) or closer(page, clicked)
        if group is None:
            break
        clicked.append(group["name"])
        page.mouse.click(group["x"], group["y"])
        page.wait_for_timeout(200)
    everything(page)
    return page.locator("g.box").count()


def heap(page):
    """Bytes that the page's objects take, after what is no longer used has gone."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    return page.evaluate("performance.memory.usedJSHeapSize")


def slowest(times):
    """The 95th percentile."""
    return quantiles(times, n=20, method="inclusive")[-1]


def training(argument):
    if Path(argument).exists():
        return ex.load(argument)
    step, arguments = training_step(int(argument))
    return ex.explore(step, *arguments)


def only_text(text):
    return Capture("step", "", (Stage("hlo", lambda: (text, read_hlo(text))),), Durations())


def measure(browser, capture, folder):
    """The rows of one capture, and its median first paint."""
    file = capture.to_html(folder / "report.html")
    print(f"{len(capture.hlo.graph):,} instructions, page of {file.stat().st_size / 1e6:.1f} MB")
    paints = []
    for _ in range(3):
        page = browser.new_page(viewport=SCREEN)
        paints.append(open_view(page, file))
        page.close()
    page = browser.new_page(viewport=SCREEN)
    open_view(page, file)
    hovers = page.evaluate(HOVER, HOVERS)
    times, used = expand(page, EXPANSIONS)
    hovers += page.evaluate(HOVER, HOVERS)
    page.close()
    page = browser.new_page(viewport=SCREEN)
    open_view(page, file)
    boxes = fill(page, BOXES)
    frames = page.evaluate(MOVE, FRAMES)
    held_bytes = heap(page)
    page.close()
    print(f"{len(times)} groups expanded, {len(hovers)} hovers, {boxes} boxes moved\n")
    if len(times) < EXPANSIONS:
        sys.exit(f"too few for a percentile: {EXPANSIONS} are needed. Hint: more layers have more groups")
    held = [
        row("first paint, after navigation starts", median(paints), 1.0, "s"),
        row("expanding a group, 95th percentile", slowest(times), 0.100, "ms"),
        row("the main thread's part of it, 95th percentile", slowest(used), 0.080, "ms"),
        row("lighting what the pointer is over, 95th percentile", slowest(hovers) / 1000, 0.016, "ms"),
        row(f"a frame while {boxes} boxes are moved and zoomed, mean", sum(frames) / len(frames) / 1000, 0.020, "ms"),
        row("JavaScript heap", held_bytes, 250e6, "MB"),
    ]
    return held, median(paints)


def again(playwright, chromium, folder):
    """The rows of a cell that is run 50 times more in JupyterLab: what the page and the kernel hold.

    V8 compiles what is called often, for dozens of runs: of the 1.5 MB that 15 runs add, 0.9 are such code of
    JupyterLab's and ours. It says nothing of what is left behind, and is turned off.
    """
    browser = playwright.chromium.launch(executable_path=chromium, args=[*FLAGS, NO_MACHINE_CODE])
    with running_lab(folder / "lab") as lab:
        notebook = Browser(browser.new_context(viewport=SCREEN)).open(lab, lab.write("again.ipynb", CODE))
        grown = growth(notebook, RERUNS)
        notebook.shut_down()
    browser.close()
    return [row(f"{kind} after {RERUNS} runs of a cell", times, 1.02, "×") for kind, times in grown.items()]


def main(argument="24"):
    capture = training(argument)
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        sys.exit("the browser benchmark needs Chromium: 'chromium' was not found (set CHROMIUM=…)")
    with TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        browser = playwright.chromium.launch(executable_path=chromium, args=[*FLAGS, "--enable-precise-memory-info"])
        held, ours = measure(browser, capture, folder)
        large = only_text(repeated(capture.hlo.text, 10))
        page = browser.new_page(viewport=SCREEN)
        paint = open_view(page, large.to_html(folder / "large.html"))
        held.append(row(f"first paint of {len(large.hlo.graph):,} instructions", paint, 8.0, "s"))
        held += again(playwright, chromium, folder)
        browser.close()
        if is_installed():
            file = write_graph(capture.hlo.graph, folder / "step.json", "step")
            theirs = seconds_to_paint(playwright, chromium, file, SCREEN)
            print(f"Model Explorer shows the same graph after {theirs:.1f} s")
            held.append(row("first paint over Model Explorer's", ours / theirs, 1 / 8, "×"))
        else:
            print("Model Explorer is not installed, so there is nothing beside (pip install '.[bench]')")
    return all(held)


if __name__ == "__main__":
    sys.exit(not main(*sys.argv[1:]))
