"""open_hlo(): a module from anywhere (a file, a text, bytes, a folder of dumps), without the program that made it."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from explorer._jax.native import hlo_text, mlir_text, printed_again
from explorer.analysis.kernel_costs import TotalCost
from explorer.capture.passes import Dump, dumps_in, read_passes
from explorer.capture.readers.graph_builder import GraphBuilder
from explorer.capture.readers.hlo import read_hlo
from explorer.capture.readers.stablehlo import read_stablehlo
from explorer.capture.sources import ForeignSources
from explorer.errors import OpenError, UnreadableTextError
from explorer.files.container import GZIP, Unpacker, UnpackingError
from explorer.files.disk import LARGEST_DUMP, read_bytes
from explorer.model.capture import Capture
from explorer.model.graph import Graph
from explorer.model.stage import Durations, Stage, is_library_file
from explorer.model.types import measure_types

_GZIP = b"\x1f\x8b"
_BYTECODE = b"ML\xefR"
_CAPTURE = b"EXPLORER"
_HLO = re.compile(r"^[ \t]*+(?:HloModule\b|ENTRY\b|(?:ROOT )?%?[\w.\-]++ = [a-z(])", re.M)
_MODULE = re.compile(
    r"^[ \t]*+(?:HloModule ([^\s,]++)|module @([\w$.\-]++)|\"builtin\.module\"\(\) <\{.*?sym_name = \"([^\"]*+)\")",
    re.M,
)
_MAX_HANDWRITTEN = 1_000_000  # characters; a longer text is a compiler's
_FRAME = ("HloModule", "module", "//", "#", "}")  # lines around the instructions
_BACKENDS = {"gpu": ("__cublas", "__cudnn", "__triton", "__cub$"), "tpu": (":T(8,128)", ":T(128)", "tpu_custom_call")}


def open_hlo(
    source: str | os.PathLike[str] | bytes,
    *,
    module: str | None = None,
    sources: str | os.PathLike[str] | None = None,
) -> Capture:
    """Open a compiled module from anywhere: JAX, TensorFlow, PyTorch/XLA; for a CPU, GPU or TPU, without that device.

    Args:
        source: A path, or the module itself: text (which has more than one line) or bytes. It may be HLO text, before
            or after optimization and of any age; StableHLO or other MLIR, as text or bytecode; a serialized `HloProto`
            or `HloModuleProto`; any of these compressed by gzip; or the folder of an XLA dump (`--xla_dump_to`). Text
            in a spelling that no compiler prints is shown as its compiler prints it.
        module: A module of a folder: the start of its files' names, or a part of it.
        sources: The folder below which Python files that the module names may be shown and saved with the capture; None
            is the working folder, "/" any. The module's author chose these names. `environment["sources"]` lists files
            that exist and were left out.

    Returns:
        A capture with the stages that are there: `hlo`; `stablehlo` for MLIR; for a dump also `before`, the module
            before optimization, and its passes if they were dumped. Lines that could not be read are shown as text: see
            `graph.unread` and `failure`. Its `cost` is the sum over the kernels that run, as the page shows it.

    Raises:
        OpenError: There is no module: no such file, an empty one, a folder without modules or with several, bytes of
            another kind, or bytes that unpack to more than the limit.

    Example:
        >>> import explorer
        >>> explorer.open_hlo('''HloModule scale
        ... ENTRY main {
        ...   x = f32[8] parameter(0)
        ...   ROOT doubled = f32[8] add(x, x)
        ... }''').hlo.graph["doubled"]
        doubled = f32[8] add(x, x)
    """
    if isinstance(source, bytes | bytearray | memoryview):
        return _capture_of_text(_text_of(bytes(source), "these bytes"), "", "bytes", ForeignSources(sources))
    if isinstance(source, str) and ("\n" in source or not source.strip()):
        return _capture_of_text(source, "", "text", ForeignSources(sources))
    path = Path(source)
    try:
        data = b"" if path.is_dir() else read_bytes(path, LARGEST_DUMP, "a module")
    except (OSError, ValueError) as error:  # is_dir() raises ValueError for a null byte
        raise _unreadable(path, error) from error
    if not data and path.is_dir():
        return _open_folder(path, module, ForeignSources(sources))
    return _capture_of_text(_text_of(data, str(path)), path.name.partition(".")[0], str(path), ForeignSources(sources))


def _unreadable(path: Path, error: Exception) -> OpenError:
    reason = (getattr(error, "strerror", None) or str(error)).rstrip(".")
    shown = str(path) if len(str(path)) < 100 else f"{str(path)[:97]}…"
    return OpenError(
        f"{shown!r} can't be opened: {reason}. Hint: a text to open has more than one line; one line is a path."
    )


def _decompressed(data: bytes, what: str) -> bytes:
    if not data.startswith(_GZIP):
        return data
    try:
        return Unpacker(len(data)).unpack(data, GZIP)
    except UnpackingError as error:
        raise OpenError(f"{what}: it is compressed, and {error}. Hint: unpack it first if you trust it.") from error


def _text_of(data: bytes, what: str) -> str:
    """Return the module's text from text, bytecode, a proto, or gzip of one; raise OpenError for other bytes."""
    data = _decompressed(data, what)
    if not data.strip():
        raise OpenError(f"{what}: nothing is in there.")
    if data.startswith(_CAPTURE):
        raise OpenError(f"{what}: this is a saved capture. Hint: explorer.load(path).")
    if data.startswith(_BYTECODE):
        return _convert(mlir_text, data, what, "")
    # A serialized proto has zero bytes near its start.
    if b"\0" not in data[:4096]:
        try:
            # Editors on Windows write a byte order mark.
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            if _HLO.search(data[:100_000].decode("latin-1")) or b"func.func" in data:
                return data.decode("utf-8", "replace")
    hint = (
        f" It starts with {data[:8]!r}. Hint: open_hlo reads HLO or MLIR text, MLIR bytecode, a serialized HloProto, "
        "or a folder of dumps."
    )
    return _convert(hlo_text, data, what, hint)


