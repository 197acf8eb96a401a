"""The passes of one compilation, from the modules that XLA dumps after each pass and from its trace events."""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count, repeat
from math import inf
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from explorer._jax.profiling import may_profile, profiling, read_profile
from explorer.capture.equation_paths import EquationPaths
from explorer.capture.readers.hlo import read_hlo
from explorer.errors import NotRecordedError, ProfilerBusyError, UnreadableTextError
from explorer.files.disk import LARGEST_DUMP, read_text
from explorer.model.declared import uncollected
from explorer.model.graph import Frame, Graph
from explorer.model.links import EXACT, INFERRED, EquationSets
from explorer.model.passes import Passes, measured
from explorer.model.text_versions import Snapshot, Versions, follow

# module_0006.jit_f.0011.simplification.after_algsimp.before_simplify-sorts.txt; a step within a pass has no `before`.
_SNAPSHOT = re.compile(
    r"(?P<module>.+?)\.(?P<number>\d{4,})\.(?P<pipeline>.+?)\.after_(?P<name>.+?)(?:\.before_.+)?\.txt"
)
# module_0006.jit_f.before_optimizations.txt, module_0006.jit_f.sm_9.0_gpu_after_optimizations.txt, ….hlo.pb
_WHOLE = re.compile(
    r"(?P<module>.+?)\.(?:(?:sm_\d+\.)?[\w:+\-]+_)?(?P<when>before|after)_optimizations(?:\.hlo)?\.(?P<kind>txt|pb)(?:\.gz)?"
)
_NOT_IN_FILES = re.compile(r"[^\w.\-]")
MOST_LINES = 600_000  # distinct lines kept of all snapshots: about 100 MB of text


def modules_in(folder: str | Path) -> tuple[str, ...]:
    """Return the names of the modules that a dump folder has snapshots for, in order of their text, largest first."""
    modules = _snapshots(Path(folder))
    sizes = {module: sum(file.path.stat().st_size for file in files) for module, files in modules.items()}
    return tuple(sorted(sizes, key=lambda module: (-sizes[module], module)))


def read_passes(folder: str | Path, module: str | None = None) -> Passes:
    """Return the passes of one module in a folder that `--xla_dump_to` and `--xla_dump_hlo_pass_re=.*` wrote.

    A module is named by the start of its files' names, `module_0006.jit_f`; the default is the one with the most text.
    Raises NotRecordedError if there is no snapshot of it.
    """
    folder = Path(folder)
    there = modules_in(folder)
    if not there or (module is not None and module not in there):
        what = f"no snapshot of {module!r}; there are: {', '.join(there)}" if there else "no snapshot of a module"
        raise NotRecordedError(
            f"{folder} holds {what}.\n  Hint: dump with XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_pass_re=.*'."
        )
    files = pass_files(folder, module or there[0])
    texts = ((file, read_text(file.path, largest=LARGEST_DUMP, errors="replace")) for file in files)
    return read_pass_texts(texts)


@uncollected()
def read_pass_texts(
    texts: Iterable[tuple[PassFile, str]],
    *,
    runs: Sequence[Run] = (),
    paths: EquationPaths | None = None,
    rename: Callable[[Set[str], Set[str]], Mapping[str, str]] | None = None,
) -> Passes:
    """Return the passes of a module from its snapshots, in order.

    `runs` are the passes that ran, `paths` the equations of a numbered program. `rename` takes the names of all
    instructions and computations, and those that are taken; it returns new names for some.
    """
    versions = VersionsBuilder(paths)
    steps: list[tuple[Run, int]] = []  # each with the snapshot after it
    left_out, before = 0, ""
    for file, text in texts:
        if len(versions.lines) > MOST_LINES:
            left_out += 1
            continue
        is_new = text != before and versions.add(text)
        name = _outside(before, text) if file.name == START and is_new else file.name
        if before:
            steps.append((Run(name, file.pipeline), versions.snapshots - 1))
        before = text
    names = versions.all_names() if rename is not None else set[str]()
    ran = [(run.name, run.pipeline, run.seconds, at) for run, at in _merged(runs, steps)]
    built = versions.build(rename(names, names) if rename is not None else None)
    omitted = f"the last {left_out:,} snapshots are left out: the program is too large" * (left_out > 0)
    return Passes(built, measured(built, ran), is_complete=bool(runs), omitted=omitted)


