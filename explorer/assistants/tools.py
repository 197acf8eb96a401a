"""`python -m explorer mcp train.py:step other.py`: verbs as tools for coding assistants, each in its own process."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from itertools import count
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, mkdtemp
from typing import IO, Annotated, Any, cast

import explorer as ex
from explorer.assistants.child import unconfined
from explorer.assistants.named import Named
from explorer.errors import ExplorerError, MissingPackageError, OptionError, WorkerError
from explorer.files.reports import positive
from explorer.model.text import install_hint
from explorer.model.units import bytes_text

# The SDK sends these texts and the docstrings of the tools to the assistant.
Function = Annotated[str, "MODULE:FUNCTION, as the command line named it"]
Arguments = Annotated[
    list[str],
    "The function's arguments: shapes as f32[8,128], literals, or names in its module; by position or as name=value. "
    "Those left out come from its annotations and defaults.",
]


@dataclass
class Tools:
    """Tools for an assistant: the code that may run, the folder of pages and reports, and the limits of an answer."""

    named: Named
    folder: Path
    limits: Limits
    _numbers: count[int] = field(default_factory=lambda: count(1))
    # One at a time: two would disturb each other's measurements.
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def all(self) -> Sequence[Callable[..., Any]]:
        return (self.explore, self.lint, self.recompiles, self.profile, self.diff, self.targets, self.check)

    async def explore(self, function: Function, arguments: Arguments | None = None, target: str = "") -> str:
        """Compile a function, and return its kernels, bytes and memory by source line.

        Nothing runs but the function's Python, once, to be traced. `target` compiles for hardware that needn't be here:
        h100, v5e:4x4; see `targets`. The page is for the user's browser; the capture can be given to `diff`.
        """
        place = self._place("explore", function)
        files = [place.with_suffix(".html"), place.with_suffix(".capture")]
        hardware = [f"--target={target[:_MAX_TARGET]}"] if target else []
        return await self._answer(place, "explore", *self.named.call(function, arguments or ()), *hardware, files=files)

    async def lint(self, function: Function, arguments: Arguments | None = None) -> str:
        """Find pitfalls of a function under JAX, each with its line, the evidence and a fix.

        Nothing runs but its Python, once, to be traced.
        """
        return await self._answer(self._place("lint", function), "lint", *self.named.call(function, arguments or ()))

    async def recompiles(self, script: Annotated[str, "As the command line named it"]) -> str:
        """Run a script, and return its compiles, the reasons for recompiles, their cost, and fixes."""
        place, page = self._place("recompiles", script), ["--html"]
        command = self.named.script(script)
        files = [place.with_suffix(".html")]
        return await self._answer(place, "recompiles", *page, str(files[0]), *command, written=files)

    async def profile(self, function: Function, arguments: Arguments | None = None) -> str:
        """Run a function several times, and return its time by source line, measured by XLA's own profiler."""
        place = self._place("profile", function)
        files = [place.with_suffix(".html")]
        return await self._answer(place, "profile", *self.named.call(function, arguments or ()), files=files)

    async def diff(
        self,
        a: Annotated[str, "A named function, or the path of a capture that `explore` wrote"],
        b: Annotated[str, "The function or capture to compare it with"],
        arguments: Arguments | None = None,
    ) -> str:
        """Compare two functions, or a capture from before an edit with the function as it is now."""
        (first, *given), (second, *also) = (self._side(side, arguments or ()) for side in (a, b))
        place = self._place("diff", "")
        return await self._answer(place, "diff", first, second, *(given or also), files=[place.with_suffix(".html")])

    async def targets(self) -> str:
        """List the hardware that `explore` can compile for without having it."""
        return await self._answer(self._place("targets", ""), "targets")

    async def check(self) -> str:
        """Compare the functions of the named golden files with their records, and return each growth with its line."""
        if not self.named.goldens:
            raise OptionError("no golden file was named.\n  Hint: `python -m explorer mcp step.golden`.")
        return await self._answer(self._place("check", ""), "check", *self.named.goldens)

    def _place(self, verb: str, name: str) -> Path:
        """Return the path of an answer's files without a suffix, `FOLDER/003-explore-step`; numbers count up."""
        stem = "".join(letter if letter.isalnum() else "-" for letter in name.rpartition(":")[2])[:40].strip("-")
        return self.folder / "-".join(filter(None, (f"{next(self._numbers):03}", verb, stem)))

    def _side(self, side: str, arguments: Sequence[str]) -> list[str]:
        """Return command-line words for a side of `diff`: a capture that `explore` wrote, or a function to call."""
        if side.endswith(".capture") and "\0" not in side:
            path = Path(side)
            # Resolved, so that neither `..` nor a link leads out of the folder.
            if path.resolve().parent == self.folder and path.is_file():
                return [str(path)]
        return self.named.call(side, arguments)

    async def _answer(self, place: Path, *verb: str, files: Sequence[Path] = (), written: Sequence[Path] = ()) -> str:
        output = [part for path in files for part in ("-o", str(path))]
        report = place.with_suffix(".json")
        async with self._turn:
            answer = await run_verb([*verb, *output], report, self.limits)
        paths = [path for path in (*files, *written, report) if path.is_file()]
        warning = [f"The code was not confined: on this system it may {may}."] if (may := unconfined()) else []
        return "\n".join([*summary_of(answer), *warning, *(f"{_KINDS[path.suffix]}: {path}" for path in paths)])


