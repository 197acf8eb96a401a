"""What a function reads from outside of its call: where, and what was there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import CellType
from typing import Any, Literal, cast

Where = Literal["global", "cell", "attribute", "absent", "item", "contents", "code", "buffer"]


@dataclass(frozen=True, slots=True)
class Read:
    """A value that was read from outside.

    Args:
        where: What kind of place it lies in; `absent` where it is known that there is nothing.
        holder: The namespace, cell, object, container or function.
        key: The name, index or key in it.
        value: What was there; of contents a tuple, of a function its code, defaults and closure, of a NumPy array
            what `buffer` gives.
        name: As the source reaches it, for people: `CONFIG['rate']`.
    """

    where: Where
    holder: Any
    key: Any
    value: Any
    name: str


def contents(container: Any) -> tuple[Any, ...]:
    """All that is in a list, tuple, dict or set, to be compared by identity."""
    if isinstance(container, Mapping):
        mapping = cast(Mapping[Any, Any], container)
        return (*mapping.keys(), *mapping.values())
    return tuple(container)


def buffer(array: Any) -> tuple[Any, ...]:
    """All that a NumPy array is: its class, shape and bytes."""
    return array.dtype, array.shape, array.tobytes()


@dataclass(frozen=True, slots=True)
class Observation:
    """What was asked of an argument, or a part of one, that its tree doesn't say.

    Args:
        example: The dict or object.
        name: Of a setting; None for the order of a dict.
    """

    example: Any
    name: str | None = None


@dataclass(slots=True)
class Reads:
    """The reads of a proof, each place once.

    Args:
        observed: Of arguments.
    """

    observed: list[Observation] = field(default_factory=list[Observation])

    _by_place: dict[tuple[str, int, Any], Read] = field(default_factory=dict[tuple[str, int, Any], Read])

    def add(self, where: Where, holder: Any, key: Any, value: Any, name: str) -> None:
        place = where, id(holder), key  # holders live as long as the reads, which keep them
        self._by_place.setdefault(place, Read(where, holder, key, value, name))

    def all(self) -> tuple[Read, ...]:
        return tuple(self._by_place.values())


def cell_value(cell: CellType) -> Any:
    """What is in a closure's cell; `Ellipsis` where it has nothing yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return ...
