"""The code in a page of Markdown: its fenced blocks, and the right sides of its tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block: the line of its first line of code, from 1, its language and its code."""

    line: int
    language: str
    code: str


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    for match in _FENCE.finditer(text):
        yield Block(text[: match.start()].count("\n") + 2, match[1], match[2])


def sections(text: str) -> Iterator[tuple[str, str]]:
    """By its heading, what is below each heading of the second level; what is above the first has an empty one."""
    parts = re.split(r"(?m)^## (.*)\n", text)
    yield "", parts[0]
    yield from zip(parts[1::2], parts[2::2], strict=True)


def second_cells(text: str) -> Iterator[tuple[int, str]]:
    """The code in the second cell of each row of a page's tables, with the row's line."""
    for number, line in enumerate(text.splitlines(), 1):
        cells = re.split(r"(?<!\\)\|", line)
        if len(cells) > 3 and (code := re.fullmatch(r"`([^`]+)`", cells[2].strip())):
            yield number, code[1]
