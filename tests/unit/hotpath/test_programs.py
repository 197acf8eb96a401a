"""A program that runs hot does what it does when nobody looks: results, prints, errors, what it leaves behind."""

import pytest

from tests.unit.hotpath import traps_calls, traps_outside, traps_results  # noqa: F401 - they add to the traps
from tests.unit.hotpath.oracle import account_of
from tests.unit.hotpath.programs import FINE, TRAPS


@pytest.mark.parametrize("make", TRAPS, ids=lambda make: make.__name__)
def test_a_trap_does_the_same(make, monkeypatch):
    monkeypatch.setattr("explorer.hotpath.comparison._FASTER", 0.0)  # whether it is worth it must not decide
    expected, _ = account_of(make, is_hot=False)
    found, _ = account_of(make, is_hot=True)
    assert found == expected


@pytest.mark.parametrize("make", FINE, ids=lambda make: make.__name__)
def test_what_only_computes_is_compiled_and_does_the_same(make, monkeypatch):
    monkeypatch.setattr("explorer.hotpath.comparison._FASTER", 0.0)  # whether it is worth it is another matter
    expected, _ = account_of(make, is_hot=False)
    found, hot = account_of(make, is_hot=True)
    assert found == expected
    assert hot.refusal is None
    assert hot.calls["compiled"]
