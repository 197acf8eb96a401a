"""Every notebook runs in a real kernel, and what it shows holds without one."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from execution import NOTEBOOKS, captures, execute, output_problems, saved_problems
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook, new_output
from nbval.plugin import get_sanitize_patterns
from refresh import normalise

SANITIZE = Path(__file__).with_name("sanitize.cfg")
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)


def ran(*sources: str) -> NotebookNode:
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
    execute(notebook)
    return notebook


def test_there_are_notebooks():
    assert "00_start_here.ipynb" in [path.name for path in NOTEBOOKS]


@pytest.mark.slow  # `make notebooks` runs every notebook once, with nbval
@each_notebook
def test_it_runs_and_shows_nothing_that_is_wrong(path: Path):
    notebook = nbformat.read(path, as_version=4)
    execute(notebook)
    assert output_problems(notebook) == []


@each_notebook
def test_it_is_committed_with_outputs_and_without_traces_of_a_machine(path: Path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert output_problems(notebook) + saved_problems(notebook) == []


@each_notebook
def test_it_is_committed_as_refresh_writes_it(path: Path):
    written = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(written, as_version=4)
    normalise(notebook)
    assert nbformat.writes(notebook) + "\n" == written


def test_the_tutorial_carries_the_captures_it_shows():
    tutorial = next(path for path in NOTEBOOKS if path.name == "00_start_here.ipynb")
    shown = captures(nbformat.read(tutorial, as_version=4))
    assert [stage.name for stage in shown[-1].stages] == ["jaxpr", "stablehlo", "hlo"]
    assert shown[-1].function == "step"


# The checks themselves must catch what they are for.

MAGIC = """
from IPython.core.error import UsageError
from IPython.core.magic import register_line_magic

@register_line_magic
def broken(line):
    {}
