"""On 250 ways and more to compile again: the first reason is the true one, and its leaf is never another."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def outcomes():
    """Of all causes, from a process of its own with four devices, which needn't run fast what it compiles."""
    command = [sys.executable, "-m", "tests.corpus_recompiles", "--json"]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_backend_optimization_level=0"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout)


def test_there_are_many_causes_of_every_kind(outcomes):
    kinds = [outcome["kind"] for outcome in outcomes]
    every = {
        "first", "shape", "rank", "dtype", "weak-type", "structure", "static", "function", "committed", "sharding",
        "device", "layout", "donation", "context", "options", "evicted",
    }  # fmt: skip
    assert len(kinds) >= 250
    assert all(kinds.count(kind) >= 2 for kind in every)


def test_each_cause_compiles_again_and_its_cure_does_not(outcomes):
    assert [outcome["name"] for outcome in outcomes if not outcome["recompiles"] or outcome["cured"]] == []


def test_the_first_reason_is_the_true_one(outcomes):
    wrong = [
        f"{outcome['name']}: {outcome['ours']} {outcome['ours_leaf']}"
        for outcome in outcomes
        if not outcome["ours_true"]
    ]
    assert len(wrong) <= 0.01 * len(outcomes), wrong


def test_no_leaf_is_ever_wrong(outcomes):
    named = [outcome for outcome in outcomes if outcome["ours_leaf"]]
    assert [outcome["name"] for outcome in named if outcome["ours_leaf"] not in outcome["leaves"]] == []


def test_every_recompile_comes_with_a_cure(outcomes):
    assert [outcome["name"] for outcome in outcomes if outcome["kind"] != "first" and not outcome["ours_fix"]] == []


def test_every_cure_does_what_it_says(outcomes):
    """Code is executed before each call of the whole program; of a sentence the scenario's own cured run is one."""
    wrong = [f"{outcome['name']}: {outcome['ours_fix']}" for outcome in outcomes if not outcome["cure_holds"]]
    assert len(wrong) <= 0.02 * len(outcomes), wrong
    assert sum(outcome["executed"] == "code" for outcome in outcomes) >= 60


def test_most_causes_of_the_last_hundred_are_retold_from_public_sources(outcomes):
    assert sum(bool(outcome["source"]) for outcome in outcomes) >= 120


def test_jaxs_own_explanation_names_fewer(outcomes):
    ours, jaxs = (sum(outcome[who] for outcome in outcomes) for who in ("ours_true", "jaxs_true"))
    assert jaxs < ours