@dataclass(frozen=True, slots=True)
class PassFile:
    path: Path
    pipeline: str
    name: str


def pass_files(folder: Path, module: str | None = None) -> list[PassFile]:
    """Return the module's snapshots in order, by default of the module with the most text; empty if it ran no pass."""
    files = _snapshots(folder).get(module or next(iter(modules_in(folder)), ""), [])
    # A program from JAX's persistent cache runs no pass.
    return files if any(file.pipeline for file in files) else []


def _snapshots(folder: Path) -> dict[str, list[PassFile]]:
    """Return the snapshots of each module of a folder, in order."""
    numbered: dict[str, list[tuple[float, PassFile]]] = {}
    for path in files_in(folder):
        if (match := _SNAPSHOT.fullmatch(path.name)) is not None:
            numbered_file = float(match["number"]), PassFile(path, match["pipeline"], match["name"])
        elif (match := _WHOLE.fullmatch(path.name)) is not None and path.suffix == ".txt":
            # Without a number: it comes before or after all snapshots.
            is_first = match["when"] == "before"
            numbered_file = -inf if is_first else inf, PassFile(path, "", "" if is_first else START)
        else:
            continue
        numbered.setdefault(match["module"], []).append(numbered_file)
    return {module: [file for _, file in sorted(files, key=itemgetter(0))] for module, files in numbered.items()}


def _outside(before: str, text: str) -> str:
    """Return a name for a change that no pass made: `scheduling` by the module's header, else `between pipelines`."""
    scheduled = "is_scheduled=true"
    return "scheduling" if scheduled in text[:2000] and scheduled not in before[:2000] else "between pipelines"


def _merged(runs: Sequence[Run], steps: Sequence[tuple[Run, int]]) -> list[tuple[Run, int]]:
    """Return pairs of a run and the number of the snapshot after it, in order, without pipeline starts.

    In addition to `runs` there is one for each of `steps` that changed the text and that no run made. Without `runs`,
    steps that changed nothing are returned too.
    """
    written = [(_NOT_IN_FILES.sub("_", run.name), _NOT_IN_FILES.sub("_", run.pipeline)) for run in runs]
    merged: list[tuple[Run, int]] = []
    shot = at = 0
    for step, after in steps:
        name = step.name, step.pipeline
        try:
            match = written.index(name, at)
        except ValueError:
            match = -1
        # A change between pipelines comes before the next one's passes, a step within a pass before that pass.
        end = match if match >= 0 else next((i for i in range(at, len(runs)) if step.pipeline in written[i]), -1)
        if match < 0 and after == shot and runs:
            continue  # a pipeline within a pipeline, which is listed as a pass too
        end = max(end, at)
        merged += zip(runs[at:end], repeat(shot), strict=False)
        at, shot = end, after
        merged.append((runs[match] if match >= 0 else Run(step.name, step.pipeline.replace("_", " ")), after))
        at += match >= 0
    merged += zip(runs[at:], repeat(shot), strict=False)
    return [(run, after) for run, after in merged if run.name != START]


# The folder that --xla_dump_to wrote ----------------------------------------------------------------------------------

_NUMBER = re.compile(r"module_\d+\.")
_SINGLE = re.compile(r"(?P<prefix>.+?)(?:\.(?:hlo|stablehlo|mlir|mlirbc|pb|txt))+(?:\.gz)?")
_SUFFIXES = (".hlo", ".mlir", ".mlirbc", ".stablehlo", ".pb", ".hlo.txt", ".hlo.gz", ".mlir.gz")


@dataclass
class Dump:
    """One module of a dump: its files' prefix, and its text `before` and `after` optimization, or `only` one."""

    prefix: str
    files: dict[str, Path] = field(default_factory=dict[str, Path])
    size: int = 0
    has_passes: bool = False

    @property
    def name(self) -> str:
        return _NUMBER.sub("", self.prefix)


def dumps_in(folder: Path) -> list[Dump]:
    """Return the modules of a folder, the largest first; without XLA's file names, each file is a module."""
    paths = files_in(folder)
    dumps = _whole_modules(paths) or _single_modules(paths)
    for dump in dumps.values():
        dump.files = {when: dump.files[when] for when in ("before", "after", "only") if when in dump.files}
        dump.size = sum(path.stat().st_size for path in dump.files.values())
    return sorted(dumps.values(), key=lambda dump: (-dump.size, dump.prefix))


