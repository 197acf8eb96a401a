"""What no padded program gives exactly is refused, with the reason and what would help, to the letter."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax

from explorer.padding.interpreter import Rule, check_parameters
from explorer.padding.sizes import Refused, Sizes, at_bucket, mentions_symbols
from tests.support.padding import refusals

MATRIX = (("b", "s"), np.float32)
TALL = (("s", 4), np.float32)
WIDE = ((4, "s"), np.float32)
IMAGE = (("b", "s", 6, 4), np.float32)
CHANNELS = ((2, 8, 6, "2*s"), np.float32)
KERNEL = ((3, 3, 2, 4), np.float32)
COMPLEX = (("b", "s"), np.complex64)
OFF = "pad to a fixed size, or keep it out of the function"


def one_hot(x):
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    return lax.gather(x[:, 0], jnp.zeros((3, 1), int), numbers, (1,), mode=lax.GatherScatterMode.ONE_HOT)


def grouped(x, kernel):
    numbers = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=numbers, feature_group_count=2)


REFUSED = {
    "a reduction of one's own": (
        lambda x: lax.reduce(x, np.float32(0), lambda a, c: a - c, (1,)), [MATRIX],
        "a reduction over a padded axis by a function without a known neutral element",
        "use a sum, product, maximum or minimum"),
    "products of complex numbers from the end": (
        lambda x: lax.cumprod(x, 1, reverse=True), [COMPLEX],
        "a product of complex numbers from the end of a padded axis: (inf+0j)·(1+0j) is inf+nanj", ""),
    "an LU of tall matrices": (
        lax.linalg.lu, [TALL], "`lu` of a matrix that isn't square, along a padded axis", OFF),
    "an LU of wide matrices": (
        lax.linalg.lu, [WIDE], "`lu` of a matrix that isn't square, along a padded axis", OFF),
    "a Fourier transform": (jnp.fft.fft, [MATRIX], "`fft` along a padded axis", OFF),
    "singular values": (
        lambda x: lax.linalg.svd(x, compute_uv=False), [TALL], "`svd` along a padded axis", OFF),
    "an approximation": (
        lambda x: lax.approx_max_k(x, 1), [MATRIX],
        "how well the largest elements are approximated depends on the size", "use jax.lax.top_k"),
    "another device": (
        lambda x: jax.device_put(x, jax.devices()[0]), [MATRIX], "an array is moved to another device", ""),
    "padding inside by a size": (
        lambda x: lax.pad(x, np.float32(0), ((0, 0, 0), (0, 0, x.shape[0]))), [MATRIX],
        "an axis is padded inside, or maybe cut in front, by an amount that depends on the size", ""),
    "steps from a place that depends on a size": (
        lambda x: lax.slice(x, (0, x.shape[1] - 1), x.shape, (1, 2)), [MATRIX],
        "a slice with steps whose start or step depends on the size", ""),
    "windows as long as half an axis": (
        lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, x.shape[0]), (1, 1), ((0, 0), (0, x.shape[0]))), [MATRIX],
        "the length of a window or its stride depends on the size", ""),
    "windows padded in front by a size": (
        lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 2), (1, 1), ((0, 0), (x.shape[0], 0))), [MATRIX],
        "the padding in front depends on the size", "give the padding as numbers, or use stride 1"),
    "channels in groups": (
        grouped, [CHANNELS, ((3, 3, "s", 4), np.float32)], "a convolution in groups along a padded axis", ""),
    "an opaque function": (
        lambda x: jax.pure_callback(np.sin, x, x), [MATRIX],
        "`pure_callback` has no rule for padded axes",
        'compile with dynamic="specialise", or keep this operation out of the compiled function'),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_says_why_and_what_would_help(name):
    function, specs, reason, hint = REFUSED[name]
    assert [(refusal.reason, refusal.hint) for refusal in refusals(function, *specs)] == [(reason, hint)]


EXACT = {
    "groups of channels that aren't padded": (grouped, [IMAGE, KERNEL]),
    "a reduction of one's own over another axis": (
        lambda x: lax.reduce(x, np.float32(0), lambda a, c: a - c, (1,)), [(("b", 4), np.float32)]),
    "of two arrays at once": (
        lambda x: lax.reduce((x, x), (np.float32(0), np.float32(1)), lambda a, c: (a[0] - c[0], a[1] * c[1]), (1,)),
        [(("b", 4), np.float32)]),
    "products of complex numbers from the front": (lambda x: lax.cumprod(x, 1), [COMPLEX]),
    "a sum of one's own": (lambda x: lax.reduce(x, np.float32(0), lambda a, c: a + c, (1,)), [MATRIX]),
    "an approximation of another axis": (lambda x: lax.approx_max_k(x, 1)[0], [(("b", 4), np.float32)]),
    "the same device": (jax.device_put, [MATRIX]),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_what_comes_near_it_is_exact(name):
    function, specs = EXACT[name]
    assert refusals(function, *specs) == ()


def test_what_starts_from_another_number_than_the_neutral_one_is_refused():
    (refusal,) = refusals(lambda x: lax.reduce(x, np.float32(1), lambda a, c: a + c, (1,)), MATRIX)
    assert refusal.reason == REFUSED["a reduction of one's own"][2]


RULE = Rule(lambda call: [], frozenset(["axis"]), frozenset(["sharding", "group"]), False)


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"axis": 1, "sharding": None, "group": ()}, ""),
        ({"axis": 1, "sharding": False}, ""),
        ({"axis": 1, "sharding": "x"}, "`sort` with sharding=x isn't known to be exact"),
        ({"axis": 1, "group": (1,)}, "`sort` with group=(1,) isn't known to be exact"),
        ({"axis": 1, "other": None}, "`sort` has a parameter `other` that isn't known here"),
    ],
)
def test_a_parameter_that_a_rule_does_not_know_is_refused(params, reason):
    if not reason:
        check_parameters("sort", RULE, params)
        return
    with pytest.raises(Refused) as raised:
        check_parameters("sort", RULE, params)
    assert raised.value.reason == reason


def test_the_equation_of_a_refusal_has_the_types_of_what_goes_in_and_comes_out():
    (refusal,) = refusals(lambda x: jax.pure_callback(np.sin, x, x), MATRIX)
    assert refusal.equation == "f32[b,s] = pure_callback f32[b,s]"


# Sizes --------------------------------------------------------------------------------------------------------------

B, S = export.symbolic_shape("b, s", constraints=["b >= 1", "s >= 1"])


def test_sizes_that_an_int32_does_not_count_are_refused():
    sizes = Sizes({"b": 1 << 16, "s": 1 << 15}, {})
    with pytest.raises(Refused) as raised:
        sizes.bucket(B * S)
    assert raised.value.reason == "the size `b*s` is 2147483648 in the bucket, more than an int32 counts"
    assert raised.value.hint == "use smaller buckets"
    assert sizes.bucket(B * S - 1) == 2**31 - 1  # the largest that there is
    with pytest.raises(Refused, match="more elements are moved than an int32 counts"):
        sizes.positions((B, S), (B * S,))


def test_the_largest_of_a_size_that_shrinks_is_looked_for_among_so_many():
    assert Sizes({"b": 2000, "s": 2000}, {}).bucket(B - S) == 1999
    with pytest.raises(Refused, match="of a bucket can't be found") as raised:
        Sizes({"b": 2000, "s": 2001}, {}).bucket(B - S)
    assert raised.value.hint == "declare it as a dimension of its own"


@pytest.mark.parametrize(
    ("value", "at", "is_symbolic"),
    [(B, 4, True), (7, 7, False), ((B, (S, 2)), (4, (5, 2)), True), ([1, B], [1, 4], True), ("b", "b", False)],
)
def test_the_sizes_of_a_bucket_are_put_into_parameters_however_deep(value, at, is_symbolic):
    assert at_bucket({"p": value}, Sizes({"b": 4, "s": 5}, {})) == {"p": at}
    assert mentions_symbols({"p": value}) is is_symbolic
