"""Compiled copies: the kind of calls each is for, whether it gives the same as the function, and is worth having."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
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
_UNSURE = 9  # as many where the first few don't say yes: a busy machine makes one call in three several times as long
_LONG = 1.0  # seconds of eager calls that ran both ways: what takes so long isn't disturbed much
_SLOWER = 1.0  # times: what was compiled is given up below this
_DOUBTED = 3  # checks in a row that took longer than the eager calls did


@dataclass(slots=True, eq=False)
class Variant:
    """The compiled copy for one structure of arguments, their types, one choice of what is no array, one world."""

    guards: Guards  # hold what it reads
    run: Compiled  # takes the arrays that it reads, and those of the arguments
    compile_seconds: float  # what making it took
    call: Call  # what it was made for
    costs: CallCosts  # what calls like those take
    unpack: Unpack  # gives the arrays of arguments of its structure
    # whether arguments are like those of the proof beyond their tree; None where that says all
    fits: Callable[[Any, Any], bool] | None = None
    # (eager, compiled) seconds of the calls that ran both ways, with all that they compute
    eager: list[float] = field(default_factory=list[float])
    compiled: list[float] = field(default_factory=list[float])
    # seconds of the last compiled calls that were waited for
    checks: deque[float] = field(default_factory=lambda: deque(maxlen=_DOUBTED))
    is_trusted: bool = False  # whether calls run compiled alone
    is_doubted: bool = False  # whether it once was, and then took longer than eager calls
    comparing: Any = None

    @property
    def speedup(self) -> float:
        return median(self.eager) / median(self.compiled)

    @property
    def comparison_text(self) -> str:
        """Example: `4.1 × as fast: 12.3 ms → 3 ms`."""
        took = f"{duration_text(median(self.eager))} → {duration_text(median(self.compiled))}"
        return f"{factor_text(self.speedup)} as fast: {took}"

    def is_for(self, args: Any, kwargs: Any) -> bool:
        return self.fits is None or self.fits(args, kwargs)

    def note(self, eager: float, left: float, compiled: float) -> None:
        """A call ran both ways, and took so many seconds each; `left` is how long it went on after it returned."""
        self.costs.note_both(eager, left, compiled)
        self.eager.append(eager)
        self.compiled.append(compiled)

    def verdict(self, faster: float) -> bool | None:
        """Whether it is to stay, as so many times as fast; None as long as the calls that ran both ways don't say."""
        if len(self.eager) < _COMPARED:
            return None
        least = _SLOWER if self.is_doubted else faster
        is_sure = self.speedup > 1.5 * least or len(self.eager) >= _UNSURE or sum(self.eager) > _LONG
        return self.speedup >= least if is_sure else None

    def check(self, seconds: float) -> bool:
        """A compiled call took so long; whether it still seems to be faster than eager ones.

        Eager calls aren't run for that. Where compiled ones take longer than those did, the machine may be busier now:
        only calls that run both ways tell.
        """
        self.checks.append(seconds)
        return len(self.checks) < _DOUBTED or min(self.checks) <= self.costs.eager_seconds()

    def doubt(self) -> None:
        """The next calls run both ways again."""
        self.eager, self.compiled, self.is_doubted, self.is_trusted = [], [], True, False
        self.checks.clear()


_flatten: Callable[[Any], tuple[list[Any], Any]] = cast(Any, jax.tree).flatten
_LINE = "\n"
_ALL_ARRAYS = 2  # parts of a key: structure and types
Found = tuple[list[Any], Any, Variant | None]


class NoTree(Exception):
    """JAX takes the arguments for no tree, with its reason."""


class Variants(dict[Any, Variant]):
    """The copies by kind, and how often one was put or taken: who remembers one looks whether it is still there."""

    def __init__(self) -> None:
        super().__init__()
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
        """From now on calls are of different kinds where their arrays lie in different places."""
        self._signature[0] = attrgetter("aval", "sharding")

    def finder(self) -> Callable[[tuple[Any, ...]], Found]:
        """What gives the arrays of a call, its kind as a key, and the copy for it.

        A closure: its names are looked up faster than attributes. It raises `NoTree`.
        """
        variants, signature, changes = self.variants, self._signature, self.variants.changes
        nothing: tuple[Any, ...] = never, None, None, None, -1
        latest = nothing  # most calls are of the kind of the one before

        def find(values: tuple[Any, ...]) -> Found:
            nonlocal latest
            unpack, types, key, variant, seen = latest  # at once: another thread may put another there
            now = changes[0]
            if seen != now and variant is not None:  # it may be gone, and nothing else may hold it
                latest = nothing
                unpack, types, key, variant, _ = nothing
            try:
                arrays = unpack(values)
                if arrays is not None and tuple(map(signature[0], arrays)) == types:
                    return arrays, key, variant
            except AttributeError:  # no array where one was
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
                latest = variant.unpack, types_now, key, variant, now
            return arrays, key, variant

        return find

    def _mixed(self, values: tuple[Any, ...]) -> tuple[list[Any], Any, Any]:
        """The arrays of a call that are not all of its arguments, their types, and the call's kind."""
        try:
            leaves, structure = _flatten(values)
            arrays, others = separated(leaves)
            types = tuple(map(self._signature[0], arrays))
            key = structure, types, others
            hash(key)
        except Exception as error:  # keys that can't be sorted, settings that can't be hashed
            raise NoTree(str(error).partition(_LINE)[0]) from error
        return arrays, types, key


