"""What the parts of the proof need of who goes through the function."""

from __future__ import annotations

import ast
from types import FunctionType
from typing import Protocol

from explorer.hotpath.proof.binding import Arguments
from explorer.hotpath.proof.reads import Reads
from explorer.hotpath.proof.values import Scope, Value


class Walker(Protocol):
    """Goes through functions; see `statements.Interpreter`.

    Attributes:
        reads: What was read from outside so far.
        in_error: While the text of an error is written.
    """

    reads: Reads
    in_error: bool

    def run_in(self, node: ast.FunctionDef | ast.Lambda, home: FunctionType, scope: Scope) -> Value:
        """What a function gives, called with the names of a scope."""
        ...

    def property(self, function: FunctionType, owner: Value, text: str) -> Value:
        """What a property of an object gives."""
        ...

    def call(self, function: Value, given: Arguments, text: str) -> Value:
        """What a call gives."""
        ...

    def call_method(self, owner: Value, name: str, argument: Value) -> Value:
        """What a method of an object gives."""
        ...

    def put(self, owner: Value, value: Value, name: str) -> None:
        """A value is put into a container, which must be the call's own."""
        ...
