"""Values in words, as a message names them, without running code of the user's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorer.pitfalls.state import safe_text


class Model:
    def __repr__(self):
        raise RuntimeError("nobody asked")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.0, "3.0"),
        (None, "None"),
        (..., "nothing"),
        ("train", "'train'"),
        ("x" * 40, repr("x" * 40)),
        ("x" * 41, repr("x" * 40)),  # as much of it as is shown
        (b"\x00" * 11, "b'" + "\\x00" * 9 + "\\x…"),  # its text is longer than it is
        (10**41, f"1{'0' * 41}"),
        (10**42, f"1{'0' * 39}…"),
        ([], "an empty list"),
        ([1, 2], "a list of 2"),
        ({}, "an empty dict"),
        ((1,), "a tuple of 1"),
        (Model(), "a Model"),
        (np.float32(2.5), "float32[](2.5)"),
        (np.array(7), "int64[](7)"),
        (np.zeros((2, 3), np.int8), "a NumPy int8[2,3]"),
        (np.array(None, object), "a NumPy object[]"),
        (jnp.ones(3), "float32[3]"),
        (jnp.float32(2), "float32[]"),  # its number may be on a device
    ],
)
def test_a_value_is_named_by_what_is_worth_saying(value, text):
    assert safe_text(value) == text


def test_a_traced_value_is_called_one():
    seen = []
    jax.jit(lambda x: seen.append(safe_text(x)) or x)(jnp.ones(3))
    assert seen == ["a traced float32[3]"]
