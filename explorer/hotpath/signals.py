"""`ex.signal`: named parts of a program, and what a file configures for the functions that they call."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache, wraps
from types import CodeType, FrameType, FunctionType
from typing import Any, ParamSpec, TypeVar, cast, overload

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from explorer._jax.settings import LazyOptions, level_options
from explorer._jax.traces import is_top_level
from explorer.errors import NotCallableError, OptionError, SignalsError, UnknownSignalWarning
from explorer.hotpath.arguments import ARRAYS
from explorer.hotpath.auto import ALL, AutoCompile, configured, forced, is_turned_on
from explorer.hotpath.counting import functions_of, may_be_hot
from explorer.hotpath.swap import own_code
from explorer.model.declared import cached_property
from explorer.model.results.hot_paths import HotRow, Shard, SignalSettings

P = ParamSpec("P")
R = TypeVar("R")
_SIMILAR = 0.75  # similarity of names that may be a typo: `foward`/`forward` 0.92, `loss`/`loss2` 0.89
_QUIET = 3  # entries of a signal without a new function, after which calls are no longer observed


class CallsOfThread:
    """Observer of one thread's calls that nominates each user's function at its first call."""

    def __init__(self, nominate: Callable[[FunctionType], None], looks: bool) -> None:
        self._nominate, self._looks = nominate, looks
        self._seen: set[CodeType] = set()
        self._quiet, self._is_on, self._is_new = 0, False, False

    def start(self) -> None:
        if self._looks and self._quiet < _QUIET and sys.getprofile() is None:  # never replace a running profiler
            self._is_on, self._is_new = True, False
            sys.setprofile(self._called)

    def stop(self) -> None:
        if self._is_on:
            self._is_on = False
            self._quiet = 0 if self._is_new else self._quiet + 1
            # Another profiler may have replaced ours meanwhile.
            if sys.getprofile() == self._called:
                sys.setprofile(None)

    def _called(self, frame: FrameType, event: str, argument: Any) -> None:
        if not self._is_on:  # another thread ended it
            sys.setprofile(None)
        elif event == "call" and (code := own_code(frame.f_code)) not in self._seen:
            self._seen.add(code)
            if code is frame.f_code and may_be_hot(code):  # otherwise it has an entrance already
                self._is_new = True
                for function in functions_of(code):
                    self._nominate(function)


class SignalPaths(AutoCompile):
    """Hot paths of the functions that a signal calls; `compile: false` turns off these and outer ones."""

    def __init__(self, settings: SignalSettings) -> None:
        xla = LazyOptions(lambda: [level_options(settings.optimization_level)])
        super().__init__(forced(), xla, settings.name)
        self._calls = CallsOfThread(self.nominate, looks=bool(settings.compile))

    def _new_counter(self) -> Any:
        return self._calls


class Signal:
    """Named part of a program; `signal` returns it by name.

    Args:
        settings: Settings of its functions, from the file.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> part = explorer.signal("forward")
        >>> @part
        ... def forward(x):
        ...     return jnp.tanh(x) * 2
        >>> part.name, forward(jnp.ones(2)).shape
        ('forward', (2,))
    """

    def __init__(self, settings: SignalSettings) -> None:
        self.settings = settings
        self._paths = SignalPaths(settings) if settings.compile is not None else None
        self._depth = 0
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def functions(self) -> tuple[HotRow, ...]:
        """Return one row per function that the signal called, as `AutoCompile.functions`.

        Empty unless the signal is compiled.
        """
        return self._paths.functions if self._paths is not None else ()

    def place(self, *trees: Any) -> Any:
        """Return arrays split over the signal's devices; arrays in containers are copied to each device.

        A single argument returns alone. Without `shard` in the settings all are returned unchanged.

        Raises:
            SignalsError: An array can't be split evenly, or there are too few devices.
        """
        placed = trees if self._placement is None else self._placement.arguments(trees, {})[0]
        return placed[0] if len(placed) == 1 else placed

    @cached_property
    def _placement(self) -> Placement | None:
        shard = self.settings.shard
        return Placement(self.settings, shard) if shard is not None else None

    def __enter__(self) -> Signal:
        with self._lock:
            # Blocks of one signal may be nested, or run in several threads.
            self._depth += 1
            if self._depth == 1 and self._paths is not None:
                try:
                    self._paths.start()
                except BaseException:  # `__exit__` won't run
                    self._depth -= 1
                    raise
        return self

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and self._paths is not None:
                self._paths.stop()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Return the function decorated: each call is in the signal, and its arguments are split as the file
        configures.
        """
        if not callable(function):
            raise NotCallableError(f"signal({self.name!r}) decorates functions; it got {function!r:.80}.")

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            with self:
                if self.settings.compile and type(function) is FunctionType and self._paths is not None:
                    self._paths.nominate(function)  # before its first call
                if self._placement is None:
                    return function(*args, **kwargs)
                placed, named = self._placement.arguments(args, cast("dict[str, Any]", kwargs))
                return function(*placed, **named)  # pyright: ignore[reportCallIssue]

        return call

    def __repr__(self) -> str:
        words = {True: "compiled", False: "left as written", None: "a name alone"}[self.settings.compile]
        where = f" ({os.path.basename(self.settings.file)}, line {self.settings.line})" if self.settings.line else ""
        return f"Signal({self.name!r}: {words}{where})"


