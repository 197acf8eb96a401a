"""How a function is called again: donation, weak types, symbolic sizes."""

import warnings
from functools import partial

import jax
import jax.numpy as jnp
import pytest
from flax import nnx
from jax import export

from explorer import InputInfo, NamedDimension
from explorer.pitfalls.lint import lint
from tests.support.jaxpr_rules import findings, only, piece

X = jnp.ones(3)
HELD = jnp.ones(7)


@partial(jax.jit, donate_argnums=0)
def update(state, x):
    return state + x


@partial(jax.jit, donate_argnames="state")
def update_held(state, x):
    return state + HELD * x


@partial(jax.jit, donate_argnums=0)
def advance(carry, x):
    return carry * x


@partial(jax.jit, donate_argnums=0)
def replace(params, x):
    return jax.tree.map(lambda p: p - x, params)


def reads_after():
    state = jnp.ones(3)
    new = update(state, 1.0)
    return new + state  # wrong


def donates_in_each_turn():
    carry = jnp.ones(3)
    for i in range(3):
        out = advance(carry, i)
    return out


def hands_on():
    params = jnp.ones(3)
    for i in range(3):
        params = replace(params, i)
    other = replace(params, 1.0)

    def later(params):
        return params * 2

    params = later(other)
    if params is not None:
        out = replace(params, 2.0)
    return out


def test_an_array_that_was_donated_and_is_read_after_is_found_in_the_text():
    found = only("donated-reuse", update, X, 1.0)
    assert (found.severity, piece(found), found.text) == ("error", "state", "return new + state  # wrong")
    with pytest.raises((RuntimeError, ValueError), match="deleted"):  # JAX or its runtime
        reads_after()


def test_one_that_is_donated_again_in_the_next_turn_is_found():
    found = only("donated-reuse", advance, X, 1.0)
    assert (piece(found), found.text) == ("carry", "out = advance(carry, i)")
    with pytest.raises((ValueError, RuntimeError), match="deleted"):
        donates_in_each_turn()


def test_state_that_is_handed_on_is_fine():
    assert findings("donated-reuse", replace, X, 1.0) == []
    hands_on()


def test_one_array_as_two_arguments_is_found():
    found = [one for one in findings("donated-reuse", update, X, X) if one.line == reads_after.__code__.co_firstlineno]
    assert found == []
    same = next(one for one in findings("donated-reuse", update, X, X) if "the same array" in one.message)
    assert (same.severity, piece(same)) == ("error", "x")


def test_one_that_the_function_also_has_by_its_own_name_is_found():
    found = only("donated-reuse", update_held, HELD, 1.0)
    assert piece(found) == "state"
    assert "is also `HELD`" in found.message


def sums(x):
    return x.sum()


def narrows(state, x):
    return {"a": state["a"] + x, "b": state["b"][:2]}


def test_arrays_that_two_trees_share_are_one_finding_that_counts_them():
    step = jax.jit(lambda state, old: jax.tree.map(jnp.add, state, old), donate_argnums=0)
    state = {"a": X, "b": X + 1, "c": X + 2}
    shared = [one for one in findings("donated-reuse", step, state, dict(state)) if "the same array" in one.message]
    assert ["and so are 2 more" in one.message for one in shared] == [True]


@pytest.mark.parametrize(
    ("function", "args", "named"),
    [(sums, (X,), "`x`"), (narrows, ({"a": X, "b": jnp.ones(4)}, 1.0), "`state['b']`")],
)
def test_a_donation_that_no_result_can_use_is_named_where_jax_warns_of_it_when_it_lowers(function, args, named):
    jitted = jax.jit(function, donate_argnums=0)
    found = only("unusable-donation", jitted, *args)
    assert found.severity == "warning"
    assert f"donates {named}" in found.message
    assert piece(found) == found.message.split("`")[1].partition("[")[0]
    with pytest.warns(UserWarning, match="donated buffers were not usable"):
        jitted.trace(*args).lower()


def test_a_result_of_other_bytes_takes_no_memory_though_jax_says_nothing():
    def halves(x):
        return x.astype(jnp.bfloat16)

    jitted = jax.jit(halves, donate_argnums=0)
    assert "donates `x`" in only("unusable-donation", jitted, X).message
    assert jitted.lower(X).compile().memory_analysis().alias_size_in_bytes == 0


def test_donations_that_fit_are_fine_and_jax_says_nothing_either():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        update.trace(X, 1.0).lower()
    assert findings("unusable-donation", update, X, 1.0) == []
    assert findings("unusable-donation", sums, X) == []


