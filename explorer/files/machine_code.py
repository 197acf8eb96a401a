"""The code of a capture's kernels as data of its file: facts in the header, texts among the blobs.

`languages` and each row's `facts` are for the viewer: what the languages are called, and the facts in words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from explorer.analysis.facts import kernel_facts
from explorer.files.container import BlobReader, Blobs
from explorer.files.validate import integer, number, text, texts
from explorer.model.machine_code import LANGUAGES, KernelCode, MachineCode


def pack_machine_code(code: MachineCode, blobs: Blobs) -> dict[str, Any]:
    """All that is in it, as plain data."""
    return {
        "platform": code.platform,
        "notes": list(code.notes),
        "languages": dict(LANGUAGES),
        "rows": [_pack_row(row, blobs) | {"facts": kernel_facts(row, code.platform)} for row in code],
    }


def unpack_machine_code(header: dict[str, Any], blobs: BlobReader) -> MachineCode:
    """What `pack_machine_code` was given.

    Raises:
        ValueError, KeyError, TypeError: It doesn't fit the format; the caller says so.
    """
    rows = tuple(_unpack_row(row, blobs) for row in header["rows"])
    return MachineCode(text(header["platform"]), rows, tuple(texts(header["notes"])))


def _pack_row(row: KernelCode, blobs: Blobs) -> dict[str, Any]:
    facts: dict[str, Any] = {field.name: getattr(row, field.name) for field in fields(row) if field.name != "texts"}
    # What isn't known isn't written: of a GPU's kernels nothing that only a CPU's have.
    plain = {name: fact for name, fact in facts.items() if fact is not None}
    return plain | {"texts": {language: blobs.add(content.encode()) for language, content in row.texts.items()}}


def _unpack_row(row: dict[str, Any], blobs: BlobReader) -> KernelCode:
    contents = {language: blobs.text(place) for language, place in row["texts"].items() if language in LANGUAGES}
    if not contents:
        raise ValueError("a kernel has no code")
    # A later Explorer may say more of a kernel.
    facts = {name: _CHECKS[name](fact) for name, fact in row.items() if name in _CHECKS}
    return KernelCode(texts=contents, **facts)


def _integers(values: Any) -> tuple[int, ...]:
    return tuple(map(integer, values))


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(texts(values))


_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "function": text,
    "kernels": _texts,
    "grid": _integers,
    "block": _integers,
    "occupancy": number,
    "matrix_instructions": _texts,
    "calls": _texts,
    **dict.fromkeys(("registers", "stack", "shared", "vector_bits", "spills", "bundles"), integer),
}
