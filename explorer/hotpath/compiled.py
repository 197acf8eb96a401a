"""Compiled copy of a function: a program of its arrays and of the arrays that it reads; guards check the rest."""

from __future__ import annotations

import atexit
import os
import sys
import warnings
import weakref
from _thread import start_new_thread
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from queue import SimpleQueue
from threading import Lock, get_ident
from time import perf_counter, sleep
from types import BuiltinFunctionType, FrameType, FunctionType
from typing import Any, Literal, cast

import jax
import jax.core

from explorer._jax.calls import suppress_recording
from explorer._jax.interrupts import kept_for_xla
from explorer.capture.explore import CompileRequest, compile_stages
from explorer.capture.frames import user_places
from explorer.capture.safe_reading import kind_of
from explorer.hotpath.arguments import Assembly, Call, assembly_of
from explorer.hotpath.guards import Guards, guards_of
from explorer.hotpath.proof import Proof
from explorer.hotpath.proof.values import Read
from explorer.hotpath.swap import entered_by
from explorer.hotpath.timing import Journal
from explorer.model.capture import Capture
from explorer.model.events.event import HotCopy, Place, WrittenCall, mark_hot_copy
from explorer.model.text import cut_middle

_jax: Any = jax  # whose trees and stages have no types
_evaluate: Callable[..., Any] = vars(jax.core)["eval_jaxpr"]
Compiled = Callable[[tuple[jax.Array, ...], list[jax.Array]], Any]
XlaOptions = Mapping[str, bool | int | float | str]
Mode = Literal["default", "reduce-overhead", "max-autotune"]


@dataclass(frozen=True, slots=True)
class Options:
    calls: int  # least calls and
    seconds: float  # least eager seconds in total before a compile
    submit: Callable[[Callable[[], None]], object]  # runs a compile, in the background or at once
    journal: Journal = field(default_factory=Journal)
    is_background: bool = False  # compiles run in the background
    is_forced: bool = False  # use a copy even if it isn't faster, as long as its results are the same
    mode: Mode = "default"
    # Sets of XLA options; the fastest is kept. Arguments are never donated: reference counts in Python include
    # borrowed references, so they can't prove that an array has no other user.
    xla: Sequence[XlaOptions] = ()


_Maker = tuple[Any, Callable[[], None]]  # a `jax.jit` function, and what ends its traces
_ROUNDS = 5  # measured runs of each set of options


@dataclass(frozen=True, slots=True)
class Origin:
    stack: tuple[Place, ...] = ()  # the user's frames at the call that reached the threshold, innermost first
    missed: Read | None = None  # the changed read that invalidated an earlier copy for such calls


_UNKNOWN = Origin()


class NotCompiled(Exception):
    """Error: the trace shows a reason not to compile that the proof can't see."""


class TooSmall(Exception):
    """Error: compiling hardly pays, as JAX runs single operations compiled."""


class OtherSettings(Exception):
    """Error: a call would compile again, as JAX's settings differ or its cache was cleared."""


def compiled_copy(
    call: Call,
    proof: Proof,
    options: Sequence[XlaOptions] = (),
    origin: Origin = _UNKNOWN,
    approve: Callable[[int], object] = int,
) -> tuple[Guards, Compiled]:
    """Return the guards and a compiled function of (arrays read, arrays of the arguments).

    The function is traced with the arrays that it reads as constants, which are recognized in the jaxpr by identity and
    replaced by inputs. So a loop that rebinds its weights compiles once. A call that JAX would compile again for raises
    `OtherSettings`.

    Raises:
        NotCompiled: The function has effects, warns or returns something other than arrays, or a read changes.
    """
    arrays, begun = call.arrays, perf_counter()
    with suppress_recording():  # the copy's own trace, recorded later, represents both
        closed, structure = traced(call, arrays)
    took = perf_counter() - begun
    # Before the compile, which a single operation isn't worth.
    approve(len(closed.jaxpr.eqns))
    guards, place, assembly = program_parts(call, proof, closed, structure)
    read = guards.check()
    if read is None:
        raise NotCompiled("what it reads changed while it was traced")
    copy = hot_copy(call, guards, origin, took)
    makers = _compilable([_jitted(copy, closed, assembly, place, chosen) for chosen in options or ({},)], read, arrays)
    chosen = makers[0] if len(makers) == 1 else _fastest(makers, read, arrays)
    program, end = chosen
    # From here on a trace raises `OtherSettings` rather than compile.
    end()
    if assembly.is_plain:
        return guards, program
    return guards, lambda read, arrays: assembly.assembled(program(read, arrays), read, arrays)


