"""Which code is a function's own, while something else is asked before it."""

from __future__ import annotations

from types import CodeType, FunctionType


class Entrance:
    """The mark of a code that asks somebody before it runs; it stands among the code's constants.

    Args:
        code: The same code without that.
        owner: Who is asked.
    """

    def __init__(self, code: CodeType, owner: object) -> None:
        self.code, self.owner = code, owner

    def __reduce__(self) -> tuple[type[object], tuple[()]]:
        return object, ()  # who pickles a function by its code, as cloudpickle does, takes no state of ours along


def own_code(code: CodeType) -> CodeType:
    """A code as its author wrote it, whoever is asked before it runs."""
    mark = code.co_consts[-1] if code.co_consts else None
    return mark.code if type(mark) is Entrance else code


def code_of(function: FunctionType) -> CodeType:
    """A function's own code, whoever is asked before it runs.

    All that it needs stands in the one code that it reads, so another thread may swap or restore meanwhile.
    """
    return own_code(function.__code__)


def entered_by(code: CodeType) -> object:
    """Who is asked before a code runs; None where nobody is."""
    mark = code.co_consts[-1] if code.co_consts else None
    return mark.owner if type(mark) is Entrance else None


_COPY = "__explorer_copy__"


def mark_copy(function: FunctionType) -> None:
    """Note that a function is our copy of a user's."""
    function.__dict__[_COPY] = True


def is_copy(function: FunctionType) -> bool:
    """Whether a function is our copy of a user's."""
    return _COPY in function.__dict__
