"""What Explorer costs on a 24-layer training step, in seconds and bytes: medians, and ratios within one run.

python -m tests.benchmarks.bench [layers] [repeats]
"""

import re
import subprocess
import sys
from gc import collect
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import jax
import numpy as np

import explorer as ex
from explorer.capture.readers.hlo import read_hlo
from explorer.files.capture_writing import encode
from explorer.model.capture import Capture
from explorer.model.links import EXACT
from explorer.model.stage import Durations, Stage
from tests.benchmarks.table import row
from tests.examples.training import training_step

STARTS = 9

IMPORT_JAX = "import time; t = time.perf_counter(); import jax; print(time.perf_counter() - t)"
IMPORT_BOTH = "import time; t = time.perf_counter(); import jax, explorer; print(time.perf_counter() - t)"
LOAD_EXTENSION = """
import time
from IPython.core.interactiveshell import InteractiveShell
import jax, explorer
shell = InteractiveShell.instance()
t = time.perf_counter()
shell.run_line_magic("load_ext", "explorer")
print(time.perf_counter() - t)
"""


def seconds(run):
    """How long one call takes, with nothing kept from an earlier one, and what it returned."""
    jax.clear_caches()
    collect()
    start = perf_counter()
    result = run()
    return perf_counter() - start, result


def start_up(code):
    """The time that a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def overhead(layers, repeats):
    """Seconds of explore(), and of trace, lower and compile alone; explore() over its own steps; the module's text."""
    step, arguments = training_step(layers)

    def alone():
        return jax.jit(step).trace(*arguments).lower().compile()

    def explored():
        return ex.explore(step, *arguments)

    times = {alone: [], explored: []}
    beside = []  # of one explore(), what it spends beside its three steps: free of a compile's own noise
    last = None
    for turn in range(repeats):
        # each repeat in the other order, so that neither always meets the colder machine
        for run in (alone, explored) if turn % 2 == 0 else (explored, alone):
            last = None  # one big program in memory at a time
            spent, last = seconds(run)
            times[run].append(spent)
            if isinstance(last, Capture):
                steps = last.durations.trace + last.durations.lower + last.durations.compile
                beside.append(spent / steps)
    text = last.hlo.text if isinstance(last, Capture) else last.as_text()
    return median(times[explored]), median(times[alone]), median(beside), text


def recorded(layers):
    """The recording of a training step over its compile, both of one run; the share of its op_names linked exactly."""
    step, arguments = training_step(layers)
    _, capture = seconds(lambda: ex.explore(step, *arguments))
    graph = capture.hlo.graph
    spent, _ = seconds(lambda: capture.passes)
    is_named = np.asarray([bool(scope) for scope in graph.scopes])[graph.scope] & graph.is_equation
    return spent / capture.durations.compile, (capture.links.grades("hlo")[is_named] == EXACT).mean()


def reading(text):
    """Seconds from HLO text to its graph, and from there to the bytes a browser reads; those bytes; the graph."""
    reads, packs = [], []
    for _ in range(5):
        spent, graph = seconds(lambda: read_hlo(text))
        reads.append(spent)
        capture = Capture("step", "", (Stage("hlo", lambda graph=graph: (text, graph)),), Durations())
        spent, wire = seconds(lambda capture=capture: encode(capture))
        packs.append(spent)
    return median(reads), median(packs), len(wire), graph


def repeated(text, times):
    """A module with every computation so many times, each time under other names."""
    start = text.index("\n%") + 1  # of the first computation
    copies = [re.sub(r"%([\w.\-]+)", rf"%\1.copy{i}", text[start:]) for i in range(times)]
    return text[:start] + copies[0] + "".join(copy.replace("\nENTRY ", "\n") for copy in copies[1:])


# The high-water mark as the kernel keeps it for this program alone: getrusage's is also that of who started it.
MEMORY = """
import sys
from pathlib import Path
from explorer.capture.readers.hlo import read_hlo

def most():
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])

before = most()
text = Path(sys.argv[1]).read_text()
graph = read_hlo(text)
print((most() - before) / len(text))
"""


def ten_times(text):
    """Of a module ten times as large: the seconds to read it, its instructions, and the memory over its text."""
    large = repeated(text, 10)
    spent, graph = seconds(lambda: read_hlo(large))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "large.hlo"
        path.write_text(large)
        done = subprocess.run([sys.executable, "-c", MEMORY, path], capture_output=True, text=True, check=True)
    return spent, len(graph), float(done.stdout)


def main(layers=24, repeats=3):
    overhead(layers=1, repeats=1)  # what only a process's first compile pays belongs to neither side
    explored, alone, beside, text = overhead(layers, repeats)
    recording, exact = recorded(layers)
    reads, packs, size, graph = reading(text)
    reads_ten, instructions, memory = ten_times(text)
    print(f"{layers} layers, {len(graph):,} instructions, {len(text) / 1e6:.1f} MB of text, JAX {jax.__version__}")
    print(f"explore() {explored:.1f} s; trace, lower and compile alone {alone:.1f} s")
    print(f"once recorded, {exact:.1%} of the instructions with an op_name are linked exactly\n")

    starts = [(start_up(IMPORT_JAX), start_up(IMPORT_BOTH), start_up(LOAD_EXTENSION)) for _ in range(STARTS)]
    plain, both, extension = (median(column) for column in zip(*starts, strict=True))

    held = [
        row("explore() over trace, lower and compile alone", explored / alone, 1.10, "×"),
        row("explore() over its own three steps", beside, 1.10, "×"),
        row("recording of the passes over a compile", recording, 1.5, "×"),
        row("HLO text to graph", reads, 1.0, "s"),
        row("graph to wire", packs, 1.5, "s"),
        row("wire", size, 3e6, "MB"),
        row(f"{instructions:,} instructions over ten times as long", reads_ten / (10 * reads), 2, "×"),
        row("memory for their text and graph, over the text", memory, 5, "×"),
        row("import explorer, after import jax", both - plain, 0.150, "ms"),
        row("%load_ext explorer, after both", extension, 0.020, "ms"),
    ]
    return all(held)


if __name__ == "__main__":
    sys.exit(not main(*map(int, sys.argv[1:])))
