"""Sizes are evaluated from the named ones, and those that may shrink are known."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import export

from explorer.padding.sizes import Sizes, grows

TEXTS = (
    "b", "b*s", "b + 2*s - 1", "floordiv(b, 2)", "b - floordiv(b, 2)", "-1*floordiv(-1*b, 2)", "max(b, s)",
    "min(b, 3)", "mod(b, 3)", "10 - b", "b^2 - b", "b*s - s", "4*floordiv(b + 3, 4)", "max(b - 3, 0)", "b - s",
    "b - mod(b, 4)", "floordiv(s, 2)*b", "s - floordiv(2*s, 3)", "s - mod(-1, s)",
)  # fmt: skip


def value(text, **sizes):
    names = {"floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "max": max, "min": min}
    return eval(text.replace("^", "**"), names, sizes)


@pytest.mark.parametrize("text", TEXTS)
def test_a_size_is_what_its_text_says_and_its_bucket_holds_the_largest(text):
    (size,) = export.symbolic_shape(text if "b" in text else f"{text} + 0*b", constraints=["b >= 1", "s >= 1"])
    on_device = jax.jit(lambda b, s: Sizes({}, {"b": b, "s": s}).true(size))
    for b, s in ((1, 1), (2, 5), (7, 3), (9, 9)):
        largest = max(value(text, b=one, s=other) for one in range(1, b + 1) for other in range(1, s + 1))
        assert Sizes({"b": b, "s": s}, {}).bucket(size) == max(0, largest)
        assert on_device(np.int32(b), np.int32(s)) == value(text, b=b, s=s)


@pytest.mark.parametrize("text", TEXTS)
@given(b=st.integers(1, 12), s=st.integers(1, 12))
def test_a_size_that_is_said_to_grow_never_shrinks(text, b, s):
    (size,) = export.symbolic_shape(text, constraints=["b >= 1", "s >= 1"])
    if grows(size):
        here = value(text, b=b, s=s)
        assert here <= value(text, b=b + 1, s=s)
        assert here <= value(text, b=b, s=s + 1)


@pytest.mark.parametrize("text", ["b", "b*s", "b - floordiv(b, 2)", "-1*floordiv(-1*b, 2)", "b^2 - b", "max(b, s)"])
def test_common_sizes_are_known_to_grow(text):
    assert grows(export.symbolic_shape(text, constraints=["b >= 1", "s >= 1"])[0])


@pytest.mark.parametrize("text", ["10 - b", "mod(b, 3)", "b - s"])
def test_sizes_that_shrink_are_known(text):
    assert not grows(export.symbolic_shape(text)[0])
