"""Compiles that an interrupt leaves running.

In jax 0.10 an interrupt returns from a compile at once, while XLA goes on in a thread of its own. XLA still reads the
MLIR module, and nothing else keeps it alive: once it is freed, the process crashes, without Explorer too. In jax 0.12
the interrupt waits for XLA.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Lock
from time import monotonic
from traceback import walk_tb
from typing import Any, NamedTuple, cast

import jax
from jaxlib.mlir import ir

_SECONDS = 60.0  # XLA reads 4,500 operations in a tenth of a second, and then needs the module no more


class _Unfinished(NamedTuple):
    since: float  # seconds of the monotonic clock
    modules: list[Any]
    close: Callable[[], object]


_unfinished: list[_Unfinished] = []
_lock = Lock()


@contextmanager
def kept_for_xla() -> Generator[None]:
    """Keep the module of a compile in this context alive for a minute if an interrupt leaves the compile running."""
    _release()
    try:
        yield
    except BaseException as error:
        keep_for_xla(error)
        raise


def keep_for_xla(error: BaseException, close: Callable[[], object] = lambda: None) -> bool:
    """Return True if `error` interrupted a compile, and then keep its MLIR module alive for XLA; else return False.

    An interrupt is any exception but JAX's own: a handler of a signal may raise what it likes. After a minute the next
    compile under `kept_for_xla` releases the module and calls `close`.
    """
    if isinstance(error, cast("type[Exception]", jax.errors.JaxRuntimeError)):  # XLA itself has ended the compile
        return False
    modules = [
        value
        for frame, _ in walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).startswith("jax.")
        for value in frame.f_locals.values()
        if isinstance(value, ir.Module)
    ]
    if modules:
        with _lock:
            _unfinished.append(_Unfinished(monotonic(), modules, close))
    return bool(modules)


def _release() -> None:
    with _lock:
        now = monotonic()
        old = [one for one in _unfinished if now - one.since >= _SECONDS]
        _unfinished[:] = [one for one in _unfinished if now - one.since < _SECONDS]
    for one in old:
        one.close()
