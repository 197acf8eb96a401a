"""The compiled copy of a function: a program of its arrays and of those that it reads, with all else held by guards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from time import perf_counter
from typing import Any

import jax
import jax.core

from explorer._jax.suppress_recording import suppress_recording
from explorer.hotpath.arguments import Call
from explorer.hotpath.guards import Guards, guards_of
from explorer.hotpath.origin import Origin, hot_copy
from explorer.hotpath.proof import Proof
from explorer.hotpath.results import Assembly, assembly_of
from explorer.hotpath.warned import warnings_held
from explorer.model.events.event import HotCopy, mark_hot_copy

_jax: Any = jax  # whose trees and stages have no types
_evaluate: Callable[..., Any] = vars(jax.core)["eval_jaxpr"]
Compiled = Callable[[tuple[jax.Array, ...], list[jax.Array]], Any]
XlaOptions = Mapping[str, bool | int | float | str]
_Maker = tuple[Any, Callable[[], None]]  # a `jax.jit` function, and what ends its traces
_UNKNOWN = Origin()
_ROUNDS = 5  # of each set of options that is measured


class NotCompiled(Exception):
    """The trace shows what the proof can't: with the reason."""


class TooSmall(Exception):
    """Compiling it hardly pays: JAX runs single operations compiled as they are."""


class OtherSettings(Exception):
    """A call would be compiled anew: JAX's settings are others, or it has dropped what it compiled."""


def compiled_copy(
    call: Call,
    proof: Proof,
    options: Sequence[XlaOptions] = (),
    origin: Origin = _UNKNOWN,
    approve: Callable[[int], object] = int,
) -> tuple[Guards, Compiled]:
    """The guards, and a `jax.jit` function of the arrays that were read and those of the arguments.

    The function is traced with the arrays that it reads as constants; where these come out in its jaxpr, they are known
    by being the same objects, and inputs take their place. So a loop that puts new weights under the old name compiles
    once. It is compiled here; a call that JAX would compile for raises `OtherSettings`.

    Args:
        call: The function, with a call's arguments.
        proof: Of such a call.
        options: Sets of XLA's options, of which the fastest is kept; none for XLA's own.
        origin: Why, for the ledger of compiles.
        approve: Is given the number of operations once it is traced; what it raises ends it.

    Raises:
        NotCompiled: It has effects, warns, gives something other than arrays, or what it reads changes meanwhile.
    """
    arrays, begun = call.arrays, perf_counter()
    with suppress_recording():  # the copy's own trace, which comes after it, stands for both
        closed, structure = traced(call, arrays)
    took = perf_counter() - begun
    approve(len(closed.jaxpr.eqns))
    guards = guards_of(proof.reads, frozenset(map(id, closed.consts)))
    place = {id(value): at for at, value in enumerate(guards.arrays)}
    assembly = assembly_of(closed, structure, call.results_order, place)
    read = guards.check()
    if read is None:
        raise NotCompiled("what it reads changed while it was traced")
    copy = hot_copy(call, guards, origin, took)
    makers = _compilable([_jitted(copy, closed, assembly, place, chosen) for chosen in options or ({},)], read, arrays)
    chosen = makers[0] if len(makers) == 1 else _fastest(makers, read, arrays)
    program, end = chosen
    end()
    if assembly.is_plain:
        return guards, program
    return guards, lambda read, arrays: assembly.assembled(program(read, arrays), read, arrays)


def traced(call: Call, arrays: Sequence[Any]) -> tuple[Any, Any]:
    """A call's jaxpr, with all that it reads as constants, and the structure of its result."""
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
    """Those that compile, compiled: not every set of options does on every machine.

    Raises:
        Exception: The compiler's own, where none does.
    """
    compiled: list[_Maker] = []
    failure: Exception | None = None
    for maker in makers:
        # Further options are tried, which is no recompile.
        with suppress_recording() if maker is not makers[0] else nullcontext():
            try:
                maker[0].lower(read, arrays).compile()  # which a call of the same finds
            except Exception as error:
                failure = failure or error
                continue
        compiled.append(maker)
    if failure is not None and not compiled:
        raise failure
    return compiled


def _jitted(copy: HotCopy, traced: Any, assembly: Assembly, place: Mapping[int, int], options: XlaOptions) -> _Maker:
    """A `jax.jit` function of a jaxpr, and what says that it has been traced for the last time."""
    closed = traced

    def run(read: tuple[jax.Array, ...], arrays: list[jax.Array]) -> Any:
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
    """The one whose runs take least, measured in turns, so that a machine that slows down slows all of them."""
    seconds: dict[int, list[float]] = {at: [] for at in range(len(makers))}
    for turn in range(_ROUNDS + 1):
        for at, (jitted, _) in enumerate(makers):
            begun = perf_counter()
            _jax.block_until_ready(jitted(read, arrays))
            seconds[at] += [perf_counter() - begun] if turn else []
    return makers[min(seconds, key=lambda at: min(seconds[at]))]
