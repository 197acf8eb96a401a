"""Events: what JAX did on the way to a compiled program, where, and why it had to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from explorer.model.events.key import Key, Leaf

if TYPE_CHECKING:
    from explorer.model.capture import Capture

# `miss`: a call that left jax.jit's fast path though nothing had to be compiled.
KINDS = ("trace", "lower", "compile", "cache-hit", "miss")
REASONS = (
    "first", "shape", "rank", "dtype", "weak-type", "structure", "static", "function", "guard", "committed", "sharding",
    "device", "layout", "donation", "context", "options", "transformation", "class", "evicted", "raised", "unknown",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """One line of the user's code.

    Args:
        file: File name, as in stack frames.
        line: Line number, from 1.
        label: Short name of the file: `train.py`, `cell [4]`.
        text: Text of the line, stripped; empty if unknown.
        function: Enclosing function; empty at the top of a file.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> x = jnp.ones(3)
        >>> def double(x):
        ...     return x * 2
        >>> with explorer.watch() as ledger:
        ...     _ = jax.jit(double)(x)
        >>> ledger.events[0].call_site.text
        '_ = jax.jit(double)(x)'
    """

    file: str
    line: int
    label: str = ""
    text: str = ""
    function: str = ""

    def __str__(self) -> str:
        return f"{self.label or self.file}, line {self.line}"


@dataclass(frozen=True, slots=True)
class Reason:
    """Reason for a trace or compile.

    Args:
        kind: One of `REASONS`. `guard`: a value that a hot function reads changed. `class`: an argument's class was
            defined again. `evicted`: JAX's caches were seen to lose the program. `raised`: the earlier trace ended
            with an error, so nothing was cached. `unknown`: nothing that is compared changed.
        leaf: Changed leaf as a Python expression: `batch['x'].shape[0]`, `n`; empty if it is no argument.
        before, after: Value in the nearest earlier call, and in this call.
        fix: Code or a sentence that would avoid the recompile; empty for a first call.
        text: The reason as one sentence.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> xs = [jnp.ones(n) for n in (3, 4)]
        >>> double = jax.jit(lambda x: x * 2)
        >>> with explorer.watch() as ledger:
        ...     _ = [double(x) for x in xs]
        >>> reason = ledger.recompiles()[0].reason
        >>> reason.kind, reason.leaf, reason.before, reason.after
        ('shape', 'x.shape[0]', '3', '4')
    """

    kind: str
    leaf: str = ""
    before: str = ""
    after: str = ""
    fix: str = ""
    text: str = ""

    @property
    def change(self) -> str:
        """Return the change as text, such as `3 → 4`; empty if both values are empty.

        A dash replaces a single empty value.
        """
        return f"{self.before or '–'} → {self.after or '–'}" if self.before or self.after else ""

    def __str__(self) -> str:
        return self.text or self.kind


@dataclass(frozen=True, slots=True)
class Event:
    """One trace, lowering, compile or cache hit.

    Args:
        kind: One of `KINDS`. `cache-hit`: the binary came from the persistent cache.
        function: Name of the compiled function.
        call_site: User's line of the call; None without a user frame on the stack.
        seconds: Duration.
        reason: Reason; equal for all events of one call.
        id: The compile's number within its function's family: `[step/3]`; empty for a `miss`.
        call: Numbers the calls that left the fast path: events of one call have one number.
        start: Start time, in seconds since 1970.
        stack: User frames, innermost first; `call_site` is the first.
        key: Compared cache key; None if unknown.
        thread: Name of the thread.
        device: Target device: `cpu:0`.
        saved: Compile seconds saved by the persistent cache; 0 for other kinds.
        total: Accumulated seconds of this function's family, this event included.
        error: Exception that ended it (`KeyboardInterrupt`); empty on success.
        process: Name of the process, in a merged ledger.
        count: Number of calls; for a `miss`, all calls since the previous one, because every call may miss.
        program: In a run of several processes, one text line per user line with its operations; else empty.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> xs = [jnp.ones(n) for n in (3, 4)]
        >>> double = jax.jit(lambda x: x * 2)
        >>> with explorer.watch() as ledger:
        ...     _ = [double(x) for x in xs]
        >>> first, second = (event for event in ledger.events if event.kind == "compile")
        >>> first.reason.kind, second.reason.kind, second.reason.leaf
        ('first', 'shape', 'x.shape[0]')
        >>> [(leaf.path, leaf.shape, leaf.dtype) for leaf in second.key.leaves]
        [('x', (4,), 'float32')]
    """

    kind: str
    function: str
    call_site: Place | None = None
    seconds: float = 0.0
    reason: Reason = field(default_factory=lambda: Reason("unknown"))
    id: str = ""
    call: int = 0
    start: float = 0.0
    stack: tuple[Place, ...] = ()
    key: Key | None = None
    thread: str = ""
    device: str = ""
    saved: float = 0.0
    total: float = 0.0
    error: str = ""
    process: str = ""
    count: int = 1
    program: str = ""

    def __repr__(self) -> str:
        where = f" at {self.call_site}" if self.call_site is not None else ""
        return f"Event({self.kind} {self.id or self.function}{where}: {self.reason})"


@dataclass(frozen=True, slots=True)
class Running:
    """One call that is being traced, lowered or compiled now.

    Args:
        function: Name of the function.
        call_site: Current user line of the thread; during a trace a line of the function itself.
        stage: `trace`, `lower` or `compile`.
        since: Start time of the call, in seconds since 1970.
        thread: Name of the thread.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> def double(x):
        ...     seen.extend((call.function, call.stage) for call in ledger.running)
        ...     return x * 2
        >>> seen, x = [], jnp.ones(3)
        >>> with explorer.watch() as ledger:
        ...     _ = jax.jit(double)(x)
        >>> seen
        [('double', 'trace')]
    """

    function: str
    call_site: Place | None
    stage: str
    since: float
    thread: str = ""

    def __str__(self) -> str:
        doing = {"trace": "tracing", "lower": "lowering", "compile": "compiling"}[self.stage]
        return f"{doing} {self.function}" + (f" at {self.call_site}" if self.call_site is not None else "")


_MARK = "explored_hot"


class WrittenCall(NamedTuple):
    """Original call of a wrapper that passes its arguments to one `jax.jit` in another form.

    Args:
        function: The user's function.
        paths: Paths of the array arguments, in JAX's order.
        order: Position of each array in JAX's order, in the order of the tree.
        tree: Structure of the arguments.
        statics: (path, value) of all arguments that are not arrays.
    """

    function: Any
    paths: tuple[str, ...]
    order: tuple[int, ...]
    tree: Any
    statics: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True, eq=False)
class HotCopy:
    """Compiled copy of a hot function.

    Args:
        call: The call that it was compiled for.
        guard: Value that a guard found changed since the previous copy: name, before, after; empty for none.
        stack: User frames at the decision to compile, innermost first.
        trace_seconds: Duration of the trace of the user's function; the copy's own trace follows it.
        capture: Capture of the compile; None after the copy was deleted.
    """

    call: WrittenCall
    guard: tuple[str, ...]
    stack: tuple[Place, ...]
    trace_seconds: float
    capture: Callable[[], Capture | None]


def mark_hot_copy(program: Any, copy: HotCopy) -> None:
    """Store `copy` on `program`, the function passed to `jax.jit`; `hot_copy_of` returns it."""
    program.__dict__[_MARK] = copy


def hot_copy_of(program: Any) -> HotCopy | None:
    """Return the hot copy behind a function passed to `jax.jit`; None if hot paths didn't make it."""
    # Built-in functions have no `__dict__`.
    return getattr(program, "__dict__", {}).get(_MARK)


