"""The names of XLA's compiler options, of which nobody keeps a list that could be asked for."""

from __future__ import annotations

import mmap
import re
from contextlib import suppress
from functools import cache
from pathlib import Path

import jaxlib

_NAME = re.compile(rb"xla_[a-z][a-z0-9_]{3,}")
_NOT = re.compile(rb"_2[ef]|_5f|_proto|_once$")  # names of files in the code that protobuf makes


@cache
def option_names() -> frozenset[str]:
    """What may be a name of an option: the words `xla_…` in jaxlib's own code; empty where that can't be read.

    The fields of XLA's DebugOptions are described in that code, next to few other such words. It takes 0.3 s, so it is
    only for what somebody wrote wrong.
    """
    names: set[bytes] = set()
    with suppress(OSError, ValueError):
        files = Path(jaxlib.__file__).parent.glob("*.so*")
        largest = max(files, key=lambda file: file.stat().st_size)
        with largest.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            names.update(_NAME.findall(content))
    return frozenset(name.decode("ascii") for name in names if not _NOT.search(name))
