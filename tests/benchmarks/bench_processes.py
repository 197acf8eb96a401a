"""What many processes' ledgers and profiles take to merge and to open: memory, seconds, and who differs is named.

python -m tests.benchmarks.bench_processes [processes] [events of each] [--browser]
"""

import resource
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import explorer as ex
from explorer.files.ledger_lines import Writer
from explorer.model.events.event import Event, Place, Reason
from explorer.model.events.key import Function, Key, Leaf
from tests.benchmarks.table import row

ODD = 417
FUNCTIONS = 40


def events_of(process, count):
    """The events of a process that compiles some functions at many sizes; one of a thousand compiles another step."""
    reason, site = Reason("shape", "x.shape[0]"), Place("train.py", 40, "train.py")
    for call in range(count // 3):
        which, size = call % FUNCTIONS, 8 + call // FUNCTIONS
        if process == ODD and which == 0 and size == 12:
            size = 13_000
        devices = tuple(f"gpu:{at}" for at in range(8))
        leaf = Leaf("x", (size, 128), "float32", devices=devices if which == 0 else devices[:1])
        key = Key(
            Function("step" if which == 0 else f"part_{which}", "train.py", 12 + which, identity=process), (leaf,)
        )
        for kind, seconds in (("trace", 0.01), ("lower", 0.01), ("compile", 0.1 + process * 1e-5)):
            yield Event(kind, key.function.name, site, seconds, reason, call=call + 1, key=key, device="gpu:0")


def write(folder, processes, count):
    for process in range(processes):
        with (folder / f"{process:04}.jsonl").open("w", encoding="ascii") as file:
            Writer(file.write).events(events_of(process, count))


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def in_browser(path):
    """Seconds until a page is drawn and its tables can be read."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page()
        start = perf_counter()
        page.goto(path.as_uri())
        page.get_by_text("Processes whose program differs").wait_for()
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        spent = perf_counter() - start
        browser.close()
    return spent


def main():
    given = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    processes, count = [*map(int, given), *(1_000, 1_000)[len(given) :]]
    with TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, processes, count)
        small = sorted(folder.iterdir())[: max(processes // 10, 1)]
        ex.merge_ledgers(small)
        before, start = peak(), perf_counter()
        whole = ex.merge_ledgers(folder)
        spent, grown = perf_counter() - start, peak() - before
        print(f"  {whole.events:,} events of {processes:,} processes in {spent:.1f} s: {len(whole):,} programs")
        (difference,) = whole.differences
        print(f"  {difference.text}")
        assert whole.named(difference.processes) == f"process {ODD:04}"
        whole.save(folder.parent / "explorer-processes.json")
        start = perf_counter()
        again = ex.types.ProcessLedger.load(folder.parent / "explorer-processes.json")
        page = again.to_html(folder.parent / "explorer-processes.html")
        opened = perf_counter() - start
        fits = row(f"{processes:,} processes: memory grows over a tenth of them by", grown, 100e6, "MB")
        fits &= row("opening what was merged, and making its page", opened, 2.0, "s")
        if "--browser" in sys.argv:
            fits &= row("its page in Chromium", in_browser(page), 2.0, "s")
    return fits


if __name__ == "__main__":
    sys.exit(not main())
