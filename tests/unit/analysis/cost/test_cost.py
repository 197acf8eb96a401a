"""What an instruction costs, held against XLA's own estimate of whole programs and against counting by hand."""

from __future__ import annotations

import math
from textwrap import dedent

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax
from jaxlib import _hlo, _jax

import explorer as ex
from explorer.analysis.flops import meeting_pairs
from explorer.analysis.kernel_costs import kernel_of
from explorer.capture.readers.hlo import read_hlo
from explorer.errors import UnreadableTextError


def struct(*shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


X, W = struct(128, 64), struct(64, 64)


def attention(q, k, v):
    return jax.nn.softmax(q @ k.T / 8.0) @ v


def layernorm(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-6)


def convolve(x, k, stride=1, padding="SAME"):
    return lax.conv_general_dilated(x, k, (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def loss(w, x):
    return (jnp.tanh(x @ w) ** 2).sum()


STRAIGHT = {
    "gelu": (jax.nn.gelu, X),
    "softmax": (jax.nn.softmax, X),
    "attention": (attention, X, X, X),
    "layernorm": (layernorm, X),
    "grad": (jax.grad(loss), W, X),
    "vmap": (jax.vmap(loss, (None, 0)), W, struct(4, 128, 64)),
    "chain": (lambda x, w: x @ w @ w @ w, X, W),
    "einsum": (lambda a, b: jnp.einsum("bshd,bthd->bhst", a, b), struct(4, 16, 4, 8), struct(4, 16, 4, 8)),
    "convolution": (convolve, struct(2, 16, 16, 8), struct(3, 3, 8, 16)),
    "strided": (lambda x, k: convolve(x, k, 2, [(1, 1), (2, 0)]), struct(2, 16, 16, 8), struct(3, 3, 8, 16)),
    "pool": (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID"), X),
    "argmax": (lambda x: x.argmax(-1), X),
    "sort": (jnp.sort, struct(1024)),
    "cumsum": (jnp.cumsum, struct(1024)),
    "fft": (jnp.fft.fft, struct(1024)),
}


def totals(graph, *, once=False):
    """FLOPs and bytes of the whole program; `once` as if each loop's body ran a single time, as XLA counts."""
    kernel = kernel_of(graph)
    runs = np.nan_to_num(graph.measures["runs"], nan=1.0) if once else 1.0
    own = kernel == np.arange(len(graph))
    return tuple(float(np.nansum(np.where(own, graph.measures[name] / runs, 0.0))) for name in ("flops", "bytes"))


@pytest.mark.parametrize("name", STRAIGHT)
def test_without_loops_flops_and_bytes_are_xlas(name):
    function, *args = STRAIGHT[name]
    capture = ex.explore(function, *args)
    flops, bytes_ = totals(capture.hlo.graph)
    assert flops == pytest.approx(capture.cost.get("flops", 0) + capture.cost.get("transcendentals", 0), rel=1e-6)
    assert bytes_ == pytest.approx(capture.cost["bytes accessed"], rel=1e-6)


def scan(w, x):
    return lax.scan(lambda h, _: (jnp.tanh(h @ w), h.sum()), x, None, length=10)


def stacked(ws, x):
    return lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, ws)[0]


@pytest.mark.parametrize(
    ("function", "args", "trips"),
    [
        (scan, (W, X), 10),
        (stacked, (struct(12, 64, 64), X), 12),
        (lambda x: lax.fori_loop(0, 7, lambda i, y: jnp.sin(y) @ y.T @ y, x), (X,), 7),
    ],
    ids=["scan", "stacked", "fori"],
)
def test_a_loops_body_counts_as_often_as_it_runs_where_xla_counts_it_once(function, args, trips):
    capture = ex.explore(function, *args)
    xla = capture.cost["flops"] + capture.cost.get("transcendentals", 0)
    once, bytes_ = totals(capture.hlo.graph, once=True)
    assert once == pytest.approx(xla, rel=1e-6)
    # XLA counts besides what tuples of pointers take: some bytes for each.
    assert bytes_ == pytest.approx(capture.cost["bytes accessed"], rel=1e-3)
    assert totals(capture.hlo.graph)[0] == pytest.approx(trips * xla, rel=1e-3)


def test_a_loop_of_unknown_length_counts_once_and_says_so():
    def search(x):
        return lax.while_loop(lambda c: c[0] < 10.0, lambda c: (c[0] + c[1].sum(), jnp.cos(c[1])), (0.0, x))[1]

    graph = ex.explore(search, X).hlo.graph
    body = [node for node in graph.nodes if node.op == "cosine"]
    assert body
    assert all(math.isnan(graph.measures["runs"][node.index]) for node in body)
    assert graph.measures["flops"][body[0].index] == 128 * 64


def test_every_branch_of_a_conditional_counts_and_nothing_says_which_runs():
    def choose(p, x):
        return lax.cond(p > 0, lambda y: jnp.sin(y) @ y.T, lambda y: (y * 2) @ y.T, x)

    graph = ex.explore(choose, 1.0, X).hlo.graph
    dots = [node.index for node in graph.nodes if node.op == "dot"]
    assert [graph.measures["flops"][i] for i in dots] == [2 * 128 * 128 * 64] * 2
    assert all(math.isnan(graph.measures["runs"][i]) for i in dots)


def test_nothing_is_counted_until_somebody_looks():
    graph = ex.explore(jnp.tanh, X).hlo.graph
    assert "measures" not in vars(graph)
    assert graph.measures["flops"].sum() > 0
    assert "measures" in vars(graph)


def read(text):
    return read_hlo("HloModule m\n\n" + dedent(text))


def cost_of(text, name):
    graph = read(text)
    return {measure: float(values[graph[name].index]) for measure, values in graph.measures.items()}


def test_a_dot_counts_two_flops_per_multiply_add():
    text = """
    ENTRY %e (a: f32[4,8,16], b: f32[4,16,32]) -> f32[4,8,32] {
      %a = f32[4,8,16]{2,1,0} parameter(0)
      %b = f32[4,16,32]{2,1,0} parameter(1)
      ROOT %dot = f32[4,8,32]{2,1,0} dot(%a, %b), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}
    }
    """  # noqa: E501
    found = cost_of(text, "dot")
    assert found["flops"] == 2 * 4 * 8 * 32 * 16
    assert found["bytes"] == 4 * (4 * 8 * 16 + 4 * 16 * 32 + 4 * 8 * 32)
    assert found["runs"] == 1


def test_a_matmul_of_a_gpu_library_counts_as_the_dot_it_is():
    text = """
    ENTRY %e (a: bf16[64,128], b: bf16[128,32]) -> bf16[64,32] {
      %a = bf16[64,128]{1,0} parameter(0)
      %b = bf16[128,32]{1,0} parameter(1)
      %gemm = (bf16[64,32]{1,0}, s8[4096]{0}) custom-call(%a, %b), custom_call_target="__cublas$gemm", backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]}}}
      ROOT %out = bf16[64,32]{1,0} get-tuple-element(%gemm), index=0
    }
    """  # noqa: E501
    found = cost_of(text, "gemm")
    assert found["flops"] == 2 * 64 * 32 * 128
    assert found["bytes"] == 2 * (64 * 128 + 128 * 32 + 64 * 32)  # its workspace is no result
    assert cost_of(text, "out") == {"flops": 0, "bytes": 0, "runs": 1}


def test_what_a_custom_call_computes_is_not_known_but_what_it_moves_is():
    text = """
    ENTRY %e (a: f32[16]) -> f32[16] {
      %a = f32[16]{0} parameter(0)
      ROOT %call = f32[16]{0} custom-call(%a), custom_call_target="mine"
    }
    """
    found = cost_of(text, "call")
    assert math.isnan(found["flops"])
    assert found["bytes"] == 128


FUSED = """
%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y)
}

%inside (p: f32[8,16]) -> f32[8] {
  %p = f32[8,16]{1,0} parameter(0)
  %zero = f32[] constant(0)
  %twice = f32[8,16]{1,0} add(%p, %p)
  ROOT %reduce = f32[8]{0} reduce(%twice, %zero), dimensions={1}, to_apply=%add
}

ENTRY %e (a: f32[8,16]) -> f32[] {
  %a = f32[8,16]{1,0} parameter(0)
  %fusion = f32[8]{0} fusion(%a), kind=kLoop, calls=%inside
  %none = f32[] constant(0)
  ROOT %all = f32[] reduce(%fusion, %none), dimensions={0}, to_apply=%add
}
"""


def test_a_fusion_has_the_flops_of_its_inside_and_alone_moves_bytes():
    graph = read(FUSED)
    flops = {node.name: graph.measures["flops"][node.index] for node in graph.nodes}
    moved = {node.name: graph.measures["bytes"][node.index] for node in graph.nodes}
    assert flops["twice"] == 128
    assert flops["reduce"] == 120
    assert flops["fusion"] == 248
    assert moved["fusion"] == 4 * (128 + 8)
    assert moved["twice"] == moved["reduce"] == moved["p"] == 0


def test_a_reducer_that_two_reductions_share_counts_for_both():
    graph = read(FUSED)
    assert graph.measures["flops"][graph["sum"].index] == 120 + 7
    assert graph.measures["flops"][graph["all"].index] == 7
    assert totals(graph) == (248 + 7, 4 * (128 + 8) + 4 * (8 + 1 + 1))


LOOPS = """
%inner (i: (s32[], f32[8])) -> (s32[], f32[8]) {
  %i = (s32[], f32[8]{0}) parameter(0)
  %n = s32[] get-tuple-element(%i), index=0
  %v = f32[8]{0} get-tuple-element(%i), index=1
  %w = f32[8]{0} sine(%v)
  ROOT %t = (s32[], f32[8]{0}) tuple(%n, %w)
}

%never (c: (s32[], f32[8])) -> pred[] {
  %c = (s32[], f32[8]{0}) parameter(0)
  %k = s32[] get-tuple-element(%c), index=0
  %limit = s32[] constant(5)
  ROOT %less = pred[] compare(%k, %limit), direction=LT
}

%outer (o: (s32[], f32[8])) -> (s32[], f32[8]) {
  %o = (s32[], f32[8]{0}) parameter(0)
  ROOT %within = (s32[], f32[8]{0}) while(%o), condition=%never, body=%inner, backend_config={"known_trip_count":{"n":"5"}}
}

%stop (d: (s32[], f32[8])) -> pred[] {
  %d = (s32[], f32[8]{0}) parameter(0)
  ROOT %yes = pred[] constant(true)
}

ENTRY %e (a: (s32[], f32[8])) -> (s32[], f32[8]) {
  %a = (s32[], f32[8]{0}) parameter(0)
  ROOT %around = (s32[], f32[8]{0}) while(%a), condition=%stop, body=%outer, backend_config={"known_trip_count":{"n":"3"}}
}
"""  # noqa: E501


def test_the_lengths_of_nested_loops_multiply_and_a_condition_is_asked_once_more():
    graph = read(LOOPS)
    runs = {node.name: graph.measures["runs"][node.index] for node in graph.nodes}
    assert runs["w"] == 15
    assert runs["less"] == 3 * 6
    assert runs["within"] == 3
    assert runs["around"] == 1
    assert graph.measures["flops"][graph["w"].index] == 15 * 8
    assert graph.measures["flops"][graph["around"].index] == 0  # its body counts


def test_two_modules_in_one_text_count_each_their_own():
    once = read(FUSED)
    twice = read_hlo("HloModule a\n" + FUSED + "\nHloModule b\n" + FUSED.replace("[8,16]", "[8,32]"))
    flops = twice.measures["flops"]
    assert flops[: len(once)].tolist() == once.measures["flops"].tolist()
    assert flops[len(once) :].max() == 8 * 32 + 8 * 31


def test_a_gather_reads_what_it_takes_and_an_update_in_place_writes_what_it_puts():
    def take(table, index, row):
        return table.at[3].set(row), table[index]

    table = 4 * 1000 * 64
    capture = ex.explore(lambda t, i: t[i], struct(1000, 64), struct(5, dtype=jnp.int32))
    assert totals(capture.hlo.graph)[1] < table / 10
    text = """
    ENTRY %e (a: f32[1000,64], b: f32[1,64], i: s32[]) -> f32[1000,64] {
      %a = f32[1000,64]{1,0} parameter(0)
      %b = f32[1,64]{1,0} parameter(1)
      %i = s32[] parameter(2)
      ROOT %put = f32[1000,64]{1,0} dynamic-update-slice(%a, %b, %i, %i)
    }
    """
    assert cost_of(text, "put")["bytes"] == 2 * 4 * 64 + 8


@settings(max_examples=40, deadline=None)
@given(
    size=st.integers(1, 9),
    kernel=st.integers(1, 4),
    stride=st.integers(1, 3),
    low=st.integers(0, 3),
    high=st.integers(0, 3),
    spread=st.integers(1, 2),
    holes=st.integers(1, 2),
)
def test_a_convolution_counts_the_products_that_meet_an_element(size, kernel, stride, low, high, spread, holes):
    wide, reach = (size - 1) * spread + 1 + low + high, (kernel - 1) * holes + 1
    outputs = (wide - reach) // stride + 1
    if outputs < 1:
        return
    text = f"""
    ENTRY %e (a: f32[2,{size},3], k: f32[{kernel},3,5]) -> f32[2,{outputs},5] {{
      %a = f32[2,{size},3]{{2,1,0}} parameter(0)
      %k = f32[{kernel},3,5]{{2,1,0}} parameter(1)
      ROOT %conv = f32[2,{outputs},5]{{2,1,0}} convolution(%a, %k), window={{size={kernel} stride={stride} pad={low}_{high} lhs_dilate={spread} rhs_dilate={holes}}}, dim_labels=b0f_0io->b0f
    }}
    """  # noqa: E501
    padded = np.zeros(wide)
    padded[low : low + (size - 1) * spread + 1 : spread] = 1
    products = sum(padded[o * stride + t * holes] for o in range(outputs) for t in range(kernel))
    assert cost_of(text, "conv")["flops"] == 2 * products * 2 * 3 * 5


@settings(max_examples=300, deadline=None)
@given(
    outputs=st.integers(0, 25),
    kernel=st.integers(0, 12),
    stride=st.integers(1, 9),
    step=st.integers(1, 9),
    low=st.integers(-30, 30),
    size=st.integers(0, 30),
    spread=st.integers(1, 9),
)
def test_the_pairs_that_meet_an_element_are_counted_without_going_through_them(
    outputs, kernel, stride, step, low, size, spread
):
    places = [stride * o + step * k - low for o in range(outputs) for k in range(kernel)]
    met = sum(place % spread == 0 and 0 <= place // spread < size for place in places)
    assert meeting_pairs(outputs, kernel, stride, step, low, size, spread) == met


def test_a_convolution_of_any_length_takes_no_time_and_no_memory():
    def text(size: str, kernel: str, outputs: str) -> str:
        return (
            f"ENTRY %e {{\n  %a = f32[1,{size},1] parameter(0)\n  %k = f32[{kernel},1,1] parameter(1)\n"
            f"  ROOT %conv = f32[1,{outputs},1] convolution(%a, %k), window={{size={kernel}}}, "
            "dim_labels=b0f_0io->b0f\n}"
        )

    assert cost_of(text("1000000", "100000", "900001"), "conv")["flops"] == pytest.approx(2 * 100_000 * 900_001)
    assert cost_of(text("8", "9" * 18, "9" * 18), "conv")["flops"] >= 0
    assert math.isnan(cost_of(text("8", "9" * 18, "4").replace("size=", "size=" + "9" * 5000), "conv")["flops"])


@settings(max_examples=60, deadline=None)
@given(at=st.integers(0, len(FUSED + LOOPS)), cut=st.integers(0, 40), put=st.text("%{}()[],=0ax ", max_size=8))
def test_a_damaged_text_is_counted_as_far_as_it_is_read(at, cut, put):
    text = "HloModule m\n" + FUSED + LOOPS
    try:
        graph = read_hlo(text[:at] + put + text[at + cut :])
    except UnreadableTextError:
        return
    for values in graph.measures.values():
        assert len(values) == len(graph)
        assert not (values < 0).any()


SORT = """
%less (a: f32[], b: f32[]) -> pred[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %lt = pred[] compare(%a, %b), direction=LT
}

ENTRY %e (x: f32[4,10,128]) -> f32[4,10,128] {
  %x = f32[4,10,128]{2,1,0} parameter(0)
  ROOT %sorted = f32[4,10,128]{2,1,0} sort(%x), dimensions={DIM}, to_apply=%less
}
"""


@pytest.mark.parametrize(("dim", "comparisons"), [(0, 2), (1, 4), (2, 7)])
def test_rows_that_are_sorted_for_themselves_count_as_short_ones(dim, comparisons):
    graph = read(SORT.replace("DIM", str(dim)))
    assert graph.measures["flops"][graph["sorted"].index] == 4 * 10 * 128 * comparisons
    assert totals(graph)[0] == 4 * 10 * 128 * comparisons
    assert graph.measures["runs"][graph["lt"].index] == 0  # its comparisons are the sort's


def test_a_sort_over_a_dimension_that_its_array_lacks_has_no_known_cost():
    capture = ex.open_hlo("HloModule m\n" + SORT.replace("DIM", "7"))
    graph = capture.hlo.graph
    assert math.isnan(graph.measures["flops"][graph["sorted"].index])
    assert "No time was measured" in capture.ask("which kernel is slow?").text


UNCALLED = """
%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

%left_over (l: f32[64,64]) -> f32[64,64] {
  %l = f32[64,64]{1,0} parameter(0)
  ROOT %lost = f32[64,64]{1,0} dot(%l, %l), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

ENTRY %e (x: f32[64]) -> f32[64] {
  %x = f32[64]{0} parameter(0)
  ROOT %twice = f32[64]{0} add(%x, %x)
}
"""


def xlas(text, name):
    """What XLA's own HloCostAnalysis counts of a module's text."""
    module = _hlo.hlo_module_from_text(f"HloModule m\n{text}")
    return _jax.hlo_module_cost_analysis(jax.devices()[0].client, module)[name]


def test_what_nothing_calls_counts_as_nothing():
    graph = read(UNCALLED)
    assert totals(graph) == (xlas(UNCALLED, "flops"), xlas(UNCALLED, "bytes accessed")) == (64, 3 * 64 * 4)
    assert graph.measures["runs"][graph["lost"].index] == 0


OUTLINED = """
%inside (i: f32[64,128]) -> f32[64,128] {
  %i = f32[64,128]{1,0} parameter(0)
  ROOT %doubled = f32[64,128]{1,0} add(%i, %i)
}

%parallel (p: f32[64,128]) -> f32[64,128] {
  %p = f32[64,128]{1,0} parameter(0)
  ROOT %fusion = f32[64,128]{1,0} fusion(%p), kind=kLoop, calls=%inside
}

ENTRY %e (x: f32[64,128]) -> f32[64,128] {
  %x = f32[64,128]{1,0} parameter(0)
  %once = f32[64,128]{1,0} call(%x), to_apply=%parallel
  START
}
"""
CALLED_AGAIN = {
    "twice": "ROOT %again = f32[64,128]{1,0} call(%once), to_apply=%parallel",
    "asynchronously": """%begun = ((f32[64,128]{1,0}), f32[64,128]{1,0}, s32[]) call-start(%once), to_apply=%parallel
  ROOT %again = f32[64,128]{1,0} call-done(%begun)""",
}


@pytest.mark.parametrize("again", CALLED_AGAIN)
def test_what_is_outlined_counts_where_it_runs_as_often_as_it_is_called(again):
    text = OUTLINED.replace("START", CALLED_AGAIN[again])
    graph = read(text)
    assert totals(graph)[0] == 2 * 64 * 128 == xlas(text, "flops")
    assert graph.measures["runs"][graph["fusion"].index] == 2


def test_a_scatter_of_several_arrays_combines_each_update_once():
    text = """
    %both (a: f32[], b: f32[], c: f32[], d: f32[]) -> (f32[], f32[]) {
      %a = f32[] parameter(0)
      %b = f32[] parameter(1)
      %c = f32[] parameter(2)
      %d = f32[] parameter(3)
      %s = f32[] add(%a, %c)
      %t = f32[] multiply(%b, %d)
      ROOT %r = (f32[], f32[]) tuple(%s, %t)
    }

    ENTRY %e (x: f32[64,128], y: f32[64,128], i: s32[10,1], u: f32[10,128]) -> (f32[64,128], f32[64,128]) {
      %x = f32[64,128]{1,0} parameter(0)
      %y = f32[64,128]{1,0} parameter(1)
      %i = s32[10,1]{1,0} parameter(2)
      %u = f32[10,128]{1,0} parameter(3)
      ROOT %put = (f32[64,128]{1,0}, f32[64,128]{1,0}) scatter(%x, %y, %i, %u, %u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=%both
    }
    """  # noqa: E501
    text = dedent(text)
    assert totals(read(text))[0] == 2 * 10 * 128 == xlas(text, "flops")


@pytest.mark.parametrize(
    "instruction",
    [
        "(f32[64]{0}, s32[64]{0}) topk(%x), k=64, largest=true",
        "f32[64]{0} fusion(%x), kind=kLoop, calls=%cut_off",
        "f32[64]{0} never-heard-of(%x)",
    ],
)
def test_what_no_table_knows_is_not_known_rather_than_nothing(instruction):
    text = f"""
    ENTRY %e (x: f32[64]) -> f32[64] {{
      %x = f32[64]{{0}} parameter(0)
      ROOT %strange = {instruction}
    }}
    """
    assert math.isnan(cost_of(text, "strange")["flops"])


def test_a_kernel_with_something_unknown_inside_is_not_known_as_a_whole():
    graph = read(FUSED.replace("%twice = f32[8,16]{1,0} add(%p, %p)", "%twice = f32[8,16]{1,0} never-heard-of(%p)"))
    assert math.isnan(graph.measures["flops"][graph["fusion"].index])
    assert graph.measures["flops"][graph["reduce"].index] == 120
