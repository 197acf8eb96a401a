"""Opens the files of one format in this process and shows what opens; what they did to it is printed as JSON.

    python -m tests.corpus_hostile captures /tmp/empty-folder

Each must be refused with an error of Explorer's own, or be opened and shown: within `SECONDS` and `BYTES`, without a
file written, a process started or a secret read, and without markup of its own on a page.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from time import perf_counter, process_time
from traceback import extract_tb
from typing import Any

import explorer as ex
from explorer._jax import binary_reader
from explorer.analysis.golden import compared
from explorer.capture.recording import DUMP_PREFIX
from explorer.files.golden import from_toml, to_toml
from explorer.files.instruction_log import read_timeline
from explorer.files.signals import read_signals
from explorer.golden.commands import golden_files
from explorer.model.golden import Golden
from explorer.pitfalls.rule import severities
from tests.corpus_hostile.formats import FORMATS, module_texts
from tests.corpus_hostile.mutations import KNOWN, OUTSIDE, SECRET
from tests.corpus_hostile.texts import GOLDEN
from tests.support.functions import FUNCTIONS

SECONDS = 8.0  # of processors for one file
WAIT = 60.0  # by the clock, without work: a busy machine is no fault of a file
BYTES = 2 * 2**30  # of address space for one file
CANARY = "the secret of this machine"
_HARM = (
    *("os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "socket.connect", "os.remove", "os.rename"),
    *("os.mkdir", "os.symlink", "os.link", "os.chmod", "shutil.rmtree", "ctypes.dlopen", "pickle.find_class"),
)


class Late(BaseException):
    """Too late: no handler of `Exception` may take it for a fault of a view."""


class Watcher:
    """What this process did to the machine since `start`."""

    def __init__(self, secret: str) -> None:
        self.secret = secret
        self.is_on = False
        self.seen: list[str] = []
        sys.addaudithook(self.hear)

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.is_on:
            return
        if event in _HARM and not _is_reader(event, arguments) and not _is_dump(event, arguments):
            self.seen.append(f"{event} {arguments!r:.200}")
        if event == "open":
            path, mode, flags = arguments
            writes = any(letter in (mode or "") for letter in "wax+") or (
                mode is None and flags & (os.O_WRONLY | os.O_RDWR)
            )
            if isinstance(path, int):  # a descriptor that is open already: a pipe
                return
            if (writes and not str(path).endswith((".pyc", "/dev/null"))) or str(path) == self.secret:
                self.seen.append(f"open {path} {mode}")


def _is_reader(event: str, arguments: tuple[Any, ...]) -> bool:
    """Whether it starts the process that reads what may crash the compiler, and nothing else."""
    return event in ("subprocess.Popen", "os.posix_spawn") and binary_reader.__file__ in map(str, arguments[1])


def _is_dump(event: str, arguments: tuple[Any, ...]) -> bool:
    """Whether it makes or removes the folder of a compile's passes, or a file in it by the folder's descriptor."""
    if event == "os.remove" and isinstance(arguments[1], int) and arguments[1] >= 0:
        return Path(os.readlink(f"/proc/self/fd/{arguments[1]}")).name.startswith(DUMP_PREFIX)
    return event in ("os.mkdir", "shutil.rmtree") and Path(arguments[0]).name.startswith(DUMP_PREFIX)


class _Page(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.harm: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            text = (value or "").strip().lower()
            if name.startswith("on") or (name in ("href", "src") and text.startswith("javascript:")):
                self.harm.append(f"<{tag} {name}={text[:60]}>")
            if name in ("src", "href") and text == "x":
                self.harm.append(f"<{tag} {name}=x>")

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script" and data.strip() == "hacked=1":
            self.harm.append("a script of its own")


def shown(value: Any) -> None:
    """Everything that is shown of a value."""
    bundle = value._repr_mimebundle_() if hasattr(value, "_repr_mimebundle_") else {}
    texts = [bundle.get("text/plain", "")]  # not its repr, which says of a value what it is
    texts += [value.to_text()] if hasattr(value, "to_text") else [value.text()] if callable(value.text) else []
    for text in texts:
        check_text(text)
    page = bundle.get("text/html", "")
    if harm := _Page(page).harm:
        raise AssertionError(f"markup of the file is on the page: {harm}")
    if CANARY in page:
        raise AssertionError("a file of this machine is on the page")


def check_text(text: str) -> None:
    if "\x1b]" in text or "\x1b[2J" in text:
        raise AssertionError("an escape sequence of the file reaches the terminal")
    if CANARY in text:
        raise AssertionError("a file of this machine is shown")


def open_capture(path: Path) -> None:
    look_at(ex.load(path))


def look_at(capture: Any) -> None:
    for stage in capture.stages:
        assert len(stage.text) >= 0
        assert len(stage.graph) >= 0
    if capture.has_passes:
        assert len(capture.passes.links) >= 0
        for step in list(capture.passes)[:3]:
            assert step.diff() is not None
    if CANARY in str(dict(capture.sources)):
        raise AssertionError("a file of this machine is in the capture")
    shown(capture)
    assert len(capture.wire)
    for ask in QUESTIONS:
        with suppress(ex.ExplorerError):  # this capture can't answer it
            assert repr(ask(capture)) is not None


QUESTIONS: tuple[Callable[[Any], Any], ...] = (
    lambda capture: capture.live_memory,
    lambda capture: capture.summary,
    lambda capture: capture.collectives.to_text(),
    lambda capture: capture.shardings,
    lambda capture: capture.lines(),
    lambda capture: capture.all_fates,
    lambda capture: capture.ask("what takes most memory?"),
    lambda capture: capture.ask("why is this slow?"),
    lambda capture: capture.stages[-1].graph.where("flops > 1 or bytes > 1kB or shape:8 or in:body"),
)


def open_result(path: Path) -> None:
    start = path.read_bytes()[:200]
    kinds = (ex.Timing, ex.Profile, ex.types.MemoryUse, ex.Peaks)
    shown(next((kind for kind in kinds if f'"kind":"{kind.__name__}"'.encode() in start), ex.Timing).load(path))


def open_ledger(path: Path) -> None:
    ledger = ex.Ledger.load(path)
    assert ledger.recompiles() is not None
    assert ledger.storms is not None
    assert ledger.tree() is not None
    shown(ledger)
    shown(ledger.timeline())
    shown(ex.merge_ledgers([path, path]))


def open_executable(path: Path) -> None:
    executable = ex.Executable.load(path)
    capture = executable.explore()
    # Not its page: Explorer records the passes for it, and what XLA dumps meanwhile is written, and removed.
    for text in (
        repr(executable),
        capture.to_text(),
        str(dict(capture.sources)),
        *(stage.text for stage in capture.stages),
    ):
        check_text(text)


def open_module(path: Path) -> None:
    look_at(ex.open_hlo(path))


def open_dump(path: Path) -> None:
    """The file is one of several of a folder, what a pass made of the module."""
    look_at(ex.open_hlo(path.parent))


def open_findings(path: Path) -> None:
    found = ex.Findings.from_json(path.read_bytes().decode("utf-8", "surrogateescape"))
    shown(found)
    assert found.to_sarif()


def open_signals(path: Path) -> None:
    for name, settings in read_signals(path).items():
        check_text(f"{name!r} {settings!r}")


def open_golden(path: Path) -> None:
    golden = Golden.load(path)
    assert from_toml(to_toml(golden)) == golden
    shown(compared(golden, from_toml(GOLDEN), "golden"))
    shown(compared(from_toml(GOLDEN), golden, "golden"))


def open_settings(path: Path) -> None:
    refused = None
    for read in (lambda: golden_files(path.parent), lambda: severities(str(path))):
        try:
            read()
        except ex.ExplorerError as error:
            refused = error
    if refused is not None:
        raise refused


def open_log(path: Path) -> None:
    timeline = read_timeline(path)
    check_text(timeline.to_text())
    if path.stat().st_size % 16 == 0:  # plotly takes most of a page's time, and knows nothing of the file
        shown(timeline)


def open_queries(path: Path) -> None:
    graph, refused = query_graph(), None
    text = path.read_text("utf-8", "replace")
    for query in (*text.split("\n"), text):
        try:
            assert len(graph.where(query)) <= len(graph)
        except ex.errors.QueryError as error:
            refused = error
    if refused is not None:
        raise refused


@cache
def query_graph() -> Any:
    return ex.explore(*FUNCTIONS["gradient"]).hlo.graph


PATHS = {"settings": "pyproject.toml", "dumps": "dump/module_0001.jit_f.0002.first.after_b.before_c.txt"}
OPEN: dict[str, Callable[[Path], None]] = {
    "captures": open_capture,
    "results": open_result,
    "ledgers": open_ledger,
    "executables": open_executable,
    "modules": open_module,
    "binaries": open_module,
    "dumps": open_dump,
    "findings": open_findings,
    "signals": open_signals,
    "goldens": open_golden,
    "settings": open_settings,
    "logs": open_log,
    "queries": open_queries,
}


def _late(*_: object) -> None:
    raise Late


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def main(name: str, folder: Path) -> dict[str, Any]:
    """Open every crafted file of a format."""
    reader = Reader(name, folder)
    for number, (done, data) in enumerate(FORMATS[name]()):
        reader.open(data, f"{number} {done}")
    return reader.report()


class Reader:
    """Opens files of one format and keeps what was wrong with them.

    Args:
        name: The format.
        folder: An empty one; it becomes the working folder.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.here, self.outside = folder / "here", folder / "outside"
        for each in (self.here, self.outside):
            each.mkdir()
        secret = folder / "secret.py"
        secret.write_text(f"{KNOWN}\n{CANARY}\n")
        self.replaced = {SECRET.encode(): str(secret).encode(), OUTSIDE.encode(): str(self.outside).encode()}
        if name == "executables":  # an archive has it in its members, whose sizes are written down
            self.replaced.clear()
        if name == "dumps":
            (folder / "dump").mkdir()
            good = module_texts()[0]
            for step in ("before_optimizations", "0001.first.after_a.before_b", "cpu_after_optimizations"):
                (folder / "dump" / f"module_0001.jit_f.{step}.txt").write_text(good)
        os.chdir(self.here)
        self.watcher = Watcher(str(secret))
        signal.signal(signal.SIGALRM, self._check_for_work)
        signal.signal(signal.SIGPROF, _late)
        self.worked = 0.0
        self.counts = {"refused": 0, "opened": 0}
        self.faults: list[str] = []
        self.slowest, self.errors = (0.0, ""), dict[str, int]()

    def open(self, data: bytes, at: str) -> None:
        """Open a file, show what opens, and note what it did; `at` says which one it is."""
        path = self.folder / PATHS.get(self.name, "file")
        for placeholder, real in self.replaced.items():
            data = data.replace(placeholder, real)
        path.write_bytes(data)
        resource.setrlimit(resource.RLIMIT_AS, (_address_space() + BYTES, resource.RLIM_INFINITY))
        start, self.worked, before = perf_counter(), _worked(), _by_ended_children()
        signal.setitimer(signal.ITIMER_REAL, WAIT, WAIT)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        self.watcher.is_on = True
        try:
            OPEN[self.name](path)
            self.counts["opened"] += 1
        except ex.ExplorerError as error:
            self.counts["refused"] += 1
            self.errors[type(error).__name__] = self.errors.get(type(error).__name__, 0) + 1
            if len(str(error)) > 3_000 or CANARY in str(error):
                self.faults.append(f"{at}: its error has {len(str(error)):,} letters")
        except Late as error:
            self.faults.append(
                f"{at}: not done after {SECONDS} s of processors, or {WAIT} s without work {_where(error)}"
            )
        except BaseException as error:
            self.faults.append(f"{at}: {type(error).__name__}: {error!s:.300} {_where(error)}")
        finally:
            self.watcher.is_on = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.setitimer(signal.ITIMER_PROF, 0)
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        if (took := _by_ended_children() - before) > SECONDS:
            self.faults.append(f"{at}: what reads it apart took {took:.1f} s of processors")
        self.slowest = max(self.slowest, (perf_counter() - start, at[:80]))
        self.faults += [f"{at}: {seen}" for seen in self.watcher.seen]
        self.watcher.seen.clear()

    def _check_for_work(self, *_: object) -> None:
        worked, self.worked = self.worked, _worked()
        if self.worked - worked < 0.1:
            raise Late

    def report(self) -> dict[str, Any]:
        written = [str(each) for each in (*self.here.rglob("*"), *self.outside.rglob("*"))]
        about = {"errors": self.errors, "faults": self.faults, "written": written, "slowest": self.slowest}
        return {**self.counts, **about}


def _by_ended_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _worked() -> float:
    """Seconds of processors that this process and its children have had."""
    seconds = process_time() + _by_ended_children()
    with suppress(OSError):  # one that ends just now
        for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
            seconds += int(Path(f"/proc/{child}/schedstat").read_text().split()[0]) * 1e-9
    return seconds


def _where(error: BaseException) -> str:
    places = [f"{frame.filename}:{frame.lineno}" for frame in extract_tb(error.__traceback__)]
    return f"({next((place for place in places[::-1] if not place.startswith(__file__)), '')})"  # not of the handler


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]))))
