"""Hot functions: which run compiled by now, which stay eager and why, and the operations that repeat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite, nan
from pathlib import PurePath
from typing import Literal

from explorer.model.declared import Charted, Framed, Saved, declared
from explorer.model.results.rows import row_named
from explorer.model.units import count_text, duration_text


@dataclass(frozen=True, slots=True)
class Shard:
    """Split of arrays over devices.

    Args:
        axis: The split dimension.
        workers: Indices into `jax.devices()`.
        line: Line of the configuration file.
    """

    axis: int
    workers: tuple[int, ...]
    line: int = 0


@dataclass(frozen=True, slots=True)
class SignalSettings:
    """Settings for the functions of one signal.

    Args:
        name: Name of the signal.
        compile: True to compile the functions at their first call; None if not set.
        optimization_level: XLA's level, 0 to 4, as in `explorer.compile`.
        shard: Split of the functions' arguments; None for no split.
        file, line: Position of the setting; empty and 0 if it is in no file.
    """

    name: str
    compile: bool | None = None
    optimization_level: int = 3
    shard: Shard | None = None
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Operation:
    """One kind of operation, without its input values.

    Args:
        key: Number that is equal for equal operations (primitive or function, parameters, input types) within one
            recording.
        name: Name of the primitive (`dot_general`) or of the compiled function (`matmul`).
        parameters: Static parameters by name: `axis=0`.
        inputs: Type of each input, `f32[128,784]`; the class of a Python number.
        outputs: Types of the results.
        is_primitive: True for a JAX primitive; False for a function compiled by `jax.jit`.

    Example:
        >>> print(Operation(1, "_reduce_sum", "axis=0", ("f32[8,4]",), ("f32[4]",)))
        _reduce_sum[axis=0](f32[8,4]) -> f32[4]
    """

    key: int
    name: str
    parameters: str = ""
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    is_primitive: bool = False

    def __str__(self) -> str:
        parameters = f"[{self.parameters}]" if self.parameters else ""
        return f"{self.name}{parameters}({', '.join(self.inputs)}) -> {', '.join(self.outputs)}"


@dataclass(frozen=True, slots=True)
class Step:
    """One executed operation, or one read of a value by the program.

    Args:
        seconds: Time of dispatch, from the start of the recording.
        number: Number of the step, from 1.
        thread: Name of the thread.
        operation: The operation; None for a read.
        observed: Kind of read: `value`, `item`, `block_until_ready`; empty for an operation.
        inputs: A number for each input array, equal for the same array; 0 for other inputs.
        outputs: The same for the results; for a read, the array.
        file, line: Innermost position in the user's code.
        top_line: Line of the statement at the top of the same cell or script; 0 if the call came from another file
            or from a thread's function.
    """

    seconds: float
    number: int
    thread: str
    operation: Operation | None
    observed: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    file: str
    line: int
    top_line: int = 0


@dataclass(frozen=True, slots=True)
class ProposedFunction:
    """Function made of loop statements at the top of a cell or script; it replaces them once it is compiled.

    Args:
        name: Name of the function, after the result of the statements.
        file: File of the statements.
        first_line, last_line: Lines of the statements, from 1.
        text: Source of the function, to be pasted.
        turns: Number of iterations before the function was made.

    Example:
        >>> import explorer
        >>> proposed = explorer.types.ProposedFunction("loss", "train.py", 3, 4, "def loss(x):\\n    return x * 2\\n")
        >>> print(proposed.text.strip())
        def loss(x):
            return x * 2
    """

    name: str
    file: str
    first_line: int
    last_line: int
    text: str
    turns: int = 0


@dataclass(frozen=True, slots=True)
class LeftStatement:
    """Statement of a loop that stays eager.

    Args:
        file, line: Position of the statement.
        reason: Reason, as a sentence without a full stop.
        cure: Change that would allow a compile; empty if unknown.

    Example:
        >>> import explorer
        >>> explorer.types.LeftStatement("train.py", 12, "it prints", "log after the loop").reason
        'it prints'
    """

    file: str
    line: int
    reason: str
    cure: str = ""


@dataclass(frozen=True, slots=True)
class RepeatedSequence:
    """Operations that ran several times in the same order and wiring, with no value read in between.

    Args:
        digest: Of the operations and their wiring: the same in every process.
        operations: In order.
        wiring: Source of each input, by operation: `(operation, result)` within the sequence, both numbered from 0;
            `(-1, k)` for the k-th value from outside; `(-2, 0)` for a value that is no array.
        starts: Number of the first step of each run.
        file, first_line, last_line: User's lines that ran the operations; empty and 0 if they are in several files.
    """

    digest: str
    operations: tuple[Operation, ...]
    wiring: tuple[tuple[tuple[int, int], ...], ...]
    starts: tuple[int, ...]
    file: str = ""
    first_line: int = 0
    last_line: int = 0

    @property
    def name(self) -> str:
        """Return the operations' names, `sin → mul → sub`; of more than four only the first two and the last."""
        names = [operation.name for operation in self.operations]
        return " → ".join(names if len(names) <= 4 else [*names[:2], "…", names[-1]])

    @property
    def count(self) -> int:
        """Return how many times the sequence ran."""
        return len(self.starts)


