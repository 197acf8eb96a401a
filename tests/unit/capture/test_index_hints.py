"""What is told instead of an index without a value: put in its place, it computes what the index did."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from tests.support.quick import quick

X = jnp.array([[0.5, -1.0, 2.0], [-3.0, 4.0, -0.25]])
ROWS = [np.full(3, float(i)) for i in range(3)]
BY_NUMBER = {0: 1.5, 2: -2.0, 7: 3.0}
BY_NAME = {"a": 1.0}
STEPS = [jnp.sin, jnp.cos]
BY_STEP = {3: jnp.sin, 5: jnp.cos}

MASKS = {
    "sum": lambda x: x[x > 0].sum(),
    "mean": lambda x: jnp.mean(x[x > 0]),
    "mean_of_get": lambda x: x.at[x > 0].get().mean(),
    "std": lambda x: x[x > 0].std(),
    "prod": lambda x: jnp.prod(x[x < 0]),
    "max": lambda x: x[x < 0].max(),
    "min": lambda x: jnp.min(x[x > 0]),
    "all": lambda x: (x[x > 0]).all(),
    "median": lambda x: jnp.median(x[x > 0]),
    "of_more": lambda x: jnp.mean((x * 2)[x > 0]),
}


def told(function, *args):
    return ex.lint(function, *args)[0].fix.text.partition("\nor, ")[0]


@pytest.mark.parametrize("name", quick(MASKS, {"sum", "mean_of_get", "max", "all", "of_more"}))
def test_what_is_told_for_a_reduced_mask_gives_the_same(name):
    function = MASKS[name]
    text = told(function, X)
    instead = jax.jit(eval(f"lambda x: {text}", {"jnp": jnp}))
    with jax.disable_jit():
        np.testing.assert_allclose(instead(X), function(X), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(instead)(X), function(X), rtol=1e-6)


def test_what_is_told_for_a_mask_of_rows_has_an_axis_for_the_others():
    def f(x, rows):
        return x[rows].mean()

    rows = jnp.array([True, False])
    text = told(f, X, rows)
    assert text == "x.mean(where=rows[..., None])"
    np.testing.assert_allclose(eval(text, {"x": X, "rows": rows}), f(X, rows))


def test_a_mask_whose_use_is_not_seen_is_told_with_no_number_to_fill_in():
    def f(x):
        chosen = x.at[x > 0].get()
        return chosen.mean()

    assert told(f, X).startswith("jnp.where(x > 0, x, fill) keeps the shape")


def test_an_update_that_a_mask_can_not_make_is_told_with_what_it_does():
    def f(x, y):
        return x.at[x > 0].multiply(y)

    assert told(f, X, jnp.ones(3)) == "jnp.where(x > 0, x * y, x)"


ITEMS = {
    "list": (lambda i: ROWS[i], lambda: ROWS[2], 2),
    "dict": (lambda i: BY_NUMBER[i], lambda: BY_NUMBER[7], 7),
    "tuple": (lambda i: (1.0, 2.0)[i], lambda: 2.0, 1),
}


@pytest.mark.parametrize("name", ITEMS)
def test_what_is_told_for_an_item_gives_it(name):
    function, expected, index = ITEMS[name]
    text = told(function, index)
    instead = jax.jit(eval(f"lambda i: {text}", globals()))
    np.testing.assert_allclose(instead(index), expected())


@pytest.mark.parametrize(("table", "index", "at"), [("STEPS", 1, 1), ("BY_STEP", 5, 5)])
def test_a_function_chosen_by_a_number_is_told_as_a_switch(table, index, at):
    def listed(x, i):
        return STEPS[i](x)

    def in_a_dict(x, i):
        return BY_STEP[i](x)

    text = told(listed if table == "STEPS" else in_a_dict, X, index)
    call = text.partition(" calls one of these functions")[0]
    assert call.startswith("jax.lax.switch(")
    np.testing.assert_allclose(eval(f"lambda x, i: {call}", globals())(X, index), jnp.cos(X))


def test_a_key_that_is_no_number_is_not_told_as_one():
    assert "numbers for the keys of BY_NAME" in told(lambda i: BY_NAME[i], 0)
