"""How far two results, or two programs, are from each other; what a function printed meanwhile; which passes ran."""

import io
import threading
from dataclasses import dataclass
from math import inf, isnan, nan

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorer.capture.agreement import differ, difference_of
from explorer.capture.passes import START, Run, _runs_of
from explorer.capture.script import Prints


@pytest.mark.parametrize(
    ("result", "plain", "absolute", "relative"),
    [
        ([1.0, 4.0], [1.0, 4.5], 0.5, 0.5 / 4.5),
        ([1.0, 4.0], [1.0, 4.0], 0.0, 0.0),
        ([nan, inf, -inf], [nan, inf, -inf], 0.0, 0.0),
        ([1.0, 2.0], [nan, 2.0], nan, nan),
        ([inf, 2.0], [1.0, 2.0], inf, inf),
        ([1.0, 2.0], [1.0, inf], inf, inf),
        # What is infinite on both sides is no scale for the others.
        ([inf, 1.0], [inf, 2.0], 1.0, 0.5),
        ([1.0], [0.0], 1.0, nan),  # nothing to be relative to
        ([True, False], [True, True], 1.0, 1.0),
        ([1 + 1j], [1 - 2j], 3.0, 3.0 / 5**0.5),
        ([1.0], [1.0, 1.0], nan, nan),  # of another shape
    ],
)
def test_the_largest_difference_of_two_arrays(result, plain, absolute, relative):
    difference = difference_of(np.array(result), np.array(plain))
    assert difference.absolute == pytest.approx(absolute, nan_ok=True)
    assert difference.relative == pytest.approx(relative, nan_ok=True)


def test_the_largest_difference_of_several_arrays_is_of_any_of_them():
    # The first is far in numbers, the second in share.
    difference = difference_of((np.array([90.0]), np.array([1.0])), (np.array([100.0]), np.array([2.0])))
    assert (difference.absolute, difference.relative) == (10.0, 0.5)
    assert isnan(difference_of((1.0,), (1.0, 2.0)).absolute)
    # One that is nowhere near zeros makes the whole not comparable, and hides no larger difference.
    apart = difference_of(([1.0], [5.0]), ([0.0], [1.0]))
    assert apart.absolute == 4.0
    assert isnan(apart.relative)
    key, other = jax.random.key(0), jax.random.key(1)
    assert difference_of(key, key).absolute == 0.0
    assert difference_of(key, other).absolute == 1.0


def traced(f, *args):
    return jax.make_jaxpr(f)(*args)


X = jnp.ones((4, 3))
HALF = X.astype(jnp.bfloat16)


@pytest.mark.parametrize(
    ("one", "other", "args", "differs"),
    [
        (lambda x: x * 2, lambda x: x + x, (X,), False),
        (lambda x: x * 2, lambda x: x * 2.02, (X,), True),
        (lambda x: x * 2, lambda x: x * 2.001, (X,), False),  # within a thousandth of the largest
        (lambda x: x * 2, lambda x: x * 2.08, (HALF,), False),  # of numbers of 16 bits a twentieth
        (lambda x: x * 2, lambda x: x * 2.25, (HALF,), True),
        (lambda x: x.sum(0), lambda x: x.sum(1), (X,), True),  # of another shape
        (lambda x: x.sum(0), lambda x: x.sum(0).astype(jnp.int32), (X,), True),
        (lambda x: jnp.sqrt(-jnp.abs(x)), lambda x: jnp.sqrt(-jnp.abs(x)), (X,), False),  # NaN is NaN
        (lambda x: x, lambda x: x.at[0, 0].set(jnp.nan), (X,), True),
        (lambda n: n % 2, lambda n: n & 1, (jnp.arange(9),), False),
        (lambda n: n % 2, lambda n: n % 3, (jnp.arange(9),), True),
        (lambda p: ~p, lambda p: p, (jnp.arange(9) > 3,), True),
        (lambda z: z.conj(), lambda z: z, (jnp.ones(3, jnp.complex64),), False),  # it is given real numbers
        (lambda z: (z * 1j).conj(), lambda z: z * 1j, (jnp.ones(3, jnp.complex64),), True),
        (lambda k: jax.random.split(k), lambda k: jax.random.split(k), (jax.random.key(0),), False),
        (lambda k: jax.random.split(k)[0], lambda k: jax.random.split(k)[1], (jax.random.key(0),), True),
        (lambda k: k, lambda k: jax.random.fold_in(k, 1), (jax.random.key(0, impl="rbg"),), True),
        # What isn't run counts as equal: one that calls the host, one that is too large.
        (lambda x: jax.debug.print("{}", x) or x, lambda x: x * 2, (X,), False),
        (lambda x: jnp.ones((1 << 13, 1 << 13)).sum() * x, lambda x: x * 3, (X,), False),
        (lambda x: x * 3, lambda x: jnp.ones((1 << 13, 1 << 13)).sum() * x, (X,), False),
        (
            lambda x: jax.lax.fori_loop(0, 2, lambda _, y: y + jnp.ones((1 << 13, 1 << 13)).sum(), x),
            *(lambda x: x * 3, (X,), False),
        ),
    ],
)
def test_programs_differ_where_their_numbers_do(one, other, args, differs):
    assert differ(traced(one, *args), traced(other, *args)) is differs


def test_what_is_printed_is_shown_or_counted_by_lines():
    stream = io.StringIO()
    prints = Prints(stream)
    assert prints.write("first\n") == 6
    assert prints.notes == []
    with prints.muted():
        assert prints.write("a\nb\n") == 4
        assert prints.write("no end") == 6
    prints.write("shown\n")
    prints.mute()
    with prints.muted():
        pass
    assert prints.is_muted
    thread = threading.Thread(target=prints.write, args=("another's\n",))
    thread.start()
    thread.join()
    assert stream.getvalue() == prints.getvalue() == "first\nshown\nanother's\n"
    assert prints.notes == [
        "it prints: shown for the first call, then 2 lines muted; printing takes time too, and that is part of the "
        "measured time"
    ]
    one = Prints(stream)
    one.mute()
    one.write("\n")
    assert "then 1 line muted" in one.notes[0]


@dataclass
class Event:
    """As a recorded profile has it, in nanoseconds."""

    name: str
    start_ns: float
    duration_ns: float


def test_passes_run_in_the_pipeline_around_them_and_take_their_seconds():
    events = [
        Event("dce", 20, 10),
        Event("nothing around", 0, 5),
        Event("simplification (jit_f)", 10, 90),
        Event("RunInvariantCheckers", 12, 2),
        # A pass that is a pipeline: what runs in it counts.
        Event("fixpoint", 40, 40),
        Event("fixpoint (jit_f)", 40, 40),
        Event("algsimp", 50, 10),
        Event("inside of a pass", 52, 1),
        Event("cse", 60, 10),
        Event("last", 85, 5),
        Event("after", 100, 5),
    ]
    assert _runs_of(events) == [
        Run(START, "simplification"),
        Run("dce", "simplification", 1e-8),
        Run(START, "fixpoint"),
        Run("algsimp", "fixpoint", 1e-8),
        Run("cse", "fixpoint", 1e-8),
        Run("last", "simplification", 5e-9),
    ]
    assert _runs_of([]) == []
