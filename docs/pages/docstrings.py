"""A docstring in sections, as Google writes them, and its text as Markdown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

_HEADING = re.compile(r"([A-Z][a-z]+(?: [a-z]+)*):$")
_ENTRY = re.compile(r"((?:\*{0,2}[\w.]+)(?:, \*{0,2}[\w.]+)*): (.*)")
_PIECES = re.compile(r"(`[^`]*`)")
_PROMPT = ">>> "
_LISTED = ("Args", "Raises", "Attributes")


@dataclass(frozen=True)
class Docstring:
    """A docstring.

    Args:
        summary: Its first sentence, or sentences: the first paragraph.
        text: The paragraphs after it, as they stand.
        entries: By section (`Args`, `Raises`): what stands for each name, in one line.
        sections: By its heading, the text of any other section, without its indentation.
        examples: Each piece of code with prompts, and what it prints.
    """

    summary: str
    text: str
    entries: dict[str, dict[str, str]] = field(default_factory=dict)
    sections: dict[str, str] = field(default_factory=dict)
    examples: tuple[str, ...] = ()

    @property
    def has_example(self) -> bool:
        return bool(self.examples)


def parse(docstring: str | None) -> Docstring:
    """The parts of a docstring."""
    lines = inspect.cleandoc(docstring or "").splitlines()
    free, blocks = _split(lines)
    summary, _, text = "\n".join(free).strip().partition("\n\n")
    entries = {name: _entries(block) for name, block in blocks.items() if name in _LISTED}
    examples = [_code(block) for name, block in blocks.items() if any(line.startswith(_PROMPT) for line in block)]
    sections = {
        name: "\n".join(block)
        for name, block in blocks.items()
        if name not in _LISTED and not any(line.startswith(_PROMPT) for line in block)
    }
    return Docstring(" ".join(summary.split()), text.strip(), entries, sections, tuple(examples))


def _split(lines: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    """The lines of no section, and those of each section without their indentation."""
    free: list[str] = []
    blocks: dict[str, list[str]] = {}
    block = free
    for i, line in enumerate(lines):
        heading = _HEADING.match(line)
        if heading and i + 1 < len(lines) and lines[i + 1].startswith("    "):
            block = blocks.setdefault(heading[1], [])
        elif line and not line.startswith(" ") and block is not free:
            block = free
            free += ["", line]
        else:
            block.append(line if block is free else line[4:])
    return free, blocks


def _entries(block: list[str]) -> dict[str, str]:
    entries: dict[str, str] = {}
    name = ""
    for line in block:
        entry = _ENTRY.match(line)
        if entry:
            name = entry[1]
            entries[name] = entry[2]
        elif name:
            entries[name] = f"{entries[name]} {line.strip()}".rstrip()
    return entries


def _code(block: list[str]) -> str:
    """The lines of an example as somebody sees them who types it: without what is for doctest alone."""
    plain = (re.sub(r"\s+# doctest: \S+( \S+)*$", "", line) for line in block)
    return "\n".join(line.replace("<doctest ...>", "<stdin>") for line in plain).strip()


def markdown(text: str, link: Callable[[str], str] = lambda name: "") -> str:
    """A docstring's text as Markdown: what stands in backticks is code, and a link where it names a page.

    Args:
        text: It has no other markup: what Markdown would read as one is escaped.
        link: The address of a name's page; empty where it has none.
    """
    return "".join(_piece(piece, link) for piece in _PIECES.split(text))


def _piece(piece: str, link: Callable[[str], str]) -> str:
    if len(piece) > 1 and piece.startswith("`"):
        address = link(piece.strip("`"))
        return f"[{piece}]({address})" if address else piece
    return re.sub(r"([\\*<\[\]|])", r"\\\1", piece)


def names_in(text: str) -> Iterator[str]:
    """The names that a text has in backticks, without their parentheses."""
    for code in re.findall(r"`([^`]+)`", text):
        yield re.sub(r"^(explorer|ex)\.((types|errors|compat\.tripy)\.)?", "", code).partition("(")[0]
