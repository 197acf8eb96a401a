"""Calls that leave JAX's fast path, and the reason for each compile: its key compared with earlier ones."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from threading import RLock
from time import perf_counter, time
from typing import Any, NamedTuple, TypeVar

from explorer._jax.calls import Signature, compiled_by_now, default_devices, devices_of, program_of
from explorer.analysis.recompiles.reasons import History, explain, explain_raised
from explorer.ledger.functions import is_primitive, leaf_of, name_of
from explorer.model.events.event import Event, Place, Reason, hot_copy_of
from explorer.model.events.key import Function, Key, Leaf


class Stage(Enum):
    """State of a call of a jitted function while JAX works on it."""

    TRACE = "its jaxpr is looked up or traced"
    WAITING = "its jaxpr is there"
    RUN = "it is lowered, compiled and run"
    OVER = "it ended"


TRACE, WAITING, RUN, OVER = Stage  # an attribute of an Enum takes its time


class Step(NamedTuple):
    """A step that JAX did for a call: `kind` as `Event.kind`, `end` a `perf_counter`, `saved` the seconds that the
    persistent cache saved.
    """

    kind: str
    seconds: float
    end: float
    saved: float = 0.0


class Call:
    """A call of a compiled function while it runs.

    Args:
        function, wrapper: The compiled function and its `jax.jit`; None for a jaxpr without a Python function.
        runs: True if it will run; False if it is only traced.
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
        """Return the name of the call's function as JAX prints it."""
        if self.key is not None:
            return self.key.function.name
        params = self.derived or (self.program.params if self.program is not None else {})
        return str(params.get("name", "")) or name_of(self.function)

    @property
    def device(self) -> str:
        """Return the devices of the call as text, `cpu:0`: those of its program; before it has run, those of its
        arguments or JAX's default.
        """
        return device_of(self.key, self.executable)

    @property
    def doing_now(self) -> str:
        """Return the step that JAX is at, `trace`, `lower` or `compile`; "" between steps, while it runs and after."""
        if self.stage is TRACE:
            return "trace"
        return self.doing if self.stage is RUN else ""

    @staticmethod
    def clock(moment: float) -> float:
        """Return a `perf_counter` value as seconds since 1970."""
        return time() - (perf_counter() - moment)


def device_of(key: Key | None, executable: Any = None) -> str:
    """Return the devices of a call as text (`cpu:0`): those of its executable, else of its arguments, else JAX's
    default.
    """
    devices = devices_of(executable) if executable is not None else ()
    if not devices and key is not None:
        devices = next((leaf.devices for leaf in key.leaves if leaf.devices), ())
    return _joined(devices or default_devices())


def _joined(devices: tuple[str, ...]) -> str:
    """Return `cpu:0` for one device, `gpu:0-7` or `gpu:0,2` for several; "" for none."""
    if len(devices) < 2:
        return "".join(devices)
    kind, _, first = devices[0].partition(":")
    numbers = [int(device.rpartition(":")[2]) for device in devices]
    if numbers == [*range(numbers[0], numbers[0] + len(numbers))]:
        return f"{kind}:{first}-{numbers[-1]}"
    return f"{kind}:{','.join(map(str, numbers))}"


_Name = TypeVar("_Name", int, str)
_STEPS = ("trace", "lower", "compile")
_KNOWN = "it was compiled before it was watched; nothing was compiled now"
_UNKNOWN = Reason("unknown")
_ASKED = Reason(
    "unknown", text="it was requested ahead of time, where `.lower()` and `.compile()` may have options of their own"
)
_TYPED = Leaf._fields.index("weak") + 1  # its path and its type come first
_MANY_AHEAD = 256  # functions traced ahead of time that are remembered until they are compiled


class CallCause(NamedTuple):
    """Key, reason and numbers of one call, which its events share: see `Event`."""

    key: Key | None
    reason: Reason
    id: str
    call: int
    stack: tuple[Place, ...] = ()  # the requesting call's place, if it compiles elsewhere


class _Ahead(NamedTuple):
    """A function traced ahead of time, and the steps done since."""

    cause: CallCause
    done: set[str]


