"""What single instructions do and move, counted by hand from their shapes: `f32[8,16]` has 128 elements of 4 bytes."""

import math

import numpy as np
import pytest

import explorer as ex
from explorer.analysis.kernel_costs import TotalCost, kernel_kinds
from explorer.analysis.least_time import GpuLimits, copies_beside, least_times, limits_of, occupancy
from explorer.analysis.loops import count_limits, is_one_iteration, unknown_loops
from explorer.model.results.roofline import Peaks

COMPUTATIONS = """HloModule m
%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

%larger (c: f32[], d: f32[]) -> pred[] {
  %c = f32[] parameter(0)
  %d = f32[] parameter(1)
  ROOT %g = pred[] compare(%c, %d), direction=GE
}

%thrice (q: f32[]) -> f32[] {
  %q = f32[] parameter(0)
  %q2 = f32[] add(%q, %q)
  ROOT %q3 = f32[] add(%q2, %q)
}
"""
ENTRY = """
ENTRY %e (x: f32[8,16], i: s32[], at: s32[3,1], three: f32[3,16], row: f32[1,16], less: f32[4,8]) -> TYPE {
  %x = f32[8,16]{1,0} parameter(0)
  %i = s32[] parameter(1)
  %at = s32[3,1]{1,0} parameter(2)
  %three = f32[3,16]{1,0} parameter(3)
  %row = f32[1,16]{1,0} parameter(4)
  %less = f32[4,8]{1,0} parameter(5)
  %zero = f32[] constant(0)
  ROOT %it = TYPE INSTRUCTION
}
"""


def read(instruction):
    type_, _, rest = instruction.partition(" ")
    entry = ENTRY.replace("INSTRUCTION", rest).replace("TYPE", type_)
    return ex.open_hlo(COMPUTATIONS + entry).hlo.graph


TAKE = "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,16}"
PUT = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
HALVES = "window={size=2x2 stride=2x2}"


