"""What compile() refuses: what came, what is allowed, where, and what to write instead."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex

INFO = ex.InputInfo((2, 3), jnp.float32)
BATCH = ex.NamedDimension("batch", 1, 2, 64)


def refused(kind, call):
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert "called at  test_refusals.py, line" in message
    return message


@pytest.mark.parametrize(
    "given", [INFO, [INFO], jnp.ones(2), (INFO, INFO), ex.compat.tripy.DimensionInputInfo((1, 2, 3))]
)
def test_inputs_where_the_level_is_are_refused_with_args_in_the_hint(given):
    message = refused(ex.errors.ArgumentsError, lambda: ex.compile(jnp.sin, given))
    assert "second argument is the optimization_level" in message
    assert "Hint: compile(f, args=[" in message


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        (({"w": jnp.ones(2)}, INFO), "args=[{'w': Array([1., 1.], dtype=float32)}, InputInfo((2, 3), float32)]"),
        ((INFO, jnp.ones(2), 3), "args=[InputInfo((2, 3), float32), an array, 3]"),
        ((3, INFO), "args=[InputInfo((2, 3), float32)]"),
        ((True, INFO), "args=[True, InputInfo((2, 3), float32)]"),
        (([INFO, INFO],), "args=[InputInfo((2, 3), float32), InputInfo((2, 3), float32)]"),
    ],
)
def test_arguments_as_in_a_call_are_refused_with_how_they_are_written(given, hint):
    message = refused(ex.errors.ArgumentsError, lambda: ex.compile(jnp.add, *given))
    assert message.startswith("compile's second argument is the optimization_level; it came as ")
    assert message.endswith(f"Hint: compile(f, {hint}).")
    more = f", with {len(given) - 1} more after it"
    assert (more in message) == (len(given) > 1)


@pytest.mark.parametrize("shape", [(2, 3), [2, 3], ((1, 2, 64), 3), (BATCH, 3), BATCH], ids=str)
def test_a_shape_is_no_input(shape):
    message = refused(ex.errors.ArgumentsError, lambda: ex.compile(lambda x: jnp.zeros(()), args=[shape]))
    assert message.startswith(f"argument `x` is {shape!r}, a constant; none of the arguments is an input.")
    assert f"args=[InputInfo({shape!r}, jnp.float32)]" in message


def test_a_constant_tuple_beside_an_input_is_a_constant():
    fast = ex.compile(lambda x, shape: x.reshape(shape), args=[INFO, (3, 2)])
    assert fast(jnp.ones((2, 3))).shape == (3, 2)
    assert ex.compile(lambda shape=(2, 3): jnp.ones(shape))().shape == (2, 3)


def test_arguments_that_are_missing_say_where_compile_was_called():
    assert "describe every argument" in refused(ex.errors.ArgumentsError, lambda: ex.compile(lambda x: x))
    assert "args is InputInfo" in refused(ex.errors.ArgumentsError, lambda: ex.compile(lambda x: x, args=INFO))


def test_one_name_is_one_size():
    other = ex.InputInfo((ex.NamedDimension("batch", 1, 2, 5),), jnp.float32)
    rows = ex.InputInfo((BATCH,), jnp.float32)
    message = refused(ex.errors.InputInfoError, lambda: ex.compile(lambda x, y: (x, y), args=[rows, other]))
    assert "`batch` has two bounds: (1, 2, 64) in dimension 0 of `x`, (1, 2, 5) in dimension 0 of `y`" in message
    size = ex.compat.tripy.DimensionInputInfo((1, 2, 4))
    for args in ([size, rows], [ex.compat.tripy.DimensionInputInfo((1, 2, 64)), rows]):
        message = refused(ex.errors.InputInfoError, lambda args=args: ex.compile(lambda batch, x: x[:batch], args=args))
        assert "`batch` names two sizes: an argument with the bounds (1, 2, " in message
        assert "a dimension of `x`" in message


def test_an_argument_may_have_the_name_of_a_dimension_where_it_is_an_array_or_that_size():
    rows = ex.InputInfo((BATCH,), jnp.float32)
    assert ex.compile(lambda batch: batch * 2, args=[rows])(jnp.ones(3)).shape == (3,)
    sized = ex.compile(lambda batch, x: x * batch, args=[ex.compat.tripy.DimensionInputInfo(BATCH), rows])
    np.testing.assert_array_equal(sized(3, jnp.ones(3)), [3, 3, 3])


def test_a_donated_parameter_that_is_none_is_refused():
    message = refused(ex.errors.OptionError, lambda: ex.compile(lambda x: x, args=[INFO], donate=["y"]))
    assert "donate has 'y'; the parameters are x." in message
    assert "donate has 3" in refused(ex.errors.OptionError, lambda: ex.compile(lambda x: x, args=[INFO], donate=3))


@pytest.mark.parametrize("has_run", [False, True], ids=["first", "later"])
def test_an_array_that_was_donated_is_named_where_it_is_used_again(has_run):
    step = ex.compile(lambda state, x: {"w": state["w"] + x}, args=[{"w": INFO}, INFO], donate="state")
    state, x = {"w": jnp.ones((2, 3))}, jnp.ones((2, 3))
    new = step(state, x)
    if has_run:
        step(new, x)
    message = refused(ex.errors.DonatedInputError, lambda: step(state, x))
    assert message.startswith("input `state['w']` of <lambda> was donated to an earlier call")
    with pytest.raises(ex.errors.InputStructureError):
        step([], x)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.int32])
def test_an_argument_that_another_trace_left_behind_is_told_in_the_users_lines_alone(dtype):
    kept = []

    @jax.jit
    def keep(x):
        kept.append(x * 2)
        return x

    keep(jnp.ones((2, 3), dtype))
    double = ex.compile(lambda x: x * 2, args=[ex.InputInfo((2, 3), dtype)])
    with pytest.raises(ex.errors.TracedValueError) as caught:
        double(kept[0])
    message = str(caught.value)
    assert message.startswith("<lambda> could not be called: it uses a value that was kept from the trace of keep")
    assert "kept.append(x * 2)" in message
    assert "site-packages" not in message
