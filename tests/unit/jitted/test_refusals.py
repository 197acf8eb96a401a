"""Why a call of a jitted function failed: which argument, where, and what to do; at the first call and later."""

import copy
import pickle
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from explorer.jitted import jit

X = jnp.arange(3.0)


def refused(kind, call):
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert "called at  test_refusals.py, line" in message
    return message


class Setting:
    def __init__(self, by):
        self.by = by

    __hash__ = None


class Grumpy:
    def __hash__(self):
        return 1

    def __eq__(self, other):
        raise NotImplementedError


def add_one(x, n):
    return x + 1


@pytest.mark.parametrize("state", [None, [jnp.zeros(3)]], ids=["plain", "state"])
@pytest.mark.parametrize("option", [{"static_argnums": 1}, {"static_argnames": "n"}], ids=["number", "name"])
@pytest.mark.parametrize(
    ("value", "what", "hint"),
    [
        ([1], "is list, which has no hash", "give tuple(n)"),
        ({1}, "is set, which has no hash", "give frozenset(n)"),
        ({"a": 1}, "is dict, which has no hash", "give tuple(sorted(n.items()))"),
        (np.ones(2), "is ndarray, which has no hash", "leave `n` out of static_argnums and static_argnames"),
        (Setting(2), "is Setting, which has no hash", "@dataclass(frozen=True)"),
    ],
)
def test_a_static_argument_without_a_hash_is_named(value, what, hint, option, state):
    step = jit(add_one, inputs=state, **option)
    with pytest.raises(ValueError, match=r"[Nn]on-hashable"):
        jax.jit(lambda x, n: x, **option)(X, value)
    message = refused(ex.errors.StaticArgumentError, lambda: step(X, value))
    assert f"static argument `n` of add_one {what}" in message
    assert hint in message.partition("Hint: ")[2]


def test_a_static_argument_that_cannot_be_compared_is_named():
    step = jit(lambda x, n: x + 1, inputs=[jnp.zeros(3)], static_argnums=1)

    def call():
        step(X, Grumpy())
        step(X, Grumpy())

    assert "is Grumpy, whose == raises NotImplementedError" in refused(ex.errors.StaticArgumentError, call)


def test_a_static_argument_that_has_a_hash_is_none_of_this():
    @dataclass(frozen=True)
    class Config:
        by: float

    step = jit(lambda x, c: x * c.by, static_argnames="c")
    for by in (2.0, 3.0, 2.0):
        np.testing.assert_array_equal(step(X, Config(by)), by * X)
    assert len(step.specializations) == 2
    with pytest.raises(ValueError, match="of the user's"):
        jit(lambda x, n: (_ for _ in ()).throw(ValueError("of the user's")), static_argnums=1)(X, 1)


@pytest.mark.parametrize("has_run", [False, True], ids=["first", "later"])
@pytest.mark.parametrize("state", [None, [jnp.zeros(3)]], ids=["plain", "state"])
def test_an_array_that_was_donated_is_named_where_it_is_used_again(state, has_run):
    def step(tree, x):
        return {"w": tree["w"] + x}

    ours = jit(step, inputs=state, donate_argnames="tree")
    tree = {"w": jnp.ones(3)}
    new = ours(tree, X)
    if has_run:
        new = ours(new, X)
    message = refused(ex.errors.DonatedInputError, lambda: ours(tree, X))
    assert message.startswith("input `tree['w']` of step was donated to an earlier call")
    assert "use what that call returned" in message
    with pytest.raises((ValueError, RuntimeError)):
        jax.jit(step, donate_argnums=0)(tree, X)


def keeping(kept):
    def keep(x):
        kept.append(x * 2)
        return x

    jax.jit(keep)(X)


@pytest.mark.parametrize("has_run", [False, True], ids=["first", "later"])
def test_a_value_that_another_trace_left_behind_is_told_in_the_users_lines_alone(has_run):
    kept = []
    keeping(kept)

    def uses(x):
        return x + kept[0] if x.ndim == 1 else x

    step = jit(uses)
    if has_run:
        step(1.0)
    with pytest.raises(jax.errors.UnexpectedTracerError) as caught:
        step(X)
    assert isinstance(caught.value, ex.errors.TracedValueError)
    message = str(caught.value)
    assert message.startswith(
        "uses could not be compiled: it uses a value that was kept from the trace of keep (float32[3])."
    )
    assert "kept.append(x * 2)" in message
    assert "site-packages" not in message
    assert "pjit.py" not in message


@pytest.mark.parametrize("has_run", [False, True], ids=["first", "later"])
def test_an_argument_that_another_trace_left_behind_is_told_alike(has_run):
    kept = []
    keeping(kept)
    step = jit(lambda x: x + 1)
    if has_run:
        step(X)
    with pytest.raises(ex.errors.TracedValueError, match="kept from the trace of keep"):
        step(kept[0])


def tripled(x, by=3.0):
    return x * by


def test_a_jitted_function_can_be_pickled_and_copied():
    step = jit(tripled, static_argnames="by", keep_unused=True)
    again = pickle.loads(pickle.dumps(step))
    np.testing.assert_array_equal(again(X, by=2.0), 2 * X)
    assert repr(again) == repr(step) == "jit(tripled, static_argnames=('by',), keep_unused=True)"
    assert step.__getstate__()["function_name"] == jax.jit(tripled).__getstate__()["function_name"] == "tripled"
    for other in (copy.copy(step), copy.deepcopy(step)):
        np.testing.assert_array_equal(other(X), 3 * X)
