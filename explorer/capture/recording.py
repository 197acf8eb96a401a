"""One compile that gives everything: numbered equations, the module after every pass, and the program that runs.

The program is lowered twice, plain and with its equations numbered. The numbered one is compiled with a dump of its
passes, and its executable is stored where JAX keeps the plain one's, so that the user's own call runs it and compiles
nothing. If JAX had compiled the plain one before, the user's calls keep that one, and the numbered one is shown.
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

from explorer._jax.calls import suppress_recording
from explorer._jax.interrupts import keep_for_xla
from explorer._jax.numbering import keep_executable, kept_lowering, number_equations
from explorer._jax.settings import metadata_in_cache_key, nothing_cached, settings_restored
from explorer.capture.backends import Backend, CompiledProgram
from explorer.capture.equation_paths import (
    EquationPaths,
    NumberedStage,
    names_without_numbers,
    read_numbered,
    rename_numbered,
    without_numbers,
)
from explorer.capture.passes import PassFile, Run, pass_files, read_pass_texts, timed
from explorer.capture.readers.hlo import read_hlo
from explorer.capture.readers.stablehlo import read_stablehlo
from explorer.errors import NotRecordedError
from explorer.files.disk import LARGEST_DUMP, read_bytes
from explorer.model.declared import cached_property
from explorer.model.graph import Graph
from explorer.model.links import EquationSets
from explorer.model.passes import Passes

_SETTLE_SECONDS = 2.0  # seconds
DUMP_PREFIX = "explorer-passes-"
_ABANDONED_SECONDS = 3600.0  # seconds since anything was written to a folder
_MEMORY = "/dev/shm"  # where Linux has a file system in memory
_BYTES_OF_EQUATION = 40_000  # of a dump: 4,000 to 7,000 for each of some six instructions that an equation becomes
_READ_IN_A_SECOND = 48_000_000  # bytes of a dump
_MAX_KEPT_BYTES = 16_000_000  # bytes of a dump: a smaller one stays as long as JAX keeps the program
_MAX_SYNCHRONOUS_BYTES = 4_000_000  # bytes of a dump: about 25 ms
_MAX_MEMORY_BYTES = 64_000_000  # bytes of a packed dump; a larger one goes to a file


@dataclass(eq=False)
class NumberedProgram:
    """A program lowered with numbered equations, which is compiled once."""

    lowered: Any
    paths: EquationPaths
    backend: Backend
    options: Mapping[str, Any] | None = None
    _program: CompiledProgram | None = None
    _dump: Callable[[], PassDump | None] = lambda: None
    _lock: Any = field(default_factory=RLock)

    def compile(self, plain: Any) -> tuple[CompiledProgram, PassDump | None]:
        """Return the program, compiled once, and the dump of its passes; None for a dump that wasn't made or is gone.

        JAX gets the program in place of the `plain` one, unless there are compiler options.
        """
        __tracebackhide__ = True
        with self._lock:  # two threads may explore one function
            dump = self._dump()
            if self._program is None:
                with _dumped(self.paths.count, self.options) as (options, pack):
                    with settings_restored(), metadata_in_cache_key(), timed() as runs:
                        self._program = self.backend.compile(self.lowered, options)
                    dump = pack(runs)
                if dump is not None:  # a large one goes with the last capture, a small one when JAX forgets the program
                    self._dump = weakref.ref(dump) if dump.size > _MAX_KEPT_BYTES else lambda: dump
                if not self.options:
                    keep_executable(plain, self._program.compiled)
            return self._program, dump

    def dump_again(self) -> PassDump:
        """Return the dump of one more compile, for the passes alone; raise NotRecordedError if nothing was written."""
        options = {**self.backend.light_options, **(self.options or {})}
        with suppress_recording(), _dumped(self.paths.count, options, always=True) as (dump_options, pack):
            with nothing_cached(), timed() as runs:
                self.backend.compile(self.lowered, dump_options)
            dump = pack(runs)
        if dump is None:
            raise NotRecordedError(
                "the compiler wrote no passes.\n  Hint: if JAX keeps compiled programs on disk, it took "
                'this one from there: jax.config.update("jax_enable_compilation_cache", False) and explore again.'
            )
        return dump


# By the object that JAX keeps of a program, for as long as JAX keeps it.
_numbered: WeakKeyDictionary[Any, NumberedProgram] = WeakKeyDictionary()
_lock = RLock()


def numbered_program(
    traced: Any, plain: Any, backend: Backend, options: Mapping[str, Any] | None
) -> NumberedProgram | None:
    """Return the program lowered with numbered equations, once per `plain` lowering; None where this JAX can't."""
    key = None if options or not backend.is_here else kept_lowering(plain)
    with _lock:
        if key is not None and key in _numbered:
            return _numbered[key]
        numbered = number_equations(traced)
        if numbered is None:
            return None
        with suppress_recording(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the plain program's lowering has just given the same warnings
            lowered = backend.lower(numbered.traced)
        # A graph of a jaxpr has its constants first, then its arguments.
        jaxpr = getattr(traced.jaxpr, "jaxpr", traced.jaxpr)
        names = (jaxpr.debug_info.arg_names or ())[: len(jaxpr.invars)]
        arguments = {str(name): row for row, name in enumerate(names, len(jaxpr.constvars)) if name}
        program = NumberedProgram(lowered, EquationPaths(numbered.paths, arguments), backend, options)
        if key is not None:
            _numbered[key] = program
        return program


class RecordedProgram:
    """The stages and passes of a numbered program without the numbers, each read at its first use."""

    def __init__(self, numbered: NumberedProgram, plain: Any) -> None:
        self._numbered, self._plain = numbered, plain
        self._program: CompiledProgram | None = None
        self._dump: PassDump | None = None

    def compile(self) -> CompiledProgram:
        __tracebackhide__ = True
        self._program, self._dump = self._numbered.compile(self._plain)
        # Held here, the plain program would outlive JAX's own cache of it.
        self._plain = None
        return self._program

    @cached_property
    def stablehlo_text(self) -> str:
        return self._numbered.lowered.as_text(debug_info=True)

    def read_stablehlo(self) -> tuple[str, Graph]:
        return self._stablehlo.text, self._stablehlo.graph

    def read_hlo(self) -> tuple[str, Graph]:
        return self._hlo[0].text, self._hlo[0].graph

    @cached_property
    def _stablehlo(self) -> NumberedStage:
        return read_numbered(self.stablehlo_text, read_stablehlo, self._numbered.paths)

    @cached_property
    def _hlo(self) -> tuple[NumberedStage, Mapping[str, str]]:
        assert self._program is not None
        text, renamed = rename_numbered(self._program.text())
        return read_numbered(text, read_hlo, self._numbered.paths), renamed

    @cached_property
    def _passes(self) -> Passes:
        dump = self._dump
        if dump is None or dump.failure is not None:
            dump = self._numbered.dump_again()
        names = partial(names_without_numbers, known=self._hlo[1])
        return read_pass_texts(dump.texts(), runs=dump.runs, paths=self._numbered.paths, rename=names)

    def capture_fields(self) -> dict[str, Any]:
        """Return the fields of a `Capture` for passes and exact links.

        `exact_sets` has the equations of its stages' nodes. With a dump there are `read_passes` and `reading_passes`
        (seconds that it takes), else `record`.
        """
        sets = LazySets({"stablehlo": lambda: self._stablehlo.equations, "hlo": lambda: self._hlo[0].equations})
        if self._dump is None:
            return {"exact_sets": sets, "record": lambda: self._passes}
        seconds = self._dump.size / _READ_IN_A_SECOND
        return {"exact_sets": sets, "read_passes": lambda: self._passes, "reading_passes": seconds}


class UnnumberedProgram:
    """The stages of a program as JAX makes it, with the reason against exact links."""

    def __init__(self, lowered: Any, backend: Backend, options: Mapping[str, Any] | None, reason: str) -> None:
        self._lowered, self._backend, self._options, self._reason = lowered, backend, options, reason
        self._program: CompiledProgram | None = None

    def compile(self) -> CompiledProgram:
        __tracebackhide__ = True
        self._program = self._backend.compile(self._lowered, self._options)
        return self._program

    @cached_property
    def stablehlo_text(self) -> str:
        return self._lowered.as_text(debug_info=True)

    def read_stablehlo(self) -> tuple[str, Graph]:
        return self.stablehlo_text, read_stablehlo(self.stablehlo_text)

    def read_hlo(self) -> tuple[str, Graph]:
        assert self._program is not None
        # JAX returns the numbered program if the function was explored before.
        text = without_numbers(rename_numbered(self._program.text())[0])
        return text, read_hlo(text)

    def capture_fields(self) -> dict[str, Any]:
        return {"recording_note": self._reason}


class LazySets(Mapping[str, EquationSets]):
    """The equations of the nodes of some stages; each stage is read at the first access."""

    def __init__(self, read: Mapping[str, Callable[[], EquationSets]]) -> None:
        self._read = read

    def __getitem__(self, stage: str) -> EquationSets:
        return self._read[stage]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._read)

    def __len__(self) -> int:
        return len(self._read)


