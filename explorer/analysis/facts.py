"""Facts about a capture as sentences: each function finds some, and `summary` ranks them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from os.path import basename

import numpy as np

from explorer.analysis.analysis import analyze
from explorer.analysis.graphs import NO_ENTRY, device_count, graph_of, has_entry, is_op
from explorer.model.answers import Fact, Facts
from explorer.model.attribution import ONE_ITERATION, LineRow
from explorer.model.capture import Capture
from explorer.model.fates import KINDS
from explorer.model.graph import Graph, Ints, Node
from explorer.model.links import EXACT
from explorer.model.machine_code import KernelCode
from explorer.model.text import list_names
from explorer.model.types import parse_type
from explorer.model.units import bytes_text, count_text, share_text

_MAX_FACTS = 4
INTENSE = 10  # FLOPs per byte: above, arithmetic limits the time, below, memory; the viewer has the same value
_MIN_LINE_SHARE = 0.2  # of a line that is mentioned


def summary(capture: Capture) -> Facts:
    """Return the cost, up to three facts in order of their share of the program, and the target if it has one.

    Empty for a failed compile or a capture without `hlo`.
    """
    if capture.failure or graph_of(capture, "hlo") is None:
        return Facts([])  # a failure is shown separately
    if not has_entry(capture.hlo.graph):
        return Facts([Fact("cost", f"{NO_ENTRY[:1].upper()}{NO_ENTRY[1:]}.", 1.0, "hlo"), *target(capture)])
    others = [fact for find in (collectives, precision, copies, memory, eliminated) for fact in find(capture)]
    others.sort(key=lambda fact: -fact.share)
    return Facts([*[*cost(capture), *others][:_MAX_FACTS], *target(capture)])


def cost(capture: Capture) -> Iterator[Fact]:
    """Yield one fact: the number of kernels, and the most expensive line if it has a large share."""
    analysis, graph = analyze(capture), capture.hlo.graph
    kernels, table = analysis.kernels.tolist(), analysis.lines
    if not kernels:
        yield Fact("cost", "No kernel runs: the results are arguments or constants.", 1.0, "hlo")
        return
    count, rows = count_text(len(kernels), "kernel"), [*table]
    if table.seconds:
        measure, verb = "time", "takes"
    else:
        measure, verb = ("FLOPs", "does") if table.flops > INTENSE * table.bytes else ("bytes", "moves")
    of = "known FLOPs" if measure == "FLOPs" and analysis.limits.unknown else measure
    row = max((row for row in rows if row.line), key=lambda row: _share(row, measure, table.seconds), default=None)
    if row is None or _share(row, measure, table.seconds) < _MIN_LINE_SHARE:
        yield Fact("cost", f"{count}.", 1.0, "hlo", tuple(kernels))
        return
    of_line = tuple(np.intersect1d(graph.attribution.nodes(row.file, row.line), kernels).tolist())
    note = f", {ONE_ITERATION}" if row.one_iteration and measure != "time" else ""
    where = line_text(capture, row.file, row.line)
    if len(of_line) == len(kernels) and sum(row.kernels > 0 for row in rows) == 1:
        yield Fact("cost", f"{count}, all of {where}.", 1.0, "hlo", of_line)
        return
    text = f"{count}; {where} {verb} {share_text(_share(row, measure, table.seconds))} of the {of}{note}."
    yield Fact("cost", text, 1.0, "hlo", of_line)


def _share(row: LineRow, measure: str, whole: float | None) -> float:
    if measure == "time":
        return (row.seconds or 0.0) / whole if whole else 0.0
    return row.flops_share if measure == "FLOPs" else row.bytes_share


_LINK_FACTOR = 8  # memory is faster than a link: 7.4 times on an H100, 4.1 on a TPU v5e, more between machines


def collectives(capture: Capture) -> Iterator[Fact]:
    """Yield a fact on the bytes that each device sends; nothing for a program of one device."""
    rows = capture.collectives
    if rows.devices == 1:
        return
    if not rows:
        yield Fact("collectives", f"Its {rows.devices:,} devices send each other nothing.", 0.0, "hlo", ())
        return
    most = rows[0]
    part = "all of it" if len(rows) == 1 else "most of it"
    where = f", {part} for line {most.line}" if most.line and most.wire * most.runs > rows.wire / 2 else ""
    text = f"{count_text(len(rows), 'collective')} between {rows.devices:,} devices: "
    text += f"each sends {bytes_text(rows.wire)} or more{where}."
    moved = analyze(capture).lines.bytes
    share = min(rows.wire * _LINK_FACTOR / moved, 1.0) if moved else 1.0
    yield Fact("collectives", text, share, "hlo", tuple(sorted(row.node.index for row in rows)))


_COPIES = frozenset(("copy", "transpose", "copy-start", "copy-done"))
_STILL = frozenset(("parameter", "constant", "bitcast", "reshape", "tuple", "get-tuple-element", "fusion"))
_MIN_COPIES_SHARE = 0.05  # of the bytes


def copies(capture: Capture) -> Iterator[Fact]:
    """Yield a fact on the kernels that only copy or transpose, if they move 5 % of the bytes or more."""
    graph = capture.hlo.graph
    kernels = analyze(capture).kernels
    # NaN without measures, so that the comparison below is false.
    moved = graph.measures.get("bytes", np.full(len(graph.names), np.nan))
    copying = copying_kernels(graph, kernels)
    share = float(moved[copying].sum() / moved[kernels].sum()) if moved[kernels].sum() > 0 else 0.0
    if not len(copying) or share < _MIN_COPIES_SHARE:
        return
    where = lines_of(capture, graph, copying.tolist())
    if len(copying) == 1:
        text = f"{'The' if len(kernels) == 1 else '1'} kernel only copies or transposes"
    else:
        text = f"{'All' if len(copying) == len(kernels) else f'{len(copying):,}'} kernels only copy or transpose"
    text += f", for {where}" if where else ""
    yield Fact("copies", f"{text}: {share_text(share)} of the bytes.", share, "hlo", tuple(copying.tolist()))


def copying_kernels(graph: Graph, kernels: Ints) -> Ints:
    at, inside = graph.kernel, graph.kernel >= 0
    has_copy, computes = np.zeros((2, len(graph.names)), bool)
    has_copy[at[inside & is_op(graph, _COPIES)]] = True
    computes[at[inside & ~is_op(graph, _COPIES | _STILL)]] = True
    return kernels[has_copy[kernels] & ~computes[kernels]]


_MIN_PEAK = 2**20  # bytes
_MIN_DONATION_SHARE = 0.05  # of the peak


def memory(capture: Capture) -> Iterator[Fact]:
    """Yield a fact on the peak with its largest buffer, and a fact on arguments that could be donated.

    Nothing for a peak below 1 MiB, or for a module without a schedule.
    """
    try:
        live = analyze(capture).live_memory
    except Exception:  # the schedule of a damaged text can't be read
        return
    if not live.is_scheduled or live.peak < _MIN_PEAK:
        return
    largest = live.at()[0]
    where = lines_of(capture, largest.node.graph, [largest.node.index])
    whose = {"argument": "an argument", "donated": "a donated argument", "constant": "a constant"}.get(largest.kind)
    made = f"is {whose}, {_argument(largest.node)}" if whose else f"is made on {where}" if where else ""
    devices = device_count(largest.node.graph)
    each = f" on each of {devices:,} devices" if devices > 1 else ""
    of = f" of the {bytes_text(live.reserved)} that the compiler reserves" if live.besides else ""
    peak = f"{bytes_text(live.peak)}{of}{each}"
    text = f"Memory peaks at {peak}; the largest buffer then, {bytes_text(largest.bytes)}, {made}"
    nodes = (largest.node.index,)
    yield Fact("memory", f"{text.rstrip(', ')}.", largest.bytes / live.peak * 0.5, "hlo", nodes)
    could = sum(donation.bytes for donation in live.donations)
    if could >= _MIN_DONATION_SHARE * live.peak:
        names = tuple(donation.argument.index for donation in live.donations)
        one = len(names) == 1
        which = f"The argument {_argument(live.donations[0].argument)}" if one else f"{len(names):,} arguments"
        of = "an output has its shape and dtype" if one else "outputs have the same shapes and dtypes"
        text = f"{which} of {bytes_text(could)} could be donated: {of}."
        yield Fact("donation", text, could / live.peak, "hlo", names)


def _argument(node: Node) -> str:
    return node.scope or node.name


_PRODUCTS = frozenset(("dot_general", "conv_general_dilated"))
_RUN = frozenset(("dot", "convolution"))
_NARROW = frozenset(("bf16", "f16"))
_WIDE = frozenset(("f32", "f64"))


def precision(capture: Capture) -> Iterator[Fact]:
    """Yield a fact on the bf16 or f16 products that run in f32 or f64, for each such pair of dtypes.

    Only products with exact links count. Nothing without a jaxpr.
    """
    if (jaxpr := graph_of(capture, "jaxpr")) is None:
        return
    rows = product_rows(jaxpr)
    widened: dict[tuple[str, str], list[tuple[int, Sequence[int]]]] = {}
    for row in rows:
        before = operand_type(jaxpr, row)
        after, run = run_type(capture, row) if before in _NARROW else ("", list[int]())
        if after in _WIDE:
            widened.setdefault((before, after), []).append((row, run))
    for (before, after), products in widened.items():
        where = lines_of(capture, jaxpr, [row for row, _ in products])
        which = f"The {before} product runs" if len(products) == 1 else f"{len(products):,} {before} products run"
        text = f"{which} in {after} here{f', of {where}' * bool(where)}."
        nodes = sorted({node for _, run in products for node in run})
        yield Fact("precision", text, len(products) / len(rows), "hlo", tuple(nodes))


def product_rows(jaxpr: Graph) -> list[int]:
    return np.flatnonzero(is_op(jaxpr, _PRODUCTS)).tolist()


def operand_type(graph: Graph, row: int) -> str:
    """Return the common dtype of a product's operands as a jaxpr names it (`i8` for XLA's `s8`), else an empty text."""
    start, end = graph.operand_start[row : row + 2].tolist()
    codes: list[int] = graph.type[graph.operand[start : min(end, start + 2)]].tolist()
    types = {parse_type(graph.types[code]).dtype for code in codes}
    dtype = types.pop() if len(types) == 1 else ""
    return f"i{dtype[1:]}" if dtype[:1] == "s" and dtype[1:].isdigit() else dtype


def run_type(capture: Capture, row: int) -> tuple[str, Sequence[int]]:
    """Return the dtype in which an equation's product runs, empty without exact links, and its instructions."""
    if (hlo := graph_of(capture, "hlo")) is None:
        return "", []
    links = analyze(capture).links
    rows, grades = links.rows("jaxpr", [row], "hlo"), links.grades("hlo")
    run = [node for node in rows if hlo.ops[int(hlo.op[node])] in _RUN]
    types = {_multiplied_type(hlo, node, capture.environment.get("backend", "")) for node in run}
    is_sure = len(types) == 1 and (grades[run] == EXACT).all()
    return (types.pop() if is_sure else ""), run


