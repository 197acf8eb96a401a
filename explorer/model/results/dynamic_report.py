"""Binaries of an executable: which sizes each serves, padded or specialized, why, and what that costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import prod
from statistics import median
from typing import TYPE_CHECKING, Literal

from explorer.model.capture import Capture
from explorer.model.declared import Charted, Saved, declared

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Specialization:
    """One binary of a compiled function.

    Args:
        shapes: Of each input, by name; of an input that is a size, that size. A size that stayed open is its symbol.
        reason: Why it was compiled.
        seconds: What trace, lower and compile took.
        when: The moment it was ready.
        capture: What the compiler did, where it was seen.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> batch = explorer.NamedDimension("batch", 1, 4, 8)
        >>> double = explorer.compile(lambda x: x * 2, args=[explorer.InputInfo((batch,), "float32")])
        >>> _ = double(jnp.ones(3))
        >>> [(one.shapes, one.reason) for one in double.specializations]
        [({'x': (4,)}, 'optimised for'), ({'x': (3,)}, 'called')]
    """

    shapes: dict[str, tuple[int | str, ...] | int]
    reason: str
    seconds: float
    when: datetime = field(default_factory=lambda: datetime.now(UTC), repr=False, compare=False)
    capture: Capture | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}: {shape}" for name, shape in self.shapes.items())
        return f"Specialization({{{shapes}}}, {self.reason!r})"


# What `compile(…, dynamic=)` takes.
DynamicChoice = Literal["auto", "pad", "specialise"]
# What came of it; `static` where nothing varies.
DynamicVerdict = Literal["padded", "specialised", "static"]


@dataclass(frozen=True, slots=True)
class PaddingRefusal:
    """An equation that keeps a function from being padded.

    Args:
        equation: Its text; empty where the trace itself fails.
        primitive: What it does.
        file, line: Of the user; empty and 0 where nobody knows.
        reason: Why its valid results can't be told from the padded region's.
        hint: What would help; empty where nobody knows.
        label: What a person calls the file: `model.py`, or `cell [3]`.
        text: What stands in the line.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> batch = explorer.NamedDimension("batch", 1, 4, 8)
        >>> def smallest(x):
        ...     return jnp.linalg.svd(x, compute_uv=False)[-1]
        >>> exe = explorer.compile(smallest, args=[explorer.InputInfo((batch, batch), "float32")], dynamic="auto")
        >>> [(refusal.primitive, refusal.text) for refusal in exe.dynamic_report.refusals]
        [('svd', 'return jnp.linalg.svd(x, compute_uv=False)[-1]')]
    """

    equation: str
    primitive: str
    file: str
    line: int
    reason: str
    hint: str = ""
    label: str = ""
    text: str = ""

    @property
    def place(self) -> str:
        """`model.py, line 12`; empty where nobody knows."""
        return f"{self.label or self.file}, line {self.line}" if self.file and self.line else ""


@dataclass(frozen=True, slots=True)
class DynamicBinary:
    """A binary that serves sizes.

    Args:
        sizes: The largest that it serves where `is_padded`; else the only ones.
        is_padded: Whether it serves smaller sizes too.
        reason: Why it was compiled.
        is_background: Whether that was beside the program.
        seconds: What trace, lower and compile took.
        when: The moment it was ready.
        calls: Of the executable that it answered; None where JAX's own dispatcher does so, and nobody counts.
        flops: XLA's estimate for a run; None where it has none.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> batch = explorer.NamedDimension("batch", 1, 4, 8)
        >>> double = explorer.compile(lambda x: x * 2, args=[explorer.InputInfo((batch,), "float32")])
        >>> _ = double(jnp.ones(4))
        >>> [(dict(binary.sizes), binary.is_padded) for binary in double.dynamic_report.binaries]
        [({'batch': 4}, False)]
    """

    sizes: Mapping[str, int]
    is_padded: bool
    reason: str
    is_background: bool
    seconds: float
    when: datetime
    calls: int | None
    flops: float | None


@dataclass(frozen=True, slots=True)
class PaddedSizes:
    """Sizes that were called, and served by a padded binary.

    Args:
        sizes: Of the call's inputs.
        bucket: What they were padded to, the last time.
        calls: How often.
        seconds: The latest calls, each with padding and cutting; until the results were there where `is_waited`.
        is_waited: Whether the calls waited for their results, as those do whose outputs NumPy cuts; else they returned
            before.
        bytes: Of the inputs and outputs, at these sizes.
        padded_bytes: Of the same at the bucket's.
        flops: Of the program at these sizes, counted from its equations; None where that can't be.
        padded_flops: Of the same at the bucket's, counted alike.

    Example:
        >>> import explorer
        >>> padded = explorer.PaddedSizes({"batch": 3}, {"batch": 4}, 2, (0.01, 0.03), True, 300, 400, 30.0, 40.0)
        >>> padded.median_seconds, padded.wasted_bytes, padded.wasted_flops, padded.waste
        (0.02, 100, 10.0, 0.25)
    """

    sizes: Mapping[str, int]
    bucket: Mapping[str, int]
    calls: int
    seconds: tuple[float, ...]
    is_waited: bool
    bytes: int
    padded_bytes: int
    flops: float | None
    padded_flops: float | None

    @property
    def median_seconds(self) -> float:
        """Of one call."""
        return median(self.seconds)

    @property
    def wasted_bytes(self) -> int:
        """What a call moves for nothing."""
        return self.padded_bytes - self.bytes

    @property
    def wasted_flops(self) -> float | None:
        """What a call computes for nothing."""
        if self.flops is None or self.padded_flops is None:
            return None
        return self.padded_flops - self.flops

    @property
    def waste(self) -> float:
        """The part of what a call computes that is for nothing; where nobody knows that, of what it moves."""
        if self.wasted_flops is None or not self.padded_flops:
            return self.wasted_bytes / self.padded_bytes if self.padded_bytes else 0.0
        return self.wasted_flops / self.padded_flops


@dataclass(frozen=True, slots=True, repr=False)
class DynamicReport(Charted, Saved):
    """How an executable serves the sizes that its inputs may have.

    Args:
        function: Its name.
        dimensions: By name, the smallest size, the one to optimise for, the largest.
        choice: What was wished for.
        verdict: `padded`: a few binaries serve every size; `specialised`: each size has one; `static`: nothing varies.
        why: Why that is the verdict.
        refusals: What keeps the function from being padded; also where it is specialised for another reason.
        rules: The rules of the proof by name, and how often each was used; of a loop's body once.
        masks: How often padded elements are replaced before they could reach a result; of a loop's body once.
        buckets: By dimension, the sizes that a bucket may have.
        binaries: Those that there are, padded ones first, the larger before the smaller.
        waiting: Buckets and sizes that are to be compiled beside the program.
        sizes: What was called and padded.
        faults: What went wrong beside the program, and cost no call its result.

    Example:
        >>> import explorer as ex
        >>> refusal = ex.PaddingRefusal("f32[b] = svd f32[b,b]", "svd", "/m.py", 12, "`svd` has no rule", "", "m.py")
        >>> ex.DynamicReport("f", {"b": (1, 8, 64)}, "auto", "specialised", "it can't be padded", (refusal,))
        DynamicReport(f: Specialised: 1 equation prevents padding: `svd` at m.py, line 12)
          can be    b = 1 … 64
          served by a binary for each size that comes, compiled when it first does
          `svd` has no rule
            at        m.py, line 12
            equation  f32[b] = svd f32[b,b]
    """

    function: str
    dimensions: Mapping[str, tuple[int, int, int]]
    choice: DynamicChoice
    verdict: DynamicVerdict
    why: str
    refusals: tuple[PaddingRefusal, ...] = ()
    rules: Mapping[str, int] | None = None
    masks: int = 0
    buckets: Mapping[str, tuple[int, ...]] | None = None
    binaries: tuple[DynamicBinary, ...] = ()
    waiting: tuple[Mapping[str, int], ...] = ()
    sizes: tuple[PaddedSizes, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def calls(self) -> int:
        """How many calls were padded."""
        return sum(row.calls for row in self.sizes)

    @property
    def wasted_bytes(self) -> int:
        """What all calls moved for nothing; each as its sizes are served now."""
        return sum(row.calls * row.wasted_bytes for row in self.sizes)

    @property
    def wasted_flops(self) -> float | None:
        """What all calls computed for nothing, each as its sizes are served now; None where that isn't known."""
        wasted = [(row.calls, row.wasted_flops) for row in self.sizes]
        return sum(calls * (flops or 0) for calls, flops in wasted) if all(f is not None for _, f in wasted) else None

    @property
    def size_count(self) -> int:
        """How many sizes there may be, without empty ones."""
        return prod(most - max(1, least) + 1 for least, _, most in self.dimensions.values())

    @property
    @declared
    def headline(self) -> str:
        """The report in a sentence: what serves which sizes, and how much of it is padding; or what prevents that."""
        ...

    @declared
    def to_frame(self) -> pd.DataFrame:
        """A table for pandas, a row for each size that was called and padded.

        Its columns: the dimensions by name, the bucket's as `bucket_batch`, `calls`, `seconds` (the median), `bytes`,
        `padded_bytes`, `flops`, `padded_flops`, `waste`.

        Raises:
            MissingPackageError: pandas is not installed.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> batch = explorer.NamedDimension("batch", 1, 4, 8)
            >>> info = explorer.InputInfo((batch,), "float32")
            >>> double = explorer.compile(lambda x: x * 2, args=[info], dynamic="pad")
            >>> _ = [double(jnp.ones(n)) for n in (3, 5)]
            >>> report = double.dynamic_report
            >>> len(report.to_frame()) > 0, report.calls
            (True, 2)
        """
        ...

    @declared
    def __repr__(self) -> str: ...
