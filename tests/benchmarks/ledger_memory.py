"""What 100,000 events take: memory, the time to add one, to read them, to write and load them.

python -m tests.benchmarks.ledger_memory

In every call the sizes of all 20 arrays, the static argument and the reason are new. A call has three events, or, if
it had its jaxpr, two. That each event were of another call, which JAX has no way to do, is shown as well.
"""

import gc
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, thread_time

from explorer.model.events.event import Event, Place, Reason
from explorer.model.events.key import LEAF, Function, Key, Leaf, Static, TreeNode
from explorer.model.events.ledger import Ledger
from tests.benchmarks.table import row

EVENTS = 100_000
LEAVES = 20
MOST = 100e6  # bytes
FUNCTION = Function("step", "/home/user/project/train.py", 12, (), 1, 1)
STACK = tuple(
    Place("/home/user/project/train.py", line, "train.py", "state = step(state, batch)", "main")
    for line in (40, 61, 88)
)
SETTINGS = tuple((f"jax_setting_{i}", str(i % 2)) for i in range(40))
TREE = TreeNode("list", steps=tuple(f"[{i}]" for i in range(LEAVES)), children=(LEAF,) * LEAVES)


def call(number, kinds):
    leaves = tuple(
        Leaf(f"batch['layer{i}']['w']", (number + i * 7, 128), "float32", committed=False, devices=("cpu:0",))
        for i in range(LEAVES)
    )
    key = Key(FUNCTION, leaves, TREE, (Static("n", str(number), "int", 0, number),), (), SETTINGS, structure=1)
    reason = Reason(
        "shape", "batch['layer0']['w'].shape[0]", str(number - 1), str(number),
        "batch = pad(batch, 128)",
        f"`batch['layer0']['w'].shape[0]` was {number - 1} and is now {number}: its {number}th size",
    )  # fmt: skip
    identity = f"[step/{number}]"
    return tuple(
        Event(
            kind, "step", STACK[0], 0.25 + number / EVENTS, reason, identity, number + 1,
            1.76e9 + number, STACK, key, "MainThread", "cpu:0",
        )
        for kind in kinds
    )  # fmt: skip


SHAPES = {
    "three of each call": ("trace", "lower", "compile"),
    "two of each call": ("lower", "compile"),
    "one of each call": ("compile",),
}


def fill(ledger, kinds):
    for number in range(EVENTS // len(kinds)):
        ledger.add(call(number, kinds))


def resident():
    """Bytes of memory that the process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def held(kinds):
    """Bytes that Python counts for a full ledger."""
    tracemalloc.start()
    ledger = Ledger(limit=EVENTS)
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    fill(ledger, kinds)
    gc.collect()
    bytes_held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert ledger.dropped == 0
    assert len(ledger) == EVENTS // len(kinds) * len(kinds)
    return bytes_held


def grown(kinds):
    """Bytes by which the process grows for a full ledger."""
    ledger = Ledger(limit=EVENTS)
    ledger.add(call(0, kinds))
    gc.collect()
    before = resident()
    fill(ledger, kinds)
    gc.collect()
    return resident() - before


def added(kinds, calls=2_000):
    """Seconds of this thread's own to add one event to a ledger that is full; the median of rounds."""
    ledger = Ledger(limit=2 * calls)
    found = []
    for turn in range(9):
        made = [call(turn * calls + number, kinds) for number in range(calls)]
        gc.collect()
        start = thread_time()
        for events in made:
            ledger.add(events)
        found.append((thread_time() - start) / calls / len(kinds))
    return median(found)


def reading(kinds):
    """Seconds to write, to load, and to sum up a full ledger."""
    ledger = Ledger(limit=EVENTS)
    fill(ledger, kinds)
    spent = {}

    def timed(name, run):
        start = perf_counter()
        result = run()
        spent[name] = perf_counter() - start
        return result

    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.jsonl"
        timed("save", lambda: ledger.save(path))
        spent["bytes"] = path.stat().st_size
        timed("load", lambda: Ledger.load(path))
    timed("events", lambda: ledger.events)
    timed("functions", ledger.functions)
    timed("recompiles", ledger.recompiles)
    timed("tree", ledger.tree)
    timed("varying", lambda: ledger.varying("step"))
    return spent


MEASURES = {"held": held, "grown": grown, "added": added, "reading": reading}


def measured(measure, shape):
    """In a process of its own, where nothing else grows."""
    command = [sys.executable, "-m", "tests.benchmarks.ledger_memory", measure, shape]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main():
    """Print the figures; True if all hold."""
    good = []
    for shape, kinds in SHAPES.items():
        held, grown, added = (measured(measure, shape) for measure in ("held", "grown", "added"))
        if len(kinds) == 1:
            print(f"{shape}: {held / 1e6:.1f} MB, {grown / 1e6:.1f} MB, {added * 1e6:.1f} µs", flush=True)
            continue
        good.append(row(f"{EVENTS:,} events, {shape}: counted by Python", held, MOST, "MB"))
        good.append(row(f"{EVENTS:,} events, {shape}: the process grows", grown, MOST, "MB"))
        good.append(row(f"to add one event, {shape}", added, 20e-6, "µs"))
    found = measured("reading", "three of each call")
    print(", ".join(f"{name} {value:,.3f} s" for name, value in found.items() if name != "bytes"), flush=True)
    print(f"the file has {found['bytes'] / 1e6:.1f} MB", flush=True)
    return all(good)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(MEASURES[sys.argv[1]](SHAPES[sys.argv[2]])))
    else:
        sys.exit(not main())
