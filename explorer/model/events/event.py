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
    "device", "layout", "donation", "context", "options", "evicted", "raised", "unknown",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the user's.

    Args:
        file: The name that frames carry.
        line: From 1.
        label: What a person calls the file: `train.py`, `cell [4]`.
        text: The line itself, stripped; empty if it can't be had.
        function: The function that the line stands in; empty at the top of a file.

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
    """Why something was traced or compiled again.

    Args:
        kind: One of `REASONS`. `guard`: something that a hot function reads changed. `raised`: the trace ended with an
            error, and nothing is kept of such a one.
        leaf: What changed, as Python would write it: `batch['x'].shape[0]`, `n`; empty if it is no argument.
        before, after: Its value in the nearest earlier call, and in this one.
        fix: Code that would stop it, or one sentence; empty for a first call.
        text: One sentence for a person.

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
        """`3 → 4`, with a dash for a value that is empty; itself empty if both are."""
        return f"{self.before or '–'} → {self.after or '–'}" if self.before or self.after else ""

    def __str__(self) -> str:
        return self.text or self.kind


@dataclass(frozen=True, slots=True)
class Event:
    """One trace, lowering, compile or cache hit.

    Args:
        kind: One of `KINDS`. `cache-hit`: the binary came from the persistent cache.
        function: The name of what was compiled.
        call_site: Where the user called it; None if no frame of theirs was on the stack.
        seconds: How long this took.
        reason: Why; equal for all events of one call.
        id: The compile's number within its function's family: `[step/3]`; empty for a `miss`.
        call: Numbers the calls that left the fast path: events of one call have one number.
        start: When it began, in seconds since 1970.
        stack: The user's frames, innermost first; `call_site` is the first.
        key: What the caches compared; None where it could not be seen.
        thread: Its name.
        device: What it was compiled for: `cpu:0`.
        saved: Seconds of compiling that the persistent cache spared; 0 for other kinds.
        total: Seconds that this function's family has cost up to and with this event.
        error: What stopped it (`KeyboardInterrupt`); empty if it went well.
        process: Which process it was in, where several were merged.
        count: How many calls it stands for; of a `miss`, all since the one before, as a function may miss at each call.
        program: Of a compile beside other processes, what each of the user's lines does, a text line for each; else
            empty.

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
    """One call that JAX is at.

    Args:
        function: Its name.
        call_site: Where the thread stands in the user's code: in the function's own lines while it is traced.
        stage: `trace`, `lower` or `compile`.
        since: When the call began, in seconds since 1970.
        thread: Its name.

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
    """A call as its author wrote it, of what hands all of it to one `jax.jit` in another form.

    Args:
        function: The user's.
        paths: Of the array arguments, in JAX's order.
        order: Their places in JAX's order, in the order of the tree.
        tree: The structure of the arguments.
        statics: (path, value) of all that is no array.
    """

    function: Any
    paths: tuple[str, ...]
    order: tuple[int, ...]
    tree: Any
    statics: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True, eq=False)
class HotCopy:
    """The compiled copy of a hot function.

    Args:
        call: What it was compiled for.
        guard: What a guard saw changed since the copy before it: name, before, after; empty for none.
        stack: The user's frames when it was found worth compiling, innermost first.
        trace_seconds: How long tracing the user's function took; the copy's own trace comes after it.
        capture: What it was compiled to; None once the copy isn't there any more.
    """

    call: WrittenCall
    guard: tuple[str, ...]
    stack: tuple[Place, ...]
    trace_seconds: float
    capture: Callable[[], Capture | None]


def mark_hot_copy(program: Any, copy: HotCopy) -> None:
    """Note at the function that is given to `jax.jit` whose copy it is."""
    program.__dict__[_MARK] = copy


def hot_copy_of(program: Any) -> HotCopy | None:
    """Whose copy a function that was given to `jax.jit` is; None if hot paths didn't make it."""
    return getattr(program, "__dict__", {}).get(_MARK)


def spreads(before: Leaf, after: Leaf) -> tuple[str, str]:
    """Where two arrays are; down to the partition where the meshes are equal."""
    (spec, *mesh), (new_spec, *new_mesh) = before.spread or ("",), after.spread or ("",)
    if mesh == new_mesh and spec and new_spec and spec != new_spec:
        return spec, new_spec
    return placement(before), placement(after)


def spread_text(parts: tuple[str, str, str]) -> str:
    """`P('data') over data=4`; empty of a single device."""
    spec, mesh, memory = parts
    return (f"{spec} over {mesh}" if mesh else spec) + (f", memory {memory}" if memory and spec else "")


def placement(leaf: Leaf) -> str:
    """Where an array is: its sharding, its device, or what it is if it is no JAX array."""
    if leaf.spread:
        text = spread_text(leaf.spread)
        devices = ", ".join(leaf.devices)
        if text or leaf.spread[2]:
            return text or f"{devices}, memory {leaf.spread[2]}"
    return leaf.sharding or ", ".join(leaf.devices) or leaf.given


class CallLeft(Exception):
    """Raised out of a trace that nobody will compile, for the call is answered otherwise: it is no event."""
