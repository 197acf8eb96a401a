"""Runs the causes: proves that each is one and that its cure is one, and asks who names it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import jax
import jax.monitoring

import explorer as ex
from tests.corpus_recompiles.causes import Cause
from tests.corpus_recompiles.cures import applied, finish, is_code, promised
from tests.corpus_recompiles.jax_explanations import jax_names_it

__all__ = ["Outcome", "run"]

_STEPS = ("/jax/core/compile/jaxpr_to_mlir_module_duration", "/jax/core/compile/backend_compile_duration")


@dataclass(frozen=True)
class Outcome:
    """What came of one cause.

    Args:
        name, kind, leaves: As put down.
        recompiles: Lowerings and compiles that the call caused, counted by `jax.monitoring` alone.
        cured: The same with the one thing cured.
        ours, ours_leaf, ours_text, ours_fix: The first reason that the ledger names.
        ours_true: Whether kind and leaf are the true ones.
        executed: How the cure that the ledger names was tried: `code` that was executed before each call, or `cured`:
            a sentence, for which the scenario's own cured run stands.
        compiled: Compiles of the function over the whole scenario as it is, and with the cure executed.
        promised: How many there are to be at most, where the cure says that; else the last call compiles nothing.
        cure_holds: The cure did what it says.
        changes: Lines of executed code with which a call's result is another; empty where the code says to mask.
        jaxs: What JAX's own explanation says.
        jaxs_true: Whether it names the true kind and leaf.
    """

    name: str
    kind: str
    leaves: tuple[str, ...]
    recompiles: int
    cured: int
    ours: str
    ours_leaf: str
    ours_text: str
    ours_fix: str
    ours_true: bool
    jaxs: str
    jaxs_true: bool
    source: str = ""
    executed: str = ""
    compiled: tuple[int, int] = (0, 0)
    promised: int | None = None
    cure_holds: bool = False
    changes: tuple[str, ...] = ()


def run(cause: Cause) -> Outcome:
    """Three times from empty caches: as it is with JAX explaining, as it is with the ledger watching, and cured."""
    with _explained() as told:
        recompiles = _counted(cause, cured=False, meanwhile=told.clear)
    said = "\n".join(told)
    kind, leaf, text, fix, function = _reason(cause)
    cured = _counted(cause, cured=True)
    executed = "code" if is_code(fix) else "cured"
    before = after = (recompiles, recompiles)
    if executed == "code":
        before, after, lines = _executed(cause, fix, function)
        executed = "code" if lines else "cured"
    if executed == "cured":
        after = (before[0] - 1, cured)
    most = promised(fix) if executed == "code" else None
    return Outcome(
        cause.name,
        cause.kind,
        cause.leaves,
        recompiles,
        cured,
        kind,
        leaf,
        text,
        fix,
        kind == cause.kind and leaf in (cause.leaves or ("",)),
        said,
        jax_names_it(cause, said),
        cause.source,
        executed,
        (before[0], after[0]),
        most,
        after[1] == 0 or (most is not None and after[0] <= most),
        _changes(cause, fix, function) if executed == "code" and "mask what is added" not in fix else (),
    )


def _changes(cause: Cause, fix: str, function: str) -> tuple[str, ...]:
    jax.clear_caches()
    with applied(fix, function, compares=True) as lines:
        try:
            scenario = cause.scenario(False)
            next(scenario)
            finish(scenario)
        except Exception as error:
            return (f"raised {type(error).__name__}",)
    return tuple(lines.changed)


def _executed(cause: Cause, fix: str, function: str) -> tuple[tuple[int, int], tuple[int, int], list[str]]:
    """Compiles of `function` in all and in the last call, as it is and with the cure before each call."""
    before = _compiles(cause, function)
    with applied(fix, function) as lines:
        try:
            after = _compiles(cause, function)
        except Exception:  # a cure that the program does not survive is none
            after = before[0], max(before)
    return before, after, lines


def _compiles(cause: Cause, function: str) -> tuple[int, int]:
    jax.clear_caches()
    counted: list[str] = []

    def listen(event: str, duration_secs: float, **known: object) -> None:
        if event == _STEPS[1] and str(known.get("fun_name", "")).removeprefix("jit(").rstrip(")") == function:
            counted.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        scenario = cause.scenario(False)
        next(scenario)
        earlier = len(counted)
        finish(scenario)
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    return len(counted), len(counted) - earlier


def _counted(cause: Cause, cured: bool, meanwhile: Callable[[], None] = lambda: None) -> int:
    """How often the last call lowers or compiles, by JAX's own count."""
    jax.clear_caches()
    counted: list[str] = []

    def listen(event: str, duration_secs: float, **known: object) -> None:
        if event in _STEPS:
            counted.append(event)

    scenario = cause.scenario(cured)
    next(scenario)
    meanwhile()
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        finish(scenario)
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    return len(counted)


def _reason(cause: Cause) -> tuple[str, str, str, str, str]:
    """The first reason that is named for the call."""
    jax.clear_caches()
    scenario = cause.scenario(False)
    with ex.watch(storm=0) as ledger:
        next(scenario)
        before = len(ledger.events)
        finish(scenario)
    if ledger.faults:
        raise AssertionError(f"{cause.name}: {ledger.faults}")
    events = [event for event in ledger.events[before:] if event.kind != "miss"]
    if not events:
        return "no event", "", "", "", ""
    reason = events[0].reason
    return reason.kind, reason.leaf, reason.text, reason.fix, events[0].function


@contextmanager
def _explained() -> Iterator[list[str]]:
    """What `jax_explain_cache_misses` logs."""
    told: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record.getMessage())

    logger, handler = logging.getLogger("jax"), Handler()
    logger.addHandler(handler)
    propagates, logger.propagate = logger.propagate, False
    jax.config.update("jax_explain_cache_misses", True)
    try:
        yield told
    finally:
        jax.config.update("jax_explain_cache_misses", False)
        logger.removeHandler(handler)
        logger.propagate = propagates