class PassDump:
    """The modules that XLA wrote after its passes, compressed in memory, or in a file if they are too large."""

    def __init__(self, folder: TemporaryDirectory[str], files: Sequence[PassFile], runs: Sequence[Run]) -> None:
        self.runs = runs
        self.size = sum(file.path.stat().st_size for file in files)
        self._files = files
        self._lengths: list[int | None] = []  # None if a module equals the previous one
        self._packed: Any = SpooledTemporaryFile(_MAX_MEMORY_BYTES)  # noqa: SIM115 - closed with the dump
        # With the dump, also at the interpreter's end.
        weakref.finalize(self, self._packed.close)
        self._failure: OSError | None = None
        self._thread: Thread | None = None
        if self.size <= _MAX_SYNCHRONOUS_BYTES or not main_thread().is_alive():  # at its end a process starts no thread
            self._pack(folder)
        else:
            # Not a daemon: the interpreter may not end under it, nor remove its folder.
            self._thread = Thread(target=self._pack, args=(folder,), name="explorer-passes")
            self._thread.start()

    @property
    def failure(self) -> OSError | None:
        """Return the error that ended the compression, such as a full disk, or None if all modules are stored.

        Waits for the compression to finish.
        """
        if self._thread is not None:
            self._thread.join()
        return self._failure

    def texts(self) -> Iterator[tuple[PassFile, str]]:
        """Yield each module's file and text, in order; raise NotRecordedError if there was no room for them."""
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


