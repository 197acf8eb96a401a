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
    """How arrays are split over devices.

    Args:
        axis: Which dimension.
        workers: The devices, by their place in `jax.devices()`.
        line: Of the file.
    """

    axis: int
    workers: tuple[int, ...]
    line: int = 0


@dataclass(frozen=True, slots=True)
class SignalSettings:
    """What is done with the functions of a signal.

    Args:
        name: The signal's.
        compile: Whether they are compiled, at their first call; None where nothing is said of it.
        optimization_level: What XLA is told, 0 to 4, as by `explorer.compile`.
        shard: How the arguments of a function are split; None for not at all.
        file, line: Where it is written; empty and 0 for nowhere.
    """

    name: str
    compile: bool | None = None
    optimization_level: int = 3
    shard: Shard | None = None
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Operation:
    """What an operation is, without the values that it was given.

    Args:
        key: The same number for the same operation: primitive or function, parameters, kinds of all inputs. Of one
            recording.
        name: Of the primitive (`dot_general`), or of the compiled function (`matmul`).
        parameters: What the program was made for, by name: `axis=0`.
        inputs: The kind of each input, `f32[128,784]`; a Python number by its class.
        outputs: Those of its results.
        is_primitive: Whether it is one of JAX's primitives; else a function that `jax.jit` compiled, jnp's or the
            user's.

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
    """One operation as it ran, or a moment at which the program looked at a value.

    Args:
        seconds: Since the recording began, when it had been dispatched.
        number: Counts the steps of the recording, from 1.
        thread: The name of the thread.
        operation: What ran; None where a value was looked at.
        observed: How it was looked at: `value`, `item`, `block_until_ready`; empty for an operation.
        inputs: Which value each input was: a number for each array, the same wherever it comes again; 0 for what isn't
            an array of JAX's.
        outputs: The same for the results; of what was looked at, it.
        file, line: The innermost line of the user's.
        top_line: The line at the top of the same file's cell or script from which it came; 0 where it came from
            another file, or from a thread's function.
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
    """Statements of a loop at the top of a cell or script, as a function: what runs in their place once it is compiled.

    Args:
        name: After what the statements give.
        file: Where they stand.
        first_line, last_line: From 1.
        text: Its source, to be pasted.
        turns: How often the statements had run when it was made.

    Example:
        >>> import explorer
        >>> proposed = explorer.ProposedFunction("loss", "train.py", 3, 4, "def loss(x):\\n    return x * 2\\n")
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
    """A statement of such a loop that runs as it was written.

    Args:
        file, line: Where it stands.
        reason: Why, a sentence without its full stop.
        cure: What would let it be compiled; empty where nobody knows.

    Example:
        >>> import explorer
        >>> explorer.LeftStatement("train.py", 12, "it prints", "log after the loop").reason
        'it prints'
    """

    file: str
    line: int
    reason: str
    cure: str = ""


@dataclass(frozen=True, slots=True)
class RepeatedSequence:
    """Operations that ran several times in the same order, wired in the same way, without a look at a value between.

    Args:
        digest: Of the operations and their wiring: the same in every process.
        operations: In order.
        wiring: For each operation, where its inputs come from: `(operation, result)` of the sequence by number from 0,
            `(-1, k)` for the k-th value from outside, `(-2, 0)` for what is no array.
        starts: The number of the first step of each time that it ran.
        file, first_line, last_line: The lines of the user's that it came from, where they are of one file; else empty
            and 0.
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
        """Its operations, shortened: `matmul → tanh → … → sub`."""
        names = [operation.name for operation in self.operations]
        return " → ".join(names if len(names) <= 4 else [*names[:2], "…", names[-1]])

    @property
    def count(self) -> int:
        """How often it ran."""
        return len(self.starts)


HotState = Literal["counting", "compiling", "comparing", "compiled", "eager"]
# How a call ran: as written; both ways, to be compared; compiled; as written because a guard held it back.
Way = Literal["eager", "both", "compiled", "missed"]
HotEventKind = Literal["detected", "trigger", "compile", "compiled", "speedup", "miss", "eager", "restored"]
Basis = Literal["both ways", "before", "returned", ""]


