"""The words of HLO text, as XLA's own lexer tells them apart: for text that was written by hand.

Positions are indices into the module's text. Everything takes time in proportion to the text, whatever the text is.
"""

from __future__ import annotations

import re

_STRING = r'"(?:[^"\\]|\\.)*+"|\'(?:[^\'\\]|\\.)*+\''
_COMMENT = r"//[^\n\r]*+|/\*(?:[^*]|\*(?!/))*+\*/"
SKIP = rf"(?:\s++|{_COMMENT})*+"
_SKIP = re.compile(SKIP)
_NAME = re.compile(r"%?([\w.\-]++):?")
# A line that begins as an instruction does: no bracket that a person forgot to close reaches beyond it.
_INSTRUCTION = r"[ \t]*+(?:ROOT\s|%?[\w.\-]++\s*+=\s*+(?:\(|[a-z]\w*+\[|[a-z][\w\-]*+\())"
_BRACKET = re.compile(rf"{_STRING}|{_COMMENT}|[(){{}}\[\]]|\"|/\*|\n(?={_INSTRUCTION})", re.S)
_ELEMENT = re.compile(r"[a-z]\w*+(?=\s*+[\[/])")
_BUFFER = re.compile(r"b\s*+(?=\()")
_NOISE = re.compile(rf"({_STRING})|({_COMMENT})|(?<==)\s++|\s++", re.S)
# What an attribute's value may go on with after white space, as no instruction begins: `f32[2] {1, 2}`,
# `[2,4] <= [8] T(0)`.
_OTHER_HALF = re.compile(r"<=|[\[({\-\d]|T\s*+\(|(?:true|false|nan|inf)(?![\w.\-]|\s*+=)")
_NEXT = re.compile(r",(?=[a-z(])")  # of a tuple's types; a dimension is no word
_WORD = re.compile(r"[^\s,\"'(){}\[\]/=]++")
_IN_LAYOUT = tuple("0123456789:")
_OPENS, _CLOSES = "([{", ")]}"
_LEAST = 2_000  # characters that a bracket may reach when too much of the text was read in vain


class NotUnderstoodError(Exception):
    """The text at position `at` is none of what may stand there."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


class Scanner:
    """Finds where the words and brackets of a text end."""

    def __init__(self, text: str) -> None:
        self.text = text
        # Each bracket that is never closed costs a look at all that follows: only so many looks.
        self._patience = 8 * len(text)

    def skip(self, at: int) -> int:
        """Where white space and comments end that begin at `at`."""
        skipped = _SKIP.match(self.text, at)
        return skipped.end() if skipped else at

    def name(self, at: int) -> tuple[str, int]:
        """The name at `at`, without its `%`, and where it ends."""
        name = _NAME.match(self.text, at)
        if name is None:
            raise NotUnderstoodError(at)
        return name[1], name.end()

    def expect(self, word: str, at: int) -> int:
        """Where `word` ends, which must come next."""
        at = self.skip(at)
        if not self.text.startswith(word, at):
            raise NotUnderstoodError(at)
        return at + len(word)

    def closing(self, at: int) -> int:
        """The index of the bracket that closes the one at `at`; strings and comments are skipped."""
        text, level = self.text, 0
        limit = len(text) if self._patience > 0 else at + _LEAST
        for piece in _BRACKET.finditer(text, at, limit):
            start = piece.start()
            first = text[start]
            if first in _OPENS:
                level += 1
            elif first in _CLOSES:
                level -= 1
                if not level:
                    return start
            elif first == "\n" or piece[0] in ('"', "/*"):  # what opens here is closed nowhere
                limit = start
                break
        self._patience -= limit - at
        raise NotUnderstoodError(at)

    def type_end(self, at: int) -> int:
        """Where the type at `at` ends; `at` itself where there is none, as XLA infers it then."""
        text = self.text
        if text.startswith("(", at):
            return self.closing(at) + 1
        if buffer := _BUFFER.match(text, at):
            return self.closing(buffer.end()) + 1
        element = _ELEMENT.match(text, at)
        bracket = self.skip(element.end()) if element else at
        if not text.startswith("[", bracket):
            return at
        end = self.closing(bracket) + 1
        layout = self.skip(end)
        # As XLA does: a brace before anything else opens a computation.
        is_layout = text.startswith("{", layout) and text.startswith(_IN_LAYOUT, self.skip(layout + 1))
        return self.closing(layout) + 1 if is_layout else end

    def value_end(self, at: int) -> int:
        """Where an attribute's value ends: before a comma, or white space that doesn't lead on to its other half."""
        text, start = self.text, at
        while at < len(text):
            first = text[at]
            if first in _OPENS:
                at = self.closing(at) + 1
            elif first in "\"'":
                string = _BRACKET.match(text, at)
                if string is None or string.end() - at < 2:
                    raise NotUnderstoodError(at)
                at = string.end()
            elif text.startswith("<=", at):
                at = self.skip(at + 2)
            elif word := _WORD.match(text, at):
                at = word.end()
            else:
                after = self.skip(at)
                if after == at or at == start or not _OTHER_HALF.match(text, after):
                    break
                at = after
        if at == start:
            raise NotUnderstoodError(at)
        return at


def without_noise(text: str) -> str:
    """A text as XLA would print it: on one line, without comments, `'` as `"`."""
    return _NOISE.sub(_plain, text).strip() if _is_noisy(text) else text


def plain_type(text: str) -> str:
    """A type as XLA would print it: `(f32[2,3]{1,0}, s32[])`."""
    return _NEXT.sub(", ", without_noise(text).replace(" ", "")) if _is_noisy(text) or " " in text else text


def _is_noisy(text: str) -> bool:
    return "\n" in text or "/" in text or "'" in text or "= " in text or "\t" in text or "  " in text


def _plain(noise: re.Match[str]) -> str:
    string: str | None = noise[1]
    if string is not None:
        return f'"{string[1:-1]}"' if string[0] == "'" and '"' not in string else string
    return "" if noise[2] is not None or noise.string[noise.start() - 1] == "=" else " "
