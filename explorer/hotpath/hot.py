"""One function's way from eager to compiled: counted, proven, compiled beside the program, compared, and measured on.

    counting ── often and long enough ─▶ compiling ─▶ comparing ── three calls agree, 1.2 × faster ─▶ compiled
        └──────────── not proven, not the same, not faster, or it raised: eager, with the reason ◀──────────┘

Whatever happens, a call gives the user what the function as it was written gives.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median
from threading import Lock
from time import perf_counter
from types import FunctionType
from typing import Any, cast

import jax

from explorer._jax import is_top_level
from explorer._jax.suppress_recording import suppress_recording
from explorer.capture.safe_reading import kind_of
from explorer.errors import NotRecordedError
from explorer.hotpath.arrays import ARRAYS
from explorer.hotpath.captured import capture_of, struct_of
from explorer.hotpath.compiled import Call, NotCompiled, compiled_copy
from explorer.hotpath.guards import Guards
from explorer.hotpath.proof import Proof, Refusal, prove
from explorer.hotpath.proof.facts import check_of
from explorer.hotpath.report import Journal, Times
from explorer.hotpath.results import order_of
from explorer.hotpath.same_result import difference, shared_container
from explorer.hotpath.swap import original_of, restore, swap
from explorer.model.capture import Capture
from explorer.model.results.hot_paths import HotState
from explorer.model.units import count_text, duration_text, factor_text

_jax: Any = jax  # for what has no types
_PLAIN = frozenset((bool, int, float, complex, str, bytes, type(None)))
_SIGNED = frozenset((float, complex))  # whose zeros are equal and not the same
_COMPARED = 3  # calls that run both ways
_FASTER = 1.2  # times: less isn't worth a program's memory
_VARIANTS = 8  # structures, static values and worlds of one function that are compiled; more run eagerly
_SAMPLES = 64  # seconds of calls that ran both ways, of all variants


@dataclass(frozen=True, slots=True)
class Options:
    """When a function is compiled.

    Args:
        calls: So many, and
        seconds: so long in all, before.
        submit: What runs a compile: beside the program, or at once.
        journal: Keeps each step.
        is_background: Whether compiles run beside the program.
        is_forced: Whether a copy serves though it isn't faster, as long as it gives the same.
        mode: How much is done for a function: `default`, `reduce-overhead`, `max-autotune`.
    """

    calls: int
    seconds: float
    submit: Callable[[Callable[[], None]], object]
    journal: Journal = field(default_factory=Journal)
    is_background: bool = False
    is_forced: bool = False
    mode: str = "default"


@dataclass(slots=True, eq=False)
class Variant:
    """The compiled copy for one structure of arguments, one choice of what is no array, one world.

    Args:
        guards: Hold what it reads.
        run: Takes the arrays that it reads, and those of the arguments.
        fits: Whether arguments are like those of the proof beyond their tree; None where that says all.
        compile_seconds: What making it took.
        call, arrays: What it was made for.
        eager, compiled: Seconds of the calls that ran both ways.
    """

    guards: Guards
    run: Callable[[tuple[jax.Array, ...], list[jax.Array]], Any]
    compile_seconds: float
    call: Call
    arrays: tuple[jax.ShapeDtypeStruct, ...]
    fits: Callable[[Any, Any], bool] | None = None
    eager: list[float] = field(default_factory=list[float])
    compiled: list[float] = field(default_factory=list[float])
    is_trusted: bool = False


class HotFunction:
    """A function that is called often.

    Args:
        function: The user's. While this is at work it runs `call` in its place.
        options: When to compile.

    Attributes:
        state: How far it is.
        refusal: Why it stays eager.
        calls: How often it was called at top level, by how.
        eager_seconds: What calls took before it was compiled.
        misses: How often guards held a compiled call back, with what had changed.
        times: How long its calls took.
        compile_seconds: What tracing and compiling it took, all variants together.
        is_background: Whether that was beside the program.
    """

    def __init__(self, function: FunctionType, options: Options) -> None:
        self.function = function
        self.original = original_of(function)
        self.name = function.__qualname__
        self.state: HotState = "counting"
        self.refusal: Refusal | None = None
        self.calls = {"eager": 0, "compiled": 0}
        self.eager_seconds = 0.0
        self.misses: dict[str, int] = {}
        self.variants: dict[Any, Variant] = {}
        self.times = Times()
        self.compile_seconds = 0.0
        self.is_background = options.is_background
        self._both: tuple[deque[float], deque[float]] = deque(maxlen=_SAMPLES), deque(maxlen=_SAMPLES)
        self._options = options
        self._pending: set[Any] = set()
        self._lock = Lock()

    def watch(self) -> None:
        """From now on its calls come by here."""
        swap(self.function, self._call())

    def both_ways(self) -> tuple[list[float], list[float]]:
        """Seconds of the calls that ran both ways: as written, and compiled; the last few of all variants."""
        return list(self._both[0]), list(self._both[1])

    def leave(self, refusal: Refusal) -> None:
        """It runs as it was written, from now on."""
        self.state, self.refusal = "eager", refusal
        self.variants.clear()
        restore(self.function)
        self._options.journal.add("eager", self, refusal.reason)

    def release(self) -> None:
        """It runs as it was written; what was learned stays, and serves again once it is watched again."""
        if self.state != "eager":
            restore(self.function)
            self._options.journal.add("restored", self)

    def capture(self) -> Capture:
        """What the compiler made of it, for the calls that it was compiled for last.

        Raises:
            NotRecordedError: It isn't compiled, or not any more.
            ExploreError: It compiles no more.
        """
        variants = list(self.variants.values())
        if not variants:
            why = f": {self.refusal.reason}" if self.refusal is not None else ""
            raise NotRecordedError(f"{self.name} isn't compiled{why}.\n  Hint: ex.explore(f, x) compiles any function.")
        with suppress_recording():
            return capture_of(self.original, variants[-1].call, variants[-1].arrays)

    def _call(self) -> Callable[..., Any]:
        """What runs in the function's place. A closure: its names are found faster than attributes."""
        original, variants, arrays_are = self.original, self.variants, ARRAYS
        flatten: Callable[[Any], tuple[list[Any], Any]] = _jax.tree.flatten
        counted, calls, add = self._counted, self.calls, self.times.add

        def call(*args: Any, **kwargs: Any) -> Any:
            if not is_top_level():
                return original(*args, **kwargs)
            try:
                leaves, structure = flatten((args, kwargs))
                arrays: list[Any] | None = leaves
                for leaf in leaves:
                    if type(leaf) not in arrays_are:
                        arrays, structure = _separated(leaves, structure)
                        break
                variant = variants.get(structure) if arrays is not None else None
            except Exception as error:  # keys that can't be sorted, settings that can't be hashed
                leaves, structure, arrays, variant = [], None, None, None
                self.leave(Refusal(f"its arguments are no tree for JAX: {str(error).splitlines()[0]}"))
            if variant is None or arrays is None or not variant.is_trusted:
                return counted(args, kwargs, arrays, structure, len(leaves))
            read = variant.guards.check()
            if read is None or (variant.fits is not None and not variant.fits(args, kwargs)):
                return self._missed(variant, structure, args, kwargs)
            begun = perf_counter()
            try:
                result = variant.run(read, arrays)
                add(begun, perf_counter(), "compiled")
                calls["compiled"] += 1
                return result
            except Exception as error:
                failure = error
            # Not in the handler: the user's error would have ours as its context.
            return self._failed(failure, args, kwargs)

        return call

    # Calls that aren't compiled yet -----------------------------------------------------------------------------------

    def _counted(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], arrays: list[jax.Array] | None, key: Any, count: int
    ) -> Any:
        """A call of a kind that isn't compiled, or not trusted yet."""
        if not self.times.count:
            self._options.journal.add("detected", self)
        self.calls["eager"] += 1
        variant = self.variants.get(key) if arrays is not None else None
        begun = perf_counter()
        if variant is not None and self._lock.acquire(blocking=False):
            try:
                return self._compared(variant, args, kwargs, arrays or [])
            finally:
                self._lock.release()
                self.times.add(begun, perf_counter(), "both")
        result = self.original(*args, **kwargs)
        ended = perf_counter()
        self.eager_seconds += ended - begun
        try:
            self._learn(args, kwargs, result, arrays, key, count)
        except Exception as error:  # a fault of ours is none of the user's
            self.leave(Refusal(f"looking at it failed: {error!r:.200}"))
        self.times.add(begun, perf_counter(), "eager")  # with the compile, where the program waits for it
        return result

    def _learn(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, arrays: list[jax.Array] | None, key: Any,
        count: int,
    ) -> None:  # fmt: skip
        """After an eager call: whether it can be compiled, and whether it is time."""
        if self.state == "eager" or key in self._pending:
            return
        refusal = unfit(arrays, args, kwargs, result)
        if refusal is not None:
            return self.leave(refusal)
        if sum(self.calls.values()) < self._options.calls or self.eager_seconds < self._options.seconds:
            return None
        if len(self.variants) >= _VARIANTS:
            return self.leave(Refusal(f"it is called in more than {_VARIANTS} ways", cure=_WAYS))
        proof = prove(self.original, args, kwargs)
        if isinstance(proof, Refusal):
            return self.leave(proof)
        self._pending.add(key)
        self.state = "compiling" if self.state == "counting" else self.state
        calls = count_text(sum(self.calls.values()), "call")
        self._options.journal.add("trigger", self, calls, self.eager_seconds)
        self._options.submit(lambda: self._compile(proof, key, arrays or [], args, kwargs, count))
        return None

    def _compile(
        self, proof: Proof, key: Any, arrays: list[jax.Array], args: tuple[Any, ...], kwargs: dict[str, Any], count: int
    ) -> None:
        """Make the compiled copy, and run it once so that the first call that counts doesn't compile."""
        begun = perf_counter()
        self._options.journal.add("compile", self)
        try:
            structure, static = _parts(key)
            call = Call(self.original, structure, static, count, order_of((args, kwargs)))
            guards, run = compiled_copy(call, proof, arrays)
            read = guards.check()
            if read is None:
                self._pending.discard(key)
                return
            jax.block_until_ready(run(read, arrays))
        except NotCompiled as error:
            return self.leave(Refusal(f"{error}"))
        except Exception as error:
            return self.leave(refusal_of(error))
        took = perf_counter() - begun
        self.compile_seconds += took
        shapes = tuple(map(struct_of, arrays))
        self.variants[key] = Variant(guards, run, took, call, shapes, check_of(proof.facts))
        self._pending.discard(key)
        if self.state == "compiling":
            self.state = "comparing"
        self._options.journal.add("compiled", self, seconds=took)
        return None

    def _compared(
        self, variant: Variant, args: tuple[Any, ...], kwargs: dict[str, Any], arrays: list[jax.Array]
    ) -> Any:
        """A call both ways; the user gets what the function as it was written gives."""
        read = variant.guards.check()
        if read is None or (variant.fits is not None and not variant.fits(args, kwargs)):
            return self.original(*args, **kwargs)
        compiled: Any = None
        is_first = bool(len(variant.eager) % 2)  # by turns, as the second of two finds what it needs in the caches
        if is_first:
            compiled = self._tried(variant, read, arrays)
        result = self._timed(variant.eager, lambda: self.original(*args, **kwargs))
        if not is_first:
            compiled = self._tried(variant, read, arrays)
        if self.state == "eager":
            return result
        self._both[0].append(variant.eager[-1])
        self._both[1].append(variant.compiled[-1])
        differs = difference(result, compiled)
        if differs:
            self.leave(Refusal(f"compiled, {differs}"))
        elif len(variant.eager) >= _COMPARED:
            self._judge(variant)
        return result

    def _tried(self, variant: Variant, read: tuple[jax.Array, ...], arrays: list[jax.Array]) -> Any:
        """What the compiled copy gives; where it raises, the function stays as it was."""
        try:
            return self._timed(variant.compiled, lambda: variant.run(read, arrays))
        except Exception as error:
            self.leave(refusal_of(error))

    def _timed(self, seconds: list[float], call: Callable[[], Any]) -> Any:
        begun = perf_counter()
        result: Any = _jax.block_until_ready(call())
        seconds.append(perf_counter() - begun)
        return result

    def _judge(self, variant: Variant) -> None:
        eager, compiled = median(variant.eager), median(variant.compiled)
        if eager < _FASTER * compiled and not self._options.is_forced:
            self.leave(Refusal(f"compiled it is {eager / compiled:.2f}× as fast, which isn't worth it"))
            return
        variant.is_trusted = True
        self.state = "compiled"
        took = f"{duration_text(eager)} → {duration_text(compiled)}"
        self._options.journal.add("speedup", self, f"{factor_text(eager / compiled)} as fast: {took}")

    # Calls that compiled code doesn't serve ---------------------------------------------------------------------------

    def _missed(self, variant: Variant, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Something that was read has changed: the call runs as it was written."""
        changed = variant.guards.changed()
        name = changed.name if changed is not None else _OTHER_ARGUMENTS
        self.misses[name] = self.misses.get(name, 0) + 1
        self.calls["eager"] += 1
        self._options.journal.add("miss", self, name)
        if changed is None:
            pass  # the copy is as good as before for arguments like those that it was made for
        elif self.variants.get(key) is variant and self.misses[name] <= _VARIANTS:
            del self.variants[key]  # it may be compiled anew, for the world as it is now
        elif self.misses[name] > _VARIANTS:
            self.leave(Refusal(f"`{name}` is another at each call", cure=f"pass `{name}` as an argument"))
        begun = perf_counter()
        try:
            return self.original(*args, **kwargs)
        finally:
            self.times.add(begun, perf_counter(), "missed")

    def _failed(self, error: Exception, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """A compiled call raised: the function is what it was, and says what it has to say itself."""
        self.leave(refusal_of(error))
        return self.original(*args, **kwargs)


def _parts(key: Any) -> tuple[Any, tuple[Any, ...]]:
    """The structure of a call, and what of it is no array."""
    return cast(tuple[Any, tuple[Any, ...]], key if isinstance(key, tuple) else (key, ()))


_OTHER_ARGUMENTS = "the order of a dict, or the class of a setting, that it is given"
_WAYS = "fewer kinds of arguments: numbers that change as arrays, sizes padded to a few"


def _separated(leaves: list[Any], structure: Any) -> tuple[list[Any] | None, Any]:
    """The arrays among some leaves, and the structure with all that is no array; None where that can't be compared."""
    static: list[tuple[int, type[Any], Any, str]] = []
    for at, leaf in enumerate(leaves):
        kind = kind_of(leaf)
        if kind in ARRAYS:
            continue
        if kind not in _PLAIN and not isinstance(leaf, (FunctionType, type)):
            return None, structure
        static.append((at, kind, leaf, repr(leaf) if kind in _SIGNED else ""))  # 0.0 and -0.0 are equal
    return [leaf for leaf in leaves if type(leaf) in ARRAYS], (structure, tuple(static))


def unfit(arrays: list[Any] | None, args: Any, kwargs: Any, result: Any) -> Refusal | None:
    """Why a call like this can't be compiled, by what came in and out."""
    if arrays is None:
        kinds = {type(leaf).__name__ for leaf in jax.tree.leaves((args, kwargs)) if type(leaf) not in ARRAYS}
        return Refusal(f"it is given objects of {', '.join(sorted(kinds))}", cure="arrays of JAX's: jnp.asarray")
    given = jax.tree.leaves(result)
    if not given or any(type(leaf) not in ARRAYS for leaf in given):
        return Refusal("it returns something other than arrays")
    if shared_container(args, kwargs, result):
        return Refusal("it returns a container that it was given, or one twice", cure="return a new one")
    return None


def refusal_of(error: Exception) -> Refusal:
    """Why a trace or a compiled call raised."""
    return Refusal(f"compiled it raises {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
