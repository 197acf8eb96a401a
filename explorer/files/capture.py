"""A capture as a file: what is in the header and the blobs of its container.

A stage's attributes are its `attribute_columns` (`attribute_start`, `attribute_key`, `attribute_value`, compressed
rows) with the strings `attribute_keys` and `attribute_values`; `attributes` are the module's own. Files of version
0.1.0 have none, and it reads those that have them. For 100,000 instructions they are 2 % of a file.

Each stage but the first has `sets`, the columns of `explorer.model.equation_sets` that link it to the first. What is
inferred is inferred anew where a capture is read, by what Explorer knows then; what is exact stays. Formats 1 and 2 had
`keys` instead: by stage, a number for each node, the same for the nodes that correspond.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from operator import attrgetter
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.cost.limits import count_limits, is_one_iteration
from explorer.analysis.cost.lines import kernel_lines
from explorer.analysis.coverage import StageCoverage, stage_coverages
from explorer.analysis.questions.questions import answers
from explorer.errors import CaptureFileError
from explorer.files.container import (
    BlobReader,
    Blobs,
    pack,
    read_column,
    read_numbers,
    read_table,
    refusal,
    table,
    unpack,
    with_entry,
)
from explorer.files.equation_sets import pack_sets, read_exact_sets
from explorer.files.machine_code import pack_machine_code, unpack_machine_code
from explorer.files.passes import pack_passes, unpack_passes
from explorer.files.unpacking import LARGEST, Unpacker, UnpackingError, read_whole
from explorer.files.validate import (
    are_row_starts,
    check_frames,
    dataclass_from,
    floats,
    integer,
    integers,
    text,
    texts,
    texts_by_name,
)
from explorer.files.whole import write_whole
from explorer.model.attributes import AttributeColumns, Attributes
from explorer.model.attribution import Attribution, SourceLine
from explorer.model.bookmark import Bookmark
from explorer.model.capture import Capture
from explorer.model.compilation import Constant, Durations
from explorer.model.equation_sets import EquationSets
from explorer.model.facts import Fact
from explorer.model.fates import KINDS as FATES
from explorer.model.fates import Fates
from explorer.model.findings.findings import Findings
from explorer.model.graph import Floats, Frame, Graph, Group, Ints
from explorer.model.hierarchy import Hierarchy
from explorer.model.live_memory import KINDS
from explorer.model.machine_code import MachineCode
from explorer.model.passes import Passes
from explorer.model.source import Source, is_library_file
from explorer.model.stage import Stage

_COLUMNS = ("op", "type", "scope", "operand_start", "operand", "group", "frame", "line")
_MOST_STAGES = 16  # there are three, and up to two more of a module that was opened
_MOST_SELECTED = 1_000  # nodes of a fact
_ATTRIBUTION = ("line", "mark", "by", "equation", "start", "node")


def encode(capture: Capture) -> bytes:
    """Everything of a capture as bytes; reads the stages that were not read yet."""
    blobs = Blobs()
    has_fates = any(stage.name == "hlo" for stage in capture.stages)
    graphs = [stage.graph for stage in capture.stages]
    links = capture.links
    fates: Mapping[str, Fates] = capture.all_fates if has_fates else {}
    # Each question is put to all stages at once, before anything is written: what answers it is loaded and warm.
    mapped = dict(zip(fates, map(attrgetter("mapped"), fates.values()), strict=True))
    contents: list[str] = [*map(attrgetter("text"), capture.stages)]
    trees: list[Hierarchy] = [*map(attrgetter("hierarchy"), graphs)]
    measures: list[Mapping[str, Floats]] = [*map(attrgetter("measures"), graphs)]
    attributes: list[AttributeColumns] = [*map(attrgetter("attribute_table.columns"), graphs)]
    attributions: list[Attribution] = [*map(attrgetter("attribution"), graphs)]
    coverages = [*stage_coverages(capture).values()]
    sets = [links.sets.get(stage.name) for stage in capture.stages]
    single = [*map(is_one_iteration, graphs)]
    words: list[Mapping[int, str]] = [*map(attrgetter("kernel_words"), graphs)]
    limits = count_limits(graphs[-1]).sentences if graphs else ()
    lines = _lines(capture)
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
            | _memory(blobs, capture, of_stage)
            | _shardings(blobs, capture, of_stage)
            for of_stage in facts
        ],
        "recording_note": capture.recording_note,
        "passes": pack_passes(capture.passes, blobs) if capture.has_passes else None,
        "machine_code": pack_machine_code(capture.machine_code, blobs) if capture.has_machine_code else None,
        "lines": lines,
        "kernel_lines": _kernel_lines(blobs, capture, lines),
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


def save(capture: Capture, path: str | PathLike[str]) -> None:
    """Write a capture to a file, whole or not at all; with where a person looks, which isn't what was compiled."""
    bookmark = capture.bookmark.to_dict()
    write_whole(path, with_entry(capture.wire, "bookmark", bookmark) if bookmark else capture.wire)


