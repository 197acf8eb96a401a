"""Values from outside that a function reads and writes, and later assignments to them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import jax
import numpy as np

from explorer.capture.safe_reading import (
    attributes,
    class_variables,
    is_a,
    is_exactly,
    is_plain,
    is_tracer,
    kind_of,
    mro,
)
from explorer.capture.sources import Span, label, later_cells, parse
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import FunctionSource, last_name, parameters_of, targets_of
from explorer.pitfalls.recorder import Call
from explorer.pitfalls.state import Change, Snapshot, exact_items, named_in, same


@dataclass(frozen=True, repr=False)
class Read:
    """Value from outside that a function read while it was traced."""

    function: FunctionSource  # that read it
    node: ast.expr  # the name, or the attribute or item of a name
    path: str  # as the snapshots around the trace name it; its text where they don't
    value: Any  # what it was
    holder: Any = None  # the object or container whose attribute or item it is; None for a name

    @property
    def span(self) -> Span:
        return Span.of(self.node)

    @property
    def text(self) -> str:
        return ast.unparse(self.node)

    @property
    def root(self) -> str:
        """Name that the path starts with; "" if it starts with another expression."""
        node = self.node
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        return node.id if isinstance(node, ast.Name) else ""


def reads(evidence: Evidence) -> Iterator[Read]:
    """Yield each data value read from outside once, at its first read; not None, nor what is declared as state."""
    seen: set[str] = set()
    for function in evidence.functions:
        for node in function.walk(ast.Name, ast.Attribute, ast.Subscript):
            if not isinstance(node.ctx, ast.Load) or _is_inner(function, node):
                continue
            data = _innermost_data(function, node)
            if data is None or not function.reached(data[0]):
                continue
            read = _read(function, *data, evidence.before)
            if read is None or read.path in seen or {id(read.value), id(read.holder)} & evidence.captured:
                continue
            seen.add(read.path)
            yield read


def _is_inner(function: FunctionSource, node: ast.AST) -> bool:
    outer = function.parents.get(node)
    return isinstance(outer, (ast.Attribute, ast.Subscript)) and outer.value is node and isinstance(outer.ctx, ast.Load)


def _innermost_data(function: FunctionSource, node: ast.expr) -> tuple[ast.expr, Any] | None:
    """Return the longest path to data in an expression, with the value: `scale` for `scale.sum()`; None without one."""
    root: ast.AST = node
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    while isinstance(root, ast.Name) and function.values[root.id] is not ...:
        value = function.value(node)
        if value is not ... and not is_exactly(value, FunctionType, MethodType):
            return (node, value) if is_data(value) else None
        if not isinstance(node, (ast.Attribute, ast.Subscript)):
            return None
        node = node.value
    return None


def _read(function: FunctionSource, node: ast.expr, value: Any, before: Snapshot) -> Read | None:
    """Return what was read, with its value before the trace; None if the trace made it, or replaced it in a closure."""
    if isinstance(node, ast.Name):
        is_free = node.id in function.executed.free
        own = named_in(node.id, str(function.executed.globals.get("__name__")))
        path = own if not is_free and own in before.values else node.id
        was = before.values.get(path, ...)
        return None if was is ... or (is_free and not same(was, value)) else Read(function, node, path, was)
    assert isinstance(node, (ast.Attribute, ast.Subscript))
    holder = function.value(node.value)
    outer = before.path_of(holder)
    path = outer + _own(node) if outer else ast.unparse(node)
    if path not in before.values and not outer:
        return None
    return Read(function, node, path, before.values.get(path, value), holder)


def _own(node: ast.Attribute | ast.Subscript) -> str:
    """Return the last step of a path: `.name` or `[key]`; "" for any key but a literal constant."""
    if isinstance(node, ast.Attribute):
        return f".{node.attr}"
    return f"[{node.slice.value!r}]" if isinstance(node.slice, ast.Constant) else ""


def is_data(value: Any) -> bool:
    """Return True for values that enter a program as numbers or decide its structure, not functions or modules."""
    if is_a(value, np.generic, np.ndarray, jax.Array):
        return not is_tracer(value)
    return value is not None and (is_plain(value) or is_exactly(value, list, dict, set))


def holds_data(value: Any, depth: int = 0) -> bool:
    """Return True if a value is data, or a list or dict with data in it."""
    if not is_exactly(value, list, dict):
        return is_data(value)
    return depth < 4 and any(holds_data(item, depth + 1) for item in islice(exact_items(value) or (), 8))


def is_constant(name: str) -> bool:
    return name.isupper() or (name.startswith("__") and name.endswith("__"))


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_CHANGING = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr, ast.Delete, ast.Call, ast.For, ast.AsyncFor)
# Methods that run before an object is used.
_BUILDERS = ("__init__", "__post_init__", "__new__", "__set_name__", "setup", "build", "reset_parameters")


@dataclass(frozen=True)
class LaterAssignment:
    """Statement that changes a value, with its place in words."""

    text: str
    place: str


def later_assignments(read: Read, evidence: Evidence) -> Iterator[LaterAssignment]:
    """Yield the statements that may change a value after the function that read it was traced."""
    text = read.function.text
    here = [function.node for function in evidence.functions if function.text == text]
    end = max(getattr(node, "end_lineno", 0) for node in here)
    for node, enclosing in _that_name(text, read):
        # `state-write` reports changes in the trace itself.
        in_trace = any(outer is ran for outer in enclosing for ran in here)
        if not in_trace and _changes_read(node, enclosing, read) and _is_later(node, enclosing, read, end):
            yield LaterAssignment(_first_line(text, node), f"line {node.lineno}")
    # Any line of a cell that was run later is later.
    for file, later in later_cells(read.function.file):
        for node, enclosing in _that_name(later, read):
            if _changes_read(node, enclosing, read):
                yield LaterAssignment(_first_line(later, node), f"{label(file)}, line {node.lineno},")


def _first_line(text: str, node: ast.AST) -> str:
    return (ast.get_source_segment(text, node) or "").split("\n")[0]


def _that_name(text: str, read: Read) -> Iterator[tuple[Any, tuple[ast.AST, ...]]]:
    """Yield the statements in `text` that may change the root or an attribute of `read`, in order of lines.

    Each statement comes with its enclosing nodes, outermost first.
    """
    names = {read.root, *(node.attr for node in ast.walk(read.node) if isinstance(node, ast.Attribute))}
    by_name = _changing(text)
    nodes = {id(node): node for name in names for node in by_name.get(name, ())}
    yield from ((node, _enclosing_nodes(text, node)) for node in sorted(nodes.values(), key=lambda one: one.lineno))


def _enclosing_nodes(text: str, node: ast.AST) -> tuple[ast.AST, ...]:
    parents = _parents(text)
    enclosing: list[ast.AST] = []
    while (outer := parents.get(node)) is not None:
        enclosing.append(outer)
        node = outer
    return tuple(reversed(enclosing))


@lru_cache(maxsize=32)
def _changing(text: str) -> dict[str, list[Any]]:
    by_name: dict[str, list[Any]] = {}
    tree = parse(text)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, _CHANGING):
            targets = [node.func] if isinstance(node, ast.Call) else list(targets_of(node))
            for name in filter(None, (last_name(part) for target in targets for part in ast.walk(target))):
                by_name.setdefault(name, []).append(node)
    return by_name


@lru_cache(maxsize=32)
def _parents(text: str) -> dict[ast.AST, ast.AST]:
    tree = parse(text)
    nodes = ast.walk(tree) if tree is not None else ()
    return {child: node for node in nodes for child in ast.iter_child_nodes(node)}


def _changes_read(node: Any, enclosing: Sequence[ast.AST], read: Read) -> bool:
    if isinstance(node, ast.Call):
        called = node.func if isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS else None
        return called is not None and _is_same(called.value, enclosing, read, True)
    if isinstance(node, ast.AnnAssign) and node.value is None:
        return False
    return any(_sets_read(target, enclosing, read) for target in targets_of(node))


def _sets_read(target: ast.expr, enclosing: Sequence[ast.AST], read: Read) -> bool:
    nodes = [node for node in (target, read.node) if isinstance(node, ast.Subscript)]
    keys = [node.slice.value for node in nodes if isinstance(node.slice, ast.Constant)]
    container = target.value if isinstance(target, ast.Subscript) and (len(keys) < 2 or keys[0] == keys[1]) else None
    return _is_same(container, enclosing, read, True) or _is_same(target, enclosing, read, False)


def _is_same(target: ast.AST | None, enclosing: Sequence[ast.AST], read: Read, inside: bool) -> bool:
    """Return True if a target is what was read.

    Without `inside` also if it is the name that the read starts with, with it if it is the container of a read item.
    """
    if isinstance(target, ast.Name):
        is_container = isinstance(read.node, ast.Name | ast.Subscript) or not inside
        return target.id == read.root != "self" and is_container and _is_same_scope(target.id, enclosing, read)
    node = read.node.value if isinstance(read.node, ast.Subscript) and inside else read.node
    if not isinstance(target, ast.Attribute) or not isinstance(node, ast.Attribute) or target.attr != node.attr:
        return False
    if isinstance(target.value, ast.Name) and target.value.id == "self":
        return _is_same_class(enclosing, read)
    return _is_holder(target.value, enclosing[0], read)


def _is_same_scope(name: str, enclosing: Sequence[ast.AST], read: Read) -> bool:
    """Return True if a name means the same variable here and in the function that read it."""
    function = read.function
    return _binder(name, enclosing) is _binder(name, (*_enclosing_nodes(function.text, function.node), function.node))


def _is_same_class(enclosing: Sequence[ast.AST], read: Read) -> bool:
    """Return True if a method's `self` may be the object that was read, after construction."""
    builds = any(isinstance(outer, ast.FunctionDef) and outer.name in _BUILDERS for outer in enclosing)
    outer = next((outer for outer in reversed(enclosing) if isinstance(outer, ast.ClassDef)), None)
    return not builds and outer is not None and outer.name in _class_names(read.holder)


