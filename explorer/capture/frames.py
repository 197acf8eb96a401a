"""The user's frames: those that an error went through, with their values, and those on a stack."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import FrameType, ModuleType, TracebackType
from typing import Any, cast

import jax
import jax.core

from explorer.capture.sources import WRAPPERS, Span, label, package_of
from explorer.model.events.event import Place
from explorer.model.stage import is_library_file


@dataclass(frozen=True)
class Step:
    """A line that an error went through: its live frame, and the span of the expression, or a line without columns."""

    frame: FrameType
    span: Span

    @property
    def file(self) -> str:
        return self.frame.f_code.co_filename

    @property
    def code_name(self) -> str:
        return self.frame.f_code.co_name

    @property
    def function(self) -> str:
        """Return the function's name as in its source: `step`, `Layer.__call__`, `<lambda>`."""
        return self.frame.f_code.co_qualname.rpartition("<locals>.")[2]

    def value_of(self, name: str) -> Any:
        frame = self.frame
        spaces = (frame.f_locals, frame.f_globals, frame.f_builtins)
        return next((space[name] for space in spaces if name in space), None)

    def traced_names(self, node: ast.AST) -> list[ast.Name]:
        return [name for name in names_in(node) if _is_traced(self.value_of(name.id))]

    def callee_name(self, function: ast.expr) -> str:
        """Return the callee's name with its package, such as `numpy.linalg.norm`; `jax.…` for an array's method."""
        root, _, rest = ast.unparse(function).partition(".")
        value = self.value_of(root)
        if isinstance(value, ModuleType):
            return f"{value.__name__}.{rest}"
        if isinstance(value, jax.Array):
            return f"jax.{rest}"
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__name__', '')}"

    def value_at(self, path: str) -> Any:
        """Return the value at a path such as `d['a'][0]`, from the frame's variables; None if missing."""
        try:
            return _value(ast.parse(path, mode="eval").body, self.frame.f_locals)
        except (SyntaxError, LookupError, TypeError, AttributeError):
            return None

    def leaves(self) -> Iterator[tuple[str, Any]]:
        """Yield path and value of the leaves of the function's parameters, as they are now."""
        for name in self.parameters:
            value = self.frame.f_locals.get(name)
            for path, leaf in cast(list[tuple[Any, Any]], jax.tree_util.tree_flatten_with_path(value)[0]):
                yield name + jax.tree_util.keystr(path), leaf

    @property
    def parameters(self) -> list[str]:
        args, varargs, varkw = inspect.getargs(self.frame.f_code)
        return [name for name in (*args, varargs, varkw) if name]


def users_steps(error: BaseException) -> list[Step]:
    """Return the user's lines that an error went through, innermost first; a library's if there are no others."""
    steps = list(_steps(error))
    users = [step for step in steps if not is_library_file(step.file)]
    return (users or [step for step in steps if package_of(step.frame) not in WRAPPERS])[::-1]


def _steps(error: BaseException) -> Iterator[Step]:
    walk = error.__traceback__
    while walk is not None:
        yield Step(walk.tb_frame, _span(walk))
        walk = walk.tb_next


