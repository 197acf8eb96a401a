"""A guard's verdict depends on its block alone, not on what compiled before: 20 orders of tests, one verdict."""

from __future__ import annotations

import random

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.errors import RecompilationError


def suite():
    """Functions that several tests share, and tests of them with their verdict: True for one that passes."""
    step = jax.jit(lambda x: x * 2)
    other = jax.jit(lambda x, n: x * n, static_argnames="n")
    loss = jax.jit(lambda x: jnp.sin(x).sum())
    rows = {n: jnp.ones(n) for n in (2, 3, 4, 5)}

    def calls(function, *sizes):
        return lambda: [function(rows[n]) for n in sizes]

    def guarded(guard, *work):
        def test():
            with guard():
                for do in work:
                    do()

        return test

    no = ex.assert_no_recompiles
    return {
        "unguarded warms up": (calls(step, 2, 3, 4, 5), True),
        "unguarded gradient": (lambda: jax.grad(loss)(rows[3]), True),
        "one size": (guarded(no, calls(step, 3, 3)), True),
        "another size": (guarded(lambda: no(step), calls(step, 5)), True),
        "two sizes": (guarded(no, calls(step, 3, 4)), False),
        "two sizes and a warm one": (guarded(lambda: no(step), calls(step, 2, 2, 3)), False),
        "at most two": (guarded(lambda: ex.max_compiles(step, 2), calls(step, 2, 3, 2)), True),
        "at most one": (guarded(lambda: ex.max_compiles(step, 1), calls(step, 2, 3)), False),
        "statics": (guarded(no, lambda: [other(rows[2], n=n) for n in (2, 3)]), False),
        "one static": (guarded(no, lambda: [other(rows[2], n=3) for _ in range(3)]), True),
        "a gradient": (guarded(no, lambda: [jax.grad(loss)(rows[3]) for _ in range(2)]), True),
        "value and gradient": (guarded(no, calls(loss, 3), lambda: jax.grad(loss)(rows[3])), True),
        "gradients of two sizes": (guarded(no, lambda: [jax.grad(loss)(rows[n]) for n in (3, 4)]), False),
        "at most the programs of a gradient": (
            guarded(lambda: ex.max_compiles(loss, 2), lambda: jax.grad(loss)(rows[3])), True,
        ),
        "fewer than the programs of a gradient": (
            guarded(lambda: ex.max_compiles(loss, 1), lambda: jax.grad(loss)(rows[3])), False,
        ),
        "batches of two sizes": (
            guarded(no, lambda: [jax.vmap(loss)(rows[n].reshape(-1, 1)) for n in (3, 4)]), False,
        ),
        "another wrapper": (guarded(no, lambda: [jax.jit(step.__wrapped__)(rows[3]) for _ in range(2)]), True),
    }  # fmt: skip


def verdict(test) -> bool:
    try:
        test()
    except RecompilationError:
        return False
    return True


@pytest.mark.parametrize("seed", range(20))
def test_the_verdict_is_one_in_every_order(seed):
    tests = suite()
    order = random.Random(seed).sample(list(tests), len(tests))
    wrong = {name: order[: order.index(name)] for name in order if verdict(tests[name][0]) != tests[name][1]}
    assert wrong == {}


def test_of_a_program_that_was_compiled_before_the_change_is_told_too():
    step = jax.jit(lambda x: x * 2)
    for n in (3, 4):
        step(jnp.ones(n))
    call = ex.assert_no_recompiles()(lambda *sizes: [step(jnp.ones(n)) for n in sizes])
    with pytest.raises(RecompilationError) as caught:
        call(3, 4)
    assert "x.shape[0]: 3 → 4 (shape)" in str(caught.value)
    assert "compiled before this block" in str(caught.value)


def test_a_guard_causes_no_misses_in_another_watch():
    step, x = jax.jit(lambda x: x * 2), jnp.ones(3)
    with ex.watch() as ledger:
        step(x)
        with ex.assert_no_recompiles():
            step(x)
        step(x)
    assert [event.kind for event in ledger.events] == ["trace", "lower", "compile"]
