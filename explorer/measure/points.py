"""The points of a sweep, measured: one after another here, or by workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from typing import Any

from explorer.capture.backends import backend_of
from explorer.capture.prints import printed_once
from explorer.errors import ArgumentsError
from explorer.executors.distribute import Notify, Outcome, distribution
from explorer.executors.persistent_cache import cache_in, program_folders
from explorer.executors.worker import Item
from explorer.measure.compiled_subject import CompiledSubject, compile_subject, error_line, flops_and_bytes, kernels_of
from explorer.measure.device import environment_with_cores
from explorer.measure.for_target import least_seconds, target_notes
from explorer.measure.grid import Grid
from explorer.measure.machine import busy_note
from explorer.measure.steady import steady
from explorer.measure.subject import name_of
from explorer.model.results.axis import Axis
from explorer.model.results.sweep import Sweep, SweepRow
from explorer.model.results.timing import Samples
from explorer.model.target import Target


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