@pytest.mark.parametrize(
    ("instruction", "flops", "moved"),
    [
        # elementwise: one for each element; each operand is read, also where it is one array
        ("f32[8,16]{1,0} add(%x, %x)", 128, 3 * 512),
        ("f32[8,16]{1,0} exponential(%x)", 128, 2 * 512),
        ("bf16[8,16]{1,0} convert(%x)", 128, 512 + 256),
        ("pred[8,16]{1,0} compare(%x, %x), direction=LT", 128, 2 * 512 + 128),
        # what only moves
        ("f32[8,16]{1,0} copy(%x)", 0, 2 * 512),
        ("f32[16,8]{1,0} transpose(%x), dimensions={1,0}", 0, 2 * 512),
        ("f32[8,16,2]{2,1,0} broadcast(%x), dimensions={0,1}", 0, 512 + 1024),
        ("f32[16,16]{1,0} concatenate(%x, %x), dimensions={0}", 0, 2 * 512 + 1024),
        # names for what is there
        ("f32[128]{0} bitcast(%x)", 0, 0),
        ("(f32[8,16]{1,0},s32[]) tuple(%x, %i)", 0, 0),
        # of the first operand what is taken is read
        ("f32[4,16]{1,0} slice(%x), slice={[0:4], [0:16]}", 0, 2 * 256),
        ("f32[1,16]{1,0} dynamic-slice(%x, %i, %i), dynamic_slice_sizes={1,16}", 0, 2 * 64 + 2 * 4),
        (f"f32[3,16]{{1,0}} gather(%x, %at), {TAKE}", 0, 2 * 192 + 12),
        # into the first operand what is put is written
        ("f32[8,16]{1,0} dynamic-update-slice(%x, %row, %i, %i)", 0, 2 * 64 + 2 * 4),
        (f"f32[8,16]{{1,0}} scatter(%x, %at, %three), {PUT}, to_apply=%sum", 48, 2 * 192 + 12),
        (f"f32[8,16]{{1,0}} scatter(%x, %at, %three), {PUT}, to_apply=%thrice", 2 * 48, 2 * 192 + 12),
        # a row of 16 is 15 additions
        ("f32[8]{0} reduce(%x, %zero), dimensions={1}, to_apply=%sum", 8 * 15, 512 + 4 + 32),
        ("f32[] reduce(%x, %zero), dimensions={0,1}, to_apply=%sum", 127, 512 + 4 + 4),
        # a window of four is three additions
        (f"f32[4,8]{{1,0}} reduce-window(%x, %zero), {HALVES}, to_apply=%sum", 32 * 3, 512 + 4 + 128),
        # three comparisons in each window, and one addition of what is scattered
        (
            f"f32[8,16]{{1,0}} select-and-scatter(%x, %less, %zero), {HALVES}, select=%larger, scatter=%sum",
            32 * 3 + 32,
            512 + 128 + 4 + 512,
        ),
        (  # without what it begins with
            f"f32[8,16]{{1,0}} select-and-scatter(%x, %less), {HALVES}, select=%larger, scatter=%sum",
            32 * 3 + 32,
            512 + 128 + 512,
        ),
        ("f32[8,16]{1,0} map(%x), dimensions={0,1}, to_apply=%thrice", 128 * 2, 2 * 512),
        ("f32[8,16]{1,0} all-reduce(%x), replica_groups={{0,1}}, to_apply=%sum", 128, 2 * 512),
        ("f32[4,16]{1,0} reduce-scatter(%x), replica_groups={{0,1}}, dimensions={0}, to_apply=%sum", 64, 512 + 256),
        ("f32[16,16]{1,0} all-gather(%x), replica_groups={{0,1}}, dimensions={0}", 0, 512 + 1024),
        # a comparison for each halving of 16
        ("f32[8,16]{1,0} sort(%x), dimensions={1}, to_apply=%larger", 128 * 4, 2 * 512),
        ("f32[8,16]{1,0} sort(%x), dimensions={0}, to_apply=%larger", 128 * 3, 2 * 512),
        # a multiply and an add for each of 16 products
        ("f32[8,8]{1,0} dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={1}", 2 * 64 * 16, 2 * 512 + 256),
        ("f32[16,16]{1,0} dot(%x, %x), lhs_contracting_dims={0}, rhs_contracting_dims={0}", 2 * 256 * 8, 2048),
        ("f32[] dot(%x, %x), lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1}", 2 * 128, 2 * 512 + 4),
        # a library's product with the workspace that it declares beside it, which is no result
        (
            '(f32[8,8]{1,0},s8[999]{0}) custom-call(%x, %x), custom_call_target="__cublas$gemm", '
            "backend_config={}, lhs_contracting_dims={1}, rhs_contracting_dims={1}",
            2 * 64 * 16,
            2 * 512 + 256,
        ),
        ('f32[8,16]{1,0} custom-call(%x), custom_call_target="mine"', math.nan, 2 * 512),
        ('(f32[8]{0},s8[9]{0}) custom-call(%x), custom_call_target="mine"', math.nan, 512 + 32 + 9),
        # what a text lacks, or what no table has, isn't known
        ("f32[8,8]{1,0} dot(%x, %x), lhs_contracting_dims={2}, rhs_contracting_dims={1}", math.nan, 2 * 512 + 256),
        ("f32[8,8]{1,0} dot(), lhs_contracting_dims={1}", math.nan, 256),
        ("f32[8,16]{1,0} sort(%x), to_apply=%larger", math.nan, 2 * 512),
        ("c64[8,16]{1,0} fft(), fft_type=FFT, fft_length={16}", math.nan, 1024),
        ("f32[8,16]{1,0} strange(%x)", math.nan, 2 * 512),
        ("f32[8,16]{1,0} strange-done(%x)", 0, 2 * 512),  # the end of what was counted where it began
    ],
)  # fmt: skip
def test_an_instruction_counts_and_moves(instruction, flops, moved):
    graph = read(instruction)
    measures = {name: float(values[graph["it"].index]) for name, values in graph.measures.items()}
    assert measures["flops"] == flops or (math.isnan(flops) and math.isnan(measures["flops"]))
    assert (measures["bytes"], measures["runs"]) == (moved, 1)