def program_parts(call: Call, proof: Proof, closed: Any, structure: Any) -> tuple[Guards, dict[int, int], Assembly]:
    """Return a trace's guards, the index in `guards.arrays` of each array that is read (by its id), and the recipe for
    the result.
    """
    guards = guards_of(proof.reads, frozenset(map(id, closed.consts)))
    place = {id(value): at for at, value in enumerate(guards.arrays)}
    return guards, place, assembly_of(closed, structure, call.results_order, place)


def traced(call: Call, arrays: Sequence[Any]) -> tuple[Any, Any]:
    """Return a call's jaxpr, with all reads as constants, and the structure of its result.

    Raise NotCompiled if the call warns, has effects, or returns something other than arrays.
    """
    with warnings_held() as warned:
        closed, shape = jax.make_jaxpr(call, return_shape=True)(*arrays)
    if warned:
        raise NotCompiled(f"it warns: {warned[0]}")
    if closed.effects:
        raise NotCompiled("its program has effects: it prints, calls back or changes a reference")
    leaves, structure = _jax.tree.flatten(shape)
    if not leaves or any(not isinstance(leaf, jax.ShapeDtypeStruct) for leaf in leaves):
        raise NotCompiled("it returns something other than arrays")
    return closed, structure


def _compilable(makers: list[_Maker], read: Any, arrays: list[Any]) -> list[_Maker]:
    """Compile each maker; return those that compile, as some options fail on some machines. Raise the first error if
    none does.
    """
    compiled: list[_Maker] = []
    failure: Exception | None = None
    for maker in makers:
        # Trying further options must not be recorded as a recompile.
        with suppress_recording() if maker is not makers[0] else nullcontext():
            try:
                with kept_for_xla():
                    maker[0].lower(read, arrays).compile()  # JAX caches it for the call
            except Exception as error:
                failure = failure or error
                continue
        compiled.append(maker)
    if failure is not None and not compiled:
        raise failure
    return compiled


def _jitted(copy: HotCopy, traced: Any, assembly: Assembly, place: Mapping[int, int], options: XlaOptions) -> _Maker:
    """Return a `jax.jit` function of a jaxpr, and a function that makes every further trace raise `OtherSettings`."""
    closed = traced

    def run(read: tuple[jax.Array, ...], arrays: list[jax.Array]) -> Any:
        # JAX traces again only if its settings or its cache changed: the user would wait for a compile.
        if closed is None:
            raise OtherSettings
        constants = [read[place[id(value)]] if id(value) in place else value for value in closed.consts]
        results = _evaluate(closed.jaxpr, constants, *arrays)
        if assembly.is_plain:
            return _jax.tree.unflatten(assembly.structure, results)
        return [results[at] for at in assembly.computed]

    def end() -> None:
        nonlocal closed
        closed = None

    run.__name__ = run.__qualname__ = getattr(copy.call.function, "__name__", "hot")
    mark_hot_copy(run, copy)
    return jax.jit(run, compiler_options=dict(options) or None), end


def _fastest(makers: list[_Maker], read: Any, arrays: list[Any]) -> _Maker:
    """Return the fastest maker, measured alternately so that a slowdown of the machine affects all."""
    seconds: dict[int, list[float]] = {at: [] for at in range(len(makers))}
    for turn in range(_ROUNDS + 1):
        for at, (jitted, _) in enumerate(makers):
            begun = perf_counter()
            _jax.block_until_ready(jitted(read, arrays))
            # The first turn is the warm-up.
            seconds[at] += [perf_counter() - begun] if turn else []
    return makers[min(seconds, key=lambda at: min(seconds[at]))]


_PRINTED = frozenset((bool, int, float, complex, str, bytes, type(None)))  # their repr runs no user code
_NAMED = (FunctionType, BuiltinFunctionType, type)


def call_stack(owner: object) -> tuple[Place, ...]:
    """Return the user's frames that called the hot function of `owner`, innermost first; all user frames if it isn't on
    the stack.
    """
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - documented, for debuggers
    innermost = frame
    while frame is not None:
        if entered_by(frame.f_code) is owner:
            return user_places(frame.f_back)
        frame = frame.f_back
    return user_places(innermost)  # statements of a cell, outside of functions


def hot_copy(call: Call, guards: Guards, origin: Origin, trace_seconds: float) -> HotCopy:
    # A record of this compile outlives the copy, and must not keep its arguments.
    held = weakref.ref(call)

    def capture() -> Capture | None:
        call = held()
        return None if call is None else capture_of(cast(FunctionType, call.function), call, call.arrays)

    return HotCopy(_written(call, guards), _changed(guards, origin.missed), origin.stack, trace_seconds, capture)


