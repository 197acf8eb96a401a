"""Ctrl-C at any time of an action leaves the program as it was: no thread, hook or changed state.

    python -m tests.interrupts [--count 1000] [--seed 0] [--only explore,time]

Each interrupt is a real signal at a random time of an action, from its first line to its last. What must be as it was:
threads, child processes, temporary files, the tracer and the profiler, `sys.monitoring`, JAX's listeners, settings and
functions, the methods of its array class, `warnings.warn`, signal handlers, streams, the garbage collector, the
environment, the working directory. Garbage is collected between actions alone: JAX has a callback there that swallows
an interrupt. Python swallows one in a generator that it closes, and says so.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import jax
import jax.numpy as jnp

import explorer as ex

X = jnp.linspace(0.1, 1.0, 64).reshape(8, 8)
PATIENCE = 5.0  # seconds until a thread that was told to end has ended


def new_function() -> Callable[..., Any]:
    """A function that JAX has not seen."""

    def step(x: Any, scale: Any = 2.0) -> Any:
        for _ in range(3):
            x = jnp.tanh(x @ x) * scale + 1
        return x.sum()

    return step


def _compile() -> None:
    batch = ex.NamedDimension("batch", 1, 4, 8)
    executable = ex.compile(new_function(), args=[ex.InputInfo((batch, batch), jnp.float32)])
    executable(X)
    executable(X[:4, :4])


def _display() -> None:
    ex.explore(new_function(), X)._repr_mimebundle_()


def _save() -> None:
    folder = Path(tempfile.gettempdir())
    capture = ex.explore(new_function(), X)
    capture.save(folder / "a.capture")
    capture.to_html(folder / "a.html")
    ex.load(folder / "a.capture")


def _watch() -> None:
    with ex.watch() as ledger:
        function = jax.jit(new_function())
        for size in (3, 4, 5):
            function(X[:size, :size])
    str(ledger)


def _auto_compile() -> None:
    function = new_function()
    with ex.auto_compile(threshold=2, seconds=0.0):
        for _ in range(20):
            function(X)


def _check() -> None:
    function = new_function()
    ex.check(function, X, golden=ex.record(function, X))


ACTIONS: dict[str, Callable[[], object]] = {
    "explore": lambda: ex.explore(new_function(), X).passes,
    "compile": _compile,
    "display": _display,
    "save": _save,
    "time": lambda: ex.time(new_function(), X, seconds=0.05),
    "profile": lambda: ex.profile(new_function(), X, seconds=0.02),
    "lint": lambda: ex.lint(new_function(), X, thorough=True),
    "sweep": lambda: ex.sweep(new_function(), over={"n": [2, 4]}, args=lambda n: (X[:n, :n],), seconds=0.01),
    "what_if": lambda: ex.what_if(new_function(), X, precision="bfloat16", seconds=0.02),
    "watch": _watch,
    "auto_compile": _auto_compile,
    "check": _check,
}


def state() -> dict[str, object]:
    """What an action may not change."""
    from jax._src import config, monitoring

    tools = getattr(sys, "monitoring", None)
    functions = {
        (module, name): id(value)
        for module, holder in list(sys.modules.items())
        if module == "jax" or module.startswith(("jax.", "jaxlib"))
        for name, value in list(vars(holder).items())
        if isinstance(value, FunctionType)
    }
    return {
        "tracer": (sys.gettrace(), sys.getprofile(), threading.gettrace(), threading.getprofile()),
        "monitoring": [(tools.get_tool(number), number) for number in range(6)] if tools is not None else [],
        "listeners": [
            *monitoring.get_event_duration_listeners(),
            *monitoring.get_event_listeners(),
            *getattr(monitoring, "_scalar_listeners", ()),
        ],
        "settings": dict(jax.config.values),
        "context": config.trace_context(),
        "functions": functions,
        "array": dict(vars(type(X))),
        "warn": (warnings.warn, warnings.showwarning, list(warnings.filters)),
        "hooks": (sys.excepthook, sys.displayhook, threading.excepthook, sys.unraisablehook, list(sys.meta_path)),
        "streams": (sys.stdout, sys.stderr, sys.stdin),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)],
        "garbage": (gc.isenabled(), gc.get_threshold(), list(gc.callbacks)),
        "interpreter": (sys.getswitchinterval(), sys.getrecursionlimit(), list(sys.path), os.getcwd()),
        "environment": dict(os.environ),
    }


def threads() -> set[str]:
    return {f"thread {thread.name}" for thread in threading.enumerate()}


def leftovers() -> set[str]:
    """Threads, child processes, temporary files."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    processes = {f"process {number}" for number in children.read_text().split()} if children.exists() else set()
    return threads() | processes | {f"file {name}" for name in os.listdir(tempfile.gettempdir())}


