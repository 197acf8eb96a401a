"""What a compiler made of a program, and what differs between two, as the body of a report."""

from __future__ import annotations

from typing import Any

from explorer.analysis.cost.kernels import running_nodes
from explorer.analysis.diff.diff import Diff, Fusion
from explorer.files.reports.report import fields_of, plain
from explorer.model.capture import Capture
from explorer.model.line_table import LineTable
from explorer.model.live_memory import needed_bytes
from explorer.model.results.targets import TargetRow, Targets
from explorer.model.units import amount_text, bytes_text


def capture_body(capture: Capture) -> dict[str, Any]:
    """A capture: what was compiled, its kernels and memory, what each line costs, what may go wrong."""
    names = [stage.name for stage in capture.stages]
    graph = capture.hlo.graph if "hlo" in names else None
    table = capture.lines() if graph is not None else None
    return {
        **fields_of(capture, "function", "signature", "file", "line", "failure", "environment", "memory"),
        "summary": _capture_summary(capture, table),
        "stages": [{"name": stage.name, "nodes": len(stage.graph)} for stage in capture.stages],
        "seconds": plain(capture.durations.seconds),
        "kernels": None if graph is None else len(running_nodes(graph)),
        "flops": None if table is None else plain(table.flops),
        "bytes": None if table is None else plain(table.bytes),
        "lines": [plain(row) for row in table or ()],
        "constants": sum(constant.bytes for constant in capture.constants),
        "findings": [plain(finding) for finding in capture.findings],
        "notes": list(table.notes) if table is not None else [],
    }


def _capture_summary(capture: Capture, table: LineTable | None) -> list[str]:
    facts = [fact.text for fact in capture.summary]
    if table is not None:
        cost = f"{amount_text(table.flops)}FLOPs, {bytes_text(table.bytes)} read and written"
        needed = needed_bytes(capture.memory)
        facts.append(f"{cost}; {bytes_text(needed)} of memory at most." if needed > 0 else f"{cost}.")
    failed = [f"It failed: {capture.failure}"] if capture.failure else []
    return [*failed, *facts, *(finding.sentence for finding in capture.findings)]


def diff_body(diff: Diff) -> dict[str, Any]:
    """What the compiler made of one capture and not of the other."""
    return {
        "functions": [f"{side.function}{side.signature}" for side in (diff.a, diff.b)],
        "summary": _diff_summary(diff),
        "same": diff.is_empty,
        "values": [plain(value) for value in diff.values],
        "fusions": {
            "gained": [_fusion(fusion) for fusion in diff.fusions_gained],
            "lost": [_fusion(fusion) for fusion in diff.fusions_lost],
            "changed": [{"a": _fusion(a), "b": _fusion(b)} for a, b in diff.fusions_changed],
        },
    }


def _diff_summary(diff: Diff) -> list[str]:
    """The lines of its text, without what aligns them."""
    first, *rows = repr(diff).splitlines()
    return [first.removeprefix("Diff(").removesuffix(")"), *(" ".join(row.split()) for row in rows)]


def _fusion(fusion: Fusion) -> dict[str, Any]:
    return fields_of(fusion, "name", "holds", "lines", "instructions")


def targets_body(targets: Targets) -> dict[str, Any]:
    """The hardware that a program can be compiled for."""
    there = sorted({row.device.platform for row in targets if row.is_installed})
    head = (
        f"{len(targets)} kinds of hardware to compile for; compilers that are installed: {', '.join(there) or 'none'}."
    )
    kinds = {platform: [row.device.key for row in targets if row.device.platform == platform] for platform in there}
    lines = [f"{platform}: {', '.join(keys)}" for platform, keys in kinds.items()]
    return {"summary": [head, *lines], "targets": [_target(row) for row in targets]}


def _target(row: TargetRow) -> dict[str, Any]:
    figures = fields_of(row.device, "key", "name", "platform", "memory", "bandwidth", "links", "flops", "sources")
    return {**figures, "installed": row.is_installed, "hint": row.hint}
