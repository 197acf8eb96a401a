"""Expressions: what is known of their values."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import FunctionType
from typing import Any

import jax

from explorer.hotpath.codes import code_of
from explorer.hotpath.proof.attributes import attribute, elements, item, read_value, values_in
from explorer.hotpath.proof.binding import Arguments
from explorer.hotpath.proof.calls import call
from explorer.hotpath.proof.conditions import truth
from explorer.hotpath.proof.operators import IN_TEXTS, binary, comparison, is_sequence, join_all, unary
from explorer.hotpath.proof.reads import Reads, cell_value
from explorer.hotpath.proof.refusal import NotProven
from explorer.hotpath.proof.values import (
    DATA,
    PLAIN,
    Closure,
    Data,
    Fresh,
    Items,
    Known,
    Made,
    Scope,
    Value,
    is_plain,
    join,
)


class Frame:
    """One call of a function, while it is gone through.

    Args:
        home: The function whose globals names are looked up in.
        scope: Its names.
        function: The frame that it is a comprehension in; itself where it is none.
    """

    def __init__(self, home: FunctionType, scope: Scope, function: Frame | None = None) -> None:
        self.home = home
        self.function = function if function is not None else self
        self.scope = scope
        self.made: dict[ast.expr, Fresh] = {}  # containers, by where they are written out
        self.outer_names: set[str] = set()  # that `nonlocal` names
        self.result: Value | None = None
        self.left: list[dict[str, Value]] = []  # the names at each `break` and `continue` of the innermost loop


class Expressions:
    """What evaluates; the statements are those of `Interpreter`, which is one of these.

    Attributes:
        reads: What was read from outside so far.
    """

    def __init__(self) -> None:
        self.reads = Reads()
        self.in_error = False  # while the text of an error is written, which nobody sees if a trace raises it

    def run_in(self, node: ast.FunctionDef | ast.Lambda, home: FunctionType, scope: Scope) -> Value:
        """What a function gives, called with the names of a scope."""
        raise NotImplementedError

    def assign(self, target: ast.expr, value: Value, frame: Frame) -> None:
        """A value is given to a name, an attribute or an item."""
        raise NotImplementedError

    def put(self, owner: Value, value: Value, name: str) -> None:
        """A value is put into a container, which must be the call's own."""
        raise NotImplementedError

    def property(self, function: FunctionType, owner: Value, text: str) -> Value:
        """What a property of an object gives."""
        return call(self, Known(function), Arguments((owner,)), text)

    def call(self, function: Value, given: Arguments, text: str) -> Value:
        """What a call gives."""
        return call(self, function, given, text)

    def call_method(self, owner: Value, name: str, argument: Value) -> Value:
        """What a method of an object gives."""
        method = attribute(owner, name, self, name)
        result = call(self, method, Arguments((argument,)), name)
        if isinstance(result, Known) and result.value is NotImplemented:
            raise NotProven(f"`{name}` leaves it to the other side")
        return result

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        """What is known of an expression's value."""
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
                self.assign(target, given, frame.function)
                return given
            case ast.Lambda():
                return self._defined(node, frame)
            case ast.JoinedStr(values):
                return self._text(values, frame)
            case _:
                return self._display(node, frame)

    def _display(self, node: ast.expr, frame: Frame) -> Value:
        """A container that is written out."""
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
        """A container that is written out: in a loop the same one each time, or its values would never settle."""
        made = frame.function.made.setdefault(node, Fresh(kind))
        if holds is not None:
            self.put(made, holds, kind.__name__)
        return made

    def _slice(self, node: ast.Slice, frame: Frame) -> Value:
        bounds = [self.evaluate(part, frame) for part in (node.lower, node.upper, node.step) if part is not None]
        if any(isinstance(bound, Known) and isinstance(bound.value, jax.Array) for bound in bounds):
            raise NotProven("it cuts by the value of an array", "jax.lax.dynamic_slice takes arrays")
        return PLAIN if all(map(is_plain, bounds)) else DATA

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, outer: Frame) -> Value:
        """A comprehension: its names are its own, and what it gives goes into a new container."""
        frame = Frame(outer.home, Scope({}, outer.scope), outer.function)
        for generator in node.generators:
            holds = elements(self.evaluate(generator.iter, frame), self)
            if holds is None:
                return Fresh(dict if isinstance(node, ast.DictComp) else list, None)
            self.assign(generator.target, holds, frame)
            for condition in generator.ifs:
                truth(self.evaluate(condition, frame), self)  # refuses to read an array
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
                break  # what follows isn't reached
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
                raise NotProven("it writes an array's value into a text, where a trace would write its own", IN_TEXTS)
        return PLAIN


def is_starred(parts: Sequence[ast.expr]) -> bool:
    return any(isinstance(part, ast.Starred) for part in parts)
