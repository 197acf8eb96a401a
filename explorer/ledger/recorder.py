"""The recorder of the process: turns what JAX does on each thread into events of calls, for all watches."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from threading import RLock, get_ident
from time import perf_counter, thread_time
from typing import Any, Protocol

from explorer._jax.calls import SAVED_EVENT, STEP_EVENTS, hooks, is_inside_a_trace, leave_fast_paths, suppression
from explorer._jax.distributed import processes
from explorer._jax.traces import program_lines
from explorer.capture.frames import user_places
from explorer.ledger.causes import (
    OVER,
    RUN,
    TRACE,
    WAITING,
    Call,
    CallCause,
    Causes,
    MissCounter,
    Misses,
    Programs,
    Step,
    device_of,
)
from explorer.ledger.keys import Keys, predict_recompiles
from explorer.ledger.replay import Replay
from explorer.model.events.event import CallLeft, Event, Running, hot_copy_of
from explorer.model.events.key import Key


class Subscriber(Protocol):
    """The part of a watch that the recorder uses."""

    event_listeners: Any

    def add(self, events: Any) -> None: ...
    def keep(self, call: int, replay: Replay) -> None: ...
    def predict(self, predictions: Any) -> None: ...
    def fault(self, error: BaseException) -> None: ...
    def functions(self) -> Any: ...


class _Thread(threading.local):
    """State of one thread."""

    def __init__(self) -> None:
        self.ident = get_ident()
        self.call: Call | None = None  # the innermost
        self.hit = False  # the binary that is being read came from the persistent cache
        self.saved = 0.0


class Recorder:
    """Observer of the calls that miss JAX's caches (see `Observer`); it sends their events to all watches.

    It runs in the user's time and in the middle of JAX. An Exception of its own becomes a fault of the watches and
    never leaves it. KeyboardInterrupt is the user's and passes.
    """

    def __init__(self) -> None:
        self.spent = 0.0  # seconds that the ledger worked in calls which compiled
        self._keys = Keys()
        self._causes = Causes(self._fault)
        self._misses = Misses()
        self._watches: tuple[Subscriber, ...] = ()
        self._lock = RLock()
        self._thread = _Thread()
        self._calls: dict[int, Call] = {}  # what each thread is at
        self._counting: dict[Subscriber, Programs] = {}  # watches that get each program that is called

    @property
    def watches(self) -> tuple[Subscriber, ...]:
        return self._watches

    def start(self, watch: Subscriber) -> None:
        """Send events to a watch from now on."""
        with self._lock:
            self._watches = (*self._watches, watch)
            # Without a watch, JAX runs without the recorder's hooks.
            if len(self._watches) == 1:
                self._guarded(self._causes.renew, self._keys.number)
                self._misses.clear()
                hooks.put(self)

    def stop(self, watch: Subscriber) -> None:
        """Unsubscribe a watch; the last one restores JAX."""
        with self._lock:
            if not any(other is watch for other in self._watches):
                return
            # Before the watch is removed: it gets the misses that aren't reported yet.
            self._guarded(lambda: self._send_misses(tuple(misses.event() for misses in self._misses.rest())))
            self._watches = tuple(other for other in self._watches if other is not watch)
            self._counting = {other: programs for other, programs in self._counting.items() if other is not watch}
            if not self._watches:
                hooks.take()
                self._calls.clear()
                self._causes.forget()

    def count_programs(self, watch: Subscriber) -> None:
        """Send a watch the first call of each program, as a `miss`, if it was compiled before the watch began.

        From then on, the watch gets no other misses.
        """
        with self._lock:
            self._counting = {**self._counting, watch: Programs()}
        leave_fast_paths()

    @property
    def sees_calls(self) -> bool:
        """Return True if this JAX shows its calls; else only names and seconds are known."""
        return hooks.sees_calls

    @property
    def running(self) -> tuple[Running, ...]:
        """Return an entry for each call that JAX traces, lowers or compiles right now, on any thread."""
        frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage] - the only way to another thread's stack
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        running: list[Running] = []
        for thread, call in tuple(self._calls.items()):
            stage = call.doing_now
            if stage:
                places = user_places(frames.get(thread))
                site = places[0] if places else None
                running.append(Running(call.name, site, stage, call.clock(call.began), names.get(thread, "")))
        return tuple(running)

    # Called by JAX: see `Observer`.

    def begin(
        self, function: Any, wrapper: Any, args: tuple[Any, ...], kwargs: dict[str, Any], runs: bool
    ) -> Call | None:
        here = self._thread
        if suppression.is_on:
            return None
        call = Call(function, wrapper, args, kwargs, runs, here.call and self._outer())
        here.call = self._calls[here.ident] = call
        return call

    def traced(self, call: Call, program: Any, values: list[Any], anew: bool) -> None:
        call.program, call.values = program, values
        call.stage = WAITING
        if anew:
            call.traced()
        if anew or not call.runs:
            self._guarded(self._read_key, call)
        if not call.runs:
            self._over(call, None)

    def run(self, program: Any, values: list[Any]) -> Call | None:
        here = self._thread
        call = here.call
        if call is None or call.stage is not WAITING or call.program is not program:
            if suppression.is_on or is_inside_a_trace():
                return None
            call = here.call = self._calls[here.ident] = Call(None, None, (), {}, True, self._outer())
            call.program, call.values = program, values
        call.stage = RUN
        return call

    def derive(self, params: dict[str, Any], values: tuple[Any, ...]) -> Call | None:
        here = self._thread
        if suppression.is_on or (here.call is not None and here.call.stage is RUN):
            return None
        call = here.call = self._calls[here.ident] = Call(None, None, (), {}, True, self._outer())
        call.derived, call.values, call.stage = params, values, RUN
        return call

    def end(self, call: Call, error: BaseException | None, result: Any, anew: bool) -> None:
        if anew and call.stage is TRACE:
            call.traced()
        if result is not None:
            call.executable = result
        self._over(call, error)

    def start_step(self, event: str) -> None:
        call = self._thread.call
        if call is not None and event in STEP_EVENTS:
            call.doing = STEP_EVENTS[event]
            if call.doing == "compile":
                self._guarded(self._announce_compile, call)

    def hear(self, event: str, seconds: float, name: str) -> None:
        kind = STEP_EVENTS.get(event)
        if kind is not None and not suppression.is_on:
            self._guarded(self._add_step, kind, seconds, name)
        elif event == SAVED_EVENT:
            self._thread.saved = max(seconds, 0.0)

    def fault(self, error: BaseException) -> None:
        # The thread's state is no longer known: start again with the next call.
        self._thread.call = None
        self._calls.pop(self._thread.ident, None)
        self._fault(error)

    def hit(self) -> None:
        self._thread.hit = True

    # From calls to events.

    def _outer(self) -> Call | None:
        """Return the call that a new one is inside of, or None; end calls that were interrupted before they ran."""
        outer = self._thread.call
        while outer is not None and outer.stage in (WAITING, OVER):
            if outer.stage is WAITING:
                self._over(outer, KeyboardInterrupt())
            outer = outer.outer
        return outer

    def _add_step(self, kind: str, seconds: float, name: str) -> None:
        here, saved = self._thread, 0.0
        if kind == "compile":
            kind, saved = ("cache-hit", here.saved) if here.hit else (kind, 0.0)
            here.hit, here.saved = False, 0.0
        call = here.call
        if kind == "trace":
            if call is not None and call.stage is TRACE:
                call.seconds = seconds
            elif not hooks.sees_calls:
                self._emit_step_ahead(Step(kind, seconds, perf_counter()), name)
        elif call is not None and call.stage is RUN:
            call.step(kind, seconds, saved)
            call.doing = ""
            self._read_key(call)  # before it runs: what is donated is gone after
        else:
            self._emit_step_ahead(Step(kind, seconds, perf_counter(), saved), name)

    def _over(self, call: Call, error: BaseException | None) -> None:
        """End a call and send its events, if it has any, to the watches; the call around it continues."""
        here = self._thread
        outer = here.call = call.outer
        if outer is None:
            self._calls.pop(here.ident, None)
        else:
            self._calls[here.ident] = outer
        if isinstance(error, CallLeft):
            pass  # a padded binary answers it: that one is an event where it is compiled
        elif hot_copy_of(call.function) is not None and (error is not None or not call.steps):
            pass  # hot paths call it for the first time, or have it refuse a call: nothing that the user does
        elif call.steps or not call.runs:
            start = thread_time()
            self._guarded(self._emit_call, call, error)
            self.spent += thread_time() - start + call.ours
            for programs in self._counting.values():
                programs.add(call)
        elif self._counting and error is None and self._send_known(call):
            pass  # it left the fast path because of a guard
        elif error is None and call.wrapper is not None:
            places = user_places(inspect.currentframe())
            misses = self._misses.count(call.wrapper, places[0] if places else None, perf_counter() - call.began)
            if misses is not None:
                self._guarded(self._emit_miss, call, misses)
        call.stage = OVER

    def _read_key(self, call: Call) -> None:
        if call.key is not None:
            return
        start = thread_time()
        if call.derived is not None:
            call.key = self._keys.of_jaxpr(call.derived, call.values)
        elif call.wrapper is not None and call.program is not None:
            call.key = self._keys.of_call(
                call.function, call.wrapper, call.args, call.kwargs, call.program, call.values
            )
        elif call.wrapper is not None:
            call.key = self._keys.of_failed(call.function, call.wrapper, call.args, call.kwargs)
        call.ours += thread_time() - start

    def _emit_call(self, call: Call, error: BaseException | None) -> None:
        self._guarded(self._read_key, call)
        steps = call.steps or []
        if not steps:  # JAX had its jaxpr; it may be lowered and compiled from here
            if call.key is not None:
                self._causes.traced_ahead(call.name, call.key)
            return
        happened = [step.kind for step in steps]
        cause = call.cause or self._causes.explain_call(call.key, call.name, happened, _type_name(error))
        copy = hot_copy_of(call.function)
        cause = cause if copy is None else cause._replace(stack=copy.stack)
        if cause.reason.kind == "first" and call.key is not None and call.program is not None:
            self._guarded(self._predict, call.program, call.key)
        if call.wrapper is not None and call.key is not None:
            replay = Replay(call, call.key)
            for watch in self._watches:
                watch.keep(cause.call, replay)
        self._send(self._events(call.name, cause, steps, call.device, error, _program_of(call)))
        if not call.runs and error is None:
            self._causes.traced_ahead(call.name, cause, happened)

    def _predict(self, program: Any, key: Key) -> None:
        predictions = predict_recompiles(program, key)
        for watch in self._watches if predictions else ():
            watch.predict(predictions)

    def _announce_compile(self, call: Call) -> None:
        """Send the start of a compile to the listeners at once, with the steps before it."""
        event_listeners = [listener for watch in self._watches for listener in watch.event_listeners]
        if not event_listeners:
            return
        steps = [*(call.steps or ()), Step("compile", 0.0, perf_counter())]
        if call.cause is None:
            call.cause = self._causes.explain_call(call.key, call.name, [step.kind for step in steps])
        *done, starting = self._events(call.name, call.cause, steps, call.device, program=_program_of(call))
        for listener in event_listeners:
            listener.starting(tuple(done), starting)

    def _emit_miss(self, call: Call, misses: MissCounter) -> None:
        seconds = perf_counter() - call.began
        if misses.first_event is None:
            self._read_key(call)
            if call.key is None:
                return
            cause = self._causes.explain_miss(call.key)
            (misses.first_event,) = self._events(call.name, cause, [Step("miss", seconds, perf_counter())], call.device)
        self._send_misses((misses.event(),))

    def _send_known(self, call: Call) -> bool:
        """Send a call of a compiled program to those that count programs; return True if it is new to one of them."""
        try:
            self._read_key(call)
            watches = [watch for watch, programs in self._counting.items() if call.key and programs.add(call)]
            if watches and call.key is not None:
                steps = [Step("miss", perf_counter() - call.began, perf_counter())]
                events = self._events(call.name, self._causes.number_call(call.key), steps, call.device)
                for watch in watches:
                    watch.add(events)
            return bool(watches)
        except Exception as error:
            self._fault(error)
            return False

    def _emit_step_ahead(self, step: Step, name: str) -> None:
        name = name.removeprefix("jit(").removesuffix(")")
        cause = self._causes.explain_step(step.kind, name)
        self._send(self._events(name, cause, [step], device_of(cause.key)))

    def _send_misses(self, events: tuple[Event, ...]) -> None:
        # To a guard a miss is a program that it hasn't seen, and it has seen these.
        for watch in self._watches if events else ():
            if watch not in self._counting:
                self._guarded(watch.add, events)

    def _send(self, events: tuple[Event, ...]) -> None:
        for watch in self._watches if events else ():
            self._guarded(watch.add, events)

    def _events(
        self,
        name: str,
        cause: CallCause,
        steps: list[Step],
        device: str,
        error: BaseException | None = None,
        program: str = "",
    ) -> tuple[Event, ...]:
        stack = cause.stack or user_places(inspect.currentframe())
        thread = threading.current_thread().name
        return tuple(
            Event(
                step.kind,
                name,
                stack[0] if stack else None,
                step.seconds,
                cause.reason,
                cause.id,
                cause.call,
                Call.clock(step.end) - step.seconds,
                stack,
                cause.key,
                thread,
                device,
                step.saved,
                error=_type_name(error) if step is steps[-1] else "",
                program=program if step.kind in ("compile", "cache-hit") else "",
            )
            for step in steps
        )

    def _guarded(self, do: Callable[..., object], *args: Any) -> None:
        try:
            do(*args)
        except Exception as error:
            self._fault(error)

    def _fault(self, error: BaseException) -> None:
        for watch in self._watches:
            # There is no other place for this one: it must not reach the user's call.
            with suppress(Exception):
                watch.fault(error)


def _program_of(call: Call) -> str:
    """Return the lines of a call's program; empty if they can't be read, or if no other process compiles."""
    if call.lines is None:
        call.lines = ""
        params: Any = call.derived or getattr(call.program, "params", None) or {}
        with suppress(Exception):  # a jaxpr of another JAX: then only arguments distinguish programs
            if processes() is not None and "jaxpr" in params:
                call.lines = program_lines(params["jaxpr"])
    return call.lines


def _type_name(error: BaseException | None) -> str:
    return type(error).__name__ if error is not None else ""


recorder = Recorder()
