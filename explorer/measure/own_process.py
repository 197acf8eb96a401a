"""Peak memory of a compiled program, measured in a subprocess, so that the user's process stays as it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import jax
import numpy as np

from explorer._jax.native import load_code, native_code, physical_inputs
from explorer.files.disk import read_text
from explorer.measure.machine import free_bytes
from explorer.model.units import bytes_text

# glibc returns freed memory to the system at once. Otherwise memory freed after loading would serve the program and
# not be counted.
_ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
_LONGEST = 200  # characters of the last line that a child writes


@dataclass(frozen=True)
class ProcessPeak:
    """Memory that a program took in a process of its own.

    Args:
        bytes: Its arguments plus the growth of the process while it ran; 0 if unknown.
        note: Why there is no figure, or why it is a lower bound; empty otherwise.
    """

    bytes: int = 0
    note: str = ""


def peak_of_process(compiled: Any, arguments: int, needed: int, patience: float) -> ProcessPeak:
    """Return the memory that a compiled program takes, run once on arguments of ones in a subprocess of its own.

    If it can't be measured, return zero bytes and a note with the reason.

    Args:
        compiled: A `jax.stages.Compiled` for one CPU device of this machine.
        arguments: Bytes of its arguments.
        needed: Bytes of XLA's buffers, arguments included.
        patience: Timeout in seconds; starting the process takes one or two.
    """
    free = free_bytes()
    if not Path("/proc/self/status").exists():
        return _not_measured("this system doesn't report the memory of a process")
    if free and 2 * needed > free:
        return _not_measured(f"it needs {bytes_text(needed)} or more, and {bytes_text(free)} are free")
    native = native_code(compiled)
    if isinstance(native, str):
        return _not_measured(native)
    inputs = [[struct.dtype.name, list(struct.shape)] for struct in physical_inputs(native)]
    head = json.dumps({"inputs": inputs, "most": free * 3 // 4 or 1 << 50})
    return _run(head.encode() + b"\n" + native.code, arguments, patience)


def _run(request: bytes, arguments: int, patience: float) -> ProcessPeak:
    # -P: files of the working directory must not replace modules.
    command = [sys.executable, "-P", "-W", "ignore", "-m", "explorer.measure.own_process"]
    # It finds Explorer and JAX where this process has them, whatever put them there.
    paths = os.pathsep.join(path for path in sys.path if path)
    # With these variables the child would log or compile hot paths too.
    own = {name: value for name, value in os.environ.items() if not name.startswith("EXPLORER_")}
    environment = own | _ALLOCATOR | {"PYTHONPATH": paths, "JAX_PLATFORMS": "cpu"}
    try:
        done = subprocess.run(
            command, input=request, capture_output=True, timeout=patience, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        return _not_measured(f"it was not done after {patience:g} s")
    except (OSError, ValueError) as error:  # an interpreter without a file of its own
        return _not_measured(f"no process can be started: {error}")
    try:
        # The last line, as libraries may print before it.
        answer = cast("dict[str, Any]", json.loads(done.stdout.decode().strip().splitlines()[-1]))
        grew, is_exact = int(answer["grew"]), bool(answer["is_exact"])
    except (ValueError, KeyError, IndexError, TypeError):
        errors = done.stderr.decode(errors="replace").strip().splitlines()
        why = errors[-1][:_LONGEST] if errors else f"the process ended with {done.returncode}"
        return _not_measured(why)
    note = "" if is_exact else "a lower bound: here a process can't reset its peak memory"
    return ProcessPeak(arguments + grew, note)


def _not_measured(why: str) -> ProcessPeak:
    return ProcessPeak(note=f"the runtime's own memory was not measured: {why}")


_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"  # what clear_refs takes to set VmHWM back to what is resident now: proc(5)


def main() -> None:
    """Read a program from stdin, run it, and print the process's memory growth as JSON: `grew`, `is_exact`."""
    head, _, code = sys.stdin.buffer.read().partition(b"\n")
    request = cast("dict[str, Any]", json.loads(head))
    run = load_code(code)
    arrays = [jax.device_put(np.ones(sizes, jax.numpy.dtype(dtype))) for dtype, sizes in request["inputs"]]
    jax.block_until_ready(arrays)
    _limit(int(request["most"]))
    grew, is_exact = _growth(lambda: run(arrays))
    print(json.dumps({"grew": grew, "is_exact": is_exact}), flush=True)


def _growth(run: Callable[[], None]) -> tuple[int, bool]:
    """Return the bytes by which this process grows during `run`, without pages of files, and False if that is only a
    lower bound.
    """
    is_exact = False
    with suppress(OSError):  # not allowed in some containers
        _CLEAR.write_text(_RESET_PEAK)
        is_exact = True
    before = _resident()
    run()
    after = _resident()
    # A peak that can't be set back is of all that was before, and grows only where the program takes more than that.
    grown = after["VmHWM"] - before["VmRSS" if is_exact else "VmHWM"]
    return max(grown - max(after["RssFile"] - before["RssFile"], 0), 0), is_exact


def _resident() -> dict[str, int]:
    """Return the memory figures of /proc/self/status by name (`VmRSS`), in bytes."""
    fields = (line.split() for line in read_text(_STATUS, errors="replace").splitlines())
    return {field[0].rstrip(":"): int(field[1]) << 10 for field in fields if field[-1:] == ["kB"]}


def _limit(most: int) -> None:
    # An allocation beyond this fails here; otherwise the system might kill another process.
    with suppress(ImportError, ValueError, OSError):
        import resource

        taken = _resident()["VmData"]
        resource.setrlimit(resource.RLIMIT_DATA, (taken + most, taken + most))


if __name__ == "__main__":
    main()
