"""What a jitted function keeps alive, and for how long; jax.jit beside it."""

import gc
import sys
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from explorer.jitted.jit import Registry


class Box:
    def __init__(self, value):
        self.value = value


WRAPS = {"object": lambda box: box, "dict": lambda box: {"box": box}, "list": lambda box: [box]}


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def build_plain(jit):
    array, numpy = jnp.arange(5.0) + 1, np.arange(4.0)

    def function(x):
        return x + array.sum() + numpy.sum()

    fast = jit(function)
    for x in (1.0, 1.0, jnp.ones(5)):
        fast(x)
    return [weakref.ref(value) for value in (function, fast, array, numpy)]


def build_with_state(wrap, jit=ex.jit):
    box = Box(jnp.arange(5.0))
    state, first, numpy = wrap(box), box.value, np.arange(4.0)

    def function(x):
        box.value = box.value + x
        return box.value.sum() + numpy.sum()

    fast = jit(function, inputs=state, outputs=state)
    for x in (1.0, 1.0, 1.0, jnp.ones(5)):
        fast(x)
    return [weakref.ref(value) for value in (function, fast, box, first, box.value, numpy)]


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("jit", [jax.jit, ex.jit], ids=["JAX", "here"])
def test_function_and_constants_go_with_the_jitted_function_without_the_collector(jit):
    assert [reference() for reference in build_plain(jit)] == [None] * 4


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
def test_captured_state_goes_with_it_too(wrap):
    assert [reference() for reference in build_with_state(wrap)] == [None] * 6


@pytest.mark.usefixtures("no_collector")
def test_a_method_goes_with_its_object():
    class Model:
        def __init__(self):
            self.scale = jnp.ones(3)

        @ex.jit
        def apply(self, x):
            return self.scale * x

    model = Model()
    model.apply(2.0), model.apply(2.0)
    references = [weakref.ref(model), weakref.ref(model.scale)]
    del model
    assert [reference() for reference in references] == [None, None]


def test_functions_that_are_jitted_in_turn_beyond_what_is_kept_are_warned_about_once(monkeypatch):
    small = Registry(limit=2)
    monkeypatch.setattr(sys.modules["explorer.jitted.jit"], "registry", small)
    functions = [eval(f"lambda x: x + {i}") for i in range(3)]

    def rotate():
        for i, function in enumerate(functions * 5):
            assert ex.jit(function)(1.0) == 1 + i % 3

    with pytest.warns(
        ex.errors.RecompilationWarning, match=r"more than 2 functions[^\n]*\n  Hint: keep what jit "
    ) as warned:
        rotate()
    assert len(warned) == 1
    assert warned[0].filename == __file__
    kept = [ex.jit(function) for function in functions]
    for fast in kept * 2:
        fast(1.0)
    assert [len(fast.specializations) for fast in kept] == [1, 1, 1]


def test_kinds_of_call_in_turn_beyond_what_is_kept_are_warned_about_once():
    fast = ex.jit(lambda x, n: x * n, static_argnums=1, max_specializations=2)

    def rotate():
        assert [fast(1.0, n) for n in (0, 1, 2) * 3] == [0, 1, 2] * 3

    with pytest.warns(ex.errors.RecompilationWarning) as warned:
        rotate()
    full = [warning for warning in warned if "variants" in str(warning.message)]
    assert len(full) == 1
    assert "raise max_specializations=2" in str(full[0].message)
