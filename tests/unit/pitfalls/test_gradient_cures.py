"""Public gotchas about gradients: found, and every cure that is told or written computes what NumPy does.

A third of them, for each takes seconds; `python -m tests.corpus_pitfalls.gradient_cures` judges all.
"""

import pytest

from tests.corpus_pitfalls import held_out_gradients
from tests.corpus_pitfalls.gradient_cures import judgements, table
from tests.corpus_pitfalls.public_gradients import CASES

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def results():
    return list(judgements(cases=[*CASES[::3], *held_out_gradients.CASES[::3]]))


def test_each_point_shows_what_it_is_to_show(results):
    assert [one.name for one in results if not one.shows] == []


def test_gotchas_are_found_and_the_others_are_not(results):
    gotchas = [one for one in results if one.is_gotcha]
    assert sum(bool(one.found) for one in gotchas) >= 0.9 * len(gotchas), "\n" + table(results)
    assert [one.name for one in results if not one.is_gotcha and one.found not in ("", "note")] == []


def test_no_cure_is_wrong(results):
    wrong = [(one.name, one.told, one.written) for one in results if {one.told, one.written} - {"", "right"}]
    assert wrong == []


def test_most_gotchas_have_a_cure_that_is_written(results):
    gotchas = [one for one in results if one.is_gotcha]
    assert sum(one.written == "right" for one in gotchas) >= 0.85 * len(gotchas), "\n" + table(results)


def test_what_is_found_depends_on_nothing_that_was_traced_before(results):
    """Of two of the cases in other company: where JAX remembers the functions that they call, and where it doesn't."""
    cases = [case for case in CASES if case.function.__name__ in ("sum_without_nan", "divergence_from_uniform")]
    for differentiated in (False, True, False):
        assert [one.found != "" for one in judgements(differentiated, cases)] == [True, True]
