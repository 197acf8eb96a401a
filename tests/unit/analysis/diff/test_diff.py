"""Which node is which in another compilation, and what ex.diff makes of it."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer as ex
from explorer.analysis.diff.match_graphs import Side, match_graphs
from explorer.capture.explore import CompileRequest, compile_stages
from explorer.capture.readers.hlo import read_hlo
from explorer.files.capture_writing import encode_diff
from explorer.model.graph import Frame, Graph, Group

X = jnp.ones((128, 64))


def attention(q, k, v):
    scores = q @ k.T / jnp.sqrt(q.shape[-1] * 1.0)
    return jax.nn.softmax(scores) @ v


def masked(q, k, v):
    scores = q @ k.T / jnp.sqrt(q.shape[-1] * 1.0)
    scores = jnp.where(jnp.tril(jnp.ones_like(scores)) > 0, scores, -1e9)
    return jax.nn.softmax(scores) @ v


def layers(count):
    def stack(x):
        for _ in range(count):
            x = jnp.tanh(x @ x.T) @ x
        return x.sum()

    return stack


@pytest.fixture(scope="module")
def plain():
    return ex.explore(attention, X, X, X)


@pytest.fixture(scope="module")
def edited():
    return ex.explore(masked, X, X, X)


def side(text):
    return Side(read_hlo(text))


def test_a_capture_differs_in_nothing_from_itself_or_from_a_second_run(plain):
    again = ex.explore(attention, X, X, X)
    for other in (plain, again):
        difference = ex.diff(plain, other)
        assert difference.is_empty
        assert repr(difference) == "Diff(attention → attention: nothing differs)"
        assert not difference.fusions_gained + difference.fusions_lost + difference.fusions_changed
        assert all(stage.text() == "" for stage in difference.stages.values())


def test_a_mask_adds_its_own_operations_and_loses_none(plain, edited):
    difference = ex.diff(plain, edited)
    added = {node.op for node in difference.stablehlo.only_in_b}
    assert {"stablehlo.compare", "stablehlo.select", "stablehlo.iota"} <= added
    assert difference.stablehlo.only_in_a == ()
    assert {node.op for node in difference.jaxpr.only_in_b} >= {"ge", "select_n"}


def test_the_kernel_of_the_mask_is_gained_with_its_line(plain, edited):
    difference = ex.diff(plain, edited)
    gained = [fusion for fusion in difference.fusions_gained if "select" in fusion.holds]
    (line,) = [fusion.lines for fusion in gained]
    assert f"masked:{masked.__code__.co_firstlineno + 2}" in line
    assert gained[0].node.graph is edited.hlo.graph
    lost = ex.diff(edited, plain).fusions_lost
    assert [fusion.holds for fusion in lost] == [fusion.holds for fusion in difference.fusions_gained]


def test_another_shape_changes_lines_but_adds_and_removes_nothing(plain):
    wide = jnp.ones((256, 64))
    difference = ex.diff(plain, ex.explore(attention, wide, wide, wide))
    for stage in difference.stages.values():
        assert (stage.step.born, stage.step.died) == (0, 0)
        assert stage.step.changed
    flops = next(value for value in difference.values if value.name == "flops")
    assert flops.ratio == pytest.approx(4, rel=0.01)
    assert next(value for value in difference.values if value.name == "signature").b.startswith("(q: f32[256,64]")


def test_names_with_other_numbers_are_no_difference():
    text = """HloModule m
