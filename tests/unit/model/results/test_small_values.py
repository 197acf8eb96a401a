"""Sentences of small results: sequences, operations over time, limits of counts, estimates, the states of rows."""

from math import isnan

import pytest

import explorer as ex
from explorer.model.attribution import CountLimits
from explorer.model.results.hot_paths import (
    CallTimes,
    HotPaths,
    HotRow,
    LoggedCompile,
    Operation,
    OperationTimeline,
    RepeatedSequence,
    ThreadOperations,
)
from explorer.model.results.session import SessionReport, SessionRow
from explorer.model.stage import library_of


@pytest.mark.parametrize(
    ("names", "text"),
    [("a", "a"), ("abcd", "a → b → c → d"), ("abcde", "a → b → … → e"), ("abcdefg", "a → b → … → g")],
)
def test_a_sequence_is_named_by_four_of_its_operations(names, text):
    operations = tuple(Operation(0, name, "", ()) for name in names)
    found = RepeatedSequence("d", operations, (), (0, 9, 18))
    assert (found.name, found.count) == (text, 3)


@pytest.mark.parametrize(
    ("limits", "sentences"),
    [
        (CountLimits(), ()),
        (CountLimits(["while.3"]), ("one iteration counted of while.3: its length is not known",)),
        (CountLimits(["a", "b"]), ("one iteration counted of each of 2 loops: its length is not known",)),
        (CountLimits((), ["cond.1"]), ("all branches counted of cond.1",)),
        (CountLimits((), ["a"] * 1200), ("all branches counted of 1,200 conditionals",)),
        (CountLimits((), (), ["gemm"]), ("FLOPs of 1 kernel not known: gemm",)),
        (CountLimits((), (), [*"abc"]), ("FLOPs of 3 kernels not known: a, b, c",)),
        (CountLimits((), (), [*"abcd"]), ("FLOPs of 4 kernels not known: a, b, c and 1 more",)),
    ],
)
def test_what_counts_leave_open_is_a_sentence_for_each_limit(limits, sentences):
    assert limits.sentences == sentences


def timeline(single=(), compiled=(), compiles=()):
    return OperationTimeline("a.log", 1.0, 3.0, (ThreadOperations("Main", single, compiled),), compiles)


def test_a_log_is_summed_up_by_what_ran_and_what_was_compiled():
    compiles = (LoggedCompile("f", 0.5, 0.75, True), LoggedCompile("g", 1.0, 1.25, False))
    assert timeline((1,)).headline == "1 operation in 2 s"
    assert timeline((1200, 30)).headline == "1,230 operations in 2 s"
    assert timeline((3,), (4, 5)).headline == "12 operations in 2 s, 9 of them compiled functions"
    assert timeline((3,), (), compiles).headline == "3 operations in 2 s; 2 compiles took 500 ms"
    assert repr(timeline((3,))) == "OperationTimeline(a.log: 3 operations in 2 s)"


@pytest.mark.parametrize(
    ("file", "line", "place"),
    [
        ("/m/train.py", 3, "train.py, line 3"),
        (r"C:\m\train.py", 3, "train.py, line 3"),
        ("/tmp/cell.py", 3, "cell [4], line 3"),
        ("", 3, ""),
        ("/m/train.py", 0, ""),
    ],
)
def test_a_line_is_called_as_a_person_calls_it(file, line, place):
    assert HotPaths(labels={"/tmp/cell.py": "cell [4]"}).place(file, line) == place


def test_what_was_not_measured_of_a_hot_function_saves_nothing_that_is_known():
    row = HotRow("f", compiled_calls=10, eager_seconds=0.5)
    assert row.calls == 10
    assert isnan(row.speedup)
    assert row.saved_seconds == 0
    assert isnan(HotRow("f", eager_seconds=0.5, compiled_seconds=0.0).speedup)
    waited = HotRow("f", compile_seconds=0.25, is_background=False)
    assert waited.saved_seconds == -0.25
    assert all(map(isnan, waited.saved_interval))


def test_the_first_function_of_a_name_is_the_one_that_is_meant():
    paths = HotPaths((HotRow("f", line=1), HotRow("g", line=2), HotRow("f", line=3)))
    assert (paths["f"].line, len(paths), [row.name for row in paths]) == (1, 3, ["f", "g", "f"])
    with pytest.raises(ex.errors.UnknownNameError):
        paths["h"]
    assert repr(CallTimes((1,), (0.0,), (0.1,), ("eager",))) == "CallTimes(1 call)"
    assert repr(CallTimes()) == "CallTimes(0 calls)"


def test_a_session_adds_up_what_was_seen():
    rows = (
        SessionRow("f", compiles=3, recompiles=2, trace=0.25, lower=0.25, compile=0.5, errors=1, warnings=2, notes=4),
        SessionRow("g", compiles=1),
        SessionRow("f", compiles=1, trace=9.0, lower=9.0, compile=9.0),
    )
    report = SessionReport(rows, operations=7, operation_seconds=0.125)
    assert report.seconds == 0.125 + 1.0 + 27.0  # of one nobody saw it
    assert (rows[0].findings, isnan(rows[1].seconds)) == (7, True)
    assert report["f"] is rows[0]
    assert repr(report) == "SessionReport(3 functions, 5 compiles, 2 again)"
    assert [repr(row) for row in rows[:2]] == ["SessionRow(f: 3 compiles, 2 again)", "SessionRow(g: 1 compile)"]
    with pytest.raises(ex.errors.UnknownNameError, match=r"no function 'ff' was compiled here\. Did you mean"):
        report["ff"]


@pytest.mark.parametrize(
    ("seconds", "by", "total"),
    [
        ((0.0019999,), ("published peaks",), "≥ 1.99 ms"),
        ((0.001, 0.0009999), ("published peaks",) * 2, "≥ 1.99 ms"),
        ((0.001, 0.0009999), ("published peaks", "XLA's cost model"), "2 ms"),
        ((0.0019999,), ("XLA's cost model",), "2 ms"),
        ((), (), "0 s"),
    ],
)
def test_of_published_peaks_alone_an_estimate_is_the_least(seconds, by, total):
    rows = tuple(ex.types.Estimate(None, each, who) for each, who in zip(seconds, by, strict=True))
    assert ex.types.Estimates(rows).total == total


@pytest.mark.parametrize(
    ("file", "name"),
    [
        (pytest.__file__, "pytest"),
        (ex.__file__, "explorer"),
        ("/opt/env/lib64/python3.11/asyncio/base_events.py", "asyncio"),
        ("/opt/env/lib64/python3.11/json.py", "json"),
        (r"C:\Users\me\ml\.venv\Lib\site-packages\equinox\_module.py", "equinox"),
        ("<frozen importlib._bootstrap>", "importlib._bootstrap"),
        ("/home/me/train.py", ""),
    ],
)
def test_a_librarys_file_belongs_to_the_package_behind_its_last_folder_of_packages(file, name):
    assert library_of(file) == name
