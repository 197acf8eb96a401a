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

_LINES = 12  # of an answer: more are in the report
_LONGEST = 400  # characters of a line


_running: dict[int, str] = {}  # process groups, and the folder of each for what is temporary


def end_at_once(number: int, _: object) -> None:
    """End this process by a signal, with the verb that it runs. An exit would wait for the thread that reads input."""
    for group, temporary in _running.items():
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        rmtree(temporary, ignore_errors=True)
    os._exit(128 + number)


@dataclass(frozen=True)
class Limits:
    """What one answer may take: seconds, and bytes of memory."""

    seconds: float
    memory: int


async def run_verb(verb: Sequence[str], report: Path, limits: Limits) -> dict[str, Any]:
    """The report of a verb, which is also written to a file.

    Args:
        verb: Its name and arguments, without `--format`.
        report: Where it is written; the process may write in its folder, and nowhere else.
        limits: What it may take; the process ends where it comes to one.

    Raises:
        WorkerError: There is no report: the verb failed, crashed, or came to a limit; says which.
    """
    name, *arguments = verb
    folder, log = report.parent, report.with_suffix(".log")
    child = ["explorer.assistants.child", str(limits.memory), str(folder)]
    command = [sys.executable, "-m", *child, name, "--format=json", *arguments]
    path = os.pathsep.join(filter(None, sys.path))
    with _temporary(folder) as temporary, _new(report) as output, _new(log) as errors:
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": temporary}
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=errors, env=environment,
            start_new_session=True,  # so that what it starts ends with it
        )  # fmt: skip
        _running[process.pid] = temporary
        try:
            status = await asyncio.wait_for(process.wait(), limits.seconds)
        except TimeoutError:
            raise WorkerError(
                f"{name} was ended after {limits.seconds:g} s, its limit.\n  Hint: the user sets it, `mcp --seconds`."
            ) from None
        finally:  # also where the client gave up
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            del _running[process.pid]
    return _report(name, report, log, status, limits)


def _temporary(folder: Path) -> TemporaryDirectory[str]:
    return TemporaryDirectory(dir=folder, prefix="temporary-", ignore_cleanup_errors=True)


def _new(path: Path) -> IO[bytes]:
    """Open a file that is new: an earlier process may have left a link there, to write elsewhere by this one."""
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
    """How a process ended that left no report, and what it printed last."""
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    last = lines[-1][:_LONGEST] if lines else "it printed nothing"
    how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    return f"{how}, perhaps at its limit of {bytes_text(limits.memory)} of memory: {last}\n  Printed: {log}"


def summary_of(answer: dict[str, Any]) -> list[str]:
    """What a report says in short; how many lines it leaves out is said."""
    lines = [str(line)[:_LONGEST] for line in answer.get("summary", ())]
    left = len(lines) - _LINES
    return lines if left <= 1 else [*lines[:_LINES], f"… and {left} more lines, in the report"]