HotState = Literal["counting", "compiling", "comparing", "compiled", "eager"]
# How a call ran: as written; both ways, to be compared; compiled; as written because a guard held it back.
Way = Literal["eager", "both", "compiled", "missed"]
HotEventKind = Literal["detected", "trigger", "compile", "compiled", "speedup", "miss", "eager", "restored"]
Basis = Literal["both ways", "before", "returned", ""]


@dataclass(frozen=True, slots=True)
class HeldValue:
    """Value outside of the arguments that a compiled copy depends on; a guard checks it on each call.

    Args:
        name: Expression in the source: `CONFIG['rate']`.
        kind: Kind of access: `global`, `cell`, `attribute`, `absent`, `item`, `contents`, `code`.
        is_input: True for an array that is passed again on each call, such as weights; any other value must be the
            same object.

    Example:
        >>> import explorer
        >>> held = explorer.types.HeldValue("CONFIG['rate']", "item")
        >>> held.name, held.kind, held.is_input
        ("CONFIG['rate']", 'item', False)
    """

    name: str
    kind: str
    is_input: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class CallTimes:
    """Durations of a function's first and last calls, in order.

    Seconds count until the call returned. Its computation may still have been running; only calls that ran both ways
    waited for their results.

    Args:
        numbers: Number of each call, from 1; missing numbers are calls that were not kept or not timed.
        starts: Start of each call, in seconds since hot paths were turned on.
        seconds: Duration of each call.
        ways: Execution mode of each call.

    Example:
        >>> import explorer
        >>> times = explorer.types.CallTimes((1, 2, 3), (0.0, 0.2, 0.5), (0.1, 0.25, 0.01), ("eager", "both",
        ...     "compiled"))
        >>> [(number, way) for number, _, _, way in times]
        [(1, 'eager'), (2, 'both'), (3, 'compiled')]
    """

    numbers: tuple[int, ...] = ()
    starts: tuple[float, ...] = ()
    seconds: tuple[float, ...] = ()
    ways: tuple[Way, ...] = ()

    def __len__(self) -> int:
        return len(self.numbers)

    def __repr__(self) -> str:
        return f"CallTimes({count_text(len(self), 'call')})"

    def __iter__(self) -> Iterator[tuple[int, float, float, Way]]:
        return zip(self.numbers, self.starts, self.seconds, self.ways, strict=True)


