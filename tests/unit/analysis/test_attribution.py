"""What belongs to a line: one answer on every surface, and the right one."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.analysis.attribution import attribute
from explorer.capture.readers.hlo import read_hlo
from tests.examples.corpus import CORPUS
from tests.examples.training import training_capture
from tests.support.line_surfaces import disagreements, every_line, kernels_apart_from_their_inside, misplaced


def norm(x):
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)


def block(w, x):
    y = norm(x)
    z = jnp.tanh(y @ w)
    return z + x


def objective(ws, x):
    for w in ws:
        x = block(w, x)
    return (x * x).sum()


def update(ws, x):
    grads = jax.grad(objective)(ws, x)
    return [w - 0.1 * g for w, g in zip(ws, grads, strict=True)]


FIRST = {function.__name__: function.__code__.co_firstlineno for function in (norm, block, objective, update)}
X = jnp.ones((8, 16))
CALL, NORM = FIRST["objective"] + 2, FIRST["norm"] + 1


@pytest.fixture(scope="module")
def capture():
    return ex.explore(update, [jnp.eye(16)] * 2, X)


def check(capture):
    assert disagreements(capture) == []
    assert misplaced(capture) == []
    assert kernels_apart_from_their_inside(capture) == []


def test_every_surface_gives_the_same_nodes_for_every_line(capture):
    assert len(every_line(capture)) > 8
    check(capture)


@pytest.mark.parametrize(
    "name", ["attention", "scan, differentiated", "while", "segment sum", "network", "convolution"]
)
def test_every_surface_agrees_on(name):
    function, *arguments = CORPUS[name]
    check(ex.explore(function, *arguments))


@pytest.mark.slow
@pytest.mark.parametrize("name", CORPUS)
def test_every_surface_agrees_on_the_corpus(name):
    function, *arguments = CORPUS[name]
    check(ex.explore(function, *arguments))


@pytest.mark.slow
def test_every_surface_agrees_on_a_training_step():
    check(training_capture(2))


def test_a_loaded_capture_gives_the_same(capture, tmp_path):
    capture.save(tmp_path / "update.capture")
    loaded = ex.load(tmp_path / "update.capture")
    check(loaded)
    for stage in ("jaxpr", "stablehlo", "hlo"):
        for file, line in every_line(capture):
            names = [[node.name for node in each.nodes_at(line, stage, file=file)] for each in (capture, loaded)]
            assert names[0] == names[1]


def test_a_line_that_only_calls_has_nothing_of_its_own_and_leads_to_what_it_calls(capture):
    assert capture.nodes_at(CALL) == capture.hlo.graph.where(f"line:{CALL}") == ()
    through = capture.nodes_at(CALL, "jaxpr", through=True)
    assert through == capture.jaxpr.graph.where(f"through:{CALL}")
    assert set(capture.nodes_at(NORM, "jaxpr")) <= set(through)


def test_a_librarys_line_is_found_on_demand():
    layer = pytest.importorskip("flax.linen").Dense(4)
    params = layer.init(jax.random.key(0), X)

    def apply(params, x):
        return jnp.tanh(layer.apply(params, x))

    capture = ex.explore(apply, params, X)
    check(capture)
    own = apply.__code__.co_firstlineno + 1
    (dot,) = capture.jaxpr.graph.where("op:dot_general")
    assert (dot.place.line, dot.place.how) == (own, "own")
    library = dot.source[0]
    assert "linear.py" in library.file
    assert capture.nodes_at(library.line, "jaxpr", file=library.file) == ()
    assert dot in capture.nodes_at(library.line, "jaxpr", file=library.file, through=True)
    assert dot in capture.jaxpr.graph.where(f"through:linear.py:{library.line}")


def test_what_only_a_library_made_is_its():
    layer = pytest.importorskip("flax.linen").Dense(4)
    capture = ex.explore(layer.apply, layer.init(jax.random.key(0), X), X)
    (dot,) = capture.jaxpr.graph.where("op:dot_general")
    assert dot.place.how == "library"
    assert dot in capture.nodes_at(dot.place.line, "jaxpr", file=dot.place.file)


LAYOUT = """HloModule m, is_scheduled=true
fused (p: f32[8], q: f32[8]) -> f32[8] {
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  s = f32[8] sine(p), metadata={source_file="model.py" source_line=3}
  ROOT a = f32[8] add(s, q), metadata={source_file="model.py" source_line=4}
}
ENTRY main (x: f32[8], y: f32[8]) -> (f32[8], f32[8]) {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  copy.1 = f32[8] copy(x)
  kernel = f32[8] fusion(copy.1, y), kind=kLoop, calls=fused, metadata={source_file="model.py" source_line=4}
  copy.2 = f32[8] copy(kernel)
  copy.3 = f32[8] copy(y)
  ROOT out = (f32[8], f32[8]) tuple(copy.2, copy.3)
}
"""


def test_a_copy_of_layout_assignment_belongs_to_what_it_serves_and_says_so():
    graph = read_hlo(LAYOUT)
    how = {node.name: (node.place and (node.place.line, node.place.how)) for node in graph.nodes}
    assert how["copy.1"] == how["copy.2"] == (4, "serves")
    assert how["kernel"] == (4, "own")
    assert how["x"] == how["y"] == how["out"] is None
    assert how["copy.3"] is None  # who else reads the argument is no reason for it


def test_a_kernel_belongs_to_each_line_of_what_is_inside():
    graph = read_hlo(LAYOUT)
    assert [node.name for node in graph.where("line:3")] == ["s", "kernel"]
    assert [node.name for node in graph.where("line:4")] == ["a", "copy.1", "kernel", "copy.2"]


def test_an_equations_line_is_taken_where_the_instruction_lost_its_own():
    graph = read_hlo(LAYOUT)
    first = read_hlo(LAYOUT.replace("source_line=3", "source_line=9"))
    attribution = attribute(graph, first, {graph["copy.3"].index: first["s"].index})
    assert attribution.place(graph["copy.3"].index) == ex.types.SourceLine("model.py", 9, "", "equation")
    assert attribution.equation[graph["copy.3"].index] == first["s"].index
    assert attribution.nodes("model.py", 9).tolist() == [graph["copy.3"].index]


PARTITIONED = """HloModule m, num_partitions=2

