"""Properties that are worked out once."""

from threading import Barrier, Thread

import jax.numpy as jnp

import explorer
from explorer.model.declared import cached_property
from explorer.model.stage import Stage


class Pair:
    """Two properties that threads ask for in turns, each while another thread is within the other."""

    def __init__(self, other=None, gate=None):
        self.other, self.gate, self.worked_out = other, gate, []

    @cached_property
    def text(self):
        self.worked_out.append("text")
        if self.gate is not None:
            self.gate.wait(10)
            return self.other.graph
        return "text"

    @cached_property
    def graph(self):
        self.worked_out.append("graph")
        if self.gate is not None:
            self.gate.wait(10)
            return self.other.text
        return "graph"


def test_threads_that_need_two_of_each_others_properties_dont_wait_for_ever():
    gate, answers = Barrier(2), {}
    one, other = Pair(Pair(), gate), Pair(Pair(), gate)
    threads = [
        Thread(target=lambda: answers.update(text=one.text), daemon=True),
        Thread(target=lambda: answers.update(graph=other.graph), daemon=True),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert answers == {"text": "graph", "graph": "text"}


def test_it_is_worked_out_once_and_can_be_forgotten():
    pair = Pair()
    assert pair.text == pair.text == "text"
    assert pair.worked_out == ["text"]
    del pair.text
    assert pair.text == "text"
    assert pair.worked_out == ["text", "text"]
    assert isinstance(Pair.text, cached_property)


def test_two_threads_that_read_a_stage_at_once_get_the_same_nodes():
    gate, read = Barrier(2), explorer.explore(jnp.sin, jnp.ones(8)).stage("hlo").read
    contents = [read(), explorer.explore(jnp.sin, jnp.ones(8)).stage("hlo").read()]

    def wait_and_read():
        gate.wait(10)
        return contents.pop()

    stage, seen = Stage("hlo", wait_and_read), []
    threads = [Thread(target=lambda: seen.append(next(iter(stage.graph.nodes)))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(seen) == 2
    assert contents == []  # both did read
    assert seen[0] == seen[1] == next(iter(stage.graph.nodes))
