"""Traced values that caches keep, keys of vmapped functions, and names as Python resolves them."""

import functools
import os
import uuid
import warnings

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from tests.examples.linted import found, hits

X = jnp.arange(4.0)
KEY = jax.random.key(0)


@functools.lru_cache(maxsize=4)
def bounded(n):
    return jnp.arange(n) * 0.5


@functools.cache
def unbounded(n):
    return jnp.arange(n) * 0.5, n


@functools.cache
def cured(n):
    with jax.ensure_compile_time_eval():
        return jnp.arange(n) * 0.5


class Rope:
    @functools.cache  # noqa: B019
    def angles(self, n):
        return jnp.arange(n) * 0.1

    @functools.cached_property
    def table(self):
        return jnp.arange(4) * 0.1

    def __call__(self, x):
        x = x * self.angles(4)  # HIT
        return x + self.table  # HIT


def asks_caches(x):
    x = x * bounded(4)  # HIT
    return x + unbounded(4)[0]  # HIT


def asks_a_cured_cache(x):
    return x * cured(4)


def test_a_cache_that_keeps_a_traced_value_is_an_error_and_the_cure_is_one():
    first, second = hits("leaked-tracer", asks_caches, X)
    assert (first.severity, "`bounded`" in first.message, "`unbounded`" in second.message) == ("error", True, True)
    with pytest.raises(jax.errors.UnexpectedTracerError):
        asks_caches(X)  # which is what the finding says
    bounded.cache_clear()
    unbounded.cache_clear()
    assert not found("leaked-tracer", asks_a_cured_cache, X)
    assert asks_a_cured_cache(X).tolist() == (X * jnp.arange(4) * 0.5).tolist()


def test_methods_and_properties_that_are_kept_are_found_where_they_are_asked():
    hits("leaked-tracer", Rope().__call__, X)


def noise(key, x):
    return x + jax.random.normal(key, x.shape)  # HIT


def noise_for_each(keys, xs):
    return jax.vmap(noise)(keys, xs)


def folds(key, xs):
    return jax.vmap(lambda i, x: noise(jax.random.fold_in(key, i), x))(jnp.arange(3), xs)


def directions(x, key):
    return jax.jacfwd(lambda x: noise(key, x))(x)


def test_one_key_for_all_that_is_vmapped_is_found_and_a_key_for_each_is_not():
    xs = jnp.ones((3, 4))
    hits("key-reuse", jax.vmap(noise, in_axes=(None, 0)), KEY, xs)
    assert not found("key-reuse", noise_for_each, jax.random.split(KEY, 3), xs)
    assert not found("key-reuse", folds, KEY, xs)
    assert not found("key-reuse", directions, X, KEY)


def noisy_by_default(x, key=KEY):
    return x + jax.random.normal(key, x.shape)  # HIT


def test_a_key_that_is_a_default_argument_is_a_constant():
    hits("key-reuse", noisy_by_default, X)


def an_outer_function(scale):
    def middle():
        scale = 3.0

        def inner(x):
            return x * scale

        return inner

    def retune():
        nonlocal scale
        scale = 4.0

    return middle(), retune


def test_a_name_is_that_of_the_innermost_function_that_binds_it():
    inner, _ = an_outer_function(2.0)
    assert not found("stale-closure", inner, X)


def an_outer_function_that_changes_it():
    scale = 3.0

    def inner(x):
        return x * scale  # HIT

    def retune():
        nonlocal scale
        scale = 4.0

    return inner, retune, [scale for scale in (1, 2)]


def test_what_a_comprehension_binds_is_its_own():
    inner, _, _ = an_outer_function_that_changes_it()
    (one,) = found("stale-closure", inner, X)
    assert "`scale = 4.0`" in one.message


class Engine:
    def __init__(self):
        self._calls = 0
        self._rate = 0.5
        self._mode = "fast"

    def __call__(self, x):
        self._calls += 1
        self.tag = uuid.uuid4()
        self.token = os.urandom(8).hex()
        return x * self._rate if self._mode == "fast" else x

    def configure(self, mode, rate):
        self._mode, self._rate = mode, rate


def test_what_an_author_keeps_to_themselves_matters_where_the_program_has_it():
    findings = ex.lint(Engine(), X)
    (stale,) = findings.of("stale-closure")
    assert "_rate" in stale.message
    counted = next(one for one in findings.of("state-write") if "_calls" in one.message)
    assert counted.severity == "note"
    assert not findings.of("impure-random")


def warns(x):
    warnings.warn("once", DeprecationWarning, stacklevel=1)
    return x


@pytest.mark.parametrize(("module", "shown"), [("__main__", 1), ("test_caches", 0), (None, 0)])
def test_warnings_are_shown_as_the_filters_say(module, shown):
    with warnings.catch_warnings(record=True) as seen:
        # Python's own filters name a module as a plain text, those of `filterwarnings` as an expression.
        warnings.filters[:] = [("ignore", None, DeprecationWarning, module, 0)]
        assert not found("truncation", warns, X)
    assert len(seen) == shown


def asks_for_64_bits(x):
    return x + jnp.zeros(4, "float64")  # HIT


@pytest.mark.parametrize("action", ["ignore", "always", "error", "default"])
def test_findings_do_not_depend_on_filters_of_warnings(action):
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter(action)
        (one,) = hits("truncation", asks_for_64_bits, X)
    assert (one.severity, bool(shown)) == ("warning", action != "ignore")
