"""A process of its own that runs one compiled program once, and tells how much it grew: `own_process.py` starts it.

    stdin    a line of JSON: {"inputs": [[dtype, [sizes]], …], "most": bytes}; then the program's native code
    stdout   a line of JSON: {"grew": bytes, "is_exact": bool}

What it grew by is the peak of its resident memory while the program runs (`VmHWM`, set back before), without what was
there before: the interpreter, JAX, the program and its arguments, all of which are in memory by then. Pages of code
that are read from files for the first time while it runs are no scratch of the program's, and are taken off.
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
    """Read a program, run it, and write what it took."""
    head, _, code = sys.stdin.buffer.read().partition(b"\n")
    request = cast("dict[str, Any]", json.loads(head))
    run = load_code(code)
    arrays = [jax.device_put(np.ones(sizes, jax.numpy.dtype(dtype))) for dtype, sizes in request["inputs"]]
    jax.block_until_ready(arrays)
    _limit(int(request["most"]))
    grew, is_exact = _growth(lambda: run(arrays))
    print(json.dumps({"grew": grew, "is_exact": is_exact}), flush=True)


def _growth(run: Callable[[], None]) -> tuple[int, bool]:
    """Bytes by which this process grows while `run` runs, and whether that is no less than it was."""
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
    """What the system tells of this process, in bytes."""
    fields = (line.split() for line in read_text(_STATUS, errors="replace").splitlines())
    return {field[0].rstrip(":"): int(field[1]) << 10 for field in fields if field[-1:] == ["kB"]}


def _limit(most: int) -> None:
    """Have what would take more fail here, rather than the system end another process."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        taken = _resident()["VmData"]
        resource.setrlimit(resource.RLIMIT_DATA, (taken + most, taken + most))


if __name__ == "__main__":
    main()
