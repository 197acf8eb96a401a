"""A capture as HTML that upgrades itself: a picture and a table stand there where no script runs."""

from __future__ import annotations

from html import escape

from explorer.model.capture import Capture
from explorer.model.units import duration_text
from explorer.view.capture.picture import compiled_by, picture, table_rows
from explorer.view.capture.summary import CaptureSummary, summarize
from explorer.view.chart import Table, static_html
from explorer.view.drawing import STEPS
from explorer.view.page import interactive


def fragment(capture: Capture, with_all: bool = True) -> str:
    """The HTML of one output; `with_all`: with every pane that it can show, not only those that it starts with."""
    static = _static(capture)
    return (
        interactive(capture.id, capture.wire, static, chunks=_chunks(capture, with_all)) if capture.stages else static
    )


def _chunks(capture: Capture, with_all: bool) -> tuple[str, ...]:
    """The parts of the viewer that this capture can show; others come from other outputs, or from the kernel."""
    if not with_all:
        return ("viewer",)
    kernels = any(stage.name == "hlo" for stage in capture.stages)
    panes = {"why_pane": len(capture.stages) > 1, "memory_pane": kernels, "passes_pane": capture.has_passes}
    return ("viewer", "text_pane", "lines_pane", "what_if", *(name for name, can_show in panes.items() if can_show))


def _static(capture: Capture) -> str:
    summary = summarize(capture)
    head, *rows = table_rows(summary)
    tables = [Table(f"{capture.function}: stages and kernels as a table", head, rows)] if capture.stages else []
    shown = static_html(picture(summary, with_times=False), _description(summary), tables, f"<p>{_note(summary)}</p>")
    return f'<div class="explorer-static">{shown}</div>'


def _note(summary: CaptureSummary) -> str:
    """What compiling took, and what brings the picture to life."""
    durations = summary.capture.durations
    steps = [(name, float(getattr(durations, step))) for step, name, _ in STEPS]
    notes = [f"{name} {duration_text(seconds)}" for name, seconds in steps if seconds]
    notes += [compiled_by(summary)] + ["trust the notebook to explore it"] * (not summary.capture.failure)
    return escape(" · ".join(filter(None, notes)))


def _description(summary: CaptureSummary) -> str:
    capture = summary.capture
    sizes = zip(capture.stages, summary.stages, strict=True)
    stages = ", ".join(f"{stage.name} of {size.nodes:,} nodes" for stage, size in sizes)
    failure = f". {capture.failure}" if capture.failure else ""
    facts = f". {capture.summary}" if capture.summary and not failure else ""
    return f"{capture.function}{capture.signature}: {stages or 'no stage'}{failure}{facts}"
