"""A process for each platform that compiles for it, kept between compiles: its start takes a second.

A plugin prints to file descriptors, sets signal handlers, and ends the process where a version doesn't fit: none of
that may happen to the user's session. Ending the process is also how a compile is cancelled.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from tempfile import TemporaryFile
from threading import Lock, Thread
from time import monotonic
from typing import IO, Any, cast

from explorer.errors import MissingCompilerError, TargetCompileError
from explorer.hardware.gpu_config import target_config
from explorer.hardware.installed import compiler_of, path_of
from explorer.model.target import Target

_STEP = 0.2  # seconds between two looks at a compile that is under way
_START = 60.0  # seconds for a start
_TOLD = 600  # characters of what a compiler printed that an error repeats
# The TPU's library asks Google's metadata server which machine this is, and waits for it. JAX's own CPU is enough here.
_ENVIRONMENT = {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}


@dataclass(frozen=True)
class TargetProgram:
    """What a compiler of other hardware made of a program.

    Args:
        text: The optimised HLO.
        memory: Bytes by use, of one device.
        cost: What the compiler estimates; empty where it doesn't.
        device: The kind of device, as JAX calls it.
    """

    text: str
    memory: Mapping[str, int]
    cost: Mapping[str, float]
    device: str


def compile_apart(
    target: Target,
    program: bytes,
    count: int,
    options: Mapping[str, Any],
    *,
    seconds: float | None = None,
    tell: Callable[[float], None] | None = None,
) -> TargetProgram:
    """Compile a module for a target, in a process of its own.

    Interrupting it ends the compile, and the process with it.

    Args:
        target: What for.
        program: StableHLO, as MLIR bytecode.
        count: Of how many devices one program is made.
        options: XLA's compiler options.
        seconds: After how many it is given up; None for never.
        tell: Called with the seconds since the start, while it is under way.

    Raises:
        MissingCompilerError: The compiler is not installed, or can't be started.
        TargetCompileError: It refused the program, ended, or took too long.
    """
    process = _process_of(target.platform)
    head = {
        "platform": target.platform,
        "topology": _topology(target),
        "config": target_config(target.device),
        "count": count,
        "options": dict(options),
    }
    answer, body = process.request(head, program, seconds, tell)
    if "error" in answer:
        lacks = compiler_of(target.platform).lacks
        needs = f"\n  Hint: its compiler also needs {lacks}." if lacks else ""
        raise TargetCompileError(f"{target}: {answer['error']}{needs}")
    return TargetProgram(body.decode(), answer["memory"], answer["cost"], answer["device"])


def _topology(target: Target) -> str:
    if target.platform == "tpu":
        return f"{target.device.key.replace('v7x', 'tpu7x')}:{target.topology or target.device.topology}"
    return f"1x1x{target.count}"


class _Process:
    """One process with one platform's compiler; one compile at a time."""

    def __init__(self, platform: str) -> None:
        self.platform = platform
        self._lock = Lock()
        self._log: IO[bytes] = TemporaryFile()  # noqa: SIM115 - as long as the process
        path = [*path_of(compiler_of(platform)), *filter(None, sys.path)]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("EXPLORER_AUTO")}
        # XLA_FLAGS may name options that this compiler doesn't know, which would end the process.
        environment.pop("XLA_FLAGS", None)
        environment |= _ENVIRONMENT | {"PYTHONPATH": os.pathsep.join(path)}
        try:
            self._child = subprocess.Popen(
                [sys.executable, "-P", "-W", "ignore", "-m", "explorer.hardware.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env=environment,
                start_new_session=True,  # an interrupt of the notebook's is for the session to answer
            )
        except OSError as error:
            raise MissingCompilerError(f"no process can be started for {platform}: {error}.") from error
        self._answers: SimpleQueue[tuple[dict[str, Any], bytes] | None] = SimpleQueue()
        self._listener = Thread(target=self._listen, name=f"explorer-{platform}", daemon=True)
        self._listener.start()
        try:
            self._next(_START, None)
        except TargetCompileError as error:
            raise MissingCompilerError(f"the compiler for {platform} can't be started: {error}") from error

    @property
    def is_alive(self) -> bool:
        return self._child.poll() is None

    def request(
        self, head: Mapping[str, Any], body: bytes, seconds: float | None, tell: Callable[[float], None] | None
    ) -> tuple[dict[str, Any], bytes]:
        with self._lock:
            stdin = cast("IO[bytes]", self._child.stdin)
            try:
                stdin.write(json.dumps({**head, "size": len(body)}).encode() + b"\n" + body)
                stdin.flush()
                return self._next(seconds, tell)
            except BrokenPipeError:
                raise TargetCompileError(self._ended()) from None
            except BaseException:  # an interrupt too: what would answer this request must not answer the next
                self.end()
                raise

    def _next(self, seconds: float | None, tell: Callable[[float], None] | None) -> tuple[dict[str, Any], bytes]:
        start = monotonic()
        while True:
            try:
                answer = self._answers.get(timeout=_STEP)
            except Empty:
                spent = monotonic() - start
                if seconds is not None and spent > seconds:
                    self.end()
                    raise TargetCompileError(f"the compile was given up after {seconds:g} s.") from None
                if tell is not None:
                    tell(spent)
                continue
            if answer is None:
                raise TargetCompileError(self._ended())
            return answer

    def _listen(self) -> None:
        stdout = cast("IO[bytes]", self._child.stdout)
        while line := stdout.readline():
            head = cast("dict[str, Any]", json.loads(line))
            self._answers.put((head, stdout.read(int(head["size"]))))
        self._answers.put(None)

    def _ended(self) -> str:
        self._child.wait()
        self._log.seek(0)
        lines = [line for line in self._log.read().decode(errors="replace").splitlines() if line.strip()]
        end = "\n".join(lines)[-_TOLD:]
        return f"its process ended with {self._child.returncode}" + (f": {end}" if end else ".")

    def end(self) -> None:
        """End the process, whatever it does."""
        self._child.kill()
        self._child.wait()
        self._listener.join()
        for file in (self._child.stdin, self._child.stdout, self._log):
            with suppress(BrokenPipeError):  # what it was told last and didn't read
                cast("IO[bytes]", file).close()


_processes: dict[str, _Process] = {}
_starting = Lock()


def _process_of(platform: str) -> _Process:
    with _starting:
        process = _processes.get(platform)
        if process is not None and not process.is_alive:
            _processes.pop(platform).end()
            process = None
        if process is None:
            process = _processes[platform] = _Process(platform)
        return process


@atexit.register
def end_processes() -> None:
    """End all of them: they would end with the session too, once their compile is done."""
    while _processes:
        _processes.popitem()[1].end()


def running() -> Mapping[str, int]:
    """The process of each platform that has one, by its number."""
    return {platform: process._child.pid for platform, process in _processes.items() if process.is_alive}  # pyright: ignore[reportPrivateUsage]
