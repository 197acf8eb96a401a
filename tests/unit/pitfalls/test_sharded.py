"""Programs for eight devices: what is replicated by mistake is found on its line, and nothing where all is as meant."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def outcomes(kind, *names):
    done = subprocess.run(
        [sys.executable, "-m", "tests.corpus_sharding", kind, *names],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def is_right(outcome) -> bool:
    hits = [text for rule, _, text in outcome["found"] if rule == outcome["rule"]]
    return not outcome["faults"] and any(outcome["marker"] in text for text in hits)


def test_a_mistake_is_found_on_its_line():
    """One of the programs; all of them are slow."""
    names = "batch_passed_whole_and_split_inside", "slice_at_a_place_that_is_computed"
    found = outcomes("planted", *names)
    assert len(found) == len(names)
    assert all(map(is_right, found)), found


def test_a_program_whose_data_is_split_as_meant_has_none():
    (outcome,) = outcomes("clean", "tensor_parallel_in_explicit_mode")
    assert (outcome["found"], outcome["faults"]) == ([], [])


@pytest.mark.slow
def test_every_mistake_is_found_on_its_line():
    found = outcomes("planted")
    assert len(found) >= 20
    assert [each for each in found if not is_right(each)] == []


@pytest.mark.slow
def test_no_program_that_is_as_meant_has_a_finding():
    found = outcomes("clean")
    assert len(found) >= 20
    assert [each for each in found if each["found"] or each["faults"]] == []
