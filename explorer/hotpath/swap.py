"""A function asks somebody at each call before it runs, and is what it was again at any moment.

A few instructions are put before the function's own: they hand its arguments to a callable, which gives the call's
result; or None, and the function goes on as if nothing had been. So a call that runs eagerly does so in the user's own
frame: tracebacks, `warnings.warn(stacklevel=2)`, `sys._getframe`, the depth of recursion are what they are without
Explorer. What holds the function (other modules, lists, partials) needs no change, and its parameters, defaults,
closure, lines and name are the same. Nothing is put into the user's namespaces: what is asked stands among the code's
constants. Replacing a code is one store, so a thread sees the old or the new one; a call that runs goes on with the
code that it began with.

The end of a call that goes on is seen by something that the callable gives besides: it lies on the frame's stack, below
all that the function puts there, until the frame ends, however it ends.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from types import CodeType, FunctionType
from typing import Any

_MOST = 255  # arguments and constants of an instruction without a prefix
_UNIT = 2  # bytes of an instruction
_FURTHER = 10  # kinds of entries of the table of lines below this one stand in the line of the entry before


class NotSwappable(Exception):
    """The function's code can't be added to, with the reason."""


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
    mark_copy(copy)
    return copy


def swap(function: FunctionType, target: Callable[..., tuple[Any, Any]], owner: object = None) -> CodeType:
    """From now on a call of a function asks `target` first, and this gives the code that it has then.

    `target` is given the values of all parameters, in the order of the code's names: those by position, those by name,
    the tuple of `*args`, the dict of `**kwargs`. It gives the call's result, or None for none, and what is to be kept
    until the call ends.

    Raises:
        NotSwappable: The code is of a form that isn't known.
    """
    code = _with_entrance(code_of(function), target, owner)
    function.__code__ = code
    return code


def restore(function: FunctionType, swapped: CodeType) -> None:
    """The function is what it was, exactly; nothing happens if it has another code by now than `swapped`."""
    if function.__code__ is swapped:
        function.__code__ = own_code(swapped)


def _with_entrance(code: CodeType, target: Callable[..., Any], owner: object) -> CodeType:
    at = _start(code)
    added = _entrance(code, len(code.co_consts))
    if len(code.co_consts) >= _MOST or len(added) > _MOST * _UNIT:
        raise NotSwappable("it has hundreds of constants or parameters")
    new = code.replace(
        co_code=code.co_code[:at] + added + code.co_code[at:],
        co_consts=(*code.co_consts, target, Entrance(code, owner)),
        co_stacksize=max(code.co_stacksize + 1, _parameters(code) + 4),
        co_linetable=_lines(code, at // _UNIT, len(added) // _UNIT),
        co_exceptiontable=_exceptions(code.co_exceptiontable, at // _UNIT, len(added) // _UNIT),
    )
    before, after = list(code.co_positions()), list(new.co_positions())
    if after[: at // _UNIT] + after[(at + len(added)) // _UNIT :] != before:
        raise NotSwappable("where its instructions stand isn't understood")
    return new


def _start(code: CodeType) -> int:
    """Where a code's own instructions begin, in bytes: after what makes its cells, and says that it began."""
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise NotSwappable("it is a generator or a coroutine")
    for instruction in dis.get_instructions(code):
        if instruction.opname == "RESUME":
            return instruction.offset + _UNIT
        if instruction.opname not in ("COPY_FREE_VARS", "MAKE_CELL"):
            break
    raise NotSwappable("its code doesn't begin as Python's do")


def _parameters(code: CodeType) -> int:
    flags = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_argcount + code.co_kwonlyargcount + flags


def _entrance(code: CodeType, constant: int) -> bytes:
    """The instructions that call a constant with the parameters.

    They return the first thing that it gives unless that is None, and leave the second one on the stack.
    """
    names = code.co_varnames[: _parameters(code)]
    # From 3.13 on the callable comes before the NULL that says it is no method.
    callee = [("PUSH_NULL", 0), ("LOAD_CONST", constant)]
    loads = [("LOAD_DEREF" if name in code.co_cellvars else "LOAD_FAST", at) for at, name in enumerate(names)]
    call = [("PRECALL", len(names))] if "PRECALL" in dis.opmap else []
    jump = "POP_JUMP_FORWARD_IF_NONE" if "POP_JUMP_FORWARD_IF_NONE" in dis.opmap else "POP_JUMP_IF_NONE"
    after = [("UNPACK_SEQUENCE", 2), ("COPY", 1), (jump, 1), ("RETURN_VALUE", 0), ("POP_TOP", 0)]
    callee = callee if _null_comes_first() else callee[::-1]
    return b"".join(map(_encoded, [*callee, *loads, *call, ("CALL", len(names)), *after]))


