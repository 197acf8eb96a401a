"""Recorder of operations that run one by one: operation, arrays and source line of each, and which sequences repeat."""

from __future__ import annotations

import sys
import weakref
from collections import deque
from collections.abc import Callable
from itertools import count
from threading import Lock, current_thread, local
from time import perf_counter
from types import FrameType
from typing import Any, cast

import jax
import jax.core

from explorer._jax.eager import Described, described, eager_hooks, identity_of, is_seen, is_traced
from explorer.analysis.repeated_sequences import repeated_sequences
from explorer.capture.safe_reading import kind_of
from explorer.hotpath.arguments import ARRAYS
from explorer.model.results.hot_paths import Operation, RepeatedSequence, Step
from explorer.model.stage import is_library_file


class Identities:
    """Numbers for objects. Each object is held by a weak reference, as addresses are reused after an object dies.

    Example:
        >>> numbers, thing = Identities(8), {1}
        >>> numbers.of(thing) == numbers.of(thing), numbers.of(thing) == numbers.of({2})
        (True, False)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[int, tuple[Any, int]] = {}
        self._numbers = count(1)

    def of(self, thing: Any) -> int:
        entry = self._known.get(id(thing))
        if entry is not None and entry[0]() is thing:
            return entry[1]
        if len(self._known) >= self._most:  # drop the dead ones, and half if more are alive
            living = [(key, entry) for key, entry in tuple(self._known.items()) if entry[0]() is not None]
            self._known = dict(living[-(self._most // 2) :])
        number = next(self._numbers)
        self._known[id(thing)] = weakref.ref(thing), number
        return number

    def clear(self) -> None:
        self._known.clear()


_flatten: Callable[[Any], tuple[list[Any], Any]] = cast(Any, jax.tree).flatten
_ShapedArray: Any = jax.core.ShapedArray
_STEPS = 65_536  # kept for each thread: some minutes of a training loop
_KEPT = 8_192  # operations and compiled functions known at a time
_ARRAYS = 65_536  # living arrays known at a time
_MAX_THREADS = 64
_MAX_TEXT = 60  # characters of a parameter
_MAX_FRAMES = 200  # examined on the way to the top level of the user's file
_NUMBERS = (bool, int, float, complex)


class _Thread:
    def __init__(self, name: str) -> None:
        self.name = name
        self.steps: deque[tuple[Any, ...]] = deque(maxlen=_STEPS)  # fields of a Step, as creating one takes 1 µs


class Recorder:
    """Recorder of the operations that run outside of traces, on all threads, while it is on.

    A call that JAX has to compile first isn't recorded, the next one is. Steps, operations and arrays are kept up to a
    limit, and no array is kept alive. A fault of the recorder ends the recording and sets `problem`, the reason why it
    may be incomplete. `notify` is called with each step, on the thread that ran it. After `most` steps recording ends
    and costs nothing any more; `seen` counts all of them.

    Example:
        >>> import jax.numpy as jnp
        >>> x = jnp.ones((4, 4))
        >>> _ = jnp.exp(x)
        >>> with Recorder() as recorder:
        ...     y = jnp.exp(jnp.exp(x))
        >>> for step in recorder.steps():
        ...     print(step.operation, step.inputs, step.outputs)
        exp(f32[4,4]) -> f32[4,4] (1,) (2,)
        exp(f32[4,4]) -> f32[4,4] (2,) (3,)
    """

    def __init__(self, notify: Callable[[Step], None] | None = None, most: int | None = None) -> None:
        self.problem = "" if is_seen() else "this JAX version doesn't report which operations run"
        self.seen = 0
        self._notify, self._most = notify, most
        self._begun = perf_counter()
        self._numbers, self._keys = count(1), count(1)
        self._local = local()
        self._threads: deque[_Thread] = deque(maxlen=_MAX_THREADS)
        self._arrays, self._functions = Identities(_ARRAYS), Identities(_KEPT)
        self._programs: dict[int, tuple[Described, Any]] = {}
        self._operations: dict[Any, Operation] = {}

    def __enter__(self) -> Recorder:
        if not self._has_enough:
            eager_hooks.listen(self)
        return self

    def __exit__(self, *error: object) -> None:
        if not self.problem and not self._has_enough and not eager_hooks.is_active():
            self.problem = "JAX's check for NaNs was turned on or off, and took the recorder's place"
        eager_hooks.unlisten(self)
        # The steps stay; these only number new ones.
        for table in (self._arrays, self._functions, self._programs, self._operations):
            table.clear()

    @property
    def _has_enough(self) -> bool:
        return self._most is not None and self.seen >= self._most

    def steps(self, thread: str | None = None) -> tuple[Step, ...]:
        """Return the last steps of a thread, by default the current one, in order."""
        name = current_thread().name if thread is None else thread
        return tuple(Step(*fields) for one in tuple(self._threads) if one.name == name for fields in tuple(one.steps))

    @property
    def threads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.name for one in tuple(self._threads)))

    # Called by the hooks ----------------------------------------------------------------------------------------------

    def ran(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        results = (result,) if type(result) in ARRAYS else tuple(_flatten(result)[0])
        if any(map(is_traced, results)):
            return
        what, identity = self._program(function)
        inputs = _Inputs(self._arrays)
        static = what.static_positions
        for at, arg in enumerate(args):
            inputs.add(at, arg, at in static)
        for name, arg in kwargs.items():
            inputs.add(name, arg, name in what.static_names)
        key = (identity, tuple(inputs.parts))
        operation = self._operations.get(key)
        if operation is None:
            if len(self._operations) >= _KEPT:
                _drop_first(self._operations)
            kinds, outputs = inputs.kinds(), [_kind_text(_kind(one)) for one in results]
            text = inputs.text(what.parameters)
            operation = self._operations[key] = Operation(
                next(self._keys), what.name, text, tuple(map(_kind_text, kinds)), tuple(outputs), what.is_primitive
            )
        self._step(operation, "", tuple(inputs.numbers), tuple([self._number(one) for one in results]))

    def observed(self, array: Any, how: str) -> None:
        steps, number = self._mine().steps, self._number(array)
        before = Step(*steps[-1]) if steps else None
        if before is None or not before.observed or before.outputs != (number,):  # `float` is also reported as a read
            self._step(None, "value" if how in ("_value", "__array__") else how, (), (number,))

    def fault(self, error: Exception) -> None:
        eager_hooks.unlisten(self)
        self.problem = f"recording ended: {error!r:.200}"

    # Tables ---------------------------------------------------------------------------------------------

    def _mine(self) -> _Thread:
        mine: _Thread | None = getattr(self._local, "mine", None)
        if mine is None:
            mine = self._local.mine = _Thread(current_thread().name)
            self._threads.append(mine)
        return mine

    def _step(
        self, operation: Operation | None, observed: str, inputs: tuple[int, ...], outputs: tuple[int, ...]
    ) -> None:
        seconds, mine = perf_counter() - self._begun, self._mine()
        self.seen = number = next(self._numbers)
        step = (seconds, number, mine.name, operation, observed, inputs, outputs, *_place())
        mine.steps.append(step)
        if self._has_enough:
            eager_hooks.unlisten(self)
        if self._notify is not None:
            self._notify(Step(*step))

    def _number(self, value: Any) -> int:
        return self._arrays.of(value) if type(value) in ARRAYS else 0

    def _program(self, function: Any) -> tuple[Described, Any]:
        """Return a compiled function's description and a key shared by functions of the same program."""
        number = self._functions.of(identity_of(function))
        program = self._programs.get(number)
        if program is None:
            if len(self._programs) >= _KEPT:
                _drop_first(self._programs)
            what = described(function)
            # By name and parameters: JAX may forget a primitive's program and compile it again.
            exact = tuple((name, *_exactly(value)) for name, value in sorted(what.parameters.items()))
            same = (what.name, *exact) if what.is_primitive else number
            program = self._programs[number] = what, same
        return program


