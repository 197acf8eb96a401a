"""What a stage's text says line by line, without where that comes from, and where names stand in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from explorer.model.stage import Stage, WrittenLine

_METADATA = re.compile(r', metadata=\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\}')
_LOCATION = re.compile(r' loc\((?:#\w+|"(?:[^"\\]|\\.)*"|unknown)\)')
_NAME = re.compile(r"((?<=[%@])[\w.\-$]+|(?<=[(, ])[\w.\-]+(?=: ))")  # as MLIR and HLO write it, or a parameter's
_VARIABLE = re.compile(r"((?<![\w=%.\[])[a-z]+(?=[:\s)]|$)(?!\[))")  # of a jaxpr
# Of HLO in its short form, which has no % before names: a word that is no opcode (`add(`) and no key (`calls=`).
_WORD = re.compile(r"((?<![\w.\-])[A-Za-z_][\w.\-]*+(?![(=]))")
_DEFINED = re.compile(r"\s*(?:ROOT |ENTRY )?([A-Za-z_][\w.\-]*+)(?: = | \(| \{)")
_HEAD = 50  # lines within which a text shows what it is


def written_lines(stage: Stage) -> tuple[WrittenLine, ...]:
    """The lines of a stage that say something: not the tables and aliases of locations."""
    lines = [*_without_locations(stage.text.splitlines())]
    texts = [text for _, text in lines]
    split = _splitter(texts)
    of_module = _module_lines(texts)
    return tuple(
        WrittenLine(number, tuple(split(text)), _is_end(text), at in of_module)
        for at, (number, text) in enumerate(lines)
    )


def _splitter(texts: Sequence[str]) -> Callable[[str], list[str]]:
    """What takes a line apart: in turns what is no name, and the names in between."""
    if any("%" in text for text in texts[:_HEAD]):
        return _NAME.split
    if not any(text.startswith("HloModule") for text in texts[:_HEAD]):
        return _VARIABLE.split
    names = {match[1] for text in texts if (match := _DEFINED.match(text))} - {"HloModule"}

    def split(text: str) -> list[str]:
        parts = [""]
        for at, piece in enumerate(_WORD.split(text)):
            if at % 2 and piece in names:
                parts += (piece, "")
            else:
                parts[-1] += piece
        return parts

    return split


def _without_locations(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    is_table = False
    for number, line in enumerate(lines):
        is_table = line == "FileNames" or (is_table and not line.endswith("{"))
        if not is_table and not line.startswith("#loc"):
            yield number, _LOCATION.sub("", _METADATA.sub("", line))


def _module_lines(texts: Sequence[str]) -> set[int]:
    """The lines that begin and end the module itself."""
    headers = {at for at, text in enumerate(texts) if text.startswith(("HloModule", "module"))}
    is_mlir = bool(headers) and min(headers) < _HEAD and not texts[0].startswith("HloModule")
    # MLIR's module has an end of its own.
    return headers | {len(texts) - 1} if is_mlir and texts[-1] == "}" else headers


def _is_end(text: str) -> bool:
    return not text.strip() or text.lstrip()[0] == "}" or text.startswith("in ")
