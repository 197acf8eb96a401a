"""Which families are meant by a name, a function or the number of a compile."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from explorer.errors import NotRecordedError
from explorer.model.events.family_counts import FamilyKey
from explorer.model.stage import is_library_file

Which = str | Callable[..., Any]
_ID = re.compile(r"\[(.*?)(?:/\d+)?\]", re.DOTALL)
_INSIDE = ("__func__", "__wrapped__", "func")  # of a method, a wrapper, a partial


def families_of(which: Which, families: Iterable[FamilyKey]) -> set[FamilyKey]:
    """The families that `which` names.

    Args:
        which: A function's name, the function itself (a `jax.jit` of it, a `partial`, a method), or a compile's id,
            `[step/3]`.
        families: All there are.

    Raises:
        NotRecordedError: There is none of that name; the message lists the names.
    """
    all_families = list(families)
    if isinstance(which, str):
        # A function may be named as an id is written: a name that is there is one.
        match = None if any(family[1] == which for family in all_families) else _ID.fullmatch(which)
        name = match[1] if match else which
        matching = {family for family in all_families if family[1] == name}
    else:
        name, file, line = _defined(which)
        matching = {family for family in all_families if file and family[2:] == (file, line)}
        matching = matching or {family for family in all_families if family[1] == name and _may_be_in(family[2], file)}
    if not matching:
        raise NotRecordedError(_unknown(name, all_families))
    return matching


def _may_be_in(known: str, file: str) -> bool:
    """Whether a function of `file` may be known as one of `known`: a library's wrapper is of the library."""
    return not known or not file or known == file or is_library_file(known)


def _unknown(name: str, known: list[FamilyKey]) -> str:
    names = list(dict.fromkeys(family[1] for family in known))
    there = ", ".join(names[:20]) + (f", … ({len(names)} in all)" if len(names) > 20 else "")
    has = f"it has {there}" if names else "nothing was compiled while it watched"
    return f"the ledger has no function {name!r}: {has}.\n  Hint: give a function's name, the function, or '[name/0]'."


def _defined(function: Any) -> tuple[str, str, int]:
    """Name, file and line of what is inside of partials, methods and wrappers."""
    for _ in range(100):  # a wrapper can wrap itself
        inners = (getattr(function, name, None) for name in _INSIDE)
        inner: Any = next((inner for inner in inners if callable(inner)), None)
        if inner is None:
            break
        function = inner
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    name = getattr(function, "__name__", "<unnamed function>")  # as JAX calls an object that can be called
    return (name, "", 0) if code is None else (name, code.co_filename, code.co_firstlineno)
