"""Proof from its source that a function may be compiled automatically: only its speed may differ.

The proof is an abstract interpretation: it follows the source with abstract values and accepts only harmless steps. A
step is harmless if running it once or three times makes no visible difference: it computes from the arguments and from
reads, mutates only objects that the call created, and takes no decision from array values. Reads from outside are noted
for the guards. Any other step ends the proof with its line. Both branches of a condition are followed unless guards
decide it, and loops until nothing changes (Cousot & Cousot 1977; few abstract values, so no widening).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import CO_VARKEYWORDS
from types import FunctionType, ModuleType
from typing import Any

import jax
import numpy as np

from explorer.hotpath.proof.attributes import classify, elements, item, truth
from explorer.hotpath.proof.calls import call
from explorer.hotpath.proof.expressions import Expressions, Frame, binary, is_starred, may_change_in_place
from explorer.hotpath.proof.facts import Fact, facts_of
from explorer.hotpath.proof.known import array_inside
from explorer.hotpath.proof.syntax import check_names, own_nodes
from explorer.hotpath.proof.values import (
    DATA,
    NONE,
    Arguments,
    Closure,
    Either,
    Fresh,
    Items,
    Known,
    Made,
    NotProven,
    Read,
    Refusal,
    Scope,
    Value,
    is_same,
    join,
)
from explorer.hotpath.swap import code_of


@dataclass(frozen=True, slots=True)
class Proof:
    """Evidence that a function only computes, for arguments like those of the proven call."""

    reads: tuple[Read, ...]  # values from outside; the proof holds while they are unchanged
    facts: tuple[Fact, ...] = ()


def prove(function: FunctionType, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Proof | Refusal:
    """Return the proof that a function only computes, or the reason against it.

    Its source is followed, with a call's arguments as examples; no code of the user runs.
    """
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
        return Refusal("its calls are nested too deeply to follow")
    return Proof(interpreter.reads.all(), facts)


_MAX_ROUNDS = 8  # of a loop's body until its values settle
_MAX_DEPTH = 40  # nested calls; ends recursion over data
_CONTEXTS = (jax.named_scope, jax.default_matmul_precision, jax.numpy_dtype_promotion)
_NOT_IMPORTED, _AT_THE_TOP = "it imports what isn't imported yet", "import at the top of the file"
_RETURN = "return the new value instead of changing the old one"


class Interpreter(Expressions):
    def __init__(self) -> None:
        super().__init__()
        self.learned = 0  # additions to the call's own containers; a loop is followed until this count is stable
        self._depth = 0

    # Calls ------------------------------------------------------------------------------------------------------------

    def run_in(self, node: ast.FunctionDef | ast.Lambda, home: FunctionType, scope: Scope) -> Value:
        if self._depth >= _MAX_DEPTH:
            raise NotProven("it calls itself, or its calls are nested too deeply to follow")
        if isinstance(node, ast.FunctionDef) and _is_generator(node):
            raise NotProven("it is a generator, whose steps run on demand", "return a list")
        self._depth += 1
        frame = Frame(home, scope)
        try:
            if isinstance(node, ast.Lambda):
                return self.evaluate(node.body, frame)
            falls = self._block(node.body, frame)
            result = frame.result
            return NONE if result is None else join(result, NONE) if falls else result
        except NotProven as refused:
            raise _placed(refused, node, home) from None
        finally:
            self._depth -= 1

    # Statements -------------------------------------------------------------------------------------------------------

    def _block(self, body: Sequence[ast.stmt], frame: Frame) -> bool:
        """Follow statements; return True if the statement after them is reached."""
        for statement in body:
            try:
                if not self._statement(statement, frame):
                    return False
            except NotProven as refused:
                raise _placed(refused, statement, frame.home) from None
        return True

    def _statement(self, node: ast.stmt, frame: Frame) -> bool:
        match node:
            case ast.Expr(value):
                self.evaluate(value, frame)
            case ast.Assert(test, message):
                truth(self.evaluate(test, frame), self)  # refuses array values
                self._raised(message, frame)
            case ast.Assign(targets, value):
                given = self.evaluate(value, frame)
                for target in targets:
                    self.assign(target, given, frame)
            case ast.AnnAssign(target, _, value):
                if value is not None:
                    self.assign(target, self.evaluate(value, frame), frame)
            case ast.AugAssign(target, op, value):
                self._augment(target, op, value, frame)
            case ast.Return(value):
                given = NONE if value is None else self.evaluate(value, frame)
                frame.result = given if frame.result is None else join(frame.result, given)
                return False
            case ast.Raise(error, cause):
                self._raised(error, frame)
                self._raised(cause, frame)
                return False  # a trace raises too; the function then runs as written
            case ast.If(test, body, orelse):
                return self._branch(test, body, orelse, frame)
            case ast.For(target, iterable, body, orelse):
                return self._for(target, iterable, body, orelse, frame)
            case ast.While(test, body, orelse):
                return self._while(test, body, orelse, frame)
            case ast.With(items, body):
                return self._with(items, body, frame)
            case ast.Break() | ast.Continue():
                # A copy: statements of other branches change these names.
                frame.left.append(dict(frame.scope.names))
                return False
            case ast.FunctionDef():
                self.assign(ast.Name(node.name, ast.Store()), self._defined(node, frame), frame)
            case ast.Import():
                self._import(node, frame)
            case ast.ImportFrom():
                self._import_from(node, frame)
            case ast.Nonlocal(names) if all(frame.scope.outer and frame.scope.outer.find(name) for name in names):
                frame.outer_names |= set(names)
            case ast.Global(names) | ast.Nonlocal(names):
                raise NotProven(f"it changes the variable `{names[0]}` outside of the call", _RETURN)
            case ast.Delete(targets):
                for target in targets:
                    self._delete(target, frame)
            case ast.Pass():
                pass
            case ast.Try():
                raise NotProven(
                    "it catches errors, and a trace may raise others than the call",
                    "put the `try` around the call of this function",
                )
            case _:
                raise NotProven(f"`{ast.unparse(node).split(maxsplit=1)[0].rstrip(':')}` isn't followed")
        return True

    def _raised(self, error: ast.expr | None, frame: Frame) -> None:
        if error is None:
            return
        # The text of an error may show values: where a trace raises, the function runs as written.
        before, self.in_error = self.in_error, True
        try:
            self.evaluate(error, frame)
        finally:
            self.in_error = before

    def _branch(self, test: ast.expr, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt], frame: Frame) -> bool:
        decided = truth(self.evaluate(test, frame), self)
        if decided is not None:
            return self._block(body if decided else orelse, frame)
        before = dict(frame.scope.names)
        ends: list[dict[str, Value]] = []
        for part in (body, orelse):
            frame.scope.names = dict(before)
            if self._block(part, frame):
                ends.append(frame.scope.names)
        frame.scope.names = _joined(ends) if ends else before
        return bool(ends)

    def _for(
        self, target: ast.expr, iterable: ast.expr, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt], frame: Frame
    ) -> bool:
        holds = elements(self.evaluate(iterable, frame), self)
        if holds is None:  # empty
            return self._block(orelse, frame)
        self._loop(lambda: self.assign(target, holds, frame), body, frame)
        return self._block(orelse, frame)

    def _while(self, test: ast.expr, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt], frame: Frame) -> bool:
        def condition() -> None:
            truth(self.evaluate(test, frame), self)  # refuses array values

        self._loop(condition, body, frame)
        # It is evaluated once more, after the last round.
        condition()
        return self._block(orelse, frame)

    def _loop(self, begin: Callable[[], object], body: Sequence[ast.stmt], frame: Frame) -> None:
        """Follow a loop's body until the values of its names no longer change; raise NotProven after some rounds."""
        outer, frame.left = frame.left, []
        for _ in range(_MAX_ROUNDS):
            before, learned = dict(frame.scope.names), self.learned
            begin()
            # The loop may end before its first round.
            ends = [before]
            if self._block(body, frame):
                ends.append(frame.scope.names)
            frame.scope.names = _joined([*ends, *frame.left])
            after = frame.scope.names
            is_settled = before.keys() == after.keys() and all(_settled(before[name], after[name]) for name in after)
            if learned == self.learned and is_settled:
                frame.left = outer
                return
        raise NotProven("the types of its loop's values keep changing")

    def _with(self, items: Sequence[ast.withitem], body: Sequence[ast.stmt], frame: Frame) -> bool:
        for entry in items:
            call_ = entry.context_expr
            callee = self.evaluate(call_.func, frame) if isinstance(call_, ast.Call) else DATA
            is_harmless = isinstance(callee, Known) and any(callee.value is one for one in _CONTEXTS)
            if not is_harmless or entry.optional_vars is not None:
                raise NotProven(f"the effects of `with {ast.unparse(call_)}` are unknown")
            if isinstance(call_, ast.Call):
                for part in (*call_.args, *(keyword.value for keyword in call_.keywords)):
                    self.evaluate(part, frame)
        return self._block(body, frame)

    def _import(self, node: ast.Import, frame: Frame) -> None:
        for alias in node.names:
            module, top = _imported(alias.name), alias.name.partition(".")[0]
            frame.scope.names[alias.asname or top] = Known(module if alias.asname else sys.modules[top])

    def _import_from(self, node: ast.ImportFrom, frame: Frame) -> None:
        for alias in node.names:
            module = _imported("" if node.level else node.module or "")
            value = vars(module).get(alias.name, ...)
            if value is ...:
                raise NotProven(_NOT_IMPORTED, _AT_THE_TOP)
            self.reads.add("global", vars(module), alias.name, value, alias.name)
            frame.scope.names[alias.asname or alias.name] = Known(value)

    # Assignments ------------------------------------------------------------------------------------------------------

    def assign(self, target: ast.expr, value: Value, frame: Frame) -> None:
        match target:
            case ast.Name(name) if name in frame.outer_names:
                self._assign_outer(name, value, frame)
            case ast.Name(name):
                frame.scope.names[name] = value
            case ast.Tuple(parts) | ast.List(parts):
                self._unpack(parts, value, frame)
            case ast.Attribute(owner, name):
                self._set_attribute(self.evaluate(owner, frame), name, value, target)
            case ast.Subscript(owner, key):
                self.evaluate(key, frame)
                self.put(self.evaluate(owner, frame), value, ast.unparse(target))
            case ast.Starred(inner):
                self.assign(inner, value, frame)
            case _:
                raise NotProven("the target of an assignment can't be followed")

    def _assign_outer(self, name: str, value: Value, frame: Frame) -> None:
        """Assign a name of an enclosing function in the same call: it may keep its value or take this one."""
        scope = frame.scope.outer
        while scope is not None and name not in scope.names:
            scope = scope.outer
        if scope is None:
            raise NotProven(f"it changes the variable `{name}` outside of the call", _RETURN)
        before = scope.names[name]
        scope.names[name] = join(before, value)
        self.learned += not is_same(before, scope.names[name])

    def _delete(self, target: ast.expr, frame: Frame) -> None:
        match target:
            case ast.Name(name) if name in frame.scope.names:
                del frame.scope.names[name]
            case ast.Subscript(owner) if isinstance(self.evaluate(owner, frame), Fresh):
                pass
            case _:
                raise NotProven(f"it deletes `{ast.unparse(target)}`, which is outside of the call")

    def _unpack(self, parts: Sequence[ast.expr], value: Value, frame: Frame) -> None:
        if isinstance(value, Items) and len(value.items) == len(parts) and not is_starred(parts):
            for part, given in zip(parts, value.items, strict=True):
                self.assign(part, given, frame)
            return
        is_exact = not is_starred(parts)
        for at, part in enumerate(parts):
            given = item(value, Known(at), self, ast.unparse(part)) if is_exact else elements(value, self)
            if isinstance(part, ast.Starred):
                given = Fresh(list, given)
            self.assign(part, DATA if given is None else given, frame)

    def _set_attribute(self, owner: Value, name: str, value: Value, target: ast.expr) -> None:
        if not isinstance(owner, Made):
            raise NotProven(f"it changes `{ast.unparse(target)}`, which is outside of the call", _RETURN)
        before = owner.fields.get(name)
        owner.fields[name] = value if before is None else join(before, value)
        self.learned += before is None or not is_same(before, owner.fields[name])

    def put(self, owner: Value, value: Value, name: str) -> None:
        if isinstance(owner, Either):
            for one in owner.values:
                self.put(one, value, name)
        elif isinstance(owner, Fresh):
            if owner.kind is np.ndarray and array_inside(value):
                raise NotProven(
                    f"storing a JAX array from outside the function in the NumPy array `{name}` reads its "
                    "numbers, which may change later",
                    "use jnp arrays for both",
                )
            before = owner.holds
            owner.add(value)
            self.learned += before is None or (owner.holds is not None and not is_same(before, owner.holds))
        else:
            raise NotProven(f"it changes `{name}`, an argument or a value that the call read", _RETURN)

    def _augment(self, target: ast.expr, op: ast.operator, value: ast.expr, frame: Frame) -> None:
        # The target is in the tree as a store; its value is a load.
        load = ast.parse(ast.unparse(target), mode="eval").body
        current, given = self.evaluate(load, frame), self.evaluate(value, frame)
        if isinstance(current, Fresh) and current.kind is list:
            inside = elements(given, self)
            if inside is not None:
                self.put(current, inside, ast.unparse(target))
        elif may_change_in_place(current):
            raise NotProven(
                f"`{ast.unparse(target)}` changes an argument, or a value that the call read, in place", _RETURN
            )
        else:
            current = binary(op, current, given, self)
        self.assign(target, current, frame)


def _imported(name: str) -> ModuleType:
    module = sys.modules.get(name)
    if module is None:
        raise NotProven(_NOT_IMPORTED, _AT_THE_TOP)
    return module


def _joined(ends: Sequence[dict[str, Value]]) -> dict[str, Value]:
    result = dict(ends[0])
    for end in ends[1:]:
        for name, value in end.items():
            result[name] = join(result[name], value) if name in result else value
    return result


def _settled(first: Value, second: Value) -> bool:
    match first, second:
        case Either(some), Either(others):
            return len(some) == len(others)
        case (Fresh(one), Fresh(other)) | (Closure(one), Closure(other)):  # of one kind, from one definition
            return one is other
        case _:
            return is_same(first, second) or (type(first) is type(second) and not isinstance(first, (Known, Items)))


def _is_generator(node: ast.AST) -> bool:
    return any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in own_nodes(ast.iter_child_nodes(node)))


def _placed(refused: NotProven, node: ast.stmt | ast.FunctionDef | ast.Lambda, home: FunctionType) -> NotProven:
    own = refused.refusal
    return refused if own.line else NotProven(own.reason, own.cure, home.__code__.co_filename, node.lineno)
