"""Programs as people write them are compiled, and do the same."""

import jax
import pytest

from explorer.hotpath.proof import Refusal, prove
from tests.unit.hotpath.oracle import account_of
from tests.unit.hotpath.real_programs import REAL


@pytest.mark.parametrize(("function", "args"), REAL, ids=lambda value: getattr(value, "__name__", ""))
def test_it_is_proven_to_compute_only(function, args):
    proof = prove(function, args, {})
    assert not isinstance(proof, Refusal), proof


@pytest.mark.slow
@pytest.mark.parametrize(("function", "args"), REAL[::3], ids=lambda value: getattr(value, "__name__", ""))
def test_it_does_the_same_compiled(function, args, monkeypatch):
    monkeypatch.setattr("explorer.hotpath.comparison._FASTER", 0.0)

    def make():
        return function, [(args, {})] * 5, list

    expected, _ = account_of(make, is_hot=False)
    found, hot = account_of(make, is_hot=True)
    assert found == expected
    assert hot.calls["compiled"], hot.refusal
    jax.clear_caches()