def difference(before: dict[str, object], after: dict[str, object]) -> list[str]:
    changed = [name for name in before if before[name] != after[name]]
    texts = []
    for name in changed:
        a, b = before[name], after[name]
        if isinstance(a, dict) and isinstance(b, dict):
            keys = [
                key for key in a if key in b and a[key] is not b[key] and a[key] != b[key]
            ]  # a new name is no change
            if keys or name != "functions":
                texts.append(f"{name}: {keys or sorted(map(str, a.keys() ^ b.keys()))[:5]}")
        else:
            texts.append(f"{name}: {a} is {b}")
    return texts


def remaining(before: set[str]) -> set[str]:
    until = time.monotonic() + PATIENCE
    while (more := leftovers() - before) and time.monotonic() < until:
        gc.collect()
        time.sleep(0.02)
    return more


class Alarm:
    """An interrupt of the main thread at some time of an action, as `signal.default_int_handler` does it."""

    def __init__(self) -> None:
        self._is_armed = self.is_sent = False
        signal.signal(signal.SIGALRM, self._ring)

    def _ring(self, *_: object) -> None:
        if self._is_armed:
            self._is_armed, self.is_sent = False, True
            raise KeyboardInterrupt

    def interrupt(self, action: Callable[[], object], seconds: float) -> str:
        """Where an action was when the interrupt came; `is_sent` says whether it came before the end.

        An interrupt may end as another error, as where JAX compares keys of its caches.
        """
        where = "swallowed"
        gc.disable()
        self.is_sent, self._is_armed = False, True
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            action()
            self._is_armed = False
        except BaseException as error:
            self._is_armed = False
            if not self.is_sent:
                raise
            frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.name != "_ring"]
            places = (f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames[-4:])
            where = f"{type(error).__name__} in {' > '.join(places)}"
        signal.setitimer(signal.ITIMER_REAL, 0)
        gc.enable()
        return where


def run(count: int, seed: int, names: list[str]) -> tuple[Counter[str], list[str]]:
    """Interrupt actions in turn: how often each was, and what was left."""
    alarm, chance = Alarm(), random.Random(seed)
    seconds = {}
    for name in names:
        ACTIONS[name]()
        began = time.perf_counter()
        ACTIONS[name]()
        seconds[name] = time.perf_counter() - began
    gc.collect()
    before, there = state(), leftovers()
    hits: Counter[str] = Counter()
    faults: list[str] = []
    turn = 0
    while sum(hits.values()) < count and turn < 3 * count:
        name = names[turn % len(names)]
        turn += 1
        where = alarm.interrupt(ACTIONS[name], max(chance.random() * seconds[name], 1e-5))
        if not alarm.is_sent:
            continue
        if where == "swallowed":
            print(f"{name}: the interrupt was swallowed", file=sys.stderr, flush=True)
        hits[name] += 1
        gc.collect()
        left = [*sorted(remaining(there)), *difference(before, state())]
        if left:
            faults.append(f"{name}, {where}: {'; '.join(left)}")
            print(faults[-1], file=sys.stderr, flush=True)
            before, there = state(), leftovers()
    return hits, faults


def main() -> None:
    """Say how many interrupts left something."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=",".join(ACTIONS))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="explorer-interrupts-") as folder:
        tempfile.tempdir = folder  # where nobody else writes
        os.environ["TMPDIR"] = folder
        hits, faults = run(given.count, given.seed, given.only.split(","))
        for name in given.only.split(","):
            ACTIONS[name]()  # and it still works
    each = ", ".join(f"{name} {times}" for name, times in hits.items())
    print(f"{sum(hits.values())} interrupts ({each}): {len(faults)} left something")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
