"""The page of each rule: its bad program has the pitfall, its good one hasn't, and silencing works as the page says."""

import re

import pytest

import explorer as ex
from docs.pages.rule_examples import examples, outcomes
from docs.pages.rules import pages
from explorer.pitfalls.rule import all_rules, explain_rule, rule_named, silencing

RULES = [rule.name for rule in all_rules()]


def test_each_rule_has_an_example():
    assert [example.rule for example in examples()] == RULES


def test_a_program_has_what_it_needs_above_it():
    for example in examples():
        for program in (example.bad, example.good):
            assert program.startswith("import explorer as ex\n")
            compile(program, "page", "exec")


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
def test_the_bad_program_is_found_and_the_good_one_is_not(name):
    outcome = outcomes()[name]
    in_bad, in_good = outcome.rules
    assert name in in_bad
    assert name not in in_good
    assert outcome.faults == ()


@pytest.mark.slow
def test_each_rule_has_a_page_that_the_index_names():
    written = pages()
    for rule in all_rules():
        assert f"\n{rule.code}\n" in written["index"]
        assert rule.documentation in written[rule.code]
        assert outcomes()[rule.name].text in written[rule.code]


def test_a_rule_is_silenced_as_its_page_says():
    def f(x):
        print("traced")  # explorer: ignore[EX001]
        return x * 2

    def g(x):
        print("traced")
        return x * 2

    (line, call, _) = silencing(rule_named("EX001"))
    assert "# explorer: ignore[EX001]" in line
    assert not ex.lint(f, 1.0).of("EX001")
    assert ex.lint(g, 1.0).of("EX001")
    option = re.search(r'ignore="([^"]+)"', call)[1]
    assert not ex.lint(g, 1.0, ignore=option).of("EX001")


def test_a_rule_is_explained_by_its_number_and_by_its_name():
    assert rule_named("ex012") is rule_named("unrolled-loop")
    assert rule_named("EX999") is None
    assert "A Python loop is unrolled" in explain_rule(rule_named("EX012"))
