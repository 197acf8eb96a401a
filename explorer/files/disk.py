"""Reading and writing of files: no other module of Explorer opens any (`tests/one_door.py` lists the exceptions).

Files may be malicious, so reading has bounds: only regular files are read, since a pipe or a device may never end;
at most a given number of bytes; and parsers get no input that makes them take more memory or time than its size
explains. Files are written whole or not at all.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import tomllib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from math import isfinite
from os import PathLike
from pathlib import Path
from secrets import token_hex
from time import time
from typing import IO, Any, NoReturn, TypeVar, cast

from explorer.errors import OptionError

Refusal = Callable[[str], Exception]  # class of the error for a file that can't be read

LARGEST_TEXT = 64 * 2**20  # bytes of a text that a person or a tool wrote
LARGEST_DUMP = 4_000_000_000  # bytes of a compiler's output: a text of 10,000,000 instructions
LONGEST_LINE = 16 * 2**20  # bytes of one line of a ledger or a log
_PIECE = 2**20
_MAX_JSON_VALUES = 8_000_000  # each up to 64 bytes in memory: a step of 100,000 instructions has 700,000
_MAX_DIGITS = 100  # of an integer: a product of three is still a double
_MAX_TOML_DOTS = 20_000_000  # squared and summed over the lines: tomllib takes time and memory for each pair
_MAX_YAML_NODES, _MAX_YAML_DEPTH, _MAX_YAML_SCALAR = 100_000, 50, 1_000  # an alias counts as all of its anchor
_PARTIAL = re.compile(r"\.[0-9a-f]{16}\.partial")
_DAY = 86_400.0  # seconds


# Reading --------------------------------------------------------------------------------------------------------------


def read_bytes(path: str | PathLike[str], largest: int, what: str, refuse: Refusal = OSError) -> bytes:
    """Return all bytes of a regular file.

    Args:
        largest: Limit in bytes.
        what: Kind of file, with its article, for messages.
        refuse: Class of the error for a file that is not regular, has an impossible name, or is too large.

    Raises:
        OSError: The file can't be read: FileNotFoundError, IsADirectoryError.
    """
    with _opened(path, what, refuse) as file:
        size = os.fstat(file.fileno()).st_size
        pieces = [file.read(size)] if size <= largest else []  # a larger number would be allocated whole
        # The system's own files have a size of 0, and a file may grow meanwhile.
        while size <= largest and (piece := file.read(_PIECE)):
            pieces.append(piece)
            size += len(piece)
        if size > largest:
            raise refuse(f"{_name(path)} has {size:,} bytes; {what} has at most {largest:,}.")
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def read_text(
    path: str | PathLike[str],
    what: str = "a text",
    refuse: Refusal = OSError,
    *,
    largest: int = LARGEST_TEXT,
    errors: str = "strict",
) -> str:
    r"""Return the text of a regular UTF-8 file with `\n` line ends; arguments and errors as for `read_bytes`."""
    try:
        text = read_bytes(path, largest, what, refuse).decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise refuse(f"{_name(path)} is no text: {error}.") from None
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def read_lines(path: str | PathLike[str], what: str, refuse: Refusal = OSError) -> Iterator[bytes]:
    """Yield the lines of a regular file of any length, with their line ends.

    A line of more than `LONGEST_LINE` bytes raises `refuse`.
    """
    with _opened(path, what, refuse) as file:
        while line := file.readline(LONGEST_LINE + 1):
            if len(line) > LONGEST_LINE:
                raise refuse(f"{_name(path)} has a line of more than {LONGEST_LINE:,} bytes, and {what} has none.")
            yield line


def read_start(path: str | PathLike[str], size: int, what: str, refuse: Refusal = OSError) -> bytes:
    """Return at most `size` bytes from the start of a regular file."""
    with _opened(path, what, refuse) as file:
        return file.read(size)


@contextmanager
def _opened(path: str | PathLike[str], what: str, refuse: Refusal) -> Generator[IO[bytes]]:
    try:
        # Not blocking: to open a pipe that has no writer would wait without end.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    except ValueError as error:  # a null byte, or a surrogate that no file system can encode
        raise refuse(f"{_name(path)!r} can't name a file: {error}.") from None
    with open(descriptor, "rb") as file:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise refuse(f"{_name(path)} is no regular file. Hint: {what} is read from one.")
        yield file


def _name(path: str | PathLike[str]) -> str:
    return f"{Path(path).name:.200}"


def parse_json(text: str | bytes, **how: Any) -> Any:
    """Return the values of a JSON text.

    Args:
        text: Text, or UTF-8 bytes with surrogates.
        how: Further arguments of `json.JSONDecoder`.

    Raises:
        ValueError: The text is not JSON, is nested too deeply, has more values than fit in memory, or has a number that
            no arithmetic of doubles can hold: NaN, Infinity, 1e999, an integer of more than 100 digits.
    """
    # An empty list is three bytes here and 64 in memory.
    marks: Any = b",[{:" if isinstance(text, bytes) else ",[{:"
    values = sum(text.count(marks[i : i + 1]) for i in range(4))
    if values > _MAX_JSON_VALUES:
        raise ValueError(f"it has {values:,} values, and at most {_MAX_JSON_VALUES:,} are read")
    try:
        text = text.decode("utf-8", "surrogatepass") if isinstance(text, bytes) else text
        return (_decoder(**how) if how else _DECODER).decode(text)
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None


def _finite(text: str) -> float:
    return number if isfinite(number := float(text)) else _refuse_number(text)


def _short(text: str) -> int:
    return int(text) if len(text) <= _MAX_DIGITS else _refuse_number(text)


def _refuse_number(text: str) -> NoReturn:
    raise ValueError(
        f"{text:.50} is no number that can be read: it isn't finite, or has more than {_MAX_DIGITS} digits"
    )


_decoder = partial(json.JSONDecoder, parse_float=_finite, parse_int=_short, parse_constant=_refuse_number)
_DECODER = _decoder()  # to make one takes as long as a line of a ledger


def parse_toml(text: str) -> dict[str, Any]:
    """Return the table of a TOML text; ValueError if malformed, too deep, or with integers past 64 bits."""
    if sum(line.count(".") ** 2 for line in text.splitlines()) > _MAX_TOML_DOTS:
        raise ValueError("a line has too many dots")
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None
    todo: list[Any] = [table]
    while todo:
        value = todo.pop()
        # Integers of TOML have 64 bits, but Python's parser takes any number of digits.
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ValueError("an integer has more than 64 bits")
        todo += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return table


class YamlError(ValueError):
    """Refusal of a YAML text; `line` counts from 1, and is 0 if unknown."""

    def __init__(self, problem: str, line: int = 0) -> None:
        super().__init__(problem)
        self.line = line


def compose_yaml(content: bytes) -> Any:
    """Return the root node (`yaml.Node`) of a YAML text; None for an empty text.

    Raises:
        YamlError: The text is not YAML, or has too many nodes once each alias is replaced by its anchor.
    """
    yaml: Any = import_module("yaml")  # takes 15 ms, so only where such a file is used
    try:
        root = yaml.compose(content, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark: Any = getattr(error, "problem_mark", None)
        problem: Any = getattr(error, "problem", None) or error
        raise YamlError(f"this is no YAML: {problem!s:.300}", mark.line + 1 if mark is not None else 0) from None
    except (RecursionError, ValueError, OverflowError):  # PyYAML has no error of its own for `"\UFFFFFFFF"`
        raise YamlError("its lists are nested too deeply, or an escape is invalid") from None
    if root is not None:
        _count_nodes(root, {}, 0)
    return root


def _count_nodes(node: Any, seen: dict[int, int], depth: int) -> int:
    """Return the number of YAML nodes in a node, itself included, each alias counted as its anchor.

    Raise YamlError for too many nodes or too deep nesting.
    """
    line = node.start_mark.line + 1
    if depth > _MAX_YAML_DEPTH:
        raise YamlError("its lists are nested too deeply", line)
    if id(node) not in seen:
        seen[id(node)] = _MAX_YAML_NODES  # an alias inside its own anchor never ends: refused
        if node.id == "scalar":
            if len(node.value) > _MAX_YAML_SCALAR:
                raise YamlError(f"a value has more than {_MAX_YAML_SCALAR:,} characters", line)
            parts = []
        else:
            parts = node.value if node.id == "sequence" else [part for pair in node.value for part in pair]
        seen[id(node)] = 1 + sum(_count_nodes(part, seen, depth + 1) for part in parts)
    if seen[id(node)] > _MAX_YAML_NODES:
        raise YamlError(f"its aliases stand for more than {_MAX_YAML_NODES:,} values", line)
    return seen[id(node)]


# Writing --------------------------------------------------------------------------------------------------------------


def write_whole(path: str | PathLike[str], data: bytes | memoryview) -> None:
    """Write a file whole or not at all; see `replacing`."""
    with replacing(path) as file:
        file.write(data)


def write_text(path: str | PathLike[str], text: str) -> Path:
    """Write a text as UTF-8, whole or not at all, and return its path; lone surrogates become `?`."""
    # A path in the text may hold lone surrogates.
    write_whole(path, text.encode("utf-8", "replace"))
    return Path(path)


@contextmanager
def replacing(path: str | PathLike[str]) -> Generator[IO[bytes]]:
    """Open a new file that replaces `path` on success; readers never see a partial file.

    The new file is written in the same folder, synced, and renamed. If that fails, or the process is killed, the old
    file stays. Of several writers, the last one wins. A symbolic link stays a link, and a file keeps its permissions.
    The first write to a folder a day later removes a killed process's partial file.

    Raises:
        OSError: The folder is missing or read-only, `path` is no regular file, or the disk is full; names `path`.
    """
    target = Path(os.path.realpath(path))
    # Within one file system a rename is atomic; the name is no longer than a short one.
    partial = target.with_name(f".{token_hex(8)}.partial")
    try:
        _check_target(target)
        _remove_old_partials(target.parent)
        with _discarded_on_error(partial):
            with partial.open("xb") as file:
                if target.exists():
                    partial.chmod(stat.S_IMODE(target.stat().st_mode))
                yield file
                # The content must be on the disk before the name: after a crash the file would be empty.
                file.flush()
                os.fsync(file.fileno())
            partial.replace(target)
    except OSError as error:  # the error names the partial file, which the caller doesn't know
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
    if os.name == "posix":  # the folder has the new name only when it is written too
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _check_target(target: Path) -> None:
    number = 0
    if target.is_dir():
        number = errno.EISDIR
    elif target.exists():
        # Replacing a device or a pipe by a file would break every program that uses it.
        number = errno.EINVAL if not target.is_file() else 0 if os.access(target, os.W_OK) else errno.EACCES
    if number:
        raise OSError(number, os.strerror(number))


def _remove_old_partials(folder: Path) -> None:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _PARTIAL.fullmatch(entry.name):
                with suppress(OSError):
                    # No write takes a day, so the process that began this file has ended.
                    if time() - entry.stat(follow_symlinks=False).st_mtime > _DAY:
                        os.unlink(entry.path)


@contextmanager
def _discarded_on_error(partial: Path) -> Generator[None]:
    try:
        yield
    except BaseException:
        with suppress(OSError):  # the error in flight matters more
            partial.unlink(missing_ok=True)
        raise


def cache_folder() -> Path:
    """Return `EXPLORER_CACHE_DIR`, or else `explorer` in the system's cache folder; it may not exist."""
    if own := os.environ.get("EXPLORER_CACHE_DIR"):
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path(os.path.expanduser("~"), ".cache")) / "explorer"


