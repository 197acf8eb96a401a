"""Compiler processes for other hardware, one for each platform, kept between compiles because a start takes a second.

A plugin prints to file descriptors, sets signal handlers, and ends its process if a version doesn't fit, so it must
not run in the user's session. Ending the process also cancels a compile.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import TemporaryFile
from threading import Lock, Thread
from time import monotonic
from typing import IO, Any, NamedTuple, cast

from explorer.errors import MissingCompilerError, TargetCompileError
from explorer.hardware.cpu_features import target_config, xla_flags
from explorer.hardware.installed import compiler_of, path_of
from explorer.hardware.limits import Limits, limits_of, read_overflow
from explorer.model.target import Target
from explorer.model.units import bytes_text

_STEP = 0.2  # seconds between two looks at a running compile
_START = 60.0  # seconds for a start
_MAX_REASON = 300  # characters of the compiler's output in an error
# The TPU's library queries Google's metadata server, and waits for it; and it locks the machine's chips, so that only
# one notebook could compile. The process itself needs only JAX's CPU backend.
_ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",  # of several slices, where the metadata server would give them
    "TF_CPP_MIN_LOG_LEVEL": "2",
}
# A log's head, a crash's table of addresses, and the GPU plugin's message at each start without jax-cuda-plugin.
_NOISE = re.compile(r"^[IWEF]\d{4} .*?\] |^\*\*\* .*|^\s*@ +0x.*|^\w*cuda_plugin_extension is not found\.$")
_BINARY = " [type.googleapis.com/"  # a TPU's compiler repeats its message as an escaped proto
_UNKNOWN_ROUTINE = re.compile(r"No FFI handler registered for (\S+)")


class TargetProgram(NamedTuple):
    """Program compiled for other hardware: optimized HLO, bytes by use of one device, estimates (may be empty)."""

    text: str
    memory: Mapping[str, int]
    cost: Mapping[str, float]


def compile_apart(
    target: Target, program: bytes, count: int, options: Mapping[str, Any], code: Path | None = None
) -> TargetProgram:
    """Return MLIR bytecode compiled for `count` devices of a target, by another process.

    An interrupt or a limit of the target ends that process.

    `code` is a folder for representations below HLO; None skips them.

    Raises:
        MissingCompilerError: The compiler is not installed, or can't be started.
        TargetCompileError: The compiler refused the program, ended, or reached a limit.
    """
    __tracebackhide__ = True
    limits = limits_of(target)
    writes_bundles = code is not None and target.platform == "tpu"
    process = _Process("tpu", _bundles_to(code)) if code and writes_bundles else start(target)
    head = {
        "platform": target.platform,
        "topology": _topology(target),
        "config": target_config(target.device) or target.device.chip,
        "slices": target.nodes,
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
    return TargetProgram(body.decode(), answer["memory"], answer["cost"])


def refusal(platform: str, error: str) -> str:
    """Return a compiler's error, with a hint if one is known."""
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
        hint = f"python -m explorer targets install {platform} adds the vendor's routines that JAX calls"
    else:
        hint = "routines that a package or the session registers are missing in the compiler's process"
    return f"the program calls {unknown[1]}, a routine that its compiler doesn't know ({unknown[0]}).\n  Hint: {hint}."


def start(target: Target) -> _Process:
    """Return the process of a target's platform, started in the background if necessary.

    Raises:
        MissingCompilerError: The compiler is not installed, or no process can be started.
    """
    flags, platform = xla_flags(target), target.platform
    key = f"{platform} {flags}" if flags else platform  # a CPU's compiler reads its flags once in a process
    with _starting:
        process = _processes.get(key)
        if process is not None and not process.is_alive:
            _processes.pop(key).end()
            process = None
        if process is None:
            process = _processes[key] = _Process(platform, {"XLA_FLAGS": flags} if flags else None)
        return process


def _bundles_to(folder: Path) -> dict[str, str]:
    """Return environment variables that make a TPU's compiler dump each kernel's bundles into a folder."""
    # libtpu has no such option for a single program. A full dump would take 80 MB for an attention and six times the
    # time; the bundles alone cost nothing measurable.
    passes = "--xla_jf_dump_llo_pass_label_regex=.*final_bundles.*"
    own = os.environ.get("LIBTPU_INIT_ARGS", "")
    return {"LIBTPU_INIT_ARGS": f"{own} --xla_jf_dump_to={folder} --xla_jf_dump_llo_text=true {passes}".strip()}


def _topology(target: Target) -> str:
    if target.platform == "tpu":
        return f"{target.device.key.replace('v7x', 'tpu7x')}:{target.topology or target.device.topology}"
    return f"1x{target.nodes}x{target.count // target.nodes}"


def _pallas_runtime(path: Sequence[str]) -> dict[str, str]:
    """Return the environment variable that leads Pallas's compiler (Mosaic GPU) to its runtime library.

    The result is empty if no folder of `path` has the library.

    JAX sets it on import of its Mosaic module where a plugin is installed; the compiler's process imports neither.
    """
    libraries = (each for folder in path for each in Path(folder).glob(f"jax_cuda*_plugin/{_MOSAIC}"))
    library = next(libraries, None)
    return {"MOSAIC_GPU_RUNTIME_LIB_PATH": str(library)} if library is not None else {}