def load(path: str | PathLike[str]) -> Capture:
    """The capture in a file that `Capture.save` wrote.

    Raises:
        CaptureFileError: As `decode`.
        OSError: The file can't be read.
    """
    try:
        data = read_whole(path, LARGEST, "a capture")
    except UnpackingError as error:
        raise CaptureFileError(f"{error}.") from error
    return decode(data)


def decode(data: bytes, unpacker: Unpacker | None = None) -> Capture:
    """The capture that `encode` was given.

    Args:
        unpacker: Of the file that the data are a part of; None if they are all of it.

    Raises:
        CaptureFileError: The data is no capture, is truncated or altered, too large, or comes from a newer Explorer.
    """
    version, header, blobs = unpack(data, unpacker)
    with refusal():
        sources = {source["file"]: dataclass_from(Source, source) for source in header["sources"]}
        if len(header["stages"]) > _MOST_STAGES:
            raise ValueError(f"it has {len(header['stages']):,} stages; at most {_MOST_STAGES} are read")
        # The checksum is the payload's: that an altered prefix says another format shows in what only a later one has.
        for stage in header["stages"]:
            is_format = 3 if "keys" not in stage else 2 if "measures" in stage else 1
            if version != is_format:
                raise CaptureFileError(
                    f"this capture was altered: it says format {version}, and has what format {is_format} has."
                )
        return Capture(
            function=text(header["function"]),
            file=text(header["file"]),
            line=integer(header["line"]),
            signature=text(header["signature"]),
            stages=tuple(_read_stage(stage, blobs) for stage in header["stages"]),
            durations=_durations(header),
            environment=texts_by_name(header["environment"]),
            failure=text(header["failure"]),
            cost=floats(header["cost"]),
            memory=integers(header["memory"]),
            constants=tuple(dataclass_from(Constant, constant) for constant in header["constants"]),
            # Captures from before there were rules have none.
            findings=Findings.from_dict(header["findings"]) if "findings" in header else Findings(()),
            read_source=sources.get,
            read_passes=_read_passes(header.get("passes"), blobs, header["stages"]),
            read_code=_read_code(header.get("machine_code"), blobs),
            recording_note=text(header.get("recording_note", "")),
            exact_sets=read_exact_sets(header["stages"], blobs),
            saved_bookmark=Bookmark.from_dict(header.get("bookmark", {})),
        )


def _read_code(header: dict[str, Any] | None, blobs: BlobReader) -> Callable[[], MachineCode] | None:
    def read() -> MachineCode:
        assert header is not None
        with refusal():
            return unpack_machine_code(header, blobs)

    return None if header is None else read


def _read_passes(
    header: dict[str, Any] | None, blobs: BlobReader, stages: Sequence[dict[str, Any]]
) -> Callable[[], Passes] | None:
    def read() -> Passes:
        assert header is not None
        with refusal():
            return unpack_passes(header, blobs, len(stages[0]["names"]) if stages else 0)

    return None if header is None else read


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
        "columns": {name: blobs.column(getattr(graph, name)) for name in _COLUMNS},
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
        "grades": dict(facts.coverage.grades),
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


def _read_node_attributes(header: dict[str, Any], blobs: BlobReader) -> Attributes | None:
    """None for a file of version 0.1.0, which has no attributes."""
    if "attribute_columns" not in header:
        return None
    places = header["attribute_columns"]
    start, key, value = (read_column(places[f"attribute_{name}"], blobs) for name in ("start", "key", "value"))
    columns = AttributeColumns(start, key, value, texts(header["attribute_keys"]), texts(header["attribute_values"]))
    return Attributes(lambda: columns)


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


def _lines(capture: Capture) -> list[dict[str, Any]]:
    """What each line costs, for the viewer; without the texts, which it has."""
    if not any(stage.name == "hlo" for stage in capture.stages):
        return []
    return [{name: value for name, value in asdict(row).items() if name != "text"} for row in capture.lines()]