# Of f32 operands by precision, "" for the default: openxla/xla `IsTf32Allowed` (GPU, from the A100 on), and the TPU's
# passes in bfloat16.
_ROUNDED = {"cuda": {"": "tf32", "high": "tf32"}, "tpu": {"": "bf16", "high": "bf16 in 3 passes"}}


def _multiplied_type(hlo: Graph, node: int, backend: str) -> str:
    """Return in words what a product multiplies in: its algorithm, its precision's dtype, or that of its operands."""
    table = hlo.attribute_table
    if algorithm := table.get(node, "algorithm"):
        return f"the algorithm {algorithm}"
    dtype, precision = operand_type(hlo, node), table.get(node, "operand_precision").strip("{}").split(",")[0]
    return (
        _ROUNDED.get(backend, {}).get("" if precision == "default" else precision, dtype) if dtype == "f32" else dtype
    )


_MAX_EQUATIONS = 2_000  # more take longer than the first display may


def eliminated(capture: Capture) -> Iterator[Fact]:
    graph = graph_of(capture, "jaxpr")
    # Don't record passes for the sake of one sentence.
    if graph is None or len(graph.names) > _MAX_EQUATIONS or analyze(capture).passes is None:
        return
    fates = analyze(capture).of_fates["jaxpr"]
    rows = np.flatnonzero((fates.kind == KINDS.index("eliminated")) & ~fates.inferred & graph.is_equation).tolist()
    if not rows:
        return
    equations = int(graph.is_equation.sum())
    where = lines_of(capture, graph, rows)
    verb = "was" if len(rows) == 1 else "were"
    on = f", on {where}" if where else ""
    text = f"{len(rows):,} of {count_text(equations, 'equation')} {verb} eliminated{on}."
    yield Fact("eliminated", text, len(rows) / equations * 0.2, "jaxpr", tuple(rows))


