"""The serialised executable of a GPU, as XLA writes it: Riegeli records, packed with Snappy.

Riegeli is specified by doc/riegeli_records_file_format.md of https://github.com/google/riegeli, Snappy by
format_description.txt of https://github.com/google/snappy. No package in wheels reads the first; of both only what XLA
writes is read here.
"""

from __future__ import annotations

import struct

_SIGNATURE = bytes.fromhex("83af70d10d884a3f")  # of a file's first block
_BLOCK, _BLOCK_HEAD, _CHUNK_HEAD = 1 << 16, 24, 40
_SIMPLE, _SNAPPY = ord("r"), ord("s")
_MOST = 1 << 30  # bytes


def contents(data: bytes) -> bytes:
    """All records of a file, one after the other; empty where there is no such file in it, or it can't be read."""
    start = data.find(_SIGNATURE)
    if start < 0:
        return b""
    plain = b"".join(data[at + _BLOCK_HEAD : at + _BLOCK] for at in range(start, len(data), _BLOCK))
    parts: list[bytes] = []
    at = 0
    try:
        while at + _CHUNK_HEAD <= len(plain):
            size = struct.unpack_from("<Q", plain, at + 8)[0]
            kind, at = plain[at + 24], at + _CHUNK_HEAD
            if size > len(plain) - at:  # what stands behind the file
                break
            if kind == _SIMPLE:
                values = _simple(plain[at : at + size])
                parts.append(contents(values) or values)  # from jaxlib 0.11 on there is a file in a record
            at += size
    except (IndexError, ValueError, struct.error):
        return b""
    return b"".join(parts)


def _simple(chunk: bytes) -> bytes:
    sizes, at = _varint(chunk, 1)
    values = chunk[at + sizes :]
    if chunk[0] == 0:
        return values
    if chunk[0] != _SNAPPY:
        raise ValueError("packed in another way")
    _, at = _varint(values, 0)
    return _snappy(values[at:])


def _snappy(data: bytes) -> bytes:
    length, at = _varint(data, 0)
    if length > _MOST:
        raise ValueError("too large")
    out = bytearray()
    while at < len(data):
        tag, at = data[at], at + 1
        if tag & 3 == 0:
            size = tag >> 2
            if size >= 60:
                size, at = int.from_bytes(data[at : at + size - 59], "little"), at + size - 59
            out += data[at : at + size + 1]
            at += size + 1
            continue
        if tag & 3 == 1:
            size, offset, at = (tag >> 2 & 7) + 4, tag >> 5 << 8 | data[at], at + 1
        else:
            width = 2 if tag & 3 == 2 else 4
            size, offset, at = (tag >> 2) + 1, int.from_bytes(data[at : at + width], "little"), at + width
        if not 0 < offset <= len(out) or len(out) > length:
            raise ValueError("leads out of it")
        # What is copied may be what the copy itself makes: a run of equal bytes is written so.
        piece = bytes(out[len(out) - offset :][:size])
        out += (piece * (size // len(piece) + 1))[:size]
    if len(out) != length:
        raise ValueError("truncated")
    return bytes(out)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte, at = data[at], at + 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