ENTRY %main (p: f32[8]) -> f32[8] {
  %p = f32[8] parameter(0)
  %tanh.1 = f32[8] tanh(%p)
  ROOT %add.1 = f32[8] add(%tanh.1, %p)
}
"""
    a, b = ex.open_hlo(text), ex.open_hlo(text.replace("tanh.1", "tanh.77").replace("%add.1", "%sum"))
    assert ex.diff(a, b).is_empty
    other = ex.diff(a, ex.open_hlo(text.replace("add(%tanh.1, %p)", "add(%p, %tanh.1)")))
    assert not other.is_empty
    assert other.hlo.step.changed == 1


def test_what_only_b_has_gets_a_prime_where_its_name_is_anothers(plain, edited):
    stage = ex.diff(plain, edited).stablehlo
    named = {stage.name_of(node) for node in stage.only_in_b}
    assert any(name.endswith("′") for name in named)
    assert not named & set(plain.stablehlo.graph.names)


def test_lines_that_moved_in_the_source_are_the_same_lines(plain):
    space = {}
    source = "\n\n\n\n" + "def attention(q, k, v):\n    s = q @ k.T / jnp.sqrt(q.shape[-1] * 1.0)\n    return s @ v\n"
    functions = []
    for text in (source, "import math\n" + source):
        exec(compile(text, "<moved>", "exec"), {"jnp": jnp}, space)
        functions.append(space["attention"])
    one, other = (ex.explore(function, X, X, X) for function in functions)
    assert ex.diff(one, other).hlo.is_empty


def test_of_more_equal_layers_the_first_and_last_correspond():
    more, fewer = (ex.explore(layers(count), X) for count in (6, 4))
    difference = ex.diff(more, fewer)
    assert len(difference.jaxpr.only_in_b) == 0
    dots = [node for node in difference.jaxpr.only_in_a if node.op == "dot_general"]
    assert len(dots) == 4  # two a layer
    found = [node.index for node, _ in difference.jaxpr.pairs]
    assert {0, len(more.jaxpr.graph) - 1} <= set(found)


def test_compiler_options_show_in_the_kernels():
    request = CompileRequest(attention, (X, X, X), {}, options={"xla_disable_hlo_passes": "fusion"})
    without = compile_stages(request).capture
    difference = ex.diff(ex.explore(attention, X, X, X), without)
    assert difference.jaxpr.is_empty
    assert difference.stablehlo.is_empty
    assert not difference.hlo.is_empty
    # What was fused with its reader before runs by itself now.
    assert {fusion.holds for fusion in difference.fusions_gained} >= {"broadcast, parameter"}


def test_modules_from_text_are_compared_as_far_as_both_have_stages(plain):
    opened = ex.open_hlo(plain.hlo.text)
    difference = ex.diff(plain, opened)
    assert list(difference.stages) == ["hlo"]
    assert difference.hlo.is_empty
    with pytest.raises(KeyError, match="not both captures have a stage 'jaxpr'; both have: hlo"):
        difference.jaxpr  # noqa: B018


def test_something_that_is_no_capture_is_refused(plain):
    with pytest.raises(TypeError, match="diff takes two captures; `b` is function"):
        ex.diff(plain, attention)


def test_the_repr_tells_the_facts_that_differ(plain, edited):
    lines = repr(ex.diff(plain, edited)).splitlines()
    assert lines[0] == "Diff(attention → masked)"
    assert any(re.match(r"  flops +[\d,]+ → [\d,]+ \(×1\.\d+\)", line) for line in lines)
    assert any(re.match(r"  hlo +\+\d+ −\d+ ~\d+, of \d+ and \d+", line) for line in lines)
    assert any("fusion gained" in line and "select" in line for line in lines)


def test_the_text_turns_one_into_the_other_in_the_names_of_the_first(plain, edited):
    stage = ex.diff(plain, edited).hlo
    lines = stage.text(context=10**6).splitlines()[3:]
    old = [line[1:] for line in lines if line[0] in " -"]
    assert old == stage.step.before.splitlines()
    assert [line[1:] for line in lines if line[0] in " +"] == stage.step.after.splitlines()
    assert sum(line.startswith("  ") for line in lines) > 20


def test_a_notebook_gets_a_table_that_needs_no_script(plain, edited, tmp_path):
    difference = ex.diff(plain, edited)
    bundle = difference._repr_mimebundle_()
    assert bundle["text/plain"] == repr(difference)
    static = bundle["text/html"].partition('data-part="diff"')[0]
    assert "<td>flops</td>" in static
    assert "fusion gained" in static
    assert "+%" not in static.partition("<pre>")[0]
    page = difference.to_html(tmp_path / "diff.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert encode_diff(difference) == encode_diff(ex.diff(plain, edited))


def test_names_with_markup_are_inert_in_the_table():
    texts = [
        f"HloModule m\nENTRY %e (p: f32[8]) -> f32[8] {{\n  %p = f32[8] parameter(0)\n  ROOT %r = f32[8] {op}(%p), "
        'custom_call_target="<script>alert(1)</script>"\n}\n'
        for op in ("tanh", "exponential")
    ]
    html = ex.diff(*map(ex.open_hlo, texts))._repr_mimebundle_()["text/html"]
    assert "<script>alert" not in html


OPS = ["add", "multiply", "tanh", "dot"]
TYPES = ["f32[8]", "f32[8,8]"]


@st.composite
def modules(draw):
    """A straight-line module of operations on earlier results, with scopes and lines here and there."""
    size = draw(st.integers(1, 14))
    column = {name: [draw(st.integers(0, 1)) for _ in range(size)] for name in ("type", "scope")}
    operands = [draw(st.lists(st.integers(0, i - 1), max_size=2)) if i else [] for i in range(size)]
    return Graph(
        names=[f"x.{i}" for i in range(size)],
        op=np.asarray([draw(st.integers(0, len(OPS) - 1)) for _ in range(size)], np.int32),
        **{name: np.asarray(values, np.int32) for name, values in column.items()},
        operand_start=np.cumsum([0, *map(len, operands)], dtype=np.int32),
        operand=np.asarray([i for row in operands for i in row], np.int32),
        group=np.zeros(size, np.int32),
        frame=np.asarray([draw(st.integers(-1, 1)) for _ in range(size)], np.int32),
        line=np.arange(size, dtype=np.int32),
        ops=OPS,
        types=TYPES,
        scopes=["", "jit(f)/block"],
        groups=[Group("main", "entry")],
        frames=[Frame("f.py", "f", 1), Frame("f.py", "g", 2)],
    )


@given(modules())
def test_any_graph_is_itself(graph):
    alignment = match_graphs(Side(graph), Side(graph))
    np.testing.assert_array_equal(alignment.there, np.arange(len(graph)))


@pytest.mark.slow
@given(modules(), modules())
def test_the_match_of_any_two_graphs_turned_around_is_that_of_the_other_with_the_one(one, other):
    forth, back = match_graphs(Side(one), Side(other)), match_graphs(Side(other), Side(one))
    np.testing.assert_array_equal(forth.there, back.back)
    np.testing.assert_array_equal(forth.back, back.there)
    for x, y in enumerate(forth.there.tolist()):
        if y >= 0:
            assert forth.back[y] == x
            assert one.ops[one.op[x]] == other.ops[other.op[y]]
    again = match_graphs(Side(one), Side(other))
    np.testing.assert_array_equal(forth.there, again.there)


def test_a_kernel_is_known_by_what_it_holds_though_all_its_names_differ():
    fused = """HloModule m
