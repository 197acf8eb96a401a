"""What an assistant reads of an answer, and of one that never came; where its files are."""

import json
from pathlib import Path

import pytest

from explorer.assistants.named import Named
from explorer.assistants.tools import Limits, Tools, _report, summary_of
from explorer.errors import OptionError, WorkerError

LIMITS = Limits(60.0, 2_000_000_000)


@pytest.mark.parametrize(
    ("count", "more"),
    [(0, []), (12, []), (13, ["line 12"]), (14, ["… and 2 more lines, in the report"])],
)
def test_twelve_lines_are_said_and_a_thirteenth_rather_than_that_there_is_one(count, more):
    answer = {"summary": [f"line {n}" for n in range(count)]}
    assert summary_of(answer) == [f"line {n}" for n in range(min(count, 12))] + more


def test_a_long_line_is_cut_and_an_answer_may_have_no_summary():
    assert summary_of({"summary": ["x" * 400, "y" * 401]}) == ["x" * 400, "y" * 400]
    assert summary_of({}) == []


@pytest.mark.parametrize(
    ("status", "log", "says"),
    [
        (3, "", "lint ended with status 3, perhaps at its limit of 2.0 GB of memory: it printed nothing"),
        (0, "a\n\n  \n", "lint ended with status 0, perhaps at its limit of 2.0 GB of memory: a"),
        (-9, "a\nb\n", "lint was ended by SIGKILL, perhaps at its limit of 2.0 GB of memory: b"),
        (1, "e" * 401, "lint ended with status 1, perhaps at its limit of 2.0 GB of memory: " + "e" * 400),
    ],
)
def test_a_verb_without_a_report_says_how_it_ended_and_what_it_printed_last(tmp_path, status, log, says):
    report, printed = tmp_path / "a.json", tmp_path / "a.log"
    report.write_text("not whole {")
    printed.write_text(log)
    with pytest.raises(WorkerError) as raised:
        _report("lint", report, printed, status, LIMITS)
    assert str(raised.value) == f"{says}\n  Printed: {printed}"
    assert not report.exists()


def test_a_report_of_an_error_is_that_error_and_any_other_is_the_answer(tmp_path):
    report = tmp_path / "a.json"
    report.write_text(json.dumps({"schema": "explorer/error/1", "error": "OptionError", "message": "no"}))
    with pytest.raises(WorkerError, match=r"^OptionError: no$"):
        _report("lint", report, tmp_path, 1, LIMITS)
    report.write_text(json.dumps({"schema": "explorer/lint/1"}))
    assert _report("lint", report, tmp_path, 1, LIMITS) == {"schema": "explorer/lint/1"}


def test_answers_are_numbered_and_called_by_their_function():
    tools = Tools(Named((), (), {}, ()), Path("/out"), LIMITS)
    names = [tools._place(verb, name).name for verb, name in (
        ("explore", "a.b:step"), ("targets", ""), ("recompiles", "train.py --steps 3"), ("lint", "m:" + "f" * 41),
        ("lint", "m:.f."),
    )]  # fmt: skip
    assert names == [
        "001-explore-step", "002-targets", "003-recompiles-train-py---steps-3", f"004-lint-{'f' * 40}", "005-lint-f",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("named", "text"),
    [
        (Named((), (), {}, ()), "nothing"),
        (
            Named(("m:f",), ("n",), {"t.py --x": ("t.py", "--x")}, ("a.golden",)),
            "m:f, each function of n, the script 't.py --x', a.golden",
        ),
    ],
)
def test_what_may_run_in_words(named, text):
    assert named.text == text
    with pytest.raises(OptionError) as raised:
        named.call("other:f", ())
    assert str(raised.value) == f"'other:f' was not named on the command line; there are: {text}."


@pytest.mark.parametrize(
    "name",
    ["a.py:step", "gone.golden", "train.py:f x", "1bad", "a b", "m:1", "m:f()", ""],
    ids=lambda name: name or "-",
)
def test_what_can_not_run_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    with pytest.raises(OptionError):
        Named.of([name])
