"""The points of a sweep: combinations of values, and the arguments and options of each point.

A name in `over` is the first of these that fits:

1. a parameter of the callable `args=`, which makes a point's arguments;
2. `options`, with dicts of XLA's compiler options as values, or `options.<name>`, a single option;
3. a parameter of the function: the value replaces that argument;
4. `dtype`: all floating-point arguments are cast to it.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from explorer.errors import ArgumentsError, NotCallableError, OptionError
from explorer.measure.arguments import (
    as_float,
    axis_of,
    bind_constants,
    cast_floats,
    has_floats,
    is_array,
    signature_of_callable,
    value_text,
)
from explorer.model.results.statistics import Axis
from explorer.model.text import did_you_mean

_OPTIONS = "options"
_ONE_OPTION = "options."
_EXAMPLE = "over={'n': [128, 256, 512]}, args=lambda n: (jnp.ones((n, n)),)"
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_REST = inspect.Parameter.VAR_KEYWORD
_ALONE = (inspect.Parameter.VAR_POSITIONAL, _REST)


@dataclass(frozen=True)
class PointCall:
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    options: dict[str, Any]


@dataclass(frozen=True)
class Point:
    """One combination of values.

    Args:
        at: Index of its value on each axis.
        values: The values by name, as given.
        make: Makes its arguments, new at each call; raises what the user's `args=` raises.
    """

    at: tuple[int, ...]
    values: Mapping[str, Any]
    make: Callable[[], PointCall] = field(repr=False)


@dataclass(frozen=True)
class Grid:
    """All combinations of the values; the last axis varies fastest."""

    axes: tuple[Axis, ...]
    points: tuple[Point, ...]

    def values(self, point: Point) -> dict[str, float | str]:
        """Return a point's values by name: numbers as they are, other values by their label."""
        values: dict[str, float | str] = {}
        for axis, i in zip(self.axes, point.at, strict=True):
            number = None if axis.numbers is None or axis.unit else axis.numbers[i]
            is_whole = number is not None and number.is_integer()
            values[axis.name] = axis.labels[i] if number is None else int(number) if is_whole else number
        return values


def grid_of(
    function: Callable[..., Any],
    given: Sequence[Any],
    named: Mapping[str, Any],
    over: Mapping[str, Iterable[Any]],
    args: Callable[..., Any] | None = None,
    verb: str = "sweep",
) -> Grid:
    """Return the axes and points of a sweep.

    A value that is no array, such as a number or a function, is a constant of its point's program. For a `jax.jit`
    function it is passed as in a call.

    Args:
        function: The function to sweep.
        given, named: Its arguments by position and by name. A swept one may be left out.
        over: The values of each name: a list, or a dict of labels to values.
        args: Makes the arguments from a point's values: a tuple, or a single one.
        verb: The public function that was called, for errors.

    Raises:
        NotCallableError: `function` or `args` can't be called.
        OptionError: `over` is empty, or has an unknown name, or a name without values.
        ArgumentsError: The function can't take the arguments of the first point.

    Example:
        >>> grid = grid_of(lambda x, n: x * n, [1.0], {}, {"n": [2, 4]})
        >>> [point.make().function(*point.make().args) for point in grid.points]
        [2.0, 4.0]
    """
    __tracebackhide__ = True
    if not callable(function):
        raise NotCallableError(
            f"{verb} takes a function; it got {type(function).__name__}. Hint: {verb}(f, x, over=…), not {verb}(f(x))."
        )
    maker = _Maker(function, tuple(given), dict(named), args, verb)
    axes, columns = _columns(over, verb)
    maker.check([axis.name for axis in axes])
    for axis, column in zip(axes, columns, strict=True):
        maker.check_values(axis.name, column)
    points: list[Point] = []
    for at in itertools.product(*(range(len(column)) for column in columns)):
        values = {axis.name: column[i] for axis, column, i in zip(axes, columns, at, strict=True)}
        points.append(Point(at, values, partial(maker.make, values)))
    if args is None:  # the arguments of `args=` may be large: they are made when their turn comes
        points[0].make()
    return Grid(axes, tuple(points))


