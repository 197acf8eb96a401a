"""Whether an executable pads and why, which sizes a padded binary may have, and what is compiled for them.

`specialise` is what compile() does by itself. Padded results differ from a specialised binary's in their last bits,
for sums are taken in another order, and with binaries that come in the background the same call may give one or the
other: nobody's answers are to change so without a word from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from linecache import getline
from math import prod
from types import SimpleNamespace
from typing import Any, cast, get_args

import jax
from jax import export

from explorer._jax import without_held_frames
from explorer.aot.inputs import Bounds
from explorer.aot.program import Program, Traced
from explorer.capture.sources import called_at, label, place
from explorer.errors import ArchiveError, OptionError, PaddingError
from explorer.model.results.dynamic_report import DynamicChoice, PaddingRefusal
from explorer.padding.interpreter import Fill, Notes
from explorer.padding.program import Proof, padded, prove
from explorer.padding.sizes import Sizes as SymbolicSizes

# Sizes in the whole range up to which *auto* has a binary for each: they are few, and padding gains nothing.
_FEW = 4
_PLACES = 8  # lines of the user's that an error lists


@dataclass(frozen=True)
class Dynamic:
    """How an executable serves sizes that vary."""

    choice: DynamicChoice = "specialise"  # what was wished for
    # why it pads, or doesn't
    why: str = "each size has a binary of its own: dynamic='auto' or 'pad' was not wished for"
    buckets: Buckets | None = None  # what it pads to; None where each size has a binary of its own
    proof: Proof | None = None  # where one was tried
    refusals: tuple[PaddingRefusal, ...] = ()  # what keeps the function from being padded

    def specialised(self, why: str) -> Dynamic:
        """The same, but that each size has a binary of its own."""
        return replace(self, why=why, buckets=None)


def check_choice(choice: Any, buckets: Any) -> None:
    """Refuse a choice that is none.

    Raises:
        OptionError: It is.
    """
    __tracebackhide__ = True
    if choice not in get_args(DynamicChoice):
        allowed = ", ".join(map(repr, get_args(DynamicChoice)))
        raise OptionError(f"dynamic is {choice!r}; allowed are {allowed}.\n{called_at()}")
    if choice == "specialise" and buckets is not None:
        raise OptionError(
            f"buckets is {buckets!r}, but nothing is padded.\n{called_at()}  Hint: dynamic='auto', or 'pad'."
        )


def decide(choice: DynamicChoice, buckets: Any, program: Program) -> Dynamic:
    """Whether a program is padded.

    Raises:
        OptionError: A bucket is none.
        PaddingError: The program can't be padded, and the choice is `pad`.
    """
    __tracebackhide__ = True
    bounds = program.symbols.traced_bounds
    if choice == "specialise" or not program.symbols.is_dynamic:
        return Dynamic(choice) if program.symbols.is_dynamic else Dynamic(choice, "no size varies")
    wished = default_buckets(bounds) if buckets is None else chosen_buckets(bounds, buckets)
    proof, refusals = _proof(program)
    verdict = Dynamic(choice, "", wished, proof, refusals)
    if refusals:
        if choice == "pad":
            raise PaddingError(_refused_text(program.name, refusals))
        first = refusals[0]
        where = f"  at  {place(first.file, first.line)}" if first.file else ""
        return verdict.specialised(f"it can't be padded: {first.reason}{where}")
    if choice == "auto":
        doubt = _doubt(program, cast(Proof, proof))
        if doubt:
            return verdict.specialised(doubt)
    return replace(verdict, why=_why(cast(Proof, proof), wished, program))


def _proof(program: Program) -> tuple[Proof | None, tuple[PaddingRefusal, ...]]:
    if program.symbolic is None:
        why = f"no symbol can stand for its sizes: {program.why_each_shape}"
        return None, (PaddingRefusal("", "", "", 0, why),)
    proof = prove(program.symbolic.closed, program.symbols.bounds)
    return proof, tuple(
        PaddingRefusal(
            r.equation, r.primitive, r.file, r.line, r.reason, r.hint, label(r.file), getline(r.file, r.line).strip()
        )
        for r in proof.refusals
    )


def _doubt(program: Program, proof: Proof) -> str:
    """Why padding isn't worthwhile; empty where it is."""
    count = prod(its.max - its.min + 1 for its in program.symbols.bounds.values())
    if count <= _FEW:
        return f"only {count} sizes: a binary for each is no more than padded ones would be"
    if proof.relayouts:
        return (
            f"{proof.relayouts} arrays would be gathered into other places at each call, which can take several times "
            "as long; dynamic='pad' does so"
        )
    return ""


