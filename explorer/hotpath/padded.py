"""Padded copy of a hot function that is called at more sizes than are compiled, if padding is proven exact.

It is made like other copies: in the background, from a trace with symbols for the sizes that vary, and compared over
its first calls. A size above all buckets runs eagerly until a larger bucket is compiled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import local
from time import perf_counter
from types import SimpleNamespace
from typing import Any, Protocol
from weakref import ref

import jax

from explorer._jax.arguments import struct_of
from explorer._jax.calls import suppress_recording
from explorer._jax.settings import local_settings, with_settings
from explorer._jax.symbolic import at_sizes, undecided_equalities
from explorer.hotpath.arguments import Call, Parameters, unfollowed
from explorer.hotpath.comparison import Variant
from explorer.hotpath.compiled import NotCompiled, Options, Origin, OtherSettings, hot_copy, program_parts, traced
from explorer.hotpath.proof import Proof, Refusal, prove
from explorer.hotpath.proof.facts import check_of
from explorer.hotpath.timing import CallCosts, Clock, Function
from explorer.model.events.event import mark_hot_copy
from explorer.padding import padded
from explorer.padding import prove as prove_padded
from explorer.padding.growing import GrowingProgram, Pattern, Shapes, patterns
from explorer.runtime.traces import disagreement

_ALIASES = 512  # sizes known to be served by padded copies
_HISTORY = 8  # calls whose shapes show which sizes vary


class Hot(Function, Protocol):
    clock: Clock
    compile_seconds: float

    @property
    def variants(self) -> dict[Any, Variant]: ...


class _Making(local):
    """Flag of threads that compile a bucket; a compile in any other call means changed settings."""

    is_on = False


_making = _Making()


@dataclass(eq=False)
class PaddedCopy:
    variant: Variant
    program: GrowingProgram
    pattern: Pattern

    def is_ready(self, shapes: Shapes) -> bool:
        sizes = self.pattern.sizes(shapes)
        return sizes is not None and self.program.is_ready(sizes)

    def prepare(self, sizes: Mapping[str, int], arrays: Sequence[Any], read: tuple[Any, ...]) -> None:
        _making.is_on = True
        try:
            self.program.prepare(sizes, arrays, read)
        finally:
            _making.is_on = False

    @property
    def largest_text(self) -> str:
        bucket = self.program.buckets[-1][0]
        shapes = [tuple(bucket.get(str(size), size) for size in shape) for shape in self.pattern.shapes]
        return ", ".join(map(str, shapes))


class PaddedCopies:
    def __init__(self, hot: Hot, options: Options, parameters: Parameters) -> None:
        # Weak: the function owns its padded copies.
        self._hot, self._options, self._parameters = ref(hot), options, parameters
        self._copies: dict[Any, PaddedCopy | None] = {}
        self._is_pending = False
        self.why_not = ""

    @property
    def is_any(self) -> bool:
        return self._is_pending or any(copy is not None for copy in self._copies.values())

    def serve(self, values: tuple[Any, ...], arrays: Sequence[Any], key: Any) -> None:
        """Add a padded copy to the function's variants for calls of this kind; if its bucket isn't compiled, submit the
        compile.

        Nothing happens while a compile is pending, or after padding was given up.
        """
        hot, family = self._hot(), _family(key)
        if hot is None or family is None or self._is_pending:
            return
        shapes = [tuple(array.shape) for array in arrays]
        copy = self._copies.get(family)
        if copy is not None and copy.is_ready(shapes):
            self._drop_aliases(hot.variants)
            hot.variants[key] = copy.variant
        elif family not in self._copies or (copy is not None and copy.pattern.sizes(shapes) is not None):
            self._submit(hot, values, family, copy)

    def give_up(self, variant: Variant, why: str = "") -> bool:
        """Drop the padded copy of a variant, for good if there is a reason; return True if the variant was one."""
        hot = self._hot()
        for family, copy in list(self._copies.items()):
            if hot is not None and copy is not None and copy.variant is variant:
                variant.is_trusted = False
                for key in [key for key, one in list(hot.variants.items()) if one is variant]:
                    hot.variants.pop(key, None)
                if why:
                    self._copies[family], self.why_not = None, why
                else:
                    del self._copies[family]
                return True
        return False

    def _drop_aliases(self, variants: dict[Any, Variant]) -> None:
        if len(variants) < _ALIASES:
            return
        padded = {id(copy.variant) for copy in self._copies.values() if copy is not None}
        # Only the entries: `serve` adds one again at the next call of its sizes.
        for key in [key for key, variant in list(variants.items()) if id(variant) in padded]:
            variants.pop(key, None)

    def _submit(self, hot: Hot, values: tuple[Any, ...], family: Any, copy: PaddedCopy | None) -> None:
        call, settings = Call(hot.original, self._parameters, values), local_settings()
        alike = [variant.call for key, variant in list(hot.variants.items()) if _family(key) == family]
        history = [[tuple(array.shape) for array in each.arrays] for each in (*alike, call)][-_HISTORY:]
        args, kwargs = call.arguments(call.arrays)
        proof = unfollowed(values, hot.original.__code__.co_varnames) or prove(hot.original, args, kwargs)
        if isinstance(proof, Refusal) or (copy is None and not alike):
            return

        def work() -> None:
            begun = perf_counter()
            try:
                with with_settings(settings):
                    made = copy or _made(call, proof, history, hot.clock.costs_of(hash(family)))
                    sizes, read = made.pattern.sizes(history[-1]), made.variant.guards.check()
                    if sizes is not None and read is not None:
                        made.prepare(sizes, call.arrays, read)
                took = perf_counter() - begun
                hot.compile_seconds += took
                self._copies[family] = made
                self._options.journal.add("compiled", hot, f"padded: {made.largest_text}, and all below", seconds=took)
            except Exception as error:  # calls beyond the limit stay eager
                # None if there was no copy: the family isn't tried again.
                self._copies[family] = copy
                self.why_not = str(error).strip().partition("\n")[0] or type(error).__name__
            finally:
                call.forget()
                self._is_pending = False

        self._is_pending = True
        try:
            self._options.submit(work)
        # Interrupted while it was submitted or waited for.
        except BaseException:
            self._is_pending = False
            raise


def _family(key: Any) -> Any:
    """Return the key of a kind of calls with ranks in place of shapes; None without arrays, or on a machine with
    several devices.
    """
    if key is None:
        return None
    structure, types, *others = key
    if not types or any(isinstance(aval, tuple) for aval in types):
        return None
    kinds = tuple((len(aval.shape), aval.dtype, getattr(aval, "weak_type", False)) for aval in types)
    return structure, kinds, tuple(others)


def _made(call: Call, proof: Proof, history: Sequence[Shapes], costs: CallCosts) -> PaddedCopy:
    """Return a padded copy without buckets.

    Raises:
        NotCompiled: It isn't proven exact.
    """
    begun = perf_counter()
    with suppress_recording():
        pattern, closed, structure = _symbolic(call, history)
        exactness = prove_padded(closed, pattern.names)
    if not exactness.is_exact:
        refusal = exactness.refusals[0]
        raise NotCompiled(f"{refusal.reason}: {refusal.equation}" if refusal.equation else refusal.reason)
    fills = exactness.fills
    guards, place, assembly = program_parts(call, proof, closed, structure)
    jaxpr, consts = getattr(closed, "jaxpr", closed), list(closed.consts)

    def run(sizes: Mapping[str, Any], arrays: Sequence[Any], read: tuple[Any, ...]) -> Any:
        # JAX traces a bucket that is compiled again only if a setting changed.
        if not _making.is_on:
            raise OtherSettings
        constants = [read[place[id(value)]] if id(value) in place else value for value in consts]
        bucket = pattern.sizes([array.shape for array in arrays]) or {}
        return padded(SimpleNamespace(jaxpr=jaxpr, consts=constants), bucket, fills=fills)(sizes, *arrays)

    run.__name__ = run.__qualname__ = getattr(call.function, "__name__", "hot")
    mark_hot_copy(run, hot_copy(call, guards, Origin(), perf_counter() - begun))
    jitted: Any = jax.jit(run)
    # One jax.jit function for all buckets: it keeps a program for each bucket's shapes.
    program = GrowingProgram(closed, dict.fromkeys(pattern.names, pattern.least), lambda _: jitted, fills)

    def serve(read: tuple[Any, ...], arrays: list[Any]) -> Any:
        sizes = pattern.sizes([array.shape for array in arrays])
        outputs = program.call(sizes or {}, arrays, read)
        return assembly.assembled([outputs[at] for at in assembly.computed], read, arrays)

    variant = Variant(guards, serve, call, costs, call.unpacker(), check_of(proof.facts))
    return PaddedCopy(variant, program, pattern)


def _symbolic(call: Call, history: Sequence[Shapes]) -> tuple[Pattern, Any, Any]:
    """Return pattern, jaxpr and result structure of a trace with symbolic sizes; raise NotCompiled if none is right."""
    reason = "its sizes don't vary"
    structs = [struct_of(array) for array in call.arrays]
    for pattern in patterns(history):
        open_ = [
            jax.ShapeDtypeStruct(shape, struct.dtype, weak_type=struct.weak_type)
            for shape, struct in zip(pattern.symbolic(), structs, strict=True)
        ]
        try:
            with undecided_equalities() as undecided:
                closed, structure = traced(call, open_)
            given = at_sizes(closed, pattern.sizes(history[-1]) or {})
            single, of_single = traced(call, structs)
        except Exception as error:
            reason = f"{error}".strip().partition("\n")[0]
            continue
        if undecided:
            reason = f"`{undecided[0].text}` holds for some sizes only"
        elif structure != of_single or disagreement(given, single):
            reason = "a size is used in a way that the trace doesn't show"
        else:
            return pattern, closed, structure
    raise NotCompiled(reason)
