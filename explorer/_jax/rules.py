"""Rules of custom derivatives and batches: Python that JAX runs later than the trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from explorer._jax.arguments import struct_of
from explorer._jax.symbolic import Substitution, at_sizes, has_symbols
from explorer._jax.traces import inner_jaxprs, is_of_users, jaxpr_as_fun

# By primitive, the parameter whose debug info identifies the rule's author: the rule, or the call.
_RULES = {"custom_jvp_call": "jvp_jaxpr_fun", "custom_vjp_call": "fwd_jaxpr_thunk", "custom_vmap_call": "call"}
_ORDERS = 2  # of derivatives: a rule may call its own function, so there is no last one


def freeze_rules(closed: Any, own: Callable[[Any], Any]) -> tuple[Any, list[Any]]:
    """Return a program whose custom derivatives and batches are what their rules give now, and the rules as closed
    jaxprs.

    JAX's own rules read no state and stay as they are. So does a rule that fails here, as it will fail later. `own`
    returns a closed jaxpr that shares no NumPy array with the user.
    """
    if not _has_users_rule(closed):
        return closed, []
    freezer = _Freezer(own, _ORDERS)
    return freezer.value(closed), freezer.rules


def _has_users_rule(jaxpr: Any) -> bool:
    equations: Sequence[Any] = getattr(jaxpr, "jaxpr", jaxpr).eqns
    return any(
        _is_users_rule(equation) or any(_has_users_rule(inner) for _, inner in inner_jaxprs(equation.params))
        for equation in equations
    )


def _is_users_rule(equation: Any) -> bool:
    rule = equation.params.get(_RULES.get(equation.primitive.name))
    return is_of_users(getattr(getattr(rule, "jaxpr", rule), "debug_info", None))


class _Freezer(Substitution):
    """Substitution that rewrites only equations with a user's rule."""

    def __init__(self, own: Callable[[Any], Any], orders: int) -> None:
        super().__init__({})
        self.own, self.orders = own, orders
        self.rules: list[Any] = []

    def size(self, dimension: Any) -> Any:
        return dimension

    def is_size(self, equation: Any) -> bool:
        return False

    def equation(self, equation: Any) -> Any:
        same = super().equation(equation)
        if not self.orders or not _is_users_rule(same):
            return same
        try:
            if same.primitive.name == "custom_vmap_call":  # an equation with symbols is batched in another trace
                return same if has_symbols(same) else self.batched(same)
            rule = _Rule(same, self)
            return rule.frozen() if rule.floats and rule.out_floats else same
        except Exception:  # the rule will raise again when it is needed
            return same

    def batched(self, equation: Any) -> Any:
        """Return the equation with a rule for batches of any size, traced now with all arguments batched."""
        rule, tree, out_tree = (equation.params[key] for key in ("rule", "in_tree", "out_tree"))
        (count,) = export.symbolic_shape("count")

        def run(values: Sequence[Any]) -> list[Any]:
            all_batched = list(jax.tree.unflatten(tree, [True] * len(values)))
            results, are_batched = rule(count, all_batched, *jax.tree.unflatten(tree, values))
            pairs = zip(jax.tree.leaves(results), jax.tree.leaves(are_batched), strict=True)
            return [_batched(result, count, is_batched) for result, is_batched in pairs]

        avals = [variable.aval for variable in equation.invars]
        structs = [jax.ShapeDtypeStruct((count, *a.shape), a.dtype, weak_type=a.weak_type) for a in avals]
        closed = self.own(jax.jit(run).trace(structs).jaxpr)
        self.rules.append(closed)

        def frozen(count: int, are_batched: Any, *args: Any) -> Any:
            pairs = zip(jax.tree.leaves(args), jax.tree.leaves(are_batched), strict=True)
            values = [_batched(value, count, is_batched) for value, is_batched in pairs]
            results = cast(list[Any], jaxpr_as_fun(at_sizes(closed, {"count": count}))(*values))
            return jax.tree.unflatten(out_tree, results), jax.tree.unflatten(out_tree, [True] * len(results))

        return equation.replace(params={**equation.params, "rule": frozen})

    def rule(self, function: Callable[..., Any], *avals: Sequence[Any]) -> Any:
        """Trace a rule for these types; return a function of the flat values, and the types of its results."""
        structs = [list(map(struct_of, part)) for part in avals]
        closed = self.own(jax.jit(function).trace(*structs).jaxpr)
        self.rules.append(closed)
        inner = _Freezer(self.own, self.orders - 1)
        return cast(Any, jaxpr_as_fun(inner.value(closed))), closed.out_avals