def _why(proof: Proof, buckets: Buckets, program: Program) -> str:
    equations = sum(proof.rules.values())
    masks = f"{proof.masks} masks" if proof.masks != 1 else "1 mask"
    sizes = " × ".join(f"{name} {', '.join(map(str, rungs))}" for name, rungs in buckets.ladder.items())
    why = f"all {equations} equations of padded arrays are proven, with {masks}; buckets: {sizes}"
    if program.why_apart:
        why += f"; smaller sizes have binaries of their own: {program.why_apart}"
    return why


def _refused_text(name: str, refusals: tuple[PaddingRefusal, ...]) -> str:
    """Every line with an equation that is in the way, why it is, and what would help."""
    by_place: dict[tuple[str, int], list[PaddingRefusal]] = {}
    for refusal in refusals:
        by_place.setdefault((refusal.file, refusal.line), []).append(refusal)
    hints = {refusal.hint for refusal in refusals}
    if not any(refusal.equation for refusal in refusals):  # there is no trace to begin with
        reasons = "\n".join(refusal.reason.replace("  at  ", "\n  at  ") for refusal in refusals)
        return f'{name} can\'t be padded: {reasons}\n{called_at()}  Hint: dynamic="auto" has a binary for each size.'
    count = f"{len(refusals)} equations are" if len(refusals) > 1 else "1 equation is"
    parts = [f"{name} can't be padded: {count} in the way."]
    for (file, line), there in [*by_place.items()][:_PLACES]:
        parts += [f"  at  {place(file, line)}"] if file else []
        parts += [f"    {text}" for text in _reasons(there, with_hints=len(hints) > 1)]
    more = sum(map(len, [*by_place.values()][_PLACES:]))
    if more:
        parts.append(f"  and {more} more, on {len(by_place) - _PLACES} other lines")
    shared = hints.pop() if len(hints) == 1 else ""
    other = 'dynamic="auto" has a binary for each size instead, and its .dynamic_report lists all equations'
    return "\n".join(parts) + f"\n{called_at()}  Hint: {shared + '; ' if shared else ''}{other}."


def _reasons(refusals: list[PaddingRefusal], *, with_hints: bool) -> list[str]:
    """Of one line each reason once, with the first equation that it is about."""
    by_reason: dict[tuple[str, str], list[PaddingRefusal]] = {}
    for refusal in refusals:
        by_reason.setdefault((refusal.reason, refusal.hint), []).append(refusal)
    lines: list[str] = []
    for (reason, hint), alike in by_reason.items():
        equation = f": {alike[0].equation}" if alike[0].equation else ""
        also = f" (and {len(alike) - 1} more like it)" if len(alike) > 1 else ""
        lines.append(f"{reason}{equation}{also}")
        lines += [f"  {hint}"] if hint and with_hints else []
    return lines


Sizes = tuple[int, ...]  # of each symbol, in the order of `Symbols.bounds`

# Combinations of several dimensions' buckets that are weighed against each other at each call, a microsecond for
# eight; those that are compiled are far fewer.
_COMBINATIONS = 64


class Buckets:
    """The sizes that inputs may be padded to.

    Example:
        >>> buckets = Buckets({"batch": Bounds(1, 8, 48)}, {"batch": (16, 48)})
        >>> buckets.combinations
        [(16,), (48,)]
    """

    def __init__(
        self, bounds: Mapping[str, Bounds], ladder: Mapping[str, Sequence[int]], is_chosen: bool = False
    ) -> None:
        self.bounds = dict(bounds)
        self.is_chosen = is_chosen
        self.symbols = tuple(bounds)
        self.ladder = {symbol: tuple(ladder[symbol]) for symbol in bounds}
        self.largest: Sizes = tuple(rungs[-1] for rungs in self.ladder.values())

    @property
    def combinations(self) -> list[Sizes]:
        """Every bucket that there may be, the smallest first."""
        return sorted(product(*self.ladder.values()), key=prod)

    def named(self, sizes: Sizes) -> dict[str, int]:
        """The sizes by symbol."""
        return dict(zip(self.symbols, sizes, strict=True))