def _span(at: TracebackType) -> Span:
    # A code unit is two bytes, and each has its position.
    positions = at.tb_frame.f_code.co_positions()
    line, end_line, column, end_column = next(islice(positions, at.tb_lasti // 2, None), (None,) * 4)
    # JAX shortens tracebacks to copies: of a function with an `except`, those name the line and an instruction there.
    is_known = line == at.tb_lineno
    if not is_known or line is None or end_line is None or column is None or end_column is None:
        return Span(at.tb_lineno, 0, at.tb_lineno, 0)
    return Span(line, column, end_line, end_column)


@dataclass(frozen=True)
class Argument:
    """An argument of a function of the user's: its path, `d['a']`, and its value if known."""

    path: str
    function: str
    value: Any = None


def users_arguments(
    error: BaseException, steps: Sequence[Step], name: str, file: str | None, paths: Sequence[str]
) -> list[Argument]:
    """Return the arguments at `paths` of the traced function `name` in `file`, by the user's names; [] if unknown."""
    traced = next((step for step in steps[::-1] if (step.code_name, step.file) == (name, file)), None)
    traced = steps[-1] if file is None else traced
    if traced is not None:
        return [Argument(path, traced.function, traced.value_at(path)) for path in paths]
    # A wrapper of Explorer's or a library's: the user doesn't know its names, but it passes on the user's values.
    wrapper = next((step for step in _steps(error) if (step.code_name, step.file) == (name, file)), None)
    if wrapper is None:
        return []
    names = {id(leaf): path for path, leaf in steps[-1].leaves()}
    values = [wrapper.value_at(path) for path in paths]
    arguments = [Argument(names[id(value)], steps[-1].function, value) for value in values if id(value) in names]
    return arguments if len(arguments) == len(paths) else []


def names_in(node: ast.AST) -> Iterator[ast.Name]:
    """Yield the names that an expression reads."""
    return (part for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load))


def _is_traced(value: Any) -> bool:
    try:
        return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(value))
    except Exception:  # a tree of the user's own, whose flattening may do anything
        return False


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Name(id=name):
            return names[name]
        case ast.Subscript(value=inner, slice=ast.Constant(value=key)):
            return _value(inner, names)[key]
        case ast.Attribute(value=inner, attr=name):
            return getattr(_value(inner, names), name)
        case _:
            raise LookupError(ast.dump(node))


# The user's lines on a stack when something compiles ------------------------------------------------------------------

# Packages that run the user's code: their frames and callers are not the user's.
_RUNNERS = frozenset(
    ("IPython", "ipykernel", "tornado", "asyncio", "_pytest", "pluggy", "pytest", "nbclient", "runpy", "threading")
)
_MAX_DEPTH = 200  # frames: deeper ones of a recursion repeat
# Of each cache: every changed cell of a notebook is a new file.
_MAX_ENTRIES = 4_096

_kinds: dict[str, str] = {}
_places: dict[tuple[str, int, str, str], Place] = {}


def user_places(frame: FrameType | None) -> tuple[Place, ...]:
    """Return the user's frames on a stack, innermost first; those of libraries only if there are no others."""
    users: list[Place] = []
    libraries: list[Place] = []
    for _ in range(_MAX_DEPTH):
        if frame is None:
            break
        kind = _kinds.get(frame.f_code.co_filename) or _kind(frame)
        if kind == "runner" and users:  # a runner that the user's code called, as in `thread.join()`
            break
        if kind == "users":
            users.append(_place_at(frame))
        elif kind == "library" and not users:
            libraries.append(_place_at(frame))
        frame = frame.f_back
    return tuple(users or libraries)


def place_of(file: str, line: int, function: str = "") -> Place:
    """Return the `Place` of a line of a file, with its label and its text. Equal places are one object."""
    # With the label: a cell that runs again gets another number.
    key = (file, line, label(file), function)
    place = _places.get(key)
    if place is None:
        if len(_places) >= _MAX_ENTRIES:
            _places.clear()
        text = linecache.getline(file, line).strip()
        place = _places[key] = Place(file, line, key[2], text, function)
    return place


def _place_at(frame: FrameType) -> Place:
    code = frame.f_code
    function = "" if code.co_name == "<module>" else code.co_qualname.rpartition("<locals>.")[2]
    return place_of(code.co_filename, frame.f_lineno or code.co_firstlineno, function)


def _kind(frame: FrameType) -> str:
    file = frame.f_code.co_filename
    package = package_of(frame)
    if package in WRAPPERS:
        kind = "ours"
    elif package in _RUNNERS:
        kind = "runner"
    else:
        kind = "library" if is_library_file(file) else "users"
    if file.startswith("<"):  # code that was made from a string has no name of its own
        return kind
    if len(_kinds) >= _MAX_ENTRIES:
        _kinds.clear()
    _kinds[file] = kind
    return kind
