"""Calls of a shapeless function at new sizes, answered by padded binaries: one program serves a range of shapes.

jax.jit answers the shapes that it knows in C++; what it would trace and compile for comes by here first. Whether a call
may be padded is decided within that trace, where the kind of its arguments is known (`Shapeless`), and raised out of
it; the next call of the same kind, at whatever sizes, is answered without one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import local
from typing import Any, cast

import jax
import jax.core
import numpy as np

from explorer._jax import is_top_level
from explorer._jax.arguments import trace_context
from explorer.model.events.event import CallLeft
from explorer.padding import padded, prove
from explorer.padding.growing import GrowingProgram
from explorer.padding.patterns import Pattern

_KEPT = 1024  # kinds of calls that are known to be padded
Answer = tuple[Any, Any, Any]  # of what jax.jit's dispatcher asks: the result, its entry for such calls, and a flag


@dataclass(eq=False)
class Padding:
    """The padded program of one symbolic trace.

    Args:
        program: In its buckets.
        pattern: What its sizes are of the arrays that vary.
        structure: Of what comes out.
    """

    program: GrowingProgram
    pattern: Pattern
    structure: Any

    @classmethod
    def of(
        cls, closed: Any, pattern: Pattern, structure: Any, run: Callable[..., Any], varying: Sequence[int]
    ) -> Padding | None:
        """None where it isn't proven that padding changes no result; it is called as `run` is.

        Args:
            varying: Which of the program's arrays are those of the pattern.
        """
        symbols = dict.fromkeys(pattern.names, pattern.least)
        proof = prove(closed, symbols)
        if not proof.is_exact:
            return None

        def program(sizes: Mapping[str, Any], arrays: Sequence[Any]) -> Any:
            bucket = pattern.sizes([arrays[i].shape for i in varying])
            return padded(closed, bucket or {}, fills=proof.fills)(sizes, *arrays)

        program.__name__ = program.__qualname__ = run.__name__
        program.__dict__["__wrapped__"] = vars(run).get("__wrapped__")  # its place; it mustn't be kept alive
        jitted: Any = jax.jit(program)
        return cls(GrowingProgram(closed, symbols, lambda _: jitted, proof.fills), pattern, structure)


@dataclass(frozen=True)
class Places:
    """Where the arrays of a call are among its leaves.

    Args:
        count: Of leaves.
        traced: Those that are arrays.
        varying: Of those, the ones whose shape may be another.
    """

    count: int
    traced: tuple[int, ...]
    varying: tuple[int, ...]


class ServePadded(CallLeft):
    """Out of a trace that is about to be compiled: the call is to be padded.

    Args:
        padding: By what.
        places: Where the arrays are among the call's leaves.
    """

    def __init__(self, padding: Padding, places: Places) -> None:
        super().__init__("served by a padded binary")
        self.padding, self.places = padding, places


class _Offer(local):
    """Which function's next trace on this thread may be left, for the call to be padded."""

    to: Any = None


_offer = _Offer()


def take_offer(whose: Any) -> bool:
    """Whether the trace that begins may be left; it may be once."""
    is_offered, _offer.to = _offer.to is whose, None
    return is_offered


@contextmanager
def _offered(whose: Any) -> Any:
    before, _offer.to = _offer.to, whose
    try:
        yield
    finally:
        _offer.to = before


class PaddedShapes:
    """What stands between jax.jit's dispatcher and its trace.

    Args:
        whose: To whom the offer is made: what jax.jit traces.
    """

    def __init__(self, whose: Any) -> None:
        self._whose = whose
        self._places: dict[Any, Places] = {}  # by tree of a call
        self._known: dict[Any, list[Padding]] = {}  # by all of a call but its sizes

    def clear(self) -> None:
        """Forget everything."""
        self._places.clear()
        self._known.clear()

    def answer(self, miss: Callable[..., Answer], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
        """The answer to a call that the dispatcher doesn't know.

        Args:
            miss: As jax.jit would answer it.
        """
        __tracebackhide__ = True
        leaves, tree = cast("tuple[list[Any], Any]", jax.tree.flatten((args, kwargs)))
        if not _may_be_padded(leaves):
            with _offered(None):
                return miss(*args, **kwargs)
        result = self._served(leaves, tree)
        if result is None:
            try:
                with _offered(self._whose):
                    return miss(*args, **kwargs)
            except ServePadded as decision:
                self._learn(decision, leaves, tree)
                result = self._served(leaves, tree)
        if result is None:
            with _offered(None):
                return miss(*args, **kwargs)
        return result[0], None, False

    def _learn(self, decision: ServePadded, leaves: list[Any], tree: Any) -> None:
        if decision.places.count != len(leaves):  # jax.jit took the call apart otherwise
            return
        if len(self._known) >= _KEPT:
            self.clear()
        self._places[tree] = decision.places
        key = self._key(leaves, tree)
        if key is not None:
            self._known.setdefault(key, []).append(decision.padding)

    def _served(self, leaves: list[Any], tree: Any) -> tuple[Any] | None:
        """The result of a call; None where jax.jit is to compile for its sizes alone, or to say what it is."""
        places, key = self._places.get(tree), self._key(leaves, tree)
        if places is None or key is None:
            return None
        for padding in self._known.get(key, ()):
            sizes = padding.pattern.sizes([np.shape(leaves[i]) for i in places.varying])
            if sizes is None or padding.program.is_worth_its_own(sizes):
                continue
            try:
                outputs = padding.program.call(sizes, [leaves[i] for i in places.traced])
            except Exception:  # out of memory: the call by itself needs less, or says what is wrong with it
                padding.program.give_up(sizes)
                return None
            return (jax.tree.unflatten(padding.structure, outputs),)
        return None

    def _key(self, leaves: list[Any], tree: Any) -> Any:
        """What calls that are padded alike have in common; None for a call of which nothing is known yet."""
        places = self._places.get(tree)
        if places is None:
            return None
        kinds = [_kind(leaf, with_shape=True) for leaf in leaves]
        for i in places.varying:
            kinds[i] = _kind(leaves[i], with_shape=False)
        for i in set(range(len(leaves))).difference(places.traced):
            kinds[i] = type(leaves[i]), leaves[i]
        try:
            key = tree, tuple(kinds), trace_context()[1]
            hash(key)
        except TypeError:  # a constant without a hash, which jax.jit refuses
            return None
        return key


def _kind(leaf: Any, *, with_shape: bool) -> Any:
    if not hasattr(leaf, "dtype"):
        return leaf.__class__
    shape = leaf.shape if with_shape else len(leaf.shape)
    if not hasattr(leaf, "sharding"):  # NumPy's
        return shape, leaf.dtype
    return shape, leaf.dtype, jax.typeof(leaf).weak_type, leaf.sharding, leaf.committed


def _may_be_padded(leaves: Sequence[Any]) -> bool:
    """Whether a call is one of numbers that are there, each on one device, and JAX checks nothing in between."""
    config: Any = jax.config
    return (
        not (config.jax_debug_nans or config.jax_debug_infs or config.jax_disable_jit)
        and is_top_level()
        and not any(
            isinstance(leaf, jax.core.Tracer)
            or (isinstance(leaf, jax.Array) and (leaf.is_deleted() or len(leaf.devices()) > 1))
            for leaf in leaves
        )
    )
