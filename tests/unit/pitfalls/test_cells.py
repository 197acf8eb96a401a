"""What is found in a notebook: cells are read as they were typed, and later cells change what earlier ones use."""

import pytest

from tests.support.shells import fresh_shell, run

DEFINITIONS = """
import time
import jax.numpy as jnp
from explorer.pitfalls.lint import lint
from explorer.pitfalls.tracing import gather
from explorer.pitfalls.rule_outside_state import stale_values
x = jnp.ones(3)
"""


@pytest.fixture
def shell():
    with fresh_shell("") as shell:
        run(shell, DEFINITIONS)
        yield shell


STEP = """%precision 3
rate = 2.0
def step(x):
    t = time.time()
    print(x)
    return x * rate + t
"""


def test_a_cells_lines_are_found_as_they_were_typed(shell):
    run(shell, STEP)
    findings = run(shell, "lint(step, x)")
    assert [(one.rule, one.label, one.line, one.text) for one in sorted(findings, key=lambda one: one.code)][:2] == [
        ("impure-print", "cell [2]", 5, "print(x)"),
        ("impure-time", "cell [2]", 4, "t = time.time()"),
    ]


def test_a_later_cell_that_changes_a_name_is_told(shell):
    run(shell, STEP)
    assert not run(shell, "lint(step, x)").of("stale-closure")
    run(shell, "rate = 3.0")
    [one] = run(shell, "lint(step, x)").of("stale-closure")
    assert "`rate = 3.0`" in one.message
    assert "cell [4]" in one.message


def test_a_value_changed_since_the_trace_is_stale_now(shell):
    run(shell, STEP)
    run(shell, "evidence = gather(step, [x], {})")
    assert not run(shell, "stale_values(evidence)")
    run(shell, "rate = 3.0")
    [one] = run(shell, "stale_values(evidence)")
    assert one.severity == "error"
    assert one.evidence == "`rate` was 2.0 at the trace and is 3.0 now"
