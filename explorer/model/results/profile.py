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
    """The time of one instruction, a call of the profiled function.

    Args:
        name, op: The instruction's, in the optimised program: `fusion.3`, `fusion`.
        module: The executable that it is in: `jit_step`; `program` tells those of one name apart.
        seconds: Its own time a call: without what runs inside it, of a moment shared with others its part.
        share: Of the device's time, 0 to 1.
        total: With what runs inside: of a `while`, its body; else the same as `seconds`.
        count: How often it ran a call.
        flops, bytes: What it does and moves a call; NaN where nobody knows, as of a custom call.
        wasted: Seconds over what the machine's peaks allow for it; None until they were measured.
        stack: The Python stack that it comes from, innermost frame first; of a fusion, the one that takes most of it.
        scope: Its named scopes, `layer/attention`; empty for none.
        computes: Of a fusion, the operations that it is about, `tanh, multiply`; empty where nothing is known of it.

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
        """What it computes, which says more than the compiler's number for it; else its name."""
        return self.computes or self.name


@dataclass(frozen=True, slots=True)
class LineTime:
    """The time of one line of the source, a call of the profiled function.

    Args:
        file, line, text: The line, from 1; its text without indentation, empty where the source is not known.
        seconds: Of each kernel, the part that comes from this line.
        share: Of the device's time, 0 to 1.
        ops: How many kernels have something of it.
        wasted: Seconds over what the machine's peaks allow; None until they were measured.
        flops, bytes: Its part of theirs, a call.
        low, high: Where `seconds` of other runs would lie, by how much these differed; NaN of fewer than three runs.

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
    """The time of one equation of a jaxpr, a call of the profiled function.

    Args:
        name, op: The equation's, in the jaxpr of `program`: its result, and its primitive.
        module, program: The executable that it was compiled to.
        seconds: Of each kernel, the part that is linked to this equation; shared equally where several may be meant.
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
    @declared
    def op_parts(self) -> Sequence[OpPart]:
        """The ops in parts, split as their lines are, each with the stack and the scope that it comes from."""
        ...

    @cached_property
    @declared
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

    @declared
    def with_peaks(self, peaks: Peaks) -> Profile:
        """The same with `wasted` of each op and line: the seconds over the least that the machine's peaks allow."""
        ...

    @declared
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

    @declared
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

    @declared
    def to_xprof(self, folder: str | PathLike[str]) -> Path:
        """Write what was recorded, as the profiler gave it, into a folder for XProf or TensorBoard: `--logdir FOLDER`.

        Returns:
            The file, in `plugins/profile` of the folder; each call adds a run of its own.
        """
        ...

    @declared
    def flame(self, by: By = "stack") -> Flame:
        """Where the time went as a tree: `by` the Python `stack`, or by named `scope`. `to_folded()` writes it down.

        Raises:
            OptionError: `by` is neither.
        """
        ...

    @declared
    def flame_chart(self, by: By = "stack") -> Any:
        """The same as a chart: plotly where it can run, with a static picture and a table beside it.

        Raises:
            MissingPackageError: plotly is not installed.
            ValueError: `by` is neither `stack` nor `scope`.
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
        >>> op = explorer.ProcessOp("all-reduce.1", "all-reduce", "jit_step", "train.py", 12, True)
        >>> times = np.array([[0.003, 0.001]])
        >>> profile = explorer.ProcessProfile("step", ("host 0", "host 1"), (op,), times, np.array([0.004, 0.004]))
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
    """One function's profiles of many processes as one.

    A collective ends everywhere as the last process has come to it; so what it takes longer than where it is shortest
    was spent waiting for others. That is inferred: clocks of processes can't be held against each other.

    Args:
        function: What was profiled.
        processes: What the processes are called.
        ops: The instructions, the longest first.
        seconds: Of a call, by op and process; NaN where a process has no such instruction.
        calls: Seconds of a call, by process.
        notes: What the reader should know before trusting the figures.

    Example:
        >>> import explorer, numpy as np
        >>> op = explorer.ProcessOp("all-reduce.1", "all-reduce", "jit_step", "train.py", 12, True)
        >>> times = np.array([[0.003, 0.001]])
        >>> profile = explorer.ProcessProfile("step", ("host 0", "host 1"), (op,), times, np.array([0.004, 0.004]))
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
        """Seconds of a call that each process waits in collectives for others, inferred."""
        which = [at for at, op in enumerate(self.ops) if op.is_collective]
        if not which:
            return np.zeros(len(self.processes))
        table = self.seconds[which]
        least = np.where(np.isnan(table), np.inf, table).min(axis=1, keepdims=True)
        return np.nansum(np.where(np.isnan(table), 0.0, table - np.where(np.isinf(least), 0.0, least)), axis=0)

    @property
    def slowest(self) -> int:
        """Which process takes longest for what is no collective: whom the others wait for."""
        return int(np.argmax(self.own))

    @property
    def own(self) -> NDArray[np.float64]:
        """Seconds of a call that each process computes: all but collectives."""
        which = [at for at, op in enumerate(self.ops) if not op.is_collective]
        return np.nansum(self.seconds[which], axis=0) if which else np.zeros(len(self.processes))

    @declared
    def __repr__(self) -> str: ...
