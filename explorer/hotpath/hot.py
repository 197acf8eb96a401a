"""One function's way from eager to compiled: counted, proven, compiled beside the program, compared, and measured on.

    counting ── often and long enough ─▶ compiling ─▶ comparing ── three calls agree, 1.2 × faster ─▶ compiled
        └──────────── not proven, not the same, not faster, or it raised: eager, with the reason ◀──────────┘

Whatever happens, a call gives the user what the function as it was written gives. What isn't compiled runs in the
user's own frames (`swap`), so nothing here stands in a traceback; and whatever fails here, the call goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from types import FunctionType
from typing import Any, Literal

import jax

from explorer._jax import is_top_level, local_settings, shows_compiled, with_settings
from explorer._jax.calls import suppress_recording
from explorer.errors import NotRecordedError
from explorer.hotpath.arguments import Call, parameters_of, unfollowed
from explorer.hotpath.comparison import Comparison, Kinds, NoTree, Variant
from explorer.hotpath.compiled import (
    NotCompiled,
    Origin,
    OtherSettings,
    TooSmall,
    XlaOptions,
    call_stack,
    capture_of,
    compiled_copy,
)
from explorer.hotpath.padded import PaddedCopies
from explorer.hotpath.proof import Proof, Refusal, check_of, prove
from explorer.hotpath.proof.values import Read, refusal_of
from explorer.hotpath.swap import NotSwappable, entered_by, original_of, restore, swap
from explorer.hotpath.timing import Clock, Journal, Times, Trigger
from explorer.model.capture import Capture
from explorer.model.results.hot_paths import HotState
from explorer.model.units import count_text

Mode = Literal["default", "reduce-overhead", "max-autotune"]


@dataclass(frozen=True, slots=True)
class Options:
    calls: int  # so many, and
    seconds: float  # so long in all, before
    submit: Callable[[Callable[[], None]], object]  # what runs a compile: beside the program, or at once
    journal: Journal = field(default_factory=Journal)  # keeps each step
    is_background: bool = False  # whether compiles run beside the program
    is_forced: bool = False  # whether a copy serves though it isn't faster, as long as it gives the same
    mode: Mode = "default"  # how much is done for a function: `default`, `reduce-overhead`, `max-autotune`
    # Sets of XLA's options, of which the fastest is kept; none for XLA's own. Arguments are never donated: that nobody
    # else holds an array can't be proven in Python, where a count of references counts borrowed ones too.
    xla: Sequence[XlaOptions] = ()


_jax: Any = jax  # for what has no types
_VARIANTS = 8  # kinds of arguments and worlds of one function that are compiled; more run eagerly
_OTHERS = 64  # eager calls, after as many kinds of calls were compiled as may be
_CHECKED = 8 * 17  # of so many compiled calls, one is waited for and timed
_TIMED = 17  # of so many calls of a quick function, one is timed; JAX runs ahead by 32, of which it is no part
_SETTLED = 8 * _CHECKED  # eager calls of a quick function, after which one of `_CHECKED` is timed
# Seconds of a call: to look at it and time it takes 5 µs, and XLA's threads fall asleep meanwhile, which after single
# operations of some 100 µs makes the next one half as long again.
_QUICK = 1e-3
_PATIENT = 30  # times as long a single operation waits: it costs 40 ms to compile, and mostly gains nothing
_SETTINGS = "a setting of JAX's"
_GO_ON: tuple[Any, Any] = (None, None)  # says to a call's entrance: run as you were written


class HotFunction:
    """A function that is called often."""

    def __init__(self, function: FunctionType, options: Options) -> None:
        self.function = function
        self.original = original_of(function)
        self.name = function.__qualname__
        self.state: HotState = "counting"
        self.refusal: Refusal | None = None
        self.misses: dict[str, int] = {}
        self.compile_seconds = 0.0
        self.is_background = options.is_background
        self.trigger = Trigger(options.calls, options.seconds)
        self.clock = Clock()
        self._options, self._parameters = options, parameters_of(self.original.__code__)
        self._kinds = Kinds()
        self._padded = PaddedCopies(self, options, self._parameters)
        self._comparison = Comparison(self.original, self._parameters, options.is_forced)
        self._pending: set[Any] = set()
        self._changes: dict[Any, Read] = {}  # what a guard saw changed, by kinds of calls that aren't compiled now
        # Of eager calls those too that will go on unseen before the next one that is looked at.
        self._calls = {"eager": 0, "compiled": 0}
        self._skip, self._stands_for = [0], 1

    def ran_before(self, calls: int, seconds: float) -> None:
        """It ran so often, and so long, before it was a function: as statements of a loop."""
        self._calls["eager"] += calls
        self.clock.eager_seconds += seconds

    def watch(self) -> None:
        """From now on it is asked at its calls."""
        try:
            swap(self.function, self.entrance(), self)
        except NotSwappable as error:
            self.leave(Refusal(f"its code can't be watched: {error}"))

    @property
    def calls(self) -> dict[str, int]:
        """How often it was called at top level, by how."""
        return {"eager": self._calls["eager"] - self._skip[0], "compiled": self._calls["compiled"]}

    @property
    def variants(self) -> dict[Any, Variant]:
        return self._kinds.variants

    @property
    def is_undecided(self) -> bool:
        return self.state not in ("eager", "compiled")

    @property
    def times(self) -> Times:
        self.clock.settle()
        return self.clock.times

    def leave(self, refusal: Refusal) -> None:
        """It runs as it was written, from now on."""
        if self.state == "eager":
            return
        self._restore()  # first: an interrupt may come after any line
        self.state, self.refusal = "eager", refusal
        for variant in list(self.variants.values()):
            variant.is_trusted = False
        self.variants.clear()
        self._changes.clear()
        self._options.journal.add("eager", self, refusal.reason)

    def release(self) -> None:
        """It runs as it was written; what was learned stays, and serves again once it is watched again."""
        if self._restore():
            self._options.journal.add("restored", self)

    def _restore(self) -> bool:
        """Whether it was watched; it isn't any more."""
        code = self.function.__code__
        is_watched = entered_by(code) is self
        if is_watched:
            restore(self.function, code)
        return is_watched

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
            return capture_of(self.original, variants[-1].call, variants[-1].call.arrays)

    def entrance(self) -> Callable[..., tuple[Any, Any]]:
        """What is asked at each call, with the values of all parameters. A closure: its names are found fast.

        It gives the result and None; or None, and what must live as long as the call does, which runs as it was
        written.
        """
        calls, skip = self._calls, self._skip
        find, handed = self._kinds.finder(), self._parameters.handed

        def enter(*values: Any) -> tuple[Any, Any]:
            if skip[0] > 0:  # first: quick calls that stay as they are take no notice of anything
                skip[0] -= 1
                return _GO_ON
            if not is_top_level() or shows_compiled():
                return _GO_ON
            try:
                arrays, key, variant = find(values)
            except NoTree as error:
                self.leave(Refusal(f"its arguments are no tree for JAX: {error}"))
                return _GO_ON
            if variant is None or not variant.is_trusted:
                return self._eager(values, arrays, key)
            read = variant.guards.check()
            if read is None or (variant.fits and not variant.fits(*handed(values))):
                return self._missed(variant, key)
            count = calls["compiled"] = calls["compiled"] + 1
            try:
                if count < _CHECKED or not count % _TIMED:
                    return self._timed(variant, read, arrays, is_checked=not count % _CHECKED), None
                return variant.run(read, arrays), None
            except Exception as error:
                failure = error
            return self._failed(failure, key)  # not in the handler: the user's error would have ours as its context

        return enter

    # Calls that aren't compiled yet -----------------------------------------------------------------------------------

    def _eager(self, values: tuple[Any, ...], arrays: list[Any], key: Any) -> tuple[Any, Any]:
        """A call of a kind that isn't compiled, or not trusted yet."""
        begun = perf_counter()
        if not any(self._calls.values()):
            self._options.journal.add("detected", self)
        self._calls["eager"] += 1
        try:
            self.clock.settle()
            if self._is_time(key):
                self._learn(values, key)
            elif len(self.variants) >= _VARIANTS and key not in self.variants and self.state != "eager":
                self._padded.serve(values, arrays, key)
            variant = self.variants.get(key)
            if variant is not None and variant.is_trusted:  # it is padded, and these sizes are new
                return self._served(variant, values, arrays, key)
            result = self._compared(variant, values, arrays, key) if variant is not None else None
        except Exception as error:  # a fault of ours is none of the user's
            self.leave(Refusal(f"looking at it failed: {error!r:.200}"))
            result = None
        if result is None:
            is_before = key not in self._pending and key not in self.variants
            return None, self.clock.begin("eager", begun, self._stood_for(), hash(key) if is_before else None)
        self.clock.times.add(begun, perf_counter(), "both")
        return result, None

    def _served(self, variant: Variant, values: tuple[Any, ...], arrays: list[Any], key: Any) -> tuple[Any, Any]:
        """The first call at some sizes that a trusted copy serves."""
        read = variant.guards.check()
        if read is None or not variant.is_for(*self._parameters.handed(values)):
            self._note_miss(variant, key)
            return None, self.clock.begin("missed")
        self._calls["eager"] -= 1
        self._calls["compiled"] += 1
        try:
            return self._timed(variant, read, arrays, is_checked=False), None
        except Exception as error:
            failure = error
        return self._failed(failure, key)

    def _stood_for(self) -> int:
        """For how many calls the one that is timed now stands; and whether the next ones go on unseen."""
        stands_for, self._stands_for = self._stands_for, 1
        calls = self.calls["eager"]
        if calls > _CHECKED and not self.variants and self.clock.eager_seconds < _QUICK * calls:
            every = _CHECKED if self.trigger.is_waiting or calls > _SETTLED else _TIMED
            self._calls["eager"] += every - 1
            self._skip[0], self._stands_for = every - 1, every
        return stands_for

    def _is_time(self, key: Any) -> bool:
        before = sum(self.calls.values()) - 1
        if (
            self.state == "eager"
            or key in self.variants
            or not self.trigger.is_time(hash(key), before, self.clock.eager_seconds)
        ):
            return False
        if len(self.variants) + len(self._pending) >= _VARIANTS:
            self._are_too_many()
            return False
        return key not in self._pending and not self.trigger.must_wait(self, before)

    def _are_too_many(self) -> None:
        """Calls of so many kinds are compiled that others aren't. It ends where those are most."""
        if self.calls["eager"] > _OTHERS + 2 * self.calls["compiled"] and not self._padded.is_any:
            why = f", and can't be padded: {self._padded.why_not}" if self._padded.why_not else ""
            self.leave(Refusal(f"it is called in more than {_VARIANTS} ways{why}", cure=_WAYS))

    def _learn(self, values: tuple[Any, ...], key: Any) -> None:
        refusal = unfollowed(values, self.original.__code__.co_varnames)
        args, kwargs = self._parameters.handed(values)
        proof = refusal or prove(self.original, args, kwargs)
        if isinstance(proof, Refusal):
            return self.leave(proof)
        if not self.variants and jax.device_count() > 1:  # where arrays lie is told apart as well
            self._kinds.separate_devices()
        calls = count_text(sum(self.calls.values()) - 1, "call")
        self._options.journal.add("trigger", self, calls, self.clock.eager_seconds)
        settings, call = local_settings(), Call(self.original, self._parameters, values)
        origin = Origin(call_stack(self), self._changes.pop(key, None))
        try:
            self._pending.add(key)
            if self.state == "counting":
                self.state = "compiling"
            self._options.submit(lambda: self._compile(proof, key, call, settings, origin))
        except BaseException:  # interrupted before it was handed over, or while waiting
            self._end_pending(key)
            raise
        return None

    def _end_pending(self, key: Any) -> None:
        self._pending.discard(key)
        if self.state == "compiling":
            self.state = "comparing" if self.variants else "counting"

    def _compile(self, proof: Proof, key: Any, call: Call, settings: Any, origin: Origin) -> None:
        """Make the compiled copy, for the settings of the thread that the call was in."""
        begun = perf_counter()
        try:
            with with_settings(settings):
                guards, run = compiled_copy(call, proof, self._options.xla, origin, self._approve)
            took = perf_counter() - begun
            self.compile_seconds += took
            if self.state != "eager":
                call.forget()
                self.variants[key] = Variant(
                    guards, run, took, call, self.clock.costs_of(hash(key)), call.unpacker(), check_of(proof.facts)
                )
                self._options.journal.add("compiled", self, seconds=took)
        except TooSmall:
            self.trigger.wait(_PATIENT * self._options.seconds)
        except NotCompiled as error:
            self.leave(Refusal(f"{error}"))
        except Exception as error:
            self.leave(refusal_of(error))
        finally:
            self._end_pending(key)

    def _approve(self, operations: int) -> None:
        """Its copy is about to be compiled, of so many operations."""
        if (
            operations <= 1
            and not self._options.is_forced
            and self.clock.eager_seconds < _PATIENT * self._options.seconds
        ):
            raise TooSmall
        self._options.journal.add("compile", self)

    def _compared(self, variant: Variant, values: tuple[Any, ...], arrays: list[jax.Array], key: Any) -> Any:
        """A call both ways: what the function as it was written gives; None where it is to run by itself."""
        compared = self._comparison.compare(variant, values, arrays)
        if compared.outcome == "missed":
            self._note_miss(variant, key)
        elif compared.outcome == "other settings":
            self._hold_back(variant.guards.retyped() or _SETTINGS, variant, key)
        elif compared.refusal is not None:
            if not self._padded.give_up(variant, compared.refusal.reason):
                self.leave(compared.refusal)
        elif compared.outcome == "trusted":
            variant.is_trusted = True
            self.state = "compiled"
            self._options.journal.add("speedup", self, variant.comparison_text)
        return compared.result

    # Calls that compiled code serves, or did until now ----------------------------------------------------------------

    def _timed(self, variant: Variant, read: Any, arrays: list[jax.Array], is_checked: bool) -> Any:
        """A compiled call that is timed; one that is checked is waited for, with nothing before it in the queue."""
        if is_checked:
            _jax.block_until_ready((read, arrays))
        begun = perf_counter()
        result = variant.run(read, arrays)
        if is_checked:
            _jax.block_until_ready(result)
        ended = perf_counter()
        stands_for = 1 if self._calls["compiled"] <= _CHECKED else _TIMED
        self.clock.times.count += stands_for - 1
        self.clock.times.add(begun, ended, "compiled")
        variant.costs.calls += stands_for
        if not is_checked:
            return result
        variant.costs.note_compiled(ended - begun)
        if not variant.check(ended - begun) and not self._options.is_forced:
            variant.doubt()
        return result

    def _missed(self, variant: Variant, key: Any) -> tuple[Any, Any]:
        self._calls["eager"] += 1
        try:
            self._note_miss(variant, key)
        except Exception as error:  # a fault of ours is none of the user's
            self.leave(Refusal(f"looking at it failed: {error!r:.200}"))
        return None, self.clock.begin("missed")

    def _note_miss(self, variant: Variant, key: Any) -> None:
        changed = variant.guards.changed()
        if changed is None:  # the copy is as good as before for arguments like those that it was made for
            return self._hold_back(_OTHER_ARGUMENTS, None, key)
        self._changes[key] = changed
        return self._hold_back(changed.name, variant, key)

    def _hold_back(self, name: str, variant: Variant | None, key: Any) -> None:
        self.misses[name] = count = self.misses.get(name, 0) + 1
        self._options.journal.add("miss", self, name)
        if variant is None:
            return
        variant.is_trusted = False
        if not self._padded.give_up(variant) and self.variants.get(key) is variant:
            self.variants.pop(key, None)  # it may be compiled anew, for the world as it is now
        if count > _VARIANTS and name == _SETTINGS:
            self.leave(Refusal(f"{name} is another at each call"))
        elif count > _VARIANTS:
            self.leave(Refusal(f"`{name}` is another at each call", cure=f"pass `{name}` as an argument"))

    def _failed(self, error: Exception, key: Any) -> tuple[Any, Any]:
        """A compiled call raised: the function is what it was, and says what it has to say itself."""
        self._calls["compiled"] -= 1
        self._calls["eager"] += 1
        variant = self.variants.get(key)
        if isinstance(error, OtherSettings):
            self._hold_back((variant and variant.guards.retyped()) or _SETTINGS, variant, key)
        elif variant is None or not self._padded.give_up(variant, f"{error!r:.100}"):
            self.leave(refusal_of(error))
        return None, self.clock.begin("eager")


_OTHER_ARGUMENTS = "the order of a dict, or the class of a setting, that it is given"
_WAYS = "fewer kinds of arguments: numbers that change as arrays, sizes padded to a few"
