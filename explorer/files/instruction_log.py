"""The lines of an instruction log, written and read back.

    1.500s | #0150 | COMPILE    | MainThread | Starting | function=step id=[step/1] at="train.py, line 12"

Seconds since the log began, the line's number, what kind of event, who saw it, what happened, and details.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from explorer.errors import UnreadableTextError
from explorer.files.disk import read_lines

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_PLAIN = re.compile(r'[^\s"=|\\\x00-\x1f\x7f-\xa0\u2028\u2029\ud800-\udfff]+')  # what needs no quotes
_DETAIL = re.compile(rf"({_QUOTED}|[^\s\"=]+)=({_QUOTED}|\S*)(?:\s+|$)")
_COLUMN = rf"( *{_QUOTED} *|[^|]*)"
_LINE = re.compile(rf" *(\d{{1,15}}(?:\.\d{{1,15}})?)s \| #(\d{{1,15}}) \|{_COLUMN}\|{_COLUMN}\|{_COLUMN}(?:\|(.*))?")


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of an instruction log.

    Args:
        seconds: Since the log began.
        number: Counts the lines of one process, from 1.
        kind: What kind of event: `COMPILE`, `TRACE`.
        source: Who saw it: the name of a thread.
        name: What happened: `Starting`, `Complete`, the name of an operation.
        details: All else, by name.
        note: Words after the details that have no name.

    >>> line = LogLine(1.5, 150, "COMPILE", "WORKER", "Starting", {"sequence": "abc123def456"})
    >>> print(line)
      1.500s | #0150 | COMPILE    | WORKER | Starting | sequence=abc123def456
    >>> parse_line(str(line)) == line
    True
    """

    seconds: float
    number: int
    kind: str
    source: str
    name: str
    details: Mapping[str, str] = field(default_factory=dict[str, str])
    note: str = ""

    def __str__(self) -> str:
        details = [f"{_word(key)}={_word(value)}" for key, value in self.details.items()]
        words = " ".join([*details, *([self.note] if self.note else [])])
        columns = (f"{_word(self.kind):<10}", f"{_word(self.source):<6}", _word(self.name))
        return f"{self.seconds:7.3f}s | #{self.number:04d} | {' | '.join(columns)} | {words}".rstrip(" ")


def parse_line(line: str) -> LogLine | None:
    """What a line says; None if it is no line of an instruction log."""
    match = _LINE.fullmatch(line.rstrip("\r\n"))
    if match is None:
        return None
    seconds, number, *columns, rest = match.groups()
    details, note = _details((rest or "").strip())
    kind, source, name = (_unquoted(column.strip()) for column in columns)
    return LogLine(float(seconds), int(number), kind, source, name, details, note)


def read_log(path: str | os.PathLike[str]) -> list[LogLine]:
    """Read an instruction log back; lines that are none of its (a person's notes, one cut short) are left out.

    Args:
        path: The file that `EXPLORER_INSTRUCTION_LOG` or `explorer.watch(log=…)` named.

    Raises:
        OSError: The file can't be read.
        UnreadableTextError: It is a pipe or a device, or has a line of many megabytes.
    """
    lines = (line.decode("utf-8", "replace") for line in read_lines(path, "an instruction log", UnreadableTextError))
    return [parsed for line in lines if (parsed := parse_line(line)) is not None]


def _details(text: str) -> tuple[dict[str, str], str]:
    details: dict[str, str] = {}
    at = 0
    while match := _DETAIL.match(text, at):
        details[_unquoted(match[1])] = _unquoted(match[2])
        at = match.end()
    return details, text[at:]


def _word(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


def _unquoted(text: str) -> str:
    if len(text) > 1 and text.startswith('"') and text.endswith('"'):
        try:
            return str(json.loads(text))
        except ValueError:
            return text
    return text
