"""Which lines of a file may change, later than a function is traced, what the function read."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from explorer.capture.safe_reading import class_variables, is_exactly, kind_of, mro
from explorer.capture.sources import label, later_cells, parse
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.reads import Read
from explorer.pitfalls.syntax_trees import last_name, parameters_of
from explorer.pitfalls.writes import MUTATORS, targets_of

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_CHANGING = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr, ast.Delete, ast.Call, ast.For, ast.AsyncFor)
# Those run before an object is used.
_BUILDERS = ("__init__", "__post_init__", "__new__", "__set_name__", "setup", "build", "reset_parameters")


@dataclass(frozen=True)
class LaterAssignment:
    """A statement that changes a value: its text, and where it stands as a person finds it."""

    text: str
    place: str


def later_assignments(read: Read, evidence: Evidence) -> Iterator[LaterAssignment]:
    """The statements that may change a value after a function was traced that read it."""
    text = read.function.text
    here = [function.node for function in evidence.functions if function.text == text]
    end = max(getattr(node, "end_lineno", 0) for node in here)
    for node, way in _that_name(text, read):
        # What runs in the trace itself is for `state-write` to say.
        in_trace = any(outer is ran for outer in way for ran in here)
        if not in_trace and _changes(node, way, read) and _is_later(node, way, read, end):
            yield LaterAssignment(_first_line(text, node), f"line {node.lineno}")
    # A cell that was run later is later for certain, wherever in it the line stands.
    for file, later in later_cells(read.function.file):
        for node, way in _that_name(later, read):
            if _changes(node, way, read):
                yield LaterAssignment(_first_line(later, node), f"{label(file)}, line {node.lineno},")


def _first_line(text: str, node: ast.AST) -> str:
    return (ast.get_source_segment(text, node) or "").split("\n")[0]


def _that_name(text: str, read: Read) -> Iterator[tuple[Any, tuple[ast.AST, ...]]]:
    """What may change something of a name, in the order of the text, and what that stands in, from the outside."""
    names = {read.root, *(node.attr for node in ast.walk(read.node) if isinstance(node, ast.Attribute))}
    by_name = _changing(text)
    nodes = {id(node): node for name in names for node in by_name.get(name, ())}
    yield from ((node, _way(text, node)) for node in sorted(nodes.values(), key=lambda one: one.lineno))


def _way(text: str, node: ast.AST) -> tuple[ast.AST, ...]:
    """What a node stands in, from the outside."""
    parents = _parents(text)
    way: list[ast.AST] = []
    while (outer := parents.get(node)) is not None:
        way.append(outer)
        node = outer
    return tuple(reversed(way))


@lru_cache(maxsize=32)
def _changing(text: str) -> dict[str, list[Any]]:
    """The statements and calls of a text that may change something, by the names and attributes that they change."""
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


def _changes(node: Any, way: Sequence[ast.AST], read: Read) -> bool:
    if isinstance(node, ast.Call):
        called = node.func
        return isinstance(called, ast.Attribute) and called.attr in MUTATORS and _is_same(called.value, way, read, True)
    if isinstance(node, ast.AnnAssign) and node.value is None:
        return False
    return any(_sets(target, way, read) for target in targets_of(node))


def _sets(target: ast.expr, way: Sequence[ast.AST], read: Read) -> bool:
    if isinstance(target, ast.Subscript) and _may_be(target, read) and _is_same(target.value, way, read, True):
        return True
    return _is_same(target, way, read, False)


def _may_be(target: ast.Subscript, read: Read) -> bool:
    """Whether `d[key] = …` may change what was read of `d`."""
    key = read.node.slice if isinstance(read.node, ast.Subscript) else None
    if isinstance(key, ast.Constant) and isinstance(target.slice, ast.Constant):
        return key.value == target.slice.value
    return True


def _is_same(target: ast.AST | None, way: Sequence[ast.AST], read: Read, inside: bool) -> bool:
    """Whether a target is what was read, or (`inside`) the container that it was read from."""
    if isinstance(target, ast.Name):
        is_container = isinstance(read.node, ast.Name | ast.Subscript) or not inside
        return target.id == read.root != "self" and is_container and _is_same_scope(target.id, way, read)
    node = read.node.value if isinstance(read.node, ast.Subscript) and inside else read.node
    if not isinstance(target, ast.Attribute) or not isinstance(node, ast.Attribute) or target.attr != node.attr:
        return False
    if isinstance(target.value, ast.Name) and target.value.id == "self":
        return _is_same_class(way, read)
    return not _is_frozen(read.holder) and _is_holder(target.value, way[0], read)


def _is_same_class(way: Sequence[ast.AST], read: Read) -> bool:
    """Whether a method's `self` is the object that was read from, in a method that runs after the object was built."""
    builds = any(isinstance(outer, ast.FunctionDef) and outer.name in _BUILDERS for outer in way)
    outer = next((outer for outer in reversed(way) if isinstance(outer, ast.ClassDef)), None)
    return not builds and outer is not None and outer.name in _class_names(read.holder)