class _Rule:
    """One equation with a user's rule. Only floats have a derivative; other values are passed through."""

    def __init__(self, equation: Any, freezer: _Freezer) -> None:
        self.equation, self.freezer = equation, freezer
        self.avals = [variable.aval for variable in equation.invars]
        self.out_avals = [variable.aval for variable in equation.outvars]
        self.floats, self.out_floats = _floats(self.avals), _floats(self.out_avals)

    def frozen(self) -> Any:
        call: Any = cast(Any, jaxpr_as_fun(self.equation.params["call_jaxpr"]))
        make = self._with_jvp if self.equation.primitive.name == "custom_jvp_call" else self._with_vjp
        (equation,) = jax.jit(make(lambda *values: call(*values))).trace(*map(struct_of, self.avals)).jaxpr.eqns
        # The call stays as it was: its equations have their lines.
        kept = {"call_jaxpr": self.equation.params["call_jaxpr"]}
        return self.equation.replace(params={**equation.params, **kept})

    def _call(self, values: Sequence[Any], *floats: Any) -> tuple[list[Any], list[Any]]:
        """Run the equation; return the results that have a derivative, and all results."""
        given = dict(zip(self.floats, floats, strict=True))
        merged = [given.get(i, value) for i, value in enumerate(values)]
        primitive = self.equation.primitive
        results = primitive.bind(*merged, **primitive.get_bind_params(self.equation.params))
        return [results[i] for i in self.out_floats], results

    def _with_jvp(self, call: Callable[..., Any]) -> Any:
        def push(values: Sequence[Any], tangents: Sequence[Any]) -> Any:
            floats = [values[i] for i in self.floats]
            _, slopes, results = cast(Any, jax.jvp)(partial(self._call, values), floats, tangents, has_aux=True)
            return results, slopes

        run, _ = self.freezer.rule(push, self.avals, [self.avals[i] for i in self.floats])
        function = jax.custom_jvp(call)
        others = [i for i in range(len(self.out_avals)) if i not in self.out_floats]
        none = {i: np.zeros(self.out_avals[i].shape, jax.dtypes.float0) for i in others}

        @function.defjvp
        def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:  # pyright: ignore[reportUnusedFunction]
            results: list[Any] = run(*primals, *(tangents[i] for i in self.floats))
            outs, slopes = results[: len(self.out_avals)], iter(results[len(self.out_avals) :])
            return outs, [none[i] if i in none else next(slopes) for i in range(len(outs))]

        return function

    def _with_vjp(self, call: Callable[..., Any]) -> Any:
        trees: list[Any] = []

        def forward(values: Sequence[Any]) -> Any:
            floats = [values[i] for i in self.floats]
            _, pull, results = cast(Any, jax.vjp)(partial(self._call, values), *floats, has_aux=True)
            leaves, tree = cast(tuple[list[Any], Any], jax.tree.flatten(pull))
            # The residuals' tree is known once `forward` is traced, which is before `backward` is.
            trees.append(tree)
            return results, leaves

        def backward(residuals: Sequence[Any], slopes: Sequence[Any]) -> Any:
            return jax.tree.unflatten(trees[-1], residuals)(list(slopes))

        count = len(self.out_avals)
        run, avals = self.freezer.rule(forward, self.avals)
        pull, _ = self.freezer.rule(backward, avals[count:], [self.out_avals[i] for i in self.out_floats])
        function: Any = cast(Any, jax.custom_vjp)(call)

        def forward_rule(*values: Any) -> Any:
            results: list[Any] = run(*values)
            return results[:count], results[count:]

        def backward_rule(residuals: Sequence[Any], slopes: Sequence[Any]) -> Any:
            back = iter(pull(*residuals, *(slopes[i] for i in self.out_floats)))
            return tuple(next(back) if i in self.floats else None for i in range(len(self.avals)))

        function.defvjp(forward_rule, backward_rule)
        return function


def _batched(value: Any, count: Any, is_batched: bool) -> Any:
    return value if is_batched else jnp.broadcast_to(value, (count, *jnp.shape(value)))


def _floats(avals: Sequence[Any]) -> list[int]:
    return [i for i, aval in enumerate(avals) if jnp.issubdtype(aval.dtype, jnp.inexact)]
