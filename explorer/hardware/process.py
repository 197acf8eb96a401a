"""A process for each platform that compiles for it, kept between compiles: its start takes a second.

A plugin prints to file descriptors, sets signal handlers, and ends the process where a version doesn't fit: none of
that may happen to the user's session. Ending the process is also how a compile is cancelled.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import TemporaryFile
from threading import Lock, Thread
from time import monotonic
from typing import IO, Any, cast

from explorer.errors import MissingCompilerError, TargetCompileError
from explorer.hardware.cpu_features import target_config, xla_flags
from explorer.hardware.installed import compiler_of, path_of
from explorer.hardware.limits import Limits, limits_of, read_overflow
from explorer.model.target import Target
from explorer.model.units import bytes_text

_STEP = 0.2  # seconds between two looks at a compile that is under way
_START = 60.0  # seconds for a start
_LONGEST = 300  # characters of what a compiler printed last that an error repeats
# The TPU's library asks Google's metadata server which machine this is, and waits for it; and it takes a lock, for the
# chips' sake, that would let one notebook of a machine compile and refuse all others. JAX's own CPU is enough here.
_ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}
# A log's head, a crash's table of addresses, and what the GPU's plugin says at each start where it is alone.
_NOISE = re.compile(r"^[IWEF]\d{4} .*?\] |^\*\*\* .*|^\s*@ +0x.*|^\w*cuda_plugin_extension is not found\.$")
_BINARY = " [type.googleapis.com/"  # what a TPU's compiler says, once more, as an escaped message for programs
_UNKNOWN_ROUTINE = re.compile(r"No FFI handler registered for (\S+)")


@dataclass(frozen=True)
class TargetProgram:
    """What a compiler of other hardware made of a program.

    Args:
        text: The optimised HLO.
        memory: Bytes by use, of one device.
        cost: What the compiler estimates; empty where it doesn't.
        device: The kind of device, as JAX calls it.
        seconds: That the compiler took, without what it takes to reach it.
    """

    text: str
    memory: Mapping[str, int]
    cost: Mapping[str, float]
    device: str
    seconds: float = 0.0


def compile_apart(
    target: Target, program: bytes, count: int, options: Mapping[str, Any], code: Path | None = None
) -> TargetProgram:
    """Compile a module for a target, in a process of its own.

    Interrupting it ends the compile, and the process with it; so does a limit of the target's.

    Args:
        target: What for, and how long and large the compile may get.
        program: StableHLO, as MLIR bytecode.
        count: Of how many devices one program is made.
        options: XLA's compiler options.
        code: A folder for what lies below HLO, where somebody wants it.

    Raises:
        MissingCompilerError: The compiler is not installed, or can't be started.
        TargetCompileError: It refused the program, ended, or came to a limit.
    """
    __tracebackhide__ = True
    limits = limits_of(target)
    writes_bundles = code is not None and target.platform == "tpu"
    process = _Process("tpu", _bundles_to(code)) if code and writes_bundles else start(target)
    head = {
        "platform": target.platform,
        "topology": _topology(target),
        "config": target_config(target.device) or target.device.chip,
        "count": count,
        "options": dict(options),
        "most": limits.memory,
        "code": str(code or ""),
    }
    try:
        answer, body = process.request(head, program, limits)
    except TargetCompileError as error:
        raise TargetCompileError(f"{target}: {error}") from error.__cause__
    finally:
        if writes_bundles:
            process.end()
    if "error" in answer:
        raise TargetCompileError(f"{target}: {refusal(target.platform, answer['error'])}")
    return TargetProgram(body.decode(), answer["memory"], answer["cost"], answer["device"], answer["seconds"])


def refusal(platform: str, error: str) -> str:
    """Why a compiler refuses a program, and what to do about it."""
    compiler = compiler_of(platform)
    error = error.partition(_BINARY)[0]
    if read_overflow(error) is not None:
        return (
            f"{error}\n  Hint: explorer.largest_that_fits(f, dimension=…, target=…) finds the largest size that fits."
        )
    unknown = _UNKNOWN_ROUTINE.search(error)
    if unknown is None:
        return error + (f"\n  Hint: its compiler also needs {compiler.lacks}." if compiler.lacks else "")
    if compiler.lacks_routines:
        hint = f"python -m explorer targets install {platform} adds what JAX calls of the maker's libraries"
    else:
        hint = "what a package or the session registers itself, the compiler's own process doesn't have"
    return f"the program calls {unknown[1]}, a routine that its compiler doesn't know ({unknown[0]}).\n  Hint: {hint}."


def start(target: Target) -> _Process:
    """The process of a target's platform, started if there is none; it gets ready while the caller goes on.

    CPUs have one for each kind and number of them: their compiler reads that once in a process.

    Raises:
        MissingCompilerError: The compiler is not installed, or no process can be started.
    """
    flags, platform = xla_flags(target), target.platform
    key = f"{platform} {flags}" if flags else platform
    with _starting:
        process = _processes.get(key)
        if process is not None and not process.is_alive:
            _processes.pop(key).end()
            process = None
        if process is None:
            process = _processes[key] = _Process(platform, {"XLA_FLAGS": flags} if flags else None)
        return process


def _bundles_to(folder: Path) -> dict[str, str]:
    """The environment in which a TPU's compiler writes its last representation of each kernel.

    It takes no such option with a program. All that it can write would be 80 MB for an attention, and six times the
    time; these bundles cost nothing that could be measured.
    """
    passes = "--xla_jf_dump_llo_pass_label_regex=.*final_bundles.*"
    own = os.environ.get("LIBTPU_INIT_ARGS", "")
    return {"LIBTPU_INIT_ARGS": f"{own} --xla_jf_dump_to={folder} --xla_jf_dump_llo_text=true {passes}".strip()}


def _topology(target: Target) -> str:
    if target.platform == "tpu":
        return f"{target.device.key.replace('v7x', 'tpu7x')}:{target.topology or target.device.topology}"
    return f"1x1x{target.count}"


class _Process:
    """One process with one platform's compiler; one compile at a time."""

    def __init__(self, platform: str, besides: Mapping[str, str] | None = None) -> None:
        self.platform = platform
        self._lock = Lock()
        self._is_ready = False
        self._log: IO[bytes] = TemporaryFile()  # noqa: SIM115 - as long as the process
        path = [*path_of(compiler_of(platform)), *filter(None, sys.path)]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("EXPLORER_")}
        # XLA_FLAGS may name options that this compiler doesn't know, which would end the process.
        environment.pop("XLA_FLAGS", None)
        environment |= _ENVIRONMENT | {"PYTHONPATH": os.pathsep.join(path), **(besides or {})}
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

    @property
    def is_alive(self) -> bool:
        return self._child.poll() is None

    @property
    def number(self) -> int:
        """Of the process, as the system counts it."""
        return self._child.pid

    def request(self, head: Mapping[str, Any], body: bytes, limits: Limits) -> tuple[dict[str, Any], bytes]:
        """The answer to a request.

        Raises:
            MissingCompilerError: The process, which this is the first request of, didn't get ready.
            TargetCompileError: It ended, or came to a limit.
        """
        __tracebackhide__ = True
        with self._lock:
            stdin = cast("IO[bytes]", self._child.stdin)
            try:
                self._wait_until_ready()
                stdin.write(json.dumps({**head, "size": len(body)}).encode() + b"\n" + body)
                stdin.flush()
                return self._next(limits)
            except BrokenPipeError:
                raise TargetCompileError(self._ended(limits)) from None
            except BaseException:  # an interrupt too: what would answer this request must not answer the next
                self.end()
                raise

    def _wait_until_ready(self) -> None:
        if self._is_ready:
            return
        try:
            self._next(Limits(_START))
        except TargetCompileError as error:
            raise MissingCompilerError(f"the compiler for {self.platform} can't be started: {error}") from error
        self._is_ready = True

    def _next(self, limits: Limits) -> tuple[dict[str, Any], bytes]:
        __tracebackhide__ = True
        began = monotonic()
        while True:
            try:
                answer = self._answers.get(timeout=_STEP)
            except Empty:
                if limits.seconds and monotonic() - began > limits.seconds:
                    raise TargetCompileError(f"given up after {limits.seconds:g} s, its limit.{_MORE}") from None
                continue
            if answer is None:
                raise TargetCompileError(self._ended(limits))
            return answer

    def _listen(self) -> None:
        stdout = cast("IO[bytes]", self._child.stdout)
        while line := stdout.readline():
            head = cast("dict[str, Any]", json.loads(line))
            self._answers.put((head, stdout.read(int(head["size"]))))
        self._answers.put(None)

    def _ended(self, limits: Limits) -> str:
        """Why there is no answer, in a line, and what to do about it."""
        status = self._child.wait()
        by = f"by {signal.Signals(-status).name}" if -status in {*signal.Signals} else f"with status {status}"
        if status == -signal.SIGKILL:
            return f"its compiler was ended {by}, as a system does that is out of memory.{_MORE}"
        reason = self._last_words()
        if limits.memory and re.search(_NO_MEMORY, reason):
            return f"its compiler came to its limit of {bytes_text(limits.memory)}, and ended {by}.{_MORE}"
        if limits.memory:
            return f"its compiler ended {by}, perhaps at its limit of {bytes_text(limits.memory)}.{_MORE}"
        return (
            f"its compiler crashed, and ended {by}{f': {reason}' if reason else '.'}\n"
            "  Hint: nothing of this session is lost, and the next compile starts another; without part of the "
            "function it may say what it can't do."
        )

    def _last_words(self) -> str:
        """The line in which a crashed process says why: LLVM's and XLA's begin with one, and a table follows."""
        self._log.seek(0)
        lines = [_NOISE.sub("", line).strip() for line in self._log.read().decode(errors="replace").splitlines()]
        lines = [line for line in lines if line]
        why = [line for line in lines if re.search(rf"(?i)check failed|fatal|assert|error|{_NO_MEMORY}", line)]
        return (why or lines or [""])[-1][:_LONGEST]

    def end(self) -> None:
        """End the process, whatever it does."""
        self._child.kill()
        self._child.wait()
        self._listener.join()
        for file in (self._child.stdin, self._child.stdout, self._log):
            with suppress(BrokenPipeError):  # what it was told last and didn't read
                cast("IO[bytes]", file).close()


_NO_MEMORY = "(?i:bad_alloc|out of memory|cannot allocate|MemoryError|RESOURCE_EXHAUSTED)"
_MORE = (
    "\n  Hint: explorer.target(…, compile_seconds=, compile_memory=) says how much a compile may take, and so do "
    "EXPLORER_TARGET_SECONDS and EXPLORER_TARGET_MEMORY."
)
_processes: dict[str, _Process] = {}
_starting = Lock()


@atexit.register
def end_processes() -> None:
    """End all of them: they would end with the session too, once their compile is done."""
    while _processes:
        _processes.popitem()[1].end()


def running() -> Mapping[str, int]:
    """The process of each platform that has one, by its number."""
    return {platform: process.number for platform, process in _processes.items() if process.is_alive}
