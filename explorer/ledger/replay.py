"""Captures of what an event compiled, made later, without the user's values and mostly without running their Python.

A replay keeps types, placement and static arguments of a call, and a weak reference to its function. With these JAX
finds its own jaxpr and program again.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import RLock
from typing import Any

import jax
from jax.core import Tracer

from explorer._jax.arguments import trace_again, trace_context
from explorer.analysis.recompiles.nearest import nearest
from explorer.analysis.recompiles.reasons import relatives, same_last
from explorer.capture.sources import label
from explorer.errors import NotRecordedError
from explorer.ledger.causes import Call
from explorer.model.capture import Capture
from explorer.model.events.event import Event, hot_copy_of
from explorer.model.events.key import Key
from explorer.model.events.leaves import in_columns
from explorer.model.stage import Durations

_MANY = 512  # calls of one watch


class Replay:
    """Parts of one call that are kept."""

    def __init__(self, call: Call, key: Key) -> None:
        self.key = key
        self.happened = frozenset(step.kind for step in call.steps or ())
        self._wrapper = call.wrapper
        self._function = _weakly(call.function)
        self._hot = hot_copy_of(call.function)
        self._is_executables = "explored" in getattr(call.function, "__dict__", {})
        self._program = call.program and (call.program.in_tree, call.program.in_avals)
        self._placed = _placement(call, key)
        wrapper: Any = call.wrapper
        self._positions = {i: _weakly(call.args[i]) for i in wrapper.static_argnums if 0 <= i < len(call.args)}
        self._names = {n: _weakly(call.kwargs[n]) for n in wrapper.static_argnames if n in call.kwargs}
        self._captured = call.program is not None and len(call.program.consts) > 0

    def run(self) -> Capture:
        """Return the capture of the call's program.

        Raises:
            NotRecordedError: A part of the call is gone, or a setting of JAX has changed since.
            ExploreError: It no longer compiles.
        """
        if self._program is None:
            raise NotRecordedError(f"{self._called} was never traced to its end: there is no program to look at.")
        if self._captured:
            raise NotRecordedError(
                f"{self._called} used values of an outer trace or transformation, which are gone.\n"
                "  Hint: explore(…) the outer function."
            )
        self._check_settings()
        if self._hot is not None:
            capture = self._hot.capture()
            if capture is None:
                raise NotRecordedError(
                    f"the compiled copy of {self._called} is gone: a value that it relies on changed, or hot paths "
                    "were turned off.\n  Hint: explore(f, …) shows what is compiled as it is now."
                )
            return capture
        function = self._function()
        if function is None:
            raise NotRecordedError(
                f"{self._called} is gone: no variable refers to it any more.\n"
                + "  Hint: "
                + ("the Executable has it: .explore()." if self._is_executables else "keep it under a name.")
            )
        # A watch starts with a notebook's extension, and few calls are looked at.
        from explorer.capture.explore import CompileRequest, compile_stages

        args, kwargs = self._arguments()
        target: Any = _Known(function, self._wrapper)
        return compile_stages(CompileRequest(function, args, kwargs, target=target)).capture

    @property
    def _called(self) -> str:
        function = self.key.function
        return f"{function.name} ({label(function.file)}, line {function.line})" if function.file else function.name

    def _check_settings(self) -> None:
        names, values = trace_context()
        now = {name: str(getattr(value, "value", value)) for name, value in zip(names, values, strict=False)}
        for name, value in self.key.context:
            if name.startswith("jax_") and now.get(name, value) != value:
                raise NotRecordedError(
                    f"{self._called} was compiled while {name} was {value}; now it is {now[name]}.\n"
                    f"  Hint: jax.config.update({name!r}, …) first."
                )

    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        tree, avals = self._program
        structs = [
            jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=getattr(aval, "weak_type", False), sharding=placed)
            for aval, placed in zip(avals, self._placed, strict=True)
        ]
        dynamic, kwargs = jax.tree.unflatten(tree, structs)
        rest = iter(dynamic)
        count = len(dynamic) + len(self._positions)
        args = tuple(self._static(self._positions[i]) if i in self._positions else next(rest) for i in range(count))
        return args, {**kwargs, **{name: self._static(kept) for name, kept in self._names.items()}}

    def _static(self, kept: Callable[[], Any]) -> Any:
        value = kept()
        if value is None and isinstance(kept, weakref.ref):
            raise NotRecordedError(f"a static argument of {self._called} is gone: no variable refers to it any more.")
        return value


class _Known:
    """A function as its `jax.jit` sees it, for `CompileRequest`."""

    def __init__(self, function: Any, wrapper: Any) -> None:
        self._function, self._wrapper = function, wrapper

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        return trace_again(self._function, self._wrapper, args, kwargs)


def _weakly(value: Any) -> Callable[[], Any]:
    """Return a function that returns the value while it lives, then None. A value without weak references is kept
    alive; JAX's caches hold it too.
    """
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value


def _placement(call: Call, key: Key) -> Sequence[Any]:
    """Return the sharding of each argument, None for one that was free to move; empty for a call without a program."""
    if call.program is None:
        return ()
    values = call.values[len(call.program.consts) :]
    (leaves,) = in_columns(key.leaves)
    if not any(content.committed or content.given == "struct" for content in leaves.distinct()):
        return (None,) * len(values)
    return [
        value.sharding
        if isinstance(value, jax.ShapeDtypeStruct)
        or (isinstance(value, jax.Array) and not isinstance(value, Tracer) and value.committed)
        else None
        for value in values
    ]


class Replays:
    """The last few hundred calls of one watch."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, Replay] = OrderedDict()
        self._lock = RLock()

    def keep(self, number: int, replay: Replay) -> None:
        with self._lock:
            self._kept[number] = replay
            if len(self._kept) > _MANY:
                self._kept.popitem(last=False)

    def capture(self, event: Event, events: Sequence[Event]) -> Capture:
        """Return what the call of an event compiled, with the seconds that it took then."""
        capture = self._of(event).run()
        of_call = [other for other in events if other.call == event.call]
        seconds = {other.kind: other.seconds for other in of_call}
        saved = [other.seconds for other in of_call if other.kind == "cache-hit"]
        durations = Durations(
            seconds.get("trace", 0.0),
            seconds.get("lower", 0.0),
            saved[-1] if saved else seconds.get("compile", 0.0),
            reused=("compile",) if saved else (),
        )
        return replace(capture, durations=durations)

    def before(self, event: Event) -> int:
        """Return the `Event.call` of the nearest earlier call, which the event's reason compares with.

        Raises:
            NotRecordedError: There is no earlier call, or the event's own isn't kept.
        """
        replay = self._of(event)
        with self._lock:
            earlier = {id(other.key): number for number, other in self._kept.items() if number < event.call}
            keys = [other.key for number, other in self._kept.items() if number < event.call]
        related = [key for key in relatives(replay.key, keys) if key.function.made == replay.key.function.made]
        if not related:
            raise NotRecordedError(f"{event.function} has no earlier call in this ledger that could be looked at.")
        return earlier[id(nearest(replay.key, same_last(replay.key, related), replay.happened))]

    def _of(self, event: Event) -> Replay:
        replay = self._kept.get(event.call)
        if replay is None:
            raise NotRecordedError(
                f"what {event.function} compiled is not kept any more: Explorer keeps the last {_MANY} calls of "
                "`jax.jit` functions in this process.\n"
                "  Hint: explore(f, …) shows what is compiled for any arguments."
            )
        return replay
