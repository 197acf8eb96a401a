"""How the time of each analysis grows with the program: its exponent, over chains, diamonds, trees and shared calls.

python -m tests.benchmarks.bench_growth [equations] [instructions]

Programs of up to 4,000 equations are compiled with their passes; of up to 100,000 instructions, which XLA would take
minutes for, a module is written and opened. Each analysis has what those before it left, as in a display. An exponent
is that of the last step of the sizes, by the time of the thread, the better of two runs.
"""

import gc
import math
import sys
from time import thread_time

import jax
import jax.numpy as jnp

import explorer as ex
from explorer.analysis.question_catalogue import QUESTIONS
from tests.benchmarks.table import row

EQUATIONS, INSTRUCTIONS = 4_000, 100_000
STEPS = 3  # sizes, each ten times the one before
RUNS = 2
FLOOR = 0.05  # seconds that are as good as none
MOST = 1.2  # n · log n grows by 10**1.1 from 10,000 to 100,000
TYPE = "f32[8]{0}"
COMPILES = "remat"  # the question that compiles another program


def chain(x, n):
    for _ in range(n):
        x = jnp.sin(x)
    return x


def diamonds(x, n):
    for _ in range(n // 3):
        x = x * 2 + x * 3
    return x


def tree(x, n):
    values = [jnp.sin(x + float(i)) for i in range(max(n // 3, 1))]
    while len(values) > 1:
        values = [*map(jnp.multiply, values[::2], values[1::2]), *values[len(values) // 2 * 2 :]]
    return values[0]


def shared_calls(x, n):
    for _ in range(n // 5):
        x = jnp.where(x > 0, jnp.minimum(x, 1.5), jnp.maximum(x, -2.0))
    return x


def written(shape, n):
    """The text of a module of `n` instructions, with names and places as JAX gives them."""
    lines, values = [], ["x"]

    def add(op, *operands):
        name, place = f"{op}.{len(lines)}", f'source_file="/model.py" source_line={10 + len(lines) % 50}'
        metadata = f'metadata={{op_name="jit(f)/layer_{len(lines) // 50}/{op}" {place}}}'
        lines.append(f"%{name} = {TYPE} {op}({', '.join(f'%{operand}' for operand in operands)}), {metadata}")
        return name

    if shape == "tree":
        values = [add("sine", "x") for _ in range(max(n // 2, 2))]
        while len(values) > 1:
            pairs = zip(values[::2], values[1::2], strict=False)
            values = [*(add("add", *pair) for pair in pairs), *values[len(values) // 2 * 2 :]]
    while len(lines) < n:
        several = [add(op, values[0]) for op in (("sine",) if shape == "chain" else ("sine", "tanh"))]
        values = [add("add", *several)] if len(several) > 1 else several
    body = "\n  ".join([f"%x = {TYPE} parameter(0)", *lines[:-1], f"ROOT {lines[-1]}"])
    head = f"HloModule jit_f, is_scheduled=true, entry_computation_layout={{({TYPE})->{TYPE}}}"
    return f"{head}\n\nENTRY %main (x: {TYPE}) -> {TYPE} {{\n  {body}\n}}\n"


def asked(capture):
    for question in QUESTIONS:
        if question.key != COMPILES:
            capture.ask(question.title)


ANALYSES = {
    "groups": lambda capture: [stage.graph.hierarchy for stage in capture.stages],
    "passes": lambda capture: capture.passes if capture.has_passes else None,
    "links": lambda capture: capture.links,
    "fates": lambda capture: capture.fates() if capture.has_passes else None,
    "memory": lambda capture: capture.live_memory,
    "collectives": lambda capture: capture.collectives,
    "shardings": lambda capture: capture.shardings,
    "lines": lambda capture: capture.lines(),
    "summary": lambda capture: capture.summary,
    "questions": asked,
    "display": lambda capture: capture._repr_mimebundle_(),
}


def seconds(opened):
    """Of each analysis of a capture, in order; `opened` makes the capture."""
    capture = opened()
    for stage in capture.stages:
        stage.graph  # noqa: B018 - read before what is measured
    taken = {}
    gc.collect()
    for name, analysis in ANALYSES.items():
        start = thread_time()
        analysis(capture)
        taken[name] = thread_time() - start
    return taken


def compiled(function, n):
    jax.clear_caches()
    return ex.explore(lambda x: function(x, n), jnp.ones((8, 8)))


def measured(name, sizes, opened):
    """Print the exponent of every analysis over the sizes; yield whether each holds."""
    runs = {n: [seconds(lambda n=n: opened(n)) for _ in range(RUNS)] for n in sizes}
    for analysis in ANALYSES:
        best = [max(min(run[analysis] for run in runs[n]), FLOOR) for n in sizes]
        exponent = math.log(best[-1] / best[-2]) / math.log(sizes[-1] / sizes[-2])
        if best[-1] > FLOOR:
            print(f"  {analysis}: {' → '.join(f'{value * 1e3:,.0f}' for value in best)} ms")
            yield row(f"{name}, {analysis}, exponent", exponent, MOST, "")


def main(equations=EQUATIONS, instructions=INSTRUCTIONS):
    held = []
    for function in (chain, diamonds, tree, shared_calls):
        sizes = [equations // 10**step for step in reversed(range(STEPS))]
        held += measured(f"{function.__name__}, {sizes[-1]:,} equations", sizes, lambda n, f=function: compiled(f, n))
    for shape in ("chain", "diamonds", "tree"):
        sizes = [instructions // 10**step for step in reversed(range(STEPS + 2))]
        held += measured(f"{shape}, {sizes[-1]:,} instructions", sizes, lambda n, s=shape: ex.open_hlo(written(s, n)))
    return all(held)


if __name__ == "__main__":
    sys.exit(not main(*map(int, sys.argv[1:])))
