"""The rules: by primitive, how it is computed on padded values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from explorer.padding.refused import Refused

if TYPE_CHECKING:
    from explorer.padding.interpreter import Call
    from explorer.padding.values import Value


class Rule(NamedTuple):
    """How a primitive is computed on padded values.

    Attributes:
        apply: Gives the results of an equation.
        parameters: Those that it takes into account, or that may have any value.
        absent: Those that it takes only where they say nothing: None, False or empty.
        shrinks: Whether it takes sizes that get smaller as a named one grows. The largest of such a size in a bucket
            isn't the size at the bucket, and two of them may not add up to that of their sum.
    """

    apply: Callable[[Call], Sequence[Value]]
    parameters: frozenset[str]
    absent: frozenset[str]
    shrinks: bool


RULES: dict[str, Rule] = {}

Apply = Callable[["Call"], "Value | Sequence[Value]"]


def rule(names: str, parameters: str = "", absent: str = "", *, shrinks: bool = False) -> Callable[[Apply], Apply]:
    """Register a rule for primitives; of any parameter not named here the equation is refused.

    Args:
        names: Of the primitives, with spaces between.
        parameters: What the rule takes into account.
        absent: What must be None, False or empty.
        shrinks: Whether sizes may get smaller as a named one grows.
    """

    def register(apply: Apply) -> Apply:
        def results(call: Call) -> Sequence[Value]:
            result = apply(call)
            return result if isinstance(result, (list, tuple)) else [result]  # pyright: ignore[reportReturnType]

        for name in names.split():
            RULES[name] = Rule(results, frozenset(parameters.split()), frozenset(absent.split()), shrinks)
        return apply

    return register


def check_parameters(name: str, rule: Rule, params: dict[str, Any]) -> None:
    """Refuse what a rule doesn't know of.

    Raises:
        Refused: The equation has a parameter that the rule doesn't take, or not with this value.
    """
    for key, value in params.items():
        if key in rule.absent and not _is_absent(value):
            raise Refused(f"`{name}` with {key}={value} isn't known to be exact")
        if key not in rule.absent and key not in rule.parameters:
            raise Refused(f"`{name}` has a parameter `{key}` that isn't known here")


def _is_absent(value: Any) -> bool:
    # An array that isn't sharded may have a sharding, of a mesh without axes.
    return value in (None, False, ()) or getattr(getattr(value, "mesh", None), "empty", False)