def test_a_slice_behind_a_bitcast_reads_what_it_takes():
    text = (
        COMPUTATIONS
        + """
%inside (p: f32[8,16], u: f32[1,16]) -> f32[16] {
  %p = f32[8,16]{1,0} parameter(0)
  %u = f32[1,16]{1,0} parameter(1)
  %flat = f32[128]{0} bitcast(%p)
  %part = f32[16]{0} slice(%flat), slice={[16:32]}
  %line = f32[16]{0} bitcast(%u)
  ROOT %both = f32[16]{0} add(%part, %line)
}

%into (o: f32[8,16], w: f32[1,16], k: s32[]) -> f32[128] {
  %o = f32[8,16]{1,0} parameter(0)
  %w = f32[1,16]{1,0} parameter(1)
  %k = s32[] parameter(2)
  %put = f32[8,16]{1,0} dynamic-update-slice(%o, %w, %k, %k)
  ROOT %flat2 = f32[128]{0} bitcast(%put)
}

ENTRY %e (x: f32[8,16], row: f32[1,16], i: s32[]) -> f32[16] {
  %x = f32[8,16]{1,0} parameter(0)
  %row = f32[1,16]{1,0} parameter(1)
  %i = s32[] parameter(2)
  %taken = f32[16]{0} fusion(%x, %row), kind=kLoop, calls=%inside
  %written = f32[128]{0} fusion(%x, %row, %i), kind=kLoop, calls=%into
  ROOT %r = (f32[16]{0}, f32[128]{0}) tuple(%taken, %written)
}
"""
    )
    graph = ex.open_hlo(text).hlo.graph
    moved = {name: float(graph.measures["bytes"][graph[name].index]) for name in graph.names}
    # One reads 64 of its first operand's 512 bytes, and a row. The other writes a row, and reads that and its index.
    assert moved["taken"] == 64 + 64 + 64
    assert moved["written"] == 64 + 64 + 4
    assert [name for name, size in moved.items() if size] == ["taken", "written"]
    assert dict(TotalCost(graph)) == {"flops": 16.0, "bytes accessed": 192.0 + 132.0}


LOOP = """HloModule m
%body (s: (s32[], f32[8])) -> (s32[], f32[8]) {
  %s = (s32[], f32[8]{0}) parameter(0)
  %n = s32[] get-tuple-element(%s), index=0
  %v = f32[8]{0} get-tuple-element(%s), index=1
  %w = f32[8]{0} custom-call(%v), custom_call_target="mine"
  ROOT %t = (s32[], f32[8]{0}) tuple(%n, %w)
}

%test (c: (s32[], f32[8])) -> pred[] {
  %c = (s32[], f32[8]{0}) parameter(0)
  %k = s32[] get-tuple-element(%c), index=0
  %limit = s32[] constant(5)
  ROOT %less = pred[] compare(%k, %limit), direction=LT
}

%yes (y: f32[8]) -> f32[8] {
  %y = f32[8]{0} parameter(0)
  ROOT %sine = f32[8]{0} sine(%y)
}

%no (z: f32[8]) -> f32[8] {
  %z = f32[8]{0} parameter(0)
  ROOT %cosine = f32[8]{0} cosine(%z)
}

ENTRY %e (a: (s32[], f32[8]), p: pred[]) -> f32[8] {
  %a = (s32[], f32[8]{0}) parameter(0)
  %p = pred[] parameter(1)
  %loop = (s32[], f32[8]{0}) while(%a), condition=%test, body=%bodyCOUNT
  %b = f32[8]{0} get-tuple-element(%loop), index=1
  ROOT %choice = f32[8]{0} conditional(%p, %b, %b), true_computation=%yes, false_computation=%no
}
"""
COUNTED = ', backend_config={"known_trip_count":{"n":"7"}}'