_block: Callable[[Any], Any] = vars(jax)["block_until_ready"]
_FASTER = 1.2  # times: less isn't worth a program's memory
# What follows for the copy: nothing yet; calls run compiled; it is dropped, as what it read has changed, or a setting.
Outcome = Literal["open", "trusted", "missed", "other settings"]


@dataclass(frozen=True, slots=True)
class Compared:
    result: Any = None  # as it was written; None where it is to run by itself
    outcome: Outcome = "open"  # what follows for the copy,
    refusal: Refusal | None = None  # and why the function stays eager, if that follows


class Comparison:
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


def _is_same(before: tuple[Any, ...], after: tuple[Any, ...] | None) -> bool:
    return after is not None and all(one is two for one, two in zip(before, after, strict=True))


def unfit(values: Any, result: Any) -> Refusal | None:
    """Why a call like this can't be compiled, by what came in and out."""
    given = jax.tree.leaves(result)
    if not given or any(type(leaf) not in ARRAYS for leaf in given):
        return Refusal("it returns something other than arrays")
    if shared_container(values, (), result):
        return Refusal("it returns a container that it was given, or one twice", cure="return a new one")
    return None


@dataclass(slots=True)
class BothWays:
    result: Any = None  # (result, eager) as it was written, with its seconds; None where it raised
    eager: float = 0.0
    left: float = 0.0  # those seconds of it that it went on after it had returned
    copy: Any = None  # (copy, compiled) compiled, with its seconds
    compiled: float = 0.0
    error: Exception | None = None  # what the compiled call raised


def run_both(eager: Callable[[], Any], compiled: Callable[[], Any], turn: int) -> BothWays:
    """Run a call both ways, one and then the other by turns: the second finds what it needs in the caches.

    A function that only computes may run twice, so where it raises nothing is kept of it: the user's own call does the
    same again. `turn` calls ran both ways before. The very first compiled call isn't counted: JAX prepares for others.
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


_ULPS = 512  # of the largest number of an array: what reassociated sums of some thousand terms differ by


def difference(eager: Any, compiled: Any) -> str:
    """How two results differ, in words; empty where they are the same to a user."""
    before, structure = _flatten(eager)
    after, other = _flatten(compiled)
    if structure != other:
        return f"it gives {other} in place of {structure}"
    for one, two in zip(before, after, strict=True):
        for name in ("shape", "dtype", "weak_type", "sharding", "committed"):
            if getattr(one, name, None) != getattr(two, name, None):  # a key has no weak type
                return (
                    f"the {name.replace('_', ' ')} of a result is {getattr(two, name)} in place of {getattr(one, name)}"
                )
        if not is_close(one, two):
            return "its numbers differ by more than the order of sums explains"
    return ""


def is_close(one: jax.Array, two: jax.Array) -> bool:
    """Whether two arrays of one dtype are equal but for rounding."""
    if jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
        one, two = jax.random.key_data(one), jax.random.key_data(two)
    if not jnp.issubdtype(one.dtype, jnp.inexact):  # 64 bits of which may not fit into a double
        return bool(np.array_equal(np.asarray(one), np.asarray(two)))
    tolerance = _ULPS * float(cast(Any, jnp.finfo(one.dtype)).eps)
    apart = difference_of(two, one)
    return apart.absolute == 0 or apart.relative <= tolerance


def shared_container(args: Any, kwargs: Any, result: Any) -> bool:
    """Whether a result has a container of the arguments', or one twice: a compiled copy would give new ones."""
    seen = {id(container) for container in _containers((args, kwargs))}
    for container in _containers(result):
        if id(container) in seen:
            return True
        seen.add(id(container))
    return False


def _containers(tree: Any) -> list[Any]:
    containers: list[Any] = []

    def note(node: Any) -> bool:
        is_object = hasattr(node, "__dict__") and not isinstance(node, type) and type(node) not in ARRAYS
        if isinstance(node, (list, dict)) or is_object:
            containers.append(node)
        return False

    jax.tree.leaves(tree, is_leaf=note)
    return containers