def _convert(convert: Callable[[bytes], str], data: bytes, what: str, hint: str) -> str:
    try:
        return convert(data)
    except OpenError as error:
        raise OpenError(f"{what}: {error}{hint}") from error.__cause__


@dataclass(frozen=True)
class _ParsedText:
    stage: str
    text: str
    graph: Graph
    failure: str = ""
    is_printed_again: bool = False


def _read(text: str) -> _ParsedText:
    """Return a module's stage, text and graph; if lines are unread, those of the text as its compiler prints it."""
    read = _read_lines(text)
    if not read.failure or len(text) > _MAX_HANDWRITTEN or "=" not in text:
        return read
    try:
        again = _read_lines(printed_again(text, is_hlo=read.stage == "hlo"))
    except ValueError as error:
        return replace(read, failure=f"{read.failure}; {error}")
    return read if again.failure else replace(again, is_printed_again=True)


def _read_lines(text: str) -> _ParsedText:
    """Return a module's stage, text and graph; `failure` counts unread lines.

    If no line can be read, the graph is empty and `failure` has the reason.
    """
    is_hlo = _HLO.search(text, 0, 1_000_000) is not None and not _starts_as_mlir(text)
    readers: list[tuple[str, Callable[[str], Graph]]] = [("hlo", read_hlo), ("stablehlo", read_stablehlo)]
    for stage, read in readers if is_hlo else reversed(readers):
        try:
            graph = read(text)
        except UnreadableTextError:
            continue
        unread = len(graph.unread)
        return _ParsedText(stage, text, graph, f"{unread:,} line{'s' * (unread > 1)} unread" if unread else "")
    first = text.strip()[:60].partition("\n")[0]
    reason = f"this text holds no HLO instruction and no MLIR operation: it starts with {first!r}"
    lines = enumerate(line.strip() for line in text.split("\n"))
    unread = tuple(i for i, line in lines if line and not line.startswith(_FRAME) and not line.endswith("{"))
    graph = replace(GraphBuilder().build(), unread=unread)
    return _ParsedText("stablehlo" if _starts_as_mlir(text) else "hlo", text, graph, reason)


def _starts_as_mlir(text: str) -> bool:
    lines = (line.strip() for line in text[:100_000].split("\n"))
    first = next((line for line in lines if line and not line.startswith("//")), "")
    return first.startswith(("module", "#", '"builtin.module"', "func.func")) or "func.func" in text[:100_000]


def _capture_of_text(text: str, name: str, origin: str, sources: ForeignSources) -> Capture:
    if not text.strip():
        raise OpenError("the text is empty.")
    return _capture([_read(text)], name, {"opened from": origin}, sources)


def _open_folder(folder: Path, module: str | None, sources: ForeignSources) -> Capture:
    dump = _select_dump(dumps_in(folder), folder, module)
    reads: list[_ParsedText] = []
    for stage, path in dump.files.items():
        read = _read(_text_of(read_bytes(path, LARGEST_DUMP, "a module", OpenError), str(path)))
        reads.append(replace(read, stage="before") if stage == "before" and "after" in dump.files else read)
    capture = _capture(reads, dump.name, {"opened from": str(folder), "module": dump.prefix}, sources)
    if dump.has_passes:
        # A capture is frozen, and the passes are read from the folder at the first access.
        object.__setattr__(capture, "read_passes", lambda: read_passes(folder, dump.prefix))
    return capture


