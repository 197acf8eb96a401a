"""For each line of what the notebooks show, every surface gives the same nodes."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from execution import NOTEBOOKS, captures

from tests.support.line_surfaces import disagreements, every_line, kernels_apart_from_their_inside, misplaced


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_every_surface_gives_the_same_nodes_for_every_line(path: Path):
    for capture in captures(nbformat.read(path, as_version=4)):
        assert every_line(capture)
        assert disagreements(capture) == []
        assert misplaced(capture) == []
        if any(stage.name == "hlo" for stage in capture.stages):
            assert kernels_apart_from_their_inside(capture) == []


def test_notebooks_show_captures():
    shown = [capture for path in NOTEBOOKS for capture in captures(nbformat.read(path, as_version=4))]
    assert len(shown) >= 3