def _columns(over: object, verb: str) -> tuple[tuple[Axis, ...], list[list[Any]]]:
    __tracebackhide__ = True
    if not isinstance(over, Mapping) or not over:
        came = "an empty dict" if isinstance(over, Mapping) else value_text(over)
        raise OptionError(
            f"over is {came}; allowed is a dict of names, each with a list of values.\n  Hint: {verb}(f, {_EXAMPLE})."
        )
    axes: list[Axis] = []
    columns: list[list[Any]] = []
    for name, values in cast("Mapping[Any, Any]", over).items():
        labels = [str(label) for label in cast("Mapping[Any, Any]", values)] if isinstance(values, Mapping) else None
        column = _values(name, values, verb)
        axes.append(axis_of(name, column, labels))
        columns.append(column)
    return tuple(axes), columns


def _values(name: object, values: Any, verb: str) -> list[Any]:
    __tracebackhide__ = True
    if not isinstance(name, str):
        raise OptionError(f"over has {value_text(name)} for a name; allowed is a str.\n  Hint: {verb}(f, {_EXAMPLE}).")
    if isinstance(values, Mapping):
        column = list(cast("Mapping[Any, Any]", values).values())
    else:
        try:
            # The numbers of an array are sizes and such, as those of a list are.
            numbers = values.tolist() if getattr(values, "ndim", 0) == 1 else values
            column = [] if isinstance(values, (str, bytes)) else list(numbers)
        except TypeError:
            column = []
    if not column:
        came = f"{value_text(values)} for its values" if isinstance(values, (str, bytes)) or values else "no values"
        raise OptionError(
            f"over[{name!r}] has {came}; allowed is a list of one or more.\n  Hint: over={{{name!r}: [128, 256, 512]}}."
        )
    return column


def _takes_any(parameters: Mapping[str, inspect.Parameter]) -> bool:
    return any(parameter.kind is _REST for parameter in parameters.values())


