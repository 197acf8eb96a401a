"""Rules for loops, branches and called jaxprs. Loops run as often as the true sizes say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from explorer._jax.numbering import expanded
from explorer._jax.traces import scan_inputs
from explorer.padding.interpreter import Call, Layout, Value, make_value, rule
from explorer.padding.sizes import Refused, is_symbolic

_JIT = "name keep_unused inline in_layouts out_layouts donated_invars ctx_mesh in_shardings out_shardings"


@rule("jit pjit", parameters=f"jaxpr {_JIT}", absent="compiler_options_kvs", shrinks=True)
def jit(call: Call) -> Sequence[Value]:
    with jax.named_scope(f"jit({call.params['name']})"):
        return call.interpreter.run(call.params["jaxpr"], call.inputs)


# Custom derivatives are ignored: those that are needed were traced, and a padded program isn't differentiated.
@rule("closed_call core_call composite", parameters="call_jaxpr name attributes version", shrinks=True)
@rule("custom_vmap_call", parameters="call rule in_tree out_tree")
@rule("custom_jvp_call", parameters="call_jaxpr jvp_jaxpr_fun num_consts symbolic_zeros", shrinks=True)
@rule(
    "custom_vjp_call custom_vjp_call_jaxpr",
    parameters="call_jaxpr fun_jaxpr fwd_jaxpr_thunk num_consts bwd out_trees symbolic_zeros",
    shrinks=True,
)
def called(call: Call) -> Sequence[Value]:
    jaxpr = next(call.params[key] for key in ("call_jaxpr", "fun_jaxpr", "call") if key in call.params)
    return call.interpreter.run(jaxpr, call.inputs)


@rule("remat2 checkpoint remat", parameters="jaxpr prevent_cse differentiated policy")
def remat(call: Call) -> Sequence[Value]:
    inputs = list(call.inputs)
    if call.params["differentiated"] and call.params["prevent_cse"]:
        # As JAX does: without a barrier XLA would reuse the forward pass's values and keep them in memory.
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


def _walk(call: Call, jaxpr: Any, like: Sequence[Value], layouts: Sequence[Layout | None]) -> Callable[..., list[Any]]:
    """Return a loop's or branch's body as a function of arrays.

    Args:
        call: The equation.
        jaxpr: The body.
        like: Inputs whose layouts and fills the arrays share.
        layouts: Layouts of the results; None for one piece.
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
    same, carry = call.inputs[:constants], [v.settled() for v in call.inputs[constants : constants + carries]]
    slices = [call.unmerged(value, [0]) for value in call.inputs[constants + carries :]]
    inner = _rows(call.params["jaxpr"], slices)
    layouts = [*(value.layout for value in carry), *[None] * (len(call.avals) - carries)]
    body = _walk(call, call.params["jaxpr"], [*same, *_without_fills(carry), *inner], layouts)
    run = _scan_valid if is_symbolic(call.params["length"]) else _scan
    results = run(call, body, [value.array for value in same], [_array(v) for v in carry], [v.array for v in slices])
    last = [call.value(array, v.layout, at=at) for at, (array, v) in enumerate(zip(results, carry, strict=False))]
    # Rows of iterations that didn't run are 0.
    rows = zip(results[carries:], call.avals[carries:], strict=True)
    return [*last, *(make_value(array, aval, fills=(0, *[None] * (len(aval.shape) - 1))) for array, aval in rows)]


def _rows(jaxpr: Any, slices: Sequence[Value]) -> list[Value]:
    inputs: list[Any] = getattr(jaxpr, "jaxpr", jaxpr).invars
    variables = inputs[len(inputs) - len(slices) :]
    return [Value(None, v.aval, s.layout[1:], s.fills[1:]) for v, s in zip(variables, slices, strict=True)]


