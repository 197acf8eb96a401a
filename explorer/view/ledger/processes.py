"""How one ledger of many processes is shown: a sentence, who differs, and the programs by what they cost."""

from __future__ import annotations

from html import escape

from explorer.analysis.recompiles.process_programs import headline
from explorer.model.events.process_ledger import ProcessDifference, ProcessLedger, ProcessProgram
from explorer.model.units import duration_text
from explorer.view.chart import Table, html_table
from explorer.view.interface import View

_DIFFERENCES = 100  # rows of a table that somebody reads; a thousand processes may all differ
_PROGRAMS = 200
_DIFFERENT = ("who", "function", "what", "with them", "with most", "over several processes")
_HEAD = ("function", "called at", "arguments", "compiled by", "compiles", "seconds of all", "slowest")
_ARGUMENTS = 60  # characters


class ProcessLedgerView(View[ProcessLedger]):
    """A sentence, and two tables."""

    def title(self, value: ProcessLedger) -> str:
        return f"What {len(value.processes):,} processes compiled"

    def html(self, value: ProcessLedger) -> str:
        differences = Table(
            f"Who compiled another program: {len(value.differences):,}",
            _DIFFERENT,
            [difference_row(value, row) for row in value.differences[:_DIFFERENCES]],
            _more(len(value.differences), _DIFFERENCES),
        )
        programs = Table(
            f"Programs: {len(value.rows):,}",
            _HEAD,
            [program_row(value, row) for row in value.rows[:_PROGRAMS]],
            _more(len(value.rows), _PROGRAMS),
        )
        tables = html_table(differences, is_open=True) if value.differences else ""
        notes = "".join(f"<p>{escape(note)}</p>" for note in value.notes)
        sentence = f"<p>{escape(headline(value))}.</p>"
        return f'<div class="explorer-static">{sentence}{tables}{html_table(programs, is_open=True)}{notes}</div>'


def difference_row(ledger: ProcessLedger, difference: ProcessDifference) -> tuple[str, ...]:
    """Who, of what function, and what differs."""
    here = difference.here if difference.other is not None else "no such program"
    shared = "yes: they may wait for ever" if difference.is_shared else "not known"
    place = ledger.rows[difference.program].place
    return ledger.named(difference.processes), place, difference.what or "–", here, difference.usual or "–", shared


def program_row(ledger: ProcessLedger, program: ProcessProgram) -> tuple[str, ...]:
    """A program, and who compiled it."""
    arguments = ", ".join(f"{path}: {kind}" for path, kind in program.arguments)
    shown = arguments if len(arguments) <= _ARGUMENTS else arguments[: _ARGUMENTS - 1] + "…"
    who = f"{program.count:,} of {len(ledger.processes):,}"
    slowest = f"{duration_text(program.slowest)} in {ledger.processes[program.slowest_process]}"
    seconds = duration_text(program.seconds)
    return program.place, program.call_site, shown, who, f"{program.compiles:,}", seconds, slowest


def process_text(ledger: ProcessLedger) -> str:
    """The sentence, who differs, and a line for each of the programs that cost most."""
    rows = [_HEAD, *(program_row(ledger, row) for row in ledger.rows[:20])]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_HEAD))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    differences = [row.text for row in ledger.differences[:20]]
    return "\n".join(
        [f"{headline(ledger)}.", *differences, *lines, _more(len(ledger.rows), 20), *ledger.notes]
    ).rstrip()


def _more(count: int, shown: int) -> str:
    return f"{count - shown:,} more: .to_frame() has all of them." if count > shown else ""
