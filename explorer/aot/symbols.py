"""Varying dimensions of the inputs as symbols, and the checks that the values of a call fit them."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence, Set
from typing import Any, NoReturn, cast

import jax
import numpy as np
from jax import export
from jax.core import Tracer
from jax.export import is_symbolic_dim

from explorer._jax.symbolic import is_at_least
from explorer.aot.inputs import Bounds, Dimension, DimensionInputInfo, InputInfo, NamedDimension, bounds_of
from explorer.capture.sources import called_at
from explorer.errors import (
    InputDeviceError,
    InputDtypeError,
    InputInfoError,
    InputRankError,
    InputShapeError,
    NotAnArrayError,
)

Input = InputInfo | DimensionInputInfo


class Symbols:
    """Sizes that an executable leaves open, each with a name: a dimension's own, or its place, `x_0`."""

    def __init__(self, inputs: Mapping[str, Input]) -> None:
        self.inputs = dict(inputs)
        self.bounds: dict[str, Bounds] = {}
        self._where: dict[str, str] = {}
        self._names: dict[str, str] = {}  # the first input that has a named dimension
        for name, info in inputs.items():
            for dimension in dimensions_of(info):
                if isinstance(dimension, NamedDimension):
                    self._names.setdefault(dimension.name, f"`{name}`")
        self._taken = set(self._names)
        # Symbols of each input, by axis. A named dimension of fixed size has one too: it binds others.
        self.axes: dict[str, dict[int, str]] = {}
        for name, info in inputs.items():
            self.axes[name] = {
                axis: self._symbol(name, axis, dimension)
                for axis, dimension in enumerate(dimensions_of(info))
                if not isinstance(dimension, int)
            }
        # The smallest size of each symbol that the symbolic trace covers; smaller ones are traced separately.
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
    def arrays(self) -> dict[str, InputInfo]:
        """Return the inputs that are arrays, by name, without sizes."""
        return {name: info for name, info in self.inputs.items() if isinstance(info, InputInfo)}

    @property
    def opt(self) -> dict[str, int]:
        return {symbol: bounds.opt for symbol, bounds in self.bounds.items()}

    @property
    def corners(self) -> list[dict[str, int]]:
        """Return the usual, smallest and largest sizes that the symbolic trace covers, in this order and once each."""
        corners = [
            {symbol: getattr(bounds, which) for symbol, bounds in self.traced_bounds.items()}
            for which in ("opt", "min", "max")
        ]
        return [sizes for at, sizes in enumerate(corners) if sizes not in corners[:at]]

    @property
    def is_dynamic(self) -> bool:
        return bool(self.varying)

    @property
    def varying(self) -> dict[str, Bounds]:
        """Return the bounds of the symbols that may have several sizes."""
        return {symbol: bounds for symbol, bounds in self.bounds.items() if bounds.min < bounds.max}

    @property
    def traced_bounds(self) -> dict[str, Bounds]:
        """Return the bounds of the sizes that the symbolic trace covers."""
        return {
            symbol: Bounds(least, max(least, self.bounds[symbol].opt), max(least, self.bounds[symbol].max))
            for symbol, least in self.least.items()
        }

    def are_traced(self, sizes: Mapping[str, Any]) -> bool:
        """Return True if the symbolic trace covers these sizes, which may be a caller's own symbols."""
        return all(
            is_at_least(size, self.least[symbol]) if export.is_symbolic_dim(size) else size >= self.least[symbol]
            for symbol, size in sizes.items()
        )

    def symbolic(self, given: Mapping[str, int] | None = None) -> dict[str, Any]:
        """Return JAX's symbol for each varying size, at least `least`; fixed sizes and those in `given` are numbers."""
        numbers = {**self.opt, **(given or {})}
        varying = {symbol: bounds for symbol, bounds in self.varying.items() if symbol not in (given or {})}
        limits = [f"{symbol} >= {self.least[symbol]}" for symbol in varying]
        limits += [f"{symbol} <= {bounds.max}" for symbol, bounds in varying.items()]
        dimensions = export.symbolic_shape(", ".join(varying), constraints=limits) if varying else ()
        return {**numbers, **dict(zip(varying, dimensions, strict=True))}

    def shapes(self, sizes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the shape of each input at these sizes, by name; for a size input, the size."""
        shapes: dict[str, Any] = {}
        for name, info in self.inputs.items():
            axes = self.axes[name]
            shape = tuple(sizes[axes[i]] if i in axes else d for i, d in enumerate(dimensions_of(info)))
            shapes[name] = shape if isinstance(info, InputInfo) else shape[0]
        return shapes

    def structs(self, sizes: Mapping[str, Any]) -> list[Any]:
        """Return each input at these sizes, in order: a `jax.ShapeDtypeStruct` for an array, the number for a size
        input.
        """
        shapes = self.shapes(sizes)
        return [
            jax.ShapeDtypeStruct(shapes[name], info.dtype, sharding=info.sharding)
            if isinstance(info, InputInfo)
            else shapes[name]
            for name, info in self.inputs.items()
        ]


def dimensions_of(info: Input) -> tuple[Dimension, ...]:
    """Return the dimensions of an input. A size input has one."""
    return info.shape if isinstance(info, InputInfo) else (info.dimension,)


def sizes_text(sizes: Mapping[str, int]) -> str:
    """Return sizes as text: `batch = 8, seq = 128`."""
    return ", ".join(f"{symbol} = {size}" for symbol, size in sizes.items())


def sizes_of(symbols: Symbols, values: Sequence[Any]) -> dict[str, int]:
    """Check the inputs of a call, and return the size of every symbol; raise an InputError if they don't fit."""
    __tracebackhide__ = True
    sizes: dict[str, int] = {}
    for (name, info), value in zip(symbols.inputs.items(), values, strict=True):
        if isinstance(info, InputInfo):
            _check_array(name, info, value)
            open_sizes = {axis: value.shape[axis] for axis in symbols.axes[name]}
        else:
            open_sizes = {0: _checked_value(name, info, value)} if symbols.axes[name] else {}
        for axis, symbol in symbols.axes[name].items():
            if sizes.setdefault(symbol, open_sizes[axis]) != open_sizes[axis]:
                _refuse_unequal(symbols, symbol, values, name)
    return sizes


def check_devices(names: Sequence[str], values: Sequence[Any], devices: Set[Any]) -> None:
    """Raise InputDeviceError if an array is committed to a device that the executable doesn't run on."""
    __tracebackhide__ = True
    for name, value in zip(names, values, strict=True):
        # JAX itself moves uncommitted arrays to the devices of the program.
        its: Set[Any] = value.sharding.device_set if getattr(value, "committed", False) else set[Any]()
        if not its <= devices:
            raise InputDeviceError(
                f"input `{name}` is on {_listed(its)}.\n  compiled for {_listed(devices)}\n"
                f"{called_at()}  Hint: jax.device_put({name}, …), or compile with an InputInfo that has a sharding."
            )


def _check_array(name: str, info: InputInfo, value: Any) -> None:
    __tracebackhide__ = True
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or dtype is None or not _is_array(value):
        _refuse_kind(name, info, value)
    if len(shape) != len(info.shape):
        raise InputRankError(
            f"input `{name}` has rank {len(shape)}, shape {tuple(shape)}, not rank {len(info.shape)}.\n"
            f"{_compiled_for(info)}reshape it, or compile for this rank."
        )
    for axis, (got, wanted) in enumerate(zip(shape, info.shape, strict=True)):
        if got != wanted:
            bounds = bounds_of(wanted)
            if type(got) is not int and is_symbolic_dim(got):
                _check_symbol(name, info, axis, got)
            elif not bounds.min <= got <= bounds.max:
                _refuse_size(name, info, tuple(shape), axis)
    if dtype != info.dtype:
        raise InputDtypeError(
            f"input `{name}` has dtype {dtype}, not {info.dtype}.\n"
            f"{_compiled_for(info)}convert it, {name}.astype({str(info.dtype)!r}), or compile for {dtype}."
        )
    if info.sharding is not None and not isinstance(value, Tracer):
        _check_sharding(name, info.sharding, value)


def _is_array(value: Any) -> bool:
    """Return True for an array, or an object with `__jax_array__`.

    False for a masked array and a data frame: `jax.jit` would ignore the mask or the index.
    """
    is_plain = isinstance(value, (jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct))
    return not isinstance(value, np.ma.MaskedArray) if is_plain else hasattr(cast("Any", type(value)), "__jax_array__")


def _refuse_kind(name: str, info: InputInfo, value: Any) -> NoReturn:
    __tracebackhide__ = True
    convert = f"jnp.asarray(value, {str(info.dtype)!r})"
    if isinstance(value, np.ma.MaskedArray):
        convert = f"{name}.filled(0), and its mask as an input of its own; JAX knows no masked arrays"
    elif hasattr(value, "to_numpy"):
        convert = f"{name}.to_numpy({str(info.dtype)!r})"
    kind = type(cast("object", value))
    package = kind.__module__.partition(".")[0]
    full = kind.__name__ if package in ("builtins", "__main__") else f"{package}'s {kind.__name__}"
    raise NotAnArrayError(f"input `{name}` is no array but {full}.\n{_compiled_for(info)}{convert}.")


def _check_symbol(name: str, info: InputInfo, axis: int, got: Any) -> None:
    """Raise InputShapeError for a symbolic dimension that may have a size outside the compiled range."""
    __tracebackhide__ = True
    wanted = info.shape[axis]
    bounds = bounds_of(wanted)
    try:
        fits = bounds.min <= got <= bounds.max
    except jax.errors.InconclusiveDimensionOperation:
        fits = False
    if not fits:
        raise InputShapeError(
            f"input `{name}` has the symbolic dimension {got}, which may be outside the range this executable was "
            f"compiled for.\n  compiled for {_range(f'dimension {axis}', wanted)}\n{called_at()}"
            f"  Hint: constraints=['{got} >= {bounds.min}', '{got} <= {bounds.max}'] in jax.export.symbolic_shape, or "
            "no arguments: jax.export.export(exe)()."
        )


def _check_sharding(name: str, wanted: Any, value: Any) -> None:
    __tracebackhide__ = True
    try:
        wanted.shard_shape(value.shape)
    except ValueError:
        raise InputShapeError(
            f"input `{name}` has shape {tuple(value.shape)}, which can't be split evenly.\n"
            f"  compiled for {_listed(wanted.device_set)}, spread as {wanted}\n"
            f"{called_at()}  Hint: pad it, so that each size that is split is a multiple of the devices."
        ) from None
    given: Any = getattr(value, "sharding", None)
    # An uncommitted array is moved to the executable's devices.
    if given is None or not getattr(value, "committed", False) or given.is_equivalent_to(wanted, value.ndim):
        return
    raise InputDeviceError(
        f"input `{name}` is on {_listed(given.device_set)}, spread as {given}.\n"
        f"  compiled for {_listed(wanted.device_set)}, spread as {wanted}\n"
        f"{called_at()}  Hint: jax.device_put({name}, exe.input_infos[{name!r}].sharding)."
    )


def _listed(devices: Set[Any]) -> str:
    return ", ".join(sorted(map(str, devices)))


def _checked_value(name: str, info: DimensionInputInfo, value: Any) -> int:
    __tracebackhide__ = True
    details = f"  compiled for a size, {described(info)}\n{called_at()}  Hint: "
    try:
        size = None if isinstance(value, bool) else operator.index(value)
    except (TypeError, jax.errors.JAXTypeError):
        size = None
    if size is None:
        traced = isinstance(value, Tracer)
        kind = "a traced value, which has no size yet" if traced else f"no int but {type(value).__name__}"
        raise NotAnArrayError(f"input `{name}` is {kind}.\n{details}give an int: shapes depend on it.")
    bounds = info.value_bounds
    if not bounds.min <= size <= bounds.max:
        raise InputShapeError(
            f"input `{name}` is {size}, outside of {_range(name, info.dimension)}.\n{details}compile for a wider range."
        )
    return size


def _refuse_size(name: str, info: InputInfo, shape: tuple[int, ...], axis: int) -> None:
    __tracebackhide__ = True
    got, wanted = shape[axis], info.shape[axis]
    if isinstance(wanted, int):
        raise InputShapeError(
            f"input `{name}` has shape {shape}; dimension {axis} is {got}, not {wanted}.\n"
            f"{_compiled_for(info)}compile for this shape too."
        )
    bounds, named = bounds_of(wanted), f" (`{wanted.name}`)" if isinstance(wanted, NamedDimension) else ""
    wider = (min(bounds.min, got), bounds.opt, max(bounds.max, got))
    new = f"NamedDimension{(wanted.name, *wider)}" if isinstance(wanted, NamedDimension) else f"{wider}"
    other = ", or split it" if got > bounds.max else ""
    raise InputShapeError(
        f"input `{name}` has shape {shape}, outside the range this executable was compiled for.\n"
        f"  dimension {axis}{named} is {got}; compiled for {_range(f'dimension {axis}', wanted)} "
        f"(optimised for {bounds.opt})\n"
        f"{called_at()}  Hint: compile with {new}{other}."
    )


def _refuse_unequal(symbols: Symbols, symbol: str, values: Sequence[Any], upto: str) -> None:
    """Raise InputShapeError for a symbol with several sizes in one call; list each input that has it."""
    __tracebackhide__ = True
    sizes: list[str] = []
    for (name, info), value in zip(symbols.inputs.items(), values, strict=True):
        for axis, its in symbols.axes[name].items():
            if its == symbol:
                is_array = isinstance(info, InputInfo)
                sizes.append(
                    f"{value.shape[axis]} in `{name}` (dimension {axis})" if is_array else f"{value} in `{name}`"
                )
        if name == upto:
            break
    raise InputShapeError(
        f"dimension `{symbol}` has several sizes in one call: {', '.join(sizes)}.\n"
        f"  compiled for one size in all places of `{symbol}`\n"
        f"{called_at()}  Hint: give inputs of one `{symbol}`, or compile with dimensions of different names."
    )


def _compiled_for(info: InputInfo) -> str:
    return f"  compiled for {described(info)}\n{called_at()}  Hint: "


def _range(name: str, dimension: Any) -> str:
    bounds = bounds_of(dimension)
    return f"{bounds.min} ≤ {getattr(dimension, 'name', name)} ≤ {bounds.max}"


def described(info: InputInfo | DimensionInputInfo) -> str:
    """Return the type that a call must pass, as text: `float32[batch, 8]`, `int32[1…64]`, `1 ≤ value ≤ 8`."""
    if isinstance(info, DimensionInputInfo):
        return _range("value", info.dimension)
    sizes = (f"{d.min}…{d.max}" if isinstance(d, Bounds) else str(getattr(d, "name", d)) for d in info.shape)
    return f"{info.dtype}[{', '.join(sizes)}]"
