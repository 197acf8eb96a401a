"""One function's path from eager to compiled: counted, proven, compiled, compared, measured.

    counting ── called often and long ─▶ compiling ─▶ comparing ── 3 calls agree, 1.2 × faster ─▶ compiled
        └──────── not proven, other results, not faster, or an error: eager, with the reason ◀──────────┘

A call always returns what the function as written returns. Eager calls run in the user's own frame (`swap`), so
tracebacks don't show Explorer, and a fault of this module lets the call continue.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from types import FunctionType
from typing import Any

import jax

from explorer._jax.calls import suppress_recording
from explorer._jax.settings import local_settings, shows_compiled, with_settings
from explorer._jax.traces import is_top_level
from explorer.errors import NotRecordedError
from explorer.hotpath.arguments import Call, parameters_of, unfollowed
from explorer.hotpath.comparison import Comparison, Kinds, NoTree, Variant
from explorer.hotpath.compiled import (
    NotCompiled,
    Options,
    Origin,
    OtherSettings,
    TooSmall,
    call_stack,
    capture_of,
    compiled_copy,
)
from explorer.hotpath.padded import PaddedCopies
from explorer.hotpath.proof import Proof, Refusal, prove
from explorer.hotpath.proof.facts import check_of
from explorer.hotpath.proof.values import Read, refusal_of
from explorer.hotpath.swap import NotSwappable, entered_by, original_of, restore, swap
from explorer.hotpath.timing import Clock, Times, Trigger
from explorer.model.capture import Capture
from explorer.model.results.hot_paths import HotState
from explorer.model.units import count_text

_jax: Any = jax  # untyped parts
_VARIANTS = 8  # compiled kinds of calls of one function; more run eagerly
_OTHERS = 64  # eager calls of further kinds before the function is given up
_CHECKED = 8 * 17  # one of so many compiled calls is waited for and timed
_TIMED = 17  # one of so many calls of a quick function is timed; coprime to the 32 that JAX runs ahead
_SETTLED = 8 * _CHECKED  # eager calls of a quick function, after which one of `_CHECKED` is timed
# Seconds of a quick call. Timing costs 5 µs, in which XLA's threads fall asleep; after single operations of 100 µs that
# makes the next one 1.5 times as long.
_QUICK = 1e-3
_PATIENT = 30  # a single operation waits so many times longer: its compile takes 40 ms and rarely gains anything
_SETTINGS = "a setting of JAX's"
_OTHER_ARGUMENTS = "the order of a dict's keys, or the class of a setting"
_WAYS = "pass fewer kinds of arguments: changing numbers as arrays, sizes padded to a few"
_CONTINUE: tuple[Any, Any] = (None, None)  # the call runs as written


class HotFunction:
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
        self._changes: dict[Any, Read] = {}  # changed reads by kind of call, until it is compiled again
        # Eager calls include the skipped ones that are still to come.
        self._calls = {"eager": 0, "compiled": 0}
        self._skip, self._stands_for = [0], 1

    def ran_before(self, calls: int, seconds: float) -> None:
        """Add calls and seconds of eager runs from before this was a function, as statements of a loop."""
        self._calls["eager"] += calls
        self.clock.eager_seconds += seconds

    def watch(self) -> None:
        try:
            swap(self.function, self.entrance(), self)
        except NotSwappable as error:
            self.leave(Refusal(f"its code can't be watched: {error}"))

    @property
    def calls(self) -> dict[str, int]:
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
        """Restore the function and keep it eager for good, with the reason; drop its copies. Repeated calls have no
        effect.
        """
        if self.state == "eager":
            return
        self._restore()  # first, as an interrupt may come after any line
        self.state, self.refusal = "eager", refusal
        for variant in list(self.variants.values()):
            variant.is_trusted = False
        self.variants.clear()
        self._changes.clear()
        self._options.journal.add("eager", self, refusal.reason)

    def release(self) -> None:
        """Restore the original code of the function. Variants and measurements are kept for the next `watch`."""
        if self._restore():
            self._options.journal.add("restored", self)

    def _restore(self) -> bool:
        code = self.function.__code__
        is_watched = entered_by(code) is self
        if is_watched:
            restore(self.function, code)
        return is_watched

    def capture(self) -> Capture:
        """Return the capture of the latest compiled kind of calls.

        Raises:
            NotRecordedError: The function isn't compiled, or no longer.
            ExploreError: It no longer compiles.
        """
        variants = list(self.variants.values())
        if not variants:
            why = f": {self.refusal.reason}" if self.refusal is not None else ""
            raise NotRecordedError(f"{self.name} isn't compiled{why}.\n  Hint: ex.explore(f, x) compiles any function.")
        with suppress_recording():
            return capture_of(self.original, variants[-1].call, variants[-1].call.arrays)

    def entrance(self) -> Callable[..., tuple[Any, Any]]:
        """Return a function that takes the values of all parameters and answers a call.

        It returns `(result, None)`, or `(None, object)` to let the call run as written; the object must live as long as
        the call. It is a closure because its names resolve fast.
        """
        calls, skip = self._calls, self._skip
        find, handed = self._kinds.finder(), self._parameters.handed

        def enter(*values: Any) -> tuple[Any, Any]:
            if skip[0] > 0:  # first, for the sake of quick calls
                skip[0] -= 1
                return _CONTINUE
            # In a trace the call becomes part of another program; some settings show what runs compiled.
            if not is_top_level() or shows_compiled():
                return _CONTINUE
            try:
                arrays, key, variant = find(values)
            except NoTree as error:
                self.leave(Refusal(f"its arguments are no pytree: {error}"))
                return _CONTINUE
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
            return self._failed(failure, key)  # outside of the handler, or it would be the context of the user's error

        return enter

    # Calls that aren't compiled yet -----------------------------------------------------------------------------------

    def _eager(self, values: tuple[Any, ...], arrays: list[Any], key: Any) -> tuple[Any, Any]:
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
            if variant is not None and variant.is_trusted:  # padded, and these sizes are new
                # The entrance counts this call again.
                self._calls["eager"] -= 1
                return self.entrance()(*values)
            result = self._compared(variant, values, arrays, key) if variant is not None else None
        except Exception as error:  # our own fault must not reach the user's call
            self.leave(Refusal(f"the analysis failed: {error!r:.200}"))
            result = None
        if result is None:
            is_before = key not in self._pending and key not in self.variants
            return None, self.clock.begin("eager", begun, self._stood_for(), hash(key) if is_before else None)
        self.clock.times.add(begun, perf_counter(), "both")
        return result, None

    def _stood_for(self) -> int:
        """Return the number of calls that this timed call represents, and decide how many of the next calls aren't
        timed.
        """
        stands_for, self._stands_for = self._stands_for, 1
        calls = self.calls["eager"]
        if calls > _CHECKED and not self.variants and self.clock.eager_seconds < _QUICK * calls:
            every = _CHECKED if self.trigger.is_waiting or calls > _SETTLED else _TIMED
            self._calls["eager"] += every - 1
            self._skip[0], self._stands_for = every - 1, every
        return stands_for

    def _is_time(self, key: Any) -> bool:
        before = sum(self.calls.values()) - 1
        if self.state == "eager" or key in self.variants:
            return False
        if not self.trigger.is_time(hash(key), before, self.clock.eager_seconds):
            return False
        if len(self.variants) + len(self._pending) < _VARIANTS:
            return key not in self._pending and not self.trigger.must_wait(self, before)
        # A function that mostly runs compiled is kept, however many other kinds of calls come.
        if self.calls["eager"] > _OTHERS + 2 * self.calls["compiled"] and not self._padded.is_any:
            why = f", and can't be padded: {self._padded.why_not}" if self._padded.why_not else ""
            self.leave(Refusal(f"it is called with more than {_VARIANTS} kinds of arguments{why}", cure=_WAYS))
        return False

    def _learn(self, values: tuple[Any, ...], key: Any) -> None:
        refusal = unfollowed(values, self.original.__code__.co_varnames)
        args, kwargs = self._parameters.handed(values)
        proof = refusal or prove(self.original, args, kwargs)
        if isinstance(proof, Refusal):
            return self.leave(proof)
        if not self.variants and jax.device_count() > 1:
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
        except BaseException:  # interrupted while submitting or waiting
            self._end_pending(key)
            raise
        return None

    def _end_pending(self, key: Any) -> None:
        self._pending.discard(key)
        if self.state == "compiling":
            self.state = "comparing" if self.variants else "counting"

    def _compile(self, proof: Proof, key: Any, call: Call, settings: Any, origin: Origin) -> None:
        begun = perf_counter()
        try:
            with with_settings(settings):
                guards, run = compiled_copy(call, proof, self._options.xla, origin, self._approve)
            took = perf_counter() - begun
            self.compile_seconds += took
            # While this ran in the background it may have been left.
            if self.state != "eager":
                call.forget()
                costs = self.clock.costs_of(hash(key))
                self.variants[key] = Variant(guards, run, call, costs, call.unpacker(), check_of(proof.facts))
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
        is_early = self.clock.eager_seconds < _PATIENT * self._options.seconds
        if operations <= 1 and is_early and not self._options.is_forced:
            raise TooSmall
        self._options.journal.add("compile", self)

    def _compared(self, variant: Variant, values: tuple[Any, ...], arrays: list[jax.Array], key: Any) -> Any:
        """Run a call both ways; return the eager result, or None to let the call run as written."""
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
        """Run and time a compiled call; return its result. If it is checked, wait for pending work before and for its
        result.
        """
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
        except Exception as error:  # our own fault must not reach the user's call
            self.leave(Refusal(f"the analysis failed: {error!r:.200}"))
        return None, self.clock.begin("missed")

    def _note_miss(self, variant: Variant, key: Any) -> None:
        changed = variant.guards.changed()
        if changed is None:
            return self._hold_back(_OTHER_ARGUMENTS, None, key)  # the copy stays valid for its own arguments
        self._changes[key] = changed
        return self._hold_back(changed.name, variant, key)

    def _hold_back(self, name: str, variant: Variant | None, key: Any) -> None:
        self.misses[name] = count = self.misses.get(name, 0) + 1
        self._options.journal.add("miss", self, name)
        if variant is None:
            return
        variant.is_trusted = False
        if not self._padded.give_up(variant) and self.variants.get(key) is variant:
            self.variants.pop(key, None)  # it may be compiled again with the present reads
        # Each miss may compile again: what always changes would do so for ever.
        if count > _VARIANTS and name == _SETTINGS:
            self.leave(Refusal(f"{name} is a different object at each call"))
        elif count > _VARIANTS:
            self.leave(Refusal(f"`{name}` is a different object at each call", cure=f"pass `{name}` as an argument"))

    def _failed(self, error: Exception, key: Any) -> tuple[Any, Any]:
        self._calls["compiled"] -= 1
        self._calls["eager"] += 1
        variant = self.variants.get(key)
        if isinstance(error, OtherSettings):
            self._hold_back((variant and variant.guards.retyped()) or _SETTINGS, variant, key)
        elif variant is None or not self._padded.give_up(variant, f"{error!r:.100}"):
            self.leave(refusal_of(error))
        return None, self.clock.begin("eager")
