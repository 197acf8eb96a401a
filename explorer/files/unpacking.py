"""Unpacking of gzip and zlib within bounds, whatever size a file claims.

A checksum tells that bytes are as written, not who wrote them: 1.9 MB of gzip can stand for 1.9 GB, and what is made of
these takes a multiple. So there is a most that a file unpacks to, and a most for each of its packed bytes; and it is
unpacked piece by piece, so that what goes past them is never in memory.
"""

from __future__ import annotations

import zlib

MEBIBYTE = 2**20
LARGEST = 768 * MEBIBYTE  # bytes unpacked: a step of 110,000 nodes in three stages takes 25 MB
_RATIO = 100  # unpacked bytes for each packed one: such a step has 14
_ALWAYS = 16 * MEBIBYTE  # may unpack from however little: a small program, repeated, packs better than a large one
_PIECE = MEBIBYTE
GZIP, ZLIB = 31, 15  # what zlib calls the wrappings


class UnpackingError(ValueError):
    """Packed bytes stand for more than they may, or for something else than they say; the caller names the file."""


class Unpacker:
    """Unpacks the pieces of one file, which share what it may unpack to.

    Args:
        size: Of the file, in bytes.
        largest: What all of it may unpack to, whatever its size.
    """

    def __init__(self, size: int, largest: int = LARGEST) -> None:
        self.size = size
        self.most = self.left = min(largest, max(_ALWAYS, _RATIO * size))

    def unpack(self, packed: bytes, wrapping: int, claimed: int | None = None) -> bytes:
        """Return the bytes that `packed` holds.

        Args:
            wrapping: `GZIP` or `ZLIB`.
            claimed: The bytes that it is said to be; None where nothing is said.

        Raises:
            UnpackingError: It is damaged, of another size than is said, or too large.
        """
        if claimed is not None:
            self._check(claimed)
        most = self.left if claimed is None else claimed
        stream = zlib.decompressobj(wbits=wrapping)
        unpacked = bytearray()
        try:
            while not stream.eof and len(unpacked) <= most:
                piece = stream.decompress(packed, min(_PIECE, most + 1 - len(unpacked)))
                packed = stream.unconsumed_tail
                unpacked += piece
                if not piece and not packed:
                    break
        except zlib.error as error:
            raise UnpackingError(f"it is damaged: {error}") from error
        if claimed is None:
            self._check(len(unpacked))
        elif len(unpacked) != claimed:
            raise UnpackingError("it unpacks to another size than it says")
        if not stream.eof:
            raise UnpackingError("it is truncated")
        self.left -= len(unpacked)
        return bytes(unpacked)

    def _check(self, size: int) -> None:
        if not 0 <= size <= self.left:
            says = f"{size:,}" if size < 1 << 63 else "more than 2**63"
            raise UnpackingError(
                f"its {self.size:,} bytes unpack to {says} or more; at most {self.most:,} are read, "
                f"{_RATIO} for each and no more than {LARGEST:,}"
            )
