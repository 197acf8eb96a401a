"""What Explorer costs on a 24-layer training step, in seconds and bytes: medians, and ratios within one run.

python -m tests.benchmarks.bench [layers] [repeats]
"""

import re
import subprocess
import sys
from gc import collect
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from statistics import median
from tempfile import TemporaryDirectory
from threading import enumerate as enumerate_threads
from time import perf_counter

import jax
import jax.numpy as jnp

import explorer as ex
from explorer.capture.readers.hlo import read_hlo
from explorer.files.capture_writing import encode
from explorer.model.capture import Capture
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
    """How long one call takes, and what it returned."""
    collect()
    start = perf_counter()
    result = run()
    return perf_counter() - start, result


def start_up(code):
    """The time that a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def cost(function, arguments, repeats):
    """Seconds of a compile alone, of explore(), and of explore(record=False): each by the clock and of the processor.

    Processor time is of all threads and children, and includes the packing of the passes, which goes on after
    explore() returned. The clock stops when it returns.
    """
    runs = {
        "alone": lambda: jax.jit(function).trace(*arguments).lower().compile(),
        "explore": lambda: ex.explore(function, *arguments),
        "plain": lambda: ex.explore(function, *arguments, record=False),
    }
    order = [*runs]
    times = {name: ([], []) for name in runs}
    for turn in range(repeats):
        for name in order[turn % 3 :] + order[: turn % 3]:  # none always meets the colder machine
            jax.clear_caches()
            collect()
            begun = processor()
            start = perf_counter()
            result = runs[name]()
            times[name][0].append(perf_counter() - start)
            for thread in enumerate_threads():
                if thread.name == "explorer-passes":
                    thread.join()
            times[name][1].append(processor() - begun)
            del result  # one big program in memory at a time
    return {name: tuple(map(median, both)) for name, both in times.items()}


def processor():
    """Seconds of processor time that this process and the children it has waited for have used."""
    usages = getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def tiny(x):
    return jnp.tanh(x @ x) * 2


def cost_rows(large, repeats):
    """Rows of what explore() adds to a compile, for a tiny program and for two training steps."""
    square = (jnp.ones((64, 64)),)
    cost(tiny, square, 1)  # what only a process's first compile pays belongs to none
    held, units = [], ("clock", "processor")
    times = cost(tiny, square, 7 * repeats)
    for unit, alone, explored in zip(units, times["alone"], times["explore"], strict=True):
        about = f"explore() beside {alone * 1e3:.0f} ms of a tiny compile, {unit}"
        held.append(row(about, explored - alone, 0.060, "ms"))
    for layers in (6, large):
        times = cost(*training_step(layers), repeats)
        for unit, alone, explored, plain in zip(units, *times.values(), strict=True):
            about = f"over a compile, {layers} layers, {alone:.1f} s, {unit}"
            held.append(row(f"explore() {about}", explored / alone, 1.30, "×"))
            held.append(row(f"record=False {about}", plain / alone, 1.05, "×"))
    return held


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
    held = cost_rows(layers, repeats)
    step, arguments = training_step(layers)
    text = jax.jit(step).lower(*arguments).compile().as_text()
    reads, packs, size, graph = reading(text)
    reads_ten, instructions, memory = ten_times(text)
    print(f"{layers} layers, {len(graph):,} instructions, {len(text) / 1e6:.1f} MB of text, JAX {jax.__version__}")
    starts = [(start_up(IMPORT_JAX), start_up(IMPORT_BOTH), start_up(LOAD_EXTENSION)) for _ in range(STARTS)]
    plain, both, extension = (median(column) for column in zip(*starts, strict=True))

    held += [
        row("HLO text to graph", reads, 1.0, "s"),
        row("graph to wire", packs, 1.5, "s"),
        row("wire", size, 3e6, "MB"),
        row(f"{instructions:,} instructions over ten times as long", reads_ten / (10 * reads), 2, "×"),
        row("memory for their text and graph, over the text", memory, 5, "×"),
        row("import explorer, after import jax", both - plain, 0.150, "ms"),
        row("%load_ext explorer, after both, with the watch that it starts", extension, 0.150, "ms"),
    ]
    return all(held)


if __name__ == "__main__":
    sys.exit(not main(*map(int, sys.argv[1:])))
