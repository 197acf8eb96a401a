"""Writing a file whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from os import PathLike
from pathlib import Path
from secrets import token_hex


def write_whole(path: str | PathLike[str], data: bytes | memoryview) -> None:
    """Write `data` to `path`; if that fails, or this process ends on the way, what was there before is left as it was.

    It is written beside the file first, and then in its place: who reads meanwhile has the old one or the new one, and
    of several who write, the last one's is there. As with any writing, a symbolic link stays one, and a file that was
    there keeps its permissions.

    Raises:
        OSError: The folder is not there or can't be written to, or the disk is full. It names `path`.
    """
    target = Path(os.path.realpath(path))
    # Within one file system a rename is atomic; the name is no longer than a short one.
    partial = target.with_name(f".{token_hex(8)}.partial")
    try:
        if target.is_dir():
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        if target.exists() and not os.access(target, os.W_OK):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        _write(partial, target, data)
    except OSError as error:  # it names the file beside, which nobody knows
        raise OSError(error.errno, error.strerror, str(path)) from None


def _write(partial: Path, target: Path, data: bytes | memoryview) -> None:
    try:
        with partial.open("xb") as file:
            if target.exists():
                partial.chmod(stat.S_IMODE(target.stat().st_mode))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    except BaseException:
        with suppress(OSError):  # what is raised is the reason
            partial.unlink(missing_ok=True)
        raise
    if os.name == "posix":  # the folder has the new name only when it is written too
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
