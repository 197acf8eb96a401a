"""Which arguments JAX knows the parts of: those vary, and anything else a guard holds as it is."""

import ast
from collections import namedtuple
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorer.hotpath.proof.attributes import classified_fields, classify, is_named_tuple, is_structured
from explorer.hotpath.proof.values import DATA, Given, Known

Pair = namedtuple("Pair", "first second")


class Row(tuple):
    """A tuple whose parts have no names."""

    __slots__ = ()


@jax.tree_util.register_dataclass
@dataclass
class State:
    step: object
    name: object


@dataclass
class Setting:
    """JAX doesn't know its parts."""

    rate: float


#  example            named tuple  structured  as an argument
EXAMPLES = [
    (Pair(1, 2), True, True, Given),
    (Row((1, 2)), False, False, Known),
    (ast.Constant(1), False, False, Known),  # has `_fields`, and is no tuple
    (State(jnp.ones(2), 3), False, True, Given),
    (Setting(0.5), False, False, Known),
    ([1], False, False, Given),
    ({"a": 1}, False, False, Given),
    (3, False, False, Known),
    (jnp.ones(2), False, False, type(DATA)),
    (np.float32(1), False, False, type(DATA)),
]


@pytest.mark.parametrize(("example", "is_named", "has_parts", "kind"), EXAMPLES)
def test_an_argument_is_its_parts_where_jax_knows_them(example, is_named, has_parts, kind):
    assert (is_named_tuple(example), is_structured(example)) == (is_named, has_parts)
    assert type(classify(example)) is kind


def test_each_field_is_known_as_an_argument_is():
    fields = classified_fields(State(jnp.ones(2), 3))
    assert fields["step"] is DATA
    assert fields["name"].value == 3
    assert [field.value for field in classified_fields(Pair(1, 2)).values()] == [1, 2]