class Causes:
    """Numbers and explains calls, in the order in which they end; `fault` gets the error of a failed explanation."""

    def __init__(self, fault: Callable[[BaseException], None]) -> None:
        self._fault = fault
        self._history = History()
        self._unwatched = Unwatched()
        self._ahead: OrderedDict[str, _Ahead] = OrderedDict()  # by name, for steps without a visible call
        self._unbuilt: OrderedDict[int, _Ahead] = OrderedDict()  # the same by what was traced, for calls
        self._calls = 0
        self._lock = RLock()

    def renew(self, number: Callable[[Any], int]) -> None:
        """Begin a new session of watching; `number` returns a function's `Function.identity`."""
        with self._lock:
            self._history.renew()
            self._ahead.clear()
            self._unbuilt.clear()
            self._unwatched.snapshot(number)

    def forget(self) -> None:
        with self._lock:
            self._unwatched.forget()

    def explain_call(self, key: Key | None, name: str, happened: Iterable[str], error: str = "") -> CallCause:
        """Return the cause of a call that traced, lowered or compiled. `key` is None if the call isn't visible.

        JAX caches no call that an error stopped, so later calls are not compared with it.
        """
        happened = frozenset(happened)
        with self._lock:
            ahead = self._unbuilt.get(_traced(key)) if key is not None and "trace" not in happened else None
            if ahead is not None and not ahead.done & happened:  # it was traced ahead of time, and continues here
                ahead.done.update(happened)
                return ahead.cause
            self._calls += 1
            function = key.function if key is not None else Function(name)
            number = f"[{name}/{self._history.number(function)}]"
            reason = _UNKNOWN
            if key is not None:
                try:
                    reason = self._why(key, happened, error)
                except Exception as fault:
                    self._fault(fault)
                if not error:
                    self._history.add(key)
            return CallCause(key, reason, number, self._calls)

    def _why(self, key: Key, happened: frozenset[str], error: str) -> Reason:
        earlier = self._history.earlier(key)
        if error and happened == frozenset({"trace"}):
            return explain_raised(key, earlier, error)
        reason = explain(key, earlier, happened, self._history.value_counts(key))
        return reason if reason.kind != "first" else self._unwatched.explain(key, happened) or reason

    def explain_miss(self, key: Key) -> CallCause:
        """Return the cause of a call that left the fast path: its reason is unknown if no earlier call was recorded."""
        with self._lock:
            earlier = self._history.earlier(key)
            self._history.add(key)
            self._calls += 1
            reason = explain(key, earlier, frozenset()) if earlier else Reason("unknown", text=_KNOWN)
            return CallCause(key, reason, "", self._calls)

    def number_call(self, key: Key) -> CallCause:
        """Return a cause without a known reason, for a call that is no miss, of a program compiled before watching."""
        with self._lock:
            self._calls += 1
            return CallCause(key, Reason("unknown", text=_KNOWN), "", self._calls)

    def explain_step(self, kind: str, name: str) -> CallCause:
        """Return the cause of a step without a visible call: that of the function `name` traced ahead of time if this
        is its next step, else a new one.
        """
        stage = "compile" if kind == "cache-hit" else kind
        with self._lock:
            ahead = self._ahead.get(name)
            if ahead is not None and stage not in ahead.done:
                ahead.done.add(stage)
                return ahead.cause
            cause = self.explain_call(ahead.cause.key if ahead is not None else None, name, (kind,))
            if cause.key is not None and cause.reason.kind in ("evicted", "unknown"):
                cause = cause._replace(reason=_ASKED)
            self.traced_ahead(name, cause, (stage,))
            return cause

    def traced_ahead(self, name: str, cause: CallCause | Key, done: Iterable[str] = _STEPS) -> None:
        """Record that a function has its jaxpr but does not run: later steps of this name belong to it.

        `cause` is the cause of its trace, or its key if JAX had the jaxpr already.
        """
        if isinstance(cause, Key):
            cause = CallCause(cause, Reason("unknown"), "", 0)
        ahead = _Ahead(cause, set(done))
        with self._lock:
            _keep(self._ahead, name, ahead)
            if cause.key is not None and cause.call:
                _keep(self._unbuilt, _traced(cause.key), ahead)


def _keep(where: OrderedDict[_Name, _Ahead], name: _Name, ahead: _Ahead) -> None:
    where[name] = ahead
    where.move_to_end(name)
    if len(where) > _MANY_AHEAD:
        where.popitem(last=False)


def _traced(key: Key) -> int:
    """Return a hash that is equal for calls with the same jaxpr, whether of arrays or of descriptions."""
    leaves = tuple([leaf[:_TYPED] for leaf in key.leaves])
    return hash((key.function.identity, key.structure, key.statics, leaves, key.context))


_MANY_WRAPPERS = 1_024  # wrappers


class MissCounter:
    """The misses of one `jax.jit(…)` at one line of the user's."""

    __slots__ = ("calls", "due", "first_event", "reported", "seconds", "wrapper")

    def __init__(self, wrapper: Any) -> None:
        self.wrapper = wrapper  # held, so that its number is no other's
        self.calls = 0
        self.reported = 0
        self.seconds = 0.0  # of the calls since the last report
        self.due = 1
        self.first_event: Event | None = None  # of the first

    def event(self) -> Event:
        """Return an event for all calls since the last report, with their total seconds, and begin to count again for
        the next report.
        """
        new, self.reported = self.calls - self.reported, self.calls
        seconds, self.seconds = self.seconds, 0.0
        self.due = self.calls * 10
        assert self.first_event is not None
        return replace(self.first_event, seconds=seconds, start=time() - seconds, count=new)


