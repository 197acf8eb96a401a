"""A recording says how many passes are done, and how many there will be about once one was recorded before."""

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.view import pass_count


def step(x):
    for _ in range(20):
        x = jnp.tanh(x @ x) + jnp.sort(x, axis=0)
    return x


@pytest.fixture
def capture(monkeypatch):
    monkeypatch.setattr(pass_count, "_TICK", 0.002)
    monkeypatch.setattr(pass_count, "_counts", {})
    return ex.explore(step, jnp.ones((16, 16)))


def files_after_passes(folder):
    options = {"xla_dump_to": str(folder), "xla_dump_hlo_pass_re": ".*", "xla_dump_hlo_as_text": True}
    jax.jit(step).lower(jnp.ones((16, 16))).compile(options)
    return len(list(folder.glob("*.after_*")))


def test_who_listens_hears_how_many_passes_are_done(capture, tmp_path):
    heard = []
    with pass_count.listening_to_passes(lambda done, expected: heard.append((done, expected))):
        _ = capture.passes
        capture = ex.explore(step, jnp.ones((16, 16)))
        _ = capture.passes
    last = max(done for done, _ in heard)
    written = files_after_passes(tmp_path)
    first = [done for done, expected in heard if expected is None]
    again = [done for done, expected in heard if expected is not None]
    assert first == sorted(first)
    assert 0 < last <= written
    assert again
    assert {expected for _, expected in heard} == {None, written}


def test_more_passes_than_were_expected_leave_no_estimate():
    assert pass_count.describe(83, 140) == "pass 83 of about 140"
    assert pass_count.describe(141, 140) == "pass 141"
    assert pass_count.describe(3, None) == "pass 3"


def test_a_listener_that_fails_costs_nothing(capture):
    def fail(done, expected):
        raise RuntimeError

    with pass_count.listening_to_passes(fail):
        assert len(capture.passes)