def test_what_the_counts_leave_open_is_named():
    graph = ex.open_hlo(LOOP.replace("COUNT", "")).hlo.graph
    limits = count_limits(graph)
    assert (limits.loops, limits.branches, limits.unknown) == (["loop"], ["choice"], ["mine"])
    assert [graph.names[at] for at in unknown_loops(graph)] == ["loop"]
    open_ended = {name for name, is_open in zip(graph.names, is_one_iteration(graph), strict=True) if is_open}
    assert open_ended == {"s", "n", "v", "w", "t", "c", "k", "limit", "less"}
    runs = dict(zip(graph.names, graph.measures["runs"].tolist(), strict=True))
    assert runs["loop"] == runs["choice"] == 1
    assert all(math.isnan(runs[name]) for name in ("w", "less", "sine", "cosine"))
    # one iteration, and both branches
    assert [float(graph.measures["flops"][graph[name].index]) for name in ("less", "sine", "cosine")] == [1, 8, 8]
    assert dict(TotalCost(graph)) == {"bytes accessed": 64.0 + 9.0 + 64.0 + 64.0}  # no flops: a part isn't known


def test_a_loop_whose_length_is_printed_leaves_nothing_open():
    graph = ex.open_hlo(LOOP.replace("COUNT", COUNTED)).hlo.graph
    assert (count_limits(graph).loops, unknown_loops(graph).tolist()) == ([], [])
    assert not is_one_iteration(graph).any()
    runs = dict(zip(graph.names, graph.measures["runs"].tolist(), strict=True))
    assert (runs["w"], runs["less"]) == (7, 8)
    assert float(graph.measures["bytes"][graph["w"].index]) == 7 * 64
    # without the counts of a program nothing is open
    equations = ex.explore(lambda x: x, np.ones(2)).jaxpr.graph
    assert (count_limits(equations).sentences, unknown_loops(equations).tolist()) == ((), [])


KINDS = """HloModule m
%mixed (p: bf16[8,8], q: f32[8,8]) -> f32[8,8] {
  %p = bf16[8,8]{1,0} parameter(0)
  %q = f32[8,8]{1,0} parameter(1)
  %part = bf16[2,8]{1,0} slice(%p), slice={[0:2], [0:8]}
  %tanh = f32[8,8]{1,0} tanh(%q)
  %log = f32[8,8]{1,0} log(%q)
  ROOT %more = f32[8,8]{1,0} tanh(%tanh)
}

%product (r: bf16[8,8]) -> f32[8,8] {
  %r = bf16[8,8]{1,0} parameter(0)
  ROOT %dot = f32[8,8]{1,0} dot(%r, %r), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

ENTRY %e (a: bf16[8,8], b: f32[8,8]{1,0:S(1)}) -> f32[8,8] {
  %a = bf16[8,8]{1,0} parameter(0)
  %b = f32[8,8]{1,0:S(1)} parameter(1)
  %kernel = f32[8,8]{1,0} fusion(%a, %b), kind=kLoop, calls=%mixed
  %matmul = f32[8,8]{1,0} fusion(%a), kind=kOutput, calls=%product
  %narrow = bf16[8,8]{1,0} convert(%b)
  %own = bf16[8,8]{1,0} custom-call(%a), custom_call_target="mine"
  %started = (f32[8,8]{1,0:S(1)}, f32[8,8]{1,0}, u32[]) copy-start(%matmul)
  %ended = f32[8,8]{1,0:S(1)} copy-done(%started)
  ROOT %r = (f32[8,8]{1,0}, f32[8,8]{1,0}, bf16[8,8]{1,0}) tuple(%kernel, %ended, %narrow)
}
"""


def test_a_kernel_computes_in_the_dtype_of_most_of_its_elements_a_product_in_that_of_its_factors():
    graph = ex.open_hlo(KINDS).hlo.graph
    kinds = kernel_kinds(graph)
    of = {name: (kinds.dtype[at], kinds.is_matmul[at]) for at, name in enumerate(graph.names)}
    assert of["kernel"] == ("f32", False)
    assert of["matmul"] == ("bf16", True)
    assert of["narrow"] == ("bf16", False)
    assert of["own"] == ("bf16", False)
    assert {graph.names[at]: dict(special) for at, special in kinds.special.items()} == {
        "kernel": {"tanh": 128.0, "log": 64.0}
    }


