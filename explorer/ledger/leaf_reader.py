"""Columns of a call's leaves: types and placement of its live arguments.

This runs in the user's time for each call that compiles. If all arrays are in one place, only their types are looked
at one by one. Contents seen before are numbers that are looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, cast

import jax
import numpy as np
from jax.core import Tracer

from explorer._jax.arguments import common_placement, placement_of, quick, value_below
from explorer.ledger.functions import Parts, clean, sharding_parts
from explorer.model.events.leaves import Content, Contents, LeafColumns

_MANY = 50_000  # contents and shardings that are remembered
_PATHS = 1_024  # and the paths of so many calls
_Spread = tuple[str, tuple[str, ...], Parts | tuple[()]]
_NOWHERE: _Spread = ("", (), ())
_Type = tuple[Any, Any, Any]  # of an aval: shape, dtype and weakness
_Rest = tuple[str, bool | None, _Spread, str]  # what else a leaf is: as what it was given, committed, where, layout
_TYPE = cast("Callable[[Any], _Type]", attrgetter("shape", "dtype", "weak_type"))
_PLAIN = {bool: "bool", int: "int", float: "float", complex: "complex", np.ndarray: "numpy"}


class _OfRest(dict[_Type, int]):
    """Numbers of contents that differ in their types only; a new type gets a number when it is looked up."""

    def __init__(self, rest: _Rest, contents: Contents) -> None:
        super().__init__()
        self._rest = rest
        self._contents = contents

    def __missing__(self, of: _Type) -> int:
        (shape, dtype, weak), (given, committed, (sharding, devices, spread), layout) = of, self._rest
        content = Content(
            tuple([size if isinstance(size, int) else str(size) for size in shape]),
            _dtype_name(dtype),
            bool(weak),
            given,
            committed,
            sharding,
            devices,
            _layout(layout, len(shape)) if layout else "",
            spread,
        )
        number = self[of] = self._contents.number(content)
        return number


class _Numbering(dict[_Rest, _OfRest]):
    """Numbers of contents, by everything but the type."""

    def __init__(self) -> None:
        super().__init__()
        self.contents = Contents()

    def __missing__(self, rest: _Rest) -> _OfRest:
        of_rest = self[rest] = _OfRest(rest, self.contents)
        return of_rest


class LeafReader:
    """Reader of the arguments of calls; equal contents share one number, equal paths one tuple."""

    def __init__(self) -> None:
        self._numbering = _Numbering()
        self._paths: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._spreads: dict[Any, _Spread] = {}

    def read(self, paths: Sequence[str], values: Sequence[Any], avals: Sequence[Any]) -> LeafColumns:
        """Return the columns of one call's arguments, as far as there are paths, values and types."""
        numbering = self._numbering  # another thread may begin the next one
        if len(numbering.contents) > _MANY:
            numbering = self._numbering = _Numbering()
        if len(paths) < len(values):
            paths = (*paths, *(f"arg{i}" for i in range(len(paths), len(values))))
        count = min(len(paths), len(values), len(avals))
        values, avals = values[:count], avals[:count]
        placed = common_placement(values)
        if placed is not None:  # most arrays lie in one place, and have the default layout there
            of_rest = numbering["jax", False, self._spread_of(placed), ""]
            numbers = tuple(map(of_rest.__getitem__, map(_TYPE, avals)))
        else:
            pairs = zip(values, avals, strict=True)
            numbers = tuple([self._read_leaf(numbering, value, aval) for value, aval in pairs])
        return LeafColumns(self._shared(tuple(paths[:count])), numbers, numbering.contents)

    def _read_leaf(self, numbering: _Numbering, value: Any, aval: Any) -> int:
        shape, dtype, weak, given, committed, sharding, layout = _leaf_content(value, aval)
        return numbering[given, committed, self._spread_of(sharding), layout][shape, dtype, weak]

    def _shared(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        if len(self._paths) > _PATHS:
            self._paths.clear()
        return self._paths.setdefault(paths, paths)

    def _spread_of(self, sharding: Any) -> _Spread:
        # What a sharding says stands for it: that is quick to look up, and the sharding is not.
        return _NOWHERE if sharding is None else self._spreads.get(quick(sharding)) or self._spread(sharding)

    def _spread(self, sharding: Any) -> _Spread:
        """Return how a sharding partitions an array, and over which devices."""
        if len(self._spreads) > _MANY:
            self._spreads.clear()
        devices = sorted(sharding.device_set, key=lambda device: device.id)
        names = tuple(f"{device.platform}:{device.id}" for device in devices)
        memory = _memory_of(sharding, devices[0])
        spread: _Spread = "", names, ()
        if len(names) > 1 or memory:
            spread = clean(str(sharding)), names, sharding_parts(sharding, memory)
        self._spreads[quick(sharding)] = spread
        return spread


def _leaf_content(value: Any, aval: Any) -> tuple[Any, ...]:
    """Return everything about a leaf except its path, if it is not one of many arrays in one place."""
    shape, dtype, weak = aval.shape, aval.dtype, getattr(aval, "weak_type", False)
    # A tracer also says it is an array, and takes its time to say where it is.
    if isinstance(value, Tracer):
        inner = value_below(value)  # of vmap or grad: what is compiled is for the whole batch
        if inner is not None and inner is not value:
            return _leaf_content(inner, jax.typeof(inner))
        return shape, dtype, weak, "jax", None, None, ""
    if isinstance(value, jax.Array):
        return shape, dtype, weak, "jax", *placement_of(value, len(shape))
    if isinstance(value, jax.ShapeDtypeStruct):
        return shape, dtype, weak, "struct", None, value.sharding, ""
    given = _PLAIN.get(cast("type[Any]", type(value))) or (
        "numpy" if isinstance(value, (np.generic, np.ndarray)) else type(value).__name__
    )
    return shape, dtype, weak, given, None, None, ""


def _layout(layout: str, rank: int) -> str:
    """Return the layout's order if it is not the default. Its tiling is the device's own and is left out."""
    order = layout.partition(":")[0].rstrip("}")
    return "" if order == _plain(rank) else order + "}"


@cache
def _dtype_name(dtype: Any) -> str:
    return str(getattr(dtype, "name", dtype))  # which NumPy puts together each time


@cache
def _plain(rank: int) -> str:
    return "{" + ",".join(map(str, range(rank - 1, -1, -1)))  # XLA counts from the minor dimension


def _memory_of(sharding: Any, device: Any) -> str:
    """Return the memory kind; empty for the device's default."""
    try:
        kind = sharding.memory_kind
        return "" if kind is None or kind == device.default_memory().kind else str(kind)
    except Exception:  # a backend without memories
        return ""
