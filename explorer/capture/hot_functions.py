"""A registry through which lower floors ask about hot functions; the room of hot paths is above them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from explorer.model.results.hot_paths import HotRow


@dataclass(frozen=True, slots=True)
class HotStatus:
    """The calls of a function, why it stays eager if it does, and True if hot paths guard what it reads now."""

    row: HotRow
    is_on: bool


_Lookup = Callable[[Any], HotStatus | None]
_lookups: list[_Lookup] = []


def register_lookup(lookup: _Lookup) -> None:
    """Register a function that returns the status of a function, or None if unknown."""
    _lookups.append(lookup)


def hot_status(function: Any) -> HotStatus | None:
    """Return the status of a function; None if it wasn't called often while hot paths were on."""
    return next((status for lookup in _lookups if (status := lookup(function)) is not None), None)
