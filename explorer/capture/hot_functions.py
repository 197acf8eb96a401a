"""What hot paths know of a function, for those who look at functions.

Hot paths are above this floor, and other rooms stand beside them: they say here whom to ask.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from explorer.model.results.hot_paths import HotRow


@dataclass(frozen=True, slots=True)
class HotStatus:
    """What became of a function.

    Args:
        row: How it was called, and why it stays eager if it does.
        is_on: Whether hot paths are on now: what it reads is guarded.
    """

    row: HotRow
    is_on: bool


_Lookup = Callable[[Any], HotStatus | None]
_lookups: list[_Lookup] = []


def register_lookup(lookup: _Lookup) -> None:
    """Ask `lookup` from now on; it gives None for a function that it doesn't know."""
    _lookups.append(lookup)


def hot_status(function: Any) -> HotStatus | None:
    """What hot paths know of a function; None for one that wasn't called often while they were on."""
    return next((status for lookup in _lookups if (status := lookup(function)) is not None), None)
