"""What operators do with values of which something is known."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from explorer.hotpath.proof.attributes import as_data, elements
from explorer.hotpath.proof.conditions import truth
from explorer.hotpath.proof.outside import array_inside, note_all, refuse_own_protocols
from explorer.hotpath.proof.refusal import NotProven
from explorer.hotpath.proof.values import (
    DATA,
    PLAIN,
    PLAIN_TYPES,
    Buffer,
    Closure,
    Data,
    Either,
    Fresh,
    Given,
    Items,
    Known,
    Made,
    Method,
    Operation,
    Plain,
    Value,
    Wrapped,
    is_plain,
    join,
)
from explorer.hotpath.proof.walker import Walker

_FOLDED: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Eq: operator.eq, ast.NotEq: operator.ne,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Not: operator.not_, ast.USub: operator.neg, ast.UAdd: operator.pos,
}  # fmt: skip
_METHODS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.Pow: "pow", ast.MatMult: "matmul",
}  # fmt: skip
_LARGEST = 10**9  # of numbers that are folded: a power of larger ones takes forever
IN_TEXTS = "write texts outside of the function"


def binary(op: ast.operator, left: Value, right: Value, walker: Walker) -> Value:
    """What `left + right` gives."""
    if isinstance(left, Either):
        return join_all([binary(op, one, right, walker) for one in left.values]) or DATA
    if isinstance(right, Either):
        return join_all([binary(op, left, one, walker) for one in right.values]) or DATA
    if is_plain(left) and is_plain(right):
        return _folded(op, left, right)
    if isinstance(op, ast.Mod) and isinstance(left, Known) and isinstance(left.value, (str, bytes)):
        raise NotProven("it writes an array's value into a text, where a trace would write its own", IN_TEXTS)
    if is_sequence(left):
        combined = _sequences(op, left, right, walker)
        if combined is not None:
            return combined
    own = _own_operator(op, left, right, walker)
    if own is not None:
        return own
    as_data(left)
    as_data(right)
    return DATA


def _own_operator(op: ast.operator, left: Value, right: Value, walker: Walker) -> Value | None:
    """What an operator of the user's class gives; None where both sides are data."""
    name = _METHODS.get(type(op))
    if name is None:
        return None
    if isinstance(left, Made):
        return walker.call_method(left, f"__{name}__", right)
    if isinstance(right, Made) and (is_plain(left) or isinstance(left, Data)):
        return walker.call_method(right, f"__r{name}__", left)
    return None


def _sequences(op: ast.operator, left: Value, right: Value, walker: Walker) -> Value | None:
    """What lists and tuples give, added or repeated; None where that isn't what is done."""
    if isinstance(op, ast.Add) and is_sequence(right):
        if isinstance(left, Items) and isinstance(right, Items):
            return Items((*left.items, *right.items))
        inside = [one for one in (elements(left, walker), elements(right, walker)) if one is not None]
        return Fresh(list, join_all(inside))
    if isinstance(op, ast.Mult) and is_plain(right):
        return Fresh(list, elements(left, walker))
    return None


def unary(op: ast.unaryop, operand: Value, walker: Walker) -> Value:
    """What `-x` or `not x` gives."""
    if is_plain(operand):
        return _folded(op, operand)
    if isinstance(op, ast.Not):
        decided = truth(operand, walker)
        return Known(not decided) if decided is not None else DATA if isinstance(operand, Data) else PLAIN
    as_data(operand)
    return DATA


def comparison(op: ast.cmpop, left: Value, right: Value, walker: Walker) -> Value:
    """What `left < right`, `left is right` or `left in right` gives."""
    if isinstance(op, (ast.Is, ast.IsNot)):
        return _identity(left, right, isinstance(op, ast.Is))
    if isinstance(op, (ast.In, ast.NotIn)):
        if isinstance(left, Data):
            raise NotProven("it looks for an array among others, which reads its value")
        return _membership(left, right, isinstance(op, ast.In), walker)
    if is_plain(left) and is_plain(right):
        return _folded(op, left, right)
    if isinstance(left, (Known, Items, Plain)) and isinstance(right, (Known, Items, Plain)):
        for value in (left, right):
            _refuse_own_equality(value)
            note_parts(value, walker, "==")
        return PLAIN
    as_data(left)
    as_data(right)
    return DATA


