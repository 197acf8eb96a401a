"""One compile that carries everything: numbered equations, the module after every pass, and the program that runs.

The program is lowered twice, as it is and with its equations numbered. The numbered one is compiled with a dump of its
passes, and its executable put where JAX keeps that of the plain one, so that the user's own call runs it and compiles
nothing. Where JAX had compiled the plain one before, that one stays with the user's calls, and the numbered one is
shown.
"""

from __future__ import annotations

import os
import warnings
import weakref
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from shutil import disk_usage, rmtree
from stat import S_ISDIR
from tempfile import SpooledTemporaryFile, TemporaryDirectory, gettempdir
from threading import RLock, Thread, main_thread
from time import monotonic, sleep, time
from typing import Any
from weakref import WeakKeyDictionary

import jax

from explorer._jax import keep_executable, kept_lowering, number_equations
from explorer._jax.calls import suppress_recording
from explorer._jax.settings import metadata_in_cache_key
from explorer.capture.backends import Backend, CompiledProgram
from explorer.capture.equation_paths import (
    EquationPaths,
    NumberedStage,
    names_without_numbers,
    read_numbered,
    rename_numbered,
)
from explorer.capture.pass_times import Run, timed
from explorer.capture.passes import PassFile, pass_files, read_pass_texts
from explorer.capture.readers.hlo import read_hlo
from explorer.capture.readers.stablehlo import read_stablehlo
from explorer.errors import NotRecordedError
from explorer.files.disk import LARGEST_DUMP, read_bytes
from explorer.model.declared import cached_property
from explorer.model.links import EquationSets
from explorer.model.passes import Passes

_PATIENCE = 2.0  # seconds
DUMP_PREFIX = "explorer-passes-"
_ABANDONED = 3600.0  # seconds since anything was written to a folder
_MEMORY = "/dev/shm"  # where Linux has a file system in memory
_BYTES_OF_EQUATION = 40_000  # of a dump: 4,000 to 7,000 for each of some six instructions that an equation becomes
_READ_IN_A_SECOND = 48_000_000  # bytes of a dump
_KEPT = 16_000_000  # bytes of a dump: a smaller one stays as long as JAX keeps the program
_PACKED_AT_ONCE = 4_000_000  # bytes of a dump: about 25 ms
_PACKED_IN_MEMORY = 64_000_000  # bytes of a packed dump; a larger one goes to a file


@dataclass(eq=False)
class NumberedProgram:
    """A program lowered with its equations numbered, and what one compile made of it.

    Args:
        lowered: The `jax.stages.Lowered`.
        paths: Equations by their numbers.
        backend: What lowered it and compiles it.
        options: XLA's compiler options.
    """

    lowered: Any
    paths: EquationPaths
    backend: Backend
    options: Mapping[str, Any] | None = None
    _program: CompiledProgram | None = None
    _dump: Callable[[], PassDump | None] = lambda: None
    _lock: Any = field(default_factory=RLock)

    def compile(self, plain: Any) -> tuple[CompiledProgram, PassDump | None]:
        """Compile it with a dump of its passes, once; let the user's own call run the result.

        Args:
            plain: The same program lowered without numbers, where JAX keeps what the user's call runs.

        Returns:
            The compiled program and the dump; None if there is no dump.
        """
        __tracebackhide__ = True
        with self._lock:  # two threads may explore one function
            dump = self._dump()
            if self._program is None:
                with _dumped(self.paths.count, self.options) as dumped:
                    with metadata_in_cache_key(), timed() as recording:
                        self._program = self.backend.compile(self.lowered, dumped.options)
                    dump = dumped.packed(recording.runs)
                if dump is not None:  # a large one goes with the last capture, a small one when JAX forgets the program
                    self._dump = weakref.ref(dump) if dump.size > _KEPT else lambda: dump
                if not self.options:
                    keep_executable(plain, self._program.compiled)
            return self._program, dump

    def dump_again(self) -> PassDump:
        """Compile once more, for the passes alone.

        Raises:
            NotRecordedError: The compiler wrote nothing.
        """
        options = {**self.backend.light_options, **(self.options or {})}
        with suppress_recording(), _dumped(self.paths.count, options, always=True) as dumped:
            with nothing_cached(), timed() as timing:
                self.backend.compile(self.lowered, dumped.options)
            dump = dumped.packed(timing.runs)
        if dump is None:
            raise NotRecordedError(
                "the compiler wrote nothing of its passes.\n  Hint: if JAX keeps compiled programs on disk, it took "
                'this one from there: jax.config.update("jax_enable_compilation_cache", False) and explore again.'
            )
        return dump


