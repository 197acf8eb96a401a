"""HTML of a capture: an interactive view, and a picture and a table where no script runs.

The picture is an icicle: a row is a level of calls, a width is the number of kernels (before HLO: operations) below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from explorer.analysis.display import prepare
from explorer.analysis.questions import answers
from explorer.files.container import with_entry
from explorer.model.bookmark import Bookmark, Note
from explorer.model.capture import Capture
from explorer.model.text import cut_end
from explorer.model.units import duration_text
from explorer.view.capture.summary import CaptureSummary, Part, StageSummary, summarize
from explorer.view.chart import Table, static_html
from explorer.view.figure_svg import STEPS, box, canvas, text
from explorer.view.page import interactive


def fragment(
    capture: Capture,
    with_all: bool = True,
    bookmark: Bookmark | None = None,
    name: str = "",
    with_answers: bool = False,
) -> str:
    """Return the HTML of a capture's view, without the page around it.

    Args:
        capture: The capture to show.
        with_all: Include the code of every pane, not only of those that are open at first.
        bookmark: The place where the view opens, and the user's notes.
        name: The id of the view in the page; the capture's `id` if not given.
        with_answers: Include the answers to questions, which a view with a kernel requests when one is typed.
    """
    opens = bookmark.to_dict() if bookmark else None
    notes = bookmark.notes if bookmark else ()
    if not capture.stages:
        return _static(capture, notes)
    prepare(capture)
    static, of = _static(capture, notes), name or capture.id
    later = _later(capture) if with_all else ()
    data = with_entry(capture.wire, "ask", answers(capture)) if with_answers else capture.wire
    return interactive(of, data, static, chunks=("viewer",), later=later, bookmark=opens)


def _later(capture: Capture) -> tuple[str, ...]:
    """Return the names of the viewer's code chunks that a view of this capture may load later."""
    has_code, has_passes = capture.has_machine_code, capture.has_passes
    kernels = any(stage.name == "hlo" for stage in capture.stages)
    code = ("machine_code_pane",) if has_code else ()
    return (*later_chunks(len(capture.stages) > 1, kernels, has_passes), *code)


def later_chunks(has_links: bool, has_kernels: bool, has_passes: bool) -> tuple[str, ...]:
    """Return the names of the code chunks that a view loads on request; `what_if` is left out, which needs a live
    kernel.
    """
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


_WIDTH = 960
_ROW = 30
_LEVELS = 5
_PITFALLS = 10  # that the table has
_COLOURS = ("#0068a3", "#c25200", "#00805f", "#a8457f", "#7d6100", "#5b50b8")


def table_rows(summary: CaptureSummary) -> list[tuple[str, ...]]:
    """Return the picture as a table: a head, the stages, then the groups of the last stage, outermost first."""
    rows: list[tuple[str, ...]] = [("what", "nodes", "kernels", "with a source line", "source mapping")]
    for stage in summary.stages:
        kernels = "" if stage.kernels is None else f"{stage.kernels:,}"
        rows.append((stage.title, f"{stage.nodes:,}", kernels, stage.lines, stage.links))
    if summary.groups is not None:
        rows += [(name, "", size, "", "") for name, size in _flat(summary.groups, 0)]
    pitfalls = summary.findings[:_PITFALLS]
    return rows + [(f"line {finding.line}: {finding.rule}: {finding.message}", "", "", "", "") for finding in pitfalls]


def _flat(part: Part, depth: int) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for child in part.children:
        times = f" ×{len(child.children)}" if child.repeats else ""
        # Em spaces, because HTML drops ordinary spaces at the beginning.
        rows.append(("\u2003" * (depth + 1) + child.name + times, f"{child.size:,}"))
        if depth < _LEVELS:
            rows += _flat(child.usual if child.repeats else child, depth + 1)
    return rows


