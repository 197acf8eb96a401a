"""Decision whether an executable pads, its buckets, and the padded programs.

`specialise` is the default of compile(). Padded results differ from a specialized binary's in their last bits, because
sums are taken in another order. With background compiles the same call may give either result, so users opt in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from math import prod
from types import SimpleNamespace
from typing import Any, cast, get_args

from jax import export

from explorer._jax.symbolic import without_held_frames
from explorer.aot.exported import export_closed
from explorer.aot.inputs import Bounds
from explorer.aot.program import Program, Traced
from explorer.capture.sources import called_at, place
from explorer.errors import ArchiveError, OptionError, PaddingError
from explorer.model.results.dynamic_report import DynamicChoice, PaddingRefusal
from explorer.padding.interpreter import Fill, Notes
from explorer.padding.program import Proof, padded, prove
from explorer.padding.transfer import Key

_FEW = 4  # sizes in the whole range up to which `auto` compiles each: padding would gain nothing
_MAX_PLACES = 8  # source lines that an error lists


@dataclass(frozen=True)
class Dynamic:
    choice: DynamicChoice = "specialise"
    why: str = "each size has a binary of its own: dynamic='auto' or 'pad' was not requested"
    buckets: Buckets | None = None  # None if each size has a binary of its own
    proof: Proof = field(default_factory=Proof)  # empty if no proof was attempted

    def specialised(self, why: str) -> Dynamic:
        """Return this decision changed to one binary per size, for the reason `why`."""
        return replace(self, why=why, buckets=None)


def check_choice(choice: Any, buckets: Any) -> None:
    """Raise OptionError if `dynamic` is unknown, or buckets are given although nothing is padded."""
    __tracebackhide__ = True
    if choice not in get_args(DynamicChoice):
        allowed = ", ".join(map(repr, get_args(DynamicChoice)))
        raise OptionError(f"dynamic is {choice!r}; allowed are {allowed}.\n{called_at()}")
    if choice == "specialise" and buckets is not None:
        raise OptionError(
            f"buckets is {buckets!r}, but nothing is padded.\n{called_at()}  Hint: dynamic='auto', or 'pad'."
        )


def decide(choice: DynamicChoice, buckets: Any, program: Program) -> Dynamic:
    """Return the decision to pad or not, with its buckets and proof; raise PaddingError if "pad" is impossible."""
    __tracebackhide__ = True
    bounds = program.symbols.traced_bounds
    if choice == "specialise" or not program.symbols.is_dynamic:
        return Dynamic(choice) if program.symbols.is_dynamic else Dynamic(choice, "no size varies")
    wished = default_buckets(bounds) if buckets is None else chosen_buckets(bounds, buckets)
    if program.symbolic is None:
        why = f"no symbol can stand for its sizes: {program.why_each_shape}"
        proof = Proof((PaddingRefusal("", "", "", 0, why),))
    else:
        proof = prove(program.symbolic.closed, program.symbols.bounds)
    verdict = Dynamic(choice, "", wished, proof)
    if not proof.is_exact:
        if choice == "pad":
            raise PaddingError(_refused_text(program.name, proof.refusals))
        first = proof.refusals[0]
        where = f"  at  {place(first.file, first.line)}" if first.file else ""
        return verdict.specialised(f"it can't be padded: {first.reason}{where}")
    doubt = _doubt(program, proof) if choice == "auto" else ""
    return verdict.specialised(doubt) if doubt else replace(verdict, why=_why(proof, wished, program))


def _doubt(program: Program, proof: Proof) -> str:
    """Return the reason why padding isn't worthwhile; empty if it is."""
    count = prod(its.max - its.min + 1 for its in program.symbols.bounds.values())
    if count <= _FEW:
        return f"only {count} sizes: padding would need as many binaries"
    if proof.relayouts:
        return (
            f"{proof.relayouts} arrays would be rearranged at each call, which can take several times "
            "as long; dynamic='pad' does that"
        )
    return ""


def _why(proof: Proof, buckets: Buckets, program: Program) -> str:
    equations = sum(proof.rules.values())
    masks = f"{proof.masks} masks" if proof.masks != 1 else "1 mask"
    sizes = " × ".join(f"{name} {', '.join(map(str, rungs))}" for name, rungs in buckets.ladder.items())
    why = f"padding is proven safe for all {equations} equations, with {masks}; buckets: {sizes}"
    if program.why_apart:
        why += f"; smaller sizes have binaries of their own: {program.why_apart}"
    return why


def _refused_text(name: str, refusals: tuple[PaddingRefusal, ...]) -> str:
    """Return an error's text: the source lines with equations that can't be padded, with reason and hint.

    After the first `_MAX_PLACES` lines, only the number of others. A hint that all share comes once, at the end.
    """
    by_place: dict[tuple[str, int], list[PaddingRefusal]] = {}
    for refusal in refusals:
        by_place.setdefault((refusal.file, refusal.line), []).append(refusal)
    hints = {refusal.hint for refusal in refusals}
    if not any(refusal.equation for refusal in refusals):  # there is no symbolic trace
        reasons = "\n".join(refusal.reason.replace("  at  ", "\n  at  ") for refusal in refusals)
        return (
            f'{name} can\'t be padded: {reasons}\n{called_at()}  Hint: dynamic="auto" compiles a binary for each size.'
        )
    count = f"{len(refusals)} equations are" if len(refusals) > 1 else "1 equation is"
    parts = [f"{name} can't be padded: {count} in the way."]
    for (file, line), there in [*by_place.items()][:_MAX_PLACES]:
        parts += [f"  at  {place(file, line)}"] if file else []
        parts += [f"    {text}" for text in _reasons(there, with_hints=len(hints) > 1)]
    more = sum(map(len, [*by_place.values()][_MAX_PLACES:]))
    if more:
        parts.append(f"  and {more} more, on {len(by_place) - _MAX_PLACES} other lines")
    shared = hints.pop() if len(hints) == 1 else ""
    other = 'dynamic="auto" compiles a binary for each size instead, and its .dynamic_report lists all equations'
    return "\n".join(parts) + f"\n{called_at()}  Hint: {shared + '; ' if shared else ''}{other}."


