"""Abstract values of expressions and operators."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import jax
import numpy as np

from explorer.hotpath.proof.attributes import as_data, attribute, elements, item, read_value, truth, values_in
from explorer.hotpath.proof.calls import call
from explorer.hotpath.proof.known import array_inside, note_all, refuse_own_protocols
from explorer.hotpath.proof.values import (
    DATA,
    PLAIN,
    PLAIN_TYPES,
    Arguments,
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
    NotProven,
    Operation,
    Plain,
    Reads,
    Scope,
    Value,
    Walker,
    Wrapped,
    cell_value,
    is_plain,
    join,
    join_all,
)
from explorer.hotpath.swap import code_of

_FOLDED: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Eq: operator.eq, ast.NotEq: operator.ne,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Not: operator.not_, ast.USub: operator.neg, ast.UAdd: operator.pos,
}  # fmt: skip
_METHODS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.Pow: "pow", ast.MatMult: "matmul",
}  # fmt: skip
_MAX_FOLDED = 10**9  # operations on larger numbers are not computed here: a product may get long
IN_TEXTS = "format text outside of the function"
_COMPARABLE = (tuple, list, dict, np.dtype, type, *PLAIN_TYPES, type(None))


def binary(op: ast.operator, left: Value, right: Value, walker: Walker) -> Value:
    if isinstance(left, Either):
        return join_all([binary(op, one, right, walker) for one in left.values]) or DATA
    if isinstance(right, Either):
        return join_all([binary(op, left, one, walker) for one in right.values]) or DATA
    if is_plain(left) and is_plain(right):
        return _folded(op, left, right)
    if isinstance(op, ast.Mod) and isinstance(left, Known) and isinstance(left.value, (str, bytes)):
        raise NotProven("it formats an array's value as text, and a trace has no values", IN_TEXTS)
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
    """Return the abstract result of an operator that a user's class defines; None if neither side is an instance of
    such a class.
    """
    name = _METHODS.get(type(op))
    if name is None:
        return None
    if isinstance(left, Made):
        return walker.call_method(left, f"__{name}__", right)
    if isinstance(right, Made) and (is_plain(left) or isinstance(left, Data)):
        return walker.call_method(right, f"__r{name}__", left)
    return None


def _sequences(op: ast.operator, left: Value, right: Value, walker: Walker) -> Value | None:
    """Return the abstract sum or repetition of lists and tuples; None for other operands."""
    if isinstance(op, ast.Add) and is_sequence(right):
        if isinstance(left, Items) and isinstance(right, Items):
            return Items((*left.items, *right.items))
        inside = [one for one in (elements(left, walker), elements(right, walker)) if one is not None]
        return Fresh(list, join_all(inside))
    if isinstance(op, ast.Mult) and is_plain(right):
        return Fresh(list, elements(left, walker))
    return None


def unary(op: ast.unaryop, operand: Value, walker: Walker) -> Value:
    if is_plain(operand):
        return _folded(op, operand)
    if isinstance(op, ast.Not):
        decided = truth(operand, walker)
        return Known(not decided) if decided is not None else DATA if isinstance(operand, Data) else PLAIN
    as_data(operand)
    return DATA


def comparison(op: ast.cmpop, left: Value, right: Value, walker: Walker) -> Value:
    match op:
        case ast.Is() | ast.IsNot():
            return _identity(left, right, isinstance(op, ast.Is))
        case ast.In() | ast.NotIn():
            return _membership(left, right, isinstance(op, ast.In), walker)
        case _:
            pass
    if is_plain(left) and is_plain(right):
        return _folded(op, left, right)
    if isinstance(left, (Known, Items, Plain)) and isinstance(right, (Known, Items, Plain)):
        for value in (left, right):
            if isinstance(value, Known) and not isinstance(value.value, _COMPARABLE):
                as_data(value)  # a user's class may define `==` itself
            note_parts(value, walker, "==")
        return PLAIN
    as_data(left)
    as_data(right)
    return DATA


def _membership(left: Value, right: Value, is_in: bool, walker: Walker) -> Value:
    """Return the abstract value of `left in right`, or of `not in`: a known bool, or PLAIN, which is an unknown plain
    value.

    Guards check the contents of both.
    """
    if isinstance(left, Data):
        raise NotProven("it looks for an array among others, which reads its value")
    if isinstance(right, (Made, Closure, Wrapped, Method, Operation)):
        raise NotProven("the container after `in` is unknown")
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


def may_change_in_place(value: Value) -> bool:
    """Return True if `x += 1` may mutate the object that `x` refers to instead of rebinding the name."""
    if isinstance(value, Either):
        return any(map(may_change_in_place, value.values))
    example = getattr(value, "example", getattr(value, "value", None))
    if isinstance(value, Fresh):
        return value.kind is not np.ndarray
    return isinstance(value, (Made, Buffer)) or isinstance(example, (list, dict, set, np.ndarray))


def _folded(op: ast.AST, *operands: Value) -> Value:
    """Return the known result of an operation on known numbers and texts; PLAIN, an unknown plain value, if it isn't
    computed here.
    """
    values = [operand.value for operand in operands if isinstance(operand, Known)]
    fold = _FOLDED.get(type(op))
    if fold is None or len(values) < len(operands) or any(isinstance(v, int) and abs(v) > _MAX_FOLDED for v in values):
        return PLAIN
    if any(isinstance(value, (str, bytes)) for value in values) and not isinstance(op, (ast.Eq, ast.NotEq, ast.Add)):
        return PLAIN
    try:
        result = fold(*values)
    except Exception:  # eager and traced calls both raise
        return PLAIN
    return Known(result) if type(result) in PLAIN_TYPES else PLAIN


def _identity(left: Value, right: Value, is_same_: bool) -> Value:
    """Return the abstract value of `a is b`, or of `is not`: a known bool, or PLAIN, which is an unknown plain value.

    Only a comparison with a singleton is proven: a trace has other arrays.
    """
    single, other = (right, left) if isinstance(right, Known) and _is_single(right.value) else (left, right)
    if isinstance(single, Known) and _is_single(single.value):
        if isinstance(other, Known):
            return Known((other.value is single.value) is is_same_)
        if isinstance(other, (Either, Plain)):
            return PLAIN
        return Known(not is_same_)
    raise NotProven("it compares the identity of two objects, which differs in a trace")


def _is_single(value: Any) -> bool:
    return value is None or value is True or value is False or value is ... or isinstance(value, type)


def is_sequence(value: Value) -> bool:
    is_own = isinstance(value, Items) or (isinstance(value, Fresh) and value.kind in (list, tuple))
    example = getattr(value, "example", getattr(value, "value", None))
    return is_own or type(example) in (list, tuple)


class Frame:
    def __init__(self, home: FunctionType, scope: Scope, function: Frame | None = None) -> None:
        self.home = home  # names are looked up in its globals
        self.function = function if function is not None else self  # of a comprehension: the enclosing frame
        self.scope = scope
        self.made: dict[ast.expr, Fresh] = {}  # containers by the expression that builds them
        self.outer_names: set[str] = set()  # declared `nonlocal`
        self.result: Value | None = None
        self.left: list[dict[str, Value]] = []  # names at each `break` and `continue` of the innermost loop


class Expressions(Walker):
    """Evaluator of expressions; `Interpreter` adds the statements."""

    def __init__(self) -> None:
        self.reads = Reads()
        self.in_error = False  # inside `raise`: if a trace raises, the function runs again as written

    def assign(self, target: ast.expr, value: Value, frame: Frame) -> None:
        raise NotImplementedError

    def call(self, function: Value, given: Arguments, text: str) -> Value:
        return call(self, function, given, text)

    def call_method(self, owner: Value, name: str, argument: Value) -> Value:
        method = attribute(owner, name, self, name)
        result = call(self, method, Arguments((argument,)), name)
        if isinstance(result, Known) and result.value is NotImplemented:
            raise NotProven(f"`{name}` returns NotImplemented")
        return result

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        match node:
            case ast.Constant(value):
                return Known(value)
            case ast.Name(name):
                return self._name(name, frame)
            case ast.Attribute(owner, name):
                return attribute(self.evaluate(owner, frame), name, self, ast.unparse(node))
            case ast.Subscript(owner, key):
                base = self.evaluate(owner, frame)
                if isinstance(key, ast.Slice) and is_sequence(base):
                    self.evaluate(key, frame)
                    return Fresh(tuple, elements(base, self))
                return item(base, self.evaluate(key, frame), self, ast.unparse(node))
            case ast.Call():
                return self._call(node, frame)
            case ast.BinOp(left, op, right):
                return binary(op, self.evaluate(left, frame), self.evaluate(right, frame), self)
            case ast.UnaryOp(op, operand):
                return unary(op, self.evaluate(operand, frame), self)
            case ast.BoolOp(_, values):
                return self._logic(node.op, values, frame)
            case ast.Compare(left, ops, comparators):
                return self._compare(self.evaluate(left, frame), ops, comparators, frame)
            case ast.IfExp(test, body, orelse):
                decided = truth(self.evaluate(test, frame), self)
                if decided is not None:
                    return self.evaluate(body if decided else orelse, frame)
                return join(self.evaluate(body, frame), self.evaluate(orelse, frame))
            case ast.NamedExpr(target, value):
                given = self.evaluate(value, frame)
                # In a comprehension, `:=` binds in the function around it.
                self.assign(target, given, frame.function)
                return given
            case ast.Lambda():
                return self._defined(node, frame)
            case ast.JoinedStr(values):
                return self._text(values, frame)
            case _:
                return self._display(node, frame)

    def _display(self, node: ast.expr, frame: Frame) -> Value:
        match node:
            case ast.Tuple(parts) if not is_starred(parts):
                return Items(tuple(self.evaluate(part, frame) for part in parts))
            case ast.Tuple(parts) | ast.List(parts) | ast.Set(parts):
                kind = {ast.Tuple: tuple, ast.List: list, ast.Set: set}[type(node)]
                return self._made_at(node, kind, self._all(parts, frame), frame)
            case ast.Dict():
                return self._dict(node, frame)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node, frame)
            case ast.Slice():
                return self._slice(node, frame)
            case ast.Starred(value):
                raise NotProven(f"`*{ast.unparse(value)}` isn't followed")
            case _:
                raise NotProven(f"`{ast.unparse(node):.60}` isn't followed")

    def _dict(self, node: ast.Dict, frame: Frame) -> Value:
        inside: list[Value] = []
        for key, value in zip(node.keys, node.values, strict=True):
            given = self.evaluate(value, frame)
            if key is not None:
                self._hashed(self.evaluate(key, frame))
                inside.append(given)
            elif (merged := values_in(given, self)) is not None:
                inside.append(merged)
        return self._made_at(node, dict, join_all(inside), frame)

    def _made_at(self, node: ast.expr, kind: type[Any], holds: Value | None, frame: Frame) -> Value:
        """Return the abstract container written at `node`, with `holds` added. A loop reuses it in each round, so that
        its values settle.
        """
        made = frame.function.made.setdefault(node, Fresh(kind))
        if holds is not None:
            self.put(made, holds, kind.__name__)
        return made

    def _slice(self, node: ast.Slice, frame: Frame) -> Value:
        bounds = [self.evaluate(part, frame) for part in (node.lower, node.upper, node.step) if part is not None]
        if any(isinstance(bound, Known) and isinstance(bound.value, jax.Array) for bound in bounds):
            raise NotProven("it slices by the value of an array", "jax.lax.dynamic_slice takes arrays")
        return PLAIN if all(map(is_plain, bounds)) else DATA

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, outer: Frame) -> Value:
        """Return the abstract container that a comprehension builds; its variables have a scope of their own."""
        frame = Frame(outer.home, Scope({}, outer.scope), outer.function)
        for generator in node.generators:
            holds = elements(self.evaluate(generator.iter, frame), self)
            if holds is None:
                return Fresh(dict if isinstance(node, ast.DictComp) else list, None)
            self.assign(generator.target, holds, frame)
            for condition in generator.ifs:
                truth(self.evaluate(condition, frame), self)  # refuses array values
        if isinstance(node, ast.DictComp):
            self._hashed(self.evaluate(node.key, frame))
            return Fresh(dict, self.evaluate(node.value, frame))
        return Fresh(set if isinstance(node, ast.SetComp) else list, self.evaluate(node.elt, frame))

    def _all(self, parts: Sequence[ast.expr], frame: Frame) -> Value | None:
        values: list[Value] = []
        for part in parts:
            if isinstance(part, ast.Starred):
                inside = elements(self.evaluate(part.value, frame), self)
                values += [] if inside is None else [inside]
            else:
                values.append(self.evaluate(part, frame))
        return join_all(values)

    def _hashed(self, key: Value) -> None:
        if isinstance(key, (Made, Data)):
            raise NotProven("a key of a dict is computed")

    def _name(self, name: str, frame: Frame) -> Value:
        local = frame.scope.find(name)
        if local is not None:
            return local
        home = frame.home
        free = code_of(home).co_freevars
        if name in free and home.__closure__ is not None:
            cell = home.__closure__[free.index(name)]
            value = cell_value(cell)
            if value is ...:
                raise NotProven(f"`{name}` has no value yet")
            self.reads.add("cell", cell, None, value, name)
            return read_value(value, self, name)
        for namespace in (home.__globals__, home.__builtins__):  # pyright: ignore[reportAttributeAccessIssue]
            if name in namespace:
                self.reads.add("global", namespace, name, namespace[name], name)
                return read_value(namespace[name], self, name)
        raise NotProven(f"`{name}` may have no value here")

    def _call(self, node: ast.Call, frame: Frame) -> Value:
        callee = self.evaluate(node.func, frame)
        positional: list[Value] = []
        rest: Value | None = None
        for part in node.args:
            if isinstance(part, ast.Starred):
                given = self.evaluate(part.value, frame)
                if isinstance(given, Items) and rest is None:
                    positional += given.items
                else:
                    inside = elements(given, self)
                    rest = inside if rest is None else rest if inside is None else join(rest, inside)
            elif rest is not None:
                rest = join(rest, self.evaluate(part, frame))
            else:
                positional.append(self.evaluate(part, frame))
        named: dict[str, Value] = {}
        others: Value | None = None
        for keyword in node.keywords:
            value = self.evaluate(keyword.value, frame)
            if keyword.arg is None:
                others = values_in(value, self)
            else:
                named[keyword.arg] = value
        return call(self, callee, Arguments(tuple(positional), named, rest, others), ast.unparse(node.func))

    def _defined(self, node: ast.FunctionDef | ast.Lambda, frame: Frame) -> Value:
        arguments = node.args
        positional = [*arguments.posonlyargs, *arguments.args]
        defaults = {
            parameter.arg: self.evaluate(default, frame)
            for parameter, default in zip(
                positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True
            )
        }
        for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if default is not None:
                defaults[parameter.arg] = self.evaluate(default, frame)
        function: Value = Closure(node, frame.scope, frame.home, defaults)
        for decorator in reversed(getattr(node, "decorator_list", ())):
            function = call(self, self.evaluate(decorator, frame), Arguments((function,)), ast.unparse(decorator))
        return function

    def _logic(self, op: ast.boolop, values: Sequence[ast.expr], frame: Frame) -> Value:
        results: list[Value] = []
        for value in values:
            given = self.evaluate(value, frame)
            decided = truth(given, self)
            results.append(given)
            if decided is not None and decided is isinstance(op, ast.Or):
                break  # the rest isn't evaluated
            # Its truth leads to the next value: it can't be the result.
            if decided is not None and value is not values[-1]:
                results.pop()
        return join_all(results) or PLAIN

    def _compare(self, left: Value, ops: Sequence[ast.cmpop], comparators: Sequence[ast.expr], frame: Frame) -> Value:
        results: list[Value] = []
        for op, comparator in zip(ops, comparators, strict=True):
            right = self.evaluate(comparator, frame)
            results.append(comparison(op, left, right, self))
            left = right
        return results[0] if len(results) == 1 else DATA if any(isinstance(r, Data) for r in results) else PLAIN

    def _text(self, values: Sequence[ast.expr], frame: Frame) -> Value:
        for value in values:
            if (
                isinstance(value, ast.FormattedValue)
                and not is_plain(self.evaluate(value.value, frame))
                and not self.in_error
            ):
                raise NotProven("it formats an array's value as text, and a trace has no values", IN_TEXTS)
        return PLAIN


def is_starred(parts: Sequence[ast.expr]) -> bool:
    return any(isinstance(part, ast.Starred) for part in parts)
