"""The containers that jit() is given to capture: which can be, and what the user calls them."""

from __future__ import annotations

import inspect
from dataclasses import FrozenInstanceError
from typing import Any

from explorer.capture.sources import called_at
from explorer.errors import StateError
from explorer.jitted.kinds import Attributes, Branch, Holder, is_array, kind_of

_ALLOWED = "a list, a dict, or an object with attributes, such as a module"


def check_root(option: str, root: Any) -> None:
    """Refuse what could not be read at each call or, as outputs, not be written.

    Raises:
        StateError: It is nothing to capture, or has an array that nothing around it can change.
    """
    if root is None:
        return
    kind = kind_of(root)
    if kind is None and not is_array(root):
        _refuse(option, f"is {type(root).__name__}, which holds no arrays")
    if _has_bare_array(root):
        _refuse(option, f"is {_describe(root)}, and nothing in it can be changed", f"[{option}]")
    if isinstance(kind, Branch) and not _has_holder(root):
        _refuse(option, f"is an empty {type(root).__name__}, and can't be changed", "[]")
    if option == "outputs" and isinstance(kind, Holder) and _is_frozen(root, kind):
        _refuse(
            option, f"is {type(root).__name__}, whose attributes can't be set", "[module], and read module = state[0]"
        )


def _refuse(option: str, what: str, instead: str = "") -> None:
    hint = (
        f"  Hint: put it in a list: state = {instead}." if instead else "  Hint: jit(f, inputs=state, outputs=state)."
    )
    raise StateError(f"{option} {what}; allowed is {_ALLOWED}.\n{called_at()}{hint}")


def _describe(root: Any) -> str:
    return "an array" if is_array(root) else f"a {type(root).__name__} with an array in it"


def _has_bare_array(value: Any) -> bool:
    kind = kind_of(value)
    if isinstance(kind, Branch):
        return any(map(_has_bare_array, kind.open(value)[1]))
    return kind is None and is_array(value)


def _has_holder(value: Any) -> bool:
    kind = kind_of(value)
    return isinstance(kind, Holder) or (isinstance(kind, Branch) and any(map(_has_holder, kind.open(value)[1])))


def _is_frozen(root: Any, kind: Holder) -> bool:
    """Whether no attribute can be set, nor what is inside of one be changed."""
    if not isinstance(kind, Attributes):
        return False
    labels, items = kind.open(root)
    if not labels or any(map(_has_holder, items)):
        return False
    name, value = next(zip(labels, items, strict=True))
    try:
        setattr(root, name, value)  # to what it is: nothing changes
    except FrozenInstanceError:
        return True
    except Exception:  # a check of the user's own may like another value
        return False
    return False


def name_of(root: Any, function: Any, otherwise: str) -> str:
    """The variable by which a function knows a container."""
    function = inspect.unwrap(getattr(function, "__func__", function))
    closure = getattr(function, "__closure__", None) or ()
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    for name, cell in zip(names, closure, strict=False):
        try:
            if root is not None and cell.cell_contents is root:
                return name
        except ValueError:  # a variable that has no value yet
            continue
    variables: dict[str, Any] = getattr(function, "__globals__", {})
    used = getattr(getattr(function, "__code__", None), "co_names", ())
    return next((name for name in used if root is not None and variables.get(name) is root), otherwise)
