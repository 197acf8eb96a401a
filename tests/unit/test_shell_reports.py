"""What every verb of the shell gives with `--format json`, held against its schema and against what is so."""

import argparse
import json
import sys
from pathlib import Path

import jax.numpy as jnp
import jsonschema
import pytest

import explorer as ex
from explorer.__main__ import command_line, main
from explorer.errors import UnknownNameError
from explorer.files.columns import plain
from explorer.files.reports import KINDS, report_json, schema_name, schema_text

TRAIN = """\
import jax, jax.numpy as jnp

def step(w, x):
    print("traced")
    h = jnp.tanh(x @ w)
    return jnp.mean(h ** 2)

def plain(w, x):
    return jnp.mean((x @ w) ** 2)

def gram(x):
    return jnp.linalg.svd(x @ x.T)[1]

if __name__ == "__main__":
    double = jax.jit(lambda x: x * 2)
    for size in (3, 4, 5):
        double(jnp.ones(size))
    print("trained")
"""
TWO = ["--arg", "f32[32,32]", "--arg", "f32[8,32]"]
NO_REPORT = {"schema", "mcp", "explain"}  # it prints schemas; it speaks a protocol of its own; it prints documentation


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [*sys.argv])
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


@pytest.fixture
def report(project, capsys):
    """What a verb gives, as it is read by a program."""

    def run(*arguments: str, status: int = 0):
        capsys.readouterr()
        assert main([arguments[0], "--format", "json", *arguments[1:]]) == status
        written = json.loads(capsys.readouterr().out)
        kind = written["schema"].split("/")[1]
        schema = json.loads(schema_text(kind))
        jsonschema.Draft202012Validator(schema).validate(written)
        assert set(written) == set(schema["properties"])  # nothing that the schema doesn't describe
        return written

    return run


def verbs():
    (action,) = (one for one in command_line()._actions if isinstance(one, argparse._SubParsersAction))
    return action.choices


@pytest.mark.parametrize("verb", sorted(verbs().keys() - NO_REPORT))
def test_every_verb_has_the_format(verb):
    (option,) = (action for action in verbs()[verb]._actions if "--format" in action.option_strings)
    assert {"text", "json"} <= {*option.choices}
    assert option.default == "text"


@pytest.mark.parametrize("kind", KINDS)
def test_each_schema_is_one_and_says_its_name(kind, capsys):
    schema = json.loads(schema_text(kind))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$id"] == schema["properties"]["schema"]["const"] == schema_name(kind)
    assert schema["description"]
    assert main(["schema", kind]) == 0
    assert json.loads(capsys.readouterr().out) == schema


def test_schemas_are_listed(capsys):
    assert main(["schema"]) == 0
    assert capsys.readouterr().out.split() == [schema_name(kind) for kind in KINDS]


def test_a_schema_refuses_what_is_no_report(report):
    written = report("explore", "train.py:step", *TWO)
    written["lines"][0]["flops"] = "many"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(json.loads(schema_text("explore"))).validate(written)


def test_what_is_not_known_is_null():
    assert plain({"a": float("nan"), 3: (float("inf"), jnp.float32(2).item())}) == {"a": None, "3": [None, 2.0]}
    with pytest.raises(TypeError, match="function"):
        plain({"a": plain})
    with pytest.raises(UnknownNameError, match="there are: explore, "):
        report_json("nothing", None)


def test_explore_open_and_diff(report, project):
    capture = ex.explore(lambda w, x: jnp.mean(jnp.tanh(x @ w) ** 2), jnp.ones((32, 32)), jnp.ones((8, 32)))
    written = report("explore", "train.py:step", *TWO, "-o", "a.capture")
    assert [row["line"] for row in written["lines"]] == [5, 6]
    assert sum(row["flops"] for row in written["lines"]) == written["flops"] == capture.lines().flops
    assert written["files"] == [{"path": str(Path("a.capture").absolute()), "bytes": Path("a.capture").stat().st_size}]
    assert [finding["rule"] for finding in written["findings"]] == ["impure-print"]
    opened = report("open", "a.capture")
    assert {**opened, "files": 0} == {**written, "files": 0}
    differs = report("diff", "a.capture", "train.py:plain", *TWO, "-o", "d.html")
    assert not differs["same"]
    assert {value["name"] for value in differs["values"]} >= {"function", "transcendentals"}
    assert differs["files"][0]["bytes"] == len(Path("d.html").read_bytes())
    assert report("diff", "a.capture", "a.capture")["same"]


