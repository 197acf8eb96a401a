"""sweep(): a function at many shapes, dtypes, arguments or compiler options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from explorer.capture.backends import backend_of
from explorer.capture.call import Call, takes_call
from explorer.capture.prints import printed_once
from explorer.hardware.names import parse_target
from explorer.measure.device import environment_with_cores
from explorer.measure.for_target import check_time, target_notes
from explorer.measure.grid import grid_of
from explorer.measure.machine import busy_note
from explorer.measure.points import Points, sweep_on
from explorer.measure.steady import check_seconds
from explorer.measure.subject import name_of
from explorer.model.results.sweep import Sweep, SweepRow
from explorer.model.target import Target
from explorer.view.progress_bar import progress_bar


@takes_call
def sweep(
    function: Callable[..., Any] | Call,
    /,
    *given: Any,
    over: Mapping[str, Iterable[Any]],
    args: Callable[..., Any] | None = None,
    time: bool | None = None,
    seconds: float = 0.3,
    progress: bool | None = None,
    executor: Any = None,
    target: str | Target | None = None,
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
        time: Whether to run; without, only what compiling tells is there. If None, what is compiled for here is run.
        seconds: To spend on the time of each point.
        progress: Whether to show a bar once a second has gone by; None shows it where somebody can look on.
        executor: Whose workers compile the points beside one another: a `ProcessPoolExecutor` that spawns, Dask's
            client, anything with `submit` as `concurrent.futures.Executor` has it. Each is timed on a worker while the
            others wait; seconds of compiling are of workers beside one another, as a note says. Points whose worker
            ends are done again. With JAX's persistent cache, workers use its folder.
        target: Hardware to compile for that need not be here, as for `explorer.explore`: then nothing is run, and each
            row has the least time that published figures let one expect, `row.least`.

    Returns:
        A row for each combination; it shows itself as charts in a notebook, and `.to_frame()` has every figure.

    Raises:
        NotCallableError: `function` or `args` can't be called.
        OptionError: A name of `over` is nothing here, or has no values; `seconds` is none; or `time` is asked for of
            hardware that isn't here.
        UnknownTargetError, MissingCompilerError: As for `explore`.
        ArgumentsError: The function can't take these arguments, or can't be sent to another process.
        WorkerError: No worker of `executor` can do it.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> swept = explorer.sweep(lambda x: x @ x, over={"n": [8, 16]}, args=lambda n: jnp.ones((n, n)), seconds=0.001)
        >>> [(row.values["n"], row.memory["argument"], row.flops) for row in swept]
        [(8, 256, 1024.0), (16, 1024, 8192.0)]
    """
    __tracebackhide__ = True
    check_seconds(seconds)
    call = Call.of(function, given, named)
    meant = None if target is None else parse_target(target)
    backend = backend_of(meant)
    grid = grid_of(call.function, call.args, call.kwargs, over, args)
    is_run = check_time("sweep", time, meant)
    points = Points(call.function, grid, seconds * is_run, target=meant)
    rows: list[SweepRow] = []
    with progress_bar(f"sweeping {len(grid.points):,} points", progress) as notify, printed_once() as prints:
        if executor is not None:
            return sweep_on(executor, points, notify)
        for done, empty in enumerate(points.rows()):
            notify(done / len(grid.points), ", ".join(f"{name} = {value}" for name, value in empty.values.items()))
            rows.append(points.measured(done))
    notes = [*filter(None, [busy_note() if is_run else ""]), *target_notes(meant), *prints.notes]
    environment = environment_with_cores() if meant is None else backend.environment()
    return Sweep(name_of(call.function), grid.axes, rows, notes, environment)
