"""Why a call of a jitted function failed, where JAX's own words don't say which argument, and what to do."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from explorer.capture.donated import explain_donated
from explorer.capture.sources import called_at
from explorer.errors import ExplorerError, StaticArgumentError


def explain_call_error(
    name: str,
    signature: inspect.Signature | None,
    static: Collection[str],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> ExplorerError | None:
    """The error to raise for a call that JAX refused; None if it says best itself what is wrong.

    Args:
        name: The function's.
        static: Names of its static parameters.
    """
    given: dict[str, Any] = {f"argument {i}": value for i, value in enumerate(args)} | dict(kwargs)
    if signature is not None:
        try:
            given = dict(signature.bind(*args, **kwargs).arguments)
        except TypeError:  # Python says that best
            return None
    for parameter, value in given.items():
        if parameter in static and (why := _why_not_static(value)):
            return StaticArgumentError(
                f"static argument `{parameter}` of {name} {why}: jit keeps a program for each value, and finds it by "
                f"hash and ==.\n{called_at()}  Hint: {_instead(parameter, value)}."
            )
    return explain_donated(name, given)


def _why_not_static(value: Any) -> str:
    try:
        hash(value)
    except TypeError:
        return f"is {type(value).__name__}, which has no hash"
    except Exception:  # the user's own, which says more
        return ""
    try:
        _ = value == value
    except Exception as error:
        return f"is {type(value).__name__}, whose == raises {type(error).__name__}"
    return ""


def _instead(parameter: str, value: Any) -> str:
    if hasattr(value, "dtype"):
        return f"an array is no static argument: leave `{parameter}` out of static_argnums and static_argnames"
    if isinstance(value, (list, set, dict)):
        kind = "" if isinstance(value, dict) else "tuple" if isinstance(value, list) else "frozenset"
        return f"give {kind}({parameter})" if kind else f"give tuple(sorted({parameter}.items()))"
    return f"give {type(value).__name__} __hash__ and __eq__, by @dataclass(frozen=True) for one"
