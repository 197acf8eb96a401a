"""A function runs something else in its place, and is what it was again at any moment.

Its code is replaced by one with the same signature that hands the call on: what holds the function (other modules,
lists, partials) needs no change, and who looks at its parameters sees the same. What is called stands in the code as a
constant, so nothing is put into the user's namespaces. Replacing a code is one store, so a thread sees the old or the
new one; a call that runs goes on with the code that it began with.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from explorer.hotpath.codes import SWAPPED, code_of

_MARK = "<explorer: what is called>"


def original_of(function: FunctionType) -> FunctionType:
    """A function like this one, with the code that is its own."""
    copy = FunctionType(
        code_of(function),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__qualname__, copy.__module__, copy.__doc__ = function.__qualname__, function.__module__, function.__doc__
    copy.__dict__.update(function.__dict__)
    return copy


def swap(function: FunctionType, target: Callable[..., Any]) -> None:
    """From now on calls of a function are calls of `target`, with the same arguments."""
    code = function.__code__
    SWAPPED.setdefault(function, code)
    function.__code__ = _trampoline(SWAPPED[function], target)


def restore(function: FunctionType) -> None:
    """The function is what it was, exactly; nothing happens if it never was anything else."""
    code = SWAPPED.get(function)
    if code is not None:
        function.__code__ = code
        del SWAPPED[function]


def _trampoline(code: CodeType, target: Callable[..., Any]) -> CodeType:
    """Code with the signature of another one that calls `target`."""
    free = code.co_freevars
    parameters, handed = _signature(code)
    # Free variables must be named for the code to have as many, and are never read.
    keeps = f"\n  if 0: {', '.join(free)}" if free else ""
    inner = f" def f({parameters}):{keeps}\n  return (_explorer_target := {_MARK!r})({handed})"
    text = f"def make({', '.join(free)}):\n{inner}\n return f" if free else f"if 1:\n{inner}"
    tree = ast.parse(text)
    top = compile(tree, code.co_filename, "exec", dont_inherit=True)
    made = next(inner for inner in _codes(top) if inner.co_name == "f")
    return made.replace(
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_firstlineno=code.co_firstlineno,
        co_linetable=_one_line(made, code.co_firstlineno),
        co_consts=tuple(target if constant == _MARK else constant for constant in made.co_consts),
    )


def _signature(code: CodeType) -> tuple[str, str]:
    """The parameters of a code, without their defaults, and the same as arguments."""
    names = list(code.co_varnames)
    count, only_by_position, by_name = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
    parts, handed = names[:only_by_position], names[:count]
    if only_by_position:
        parts.append("/")
    parts += names[only_by_position:count]
    at = count + by_name
    if code.co_flags & inspect.CO_VARARGS:
        parts.append(f"*{names[at]}")
        handed.append(f"*{names[at]}")
        at += 1
    elif by_name:
        parts.append("*")
    parts += names[count : count + by_name]
    handed += [f"{name}={name}" for name in names[count : count + by_name]]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        parts.append(f"**{names[at]}")
        handed.append(f"**{names[at]}")
    return ", ".join(parts), ", ".join(handed)


def _codes(code: CodeType) -> list[CodeType]:
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return inner + [deeper for one in inner for deeper in _codes(one)]


def _one_line(code: CodeType, line: int) -> bytes:
    """The table of lines of a code all of which stands in its first line, as PEP 626 and Python 3.11 encode it."""
    units = len(code.co_code) // 2
    table = bytearray()
    while units > 0:
        length = min(units, 8)
        table.append(0x80 | (13 << 3) | (length - 1))  # a line and no column
        table.append(0)  # as many lines further: none
        units -= length
    return bytes(table)
