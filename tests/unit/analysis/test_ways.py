"""Ways through a graph, held against walking every path by hand."""

from __future__ import annotations

import sys
from itertools import islice

import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import explorer as ex
from explorer.capture.readers.graph_builder import GraphBuilder
from explorer.errors import ForeignNodeError, OptionError
from explorer.model.graph import Graph, Group


@st.composite
def programs(draw) -> Graph:
    """Any program of some operations, each of which reads some of those before it."""
    builder = GraphBuilder()
    builder.add_group(Group("main", "entry"))
    for i in range(draw(st.integers(2, 9))):
        builder.add(f"n{i}", "add", "f32[4]", group=0)
        builder.connect(draw(st.lists(st.integers(0, i - 1), max_size=3)) if i else [])
    return builder.build()


def operands_of(graph: Graph, node: int) -> list[int]:
    return [operand.index for operand in list(graph.nodes)[node].operands]


def paths_by_hand(graph: Graph, at: int, end: int) -> list[tuple[int, ...]]:
    if at == end:
        return [(end,)]
    users = [i for i in range(len(graph)) if at in operands_of(graph, i)]
    return [(at, *rest) for user in users for rest in paths_by_hand(graph, user, end)]


@settings(max_examples=80, deadline=None)
@given(programs(), st.data())
def test_the_paths_are_all_that_there_are(graph, data):
    a, b = (data.draw(st.integers(0, len(graph) - 1)) for _ in range(2))
    expected = paths_by_hand(graph, a, b) or paths_by_hand(graph, b, a)
    nodes = list(graph.nodes)
    paths = graph.paths(nodes[a], nodes[b])
    walked = [tuple(node.index for node in path) for path in paths]
    assert sorted(walked) == sorted(expected)
    assert len(paths) == len(expected)
    assert bool(paths) == bool(expected)
    assert [node.index for node in paths.subgraph] == sorted({node for path in expected for node in path})
    if expected:
        assert len(walked[0]) - 1 == paths.steps == min(map(len, expected)) - 1


def residual(blocks: int) -> Graph:
    """A chain of blocks, each of which has its input added again: two ways through each."""
    builder = GraphBuilder()
    builder.add_group(Group("main", "entry"))
    builder.add("x", "parameter", "f32[4]", group=0)
    builder.connect([])
    carried = 0
    for i in range(blocks):
        inner = builder.add(f"f{i}", "tanh", "f32[4]", group=0)
        builder.connect([carried])
        carried = builder.add(f"s{i}", "add", "f32[4]", group=0)
        builder.connect([inner - 1, inner])
    return builder.build()


def test_where_paths_are_too_many_to_look_at_they_have_a_subgraph_and_come_one_by_one():
    graph = residual(50_000)
    paths = graph.paths(graph["x"], graph["s49999"])
    first = next(iter(paths))
    assert len(paths) == sys.maxsize
    assert len(first) == 50_001
    assert len(paths.subgraph) == 100_001
    assert "more than" in repr(paths)
    assert len(graph.paths(graph["x"], graph["s19"])) == 2**20
    few = islice(graph.paths(graph["x"], graph["s9"]), 2000)
    assert len({tuple(node.name for node in path) for path in few}) == 2**10


def test_neither_may_feed_the_other():
    graph = ex.explore(lambda x, y: (jnp.sin(x), jnp.cos(y)), jnp.ones(4), jnp.ones(4)).jaxpr.graph
    (sine,), (cosine,) = graph.where("op:sin"), graph.where("op:cos")
    paths = graph.paths(sine, cosine)
    assert not paths
    assert list(paths) == []
    assert len(paths) == 0
    assert repr(paths) == f"Paths(none: neither {sine.name} nor {cosine.name} feeds the other)"


def test_what_is_in_a_kernel_stands_for_it_outside():
    graph = ex.explore(lambda x: (jnp.sin(x) * 2 + 1) @ x, jnp.ones((64, 64))).hlo.graph
    (sine,) = graph.where("op:sine")
    (x,) = [node for node in graph.nodes if node.op == "parameter" and node.group.kind == "entry"]
    dot = graph.where("op:dot")[0]
    (path,) = graph.paths(x, sine)
    assert [node.op for node in path] == ["parameter", "fusion"]
    assert graph.paths(sine, dot)


def test_what_is_near_is_so_many_steps_away_in_either_direction():
    graph = residual(10)
    near = {width: {node.name for node in graph.neighbourhood(graph["s4"], width)} for width in range(3)}
    assert near[0] == {"s4"}
    assert near[1] == {"s4", "s3", "f4", "f5", "s5"}
    assert near[2] == near[1] | {"f3", "s2", "f6", "s6"}
    assert len(graph.neighbourhood(graph["s4"], 100)) == len(graph)


def test_what_is_no_node_of_the_graph_is_refused():
    graph, other = residual(2), residual(2)
    with pytest.raises(ForeignNodeError, match="another graph"):
        graph.paths(graph["x"], other["x"])
    with pytest.raises(ForeignNodeError, match="is no node"):
        graph.paths("x", graph["s1"])
    with pytest.raises(OptionError, match="width is -1"):
        graph.neighbourhood(graph["x"], -1)
