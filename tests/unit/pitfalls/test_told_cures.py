"""Cures that are told in words: followed to the letter, they work."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from tests.support.users_modules import load_module  # noqa: F401 - a fixture

X = jnp.arange(3.0)


def plain_class():
    class Scaled:
        def __init__(self, weight, name, steps):
            self.weight, self.name, self.steps = weight, name, steps

        def apply(self, x):
            return self.weight * x * self.steps

    return Scaled


def told(function, *args, rule):
    return ex.lint(function, *args).of(rule)[0].fix.text


def test_a_plain_class_is_registered_with_the_fields_that_it_is_made_of():
    Scaled = plain_class()
    Scaled.apply = jax.jit(Scaled.apply)
    text = told(Scaled(jnp.ones(3) * 2, "a", 3).apply, X, rule="jit-on-method")
    code = text.partition(", so that")[0]
    assert code == ("jax.tree_util.register_dataclass(Scaled, data_fields=['weight'], meta_fields=['name', 'steps'])")
    eval(code, {"jax": jax, "Scaled": Scaled})
    np.testing.assert_array_equal(Scaled(jnp.ones(3) * 2, "a", 3).apply(X), X * 6)


def test_a_class_that_can_not_be_made_of_its_attributes_gets_a_function_of_them():
    class Layer:
        def __init__(self, size):
            self.kernel = jnp.ones(size)

        def apply(self, x):
            return self.kernel * x

    Layer.apply = jax.jit(Layer.apply)
    text = told(Layer(3).apply, X, rule="jit-on-method")
    assert "register" not in text
    assert "def apply(kernel, …)" in text


@pytest.mark.slow
def test_a_default_that_collects_traced_values_is_a_leak_and_its_cure_is_none(load):
    text = """
        def f(x, seen={default}):
            {first}
            y = jnp.sin(x)
            seen.append(y)
            return y * len(seen)

        def g(x, *, cache={{}}):
            cache["y"] = x * 2
            return cache["y"]
        """
    module = load(text.format(default="[]", first="pass"))
    finding = ex.lint(module.f, X).of("leaked-tracer")[0]
    assert finding.severity == "error"
    assert finding.text == "seen.append(y)"
    assert "`seen[0]`" in finding.message
    assert not len(ex.lint(module.f, X).of("argument-mutation"))
    assert "seen=None in the head of f" in finding.fix.text
    assert "seen = [] if seen is None else seen" in finding.fix.text
    cured = load(text.format(default="None", first="seen = [] if seen is None else seen"))
    assert not len(ex.lint(cured.f, X).of("leaked-tracer"))
    assert len(ex.lint(module.g, X).of("leaked-tracer")) == 1


def test_a_list_that_was_passed_is_no_default():
    def f(x, seen=()):
        seen.append(x)
        return x

    assert not len(ex.lint(f, X, []).of("leaked-tracer"))
