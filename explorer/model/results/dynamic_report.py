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
        shapes: Shape of each input, by name; for an input that is a size, the size. An open size is its symbol.
        reason: Reason for the compile.
        seconds: Duration of trace, lower and compile together.
        when: Time at which the binary was ready.
        capture: Capture of the compile, if one was taken.

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


# Values of `compile(…, dynamic=)`.
DynamicChoice = Literal["auto", "pad", "specialise"]
# Resulting modes; `static` if nothing varies.
DynamicVerdict = Literal["padded", "specialised", "static"]


@dataclass(frozen=True, slots=True)
class PaddingRefusal:
    """An equation that keeps a function from being padded.

    Args:
        equation: Text of the equation; empty if the trace itself fails.
        primitive: Name of the primitive.
        file, line: Position in the user's code; empty and 0 if unknown.
        reason: Why padding would change the valid results.
        hint: A change that would help; empty if unknown.
        label: Short name of the file: `model.py`, or `cell [3]`.
        text: Text of the line.

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
        """Return `model.py, line 12`; empty if unknown."""
        return f"{self.label or self.file}, line {self.line}" if self.file and self.line else ""


@dataclass(frozen=True, slots=True)
class DynamicBinary:
    """One binary and the sizes that it serves.

    Args:
        sizes: Largest sizes if `is_padded`; otherwise the only sizes.
        is_padded: True if the binary also serves smaller sizes.
        reason: Reason for the compile.
        is_background: True if a background thread compiled it.
        seconds: Duration of trace, lower and compile together.
        when: Time at which the binary was ready.
        calls: Number of calls that it served; None if JAX's own dispatcher serves them, which doesn't count.
        flops: XLA's estimate for one run; None if XLA gives no estimate.

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
    """Input sizes that a padded binary served.

    Args:
        sizes: Sizes of the call's inputs.
        bucket: Sizes after padding, in the latest call.
        calls: Number of calls.
        seconds: Durations of the latest calls, with padding and slicing; until the results are ready if `is_waited`.
        is_waited: True if the calls waited for their results, as calls do whose outputs NumPy slices.
        bytes: Size of the inputs and outputs at these sizes.
        padded_bytes: The same at the bucket's sizes.
        flops: FLOPs at these sizes, counted from the equations; None if they can't be counted.
        padded_flops: The same at the bucket's sizes.

    Example:
        >>> import explorer
        >>> padded = explorer.types.PaddedSizes({"batch": 3}, {"batch": 4}, 2, (0.01, 0.03), True, 300, 400, 30.0, 40.0)
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
        """Return the median of `seconds`, the durations of the latest calls."""
        return median(self.seconds)

    @property
    def wasted_bytes(self) -> int:
        """Return the bytes of padding that a call moves."""
        return self.padded_bytes - self.bytes

    @property
    def wasted_flops(self) -> float | None:
        """Return the FLOPs that a call spends on padding; None if unknown."""
        if self.flops is None or self.padded_flops is None:
            return None
        return self.padded_flops - self.flops

    @property
    def waste(self) -> float:
        """Return the share of a call's FLOPs spent on padding, 0 to 1; of its bytes if the FLOPs are unknown."""
        if self.wasted_flops is None or not self.padded_flops:
            return self.wasted_bytes / self.padded_bytes if self.padded_bytes else 0.0
        return self.wasted_flops / self.padded_flops


@dataclass(frozen=True, slots=True, repr=False)
class DynamicReport(Charted, Saved):
    """Report on the sizes that an executable's inputs may have, and on the binaries that serve them.

    Args:
        function: Name of the function.
        dimensions: By name, the smallest size, the size to optimize for, and the largest.
        choice: The requested mode.
        verdict: `padded` (a few binaries serve every size), `specialised` (one binary per size) or `static`.
        why: Reason for the verdict.
        refusals: Equations that can't be padded, even if the function is specialized for another reason.
        rules: Number of uses of each rule of the proof, by name; a loop's body counts once.
        masks: Number of masks that replace padded elements; a loop's body counts once.
        buckets: Bucket sizes by dimension.
        binaries: Existing binaries, padded ones first, then by decreasing size.
        waiting: Buckets and sizes waiting for a background compile.
        sizes: Sizes that were called and padded.
        faults: Errors of background work that affected no call.

    Example:
        >>> import explorer as ex
        >>> refusal = ex.types.PaddingRefusal("f32[b] = svd f32[b,b]", "svd", "/m.py", 12, "`svd` has no rule", "",
        ...     "m.py")
        >>> ex.types.DynamicReport("f", {"b": (1, 8, 64)}, "auto", "specialised", "it can't be padded", (refusal,))
        DynamicReport(f: Specialised: 1 equation prevents padding: `svd` at m.py, line 12)
          can be    b = 1 … 64
          served by a binary for each size, compiled at its first call
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
        """Return the number of calls whose inputs were padded, over all sizes."""
        return sum(row.calls for row in self.sizes)

    @property
    def wasted_bytes(self) -> int:
        """Return the bytes of padding moved by all calls, with the current buckets."""
        return sum(row.calls * row.wasted_bytes for row in self.sizes)

    @property
    def wasted_flops(self) -> float | None:
        """Return the FLOPs spent on padding by all calls, with the current buckets; None if unknown for some size."""
        wasted = [(row.calls, row.wasted_flops) for row in self.sizes]
        return sum(calls * (flops or 0) for calls, flops in wasted) if all(f is not None for _, f in wasted) else None

    @property
    def size_count(self) -> int:
        """Return the number of combinations of sizes that the dimensions allow, without sizes of 0."""
        # A size of 0 has its own binary and is never padded.
        return prod(most - max(1, least) + 1 for least, _, most in self.dimensions.values())

    @property
    @declared
    def headline(self) -> str:
        """Return a sentence on the binaries, their sizes and the share of padding; or on why padding is impossible."""
        ...

    @declared
    def to_frame(self) -> pd.DataFrame:
        """Return a pandas DataFrame with one row per size that was called and padded.

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