def default_buckets(bounds: Mapping[str, Bounds]) -> Buckets:
    """Powers of two below each largest size; of several dimensions fewer, so that not too many combine.

    The smallest buckets go first: what they save is a small part of what a call of usual sizes takes.

    Example:
        >>> default_buckets({"batch": Bounds(1, 8, 48)}).ladder
        {'batch': (1, 2, 4, 8, 16, 32, 48)}
    """
    ladder = {symbol: _powers(its) for symbol, its in bounds.items()}
    while prod(map(len, ladder.values())) > _COMBINATIONS:
        longest = max(ladder, key=lambda symbol: len(ladder[symbol]))
        if len(ladder[longest]) == 1:  # more than sixty-four dimensions
            break
        ladder[longest] = ladder[longest][1:]
    return Buckets(bounds, ladder)


def _powers(bounds: Bounds) -> tuple[int, ...]:
    """The powers of two from the first that serves the smallest size, and the largest size itself."""
    smallest = max(1, bounds.min)
    if smallest == bounds.max:
        return (bounds.max,)
    powers = (1 << i for i in range((smallest - 1).bit_length(), bounds.max.bit_length()))
    return (*(power for power in powers if power < bounds.max), bounds.max)


def chosen_buckets(bounds: Mapping[str, Bounds], given: Any) -> Buckets:
    """The buckets that a user names, by dimension; the largest size is always one, and other dimensions have theirs.

    Raises:
        OptionError: A dimension or a size is none.
    """
    __tracebackhide__ = True
    varying = [symbol for symbol, its in bounds.items() if its.min < its.max]
    if not isinstance(given, Mapping):
        raise OptionError(
            f"buckets is {given!r}; allowed is a dict of sizes by dimension.\n{called_at()}"
            f"  Hint: buckets={{{varying[0]!r}: ({bounds[varying[0]].max},)}}."
            if varying
            else f"buckets is {given!r}, and no dimension varies.\n{called_at()}"
        )
    by_name = cast("Mapping[Any, Any]", given)
    ladder = dict(default_buckets(bounds).ladder)
    for name, sizes in by_name.items():
        if name not in varying:
            raise OptionError(
                f"buckets has {name!r}; the dimensions that vary are {', '.join(varying) or 'none'}.\n{called_at()}"
                "  Hint: a dimension without a name has its place for one: x_0."
            )
        ladder[name] = _chosen(name, bounds[name], sizes)
    count = prod(map(len, ladder.values()))
    if count > _COMBINATIONS:
        ladder = {name: rungs if name in by_name else rungs[-1:] for name, rungs in ladder.items()}
        count = prod(map(len, ladder.values()))
    if count > _COMBINATIONS:
        raise OptionError(
            f"buckets has {count} combinations; at most {_COMBINATIONS} are weighed.\n{called_at()}"
            "  Hint: fewer sizes for some dimension."
        )
    return Buckets(bounds, ladder, is_chosen=True)


def _chosen(name: str, bounds: Bounds, sizes: Any) -> tuple[int, ...]:
    __tracebackhide__ = True
    listed = cast("Sequence[Any]", sizes if isinstance(sizes, (tuple, list, range)) else (sizes,))
    wrong = [size for size in listed if type(size) is not int or not max(1, bounds.min) <= size <= bounds.max]
    if wrong or not listed:
        raise OptionError(
            f"buckets has {wrong[0]!r} for `{name}`; allowed are ints with {max(1, bounds.min)} ≤ {name} ≤ "
            f"{bounds.max}.\n{called_at()}"
            if wrong
            else f"buckets has no size for `{name}`.\n{called_at()}"
        )
    return tuple(sorted({*listed, bounds.max}))


