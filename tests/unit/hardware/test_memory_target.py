"""What is in memory on hardware that isn't here, held against its compiler's own buffer assignment."""

from pathlib import Path

import pytest

import explorer as ex
from explorer.model.units import bytes_text
from tests.corpus_memory.targets import outcome_for
from tests.corpus_targets.programs import PROGRAMS
from tests.corpus_targets.sized import SIZED

SMALL = {program.name: program for program in PROGRAMS}
LARGE = {program.name: program for program in SIZED}


@pytest.mark.slow
@pytest.mark.parametrize("fixture", ["tpu", "cuda"])
@pytest.mark.parametrize("name", ["attention", "residual convolution"])
def test_small_programs_fill_what_the_compiler_assigns(name, fixture, request, tmp_path: Path) -> None:
    program = SMALL[name]
    outcome = outcome_for(name, program.function, program.args, request.getfixturevalue(fixture), tmp_path)
    assert outcome.is_near, outcome


@pytest.mark.slow
def test_what_a_tpus_compiler_reserves_is_said_and_what_of_it_is_in_no_buffer_yet(tpu, tmp_path: Path) -> None:
    program = LARGE["attention"]
    outcome = outcome_for("attention", program.function, program.args(256), tpu, tmp_path)
    assert outcome.is_near, outcome
    memory = ex.explore(ex.Call(program.function, *program.args(256)), target=tpu).live_memory
    assert memory.reserved == pytest.approx(outcome.allocated, rel=0.001)
    assert memory.peak + sum(memory.besides.values()) == memory.reserved
    assert memory.besides["outputs that aren't written yet"] == 256 * 1024 * 8 * 128 * 2
    assert f"of the {bytes_text(memory.reserved)} that the compiler reserves" in memory.headline


@pytest.mark.slow
def test_temporaries_of_a_loop_are_those_of_the_assignment_by_which_the_compiler_refuses(tpu, tmp_path: Path) -> None:
    program = LARGE["gradient of a scan"]
    outcome = outcome_for("gradient of a scan", program.function, program.args(512), tpu, tmp_path)
    uses = ex.explore(ex.Call(program.function, *program.args(512)), target=tpu).memory
    assert uses["argument"] + uses["output"] + uses["temp"] == pytest.approx(outcome.allocated, rel=0.001)
    # 16,000 take 15.6 of 15.75 GiB, and memory_analysis() says 18.6.
    use = ex.memory(program.function, *program.args(16_000), target=tpu)
    assert use.fits(use.rows[0])
