"""A reason is a fact: a transformation, a mesh's order and a cleared cache are named where they were seen."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex

X = np.ones(4, np.float32)


def reasons(*calls, of="f"):
    """The reason of each compile of `of` by these calls."""
    jax.clear_caches()
    with ex.watch(storm=0) as ledger:
        for call in calls:
            call()
    assert not ledger.faults
    events = [event for event in ledger.events if event.function == of]
    return [*{event.call: event.reason for event in events}.values()]


def fresh():
    """A jitted function that nothing has compiled yet."""

    @jax.jit
    def f(x):
        return jnp.sin(x).sum()

    return f


# --- transformations


@pytest.mark.parametrize(
    ("transform", "named"),
    [
        (lambda jitted: jax.grad(jitted)(X), "linearize"),
        (lambda jitted: jax.jvp(jitted, (X,), (X,)), "jvp"),
        (lambda jitted: jax.vmap(jitted)(X), "vmap"),
        (lambda jitted: jax.vmap(jax.grad(jitted))(X), "vmap(linearize)"),
    ],
)
def test_a_call_inside_of_a_transformation_is_a_program_of_its_own(transform, named):
    jitted = fresh()
    _, again, *_ = reasons(lambda: jitted(X if "vmap" not in named else X[0]), lambda: transform(jitted))
    assert (again.kind, again.leaf, again.before, again.after) == ("transformation", "", "none", named)
    assert "forgotten" not in again.text


def test_two_sizes_under_one_transformation_differ_in_their_size():
    jitted = fresh()
    plain, first, size = reasons(
        lambda: jitted(X), lambda: jax.vmap(jitted)(np.ones((2, 4))), lambda: jax.vmap(jitted)(np.ones((3, 4)))
    )
    assert (plain.kind, first.kind) == ("first", "transformation")
    assert (size.kind, size.leaf, size.before, size.after) == ("shape", "x.shape[0]", "2", "3")


def test_what_is_derived_is_not_said_to_be_the_first_call_of_the_function():
    made = [jax.jit(lambda x: jnp.cos(x).sum()) for _ in range(2)]
    *_, backward, _, again = reasons(*[lambda own=own: jax.grad(own)(X) for own in made], of="<lambda>")
    assert backward.kind == "first"
    assert "what JAX derived from `<lambda>`" in backward.text
    assert again.kind == "function"
    assert "2 functions from there so far" in again.text


# --- caches


def test_a_clear_is_seen():
    jitted = fresh()
    assert [reason.kind for reason in reasons(lambda: jitted(X), jax.clear_caches, lambda: jitted(X))][1] == "evicted"


def test_a_clear_of_one_function_is_seen():
    jitted, other = fresh(), fresh()
    calls = (lambda: jitted(X), lambda: jitted.clear_cache(), lambda: jitted(X))
    assert [reason.kind for reason in reasons(*calls)] == ["first", "evicted"]
    assert reasons(lambda: jitted(X), lambda: other.clear_cache(), lambda: jitted(X))[1:] == []
    # `jax.jit` sets the method again for each function, also while a watch is on.
    calls = (lambda: fresh()(X), lambda: jitted(X), lambda: jitted.clear_cache(), lambda: jitted(X))
    assert reasons(*calls)[-1].kind == "evicted"


def test_jax_has_its_own_clear_back_after_the_watch():
    own = type(fresh()).clear_cache
    with ex.watch():
        fresh()
        assert type(fresh()).clear_cache is not own
    assert type(fresh()).clear_cache is own


def test_without_a_clear_nothing_is_said_to_have_been_forgotten():
    from jax._src.interpreters import partial_eval

    jitted = fresh()

    def forget():  # as if JAX compared something that no key has
        partial_eval.trace_to_jaxpr.cache_clear()
        from jaxlib import _jax

        _jax.PjitFunctionCache.clear_all()

    _, again = reasons(lambda: jitted(X), forget, lambda: jitted(X))
    assert again.kind == "unknown"
    assert again.fix == ""
    assert "can't be seen" in again.text


# --- meshes

MESHES = """
import jax, jax.numpy as jnp, numpy as np, explorer as ex
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

devices = np.array(jax.devices())
straight, turned, one = Mesh(devices, "d"), Mesh(devices[::-1], "d"), Mesh(devices[:1], "d")


def told(*values, around=None):
    step = jax.jit(lambda x: x * 2)
    with ex.watch(storm=0) as ledger:
        for value in values:
            if around is None:
                step(jax.device_put(np.ones(8, np.float32), value))
            else:
                with jax.set_mesh(value):
                    step(np.ones(8, np.float32))
    assert not ledger.faults, ledger.faults
    reason = [event.reason for event in ledger.events if event.function == "<lambda>"][-1]
    print(reason.kind, reason.leaf, reason.before, reason.after, sep="|")


told(NamedSharding(straight, P("d")), NamedSharding(turned, P("d")))
told(devices[0], NamedSharding(one, P("d")))
told(straight, turned, around=True)
"""


def test_the_order_of_a_mesh_and_a_mesh_of_one_device_are_named():
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", MESHES], capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    order, single, context = done.stdout.splitlines()
    assert order == "sharding|x|P('d') over d=4|P('d') over d=4 on devices 3, 2, 1, 0"
    assert single == "sharding|x|cpu:0|P('d') over d=1"
    kind, leaf, before, after = context.split("|")
    assert (kind, leaf) == ("context", "mesh")
    assert "devices 3, 2, 1, 0" in after
    assert "devices" not in before
