"""One call that left the fast path, while it goes on."""

from __future__ import annotations

from enum import Enum
from threading import current_thread
from time import perf_counter, time
from typing import Any, NamedTuple

from explorer._jax.calls import default_devices, devices_of
from explorer.ledger.functions import name_of
from explorer.model.events.event import hot_copy_of
from explorer.model.events.key import Key


class Stage(Enum):
    """Where a call is."""

    TRACE = "its jaxpr is looked up or traced"
    WAITING = "its jaxpr is there"
    RUN = "it is lowered, compiled and run"
    OVER = "it ended"


TRACE, WAITING, RUN, OVER = Stage  # an attribute of an Enum takes its time


class Step(NamedTuple):
    """One thing that JAX did for a call; `end` is of `perf_counter`."""

    kind: str
    seconds: float
    end: float
    saved: float = 0.0


class Call:
    """What JAX was called with, for as long as the call goes on.

    Args:
        function, wrapper: What is compiled, and its `jax.jit`; None for a jaxpr that is no function of Python's.
        runs: It will be run, and is not only traced.
        outer: The call that this one is inside of, on the same thread.
    """

    # Of the class, as most calls never have one of their own: they only leave the fast path.
    stage: Stage = TRACE
    steps: list[Step] | None = None
    key: Key | None = None
    program: Any = None
    values: Any = ()
    derived: dict[str, Any] | None = None
    executable: Any = None
    seconds = 0.0  # of its trace, as JAX reports it
    cause: Any = None  # why, if a listener was called before its end
    lines: str | None = None  # what its program does, line by line
    doing = ""  # the step that began last
    ours = 0.0  # seconds that the ledger took

    def __init__(self, function: Any, wrapper: Any, args: Any, kwargs: Any, runs: bool, outer: Call | None) -> None:
        self.began = perf_counter()
        self.function = function
        self.wrapper = wrapper
        self.args = args
        self.kwargs = kwargs
        self.runs = runs
        self.outer = outer

    def step(self, kind: str, seconds: float, saved: float = 0.0) -> None:
        if self.steps is None:
            self.steps = []
        self.steps.append(Step(kind, seconds, perf_counter(), saved))

    def traced(self) -> None:
        # A trace inside of a transformation is not reported.
        seconds, copy = self.seconds or perf_counter() - self.began, hot_copy_of(self.function)
        self.step("trace", seconds if copy is None else seconds + copy.trace_seconds)

    @property
    def name(self) -> str:
        """As JAX prints it."""
        if self.key is not None:
            return self.key.function.name
        params = self.derived or (self.program.params if self.program is not None else {})
        return str(params.get("name", "")) or name_of(self.function)

    @property
    def device(self) -> str:
        """What it was compiled for, once it has run."""
        return device_of(self.key, self.executable)

    @property
    def doing_now(self) -> str:
        """`trace`, `lower` or `compile`; empty if none: it runs, or it was known."""
        if self.stage is TRACE:
            return "trace"
        return self.doing if self.stage is RUN else ""

    @property
    def since(self) -> float:
        """When it began, in seconds since 1970."""
        return self.clock(self.began)

    @staticmethod
    def clock(moment: float) -> float:
        """Seconds since 1970 for a `perf_counter`."""
        return time() - (perf_counter() - moment)


def thread_name() -> str:
    return current_thread().name


def device_of(key: Key | None, executable: Any = None) -> str:
    """Where a call runs, as far as that is known."""
    devices = devices_of(executable) if executable is not None else ()
    if not devices and key is not None:
        devices = next((leaf.devices for leaf in key.leaves if leaf.devices), ())
    return _joined(devices or default_devices())


def _joined(devices: tuple[str, ...]) -> str:
    """`cpu:0`; `gpu:0-7` for several."""
    if len(devices) < 2:
        return "".join(devices)
    kind, _, first = devices[0].partition(":")
    numbers = [int(device.rpartition(":")[2]) for device in devices]
    if numbers == [*range(numbers[0], numbers[0] + len(numbers))]:
        return f"{kind}:{first}-{numbers[-1]}"
    return f"{kind}:{','.join(map(str, numbers))}"
