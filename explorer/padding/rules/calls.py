"""Calls: the called program is walked in its caller's place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from explorer._jax.resharded import expanded
from explorer.padding.interpreter import Call
from explorer.padding.refused import Refused
from explorer.padding.registry import rule
from explorer.padding.values import Value

_JIT = "name keep_unused inline in_layouts out_layouts donated_invars ctx_mesh in_shardings out_shardings"


@rule("jit pjit", parameters=f"jaxpr {_JIT}", absent="compiler_options_kvs", shrinks=True)
def jit(call: Call) -> Sequence[Value]:
    with jax.named_scope(f"jit({call.params['name']})"):
        return call.interpreter.run(call.params["jaxpr"], call.inputs)


@rule("closed_call core_call composite", parameters="call_jaxpr name attributes version", shrinks=True)
def closed_call(call: Call) -> Sequence[Value]:
    return call.interpreter.run(call.params["call_jaxpr"], call.inputs)


# Whose derivatives were asked for before the trace, or aren't: a padded program has none of its own.
@rule("custom_jvp_call", parameters="call_jaxpr jvp_jaxpr_fun num_consts symbolic_zeros", shrinks=True)
@rule(
    "custom_vjp_call custom_vjp_call_jaxpr",
    parameters="call_jaxpr fun_jaxpr fwd_jaxpr_thunk num_consts bwd out_trees symbolic_zeros",
    shrinks=True,
)
def custom_derivative(call: Call) -> Sequence[Value]:
    jaxpr = call.params.get("call_jaxpr", call.params.get("fun_jaxpr"))
    return call.interpreter.run(jaxpr, call.inputs)


@rule("custom_vmap_call", parameters="call rule in_tree out_tree")
def custom_batch(call: Call) -> Sequence[Value]:
    return call.interpreter.run(call.params["call"], call.inputs)


@rule("remat2 checkpoint remat", parameters="jaxpr prevent_cse differentiated policy")
def remat(call: Call) -> Sequence[Value]:
    inputs = list(call.inputs)
    if call.params["differentiated"] and call.params["prevent_cse"]:
        # What JAX puts there too: without it the compiler finds the same computation before, and keeps it in memory.
        arrays = lax.optimization_barrier([value.array for value in inputs])
        inputs = [value.copy(array) for value, array in zip(inputs, arrays, strict=True)]
    return call.interpreter.run(call.params["jaxpr"], inputs)


@rule("call_hi_primitive", "_prim")
def high_level(call: Call) -> Sequence[Value]:
    return call.interpreter.run(expanded(call.equation), call.inputs)


@rule("device_put", "devices srcs copy_semantics")
def device_put(call: Call) -> Sequence[Value]:
    if any(device is not None for device in call.params["devices"]):
        raise Refused("an array is moved to another device")
    arrays = call.bind(*(value.array for value in call.inputs))
    return [value.copy(array) for value, array in zip(call.inputs, arrays, strict=True)]


@rule("dim_as_value", parameters="dim", shrinks=True)
def dimension(call: Call) -> Value:
    size: Any = call.sizes.true(call.params["dim"])
    return call.value(jnp.asarray(size, call.avals[0].dtype))
