"""A watch that begins late still knows what had compiled before, and compares with that."""

import gc
import weakref
from functools import partial

import jax
import jax.numpy as jnp
import pytest

import explorer as ex

SMALL, LARGE = jnp.ones((2, 3)), jnp.ones((4, 3))


def late(function, *args, **kwargs):
    """The reason of the one compile that a watch sees of a function's first watched call."""
    with ex.watch() as ledger:
        function(*args, **kwargs)
    (reason,) = {event.reason for event in ledger.events if not event.key.function.eager}
    return reason


def told(reason):
    return reason.kind, reason.leaf, reason.before, reason.after


def test_a_size_that_changed_since_is_named():
    step = jax.jit(lambda batch: batch["x"] * 2)
    step({"x": SMALL})
    assert told(late(step, {"x": LARGE})) == ("shape", "batch['x'].shape[0]", "2", "4")


def test_the_nearest_of_several_is_compared_with():
    step = jax.jit(lambda x, y: x.sum() + y.sum())
    step(SMALL, LARGE)
    step(LARGE, SMALL)
    assert told(late(step, LARGE, LARGE)) in [("shape", "y.shape[0]", "2", "4"), ("shape", "x.shape[0]", "2", "4")]


@pytest.mark.parametrize(
    ("before", "after", "kind", "leaf"),
    [
        ((SMALL,), (SMALL.astype(jnp.int32),), "dtype", "x"),
        ((1.0,), (jnp.float32(1),), "weak-type", "x"),
        ((SMALL,), (jnp.ones(3),), "rank", "x"),
        (({"a": SMALL},), ({"a": SMALL, "b": SMALL},), "structure", None),
    ],
)
def test_types_ranks_and_keys_are_named_too(before, after, kind, leaf):
    step = jax.jit(lambda x: jax.tree.map(lambda leaf: leaf * 2, x))
    step(*before)
    reason = late(step, *after)
    assert reason.kind == kind
    assert leaf is None or reason.leaf.partition(".")[0] == leaf


def test_what_can_not_be_compared_is_said_to_be_unknown_and_is_no_first_compile():
    @partial(jax.jit, static_argnames="n")
    def step(x, n):
        return x * n

    step(SMALL, n=2)
    reason = late(step, SMALL, n=3)
    assert reason.kind == "unknown"
    assert "had compiled before anything watched" in reason.text
    with ex.watch() as ledger:
        step(SMALL, n=4)
    assert len(ledger.recompiles(step)) == 1


@pytest.mark.parametrize("library", ["equinox", "nnx"])
def test_of_a_librarys_call_before_the_watch_no_change_is_invented(library):
    if library == "nnx":
        nnx = pytest.importorskip("flax.nnx")
        step, model = nnx.jit(lambda model, x: model(x)), nnx.Linear(3, 2, rngs=nnx.Rngs(0))
    else:
        step, model = pytest.importorskip("equinox").filter_jit(lambda model, x: model(x)), jnp.sin
    step(model, SMALL)
    reason = late(step, model, LARGE)
    assert (reason.kind, reason.leaf) == ("unknown", "")
    assert "earlier calls were not observed" in reason.text


def test_a_function_that_had_not_compiled_is_the_first():
    step = jax.jit(lambda x: x * 2)
    jax.eval_shape(step, SMALL)  # traced, and not compiled
    assert late(step, SMALL).kind == "first"


def test_another_function_of_the_same_place_is_the_first():
    def made(scale):
        return jax.jit(lambda x: x * scale)

    kept = made(2)
    kept(SMALL)
    assert late(made(3), LARGE).kind == "first"


def test_what_compiled_between_two_watches_is_known_to_the_second():
    step = jax.jit(lambda x: x * 2)
    with ex.watch():
        pass
    step(SMALL)
    assert told(late(step, LARGE)) == ("shape", "x.shape[0]", "2", "4")


def test_nothing_is_kept_alive():
    def step(x):
        return x * 2

    jax.jit(step)(SMALL)
    gone = weakref.ref(step)
    with ex.watch():
        del step
        gc.collect()
        assert gone() is None
