"""What looking for pitfalls costs: lint, over a plain trace, and the cheap rules that ride on every compile.

python -m tests.benchmarks.bench_lint
"""

import sys
from statistics import median
from time import process_time

import jax
import jax.numpy as jnp

import explorer as ex
from explorer.pitfalls.equations import Program
from explorer.pitfalls.lint import check
from tests.benchmarks.table import row
from tests.examples.training import training_step

ROUNDS = 7


def seconds(run):
    """Of the processor: other programs' turns don't count."""
    start = process_time()
    result = run()
    return process_time() - start, result


def shares():
    """Of the training step's plain trace: what lint takes in all, and what the cheap rules take besides a trace."""
    step, args = training_step(4)
    linted, ridden = [], []
    for _ in range(ROUNDS):
        jax.clear_caches()  # a plain trace traces jax.numpy's own functions too, as lint always does
        plain, traced = seconds(lambda: jax.jit(step).trace(*args))
        riding, findings = seconds(lambda t=traced: check(step, args, {}, t, None))
        assert not findings.faults
        jax.clear_caches()
        looking, _ = seconds(lambda: ex.lint(step, *args))
        linted.append(looking / plain)
        ridden.append(riding / plain)
    yield row("lint of the 4-layer training step, over its plain trace", median(linted), 3, "×")
    yield row("the cheap rules on every compile, over the trace", median(ridden), 0.1, "×")


def walk():
    """Of 100,100 equations, most in a function that is called a hundred times."""

    def long(x):
        for _ in range(1_000):
            x = jnp.sin(x)
        return x

    inner = jax.jit(long)

    def longer(x):
        for _ in range(100):
            x = inner(x)
        return x

    closed = jax.jit(longer).trace(jnp.ones(3)).jaxpr

    def all_places():
        program = Program(closed)
        return [program.frame(one) for one in program.equations]

    return row(
        "the equations of a program of 100,100, with places", min(seconds(all_places)[0] for _ in range(3)), 0.3, "s"
    )


def main():
    return all([*shares(), walk()])


if __name__ == "__main__":
    sys.exit(not main())
