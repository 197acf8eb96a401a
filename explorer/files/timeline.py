"""An instruction log as a timeline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

from explorer.errors import UnreadableTextError
from explorer.files.instruction_log import LogLine, read_log
from explorer.model.results.hot_paths import LoggedCompile, OperationTimeline, ThreadOperations

_PARTS = 240  # of the time: a picture has not many more pixels
_COMPILED = "(COMPILED)"


def read_timeline(path: str | PathLike[str]) -> OperationTimeline:
    """The timeline of an instruction log.

    Raises:
        UnreadableTextError: It has no line of an instruction log.
        OSError: It can't be read.
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
    """Each compile that begins and is complete: of a hot function, or of JAX's where it isn't a part of that."""
    begun: dict[tuple[str, str, bool], float] = {}
    for line in lines:
        if line.kind != "COMPILE":
            continue
        function, is_hot = line.details.get("function", line.details.get("sequence", "")), "hot" in line.details
        key = (function, line.source, is_hot)
        if line.name == "Starting":
            begun[key] = line.seconds
        elif line.name == "Complete" and (start := begun.pop(key, None)) is not None:
            is_part = not is_hot and (function, line.source, True) in begun
            if not is_part:
                yield LoggedCompile(function, start, line.seconds, is_hot)
