"""The passes of one compilation, from the modules that XLA dumps after each pass and from its trace events."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import Any

from explorer._jax import may_profile
from explorer._jax.profiling import profiling, read_profile
from explorer.capture.equation_paths import EquationPaths
from explorer.capture.versions import VersionsBuilder
from explorer.errors import NotRecordedError, ProfilerBusyError
from explorer.files.disk import LARGEST_DUMP, read_text
from explorer.model.passes import Passes, measured

# module_0006.jit_f.0011.simplification.after_algsimp.before_simplify-sorts.txt; a step within a pass has no `before`.
_SNAPSHOT = re.compile(
    r"(?P<module>.+?)\.(?P<number>\d{4,})\.(?P<pipeline>.+?)\.after_(?P<name>.+?)(?:\.before_.+)?\.txt"
)
_FIRST = re.compile(r"(?P<module>.+?)\.(?:\w+_)?before_optimizations\.txt")
_LAST = re.compile(r"(?P<module>.+?)\.(?:(?:sm_\d+\.)?\w+_)?after_optimizations\.txt")
_NOT_IN_FILES = re.compile(r"[^\w.\-]")
MOST_LINES = 600_000  # distinct lines kept of all snapshots: about 100 MB of text


def modules_in(folder: str | Path) -> tuple[str, ...]:
    """Return the modules that a dump folder has snapshots for, most text first."""
    sizes: dict[str, int] = {}
    for path in files_in(Path(folder)):
        match = _SNAPSHOT.fullmatch(path.name) or _FIRST.fullmatch(path.name) or _LAST.fullmatch(path.name)
        if match is not None:
            sizes[match["module"]] = sizes.get(match["module"], 0) + path.stat().st_size
    return tuple(sorted(sizes, key=lambda module: (-sizes[module], module)))


def read_passes(folder: str | Path, module: str | None = None) -> Passes:
    """Return the passes of one module in a folder that `--xla_dump_to` and `--xla_dump_hlo_pass_re=.*` wrote.

    A module is named by the start of its files' names, `module_0006.jit_f`; the default is the one with the most text.
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
        if len(versions) > MOST_LINES:
            left_out += 1
            continue
        is_new = text != before and versions.add(text)
        name = _outside(before, text) if file.name == START and is_new else file.name
        if before:
            steps.append((Run(name, file.pipeline), versions.snapshots - 1))
        before = text
    names = versions.all_names() if rename is not None else set[str]()
    built = versions.build(rename(names, names) if rename is not None else None)
    ran = [(run.name, run.pipeline, run.seconds, at) for run, at in _merged(runs, steps)]
    omitted = f"the last {left_out:,} snapshots are left out: the program is too large" * (left_out > 0)
    return Passes(built, measured(built, ran), is_complete=bool(runs), omitted=omitted)


@dataclass(frozen=True, slots=True)
class PassFile:
    path: Path
    pipeline: str
    name: str


def pass_files(folder: Path, module: str | None = None) -> list[PassFile]:
    """Return the module's snapshots in order; by default of the module with the most text."""
    files = _snapshots(folder, module or next(iter(modules_in(folder)), ""))
    # A program from JAX's persistent cache runs no pass.
    return files if any(file.pipeline for file in files) else []


def _snapshots(folder: Path, module: str) -> list[PassFile]:
    first: list[PassFile] = []
    last: list[PassFile] = []
    numbered: list[tuple[int, PassFile]] = []
    for path in files_in(folder):
        match = _SNAPSHOT.fullmatch(path.name)
        if match is not None and match["module"] == module:
            numbered.append((int(match["number"]), PassFile(path, match["pipeline"], match["name"])))
        elif (match := _FIRST.fullmatch(path.name)) is not None and match["module"] == module:
            first.append(PassFile(path, "", ""))
        elif (match := _LAST.fullmatch(path.name)) is not None and match["module"] == module:
            last.append(PassFile(path, "", START))
    return [*first, *(file for _, file in sorted(numbered, key=lambda pair: pair[0])), *last]


def _outside(before: str, text: str) -> str:
    """Name a change that no pass made: the scheduler is no pass, and shows in the module's header."""
    scheduled = "is_scheduled=true"
    return "scheduling" if scheduled in text[:2000] and scheduled not in before[:2000] else "between pipelines"


def _merged(runs: Sequence[Run], steps: Sequence[tuple[Run, int]]) -> list[tuple[Run, int]]:
    """Return all runs in order, each with its snapshot, and the steps that are no run of their own."""
    written = [(_NOT_IN_FILES.sub("_", run.name), _NOT_IN_FILES.sub("_", run.pipeline)) for run in runs]
    merged: list[tuple[Run, int]] = []
    shot = at = 0
    for step, after in steps:
        name = step.name, step.pipeline
        match = next((i for i in range(at, len(runs)) if written[i] == name), -1)
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

# module_0006.jit_f.before_optimizations.txt, module_0006.jit_f.sm_9.0_gpu_after_optimizations.txt, ….hlo.pb; the files
# of a pass, `.0011.simplification.after_algsimp.before_dce.txt`, have a number instead.
_WHOLE = re.compile(
    r"(?P<prefix>.+?)\.(?:(?:sm_\d+\.)?[\w:+\-]+_)?(?P<when>before|after)_optimizations(?:\.hlo)?\.(?P<kind>txt|pb)(?:\.gz)?"
)
_PASS = re.compile(r"(?P<prefix>.+?)\.\d{4,}\.[^.]+\.after_.+\.txt")
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
    """Return a folder's files by name, without links to elsewhere: a foreign dump must not show other files."""
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
            dump = dumps.setdefault(whole["prefix"], Dump(whole["prefix"]))
            if whole["kind"] == "txt" or whole["when"] not in dump.files:  # text rather than its proto
                dump.files[whole["when"]] = path
    for path in paths:
        if (step := _PASS.fullmatch(path.name)) and step["prefix"] in dumps:
            dumps[step["prefix"]].has_passes = True
    return dumps


def _single_modules(paths: list[Path]) -> dict[str, Dump]:
    """Return the modules that were saved under other file names, by prefix."""
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
    """Yield a list that gets the passes that run within; none if JAX's profiler, one per process, can't be used."""
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
    """Return the event around what starts now; drop those of the stack that ended before."""
    while stack and now >= stack[-1].end:
        stack.pop()
    return stack[-1] if stack else _Open(0, "", -1)
