"""lint(target=): the program of the target's own compiler is what the rules of compiled programs look at."""

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import explorer as ex

pytestmark = pytest.mark.slow  # a compiler of its own each

MESH = AbstractMesh((8,), ("data",), axis_types=(AxisType.Auto,))


def array(shape, *axes):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(MESH, P(*axes)))


@pytest.mark.parametrize(("fixture", "target"), [("cuda", "8xh100"), ("tpu", "v5e:2x4")])
def test_devices_that_all_do_the_same_are_found_though_none_is_here(fixture, target, request) -> None:
    request.getfixturevalue(fixture)

    def layer(w, x):
        return jnp.tanh(x @ w)

    findings = ex.lint(layer, array((4096, 4096)), array((1024, 4096)), target=target)
    assert {finding.rule for finding in findings} == {"idle-axis"}
    assert (findings.target, findings.subject) == (target, f"layer for {target}")
    assert not ex.lint(layer, array((4096, 4096), None, "data"), array((1024, 4096)), target=target).failure


def test_what_the_targets_compiler_refuses_is_its_own_error(tpu) -> None:
    large = jax.ShapeDtypeStruct((1 << 16, 1 << 16), jnp.float32)
    with pytest.raises(ex.errors.ExploreError, match="HBM"):
        ex.lint(lambda x: jnp.sin(x) + x.T, large, target=tpu)
    assert not ex.lint(jnp.sin, jnp.ones(8), target=tpu).failure
