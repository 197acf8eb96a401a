"""On models of which ablation decides the hottest line, the profile names that line, and its figures add up."""

import pytest

from tests.corpus_profile.ablation import MODELS, load
from tests.corpus_profile.score import profiled

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=MODELS)
def found(request):
    """One model, its profile, and the seconds of its lines; the ablation's verdict is the mark in its text."""
    model = load(request.param)
    return model, *profiled(model)


def test_the_hottest_line_is_the_marked_one(found):
    model, profile, attributed = found
    assert max(attributed, key=attributed.__getitem__) == model.marked, f"{profile}"


def test_lines_and_what_is_in_none_sum_to_the_device_time(found):
    _, profile, _ = found
    total = sum(line.seconds for line in profile.lines) + profile.unattributed
    assert total == pytest.approx(profile.device_seconds, rel=0.02)


def test_kernels_sum_to_the_device_time(found):
    _, profile, _ = found
    assert sum(op.seconds for op in profile.ops) == pytest.approx(profile.device_seconds, rel=0.02)
