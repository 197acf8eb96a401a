"""From what JAX does on a thread to the events of each call: one recorder for the process, for all watches together."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import RLock, get_ident
from time import perf_counter, thread_time
from typing import Any, Protocol

from explorer._jax.calls import hooks, is_inside_a_trace
from explorer._jax.suppress_recording import suppression
from explorer.ledger.call import OVER, RUN, TRACE, WAITING, Call, Step, device_of, thread_name
from explorer.ledger.causes import Causes, Told
from explorer.ledger.fixpoints import foreseen
from explorer.ledger.keys import Keys
from explorer.ledger.log import Teller
from explorer.ledger.misses import Missed, Misses
from explorer.ledger.places import users_places
from explorer.ledger.replay import Replay
from explorer.model.events.event import Event
from explorer.model.events.prediction import Prediction
from explorer.model.events.running import Running

__all__ = ["Recorder", "Sink", "recorder"]

_STEPS = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}
_SAVED = "/jax/compilation_cache/compile_time_saved_sec"


class Sink(Protocol):
    """What gets the events: a watch."""

    @property
    def tellers(self) -> tuple[Teller, ...]: ...

    def add(self, events: tuple[Event, ...]) -> None: ...

    def keep(self, call: int, replay: Replay) -> None: ...

    def predict(self, predictions: Iterable[Prediction]) -> None: ...

    def fault(self, error: BaseException) -> None: ...


class _Thread(threading.local):
    """What this thread is at."""

    def __init__(self) -> None:
        self.ident = get_ident()
        self.call: Call | None = None  # the innermost
        self.hit = False  # the binary that is being read came from the persistent cache
        self.saved = 0.0


class Recorder:
    """Told by JAX of each call that it doesn't know (see `Observer`); tells all watches what came of it.

    It works in the user's time and in the middle of JAX: no Exception of its own leaves it, each is told to the
    watches as a fault. KeyboardInterrupt does leave it, for that is the user's.
    """

    def __init__(self) -> None:
        self.spent = 0.0  # seconds that the ledger worked in calls which compiled
        self._keys = Keys()
        self._causes = Causes(self._fault)
        self._misses = Misses()
        self._sinks: tuple[Sink, ...] = ()
        self._lock = RLock()
        self._thread = _Thread()
        self._calls: dict[int, Call] = {}  # what each thread is at

    def start(self, sink: Sink) -> None:
        """Tell a watch from now on."""
        with self._lock:
            self._sinks = (*self._sinks, sink)
            if len(self._sinks) == 1:
                self._guarded(self._causes.renew, self._keys.number)
                self._misses.clear()
                hooks.put(self)

    def stop(self, sink: Sink) -> None:
        """Tell it no more. With the last one JAX is as it was."""
        with self._lock:
            if not any(other is sink for other in self._sinks):
                return
            self._guarded(self._tell_rest)
            self._sinks = tuple(other for other in self._sinks if other is not sink)
            if not self._sinks:
                hooks.take()
                self._calls.clear()
                self._causes.forget()

    @property
    def sees_calls(self) -> bool:
        """Whether this JAX lets its calls be seen; else only names and seconds are known."""
        return hooks.sees_calls

    @property
    def running(self) -> tuple[Running, ...]:
        """What is traced, lowered or compiled right now, on any thread."""
        frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage] - the only way to another thread's stack
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        found: list[Running] = []
        for thread, call in tuple(self._calls.items()):
            stage = call.doing_now
            if stage:
                places = users_places(frames.get(thread))
                site = places[0] if places else None
                found.append(Running(call.name, site, stage, call.since, names.get(thread, "")))
        return tuple(found)

    # What JAX tells: see `Observer`.

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
        if call is not None and event in _STEPS:
            call.doing = _STEPS[event]
            if call.doing == "compile":
                self._guarded(self._tell_start, call)

    def hear(self, event: str, seconds: float, name: str) -> None:
        kind = _STEPS.get(event)
        if kind is not None and not suppression.is_on:
            self._guarded(self._heard, kind, seconds, name)
        elif event == _SAVED:
            self._thread.saved = max(seconds, 0.0)

    def fault(self, error: BaseException) -> None:
        # Where the thread was is not sure any more: it begins anew with the next call.
        self._thread.call = None
        self._calls.pop(self._thread.ident, None)
        self._fault(error)

    def hit(self) -> None:
        self._thread.hit = True

    # What becomes of it.

    def _outer(self) -> Call | None:
        """The call that a new one is inside of. One that waits in vain was interrupted between its two halves."""
        outer = self._thread.call
        while outer is not None and outer.stage in (WAITING, OVER):
            if outer.stage is WAITING:
                self._over(outer, KeyboardInterrupt())
            outer = outer.outer
        return outer

    def _heard(self, kind: str, seconds: float, name: str) -> None:
        here, saved = self._thread, 0.0
        if kind == "compile":
            kind, saved = ("cache-hit", here.saved) if here.hit else (kind, 0.0)
            here.hit, here.saved = False, 0.0
        call = here.call
        if kind == "trace":
            if call is not None and call.stage is TRACE:
                call.seconds = seconds
            elif not hooks.sees_calls:
                self._tell_ahead(Step(kind, seconds, perf_counter()), name)
        elif call is not None and call.stage is RUN:
            call.step(kind, seconds, saved)
            call.doing = ""
            self._read_key(call)  # before it runs: what is donated is gone after
        else:
            self._tell_ahead(Step(kind, seconds, perf_counter(), saved), name)

    def _over(self, call: Call, error: BaseException | None) -> None:
        """A call ended; what it was inside of goes on."""
        here = self._thread
        outer = here.call = call.outer
        if outer is None:
            self._calls.pop(here.ident, None)
        else:
            self._calls[here.ident] = outer
        if call.steps or not call.runs:
            start = thread_time()
            self._guarded(self._tell_call, call, error)
            self.spent += thread_time() - start + call.ours
        elif error is None and call.wrapper is not None:
            missed = self._misses.count(call.wrapper)
            if missed is not None:
                self._guarded(self._tell_miss, call, missed)
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

    def _tell_call(self, call: Call, error: BaseException | None) -> None:
        self._guarded(self._read_key, call)
        steps = call.steps or []
        if not steps:  # JAX had its jaxpr; it may be lowered and compiled from here
            if call.key is not None:
                self._causes.traced_ahead(call.name, call.key)
            return
        happened = [step.kind for step in steps]
        told = call.told or self._causes.call(call.key, call.name, happened, error is not None)
        if told.reason.kind == "first":
            self._guarded(self._foresee, call)
        if call.wrapper is not None and call.key is not None:
            replay = Replay(call, call.key)
            for sink in self._sinks:
                sink.keep(told.call, replay)
        self._tell(call.name, told, steps, call.device, error)
        if not call.runs and error is None:
            self._causes.traced_ahead(call.name, told, happened)

    def _tell_start(self, call: Call) -> None:
        """XLA begins with a call: who logs is told at once of it, and of what was before."""
        tellers = [teller for sink in self._sinks for teller in sink.tellers]
        if not tellers:
            return
        steps = [*(call.steps or ()), Step("compile", 0.0, perf_counter())]
        if call.told is None:
            call.told = self._causes.call(call.key, call.name, [step.kind for step in steps])
        *done, starting = self._events(call.name, call.told, steps, call.device)
        for teller in tellers:
            teller.starting(tuple(done), starting)

    def _foresee(self, call: Call) -> None:
        if call.key is None or call.program is None:
            return
        predictions = foreseen(call.program, call.key)
        for sink in self._sinks if predictions else ():
            sink.predict(predictions)

    def _tell_miss(self, call: Call, missed: Missed) -> None:
        seconds = perf_counter() - call.began
        if missed.event is None:
            self._read_key(call)
            if call.key is None:
                return
            told = self._causes.miss(call.key)
            (missed.event,) = self._events(call.name, told, [Step("miss", seconds, perf_counter())], call.device)
        self._send((missed.tell(seconds),))

    def _tell_rest(self) -> None:
        self._send(tuple(missed.tell(0.0) for missed in self._misses.rest()))

    def _tell_ahead(self, step: Step, name: str) -> None:
        name = name.removeprefix("jit(").removesuffix(")")
        told = self._causes.step(step.kind, name)
        self._tell(name, told, [step], device_of(told.key), None)

    def _tell(self, name: str, told: Told, steps: list[Step], device: str, error: BaseException | None) -> None:
        self._send(self._events(name, told, steps, device, error))

    def _send(self, events: tuple[Event, ...]) -> None:
        for sink in self._sinks if events else ():
            self._guarded(sink.add, events)

    def _events(
        self, name: str, told: Told, steps: list[Step], device: str, error: BaseException | None = None
    ) -> tuple[Event, ...]:
        stack = users_places(inspect.currentframe())
        thread = thread_name()
        return tuple(
            Event(
                step.kind,
                name,
                stack[0] if stack else None,
                step.seconds,
                told.reason,
                told.id,
                told.call,
                Call.clock(step.end) - step.seconds,
                stack,
                told.key,
                thread,
                device,
                step.saved,
                error=type(error).__name__ if error is not None and step is steps[-1] else "",
            )
            for step in steps
        )

    def _guarded(self, do: Callable[..., object], *args: Any) -> None:
        try:
            do(*args)
        except Exception as error:
            self._fault(error)

    def _fault(self, error: BaseException) -> None:
        for sink in self._sinks:
            with suppress(Exception):
                sink.fault(error)


recorder = Recorder()