"""


def test_a_magic_that_raises_a_usage_error_fails_the_run():
    with pytest.raises(CellExecutionError, match="UsageError: no such option"):
        ran(MAGIC.format("raise UsageError('no such option')"), "%broken")


def test_a_magic_that_swallows_a_usage_error_is_caught_though_the_kernel_answers_ok():
    notebook = ran(MAGIC.format("get_ipython().run_cell('%no_such_magic')"), "%broken")
    assert output_problems(notebook) == [f"cell {notebook.cells[1].id}: UsageError on stderr"]


def test_a_magic_that_swallows_an_error_is_caught_though_the_kernel_answers_ok():
    notebook = ran(MAGIC.format("get_ipython().run_cell('1 / 0')"), "%broken")
    assert output_problems(notebook) == [f"cell {notebook.cells[1].id}: error output ZeroDivisionError"]


def test_a_cell_that_fails_fails_the_run_even_if_its_tag_allows_it():
    cell = new_code_cell("1 / 0", metadata={"tags": ["raises-exception"]})
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        execute(new_notebook(cells=[cell]))


def test_a_display_without_text_is_caught():
    notebook = ran("display({'text/html': '<b>only this</b>'}, raw=True)")
    assert output_problems(notebook) == [f"cell {notebook.cells[0].id}: a display without text/plain: text/html"]


def test_a_large_notebook_and_saved_widgets_are_caught():
    notebook = ran("print('one line of many\\n' * 60_000)")
    notebook.metadata["widgets"] = {}
    saved, size = output_problems(notebook)
    assert saved.startswith("metadata.widgets")
    assert size.endswith("bytes, more than 1,000,000")


def test_a_notebook_that_was_not_run_and_a_path_of_a_machine_are_caught():
    cell = new_code_cell("import explorer", outputs=[new_output("stream", text="/home/ada/explorer/x.py")])
    cell.execution_count = None
    assert saved_problems(new_notebook(cells=[cell])) == [
        f"cell {cell.id}: not run",
        "a path of a machine: /home/ada",
    ]
    assert saved_problems(new_notebook()) == ["no outputs"]


def test_a_cell_that_was_saved_where_its_compiler_is_not_is_caught():
    text = "skipped: the compiler for TPU v5e is not installed.  python -m explorer targets install tpu"
    cell = new_code_cell("%%needs v5e", execution_count=1, outputs=[new_output("stream", text=text)])
    assert saved_problems(new_notebook(cells=[cell])) == [f"cell {cell.id}: saved without what it needs: {text}"]


@pytest.mark.parametrize("name", ["08_hardware.ipynb"])
def test_a_notebook_for_hardware_that_is_not_here_runs_without_its_compilers_and_says_so(name, monkeypatch, tmp_path):
    monkeypatch.setenv("EXPLORER_CACHE_DIR", str(tmp_path))
    notebook = nbformat.read(next(path for path in NOTEBOOKS if path.name == name), as_version=4)
    execute(notebook)
    assert output_problems(notebook) == []
    for cell in notebook.cells:
        if cell.source.startswith("%%needs"):
            assert "python -m explorer targets install" in cell.outputs[0].text


def test_an_address_on_the_web_is_no_path_of_a_machine():
    cell = new_code_cell("x", execution_count=1, outputs=[new_output("stream", text="https://x.org/home/ada, a/tmp/b")])
    assert saved_problems(new_notebook(cells=[cell])) == []


# What nbval compares.


def sanitized(text: str) -> str:
    import re

    for pattern, replacement in get_sanitize_patterns(SANITIZE.read_text(encoding="utf-8")):
        text = re.sub(pattern, replacement, text)
    return text


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("<f at 0x7f3a90d1c0e0>", "<f at 0x10488ffa0>"),
        ("id 1b4e28ba-2fa1-11d2-883f-0016d3cca427", "id 9a7b330a-a736-11e5-bb42-0800200c9a66"),
        ("/tmp/ipykernel_312/3141592.py:3", "/var/x/ipykernel_9/27182.py:3"),
        ("called at  cell [7], line 3", "called at  cell [], line 3"),
        ("compiled in 1.25 s, traced in 312 µs", "compiled in 47 ms, traced in 0.9 ms"),
        ("needs 1,024 B and 2.5 MiB", "needs 7 kB and 12 GiB"),
        ("on TFRT_CPU_0", "on cuda:1"),
        ("%fusion.12 = f32[8] add(%dot_general.3)", "%fusion.1 = f32[8] add(%dot_general.44)"),
        ("jax 0.10.2", "jax 0.12.0.dev20260101+abc"),
    ],
)
def test_what_differs_between_machines_is_the_same_for_nbval(here: str, there: str):
    assert sanitized(here) == sanitized(there) != here


@pytest.mark.parametrize(
    ("lesson", "other"),
    [
        ("3 fusions", "4 fusions"),
        ("f32[8,128]", "f32[8,64]"),
        ("add, multiply", "add, divide"),
        ("loss 5.545", "loss 5.546"),
        ("scores at line 14", "scores at line 15"),
        ("%fusion.12 = add(%dot.1)", "%fusion.12 = multiply(%dot.1)"),
    ],
)
def test_a_lesson_that_changed_is_seen_by_nbval(lesson: str, other: str):
    assert sanitized(lesson) != sanitized(other)


def test_a_notebook_with_ten_small_views_stays_small():
    code = "import jax.numpy as jnp, explorer as ex\nex.explore(lambda x: jnp.tanh(x) @ x, jnp.ones(({size}, {size})))"
    notebook = new_notebook(cells=[new_code_cell(code.format(size=size)) for size in range(8, 18)])
    execute(notebook)
    assert len(captures(notebook)) == 10
    # Each stands alone, with what a view starts with: 1,053,700 bytes, of which the 30 questions and their words are
    # 50,000, and the paths of a machine are among them.
    assert len(nbformat.writes(notebook).encode()) <= 1_065_000