_MAX_TARGET = 100  # characters
_KINDS = {".html": "page", ".capture": "capture", ".json": "report"}


_MAX_LINES = 12  # of an answer; the report has all
_MAX_CHARACTERS = 400  # of a line
_running: dict[int, str] = {}  # temporary folder of each process group


def end_at_once(number: int, _: object) -> None:
    """End this process and its verb on a signal."""
    for group, temporary in _running.items():
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        rmtree(temporary, ignore_errors=True)
    os._exit(128 + number)  # `sys.exit` would wait for the thread that reads input


@dataclass(frozen=True)
class Limits:
    """Limits for one answer, in seconds and bytes."""

    seconds: float
    memory: int


async def run_verb(verb: Sequence[str], report: Path, limits: Limits) -> dict[str, Any]:
    """Run a verb, given by its name and arguments without `--format`, and return its report.

    The process may write only in the folder of the file `report`.

    Raises:
        WorkerError: There is no report, because the verb failed, crashed, or reached a limit.
    """
    name, *arguments = verb
    folder, log = report.parent, report.with_suffix(".log")
    child = ["explorer.assistants.child", str(limits.memory), str(folder)]
    command = [sys.executable, "-m", *child, name, "--format=json", *arguments]
    path = os.pathsep.join(filter(None, sys.path))
    scratch = TemporaryDirectory(dir=folder, prefix="temporary-", ignore_cleanup_errors=True)
    with scratch as temporary, _new(report) as output, _new(log) as errors:
        # The child may write only below `folder`: no bytecode next to sources, and temporary files there.
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": temporary}
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=errors, env=environment,
            start_new_session=True,  # its children can then be ended with it
        )  # fmt: skip
        _running[process.pid] = temporary
        try:
            status = await asyncio.wait_for(process.wait(), limits.seconds)
        except TimeoutError:
            raise WorkerError(
                f"{name} was ended after {limits.seconds:g} s, its limit.\n  Hint: the user sets it, `mcp --seconds`."
            ) from None
        finally:  # also if the client gave up
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            del _running[process.pid]
    return _report(name, report, log, status, limits)


def _new(path: Path) -> IO[bytes]:
    """Return a new file, open for writing; a link that an earlier process left there is removed, not followed."""
    path.unlink(missing_ok=True)
    # Exclusively, so that a link which a program left there isn't followed.
    return path.open("xb")


