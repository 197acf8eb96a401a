"""How the code of kernels is shown: a sentence and a table; as text with the code of each."""

from __future__ import annotations

from html import escape

from explorer.analysis.facts import kernel_facts
from explorer.model.machine_code import LANGUAGES, KernelCode, MachineCode
from explorer.model.units import count_text
from explorer.view.chart import Table, html_table
from explorer.view.interface import View

_SHOWN = 3  # kernels that share one code


class MachineCodeView(View[MachineCode]):
    """A sentence, a table of the facts, and each kernel's code to unfold."""

    def title(self, value: MachineCode) -> str:
        return "machine code"

    def html(self, value: MachineCode) -> str:
        table = html_table(Table("kernels and what is known of their code", *_table(value)), is_open=True)
        notes = "".join(f"<p>{escape(note)}</p>" for note in value.notes)
        codes = "".join(map(_code, value))
        return (
            f'<div class="explorer-static"><p>{escape(headline(value))}</p>{table if value else ""}{notes}{codes}</div>'
        )


def headline(code: MachineCode) -> str:
    """How many kernels have code here, in which languages."""
    languages = [name for language, name in LANGUAGES.items() if any(language in row.texts for row in code)]
    return f"{count_text(len(code), 'kernel')} of {code.platform} code" + (
        f": {', '.join(languages)}." if code else "."
    )


def _table(code: MachineCode) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    facts = [dict(kernel_facts(row, code.platform)) for row in code]
    head = tuple(dict.fromkeys(name for of_row in facts for name in of_row))
    rows = [(_kernels(row), *(of_row.get(name, "") for name in head)) for row, of_row in zip(code, facts, strict=True)]
    return ("kernel", *head), rows


def _kernels(row: KernelCode) -> str:
    more = f" and {len(row.kernels) - _SHOWN} more" if len(row.kernels) > _SHOWN else ""
    return ", ".join(row.kernels[:_SHOWN]) + more if row.kernels else f"{row.function}, of no instruction known"


def _code(row: KernelCode) -> str:
    language = LANGUAGES[row.language]
    text = row.texts[row.language]
    return f"<details><summary>{escape(row.function)}: {language}</summary><pre>{escape(text)}</pre></details>"


def machine_code_text(code: MachineCode) -> str:
    """The sentence, a line for each kernel, and what isn't known."""
    head, rows = _table(code)
    lines = [head, *rows] if rows else []
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))] if lines else []
    table = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([headline(code), *table, *code.notes])