def test_least_times_are_the_larger_of_arithmetic_and_bytes_without_what_lies_on_the_chip():
    graph = ex.open_hlo(KINDS).hlo.graph
    # 10 bytes a second; 1 operation of a product in bf16, 2 others in f32, of which a tanh is no slower
    peaks = Peaks("a machine", bandwidth=10.0, matmul={"bf16": 1.0}, fma={"f32": 2.0, "bf16": 4.0})
    seconds = dict(zip(graph.names, least_times(graph, peaks).tolist(), strict=True))
    # 16 of 64 elements of `a` are read, 32 B; `b` lies on the chip; 256 B written; 3 × 64 operations
    assert seconds["kernel"] == max(3 * 64 / 2, (32 + 256) / 10)
    assert seconds["matmul"] == 2 * 64 * 8 / 1
    assert seconds["narrow"] == max(64 / 4, 128 / 10)
    assert math.isnan(seconds["own"])
    assert seconds["a"] == seconds["r"] == seconds["dot"] == 0
    copies = copies_beside(graph)
    assert [name for name, beside in zip(graph.names, copies, strict=True) if beside] == ["started"]


def test_what_a_loop_does_it_does_in_all_its_runs():
    text = LOOP.replace('custom-call(%v), custom_call_target="mine"', "sine(%v)")
    peaks = Peaks("a machine", bandwidth=10.0, fma={"f32": 100.0}, caches={64: 20.0})
    for count, runs in ((COUNTED, 7), ("", 1)):
        graph = ex.open_hlo(text.replace("COUNT", count)).hlo.graph
        # 64 bytes of one run fit in the cache
        assert least_times(graph, peaks)[graph["w"].index] == runs * 64 / 20


# Compute capability 9.0: 2,048 threads, 32 blocks, 65,536 registers and 228 KiB of a multiprocessor.
H100 = GpuLimits(2048, 32, 65_536, 233_472)


@pytest.mark.parametrize(
    ("block", "registers", "shared", "share"),
    [
        ((1024, 1, 1), 32, 0, 1.0),  # two blocks
        ((1024, 1, 1), 64, 0, 0.5),  # 64 × 1,024 registers are all
        ((1024, 1, 1), 33, 0, 0.5),  # given in 256 a warp: 1,056 become 1,280
        ((768, 1, 1), None, None, 0.75),  # two blocks of 768
        ((32, 1, 1), None, None, 0.5),  # 32 blocks of a warp
        ((33, 1, 1), None, None, 1.0),  # two warps are begun
        ((16, 16, 2), 0, 0, 1.0),
        ((256, 1, 1), 40, 0, 0.75),  # 1,280 of a warp: 51 warps, six blocks of 8
        ((256, 1, 1), None, 232_448, 0.125),  # 1,024 bytes are the system's: one block fits
        ((256, 1, 1), None, 232_449, 0.0),
        ((256, 1, 1), None, 115_712, 0.25),
        ((256, 1, 1), 255, 10_000, 0.125),  # 8,192 of a warp: eight warps, one block
    ],
)
def test_the_share_of_threads_that_can_be_resident(block, registers, shared, share):
    assert occupancy(H100, block, registers, shared) == share


@pytest.mark.parametrize(
    ("capability", "blocks"), [("8.0", 32), ("8.6", 16), ("8.9", 24), ("9.0a", 32), ("12.0a", 24), ("10.0", 32)]
)
def test_a_gpu_has_its_capabilitys_limits(capability, blocks):
    figures = {"capability": capability, "shared_memory": {"core": 233_472}, "threads": 2048}
    assert limits_of(figures) == GpuLimits(2048, blocks, 65_536, 233_472)


@pytest.mark.parametrize(
    "figures",
    [{}, {"capability": "gfx942", "shared_memory": {"core": 1}}, {"capability": 9, "shared_memory": {"core": 1}},
     {"capability": "9.0", "shared_memory": 3}, {"capability": "", "shared_memory": {"core": 1}}],
)  # fmt: skip
def test_what_is_no_gpu_of_nvidias_has_no_limits(figures):
    assert limits_of(figures) is None
