"""Every piece of code in the written pages of questions and equivalents runs, and prints what stands below it."""

import doctest
import re
from pathlib import Path

import pytest

import explorer as ex
from explorer.__main__ import command_line
from explorer.analysis.question_catalogue import QUESTIONS as QUESTIONS_OF_THE_VIEW
from tests.support.markdown_code import blocks, second_cells, sections

DOCS = Path(__file__).parents[2] / "docs"
QUESTIONS = sorted(path for path in (DOCS / "questions").glob("*.md") if path.name != "index.md")
TABLES = sorted(path for path in (DOCS / "from").glob("*.md") if path.name != "index.md")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
ENVIRONMENT = re.compile(r"\$EXPLORER_(\w+)=(\S+)")


def run(examples, name, namespace):
    """Run a block with prompts in a namespace; returns what went wrong."""
    said = []
    test = doctest.DocTest(examples, namespace, name, None, None, None)
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append, clear_globs=False)
    namespace.update(test.globs)
    return "".join(said)


LONG = {"compiling", "numbers"}  # they rewrite, compare and time
PAGES = [pytest.param(path, marks=[pytest.mark.slow] * (path.stem in LONG), id=path.stem) for path in QUESTIONS]


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES)
def test_the_answers_run(path):
    parser = doctest.DocTestParser()
    namespace = {"__name__": "__main__"}
    for number, (heading, text) in enumerate(sections(path.read_text(encoding="utf-8"))):
        if path.stem != "the_view":  # which asks one capture
            namespace = {"__name__": "__main__"}
        for block in blocks(text):
            assert block.language == "pycon"
            # Its name stands in file names of what it compiles: other than those of other blocks.
            assert run(parser.get_examples(block.code), f"{path.stem}{number}_{block.line}", namespace) == "", heading


def test_there_are_those_of_the_view_and_twenty_more_from_trackers():
    asked = {path.stem: list(sections(path.read_text(encoding="utf-8")))[1:] for path in QUESTIONS}
    assert len(asked.pop("the_view")) == len(QUESTIONS_OF_THE_VIEW)
    threads = [text.count("](https://github.com/") for those in asked.values() for _, text in those]
    assert len(threads) >= 20
    assert min(threads) > 0
    answers = [list(blocks(text)) for those in asked.values() for _, text in those]
    assert all(answers)


@pytest.mark.slow
@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_the_right_side_of_each_line_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = path.read_text(encoding="utf-8")
    namespace = {"__name__": "users", "__file__": str(path)}
    for block in blocks(text):
        exec(compile(block.code, str(path), "exec"), namespace)
    rows = list(second_cells(text))
    assert len(rows) >= 12
    for line, code in rows:
        if setting := ENVIRONMENT.fullmatch(code):
            assert is_read(setting[1]), f"{path.name}, line {line}: nothing reads EXPLORER_{setting[1]}"
        elif code.startswith("$"):
            command_line().parse_args(code.removeprefix("$").split())
        elif code.startswith("@"):
            exec(f"{code}\ndef decorated(*args): return fun(*args)", namespace)
        else:
            try:
                exec(compile(code, f"{path.name}, line {line}", "exec"), namespace)
            except Exception as error:
                raise AssertionError(f"{path.name}, line {line}: {code}") from error


def is_read(name):
    """Whether Explorer reads an environment variable: its name stands in its code."""
    return any(f"{name}" in file.read_text(encoding="utf-8") for file in Path(ex.__path__[0]).rglob("*.py"))


def test_a_variable_of_another_name_is_not_read():
    assert is_read("AUTO_COMPILE")
    assert not is_read("AUTO_" + "COMPILES_ALL")