def picture(summary: CaptureSummary, with_times: bool = True) -> str:
    """Return the picture as SVG, on a light background of its own.

    Args:
        with_times: Include the durations of the compile. Without them, a program that is compiled again has the same
            picture; a browser keeps every different picture that it loads.
    """
    capture = summary.capture
    # All is laid out before anything is drawn.
    cells: list[_Cell] = []
    y = 80.0 if summary.groups is None else _icicle(summary.groups, 16, _WIDTH - 32, 80.0, _LEVELS, cells, 0)
    labels = [_stage_label(stage) for stage in summary.stages]
    # A letter of the 12-pixel font is 7.3 pixels wide.
    widths = [7.3 * len(label) + 20 for label in labels]
    after = 16 + sum(width + 8 for width in widths)  # where the stages end and the notes begin
    signature = cut_end(capture.signature, 70)
    notes = cut_end(" · ".join(summary.notes), int((_WIDTH - 16 - after) / 7.3))
    parts = [text(16, 26, capture.function, "b")]
    parts.append(text(16 + 7.3 * len(capture.function), 26, signature, "m"))
    x = 16.0
    for label, width in zip(labels, widths, strict=True):
        last = label is labels[-1]
        parts.append(box(x, 40, width, 24, "#0b62c4" if last else "#eef0f2"))
        parts.append(text(x + 10, 56, label, "w" if last else ""))
        x += width + 8
    parts.append(text(after, 56, notes, "f"))
    for cell in cells:
        parts.append(box(cell.x, cell.y, cell.width - 1.5, _ROW - 2, _COLOURS[cell.colour], 4, 0.16))
        parts += [text(cell.x + 7, cell.y + 18.5, cell.label, "b")] if cell.label else []
        size_x = cell.x + 14 + 7.3 * len(cell.label)
        parts += [text(size_x, cell.y + 18.5, cell.size, "m")] if cell.size else []
    parts += _times(summary, y + 12) if with_times else []
    height = y + (46 if with_times else 6)
    return canvas(_WIDTH, height, parts)


def _times(summary: CaptureSummary, y: float) -> list[str]:
    capture, done = summary.capture, summary.capture.durations.done
    steps = [(name, done[step], colour) for step, name, colour in STEPS if step in done]
    total = sum(seconds for _, seconds, _ in steps) or 1
    parts: list[str] = []
    x = 16.0
    for name, seconds, colour in steps:
        width = max(300 * seconds / total, 2)
        parts.append(box(x, y, width, 16, colour, 2))
        if width > 80:
            parts.append(text(x + 6, y + 12.5, f"{name} {duration_text(seconds)}", "w"))
        x += width
    if "jax" not in capture.environment:
        return [text(16, y + 12.5, cut_end(compiled_by(summary), 120), "m")]
    parts.append(text(x + 14, y + 12.5, compiled_by(summary), "m"))
    return parts


def compiled_by(summary: CaptureSummary) -> str:
    """Return the compiler, its version and device, and the peak memory, as one line of text."""
    environment = summary.capture.environment
    if "jax" not in environment:  # another program did
        return " · ".join(f"{name} {value}" for name, value in environment.items())
    note = f"jax {environment.get('jax', '?')} · {environment.get('backend', '?')}"
    return note + (f" · {summary.peak}" if summary.peak else "")


class _Cell(NamedTuple):
    """Rectangle of a part, with the label and the size that fit into it, or empty strings."""

    x: float
    y: float
    width: float
    colour: int
    label: str
    size: str


def _stage_label(stage: StageSummary) -> str:
    """Return a stage's title with its number of nodes and kernels: `HLO 512 · 40 kernels`.

    Stages before the optimized HLO have no kernels: `jaxpr 60`.
    """
    kernels = "" if stage.kernels is None else f" · {stage.kernels:,} kernels"
    return f"{stage.title} {stage.nodes:,}{kernels}"


def _icicle(
    part: Part, x: float, width: float, y: float, levels: int, cells: list[_Cell], colour: int, each: str = ""
) -> float:
    """Add the cells of the children of `part` and of the rows below; return the y of their lower end."""
    end = y
    for number, child in enumerate(part.children if levels else ()):
        share = width * child.size / part.size
        # A part keeps its colour all the way down; the top level takes one each.
        own = (colour + number) % len(_COLOURS)
        if share >= 2:
            end = max(end, y + _ROW)
            times = f" ×{len(child.children)}" if child.repeats else ""
            longest = int((share - 14) / 7.3) - len(times)
            label = (child.name if len(child.name) <= longest else cut_end(child.name, longest)) + times
            size, fits = f"{child.size:,}{each}", len(label) > 2 + len(times)
            has_room = fits and int((share - 24) / 7.3) - len(label) > len(size)
            cells.append(_Cell(x, y, share, own, label if fits else "", size if has_room else ""))
            # Iterations that are equal are drawn once, as wide as all of them.
            inside, of = (child.usual, " each") if child.repeats else (child, each)
            end = max(end, _icicle(inside, x, share, y + _ROW, levels - 1, cells, own, of))
        x += share
    return end
