"""Sorting, windows, random numbers, linear algebra: exact along padded axes, or refused with what would help."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.support.padding import check, refusals

X = (("b", "s", 8), np.float64)
MATRIX = (("b", "s"), np.float64)
INTEGERS = (("b", "s"), np.int64)
MASK = (("b", "s"), np.bool_)
IMAGE = (("b", "s", 6, 3), np.float64)
EVEN = (("b", "2*s", 6, 3), np.float64)
KERNEL = ((3, 3, 3, 4), np.float64)
KEY = jax.random.key(0)

SORTED = {
    "values": (lambda x: jnp.sort(x, 1), X),
    "places, descending": (lambda x: jnp.argsort(x, 1, descending=True), X),
    "integers": (lambda x: jnp.sort(x, 0), INTEGERS),
    "booleans": (lambda x: jnp.sort(x, 1), MASK),
    "all": (lambda x: jnp.sort(x, None)[:1], X),
    "by two keys": (lambda x: jnp.lexsort((x, x % 2), axis=1), INTEGERS),
    "gradient": (jax.grad(lambda x: (jnp.sort(x, 1) * jnp.arange(x.shape[1])[:, None]).sum()), X),
    "quantile": (lambda x: jnp.quantile(x, 0.3, axis=1), X),
    "largest": (lambda x: lax.top_k(x.swapaxes(1, 2), 1), X),
}


@pytest.mark.parametrize("name", SORTED)
def test_what_is_valid_is_sorted_first(name):
    check(*SORTED[name])


WORST = np.array([[-np.inf, np.nan, np.inf, -np.nan, -np.inf], [np.nan, -np.nan, -np.inf, 0.0, -0.0]])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (jnp.sort(x, 1), jnp.argsort(x, 1)),
        lambda x: lax.top_k(x, 4),
        lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 1)),
        lambda x: (x.max(1), x.min(1), lax.cummax(x, 1), lax.cumlogsumexp(x, 1, reverse=True)),
    ],
    ids=["sort", "top_k", "argmax", "max"],
)
def test_valid_elements_may_be_the_worst_there_are(function):
    check(function, (("b", "s+3"), np.float64), sizes=({"b": 2, "s": 2},), arrays=lambda rng, at, size: WORST)


def convolve(padding, strides=(1, 1)):
    numbers = ("NHWC", "HWIO", "NHWC")
    return lambda x, w: lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=numbers)


def pooled(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def hanging(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 1, 2, 1), "SAME")


WINDOWS = {
    "same size": (convolve("SAME"), IMAGE, KERNEL),
    "no padding": (convolve("VALID"), (("b", "s+3", 6, 3), np.float64), KERNEL),
    "strides and given padding": (convolve(((2, 0), (1, 1)), (2, 1)), IMAGE, KERNEL),
    "gradients": (jax.grad(lambda x, w: (convolve("SAME")(x, w) ** 2).sum(), (0, 1)), IMAGE, KERNEL),
    "largest of windows": (pooled, EVEN),
    "its gradient": (jax.grad(lambda x: (pooled(x) ** 2).sum()), EVEN),
    "gradient of windows that hang over": (jax.grad(lambda x: (hanging(x) ** 2).sum()), IMAGE),
    "sums of windows": (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME"), IMAGE),
    "one window for all": (
        lambda x: lax.reduce_window(x, 0.0, lax.add, (1, x.shape[1], 6, 1), (1,) * 4, "VALID"), IMAGE),
}  # fmt: skip


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_take_in_padding_as_the_function_itself_pads(name):
    check(*WINDOWS[name])


def test_padding_in_front_that_depends_on_the_size_is_refused():
    (refusal,) = refusals(convolve("SAME", (2, 2)), IMAGE, KERNEL)
    assert "padding in front depends on the size" in refusal.reason
    assert "stride 1" in refusal.hint


RANDOM = {
    "normal": (lambda x: x + jax.random.normal(KEY, (x.shape[0], 1, 8)), X),
    "along all axes": (lambda x: x + jax.random.normal(KEY, x.shape), X),
    "a key for each row": (
        lambda x: jax.vmap(lambda key: jax.random.uniform(key, (3,)))(jax.random.split(KEY, x.shape[0])), X),
    "keys folded": (
        lambda i: jax.vmap(lambda j: jax.random.uniform(jax.random.fold_in(KEY, j), (3,)))(i[:, 0]), INTEGERS),
    "old keys": (lambda x: jax.random.bernoulli(jax.random.PRNGKey(0), 0.5, (x.shape[0], 3)), X),
}  # fmt: skip


@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_are_those_of_the_unpadded_function(name):
    check(*RANDOM[name])


@pytest.mark.slow  # a loop for each number: 10 s to compile
def test_gamma_numbers_of_the_first_axis_are_those_of_the_unpadded_function():
    check(lambda x: jax.random.gamma(KEY, jnp.abs(x[:, 0]) + 0.1), X)


def test_random_numbers_of_other_generators_are_refused():
    (refusal,) = refusals(lambda x: jax.random.uniform(jax.random.key(0, impl="rbg"), x.shape[:1]), MATRIX)
    assert "generator" in refusal.reason


def squares(x):
    return x[:, 0, :, None] * x[:, 0, None, :] + jnp.diag(jnp.arange(1.0, 9))


MATRICES = {
    "inverse": (lambda x: jnp.linalg.inv(squares(x)), X),
    "Cholesky": (lambda x: jnp.linalg.cholesky(squares(x)), X),
    "eigenvalues": (lambda x: jnp.linalg.eigvalsh(squares(x)), X),
    "singular values": (lambda x: jnp.linalg.svd(squares(x), compute_uv=False), X),
    "Fourier": (lambda x: jnp.abs(jnp.fft.rfft(x)), X),
}


@pytest.mark.parametrize("name", MATRICES)
def test_there_may_be_any_number_of_matrices(name):
    check(*MATRICES[name])


def kernel(x):
    return jnp.exp(-((x[:, None] - x[None]) ** 2).sum(-1)) + jnp.eye(x.shape[0])


PADDED_MATRICES = {
    "Cholesky": lambda x: jnp.linalg.cholesky(kernel(x)),
    "regression": lambda x: jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(kernel(x), lower=True), x),
    "gradient": jax.grad(lambda x: jnp.log(jnp.diag(jnp.linalg.cholesky(kernel(x)))).sum()),
    "lower and upper": lambda x: jax.lax.linalg.lu(kernel(x) + x[:, :1] * x[:, 1]),
}


@pytest.mark.parametrize("name", PADDED_MATRICES)
def test_square_matrices_may_be_padded_themselves(name):
    check(PADDED_MATRICES[name], (("s", 4), np.float64))


def test_eigenvalues_of_padded_matrices_are_refused():
    (refusal,) = refusals(lambda x: jnp.linalg.eigvalsh(x, symmetrize_input=False), (("b", "b"), np.float32))
    assert "along a padded axis" in refusal.reason


def test_complex_numbers_that_arent_any_are_sorted_as_they_are_unpadded():
    worst = np.array([[complex(np.nan, 1), complex(1, np.nan), complex(np.nan, np.nan), complex(np.inf, 0), 1j]] * 2)
    size = ({"b": 2, "s": 2},)
    specs = (("b", "s+3"), np.complex128)
    check(lambda x: (jnp.sort(x, 1), jnp.argsort(x, 1)), specs, sizes=size, arrays=lambda rng, at, size: worst)
    check(lambda x: (x.max(1), x.min(0)), (("b", "s"), np.complex128))


@pytest.mark.parametrize(
    "function", [jnp.histogram, lambda x: jnp.nonzero(x > 0, size=3), lambda x: jnp.searchsorted(jnp.arange(8.0), x)]
)
def test_what_newer_versions_keep_whole_is_taken_apart(function):
    check(function, MATRIX)


WILD = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jax.nn.softmax(x, 1),
        lambda x: jax.nn.log_softmax(x, 1),
        lambda x: jax.nn.softmax(x, (0, 1)),
        lambda x: jnp.exp(x - x.max(1, keepdims=True)).sum(),
        lambda x: jnp.exp(x - x.max(1, keepdims=True)).sum(0),
        lambda x: jnp.exp(x - x.max()).sum(1),
        lambda x: jnp.exp(x - x.max(1, keepdims=True)).max(1),
        lambda x: jnp.exp(x - x.max(1, keepdims=True)).prod(1),
        lambda x: (lambda y: (y.max(1), y.prod(1), y.sum(1)))(jnp.exp(x - x.max(1, keepdims=True))),
        lambda x: jnp.cumsum(jnp.exp(x - x.max(1, keepdims=True)), 1, dtype=x.dtype),
        lambda x: jnp.exp(x - jnp.roll(x, 1, 0).max(1, keepdims=True)).sum(1),
    ],
)
@pytest.mark.parametrize(
    "row",
    [
        (-np.inf,),
        *(pytest.param(row, marks=pytest.mark.slow) for row in ((np.inf, 1.0), (np.nan, 1.0), (-np.inf, 0.0))),
        WILD,
    ],
    ids=str,
)
def test_the_sum_of_a_softmax_needs_no_mask_of_its_own_whatever_is_in_it(function, row):
    def arrays(rng, at, size):
        return rng.choice(row, (size["b"], size["s"]))

    check(function, (("b", "s"), float), arrays=arrays)


def test_a_softmax_over_a_padded_axis_has_one_mask():
    assert check(lambda x: jax.nn.softmax(jnp.sin(x), 1), (("b", "s"), float)).masks == 1
    # Of another array's maximum nothing is known.
    assert (
        check(lambda x: jnp.exp(jnp.cos(x) - jnp.sin(x).max(1, keepdims=True)).sum(1), (("b", "s"), float)).masks == 2
    )