def _scan(call: Call, body: Callable[..., list[Any]], same: Any, carry: list[Any], slices: list[Any]) -> list[Any]:
    def step_once(carry: Any, row: Any) -> Any:
        results = body(*same, *carry, *row)
        return results[: len(carry)], results[len(carry) :]

    length, reverse = call.params["length"], call.params["reverse"]
    last, rows = lax.scan(step_once, carry, slices, length, reverse, call.params["unroll"])
    return [*last, *rows]


def _scan_valid(
    call: Call, body: Callable[..., list[Any]], same: Any, carry: list[Any], slices: list[Any]
) -> list[Any]:
    """Return a scan's results over a padded axis, from a `while` that has iterations for the valid rows only."""
    count = jnp.int32(call.sizes.true(call.params["length"]))
    made: list[Any] = [_zeros(call.sizes.shape(aval.shape), aval.dtype) for aval in call.avals[len(carry) :]]

    def step_once(state: Any) -> Any:
        step, carry, made = state
        row = count - 1 - step if call.params["reverse"] else step
        given: list[Any] = [lax.dynamic_index_in_dim(array, row, keepdims=False) for array in slices]
        results = body(*same, *carry, *given)
        new = results[len(carry) :]
        rows: list[Any] = [
            lax.dynamic_update_index_in_dim(rows, array, row, 0) for rows, array in zip(made, new, strict=True)
        ]
        return step + 1, results[: len(carry)], rows

    _, last, rows = lax.while_loop(lambda state: state[0] < count, step_once, (jnp.int32(0), carry, made))
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
    carry = _without_fills([value.settled() for value in call.inputs[count + more :]])
    layouts = [value.layout for value in carry]
    condition = call.params["cond_jaxpr"]
    (predicate,) = getattr(condition, "jaxpr", condition).outvars
    if any(is_symbolic(size) for size in predicate.aval.shape):
        # Lanes of a batched loop get the predicate's layout, one piece.
        lanes = range(len(predicate.aval.shape))
        carry = [call.unmerged(value, lanes) for value in carry]
        layouts = [value.layout for value in carry]
    test = _walk(call, condition, [*for_condition, *carry], [None])
    step = _walk(call, call.params["body_jaxpr"], [*for_body, *carry], layouts)
    constants, others = [v.array for v in for_condition], [v.array for v in for_body]

    def goes_on(state: Sequence[Any]) -> Any:
        return _valid(call, test(*constants, *state)[0], predicate.aval)

    def step_once(state: Sequence[Any]) -> list[Any]:
        new = step(*others, *state)
        if not predicate.aval.shape:
            return new
        going = goes_on(state)
        return [
            lax.select(lax.broadcast_in_dim(going, one.shape, range(going.ndim)), one, other)
            for one, other in zip(new, state, strict=True)
        ]

    results = lax.while_loop(lambda state: jnp.any(goes_on(state)), step_once, [_array(value) for value in carry])
    return [call.value(array, layout, at=at) for at, (array, layout) in enumerate(zip(results, layouts, strict=True))]


def _valid(call: Call, predicate: Any, aval: Any) -> Any:
    """Return a batched loop's predicate with False in padded lanes, which must not keep the loop going."""
    sizes = call.interpreter.inner().sizes
    for axis, size in enumerate(aval.shape):
        if is_symbolic(size):
            predicate &= lax.broadcast_in_dim(sizes.mask((size,)), predicate.shape, (axis,))
    return predicate


# Branches ---------------------------------------------------------------------------------------------------------


# With `branches_platforms` the index is chosen at lowering.
@rule("cond", "branches linear branches_platforms")
def cond(call: Call) -> list[Value]:
    which, *operands = call.inputs
    if which.padded_axes:
        raise Refused("a branch is chosen by an array with a padded axis")
    layouts = [None] * len(call.avals)
    branches = [_walk(call, branch, operands, layouts) for branch in call.params["branches"]]
    index = jnp.asarray(which.array).astype(jnp.int32)
    return call.values(lax.switch(index, branches, *(_array(value) for value in operands)))
