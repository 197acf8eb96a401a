"""Guards for tests and CI: blocks in which nothing may recompile, or only a number of times."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, TypeVar, cast

from explorer.analysis.recompiles.reasons import explain
from explorer.errors import NotCallableError, NotRecordedError, OptionError, RecompilationError
from explorer.ledger.recorder import recorder
from explorer.ledger.watch import Watch, is_eager, watch
from explorer.model.events.event import Event, Reason
from explorer.model.events.family_counts import FamilyKey, Which, families_of, family_key
from explorer.model.events.key import Key
from explorer.model.units import duration_text

_F = TypeVar("_F", bound=Callable[..., Any])


class Guard:
    """A context manager and decorator that watches a block and fails at its end if too much was compiled.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> guard = explorer.max_compiles(n=1, function="double")
        >>> double = jax.jit(lambda x: x * 2)
        >>> with guard as ledger:
        ...     _ = double(jnp.ones(3)), double(jnp.ones(3))
        >>> ledger.totals.recompiles
        0
    """

    def __init__(self, functions: tuple[Which, ...], limit: int, first: bool, eager: bool) -> None:
        """Limit the compiles to `limit`; with `first`, the first compile of each function is free."""
        for function in functions:
            if not callable(function) and not isinstance(function, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise NotCallableError(
                    f"a guard takes functions or their names, not {function!r}.\n"
                    "  Hint: assert_no_recompiles(step) guards one function, assert_no_recompiles() all."
                )
        self._functions, self._limit, self._first, self._eager = functions, limit, first, eager
        # If nothing may compile, only compiles count; else each program that the block calls, compiled by then or not.
        self._counts_programs = first or limit > 0
        self._blocks: list[Watch] = []

    def __enter__(self) -> Watch:
        block = watch(storm=0)
        self._blocks.append(block)
        if self._counts_programs:
            recorder.count_programs(block)
        return block

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        __tracebackhide__ = True  # pytest shows the user's block, not this line
        ledger = self._blocks.pop()
        ledger.stop()
        broken = self._broken_by(group_compiles(ledger.events))
        if not broken:
            return
        message = f"{self._message(broken)}.\n{format_compiles(broken)}"
        # The block's own error goes first; an interrupt gets no note.
        if error is None:
            raise RecompilationError(message, tuple(event for compile_ in broken for event in compile_.events))
        if isinstance(error, Exception):
            error.add_note(f"Besides, {message}")

    def _broken_by(self, compiles: list[Compile]) -> list[Compile]:
        families = {family_key(compile_.last) for compile_ in compiles}
        wanted: set[FamilyKey] = set()
        for function in self._functions:
            with suppress(NotRecordedError):  # it did not compile
                wanted |= families_of(function, families)
        counted = [compile_ for compile_ in compiles if self._counts(compile_, wanted)]
        return counted if len(counted) > self._limit else []

    def _counts(self, compile_: Compile, wanted: set[FamilyKey]) -> bool:
        is_guarded = not self._functions or family_key(compile_.last) in wanted
        return is_guarded and (self._eager or not is_eager(compile_.last)) and (compile_.again or not self._first)

    def _message(self, broken: list[Compile]) -> str:
        names = list(dict.fromkeys(compile_.last.function for compile_ in broken))
        who = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        times = "once" if len(broken) == 1 else f"{len(broken)} times"
        if self._first:
            return f"{who} compiled again{f', {times}' if len(broken) > 1 else ''}; no recompile is allowed here"
        allowed = {0: "no compile is", 1: "1 is"}.get(self._limit, f"{self._limit} are")
        return f"{who} compiled {times}; {allowed} allowed here"

    def __call__(self, function: _F) -> _F:
        """Return the function with each of its calls guarded: a plain function, a coroutine or a generator.

        Example:
            >>> import explorer, jax, jax.numpy as jnp
            >>> double = jax.jit(lambda x: x * 2)
            >>> @explorer.max_compiles(double, 1)
            ... def epoch(x):
            ...     return double(x), double(x)
            >>> len(epoch(jnp.ones(3)))
            2
        """
        guarded = cast(Any, function)

        def guard() -> Guard:  # of one call: several threads may be in the function
            return Guard(self._functions, self._limit, self._first, self._eager)

        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            with guard():
                return await guarded(*args, **kwargs)

        def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            with guard():
                return cast(Any, (yield from guarded(*args, **kwargs)))

        def call(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            with guard():
                return guarded(*args, **kwargs)

        if inspect.iscoroutinefunction(function):
            return cast(_F, functools.wraps(function)(coroutine))
        return cast(_F, functools.wraps(function)(generator if inspect.isgeneratorfunction(function) else call))


def assert_no_recompiles(*functions: Callable[..., Any] | str, allow_first: bool = True, eager: bool = False) -> Guard:
    """Fail at the end of a block, or of each call of a decorated function, if a function compiled again in it.

    *Again* means that the block calls a second program of the function, whether it is compiled there or was before:
    the verdict is the same in every order of tests. A gradient and `vmap` of a function are counted for themselves. All
    threads count. If the block raises, its own error propagates, with the guard's text as a note.

    Args:
        functions: Functions to guard, jitted or not, or their names; none guards all.
        allow_first: Allow the first program of a function. False allows no compile at all, for a block that was
            warmed up; programs that were compiled before it don't count.
        eager: Also count compiles of operations outside of any `jit`.

    Returns:
        A context manager, whose `as` is the block's ledger, and a decorator, also for coroutines and generators.

    Raises:
        RecompilationError: At the end of the block: what compiled, where it was called, what changed, and the fix.
        NotCallableError: One of `functions` is neither a function nor a name.

    Example:
        >>> import jax, jax.numpy as jnp, explorer as ex
        >>> @jax.jit
        ... def double(x):
        ...     return x * 2
        >>> batches = [jnp.ones(8), jnp.ones(8), jnp.ones(5)]
        >>> try:
        ...     with ex.assert_no_recompiles(double):
        ...         for batch in batches:
        ...             _ = double(batch)
        ... except ex.errors.RecompilationError as error:
        ...     print(str(error).splitlines()[0])
        double compiled again; no recompile is allowed here.
    """
    return Guard(functions, 0, allow_first, eager)


def max_compiles(function: Callable[..., Any] | str, n: int) -> Guard:
    """Fail at the end of a block, or of each call of a decorated function, if a function needs more than `n` programs.

    A program counts once if the block calls it, whether it is compiled there or was before, and again each time that
    it is compiled: the verdict is the same in every order of tests. With `n=0` only compiles count.

    Args:
        function: The function to guard, jitted or not, or its name.
        n: Number of its programs; at least 0.

    Returns:
        A context manager, whose `as` is the block's ledger, and a decorator, also for coroutines and generators.

    Raises:
        RecompilationError: At the end of the block: each compile, where it was called, what changed, and the fix.
        NotCallableError: `function` is neither a function nor a name.
        OptionError: `n` is no whole number, or below 0.

    Example:
        >>> import jax, jax.numpy as jnp, explorer as ex
        >>> double = jax.jit(lambda x: x * 2)
        >>> with ex.max_compiles(double, 2):
        ...     _ = [double(jnp.ones(n)) for n in (8, 8, 5, 5)]
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError(f"max_compiles takes a whole number from 0, not {n!r}.\n  Hint: max_compiles(step, 1)")
    return Guard((function,), n, False, False)


