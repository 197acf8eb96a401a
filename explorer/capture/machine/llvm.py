"""LLVM IR: the functions of a module, and what each computes with."""

from __future__ import annotations

import re
from collections.abc import Iterator

_DEFINE = re.compile(r'^define [^\n]*?@(?:"([^"\n]+)"|([\w$.-]+))\(', re.MULTILINE)
_CALL = re.compile(r'\bcall [^\n]*?@(?:"([^"\n]+)"|([\w$.-]+))\(')
# `%9 = fadd <8 x float> …`: what computes, not what only moves: a copy may be wide where the arithmetic isn't.
_VECTOR = re.compile(
    r"= (?:fast |nnan |contract |reassoc |afn )*"
    r"(?:f(?:add|sub|mul|div|neg|cmp)|(?:tail )?call|add|sub|mul|and|or|xor|icmp|select)\b"
    r"[^\n<]*<(\d+) x (\w+)>"
)
_BITS = {"half": 16, "bfloat": 16, "float": 32, "double": 64}


def functions(text: str) -> Iterator[tuple[str, str]]:
    """Name and text of each function that a module defines."""
    for match in _DEFINE.finditer(text):
        end = text.find("\n}", match.start())
        yield match[1] or match[2], text[match.start() : len(text) if end < 0 else end + 2]


def vector_bits(text: str) -> int:
    """The width of the widest vectors that a function computes with; 0 for none."""
    widths = [int(count) * _width(kind) for count, kind in _VECTOR.findall(text)]
    return max(widths, default=0)


def _width(kind: str) -> int:
    return _BITS.get(kind, int(kind[1:]) if kind[:1] == "i" and kind[1:].isdigit() else 0)


def calls(text: str) -> tuple[str, ...]:
    """Which functions are called that are no intrinsics of LLVM's."""
    names = {quoted or plain for quoted, plain in _CALL.findall(text)}
    return tuple(sorted(name for name in names if not name.startswith("llvm.")))
