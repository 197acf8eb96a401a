"""What became of functions that were called often: which run compiled by now, which stay eager and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite, nan
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

from explorer.model.attached import Charted, Saved, attached
from explorer.model.results.named_rows import row_named
from explorer.model.results.sequences import LeftStatement, ProposedFunction, RepeatedSequence
from explorer.model.units import count_text

if TYPE_CHECKING:
    import pandas as pd

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
class HotPaths(Charted, Saved):
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
    @attached
    def headline(self) -> str:
        """All of it in a sentence."""
        ...

    @attached
    def to_frame(self) -> pd.DataFrame:
        """A row for each function.

        Raises:
            MissingPackageError: pandas is not installed.
        """
        ...

    @attached
    def __repr__(self) -> str: ...
