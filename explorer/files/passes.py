"""Links, passes and machine code as columns of a capture's file."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

import numpy as np

from explorer.analysis.facts import kernel_facts
from explorer.analysis.graphs import innermost_own
from explorer.files.container import (
    BlobReader,
    Blobs,
    are_row_starts,
    boolean,
    check_frames,
    integer,
    number,
    read_column,
    read_numbers,
    read_table,
    table,
    text,
    texts,
)
from explorer.model.graph import Frame, Ints
from explorer.model.links import EXACT, EquationSets
from explorer.model.machine_code import LANGUAGES, KernelCode, MachineCode
from explorer.model.passes import LINK_KINDS, Pass, Passes, PassLink
from explorer.model.text_versions import Snapshot, Versions

_COLUMNS = ("key", "op", "type", "frame", "operand_start", "operand", "computation")
_MAX_SNAPSHOT_LINES = 300_000_000  # of all snapshots: 200 of a step of 100,000 instructions have 20,000,000
_STRINGS = ("names", "computations", "ops", "types")
_COUNTS = ("born", "died", "changed", "moved", "instructions", "snapshot", "first")


@dataclass(frozen=True, slots=True)
class _PassName:
    """Row of the table of pass names."""

    name: str
    pipeline: str


def pack_passes(passes: Passes, blobs: Blobs) -> dict[str, Any]:
    """Return the passes as a JSON object for the header; their lines, columns and links are added to the blobs."""
    seconds = [math.nan if step.seconds is None else step.seconds for step in passes.all]
    return {
        "complete": passes.is_complete,
        "omitted": passes.omitted,
        "passes": table(blobs, [_PassName(step.name, step.pipeline) for step in passes.all], _PassName),
        "counts": blobs.columns({name: [*map(int, map(attrgetter(name), passes.all))] for name in _COUNTS}),
        "seconds": blobs.numbers(np.asarray(seconds, np.float64)),
        **_pack_versions(passes.versions, blobs),
        # For the viewer, which infers nothing; a loaded capture infers them again.
        "links": _pack_links(passes.links, blobs),
    }


def _pack_versions(versions: Versions, blobs: Blobs) -> dict[str, Any]:
    return {
        "lines": blobs.add("\n".join(versions.lines).encode("utf-8", "surrogatepass")),
        "columns": blobs.columns({name: getattr(versions, name) for name in _COLUMNS}),
        **{name: list(getattr(versions, name)) for name in _STRINGS},
        "frames": table(blobs, versions.frames, Frame),
        **blobs.columns(
            {
                "own": innermost_own(versions.frames),
                "runs": np.concatenate([np.zeros(0, np.int32), *(shot.runs for shot in versions.snapshots)]),
                "run_counts": [len(shot.runs) for shot in versions.snapshots],
                "firsts": [shot.first for shot in versions.snapshots],
            }
        ),
        **(
            {}
            if versions.equations is None  # the equations had no numbers
            else {"equations": pack_sets(versions.equations, blobs), "relabelled": blobs.column(versions.relabelled)}
        ),
    }


def _pack_links(links: Sequence[PassLink], blobs: Blobs) -> dict[str, Any]:
    # By field: a large program has a hundred thousand links.
    columns = (
        dict(zip(PassLink._fields, zip(*links, strict=True), strict=True))
        if links
        else dict.fromkeys(PassLink._fields, ())
    )
    return blobs.columns({**columns, "kind": [*map(LINK_KINDS.index, columns["kind"])]})


def unpack_passes(header: dict[str, Any], blobs: BlobReader, equations: int = 0) -> Passes:
    """Return the passes in a header, as written by `pack_passes`.

    Args:
        equations: Number of nodes of the first stage.

    Raises:
        ValueError, KeyError, …: The content doesn't fit the format; callers report it.
    """
    versions = _unpack_versions(header, blobs, equations)
    counts = {name: read_column(header["counts"][name], blobs).tolist() for name in _COUNTS}
    seconds = read_numbers(header["seconds"], blobs).tolist()
    passes = [
        Pass(
            index=i,
            name=named.name,
            pipeline=named.pipeline,
            seconds=None if math.isnan(seconds[i]) else seconds[i],
            versions=versions,
            **{name: bool(values[i]) if name == "moved" else values[i] for name, values in counts.items()},
        )
        for i, named in enumerate(read_table(header["passes"], blobs, _PassName))
    ]
    shots = len(versions.snapshots)
    if not all(0 <= step.first < shots and 0 <= step.snapshot < shots for step in passes):
        raise ValueError("a pass has an index outside of its snapshots")
    return Passes(versions, passes, is_complete=boolean(header["complete"]), omitted=text(header["omitted"]))


def _unpack_versions(header: dict[str, Any], blobs: BlobReader, equations: int) -> Versions:
    lines = blobs.text(header["lines"]).split("\n")
    runs = read_column(header["runs"], blobs)
    # A run takes 8 bytes here, and may replay millions of lines.
    replayed = int(runs.reshape(-1, 2)[:, 1].sum(dtype=np.int64))
    if replayed > _MAX_SNAPSHOT_LINES:
        raise ValueError(f"its snapshots have {replayed:,} lines; at most {_MAX_SNAPSHOT_LINES:,} are read")
    ends = np.cumsum(read_column(header["run_counts"], blobs)).tolist()
    firsts = read_column(header["firsts"], blobs).tolist()
    versions = Versions(
        lines=lines,
        **{name: read_column(header["columns"][name], blobs) for name in _COLUMNS},
        **{name: texts(header[name]) for name in _STRINGS},
        frames=read_table(header["frames"], blobs, Frame),
        snapshots=[
            Snapshot(runs[begin:end], first) for begin, end, first in zip([0, *ends], ends, firsts, strict=False)
        ],
        **_read_equations(header, blobs),
    )
    _check(versions)
    _check_equations(versions, equations)
    return versions


def _read_equations(header: dict[str, Any], blobs: BlobReader) -> dict[str, Any]:
    """Return the arguments `equations` and `relabelled` of `Versions`; empty for files before format 3."""
    if "equations" not in header:
        return {}
    return {
        "equations": read_sets(header["equations"], blobs),
        "relabelled": read_column(header["relabelled"], blobs),
    }


def _check_equations(versions: Versions, equations: int) -> None:
    """Raise ValueError if the lines' equations, or their later states, have an index out of range."""
    if versions.equations is None:
        return
    began, line = versions.relabelled.reshape(-1, 2).T
    rows = len(versions.lines)
    if not versions.equations.fits(rows + len(line), equations) or (
        len(line) and not (0 <= line.min() <= line.max() < rows and began.min() >= 0)
    ):
        raise ValueError("the equations of the passes have an index outside of the capture")