class RecordedProgram:
    """What is shown of a numbered program: stages without the numbers, equations of their nodes, and the passes.

    Each is read when somebody looks at it.

    Args:
        numbered: The program.
    """

    def __init__(self, numbered: NumberedProgram) -> None:
        self._numbered = numbered
        self._program: CompiledProgram | None = None
        self._dump: PassDump | None = None

    def compile(self, plain: Any) -> CompiledProgram:
        """As `NumberedProgram.compile`."""
        __tracebackhide__ = True
        self._program, self._dump = self._numbered.compile(plain)
        return self._program

    @property
    def reading_passes(self) -> float | None:
        """Seconds that reading the passes takes, about; None where they were not dumped."""
        return self._dump.size / _READ_IN_A_SECOND if self._dump is not None else None

    @cached_property
    def stablehlo_text(self) -> str:
        """The text of the lowered program, with the numbers."""
        return self._numbered.lowered.as_text(debug_info=True)

    @cached_property
    def stablehlo(self) -> NumberedStage:
        return read_numbered(self.stablehlo_text, read_stablehlo, self._numbered.paths)

    @property
    def hlo(self) -> NumberedStage:
        return self._hlo[0]

    @cached_property
    def _hlo(self) -> tuple[NumberedStage, Mapping[str, str]]:
        assert self._program is not None
        text, renamed = rename_numbered(self._program.text())
        return read_numbered(text, read_hlo, self._numbered.paths), renamed

    def read_passes(self) -> Passes:
        """What each pass did; where the compile dumped none, it is done once more.

        Raises:
            NotRecordedError: The compiler wrote nothing.
        """
        return self._passes

    @cached_property
    def _passes(self) -> Passes:
        dump = self._dump
        if dump is None or dump.failure is not None:
            dump = self._numbered.dump_again()
        names = partial(names_without_numbers, known=self._hlo[1])
        return read_pass_texts(dump.texts(), runs=dump.runs, paths=self._numbered.paths, rename=names)

    @property
    def equation_sets(self) -> Mapping[str, EquationSets]:
        """The equations of each stage's nodes, by their numbers."""
        return LazySets({"stablehlo": lambda: self.stablehlo.equations, "hlo": lambda: self.hlo.equations})


class LazySets(Mapping[str, EquationSets]):
    """Equations of the nodes of some stages, read with the stage."""

    def __init__(self, read: Mapping[str, Callable[[], EquationSets]]) -> None:
        self._read = read

    def __getitem__(self, stage: str) -> EquationSets:
        return self._read[stage]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._read)

    def __len__(self) -> int:
        return len(self._read)


# By what JAX keeps of a program, for as long as JAX keeps it.
_numbered: WeakKeyDictionary[Any, NumberedProgram] = WeakKeyDictionary()
_lock = RLock()


