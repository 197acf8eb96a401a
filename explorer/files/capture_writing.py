"""A capture as the bytes of its file; `explorer.files.capture` has what the format is, and reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.analysis import Analysis, analyze
from explorer.analysis.attribution import StageCoverage
from explorer.analysis.questions.questions import answers
from explorer.files.container import (
    Blobs,
    pack,
    table,
)
from explorer.files.passes import pack_machine_code, pack_passes, pack_sets
from explorer.model.answers import Fact
from explorer.model.attributes import AttributeColumns
from explorer.model.attribution import Attribution, SourceLine
from explorer.model.capture import Capture
from explorer.model.fates import KINDS as FATES
from explorer.model.fates import Fates
from explorer.model.graph import Floats, Frame, Group, Hierarchy
from explorer.model.links import EquationSets
from explorer.model.live_memory import KINDS
from explorer.model.stage import Stage, is_library_file

COLUMNS = ("op", "type", "scope", "operand_start", "operand", "group", "frame", "line")
_MOST_SELECTED = 1_000  # nodes of a fact
_MOST_ARRAYS = 4  # of a tuple, that are written out
_ATTRIBUTION = ("line", "mark", "by", "equation", "start", "node")


def encode(capture: Capture) -> bytes:
    """Everything of a capture as bytes; reads the stages that were not read yet."""
    blobs = Blobs()
    has_fates = any(stage.name == "hlo" for stage in capture.stages)
    graphs = [stage.graph for stage in capture.stages]
    analysis = analyze(capture)
    links = analysis.links
    fates: Mapping[str, Fates] = analysis.of_fates if has_fates else {}
    # Each question is put to all stages at once, before anything is written: what answers it is loaded and warm.
    mapped = dict(zip(fates, map(attrgetter("mapped"), fates.values()), strict=True))
    contents: list[str] = [*map(attrgetter("text"), capture.stages)]
    trees: list[Hierarchy] = [*map(attrgetter("hierarchy"), graphs)]
    measures: list[Mapping[str, Floats]] = [*map(attrgetter("measures"), graphs)]
    attributes: list[AttributeColumns] = [*map(attrgetter("attribute_table.columns"), graphs)]
    attributions: list[Attribution] = [*map(attrgetter("attribution"), graphs)]
    coverages = [*analysis.of_coverage.values()]
    sets = [links.sets.get(stage.name) for stage in capture.stages]
    single = [*analysis.of_single_iteration.values()]
    words: list[Mapping[int, str]] = [*map(attrgetter("kernel_words"), graphs)]
    limits = analysis.limits.sentences
    lines = _lines(analysis) if has_fates else []
    facts = [
        *map(
            _Facts, capture.stages, contents, sets, trees, measures, attributes, attributions, coverages, single, words
        )
    ]
    header = {
        "function": capture.function,
        "file": capture.file,
        "line": capture.line,
        "signature": capture.signature,
        "durations": dict(capture.durations.seconds),
        **({"reused": list(capture.durations.reused)} if capture.durations.reused else {}),
        "environment": dict(capture.environment),
        "failure": capture.failure,
        "cost": dict(capture.cost),
        "memory": dict(capture.memory),
        "constants": [asdict(constant) for constant in capture.constants],
        "findings": capture.findings.to_dict(),
        "sources": [asdict(source) for source in capture.sources.values()],
        "libraries": [file for file in capture.sources if is_library_file(file)],
        "stages": [
            _stage(blobs, of_stage)
            | _fates(blobs, fates, mapped, of_stage.stage.name)
            | _memory(blobs, analysis, of_stage)
            | _shardings(blobs, capture, of_stage)
            for of_stage in facts
        ],
        "recording_note": capture.recording_note,
        "passes": pack_passes(capture.passes, blobs) if capture.has_passes else None,
        "machine_code": pack_machine_code(capture.machine_code, blobs) if capture.has_machine_code else None,
        "lines": lines,
        "kernel_lines": _kernel_lines(blobs, analysis, lines),
        "limits": list(limits),
        "estimates": _estimates(capture),
        "summary": [_fact(fact) for fact in capture.summary],
        "ask": answers(capture),
    }
    return pack(header, blobs)


def _fact(fact: Fact) -> dict[str, Any]:
    """What the view says on top; a fact about more nodes than anybody looks at leads nowhere."""
    nodes = fact.nodes if len(fact.nodes) <= _MOST_SELECTED else ()
    return {"text": fact.text, "stage": fact.stage, "nodes": list(nodes)}


class _Facts(NamedTuple):
    """A stage with what the viewer, which has no reader and infers nothing, needs of it; a loaded one has it anew."""

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
        "text": blobs.add(content.encode("utf-8", "surrogatepass")),
        "names": list(graph.names),
        "ops": list(graph.ops),
        "types": list(graph.types),
        "scopes": list(graph.scopes),
        "columns": {name: blobs.column(getattr(graph, name)) for name in COLUMNS},
        "unread": blobs.column(graph.unread),
        "measures": {name: blobs.numbers(values) for name, values in measures.items()},
        "attributes": dict(graph.attributes),
        **_node_attributes(blobs, attributes),
        "groups": table(blobs, graph.groups, Group),
        "frames": table(blobs, graph.frames, Frame),
        "coverage": facts.coverage.lines,
        "places": table(blobs, attribution.places, SourceLine),
        "attribution": {name: blobs.column(getattr(attribution, name)) for name in _ATTRIBUTION},
        **({} if sets is None else {"sets": pack_sets(sets, blobs)}),
        "tree": table(blobs, tree.groups, Group),
        "tree_of": blobs.column(tree.group),
        "repeat": blobs.column(tree.repeat),
        "differ": blobs.column(tree.differ),
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
        "kernel_words": {name: blobs.column(np.asarray(values, np.int32)) for name, values in columns.items()},
    }


def _node_attributes(blobs: Blobs, columns: AttributeColumns) -> dict[str, Any]:
    names = ("start", "key", "value")
    return {
        "attribute_keys": list(columns.keys),
        "attribute_values": list(columns.values),
        "attribute_columns": {f"attribute_{name}": blobs.column(getattr(columns, name)) for name in names},
    }


def _fates(blobs: Blobs, all_fates: Mapping[str, Fates], mapped: Mapping[str, float], stage: str) -> dict[str, Any]:
    """What became of a stage's equations."""
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
            "columns": {name: blobs.column(getattr(fates, name)) for name in names},
        }
    }


