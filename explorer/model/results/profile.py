"""What a profile says: operations, lines and stacks with their time, the host's part, and the gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan, nan
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from explorer.errors import NotRecordedError, OptionError
from explorer.model.attached import Charted, Saved, attached, cached_property
from explorer.model.capture import Capture
from explorer.model.results.flame import By, Flame
from explorer.model.results.peaks import Peaks
from explorer.model.results.profile_events import Events
from explorer.model.results.profile_rows import EquationTime, LineTime, OpPart, OpTime
from explorer.model.results.timeline import Timeline

if TYPE_CHECKING:
    import pandas as pd

Order = Literal["time", "wasted"]
Kind = Literal["lines", "ops", "equations", "host"]
_Row = TypeVar("_Row", LineTime, OpTime)
_TIE = 0.05  # of the first: a line as near is as hot


@dataclass(frozen=True, eq=False)
class Profile(Charted, Saved):
    """Where the time of a function's calls went. All seconds are of one call: the mean of those profiled.

    Args:
        function, signature: What was profiled.
        runs: How many calls.
        wall_seconds: A call as the caller sees it, until its result is there: as it was recorded, less what the
            recorder itself takes, as far as that is known.
        device_seconds: Of that, while at least one instruction ran. `ops` sum to it, and `lines` with `unattributed`.
        gap_seconds: Of `wall_seconds`, while the device waited: for Python, for dispatch, between executables.
        ops: The instructions that ran, the longest first.
        lines: The source lines, the longest first.
        unattributed: Seconds of instructions that no line is known for.
        captures: What was compiled, by program number, each with the measure `time` in its `hlo` graph.
        host: Seconds of what the host did while it was recorded, by its name, the longest first; they may overlap the
            device's.
        notes: What the reader should know before trusting the figures.
        environment: Versions, device, cores.
        timeline: Which thread worked for which op when, in one of the calls.
        events: All that was recorded of the calls, without what it means.
        xspace: The same as the profiler gave it.
        plain_seconds: A call while nothing records; NaN where that was not measured.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> def f(x):
        ...     return jnp.sin(x) @ x
        >>> measured = explorer.profile(jax.jit(f), jnp.ones((64, 64)), runs=3)
        >>> measured.hottest[0].line, 0 < measured.device_seconds <= measured.wall_seconds
        (2, True)
        >>> measured.capture.hlo.name, sum(op.seconds for op in measured.ops) > 0
        ('hlo', True)
    """

    function: str
    signature: str
    runs: int
    wall_seconds: float
    device_seconds: float
    gap_seconds: float
    ops: Sequence[OpTime]
    lines: Sequence[LineTime]
    unattributed: float
    captures: Mapping[int, Capture] = field(default_factory=dict[int, Capture])
    host: Mapping[str, float] = field(default_factory=dict[str, float])
    notes: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    timeline: Timeline | None = None
    events: Events | None = None
    xspace: bytes = b""
    plain_seconds: float = nan

    @property
    def seconds(self) -> float:
        """A call: while nothing records, where that was measured."""
        return self.wall_seconds if isnan(self.plain_seconds) else self.plain_seconds

    @property
    def hottest(self) -> tuple[LineTime, ...]:
        """The line that takes most, and those that can't be told from it; empty where no line is known.

        They can't where what they took from run to run overlaps, or differs by less than 5 %.
        """
        lines = sorted(self.lines, key=lambda line: -line.seconds)
        if not lines:
            return ()
        first = lines[0]
        return tuple(line for line in lines if line.high >= first.low or line.seconds >= (1 - _TIE) * first.seconds)

    @property
    def capture(self) -> Capture:
        """What was compiled: of several programs the one that took most, with the measure `time` in its `hlo` graph.

        Raises:
            NotRecordedError: No program ran, or none tells its text.
        """
        seconds = dict.fromkeys(self.captures, 0.0)
        for op in self.ops:
            if op.program in seconds:
                seconds[op.program] += op.seconds
        if not seconds:
            raise NotRecordedError(f"nothing ran on the device in this profile of {self.function}.")
        return self.captures[max(seconds, key=lambda number: seconds[number])]

    @cached_property
    @attached
    def op_parts(self) -> Sequence[OpPart]:
        """The ops in parts, split as their lines are, each with the stack and the scope that it comes from."""
        ...

    @cached_property
    @attached
    def equations(self) -> Sequence[EquationTime]:
        """The equations of the jaxprs that are known, the longest first, as far as instructions are linked to them."""
        ...

    def sort(self, by: Order = "time") -> Profile:
        """The same with `ops` and `lines` sorted by `time`, or by the time `wasted`; what has none is last.

        Raises:
            OptionError: `by` is neither; or `wasted`, and there are no peaks to compare with yet.
        """
        if by not in ("time", "wasted"):
            raise OptionError(f"a profile is sorted by 'time' or by 'wasted'; it got {by!r}.")
        if by == "wasted" and self.ops and all(op.wasted is None for op in self.ops):
            raise OptionError(
                "nothing is known yet of how much time is wasted.\n"
                "  Hint: explorer.roofline measures what the machine can do; profile.with_peaks(peaks) compares."
            )
        return replace(self, ops=_sorted(self.ops, by), lines=_sorted(self.lines, by))

    @attached
    def with_peaks(self, peaks: Peaks) -> Profile:
        """The same with `wasted` of each op and line: the seconds over the least that the machine's peaks allow."""
        ...

    @attached
    def to_frame(self, kind: Kind = "lines") -> pd.DataFrame:
        """A pandas DataFrame of the `lines`, the `ops`, the jaxpr's `equations`, or what the `host` did, a row each.

        Raises:
            MissingPackageError: pandas is not installed.
            OptionError: `kind` is none of these.

        Example:
            >>> import explorer, jax, jax.numpy as jnp
            >>> measured = explorer.profile(jax.jit(jnp.sin), jnp.ones(1000), runs=3)
            >>> "seconds" in measured.to_frame().columns
            True
        """
        ...

    @attached
    def to_perfetto(self, path: str | PathLike[str]) -> Path:
        """Write what was recorded as a trace that ui.perfetto.dev opens: threads, instructions with their source line.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> from pathlib import Path
            >>> from tempfile import TemporaryDirectory
            >>> with TemporaryDirectory() as folder:
            ...     path = explorer.profile(jnp.sort, jnp.ones(8), runs=3).to_perfetto(Path(folder) / "sort.json")
            ...     path.name, path.stat().st_size > 0
            ('sort.json', True)
        """
        ...

    @attached
    def to_xprof(self, folder: str | PathLike[str]) -> Path:
        """Write what was recorded, as the profiler gave it, into a folder for XProf or TensorBoard: `--logdir FOLDER`.

        Returns:
            The file, in `plugins/profile` of the folder; each call adds a run of its own.
        """
        ...

    @attached
    def flame(self, by: By = "stack") -> Flame:
        """Where the time went as a tree: `by` the Python `stack`, or by named `scope`. `to_folded()` writes it down.

        Raises:
            OptionError: `by` is neither.
        """
        ...

    @attached
    def flame_chart(self, by: By = "stack") -> Any:
        """The same as a chart: plotly where it can run, with a static picture and a table beside it.

        Raises:
            MissingPackageError: plotly is not installed.
            ValueError: `by` is neither `stack` nor `scope`.
        """
        ...

    @attached
    def __repr__(self) -> str: ...


def _sorted(rows: Sequence[_Row], by: Order) -> Sequence[_Row]:
    if by == "time":
        return sorted(rows, key=lambda row: -row.seconds)
    return sorted(rows, key=lambda row: (row.wasted is None, -(row.wasted or 0.0), -row.seconds))
