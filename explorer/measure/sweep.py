"""sweep(): a function at many shapes, dtypes, arguments or compiler options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from explorer.capture.call import Call, takes_call
from explorer.capture.prints import printed_once
from explorer.errors import ArgumentsError
from explorer.measure.compiled_subject import compile_subject, error_line, flops_and_bytes, kernels_of
from explorer.measure.device import environment_with_cores
from explorer.measure.grid import Point, grid_of
from explorer.measure.machine import busy_note
from explorer.measure.steady import check_seconds, steady
from explorer.measure.subject import name_of
from explorer.model.results.axis import Axis
from explorer.model.results.sweep import Sweep, SweepRow
from explorer.view.progress_bar import progress_bar


@takes_call
def sweep(
    function: Callable[..., Any] | Call,
    /,
    *given: Any,
    over: Mapping[str, Iterable[Any]],
    args: Callable[..., Any] | None = None,
    time: bool = True,
    seconds: float = 0.3,
    progress: bool | None = None,
    **named: Any,
) -> Sweep:
    """Measure a function over shapes, dtypes, arguments or compiler options: time, compile time, memory.

    Each combination of the values is compiled for itself and run. One that fails, as for want of memory, costs only
    its own row, which says why.

    Args:
        function: Any callable, or a `jax.jit` function.
        given, named: Arguments that stay the same, as in a call. A keyword that is a parameter of the function is given
            to it, whatever stands below: see `explorer.Call`.
        over: The values of each name, as a list, or as a dict that calls each something. A name is a parameter of
            `args`; or `options.<name>`, an option of XLA's, or `options`, dicts of them; or a parameter of the
            function, whose argument the value takes the place of; or `dtype`, to which all arguments of floating point
            are cast. A value that is no array is a constant of its program.
        args: Makes the arguments of a point from its values: a tuple of them, or the only one. What stands for an
            array, such as `jax.ShapeDtypeStruct`, is filled with ones.
        time: Whether to run; without, only what compiling tells is there.
        seconds: To spend on the time of each point.
        progress: Whether to show a bar once a second has gone by; None shows it where somebody can look on.

    Returns:
        A row for each combination; it shows itself as charts in a notebook, and `.to_frame()` has every figure.

    Raises:
        NotCallableError: `function` or `args` can't be called.
        OptionError: A name of `over` is nothing here, or has no values; or `seconds` is none.
        ArgumentsError: The function can't take these arguments.

    Example:
        >>> import jax.numpy as jnp
        >>> swept = sweep(lambda x: x @ x, over={"n": [8, 16]}, args=lambda n: jnp.ones((n, n)), seconds=0.001)
        >>> [(row.values["n"], row.memory["argument"], row.flops) for row in swept]
        [(8, 256, 1024.0), (16, 1024, 8192.0)]
    """
    __tracebackhide__ = True
    check_seconds(seconds)
    call = Call.of(function, given, named)
    grid = grid_of(call.function, call.args, call.kwargs, over, args)
    rows: list[SweepRow] = []
    with progress_bar(f"sweeping {len(grid.points):,} points", progress) as notify, printed_once() as prints:
        for done, point in enumerate(grid.points):
            values = {axis.name: _value(axis, at) for axis, at in zip(grid.axes, point.at, strict=True)}
            notify(done / len(grid.points), ", ".join(f"{name} = {value}" for name, value in values.items()))
            rows.append(_measured(SweepRow(point.at, values), call.function, point, seconds if time else 0.0))
    notes = [*(note for note in (busy_note(),) if note and time), *prints.notes]
    return Sweep(name_of(call.function), grid.axes, rows, notes, environment_with_cores())


def _measured(row: SweepRow, function: Callable[..., Any], point: Point, seconds: float) -> SweepRow:
    """The row with what this point gives, as far as it comes."""
    __tracebackhide__ = True
    try:
        call = point.make()
        subject = compile_subject(
            function, call.args, call.kwargs, target=call.function, options=call.options, verb="swept"
        )
        capture = subject.capture
        flops, moved = flops_and_bytes(capture)
        row = replace(row, capture=capture, stages=vars(capture.durations), memory=capture.memory)
        row = replace(row, kernels=kernels_of(capture), flops=flops, bytes=moved)
        if seconds:
            subject.calls.first()
            row = replace(row, stages={**row.stages, "run": subject.calls.first_seconds})
            row = replace(row, steady=steady(subject.calls.call, prepare=subject.calls.prepare, seconds=seconds))
    except ArgumentsError:  # the same at every point, and the caller's to know at once
        raise
    except Exception as error:  # what fails at this point may work at the next
        return replace(row, error=error_line(error))
    return row


def _value(axis: Axis, at: int) -> float | str:
    if axis.numbers is None or axis.unit:
        return axis.labels[at]
    number = axis.numbers[at]
    return int(number) if number.is_integer() else number
