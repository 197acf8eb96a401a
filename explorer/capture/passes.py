"""The passes of one compilation, from the modules that XLA dumps after each pass."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

from explorer.capture.dump import files_in
from explorer.capture.equation_paths import EquationPaths
from explorer.capture.pass_times import START, Run
from explorer.capture.versions import VersionsBuilder
from explorer.errors import NotRecordedError
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

    Args:
        folder: The dump.
        module: The start of its files' names, `module_0006.jit_f`; by default the module with the most text.

    Raises:
        NotRecordedError: The folder has no snapshot of it.
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
    """Return the passes of a module from its snapshots.

    Args:
        texts: Each snapshot, in order.
        runs: The passes that ran, with their times, if known.
        paths: The equations by their numbers, for a numbered program.
        rename: Takes the names of all instructions and computations, and those that are taken; returns new names for
            some.
    """
    return _Reading(texts, paths).read(runs, rename)


@dataclass(frozen=True, slots=True)
class PassFile:
    """A module's text after a pass."""

    path: Path
    pipeline: str
    name: str


def pass_files(folder: Path, module: str | None = None) -> list[PassFile]:
    """Return the module's snapshots in order; by default of the module with the most text."""
    name = module or next(iter(modules_in(folder)), "")
    files = _of_module(folder, name)
    # A program from JAX's persistent cache runs no pass.
    return files if any(file.pipeline for file in files) else []


def _of_module(folder: Path, module: str) -> list[PassFile]:
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


class _Reading:
    """Snapshots of one module, read in order; of each only the new lines are kept."""

    def __init__(self, texts: Iterable[tuple[PassFile, str]], paths: EquationPaths | None) -> None:
        self.texts = texts
        self.versions = VersionsBuilder(paths)
        self.steps: list[tuple[Run, int]] = []  # each with the snapshot after it
        self.left_out = 0

    def read(self, runs: Sequence[Run], rename: Callable[[Set[str], Set[str]], Mapping[str, str]] | None) -> Passes:
        before = ""
        for file, text in self.texts:
            if len(self.versions) > MOST_LINES:
                self.left_out += 1
                continue
            is_new = text != before and self.versions.add(text)
            name = _outside(before, text) if file.name == START and is_new else file.name
            if before:
                self.steps.append((Run(name, file.pipeline), self.versions.snapshots - 1))
            before = text
        names = self.versions.all_names() if rename is not None else set[str]()
        versions = self.versions.build(rename(names, names) if rename is not None else None)
        ran = [(run.name, run.pipeline, run.seconds, at) for run, at in _merged(runs, self.steps)]
        omitted = f"the last {self.left_out:,} snapshots are left out: the program is too large"
        return Passes(
            versions,
            measured(versions, ran),
            is_complete=bool(runs),
            omitted=omitted if self.left_out else "",
        )


def _outside(before: str, text: str) -> str:
    """Name a change that no pass made: the scheduler is no pass, and shows in the module's header."""
    scheduled = "is_scheduled=true"
    return "scheduling" if scheduled in text[:2000] and scheduled not in before[:2000] else "between pipelines"


def _merged(runs: Sequence[Run], steps: Sequence[tuple[Run, int]]) -> list[tuple[Run, int]]:
    """Return all runs in order, each with its snapshot, and the steps that are no run of their own."""
    written = [(_in_file_name(run.name), _in_file_name(run.pipeline)) for run in runs]
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


def _in_file_name(text: str) -> str:
    """Return a pass's or a pipeline's name as a file's name has it."""
    return _NOT_IN_FILES.sub("_", text)
