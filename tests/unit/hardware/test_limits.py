"""Whether a program fits, around the limit of a device: what is said, against its compiler without Explorer."""

import math

import pytest

from explorer.model.results.memory_use import MemoryRow, MemoryUse
from tests.corpus_targets.limits import program_cases
from tests.corpus_targets.sized import SIZED


@pytest.mark.slow
def test_around_its_limit_a_program_fits_where_the_compiler_alone_takes_it(tpu: str) -> None:
    (program,) = (program for program in SIZED if program.name == "gradient of a scan")
    cases = list(program_cases(program, tpu, around=(0.98, 1.02)))
    assert [case.by_compiler for case in cases] == ["fits", "fits", "memory", "memory"]
    assert all(case.is_agreed for case in cases), cases


@pytest.mark.parametrize("limit", [0, 10, 1000])
def test_a_row_of_which_only_a_part_is_known_is_never_said_to_fit(limit: int) -> None:
    part, whole = (MemoryRow((), {}, {"argument": 100}, is_least=is_least) for is_least in (True, False))
    use = MemoryUse("f", "", (), [part, whole], "a device", limit)
    assert [use.fits(row) for row in use] == [False, limit != 10]
    assert use.table()[1][-1] == "no"
    assert not use.fits(MemoryRow((), {}, error="refused"))
    assert math.isnan(MemoryRow((), {}, error="refused").needed)
