"""Which traces are certain to be of one device: held against the number in the module that JAX lowers each to."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from explorer._jax.traces import is_of_one_device

COUNTED = """
import json, jax, jax.numpy as jnp
from jax import lax
from explorer._jax.traces import is_of_one_device
from tests.corpus_sharding.programs import mesh_of

several, single = mesh_of(x=8), jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
split, alone = jax.NamedSharding(several, jax.P("x")), jax.NamedSharding(single, jax.P("x"))
x, on_8 = jnp.ones(8), jax.device_put(jnp.ones(8), split)
constrained = lambda x: lax.with_sharding_constraint(x, split)
mapped = jax.shard_map(jnp.sin, mesh=several, in_specs=jax.P("x"), out_specs=jax.P("x"))
looped = lambda body: lambda x: lax.scan(lambda carry, _: (body(carry), None), x, None, 2)[0]
programs = {
    "plain": (lambda x: jnp.where(x > 0, jnp.sin(x), 0.0).sum(), x),
    "gradient of a loop": (jax.grad(lambda x: looped(jnp.sin)(x).sum()), x),
    "a mesh of one": (lambda x: lax.with_sharding_constraint(jnp.sin(x), alone), x),
    "put on a device": (jnp.sin, jax.device_put(x, jax.devices()[3])),
    "argument": (jnp.sin, on_8),
    "argument in a tree": (lambda tree: tree["a"][1] + 1, {"a": (x, on_8)}),
    "described": (jnp.sin, jax.ShapeDtypeStruct((8,), jnp.float32, sharding=split)),
    "unused argument": (lambda x, _: jnp.sin(x), x, on_8),
    "in_shardings": (jax.jit(jnp.sin, in_shardings=split), x),
    "out_shardings": (jax.jit(jnp.sin, out_shardings=split), x),
    "constraint": (constrained, x),
    "constraint in a loop": (looped(constrained), x),
    "constraint in a branch": (lambda x: lax.cond(x[0] > 0, constrained, jnp.cos, x), x),
    "inner jit": (lambda x: jax.jit(jnp.sin, in_shardings=split)(x) + 1, x),
    "inner jit in a loop": (looped(jax.jit(jnp.sin, out_shardings=split)), x),
    "shard_map": (mapped, x),
    "shard_map in a loop": (looped(mapped), x),
    "put inside": (lambda x: jax.device_put(jnp.sin(x), split), x),
    "constant": (lambda x: x + on_8, x),
    "constant of an inner jit": (lambda x: jax.jit(lambda y: y + on_8)(x), x),
}

def outcome(function, *args):
    traced = jax.jit(function).trace(*args) if not hasattr(function, "trace") else function.trace(*args)
    certain = is_of_one_device(traced)
    try:
        module = traced.lower().compiler_ir("stablehlo")
    except Exception:  # constants that are elsewhere than the rest: nothing is lowered then
        return certain, 0
    return certain, module.operation.attributes["mhlo.num_partitions"].value

outcomes = {name: outcome(*program) for name, program in programs.items()}
with jax.set_mesh(several):
    outcomes["a mesh around it"] = outcome(jnp.sin, x)
with jax.set_mesh(single):
    outcomes["a mesh of one around it"] = outcome(jnp.sin, x)
with jax.sharding.use_abstract_mesh(several.abstract_mesh):
    outcomes["an abstract mesh around it"] = outcome(jnp.sin, x)
jax.config.update("jax_use_simplified_jaxpr_constants", True)  # passes constants in, as arguments
outcomes |= {f"{name}, passed in": outcome(*programs[name]) for name in ("constant", "constant of an inner jit")}
print(json.dumps(outcomes))
"""


@pytest.fixture(scope="module")
def outcomes():
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    done = subprocess.run(
        [sys.executable, "-c", COUNTED],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[3],
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_no_program_of_several_devices_is_said_to_be_of_one(outcomes):
    several = {name: count for name, (certain, count) in outcomes.items() if count > 1}
    assert len(several) >= 14
    assert [name for name in several if outcomes[name][0]] == []


def test_a_program_of_one_device_is_known_without_lowering_it(outcomes):
    single = {"plain", "gradient of a loop", "a mesh of one", "put on a device", "a mesh of one around it"}
    assert {name: outcomes[name] for name in single} == {name: [True, 1] for name in single}


def test_what_keeps_its_trace_elsewhere_is_not_certain():
    assert not is_of_one_device(object())
