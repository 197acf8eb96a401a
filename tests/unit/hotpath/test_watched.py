"""Cells whose loops real hot paths compile do the same as when nobody watches, and are compiled where that is safe."""

import subprocess
import sys

import pytest

from explorer.hotpath.auto import AutoCompile, checked
from tests.support.quick import quick
from tests.unit.hotpath.cells import CELLS, PRELUDE
from tests.unit.hotpath.test_cells import ran


def hot_paths():
    """Ones that compile after two turns, at once, and keep each copy that gives the same."""
    return AutoCompile(checked(2, 0.0, "default", False, is_forced=True))


@pytest.mark.parametrize("name", quick(CELLS, list(CELLS)[::3]))  # test_cells.py runs all of them
def test_a_cell_does_the_same(name):
    expected, _ = ran(CELLS[name])
    with hot_paths() as hot:
        outcome, _ = ran(CELLS[name], hot._loop_owner)
    assert outcome == expected


@pytest.mark.parametrize(
    "name",
    [
        "a training loop", "weights in a list, by a comprehension whose names are its own", "prints between", "keys",
        "dicts that are new each turn", "loops inside each other", "while over a value", "break",
    ],
)  # fmt: skip
def test_loops_that_compute_run_compiled(name):
    with hot_paths() as hot:
        _, prepared = ran(CELLS[name], hot._loop_owner)
    rows = {row.name: row for row in hot.functions}
    names = [function.name for function in prepared.proposed]
    assert names
    assert any(rows[name].compiled_calls for name in names), hot


@pytest.mark.slow  # two processes that start JAX
def test_a_script_is_watched_from_the_shell(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import sys\n" + PRELUDE + CELLS["a training loop"] + "print(float(W.sum()), sys.argv[1:], __file__)\n"
    )
    plain = subprocess.run([sys.executable, script, "one"], capture_output=True, text=True, check=True)
    command = [sys.executable, "-m", "explorer", "hot", "--wait", "--threshold", "2", script, "one"]
    hot = subprocess.run(command, capture_output=True, text=True, check=True)
    assert hot.stdout == plain.stdout