def _report(name: str, report: Path, log: Path, status: int, limits: Limits) -> dict[str, Any]:
    try:
        answer = cast("dict[str, Any]", json.loads(report.read_text(encoding="utf-8")))
    except ValueError:
        report.unlink()
        raise WorkerError(f"{name} {_end(status, log, limits)}") from None
    if answer["schema"].startswith("explorer/error/"):
        raise WorkerError(f"{answer['error']}: {answer['message']}")
    return answer


def _end(status: int, log: Path, limits: Limits) -> str:
    """Return how a process without a report ended, and its last output."""
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    last = lines[-1][:_MAX_CHARACTERS] if lines else "it printed nothing"
    how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    return f"{how}, perhaps at its limit of {bytes_text(limits.memory)} of memory: {last}\n  Printed: {log}"


def summary_of(answer: dict[str, Any]) -> list[str]:
    """Return the first lines of a report's summary; a last line counts the lines left out, if several are."""
    lines = [str(line)[:_MAX_CHARACTERS] for line in answer.get("summary", ())]
    left = len(lines) - _MAX_LINES
    return lines if left <= 1 else [*lines[:_MAX_LINES], f"… and {left} more lines, in the report"]


_SECONDS, _MEMORY = 180.0, 8.0


def add_mcp(verbs: Any) -> None:
    about = (
        "Serve coding assistants over the Model Context Protocol, on standard input and output: explore, lint, "
        "recompiles, profile, diff, targets, check. Only code named here may run; each answer runs in a process of its "
        "own, with limits on time and memory, and on Linux without a network."
    )
    verb = verbs.add_parser("mcp", help="serve coding assistants", description=about)
    verb.add_argument(
        "names", metavar="NAME", nargs="+",
        help="what may run: MODULE:FUNCTION; a file, with what it defines and as a script; a script with its "
        "arguments, quoted; a golden file",
    )  # fmt: skip
    verb.add_argument("--seconds", metavar="S", type=positive, default=_SECONDS, help=f"for an answer; {_SECONDS:g}")
    verb.add_argument("--memory", metavar="GB", type=positive, default=_MEMORY, help=f"for an answer; {_MEMORY:g}")
    verb.add_argument("-o", "--output", metavar="FOLDER", type=Path, help="for pages and reports; else a new one")
    verb.set_defaults(run=_mcp)


def _mcp(given: argparse.Namespace) -> int:
    try:
        from mcp.server import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError:
        raise MissingPackageError(
            f"mcp, the SDK of the Model Context Protocol, is not installed.\n  Hint: {install_hint('mcp', 'mcp')}."
        ) from None
    named = Named.of(given.names)
    folder = Path(given.output or mkdtemp(prefix="explorer-mcp-")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    tools = Tools(named, folder, Limits(given.seconds, int(given.memory * 1e9)))
    instructions = (
        f"Explains how XLA compiles JAX functions. Code that may run: {named.text}. Answers are sentences, and "
        "the paths of a page for the user's browser and of the whole report as JSON."
    )
    server = MCPServer("explorer", version=ex.__version__, instructions=instructions, log_level="ERROR")
    for tool in tools.all:
        server.add_tool(_raising(tool, ToolError), structured_output=False)
    # Standard output carries the protocol.
    print(f"explorer: pages and reports go to {folder}", file=sys.stderr)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end_at_once)
    server.run("stdio")
    return 0


def _raising(tool: Callable[..., Awaitable[str]], kind: type[Exception]) -> Callable[..., Awaitable[str]]:
    """Return the tool with Explorer's errors and OSErrors raised as `kind`; the SDK logs other errors as faults."""

    @wraps(tool)
    async def answer(*args: Any, **kwargs: Any) -> str:
        try:
            return await tool(*args, **kwargs)
        except (ExplorerError, OSError) as error:
            raise kind(str(error)) from error

    return answer