def _is_holder(node: ast.expr, tree: ast.AST, read: Read) -> bool:
    settings = (class_variables(base).get("__dataclass_params__") for base in mro(read.holder))
    if not isinstance(node, ast.Name) or any(getattr(one, "frozen", False) for one in settings):
        return False
    value = read.function.executed.lookup(node.id)
    if value is read.holder or is_exactly(read.holder, kind_of(value)):
        return value is read.holder
    return any(made in _class_names(read.holder) for made in _makers(tree, node.id))


def _makers(tree: ast.AST, name: str) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[*_, ast.Name(id=named)], value=ast.Call(func=called)) if named == name:
                yield ast.unparse(called).rpartition(".")[2]
            case _:
                continue


def _binder(name: str, enclosing: Sequence[ast.AST]) -> ast.AST | None:
    """Return the innermost of the enclosing scopes that binds a name; None for the module."""
    for i, outer in reversed(list(enumerate(enclosing))):
        if isinstance(outer, _FUNCTIONS):
            names = _names_of(outer)
            if name in names.declared_global:
                return None
            if name in names.own:
                return outer
        is_class = isinstance(outer, ast.ClassDef) and i == len(enclosing) - 1  # whose names its methods don't see
        if is_class or (isinstance(outer, _COMPREHENSIONS) and name in _targets(outer)):
            return outer
    return None


