"""Hooks around `jax.jit` calls that miss JAX's C++ cache.

Such a call goes through two functions of JAX's that are looked up by name: one finds or makes the jaxpr, the other
lowers, compiles and runs it. While an observer is set, both names point to wrappers. Cached calls never come here.
JAX reports lowering and compiling to the listeners of `jax.monitoring`, on the calling thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from sys import _getframe as _caller  # pyright: ignore[reportPrivateUsage] - each call asks
from threading import RLock, local
from types import FrameType, SimpleNamespace
from typing import Any, Protocol, cast
from weakref import WeakKeyDictionary

import jax
import jax.monitoring

from explorer._jax.arguments import Jitted
from explorer._jax.interrupts import keep_for_xla


class _Suppression(threading.local):
    is_on = False


suppression = _Suppression()


@contextmanager
def suppress_recording() -> Generator[None]:
    """Mark what this thread compiles in this context as Explorer's own: no watch records it."""
    before, suppression.is_on = suppression.is_on, True
    try:
        yield
    finally:
        suppression.is_on = before


STEP_EVENTS = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}
SAVED_EVENT = "/jax/compilation_cache/compile_time_saved_sec"  # XLA's part was read from the persistent cache


@contextmanager
def steps_done() -> Generator[set[str]]:
    """Yield the set of steps that JAX does in this process, on any thread: `trace`, `lower`, `compile`.

    `saved` is in it too where the persistent cache had the program: JAX reports a compile then as well.

    Example:
        >>> import jax.numpy as jnp
        >>> function, x = jax.jit(lambda x: x * 3), jnp.ones(3)
        >>> with steps_done() as first:
        ...     _ = function.lower(x)
        >>> with steps_done() as again:
        ...     _ = function.lower(x)
        >>> sorted(first), sorted(again)
        (['lower', 'trace'], [])
    """
    done: set[str] = set()
    names = {**STEP_EVENTS, SAVED_EVENT: "saved"}

    def hear(event: str, duration_secs: float, **_: str | int) -> None:
        if event in names:
            done.add(names[event])

    jax.monitoring.register_event_duration_secs_listener(hear)
    try:
        yield done
    finally:
        jax.monitoring.unregister_event_duration_listener(hear)


_pjit: Any
_parts: Any
try:
    from jax._src import core as _core  # pyright: ignore
    from jax._src import pjit as _pjit  # pyright: ignore
    from jax._src import source_info_util as _source_info_util  # pyright: ignore
    from jax._src import traceback_util as _traceback_util  # pyright: ignore
    from jax._src import util as _util  # pyright: ignore
    from jax._src.interpreters import partial_eval as _partial_eval  # pyright: ignore
    from jax._src.lib import _jax  # pyright: ignore

    for _place, _name in (
        (_pjit, "_infer_params"), (_pjit, "_run_python_pjit"), (_pjit, "_pjit_call_impl_python"),
        (_util, "test_event_listener"), (_util, "register_cache"), (_pjit, "jit_evict_fn"),
    ):  # fmt: skip
        getattr(_place, _name)
    _parts = SimpleNamespace(
        is_top_level=_core.trace_ctx.is_top_level,
        context=_core.trace_ctx,
        jaxpr_trace=_partial_eval.DynamicJaxprTrace,
        util=_util,
        register=_util.register_cache,
        fast_paths=(
            _jax.PjitFunctionCache.clear_all,  # of functions
            _pjit._cpp_pjit_cache_fun_only.clear,  # of derived jaxprs
            _pjit._cpp_pjit_cache_explicit_attributes.clear,
        ),
        jitted=Jitted,
    )
    # JAX keeps a stack in each traced program, and shows one with each error: a watch must not change them.
    _source_info_util.register_exclusion(__file__)
    _traceback_util.register_exclusion(__file__)
except (ImportError, AttributeError):  # pragma: no cover - then only the listeners report
    _pjit = _parts = None