def _membership(left: Value, right: Value, is_in: bool, walker: Walker) -> Value:
    """What `left in right` gives; what is looked through is held by guards."""
    if isinstance(right, (Made, Closure, Wrapped, Method, Operation)):
        raise NotProven("where `in` looks isn't known")
    note_parts(left, walker, "in")
    note_parts(right, walker, "in")
    refuse_own_protocols(right, "in")
    if array_inside(right):
        raise NotProven("it looks for something among arrays, which reads their values")
    if isinstance(left, Known) and type(left.value) is str and isinstance(right, (Known, Given)):
        held: Any = right.value if isinstance(right, Known) else right.example
        if type(held) in (dict, str) or (type(held) in (list, tuple, set) and all(type(one) is str for one in held)):
            return Known((left.value in held) is is_in) if not isinstance(held, str) else PLAIN
    return PLAIN


def note_parts(value: Value, walker: Walker, text: str) -> None:
    """Note all that is in a value from outside."""
    match value:
        case Known(held):
            note_all(held, walker.reads, text)
        case Items(values) | Either(values):
            for one in values:
                note_parts(one, walker, text)
        case Fresh(_, holds) if holds is not None:
            note_parts(holds, walker, text)
        case _:
            pass


def _refuse_own_equality(value: Value) -> None:
    """Objects of the user's may compare as they like."""
    if isinstance(value, Known) and not isinstance(
        value.value, (tuple, list, dict, np.dtype, type, *PLAIN_TYPES, type(None))
    ):
        as_data(value)


def may_change_in_place(value: Value) -> bool:
    """Whether `x += 1` may change what `x` stands for, in place of giving the name something new."""
    if isinstance(value, Either):
        return any(map(may_change_in_place, value.values))
    example = getattr(value, "example", getattr(value, "value", None))
    is_container = isinstance(example, (list, dict, set, np.ndarray))
    return (
        is_container or isinstance(value, (Made, Buffer)) or (isinstance(value, Fresh) and value.kind is not np.ndarray)
    )


def join_all(values: Iterable[Value]) -> Value | None:
    """What is known of a value that is one of several; None of none."""
    joined: Value | None = None
    for value in values:
        joined = value if joined is None else join(joined, value)
    return joined


def _folded(op: ast.AST, *operands: Value) -> Value:
    """The result of an operation on numbers and texts that are known; plain where it can't be told."""
    values = [operand.value for operand in operands if isinstance(operand, Known)]
    fold = _FOLDED.get(type(op))
    if fold is None or len(values) < len(operands) or any(isinstance(v, int) and abs(v) > _LARGEST for v in values):
        return PLAIN
    if any(isinstance(value, (str, bytes)) for value in values) and not isinstance(op, (ast.Eq, ast.NotEq, ast.Add)):
        return PLAIN
    try:
        result = fold(*values)
    except Exception:  # it raises when it runs, traced or not
        return PLAIN
    return Known(result) if type(result) in PLAIN_TYPES else PLAIN


def _identity(left: Value, right: Value, is_same_: bool) -> Value:
    """`a is b`: only with a constant that there is one of, as a trace's arrays are others than the call's."""
    single, other = (right, left) if isinstance(right, Known) and _is_single(right.value) else (left, right)
    if isinstance(single, Known) and _is_single(single.value):
        if isinstance(other, Known):
            return Known((other.value is single.value) is is_same_)
        if isinstance(other, (Either, Plain)):
            return PLAIN
        return Known(not is_same_)
    raise NotProven("it asks whether two values are the same object, and a trace's are others")


def _is_single(value: Any) -> bool:
    return value is None or value is True or value is False or value is ... or isinstance(value, type)


def is_sequence(value: Value) -> bool:
    is_own = isinstance(value, Items) or (isinstance(value, Fresh) and value.kind in (list, tuple))
    example = getattr(value, "example", getattr(value, "value", None))
    return is_own or type(example) in (list, tuple)