def serves(bucket: Sizes, sizes: Sizes) -> bool:
    """Whether no size is larger than the bucket's."""
    return all(size <= most for size, most in zip(sizes, bucket, strict=True))


@dataclass(frozen=True)
class SavedBucket:
    """A bucket's program as it travels."""

    # gives what `jax.export.Exported.serialize` does, of a function `(constants, sizes, *arrays) → list`
    module: Callable[[], bytes]
    constants: Callable[[], Sequence[Any]]  # gives its arrays


@dataclass(frozen=True, eq=False)
class PaddedProgram:
    """A program that is right for every size up to a bucket's."""

    outputs: Sequence[Any]  # of each output shape and dtype, with symbolic dimensions
    structure: Any  # the tree of the outputs
    # of a bucket, by name, a function of true sizes by name and arrays in the bucket's shapes; it gives outputs in the
    # bucket's shapes. What comes second gets what is padding, by variable; from a file nothing.
    at: Callable[[Mapping[str, int], Notes], Callable[..., Sequence[Any]]]
    # of a bucket and platforms (None is the present one) how it travels
    save: Callable[[Mapping[str, int], Sequence[str] | None], SavedBucket]
    fills: Sequence[Fill] = ()  # of each array that goes in what its padding is to hold
    buckets: Sequence[Mapping[str, int]] | None = None  # those that there are; None where there is one for any sizes

    @classmethod
    def of(cls, traced: Traced, fills: Sequence[Fill]) -> PaddedProgram:
        """Of a trace for every size."""
        closed = traced.closed

        def save(bucket: Mapping[str, int], platforms: Sequence[str] | None) -> SavedBucket:
            module = _exported(closed, bucket, platforms, fills)
            return SavedBucket(lambda: module, lambda: list(closed.consts))

        return cls(closed.out_avals, traced.outputs.structure, partial(padded, closed, fills=fills), save, fills)

    @classmethod
    def of_file(
        cls,
        outputs: Sequence[Any],
        structure: Any,
        saved: Sequence[tuple[Mapping[str, int], SavedBucket]],
        read: Callable[[bytes], export.Exported],
        fills: Sequence[Fill],
    ) -> PaddedProgram:
        """Of programs for some buckets."""

        def find(bucket: Mapping[str, int]) -> SavedBucket:
            return next(program for sizes, program in saved if sizes == bucket)

        def at(bucket: Mapping[str, int], _: Notes) -> Callable[..., Sequence[Any]]:
            program = find(bucket)

            def run(sizes: Mapping[str, Any], *arrays: Any) -> Sequence[Any]:
                with without_held_frames():
                    module = cast(Any, read(program.module()))
                    return module.call(list(program.constants()), dict(sizes), *arrays)

            return run

        return cls(outputs, structure, at, lambda bucket, _: find(bucket), fills, [sizes for sizes, _ in saved])


def _exported(closed: Any, bucket: Mapping[str, int], platforms: Sequence[str] | None, fills: Sequence[Fill]) -> bytes:
    jaxpr = getattr(closed, "jaxpr", closed)
    shapes = SymbolicSizes(bucket, {})

    def run(constants: Sequence[Any], sizes: Mapping[str, Any], *arrays: Any) -> Any:
        # The constants are arguments, for all buckets share them in the file.
        return padded(SimpleNamespace(jaxpr=jaxpr, consts=constants), bucket, fills=fills)(sizes, *arrays)

    constants = [jax.ShapeDtypeStruct(jax.numpy.shape(c), jax.typeof(c).dtype) for c in closed.consts]
    sizes = {symbol: jax.ShapeDtypeStruct((), "int32") for symbol in bucket}
    structs = [jax.ShapeDtypeStruct(shapes.shape(aval.shape), aval.dtype) for aval in closed.in_avals]
    try:
        with without_held_frames():
            return bytes(export.export(jax.jit(run), platforms=platforms)(constants, sizes, *structs).serialize())
    except Exception as error:  # JAX raises what it likes
        first = str(error).strip().partition("\n")[0]
        raise ArchiveError(f"the padded program for {dict(bucket)} can't be saved: {first}") from error
