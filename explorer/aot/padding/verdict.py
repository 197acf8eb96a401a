"""Whether an executable pads, and why.

`specialise` is what compile() does by itself. Padded results differ from a specialised binary's in their last bits,
for sums are taken in another order, and with binaries that come in the background the same call may give one or the
other: nobody's answers are to change so without a word from them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from linecache import getline
from math import prod
from typing import Any, cast, get_args

from explorer.aot.padding.buckets import Buckets, chosen_buckets, default_buckets
from explorer.aot.program import Program
from explorer.capture.sources import called_at, label, place
from explorer.errors import OptionError, PaddingError
from explorer.model.results.dynamic_report import DynamicChoice, PaddingRefusal
from explorer.padding.program import prove
from explorer.padding.proof import Proof

# Sizes in the whole range up to which *auto* has a binary for each: they are few, and padding gains nothing.
_FEW = 4
_PLACES = 8  # lines of the user's that an error lists


@dataclass(frozen=True)
class Dynamic:
    """How an executable serves sizes that vary.

    Args:
        choice: What was wished for.
        why: Why it pads, or doesn't.
        buckets: What it pads to; None where each size has a binary of its own.
        proof: Where one was tried.
        refusals: What keeps the function from being padded.
    """

    choice: DynamicChoice = "specialise"
    why: str = "each size has a binary of its own: dynamic='auto' or 'pad' was not wished for"
    buckets: Buckets | None = None
    proof: Proof | None = None
    refusals: tuple[PaddingRefusal, ...] = ()

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

    Args:
        choice: `pad`, or else it is an error; `auto`, where it is proven and worthwhile; `specialise`, never.
        buckets: Sizes by dimension; None are powers of two.

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