class _Losses:
    """Counts of the times that JAX's caches lost programs: all, a function's, or the oldest of a full cache.

    `jax.clear_caches` calls `cache_clear` of each registered cache, so an empty one learns of it.
    """

    def __init__(self) -> None:
        self._all = 0
        # Weak: a count must not keep the user's function alive.
        self._own: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        if _parts is not None:
            _parts.register(self, "explorer: counts clears")

    def cache_clear(self) -> None:
        self._all += 1

    def cache_info(self) -> None:
        return None

    def cache_keys(self) -> list[Any]:
        return []

    def count_clear_of(self, function: Any) -> None:
        try:
            self._own[function] = self._own.get(function, 0) + 1
        except TypeError:  # it can't be held weakly, or hashed
            self._all += 1

    def of(self, function: Any) -> int:
        """Return a number that changes whenever the caches are seen to lose programs of a function."""
        lost = self._all
        # A function without weak references has no count of its own.
        with suppress(TypeError):
            lost += self._own.get(function, 0)
        if _caches is not None:
            info = _caches.lowered.cache_info()
            lost += info.misses if 0 < info.maxsize <= info.currsize else 0  # each miss pushes an entry out
        return lost


class Observer(Protocol):
    """Observer of calls, on the thread of each. Exceptions of its methods go to `fault`.

    `begin`, `run` and `derive` are starts: of a call of Python, which is only traced or lowered unless it `runs`; of a
    jaxpr, perhaps inside a trace; of a jaxpr that no Python call made, such as a derivative. They return an object that
    `traced` and `end` get as `call`, or None to ignore the call.
    `traced` gets a call's jaxpr, `anew` if Python was traced, else from a cache. `end` is a call's end, `anew` if an
    error during its trace ended it.
    JAX itself reports that a step begins (`start_step`) and ended (`hear`), and that a binary came from the persistent
    cache (`hit`).
    """

    def begin(self, function: Any, wrapper: Any, args: tuple[Any, ...], kwargs: dict[str, Any], runs: bool) -> Any: ...
    def traced(self, call: Any, program: Any, values: list[Any], anew: bool) -> None: ...
    def run(self, program: Any, values: list[Any]) -> Any: ...
    def derive(self, params: dict[str, Any], values: tuple[Any, ...]) -> Any: ...
    def end(self, call: Any, error: BaseException | None, result: Any, anew: bool) -> None: ...
    def start_step(self, event: str) -> None: ...
    def hear(self, event: str, seconds: float, name: str) -> None: ...
    def hit(self) -> None: ...
    def fault(self, error: BaseException) -> None: ...


def is_inside_a_trace() -> bool:
    """Return True if this thread traces a jaxpr: then a call becomes part of the outer call."""
    if _parts is None or _parts.is_top_level():
        return False
    trace = _parts.context.trace
    while trace is not None:  # batching and differentiation, outside of any jaxpr, also trace: but they run
        if isinstance(trace, _parts.jaxpr_trace):
            return True
        trace = getattr(trace, "parent_trace", None)
    return False


def _runs(caller: FrameType | None) -> bool:
    """Return True if the frame `caller` calls a jitted function to run it, False if to `trace` or `lower` it."""
    while caller is not None and caller.f_code.co_name == "_infer_params":  # a wrapper of another library around ours
        caller = caller.f_back
    return caller is not None and caller.f_code.co_name == "cache_miss"


class _Python(local):
    runs = 0


