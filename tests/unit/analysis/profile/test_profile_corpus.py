"""On models of which ablation decides the hottest line, the profile names that line or ties it, and figures add up."""

import pytest

from tests.corpus_profile.ablation import LIBRARIES, MODELS, Model, ablated, load, seconds_of
from tests.corpus_profile.score import profiled

pytestmark = pytest.mark.slow
TRIES = 4  # what else runs on the machine may slow one kernel down for a while, but not the same line each time
# Memory moved once for five lines in two kernels: without any of them but one the other pass stays. The profile shares
# it by what each line computes.
MISSED = {"optax_adamw"}


def hottest_here(model: Model) -> int:
    """What ablation says on this machine: the marks were made on another, whose products may have been faster."""
    lines = list(model.candidates)
    whole, *without = seconds_of([model.full, *(ablated(model, line) for line in lines)], 15)
    return max(zip(lines, without, strict=True), key=lambda line: whole - line[1])[0]


@pytest.mark.parametrize("name", [*MODELS, *LIBRARIES])
def test_the_hottest_line_is_the_marked_one_or_ties_with_it_and_the_figures_add_up(name):
    try:
        model = load(name)  # the ablation's verdict is the mark in its text
    except ModuleNotFoundError as error:
        pytest.skip(f"{error.name} is not installed")
    named = []
    for _ in range(TRIES):
        profile, attributed = profiled(model)
        total = sum(line.seconds for line in profile.lines) + profile.unattributed
        assert total == pytest.approx(profile.device_seconds, rel=0.01)
        assert sum(op.seconds for op in profile.ops) == pytest.approx(profile.device_seconds, rel=0.01)
        named.append([line.line for line in profile.hottest])
        if model.marked == max(attributed, key=attributed.__getitem__) or model.marked in named[-1]:
            return
    here = hottest_here(model)
    if here != model.marked and any(here in lines for lines in named):
        return
    fail = pytest.xfail if name in MISSED else pytest.fail
    fail(f"the profile names {named}, the ablation line {model.marked}, here {here}:\n{profile}")
