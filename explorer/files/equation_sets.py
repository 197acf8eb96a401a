"""The links of a capture's stages in its file: of each stage but the first, the columns of its equation sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from explorer.files.container import BlobReader, Blobs, read_column
from explorer.files.validate import text, texts
from explorer.model.links import EXACT, EquationSets

_COLUMNS = ("code", "start", "node", "grade")


def pack_sets(sets: EquationSets, blobs: Blobs) -> dict[str, Any]:
    """Where each column lies."""
    return {name: blobs.column(getattr(sets, name)) for name in _COLUMNS}


def read_sets(header: dict[str, Any], blobs: BlobReader) -> EquationSets:
    """What `pack_sets` was given; whether it leads out of its graphs is the caller's to ask."""
    code, start, node, grade = (read_column(header[name], blobs) for name in _COLUMNS)
    return EquationSets(code, start, node, grade.astype(np.int8))


def read_exact_sets(stages: Sequence[dict[str, Any]], blobs: BlobReader) -> dict[str, EquationSets]:
    """The sets of each stage that has exact ones; where all were inferred, they are inferred again.

    Raises:
        ValueError: A link leads out of a stage.
    """
    exact: dict[str, EquationSets] = {}
    for stage in stages:
        if "sets" not in stage:  # the first stage, and files of formats 1 and 2
            continue
        sets = read_sets(stage["sets"], blobs)
        if not sets.fits(len(texts(stage["names"])), len(texts(stages[0]["names"]))):
            raise ValueError("a link leads out of the capture")
        if (sets.grade == EXACT).any():
            exact[text(stage["name"])] = sets
    return exact
