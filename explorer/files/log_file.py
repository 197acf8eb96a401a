"""An instruction log that is written line by line, by all that has something to write to it."""

from __future__ import annotations

import multiprocessing
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from time import time
from typing import IO

from explorer.files.instruction_log import LogLine

_open: dict[Path, LogFile] = {}
_lock = threading.RLock()


class LogFile:
    """A log that is open, each line at once on disk; `open_log` gives the one of a path.

    A file that is there already is written on: the processes that a program starts write to the one log of theirs.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # Line by line, and to its end wherever that is by now: lines of several processes don't mix.
        self._file: IO[str] | None = open(path, "a", encoding="utf-8", buffering=1)  # noqa: SIM115
        self._began = time()
        self._lock = threading.Lock()
        self.number = 0
        self.users = 0

    def write(
        self, moment: float, kind: str, thread: str, name: str, details: Mapping[str, str], note: str = ""
    ) -> None:
        """Write a line; nothing once it is closed.

        Args:
            moment: When it was, in seconds since 1970.
            kind: What kind of event: `COMPILE`.
            thread: The name of the thread that saw it.
            name: What happened.
            details: All else, by name.
            note: Words after these.
        """
        process = multiprocessing.current_process().name
        source = thread if process == "MainProcess" else f"{process}/{thread}"
        with self._lock:
            if self._file is None:
                return
            self.number += 1
            line = LogLine(max(moment - self._began, 0.0), self.number, kind, source, name, details, note)
            try:
                self._file.write(f"{line}\n")
            except (OSError, ValueError) as error:  # the disk is full: reported once
                with suppress(OSError):
                    self._file.close()
                self._file = None
                complain(f"{self.path} can't be written any more: {error}")

    def close(self) -> None:
        """One of its users writes no more; with the last one the file is closed."""
        with _lock:
            self.users -= 1
            if self.users > 0:
                return
            _open.pop(self.path, None)
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None


def open_log(path: str | PathLike[str]) -> LogFile:
    """The log of a path: the one that is open already, where there is one, so that its lines are numbered together.

    Raises:
        OSError: It can't be written.
    """
    place = Path(path).expanduser().absolute()
    with _lock:
        log = _open.get(place)
        if log is None:
            log = _open[place] = LogFile(place)
        log.users += 1
        return log


def complain(text: str) -> None:
    """Tell the user of something that isn't worth stopping their program for."""
    with suppress(OSError, ValueError):
        print(f"explorer: {text}", file=sys.stderr, flush=True)
