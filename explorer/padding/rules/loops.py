"""Loops and branches: as often as the true sizes say, each body a walk of its own.

Called programs are walked in their caller's place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from explorer._jax import scan_inputs
from explorer._jax.resharded import expanded
from explorer.padding.interpreter import Call
from explorer.padding.sizes import Refused, is_symbolic
from explorer.padding.values import Layout, Value, make_value, rule

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


def _array(value: Value) -> Any:
    is_key = jnp.issubdtype(value.aval.dtype, jax.dtypes.prng_key)
    return value.array if is_key else jnp.asarray(value.array, value.aval.dtype)


def _carried(values: Sequence[Value]) -> list[Value]:
    """What a loop carries, in a layout that each turn gives again."""
    return [value.settled() for value in values]


def _walk(call: Call, jaxpr: Any, like: Sequence[Value], layouts: Sequence[Layout | None]) -> Callable[..., list[Any]]:
    """A body as a function of arrays.

    Args:
        call: The loop.
        jaxpr: Of the body.
        like: Its inputs: of an array in their place the same is known.
        layouts: Of its results; None is in one piece.
    """

    def body(*arrays: Any) -> list[Any]:
        interpreter = call.interpreter.inner()
        values = [value.copy(array) for value, array in zip(like, arrays, strict=True)]
        results = interpreter.run(jaxpr, values)
        return [
            _array(interpreter.unmerged(r) if layout is None else interpreter.in_layout(r, layout))
            for r, layout in zip(results, layouts, strict=True)
        ]

    return body


def _without_fills(values: Sequence[Value]) -> list[Value]:
    return [Value(value.array, value.aval, value.layout, (None,) * value.rank) for value in values]


# Scan -------------------------------------------------------------------------------------------------------------


@rule("scan", "reverse length jaxpr num_consts num_carry ft_in ft_out linear unroll _split_transpose")
def scan(call: Call) -> list[Value]:
    constants, carries = scan_inputs(dict(call.params))
    same, carry = call.inputs[:constants], _carried(call.inputs[constants : constants + carries])
    slices = [call.unmerged(value, [0]) for value in call.inputs[constants + carries :]]
    inner = _rows(call.params["jaxpr"], slices)
    layouts = [*(value.layout for value in carry), *[None] * (len(call.avals) - carries)]
    body = _walk(call, call.params["jaxpr"], [*same, *_without_fills(carry), *inner], layouts)
    run = _turns if is_symbolic(call.params["length"]) else _scan
    results = run(call, body, [value.array for value in same], [_array(v) for v in carry], [v.array for v in slices])
    last = [call.value(array, v.layout, at=at) for at, (array, v) in enumerate(zip(results, carry, strict=False))]
    # Rows of turns that weren't taken are 0.
    rows = [make_value(a, aval) for a, aval in zip(results[carries:], call.avals[carries:], strict=True)]
    return [*last, *(Value(row.array, row.aval, row.layout, (0, *row.fills[1:])) for row in rows)]


def _rows(jaxpr: Any, slices: Sequence[Value]) -> list[Value]:
    """What is known of the rows that a body is given."""
    inputs: list[Any] = getattr(jaxpr, "jaxpr", jaxpr).invars
    variables = inputs[len(inputs) - len(slices) :]
    return [Value(None, v.aval, s.layout[1:], s.fills[1:]) for v, s in zip(variables, slices, strict=True)]


def _scan(call: Call, body: Callable[..., list[Any]], same: Any, carry: list[Any], slices: list[Any]) -> list[Any]:
    def turn(carry: Any, row: Any) -> Any:
        results = body(*same, *carry, *row)
        return results[: len(carry)], results[len(carry) :]

    length, reverse = call.params["length"], call.params["reverse"]
    last, rows = lax.scan(turn, carry, slices, length, reverse, call.params["unroll"])
    return [*last, *rows]


def _turns(call: Call, body: Callable[..., list[Any]], same: Any, carry: list[Any], slices: list[Any]) -> list[Any]:
    """A scan over a padded axis: only the valid rows have a turn.

    To take all and keep the carry would cost them, and a loop within might never end for what garbage it is given.
    """
    count = jnp.int32(call.sizes.true(call.params["length"]))
    made: list[Any] = [_zeros(call.sizes.shape(aval.shape), aval.dtype) for aval in call.avals[len(carry) :]]

    def turn(state: Any) -> Any:
        step, carry, made = state
        row = count - 1 - step if call.params["reverse"] else step
        given: list[Any] = [lax.dynamic_index_in_dim(array, row, keepdims=False) for array in slices]
        results = body(*same, *carry, *given)
        new = results[len(carry) :]
        rows: list[Any] = [
            lax.dynamic_update_index_in_dim(rows, array, row, 0) for rows, array in zip(made, new, strict=True)
        ]
        return step + 1, results[: len(carry)], rows

    _, last, rows = lax.while_loop(lambda state: state[0] < count, turn, (jnp.int32(0), carry, made))
    return [*last, *rows]


def _zeros(shape: Sequence[int], dtype: Any) -> Any:
    if jnp.issubdtype(dtype, jax.dtypes.prng_key):
        return jnp.broadcast_to(jax.random.key(0), shape)
    return jnp.zeros(shape, dtype)


# While ------------------------------------------------------------------------------------------------------------


@rule("while", "cond_nconsts cond_jaxpr body_nconsts body_jaxpr")
def while_(call: Call) -> list[Value]:
    count, more = call.params["cond_nconsts"], call.params["body_nconsts"]
    for_condition, for_body = call.inputs[:count], call.inputs[count : count + more]
    carry = _without_fills(_carried(call.inputs[count + more :]))
    layouts = [value.layout for value in carry]
    condition = call.params["cond_jaxpr"]
    (predicate,) = getattr(condition, "jaxpr", condition).outvars
    if any(is_symbolic(size) for size in predicate.aval.shape):
        # Lanes of a batched loop: laid out in one piece, as the predicate is.
        lanes = range(len(predicate.aval.shape))
        carry = [call.unmerged(value, lanes) for value in carry]
        layouts = [value.layout for value in carry]
    test = _walk(call, condition, [*for_condition, *carry], [None])
    step = _walk(call, call.params["body_jaxpr"], [*for_body, *carry], layouts)
    constants, others = [v.array for v in for_condition], [v.array for v in for_body]

    def goes_on(state: Sequence[Any]) -> Any:
        return _valid(call, test(*constants, *state)[0], predicate.aval)

    def turn(state: Sequence[Any]) -> list[Any]:
        new = step(*others, *state)
        if not predicate.aval.shape:
            return new
        going = goes_on(state)
        return [_select_lanes(going, one, other) for one, other in zip(new, state, strict=True)]

    results = lax.while_loop(lambda state: jnp.any(goes_on(state)), turn, [_array(value) for value in carry])
    return [call.value(array, layout, at=at) for at, (array, layout) in enumerate(zip(results, layouts, strict=True))]


def _valid(call: Call, predicate: Any, aval: Any) -> Any:
    """A predicate of lanes, False in the padding: garbage mustn't keep the loop going."""
    sizes = call.interpreter.inner().sizes
    for axis, size in enumerate(aval.shape):
        if is_symbolic(size):
            predicate &= lax.broadcast_in_dim(sizes.mask((size,)), predicate.shape, (axis,))
    return predicate


def _select_lanes(going: Any, new: Any, old: Any) -> Any:
    return lax.select(lax.broadcast_in_dim(going, new.shape, range(going.ndim)), new, old)


# Branches ---------------------------------------------------------------------------------------------------------


# Of branches for platforms the index, which is chosen when it is lowered, says which.
@rule("cond", "branches linear branches_platforms")
def cond(call: Call) -> list[Value]:
    which, *operands = call.inputs
    if which.padded_axes:
        raise Refused("a branch is chosen by an array with a padded axis")
    layouts = [None] * len(call.avals)
    branches = [_walk(call, branch, operands, layouts) for branch in call.params["branches"]]
    index = jnp.asarray(which.array).astype(jnp.int32)
    return call.values(lax.switch(index, branches, *(_array(value) for value in operands)))