@dataclass(frozen=True, slots=True)
class HotRow:
    """A function that was called often.

    Args:
        name: Qualified name.
        file, line: Position of the definition.
        state: Progress: `counting` calls, `compiling`, `comparing` results, `compiled`, or `eager` for good.
        reason: Reason for staying eager; empty otherwise.
        reason_file, reason_line: Line that keeps the function eager; 0 if there is no such line.
        cure: Change that would allow a compile; empty if unknown.
        eager_calls, compiled_calls: Number of top-level calls in each mode; counting stops when the function is known
            to stay eager.
        eager_seconds, compiled_seconds: Median of one call; NaN without a measurement. For a compiled function, the
            estimated time until the results are ready; eagerly, the lower of two estimates, because disturbances
            only make a measurement longer.
        eager_samples, compiled_samples: Number of measured calls.
        basis: Measured eager calls: `both ways` (they waited for their results), `before` the compile (until they
            returned, plus the remaining work observed in calls that ran both ways), or, without a compile, until
            they `returned`.
        compile_seconds: Time of tracing and compiling, all variants together.
        is_background: True if a background thread compiled the function.
        variants: Number of compiled copies, one per structure of arguments and static values.
        holds: Values that the guards check.
        misses: Number of calls that a guard rejected, by the name of the changed value.
        times: Durations of the calls.
        signal: Name of the function's signal; empty for none.
        eager_interval, compiled_interval: Intervals of the two medians in seconds, with 95 % confidence for six samples
            or more and the range of the samples for fewer; NaN if unknown.
        inside: Compiled function that contains these calls; empty for none.

    Example:
        >>> import explorer
        >>> row = explorer.types.HotRow("step", eager_calls=13, compiled_calls=987, eager_seconds=4e-3,
        ...     compiled_seconds=1e-3)
        >>> row.calls, row.speedup
        (1000, 4.0)
    """

    name: str
    file: str = ""
    line: int = 0
    state: HotState = "counting"
    reason: str = ""
    reason_file: str = ""
    reason_line: int = 0
    cure: str = ""
    eager_calls: int = 0
    compiled_calls: int = 0
    eager_seconds: float = nan
    compiled_seconds: float = nan
    eager_samples: int = 0
    compiled_samples: int = 0
    basis: Basis = ""
    compile_seconds: float = 0.0
    is_background: bool = True
    variants: int = 0
    holds: tuple[HeldValue, ...] = ()
    misses: Mapping[str, int] = field(default_factory=dict[str, int])
    times: CallTimes = CallTimes()
    signal: str = ""
    eager_interval: tuple[float, float] = (nan, nan)
    compiled_interval: tuple[float, float] = (nan, nan)
    inside: str = ""

    @property
    def calls(self) -> int:
        """Return the number of counted top-level calls."""
        return self.eager_calls + self.compiled_calls

    @property
    def speedup(self) -> float:
        """Return eager over compiled time; NaN unless both were measured."""
        return self.eager_seconds / self.compiled_seconds if self.compiled_seconds else nan

    @property
    def saved_seconds(self) -> float:
        """Return the inferred seconds that compiled calls saved; negative if compiling cost more.

        The eager time of these calls is an estimate. If a time is unknown, the calls saved 0.
        Compile time that the program waited for is subtracted.
        """
        saved = self.compiled_calls * (self.eager_seconds - self.compiled_seconds)
        return (saved if isfinite(saved) else 0.0) - self._waited

    @property
    def saved_interval(self) -> tuple[float, float]:
        """Return the least and the most of `saved_seconds` by the intervals of both medians; NaN if unknown."""
        least = self.eager_interval[0] - self.compiled_interval[1]
        most = self.eager_interval[1] - self.compiled_interval[0]
        return self.compiled_calls * least - self._waited, self.compiled_calls * most - self._waited

    @property
    def _waited(self) -> float:
        return 0.0 if self.is_background else self.compile_seconds


@dataclass(frozen=True, slots=True)
class HotEvent:
    """One event in the life of a hot function.

    Args:
        time: Seconds since hot paths were turned on.
        function: Qualified name.
        kind: `detected` (called often), `trigger` (called often and long enough), `compile` (started), `compiled`,
            `speedup` (the compiled copy gave the same result faster and serves from now on), `miss` (a guard rejected
            a call), `eager` (stays as written), `restored` (hot paths were turned off).
        text: Description; for `eager` the reason.
        seconds: Duration; NaN for events without one.
        file, line: Related line; empty and 0 for none.

    Example:
        >>> import explorer
        >>> explorer.types.HotEvent(0.4, "step", "eager", "it prints", file="train.py", line=12).text
        'it prints'
    """

    time: float
    function: str
    kind: HotEventKind
    text: str = ""
    seconds: float = nan
    file: str = ""
    line: int = 0


