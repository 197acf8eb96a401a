"""The lines of a text, so many at a time: as strings of their own, those of a large text take more than the text."""

from __future__ import annotations

from array import array
from bisect import bisect_right

import numpy as np

_BLOCK = 1 << 20  # characters, and what is left of the last line


class TextLines:
    """A text by its lines, which end with a newline.

    Not splitlines(): it also breaks at characters that a quoted name may hold, and then no line number fits.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = array("q", [0])  # of the lines that were split so far, and where the next one starts

    def block(self, first: int) -> list[str]:
        """Some lines from `first` on, at least one; none where the text has ended.

        Every line before `first` is in a block that was asked for.
        """
        start = self._starts[first]
        if start > len(self.text):
            return []
        end = self.text.find("\n", start + _BLOCK)
        lines = self.text[start : end if end >= 0 else len(self.text)].split("\n")
        lengths = np.fromiter(map(len, lines), np.int64, len(lines))
        self._starts[first + 1 :] = array("q", (start + np.cumsum(lengths + 1)).tobytes())
        return lines

    def start(self, line: int) -> int:
        """Where a line starts, as an index into the text; of a line that was split, or the next one."""
        return self._starts[line]

    def line_at(self, at: int) -> int:
        """The number of the line that has the character at an index, or that ends there."""
        while self._starts[-1] <= min(at, len(self.text)):
            self.block(len(self._starts) - 1)
        return bisect_right(self._starts, at) - 1