_MOSAIC = "libmosaic_gpu_runtime.so"


class _Process:
    """Process with one platform's compiler, for one compile at a time."""

    def __init__(self, platform: str, besides: Mapping[str, str] | None = None) -> None:
        self.platform = platform
        self._lock = Lock()
        self._is_ready = False
        self._log: IO[bytes] = TemporaryFile()  # noqa: SIM115 - as long as the process
        path = [*path_of(compiler_of(platform)), *filter(None, sys.path)]
        # Logs and hot paths that the user turned on are the session's, not the compiler's.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("EXPLORER_")}
        # An option in XLA_FLAGS that this compiler doesn't know would end the process.
        environment.pop("XLA_FLAGS", None)
        environment |= _ENVIRONMENT | _pallas_runtime(path) | {"PYTHONPATH": os.pathsep.join(path), **(besides or {})}
        try:
            self._child = subprocess.Popen(
                # -P: a module in the current folder must not hide one of the compiler's.
                [sys.executable, "-P", "-W", "ignore", "-m", "explorer.hardware.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env=environment,
                start_new_session=True,  # the notebook's interrupts must not reach it
            )
        except OSError as error:
            raise MissingCompilerError(f"no process can be started for {platform}: {error}.") from error
        self._answers: SimpleQueue[tuple[dict[str, Any], bytes] | None] = SimpleQueue()
        # A pipe can't be read with a time limit, a queue can.
        self._listener = Thread(target=self._listen, name=f"explorer-{platform}", daemon=True)
        self._listener.start()

    @property
    def is_alive(self) -> bool:
        return self._child.poll() is None

    @property
    def pid(self) -> int:
        return self._child.pid

    def request(self, head: Mapping[str, Any], body: bytes, limits: Limits) -> tuple[dict[str, Any], bytes]:
        """Return the head and the body of the answer to a request.

        Raises:
            MissingCompilerError: The process didn't get ready.
            TargetCompileError: The process ended, or reached a limit.
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
            except BaseException:  # also an interrupt: a late answer must not be taken for the next request's
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
                # In steps, to check the limit; and a long wait would hold up an interrupt on some systems.
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
        """Return text on why the process ended without an answer, with a hint."""
        status = self._child.wait()
        by = f"by {signal.Signals(-status).name}" if -status in {*signal.Signals} else f"with status {status}"
        if status == -signal.SIGKILL:
            return f"its compiler was ended {by}: probably the system is out of memory.{_MORE}"
        reason = self._crash_reason()
        if limits.memory and re.search(_NO_MEMORY, reason):
            return f"its compiler came to its limit of {bytes_text(limits.memory)}, and ended {by}.{_MORE}"
        if limits.memory:
            return f"its compiler ended {by}, perhaps at its limit of {bytes_text(limits.memory)}.{_MORE}"
        return (
            f"its compiler crashed, and ended {by}{f': {reason}' if reason else '.'}\n"
            "  Hint: your session is unaffected, and the next compile starts a new process. Compile parts of the "
            "function to find the failing part."
        )

    def _crash_reason(self) -> str:
        """Return the log's last line about an error, else its last line, else ""; a table of addresses may follow."""
        self._log.seek(0)
        lines = [_NOISE.sub("", line).strip() for line in self._log.read().decode(errors="replace").splitlines()]
        lines = [line for line in lines if line]
        why = [line for line in lines if re.search(rf"(?i)check failed|fatal|assert|error|{_NO_MEMORY}", line)]
        return (why or lines or [""])[-1][:_MAX_REASON]

    def end(self) -> None:
        # The listener ends at the end of the output; a pipe is closed only when nothing reads it any more.
        self._child.kill()
        self._child.wait()
        self._listener.join()
        for file in (self._child.stdin, self._child.stdout, self._log):
            with suppress(BrokenPipeError):  # of an unread request
                cast("IO[bytes]", file).close()


_NO_MEMORY = "(?i:bad_alloc|out of memory|cannot allocate|MemoryError|RESOURCE_EXHAUSTED)"
_MORE = (
    "\n  Hint: explorer.target(…, compile_seconds=, compile_memory=) sets the limits of a compile, and so do "
    "EXPLORER_TARGET_SECONDS and EXPLORER_TARGET_MEMORY."
)
_processes: dict[str, _Process] = {}
# Two threads must not start the process of one platform twice.
_starting = Lock()


@atexit.register
def end_processes() -> None:
    """End all compiler processes at once; at exit they would first finish their compile."""
    while _processes:
        _processes.popitem()[1].end()


def running() -> Mapping[str, int]:
    """Return the process id of each running compiler, by platform; a CPU's key also has its XLA flags."""
    return {platform: process.pid for platform, process in _processes.items() if process.is_alive}
