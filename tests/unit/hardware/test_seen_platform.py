"""The platform that the user's code reads from a device while it is traced for a target."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

import explorer as ex

MESH = Mesh(np.array(jax.devices()[:1]), ("data",))


def by_platform(x):
    return jnp.sin(x) if MESH.devices[0].platform == "cpu" else jnp.cos(x)


def ops(capture: ex.Capture) -> set[str]:
    return {node.op for node in capture.jaxpr.graph.nodes}


def test_a_meshs_platform_is_the_targets(tpu) -> None:
    seen = []

    def read(x):
        seen.append(MESH.devices[0].platform)
        return x * 2

    ex.explore(read, jnp.ones(8), target=tpu)
    ex.explore(read, jnp.ones(8))
    assert seen == ["tpu", "cpu"]


def test_a_trace_for_a_target_never_serves_a_call_here(tpu) -> None:
    step = jax.jit(by_platform)
    assert "cos" in ops(ex.explore(step, jnp.ones(8), target=tpu))
    assert "sin" in ops(ex.explore(step, jnp.ones(8)))
    np.testing.assert_allclose(step(jnp.ones(8)), jnp.sin(jnp.ones(8)), rtol=1e-6)
    assert "cos" in ops(ex.explore(step, jnp.ones(8), target=tpu))  # also after a call here
