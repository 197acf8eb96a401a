"""The golden file: a few hundred lines of TOML for reading in a pull request.

Our own writer gives one-line tables, a comment at the top and thousands separators, which no TOML library writes
together. Python's `tomllib` reads the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from os import PathLike
from typing import Any, cast

from explorer.errors import GoldenFileError
from explorer.files import container as validate
from explorer.files.disk import parse_toml, read_text, write_whole
from explorer.model.golden import MEASURES, TOLERANCE, Golden, LineRecord, ProgramRecord
from explorer.model.text import brief, did_you_mean

_FORMAT = 1
_HEAD = """\
# Facts about a compiled function, written by `python -m explorer record`. `python -m explorer check` compares them:
# growth beyond a tolerance fails. --update rewrites this file; commit it, and a reviewer sees the change.
"""
_PLAIN = ("function", "place", "arguments", "jax")


def save(golden: Golden, path: str | PathLike[str]) -> None:
    """Write a record to a golden file, whole or not at all."""
    write_whole(path, to_toml(golden).encode())


def load(path: str | PathLike[str]) -> Golden:
    """Return the record in a golden file; GoldenFileError, with the path, if it holds none."""
    try:
        return from_toml(read_text(path, "a golden file", GoldenFileError))
    except GoldenFileError as error:
        raise GoldenFileError(f"{path}: {error}") from None


def to_toml(golden: Golden) -> str:
    """Return a record as the TOML text of a golden file, the same for equal records."""
    return "\n".join([_HEAD.rstrip(), *_lines(golden), ""])


def _lines(golden: Golden) -> Iterator[str]:
    yield f"format = {_FORMAT}"
    yield from (f"{name} = {_value(getattr(golden, name))}" for name in _PLAIN if getattr(golden, name))
    yield "\n[tolerance]"
    yield from (f"{name} = {golden.tolerance[name]!r}" for name in MEASURES)
    if golden.compiles:
        yield "\n[compiles]"
        yield from (f"{_value(name)} = {count}" for name, count in golden.compiles.items())
    for program in golden.programs:
        yield "\n[[program]]"
        yield from _rows(program, ("lines",))
        for line in program.lines:
            yield "\n[[program.line]]"
            yield from _rows(line, ())


def _rows(record: ProgramRecord | LineRecord, without: Sequence[str]) -> Iterator[str]:
    """Yield a line `name = value` for each field of a record except `without`; most empty fields are left out."""
    for field in fields(record):
        value = getattr(record, field.name)
        if field.name not in without and (value or field.name in ("target", "kernels", "flops", "bytes", "line")):
            yield f"{field.name} = {_value(value)}"


def _value(value: object) -> str:
    if isinstance(value, str):
        if '"' in value and value.isprintable() and "'" not in value:
            return f"'{value}'"  # a literal string: code with quotes in it stays readable
        # JSON strings are TOML strings, except for DEL and lone surrogates.
        return json.dumps(value.encode("utf-8", "replace").decode(), ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int):
        return f"{value:_}"
    if isinstance(value, Mapping):
        items = ", ".join(f"{_value(key)} = {_value(item)}" for key, item in cast(Any, value).items())
        return f"{{ {items} }}" if items else "{}"
    return "[" + ", ".join(_value(item) for item in cast(Sequence[object], value)) + "]"


def from_toml(text: str) -> Golden:
    """Return the record of a golden file's text, which may have been edited by hand.

    Raises:
        GoldenFileError: The text is no golden file, or has a newer format.
    """
    try:
        table = parse_toml(text)
    except ValueError as error:
        raise GoldenFileError(f"it is no TOML: {error!s:.300}") from None
    if table.pop("format", None) != _FORMAT:
        raise GoldenFileError(
            f"it has no `format = {_FORMAT}`.\n  Hint: `python -m explorer record module:function -o FILE` writes one."
        )
    try:
        return _golden(table)
    except (TypeError, ValueError, AttributeError) as error:
        raise GoldenFileError(f"{error!s:.300}") from None


def _golden(table: dict[str, Any]) -> Golden:
    allowed = (*_PLAIN, "tolerance", "compiles", "program")
    _refuse_others(table, allowed, "it")
    tolerance = validate.floats(table.get("tolerance", {}))
    _refuse_others(tolerance, MEASURES, "[tolerance]")
    if any(not 0 <= share < float("inf") for share in tolerance.values()):
        raise ValueError("a tolerance is a fraction of at least 0, such as 0.02 for 2 %")
    return Golden(
        function=validate.text(table.get("function", "")),
        place=validate.text(table.get("place", "")),
        arguments=tuple(validate.texts(table.get("arguments", []))),
        jax=validate.text(table.get("jax", "")),
        compiles=validate.integers(table.get("compiles", {})),
        tolerance={**TOLERANCE, **tolerance},
        programs=tuple(_program(program) for program in table.get("program", [])),
    )


def _program(table: dict[str, Any]) -> ProgramRecord:
    lines = tuple(_record(LineRecord, row) for row in table.pop("line", []))
    return cast(ProgramRecord, _record(ProgramRecord, {**table, "lines": lines}))


def _record(kind: type[ProgramRecord] | type[LineRecord], table: dict[str, Any]) -> ProgramRecord | LineRecord:
    types = {field.name: str(field.type) for field in fields(kind)}
    _refuse_others(table, [*types], "[[program.line]]" if kind is LineRecord else "[[program]]")
    values: dict[str, Any] = {
        name: validate.integers(value) if types[name].startswith("Mapping") else value for name, value in table.items()
    }
    defaults = {"file": "", "line": 0, "code": ""} if kind is LineRecord else {"peak_memory": 0}
    return validate.dataclass_from(kind, {**defaults, **values})


def _refuse_others(table: Mapping[str, object], allowed: Sequence[str], where: str) -> None:
    for name in table:
        if name not in allowed:
            hint = did_you_mean(name, allowed)
            raise ValueError(f"{where} has {brief(name)}; allowed are {', '.join(allowed)}.{hint}")
