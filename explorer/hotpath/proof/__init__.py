"""Whether a function may be compiled unasked: a proof, from its source, that nobody could tell but by the clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import CO_VARKEYWORDS
from types import FunctionType
from typing import Any

from explorer.hotpath.codes import code_of
from explorer.hotpath.proof.attributes import classify
from explorer.hotpath.proof.binding import Arguments
from explorer.hotpath.proof.calls import call
from explorer.hotpath.proof.facts import Fact, facts_of
from explorer.hotpath.proof.piece import check_names
from explorer.hotpath.proof.reads import Read
from explorer.hotpath.proof.refusal import NotProven, Refusal
from explorer.hotpath.proof.statements import Interpreter
from explorer.hotpath.proof.values import Known


@dataclass(frozen=True, slots=True)
class Proof:
    """A function that is known to compute, and do nothing else, for arguments like those it was looked at with.

    Args:
        reads: What it reads from outside of its call; the proof holds as long as all of it is the same.
        facts: What must hold of later arguments besides their tree.
    """

    reads: tuple[Read, ...]
    facts: tuple[Fact, ...] = ()


def prove(function: FunctionType, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Proof | Refusal:
    """Go through a function's source with the arguments of a call as examples. Nothing of the user's is run."""
    interpreter = Interpreter()
    given = Arguments(tuple(map(classify, args)), {name: classify(value) for name, value in kwargs.items()})
    try:
        call(interpreter, Known(function), given, function.__name__)
        takes_any = bool(code_of(function).co_flags & CO_VARKEYWORDS)
        facts = tuple(facts_of(args, kwargs, interpreter.reads.observed, takes_any))
        check_names(function, interpreter.reads.all())
    except NotProven as refused:
        return refused.refusal
    except RecursionError:
        return Refusal("it goes too deep to follow")
    return Proof(interpreter.reads.all(), facts)
