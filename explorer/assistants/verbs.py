"""One verb of the shell in a process of its own, with limits on time and memory, and its report."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import IO, Any, cast

from explorer.errors import WorkerError
from explorer.model.units import bytes_text

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
    """Run a verb, and return its report.

    Args:
        verb: Its name and arguments, without `--format`.
        report: File of the report; the process may write only in its folder.
        limits: Limits that end the process.

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
    """Open a new file; an earlier process may have left a link there, to have this one write elsewhere."""
    path.unlink(missing_ok=True)
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
    """Return the first lines of a report's summary, and the number of lines left out."""
    lines = [str(line)[:_MAX_CHARACTERS] for line in answer.get("summary", ())]
    left = len(lines) - _MAX_LINES
    return lines if left <= 1 else [*lines[:_MAX_LINES], f"… and {left} more lines, in the report"]