@contextmanager
def _dumped(
    equations: int, options: Mapping[str, Any] | None, *, always: bool = False
) -> Generator[tuple[Mapping[str, Any] | None, Callable[[Sequence[Run]], PassDump | None]]]:
    """Yield the options for a compile that dumps its passes, unless too large, and a function that packs the dump.

    The function returns None if the compiler wrote nothing. A dump that the user requested from XLA stays untouched.
    """
    place = dump_place(equations * _BYTES_OF_EQUATION, always=always)
    is_users = "xla_dump_to" in {*(options or ())} or "xla_dump_to" in os.environ.get("XLA_FLAGS", "")
    folder = None if place is None or is_users else _folder_in(place)
    if folder is None:
        yield options, lambda _: None
        return
    files: list[PassFile] = []
    is_left = False

    def pack(runs: Sequence[Run]) -> PassDump | None:
        settle(Path(folder.name))
        files.extend(pass_files(Path(folder.name)))
        return PassDump(folder, files, runs) if files else None

    dump = {"xla_dump_to": folder.name, "xla_dump_hlo_pass_re": ".*", "xla_dump_hlo_as_text": True}
    try:
        yield {**(options or {}), **dump}, pack
    except BaseException as error:
        is_left = keep_for_xla(error, folder.cleanup)  # XLA would make the folder again, for the rest of its dump
        raise
    finally:
        # Else the dump removes the folder, once it has read the files.
        if not files and not is_left:
            folder.cleanup()


def _folder_in(place: str) -> TemporaryDirectory[str] | None:
    """Return a new folder in a place, else among temporary files; None if neither can be written to."""
    # A confined process may write to only one of them.
    for parent in (place or None, None):
        with suppress(OSError):
            _remove_abandoned(Path(parent or gettempdir()))
            return TemporaryDirectory(prefix=DUMP_PREFIX, dir=parent, ignore_cleanup_errors=True)
    return None


def _remove_abandoned(place: Path) -> None:
    """Remove this user's dumps that killed processes left: no compression takes an hour."""
    for folder in place.glob(f"{DUMP_PREFIX}*"):
        with suppress(OSError):
            status = folder.lstat()
            is_own = S_ISDIR(status.st_mode) and status.st_uid == getattr(os, "getuid", lambda: -1)()
            if is_own and time() - status.st_mtime > _ABANDONED_SECONDS:
                rmtree(folder, ignore_errors=True)


def dump_place(size: int, *, always: bool = True) -> str | None:
    """Return the folder for a dump of about `size` bytes: in memory if there is room for four of it, else on disk.

    Writing and removing a hundred files takes 10 to 80 ms on a disk, as long as a small program's compilation. Empty
    stands for the folder of temporary files, None for a dump too large for both, unless `always`.
    """
    with suppress(OSError):
        if os.access(_MEMORY, os.W_OK) and disk_usage(_MEMORY).free > 4 * size:
            return _MEMORY
    with suppress(OSError):
        if always or disk_usage(gettempdir()).free > 4 * size:
            return ""
    return None


def settle(folder: Path) -> None:
    """Wait until nothing more is written to a folder, for at most 2 s: newer compilers dump on threads of their own."""
    until, before = monotonic() + _SETTLE_SECONDS, None
    while monotonic() < until:
        sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
        if sizes == before and all(sizes.values()):
            return
        before = sizes
        sleep(0.002)