# Weak types ----------------------------------------------------------------------------------------------------------


def counts(state, x):
    return {"n": state["n"] + jnp.int32(1), "w": state["w"] + x.sum()}, x


def test_state_that_goes_in_as_a_number_and_comes_out_as_an_array_is_found():
    found = findings("weak-type", counts, {"n": 0, "w": jnp.float32(0)}, X)
    assert [(one.severity, piece(one)) for one in found] == [("warning", "state")]
    assert "state['n']" in found[0].message
    assert "jnp.int32" in found[0].fix.text


def test_it_does_compile_again_and_not_with_the_cure():
    for first, compiles in ((0, 2), (jnp.asarray(0, dtype=jnp.int32), 1)):
        step = jax.jit(partial(counts))  # one that JAX doesn't know yet
        state = {"n": first, "w": jnp.float32(0)}
        for _ in range(3):
            state, _ = step(state, X)
        assert step._cache_size() == compiles


def test_a_single_number_is_a_note():
    found = only("weak-type", lambda n: n + jnp.float32(1), 1.0)
    assert (found.severity, piece(found)) == ("note", "n")


def test_two_numbers_that_become_two_numbers_are_only_a_note():
    def derivative(values, directions):
        return values[0] * jnp.float32(2), directions[1] * jnp.float32(3)

    notes = findings("weak-type", derivative, (1.0, 2.0), (3.0, 4.0))
    assert {one.severity for one in notes} == {"note"}


def test_arguments_of_a_type_that_a_library_adds_have_no_weak_type():
    variable = nnx.Variable(jnp.ones(3), hijax=True)
    assert findings("weak-type", lambda v, x: (v * x, x), variable, 2.0) == []


def test_state_that_keeps_its_type_is_fine():
    assert findings("weak-type", counts, {"n": jnp.int32(0), "w": jnp.float32(0)}, X) == []
    assert findings("weak-type", lambda s, x: ({"n": s["n"] + 1}, x), {"n": 0}, X) == []
    assert findings("weak-type", lambda x: jnp.tanh(x) * 2, 1.0) == []
    assert findings("weak-type", lambda x, scale: x * scale, X, 2.0) == []


# Symbolic sizes ------------------------------------------------------------------------------------------------------


def of_rows(*names):
    return jax.ShapeDtypeStruct(export.symbolic_shape(", ".join(names)), jnp.float32)


def special_for_one(x):
    if x.shape[0] == 1:
        return x.sum()
    return x.mean()


def by_remainder(x):
    return x * (2 if len(x.shape) == 2 and x.shape[0] != 4 else 3)


def test_an_equality_of_a_symbolic_size_is_pointed_at():
    found = only("symbolic-equality", special_for_one, of_rows("b", "3"))
    assert (found.severity, piece(found)) == ("error", "x.shape[0] == 1")
    assert "b == 1" in found.message
    assert "b == 4" in only("symbolic-equality", by_remainder, of_rows("b", "3")).message


def test_sizes_of_input_infos_that_vary_are_asked_all_at_once():
    batch = NamedDimension("batch", 1, 8, 64)
    rows = InputInfo((batch, 3), jnp.float32)
    labels = InputInfo(((1, 8, 64),), jnp.int32)
    found = lint(lambda x, y: special_for_one(x) + y.sum(), rows, labels).of("symbolic-equality")
    assert [piece(one) for one in found] == ["x.shape[0] == 1"]
    assert "batch == 1" in found[0].message
    several = InputInfo((NamedDimension("batch", 2, 8, 64), 3), jnp.float32)
    assert not lint(special_for_one, several).of("symbolic-equality")


def test_what_can_not_be_traced_for_all_sizes_is_traced_for_those_it_is_optimised_for(capsys):
    def halved(x):
        if x.shape[0] > 4:
            print(x.shape)
            x = x[:4]
        return x

    found = lint(halved, InputInfo((NamedDimension("batch", 1, 8, 64), 3), jnp.float32))
    assert not found.failure
    assert capsys.readouterr().out == "(8, 3)\n"
    assert [one.rule for one in found] == ["impure-print"]


def test_comparisons_that_hold_for_all_sizes_and_sizes_that_are_known_are_fine():
    assert findings("symbolic-equality", special_for_one, jnp.ones((1, 3))) == []
    assert findings("symbolic-equality", lambda x: x if x.shape[0] >= 1 else -x, of_rows("b", "3")) == []
    assert findings("symbolic-equality", lambda x: jax.nn.softmax(x @ x.T), of_rows("b", "3")) == []