@dataclass(frozen=True, slots=True)
class HeldValue:
    """Something outside of a function's arguments that its compiled copy relies on, and that each call checks.

    Args:
        name: As the source reaches it: `CONFIG['rate']`.
        kind: Where it lies: `global`, `cell`, `attribute`, `absent`, `item`, `contents`, `code`.
        is_input: Whether it is an array that each call takes as it is by then, as the weights of a training loop; all
            else must be the very object.

    Example:
        >>> import explorer
        >>> held = explorer.HeldValue("CONFIG['rate']", "item")
        >>> held.name, held.kind, held.is_input
        ("CONFIG['rate']", 'item', False)
    """

    name: str
    kind: str
    is_input: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class CallTimes:
    """How long calls of a function took, in the order in which they were: the first ones, and the last.

    The seconds are until the call returned; what it computes may still have been running by then, but for the calls
    that ran both ways, which waited.

    Args:
        numbers: Which call it was, from 1; where numbers are missing, calls in between weren't kept, or not timed.
        starts: When it began, in seconds since hot paths were on.
        seconds: How long it took.
        ways: How it ran.

    Example:
        >>> import explorer
        >>> times = explorer.CallTimes((1, 2, 3), (0.0, 0.2, 0.5), (0.1, 0.25, 0.01), ("eager", "both", "compiled"))
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
        """Hundreds of figures are drawn, not printed."""
        return f"CallTimes({count_text(len(self), 'call')})"

    def __iter__(self) -> Iterator[tuple[int, float, float, Way]]:
        return zip(self.numbers, self.starts, self.seconds, self.ways, strict=True)


@dataclass(frozen=True, slots=True)
class HotRow:
    """A function that was called often.

    Args:
        name: Its qualified name.
        file, line: Where it is defined.
        state: How far it is: `counting` calls, `compiling`, `comparing` results, `compiled`, or `eager` for good.
        reason: Why it stays eager; empty where it doesn't.
        reason_file, reason_line: The line that keeps it eager; 0 where there is none.
        cure: What would let it be compiled; empty where nobody knows.
        eager_calls, compiled_calls: How often it ran each way, at top level; nobody counts any more once it is known
            that it stays eager.
        eager_seconds, compiled_seconds: Of one call, the median; NaN where none was measured. Of a function that runs
            compiled it is an estimate of what a call takes until its results are there: eagerly the lower one of those
            by two sorts of calls, as what disturbs a measurement makes it longer.
        eager_samples, compiled_samples: Of how many calls.
        basis: What eager calls were measured: those that ran `both ways` and waited for their results; those `before`
            it was compiled, until they returned, with what calls that ran both ways had left to do by then; or, where
            nothing was compiled, those until they `returned`.
        compile_seconds: What tracing and compiling it took, all variants together.
        is_background: Whether that was beside the program.
        variants: How many compiled copies there are: one for each structure of arguments and static values.
        holds: What its guards check.
        misses: How often a guard held a compiled call back, by the name of what had changed.
        times: How long its calls took.
        signal: The signal that it belongs to; empty for none.
        eager_interval, compiled_interval: Between what seconds the two lie, with 95 % confidence where there are six
            samples or more, and as far as samples say where they are fewer; NaN where it isn't known.
        inside: The function that runs compiled and calls it: those calls are in its program; empty for none.

    Example:
        >>> import explorer
        >>> row = explorer.HotRow("step", eager_calls=13, compiled_calls=987, eager_seconds=4e-3, compiled_seconds=1e-3)
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
        """How often it was called at top level, as long as that was counted."""
        return self.eager_calls + self.compiled_calls

    @property
    def speedup(self) -> float:
        """How many times as fast a compiled call was as an eager one; NaN where not both were measured."""
        return self.eager_seconds / self.compiled_seconds if self.compiled_seconds else nan

    @property
    def saved_seconds(self) -> float:
        """An inference: the compiled calls, had they taken as long as eager ones are estimated to; 0 without figures.

        Compiling is counted where the program waited for it.
        """
        saved = self.compiled_calls * (self.eager_seconds - self.compiled_seconds)
        return (saved if isfinite(saved) else 0.0) - self._waited

    @property
    def saved_interval(self) -> tuple[float, float]:
        """Between what `saved_seconds` lies, as far as the samples say; NaN where it isn't known."""
        least = self.eager_interval[0] - self.compiled_interval[1]
        most = self.eager_interval[1] - self.compiled_interval[0]
        return self.compiled_calls * least - self._waited, self.compiled_calls * most - self._waited

    @property
    def _waited(self) -> float:
        return 0.0 if self.is_background else self.compile_seconds