def _is_holder(node: ast.expr, tree: ast.AST, read: Read) -> bool:
    """Whether an expression elsewhere in the file is the object that an attribute was read from."""
    if not isinstance(node, ast.Name):
        return False
    value = read.function.executed.lookup(node.id)
    if value is read.holder or is_exactly(read.holder, kind_of(value)):
        return value is read.holder
    return any(made in _class_names(read.holder) for made in _makers(tree, node.id))


def _makers(tree: ast.AST, name: str) -> Iterator[str]:
    """The classes of `name = Class(…)`."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[*_, ast.Name(id=named)], value=ast.Call(func=called)) if named == name:
                yield ast.unparse(called).rpartition(".")[2]
            case _:
                continue


def _is_same_scope(name: str, way: Sequence[ast.AST], read: Read) -> bool:
    """Whether a name means the same variable as in the function that read it: the innermost that binds it is one."""
    function = read.function
    return _binder(name, way) is _binder(name, (*_way(function.text, function.node), function.node))


def _binder(name: str, way: Sequence[ast.AST]) -> ast.AST | None:
    """What binds a name for a statement that stands in all of `way`: a function, a class, …; None for the module."""
    for i, outer in reversed(list(enumerate(way))):
        if isinstance(outer, _FUNCTIONS):
            names = _names_of(outer)
            if name in names.declared_global:
                return None
            if name in names.own:
                return outer
        is_class = isinstance(outer, ast.ClassDef) and i == len(way) - 1  # whose names its methods don't see
        if is_class or (isinstance(outer, _COMPREHENSIONS) and name in _targets(outer)):
            return outer
    return None


class _Names(NamedTuple):
    """What a function binds itself, and what it says is global."""

    own: frozenset[str]
    declared_global: frozenset[str]


@lru_cache(maxsize=256)  # each read is looked up in the functions around it, and around each line that may change it
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
    """The nodes of a function's own scope: without those of functions, classes and comprehensions inside it."""
    waiting: list[ast.AST] = [function.body] if isinstance(function, ast.Lambda) else list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, _COMPREHENSIONS):
            # A walrus in a comprehension binds for the function around it.
            waiting += [part for part in ast.walk(node) if isinstance(part, ast.NamedExpr)]
        elif not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            waiting += ast.iter_child_nodes(node)


def _targets(comprehension: Any) -> set[str]:
    """The names that a comprehension binds for itself."""
    targets = (generator.target for generator in comprehension.generators)
    return {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}


def _is_later(node: Any, way: Sequence[ast.AST], read: Read, end: int) -> bool:
    """Whether a line may run after the function was defined: it stands below, in another function, or in a loop."""
    if node.lineno > end:
        return True
    around = _way(read.function.text, read.function.node)
    return any(isinstance(outer, _FUNCTIONS) and not any(outer is one for one in around) for outer in way) or any(
        isinstance(outer, _LOOPS) and any(outer is one for one in around) for outer in way
    )


def _class_names(holder: Any) -> set[str]:
    return {base.__name__ for base in mro(holder)}


def _is_frozen(holder: Any) -> bool:
    settings = (class_variables(base).get("__dataclass_params__") for base in mro(holder))
    return any(getattr(one, "frozen", False) for one in settings if one is not None)
