"""What was measured can be kept in a file: measuring it again takes time, and gives other figures.

The methods are declared here and answered by `explorer/files/results.py`, one format for all results.
"""

from __future__ import annotations

from os import PathLike
from typing import Self

from explorer.model.attached import attached


class Saved:
    """A result that is saved to a file and loaded from one.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from explorer.model.results.timing import Samples, Timing
        >>> timing = Timing("f", "(x: f32[8])", Samples((0.2,)), Samples((0.01,) * 9))
        >>> with TemporaryDirectory() as folder:
        ...     timing.save(f"{folder}/f.json")
        ...     Timing.load(f"{folder}/f.json")
        Timing(f(x: f32[8]))
          steady      10 ms     9.7 … 10.3 ms with 95 %, 9 samples
          first call  200 ms
    """

    __slots__ = ()

    @attached
    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one JSON file, whole or not at all, with what was compiled; `load` gives it back."""
        ...

    @classmethod
    @attached
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote; nothing in the file is executed or imported.

        Raises:
            ResultFileError: The file holds no result or one of another class, is truncated or altered, or comes from a
                newer Explorer.
            FileNotFoundError: There is none.
        """
        ...