_ROWS = 8


@dataclass(frozen=True, slots=True)
class Compile:
    """One program that was compiled or, for a guard, called: its events, and `again` if another came before it."""

    events: tuple[Event, ...]
    again: bool

    @property
    def last(self) -> Event:
        return self.events[-1]


def group_compiles(events: Iterable[Event]) -> list[Compile]:
    """Return the programs of some events in order, each compared only with earlier ones of the same events.

    Compiles before these events don't count: else the verdict on a test would depend on the tests before it. A gradient
    and the `vmap` of a function are other programs than its own, so the first of each is no recompile.
    """
    calls: dict[int, list[Event]] = {}
    for event in events:
        if not event.error and (event.kind != "miss" or event.key is not None):
            calls.setdefault(event.call, []).append(event)
    compiles: list[Compile] = []
    earlier: dict[object, list[Key]] = {}
    for call in calls.values():
        event, family, key = call[-1], family_key(call[-1]), call[-1].key
        group = family, key and (key.function.made, key.transformations)
        is_known = group in earlier
        before = earlier.setdefault(group, [])
        if before and key is not None:
            reason = explain(key, before, frozenset(_BUILT if event.kind == "miss" else [each.kind for each in call]))
            reason = reason if reason.kind != "unknown" else event.reason
            call = [replace(each, reason=reason) for each in call]
        compiles.append(Compile(tuple(call), is_known))
        before += [key] if key is not None else []
    return compiles


_BUILT = ("trace", "lower", "compile")


def format_compiles(compiles: Sequence[Compile]) -> str:
    """Return a paragraph per function, call site and changed leaf: before, after, and the fix."""
    groups: dict[object, list[Compile]] = {}
    for compile_ in compiles:
        event, reason = compile_.last, compile_.last.reason
        groups.setdefault((event.function, event.call_site, reason.kind, reason.leaf), []).append(compile_)
    rows = [_row(group) for group in groups.values()]
    if len(rows) > _ROWS:
        rows[_ROWS:] = [f"  … and {len(rows) - _ROWS} more places or reasons"]
    return "\n".join(rows)


def _row(group: Sequence[Compile]) -> str:
    first, last = group[0].last, group[-1].last
    reason = first.reason if first.reason.leaf else last.reason
    lines = [f"{first.id or first.function}  {format_change(reason)}"]
    if len(group) > 1:
        lines.append(_more(group[1:]))
    built = [event for each in group for event in each.events if event.kind != "miss"]
    seconds = duration_text(sum(event.seconds for event in built))
    lines.append(f"took {seconds}" if built else "compiled before this block, which calls it")
    if first.call_site is not None:
        lines.append(f"called at  {first.call_site}:   {first.call_site.text}".rstrip(": "))
    if last.reason.fix:  # it has seen the most values
        lines.append("Fix: " + last.reason.fix.replace("\n", "\n           "))
    return "\n".join(("  " if i == 0 else "      ") + line for i, line in enumerate(lines))


def _more(group: Sequence[Compile]) -> str:
    """Return `and 2 times more: then 5, 6` for further compiles with one reason, with at most four changed values."""
    values = list(dict.fromkeys(each.last.reason.after for each in group if each.last.reason.leaf))
    then = f": then {', '.join(values[:4])}{', …' if len(values) > 4 else ''}" if values else ""
    return f"and {'once' if len(group) == 1 else f'{len(group)} times'} more{then}"


def format_change(reason: Reason) -> str:
    """Return the change in one line, `batch['x'].shape[0]: 32 → 33 (shape)`; else the reason's sentence or kind."""
    if reason.leaf and reason.change:
        return f"{reason.leaf}: {reason.change} ({reason.kind})"
    return reason.text or reason.kind
