"""What happened to hot functions, put together when somebody looks.

The values themselves are `explorer/model/results/hot_paths.py`, which views and files know.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import isfinite
from sys import getrefcount

from explorer.capture.sources import label
from explorer.hotpath.arrays import ARRAYS, may_be_replaced
from explorer.hotpath.costs import Estimate, FunctionCosts, together
from explorer.hotpath.hot import HotFunction
from explorer.hotpath.proof import Refusal
from explorer.model.results.hot_paths import HeldValue, HotRow

_OURS = 3  # references to a function: its HotFunction's, the table's, and that of who counts them


def row_of(hot: HotFunction, began: float, signal: str = "") -> HotRow:
    """A function as a value.

    Args:
        hot: The function, which may go on meanwhile.
        began: When hot paths were on, by `perf_counter`.
        signal: The signal it belongs to.
    """
    code, refusal = hot.original.__code__, hot.refusal
    variants = {id(variant) for variant in list(hot.variants.values())}  # a padded one serves many sizes
    costs = _costs_of(hot)
    return HotRow(
        hot.name,
        code.co_filename,
        code.co_firstlineno,
        hot.state,
        refusal.reason if refusal is not None else "",
        refusal.file if refusal is not None else "",
        refusal.line if refusal is not None else 0,
        refusal.cure if refusal is not None else "",
        hot.calls["eager"],
        hot.calls["compiled"],
        costs.eager.seconds,
        costs.compiled.seconds,
        costs.eager.count,
        costs.compiled.count,
        costs.basis,
        hot.compile_seconds,
        hot.is_background,
        len(variants),
        _held(hot),
        dict(hot.misses),
        hot.times.columns(began),
        signal,
        (costs.eager.low, costs.eager.high),
        (costs.compiled.low, costs.compiled.high),
    )


def _costs_of(hot: HotFunction) -> FunctionCosts:
    """What its calls take; of a function that was never compiled it is known only when they returned."""
    costs = together(hot.costs)
    if costs is not None:
        return costs
    seconds, count = hot.times.median("eager", "missed")
    return FunctionCosts(Estimate(seconds, count=count), Estimate(), "returned" if count else "")


def by_time(row: HotRow) -> float:
    """For sorting: what takes most of the program's time, as it is or would be, comes first."""
    return -row.calls * row.eager_seconds if isfinite(row.eager_seconds) else 0.0


def callers(hots: Iterable[HotFunction]) -> dict[int, str]:
    """By the address of a function the name of one that runs compiled and has the call of it in its program."""
    return {
        id(read.holder): hot.name
        for hot in hots
        if hot.state == "compiled"
        for variant in list(hot.variants.values())
        for read in variant.guards.reads
        if read.where == "code" and read.holder is not hot.original
    }


def note_dropped(hots: Collection[HotFunction]) -> None:
    """Functions that were called and then dropped, as those are that a call defines for itself, stay eager: say why.

    Who holds them but their `HotFunction` and the table of all is the user. One whose like is called on isn't made anew
    at each call: it was there from before.
    """
    called = {hot.original.__code__ for hot in hots if hot.times.count}
    for hot in hots:
        outer = hot.name.rpartition(".<locals>.")[0]
        if not outer or hot.state != "counting" or hot.original.__code__ in called:
            continue
        if getrefcount(hot.function) <= _OURS:
            made = f"`{outer}` defines it anew at each call, and drops it"
            line = hot.original.__code__.co_firstlineno
            cure = f"define it once, outside of `{outer}`, and pass what it reads from there"
            hot.leave(Refusal(made, hot.original.__code__.co_filename, line, cure))


def labels_of(rows: Iterable[HotRow], others: Iterable[str] = ()) -> dict[str, str]:
    """What a person calls the files of some functions, and others."""
    files = {file for row in rows for file in (row.file, row.reason_file)}.union(others) - {""}
    return {file: label(file) for file in sorted(files)}


def _held(hot: HotFunction) -> tuple[HeldValue, ...]:
    """What the guards of all variants hold, each once."""
    held = {
        HeldValue(read.name, read.where, type(read.value) in ARRAYS and may_be_replaced(read.value)): None
        for variant in list(hot.variants.values())
        for read in variant.guards.reads
    }
    return tuple(held)