def files_in(folder: Path) -> list[Path]:
    """Return a folder's files, sorted, without links to elsewhere: a foreign dump must not show other files."""
    root = folder.resolve()
    return sorted(
        path
        for path in folder.iterdir()
        if path.is_file() and (not path.is_symlink() or path.resolve().is_relative_to(root))
    )


def _whole_modules(paths: list[Path]) -> dict[str, Dump]:
    """Return the modules before and after optimization by prefix, from XLA's file names."""
    dumps: dict[str, Dump] = {}
    for path in paths:
        if whole := _WHOLE.fullmatch(path.name):
            dump = dumps.setdefault(whole["module"], Dump(whole["module"]))
            if whole["kind"] == "txt" or whole["when"] not in dump.files:  # text rather than its proto
                dump.files[whole["when"]] = path
    for path in paths:
        if (step := _SNAPSHOT.fullmatch(path.name)) and step["module"] in dumps:
            dumps[step["module"]].has_passes = True
    return dumps


def _single_modules(paths: list[Path]) -> dict[str, Dump]:
    """Return a dump for each file name without its suffixes, in a folder without XLA's file names.

    Of several files with one such name, the first counts.
    """
    dumps: dict[str, Dump] = {}
    for path in paths:
        if path.name.endswith(_SUFFIXES) and (single := _SINGLE.fullmatch(path.name)):
            dumps.setdefault(single["prefix"], Dump(single["prefix"])).files.setdefault("only", path)
    return dumps


# The passes that ran, from the compiler's trace events ----------------------------------------------------------------

START = "pipeline-start"  # marks the start of a pipeline among runs and snapshots

_PIPELINE = re.compile(r"(.+) \(([^()]+)\)")  # `simplification (jit_f)`: a pipeline that runs on a module
_NO_PASS = ("RunInvariantCheckers",)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a pass; without `seconds` where it wasn't measured."""

    name: str
    pipeline: str
    seconds: float | None = None


@contextmanager
def timed() -> Generator[list[Run]]:
    """Yield a list that gets the passes that ran in this context at its end; none if JAX's only profiler is in use."""
    runs: list[Run] = []
    if not may_profile():
        yield runs
        return
    session = ExitStack()
    try:
        profile = session.enter_context(profiling())
    except ProfilerBusyError:  # the user profiles something
        yield runs
        return
    try:
        yield runs
    finally:
        with suppress(ProfilerBusyError, RuntimeError, OSError):  # a full disk, where the profile goes through files
            session.close()
    with suppress(RuntimeError):  # cut short
        if profile.data:
            recorded = read_profile(profile.data)  # kept by name: its planes refer to its memory
            threads: list[list[Run]] = [_runs_of(line.events) for plane in recorded.planes for line in plane.lines]
            # Of the thread that compiled most: other threads may compile at the same time.
            runs += max(threads, key=len, default=list[Run]())


@dataclass(slots=True)
class _Open:
    end: float
    pipeline: str
    run: int  # its index among the runs, or -1


def _runs_of(events: Iterable[Any]) -> list[Run]:
    runs: list[Run | None] = []
    stack: list[_Open] = []
    # Of events that start together the longer one is around the other.
    for event in sorted(events, key=lambda event: (event.start_ns, -event.duration_ns)):
        outer = _innermost_open(stack, event.start_ns)
        match = _PIPELINE.fullmatch(event.name)
        pipeline, run = "" if match is None else match[1], -1
        if match is not None:
            if outer.run >= 0:
                runs[outer.run] = None  # a pass that is a pipeline: only its inner passes count
            runs.append(Run(START, pipeline))
        elif outer.pipeline and event.name not in _NO_PASS:
            run = len(runs)
            runs.append(Run(event.name, outer.pipeline, event.duration_ns / 1e9))
        stack.append(_Open(event.start_ns + event.duration_ns, pipeline, run))
    return [run for run in runs if run is not None]


def _innermost_open(stack: list[_Open], now: float) -> _Open:
    """Return the event around what starts now, or one without pipeline and run; drop those that ended before."""
    while stack and now >= stack[-1].end:
        stack.pop()
    return stack[-1] if stack else _Open(0, "", -1)