def _estimates(capture: Capture) -> list[list[Any]]:
    """For the viewer: which instruction is expected to take how long, and by whom."""
    return [[row.node.index, row.seconds, row.by] for row in capture.estimates]


def _kernel_lines(blobs: Blobs, capture: Capture, lines: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """What each kernel costs on each of these lines, by their index."""
    if not lines:
        return None
    costs = kernel_lines(capture)
    row_of = {(line["file"], line["line"]): row for row, line in enumerate(lines)}
    row = np.asarray([row_of.get(place, -1) for place in [*costs.places, ("", 0)]], np.int32)[costs.line]
    return {
        "kernel": blobs.column(costs.kernel),
        "line": blobs.column(row),
        "amounts": {name: blobs.numbers(amount) for name, amount in costs.amounts.items()},
    }


def _memory(blobs: Blobs, capture: Capture, facts: _Facts) -> dict[str, Any]:
    """The live ranges; None for other stages, and for a text in an order that can't be followed."""
    if facts.stage.name != "hlo":
        return {"memory": None}
    try:
        memory = capture.live_memory
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


_MOST_ARRAYS = 4  # of a tuple, that are written out


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


def _read_stage(header: dict[str, Any], blobs: BlobReader) -> Stage:
    def read() -> tuple[str, Graph]:
        with refusal():
            # Format 1 had no measures.
            measures = {name: read_numbers(place, blobs) for name, place in header.get("measures", {}).items()}
            graph = Graph(
                names=texts(header["names"]),
                ops=texts(header["ops"]),
                types=texts(header["types"]),
                scopes=texts(header["scopes"]),
                groups=read_table(header["groups"], blobs, Group),
                frames=read_table(header["frames"], blobs, Frame),
                **{name: read_column(header["columns"][name], blobs) for name in _COLUMNS},  # pyright: ignore
                measure=lambda _: measures,
                unread=tuple(read_column(header["unread"], blobs).tolist()) if "unread" in header else (),
                attributes=texts_by_name(header.get("attributes", {})),
                node_attributes=_read_node_attributes(header, blobs),
            )
            _check(graph)
            content = blobs.text(header["text"])
            return content, graph if graph.node_attributes else graph.with_attributes_of(content)

    return Stage(text(header["name"]), read)


def _check(graph: Graph) -> None:
    """Raise ValueError if an index of a graph leads out of it."""
    size = len(graph.names)
    _check_columns(graph, size)
    if not are_row_starts(graph.operand_start, size, len(graph.operand)) or not _is_within(graph.operand, 0, size):
        raise ValueError("an operand leads out of the graph")
    _check_attributes(graph.attribute_table.columns, size)
    for name, values in graph.measures.items():
        if len(values) != size:
            raise ValueError(f"measure {name} has {len(values):,} values for {size:,} nodes")
    parents = [(group.parent, len(graph.groups)) for group in graph.groups]
    parents += [(group.caller, size) for group in graph.groups]
    parents += [(frame.parent, len(graph.frames)) for frame in graph.frames]
    if not all(-1 <= index < length for index, length in parents):
        raise ValueError("a group or frame leads out of the graph")
    check_frames(graph.frames)


def _check_columns(graph: Graph, size: int) -> None:
    limits = {
        "op": (0, len(graph.ops)),
        "type": (0, len(graph.types)),
        "scope": (0, len(graph.scopes)),
        "group": (-1, len(graph.groups)),
        "frame": (-1, len(graph.frames)),
        "line": (-(2**31), 2**31),
    }
    for name, (lowest, end) in limits.items():
        column: Ints = getattr(graph, name)
        if len(column) != size or not _is_within(column, lowest, end):
            raise ValueError(f"column {name} leads out of the graph")


def _check_attributes(columns: AttributeColumns, size: int) -> None:
    if len(columns.key) != len(columns.value) or not are_row_starts(columns.start, size, len(columns.key)):
        raise ValueError("the attributes are not those of the graph's nodes")
    for codes, strings in ((columns.key, columns.keys), (columns.value, columns.values)):
        if not _is_within(codes, 0, len(strings)):
            raise ValueError("an attribute leads out of its table")


def _is_within(indices: Ints, lowest: int, end: int) -> bool:
    return not len(indices) or bool(lowest <= indices.min() <= indices.max() < end)


def _durations(header: dict[str, Any]) -> Durations:
    """Files from before it was known what JAX had already say nothing of it."""
    return replace(dataclass_from(Durations, header["durations"]), reused=tuple(texts(header.get("reused", []))))
