"""On programs of which it is known what each instruction comes from, no exact link is wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpus_links.generated import generate
from tests.corpus_links.score import Outcome, generated_outcomes, merge, wrong_links
from tests.corpus_links.tagging import tagged_program

ROOT = Path(__file__).parents[4]
SAMPLE = ["equinox_gru", "runge_kutta", "called_twice", "custom_rules", "loops", "remat_scan", "sharded_gradient"]
SAMPLE += ["spectra", "curvature", "unrolled_windows", "microbatches", "implicit_fixed_point", "policy_optimization"]
SEEDS = range(4)


@pytest.fixture(scope="module")
def models():
    """The sample's outcomes; in a process of its own, which has four devices."""
    command = [sys.executable, "-m", "tests.corpus_links", "--json", *SAMPLE]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
    return [Outcome.from_dict(each) for each in json.loads(run.stdout)]


@pytest.mark.slow
def test_the_program_with_tags_is_the_program(models):
    assert {each.model: each.compared for each in models} == {each.model: each.named for each in models}


@pytest.mark.slow
def test_no_exact_link_of_a_model_is_wrong_and_nine_in_ten_instructions_with_a_name_have_one(models):
    assert [wrong for each in models for wrong in each.numbered.wrong] == []
    together = merge("all", models)
    assert together.numbered.exact >= 0.9 * together.named


@pytest.mark.slow
def test_names_and_places_give_no_exact_link_and_of_what_they_infer_three_in_200_are_wrong_at_most(models):
    metadata = merge("all", models).metadata
    assert metadata.exact == 0 < metadata.inferred
    assert metadata.wrong_inferred <= 0.015 * metadata.total


@pytest.mark.slow
def test_what_became_of_an_equation_is_known_of_19_in_20(models):
    together = merge("all", models)
    assert together.unmapped <= 0.05 * together.equations


@pytest.mark.slow
def test_what_operations_themselves_say_is_what_exact_links_say():
    by_tags, by_prints = generated_outcomes(SEEDS)
    assert [*wrong_links(by_tags, "numbered"), *wrong_links(by_prints, "numbered")] == []
    assert by_prints.numbered.exact > 50


def test_an_equation_has_a_tag_for_each_call_to_it():
    """The oracle itself: the tags are those that a person would give."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def inner(x):
        return jnp.sin(x) * 2

    tagged = tagged_program(lambda x: inner(inner(x)) + 1, jnp.ones(8))
    names = [tagged.tagger.equations[tag].primitive.name for tag in tagged.tags]
    assert names == ["jit", "jit", "add"]
    (first,), (second,) = (tagged.tagger.inner[tag].values() for tag in tagged.tags[:2])
    assert first == second
    assert [tagged.tagger.equations[tag].primitive.name for tag in first[1]] == ["sin", "mul"]
    for call in tagged.tags[:2]:
        assert f"T{call}T/jit(inner)/T{first[1][0]}T/sin" in tagged.text.replace("jit(inner)/jit(inner)", "jit(inner)")


def test_a_generated_program_gives_each_operation_a_constant_of_its_own():
    tagged = tagged_program(*generate(0))
    literals = [
        float(atom.val)
        for equation in tagged.tagger.equations
        for atom in equation.invars
        if hasattr(atom, "val") and float(atom.val) % 1
    ]
    assert len(literals) > 10
    assert len(literals) == len(set(literals))
