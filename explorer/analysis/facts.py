"""The few sentences that a capture is summed up in: each finder gives facts that hold, `summary` ranks them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from os.path import basename

import numpy as np

from explorer.analysis.analysis import analyze
from explorer.analysis.graphs import graph_of, is_op
from explorer.model.answers import Fact, Facts
from explorer.model.capture import Capture
from explorer.model.fates import KINDS
from explorer.model.graph import Graph, Ints, Node
from explorer.model.line_table import ONE_ITERATION, LineRow
from explorer.model.links import EXACT
from explorer.model.machine_code import KernelCode
from explorer.model.text import list_names
from explorer.model.types import parse_type
from explorer.model.units import bytes_text, count_text, share_text

_MOST = 4  # a fifth sentence is read by nobody
INTENSE = 10
"""FLOPs a byte: above, arithmetic takes the time, below, memory does; the viewer has the same."""
_WORTH_LINE = 0.2  # of the whole: a line with less is none that stands out


def summary(capture: Capture) -> Facts:
    """What runs and what costs most comes first; then what is about the largest share of the program.

    For what hardware it is, where that isn't here, comes last, and always.
    """
    if capture.failure or graph_of(capture, "hlo") is None:
        return Facts([])  # what failed is told as that
    others = [fact for find in (collectives, precision, copies, memory, eliminated) for fact in find(capture)]
    others.sort(key=lambda fact: -fact.share)
    return Facts([*[*cost(capture), *others][:_MOST], *target(capture)])


def cost(capture: Capture) -> Iterator[Fact]:
    """One fact: the kernels, and the costliest line where one stands out."""
    graph = capture.hlo.graph
    kernels = analyze(capture).kernels.tolist()
    if not kernels:
        yield Fact("cost", "No kernel runs: the results are arguments or constants.", 1.0, "hlo")
        return
    count = count_text(len(kernels), "kernel")
    table = analyze(capture).lines
    if table.seconds:
        measure, verb = "time", "takes"
    else:
        measure, verb = ("FLOPs", "does") if table.flops > INTENSE * table.bytes else ("bytes", "moves")
    of = "known FLOPs" if measure == "FLOPs" and analyze(capture).limits.unknown else measure
    row = max((row for row in table if row.line), key=lambda row: _share(row, measure, table.seconds), default=None)
    if row is None or _share(row, measure, table.seconds) < _WORTH_LINE:
        yield Fact("cost", f"{count}.", 1.0, "hlo", tuple(kernels))
        return
    of_line = tuple(np.intersect1d(graph.attribution.nodes(row.file, row.line), kernels).tolist())
    note = f", {ONE_ITERATION}" if row.one_iteration and measure != "time" else ""
    where = line_text(capture, row.file, row.line)
    if len(of_line) == len(kernels) and sum(row.kernels > 0 for row in table) == 1:
        yield Fact("cost", f"{count}, all of {where}.", 1.0, "hlo", of_line)
        return
    text = f"{count}; {where} {verb} {share_text(_share(row, measure, table.seconds))} of the {of}{note}."
    yield Fact("cost", text, 1.0, "hlo", of_line)


def _share(row: LineRow, measure: str, whole: float | None) -> float:
    if measure == "time":
        return (row.seconds or 0.0) / whole if whole else 0.0
    return row.flops_share if measure == "FLOPs" else row.bytes_share


_SLOWER = 8  # a link than memory: 7.4 times on an H100, 4.1 on a TPU v5e, more between machines


def collectives(capture: Capture) -> Iterator[Fact]:
    """One fact where there is any; that a program of several devices has none is worth a sentence too."""
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
    share = min(rows.wire * _SLOWER / moved, 1.0) if moved else 1.0
    yield Fact("collectives", text, share, "hlo", tuple(sorted(row.node.index for row in rows)))


_COPIES = frozenset(("copy", "transpose", "copy-start", "copy-done"))
_STILL = frozenset(("parameter", "constant", "bitcast", "reshape", "tuple", "get-tuple-element", "fusion"))
_WORTH_COPIES = 0.05  # of the bytes


def copies(capture: Capture) -> Iterator[Fact]:
    """One fact, where such kernels move a part of the bytes that is worth a sentence."""
    graph = capture.hlo.graph
    kernels = analyze(capture).kernels
    moved = graph.measures.get("bytes", np.full(len(graph.names), np.nan))
    copying = copying_kernels(graph, kernels)
    share = float(moved[copying].sum() / moved[kernels].sum()) if moved[kernels].sum() > 0 else 0.0
    if not len(copying) or share < _WORTH_COPIES:
        return
    where = lines_of(capture, graph, copying.tolist())
    if len(copying) == 1:
        text = f"{'The' if len(kernels) == 1 else '1'} kernel only copies or transposes"
    else:
        text = f"{'All' if len(copying) == len(kernels) else f'{len(copying):,}'} kernels only copy or transpose"
    text += f", for {where}" if where else ""
    yield Fact("copies", f"{text}: {share_text(share)} of the bytes.", share, "hlo", tuple(copying.tolist()))


def copying_kernels(graph: Graph, kernels: Ints) -> Ints:
    """Those in which nothing but copies and transposes is, and at least one."""
    at, inside = graph.kernel, graph.kernel >= 0
    has_copy, computes = np.zeros((2, len(graph.names)), bool)
    has_copy[at[inside & is_op(graph, _COPIES)]] = True
    computes[at[inside & ~is_op(graph, _COPIES | _STILL)]] = True
    return kernels[has_copy[kernels] & ~computes[kernels]]


_WORTH_PEAK = 2**20  # bytes: below, nobody runs out of memory
_DONATION = 0.05  # of the peak


def memory(capture: Capture) -> Iterator[Fact]:
    """Facts about a module that has a schedule, and a peak that is worth a sentence."""
    try:
        live = analyze(capture).live_memory
    except Exception:  # a text that runs in no order that can be followed
        return
    if not live.is_scheduled or live.peak < _WORTH_PEAK:
        return
    largest = live.at()[0]
    where = lines_of(capture, largest.node.graph, [largest.node.index])
    whose = {"argument": "an argument", "donated": "a donated argument", "constant": "a constant"}.get(largest.kind)
    made = f"is {whose}, {_argument(largest.node)}" if whose else f"is made on {where}" if where else ""
    devices = int(largest.node.graph.attributes.get("num_partitions", "1"))
    each = f" on each of {devices:,} devices" if devices > 1 else ""
    of = f" of the {bytes_text(live.reserved)} that the compiler reserves" if live.besides else ""
    peak = f"{bytes_text(live.peak)}{of}{each}"
    text = f"Memory peaks at {peak}; the largest buffer then, {bytes_text(largest.bytes)}, {made}"
    nodes = (largest.node.index,)
    yield Fact("memory", f"{text.rstrip(', ')}.", largest.bytes / live.peak * 0.5, "hlo", nodes)
    could = sum(donation.bytes for donation in live.donations)
    if could >= _DONATION * live.peak:
        names = tuple(donation.argument.index for donation in live.donations)
        one = len(names) == 1
        which = f"The argument {_argument(live.donations[0].argument)}" if one else f"{len(names):,} arguments"
        types = "its type" if one else "their types"
        text = f"{which} of {bytes_text(could)} could be donated: an output has {types}."
        yield Fact("donation", text, could / live.peak, "hlo", names)


def _argument(node: Node) -> str:
    return node.scope or node.name


_PRODUCTS = frozenset(("dot_general", "conv_general_dilated"))
_RUN = frozenset(("dot", "convolution"))
_NARROW = frozenset(("bf16", "f16"))
_WIDE = frozenset(("f32", "f64"))


def precision(capture: Capture) -> Iterator[Fact]:
    """A fact for each pair of types; only of products that their links are exact for."""
    jaxpr = graph_of(capture, "jaxpr")
    rows = [] if jaxpr is None else product_rows(jaxpr)
    widened: dict[tuple[str, str], list[tuple[int, Sequence[int]]]] = {}
    for row in rows:
        before = operand_type(capture.jaxpr.graph, row)
        after, run = run_type(capture, row) if before in _NARROW else ("", list[int]())
        if after in _WIDE:
            widened.setdefault((before, after), []).append((row, run))
    for (before, after), products in widened.items():
        where = lines_of(capture, capture.jaxpr.graph, [row for row, _ in products])
        which = f"The {before} product runs" if len(products) == 1 else f"{len(products):,} {before} products run"
        text = f"{which} in {after} here{f', of {where}' * bool(where)}."
        nodes = sorted({node for _, run in products for node in run})
        yield Fact("precision", text, len(products) / len(rows), "hlo", tuple(nodes))


def product_rows(jaxpr: Graph) -> list[int]:
    return np.flatnonzero(is_op(jaxpr, _PRODUCTS)).tolist()


def operand_type(graph: Graph, row: int) -> str:
    """Return the one dtype of all operands of a product; empty where they differ."""
    types = {parse_type(operand.type).dtype for operand in Node(graph, row).operands[:2]}
    return types.pop() if len(types) == 1 else ""


def run_type(capture: Capture, row: int) -> tuple[str, Sequence[int]]:
    """Return the dtype that an equation's product runs in, empty where links don't say it, and the instructions."""
    if (hlo := graph_of(capture, "hlo")) is None:
        return "", []
    run = [node for node in analyze(capture).links.rows("jaxpr", [row], "hlo") if hlo.ops[int(hlo.op[node])] in _RUN]
    types = {operand_type(hlo, node) for node in run}
    is_sure = len(types) == 1 and (analyze(capture).links.grades("hlo")[run] == EXACT).all()
    return (types.pop() if is_sure else ""), run


_LARGEST = 2_000  # equations: the fates of more take longer than what is shown first may


def eliminated(capture: Capture) -> Iterator[Fact]:
    """One fact, of those for which the compiler itself says so."""
    graph = graph_of(capture, "jaxpr")
    if graph is None or len(graph) > _LARGEST or not capture.has_passes:  # a sentence is no reason to record them
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
    """One fact where the capture names a target."""
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
    """`8 × NVIDIA H100`; of a program that uses fewer than there are, `1 of 8 × NVIDIA H100`, and why."""
    environment = capture.environment
    device, count = environment.get("device", environment["target"]), int(environment.get("devices", "1"))
    used = int(capture.hlo.graph.attributes.get("num_partitions", "1"))
    if used >= count:
        return f"{count:,} × {device}" if count > 1 else device
    return f"{used:,} of {count:,} × {device}, as {'no argument is' if used == 1 else 'arguments are'} sharded"


def line_text(capture: Capture, file: str, line: int) -> str:
    """`line 3`; of another file than the function's, `line 3 of layers.py`."""
    if file == capture.file:
        return f"line {line}"
    source = capture.sources.get(file)
    return f"line {line} of {source.label if source is not None else basename(file)}"