%moving (p: f32[8,4]) -> f32[8,4] {
  %p = f32[8,4]{1,0} parameter(0)
  ROOT %turned = f32[8,4]{0,1} copy(%p), frontend_attributes={is_spmd_generated="true"}, metadata={op_name="dot" source_file="f.py" source_line=1}
}

%kernel (q: f32[8,4]) -> f32[8,4] {
  %q = f32[8,4]{0,1} parameter(0)
  %reshaped = f32[32]{0} reshape(%q), metadata={op_name="reshape" source_file="f.py" source_line=2}
  ROOT %sorted = f32[8,4]{1,0} reshape(%reshaped), metadata={op_name="sort" source_file="f.py" source_line=3}
}

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

ENTRY %main (x: f32[4,4]) -> (f32[8,4], f32[4,4]) {
  %x = f32[4,4]{1,0} parameter(0)
  %product = f32[4,4]{1,0} dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="dot" source_file="f.py" source_line=1}
  %sum = f32[4,4]{1,0} all-reduce(%product), replica_groups={}, to_apply=%add, frontend_attributes={is_spmd_generated="true"}, metadata={op_name="dot" source_file="f.py" source_line=1}
  %gather = f32[8,4]{1,0} all-gather(%sum), dimensions={0}, replica_groups={}, frontend_attributes={is_spmd_generated="true"}, metadata={op_name="dot" source_file="f.py" source_line=1}
  %moved = f32[8,4]{0,1} fusion(%gather), kind=kLoop, calls=%moving, frontend_attributes={is_spmd_generated="true"}, metadata={op_name="dot" source_file="f.py" source_line=1}
  %used = f32[8,4]{1,0} fusion(%moved), kind=kLoop, calls=%kernel, metadata={op_name="sort" source_file="f.py" source_line=3}
  %out = f32[4,4]{1,0} collective-permute(%sum), source_target_pairs={{0,1},{1,0}}, frontend_attributes={is_spmd_generated="true"}, metadata={op_name="dot" source_file="f.py" source_line=1}
  ROOT %t = (f32[8,4]{1,0}, f32[4,4]{1,0}) tuple(%used, %out)
}
"""  # noqa: E501


def test_what_the_partitioner_moves_serves_who_reads_it_and_a_sum_of_parts_its_maker():
    graph = read_hlo(PARTITIONED)
    lines = {name: (graph[name].place.line, graph[name].place.how) for name in ("sum", "gather", "moved", "turned")}
    assert lines == {"sum": (1, "own"), "gather": (2, "serves"), "moved": (2, "serves"), "turned": (2, "serves")}
    assert (graph["out"].place.line, graph["out"].place.how) == (1, "own")  # only the caller reads it
    unmarked = read_hlo(PARTITIONED.replace("is_spmd_generated", "is_something_else"))
    assert (unmarked["gather"].place.line, unmarked["gather"].place.how) == (1, "own")


def test_a_program_without_frames_belongs_to_no_line():
    graph = read_hlo("HloModule m\nENTRY main {\n  x = f32[8] parameter(0)\n  ROOT y = f32[8] add(x, x)\n}\n")
    assert [node.place for node in graph.nodes] == [None, None]
    assert graph.where("line:1") == graph.where("line > 0") == graph.where("file:model") == ()


def test_frames_that_go_in_a_circle_end():
    graph = read_hlo(LAYOUT)
    library = "/home/me/.venv/lib/python3.12/site-packages/flax/linear.py"
    circle = [replace(frame, file=library, parent=(i + 1) % len(graph.frames)) for i, frame in enumerate(graph.frames)]
    damaged = replace(graph, frames=circle)
    assert damaged["a"].place == ex.types.SourceLine(library, 4, "", "library")


def product_and_loss(a, b, c):
    left = a @ b
    return jnp.tanh(c @ left.T).sum()


def test_a_recording_takes_nothing_from_a_line():
    capture = ex.explore(product_and_loss, jnp.ones((64, 512)), jnp.ones((512, 32)), jnp.ones((64, 32)))
    before = [(row.line, row.flops, row.kernels) for row in capture.lines()]
    product = product_and_loss.__code__.co_firstlineno + 1
    (dot,) = [node for node in capture.nodes_at(product) if node.op == "dot"]
    assert dot.place.how == "equation"
    assert capture.passes
    assert dot in capture.nodes_at(product)
    assert [(row.line, row.flops, row.kernels) for row in capture.lines()] == before
    check(capture)


def test_a_line_of_one_stage_reads_no_other():
    capture = ex.explore(update, [jnp.eye(16)] * 2, X, record=False)  # the passes are read with StableHLO
    assert capture.nodes_at(NORM)
    assert ["_content" in stage.__dict__ for stage in capture.stages] == [False, False, True]
