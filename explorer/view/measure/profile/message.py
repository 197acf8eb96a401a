"""The message to the browser: the source with its times, the kernels, the flame graphs, and the threads."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from explorer.analysis.cost.lines import line_parts
from explorer.analysis.profile.recording import host_words
from explorer.model.results.profile import OpTime, Profile
from explorer.model.results.profile_events import By, Flame
from explorer.model.stage import Source
from explorer.view.measure.profile.picture import headline, hottest, labels_of, sources_of

VERSION = 1
_KERNELS = 1_000  # the longest
_LINES = 400
_BOXES = 1_500  # of a flame graph
_HOST = 20
_STRETCHES = 4_000
_AROUND = 3  # lines of context
_WIDEST = 400  # letters of a line
_LEAST = 1e-3  # of a kernel: a line that has less of it is not named


def message(profile: Profile) -> dict[str, Any]:
    order = sorted(range(len(profile.ops)), key=lambda i: -profile.ops[i].seconds)
    shown, rest = order[:_KERNELS], order[_KERNELS:]
    place = {op: i for i, op in enumerate(shown)}
    summary = headline(profile)
    return {
        "version": VERSION,
        "function": profile.function,
        "signature": profile.signature,
        "headline": {"text": summary.text, "waits": summary.waits, "facts": summary.facts},
        "runs": profile.runs,
        "wall": profile.wall_seconds,
        "device": profile.device_seconds,
        "gap": profile.gap_seconds,
        "unattributed": profile.unattributed,
        **_lines(profile),
        "kernels": [_kernel(profile.ops[i]) for i in shown],
        "moreKernels": _more([profile.ops[i].seconds for i in rest]),
        "parts": _parts(profile, shown),
        "flames": {by: _boxes(made, place) for by, made in flames(profile).items()},
        "host": [[name, _number(seconds)] for name, seconds in list(host_words(profile.host).items())[:_HOST]],
        "notes": list(profile.notes),
        "timeline": _timeline(profile, place),
        "captures": [[program, capture.function] for program, capture in profile.captures.items()],
    }


def packed(said: Mapping[str, Any]) -> bytes:
    """Return a message as an output contains it: compressed JSON."""
    text = json.dumps(said, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return gzip.compress(text.encode("utf-8", "replace"), 9, mtime=0)


def flames(profile: Profile) -> dict[By, Flame]:
    """Return both flame graphs, pruned to what is visible; by scope only if there are scopes."""
    kinds: tuple[By, ...] = ("stack", "scope")
    flame_of: dict[By, Flame] = {by: profile.flame(by).pruned(_BOXES) for by in kinds}
    if not any(node.kind == "scope" for node in flame_of["scope"].nodes):
        del flame_of["scope"]
    return flame_of


def _kernel(op: OpTime) -> list[Any]:
    numbers = (op.seconds, op.total, op.count, op.flops, op.bytes, op.wasted)
    return [op.name, op.op, op.module, op.program, *map(_number, numbers), op.scope, op.computes]


def _number(value: float | None) -> float | None:
    # JSON has no NaN, and five digits are more than was measured.
    return None if value is None or not isfinite(value) else float(f"{value:.5g}")


def _more(seconds: Sequence[float]) -> list[float]:
    return [len(seconds), sum(seconds)]


# Lines ----------------------------------------------------------------------------------------------------------------


def _lines(profile: Profile) -> dict[str, Any]:
    sources, labels = sources_of(profile), labels_of(profile)
    files = list(labels)
    shown, rest = hottest(profile)[:_LINES], hottest(profile)[_LINES:]
    hot: dict[str, set[int]] = defaultdict(set)
    for line in shown:
        hot[line.file].add(line.line)
    return {
        "files": [{"file": file, "label": labels[file], "rows": _rows(sources.get(file), hot[file])} for file in files],
        "lines": [
            [files.index(one.file), one.line, one.text[:_WIDEST], *map(_number, (one.seconds, one.wasted)), one.ops]
            for one in shown
        ],
        "moreLines": _more([line.seconds for line in rest]),
    }


def _rows(source: Source | None, hot: set[int]) -> list[tuple[int, str]]:
    """Return the lines with time, some around them, and the `def` and `class` lines that contain them."""
    if source is None:
        return []
    texts = source.text.splitlines()
    shown: set[int] = set()
    for line in hot:
        shown.update((line, *_around(texts, line, -1), *_around(texts, line, 1), *_heads(texts, line)))
    return [(line, texts[line - 1][:_WIDEST]) for line in sorted(shown) if 1 <= line <= len(texts)]


def _around(texts: Sequence[str], line: int, step: int) -> list[int]:
    """Return the context lines on one side, within the same block and without trailing blank lines."""
    numbers: list[int] = []
    for at in range(line + step, line + step * (_AROUND + 1), step):
        text = texts[at - 1] if 1 <= at <= len(texts) else ""
        if text.strip() and not text[0].isspace() and line <= len(texts) and _indent(texts[line - 1]):
            break
        numbers.append(at)
    while numbers and not (1 <= numbers[-1] <= len(texts) and texts[numbers[-1] - 1].strip()):
        numbers.pop()
    return numbers


def _heads(texts: Sequence[str], line: int) -> Iterator[int]:
    """Yield the `def` and `class` lines around a line, from the inside."""
    depth = _indent(texts[line - 1]) if line <= len(texts) else 0
    for at in range(line - 1, 0, -1):
        if depth == 0:
            return
        text = texts[at - 1]
        if text.strip() and _indent(text) < depth:
            depth = _indent(text)
            if text.lstrip().startswith(("def ", "class ", "async def ")):
                yield at


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _parts(profile: Profile, shown: Sequence[int]) -> list[tuple[int, int, float]]:
    """Return each line's part of a kernel's seconds: kernel, line, seconds."""
    lines = {(line.file, line.line): i for i, line in enumerate(hottest(profile)[:_LINES])}
    kernels = {(profile.ops[op].program, profile.ops[op].name): i for i, op in enumerate(shown)}
    parts: list[tuple[int, int, float]] = []
    for program, capture in profile.captures.items():
        names = capture.hlo.graph.names
        for node, file, line, seconds in line_parts(capture):
            kernel, at = kernels.get((program, names[node])), lines.get((file, line))
            if kernel is not None and at is not None and seconds > _LEAST * profile.ops[shown[kernel]].seconds:
                parts.append((kernel, at, float(f"{seconds:.5g}")))
    return parts


# Flames ---------------------------------------------------------------------------------------------------------------


def _boxes(made: Flame, place: Mapping[int, int]) -> dict[str, Any]:
    """Return the flame graph as columns; names are listed once."""
    names: dict[str, int] = {}
    nodes = made.nodes
    return {
        "parent": [node.parent for node in nodes],
        "name": [names.setdefault(node.name, len(names)) for node in nodes],
        "kind": [node.kind for node in nodes],
        "seconds": [_number(node.seconds) for node in nodes],
        "kernel": [place.get(node.op, -1) for node in nodes],
        "frame": [[node.frame.file, node.frame.line] if node.frame else 0 for node in nodes],
        "names": list(names),
    }


# Threads --------------------------------------------------------------------------------------------------------------


def _timeline(profile: Profile, place: Mapping[int, int]) -> dict[str, Any] | None:
    """Return the longest stretches of the call, as columns ordered by start."""
    timeline = profile.timeline
    if timeline is None or not len(timeline) or timeline.seconds <= 0:
        return None
    longest = np.argsort(timeline.start - timeline.end, kind="stable")[:_STRETCHES]
    shown = np.sort(longest)
    return {
        "start": [_number(value) for value in timeline.start[shown].tolist()],
        "end": [_number(value) for value in timeline.end[shown].tolist()],
        "thread": timeline.thread[shown].tolist(),
        "kernel": [place.get(op, -1) for op in timeline.op[shown].tolist()],
        "waits": timeline.waits[shown].astype(int).tolist(),
        "threads": list(timeline.threads),
        "seconds": timeline.seconds,
        "more": len(timeline) - len(shown) + timeline.left_out,
    }