def _check(versions: Versions) -> None:
    """Raise ValueError if a column has a wrong length or an index out of range, or a snapshot can't be rebuilt."""
    rows, keys = len(versions.lines), len(versions.names)
    limits: list[tuple[Ints, int, int, int]] = [
        (versions.key, rows, -1, keys),
        (versions.op, rows, -1, len(versions.ops)),
        (versions.type, rows, -1, len(versions.types)),
        (versions.frame, rows, -1, len(versions.frames)),
        (versions.operand, len(versions.operand), 0, keys),
        (versions.computation, keys, 0, len(versions.computations)),
        (versions.operand_start, rows + 1, 0, len(versions.operand) + 1),
    ]
    for column, length, lowest, end in limits:
        if len(column) != length or (length and not lowest <= column.min() <= column.max() < end):
            raise ValueError("the record of XLA's passes has a number out of range, or a column of a wrong length")
    if not are_row_starts(versions.operand_start, rows, len(versions.operand)):
        raise ValueError("the operands of the passes are not in rows")
    check_frames(versions.frames)
    # Replays all snapshots, which raises an error for a run that leads out of them.
    versions.rows(len(versions.snapshots) - 1)


_SET_COLUMNS = ("code", "start", "node", "grade")


def pack_sets(sets: EquationSets, blobs: Blobs) -> dict[str, Any]:
    """Add equation sets to the blobs, and return `[offset, size]` of each column by its name."""
    return blobs.columns({name: getattr(sets, name) for name in _SET_COLUMNS})


def read_sets(header: dict[str, Any], blobs: BlobReader) -> EquationSets:
    """Return the sets written by `pack_sets`; callers check them against the graphs."""
    code, start, node, grade = (read_column(header[name], blobs) for name in _SET_COLUMNS)
    return EquationSets(code, start, node, grade.astype(np.int8))


def read_exact_sets(stages: Sequence[dict[str, Any]], blobs: BlobReader) -> dict[str, EquationSets]:
    """Return the equation sets of each stage with exact links, by stage name; other stages are inferred again.

    Raises:
        ValueError: A link is out of range.
    """
    exact: dict[str, EquationSets] = {}
    for stage in stages:
        if "sets" not in stage:  # the first stage, and files of formats 1 and 2
            continue
        sets = read_sets(stage["sets"], blobs)
        if not sets.fits(len(texts(stage["names"])), len(texts(stages[0]["names"]))):
            raise ValueError("a link has an index outside of the capture")
        if (sets.grade == EXACT).any():
            exact[text(stage["name"])] = sets
    return exact


def pack_machine_code(code: MachineCode, blobs: Blobs) -> dict[str, Any]:
    """Return the machine code as a JSON object for the header; its texts are added to the blobs."""
    return {
        "platform": code.platform,
        "notes": list(code.notes),
        "languages": dict(LANGUAGES),
        "rows": [_pack_row(row, blobs) | {"facts": kernel_facts(row, code.platform)} for row in code],
    }


def unpack_machine_code(header: dict[str, Any], blobs: BlobReader) -> MachineCode:
    """Return the machine code written by `pack_machine_code`.

    Raises:
        ValueError, KeyError, TypeError: The content doesn't fit the format; callers report it.
    """
    rows = tuple(_unpack_row(row, blobs) for row in header["rows"])
    return MachineCode(text(header["platform"]), rows, tuple(texts(header["notes"])))


def _pack_row(row: KernelCode, blobs: Blobs) -> dict[str, Any]:
    facts: dict[str, Any] = {field.name: getattr(row, field.name) for field in fields(row) if field.name != "texts"}
    # A fact of another platform is None, and left out.
    plain = {name: fact for name, fact in facts.items() if fact is not None}
    return plain | {"texts": {language: blobs.add(content.encode()) for language, content in row.texts.items()}}


def _unpack_row(row: dict[str, Any], blobs: BlobReader) -> KernelCode:
    contents = {language: blobs.text(place) for language, place in row["texts"].items() if language in LANGUAGES}
    if not contents:
        raise ValueError("a kernel has no code")
    # A later Explorer may write more facts.
    facts = {name: _CHECKS[name](fact) for name, fact in row.items() if name in _CHECKS}
    return KernelCode(texts=contents, **facts)


_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "function": text,
    "occupancy": number,
    **dict.fromkeys(("registers", "stack", "shared", "vector_bits", "spills", "bundles"), integer),
    **dict.fromkeys(("grid", "block"), lambda values: tuple(map(integer, values))),
    **dict.fromkeys(("kernels", "matrix_instructions", "calls"), lambda values: tuple(texts(values))),
}