def lines_of(capture: Capture, graph: Graph, nodes: Iterable[int]) -> str:
    """`line 3`, `lines 3 and 7`, of the lines that nodes belong to; empty where none is known."""
    attribution = graph.attribution
    codes = {int(attribution.line[node]) for node in nodes}
    places = {(attribution.places[code].file, attribution.places[code].line) for code in codes if code >= 0}
    own = sorted(line for file, line in places if file == capture.file)
    others = [line_text(capture, file, line) for file, line in sorted(places) if file != capture.file]
    if not others:
        return f"line{'s' if len(own) > 1 else ''} {list_names([*map(str, own)])}" if own else ""
    return list_names([*(f"line {line}" for line in own), *others])


_NAMES_SHOWN = 3  # names of instructions and functions


def kernel_facts(row: KernelCode, platform: str) -> list[tuple[str, str]]:
    """Names and texts of the facts; what isn't known is said where one would look for it."""
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
    spills = "none" if row.spills == 0 else "not known: it has a frame of its own"
    return [("vectors", words), ("spills", spills if "assembly" in row.texts else "not known")]


def _tpu(row: KernelCode) -> list[tuple[str, str]]:
    return [
        ("bundles", "not known" if row.bundles is None else f"{row.bundles:,}"),
        ("spills", "not known" if row.spills is None else f"{row.spills:,}" if row.spills else "none"),
        ("matrix units", _names(row.matrix_instructions) or "not used"),
    ]


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(names[:_NAMES_SHOWN]) + more