def test_lint_and_padding(report):
    written = report("lint", "train.py:step", *TWO)
    assert [(one["rule"], one["line"]) for one in written["findings"]] == [("impure-print", 4)]
    assert ex.Findings.from_json(json.dumps(written)).function == "step"
    padded = report("padding", "train.py:plain", "--arg", "f32[4,4]", "--arg", "f32[n,4]", "--dim", "n=2:64")
    assert (padded["verdict"], padded["dimensions"]) == ("padded", {"n": [2, 33, 64]})
    refused = report("padding", "train.py:gram", "--arg", "f32[n,4]", status=1)
    assert [one["line"] for one in refused["refusals"]] == [12]


def test_recompiles_and_ledger_name_each_recompile(report, capsys):
    written = report("recompiles", "--save", "a.jsonl", "train.py")
    again = [one for one in written["recompiles"] if one["reason"]["kind"] == "shape" and one["function"] == "<lambda>"]
    assert [(one["reason"]["leaf"], one["call_site"]["line"]) for one in again] == [("x.shape[0]", 17)] * 2
    assert report("ledger", "a.jsonl")["recompiles"] == written["recompiles"]
    assert report("ledger", "a.jsonl", "--by-process")["processes"] == ["a"]


def test_a_scripts_own_output_is_no_part_of_the_report(project, capsys):
    assert main(["recompiles", "--format", "json", "train.py"]) == 0
    out, err = capsys.readouterr()
    json.loads(out)
    assert err == "trained\n"


def test_time_and_profile(report):
    timed = report("time", "train.py:step", *TWO, "--seconds", "0.05")
    figures = {row["what"]: row["median"] for row in timed["figures"]}
    assert {"eager", "compile", "first call", "steady"} <= figures.keys()
    assert figures["compile"] < figures["first call"]
    profiled = report("profile", "train.py:step", *TWO, "--runs", "2")
    assert profiled["runs"] in (1, 2)  # fewer where the profiler lost one
    total = sum(op["seconds"] for op in profiled["ops"])
    assert total == pytest.approx(profiled["device_seconds"])
    assert all(line["wasted"] is None for line in profiled["lines"])


@pytest.mark.slow
def test_hot_trace_and_visualize(report):
    assert report("hot", "train.py")["threshold"] == 10
    traced = report("trace", "train.py")
    assert [file["path"] for file in traced["files"]] == [str(Path("trace_train.log").absolute())]
    drawn = report("visualize", "trace_train.log")
    assert drawn["operations"] == traced["operations"]
    assert {one["name"] for one in drawn["operations"]} >= {"broadcast_in_dim"}


def test_targets(report):
    rows = {row["key"]: row for row in report("targets")["targets"]}
    assert rows.keys() == {row.device.key for row in ex.targets()}
    assert rows["h100"]["memory"] == 84942979072


@pytest.mark.slow
def test_record_and_check(report):
    recorded = report("record", "train.py:step", *TWO)
    assert recorded["files"][0]["path"] == "step.golden"
    assert report("check")["passed"]
    Path("train.py").write_text(TRAIN.replace("h ** 2", "jnp.sort(h) ** 2"))
    failed = report("check", status=1)
    assert {change["line"] for change in failed["checks"][0]["regressions"]} == {6}
    assert "step.golden: 3 regressions" in failed["summary"][0]


@pytest.mark.parametrize(("verb", "status"), [("explore", 1), ("time", 1), ("lint", 2), ("padding", 2)])
def test_an_error_is_a_report_too(report, verb, status):
    written = report(verb, "train.py:nothing", status=status)
    assert written["schema"] == "explorer/error/1"
    assert written["error"] == "OptionError"
    assert "it has: step, plain" in written["message"]


def test_an_error_of_check_says_that_nothing_was_compared(report):
    assert report("check", status=2)["error"] == "OptionError"