def _targets(comprehension: Any) -> set[str]:
    targets = (generator.target for generator in comprehension.generators)
    return {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}


class _Names(NamedTuple):
    own: frozenset[str]
    declared_global: frozenset[str]


@lru_cache(maxsize=256)  # looked up for each read and each line that may change it
def _names_of(function: Any) -> _Names:
    own, elsewhere, declared = {parameter.arg for parameter in parameters_of(function)}, set[str](), set[str]()
    bound = set[str]()
    for node in _inside(function):
        match node:
            case ast.Global():
                declared.update(node.names)
            case ast.Nonlocal():
                elsewhere.update(node.names)
            case ast.FunctionDef() | ast.ClassDef():
                bound.add(node.name)
            case ast.Name() if not isinstance(node.ctx, ast.Load):
                bound.add(node.id)
            case _:
                continue
    return _Names(frozenset(own | (bound - declared - elsewhere)), frozenset(declared))


def _inside(function: Any) -> Iterator[ast.AST]:
    """Yield the nodes of a function's own scope; of an inner function, class or comprehension only the node itself.

    Assignments by `:=` in a comprehension are yielded too: they bind in this scope.
    """
    waiting: list[ast.AST] = [function.body] if isinstance(function, ast.Lambda) else list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, _COMPREHENSIONS):
            # A walrus in a comprehension binds for the function around it.
            waiting += [part for part in ast.walk(node) if isinstance(part, ast.NamedExpr)]
        elif not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            waiting += ast.iter_child_nodes(node)


def _is_later(node: Any, enclosing: Sequence[ast.AST], read: Read, end: int) -> bool:
    """Return True if a statement may run after the traced functions, whose last line is `end`, were traced.

    True below that line, in another function, and in a loop around the function that reads.
    """
    if node.lineno > end:
        return True
    around = _enclosing_nodes(read.function.text, read.function.node)
    return any(isinstance(outer, _FUNCTIONS) and not any(outer is one for one in around) for outer in enclosing) or any(
        isinstance(outer, _LOOPS) and any(outer is one for one in around) for outer in enclosing
    )


