"""A function that was made of statements of a cell: what it is made of is known, and where its names live."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from types import FunctionType

from explorer.hotpath.proof.reads import Read
from explorer.hotpath.proof.refusal import NotProven

_KEY = "__explorer_piece__"  # among a function's attributes, which its copies take over


@dataclass(frozen=True, slots=True)
class Piece:
    """What a function is made of.

    Args:
        node: Its syntax tree, which its code was compiled from.
        gives: The names that it gives values in place of its module, where they live, before its last statement.
    """

    node: ast.FunctionDef
    gives: frozenset[str]


def set_piece(function: FunctionType, piece: Piece) -> None:
    """Note what a function is made of."""
    function.__dict__[_KEY] = piece


def piece_of(function: FunctionType) -> Piece | None:
    """What a function is made of; None where it was written as a function."""
    piece = function.__dict__.get(_KEY)
    return piece if isinstance(piece, Piece) else None


def check_names(function: FunctionType, reads: Iterable[Read]) -> None:
    """Nothing that a piece calls may read the module's names that it gives: there they would be those from before.

    Raises:
        NotProven: Something does.
    """
    piece = piece_of(function)
    if piece is None:
        return
    for read in reads:
        if read.where == "global" and read.holder is function.__globals__ and read.key in piece.gives:
            raise NotProven(f"what it calls reads `{read.key}`, which it gives another value", "pass it as an argument")
