"""Captures and diffs as bytes; `explorer.files.capture` describes the format of captures and reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.analysis import Analysis
from explorer.analysis.attribution import StageCoverage
from explorer.analysis.diff.diff import Diff, Fusion, Value
from explorer.analysis.display import prepare
from explorer.analysis.graphs import device_count
from explorer.files.container import Blobs, pack, table
from explorer.files.findings import to_dict
from explorer.files.passes import pack_machine_code, pack_passes, pack_sets
from explorer.model.answers import Fact
from explorer.model.attributes import AttributeColumns
from explorer.model.attribution import Attribution, LineRow, SourceLine
from explorer.model.capture import Capture
from explorer.model.fates import KINDS as FATES
from explorer.model.fates import Fates
from explorer.model.graph import Floats, Frame, Group, Hierarchy
from explorer.model.links import EquationSets
from explorer.model.live_memory import KINDS
from explorer.model.stage import Stage, is_library_file

COLUMNS = ("op", "type", "scope", "operand_start", "operand", "group", "frame", "line")
_MAX_FACT_NODES = 1_000  # a fact with more nodes is written without them
_MAX_TUPLE_ARRAYS = 4  # written out
_ATTRIBUTION = ("line", "mark", "by", "equation", "start", "node")


def encode(capture: Capture) -> bytes:
    """Return a capture as the bytes of a file; this reads all stages and computes their analysis."""
    analysis = prepare(capture)
    has_fates = "hlo" in analysis.graphs
    graphs = [*analysis.graphs.values()]
    links = analysis.links
    fates: Mapping[str, Fates] = analysis.of_fates if has_fates else {}
    is_sharded = has_fates and device_count(analysis.graphs["hlo"]) > 1
    findings = to_dict(capture.findings)
    # Each property is read for all stages in a row, so that its code is loaded and warm.
    mapped = dict(zip(fates, map(attrgetter("mapped"), fates.values()), strict=True))
    limits, seconds = analysis.limits.sentences, capture.durations.seconds
    rows = [*analysis.lines] if has_fates else []
    estimates, summary = capture.estimates.rows, [*capture.summary]
    sources, has_code = capture.sources, capture.has_machine_code
    contents: list[str] = [*map(attrgetter("text"), capture.stages)]
    trees: list[Hierarchy] = [*map(attrgetter("hierarchy"), graphs)]
    measures: list[Mapping[str, Floats]] = [*map(attrgetter("measures"), graphs)]
    attributes: list[AttributeColumns] = [*map(attrgetter("attribute_table.columns"), graphs)]
    attributions: list[Attribution] = [*map(attrgetter("attribution"), graphs)]
    coverages = [*analysis.of_coverage.values()]
    sets = [links.sets.get(stage.name) for stage in capture.stages]
    single = [*analysis.of_single_iteration.values()]
    words: list[Mapping[int, str]] = [*map(attrgetter("kernel_words"), graphs)]
    blobs, lines = Blobs(), [_line(row) for row in rows]
    columns = (contents, sets, trees, measures, attributes, attributions, coverages, single, words)
    facts = [*map(_Facts, capture.stages, *columns)]
    header = {
        "function": capture.function,
        "file": capture.file,
        "line": capture.line,
        "signature": capture.signature,
        "durations": dict(seconds),
        **({"reused": list(capture.durations.reused)} if capture.durations.reused else {}),
        "environment": dict(capture.environment),
        "failure": capture.failure,
        "cost": dict(capture.cost),
        "memory": dict(capture.memory),
        "constants": [asdict(constant) for constant in capture.constants],
        "findings": findings,
        "sources": [asdict(source) for source in sources.values()],
        "libraries": [file for file in sources if is_library_file(file)],
        "stages": [
            _stage(blobs, of_stage)
            | _fates(blobs, fates, mapped, of_stage.stage.name)
            | _memory(blobs, analysis, of_stage)
            | (_shardings(blobs, capture) if is_sharded and of_stage.stage.name == "hlo" else {})
            for of_stage in facts
        ],
        "recording_note": capture.recording_note,
        "passes": None if analysis.passes is None else pack_passes(analysis.passes, blobs),
        "machine_code": pack_machine_code(capture.machine_code, blobs) if has_code else None,
        "lines": lines,
        "kernel_lines": _kernel_lines(blobs, analysis, lines),
        "limits": list(limits),
        "estimates": [[row.node.index, row.seconds, row.by] for row in estimates],
        "summary": [_fact(fact) for fact in summary],
    }
    return pack(header, blobs)


def _fact(fact: Fact) -> dict[str, Any]:
    nodes = fact.nodes if len(fact.nodes) <= _MAX_FACT_NODES else ()
    return {"text": fact.text, "stage": fact.stage, "nodes": list(nodes)}


class _Facts(NamedTuple):
    """Stage with everything inferred about it: the viewer infers nothing, and a loaded capture infers it again."""

    stage: Stage
    text: str
    sets: EquationSets | None
    tree: Hierarchy
    measures: Mapping[str, Floats]
    attributes: AttributeColumns
    attribution: Attribution
    coverage: StageCoverage
    is_one_iteration: NDArray[np.bool_]
    kernel_words: Mapping[int, str]


def _stage(blobs: Blobs, facts: _Facts) -> dict[str, Any]:
    stage, content, sets, tree, measures, attributes, attribution, *_ = facts
    graph = stage.graph
    return {
        "name": stage.name,
        # A path in the text may hold lone surrogates.
        "text": blobs.add(content.encode("utf-8", "surrogatepass")),
        "names": list(graph.names),
        "ops": list(graph.ops),
        "types": list(graph.types),
        "scopes": list(graph.scopes),
        "columns": blobs.columns({name: getattr(graph, name) for name in COLUMNS}),
        "unread": blobs.column(graph.unread),
        "measures": {name: blobs.numbers(values) for name, values in measures.items()},
        "attributes": dict(graph.attributes),
        "attribute_keys": list(attributes.keys),
        "attribute_values": list(attributes.values),
        "attribute_columns": blobs.columns(
            {f"attribute_{name}": getattr(attributes, name) for name in ("start", "key", "value")}
        ),
        "groups": table(blobs, graph.groups, Group),
        "frames": table(blobs, graph.frames, Frame),
        "coverage": facts.coverage.lines,
        "places": table(blobs, attribution.places, SourceLine),
        "attribution": blobs.columns({name: getattr(attribution, name) for name in _ATTRIBUTION}),
        **({} if sets is None else {"sets": pack_sets(sets, blobs)}),
        "tree": table(blobs, tree.groups, Group),
        **blobs.columns({"tree_of": tree.group, "repeat": tree.repeat, "differ": tree.differ}),
        "difference": tree.difference,
        "one_iteration": blobs.column(np.flatnonzero(facts.is_one_iteration).astype(np.int32)),
        **_kernel_words(blobs, facts.kernel_words),
        "twin": blobs.column(tree.twin),
        "grades": dict(facts.coverage.links),
    }


def _kernel_words(blobs: Blobs, words: Mapping[int, str]) -> dict[str, Any]:
    if not words:
        return {}
    texts = sorted({*words.values()})
    codes = {text: code for code, text in enumerate(texts)}
    columns = {"node": [*words], "text": [codes[text] for text in words.values()]}
    return {
        "kernel_texts": texts,
        "kernel_words": blobs.columns(columns),
    }


def _fates(blobs: Blobs, all_fates: Mapping[str, Fates], mapped: Mapping[str, float], stage: str) -> dict[str, Any]:
    """Return `{"fates": …}`, what happened to each equation of a stage, for the header; empty for stages without."""
    if stage not in all_fates:
        return {}
    fates = all_fates[stage]
    names = ("kind", "inferred", "kernel_start", "kernel", "why", "before", "after", "step")
    return {
        "fates": {
            "kinds": list(FATES),
            "texts": list(fates.texts),
            "passes": {str(number): name for number, name in fates.pass_names.items()},
            "mapped": mapped[stage],
            "columns": blobs.columns({name: getattr(fates, name) for name in names}),
        }
    }


def _line(row: LineRow) -> dict[str, Any]:
    """Return the fields of a row of the line table except its text, which the viewer has already, and its depth, 0."""
    return {name: value for name, value in asdict(row).items() if name not in ("text", "depth")}


def _kernel_lines(blobs: Blobs, analysis: Analysis, lines: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return columns with each kernel's cost on each line; None without lines.

    Each entry has a kernel, an index into `lines` (-1 for no line), and an amount per measure.
    """
    if not lines:
        return None
    costs = analysis.kernel_lines
    row_of = {(line["file"], line["line"]): row for row, line in enumerate(lines)}
    # A cost without a line has index -1, which is the entry added at the end.
    row = np.asarray([row_of.get(place, -1) for place in [*costs.places, ("", 0)]], np.int32)[costs.line]
    return {
        **blobs.columns({"kernel": costs.kernel, "line": row}),
        "amounts": {name: blobs.numbers(amount) for name, amount in costs.amounts.items()},
    }


