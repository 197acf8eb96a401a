"""Public gotchas about gradients: found, and every cure that is told or written computes what NumPy does."""

import pytest

from tests.corpus_pitfalls.gradient_cures import judgements, table

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=[True, False], ids=["differentiated", "alone"])
def results(request):
    return list(judgements(request.param))


def test_each_point_shows_what_it_is_to_show(results):
    assert [one.name for one in results if not one.shows] == []


def test_gotchas_are_found_and_the_others_are_not(results):
    gotchas = [one for one in results if one.is_gotcha]
    assert sum(bool(one.found) for one in gotchas) >= 0.93 * len(gotchas), "\n" + table(results)
    assert [one.name for one in results if not one.is_gotcha and one.found not in ("", "note")] == []


def test_no_cure_is_wrong(results):
    wrong = [(one.name, one.told, one.written) for one in results if {one.told, one.written} - {"", "right"}]
    assert wrong == []


def test_most_gotchas_have_a_cure_that_is_written(results):
    gotchas = [one for one in results if one.is_gotcha]
    assert sum(one.written == "right" for one in gotchas) >= 0.85 * len(gotchas), "\n" + table(results)