class _Maker:
    """Maker of a point's call: function, arguments and compiler options."""

    def __init__(
        self,
        function: Callable[..., Any],
        given: tuple[Any, ...],
        named: dict[str, Any],
        args: Callable[..., Any] | None,
        verb: str,
    ) -> None:
        __tracebackhide__ = True
        if args is not None and not callable(args):
            raise NotCallableError(
                f"args of {verb} is {type(args).__name__}; allowed is a callable that makes a point's arguments.\n"
                f"  Hint: {_EXAMPLE}; arguments that stay the same are given as in a call: {verb}(f, x, over=…)."
            )
        if args is not None and given:
            raise OptionError(
                f"{verb} got {len(given)} arguments by position and args=, which makes them.\n"
                "  Hint: let args= give them all, or pass the others by name."
            )
        self.function, self.given, self.named, self.args, self.verb = function, given, named, args, verb
        self.name = str(getattr(function, "__name__", type(function).__name__))
        self.signature = signature_of_callable(function)
        self.parameters: Mapping[str, inspect.Parameter] = self.signature.parameters if self.signature else {}
        maker_signature = signature_of_callable(args) if args is not None else None
        self.taken: Mapping[str, inspect.Parameter] = maker_signature.parameters if maker_signature else {}

    def role(self, name: str) -> str:
        """Return the role of a name of `over`, or an empty string for an unknown name.

        Roles are `made` (a parameter of `args=`), `option` (XLA's), `argument` (of the function) and `dtype`.
        """
        if (name in self.taken and self.taken[name].kind in _BY_NAME) or _takes_any(self.taken):
            return "made"
        if name == _OPTIONS or name.removeprefix(_ONE_OPTION) not in ("", name):
            return "option"
        if name in self.named or (name in self.parameters and self.parameters[name].kind not in _ALONE):
            return "argument"
        if name == "dtype":
            return "dtype"
        return "argument" if _takes_any(self.parameters) else ""

    def check(self, names: Sequence[str]) -> None:
        """Raise OptionError for an unknown name, or if `args=` has a parameter without values."""
        __tracebackhide__ = True
        own = [name for name, parameter in self.parameters.items() if parameter.kind not in _ALONE]
        for name in names:
            if not self.role(name):
                whose = f"{self.name}({', '.join(own)})" + f", args=({', '.join(self.taken)})" * bool(self.args)
                raise OptionError(
                    f"over has `{name}`, which is no parameter of {whose}; allowed are those, `dtype`, `options`, and "
                    f"`options.<one of XLA's>`.\n  Hint:{did_you_mean(name, [*self.taken, *own, 'dtype', _OPTIONS])} "
                    f"args= makes arguments of any name: {_EXAMPLE}."
                )
        for name, parameter in self.taken.items():
            is_optional = parameter.kind in _ALONE or parameter.default is not inspect.Parameter.empty
            if not is_optional and name not in names:
                raise OptionError(
                    f"args= asks for `{name}`, which over doesn't have; it has {', '.join(names)}."
                    f"\n  Hint:{did_you_mean(name, names)} Give `{name}` a default, or values in over."
                )

    def check_values(self, name: str, values: Sequence[Any]) -> None:
        __tracebackhide__ = True
        role = self.role(name)
        if role == "dtype":
            for value in values:
                as_float(value, "over['dtype']")
            if self.args is None and not has_floats((self.given, self.named)):
                raise OptionError(
                    f"over has `dtype`, to which the arguments of floating point are cast; {self.name} gets none.\n"
                    "  Hint: give it arrays, or make them: args=lambda dtype: (jnp.ones(8, dtype),)."
                )
        for value in values if role == "option" and name == _OPTIONS else ():
            if not isinstance(value, Mapping):
                raise OptionError(
                    f"over['options'] has {value_text(value)}; allowed are dicts of XLA's options, and {{}} for none.\n"
                    "  Hint: over={'options': [{}, {'xla_cpu_prefer_vector_width': 512}]}."
                )

    def make(self, values: Mapping[str, Any]) -> PointCall:
        """Return a point's call; swept arguments that are no arrays are bound in its function."""
        __tracebackhide__ = True
        roles = {name: self.role(name) for name in values}
        options: dict[str, Any] = {}
        for name, role in roles.items():
            if role == "option":
                options |= values[name] if name == _OPTIONS else {name.removeprefix(_ONE_OPTION): values[name]}
        args, kwargs = self.given, self.named
        if self.args is not None:
            made = self.args(**{name: values[name] for name, role in roles.items() if role == "made"})
            args = tuple(cast("Sequence[Any]", made)) if isinstance(made, (tuple, list)) else (made,)
        if roles.get("dtype") == "dtype":
            args, kwargs = cast_floats((args, kwargs), as_float(values["dtype"], "over['dtype']"))
        own = {name: values[name] for name, role in roles.items() if role == "argument"}
        return self.placed(args, kwargs, own, options)

    def placed(self, args: tuple[Any, ...], kwargs: dict[str, Any], own: dict[str, Any], options: Any) -> PointCall:
        """Return the call with the swept arguments `own` inserted; unless its function is a `jax.jit` function, those
        that are no arrays are bound in it.
        """
        __tracebackhide__ = True
        if self.signature is None:
            return PointCall(self.function, args, kwargs | own, options)
        bound = self.bound(self.signature, args, kwargs, own)
        if hasattr(self.function, "trace"):  # a jax.jit function knows which of its arguments are static
            return PointCall(self.function, bound.args, bound.kwargs, options)
        constant = [name for name, value in own.items() if not is_array(value)]
        return PointCall(*bind_constants(self.function, self.signature, bound.args, bound.kwargs, constant), options)

    def bound(
        self, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], own: dict[str, Any]
    ) -> inspect.BoundArguments:
        """Return the function's arguments with the swept ones (`own`) inserted, which `args` may leave out or have.

        Raises:
            ArgumentsError: They don't fit the signature.
        """
        __tracebackhide__ = True
        rest = [one for name, one in self.parameters.items() if name not in own]
        try:
            return _replaced(signature, signature.bind_partial(*args, **kwargs), own)
        except TypeError as error:
            with suppress(TypeError):
                given = {name: value for name, value in kwargs.items() if name not in own}
                return _replaced(signature, signature.replace(parameters=rest).bind(*args, **given), own)
            named = sorted({*kwargs, *own})
            raise ArgumentsError(
                f"{self.name}{signature} can't take these arguments: {error}.\n"
                f"  given: {len(args)} by position" + f", and {', '.join(named)} by name" * bool(named) + ".\n"
                f"  Hint: arguments that stay the same are given as in a call: {self.verb}(f, x, y=1, over=…)."
            ) from None


def _replaced(
    signature: inspect.Signature, bound: inspect.BoundArguments, own: Mapping[str, Any]
) -> inspect.BoundArguments:
    """Return the call `bound` with the arguments of `own` (by name) set; TypeError if one is missing then."""
    arguments = dict(bound.arguments)
    for name, value in own.items():
        if name in signature.parameters:
            arguments[name] = value
        else:  # the function takes any name
            rest = next(key for key, one in signature.parameters.items() if one.kind is _REST)
            arguments[rest] = dict(arguments.get(rest, {})) | {name: value}
    whole = inspect.BoundArguments(signature, cast(Any, arguments))
    return signature.bind(*whole.args, **whole.kwargs)
