"""`-o FILE` of the shell's verbs: refused before the work, where the file can't be written after it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

__all__ = ["add_output", "writable"]


def add_output(verb: Any, about: str, endings: Collection[str] = (), *, several: bool = False) -> None:
    """Give a verb `-o FILE`, as `output`.

    Args:
        verb: The verb's `argparse.ArgumentParser`.
        about: What is written there, for `--help`.
        endings: Of the file's name, as `.html`; with none, any will do.
        several: Whether it may be given several times; then `output` is a list, empty without it.
    """
    given: dict[str, Any] = {"action": "append", "default": []} if several else {}
    verb.add_argument("-o", "--output", metavar="FILE", type=writable(endings), help=about, **given)


def writable(endings: Collection[str] = ()) -> Callable[[str], Path]:
    """What turns a name on a command line into the absolute path of a file that can be written."""

    def path_of(name: str) -> Path:
        path = Path(name).expanduser().absolute()  # a script may change the working directory
        if path.is_dir():
            raise argparse.ArgumentTypeError(f"{name!r} is a folder; name a file in it")
        if not path.parent.is_dir():
            raise argparse.ArgumentTypeError(f"there is no folder {str(path.parent)!r} to write {name!r} to")
        if endings and path.suffix not in endings:
            ending = " or ".join([", ".join([*endings][:-1])] * (len(endings) > 1) + [*endings][-1:])
            raise argparse.ArgumentTypeError(f"{name!r} doesn't end in {ending}")
        return path

    return path_of
