"""HTML of a capture: an interactive view, and a picture and a table where no script runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from explorer.analysis.display import prepare
from explorer.model.bookmark import Bookmark, Note
from explorer.model.capture import Capture
from explorer.model.units import duration_text
from explorer.view.capture.picture import compiled_by, picture, table_rows
from explorer.view.capture.summary import CaptureSummary, summarize
from explorer.view.chart import Table, static_html
from explorer.view.drawing import STEPS
from explorer.view.page import interactive


def fragment(capture: Capture, with_all: bool = True, bookmark: Bookmark | None = None, name: str = "") -> str:
    """Return the HTML of a capture's view, without the page around it.

    Args:
        capture: The capture to show.
        with_all: Include the code of every pane, not only of those that are open at first.
        bookmark: The place where the view opens, and the user's notes.
        name: The id of the view in the page; the capture's `id` if not given.
    """
    opens = bookmark.to_dict() if bookmark else None
    notes = bookmark.notes if bookmark else ()
    if not capture.stages:
        return _static(capture, notes)
    prepare(capture)
    static, of = _static(capture, notes), name or capture.id
    later = _later(capture) if with_all else ()
    return interactive(of, capture.wire, static, chunks=("viewer",), later=later, bookmark=opens)


def _later(capture: Capture) -> tuple[str, ...]:
    """Return the names of the viewer's code chunks that a view of this capture may load later."""
    has_code, has_passes = capture.has_machine_code, capture.has_passes
    kernels = any(stage.name == "hlo" for stage in capture.stages)
    code = ("machine_code_pane",) if has_code else ()
    return (*later_chunks(len(capture.stages) > 1, kernels, has_passes), *code)


def later_chunks(has_links: bool, has_kernels: bool, has_passes: bool) -> tuple[str, ...]:
    """Return the names of code chunks that load on request; without `what_if`, which needs a live kernel."""
    panes = {"why_pane": has_links, "memory_pane": has_kernels, "passes_pane": has_passes}
    always = ("ask", "help", "keeper", "lines_pane", "save_picture", "shown_way", "text_pane")
    return (*always, *(name for name, can_show in panes.items() if can_show))


def _static(capture: Capture, notes: Sequence[Note]) -> str:
    summary = summarize(capture)
    head, *rows = table_rows(summary)
    tables = [Table(f"{capture.function}: stages and kernels as a table", head, rows)] if capture.stages else []
    done, facts = capture.durations.done, str(capture.summary) if capture.stages else ""
    description, below = _description(summary, facts), f"<p>{_note(summary, done)}</p>{_notes(notes)}"
    shown = static_html(picture(summary, with_times=False), description, tables, below)
    return f'<div class="explorer-static">{shown}</div>'


def _notes(notes: Sequence[Note]) -> str:
    """Return the user's notes as an HTML list, for pages where no script runs; empty without notes."""
    rows = [f"<li>{escape(' '.join(filter(None, [note.stage, note.on])))}: {escape(note.text)}</li>" for note in notes]
    return f'<ul class="explorer-notes" aria-label="notes">{"".join(rows)}</ul>' if rows else ""


def _note(summary: CaptureSummary, done: Mapping[str, float]) -> str:
    """Return the durations, the compiler, and the hint to trust the notebook, as HTML."""
    notes: list[str] = []
    for step, name, _ in STEPS:
        notes += [f"{name} {duration_text(done[step])}"] if step in done else []
    notes += ["compiled before"] * ("compile" in summary.capture.durations.reused)
    notes += [compiled_by(summary)] + ["trust the notebook to explore it"] * (not summary.capture.failure)
    return escape(" · ".join(filter(None, notes)))


def _description(summary: CaptureSummary, facts: str) -> str:
    capture = summary.capture
    sizes = zip(capture.stages, summary.stages, strict=True)
    stages = ", ".join(f"{stage.name} of {size.nodes:,} nodes" for stage, size in sizes)
    failure = f". {capture.failure}" if capture.failure else ""
    more = f". {facts}" if facts and not failure else ""
    return f"{capture.function}{capture.signature}: {stages or 'no stage'}{failure}{more}"