def _reasons(refusals: list[PaddingRefusal], *, with_hints: bool) -> list[str]:
    """Return each reason of one source line once, with the first equation that has it, and its hint if wanted."""
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


# Each call compares the combinations of all dimensions' buckets, at a microsecond for eight. Few are ever compiled.
_COMBINATIONS = 64


class Buckets:
    """Sizes that inputs may be padded to."""

    def __init__(
        self, bounds: Mapping[str, Bounds], ladder: Mapping[str, Sequence[int]], is_chosen: bool = False
    ) -> None:
        self.bounds = dict(bounds)
        self.is_chosen = is_chosen
        self.symbols = tuple(bounds)
        self.ladder = {symbol: tuple(ladder[symbol]) for symbol in bounds}
        self.largest: Key = tuple(rungs[-1] for rungs in self.ladder.values())

    @property
    def combinations(self) -> list[Key]:
        return sorted(product(*self.ladder.values()), key=prod)

    def named(self, sizes: Key) -> dict[str, int]:
        return dict(zip(self.symbols, sizes, strict=True))


def default_buckets(bounds: Mapping[str, Bounds]) -> Buckets:
    """Return powers of two up to each largest size; of several dimensions fewer, to limit their combinations.

    The smallest buckets are left out first: they save a small part of what a call of usual sizes takes.
    """
    ladder = {symbol: _powers(its) for symbol, its in bounds.items()}
    while prod(map(len, ladder.values())) > _COMBINATIONS:
        longest = max(ladder, key=lambda symbol: len(ladder[symbol]))
        if len(ladder[longest]) == 1:  # more than sixty-four dimensions
            break
        ladder[longest] = ladder[longest][1:]
    return Buckets(bounds, ladder)


def _powers(bounds: Bounds) -> tuple[int, ...]:
    """Return the powers of two that serve sizes in these bounds, and the largest size itself."""
    smallest = max(1, bounds.min)
    if smallest == bounds.max:
        return (bounds.max,)
    powers = (1 << i for i in range((smallest - 1).bit_length(), bounds.max.bit_length()))
    return (*(power for power in powers if power < bounds.max), bounds.max)


def chosen_buckets(bounds: Mapping[str, Bounds], given: Any) -> Buckets:
    """Return the user's buckets, by dimension, with the largest size added; raise OptionError if they are invalid.

    Other dimensions get default buckets, or only their largest size if there were too many combinations.
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
                "  Hint: a dimension without a name is named after its place: x_0."
            )
        ladder[name] = _chosen(name, bounds[name], sizes)
    count = prod(map(len, ladder.values()))
    if count > _COMBINATIONS:
        # The user's own sizes stay; the default ones of other dimensions give way.
        ladder = {name: rungs if name in by_name else rungs[-1:] for name, rungs in ladder.items()}
        count = prod(map(len, ladder.values()))
    if count > _COMBINATIONS:
        raise OptionError(
            f"buckets has {count} combinations; at most {_COMBINATIONS} are allowed.\n{called_at()}"
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


def serves(bucket: Key, sizes: Key) -> bool:
    return all(size <= most for size, most in zip(sizes, bucket, strict=True))


@dataclass(frozen=True)
class SavedBucket:
    module: Callable[[], bytes]  # a serialized `jax.export.Exported` of `(constants, sizes, *arrays) → list`
    constants: Callable[[], Sequence[Any]]


@dataclass(frozen=True, eq=False)
class PaddedProgram:
    """Program that computes correct results for every size up to a bucket's."""

    outputs: Sequence[Any]  # shape and dtype of each output, with symbolic dimensions
    structure: Any  # the tree of the outputs
    # For a bucket: a function of the true sizes by name and of arrays in the bucket's shapes, which returns outputs in
    # the bucket's shapes. The notes receive which values are padding, by variable; a program from a file has none.
    at: Callable[[Mapping[str, int], Notes], Callable[..., Sequence[Any]]]
    # For a bucket and platforms (None is the present one): the program as it is saved.
    save: Callable[[Mapping[str, int], Sequence[str] | None], SavedBucket]
    fills: Sequence[Fill] = ()  # padding value of each input array
    buckets: Sequence[Mapping[str, int]] | None = None  # buckets in the file; None if any bucket can be made

    @classmethod
    def of(cls, traced: Traced, fills: Sequence[Fill]) -> PaddedProgram:
        """Return the padded program of a symbolic trace."""
        closed = traced.closed

        def save(bucket: Mapping[str, int], platforms: Sequence[str] | None) -> SavedBucket:
            def run(constants: Sequence[Any], sizes: Mapping[str, Any], *arrays: Any) -> Any:
                # Constants are arguments, so that all buckets of a file share them.
                program = SimpleNamespace(jaxpr=getattr(closed, "jaxpr", closed), consts=constants)
                return padded(program, bucket, fills=fills)(sizes, *arrays)

            try:
                module = bytes(export_closed(run, closed, platforms, bucket).serialize())
            except Exception as error:  # JAX raises many kinds of errors here
                first = str(error).strip().partition("\n")[0]
                raise ArchiveError(f"the padded program for {dict(bucket)} can't be saved: {first}") from error
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
        """Return the padded program that a file's programs make up, one per bucket."""

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
