"""Writing a file whole or not at all."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from secrets import token_hex


def write_whole(path: str | PathLike[str], data: bytes) -> None:
    """Write `data` to `path`; if that fails, or this process ends on the way, what was there before is left as it was.

    Raises:
        OSError: The folder is not there or can't be written to, or the disk is full.
    """
    target = Path(path)
    # Beside the target, since only within one file system is a rename atomic; the name is no longer than a short one.
    partial = target.with_name(f".{token_hex(8)}.partial")
    try:
        partial.write_bytes(data)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