class _Inputs:
    """Arguments of one call: the numbers of its arrays, and the properties compiled into the program."""

    def __init__(self, arrays: Identities) -> None:
        self.numbers: list[int] = []
        self.parts: list[Any] = []
        self._arrays = arrays
        self._static: list[tuple[int | str, Any]] = []

    def add(self, at: int | str, value: Any, is_static: bool) -> None:
        if is_static:
            self._static.append((at, value))
            self.parts.append((at, None, *_exactly(value)))
        elif type(value) in ARRAYS:
            self.numbers.append(self._arrays.of(value))
            self.parts.append((value.shape, value.dtype, getattr(value, "weak_type", False)))
        else:
            leaves, structure = _flatten(value)
            self.parts.append((at, structure))
            self.parts.extend(map(_kind, leaves))
            self.numbers.extend(self._arrays.of(leaf) if type(leaf) in ARRAYS else 0 for leaf in leaves)

    def kinds(self) -> list[Any]:
        return [part for part in self.parts if isinstance(part, type) or len(part) == 3]

    def text(self, parameters: dict[str, Any]) -> str:
        named = [*parameters.items(), *self._static]
        return ", ".join(f"{name}={_short(value)}" if isinstance(name, str) else _short(value) for name, value in named)


def _drop_first(known: dict[Any, Any]) -> None:
    # A quarter at once: a full table must not be copied for each new entry.
    for key in tuple(known)[: len(known) // 4 + 1]:
        known.pop(key, None)


def _kind(leaf: Any) -> type[Any] | tuple[Any, Any, Any]:
    """Return the properties of an input that the program depends on: shape, dtype and weak type, or a Python class."""
    if type(leaf) in ARRAYS:
        return leaf.shape, leaf.dtype, getattr(leaf, "weak_type", False)
    for base in _NUMBERS:
        if isinstance(leaf, base):
            return base
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    return kind_of(leaf) if shape is None or dtype is None else (shape, dtype, "host")


def _kind_text(kind: Any) -> str:
    if isinstance(kind, type):
        return kind.__name__
    shape, dtype, more = kind
    return _ShapedArray(shape, dtype).str_short(short_dtypes=True) + (f" {more}" if more == "host" else "")


def _exactly(value: Any) -> tuple[Any, Any]:
    """Return `(key, class)` of a static value; the key is hashable. Without the class, 1, 1.0 and True are equal."""
    try:
        hash(value)
    except TypeError:
        return repr(value), kind_of(value)
    return value, kind_of(value)


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"


_is_users: dict[str, bool] = {}


def _place() -> tuple[str, int, int]:
    """Return the user's file, innermost line, and the line of the file's top level that led there; 0 if unknown."""
    # Past this function, `_step`, and `ran` or `observed`.
    frame: FrameType | None = sys._getframe(3)  # pyright: ignore[reportPrivateUsage] - faster than `inspect`
    file, line = "", 0
    for _ in range(_MAX_FRAMES):
        if frame is None:
            break
        name = frame.f_code.co_filename
        is_users = _is_users.get(name)
        if is_users is None:
            is_users = _is_users[name] = not is_library_file(name)
        if is_users:
            if not line:
                file, line = name, frame.f_lineno
            if frame.f_code.co_name == "<module>":
                return file, line, frame.f_lineno if name == file else 0
        frame = frame.f_back
    return file, line, 0


# Operations: dozens of iterations of a training loop, folded in 50 ms. Recording takes 10 µs each.
MOST = 2_048


class Stream:
    """Recording of the thread that starts it, until something runs compiled or the limit is reached."""

    def __init__(self) -> None:
        self._recorder = Recorder(most=MOST)
        self._thread = ""
        self._lock = Lock()
        self._folded: tuple[int, tuple[RepeatedSequence, ...]] = 0, ()
        self._is_over = False

    def start(self) -> None:
        if not self._is_over:
            self._thread = self._thread or current_thread().name
            self._recorder.__enter__()

    def stop(self) -> None:
        if not self._is_over:
            self._recorder.__exit__()

    def end(self) -> None:
        self.stop()
        self._is_over = True

    def folded(self) -> tuple[int, tuple[RepeatedSequence, ...]]:
        with self._lock:
            steps = self._recorder.steps(self._thread)
            count = sum(step.operation is not None for step in steps)
            if count != self._folded[0]:
                self._folded = count, repeated_sequences(steps)
            return self._folded
