"""On a hundred snippets whose pitfalls are marked, and clean real code: what is marked is found, and little else."""

import pytest

from tests.corpus_pitfalls.score import outcomes, precision, recall, table

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def corpus():
    return list(outcomes())


@pytest.fixture(scope="module", autouse=True)
def told(corpus):
    """The table of what was missed and what was a false alarm; pytest shows it where a test fails."""
    print(table(corpus))


def test_what_is_marked_is_found(corpus):
    assert recall(corpus) >= 0.95, "\n" + table(corpus)


def test_what_is_found_is_marked(corpus):
    assert precision(corpus) >= 0.95, "\n" + table(corpus)


def test_no_clean_code_has_an_error(corpus):
    wrong = [(one.name, *key) for one in corpus if not one.expected for key, how in one.found.items() if how == "error"]
    assert wrong == []


def test_no_rule_fails(corpus):
    assert [(one.name, fault) for one in corpus for fault in one.faults] == []
