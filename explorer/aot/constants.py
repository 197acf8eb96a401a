"""The constants of an executable's programs: each once, in memory and in its file, however many programs use it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, cast
from weakref import ref

import jax
import numpy as np

from explorer.aot.arrays import array_from_bytes, array_to_bytes

Json = dict[str, Any]

# Bytes of a constant that is looked for in native code. A program has many of a few bytes, all over its code, and what
# is saved by leaving one of those out is less than what it takes to say where it was.
_SMALLEST = 64 * 1024


class OwnConstants:
    """Copies of the NumPy arrays that programs hold: the user's own can be written to, later. Equal ones share a copy.

    A copy lives as long as a program has it.
    """

    def __init__(self) -> None:
        self._copies: dict[tuple[Any, ...], list[Callable[[], Any]]] = {}

    def of(self, constant: Any) -> Any:
        """The constant, where nobody can write to it, or else the copy of it."""
        if isinstance(constant, jax.Array):
            return constant
        if not isinstance(constant, np.ndarray):
            return copy.deepcopy(constant)
        array = cast("np.ndarray[Any, Any]", constant)
        copies = self._copies.setdefault((type(array), array.shape, str(array.dtype)), [])
        alive = [(kept, reference) for reference in copies if (kept := reference()) is not None]
        copies[:] = [reference for _, reference in alive]
        for kept, _ in alive:
            if _is_equal(kept, array):
                return kept
        own = copy.deepcopy(array)
        copies.append(ref(own))
        return own


def _is_equal(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Bit by bit, without a copy where the two lie in memory as usual."""
    return bool(np.array_equal(_bytes(one), _bytes(other)))


def _bytes(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


class ConstantMembers:
    """Constants as members of a file that is written.

    Args:
        members: Of the file, by name; the constants' are added.
    """

    def __init__(self, members: dict[str, bytes]) -> None:
        self._members = members
        self._encoded: dict[int, tuple[Any, Json]] = {}  # by identity, which holds while the constant is here
        self._names: dict[bytes, str] = {}  # by content

    def to_json(self, constant: Any) -> Json:
        """What the array is, and the member that has its bytes."""
        if id(constant) not in self._encoded:
            description, content = array_to_bytes(constant)
            digest = blake2b(content, digest_size=32).digest()
            name = self._names.setdefault(digest, f"constant-{len(self._names)}.bin")
            self._members.setdefault(name, content)
            self._encoded[id(constant)] = constant, {"member": name, **description}
        return self._encoded[id(constant)][1]

    def split(self, code: bytes) -> tuple[bytes, list[list[Any]]]:
        """Native code without the constants that stand in it.

        Returns:
            What is left, and for each constant, from left to right, where in that it stood and its member.
        """
        places: list[tuple[int, int, str]] = []  # where in the code, how long, the member
        for name in self._names.values():
            content = self._members[name]
            at = code.find(content) if len(content) >= _SMALLEST else -1
            while at >= 0:
                places.append((at, len(content), name))
                at = code.find(content, at + len(content))
        left: list[bytes] = []
        cuts: list[list[Any]] = []
        end = size = 0
        for at, length, name in sorted(places):
            if at < end:  # it overlaps the one before
                continue
            left.append(code[end:at])
            size += at - end
            cuts.append([size, name])
            end = at + length
        return b"".join([*left, code[end:]]), cuts


def join(left: bytes, cuts: Iterable[Sequence[Any]], members: Mapping[str, bytes], size: int) -> bytes:
    """The native code that `ConstantMembers.split` took apart.

    Args:
        left, cuts: What it gave.
        members: Of the file.
        size: Of the code, in bytes: it is known before anything is put together.

    Raises:
        ValueError: They don't fit each other.
    """
    parts: list[bytes] = []
    at = total = 0
    for place, name in cuts:
        if type(place) is not int or not at <= place <= len(left):
            raise ValueError("native code and its constants don't fit")
        content = members[name]
        parts += [left[at:place], content]
        total += place - at + len(content)
        at = place
        if total > size:
            break
    parts.append(left[at:])
    if total + len(left) - at != size:
        raise ValueError("native code and its constants don't fit")
    return b"".join(parts)


def shared_reader(members: Mapping[str, bytes]) -> Callable[[Mapping[str, Any]], Any]:
    """Reads the constants of a file, each once: whoever asks for it again gets the same array."""
    arrays: dict[str, Any] = {}

    def read(encoded: Mapping[str, Any]) -> Any:
        key = repr(sorted(encoded.items()))
        if key not in arrays:
            # Two threads may both have read it: then the first one's is kept.
            arrays.setdefault(key, array_from_bytes(encoded, members[encoded["member"]]))
        return arrays[key]

    return read