def _select_dump(dumps: list[Dump], folder: Path, module: str | None) -> Dump:
    """Return the only module, or that which `module` names; raise OpenError with the list if it isn't exactly one."""
    if not dumps:
        raise OpenError(
            f"{str(folder)!r} holds no module. Hint: dump with XLA_FLAGS='--xla_dump_to=FOLDER --xla_dump_hlo_as_text'."
        )
    if module is None:
        matching, called = dumps, ""
    else:
        exact = [dump for dump in dumps if module in (dump.prefix, dump.name)]
        matching, called = exact or [dump for dump in dumps if module in dump.prefix], f" called {module!r}"
    if len(matching) == 1:
        return matching[0]
    candidates = matching or dumps
    listed = "".join(f"\n    {dump.prefix}  ({dump.size / 1000:,.0f} kB)" for dump in candidates[:20])
    more = f"\n    … and {len(candidates) - 20:,} more" if len(candidates) > 20 else ""
    what = f"{len(matching):,} modules" if matching else "no module"
    raise OpenError(
        f"{str(folder)!r} holds {what}{called}; there are:{listed}{more}\n"
        f"  Hint: open_hlo(folder, module={candidates[0].prefix!r})."
    )


def _capture(reads: list[_ParsedText], name: str, environment: dict[str, str], sources: ForeignSources) -> Capture:
    last = reads[-1]
    _check_types(reads)
    header = _MODULE.search(last.text, 0, 100_000)
    backend = next((b for b, marks in _BACKENDS.items() if any(mark in last.text for mark in marks)), "")
    failures = [f"{read.stage}: {read.failure}" if len(reads) > 1 else read.failure for read in reads if read.failure]
    return Capture(
        function=next((part for part in header.groups() if part), "") if header else name or "module",
        file=_users_file(last.graph),
        signature=_signature(last.graph),
        stages=tuple(Stage(read.stage, lambda read=read: (read.text, read.graph)) for read in reads),
        durations=Durations(),
        environment=environment | ({"backend": backend} if backend else {}) | _notes(reads, sources),
        failure="; ".join(failures),
        cost=TotalCost(last.graph) if last.stage == "hlo" else {},
        read_source=cache(sources.read),
    )


def _check_types(reads: list[_ParsedText]) -> None:
    """Raise OpenError for a module with an array whose size no compiler can count."""
    try:
        for read in reads:
            measure_types(read.graph.types)
    except UnreadableTextError as error:
        raise OpenError(f"this module is refused: {error}") from error


def _notes(reads: list[_ParsedText], sources: ForeignSources) -> dict[str, str]:
    """Return notes by subject: `text` if the compiler's spelling replaced the opened text, `sources` with files that
    were left out because they aren't below the folder; empty without either.
    """
    notes: dict[str, str] = {}
    if any(read.is_printed_again for read in reads):
        notes["text"] = "as the compiler prints it; the opened text was formatted differently"
    files = dict.fromkeys(frame.file for read in reads for frame in read.graph.frames)
    left_out = sources.left_out(file for file in files if not is_library_file(file))
    if not left_out:
        return notes
    names = ", ".join(left_out[:3]) + (f" and {len(left_out) - 3:,} more" if len(left_out) > 3 else "")
    return notes | {"sources": f"left out, not below {sources.folder}: {names}. Hint: open_hlo(…, sources=FOLDER)"}


def _users_file(graph: Graph) -> str:
    used = np.bincount(graph.frame[graph.frame >= 0], minlength=len(graph.frames)) if graph.frames else ()
    files: Counter[str] = Counter()
    for frame, count in zip(graph.frames, used, strict=True):
        if not is_library_file(frame.file):
            files[frame.file] += int(count)
    return files.most_common(1)[0][0] if files else ""


def _signature(graph: Graph) -> str:
    """Return `(x: f32[8,128], w: f32[128])`: the program's parameters, or their number; empty if unknown."""
    entry = next((i for i, group in enumerate(graph.groups) if group.kind == "entry"), -1)
    if entry < 0 or "parameter" not in graph.ops:
        return ""
    rows = np.flatnonzero((graph.group == entry) & (graph.op == graph.ops.index("parameter"))).tolist()
    types = [graph.types[int(graph.type[row])].partition("{")[0] for row in rows]
    if len(rows) > 6 or sum(map(len, types)) > 120:
        return f"({len(rows):,} arrays)"
    return "(" + ", ".join(f"{graph.names[row].lstrip('%')}: {t}" for row, t in zip(rows, types, strict=True)) + ")"