def spreads(before: Leaf, after: Leaf) -> tuple[str, str]:
    """Return the placements of two arrays as text, (before, after).

    If only the partition differs, the texts are the two partitions: `P('data')`.
    """
    (spec, *mesh), (new_spec, *new_mesh) = before.spread or ("",), after.spread or ("",)
    if mesh == new_mesh and spec and new_spec and spec != new_spec:
        return spec, new_spec
    return placement(before), placement(after)


def spread_text(parts: tuple[str, str, str]) -> str:
    """Return a sharding as text, such as `P('data') over data=4`; empty for a single device.

    Args:
        parts: Partition, mesh and memory.
    """
    spec, mesh, memory = parts
    return (f"{spec} over {mesh}" if mesh else spec) + (f", memory {memory}" if memory and spec else "")


def placement(leaf: Leaf) -> str:
    """Return the sharding or the devices of an array as text, or the kind of argument if it is no JAX array."""
    if leaf.spread:
        text = spread_text(leaf.spread)
        devices = ", ".join(leaf.devices)
        if text or leaf.spread[2]:
            return text or f"{devices}, memory {leaf.spread[2]}"
    return leaf.sharding or ", ".join(leaf.devices) or leaf.given


class CallLeft(Exception):
    """Exception that ends a trace whose call is served in another way; it makes no event."""