def _lines(analysis: Analysis) -> list[dict[str, Any]]:
    """What each line costs, for the viewer; without the texts, which it has."""
    return [{name: value for name, value in asdict(row).items() if name != "text"} for row in analysis.lines]


def _estimates(capture: Capture) -> list[list[Any]]:
    """For the viewer: which instruction is expected to take how long, and by whom."""
    return [[row.node.index, row.seconds, row.by] for row in capture.estimates]


def _kernel_lines(blobs: Blobs, analysis: Analysis, lines: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """What each kernel costs on each of these lines, by their index."""
    if not lines:
        return None
    costs = analysis.kernel_lines
    row_of = {(line["file"], line["line"]): row for row, line in enumerate(lines)}
    row = np.asarray([row_of.get(place, -1) for place in [*costs.places, ("", 0)]], np.int32)[costs.line]
    return {
        "kernel": blobs.column(costs.kernel),
        "line": blobs.column(row),
        "amounts": {name: blobs.numbers(amount) for name, amount in costs.amounts.items()},
    }


def _memory(blobs: Blobs, analysis: Analysis, facts: _Facts) -> dict[str, Any]:
    """The live ranges; None for other stages, and for a text in an order that can't be followed."""
    if facts.stage.name != "hlo":
        return {"memory": None}
    try:
        memory = analysis.live_memory
    except Exception:  # what the text does wrong is no reason not to show the rest of it
        return {"memory": None}
    columns = {name: getattr(memory, name) for name in ("order", "node", "array", "kind", "space", "start", "end")}
    # A buffer of a GPU may have more bytes than an int32 counts; of 2**55 and more, all lose as many low bits.
    shift = max(int(memory.size.max(initial=0)).bit_length() - 55, 0)
    size = memory.size >> shift
    columns |= {"low": (size & 0xFFFFFF).astype(np.int32), "high": (size >> 24).astype(np.int32)}
    ranges = {
        "kinds": list(KINDS),
        "scheduled": memory.is_scheduled,
        "shift": shift,
        "columns": {name: blobs.column(values) for name, values in columns.items()},
        "donations": blobs.column([donation.argument.index for donation in memory.donations]),
    }
    return {"memory": ranges}


def _shardings(blobs: Blobs, capture: Capture, facts: _Facts) -> dict[str, Any]:
    """How each value lies on the devices, for the viewer, of a program of several: worked out anew where it is read."""
    if facts.stage.name != "hlo":
        return {}
    try:
        shardings = capture.shardings
    except Exception:  # what the text does wrong is no reason not to show the rest of it
        return {}
    if shardings.mesh.count == 1:
        return {}
    # Thousands of nodes have a few types and shardings between them.
    texts: dict[str, int] = {}
    ways: dict[str, int] = {}
    text: list[int] = []
    way: list[int] = []
    for node in shardings.graph.nodes:
        arrays = shardings.of(node)
        more = f", {len(arrays) - _MOST_ARRAYS} more" if len(arrays) > _MOST_ARRAYS else ""
        text.append(texts.setdefault(", ".join(arrays[:_MOST_ARRAYS]) + more, len(texts)))
        way.append(ways.setdefault(shardings.way_of(node.index), len(ways)))
    return {
        "shardings": {
            "mesh": list(zip(shardings.mesh.names, shardings.mesh.sizes, strict=True)),
            "texts": list(texts),
            "ways": list(ways),
            "text": blobs.column(np.asarray(text, np.int32)),
            "way": blobs.column(np.asarray(way, np.int32)),
        }
    }
