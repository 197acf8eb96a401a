"""One more compilation of a program, with its equations numbered and the module written after every pass.

The numbers say of each instruction, after each pass, which equations it comes from. The user's call runs the plain
program, compiled once and shared with their `jax.jit`; this one is compiled beside it and thrown away.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from os import W_OK, access
from pathlib import Path
from shutil import disk_usage
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any

import jax

from explorer._jax import number_equations
from explorer._jax.suppress_recording import suppress_recording
from explorer.capture.backends import Backend
from explorer.capture.equation_paths import NUMBERED_SCOPE, EquationPaths, equation_sets, is_numbered
from explorer.capture.pass_times import Run, timed
from explorer.capture.passes import modules_in, read_passes
from explorer.capture.readers.hlo import read_hlo
from explorer.capture.readers.stablehlo import read_stablehlo
from explorer.capture.same_program import is_same_program, names_by_position, plain_names
from explorer.errors import NotRecordedError
from explorer.model.recording import Recording
from explorer.model.stage import Stage
from explorer.view.pass_count import counted_passes

_PATIENCE = 2.0  # seconds
_MEMORY = "/dev/shm"  # where Linux has a file system in memory
_SMALL = 10_000  # instructions: 40 to 60 MB of text
_ROOM = 1 << 16  # bytes free for each instruction: the dumps of 10 to 95,000 instructions have 4,000 to 7,000 for each


@dataclass(frozen=True)
class Program:
    """What the user's call runs.

    Args:
        traced, lowered: Those of `jax.stages`.
        hlo: The optimised program as it is shown; read when its instructions are compared.
        backend: What lowered and compiled it.
        options: XLA's compiler options that it was compiled with.
    """

    traced: Any
    lowered: Any
    hlo: Stage
    backend: Backend
    options: Mapping[str, Any] | None = None


def recorder(program: Program) -> Callable[[], Recording]:
    """What records a program when it is called, and lets go of the program then."""
    held = [program]

    def run() -> Recording:
        with suppress_recording():
            recording = record(held[0])
        held.clear()
        return recording

    return run


def record(program: Program) -> Recording:
    """Compile a program once more, numbered and with the module after every pass.

    Where the numbered program is another one than the plain, the plain one's passes are recorded, without equations.

    Raises:
        NotRecordedError: The compiler wrote nothing.
    """
    numbered = number_equations(program.traced, NUMBERED_SCOPE)
    if numbered is None:
        return _record_plain(program, "this JAX's equations can't be numbered")
    lowered: Any = program.backend.lower(numbered.traced)
    if lowered.as_text() != program.lowered.as_text():
        return _record_plain(program, "with its equations numbered, this is another program")
    with _dumped(lowered, program) as dump:
        graph = read_hlo(dump.text)
        if is_same_program(program.hlo.graph, graph):
            paths = EquationPaths(numbered.paths, _arguments(program.traced.jaxpr))
            names = partial(_names, names_by_position(program.hlo.graph, graph), lowered, program.lowered)
            passes = read_passes(dump.folder, runs=dump.runs, paths=paths, rename=names)
            stablehlo = read_stablehlo(lowered.as_text(debug_info=True))
            sets = {"stablehlo": equation_sets(stablehlo, paths), "hlo": equation_sets(graph, paths)}
            return Recording(passes, sets)
    return _record_plain(program, "with its equations numbered, this compiles to another program")


def _record_plain(program: Program, why: str) -> Recording:
    with _dumped(program.lowered, program) as dump:
        return Recording(read_passes(dump.folder, runs=dump.runs), {}, f"{why}: its links follow from structure alone")


def _arguments(jaxpr: Any) -> dict[str, int]:
    """The row of each argument in the graph of a jaxpr, whose constants come first, by what the user calls it."""
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    first, names = len(inner.constvars), inner.debug_info.arg_names or ()
    return {str(name): first + i for i, name in enumerate(names[: len(inner.invars)]) if name}


def _names(at_the_end: Mapping[str, str], numbered: Any, plain: Any, all_names: Set[str]) -> Mapping[str, str]:
    """The plain program's names, by those of the numbered one."""
    differ = any(name != other for name, other in at_the_end.items()) or any(map(is_numbered, all_names))
    if not differ:
        return {}
    at_the_start: Mapping[str, str] = {}
    with suppress(Exception):  # a module that XLA can't print before it optimises it, as one for another machine
        before, of_numbered = (read_hlo(lowered.compiler_ir("hlo").as_hlo_text()) for lowered in (plain, numbered))
        if is_same_program(before, of_numbered):
            at_the_start = names_by_position(before, of_numbered)
    return plain_names(all_names, at_the_end, at_the_start)


@dataclass
class _Dump:
    """What a compilation wrote.

    Args:
        folder: Of its files.
        text: The optimised program.
        runs: The passes that ran, with their times.
    """

    folder: Path
    text: str
    runs: Sequence[Run]


@contextmanager
def _dumped(lowered: Any, program: Program) -> Generator[_Dump]:
    """Compile a `jax.stages.Lowered` as `program` was; while this lasts, the modules after each pass are in a folder.

    Raises:
        NotRecordedError: The compiler wrote nothing.
    """
    place = in_memory(len(program.hlo.graph.names))
    with TemporaryDirectory(prefix="explorer-passes-", dir=place, ignore_cleanup_errors=True) as folder:
        dump = {"xla_dump_to": folder, "xla_dump_hlo_pass_re": ".*", "xla_dump_hlo_as_text": True}
        options = {**program.backend.light_options, **(program.options or {}), **dump}
        compiler = program.backend.environment().get("backend", "")
        with counted_passes(folder, compiler, "the passes are recorded"):
            with nothing_cached(), timed() as recording:
                compiled = program.backend.compile(lowered, options)
            settle(Path(folder))
        if not modules_in(folder):
            raise NotRecordedError(
                "the compiler wrote nothing of its passes.\n  Hint: if JAX keeps compiled programs on disk, it took "
                'this one from there: jax.config.update("jax_enable_compilation_cache", False) and explore again.'
            )
        yield _Dump(Path(folder), compiled.text(), recording.runs)


def in_memory(instructions: int) -> str | None:
    """A folder that lies in memory, for the dump of a small program; None where there is none, or too little of it.

    Writing and removing a hundred files takes 10 to 80 ms on a disk, as long as a small program's compilation.
    """
    with suppress(OSError):
        if instructions <= _SMALL and disk_usage(_MEMORY).free > instructions * _ROOM and access(_MEMORY, W_OK):
            return _MEMORY
    return None


def settle(folder: Path) -> None:
    """Wait until nothing is written to a folder any more: newer compilers dump on threads of their own."""
    until, before = monotonic() + _PATIENCE, None
    while monotonic() < until:
        sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
        if sizes == before and all(sizes.values()):
            return
        before = sizes
        sleep(0.002)


@contextmanager
def nothing_cached() -> Generator[None]:
    """A compilation from the persistent cache dumps nothing, and one for recording is not worth keeping there."""
    name = "jax_persistent_cache_min_compile_time_secs"
    before: Any = getattr(jax.config, name)
    jax.config.update(name, float("inf"))
    try:
        yield
    finally:
        jax.config.update(name, before)
