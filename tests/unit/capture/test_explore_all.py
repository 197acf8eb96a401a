"""explore_all(): many functions here or on workers, what is recorded, what fails."""

from concurrent.futures import ThreadPoolExecutor

import jax.numpy as jnp
import pytest

import explorer as ex


def halved(x):
    return jnp.tanh(x) / 2


def broken(x):
    return x.reshape(7)


CALLS = {"halved": ex.Call(halved, jnp.ones(4)), "broken": ex.Call(broken, jnp.ones(4))}


def test_each_has_a_capture_by_its_name_and_one_that_fails_says_why():
    captures = ex.explore_all(CALLS)
    assert [stage.name for stage in captures["halved"].stages] == ["jaxpr", "stablehlo", "hlo"]
    assert "reshape" in captures["broken"].failure


def test_on_workers_with_their_passes_recorded():
    with ThreadPoolExecutor(2) as executor:
        captures = ex.explore_all(CALLS, record=True, executor=executor)
    assert len(captures["halved"].passes)
    assert captures["halved"].coverage("hlo", grade="exact") > 0
    assert "reshape" in captures["broken"].failure


@pytest.mark.parametrize("calls", [[halved], {"halved": halved}])
def test_what_is_no_call_is_refused(calls):
    with pytest.raises(ex.errors.ArgumentsError, match="Call"):
        ex.explore_all(calls)


def test_nothing_to_explore_is_refused():
    with pytest.raises(ex.errors.OptionError, match="empty"):
        ex.explore_all({})
