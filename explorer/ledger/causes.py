"""Why each call was compiled: its key, held against those before it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from threading import RLock
from typing import Any, NamedTuple, TypeVar

from explorer.analysis.recompiles.reasons import History, explain, explain_raised
from explorer.ledger.unwatched import Unwatched
from explorer.model.events.event import Place, Reason
from explorer.model.events.key import Function, Key, Leaf

_Name = TypeVar("_Name", int, str)
_STEPS = ("trace", "lower", "compile")
_KNOWN = "it was compiled before it was watched; nothing was compiled now"
_UNKNOWN = Reason("unknown")
_ASKED = Reason(
    "unknown", text="it was asked for ahead of time, where `.lower()` and `.compile()` may have options of their own"
)
_TYPED = Leaf._fields.index("weak") + 1  # its path and its type come first
_MANY = 256  # functions traced ahead of time that are remembered until they are compiled


class CallCause(NamedTuple):
    """What the events of one call share: see `Event`."""

    key: Key | None
    reason: Reason
    id: str
    call: int
    stack: tuple[Place, ...] = ()  # where it was asked for, if that isn't where it happens


class _Ahead(NamedTuple):
    """A function that was traced ahead of time, and which of the steps were done since."""

    cause: CallCause
    done: set[str]


class Causes:
    """Numbers and explains calls, in the order in which they end.

    Args:
        fault: Told of an explanation that failed.
    """

    def __init__(self, fault: Callable[[BaseException], None]) -> None:
        self._fault = fault
        self._history = History()
        self._unwatched = Unwatched()
        self._ahead: OrderedDict[str, _Ahead] = OrderedDict()  # by name, for steps of which no more is known
        self._unbuilt: OrderedDict[int, _Ahead] = OrderedDict()  # the same by what was traced, for calls
        self._calls = 0
        self._lock = RLock()

    def renew(self, number: Callable[[Any], int]) -> None:
        """A new session of watching; `number` gives a function's `Function.identity`."""
        with self._lock:
            self._history.renew()
            self._ahead.clear()
            self._unbuilt.clear()
            self._unwatched.snapshot(number)

    def forget(self) -> None:
        """Nobody watches any more."""
        with self._lock:
            self._unwatched.forget()

    def explain_call(self, key: Key | None, name: str, happened: Iterable[str], error: str = "") -> CallCause:
        """What made a call trace, lower or compile.

        Args:
            key, name: Of the call; None where it could not be seen.
            happened: What it caused.
            error: The type of the error that stopped it. No cache keeps such a one: it is nobody's earlier call.
        """
        happened = frozenset(happened)
        with self._lock:
            ahead = self._unbuilt.get(_traced(key)) if key is not None and "trace" not in happened else None
            if ahead is not None and not ahead.done & happened:  # it was traced ahead of time, and goes on here
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

    def explain_miss(self, key: Key) -> CallCause:
        """What made a call leave the fast path."""
        with self._lock:
            earlier = self._history.earlier(key)
            self._history.add(key)
            self._calls += 1
            reason = explain(key, earlier, frozenset()) if earlier else Reason("unknown", text=_KNOWN)
            return CallCause(key, reason, "", self._calls)

    def explain_step(self, kind: str, name: str) -> CallCause:
        """What made a step that is of no call: of a function traced ahead of time, or without a part of `jax.jit`'s."""
        stage = "compile" if kind == "cache-hit" else kind
        with self._lock:
            ahead = self._ahead.get(name)
            if ahead is not None and stage not in ahead.done:
                ahead.done.add(stage)
                return ahead.cause
            cause = self.explain_call(ahead.cause.key if ahead is not None else None, name, (kind,))
            if cause.reason.kind == "evicted":
                cause = cause._replace(reason=_ASKED)
            self.traced_ahead(name, cause, (stage,))
            return cause

    def traced_ahead(self, name: str, cause: CallCause | Key, done: Iterable[str] = _STEPS) -> None:
        """A function has its jaxpr and is not run: the steps that come under its name are of it.

        Args:
            cause: What the events of its trace have in common; a key, if JAX had its jaxpr.
            done: Steps that were its own.
        """
        if isinstance(cause, Key):
            cause = CallCause(cause, Reason("unknown"), "", 0)
        ahead = _Ahead(cause, set(done))
        with self._lock:
            _keep(self._ahead, name, ahead)
            if cause.key is not None and cause.call:
                _keep(self._unbuilt, _traced(cause.key), ahead)

    def _why(self, key: Key, happened: frozenset[str], error: str) -> Reason:
        earlier = self._history.earlier(key)
        if error and happened == frozenset({"trace"}):
            return explain_raised(key, earlier, error)
        reason = explain(key, earlier, happened, self._history.value_counts(key))
        return reason if reason.kind != "first" else self._unwatched.explain(key, happened) or reason


def _keep(where: OrderedDict[_Name, _Ahead], name: _Name, ahead: _Ahead) -> None:
    where[name] = ahead
    where.move_to_end(name)
    if len(where) > _MANY:
        where.popitem(last=False)


def _traced(key: Key) -> int:
    """Equal for calls that have one jaxpr: arrays, and what merely stands for them."""
    leaves = tuple([leaf[:_TYPED] for leaf in key.leaves])
    return hash((key.function.identity, key.structure, key.statics, leaves, key.context))