%{0} (p.{1}: f32[8]) -> f32[8] {{
  %p.{1} = f32[8] parameter(0)
  ROOT %t.{1} = f32[8] tanh(%p.{1})
}}
%{2} (q.{1}: f32[8]) -> f32[8] {{
  %q.{1} = f32[8] parameter(0)
  ROOT %e.{1} = f32[8] exponential(%q.{1})
}}
ENTRY %main (x: f32[8]) -> f32[8] {{
  %x = f32[8] parameter(0)
  %one.{1} = f32[8] fusion(%x), kind=kLoop, calls=%{0}
  ROOT %two.{1} = f32[8] fusion(%one.{1}), kind=kLoop, calls=%{2}
}}
"""
    a, b = side(fused.format("first", 1, "second")), side(fused.format("uno", 7, "due"))
    alignment = match_graphs(a, b)
    assert [b.graph.names[i] for i in alignment.there] == [name.replace(".1", ".7") for name in a.graph.names]


def test_repeated_kernels_are_told_once_with_their_number():
    def sorted_often(count):
        def sort(x):
            for _ in range(count):
                x = jnp.sort(jnp.tanh(x) * 2)
            return x

        return sort

    one, other = (ex.explore(sorted_often(count), X) for count in (1, 5))
    lines = [line for line in repr(ex.diff(one, other)).splitlines() if "fusion gained" in line]
    assert any(re.search(r"multiply, tanh from sort:\d+ \(×[34]\)$", line) for line in lines), lines
