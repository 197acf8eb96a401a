"""What is said of an index outside of an array, to the letter, and what JAX does there."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.support.jaxpr_rules import findings, only

X = jnp.arange(5.0)
M = jnp.arange(24.0).reshape(4, 6)
UP_TO_4 = "an index from 0 to 4, or from the end with -1; "


@pytest.mark.parametrize(
    ("function", "happens", "fix", "computed"),
    [
        (
            lambda x: x[5],
            "it reads from position 4 instead",
            UP_TO_4 + 'x.at[5].get(mode="fill", fill_value=0) chooses what is read outside',
            lambda x: x[4],
        ),
        (
            lambda x: x.at[5].get(),
            "it reads from position 4 instead",
            UP_TO_4 + 'x.at[5].get(mode="fill", fill_value=0) chooses what is read outside',
            lambda x: x[4],
        ),
        (
            lambda x: x.at[-6].add(2.0),
            "nothing is written there",
            UP_TO_4 + 'x.at[-6].add(2.0, mode="drop") drops indices outside',
            lambda x: x,
        ),
        (
            lambda x: jnp.take(x, 5),
            "it reads nan",
            UP_TO_4 + 'jnp.take(x, 5, mode="fill", fill_value=0) chooses what is read outside',
            lambda x: jnp.float32(jnp.nan),
        ),
        (
            lambda x: lax.dynamic_slice(x, (-1,), (2,)),
            "it reads from position 3 instead",
            "an index from 0 to 3",
            lambda x: x[3:5],
        ),
        (
            lambda x: lax.dynamic_slice(x, (4,), (2,)),
            "it reads from position 3 instead",
            "an index from 0 to 3",
            lambda x: x[3:5],
        ),
        (
            lambda x: lax.dynamic_update_slice(x, 9 + x[:2], (4,)),
            "it writes to position 3 instead",
            "an index from 0 to 3",
            lambda x: x.at[3:5].set(9 + x[:2]),
        ),
        (
            lambda x: lax.dynamic_update_slice(x, 9 + x[:1], (7,)),
            "it writes to position 4 instead",
            "an index from 0 to 4, or from the end with -1",
            lambda x: x.at[4].set(9 + x[0]),
        ),
    ],
)
def test_it_says_what_happens_and_what_to_write(function, happens, fix, computed):
    finding = only("out-of-bounds", function, X)
    text = finding.message.partition("`")[2].partition("`")[0]
    assert finding.message == f"`{text}` is outside of `x`, whose shape is (5,): {happens}, without an error"
    assert finding.fix.text == fix
    np.testing.assert_array_equal(jax.jit(function)(X), jax.jit(computed)(X))


@pytest.mark.parametrize(
    ("function", "evidence"),
    [
        (lambda m: m[4], "it asks for position 4 of axis 0, which has 4"),
        (lambda m: m[-5], "it asks for position -5 of axis 0, which has 4"),
        (lambda m: m[1, 6], "it asks for position 6 of axis 1, which has 6"),
        (lambda m: m[np.array([0, 2, 4])], "it asks for position 4 of axis 0, which has 4"),
        (lambda m: m[np.array([-5, 0, 3])], "it asks for position -5 of axis 0, which has 4"),
        (lambda m: m.at[np.array([0, 7])].set(0.0), "it asks for position 7 of axis 0, which has 4"),
        (lambda m: lax.dynamic_slice(m, (1, 0), (4, 6)), "it asks for positions 1 to 4 of axis 0, which has 4"),
        (lambda m: lax.dynamic_slice(m, (0, 5), (4, 2)), "it asks for positions 5 to 6 of axis 1, which has 6"),
        (
            lambda m: lax.dynamic_update_slice(m, m[:2] + 1, (3, 0)),
            "it asks for positions 3 to 4 of axis 0, which has 4",
        ),
    ],
)
def test_the_evidence_counts_as_the_user_did(function, evidence):
    assert only("out-of-bounds", function, M).evidence == evidence


@pytest.mark.parametrize(
    ("outside", "inside"),
    [
        (lambda m: m[4], lambda m: m[3]),
        (lambda m: m[-5], lambda m: m[-4]),
        (lambda m: m.at[4].set(1.0), lambda m: m.at[3].set(1.0)),
        (lambda m: m[np.array([0, 4])], lambda m: m[np.array([0, 3])]),
        (lambda m: lax.dynamic_slice(m, (3, 0), (2, 6)), lambda m: lax.dynamic_slice(m, (2, 0), (2, 6))),
        (
            lambda m: lax.dynamic_update_slice(m, m[:2], (3, 0)),
            lambda m: lax.dynamic_update_slice(m, m[:2], (2, 0)),
        ),
        (lambda m: m.at[4].set(1.0), lambda m: m.at[4].set(1.0, mode="drop")),  # it says what shall happen
        (lambda m: m.at[4].get(), lambda m: m.at[4].get(mode="fill")),
        (lambda m: m[4], lambda m: m[m.astype(int)[0, 0]]),  # nobody knows which it is
        (lambda m: m[4], lambda m: m[np.zeros(0, int)]),  # none is asked for
    ],
)
def test_an_index_that_is_inside_chosen_or_unknown_is_fine(outside, inside):
    assert len(findings("out-of-bounds", outside, M)) == 1
    assert findings("out-of-bounds", inside, M) == []


def test_a_line_is_pointed_at_once_and_its_text_is_cut_at_sixty_letters():
    def several(x):
        return x[7] + x[8]

    def in_two_lines(x):
        y = x[7]
        return y + x[8]

    assert len(findings("out-of-bounds", several, X)) == 2  # two places, with columns of their own
    assert len(findings("out-of-bounds", in_two_lines, X)) == 2
    assert len(findings("out-of-bounds", lambda x: [x[i] for i in (7, 8)], X)) == 1

    def sixty(an_array_whose_name_is_as_long_as_it_takes_to_be_cut_):
        return an_array_whose_name_is_as_long_as_it_takes_to_be_cut_[10000]

    def longer(an_array_whose_name_is_as_long_as_it_takes_to_be_cut_):
        return an_array_whose_name_is_as_long_as_it_takes_to_be_cut_[100000]

    name = "an_array_whose_name_is_as_long_as_it_takes_to_be_cut_"
    assert len(f"{name}[10000]") == 60
    assert only("out-of-bounds", sixty, X).message.startswith(f"`{name}[10000]` is outside")
    assert only("out-of-bounds", longer, X).message.startswith(f"`{name}[10000…` is outside")