@dataclass(frozen=True, repr=False, eq=False)
class HotPaths(Charted, Framed, Saved):
    """Result of `explorer.auto_compile`: the functions that were called often, and each event.

    Args:
        functions: Rows by decreasing time.
        events: Events in order; the oldest are dropped and counted.
        dropped: Number of dropped events.
        seconds: Time that hot paths were on.
        threshold: Number of calls after which a function is compiled.
        mode: `default`, `reduce-overhead` or `max-autotune`.
        is_on: True if hot paths were still on.
        labels: Short name of each file: `train.py`, `cell [4]`.
        notes: Notes for the reader.
        environment: Versions, device.
        proposed: Functions made of loops at the top of cells and scripts; they run in place of the loops.
        left: Statements of such loops that stay eager.
        operations: Number of recorded single operations, from the start; 0 if none were recorded.
        repeats: Repeated sequences among them.

    Example:
        >>> import explorer
        >>> step = explorer.types.HotRow("step", "train.py", 12, "compiled", "", eager_calls=13, compiled_calls=987,
        ...     eager_seconds=0.013, compiled_seconds=0.001, eager_samples=3, compiled_samples=3, basis="both ways")
        >>> explorer.HotPaths((step,))
        HotPaths(`step` runs compiled, 13.0× as fast (13 ms → 1 ms); about 11.8 s saved, inferred)
          step  compiled  13 ms → 1 ms  13.0×  1,000 calls
        >>> log = explorer.types.HotRow("log", "train.py", 30, "eager", "it prints", "train.py", 31, eager_calls=10)
        >>> explorer.HotPaths((log,))
        HotPaths(1 hot function, none compiled; 1 stays eager)
          log  eager      after 10 calls: it prints (train.py, line 31)
    """

    functions: tuple[HotRow, ...] = ()
    events: tuple[HotEvent, ...] = ()
    dropped: int = 0
    seconds: float = nan
    threshold: int = 10
    mode: str = "default"
    is_on: bool = False
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    notes: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    proposed: tuple[ProposedFunction, ...] = ()
    left: tuple[LeftStatement, ...] = ()
    operations: int = 0
    repeats: tuple[RepeatedSequence, ...] = ()

    def __len__(self) -> int:
        return len(self.functions)

    def __iter__(self) -> Iterator[HotRow]:
        return iter(self.functions)

    def place(self, file: str, line: int) -> str:
        """Return a readable position, `train.py, line 12`; empty without a line."""
        # The file may have been named on Windows.
        name = self.labels.get(file) or PurePath(file.replace("\\", "/")).name
        return f"{name}, line {line}" if file and line else ""

    def __getitem__(self, name: str) -> HotRow:
        """Return the row of the first function of this name.

        Raises:
            UnknownNameError: No function has this name.
        """
        return row_named(self.functions, name, "hot function")

    @property
    @declared
    def headline(self) -> str:
        """Return one sentence on the compiled functions, the seconds saved, and the functions that stay eager."""
        ...

    @declared
    def __repr__(self) -> str: ...


@dataclass(frozen=True, slots=True)
class ThreadOperations:
    """Number of operations of one thread per time slice; all slices have the same length.

    Args:
        thread: Name of the thread.
        single: Operations dispatched one by one, per slice.
        compiled: Calls of compiled hot functions, per slice.
    """

    thread: str
    single: tuple[int, ...]
    compiled: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LoggedCompile:
    """One compile in an instruction log.

    Args:
        function: Name of the compiled function.
        start, end: Seconds since the start of the log.
        is_hot: True for a hot function; False for functions that JAX compiles internally.
    """

    function: str
    start: float
    end: float
    is_hot: bool


@dataclass(frozen=True, repr=False, eq=False)
class OperationTimeline(Charted):
    """Contents of an instruction log over time.

    Args:
        name: Name of the file.
        start, end: Times of its first and last line, in seconds since the start of the log.
        threads: Operations per thread.
        compiles: Compiles in order.
        counts: Number of runs of each operation, most frequent first, with True for compiled functions.

    Example:
        >>> one = ThreadOperations("MainThread", (30, 10), (0, 5))
        >>> OperationTimeline("a.log", 0.0, 2.0, (one,), (LoggedCompile("step", 0.5, 0.7, True),))
        OperationTimeline(a.log: 45 operations in 2 s, 5 of them compiled functions; 1 compile took 200 ms)
    """

    name: str
    start: float
    end: float
    threads: tuple[ThreadOperations, ...] = ()
    compiles: tuple[LoggedCompile, ...] = ()
    counts: dict[tuple[str, bool], int] = field(default_factory=dict[tuple[str, bool], int])

    @property
    def headline(self) -> str:
        """Return one sentence: the number of operations, the compiled functions among them, and the compile time."""
        compiled = sum(sum(thread.compiled) for thread in self.threads)
        operations = compiled + sum(sum(thread.single) for thread in self.threads)
        text = f"{count_text(operations, 'operation')} in {duration_text(self.end - self.start)}"
        if compiled:
            text += f", {compiled:,} of them compiled functions"
        if self.compiles:
            took = duration_text(sum(each.end - each.start for each in self.compiles))
            text += f"; {count_text(len(self.compiles), 'compile')} took {took}"
        return text

    def __repr__(self) -> str:
        return f"OperationTimeline({self.name}: {self.headline})"
