"""Calls that run both ways, as they were written and compiled: whether a copy gives the same, and is worth having."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from types import FunctionType
from typing import Any, Literal

import jax

from explorer.hotpath.arguments import Parameters, unfit
from explorer.hotpath.compiled import OtherSettings
from explorer.hotpath.proof import Refusal
from explorer.hotpath.proof.values import refusal_of
from explorer.hotpath.same_result import difference
from explorer.hotpath.variant import Variant
from explorer.model.units import factor_text

_block: Callable[[Any], Any] = vars(jax)["block_until_ready"]
_FASTER = 1.2  # times: less isn't worth a program's memory
# What follows for the copy: nothing yet; calls run compiled; it is dropped, as what it read has changed, or a setting.
Outcome = Literal["open", "trusted", "missed", "other settings"]


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of a call.

    Args:
        result: As it was written; None where it is to run by itself.
        outcome: What follows for the copy,
        refusal: and why the function stays eager, if that follows.
    """

    result: Any = None
    outcome: Outcome = "open"
    refusal: Refusal | None = None


class Comparison:
    """Compares the copies of one function with it.

    Args:
        original: The function as it was written.
        parameters: Its.
        is_forced: Whether a copy stays that isn't faster.
    """

    def __init__(self, original: FunctionType, parameters: Parameters, is_forced: bool) -> None:
        self._original, self._parameters, self._is_forced = original, parameters, is_forced

    def compare(self, variant: Variant, values: tuple[Any, ...], arrays: list[jax.Array]) -> Compared:
        """A call both ways, unless another thread has one with this copy just now."""
        me = object()
        try:
            if variant.comparing is None:
                variant.comparing = me
            return self._compared(variant, values, arrays) if variant.comparing is me else Compared()
        finally:
            if variant.comparing is me:
                variant.comparing = None

    def _compared(self, variant: Variant, values: tuple[Any, ...], arrays: list[jax.Array]) -> Compared:
        args, kwargs = self._parameters.handed(values)
        read = variant.guards.check()
        if read is None or not variant.is_for(args, kwargs):
            return Compared(outcome="missed")
        _block((read, arrays))  # what was begun before isn't this call's
        original = self._original
        both = run_both(lambda: original(*args, **kwargs), lambda: variant.run(read, arrays), len(variant.eager))
        if isinstance(both.error, OtherSettings):
            return Compared(both.result, "other settings")
        if both.error is not None:
            return Compared(both.result, refusal=refusal_of(both.error))
        if both.result is None or not _is_same(read, variant.guards.check()):  # another thread changed it meanwhile
            return Compared(both.result)
        variant.note(both.eager, both.left, both.compiled)
        refusal = unfit(values, both.result) or _refusal_for(difference(both.result, both.copy))
        return self._judged(variant, both.result, refusal)

    def _judged(self, variant: Variant, result: Any, refusal: Refusal | None) -> Compared:
        verdict = variant.verdict(_FASTER)
        if refusal is not None or verdict is None:
            return Compared(result, refusal=refusal)
        if verdict or self._is_forced:
            return Compared(result, "trusted")
        again = "by now " if variant.is_doubted else ""
        factor = factor_text(variant.speedup)
        return Compared(result, refusal=Refusal(f"{again}compiled it is {factor} as fast, which isn't worth it"))


def _is_same(before: tuple[Any, ...], after: tuple[Any, ...] | None) -> bool:
    return after is not None and all(one is two for one, two in zip(before, after, strict=True))


def _refusal_for(differs: str) -> Refusal | None:
    return Refusal(f"compiled, {differs}") if differs else None


@dataclass(slots=True)
class BothWays:
    """What a call gave.

    Args:
        result, eager: As it was written, with its seconds; None where it raised.
        left: Those seconds of it that it went on after it had returned.
        copy, compiled: Compiled, with its seconds.
        error: What the compiled call raised.
    """

    result: Any = None
    eager: float = 0.0
    left: float = 0.0
    copy: Any = None
    compiled: float = 0.0
    error: Exception | None = None


def run_both(eager: Callable[[], Any], compiled: Callable[[], Any], turn: int) -> BothWays:
    """Run a call both ways, one and then the other by turns: the second finds what it needs in the caches.

    A function that only computes may run twice, so where it raises nothing is kept of it: the user's own call does the
    same again.

    Args:
        eager, compiled: Each way; nothing of their arguments is waited for.
        turn: How many calls ran both ways before. The very first compiled call isn't counted: JAX prepares for others.
    """
    both = BothWays()
    order = ((True, False), (False, True))[turn % 2] if turn else (True, False, True)
    for is_compiled in order:
        begun = perf_counter()
        try:
            result = compiled() if is_compiled else eager()
            returned = perf_counter()
            _block(result)
        except Exception as error:
            if not is_compiled:
                return BothWays()
            both.error = error
            continue
        ended = perf_counter()
        if is_compiled:
            both.copy, both.compiled = result, ended - begun
        else:
            both.result, both.eager, both.left = result, ended - begun, ended - returned
    return both
