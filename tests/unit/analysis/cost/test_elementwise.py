"""How a kernel's time is split over the lines fused into it: by what each operation takes, not by their number."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from explorer.analysis.kernel_costs import kernel_of
from explorer.analysis.line_costs import SEARCHES, WEIGHTS
from explorer.model.stage import Stage

X = jnp.linspace(0.5, 1.5, 4096)


def seconds(function, *args):
    """The seconds of each line where every kernel took one, and the FLOPs of each."""
    capture = ex.explore(function, *args)
    graph = capture.hlo.graph
    own = kernel_of(graph) == np.arange(len(graph))
    timed = replace(graph, measure=lambda _: graph.measures | {"time": np.where(own, 1.0, 0.0)})
    table = replace(capture, stages=(*capture.stages[:2], Stage("hlo", lambda: (capture.hlo.text, timed)))).lines()
    assert table.seconds == pytest.approx(own.sum())
    return {row.text: row for row in table if row.line}


def chain(x):
    powered = x**1.7
    squashed = jnp.exp(powered)
    return squashed * 3 + 1


def test_in_one_kernel_a_power_has_more_time_than_an_exponential_and_that_more_than_a_sum():
    rows = seconds(chain, X)
    power, exponential = rows["powered = x**1.7"].seconds, rows["squashed = jnp.exp(powered)"].seconds
    assert power > 4 * exponential
    assert exponential > rows["return squashed * 3 + 1"].seconds > 0


def test_operations_stay_one_flop_each_whatever_they_take():
    rows = seconds(chain, X)
    assert rows["powered = x**1.7"].flops == rows["squashed = jnp.exp(powered)"].flops == len(X)


def looked_up(table, indices):
    found = table[indices]
    return found * 2 + 1


def test_looking_an_element_up_has_time_though_it_is_no_flop():
    rows = seconds(looked_up, jnp.ones((64, 64)), jnp.arange(4096) % 64)
    assert rows["found = table[indices]"].seconds > 2 * rows["return found * 2 + 1"].seconds


def streamed(a, b, c, d):
    total = a + b + c + d
    return total * 2


def test_of_a_kernel_that_hardly_computes_who_reads_and_writes_has_the_time():
    rows = seconds(streamed, *(X for _ in range(4)))
    assert rows["total = a + b + c + d"].seconds > 2 * rows["return total * 2"].seconds


def looped(x, steps):
    def body(state):
        x, left = state
        y = x @ x
        return jnp.tanh(y) * 0.9, left - 1

    return jax.lax.while_loop(lambda state: state[1] > 0, body, (x, steps))


def test_a_loop_that_was_timed_as_one_is_split_over_the_lines_of_its_body():
    capture = ex.explore(looped, jnp.eye(64), jnp.int32(3))
    graph = capture.hlo.graph
    loop = [name == "while" for name in graph.ops]
    time = np.where(np.asarray(loop)[graph.op], 1.0, 0.0)
    assert time.sum() == 1
    timed = replace(graph, measure=lambda _: graph.measures | {"time": time})
    table = replace(capture, stages=(*capture.stages[:2], Stage("hlo", lambda: (capture.hlo.text, timed)))).lines()
    assert table.seconds == pytest.approx(1)
    assert max(table, key=lambda row: row.seconds).text == "y = x @ x"


def test_nothing_takes_less_than_an_addition():
    assert min([*WEIGHTS.values(), *SEARCHES.values()]) > 1