class Misses:
    """Counter of misses. It reports the 1st, 10th, 100th, … of a wrapper and line, each for all since the previous."""

    def __init__(self) -> None:
        self._missed: OrderedDict[tuple[int, Place | None], MissCounter] = OrderedDict()

    def count(self, wrapper: Any, site: Place | None, seconds: float) -> MissCounter | None:
        """Count a call; return the counter if an event is due, else None."""
        missed = self._missed.get((id(wrapper), site))
        if missed is None:
            missed = self._missed[id(wrapper), site] = MissCounter(wrapper)
            if len(self._missed) > _MANY_WRAPPERS:
                self._missed.popitem(last=False)
        missed.seconds += seconds
        missed.calls += 1  # two threads at once may count as one
        return missed if missed.calls >= missed.due else None

    def rest(self) -> Iterator[MissCounter]:
        """Return an iterator over the counters with unreported calls."""
        return (
            missed
            for missed in self._missed.values()
            if missed.first_event is not None and missed.calls > missed.reported
        )

    def clear(self) -> None:
        self._missed.clear()


class Programs:
    """The programs that were called since this object was made, compiled by then or not."""

    def __init__(self) -> None:
        self._seen: dict[object, object] = {}  # with the program itself, so that its id is no other's

    def add(self, call: Call) -> bool:
        """Record the program of a call whose key was read; return True if it is a new one."""
        program: Any = program_of(call.executable)
        number: object = id(program)
        if program is None and call.key is not None:  # of a transformation: JAX derives it from the jaxpr
            program = (call.derived or call.program.params)["jaxpr"]
            types = tuple([leaf[1:_TYPED] for leaf in call.key.leaves])
            number = id(program), call.key.transformations, types
        is_new = number not in self._seen
        self._seen[number] = program
        return is_new


_UNSEEN = "`{}` had compiled before anything watched: earlier calls were not observed, so the change is unknown"
_MANY_SIGNATURES = 48  # signatures of one function


class Unwatched:
    """Functions that were compiled before watching began, with their signatures."""

    def __init__(self) -> None:
        self._read: Callable[[], list[tuple[Any, list[Signature]]]] = list
        self._number: Callable[[Any], int] = id
        self._signatures: dict[int, Sequence[Signature]] | None = None
        self._filtered: set[str] = set()  # names of functions that `equinox.filter_jit` compiled

    def snapshot(self, number: Callable[[Any], int]) -> None:
        """Remember what is compiled now; `number` returns a function's `Function.identity`."""
        self._read, self._number, self._signatures = compiled_by_now(), number, None

    def forget(self) -> None:
        self._read, self._signatures = list, {}

    def explain(self, key: Key, happened: frozenset[str]) -> Reason | None:
        """Return why a function's first recorded call compiled, if it had compiled before watching began; else None.

        Shapes, dtypes and paths of arguments can be compared, but neither static arguments nor settings.
        """
        if key.function.eager or key.function.is_hot:
            return None
        if self._signatures is None:  # most watches see no first call of a function that had compiled before
            compiled = [(function, signatures) for function, signatures in self._read() if not is_primitive(function)]
            self._signatures = {self._number(of): signatures[-_MANY_SIGNATURES:] for of, signatures in compiled}
            self._filtered = {name_of(of) for of, _ in compiled if str(getattr(of, "__module__", "")) == "equinox._jit"}
            self._read = list
        signatures = self._signatures.get(key.function.identity)
        if signatures is None and ("filter_jit", "equinox") in key.wrapping and key.function.name in self._filtered:
            signatures = ()  # Equinox has a function of its own for each, with the user's name
        if signatures is None:
            return None
        # nnx numbers its arrays: with their names in one key alone, each would seem to be new.
        if not signatures or any(path and ".states[" in path for paths, _ in signatures for path in paths):
            return Reason("unknown", text=_UNSEEN.format(key.function.name))
        reason = explain(key, [_key(key, *signature) for signature in signatures], happened)
        if reason.kind in ("first", "evicted", "unknown"):
            return Reason("unknown", text=_UNSEEN.format(key.function.name))
        return reason


def _key(key: Key, paths: Sequence[str | None], avals: Sequence[Any]) -> Key:
    """Return the key of an earlier call with these argument paths and types; all unknown parts are those of `key`."""
    like = {leaf.path: leaf for leaf in key.leaves}
    leaves: list[Leaf] = []
    for i, (path, aval) in enumerate(zip(paths, avals, strict=True)):
        own = leaf_of(path or f"arg{i}", aval)
        leaves.append(like.get(own.path, own)._replace(shape=own.shape, dtype=own.dtype, weak=own.weak))
    if [leaf.path for leaf in leaves] == [*like]:
        return replace(key, leaves=tuple(leaves))
    return replace(key, leaves=tuple(leaves), tree=None, structure=-1)
