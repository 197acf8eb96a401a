"""Files of many processes: those of a folder, in the order of their numbers, and what the processes are called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TypeVar, cast

_Value = TypeVar("_Value")


def with_files(sources: Iterable[_Value | str | PathLike[str]]) -> list[_Value | Path]:
    """The sources, with the files of a folder in its place; `9.jsonl` is before `10.jsonl`."""
    files: list[_Value | Path] = []
    for source in sources:
        if not isinstance(source, (str, PathLike)):
            files.append(source)
            continue
        path = Path(cast("str", source))
        inside = [each for each in path.iterdir() if each.is_file()] if path.is_dir() else [path]
        files += sorted(inside, key=lambda each: (len(each.name), each.name))
    return files


def process_names(sources: Sequence[object]) -> list[str]:
    """What processes are called: as their files where those tell them apart, else 0, 1, …."""
    names = [source.stem if isinstance(source, Path) else "" for source in sources]
    return names if all(names) and len({*names}) == len(names) else [str(at) for at in range(len(names))]