def target(capture: Capture) -> Iterator[Fact]:
    """Yield a fact on the target that the capture was compiled for, with the estimated time; nothing without one."""
    environment = capture.environment
    if "target" not in environment:
        return
    caveat = environment.get("caveat", "")
    text = f"Compiled for {_devices(capture)}" + (f" ({environment['target']})" if ":" in environment["target"] else "")
    text = f"{text}; {caveat}." if caveat else f"{text}, with none here."
    if estimates := capture.estimates:
        without = f", without {count_text(estimates.unknown, 'kernel')}" if estimates.unknown else ""
        text += f" Estimated {estimates.total}, by {estimates.by}{without}; nothing is measured."
    yield Fact("target", text, 0.0, "hlo", ())


def _devices(capture: Capture) -> str:
    """Return the devices as text: `8 × NVIDIA H100`; `1 of 8 × NVIDIA H100` with the reason if some are unused."""
    environment = capture.environment
    device, count = environment.get("device", environment["target"]), int(environment.get("devices", "1"))
    used = device_count(capture.hlo.graph)
    if used >= count:
        return f"{count:,} × {device}" if count > 1 else device
    return f"{used:,} of {count:,} × {device}, as {'no argument is' if used == 1 else 'arguments are'} sharded"


def line_text(capture: Capture, file: str, line: int) -> str:
    """Return a line as text: `line 3`, or `line 3 of layers.py` for another file than the function's."""
    if file == capture.file:
        return f"line {line}"
    source = capture.sources.get(file)
    return f"line {line} of {source.label if source is not None else basename(file)}"


