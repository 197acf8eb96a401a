"""Container of saved executables: a zip of a JSON manifest and of binary members, each with its checksum.

    manifest.json   {"format": "explorer-executable", "version": 1, "members": {name: {"size", "blake2b"}}, "about": …}
    <name>          the other members in alphabetical order, without gaps

Equal content gives equal bytes. The file's own statements are checked before anything is unpacked, and whatever
differs from what `write_archive` writes is refused. A checksum says that the bytes are as written, not who wrote them.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn, cast

from explorer.errors import ArchiveError
from explorer.files.disk import parse_json, read_bytes, write_whole

VERSION = 1
LARGEST = 16 * 2**30  # bytes of all members together, unpacked: more is a mistake, or meant to fill the memory
_FORMAT = "explorer-executable"
_MANIFEST = "manifest.json"
_LARGEST_MANIFEST = 64 * 2**20
_LARGEST_FILE = LARGEST + LARGEST // 100 + 2 * _LARGEST_MANIFEST
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*", re.ASCII)
_LONGEST_NAME = 200
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DATE = (1980, 1, 1, 0, 0, 0)  # the earliest in a zip; fixed, so that equal content gives equal bytes
_SAMPLE = 64 * 1024
_RATIO = 100  # largest unpacked bytes for each byte of a file: programs have 10, weights 1
_ALWAYS = 256 * 2**20  # unpacked bytes always allowed: weights may be all zeros
_WORTH_IT = 0.9  # native code and weights hardly shrink, and are then stored
# Bytes of a zip's header before each member, without the name, and of the record at the end of the file.
_LOCAL_HEADER = 30
_LAST_RECORD = 22


@dataclass(frozen=True)
class Archive:
    """Content of an archive.

    Args:
        about: Plain JSON.
        members: Bytes by name, unpacked and checked on access.
    """

    about: dict[str, Any]
    members: Mapping[str, bytes]


def write_archive(path: str | PathLike[str], about: Mapping[str, Any], members: Mapping[str, Any]) -> None:
    """Write an archive with `about` and `members` to a file, whole or not at all.

    Args:
        about: Plain JSON: None, bool, int, finite float, str, and lists and dicts of them.
        members: Bytes-like objects by name. A name has letters, digits and `._-`, in folders separated by `/`.

    Raises:
        ArchiveError: A name is invalid, `about` is no JSON, or the members are too large.
        OSError: The file can't be written there.
    """
    # Sorted, so that equal content gives equal bytes.
    contents = {name: _bytes(members[name]) for name in sorted(members)}
    for name in contents:
        if name == _MANIFEST or not _is_name(name):
            raise ArchiveError(f"{name!r:.100} can't name a member: letters, digits, and ._- inside can.")
    total = sum(map(len, contents.values()))
    if total > LARGEST:
        raise ArchiveError(f"{total:,} bytes are too many for a file: at most {LARGEST:,} can be loaded.")
    listed = {name: {"size": len(content), "blake2b": _digest(content)} for name, content in contents.items()}
    try:
        header = {"format": _FORMAT, "version": VERSION, "members": listed, "about": dict(about)}
        manifest = json.dumps(header, allow_nan=False, separators=(",", ":")).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise ArchiveError(f"this can't be in a file's manifest: {error}.") from None
    if len(manifest) > _LARGEST_MANIFEST:
        raise ArchiveError(f"a manifest of {len(manifest):,} bytes is too large: {_LARGEST_MANIFEST:,} are read.")
    members = {_MANIFEST: manifest, **contents}
    if Path(path).exists() and not (Path(path).is_file() or Path(path).is_dir()):
        raise ArchiveError(f"{path} is no regular file, so it isn't replaced.")
    with _zipped(members) as zipped:
        if total <= _most(len(zipped)):
            write_whole(path, zipped)
            return
    with _zipped(members, stored=True) as zipped:  # beyond `_RATIO`, the reader would refuse it
        write_whole(path, zipped)


def _most(size: int) -> int:
    """Return the limit of unpacked bytes for a file of this size."""
    return min(LARGEST, max(_ALWAYS, _RATIO * size))


def _bytes(content: Any) -> bytes:
    return content if type(content) is bytes else bytes(memoryview(content))


def _zipped(contents: Mapping[str, bytes], *, stored: bool = False) -> memoryview:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in contents.items():
            info = zipfile.ZipInfo(name, _DATE)
            info.create_system = 3  # Unix, on every system
            info.external_attr = 0o100644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED if not stored and _shrinks(content) else zipfile.ZIP_STORED
            file.writestr(info, content)
    return buffer.getbuffer()


def _shrinks(content: bytes) -> bool:
    """Return True if the content is worth deflating, judged by a sample of its middle."""
    # The middle, because a header at the beginning may pack better than the rest.
    start = max(0, (len(content) - _SAMPLE) // 2)
    sample = content[start : start + _SAMPLE]
    return len(zlib.compress(sample)) < _WORTH_IT * len(sample)


def read_archive(path: str | PathLike[str]) -> Archive:
    """Return the archive in a file.

    Raises:
        ArchiveError: The file is no executable, truncated, altered, or written by a newer Explorer. For an altered
            member it is raised on access.
        OSError: The file can't be read: FileNotFoundError, IsADirectoryError.
    """
    # Read whole, because members are unpacked later, when the file may have changed.
    data = read_bytes(path, _LARGEST_FILE, "an executable", ArchiveError)
    with _naming(path):
        return _read(data, path)


@contextmanager
def _naming(path: str | PathLike[str]) -> Generator[None]:
    try:
        yield
    except ArchiveError as error:
        raise ArchiveError(f"{Path(path).name} {error}") from error.__cause__


def _read(data: bytes, path: str | PathLike[str]) -> Archive:
    _check_ends(data)
    try:
        file = zipfile.ZipFile(io.BytesIO(data))
        manifest = _parsed(_unpacked(file, file.getinfo(_MANIFEST), _LARGEST_MANIFEST))
        if type(manifest) is not dict or manifest.get("format") != _FORMAT:
            raise ArchiveError("is a zip, but none that Executable.save writes.")
        manifest = cast(dict[str, Any], manifest)
        _check_version(manifest.get("version"))
        sizes, digests = _listed(manifest, _most(len(data)))
        _check_layout(data, file, sizes)
        about = manifest["about"]
        if set(manifest) != {"format", "version", "members", "about"} or type(about) is not dict:
            _refuse("its manifest has other entries than this version's")
    except ArchiveError:
        raise
    except Exception as error:  # zipfile and json raise many kinds; the bytes are in memory, so it is never the disk
        _refuse(f"{type(error).__name__}: {error}", error)
    return Archive(cast(dict[str, Any], about), _Members(path, file, sizes, digests))


class _Members(Mapping[str, bytes]):
    def __init__(self, path: Any, file: zipfile.ZipFile, sizes: dict[str, int], digests: dict[str, str]) -> None:
        self._path, self._file, self._sizes, self._digests = path, file, sizes, digests

    def __getitem__(self, name: str) -> bytes:
        size = self._sizes[name]
        with _naming(self._path):
            try:
                content = _unpacked(self._file, self._file.getinfo(name), size)
            except ArchiveError:
                raise
            except Exception as error:  # as above
                _refuse(f"{name}: {error}", error)
            if len(content) != size or _digest(content) != self._digests[name]:
                _refuse(f"the checksum of {name} does not match")
        return content

    def __iter__(self) -> Iterator[str]:
        return iter(self._sizes)

    def __len__(self) -> int:
        return len(self._sizes)


def _check_ends(data: bytes) -> None:
    if not data:
        raise ArchiveError("is empty.")
    if data[:4] != b"PK\x03\x04"[: len(data)]:
        raise ArchiveError(f"is no executable: it starts with {data[:8]!r}.\n  Hint: Executable.save writes one.")
    # Python's zipfile would search for the last record backwards, and take bytes after it for a comment.
    if len(data) < _LAST_RECORD or data[-_LAST_RECORD:-18] != b"PK\x05\x06" or data[-2:] != b"\0\0":
        after = len(data) - _LAST_RECORD - max(0, data.rfind(b"PK\x05\x06"))
        is_longer = b"PK\x05\x06" in data and after > 0
        raise ArchiveError(
            f"was altered: {after:,} bytes follow its end."
            if is_longer
            else f"is truncated: {len(data):,} bytes are there, and its end is not."
        )


def _parsed(text: bytes) -> Any:
    """Return the values of a JSON text; ValueError if an object repeats a key, on which readers differ."""
    return parse_json(text.decode("utf-8"), object_pairs_hook=_without_repetition)


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("an object has a key twice")
    return entries


def _check_version(version: Any) -> None:
    if type(version) is not int or version < 1:
        _refuse(f"its format has the version {version!r:.50}")
    if version > VERSION:
        raise ArchiveError(
            f"was written by a newer Explorer: it has format {version}, and this one reads up to {VERSION}.\n"
            "  Hint: upgrade explorer."
        )


def _listed(manifest: Mapping[str, Any], most: int) -> tuple[dict[str, int], dict[str, str]]:
    """Return (size in bytes, checksum) of the manifest's members, as two dicts by name; ArchiveError if invalid."""
    sizes: dict[str, int] = {}
    digests: dict[str, str] = {}
    for name, entry in manifest["members"].items():
        if name == _MANIFEST or not _is_name(name):
            _refuse(f"{name!r:.100} can't name a member")
        match entry:
            case {"size": int(size), "blake2b": str(digest), **rest} if not rest and type(size) is int and size >= 0:
                sizes[name], digests[name] = size, digest
            case _:
                _refuse(f"it lists {name} as {entry!r:.100}")
    total = sum(sizes.values())
    if total > most:
        raise ArchiveError(
            f"unpacks to {total:,} bytes by its manifest; at most {most:,} are read, {_RATIO} for each of its own.\n"
            "  Hint: save it again; weights that shrink so much are then kept as they are."
        )
    return sizes, digests