class _Hooks:
    """The wrappers around JAX's functions for one observer: `put` sets or replaces it, `take` removes it."""

    def __init__(self) -> None:
        self.observer: Observer | None = None
        self._puts = 0
        self._python = _Python()
        self._below: Callable[..., Any] | None = None  # the listener to JAX's events before ours
        self._evict: Callable[..., Any] | None = None  # JAX's own `clear_cache` of a jitted function
        self._lock = RLock()
        self._standing: dict[str, Callable[..., Any]] = {}
        self._originals: dict[str, Callable[..., Any]] = {}

    @property
    def sees_calls(self) -> bool:
        """True if this JAX has the functions to wrap; else only the listeners report."""
        return _parts is not None

    def put(self, observer: Observer) -> None:
        with self._lock:
            # Else the wrappers of an earlier observer would be wrapped, and never removed.
            self.take()
            self.observer, put = observer, self._puts
            jax.monitoring.register_event_duration_secs_listener(self._hear)
            jax.monitoring.register_event_listener(self._hit)
            jax.monitoring.register_scalar_listener(self._start)
            if _parts is None:
                return
            made = {
                "_infer_params": self._infer,
                "_run_python_pjit": self._run,
                "_pjit_call_impl_python": self._derived,
            }
            self._below = _parts.util.test_event_listener
            _parts.util.test_event_listener = self._event
            self._evict = evict = _pjit.jit_evict_fn

            def clear_cache(jitted: Any) -> None:
                losses.count_clear_of(getattr(jitted, "_fun", None))
                evict(jitted)

            # Each `jax.jit(…)` sets the method of its class again, to what the module has under this name.
            _parts.jitted.clear_cache = _pjit.jit_evict_fn = clear_cache
            for name, make in made.items():
                original = self._originals[name] = getattr(_pjit, name)
                self._standing[name] = make(original, put)
                setattr(_pjit, name, self._standing[name])

    def take(self) -> None:
        """Remove the observer, the listeners and the wrappers.

        A wrapper that another library put around ours stays, and ours below it passes calls on.
        """
        with self._lock:
            self.observer = None
            self._puts += 1  # a wrapper that stays below another library's must not wake when ours is set again
            if _parts is not None and _parts.util.test_event_listener == self._event:
                _parts.util.test_event_listener, self._below = self._below, None
            if self._evict is not None and _parts is not None:
                _parts.jitted.clear_cache = _pjit.jit_evict_fn = self._evict
                self._evict = None
            for name, standing in self._standing.items():
                if getattr(_pjit, name) is standing:
                    setattr(_pjit, name, self._originals[name])
            self._standing.clear()
            self._originals.clear()
            # A missing listener was never set, or all were cleared.
            for unregister, listener in (
                (jax.monitoring.unregister_event_duration_listener, self._hear),
                (jax.monitoring.unregister_event_listener, self._hit),
                (jax.monitoring.unregister_scalar_listener, self._start),
            ):
                with suppress(AssertionError, ValueError):
                    cast(Any, unregister)(listener)

    # Only these functions' frames are on the stack while JAX works, and this file's are not shown.

    def _infer(self, original: Callable[..., Any], put: int) -> Callable[..., Any]:
        def _infer_params(fun: Any, ji: Any, args: Any, kwargs: Any) -> Any:
            __tracebackhide__ = True
            observer = self.observer
            # A wrapper of an earlier `put`, left below another library's, stays quiet.
            if observer is None or put != self._puts or is_inside_a_trace():
                return original(fun, ji, args, kwargs)
            before = self._python.runs
            try:
                # `fault` returns None: after a fault of the observer's the user's call runs as if unobserved.
                call = observer.begin(fun, ji, args, kwargs, _runs(_caller(1)))
            except Exception as fault:
                call = observer.fault(fault)
            if call is None:
                return original(fun, ji, args, kwargs)
            try:
                result = original(fun, ji, args, kwargs)
            except BaseException as error:
                _end(observer, call, error, None, self._python.runs != before)
                raise
            try:
                observer.traced(call, result[0], result[1], self._python.runs != before)
            except Exception as fault:
                observer.fault(fault)
            except BaseException as error:  # the user's interrupt: there will be no second half
                _end(observer, call, error, None, False)
                raise
            return result

        return _infer_params

    def _run(self, original: Callable[..., Any], put: int) -> Callable[..., Any]:
        def _run_python_pjit(p: Any, args_flat: Any, *rest: Any) -> Any:
            __tracebackhide__ = True
            return self._observed(put, lambda o: o.run(p, args_flat), partial(original, p, args_flat, *rest))

        return _run_python_pjit

    def _derived(self, original: Callable[..., Any], put: int) -> Callable[..., Any]:
        def _pjit_call_impl_python(*args: Any, **params: Any) -> Any:
            __tracebackhide__ = True
            run = partial(original, *args, **params)
            return self._observed(put, lambda o: o.derive(params, args), run, is_derived=True)

        return _pjit_call_impl_python

    def _observed(
        self, put: int, begin: Callable[[Observer], Any], run: Callable[[], Any], is_derived: bool = False
    ) -> Any:
        __tracebackhide__ = True
        observer = self.observer
        if observer is None or put != self._puts:
            return run()
        try:
            call = begin(observer)
        except Exception as fault:
            call = observer.fault(fault)
        if call is None:
            return run()
        try:
            result = run()
        except BaseException as error:
            keep_for_xla(error)
            _end(observer, call, error, None, False)
            raise
        _end(observer, call, None, None if is_derived else result, False)
        return result

    def _event(self, name: str, *args: Any) -> None:
        # The only sign that a trace didn't come from a cache: JAX reports seconds either way, and counts a trace
        # after a failed one as a hit.
        if name == "trace_to_jaxpr":
            self._python.runs += 1
        if self._below is not None:
            self._below(name, *args)

    def _hear(self, event: str, duration_secs: float, **known: Any) -> None:
        observer = self.observer
        if observer is not None:
            try:
                # JAX lets an exception of a listener end the user's call.
                observer.hear(event, duration_secs, str(known.get("fun_name", "")))
            except Exception as fault:
                observer.fault(fault)

    def _hit(self, event: str, **known: Any) -> None:
        observer = self.observer
        if observer is not None and event == "/jax/compilation_cache/cache_hits":
            try:
                observer.hit()
            except Exception as fault:
                observer.fault(fault)

    def _start(self, event: str, value: float, **known: Any) -> None:
        observer = self.observer
        if observer is not None:
            try:
                observer.start_step(event)
            except Exception as fault:
                observer.fault(fault)