def _memory(blobs: Blobs, analysis: Analysis, facts: _Facts) -> dict[str, Any]:
    """Return `{"memory": live ranges}` for the header, or `{"memory": None}` before HLO and for a faulty text."""
    if facts.stage.name != "hlo":
        return {"memory": None}
    try:
        memory = analysis.live_memory
    except Exception:  # a faulty text is still shown without its memory
        return {"memory": None}
    columns = {name: getattr(memory, name) for name in ("order", "node", "array", "kind", "space", "start", "end")}
    # A GPU's buffer may have more bytes than an int32 counts; past 2**55 bytes, all sizes lose the same low bits.
    shift = max(int(memory.size.max(initial=0)).bit_length() - 55, 0)
    size = memory.size >> shift
    columns |= {"low": (size & 0xFFFFFF).astype(np.int32), "high": (size >> 24).astype(np.int32)}
    ranges = {
        "kinds": list(KINDS),
        "scheduled": memory.is_scheduled,
        "shift": shift,
        "columns": blobs.columns(columns),
        "donations": blobs.column([donation.argument.index for donation in memory.donations]),
    }
    return {"memory": ranges}


def _shardings(blobs: Blobs, capture: Capture) -> dict[str, Any]:
    """Return `{"shardings": …}`, how each HLO value is split over devices, for the header; empty for a faulty text."""
    try:
        shardings = capture.shardings
    except Exception:  # a faulty text is still shown without its shardings
        return {}
    # Thousands of nodes have a few types and shardings between them.
    texts: dict[str, int] = {}
    ways: dict[str, int] = {}
    text: list[int] = []
    way: list[int] = []
    for node in shardings.graph.nodes:
        arrays = shardings.of(node)
        more = f", {len(arrays) - _MAX_TUPLE_ARRAYS} more" if len(arrays) > _MAX_TUPLE_ARRAYS else ""
        text.append(texts.setdefault(", ".join(arrays[:_MAX_TUPLE_ARRAYS]) + more, len(texts)))
        way.append(ways.setdefault(shardings.way_of(node.index), len(ways)))
    return {
        "shardings": {
            "mesh": list(zip(shardings.mesh.names, shardings.mesh.sizes, strict=True)),
            "texts": list(texts),
            "ways": list(ways),
            **blobs.columns({"text": text, "way": way}),
        }
    }


def encode_diff(diff: Diff) -> bytes:
    """Return a diff as the bytes of a message to its view, in the container format of captures."""
    blobs = Blobs()
    kept = [_fusion(diff, old, f"{old.holds} → {new.holds}") for old, new in diff.fusions_changed]
    header = {
        "diff": {
            "titles": [f"{one.function}{one.signature}" for one in (diff.a, diff.b)],
            "headline": diff.headline,
            "functions": [diff.a.function, diff.b.function],
            "values": [_value(value) for value in diff.values],
            "durations": [_value(value) for value in diff.durations],
            "fusions": {
                "gained": [_fusion(diff, one, one.holds) for one in diff.fusions_gained],
                "lost": [_fusion(diff, one, one.holds) for one in diff.fusions_lost],
                "changed": kept,
            },
            "stages": [pack_passes(stage.passes, blobs) for stage in diff.stages.values()],
        }
    }
    return pack(header, blobs)


def _value(value: Value) -> list[Any]:
    return [value.name, value.a, value.b, value.ratio]


def _fusion(diff: Diff, fusion: Fusion, holds: str) -> list[str]:
    return [diff.hlo.name_of(fusion.node), holds, ", ".join(fusion.lines)]