def _class_names(holder: Any) -> set[str]:
    return {base.__name__ for base in mro(holder)}


MUTATORS = frozenset[str]().union(
    ("append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "update"),
    ("setdefault", "popitem", "add", "discard", "appendleft", "popleft", "extendleft", "rotate"),
    ("fill", "put", "resize", "itemset", "partition", "subtract", "move_to_end", "difference_update"),
    ("intersection_update", "symmetric_difference_update", "__setitem__", "__delitem__"),
    ("__setattr__", "__iadd__"),
)


@dataclass(frozen=True, repr=False)
class Write:
    """Piece of the user's text that changed something outside of its function."""

    function: FunctionSource  # that contains it
    node: ast.AST  # the call or the assignment
    span: Span  # of it
    count: int = 0  # how often it ran; 0 where that isn't known

    @property
    def text(self) -> str:
        return self.function.source(self.node).split("\n")[0].strip()


def write_of(evidence: Evidence, change: Change) -> Write | None:
    """Return the first call that may have made a change, else the assignment; None if none fits, or several might."""
    return next(_calls(evidence, change), None) or _assignment(evidence, change)


def _calls(evidence: Evidence, change: Change) -> Iterator[Write]:
    for call, function, node in evidence.calls:
        if function is None or node is None:
            continue
        is_own = call.receiver is change.holder is not None and call.callee.rpartition(".")[2] in MUTATORS
        is_own = is_own or _puts(call, function, node, change)
        if is_own or (call.callee in ("builtins.setattr", "builtins.delattr") and _sets(function, node, change)):
            yield Write(function, node, call.span, call.count)


def _puts(call: Call, function: FunctionSource, node: ast.Call, change: Change) -> bool:
    """Return True for `queue.put(item)` and `heapq.heappush(heap, item)` with the container that was changed."""
    name = call.callee.rpartition(".")[2]
    if name in ("put", "put_nowait"):
        return attributes(call.receiver).get("queue", ...) is change.holder
    return name.startswith("heappush") and bool(node.args) and function.resolve(node.args[0]) is change.holder


def _sets(function: FunctionSource, node: ast.Call, change: Change) -> bool:
    """Return True if a `setattr(holder, "name", …)` made the change, or may have: the name isn't a constant."""
    match node.args:
        case [holder, name, *_] if change.holder is not None and function.resolve(holder) is change.holder:
            return not isinstance(name, ast.Constant) or change.path == f"{change.holder_path}.{name.value}"
        case _:
            return False


def _assignment(evidence: Evidence, change: Change) -> Write | None:
    possible: list[Write] = []
    # Constructors last: they mostly ran before the snapshot.
    for function in sorted(evidence.functions, key=lambda function: function.executed.code.co_name == "__init__"):
        for node in function.walk(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Delete, ast.For, ast.NamedExpr):
            for target in targets_of(node):
                fits = _fits(function, target, node, change)
                if fits is not False and function.reached(node):
                    write = Write(function, node, Span.of(node))
                    if fits:
                        return write
                    possible.append(write)
    return possible[0] if len(possible) == 1 else None


def _fits(function: FunctionSource, target: ast.expr, node: ast.AST, change: Change) -> bool | None:
    if isinstance(target, ast.Name) and target.id in function.declared:
        return change.path == target.id
    if change.holder is None:
        return False
    # `log += […]` changes a list in place.
    if isinstance(node, ast.AugAssign) and function.resolve(target) is change.holder:
        return True
    match target:
        case ast.Attribute(attr=name) if change.path != f"{change.holder_path}.{name}":
            return False
        case ast.Subscript(slice=key) if not _may_be_at(key, change):
            return False
        case ast.Attribute(value=owner) | ast.Subscript(value=owner):
            holder = function.resolve(owner)
            return None if holder is ... else holder is change.holder
        case _:
            return False


def _may_be_at(key: ast.expr, change: Change) -> bool:
    if change.path.startswith(f"{change.holder_path}."):
        return False
    if isinstance(key, ast.Constant) and is_a(change.holder, dict):
        return change.path == f"{change.holder_path}[{key.value!r}]"
    return True


def holds_tracer(value: Any) -> bool:
    """Return True for a traced value, or a list, tuple or dict with one."""
    if is_a(value, list, tuple):
        return any(map(is_tracer, list[Any].__iter__(value) if is_a(value, list) else tuple(value)))
    return is_tracer(value) or (is_a(value, dict) and any(map(is_tracer, dict[Any, Any].values(value))))