def _end(observer: Observer, call: Any, error: BaseException | None, result: Any, anew: bool) -> None:
    try:
        observer.end(call, error, result, anew)
    except Exception as fault:
        observer.fault(fault)


def leave_fast_paths() -> None:
    """Make the next call of each compiled program visible to an observer; nothing is compiled again.

    `jax.clear_caches` clears these caches too, but with them all traces and programs.
    """
    if _parts is not None:
        for clear in _parts.fast_paths:
            clear()


def raise_interrupt(error: Exception) -> None:
    """Raise KeyboardInterrupt if `error` stands for one, else return.

    An interrupt while JAX's C++ caches call a key's `__eq__` becomes the cause of a ValueError, or a traceback in its
    text.
    """
    text = str(error) if isinstance(error, ValueError) else ""
    is_text = "comparable using __eq__" in text and text.rstrip().endswith("\nKeyboardInterrupt:")
    if is_text or isinstance(error.__cause__, KeyboardInterrupt):
        raise KeyboardInterrupt from error


def program_of(executable: Any) -> Any:
    """Return the compiled program in a result of `_run_python_pjit`; None inside of a transformation, or if hidden."""
    parts = cast("tuple[Any, ...]", executable) if isinstance(executable, tuple) else ()
    return parts[5] if len(parts) > 5 else None


