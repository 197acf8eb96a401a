"""The instruction log: its lines, the file, and its timeline.

    1.500s | #0150 | COMPILE    | MainThread | Starting | function=step id=[step/1] at="train.py, line 12"

Columns: seconds since the log began, the line's number, kind of event, thread, what happened, and details.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from time import time
from typing import IO

from explorer.errors import UnreadableTextError
from explorer.files.disk import read_lines
from explorer.model.results.hot_paths import LoggedCompile, OperationTimeline, ThreadOperations

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_PLAIN = re.compile(r'[^\s"=|\\\x00-\x1f\x7f-\xa0\u2028\u2029\ud800-\udfff]+')  # needs no quotes
_DETAIL = re.compile(rf"({_QUOTED}|[^\s\"=]+)=({_QUOTED}|\S*)(?:\s+|$)")
_COLUMN = rf"( *{_QUOTED} *|[^|]*)"
_LINE = re.compile(rf" *(\d{{1,15}}(?:\.\d{{1,15}})?)s \| #(\d{{1,15}}) \|{_COLUMN}\|{_COLUMN}\|{_COLUMN}(?:\|(.*))?")


@dataclass(frozen=True, slots=True)
class LogLine:
    """Line of an instruction log.

    Args:
        seconds: Since the log began.
        number: Number of the line in its process, from 1.
        kind: Kind of event: `COMPILE`, `TRACE`.
        source: Name of the thread.
        name: What happened: `Starting`, `Complete`, or the name of an operation.
        details: Further values by name.
        note: Words after the details.

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
    """Return the parsed line; None if it is no line of an instruction log."""
    match = _LINE.fullmatch(line.rstrip("\r\n"))
    if match is None:
        return None
    seconds, number, *columns, rest = match.groups()
    details, note = _details((rest or "").strip())
    kind, source, name = (_unquoted(column.strip()) for column in columns)
    return LogLine(float(seconds), int(number), kind, source, name, details, note)


def read_log(path: str | os.PathLike[str]) -> list[LogLine]:
    """Return the lines of an instruction log; other lines, such as notes or one cut short, are left out.

    Raises:
        OSError: The file can't be read.
        UnreadableTextError: The file is a pipe or a device, or has a line of many megabytes.
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


_open: dict[Path, LogFile] = {}
_lock = threading.RLock()


class LogFile:
    """Open log, shared by its users (`open_log`); appends to an existing file, and each line is on disk at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Line buffering and append mode keep the lines of several processes apart.
        self._file: IO[str] | None = open(path, "a", encoding="utf-8", buffering=1)  # noqa: SIM115
        self._began = time()
        self._lock = threading.Lock()
        self.number = 0
        self.users = 0

    def write(
        self, moment: float, kind: str, thread: str, name: str, details: Mapping[str, str], note: str = ""
    ) -> None:
        """Append a line about an event at `moment`, in seconds since 1970; do nothing if the log is closed."""
        process = multiprocessing.current_process().name
        source = thread if process == "MainProcess" else f"{process}/{thread}"
        with self._lock:
            if self._file is None:
                return
            self.number += 1
            # Another thread may have read the clock before this file was opened.
            line = LogLine(max(moment - self._began, 0.0), self.number, kind, source, name, details, note)
            try:
                self._file.write(f"{line}\n")
            except (OSError, ValueError) as error:  # the disk is full: reported once
                with suppress(OSError):
                    self._file.close()
                self._file = None
                complain(f"{self.path} can't be written any more: {error}")

    def close(self) -> None:
        """Unregister one user of the file; the last user closes it."""
        with _lock:
            self.users -= 1
            if self.users > 0:
                return
            _open.pop(self.path, None)
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None


def open_log(path: str | PathLike[str]) -> LogFile:
    """Return the log file at a path, opened or shared with its other users; each user must `close` it once.

    Raises:
        OSError: The file can't be written.
    """
    place = Path(path).expanduser().absolute()
    with _lock:
        log = _open.get(place)
        if log is None:
            log = _open[place] = LogFile(place)
        log.users += 1
        return log


def complain(text: str) -> None:
    """Print a warning to standard error; never fails."""
    with suppress(OSError, ValueError):
        print(f"explorer: {text}", file=sys.stderr, flush=True)


_PARTS = 240  # bins of the timeline: a picture has few more pixels
_COMPILED = "(COMPILED)"


def read_timeline(path: str | PathLike[str]) -> OperationTimeline:
    """Return the timeline of an instruction log.

    Raises:
        UnreadableTextError: The file has no line of an instruction log.
        OSError: The file can't be read.
    """
    lines = read_log(path)
    if not lines:
        raise UnreadableTextError(
            f"{path} has no line of an instruction log.\n"
            "  Hint: python -m explorer trace, or EXPLORER_INSTRUCTION_LOG=path, writes one."
        )
    start, end = min(line.seconds for line in lines), max(line.seconds for line in lines)
    runs = [line for line in lines if line.kind == "RUN" and line.name != "Stopped"]
    counts = Counter((line.name, line.note == _COMPILED) for line in runs)
    return OperationTimeline(
        Path(path).name, start, end, _threads(runs, start, end), tuple(_compiles(lines)), dict(counts.most_common())
    )


def _threads(runs: list[LogLine], start: float, end: float) -> tuple[ThreadOperations, ...]:
    parts: dict[str, tuple[list[int], list[int]]] = {}
    width = (end - start) / _PARTS or 1.0
    for line in runs:
        single, compiled = parts.setdefault(line.source, ([0] * _PARTS, [0] * _PARTS))
        part = min(int((line.seconds - start) / width), _PARTS - 1)
        (compiled if line.note == _COMPILED else single)[part] += 1
    return tuple(ThreadOperations(name, tuple(single), tuple(compiled)) for name, (single, compiled) in parts.items())


def _compiles(lines: Iterable[LogLine]) -> Iterable[LoggedCompile]:
    """Yield each completed compile; JAX's own compile within that of a hot function is left out."""
    begun: dict[tuple[str, str, bool], float] = {}
    for line in lines:
        if line.kind != "COMPILE":
            continue
        function, is_hot = line.details.get("function", line.details.get("sequence", "")), "hot" in line.details
        key = (function, line.source, is_hot)
        if line.name == "Starting":
            begun[key] = line.seconds
        elif line.name == "Complete" and (start := begun.pop(key, None)) is not None:
            # JAX also logs the compile of a hot function, between that function's own lines.
            is_part = not is_hot and (function, line.source, True) in begun
            if not is_part:
                yield LoggedCompile(function, start, line.seconds, is_hot)
