"""sweep(): a function at many shapes, dtypes, arguments or compiler options, here or on workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from typing import Any

from explorer.capture.backends import backend_of
from explorer.capture.call import Call, takes_call
from explorer.capture.script import printed_once
from explorer.errors import ArgumentsError
from explorer.executors import Item, Notify, Outcome, cache_in, distribution, program_folders
from explorer.hardware.names import parse_target
from explorer.measure.calls import Calls, name_of
from explorer.measure.compiled_subject import CompiledSubject, compile_subject, error_line, flops_and_bytes, kernels_of
from explorer.measure.grid import Grid, grid_of
from explorer.measure.machine import busy_note, environment_with_cores
from explorer.measure.steady import check_seconds, steady
from explorer.measure.targets import check_time, least_seconds, target_notes
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

    Each combination of values is compiled and run. If one fails, for example for lack of memory, only its row is empty
    and holds the error.

    Args:
        function: Any callable, or a `jax.jit` function.
        given, named: Arguments that stay the same, as in a call. For a keyword that is also an option here, see
            `explorer.Call`.
        over: The values of each name, as a list, or as a dict of labels to values. A name is a parameter of `args`; or
            `options.<name>`, an XLA option, or `options`, dicts of them; or a parameter of the function, whose
            argument the value replaces; or `dtype`, to which all floating-point arguments are cast. A value that is no
            array is a constant of its program.
        args: Makes the arguments of a point from its values: a tuple, or a single one. Descriptions of arrays, such as
            `jax.ShapeDtypeStruct`, are filled with ones.
        time: Run the programs. False only compiles. None runs what is compiled for this machine.
        seconds: Time to spend on each point.
        progress: Show a progress bar after one second; None shows it in interactive sessions.
        executor: Workers that compile the points in parallel: a `ProcessPoolExecutor` that spawns, Dask's client, or
            any object with `submit` like `concurrent.futures.Executor`. Each point is timed on a worker while the
            others wait. Compile times are those of parallel workers, as a note says. Points whose worker ends are
            repeated. Workers use the folder of JAX's persistent cache if it is set.
        target: Hardware to compile for, present or not, as for `explorer.explore`. Nothing is run then, and
            `row.least` is the least time by published figures.

    Returns:
        A row for each combination. It is shown as charts in a notebook; `.to_frame()` has every figure.

    Raises:
        NotCallableError: `function` or `args` can't be called.
        OptionError: A name of `over` is unknown or has no values; `seconds` is out of range; or `time=True` with a
            target.
        UnknownTargetError, MissingCompilerError: As for `explore`.
        ArgumentsError: The function can't take the arguments, or can't be sent to another process.
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
        for done, point in enumerate(grid.points):
            values = grid.values(point).items()
            notify(done / len(grid.points), ", ".join(f"{name} = {value}" for name, value in values))
            rows.append(points.measured(done))
    notes = [*filter(None, [busy_note() if is_run else ""]), *target_notes(meant), *prints.notes]
    environment = environment_with_cores() if meant is None else backend.environment()
    return Sweep(name_of(call.function), grid.axes, rows, notes, environment)


@dataclass(frozen=True)
class Points:
    """The points of a sweep.

    Args:
        function: The function to sweep.
        grid: The combinations of values.
        seconds: Time to spend on each; 0 for none.
        folder: Parent of a folder per point's program, if one process compiles what another one times.
        target: The hardware to compile for; None for this machine.
    """

    function: Callable[..., Any]
    grid: Grid
    seconds: float
    folder: str = ""
    target: Target | None = None

    def row(self, at: int) -> SweepRow:
        point = self.grid.points[at]
        return SweepRow(point.at, self.grid.values(point))

    def measured(self, at: int) -> SweepRow:
        """Return the row of a point with its figures, or with the error."""
        __tracebackhide__ = True
        row = self.row(at)
        try:
            subject = self._compile(at)
            capture = subject.capture
            flops, moved = flops_and_bytes(capture)
            row = replace(
                row,
                capture=capture,
                stages=dict(capture.durations.seconds),
                memory=capture.memory,
                kernels=kernels_of(capture),
                flops=flops,
                bytes=moved,
                least=nan if self.target is None else least_seconds(capture, self.target)[0],
            )
            return self._timed(row, subject) if self.seconds else row
        except ArgumentsError:  # it is the same at every point, so the caller should know at once
            raise
        except Exception as error:  # the next point may work
            return replace(row, error=error_line(error))

    def compiled(self, at: int) -> SweepRow:
        """Compile a point, store its program in `folder` for other processes, and return its row without call times."""
        with cache_in(self._cache(at), keeps_all=True):
            return replace(self, seconds=0.0).measured(at)

    def timed(self, at: int) -> TimedPoint:
        """Time a point, with its program from `folder` if another process stored it there; a failure is the `error`."""
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
        calls = Calls(subject.call, subject.args, subject.kwargs)
        calls.first()
        row = replace(row, stages={**row.stages, "run": calls.first_seconds})
        samples = steady(calls.call, prepare=calls.prepare, seconds=self.seconds)
        return replace(row, steady=samples)

    def _cache(self, at: int) -> str:
        return str(Path(self.folder, str(at))) if self.folder else ""


@dataclass(frozen=True)
class TimedPoint:
    """Timing of a point: its samples and the seconds of its first call, or an error."""

    steady: Samples | None = None
    run: float = 0.0
    error: str = ""
    notes: tuple[str, ...] = ()


def sweep_on(executor: Any, points: Points, notify: Notify) -> Sweep:
    """Return a sweep whose points parallel workers compile; each is timed while the others wait.

    Raises:
        OptionError: `executor` is no executor.
        ArgumentsError: The function can't be sent to another process.
        WorkerError: No worker can do it.
    """
    __tracebackhide__ = True
    count = len(points.grid.points)
    with program_folders(count) as folder:
        points = replace(points, folder=folder if points.seconds else "")
        with distribution(executor, _do, points, "sweep", notify) as work:
            outcomes = work.run((("compile", at) for at in range(count)), "compiled")
            rows = [
                replace(points.row(at), error=outcome.failure) if outcome.failure else outcome.value
                for at, outcome in enumerate(outcomes)
            ]
            works = [at for at, row in enumerate(rows) if not row.error and points.seconds]
            timed = work.alone([("time", at) for at in works], "timed")
            workers = len(work.workers)
            beside = f"{workers} workers compiled in parallel" if workers > 1 else "a worker compiled"
            beside += f"{', then each point ran alone' * bool(points.seconds)}: a compile alone may take less"
            notes = [*target_notes(points.target), *work.notes(), beside]
    notes += _take_times(rows, dict(zip(works, timed, strict=True)))
    if points.target is not None:
        environment = backend_of(points.target).environment()
    else:
        environment = environment_with_cores()
        for worker in [*work.workers.values()][:1]:
            environment |= {name: value for name, value in worker.environment.items() if name in environment}
    return Sweep(name_of(points.function), points.grid.axes, rows, notes, environment)


def _take_times(rows: list[SweepRow], timed: Mapping[int, Outcome]) -> list[str]:
    """Replace the timed rows (by index) by rows with their timings; return the timings' notes, one of each kind."""
    notes: dict[str, str] = {}
    for at, outcome in timed.items():
        point: TimedPoint = outcome.value or TimedPoint(error=outcome.failure)
        stages = {**rows[at].stages, **({"run": point.run} if point.steady else {})}
        rows[at] = replace(rows[at], steady=point.steady, stages=stages, error=point.error)
        # Of notes that differ in their figures alone, such as the load, one is enough.
        notes |= {note.partition(":")[0]: note for note in point.notes if note}
    return [*notes.values()]


def _do(points: Points, item: Item) -> Any:
    """Return a point's row for the item ("compile", index), or its `TimedPoint` for ("time", index)."""
    what, at = item
    return points.timed(at) if what == "time" else points.compiled(at)
