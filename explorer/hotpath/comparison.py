"""Compiled copies: the calls that each serves, whether its results are the same, and whether it is faster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter, is_not
from statistics import median
from time import perf_counter
from types import FunctionType
from typing import Any, Literal, cast

import jax
import jax.numpy as jnp
import numpy as np

from explorer.capture.agreement import difference_of
from explorer.hotpath.arguments import ARRAYS, Call, Parameters, separated
from explorer.hotpath.compiled import Compiled, OtherSettings
from explorer.hotpath.guards import Guards
from explorer.hotpath.proof import Refusal
from explorer.hotpath.proof.values import refusal_of
from explorer.hotpath.timing import CallCosts
from explorer.model.units import duration_text, factor_text
from explorer.runtime.generated import Unpack, never

_COMPARED = 3  # calls that run both ways
_UNSURE = 9  # the same if the first ones are unclear: a busy machine slows one call in three several times
_LONG = 1.0  # seconds of eager calls that ran both ways, from which disturbances matter little
_SLOWER = 1.0  # speedup below which a trusted copy is given up
_DOUBTED = 3  # checks in a row that took longer than eager calls


@dataclass(slots=True, eq=False)
class Variant:
    """Compiled copy for one kind of calls and one state of its reads."""

    guards: Guards
    run: Compiled
    call: Call  # the call it was made for
    costs: CallCosts
    unpack: Unpack  # returns the arrays in arguments of its structure
    fits: Callable[[Any, Any], bool] | None = None  # checks the facts of the proof, if there are any
    eager: list[float] = field(default_factory=list[float])  # seconds of calls that ran both ways, until their results
    compiled: list[float] = field(default_factory=list[float])
    checks: deque[float] = field(default_factory=lambda: deque(maxlen=_DOUBTED))  # seconds of checked compiled calls
    is_trusted: bool = False  # calls run only compiled
    is_doubted: bool = False  # was trusted, then took longer than eager calls
    comparing: Any = None  # token of the thread that compares

    @property
    def speedup(self) -> float:
        return median(self.eager) / median(self.compiled)

    @property
    def comparison_text(self) -> str:
        """Return the measured speedup as text: `4.1 × as fast: 12.3 ms → 3 ms`."""
        took = f"{duration_text(median(self.eager))} → {duration_text(median(self.compiled))}"
        return f"{factor_text(self.speedup)} as fast: {took}"

    def is_for(self, args: Any, kwargs: Any) -> bool:
        return self.fits is None or self.fits(args, kwargs)

    def note(self, eager: float, left: float, compiled: float) -> None:
        """Add the seconds of a call that ran both ways; `left` is the time from the eager return to its results."""
        self.costs.note_both(eager, left, compiled)
        self.eager.append(eager)
        self.compiled.append(compiled)

    def verdict(self, faster: float) -> bool | None:
        """Return True to keep a copy that must be `faster` times as fast, False to drop it, None to compare further
        calls.

        A copy that was trusted before is kept if it is at least as fast as eager calls.
        """
        if len(self.eager) < _COMPARED:
            return None
        least = _SLOWER if self.is_doubted else faster
        is_sure = self.speedup > 1.5 * least or len(self.eager) >= _UNSURE or sum(self.eager) > _LONG
        return self.speedup >= least if is_sure else None

    def check(self, seconds: float) -> bool:
        """Add the seconds of a compiled call; return True unless the last three all took longer than eager calls.

        A busy machine can cause that too.
        """
        self.checks.append(seconds)
        return len(self.checks) < _DOUBTED or min(self.checks) <= self.costs.eager_seconds()

    def doubt(self) -> None:
        self.eager, self.compiled, self.is_doubted, self.is_trusted = [], [], True, False
        self.checks.clear()


_flatten: Callable[[Any], tuple[list[Any], Any]] = cast(Any, jax.tree).flatten
_LINE = "\n"
_ALL_ARRAYS = 2  # length of a key (structure, types), if all arguments are arrays
Found = tuple[list[Any], Any, Variant | None]


class NoTree(Exception):
    pass


class Variants(dict[Any, Variant]):
    """Copies by kind of call, with a count of changes by which a cached copy is recognized as outdated."""

    def __init__(self) -> None:
        super().__init__()
        # In a list, which the closure of `Kinds.finder` reads without an attribute look-up.
        self.changes = [0]

    def __setitem__(self, key: Any, variant: Variant) -> None:
        super().__setitem__(key, variant)
        self.changes[0] += 1

    def pop(self, key: Any, default: Any = None) -> Any:
        taken = super().pop(key, default)
        self.changes[0] += 1
        return taken

    def clear(self) -> None:
        super().clear()
        self.changes[0] += 1


class Kinds:
    def __init__(self) -> None:
        self.variants = Variants()
        self._signature: list[Callable[[Any], Any]] = [attrgetter("aval")]

    def separate_devices(self) -> None:
        # The aval alone doesn't show on which device an array is.
        self._signature[0] = attrgetter("aval", "sharding")

    def finder(self) -> Callable[[tuple[Any, ...]], Found]:
        """Return a function of a call's values that returns its arrays, the key of its kind, and the copy for it or
        None.

        It raises `NoTree` if the values can't be flattened or have no hash. It is a closure, which is fast.
        """
        variants, signature, changes = self.variants, self._signature, self.variants.changes
        nothing: tuple[Any, ...] = never, None, None, None, -1
        latest = nothing  # most calls are of the previous call's kind

        def find(values: tuple[Any, ...]) -> Found:
            nonlocal latest
            unpack, types, key, variant, seen = latest  # one read: another thread may replace it
            now = changes[0]
            if seen != now and variant is not None:  # it may be outdated; don't keep it alive
                latest = nothing
                unpack, types, key, variant, _ = nothing
            try:
                arrays = unpack(values)
                if arrays is not None and tuple(map(signature[0], arrays)) == types:
                    return arrays, key, variant
            except AttributeError:  # no array at a place of one
                pass
            try:
                arrays, structure = _flatten(values)
                types_now = tuple(map(signature[0], arrays))
            except Exception:  # not all of them are arrays
                arrays, types_now, key = self._mixed(values)
            else:
                if types_now == types and len(key) == _ALL_ARRAYS and structure == key[0]:
                    return arrays, key, variant
                key = structure, types_now
            variant = variants.get(key)
            if variant is not None:
                # One tuple, stored at once: other threads read it without a lock.
                latest = variant.unpack, types_now, key, variant, now
            return arrays, key, variant

        return find

    def _mixed(self, values: tuple[Any, ...]) -> tuple[list[Any], Any, Any]:
        try:
            leaves, structure = _flatten(values)
            arrays, others = separated(leaves)
            types = tuple(map(self._signature[0], arrays))
            key = structure, types, others
            # A setting without a hash must fail here, where the call still runs as written.
            hash(key)
        except Exception as error:  # unsortable keys or unhashable settings
            raise NoTree(str(error).partition(_LINE)[0]) from error
        return arrays, types, key


_block: Callable[[Any], Any] = vars(jax)["block_until_ready"]
_FASTER = 1.2  # least speedup; less isn't worth the memory of a program
Outcome = Literal["open", "trusted", "missed", "other settings"]


@dataclass(frozen=True, slots=True)
class Compared:
    result: Any = None  # of the eager run; None if the call is to run as written
    outcome: Outcome = "open"
    refusal: Refusal | None = None  # reason why the function stays eager


class Comparison:
    def __init__(self, original: FunctionType, parameters: Parameters, is_forced: bool) -> None:
        self._original, self._parameters, self._is_forced = original, parameters, is_forced

    def compare(self, variant: Variant, values: tuple[Any, ...], arrays: list[jax.Array]) -> Compared:
        """Run a call both ways and return the outcome.

        If another thread compares this copy, nothing runs and the outcome is `Compared()`: the call is to run as
        written.
        """
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
        _block((read, arrays))  # don't measure earlier work
        eager = partial(self._original, *args, **kwargs)
        both = run_both(eager, partial(variant.run, read, arrays), len(variant.eager))
        if isinstance(both.error, OtherSettings):
            return Compared(both.result, "other settings")
        if both.error is not None:
            return Compared(both.result, refusal=refusal_of(both.error))
        after = variant.guards.check()  # another thread may have changed what the call read
        if both.result is None or after is None or any(map(is_not, read, after)):
            return Compared(both.result)
        variant.note(both.eager, both.left, both.compiled)
        differs = difference(both.result, both.copy)
        refusal = unfit(values, both.result) or (Refusal(f"compiled, {differs}") if differs else None)
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


def unfit(values: Any, result: Any) -> Refusal | None:
    """Return a refusal if a call's result, or a container that it shares with the arguments, prevents compiling; else
    None.
    """
    given = jax.tree.leaves(result)
    if not given or any(type(leaf) not in ARRAYS for leaf in given):
        return Refusal("it returns something other than arrays")
    if shared_container(values, result):
        return Refusal("it returns a container from its arguments, or the same one twice", cure="return a new one")
    return None


@dataclass(slots=True)
class BothWays:
    result: Any = None  # of the eager run; None if it raised
    eager: float = 0.0  # seconds
    left: float = 0.0  # seconds from the eager return to its results
    copy: Any = None  # result of the compiled run
    compiled: float = 0.0
    error: Exception | None = None  # of the compiled run


def run_both(eager: Callable[[], Any], compiled: Callable[[], Any], earlier: int) -> BothWays:
    """Return results and times of a call run both ways, in alternating order, as the second finds warm caches.

    A function that only computes may run twice. If the eager run raises, the result is empty and the user's call raises
    again. `earlier` is the number of calls that ran both ways before; the first compiled run isn't counted, as JAX
    prepares later ones.
    """
    both = BothWays()
    order = ((True, False), (False, True))[earlier % 2] if earlier else (True, False, True)
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


_ULPS = 512  # of the largest number: the difference of reassociated sums of thousands of terms


def difference(eager: Any, compiled: Any) -> str:
    """Return the first difference of two results, in words; empty if they agree up to the order of sums."""
    before, structure = _flatten(eager)
    after, other = _flatten(compiled)
    if structure != other:
        return f"it returns {other} instead of {structure}"
    for one, two in zip(before, after, strict=True):
        for name in ("shape", "dtype", "weak_type", "sharding", "committed"):
            if getattr(one, name, None) != getattr(two, name, None):  # keys have no weak type
                what = name.replace("_", " ")
                return f"the {what} of a result is {getattr(two, name)} instead of {getattr(one, name)}"
        if not is_close(one, two):
            return "its results differ by more than another order of summation explains"
    return ""


def is_close(one: jax.Array, two: jax.Array) -> bool:
    if jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
        one, two = jax.random.key_data(one), jax.random.key_data(two)
    if not jnp.issubdtype(one.dtype, jnp.inexact):  # exact: 64 bits may not fit into a double
        return bool(np.array_equal(np.asarray(one), np.asarray(two)))
    tolerance = _ULPS * float(cast(Any, jnp.finfo(one.dtype)).eps)
    apart = difference_of(two, one)
    return apart.absolute == 0 or apart.relative <= tolerance


def shared_container(given: Any, result: Any) -> bool:
    """Return True if a result contains a mutable container of the arguments, or one twice. A compiled copy would return
    new ones.
    """
    returned = list(map(id, _containers(result)))
    return len(set(returned)) < len(returned) or not set(map(id, _containers(given))).isdisjoint(returned)


def _containers(tree: Any) -> list[Any]:
    containers: list[Any] = []

    def note(node: Any) -> bool:
        # Tuples don't count: they never change.
        is_object = hasattr(node, "__dict__") and not isinstance(node, type) and type(node) not in ARRAYS
        if isinstance(node, (list, dict)) or is_object:
            containers.append(node)
        return False

    jax.tree.leaves(tree, is_leaf=note)
    return containers