_METADATA = re.compile(r', metadata=\{(?:[^{}"]++|"(?:[^"\\]++|\\.)*+")*+\}')
_NAME = re.compile(r"\s+(?:ROOT )?%?([\w.\-]+) = ")
_HEAD = re.compile(r"(?:ENTRY )?%?([\w.\-]+) .*\{\s*$")
_REFERENCE = re.compile(r"%([\w.\-]+)")
_OP_NAME = 'op_name="'
_MAX_PENDING = 1_000_000  # lines of snapshots held until they are read: 8 MB
_LAST_WORD = re.compile(r"%?([A-Za-z_][\w.\-]*)\s*$")


class _NewLine(NamedTuple):
    """A line that no earlier snapshot had: its row, its computation, and the line with metadata."""

    row: int
    computation: str
    line: str


class VersionsBuilder:
    """Builder of `Versions` from the texts of a module's snapshots, in order.

    New lines are read together with those of the next snapshots, as long as the tables of frames are the same: a module
    has hundreds of snapshots, and most add a few lines.
    """

    def __init__(self, paths: EquationPaths | None = None) -> None:
        self._paths = paths
        self._op_names: dict[str, int] = {}
        self._op_name_of_row = array("i")  # as it was last
        self._first_op_name = array("i")
        self._relabelled: list[tuple[int, int, int]] = []  # snapshot, row, and its op_name from then on
        self.lines: list[str] = []
        self.snapshots = 0
        self._rows: list[int] = []  # of the last snapshot
        self._changes: list[tuple[list[int], int]] = []  # each snapshot's rows, with the first that is new in it
        self._runs: list[Snapshot] = []
        self._last_flushed: list[int] = []
        self._new_lines: list[_NewLine] = []
        self._tables: list[str] = []
        # By computation: the lines of the last snapshot as they were written, with metadata, and each one's row.
        self._row_of_line: dict[str, dict[str, int]] = {}
        # Rows by computation and instruction, and the reverse.
        self._row_of_name: dict[tuple[str, str], int] = {}
        self._name_of_row: dict[int, tuple[str, str]] = {}
        self._keys: dict[str, dict[str, int]] = {}  # by computation and instruction
        self._next_key = count()
        self._ops: dict[str, int] = {}
        self._types: dict[str, int] = {}
        self._frames: dict[Frame, int] = {}
        self._columns = {name: array("i") for name in ("key", "op", "type", "frame")}
        self._operand_start, self._operand = array("i", [0]), array("i")

    def add(self, text: str) -> bool:
        """Add the next snapshot; return True if its lines or their order differ from the last one's."""
        first = len(self.lines)
        tables, body = _split_tables(text)
        rows, new_lines = self._rows_of(body, first)
        if rows == self._rows:
            return False
        if tables != self._tables or len(self._changes) * len(rows) > _MAX_PENDING:
            self._flush()
            self._tables = tables
        self._new_lines += new_lines
        self._changes.append((rows, first))
        self.snapshots += 1
        self._rows = rows
        named = self._name_of_row
        self._row_of_name = {named[row]: row for row in rows if row in named}
        return True

    def _rows_of(self, body: Sequence[str], first: int) -> tuple[list[int], list[_NewLine]]:
        """Return the row of each line, which is its index among all distinct lines, and the lines whose row is new.

        New rows are those from `first` on.
        """
        rows: list[int] = []
        row_of_line: dict[str, dict[str, int]] = {}
        new_lines: list[_NewLine] = []
        computation, old, new = "", self._row_of_line.get("", {}), row_of_line.setdefault("", {})
        for line in body:
            if line and line[0] not in " }" and line[-1] == "{" and (head := _HEAD.match(line)) is not None:
                computation = head[1]
                old, new = self._row_of_line.get(computation, {}), row_of_line.setdefault(computation, {})
            row = old.get(line, -1)
            if row < 0 or line in new:
                row = self._row(computation, line)
                if row >= first:
                    new_lines.append(_NewLine(row, computation, line))
            new[line] = row
            rows.append(row)
        self._row_of_line = row_of_line
        return rows, new_lines

    def _row(self, computation: str, line: str) -> int:
        """Return the row of a line in a new spelling: a new one, unless only its metadata changed."""
        clean = _METADATA.sub("", line) if "metadata=" in line else line
        name = _NAME.match(line)
        if name is not None:
            row = self._row_of_name.get((computation, name[1]), -1)
            if row >= 0 and self.lines[row] == clean:
                self._relabel(row, line)
                return row
            self._name_of_row[len(self.lines)] = computation, name[1]
        self.lines.append(clean)
        self._first_op_name.append(self._op_name(line))
        self._op_name_of_row.append(self._first_op_name[-1])
        return len(self.lines) - 1

    def _op_name(self, line: str) -> int:
        """Return the index of a line's op_name among all; -1 for none, and where the equations have no numbers."""
        start = line.find(_OP_NAME) + len(_OP_NAME) if self._paths is not None else 0
        if start < len(_OP_NAME):
            return -1
        # An escaped quote ends an argument's name early, which has no number.
        return self._op_names.setdefault(line[start : line.find('"', start)], len(self._op_names))

    def _relabel(self, row: int, line: str) -> None:
        op_name = self._op_name(line)
        if op_name != self._op_name_of_row[row]:
            self._op_name_of_row[row] = op_name
            self._relabelled.append((self.snapshots, row, op_name))

    def _flush(self) -> None:
        """Read the new lines as a module of their own, and note how the snapshots follow from each other."""
        text, row_at = self._module_of_new_lines()
        graph = None
        with suppress(UnreadableTextError):
            graph = read_hlo("\n".join([*text, "}", ""])) if row_at else None
        if graph is not None:
            nodes = {row_at[at]: node for node, at in enumerate(graph.line.tolist()) if at in row_at}
            self._describe(graph, nodes)
        else:
            for column in self._columns.values():
                column.extend([-1] * len(self._new_lines))
            self._operand_start.extend([len(self._operand)] * len(self._new_lines))
        if not self._changes:
            return
        self._runs += follow(self._last_flushed, self._changes)
        self._last_flushed = self._changes[-1][0]
        self._changes, self._new_lines = [], []

    def _module_of_new_lines(self) -> tuple[list[str], dict[int, int]]:
        """Return the lines of a module of the new instructions, and the row of each by the index of its line."""
        text: list[str] = ["HloModule m", "", *self._tables, ""]
        row_at: dict[int, int] = {}
        last = ""
        for row, computation, line in self._new_lines:
            if not line.startswith(" "):
                continue
            if computation != last:
                text += ["}", ""] if last else []
                text.append(f"%{computation} () -> () {{")
                last = computation
            row_at[len(text)] = row
            text.append(line)
        return text, row_at

    def _describe(self, graph: Graph, nodes: Mapping[int, int]) -> None:
        """Fill the columns of the new lines, given the node of each row that is an instruction."""
        ops: list[int] = graph.op.tolist()
        at = [nodes.get(row, -1) for row, _, _ in self._new_lines]
        frames = [-2] * len(graph.frames)
        codes = {
            "op": (graph.op, [self._ops.setdefault(op, len(self._ops)) for op in graph.ops]),
            "type": (graph.type, [self._types.setdefault(type_, len(self._types)) for type_ in graph.types]),
            "frame": (graph.frame, [self._frame(graph, frame, frames) for frame in range(len(frames))]),
        }
        for column, (of_node, of_code) in codes.items():
            # The -1 at the end is the entry of index -1: a line without an instruction, or a node without a frame.
            by_node = np.asarray([*of_code, -1], np.int32)[np.append(of_node, -1)]
            self._columns[column].frombytes(by_node[at].tobytes())
        key, operand, start = self._columns["key"], self._operand, self._operand_start
        for node, (_, computation, line) in zip(at, self._new_lines, strict=True):
            if node < 0:
                key.append(-1)
            else:
                keys = self._keys_of(computation)
                key.append(keys[graph.names[node]])
                operand.extend([keys[name] for name in _operands(line, graph.ops[ops[node]])])
            start.append(len(operand))

    def _keys_of(self, computation: str) -> dict[str, int]:
        """Return the numbers of a computation's instructions by name; looking up a new name adds the next number."""
        if computation not in self._keys:
            self._keys[computation] = defaultdict(self._next_key.__next__)
        return self._keys[computation]

    def _frame(self, graph: Graph, at: int, index: list[int]) -> int:
        """Return the index of a graph's frame in the common table; `index` caches it, -2 for unknown."""
        walk: list[int] = []
        while at >= 0 and index[at] == -2 and at not in walk:  # damaged parents may go in a circle
            walk.append(at)
            at = graph.frames[at].parent
        parent = index[at] if at >= 0 and index[at] != -2 else -1
        for i in reversed(walk):
            f = graph.frames[i]
            frame = Frame(f.file, f.function, f.line, f.column, f.end_line, f.end_column, parent)
            parent = index[i] = self._frames.setdefault(frame, len(self._frames))
        return parent

    def build(self, names: Mapping[str, str] | None = None) -> Versions:
        """Return the snapshots so far as values, with instructions and computations renamed by `names`."""
        self._flush()
        columns = {name: np.asarray(column) for name, column in self._columns.items()}
        names = names or {}
        computation_of = {
            key: (number, name) for number, keys in enumerate(self._keys.values()) for name, key in keys.items()
        }
        named = [computation_of[key] for key in range(len(computation_of))]
        return Versions(
            lines=[*map(partial(_renamed, names), self.lines)] if names else self.lines,
            **columns,
            operand_start=np.asarray(self._operand_start),
            operand=np.asarray(self._operand),
            names=[_renamed_instruction(names, name) for _, name in named],
            computation=np.asarray([number for number, _ in named], np.int32),
            computations=[names.get(name, name) for name in self._keys],
            ops=list(self._ops),
            types=list(self._types),
            frames=list(self._frames),
            snapshots=self._runs,
            relabelled=np.asarray([(shot, row) for shot, row, _ in self._relabelled], np.int32).reshape(-1),
            equations=self._equations(),
        )

    def all_names(self) -> set[str]:
        self._flush()
        return {name.partition("#")[0] for keys in self._keys.values() for name in keys} | self._keys.keys()

    def _equations(self) -> EquationSets | None:
        """Return the equations of each line, then of each state that a line had later; None without numbers."""
        if self._paths is None:
            return None
        by_code = [*map(self._paths.resolve, self._op_names)]
        codes = [*self._first_op_name, *(op_name for _, _, op_name in self._relabelled)]
        grade = [EXACT if code < 0 or by_code[code].certain else INFERRED for code in codes]
        return EquationSets.of_codes(codes, [of_code.rows for of_code in by_code], np.asarray(grade, np.int8))