def lines_of(capture: Capture, graph: Graph, nodes: Iterable[int]) -> str:
    """Return the lines of nodes as text, `line 3` or `lines 3 and 7`; empty if no line is known."""
    attribution, places = graph.attribution, set[tuple[str, int]]()
    codes: list[int] = attribution.line[[*nodes]].tolist()
    for code in {*codes} - {-1}:
        places.add((attribution.places[code].file, attribution.places[code].line))
    if len(places) == 1:
        return line_text(capture, *places.pop())
    own = sorted(line for file, line in places if file == capture.file)
    others = [line_text(capture, file, line) for file, line in sorted(places) if file != capture.file]
    if not others:
        return f"lines {list_names([*map(str, own)])}" if own else ""
    return list_names([*(f"line {line}" for line in own), *others])


_MAX_NAMES = 3  # names of instructions and functions


def kernel_facts(row: KernelCode, platform: str) -> list[tuple[str, str]]:
    """Return (name, text) of each fact about a kernel's machine code; the text of an unknown one begins "not known"."""
    facts = {"cpu": _cpu, "tpu": _tpu}.get(platform, _gpu)(row)
    return [*facts, *([("calls", _names(row.calls))] if row.calls else [])]


def _gpu(row: KernelCode) -> list[tuple[str, str]]:
    block = math.prod(row.block)
    launch = f"{math.prod(row.grid):,} × {count_text(block, 'thread')}" if row.grid else "not known"
    occupancy = "not known" if row.occupancy is None else f"≤ {share_text(row.occupancy)}"
    if row.occupancy is not None and row.registers is None:
        occupancy += ", registers not known"
    return [
        ("blocks", launch if row.grid or not block else f"{count_text(block, 'thread')} each"),
        ("registers", "not known" if row.registers is None else f"{row.registers} a thread"),
        ("spills", _gpu_spills(row)),
        ("shared memory", "not known" if row.shared is None else f"{bytes_text(row.shared)} a block"),
        ("occupancy", occupancy),
        ("tensor cores", _names(row.matrix_instructions) or "not used"),
    ]


def _gpu_spills(row: KernelCode) -> str:
    if row.stack is None:
        return "not known"
    return f"at most {bytes_text(row.stack)} a thread" if row.stack else "none"


def _cpu(row: KernelCode) -> list[tuple[str, str]]:
    width = row.vector_bits
    words = "not known" if width is None else f"{width} bits" if width else "none: one number at a time"
    spills = "none" if row.spills == 0 else "not known: it uses the stack"
    return [("vectors", words), ("spills", spills if "assembly" in row.texts else "not known")]


def _tpu(row: KernelCode) -> list[tuple[str, str]]:
    return [
        ("bundles", "not known" if row.bundles is None else f"{row.bundles:,}"),
        ("spills", "not known" if row.spills is None else f"{row.spills:,}" if row.spills else "none"),
        ("matrix units", _names(row.matrix_instructions) or "not used"),
    ]


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more
