"""Values of attributes: how much of one readers keep, and what a quoted one says."""

import re

from explorer.model.attributes import LONGEST_VALUE

# As C writes them, several bytes of one character together.
_ESCAPED = re.compile(r"((?:\\[0-7]{1,3}|\\x[0-9a-fA-F]{1,2})++)|\\(.)", re.S)
_BYTE = re.compile(r"\\(?:x([0-9a-fA-F]+)|([0-7]+))")
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def shorten_value(text: str) -> str:
    """A value, cut at `LONGEST_VALUE` characters with its length said: `{0, 1, 2, … (12,345 characters)`."""
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}… ({len(text):,} characters)"


def unescape(text: str) -> str:
    r"""What a quoted string says, given what XLA writes between the quotes: `state[\'step\']`, `\303\251`."""
    return _ESCAPED.sub(_character, text) if "\\" in text else text


def _character(escaped: re.Match[str]) -> str:
    if escaped[1] is None:
        return _LETTERS.get(escaped[2], escaped[2])
    values = (
        int(hexadecimal, 16) if hexadecimal else int(octal, 8) for hexadecimal, octal in _BYTE.findall(escaped[1])
    )
    return bytes(value & 255 for value in values).decode("utf-8", "replace")