_ANY_NAME = re.compile(r"(?<=%)[\w.\-]+|(?<=[(, ])[\w.\-]+(?=: )")


def _renamed_instruction(names: Mapping[str, str], name: str) -> str:
    """Return the new name of an instruction, or of an element of a tuple, `name#0` in newer XLAs."""
    whole, sign, part = name.partition("#")
    return names.get(whole, whole) + sign + part


def _renamed(names: Mapping[str, str], line: str) -> str:
    return _ANY_NAME.sub(lambda name: names.get(name[0], name[0]), line)


def _split_tables(text: str) -> tuple[list[str], list[str]]:
    """Return a module's tables of frames, and the lines of its header and computations."""
    lines = text.rstrip().splitlines()
    if "FileNames" not in lines:
        return [], lines
    tables = lines.index("FileNames")
    body = next((i for i in range(tables, len(lines)) if lines[i].endswith("{")), len(lines))
    return lines[tables:body], [*lines[:tables], *lines[body:]]


def _operands(line: str, op: str) -> list[str]:
    """Return the names of the operands; the parentheses of a constant or parameter hold a value instead."""
    start = line.find(f" {op}(") + len(op) + 2
    if op in ("constant", "parameter") or start < len(op) + 2:
        return []
    end = line.find(")", start) + 1
    if "(" in line[start:end]:  # a tuple's type, or a layout's tiles
        end = _closing(line, start)
    inside = line[start : end - 1]
    if "%" in inside:
        return _REFERENCE.findall(inside)
    return [word[1] for piece in inside.split(", ") if (word := _LAST_WORD.search(piece)) is not None]


def _closing(line: str, start: int) -> int:
    """Return the index after the `)` of the parenthesis opened before `start`; the line's length if none closes it."""
    depth, end = 1, start
    while end < len(line) and depth:
        depth += {"(": 1, ")": -1}.get(line[end], 0)
        end += 1
    return end
