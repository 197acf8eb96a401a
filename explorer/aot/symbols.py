"""Which dimensions of the inputs vary, and which of them together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
from jax import export

from explorer._jax.symbolic import is_at_least
from explorer.aot.dimensions import Bounds, Dimension, NamedDimension, bounds_of
from explorer.aot.inputs import DimensionInputInfo, InputInfo
from explorer.capture.sources import called_at
from explorer.errors import InputInfoError

Input = InputInfo | DimensionInputInfo


class Symbols:
    """The sizes that an executable leaves open, each with a name: a dimension's own, or its place, `x_0`.

    Args:
        inputs: By name.

    Attributes:
        bounds: Of each.
        least: Of each the smallest size that a trace for every size stands for; smaller ones are traced by themselves.

    Raises:
        InputInfoError: One name has two bounds.
    """

    def __init__(self, inputs: Mapping[str, Input]) -> None:
        self.inputs = dict(inputs)
        self.bounds: dict[str, Bounds] = {}
        self._where: dict[str, str] = {}
        # Of each dimension's name, the first input that has it.
        self._names: dict[str, str] = {}
        for name, info in inputs.items():
            for dimension in dimensions_of(info):
                if isinstance(dimension, NamedDimension):
                    self._names.setdefault(dimension.name, f"`{name}`")
        self._taken = set(self._names)
        # Of each input, the symbol of every axis that has one; of a fixed dimension with a name too: it binds others.
        self.axes: dict[str, dict[int, str]] = {}
        for name, info in inputs.items():
            self.axes[name] = {
                axis: self._symbol(name, axis, dimension)
                for axis, dimension in enumerate(dimensions_of(info))
                if not isinstance(dimension, int)
            }
        self.least = {symbol: max(1, its.min) for symbol, its in self.bounds.items()}

    def _symbol(self, name: str, axis: int, dimension: Dimension) -> str:
        is_array = isinstance(self.inputs[name], InputInfo)
        place = f"dimension {axis} of `{name}`" if is_array else f"`{name}`"
        if isinstance(dimension, NamedDimension):
            symbol = dimension.name
        elif not is_array and name in self._names:
            raise InputInfoError(
                f"`{name}` names two sizes: an argument with the bounds {tuple(bounds_of(dimension))}, and a dimension "
                f"of {self._names[name]}.\n{called_at()}"
                f"  Hint: DimensionInputInfo(NamedDimension({name!r}, …)) where they are equal; else rename one."
            )
        else:
            symbol = self._unique_symbol(f"{name}_{axis}" if is_array else name)
        bounds = bounds_of(dimension)
        if self.bounds.setdefault(symbol, bounds) != bounds:
            raise InputInfoError(
                f"dimension `{symbol}` has two bounds: {tuple(self.bounds[symbol])} in {self._where[symbol]}, "
                f"{tuple(bounds)} in {place}.\n{called_at()}  Hint: make one NamedDimension and use it in both."
            )
        self._where.setdefault(symbol, place)
        return symbol

    def _unique_symbol(self, wish: str) -> str:
        symbol = "".join(c if c.isalnum() and c.isascii() else "_" for c in wish)
        while symbol in self._taken or not symbol.isidentifier():
            symbol = f"{symbol}_" if symbol.isidentifier() else f"n{symbol}"
        self._taken.add(symbol)
        return symbol

    @property
    def opt(self) -> dict[str, int]:
        """The sizes to optimise for."""
        return {symbol: bounds.opt for symbol, bounds in self.bounds.items()}

    @property
    def corners(self) -> list[dict[str, int]]:
        """Of the sizes that a trace for all stands for the usual ones, the smallest and the largest; each once."""
        corners = [
            {symbol: getattr(bounds, which) for symbol, bounds in self.traced_bounds.items()}
            for which in ("opt", "min", "max")
        ]
        return [sizes for at, sizes in enumerate(corners) if sizes not in corners[:at]]

    @property
    def is_dynamic(self) -> bool:
        """Whether anything varies."""
        return any(bounds.min < bounds.max for bounds in self.bounds.values())

    @property
    def traced_bounds(self) -> dict[str, Bounds]:
        """The bounds of the sizes that a trace for all stands for."""
        return {
            symbol: Bounds(least, max(least, self.bounds[symbol].opt), max(least, self.bounds[symbol].max))
            for symbol, least in self.least.items()
        }

    def are_traced(self, sizes: Mapping[str, Any]) -> bool:
        """Whether a trace for every size stands for these, which may be somebody's own symbols."""
        return all(
            is_at_least(size, self.least[symbol]) if export.is_symbolic_dim(size) else size >= self.least[symbol]
            for symbol, size in sizes.items()
        )

    def symbolic(self, given: Mapping[str, int] | None = None) -> dict[str, Any]:
        """For each size JAX's symbol for it, at least `least`; a fixed one, or one that is given, is a number."""
        numbers = {**self.opt, **(given or {})}
        left = {symbol: bounds for symbol, bounds in self.bounds.items() if symbol not in (given or {})}
        varying = {symbol: bounds for symbol, bounds in left.items() if bounds.min < bounds.max}
        limits = [f"{symbol} >= {self.least[symbol]}" for symbol in varying]
        limits += [f"{symbol} <= {bounds.max}" for symbol, bounds in varying.items()]
        dimensions = export.symbolic_shape(", ".join(varying), constraints=limits) if varying else ()
        return {**numbers, **dict(zip(varying, dimensions, strict=True))}

    def shapes(self, sizes: Mapping[str, Any]) -> dict[str, Any]:
        """The shape of each input at these sizes, and the size itself where that is the input."""
        shapes: dict[str, Any] = {}
        for name, info in self.inputs.items():
            axes = self.axes[name]
            shape = tuple(sizes[axes[i]] if i in axes else d for i, d in enumerate(dimensions_of(info)))
            shapes[name] = shape if isinstance(info, InputInfo) else shape[0]
        return shapes

    def structs(self, sizes: Mapping[str, Any]) -> list[Any]:
        """Each input at these sizes: a struct for an array, and the size itself where that is the input."""
        shapes = self.shapes(sizes)
        return [
            jax.ShapeDtypeStruct(shapes[name], info.dtype, sharding=info.sharding)
            if isinstance(info, InputInfo)
            else shapes[name]
            for name, info in self.inputs.items()
        ]


def dimensions_of(info: Input) -> tuple[Dimension, ...]:
    """Of an array its shape; a size that is an input is one dimension."""
    return info.shape if isinstance(info, InputInfo) else (info.dimension,)
