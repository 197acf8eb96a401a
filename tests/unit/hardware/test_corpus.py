"""A handful of the programs of `python -m tests.corpus_targets`, which has fifty."""

import pytest

from tests.corpus_targets.judge import judge
from tests.corpus_targets.programs import PROGRAMS

HANDFUL = ("attention", "a descent step", "Cholesky", "FFT filter", "remat in a scan", "sort")


def test_there_are_fifty_programs_of_different_names() -> None:
    assert len(PROGRAMS) == len({program.name for program in PROGRAMS}) == 50


@pytest.mark.slow
@pytest.mark.parametrize("target", ["h100", "8xh100", "v5e:4x4"])
def test_programs_of_many_kinds_open_with_links_fates_and_memory(target: str, cuda: str, tpu: str) -> None:
    outcomes = [judge(program, target) for program in PROGRAMS if program.name in HANDFUL]
    assert not [outcome.stained for outcome in outcomes if outcome.stained]
    # Cholesky is a routine of cuSOLVER's on a GPU: what JAX calls there comes with the compiler.
    assert all(outcome.opens for outcome in outcomes), [outcome.error for outcome in outcomes]
    # What is a library's own function, as jnp.sort, has no line of the user's to be linked to.
    assert all(outcome.coverage > 0.5 for outcome in outcomes if outcome.opens and outcome.name != "sort")