def numbered_program(
    traced: Any, plain: Any, backend: Backend, options: Mapping[str, Any] | None
) -> NumberedProgram | None:
    """Lower a program with its equations numbered; None where this JAX's equations can't be numbered.

    Args:
        traced: The `jax.stages.Traced`.
        plain: The `jax.stages.Lowered` of it without numbers. What was numbered for it before is returned again.
        backend: Lowers and compiles.
        options: XLA's compiler options.
    """
    key = None if options or not backend.is_here else kept_lowering(plain)
    with _lock:
        if key is not None and key in _numbered:
            return _numbered[key]
        numbered = number_equations(traced)
        if numbered is None:
            return None
        with suppress_recording(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the plain program's lowering has just warned of the same
            lowered = backend.lower(numbered.traced)
        paths = EquationPaths(numbered.paths, _arguments(traced.jaxpr))
        program = NumberedProgram(lowered, paths, backend, options)
        if key is not None:
            _numbered[key] = program
        return program


def _arguments(jaxpr: Any) -> dict[str, int]:
    """The row of each argument in the graph of a jaxpr, whose constants come first, by what the user calls it."""
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    first, names = len(inner.constvars), inner.debug_info.arg_names or ()
    return {str(name): first + i for i, name in enumerate(names[: len(inner.invars)]) if name}


class PassDump:
    """The modules that XLA wrote after its passes, packed: in memory, or in a file where they are too large for that.

    Args:
        folder: Where XLA wrote them; removed when they are packed.
        files: Of the module, in the order of the passes.
        runs: The passes that ran, with their times.
    """

    def __init__(self, folder: TemporaryDirectory[str], files: Sequence[PassFile], runs: Sequence[Run]) -> None:
        self.runs = runs
        self.size = sum(file.path.stat().st_size for file in files)
        self._files = files
        self._lengths: list[int | None] = []  # None where a module is the one before it
        self._packed: Any = SpooledTemporaryFile(_PACKED_IN_MEMORY)  # noqa: SIM115 - closed with the dump
        weakref.finalize(self, self._packed.close)
        self._failure: OSError | None = None
        self._thread: Thread | None = None
        if self.size <= _PACKED_AT_ONCE or not main_thread().is_alive():  # at its end a process starts no thread
            self._pack(folder)
        else:
            # Not a daemon: the interpreter may not end under it, nor remove its folder.
            self._thread = Thread(target=self._pack, args=(folder,), name="explorer-passes")
            self._thread.start()

    @property
    def failure(self) -> OSError | None:
        """The error that ended the packing, as of a full disk; None if all is there."""
        if self._thread is not None:
            self._thread.join()
        return self._failure

    def texts(self) -> Iterator[tuple[PassFile, str]]:
        """Each module's text, in order.

        Raises:
            NotRecordedError: There was no room for them.
        """
        if self.failure is not None:
            raise NotRecordedError(
                f"the modules after the passes could not be kept: {self.failure}.\n"
                f"  Hint: make room in {gettempdir()} and explore again."
            )
        self._packed.seek(0)
        unpack, ready, text = zlib.decompressobj(), bytearray(), ""
        for file, length in zip(self._files, self._lengths, strict=True):
            if length is not None:
                while len(ready) < length:
                    ready += unpack.decompress(self._packed.read(1 << 16))
                text = ready[:length].decode("utf-8", "replace")
                del ready[:length]
            yield file, text

    def _pack(self, folder: TemporaryDirectory[str]) -> None:
        pack, before = zlib.compressobj(1), None
        try:
            for file in self._files:
                if self._thread is not None and not main_thread().is_alive():
                    return  # the process ends: nothing will read them
                content = read_bytes(file.path, LARGEST_DUMP, "a dump")
                is_new = content != before  # 39 % of the bytes are not: XLA also writes where a pipeline starts
                self._lengths.append(len(content) if is_new else None)
                self._packed.write(pack.compress(content) if is_new else b"")
                before = content
            self._packed.write(pack.flush())
        except OSError as error:
            self._failure = error
        finally:
            folder.cleanup()


@dataclass
class _Dumped:
    """A compile whose passes are dumped.

    Args:
        options: For the compiler.
        temporary: Where it writes; None if nothing is dumped.
    """

    options: Mapping[str, Any] | None
    temporary: TemporaryDirectory[str] | None = None
    is_packed: bool = False

    @property
    def folder(self) -> str:
        return self.temporary.name if self.temporary is not None else ""

    def packed(self, runs: Sequence[Run]) -> PassDump | None:
        """What the compiler wrote; None if it wrote nothing."""
        if self.temporary is None:
            return None
        settle(Path(self.folder))
        files = pass_files(Path(self.folder))
        self.is_packed = bool(files)
        return PassDump(self.temporary, files, runs) if files else None


@contextmanager
def _dumped(equations: int, options: Mapping[str, Any] | None, *, always: bool = False) -> Generator[_Dumped]:
    """Give the options for a compile that dumps its passes, unless the dump would be too large.

    A dump that the user asked XLA for is left to them.
    """
    place = dump_place(equations * _BYTES_OF_EQUATION, always=always)
    is_users = "xla_dump_to" in {*(options or ())} or "xla_dump_to" in os.environ.get("XLA_FLAGS", "")
    folder = None if place is None or is_users else _folder_in(place)
    if folder is None:
        yield _Dumped(options)
        return
    dump = {"xla_dump_to": folder.name, "xla_dump_hlo_pass_re": ".*", "xla_dump_hlo_as_text": True}
    dumped = _Dumped({**(options or {}), **dump}, folder)
    try:
        yield dumped
    finally:
        if not dumped.is_packed:
            folder.cleanup()


def _folder_in(place: str) -> TemporaryDirectory[str] | None:
    """A new folder in a place, else in that of temporary files: a confined process may write to one of them alone."""
    for parent in (place or None, None):
        with suppress(OSError):
            _remove_abandoned(Path(parent or gettempdir()))
            return TemporaryDirectory(prefix=DUMP_PREFIX, dir=parent, ignore_cleanup_errors=True)
    return None


def _remove_abandoned(place: Path) -> None:
    """Remove the dumps of this user that killed processes left: nothing packs a dump for as long as an hour."""
    for folder in place.glob(f"{DUMP_PREFIX}*"):
        with suppress(OSError):
            status = folder.lstat()
            is_own = S_ISDIR(status.st_mode) and status.st_uid == getattr(os, "getuid", lambda: -1)()
            if is_own and time() - status.st_mtime > _ABANDONED:
                rmtree(folder, ignore_errors=True)


def dump_place(size: int, *, always: bool = True) -> str | None:
    """The folder for a dump of about `size` bytes: in memory if there is room for four of it, else on disk.

    Writing and removing a hundred files takes 10 to 80 ms on a disk, as long as a small program's compilation.

    Returns:
        Empty for the folder of temporary files; None if the dump is too large for both, and need not be.
    """
    with suppress(OSError):
        if os.access(_MEMORY, os.W_OK) and disk_usage(_MEMORY).free > 4 * size:
            return _MEMORY
    with suppress(OSError):
        if always or disk_usage(gettempdir()).free > 4 * size:
            return ""
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
