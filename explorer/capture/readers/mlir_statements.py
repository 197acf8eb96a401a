"""MLIR text → statements: what MLIR prints on a line of its own, however a person broke its lines or joined them.

A line as MLIR prints it is a statement as it stands. From any other line on the text is cut token by token, until one
ends with its line: several operations on a line, regions on one, operations over many, comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

_STRING = r'"(?:[^"\\\n]|\\.)*+"'
_SKIPPED = r"(?:\s++|//[^\n]*+)*+"
_RESULTS = rf'%[\w$.]++(?::\d++)?(?:{_SKIPPED},{_SKIPPED}%[\w$.]++(?::\d++)?)*+{_SKIPPED}={_SKIPPED}(?=["a-zA-Z_])'
_GENERIC = r'"[\w$.\-]++"\s*+(?=\()'
_DOTTED = r"[a-z_][\w$]*+(?:\.[\w$]++)++(?!\s*+=|[\w$.])"
_UNDOTTED = r"(?:return|call|call_indirect|br|cond_br)\b(?!\s*+=)"
_REGION = r"(?:cond|reducer|do|else|then|default|case)\b(?=\s*+[({])"
# What may be an operation of a dialect that nobody knows: not one of the words inside of operations.
_UNKNOWN = r"(?!(?:to|step|init|inits|ins|outs|in|into|iter_args|else|do)\b)[a-z_][\w$]*+\s++[%@]"
# How the line after a whole statement begins.
_STARTS = re.compile(
    rf"[}}#!]|\{{-#|{_RESULTS}|{_GENERIC}|\^[\w$.]++\s*+[(:]|{_DOTTED}|{_UNDOTTED}|{_REGION}|(?:module|func)\b|//"
    rf"|{_UNKNOWN}"
)
# An operation inside a line, and a region: each begins with a letter that is looked for at once.
_DEFINES = re.compile(rf"{_RESULTS}")
_INSIDE = re.compile(rf"\{{\s*+(?:[%^]|{_GENERIC}|{_UNDOTTED})|\(\{{.")
_IN_REGION = re.compile(rf"[%^}}]|{_GENERIC}|{_DOTTED}|{_UNDOTTED}|(?:module|func)\b|$")
_TOKEN = re.compile(
    rf"(?P<space>\s++|//[^\n]*+)|(?P<results>{_RESULTS})|(?P<generic>{_GENERIC})|(?P<string>{_STRING})"
    rf"|(?P<block>\^[\w$.\-]++)|(?P<word>{_REGION}|{_UNDOTTED}|{_DOTTED})|(?P<open>[({{\[])|(?P<close>[)}}\]])"
    r"|(?P<alias>[#!][\w$.]++\s*+=)|(?P<other>[@#!%]?[\w$.\-]++|->|.)",
    re.S,
)
_INNER = r"[^<>()]++|\([^()]*+\)"
_TYPE = rf"(?:!?[\w.$]++(?:<(?:{_INNER}|<(?:{_INNER}|<(?:{_INNER})*+>)*+>)*+>)?|\((?:[^()]++|\([^()]*+\))*+\))"
# An operation up to its type, and what may still follow on the next line: anything else there is no part of it.
_LOCATED = rf"(?:\s*+loc\((?:[^()\"]++|{_STRING}|\([^()]*+\))*+\))?+"
_TYPED = re.compile(rf"(?::|->)\s*+{_TYPE}(?:\s*+,\s*+{_TYPE})*+{_LOCATED}\s*+$")
_CONTINUES = re.compile(
    r"//|->|,(?!\s*+%)|[{(<=:]|(?:loc|to|into|in|init|inits|ins|outs|iter_args|step|attributes|applies|across|cond|do"
    r"|else|then|reducer|default|case)\b"
)
_LONGEST_TYPE = 2_000  # characters; of a longer one nobody looks whether it is whole
_SKIP = re.compile(_SKIPPED)
_COMMENT = re.compile(r"//[^\n]*+")
_LONGEST_RETURN = len('"stablehlo.')  # before the word, where it is a line's own operation
_PAIRS = ("()", "{}", "[]")
_UNFINISHED = ("=", ",", ":", "->", "(", "[", "<", "{", "applies", "private", "br")


def statements(text: str, lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Each statement with the line that it begins on, from 0; the data of large constants, at the end, is left out."""
    starts: list[int] = []
    stripped = [line.strip() for line in lines]
    at, begins = 0, True
    while at < len(lines):
        line = stripped[at]
        if line.startswith("{-#"):
            return
        if not line or line.startswith(("//", "#loc")):
            at += 1
            continue
        after = at + 1
        while after < len(lines) and (not stripped[after] or stripped[after].startswith("//")):
            after += 1
        following = stripped[after] if after < len(lines) else ""
        next_begins = not following or _STARTS.match(following) is not None
        if begins and next_begins and _is_whole(line):
            yield at, line
            at = after
        else:
            starts = starts or [0, *accumulate(len(other) + 1 for other in lines)]
            cutter = _Cutter(text, starts[at], at)
            yield from cutter.statements()
            at, next_begins = cutter.line, True
        begins = next_begins