def _written(call: Call, guards: Guards) -> WrittenCall:
    """Return a description of the call with parameter names. Arrays that are read come after the arguments."""
    names, places = call.paths, call.places
    read = guards.array_names
    given = [path for at, path in enumerate(names) if at in places]
    leaves = [0 if at in places else None for at in range(len(names))]
    values: tuple[Any, ...] = _jax.tree.unflatten(call.structure, leaves)
    count = len(read)
    return WrittenCall(
        call.function,
        (*read, *given),
        (*range(count, count + len(given)), *range(count)),
        _jax.tree.structure(((*values, *[0] * count), {})),
        tuple((path, v) for path, v in call.others() if type(v) in _PRINTED or isinstance(v, _NAMED)),
    )


def _changed(guards: Guards, missed: Read | None) -> tuple[str, ...]:
    if missed is None:
        return ()
    now = next((read for read in guards.reads if (read.where, read.name) == (missed.where, missed.name)), None)
    before = _described(missed)
    after = _described(now) if now is not None else "no longer read"
    return missed.name, before, f"another {after}" if after == before else after


def _described(read: Read) -> str:
    if read.where == "absent":
        return "not there"
    if read.where == "code":
        return f"function {read.holder.__name__}"
    if read.where == "contents":
        is_mapping = isinstance(read.holder, Mapping)
        return f"{kind_of(read.holder).__name__} of {len(read.value) // (1 + is_mapping)}"
    if type(read.value) in _PRINTED:
        return cut_middle(repr(read.value))
    if isinstance(read.value, _NAMED):
        return f"{'class' if isinstance(read.value, type) else 'function'} {read.value.__name__}"
    return kind_of(read.value).__name__


def capture_of(function: FunctionType, call: Call, arrays: Sequence[jax.ShapeDtypeStruct]) -> Capture:
    args, kwargs = call.arguments(arrays)
    positions = tuple(i for i, value in enumerate(args) if _is_static(value))
    names = tuple(name for name, value in kwargs.items() if _is_static(value))
    given: Any = [value for value in (*args, *kwargs.values()) if not _is_static(value)]
    if all(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves(given)):
        target: Any = jax.jit(function, static_argnums=positions, static_argnames=names)
        return compile_stages(CompileRequest(function, args, kwargs, target=target)).capture
    return compile_stages(CompileRequest(function, tuple(arrays), {}, target=call)).capture


def _is_static(value: Any) -> bool:
    return jax.tree.leaves(value) == [value] if not isinstance(value, jax.ShapeDtypeStruct) else False


_lock = Lock()
_noted: dict[int, list[str]] = {}  # by thread
_warn: Any = warnings.warn


@contextmanager
def warnings_held() -> Generator[list[str]]:
    """Yield a list that collects the texts of this thread's warnings; those of other threads are shown as usual."""
    global _warn
    here, outer = get_ident(), _noted.get(get_ident())
    held: list[str] = []
    try:  # around everything, as an interrupt may come anywhere
        with _lock:
            if not _noted:
                # Not `catch_warnings`: it would hold back the warnings of all threads.
                _warn, warnings.warn = warnings.warn, _warn_or_note
            _noted[here] = held
        yield held
    finally:
        with _lock:
            if outer is not None:
                _noted[here] = outer
            else:
                _noted.pop(here, None)
            if not _noted and warnings.warn is _warn_or_note:
                warnings.warn = _warn


def _warn_or_note(message: Any, category: Any = None, stacklevel: int = 1, *args: Any, **kwargs: Any) -> None:
    held = _noted.get(get_ident())
    if held is None:
        # One more frame: this function's.
        _warn(message, category, stacklevel + 1, *args, **kwargs)
    else:
        held.append(str(message))


_POLL = 0.001  # seconds


class _Worker:
    def __init__(self) -> None:
        self._works: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._is_working = self.is_over = False
        # Not a `Thread`: the interpreter's end would wait for it. `_end` waits for a running compile only.
        start_new_thread(self._run, ())
        atexit.register(self._end)

    def add(self, work: Callable[[], None]) -> None:
        self._works.put(work)

    def _run(self) -> None:
        while True:
            work = self._works.get()
            self._is_working = True  # before `is_over` is read; `_end` writes and reads in the other order
            if not self.is_over:
                work()
            self._is_working = False

    def _end(self) -> None:
        """Wait at exit for the running work, as a compile can't be interrupted; drop the rest."""
        self.is_over = True
        while self._is_working:
            sleep(_POLL)


@cache
def _worker() -> _Worker:
    return _Worker()


os.register_at_fork(after_in_child=_worker.cache_clear)  # threads don't survive a fork


def in_background(work: Callable[[], None]) -> None:
    """Run `work`, which must not raise, on the background thread."""
    _worker().add(work)


def at_once(work: Callable[[], None]) -> None:
    """Run `work` on the background thread and wait. An interrupt ends only the wait."""
    worker, done = _worker(), SimpleQueue[None]()

    def work_then_notify() -> None:
        try:
            work()
        finally:
            done.put(None)

    if not worker.is_over:
        worker.add(work_then_notify)
        done.get()