@overload
def signal(name: str) -> Signal: ...
@overload
def signal(name: Callable[P, R]) -> Callable[P, R]: ...
def signal(name: Any) -> Any:
    """Name a part of the program, for which a file configures whether to compile it and how to split its arrays.

    Use it as a context manager for a block, or as a decorator: `@ex.signal("forward")`, or `@ex.signal` with the
    function's own name. `EXPLORER_CONFIG=signals.yaml` names the YAML file:

        forward:
          compile: true               # at the first call; false keeps its functions eager, also under auto_compile
          optimization_level: 4       # 0 to 4, as in explorer.compile
          shard: {axis: 0, workers: 4}    # or a list of devices

    Functions that the block calls are compiled under the rules of `auto_compile` (proven, guarded, compared), except
    that they need not be faster. While a block runs, its settings hold for the process. A decorated function's arrays
    are split along the axis over the devices, and arrays in containers (weights) are copied to each; results stay where
    they are computed. In a block, `place` does that. Without a file a signal only has a name; with
    `EXPLORER_COMPILE=1` it is compiled.

    Args:
        name: Name of the signal, or a function.

    Returns:
        The `Signal` of that name; for a function, the decorated function.

    Raises:
        SignalsError: The file has a mistake, or there are fewer devices than it splits over.
        OptionError: The name isn't a string, or is empty.

    Warns:
        UnknownSignalWarning: The file has no such signal, but one with a similar name.

    Example:
        >>> import explorer as ex, jax.numpy as jnp
        >>> with ex.signal("forward"):
        ...     y = jnp.tanh(jnp.ones(3))
        >>> ex.signal("forward")
        Signal('forward': a name alone)
    """
    if isinstance(name, FunctionType):
        return _named(name.__name__)(name)
    if not isinstance(name, str) or not name:
        raise OptionError(f"signal() takes a name, or a function; it got {name!r:.80}.")
    return _named(name)


def _absent(name: str) -> SignalSettings:
    """Return settings for a signal that isn't in the file; warn if a similar name is."""
    (near, *_) = (*get_close_matches(name, configured(), 1, _SIMILAR), "")
    if near:
        entry = configured()[near]
        warnings.warn(
            f"signal {name!r} isn't in {os.path.basename(entry.file)}, so nothing is done for it; "
            f"did you mean {near!r} (line {entry.line})?",
            UnknownSignalWarning,
            # The line that calls `signal`.
            stacklevel=4,
        )
    return SignalSettings(name)


# One object per name: blocks of the same name share their functions and their depth.
@cache
def _named(name: str) -> Signal:
    settings = configured().get(name) or _absent(name)
    if settings.compile is None and is_turned_on(ALL):
        settings = SignalSettings(name, True, settings.optimization_level, settings.shard, settings.file, settings.line)
    return Signal(settings)


AXIS = "workers"  # of the mesh


def _put(array: Any, sharding: NamedSharding) -> jax.Array:
    return array if array.sharding == sharding else jax.device_put(array, sharding)


class Placement:
    """Sharding of a signal's arrays; raises SignalsError if there are too few devices."""

    def __init__(self, settings: SignalSettings, shard: Shard) -> None:
        self._settings, self._shard = settings, shard
        devices: list[Any] = cast(Any, jax).devices()
        missing = [worker for worker in shard.workers if worker >= len(devices)]
        if missing:
            raise SignalsError(
                f"{self._where}: workers has device {missing[0]}; this machine has {len(devices)}, from 0 on.\n"
                "  Hint: XLA_FLAGS=--xla_force_host_platform_device_count=8 makes a CPU look like 8."
            )
        self.mesh = Mesh(np.array([devices[worker] for worker in shard.workers]), (AXIS,))
        self._split = NamedSharding(self.mesh, PartitionSpec(*[None] * shard.axis, AXIS))
        self._whole = NamedSharding(self.mesh, PartitionSpec())

    @property
    def _where(self) -> str:
        return f"{self._settings.file}, line {self._shard.line}"

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return a call's arguments with direct arrays split, and arrays in containers copied to each device.

        Inside a trace they are unchanged. Raises SignalsError if an array can't be split evenly.
        """
        if not is_top_level():
            return args, kwargs
        names = {f"argument {at}": value for at, value in enumerate(args)} | {f"`{k}`": v for k, v in kwargs.items()}
        placed = [self.placed(value, name) for name, value in names.items()]
        return tuple(placed[: len(args)]), dict(zip(kwargs, placed[len(args) :], strict=True))

    def placed(self, value: Any, name: str) -> Any:
        if type(value) in ARRAYS and value.ndim > self._shard.axis:
            return _put(value, self._sharding_of(value, name))
        return jax.tree.map(self._copied, value)

    def _copied(self, leaf: Any) -> Any:
        return _put(leaf, self._whole) if type(leaf) in ARRAYS else leaf

    def _sharding_of(self, array: jax.Array, name: str) -> NamedSharding:
        size, workers = array.shape[self._shard.axis], len(self._shard.workers)
        if size % workers:
            raise SignalsError(
                f"{self._where}: axis {self._shard.axis} of {name} has {size:,} elements, which {workers} workers "
                f"can't share evenly.\n  Hint: sizes that are multiples of {workers}, or other workers."
            )
        return self._split
