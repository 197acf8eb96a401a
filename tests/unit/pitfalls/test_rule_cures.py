"""Every cure that a rule tells or writes: put in to the letter, the pitfall is gone and the results are right.

One of the programs is fast; `python -m tests.corpus_pitfalls.rule_cures` judges all and prints the figures.
"""

import pytest

from explorer.pitfalls.rule import all_rules
from explorer.pitfalls.rule_sharding import SHARDED
from tests.corpus_pitfalls.rule_cures import CASES, judgements, table

SAMPLE = [next(case for case in CASES if case.rule == "boolean-mask")]


def test_a_program_is_cured_by_what_is_told():
    results = list(judgements(SAMPLE))
    assert [one.told for one in results] == ["right"] * len(results), table(results)


@pytest.mark.slow
def test_each_rule_has_its_cures_judged():
    judged = {case.rule for case in CASES} | {
        "nan-gradient",
        "stays-eager",
        *SHARDED,
    }  # whose judges are `gradient_cures`, `test_cures`, `test_sharded`
    assert {rule.name for rule in all_rules()} == judged


@pytest.fixture(scope="module")
def results():
    return list(judgements())


@pytest.mark.slow
def test_each_program_shows_its_pitfall_and_is_found_with_the_sentence_that_is_judged(results):
    assert [one.shows for one in results if one.shows] == [], table(results)


@pytest.mark.slow
def test_each_cure_that_is_told_is_right(results):
    assert [(one.case.rule, one.told) for one in results if one.told != "right"] == [], table(results)


@pytest.mark.slow
def test_no_rewrite_is_wrong_and_no_fewer_are_written(results):
    written = [one.written for one in results if one.written]
    assert set(written) == {"right"}, table(results)
    assert len(written) >= 30
