"""What the guard costs: `check` of a training step over its compile by plain JAX, in turns, of one run.

python -m tests.benchmarks.bench_golden [layers]
"""

import sys
from statistics import median

import jax

import explorer as ex
from tests.benchmarks.cold import cold_seconds
from tests.benchmarks.table import row
from tests.examples.training import training_step

ROUNDS = 5


def shares(layers):
    """Of the compile of a training step: what `check` takes in all, and what of that is lint's own trace."""
    step, arguments = training_step(layers)
    golden = ex.record(step, *arguments)
    ratios, lints = [], []
    for turn in range(ROUNDS):
        runs = {
            "compile": lambda: jax.jit(step).lower(*arguments).compile(),
            "check": lambda: ex.check(step, *arguments, golden=golden),
            "lint": lambda: ex.lint(step, *arguments),
        }
        spent = {name: cold_seconds(runs[name]) for name in (runs if turn % 2 else reversed(runs))}
        assert spent["check"][1].passed
        ratios.append(spent["check"][0] / spent["compile"][0])
        lints.append(spent["lint"][0] / spent["compile"][0])
    return median(ratios), median(lints)


def main(layers):
    check, lint = shares(layers)
    print(f"{layers} layers; lint, with a trace of its own, takes {lint:.2f} of a compile")
    return row("check, over the compile of a training step", check, 1.1, "×")


if __name__ == "__main__":
    sys.exit(not main(int(sys.argv[1]) if len(sys.argv) > 1 else 4))
