"""sweep(): a function at many shapes, dtypes, arguments or compiler options, here or on workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from typing import Any

from explorer.capture.backends import backend_of
from explorer.capture.call import Call, takes_call
from explorer.capture.prints import printed_once
from explorer.errors import ArgumentsError
from explorer.executors import Item, Notify, Outcome, cache_in, distribution, program_folders
from explorer.hardware.names import parse_target
from explorer.measure.compiled_subject import CompiledSubject, compile_subject, error_line, flops_and_bytes, kernels_of
from explorer.measure.device import environment_with_cores
from explorer.measure.for_target import check_time, least_seconds, target_notes
from explorer.measure.grid import Grid, grid_of
from explorer.measure.machine import busy_note
from explorer.measure.steady import check_seconds, steady
from explorer.measure.subject import name_of
from explorer.model.results.statistics import Axis
from explorer.model.results.sweep import Sweep, SweepRow
from explorer.model.results.timing import Samples
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


@dataclass(frozen=True)
class Points:
    """The points of a sweep.

    Args:
        function: What is swept.
        grid: The combinations of values.
        seconds: To spend on the time of each; 0 for none.
        target: The hardware to compile for, where that isn't what is here.
        folder: With a folder for each point's program, where one process compiles what another one times.
    """

    function: Callable[..., Any]
    grid: Grid
    seconds: float
    folder: str = ""
    target: Target | None = None

    def rows(self) -> Iterator[SweepRow]:
        """Each point's row, empty as yet."""
        return map(self.row, range(len(self.grid.points)))

    def row(self, at: int) -> SweepRow:
        point = self.grid.points[at]
        values = {axis.name: _value(axis, of) for axis, of in zip(self.grid.axes, point.at, strict=True)}
        return SweepRow(point.at, values)

    def measured(self, at: int) -> SweepRow:
        """A row with what its point gives, as far as it comes."""
        __tracebackhide__ = True
        row = self.row(at)
        try:
            subject = self._compile(at)
            row = _compiled(row, subject, self.target)
            return self._timed(row, subject) if self.seconds else row
        except ArgumentsError:  # the same at every point, and the caller's to know at once
            raise
        except Exception as error:  # what fails at this point may work at the next
            return replace(row, error=error_line(error))

    def compiled(self, at: int) -> SweepRow:
        """The same without the time, for which the program is kept."""
        with cache_in(self._cache(at), keeps_all=True):
            return replace(self, seconds=0.0).measured(at)

    def timed(self, at: int) -> TimedPoint:
        """The time of what was compiled, by this process or by another."""
        row = self.row(at)
        try:
            with cache_in(self._cache(at), keeps_all=True), printed_once() as prints:
                row = self._timed(row, self._compile(at))
            return TimedPoint(row.steady, row.stages["run"], notes=(busy_note(), *prints.notes))
        except Exception as error:
            return TimedPoint(error=error_line(error))

    def _compile(self, at: int) -> CompiledSubject:
        __tracebackhide__ = True
        call = self.grid.points[at].make()
        how: Any = {"target": call.function, "options": call.options, "backend": backend_of(self.target)}
        return compile_subject(self.function, call.args, call.kwargs, verb="swept", **how)

    def _timed(self, row: SweepRow, subject: CompiledSubject) -> SweepRow:
        subject.calls.first()
        row = replace(row, stages={**row.stages, "run": subject.calls.first_seconds})
        samples = steady(subject.calls.call, prepare=subject.calls.prepare, seconds=self.seconds)
        return replace(row, steady=samples)

    def _cache(self, at: int) -> str:
        return str(Path(self.folder, str(at))) if self.folder else ""


@dataclass(frozen=True)
class TimedPoint:
    """What timing a point gave: its samples, the seconds of its first call, or why there are none."""

    steady: Samples | None = None
    run: float = 0.0
    error: str = ""
    notes: tuple[str, ...] = ()


def sweep_on(executor: Any, points: Points, notify: Notify) -> Sweep:
    """Compile the points on workers beside one another, and time each while the others wait.

    Raises:
        OptionError: `executor` is none.
        ArgumentsError: The function can't be sent to another process.
        WorkerError: No worker can do it.
    """
    __tracebackhide__ = True
    count = len(points.grid.points)
    with program_folders(count) as folder:
        points = replace(points, folder=folder if points.seconds else "")
        with distribution(executor, _do, points, "sweep", notify) as work:
            outcomes = work.run((("compile", at) for at in range(count)), "compiled")
            rows = [_row(points.row(at), outcome) for at, outcome in enumerate(outcomes)]
            works = [at for at, row in enumerate(rows) if not row.error and points.seconds]
            timed = work.alone([("time", at) for at in works], "timed")
            notes = [*work.notes(), _beside(len(work.workers), bool(points.seconds))]
    noted = _take_times(rows, dict(zip(works, timed, strict=True)))
    if points.target is not None:
        environment = backend_of(points.target).environment()
        return Sweep(
            name_of(points.function), points.grid.axes, rows, [*target_notes(points.target), *notes], environment
        )
    environment = environment_with_cores()
    for worker in [*work.workers.values()][:1]:
        environment |= {name: value for name, value in worker.environment.items() if name in environment}
    return Sweep(name_of(points.function), points.grid.axes, rows, [*notes, *noted], environment)


def _take_times(rows: list[SweepRow], timed: Mapping[int, Outcome]) -> list[str]:
    """Put what timing gave into the rows; return what the reader should know, each kind of note once."""
    notes: dict[str, str] = {}
    for at, outcome in timed.items():
        point: TimedPoint = outcome.value or TimedPoint(error=outcome.failure)
        stages = {**rows[at].stages, **({"run": point.run} if point.steady else {})}
        rows[at] = replace(rows[at], steady=point.steady, stages=stages, error=point.error)
        notes |= {note.partition(":")[0]: note for note in point.notes if note}
    return [*notes.values()]


def _do(points: Points, item: Item) -> Any:
    """A worker's part."""
    what, at = item
    return points.timed(at) if what == "time" else points.compiled(at)


def _row(row: SweepRow, outcome: Outcome) -> SweepRow:
    return replace(row, error=outcome.failure) if outcome.failure else outcome.value


def _beside(workers: int, is_timed: bool) -> str:
    beside = f"{workers} workers compiled beside one another" if workers > 1 else "a worker compiled"
    return f"{beside}{', then each point ran alone' * is_timed}: a compile alone may take less"


def _compiled(row: SweepRow, subject: CompiledSubject, target: Target | None) -> SweepRow:
    capture = subject.capture
    flops, moved = flops_and_bytes(capture)
    row = replace(row, capture=capture, stages=dict(capture.durations.seconds), memory=capture.memory)
    least = nan if target is None else least_seconds(capture, target)[0]
    return replace(row, kernels=kernels_of(capture), flops=flops, bytes=moved, least=least)


def _value(axis: Axis, at: int) -> float | str:
    if axis.numbers is None or axis.unit:
        return axis.labels[at]
    number = axis.numbers[at]
    return int(number) if number.is_integer() else number
