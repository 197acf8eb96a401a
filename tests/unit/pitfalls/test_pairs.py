"""Rules that look at the trace alone: a mistaken program, and beside it one that is clean by one difference."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax, random

from tests.support.jaxpr_rules import findings, only

X = jnp.ones(3)
KEY = random.key(0)
BIG = jnp.ones((500, 500))  # 1,000,000 bytes
BELOW = jnp.ones(249_999)


def counted(number):
    """A tree of scalar arguments: so many numbers in a list."""
    return [float(i) for i in range(number)]


def nested(depth, number=16):
    tree = counted(number)
    for _ in range(depth):
        tree = {"a": tree}
    return tree


def total(tree):
    return sum(jax.tree.leaves(tree))


def unused(size):
    def f(x, other):
        _ = lax.broadcast(x, (size,))
        return x + other

    return f


def chain(count, is_used=False):
    def f(x, other):
        y = x
        for _ in range(count):
            y = lax.sin(y)
        return (y if is_used else x) + other

    return f


def donating(function, *numbers):
    return jax.jit(function, donate_argnums=numbers)


PAIRS = [
    # A list is long from 16 numbers on, four containers deep at most.
    ("list-of-scalars", (total, counted(16)), (total, counted(15)), "it is as short as a shape"),
    ("list-of-scalars", (total, tuple(counted(16))), (total, jnp.ones(16)), "it is an array"),
    ("list-of-scalars", (total, [[1, 2]] * 8), (total, [[1, 2]] * 7), "it is short"),
    ("list-of-scalars", (total, [[1, 2]] * 8), (total, [[1, 2]] * 7 + [[1]]), "its rows aren't one array"),
    ("list-of-scalars", (total, [True] * 16), (total, [X] * 16), "it is one of arrays"),
    ("list-of-scalars", (total, nested(4)), (total, nested(5)), "nobody looks as deep"),
    ("list-of-scalars", (total, [1.0, counted(16)]), (total, [1.0, *counted(14)]), "one of its items is one"),
    (
        "list-of-scalars",
        (jax.jit(total), counted(16)),
        (jax.jit(lambda x: x[0].real, static_argnums=0), tuple(counted(16))),
        "a static argument is none of the program's",
    ),
    # Constants are large from a million bytes on.
    ("large-constant", (lambda x: x + BIG, BIG), (lambda x: x + BELOW, BELOW), "it is a little less"),
    ("large-constant", (lambda x: x + BIG, BIG), (lambda x, y: x + y, BIG, BIG), "it is passed"),
    (
        "large-constant",
        (lambda x: x + BIG, BIG),
        (lambda x: x + jnp.ones((500, 500)), BIG),
        "JAX makes it in the program",
    ),
    # Dead code counts from 100,000 elements, 20 equations or a costly operation on.
    ("dead-code", (unused(100_000), 1.0, X), (unused(99_999), 1.0, X), "it is small"),
    ("dead-code", (chain(20), X, X), (chain(19), X, X), "it is short"),
    ("dead-code", (chain(20), X, X), (chain(20, is_used=True), X, X), "it is used"),
    ("dead-code", (lambda x, y: x, X, X), (lambda x, y: x + y, X, X), "it is used"),
    ("dead-code", (lambda x, y: x, X, X), (lambda x, _: x, X, X), "its name says so"),
    (
        "dead-code",
        (lambda x, y: x["a"] + y, {"a": X, "b": BELOW}, X),
        (lambda x, y: x["a"] + y, {"a": X, "b": X}, X),
        "a small part of an argument",
    ),
    # What is donated can be written over by a result of its size.
    (
        "unusable-donation",
        (donating(lambda x: x[:2], 0), X),
        (donating(lambda x: x + 1, 0), X),
        "a result takes its memory",
    ),
    ("unusable-donation", (donating(lambda x: x[:2], 0), X), (jax.jit(lambda x: x[:2]), X), "it isn't donated"),
    (
        "unusable-donation",
        (donating(lambda x: x.astype(jnp.int16), 0), X),
        (donating(lambda x: x.astype(jnp.int32), 0), X),
        "it has as many bytes",
    ),
    (
        "unusable-donation",
        (donating(lambda x, y: x + y, 0, 1), X, X),
        (donating(lambda x, y: (x + y, x), 0, 1), X, X),
        "there are as many results",
    ),
    (
        "unusable-donation",
        (donating(lambda x, y: (x + y)[:2], 0), X, X),
        (donating(lambda x, y: y[:2], 0), X, X),
        "JAX keeps what isn't used",
    ),
    # Numbers that 32 bits can't hold, or only without their last digits.
    (
        "truncation",
        (lambda x, y: x + y, X, np.full(1, 2**31)),
        (lambda x, y: x + y, X, np.full(1, 2**31 - 1)),
        "it fits",
    ),
    (
        "truncation",
        (lambda x, y: x + y, X, np.array([0.1])),
        (lambda x, y: x + y, X, np.array([0.5])),
        "it has few digits",
    ),
    (
        "truncation",
        (lambda x, y: x + y, X, np.array([0.1])),
        (lambda x, y: x + y, X, np.float32([0.1])),
        "it has 32 bits",
    ),
    (
        "truncation",
        (lambda x, y: x + y, X, np.array([0.1])),
        (lambda x, y: x + y, X, np.array([np.nan])),
        "NaN stays NaN",
    ),
    (
        "truncation",
        (lambda x: x + jnp.full(3, 256).astype(jnp.uint8), X),
        (lambda x: x + jnp.full(3, 255).astype(jnp.uint8), X),
        "it fits",
    ),
    # A key that is used twice.
    (
        "key-reuse",
        (lambda k: random.normal(k) + random.uniform(k), KEY),
        (lambda k, u: random.normal(k) + random.uniform(u), KEY, KEY),
        "nobody knows that they are one",
    ),
    (
        "key-reuse",
        (lambda k: random.normal(k) + random.uniform(k), KEY),
        (lambda k: random.normal(k) + random.uniform(random.fold_in(k, 1)), KEY),
        "another one is made of it",
    ),
    (
        "key-reuse",
        (lambda k: lax.fori_loop(0, 2, lambda i, x: x + random.normal(k), 0.0), KEY),
        (lambda k: lax.fori_loop(0, 1, lambda i, x: x + random.normal(k), 0.0), KEY),
        "the loop has one turn",
    ),
    (
        "key-reuse",
        (lambda k: lax.fori_loop(0, 2, lambda i, x: x + random.normal(k), 0.0), KEY),
        (lambda k: lax.fori_loop(0, 2, lambda i, x: x + random.normal(random.fold_in(k, i)), 0.0), KEY),
        "each turn has its own",
    ),
    (
        "key-reuse",
        (lambda k: jax.vmap(lambda x: x + random.normal(k))(X), KEY),
        (lambda k: jax.vmap(lambda x, k: x + random.normal(k))(X, random.split(k, 3)), KEY),
        "each element has its own",
    ),
    (
        "key-reuse",
        (lambda x: x + random.normal(random.key(0)), X),
        (lambda x, seed: x + random.normal(random.key(seed)), X, 3),
        "an argument decides it",
    ),
]


@pytest.mark.parametrize(("rule", "mistaken", "clean", "why"), PAIRS)
def test_a_rule_speaks_of_the_mistaken_program_and_not_of_the_clean_one(rule, mistaken, clean, why):
    assert findings(rule, *mistaken)
    assert findings(rule, *clean) == []


def sentences(finding):
    return finding.message, finding.evidence, finding.fix.text


def f(x, other):
    return x


def test_an_argument_that_nothing_depends_on_is_named_as_far_as_it_is_known():
    def three(x, tree):
        return x + tree["a"]

    more = {"a": X, "b": BELOW, "c": BELOW, "d": BELOW, "e": BELOW}
    rest = "its shape and dtype may be used. Another shape or dtype still recompiles"
    assert sentences(only("dead-code", f, X, X)) == (
        "f doesn't use the values of `other`",
        f"no result depends on it; {rest}",
        "leave `other` out",
    )
    assert sentences(only("dead-code", f, X, {"a": X, "b": X})) == (
        "f doesn't use the values of `other`",
        f"no result depends on them; {rest}",
        "leave `other` out",
    )
    assert sentences(only("dead-code", three, X, {"a": X, "b": BELOW, "c": X, "d": X})) == (
        "three doesn't use the values of `tree['b']`, `tree['c']`, `tree['d']`",
        f"no result depends on them; {rest}",
        "leave out of `tree` what isn't used",
    )
    assert only("dead-code", three, X, more).message == (
        "three doesn't use the values of `tree['b']`, `tree['c']`, `tree['d']` …"
    )


def test_a_line_that_nothing_depends_on_says_what_it_would_have_cost():
    def costly(x):
        _ = x @ x
        return x

    def several(x):
        _ = jnp.sort(x @ x @ x) + x
        return x

    assert sentences(only("dead-code", costly, BIG[:2, :2])) == (
        "what this line computes isn't used: XLA removes it, although it looks like a part of the result",
        "1 equation that no result depends on, dot_general among them",
        "delete the line, or return what it computes",
    )
    assert only("dead-code", several, BIG[:2, :2]).evidence.endswith("dot_general, sort among them")


def test_what_a_donation_can_not_be_used_for_is_said_with_what_there_is():
    def first(x, y):
        return x[:2], y.astype(jnp.int16), y.astype(jnp.int16)

    def nothing(x):
        jax.debug.print("{}", x)

    assert sentences(only("unusable-donation", donating(first, 0), X, X)) == (
        "first donates `x`, and no result can take its memory: nothing is saved, and it is gone after the call",
        "no result is left that is f32[3]: there are f32[2], i16[3]",
        "leave `x` out of donate_argnums and donate_argnames, or return an array of its shape and dtype",
    )
    two = only("unusable-donation", donating(lambda x: x["a"][:2] + x["b"][:2], 0), {"a": X, "b": X})
    assert two.message.startswith("<lambda> donates `x['a']` and 1 more arrays of `x`, and no result")
    assert only("unusable-donation", donating(nothing, 0), X).evidence.endswith("there are none")


@pytest.mark.parametrize(
    ("given", "severity", "message", "fix"),
    [
        (
            np.array([1, 2**31 + 5]),
            "error",
            "`y` is int64 and becomes int32 in f: 2,147,483,653 becomes -2,147,483,643",
            "numbers that int32 holds, or ",
        ),
        (
            np.array([1.0, 16_777_217.0]),
            "warning",
            "`y` is float64 and becomes float32 in f: 16777217 becomes 16777216",
            ".astype(np.float32) shows that it is intended, or ",
        ),
        (
            np.array([0.1]),
            "note",
            "`y` is float64 and becomes float32 in f: 7 digits are left of 16",
            ".astype(np.float32) shows that it is intended, or ",
        ),
        (
            np.array([1e39]),
            "error",
            "`y` is float64 and becomes float32 in f: numbers beyond 3.4e38 become infinite",
            "numbers that float32 holds, or ",
        ),
        (
            np.array([0.1 + 0.1j]),
            "note",
            "`y` is complex128 and becomes complex64 in f: 7 digits are left of 16",
            ".astype(np.complex64) shows that it is intended, or ",
        ),
    ],
)
def test_what_becomes_of_a_number_of_64_bits_is_said_by_how_grave_it_is(given, severity, message, fix):
    def f(x, y):
        return x, y * 2

    finding = only("truncation", f, X, given)
    assert (finding.severity, finding.message) == (severity, message)
    assert finding.evidence == (
        f"NumPy's {given.dtype}{list(given.shape)}; jax_enable_x64 is off, and JAX doesn't warn here"
    )
    whole = 'jax.config.update("jax_enable_x64", True) at the start of the program, for all of it'
    assert finding.fix.text == fix + whole
    with np.errstate(over="ignore"):  # NumPy narrows it likewise
        np.testing.assert_array_equal(np.asarray(jnp.asarray(given)), given.astype(jnp.asarray(given).dtype))


@pytest.mark.parametrize(
    ("number", "dtype", "message"),
    [
        (300, jnp.uint8, "300 is cast to uint8, which has numbers from 0 to 255: it becomes 44"),
        (-129, jnp.int8, "-129 is cast to int8, which has numbers from -128 to 127: it becomes 127"),
        (70_000, jnp.int16, "70,000 is cast to int16, which has numbers from -32,768 to 32,767: it becomes 4,464"),
    ],
)
def test_a_cast_says_what_the_type_holds_and_what_becomes_of_the_number(number, dtype, message):
    def f(x):
        return x + jnp.full(3, number).astype(dtype)

    finding = only("truncation", f, X)
    limits = np.iinfo(dtype)
    assert sentences(finding) == (
        message,
        "a constant int32[3]; JAX casts without a warning",
        f"a type that holds {number:,}, or jnp.clip(…, {limits.min}, {limits.max}) before the cast",
    )
    assert f"{int(jnp.full(3, number).astype(dtype)[0]):,}" == message.rpartition(" ")[2]


def test_a_list_is_counted_with_its_rows_and_named_by_where_it_is():
    flat, rows = only("list-of-scalars", total, counted(1000)), only("list-of-scalars", total, {"a": [[1, 2]] * 600})
    assert sentences(flat) == (
        "`tree` is a list of 1,000 numbers, and each of them becomes an argument of total for itself: traced, "
        "converted and passed one by one in every call",
        "1,000 scalars where one array would do",
        "jnp.asarray(tree) before the call of total",
    )
    assert rows.message.startswith("`tree['a']` is a list of lists of 1,200 numbers, and each of them")


def test_a_constant_says_how_large_it_is_and_how_to_pass_it():
    def f(x):
        return x @ BIG

    assert sentences(only("large-constant", f, BIG)) == (
        "`BIG` is a constant of the compiled f: 1.0 MB are in the program, and later changes have no effect",
        "f32[500,500]: 1,000,000 bytes, not passed as arguments",
        "make it an argument: f(…, BIG)",
    )
    made = only("large-constant", lambda x: x + np.ones((500, 500), np.float32), BIG)
    assert made.message.startswith("an array made in Python is a constant of the compiled <lambda>: 1.0 MB are in")
    assert made.fix.text == (
        "make it outside of <lambda> and pass it, or make it with jax.numpy, which does so in the program"
    )
