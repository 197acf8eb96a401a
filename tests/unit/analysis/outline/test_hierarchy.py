"""The groups that a person reads a graph by: they tell the story of a program."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import explorer as ex
from explorer.analysis.hierarchy import nest
from explorer.analysis.kernel_costs import running_nodes
from explorer.analysis.source_paths import named_scopes
from explorer.capture.readers.graph_builder import GraphBuilder
from explorer.model.graph import Frame, Graph, Group, Hierarchy
from tests.examples.training import training_capture, training_step


@pytest.fixture(scope="module")
def step():
    return training_capture(2)


def children(tree: Hierarchy, parent: int) -> list[str]:
    return [group.name for group in tree.groups if group.parent == parent]


def index(tree: Hierarchy, name: str) -> int:
    return next(i for i, group in enumerate(tree.groups) if group.name == name)


def assert_whole(graph: Graph, tree: Hierarchy) -> None:
    """Every node is in one group, every group after its parent, what a node calls beside it, nothing is empty."""
    assert len(tree.group) == len(graph)
    assert len(tree.repeat) == len(tree.differ) == len(tree.groups)
    assert ((tree.group >= -1) & (tree.group < len(tree.groups))).all()
    held = set(tree.group.tolist())
    for at, group in enumerate(tree.groups):
        assert -1 <= group.parent < at
        held.add(group.parent)
        if group.caller >= 0:
            assert tree.group[group.caller] == group.parent
    assert all(at in held or group.caller >= 0 for at, group in enumerate(tree.groups))
    for node in range(len(graph)):
        # The computation that a node is in is around it in the tree too.
        computation = graph.groups[int(graph.group[node])] if graph.group[node] >= 0 else None
        if computation is not None and computation.caller >= 0:
            at = int(tree.group[node])
            while at >= 0 and tree.groups[at].caller != computation.caller:
                at = tree.groups[at].parent
            assert at >= 0


@st.composite
def graphs(draw) -> Graph:
    """Any graph: computations that call each other, stacks of frames, scopes, edges within a computation."""
    builder = GraphBuilder()
    draw_int = lambda most: draw(st.integers(0, most))  # noqa: E731
    frames = []
    for number in range(draw_int(8)):
        parent = frames[draw_int(len(frames) - 1)] if frames and draw(st.booleans()) else -1
        frames.append(builder.add_frame(Frame("f.py", f"f{number % 3}", 1 + draw_int(4), parent=parent)))
    scopes = [
        "",
        "jit(f)/jvp(a)/b/mul",
        "jit(f)/transpose(jvp(a))/b/mul",
        "jit(f)/while/body/c_1/add",
        "jit(f)/c_2/add",
    ]
    computations = 1 + draw_int(3)
    for number in range(computations):
        kind = "entry" if number == 0 else draw(st.sampled_from(["fusion", "body", "call", "apply", "function"]))
        builder.add_group(Group(f"g{number}", kind))
    members: list[list[int]] = [[] for _ in range(computations)]
    for _ in range(draw_int(40)):
        group = draw_int(computations - 1)
        op = draw(st.sampled_from(["add", "mul", "parameter", "constant", "fusion", "tuple", "return"]))
        frame = frames[draw_int(len(frames) - 1)] if frames and draw(st.booleans()) else -1
        scope = draw(st.sampled_from(scopes))
        node = builder.add(f"n{len(builder)}", op, "f32[4]", scope=scope, group=group, frame=frame)
        before = members[group]
        builder.connect([before[draw_int(len(before) - 1)] for _ in range(draw_int(3))] if before else [])
        before.append(node)
    for number in range(1, computations):
        # A computation is called from an earlier one, or from nowhere.
        callers = [node for group in members[:number] for node in group]
        if callers and draw(st.booleans()):
            caller = callers[draw_int(len(callers) - 1)]
            known = builder.groups[number]
            builder.groups[number] = Group(known.name, known.kind, builder.group_of[caller], caller)
    return builder.build()


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(graphs())
def test_any_graph_is_grouped_whole(graph):
    assert_whole(graph, nest(graph))


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["jaxpr", "stablehlo", "hlo"])
def test_a_training_step_is_grouped_whole(step, stage):
    assert_whole(step.stage(stage).graph, nest(step.stage(stage).graph))


def test_the_same_graph_is_grouped_the_same_way(step):
    first, again = nest(step.hlo.graph), nest(step.hlo.graph)
    assert first.groups == again.groups
    np.testing.assert_array_equal(first.group, again.group)


def test_the_first_view_of_a_training_step_tells_its_story(step):
    tree = nest(step.jaxpr.graph)
    assert set(children(tree, -1)) == {"inputs", "forward", "backward", "update ▸ adam"}
    assert set(children(tree, index(tree, "forward"))) == {"embed", "block", "loss"}
    assert set(children(tree, index(tree, "backward"))) == {"embed", "block", "loss"}


def test_a_compiled_training_step_tells_the_same_story(step):
    tree = nest(step.hlo.graph)
    names = children(tree, -1)
    assert {"inputs", "outputs", "forward", "backward", "update ▸ adam"} <= set(names)
    for phase in ("forward", "backward"):
        inside = children(tree, index(tree, phase))
        assert {"loss"} <= set(inside)
        assert any("block" in name for name in inside)


def test_no_group_that_was_made_here_is_named_by_number(step):
    for stage in step.stages:
        for group in nest(stage.graph).groups:
            if group.kind in ("phase", "function", "scope", "part", "repeat", "iteration", "single"):
                assert not group.name.replace("_", "").isdigit()
                assert group.name


def test_two_calls_of_a_function_on_different_lines_are_two_groups():
    def norm(x):
        return (x - x.mean()) / (x.std() + 1)

    def f(x):
        x = norm(x) * 2
        return norm(x)

    tree = nest(ex.explore(f, jnp.ones((4, 4))).jaxpr.graph)
    assert [name for name in children(tree, -1) if name == "norm"] == ["norm", "norm"]


def test_named_scopes_are_groups_inside_the_function_that_opened_them():
    def head(x):
        with jax.named_scope("softmax"):
            x = jnp.exp(x - 1) * 2
            return x / (x + 3)

    def f(x):
        with jax.named_scope("encoder"):
            x = jnp.tanh(x * 2) + 1
        return head(x) + 1

    for stage in ex.explore(f, jnp.ones((4, 4))).stages[:2]:
        tree = nest(stage.graph)
        assert "encoder" in children(tree, -1)
        assert "head ▸ softmax" in children(tree, -1)


@pytest.mark.parametrize(
    ("scope", "names"),
    [
        ("jit(step)/jvp(encoder)/attention/dot_general", ("encoder", "attention")),
        ("jit(step)/transpose(jvp(encoder))/attention/transpose", ("encoder", "attention")),
        ("jit(f)/vmap(jvp(a))/while/body/b/add", ("a", "b")),
        ("jit(f)/jvp(bhst,bthd->bshd)/dot_general", ()),
        ("jit(f)/jit(_where)/select_n", ()),
        ("model/layer_0/attn/MatMul", ("model", "layer_0", "attn")),
        ("mul", ()),
        ("", ()),
    ],
)
def test_the_scopes_that_people_named_are_read_from_a_path(scope, names):
    assert named_scopes(scope) == names


def test_an_empty_graph_has_no_groups():
    tree = nest(GraphBuilder().build())
    assert tree.groups == []
    assert len(tree.group) == 0


def test_a_function_of_one_operation_has_no_groups_of_its_own():
    tree = nest(ex.explore(jnp.tanh, jnp.ones(3)).jaxpr.graph)
    assert {group.kind for group in tree.groups} <= {"inputs"}


def launched(function):
    """The function, called as a program is that a launcher runs."""

    def main(*args):
        return function(*args)

    def _run_main(*args):
        return main(*args)

    def run(*args):
        return _run_main(*args)

    return run


def test_a_launchers_frames_are_no_groups():
    def norm(x):
        return (x - x.mean()) / (x.std() + 1)

    def model(x):
        y = jnp.tanh(norm(x) * 2)
        return y + norm(x)

    for stage in ex.explore(launched(model), jnp.ones((4, 4))).stages:
        tree = nest(stage.graph)
        names = " ".join(group.name for group in tree.groups)
        assert not {"run", "_run_main", "main", "model"} & set(names.split())
        if stage.name == "jaxpr":
            assert [name for name in children(tree, -1) if name == "norm"] == ["norm", "norm"]


@pytest.mark.slow
def test_a_launchers_frames_are_no_groups_in_what_is_differentiated_either(step):
    function, arguments = training_step(2)
    tree = nest(ex.explore(launched(function), *arguments).jaxpr.graph)
    assert tree.groups
    plain = nest(step.jaxpr.graph)
    assert sorted(group.name for group in tree.groups) == sorted(group.name for group in plain.groups)
    assert set(children(tree, -1)) == set(children(plain, -1))


def test_a_function_that_not_everything_was_made_in_stays_a_group():
    def norm(x):
        return (x - x.mean()) / (x.std() + 1)

    tree = nest(ex.explore(lambda x: jnp.tanh(norm(x)), jnp.ones((4, 4))).jaxpr.graph)
    assert "norm" in children(tree, -1)


def dump(uncalled):
    """A module of which nothing calls most computations, as of a large model's dump."""
    parts = [
        f"""%left.{i} (p.{i}: f32[64,64]) -> f32[64,64] {{
  %p.{i} = f32[64,64]{{1,0}} parameter(0)
  ROOT %dot.{i} = f32[64,64]{{1,0}} dot(%p.{i}, %p.{i}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
"""
        for i in range(uncalled)
    ]
    entry = """ENTRY %main (x: f32[64,64]) -> f32[64,64] {
  %x = f32[64,64]{1,0} parameter(0)
  %y = f32[64,64]{1,0} add(%x, %x)
  ROOT %z = f32[64,64]{1,0} multiply(%y, %x)
}
"""
    return ex.open_hlo("HloModule mixtral\n\n" + "\n".join([*parts[::2], entry, *parts[1::2]]))


def test_computations_that_nothing_calls_are_one_group_after_the_entry_and_count_as_nothing():
    capture = dump(170)
    graph = capture.hlo.graph
    tree = nest(graph)
    (aside,) = [i for i, group in enumerate(tree.groups) if group.kind == "uncalled"]
    assert tree.groups[aside] == Group("170 computations", "uncalled", -1)
    assert sum(group.parent == aside for group in tree.groups) == 170
    assert set(children(tree, -1)) <= {"inputs", "170 computations"}
    assert int(tree.group[graph["z"].index]) == -1
    assert capture.lines().flops == 2 * 64 * 64
    assert len(running_nodes(graph)) == 2
    assert "2 kernels" in capture.to_text()
    assert (graph.kernel[[graph[f"dot.{i}"].index for i in range(170)]] == -1).all()
    assert len(graph.where("in:uncalled")) == 340