def devices_of(executable: Any) -> tuple[str, ...]:
    """Return the devices of a result of `_run_python_pjit`, as `("gpu:0", "gpu:1")`; empty where unknown."""
    try:
        # After the results, their flat list, their tree, the arguments and the jaxpr.
        compiled = executable[5]
        return tuple(f"{device.platform}:{device.id}" for device in compiled.xla_executable.local_devices())
    except (AttributeError, IndexError, TypeError):  # a transformation's, or another JAX's
        return ()


def default_devices() -> tuple[str, ...]:
    """Return the device on which JAX puts uncommitted arrays, as `("gpu:0",)`."""
    config: Any = jax.config
    chosen: Any = config.jax_default_device
    devices = cast("list[Any]", jax.local_devices(backend=chosen if isinstance(chosen, str) else None))
    device = devices[0] if chosen is None or isinstance(chosen, str) else chosen
    return (f"{device.platform}:{device.id}",)


# One per process, also if this file is loaded again during a watch.
hooks: _Hooks = globals().get("hooks") or _Hooks()
losses: _Losses = globals().get("losses") or _Losses()


Signature = tuple[Sequence[str | None], Sequence[Any]]  # the arguments' paths, and their avals

try:
    # The caches of jax.jit for traces, by function, and for lowered programs. Neither is public.
    from jax._src.interpreters.partial_eval import trace_to_jaxpr as _traces  # pyright: ignore
    from jax._src.pjit import _pjit_lower as _lowered  # pyright: ignore

    _caches: Any = SimpleNamespace(traces=_traces, lowered=_lowered)
    _found: Any = _caches.traces.cache_keys, _caches.lowered.cache_keys, _caches.lowered.cache_info
except (ImportError, AttributeError):  # pragma: no cover - the first observed compile then counts as the first one
    _caches = None


def compiled_by_now() -> Callable[[], list[tuple[Any, list[Signature]]]]:
    """Return a function that reads a snapshot of all compiled programs, taken now; a hidden cache looks empty.

    That function returns pairs of a live function that was passed to `jax.jit` and the signatures of its programs. The
    snapshot takes microseconds, reading it a millisecond.
    """
    if _caches is None:
        return list
    return partial(_signatures, _caches.traces.cache_keys(), _caches.lowered.cache_keys())


def _signatures(traced: list[Any], lowered: list[Any]) -> list[tuple[Any, list[Signature]]]:
    programs: set[tuple[str, tuple[Any, ...]]] = set()
    # A trace alone is no compile: a function counts if a program of its types was lowered too.
    for jaxpr, _ in _alive(lowered):
        info = getattr(jaxpr, "jaxpr", jaxpr).debug_info  # up to 0.10 a jaxpr is inside of one with its constants
        programs.add((info.func_src_info, tuple(jaxpr.in_avals)))
    signatures: dict[int, tuple[Any, list[Signature]]] = {}
    for function, rest in _alive(traced):
        info = next((part for part in rest if hasattr(part, "func_src_info")), None)
        avals = tuple(_avals(rest[0])) if rest else ()
        if info is not None and (info.func_src_info, avals) in programs:
            names = info.arg_names if len(info.arg_names or ()) == len(avals) else (None,) * len(avals)
            signatures.setdefault(id(function), (function, []))[1].append((names, avals))
    return [*signatures.values()]


def _alive(keys: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the live object and the rest of each cache key, `(weak reference, context, rest, named)`."""
    for key in keys:
        try:
            value, rest = key[0](), key[2]
        except (IndexError, TypeError):
            continue
        if value is not None:
            yield value, rest


def _avals(tree: Any) -> Iterator[Any]:
    """Yield the avals of arguments in JAX's own trees: up to 0.10 one class, since then others, tuples and dicts."""
    if hasattr(tree, "dtype"):
        yield tree
        return
    inner: Any = getattr(tree, "vals", tree)
    if isinstance(inner, (tuple, list, dict)):
        parts = cast("dict[str, Any]", inner).values() if isinstance(inner, dict) else cast("list[Any]", inner)
        for part in parts:
            yield from _avals(part)
