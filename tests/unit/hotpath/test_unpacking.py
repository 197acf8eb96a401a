"""The arrays of a call, found by a function that is written for its structure: what JAX finds, or nothing."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.hotpath.arguments import Call, parameters_of
from explorer.runtime.generated import never

ARRAYS = [jnp.full(2, at) for at in range(4)]


class Pair(NamedTuple):
    first: object
    second: object


def trees(leaves):
    return st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.lists(inner, max_size=3).map(tuple)
            | st.tuples(inner, inner).map(lambda both: Pair(*both))
            | st.dictionaries(st.sampled_from(["a", "b", "it's", "ä"]), inner, max_size=3)
            | st.dictionaries(st.integers(0, 3), inner, max_size=3)
        ),
        max_leaves=8,
    )


LEAVES = st.sampled_from([*ARRAYS, None, 1, True, 1.0, 0.0, -0.0, "a", b"a", 1j, float("nan")])


def call(*values):
    return Call(_function, parameters_of(_function.__code__), (values,))


def _function(values):
    return values


def flat(tree):
    return [leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.Array)]


def is_alike(one, two):
    """Whether two trees differ in arrays alone."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=False)
    return jax.tree.structure(one) == jax.tree.structure(two) and all(
        type(a) is type(b) and (isinstance(a, jax.Array) or repr(a) == repr(b)) for a, b in pairs
    )


@settings(max_examples=200, deadline=None)
@given(trees(LEAVES), trees(LEAVES))
def test_it_gives_the_arrays_of_its_structure_and_of_no_other(one, two):
    unpack = call(one).unpacker()
    assert unpack is not never
    found = unpack(((one,),))
    assert [id(array) for array in found] == [id(array) for array in flat(one)]
    other = unpack(((two,),))
    if is_alike(one, two):
        assert [id(array) for array in other] == [id(array) for array in flat(two)]
    else:
        assert other is None or not all(isinstance(part, jax.Array) for part in other)


def test_what_jax_takes_apart_in_a_way_of_its_own_is_left_to_it():
    class Turned(NamedTuple):
        x: object
        y: object

    jax.tree_util.register_pytree_node(Turned, lambda t: ((t.y, t.x), None), lambda _, parts: Turned(*parts[::-1]))
    assert call(Turned(*ARRAYS[:2])).unpacker() is never
    assert call({1.5: ARRAYS[0]}).unpacker() is never


def test_a_large_tree_is_left_to_jax():
    assert call([ARRAYS[0]] * 2000).unpacker() is never
