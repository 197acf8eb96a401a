"""Objects that keep their key and draw with it at each call, and libraries that loop over a key they were given."""

import sys
from importlib import import_module

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from jax import lax, random

from tests.examples.linted import found, hits

KEY = random.key(0)
X = jnp.linspace(0.0, 1.0, 4)


class Path(eqx.Module):
    """A random function of time: the same time has to give the same number."""

    key: jax.Array

    def at(self, t):
        def halve(i, state):
            low, high, value, key = state
            left, right = random.split(key)
            middle = (low + high) / 2
            value += (high - low) * random.normal(random.fold_in(key, 1))
            new = (low, middle, value, left), (middle, high, value, right)
            return jax.tree.map(lambda a, b: jnp.where(t < middle, a, b), *new)

        first = random.normal(random.fold_in(self.key, 0))
        return lax.fori_loop(0, 3, halve, (0.0, 1.0, first, self.key))[2]


def increments(key, times):
    path = Path(key)
    return path.at(times[1]) - path.at(times[0])


def walks(path, times):
    return lax.fori_loop(0, 3, lambda i, total: total + path.at(times[i]), 0.0)


def at_each_time(key, times):
    path = Path(key)
    return jax.vmap(path.at)(times)


def at_each_time_of_an_hour(path, times):
    return jax.vmap(lambda t: path.at(t / 60))(times)


class Noisy:
    """Keeps no key: who calls it hands one over."""

    def __call__(self, x, key):
        return x + random.normal(key, x.shape)


def hands_over_twice(x, key):
    noisy = Noisy()
    x = noisy(x, key)
    return noisy(2 * x, key)  # HIT


class Keeper(eqx.Module):
    """Keeps a key, and hands it over."""

    noisy: Noisy
    key: jax.Array

    def __call__(self, x):
        return self.noisy(x, self.key) + self.noisy(2 * x, self.key)

    def each(self, x):
        return lax.fori_loop(0, 3, lambda i, x: self.noisy(x, self.key), x)


def keeps(key, x):
    return Keeper(Noisy(), key)(x)


def keeps_in_a_loop(key, x):
    return Keeper(Noisy(), key).each(x)


class Layer:
    def __init__(self, key):
        self.key = key

    def __call__(self, x):
        x = x + random.normal(self.key, x.shape)
        return x * random.uniform(self.key, x.shape)  # HIT


NAMES = ("Path", "path")
CALLS = [(increments, KEY), (walks, Path(KEY)), (at_each_time, KEY), (at_each_time_of_an_hour, Path(KEY))]


@pytest.mark.parametrize(("function", "first"), CALLS)
def test_what_an_object_draws_with_the_key_that_it_keeps_is_a_note(function, first):
    findings = found("key-reuse", function, first, X)
    assert findings
    assert {one.severity for one in findings} == {"note"}
    assert any(f"{name} stores the key" in one.evidence for one in findings for name in NAMES)


@pytest.mark.slow
def test_it_is_the_same_function_at_each_call_as_the_note_says():
    path = Path(KEY)
    assert float(path.at(0.3)) == float(path.at(0.3)) != float(path.at(0.9))


def test_a_key_that_is_handed_over_twice_and_two_draws_in_one_method_stay_warnings():
    (one,) = hits("key-reuse", hands_over_twice, X, KEY)
    assert one.severity == "warning"

    for function in (keeps, keeps_in_a_loop):
        assert [one.severity for one in found("key-reuse", function, KEY, X)] == ["warning"]

    def with_layer(x, key):
        return Layer(key)(x)

    (two,) = found("key-reuse", with_layer, X, KEY)
    assert (two.severity, two.text.endswith("# HIT")) == ("warning", True)


LIBRARY = """
from jax import lax, random

def common_noise(key, x):
    return lax.fori_loop(0, 3, lambda i, x: x + random.normal(key, x.shape), x)

def add_noise(x, key):
    return x + random.normal(key, x.shape)
"""


@pytest.fixture
def library(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "noises_of_a_library.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(str(folder))
    yield import_module("noises_of_a_library")
    del sys.modules["noises_of_a_library"]


def test_what_a_library_does_in_its_own_loop_with_a_key_it_was_given_is_its_business(library):
    assert not found("key-reuse", lambda key, x: library.common_noise(key, x), KEY, X)


def test_a_library_s_draw_in_the_user_s_loop_is_the_user_s(library):
    def noisier(key, x):
        return lax.fori_loop(0, 3, lambda i, x: library.add_noise(x, key), x)  # HIT

    (one,) = hits("key-reuse", noisier, KEY, X)
    assert one.severity == "warning"