def _is_whole(line: str) -> bool:
    """Whether a line is a statement as MLIR prints it."""
    if "//" in line or line.find("return", _LONGEST_RETURN) >= 0:
        return False
    # Looked for only where there is a sign for it: of most lines it would be in vain.
    if line.rfind("=") > line.find("=") and _DEFINES.search(line, 1):
        return False
    if "{" in line and _INSIDE.search(line):
        return False
    inner = line
    if line[0] == "}":
        inner = line[1:].lstrip().removeprefix(")")
    if inner.endswith("{"):
        is_generic = line[0] == '"' or ' = "' in line
        if inner.endswith(("<{", "= {", "attributes {")) or is_generic != inner.endswith("({"):
            return line[0] == "}" and inner.strip() in (", {", "{")
        inner = inner.removesuffix("{").removesuffix("(")
    elif inner.endswith(_UNFINISHED) and line[0] != "^":
        return False
    return all(inner.count(opening) == inner.count(closing) for opening, closing in _PAIRS)


class _Cutter:
    """Cuts the text from a line on, up to a line that begins with a statement."""

    def __init__(self, text: str, at: int, line: int) -> None:
        self.text, self.at = text, at
        self.line = line  # of what is read next
        self.pending, self.first = "", line
        self.stack: list[str] = []  # the brackets that are open, of regions none

    def statements(self) -> Iterator[tuple[int, str]]:
        begin = self.at
        while self.at < len(self.text):
            token = _TOKEN.match(self.text, self.at)
            if token is None:
                break
            kind, word = token.lastgroup or "", token[0]
            if kind == "space":
                self.line += word.count("\n")
                self.pending += " " if self.pending and not self.pending.endswith(" ") else ""
                self.at = token.end()
                # At the start of a line, after a whole statement: the lines themselves go on.
                if "\n" in word and not self.stack and self.at > begin:
                    if self.begins_line():
                        break
                    if self.ends_before_line():
                        yield self.take()
                continue
            if self.begins(kind, word) and self.pending.strip():
                yield self.take()
            if not self.pending:
                self.first = self.line
            self.line += word.count("\n")
            self.at = token.end()
            if word == "{" and self.opens_region():
                self.pending = (
                    self.pending.rstrip() + "{" if self.pending.rstrip().endswith("(") else self.pending + "{"
                )
                self.stack.clear()
                yield self.take()
                continue
            self.append(word if kind != "results" else " ".join(_COMMENT.sub("", word).split()) + " ")
            if kind == "open":
                self.stack.append(word)
            elif kind == "close" and self.stack:
                self.stack.pop()
            elif word == ":" and not self.stack and self.pending.startswith("^"):
                yield self.take()
        if self.pending.strip():
            yield self.take()
        if self.at >= len(self.text):
            self.line = self.text.count("\n") + 1

    def append(self, word: str) -> None:
        # Python lengthens a text in place if a local name alone has it; else a long statement is copied word by word.
        pending, self.pending = self.pending, ""
        pending += word
        self.pending = pending

    def take(self) -> tuple[int, str]:
        statement, self.pending = self.pending.strip(), ""
        return self.first, statement

    def begins_line(self) -> bool:
        """Whether what comes next begins a line with a statement."""
        return (
            not self.pending.rstrip().endswith(_UNFINISHED)
            and _STARTS.match(self.text, self.at) is not None
            and not self.text.startswith("//", self.at)
            and self.text[self.text.rfind("\n", 0, self.at) + 1 : self.at].strip() == ""
        )

    def ends_before_line(self) -> bool:
        """Whether what was read is a whole operation, and what the next line begins with no part of one."""
        at = max(len(self.pending) - _LONGEST_TYPE, 0)
        return _TYPED.search(self.pending, at) is not None and _CONTINUES.match(self.text, self.at) is None

    def begins(self, kind: str, word: str) -> bool:
        """Whether a token begins a statement."""
        if self.stack:
            return False
        pending = self.pending.rstrip()
        if word == "}":
            return True
        if kind == "block":
            return not pending.endswith(_UNFINISHED)
        if kind == "word" and _is_region_word(word):
            return not pending.startswith("}")
        if kind == "alias":
            return not pending.endswith(_UNFINISHED)
        return kind in ("results", "generic", "word") and not pending.endswith(_UNFINISHED) and self.is_apart()

    def is_apart(self) -> bool:
        return not self.pending or self.pending.endswith((" ", ")", "}", ">"))

    def opens_region(self) -> bool:
        """Whether the brace that was just read opens a region, not attributes."""
        pending = self.pending.rstrip()
        if pending.endswith(("<", "=", "attributes")) or (
            self.stack and not (self.stack == ["("] and pending.endswith("("))
        ):
            return False
        if pending.endswith(("(", "},", "cond", "do", "else")):
            return True
        skipped = _SKIP.match(self.text, self.at)
        after = skipped.end() if skipped else self.at
        if self.text.startswith("}", after):
            return pending.startswith(("func", "module"))
        return _IN_REGION.match(self.text, after) is not None


def _is_region_word(word: str) -> bool:
    return word in ("cond", "reducer", "do", "else", "then", "default", "case")
