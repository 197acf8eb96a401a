"""Entrance of a function: instructions before its code that call a target first, and can be removed at any moment.

The entrance passes the arguments to the target, which returns the call's result, or None to continue with the
function's own code. An eager call so runs in the user's own frame: tracebacks, `warnings.warn(stacklevel=2)`,
`sys._getframe` and recursion depth are unchanged. References to the function (in modules, lists, partials) stay valid,
and parameters, defaults, closure, lines and name are the same. The target is a constant of the code, so the user's
namespaces stay untouched. Replacing a code is one store: a thread sees the old or the new one, and a running call keeps
its own.

The target also returns an object that stays on the frame's stack below all else, so its deletion signals the end of the
call, however it ends.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from types import CodeType, FunctionType
from typing import Any

_MAX_ARGUMENT = 255  # of an instruction without a prefix
_UNIT = 2  # bytes of an instruction
_MOVES_LINE = 10  # entries of the line table below this kind keep the line of the entry before


class NotSwappable(Exception):
    pass


def original_of(function: FunctionType) -> FunctionType:
    own, name = code_of(function), function.__name__
    copy = FunctionType(own, function.__globals__, name, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__qualname__, copy.__module__, copy.__doc__ = function.__qualname__, function.__module__, function.__doc__
    copy.__dict__.update(function.__dict__)
    # A search for the functions of a code must skip it.
    copy.__dict__[_COPY] = True
    return copy


def swap(function: FunctionType, target: Callable[..., tuple[Any, Any]], owner: object = None) -> CodeType:
    """Make calls of a function run `target` first, and return the function's new code.

    The target gets the values of all parameters in the order of the code's names: positional, keyword-only, the tuple
    of `*args`, the dict of `**kwargs`. It returns the call's result or None, and an object to keep until the call ends.

    Raises:
        NotSwappable: The code has an unknown form.
    """
    code = _with_entrance(code_of(function), target, owner)
    function.__code__ = code
    return code


def restore(function: FunctionType, swapped: CodeType) -> None:
    if function.__code__ is swapped:
        function.__code__ = own_code(swapped)


def _with_entrance(code: CodeType, target: Callable[..., Any], owner: object) -> CodeType:
    at = _start(code)
    added = _entrance(code, len(code.co_consts))
    if len(code.co_consts) >= _MAX_ARGUMENT or len(added) > _MAX_ARGUMENT * _UNIT:
        raise NotSwappable("it has hundreds of constants or parameters")
    new = code.replace(
        co_code=code.co_code[:at] + added + code.co_code[at:],
        # At the end, where `own_code` looks; the other constants keep their numbers.
        co_consts=(*code.co_consts, target, Entrance(code, owner)),
        # The kept object is below all else; the call of the target needs the parameters and four more.
        co_stacksize=max(code.co_stacksize + 1, _parameters(code) + 4),
        co_linetable=_lines(code, at // _UNIT, len(added) // _UNIT),
        co_exceptiontable=_exceptions(code.co_exceptiontable, at // _UNIT, len(added) // _UNIT),
    )
    # Checked rather than trusted: the format of the tables is CPython's own.
    before, after = list(code.co_positions()), list(new.co_positions())
    if after[: at // _UNIT] + after[(at + len(added)) // _UNIT :] != before:
        raise NotSwappable("its bytecode's table of source positions has an unknown format")
    return new


def _start(code: CodeType) -> int:
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise NotSwappable("it is a generator or a coroutine")
    for instruction in dis.get_instructions(code):
        # Not before it: there cells are made, in which parameters may be.
        if instruction.opname == "RESUME":
            return instruction.offset + _UNIT
        if instruction.opname not in ("COPY_FREE_VARS", "MAKE_CELL"):
            break
    raise NotSwappable("its code doesn't begin as Python's do")


def _parameters(code: CodeType) -> int:
    flags = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_argcount + code.co_kwonlyargcount + flags


def _entrance(code: CodeType, constant: int) -> bytes:
    """Return instructions that call the constant, keep the second part of its result, and return the first if it isn't
    None.
    """
    names = code.co_varnames[: _parameters(code)]
    # From 3.13 on the callable comes before the NULL that marks a call of no method.
    callee = [("PUSH_NULL", 0), ("LOAD_CONST", constant)]
    # A parameter that an inner function uses is in a cell.
    loads = [("LOAD_DEREF" if name in code.co_cellvars else "LOAD_FAST", at) for at, name in enumerate(names)]
    # Only 3.11 has PRECALL, and jumps with a direction in their names.
    call = [("PRECALL", len(names))] if "PRECALL" in dis.opmap else []
    jump = "POP_JUMP_FORWARD_IF_NONE" if "POP_JUMP_FORWARD_IF_NONE" in dis.opmap else "POP_JUMP_IF_NONE"
    after = [("UNPACK_SEQUENCE", 2), ("COPY", 1), (jump, 1), ("RETURN_VALUE", 0), ("POP_TOP", 0)]
    callee = callee if _null_comes_first() else callee[::-1]
    return b"".join(map(_encoded, [*callee, *loads, *call, ("CALL", len(names)), *after]))


def _encoded(instruction: tuple[str, int]) -> bytes:
    name, argument = instruction
    if argument > _MAX_ARGUMENT or name not in dis.opmap:
        raise NotSwappable("it has hundreds of parameters, or this Python has other instructions")
    return bytes((dis.opmap[name], argument)) + bytes(_UNIT * _sample().get(name, 0))


def _example(x: Any) -> Any:
    first, second = x()
    return (lambda: None)() if first is not None else second


@cache
def _sample() -> dict[str, int]:
    """Return the inline cache units after each instruction of this Python: `{"CALL": 3}`."""
    instructions = list(dis.get_instructions(_example))
    return {one.opname: (following.offset - one.offset) // _UNIT - 1 for one, following in pairwise(instructions)}


@cache
def _null_comes_first() -> bool:
    # From Python 3.14 on, a load may borrow its reference.
    names = [instruction.opname.partition("_BORROW")[0] for instruction in dis.get_instructions(_example)]
    return names.index("PUSH_NULL") < names.index("LOAD_FAST")


# The tables of a code, by PEP 626, PEP 657 and CPython's Objects/exception_handling_notes.txt


def _lines(code: CodeType, at: int, count: int) -> bytes:
    """Return the line table with `count` instructions inserted at `at`, in the line of the instruction before."""
    table, passed = code.co_linetable, 0
    starts = [i for i, byte in enumerate(table) if byte & 0x80]  # the first byte of an entry, and no other
    for start, end in zip(starts, [*starts[1:], len(table)], strict=True):
        kind, length = table[start] >> 3 & 15, (table[start] & 7) + 1
        if passed == at:
            return table[:start] + _same_line(count) + table[start:]
        if passed < at < passed + length and kind < _MOVES_LINE:  # an entry that moves the line can't be split
            parts = [
                bytes((0x80 | kind << 3 | part - 1,)) + table[start + 1 : end]
                for part in (at - passed, length - at + passed)
            ]
            return table[:start] + parts[0] + _same_line(count) + parts[1] + table[end:]
        passed += length
    raise NotSwappable("its bytecode's table of source positions has an unknown format")


def _same_line(count: int) -> bytes:
    full, rest = divmod(count, 8)
    lengths = [8] * full + [rest] * (rest > 0)
    return b"".join(bytes((0x80 | 13 << 3 | length - 1, 0)) for length in lengths)  # kind 13: no columns; line offset 0


def _exceptions(table: bytes, at: int, count: int) -> bytes:
    """Return the exception table with `count` instructions inserted at `at`."""
    numbers = list(_numbers(table))
    encoded = bytearray()
    for start, length, target, depth in zip(*(numbers[i::4] for i in range(4)), strict=True):
        if start < at:
            raise NotSwappable("its first instructions are guarded")
        # The lowest bit of the depth is a flag: push the offset of the exception too.
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
    """Return a number encoded in bytes of six bits, the highest first, with a continuation bit and a start bit."""
    parts = [value & 0x3F]
    while value := value >> 6:
        parts.append(value & 0x3F | 0x40)
    parts.reverse()
    parts[0] |= 0x80 if is_first else 0
    return bytes(parts)


class Entrance:
    def __init__(self, code: CodeType, owner: object) -> None:
        self.code, self.owner = code, owner  # the code without entrance; the object behind the target

    def __reduce__(self) -> tuple[type[object], tuple[()]]:
        return object, ()  # cloudpickle pickles codes; it must not include our state


def own_code(code: CodeType) -> CodeType:
    mark = code.co_consts[-1] if code.co_consts else None
    return mark.code if type(mark) is Entrance else code


def code_of(function: FunctionType) -> CodeType:
    """Return a function's own code, without an entrance. It reads `__code__` once, so another thread may swap it
    meanwhile.
    """
    return own_code(function.__code__)


def entered_by(code: CodeType) -> object:
    mark = code.co_consts[-1] if code.co_consts else None
    return mark.owner if type(mark) is Entrance else None


_COPY = "__explorer_copy__"


def is_copy(function: FunctionType) -> bool:
    return _COPY in function.__dict__
