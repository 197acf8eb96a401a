"""What the figures of a function on a hot path come to."""

import pytest

import explorer as ex


def row(**more):
    given = {
        "compiled_calls": 100, "eager_seconds": 0.010, "compiled_seconds": 0.002, "compile_seconds": 0.3,
        "eager_interval": (0.009, 0.012), "compiled_interval": (0.001, 0.004),
    }  # fmt: skip
    return ex.types.HotRow("step", "train.py", 12, "compiled", **{**given, **more})


def test_what_a_compile_saved_is_what_its_calls_would_have_taken_less_the_wait_for_it():
    waited = row(is_background=False)
    assert waited.speedup == pytest.approx(5)
    assert waited.saved_seconds == pytest.approx(100 * 0.008 - 0.3)
    # Between the slowest compiled call beside the fastest eager one, and the other way round.
    assert waited.saved_interval == pytest.approx((100 * (0.009 - 0.004) - 0.3, 100 * (0.012 - 0.001) - 0.3))


def test_a_compile_beside_the_program_made_nobody_wait():
    beside = row(is_background=True)
    assert beside.saved_seconds == pytest.approx(0.8)
    assert beside.saved_interval == pytest.approx((0.5, 1.1))