_Value = TypeVar("_Value")


def with_files(sources: Iterable[_Value | str | PathLike[str]]) -> list[_Value | Path]:
    """Return the sources with a `Path` for each file and for each file in a folder; `9.jsonl` precedes `10.jsonl`."""
    files: list[_Value | Path] = []
    for source in sources:
        if not isinstance(source, (str, PathLike)):
            files.append(source)
            continue
        path = Path(cast("str", source))
        inside = [each for each in path.iterdir() if each.is_file()] if path.is_dir() else [path]
        # Shorter names first, so that process 2 comes before process 10.
        files += sorted(inside, key=lambda each: (len(each.name), each.name))
    return files


def process_names(sources: Sequence[object]) -> list[str]:
    """Return a name per source: the stem of its `Path` if all are distinct paths, or else `0`, `1`, …."""
    names = [source.stem if isinstance(source, Path) else "" for source in sources]
    return names if all(names) and len({*names}) == len(names) else [str(at) for at in range(len(names))]


def project_settings(path: str | PathLike[str], section: str) -> Any:
    """Return the table `[tool.explorer.SECTION]` of a TOML file; an empty dict if it is missing.

    Raises:
        OptionError: The file can't be read, or is no TOML.
    """
    try:
        table: Any = parse_toml(read_text(path))
    except (OSError, ValueError) as error:
        raise OptionError(f"{path} can't be read: {str(error).rstrip('.'):.300}.") from None
    for name in ("tool", "explorer", section):
        table = cast(dict[str, Any], table).get(name, {}) if isinstance(table, dict) else {}
    return table
