"""Arguments and closures that are more, or less, than arrays: mutable arrays, masked ones, data frames."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex

X = jnp.arange(3.0)


def test_a_mutable_array_of_the_closure_is_read_and_written_at_each_call():
    counter = jax.new_ref(jnp.zeros(()))

    @ex.jit
    def count(x):
        counter[...] += x.sum()
        return counter[...] * 2

    assert [float(count(X)) for _ in range(3)] == [6.0, 12.0, 18.0]
    counter[...] = jnp.asarray(1.0)
    assert float(count(X)) == 8.0
    assert len(count.specializations) == 1


def test_a_mutable_array_of_a_method_and_of_captured_state():
    class Model:
        def __init__(self):
            self.total, self.weight = jax.new_ref(jnp.zeros(())), X

    model = Model()

    @ex.jit(inputs=model, outputs=model)
    def step(x):
        model.total[...] += x
        model.weight = model.weight + 1
        return model.total[...]

    total = model.total
    assert [float(step(x)) for x in (1.0, 2.0, 3.0, 4.0)] == [1.0, 3.0, 6.0, 10.0]
    assert model.total is total
    np.testing.assert_array_equal(model.weight, X + 4)
    model.total = jax.new_ref(jnp.asarray(100.0))  # another one is another constant
    assert float(step(1.0)) == 101.0
    assert float(total[...]) == 10.0


@pytest.mark.parametrize("options", [{}, {"shapeless": True}], ids=["", "shapeless"])
def test_a_mutable_array_as_argument(options):
    @ex.jit(**options)
    def add(ref, x):
        ref[...] += x
        return x * 2

    ref = jax.new_ref(X)
    for _ in range(2):
        np.testing.assert_array_equal(add(ref, X), X * 2)
    np.testing.assert_array_equal(ref[...], X * 3)
    assert "Ref" in str(add.specializations[0].shapes) or add.specializations[0].shapes["x"] == (3,)


def refusal(call):
    with pytest.raises(Exception) as error:  # noqa: PT011 - what it is, the caller compares
        call()
    return type(error.value), str(error.value).partition("\n")[0]


def test_a_masked_array_is_refused_as_jax_does():
    masked = np.ma.masked_array([1.0, 2.0], mask=[True, False])

    def double(x):
        return x * 2

    state = {"x": masked}
    theirs = refusal(lambda: jax.jit(double)(masked))
    assert "masked" in theirs[1]
    assert refusal(lambda: ex.jit(double)(masked)) == theirs
    assert refusal(lambda: ex.jit(double, shapeless=True)(masked)) == theirs
    assert refusal(lambda: ex.jit(double, inputs=[X])(masked)) == theirs
    assert refusal(lambda: ex.jit(lambda: state["x"] * 2, inputs=state)()) == theirs


@pytest.mark.parametrize("make", [lambda pandas: pandas.Series([1.0]), lambda pandas: pandas.DataFrame({"a": [1.0]})])
def test_a_data_frame_is_refused_as_jax_does(make):
    frame = make(pytest.importorskip("pandas"))

    def double(x):
        return x * 2

    theirs = refusal(lambda: jax.jit(double)(frame))
    assert theirs[0] is TypeError
    assert refusal(lambda: ex.jit(double)(frame))[0] is TypeError
    assert refusal(lambda: ex.jit(double, inputs=[X])(frame))[0] is TypeError
