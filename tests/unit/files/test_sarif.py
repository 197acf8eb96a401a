"""Findings as text, table, JSON and SARIF."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer as ex
from explorer.model.findings import SEVERITIES, Finding, Fix

A = Finding(
    "impure-print", "warning", "print() ran once", "/home/ada/träin.py", 12, "it ran once", Fix("jax.debug.print"),
    "EX001", "träin.py", "print(x)", 4, 12, 12, "https://docs.jax.dev/",
)  # fmt: skip
B = Finding("concretization", "error", "f can't be traced", "/home/ada/träin.py", 20, code="EX009")
C = Finding("dead-code", "note", "y is not used", code="EX026")
FOUND = ex.Findings([C, A, B], "step", ["nan-gradient: ValueError: no"])

texts = st.text(max_size=30)
counts = st.integers(0, 10_000)
findings = st.builds(
    Finding, texts, st.sampled_from(SEVERITIES), texts, texts, counts, texts, st.builds(Fix, texts, texts, texts),
    texts, texts, texts, counts, counts, counts, texts,
)  # fmt: skip


def test_the_gravest_come_first_and_the_repr_counts_them():
    assert [one.severity for one in FOUND] == ["error", "warning", "note"]
    assert repr(FOUND) == "Findings(step: 1 error, 1 warning, 1 note)"
    assert repr(ex.Findings([], "f")) == "Findings(f: nothing found)"
    assert repr(A) == "Finding(impure-print at träin.py, line 12: print() ran once)"
    assert ([*FOUND.errors], [*FOUND.warnings], [*FOUND.notes]) == ([B], [A], [C])


@given(st.permutations([A, B, C, dataclasses.replace(A, line=11), dataclasses.replace(A, message="another")]))
def test_their_order_does_not_depend_on_the_order_of_rules(several):
    assert ex.Findings(several) == ex.Findings([*reversed(several)])


def test_the_text_has_place_message_evidence_cure_and_page():
    text = str(FOUND)
    for told in (
        "träin.py:12:5: warning EX001 impure-print",
        "> print(x)",
        "it ran once",
        "jax.debug.print",
        "docs.jax",
    ):
        assert told in text
    assert "nan-gradient: ValueError: no" in text


@given(st.lists(findings, max_size=5), texts, st.lists(texts, max_size=2), texts)
def test_json_gives_back_what_was_written(several, function, faults, failure):
    found = ex.Findings(several, function, faults, failure=failure)
    assert ex.Findings.from_json(found.to_json()) == found


@given(texts)
def test_a_text_that_holds_no_findings_is_refused(text):
    with pytest.raises(ex.errors.UnreadableTextError):
        ex.Findings.from_json(text)


@pytest.mark.parametrize(
    "change",
    [
        lambda told: told.pop("function"),
        lambda told: told.update(explorer_findings=2),
        lambda told: told["findings"][0].update(severity="fatal"),
        lambda told: told["findings"][0].update(line="3"),
        lambda told: told["findings"][0].update(unknown=1),
        lambda told: told["findings"][0].update(fix="text"),
        lambda told: told.update(findings="abc"),
        lambda told: told.update(faults=[1]),
    ],
)
def test_findings_of_another_shape_are_refused(change):
    told = json.loads(FOUND.to_json())
    change(told)
    with pytest.raises(ex.errors.UnreadableTextError):
        ex.Findings.from_json(json.dumps(told))


def test_what_was_loaded_has_no_function_to_rewrite():
    with pytest.raises(ex.errors.NotRecordedError, match="have no function to rewrite"):
        ex.Findings.from_json(FOUND.to_json()).fix(0)


def test_a_table_has_a_row_for_each():
    frame = FOUND.to_frame()
    assert list(frame["rule"]) == ["concretization", "impure-print", "dead-code"]
    assert frame.loc[1, ["line", "column", "fix"]].tolist() == [12, 4, "jax.debug.print"]
    assert len(ex.Findings([]).to_frame()) == 0


# What the schema of SARIF 2.1.0 asks of the parts that are written, and which others it allows.
LEVELS = {"none", "note", "warning", "error"}
PARTS = {
    "log": ({"version", "runs"}, {"$schema"}),
    "run": ({"tool"}, {"results", "invocations", "columnKind"}),
    "driver": ({"name"}, {"rules"}),
    "rule": ({"id"}, {"name", "helpUri"}),
    "result": ({"message"}, {"ruleId", "ruleIndex", "level", "locations"}),
    "region": ({"startLine"}, {"startColumn", "endLine", "endColumn"}),
}


def part(name, told):
    required, optional = PARTS[name]
    assert required <= set(told) <= required | optional
    return told


@given(st.lists(findings, max_size=5), st.lists(texts, max_size=2))
def test_sarif_has_what_its_schema_asks_for(several, faults):
    log = part("log", json.loads(ex.Findings(several, "f", faults).to_sarif()))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    part("run", run)
    ids = [part("rule", rule)["id"] for rule in part("driver", run["tool"]["driver"])["rules"]]
    assert len(ids) == len(set(ids))
    assert len(run["results"]) == len(several)
    for result in run["results"]:
        part("result", result)
        assert result["level"] in LEVELS
        assert ids[result["ruleIndex"]] == result["ruleId"]
        for location in result.get("locations", ()):
            region = part("region", location["physicalLocation"]["region"])
            assert all(isinstance(value, int) and value >= 1 for value in region.values())
    for invocation in run.get("invocations", ()):
        assert invocation["executionSuccessful"] is False


def test_sarif_counts_columns_from_one_and_names_files_as_uris():
    run = json.loads(FOUND.to_sarif())["runs"][0]
    (location,) = run["results"][1]["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "file:///home/ada/tr%C3%A4in.py"},
        "region": {"startLine": 12, "startColumn": 5, "endLine": 12, "endColumn": 13},
    }
    assert "locations" not in run["results"][2]