def _encoded(instruction: tuple[str, int]) -> bytes:
    name, argument = instruction
    if argument > _MOST or name not in dis.opmap:
        raise NotSwappable("it has hundreds of parameters, or this Python has other instructions")
    return bytes((dis.opmap[name], argument)) + bytes(_UNIT * _sample().get(name, 0))


def _example(x: Any) -> Any:
    first, second = x()
    return (lambda: None)() if first is not None else second


@cache
def _sample() -> dict[str, int]:
    """After which instructions this Python keeps room for what it learns, and how many units: `{"CALL": 3}`."""
    instructions = list(dis.get_instructions(_example))
    return {one.opname: (following.offset - one.offset) // _UNIT - 1 for one, following in pairwise(instructions)}


@cache
def _null_comes_first() -> bool:
    names = [instruction.opname.partition("_BORROW")[0] for instruction in dis.get_instructions(_example)]
    return names.index("PUSH_NULL") < names.index("LOAD_FAST")


# The two tables of a code, as PEP 626, PEP 657 and CPython's Objects/exception_handling_notes.txt describe them -


def _lines(code: CodeType, at: int, count: int) -> bytes:
    """The table of lines with so many instructions more at a place, all of which stand in the line before them."""
    table, passed = code.co_linetable, 0
    starts = [i for i, byte in enumerate(table) if byte & 0x80]  # the first byte of an entry, and no other
    for start, end in zip(starts, [*starts[1:], len(table)], strict=True):
        kind, length = table[start] >> 3 & 15, (table[start] & 7) + 1
        if passed == at:
            return table[:start] + _same_line(count) + table[start:]
        if passed < at < passed + length and kind < _FURTHER:  # what begins may stand where the first instruction does
            parts = [
                bytes((0x80 | kind << 3 | part - 1,)) + table[start + 1 : end]
                for part in (at - passed, length - at + passed)
            ]
            return table[:start] + parts[0] + _same_line(count) + parts[1] + table[end:]
        passed += length
    raise NotSwappable("where its instructions stand isn't understood")


def _same_line(count: int) -> bytes:
    """Entries for so many instructions in the line of those before them."""
    full, rest = divmod(count, 8)
    lengths = [8] * full + [rest] * (rest > 0)
    return b"".join(bytes((0x80 | 13 << 3 | length - 1, 0)) for length in lengths)  # no column, and no line further


def _exceptions(table: bytes, at: int, count: int) -> bytes:
    """The table of who handles exceptions, with so many instructions more at a place."""
    numbers = list(_numbers(table))
    encoded = bytearray()
    for start, length, target, depth in zip(*(numbers[i::4] for i in range(4)), strict=True):
        if start < at:
            raise NotSwappable("its first instructions are guarded")
        # The depth is shifted over a bit: whether the place of the exception is put on the stack as well.
        entry = (start + count, length, target + count, depth + (1 << 1))
        for place, number in enumerate(entry):
            encoded += _number(number, is_first=place == 0)
    return bytes(encoded)


def _numbers(table: bytes) -> Iterator[int]:
    value = 0
    for byte in table:
        value = value << 6 | byte & 0x3F
        if not byte & 0x40:
            yield value
            value = 0


def _number(value: int, is_first: bool) -> bytes:
    """Six bits a byte, the highest first; a mark on all but the last, and another on the first of an entry."""
    parts = [value & 0x3F]
    while value := value >> 6:
        parts.append(value & 0x3F | 0x40)
    parts.reverse()
    parts[0] |= 0x80 if is_first else 0
    return bytes(parts)


class Entrance:
    """The mark of a code that asks its owner before it runs; it stands among the code's constants."""

    def __init__(self, code: CodeType, owner: object) -> None:
        self.code, self.owner = code, owner  # the same code without that, and who is asked

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
    function.__dict__[_COPY] = True


def is_copy(function: FunctionType) -> bool:
    return _COPY in function.__dict__