def _check_layout(data: bytes, file: zipfile.ZipFile, sizes: Mapping[str, int]) -> None:
    """Raise ArchiveError if bytes are outside the file's members, or the members differ from its manifest."""
    infos = sorted(file.infolist(), key=lambda info: info.header_offset)
    names = [info.filename for info in infos]
    if names != [_MANIFEST, *sorted(sizes)]:
        odd = sorted({*names} ^ {_MANIFEST, *sizes}) or sorted({name for name in names if names.count(name) > 1})
        _refuse(f"its contents differ from its manifest{': ' if odd else ''}{', '.join(odd[:3])!s:.200}")
    end = 0
    for info in infos:
        if info.filename != _MANIFEST and info.file_size != sizes[info.filename]:
            _refuse(f"{info.filename} has {info.file_size:,} bytes, its manifest lists {sizes[info.filename]:,}")
        # Python's zipfile would skip such bytes without an error.
        if info.header_offset != end:
            _refuse(f"there are bytes before {info.filename} that belong to nothing")
        header = data[end : end + _LOCAL_HEADER]
        lengths = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        end += _LOCAL_HEADER + lengths + info.compress_size
    if end != file.start_dir:
        _refuse("there are bytes after its last member that belong to nothing")


def _unpacked(file: zipfile.ZipFile, info: zipfile.ZipInfo, most: int) -> bytes:
    """Return the unpacked content of a member of the archive.

    Raise ArchiveError if the member has more than `most` bytes, so that a small file can't fill the memory.
    """
    if info.flag_bits & 0x1:
        raise ArchiveError(f"has an encrypted member, {info.filename!r:.100}; Explorer writes none.")
    if info.compress_type not in _COMPRESSIONS:
        _refuse(f"{info.filename!r:.100} is packed in a way that Explorer doesn't use")
    if info.file_size > most:
        raise ArchiveError(f"has {info.file_size:,} bytes in {info.filename!r:.100}; at most {most:,} are read.")
    with file.open(info) as member:
        # The stated size may be false, so the read has its own limit.
        return member.read(most + 1)


def _is_name(name: Any) -> bool:
    return type(name) is str and len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) is not None


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


def _refuse(what: str, cause: BaseException | None = None) -> NoReturn:
    raise ArchiveError(f"was altered: {what}.\n  Hint: copy it again, or save it again.") from cause
