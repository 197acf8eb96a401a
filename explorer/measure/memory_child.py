"""Subprocess that runs one compiled program once and reports its growth; `own_process.py` starts it.

    stdin    a line of JSON: {"inputs": [[dtype, [sizes]], …], "most": bytes}; then the program's native code
    stdout   a line of JSON: {"grew": bytes, "is_exact": bool}

The growth is the peak of resident memory while the program runs (`VmHWM`, reset before) minus the memory resident
before: interpreter, JAX, program and arguments. Pages of code read from files for the first time are subtracted.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import jax
import numpy as np

from explorer._jax.native import load_code
from explorer.files.disk import read_text

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"  # what clear_refs takes to set VmHWM back to what is resident now: proc(5)


def main() -> None:
    """Read a program from stdin, run it, and print its memory growth."""
    head, _, code = sys.stdin.buffer.read().partition(b"\n")
    request = cast("dict[str, Any]", json.loads(head))
    run = load_code(code)
    arrays = [jax.device_put(np.ones(sizes, jax.numpy.dtype(dtype))) for dtype, sizes in request["inputs"]]
    jax.block_until_ready(arrays)
    _limit(int(request["most"]))
    grew, is_exact = _growth(lambda: run(arrays))
    print(json.dumps({"grew": grew, "is_exact": is_exact}), flush=True)


def _growth(run: Callable[[], None]) -> tuple[int, bool]:
    """Return the bytes by which this process grows during `run`, and False if that is only a lower bound."""
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
    """Return the memory figures of /proc/self/status, in bytes."""
    fields = (line.split() for line in read_text(_STATUS, errors="replace").splitlines())
    return {field[0].rstrip(":"): int(field[1]) << 10 for field in fields if field[-1:] == ["kB"]}


def _limit(most: int) -> None:
    # An allocation beyond this fails here; otherwise the system might kill another process.
    # An allocation beyond this fails here; otherwise the system might kill another process.
    with suppress(ImportError, ValueError, OSError):
        import resource

        taken = _resident()["VmData"]
        resource.setrlimit(resource.RLIMIT_DATA, (taken + most, taken + most))


if __name__ == "__main__":
    main()
