"""What the README shows runs as it stands, and says what it prints."""

import re
from pathlib import Path

import nbformat
import pytest
from execution import execute, output_problems

from explorer.pitfalls.rule import all_rules

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def readme():
    return (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_examples_run_in_a_notebook_and_print_what_they_say(readme, tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    assert len(blocks) == 2
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(block) for block in blocks])
    monkeypatch.chdir(tmp_path)  # the examples write files
    execute(notebook)
    assert not output_problems(notebook)
    assert "text/html" in notebook.cells[0].outputs[-1].data
    assert {path.name for path in tmp_path.iterdir()} == {"report.html"}
    printed = "".join(output.get("text", "") for cell in notebook.cells for output in cell.outputs)
    for said in re.findall(r"print\(\w+\)  # (\w+\(.*)", readme):
        assert said in printed


def test_every_file_it_points_to_is_there(readme):
    for target in re.findall(r'\]\(([^)#]+)\)|(?:src|srcset)="([^"]+)"', readme):
        assert (ROOT / (target[0] or target[1])).exists()


@pytest.mark.parametrize("page", ["README.md", "docs/use/pitfalls.md"])
def test_it_has_the_number_of_rules_right(page):
    assert f"{len(all_rules())} rules" in (ROOT / page).read_text(encoding="utf-8")


def test_it_is_read_in_five_minutes(readme):
    assert len(readme.split()) < 1200


def test_every_make_target_it_names_exists(readme):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`make (\w+)`", readme)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