@dataclass(frozen=True, slots=True)
class HotEvent:
    """One step of a function's way.

    Args:
        time: Seconds since hot paths were on.
        function: Its qualified name.
        kind: `detected` (called often, looked at from now on), `trigger` (often and long enough), `compile` begins,
            `compiled`, `speedup` (the compiled copy gave the same, and faster: it serves from now on), `miss` (a guard
            held a call back), `eager` (it stays as written), `restored` (hot paths are over).
        text: What happened, in words: for `eager` the reason.
        seconds: How long it took; NaN where it took no time worth a figure.
        file, line: The line it is about; empty and 0 for none.

    Example:
        >>> import explorer
        >>> explorer.HotEvent(0.4, "step", "eager", "it prints", file="train.py", line=12).text
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
    """What `explorer.auto_compile` saw and did: the functions that were called often, and each step.

    Args:
        functions: Those that take most of the time first.
        events: In the order in which they were; the oldest are dropped, and counted.
        dropped: How many.
        seconds: How long it was on.
        threshold: From how many calls on a function was compiled.
        mode: `default`, `reduce-overhead` or `max-autotune`.
        is_on: Whether it was still on.
        labels: What a person calls each file: `train.py`, `cell [4]`.
        notes: What the reader should know.
        environment: Versions, device.
        proposed: What loops at the top of cells and scripts do over and over, as functions: these run in its place.
        left: The statements of such loops that run as they are written.
        operations: How many single operations were recorded, of those that came first; 0 where none were.
        repeats: What repeats in these.

    Example:
        >>> import explorer
        >>> step = explorer.HotRow("step", "train.py", 12, "compiled", "", eager_calls=13, compiled_calls=987,
        ...     eager_seconds=0.013, compiled_seconds=0.001, eager_samples=3, compiled_samples=3, basis="both ways")
        >>> explorer.HotPaths((step,))
        HotPaths(`step` runs compiled, 13.0× as fast (13 ms → 1 ms); about 11.8 s saved, inferred)
          step  compiled  13 ms → 1 ms  13.0×  1,000 calls
        >>> log = explorer.HotRow("log", "train.py", 30, "eager", "it prints", "train.py", 31, eager_calls=10)
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
        """A line as a person calls it: `train.py, line 12`; empty where there is none."""
        name = self.labels.get(file) or PurePath(file.replace("\\", "/")).name
        return f"{name}, line {line}" if file and line else ""

    def __getitem__(self, name: str) -> HotRow:
        """The first function of this name.

        Raises:
            UnknownNameError: There is none.
        """
        return row_named(self.functions, name, "hot function")

    @property
    @declared
    def headline(self) -> str:
        """All of it in a sentence."""
        ...

    @declared
    def __repr__(self) -> str: ...


@dataclass(frozen=True, slots=True)
class ThreadOperations:
    """How many operations a thread ran, in equal parts of the time.

    Args:
        thread: Its name.
        single: Of those that ran one by one, by part.
        compiled: Of compiled hot functions.
    """

    thread: str
    single: tuple[int, ...]
    compiled: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LoggedCompile:
    """A compile.

    Args:
        function: What was compiled.
        start, end: Seconds since the log began.
        is_hot: Whether it was of a hot function, and not one that JAX makes of itself.
    """

    function: str
    start: float
    end: float
    is_hot: bool


@dataclass(frozen=True, repr=False, eq=False)
class OperationTimeline(Charted):
    """What an instruction log says, over time.

    Args:
        name: Of the file.
        start, end: Of its first and its last line, in seconds since the log began.
        threads: The operations of each.
        compiles: In order.
        counts: How often each operation ran, the most frequent first; the functions that are compiled marked by True.

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
        """All of it in a sentence."""
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
