"""Profiles: operations, lines and stacks with their time, the host's part, the gaps, and many processes as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan, nan
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from explorer.errors import NotRecordedError, OptionError
from explorer.model.capture import Capture
from explorer.model.declared import Charted, Displayable, Framed, Saved, cached_property, declared
from explorer.model.graph import Frame
from explorer.model.results.profile_events import By, Events, Flame, Timeline
from explorer.model.results.roofline import Peaks

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class OpTime:
    """Time of one instruction per call of the profiled function.

    Args:
        name, op: Instruction and its opcode in the optimized program: `fusion.3`, `fusion`.
        module: Name of its executable: `jit_step`; `program` distinguishes executables with one name.
        seconds: Own time per call, without nested instructions; a moment shared by several counts in parts.
        share: Share of the device's time, 0 to 1.
        total: Time with nested instructions, such as the body of a `while`; else equal to `seconds`.
        count: Runs per call.
        flops, bytes: FLOPs and moved bytes per call; NaN if unknown, as for a custom call.
        wasted: Seconds above the minimum that the machine's peaks allow; None until the peaks are measured.
        stack: Python stack, innermost frame first; for a fusion, the stack with most of its time.
        scope: Named scopes, `layer/attention`; empty for none.
        computes: Main operations of a fusion, `tanh, multiply`; empty if unknown.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> measured = explorer.profile(jax.jit(lambda x: jnp.sin(x) @ x), jnp.ones((64, 64)), runs=3)
        >>> longest = measured.ops[0]
        >>> longest.module, longest.seconds >= measured.ops[-1].seconds, 0 < longest.share <= 1
        ('jit__lambda', True, True)
    """

    name: str
    op: str
    module: str
    program: int
    seconds: float
    share: float
    total: float
    count: float
    flops: float
    bytes: float
    wasted: float | None
    stack: tuple[Frame, ...]
    scope: str
    computes: str = ""

    @property
    def title(self) -> str:
        """Return `computes`, the main operations of a fusion; the name if that is empty."""
        return self.computes or self.name


@dataclass(frozen=True, slots=True)
class LineTime:
    """Time of one source line per call of the profiled function.

    Args:
        file, line, text: Position from line 1, and the text without indentation; empty if the source is unknown.
        seconds: Sum of the line's parts of all kernels.
        share: Share of the device's time, 0 to 1.
        ops: Number of kernels with a part of the line.
        wasted: Seconds above the minimum that the machine's peaks allow; None until the peaks are measured.
        flops, bytes: The line's part of FLOPs and bytes per call.
        low, high: Interval of `seconds` over runs; NaN for fewer than three runs.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> def f(x):
        ...     return jnp.sin(x) @ x
        >>> measured = explorer.profile(jax.jit(f), jnp.ones((64, 64)), runs=3)
        >>> measured.lines[0].line, measured.lines[0].text, measured.lines[0].seconds > 0
        (2, 'return jnp.sin(x) @ x', True)
    """

    file: str
    line: int
    text: str
    seconds: float
    share: float
    ops: int
    wasted: float | None
    flops: float
    bytes: float
    low: float = nan
    high: float = nan


@dataclass(frozen=True, slots=True)
class EquationTime:
    """Time of one jaxpr equation per call of the profiled function.

    Args:
        name, op: Name of the equation's result in the jaxpr of `program`, and its primitive.
        module, program: Name and number of the executable that runs it.
        seconds: Sum of its parts of all linked kernels; several possible equations share a kernel equally.
        share: Of the device's time, 0 to 1.
        file, line: Its place in the source; empty and 0 for none.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> measured = explorer.profile(jax.jit(lambda x: jnp.sin(x) @ x), jnp.ones((64, 64)), runs=3)
        >>> sorted(time.op for time in measured.equations)
        ['dot_general', 'sin']
    """

    name: str
    op: str
    module: str
    program: int
    seconds: float
    share: float
    file: str
    line: int


class OpPart(NamedTuple):
    """The part of an op's seconds that comes from one stack and one scope; `op` is its index in the profile's `ops`.

    Where a program computes gradients, the scope begins with its phase: `forward`, `backward` or `update`.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> measured = explorer.profile(jax.jit(lambda x: jnp.sin(x) @ x), jnp.ones((64, 64)), runs=3)
        >>> part = measured.op_parts[0]
        >>> measured.ops[part.op].name != "", part.seconds > 0
        (True, True)
    """

    op: int
    seconds: float
    stack: tuple[Frame, ...]
    scope: str


Order = Literal["time", "wasted"]
Kind = Literal["lines", "ops", "equations", "host"]
_Row = TypeVar("_Row", LineTime, OpTime)
_TIE = 0.05  # of the first: a line as near is as hot


@dataclass(frozen=True, eq=False)
class Profile(Charted, Saved):
    """Profile of a function's calls. All seconds are per call, as a mean over the profiled calls.

    Args:
        function, signature: The profiled function and its arguments.
        runs: Number of profiled calls.
        wall_seconds: Time until the result is ready, less the known overhead of the recorder.
        device_seconds: Part of it with at least one running instruction. `ops` sum to it, and so do `lines` with
            `unattributed`.
        gap_seconds: Part of `wall_seconds` in which the device waited: for Python, for dispatch, between executables.
        ops: Executed instructions, longest first.
        lines: Source lines, longest first.
        unattributed: Seconds of instructions without a known line.
        captures: Captures by program number, each with the measure `time` in its `hlo` graph.
        host: Seconds of host activities by name, longest first; they may overlap the device's time.
        notes: Notes on the reliability of the figures.
        environment: Versions, device, cores.
        timeline: Work of each thread over time, for one of the calls.
        events: All recorded events of the calls.
        xspace: The profiler's own format of the events.
        plain_seconds: Time of a call without recording; NaN if not measured.

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
        """Return the wall seconds of one call: `plain_seconds`, without recording, or `wall_seconds` if that is NaN."""
        return self.wall_seconds if isnan(self.plain_seconds) else self.plain_seconds

    @property
    def hottest(self) -> tuple[LineTime, ...]:
        """Return the line with most time and all lines of equal time; empty without a known line.

        Times count as equal if their intervals overlap or they differ by less than 5 %.
        """
        lines = sorted(self.lines, key=lambda line: -line.seconds)
        if not lines:
            return ()
        first = lines[0]
        return tuple(line for line in lines if line.high >= first.low or line.seconds >= (1 - _TIE) * first.seconds)

    @property
    def capture(self) -> Capture:
        """Return the capture of the program with most time, with the measure `time` in its `hlo` graph.

        Raises:
            NotRecordedError: No program ran, or no program has a text.
        """
        seconds = dict.fromkeys(self.captures, 0.0)
        for op in self.ops:
            if op.program in seconds:
                seconds[op.program] += op.seconds
        if not seconds:
            raise NotRecordedError(f"nothing ran on the device in this profile of {self.function}.")
        return self.captures[max(seconds, key=lambda number: seconds[number])]

    @cached_property
    @declared
    def op_parts(self) -> Sequence[OpPart]:
        """Return the time of each op by the stack and the scope that it comes from; an op's parts sum to it."""
        ...

    @cached_property
    @declared
    def equations(self) -> Sequence[EquationTime]:
        """Return the time of each jaxpr equation in its linked kernels, longest first.

        Equations without time are left out.
        """
        ...

    def sort(self, by: Order = "time") -> Profile:
        """Return a copy with `ops` and `lines` sorted by `time` or `wasted`; rows without a value come last.

        Raises:
            OptionError: `by` is neither of the two, or `wasted` without measured peaks.
        """
        if by not in ("time", "wasted"):
            raise OptionError(f"a profile is sorted by 'time' or by 'wasted'; it got {by!r}.")
        if by == "wasted" and self.ops and all(op.wasted is None for op in self.ops):
            raise OptionError(
                "the wasted time is not known yet.\n"
                "  Hint: explorer.roofline measures what the machine can do; profile.with_peaks(peaks) compares."
            )
        return replace(self, ops=_sorted(self.ops, by), lines=_sorted(self.lines, by))

    @declared
    def with_peaks(self, peaks: Peaks) -> Profile:
        """Return a copy with `wasted` of each op and line: the seconds above the minimum by the machine's peaks.

        The graphs of its captures get the measures `wasted` and `bound`.
        """
        ...

    @declared
    def to_frame(self, kind: Kind = "lines") -> pd.DataFrame:
        """Return a pandas DataFrame of the `lines`, the `ops`, the jaxpr's `equations`, or the `host` activities.

        Raises:
            MissingPackageError: pandas is not installed.
            OptionError: `kind` is another value.

        Example:
            >>> import explorer, jax, jax.numpy as jnp
            >>> measured = explorer.profile(jax.jit(jnp.sin), jnp.ones(1000), runs=3)
            >>> "seconds" in measured.to_frame().columns
            True
        """
        ...

    @declared
    def to_perfetto(self, path: str | PathLike[str]) -> Path:
        """Write the recorded events as a trace that ui.perfetto.dev opens, and return its path.

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

    @declared
    def to_xprof(self, folder: str | PathLike[str]) -> Path:
        """Write what was recorded, as the profiler gave it, into a folder for XProf or TensorBoard: `--logdir FOLDER`.

        Returns:
            The file, in `plugins/profile` of the folder; each call adds a run of its own.
        """
        ...

    @declared
    def flame(self, by: By = "stack") -> Flame:
        """Return the time as a tree `by` the Python `stack` or by named `scope`; `to_folded()` converts it to text.

        Raises:
            OptionError: `by` is neither `stack` nor `scope`.
        """
        ...

    @declared
    def flame_chart(self, by: By = "stack") -> Any:
        """Return the tree as a plotly chart with a static picture and a table.

        Raises:
            MissingPackageError: plotly is not installed.
            OptionError: `by` is neither `stack` nor `scope`.
        """
        ...

    @declared
    def __repr__(self) -> str: ...


def _sorted(rows: Sequence[_Row], by: Order) -> Sequence[_Row]:
    if by == "time":
        return sorted(rows, key=lambda row: -row.seconds)
    return sorted(rows, key=lambda row: (row.wasted is None, -(row.wasted or 0.0), -row.seconds))


@dataclass(frozen=True)
class ProcessOp:
    """One instruction, in all processes that ran it.

    Args:
        name, op: The instruction's: `all-reduce.1`, `all-reduce`.
        module: The executable that it is in.
        file, line: The user's line that it comes from; empty and 0 where that isn't known.
        is_collective: True if it waits for other devices.

    Example:
        >>> import explorer, numpy as np
        >>> op = explorer.types.ProcessOp("all-reduce.1", "all-reduce", "jit_step", "train.py", 12, True)
        >>> times = np.array([[0.003, 0.001]])
        >>> profile = explorer.types.ProcessProfile("step", ("host 0", "host 1"), (op,), times, np.array([0.004,
        ...     0.004]))
        >>> profile.ops[0].is_collective, profile.waiting.tolist()
        (True, [0.002, 0.0])
    """

    name: str
    op: str
    module: str
    file: str
    line: int
    is_collective: bool


@dataclass(frozen=True, repr=False, eq=False)
class ProcessProfile(Displayable, Framed, Saved):
    """Profiles of one function from many processes, merged.

    A collective ends on all processes when the last one reaches it. Its extra time over the shortest process is
    therefore waiting. This is inferred, because the processes' clocks can't be compared.

    Args:
        function: Name of the profiled function.
        processes: Names of the processes.
        ops: Instructions, longest first.
        seconds: Seconds per call, by op and process; NaN if a process lacks the instruction.
        calls: Seconds per call, by process.
        notes: Notes on the reliability of the figures.

    Example:
        >>> import explorer, numpy as np
        >>> op = explorer.types.ProcessOp("all-reduce.1", "all-reduce", "jit_step", "train.py", 12, True)
        >>> times = np.array([[0.003, 0.001]])
        >>> profile = explorer.types.ProcessProfile("step", ("host 0", "host 1"), (op,), times, np.array([0.004,
        ...     0.004]))
        >>> profile.processes[profile.slowest], profile.own.tolist()
        ('host 0', [0.0, 0.0])
    """

    function: str
    processes: tuple[str, ...]
    ops: tuple[ProcessOp, ...]
    seconds: NDArray[np.float64]
    calls: NDArray[np.float64]
    notes: tuple[str, ...] = ()

    @property
    def waiting(self) -> NDArray[np.float64]:
        """Return the inferred seconds per call that each process waits in collectives for others, by process."""
        which = [at for at, op in enumerate(self.ops) if op.is_collective]
        if not which:
            return np.zeros(len(self.processes))
        table = self.seconds[which]
        # Infinite, so that a process without the instruction isn't the shortest.
        least = np.where(np.isnan(table), np.inf, table).min(axis=1, keepdims=True)
        return np.nansum(np.where(np.isnan(table), 0.0, table - np.where(np.isinf(least), 0.0, least)), axis=0)

    @property
    def slowest(self) -> int:
        """Return the index of the process with the longest time outside of collectives; the others wait for it.

        -1 without processes.
        """
        return int(np.argmax(self.own)) if self.processes else -1

    @property
    def own(self) -> NDArray[np.float64]:
        """Return the seconds per call that each process spends outside of collectives, by process."""
        which = [at for at, op in enumerate(self.ops) if not op.is_collective]
        return np.nansum(self.seconds[which], axis=0) if which else np.zeros(len(self.processes))

    @declared
    def __repr__(self) -> str: ...
