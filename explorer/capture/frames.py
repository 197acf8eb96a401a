"""The user's part of a Python stack.

Every stack of a notebook cell ends in IPython, ipykernel and tornado, every stack of a test in pytest. They say
nothing about the function, so a stack is cut where the first of them starts. Explorer's own frames are such a place,
which is why they are not registered with JAX as excluded: then nothing would tell the function from its caller.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from types import FrameType, ModuleType, TracebackType
from typing import Any, cast

import jax
import jax.core

from explorer.capture.sources import Span
from explorer.model.graph import Frame
from explorer.model.source import is_library_file

__all__ = ["Argument", "Step", "is_runner", "names_in", "users_arguments", "users_frames", "users_part", "users_steps"]

# Packages that run the user's code, where an environment keeps its packages; and Explorer itself, wherever it is.
_RUNNERS = re.compile(
    r"(?:site-packages|dist-packages|lib/python[\d.]+|\\Lib)[/\\]"
    r"(?:IPython|ipykernel|tornado|asyncio|_pytest|pluggy|nbclient|traitlets|runpy\.py|ipykernel_launcher\.py)"
    r"|explorer[/\\](?:_jax|capture|aot|jitted|ledger|measure|notebook|pitfalls)[/\\]\w+\.py$|^<frozen "
)


def is_runner(file: str) -> bool:
    """Whether a file belongs to what runs the user's code, not to the code."""
    return _RUNNERS.search(file) is not None


def users_part(stack: Sequence[Frame]) -> tuple[Frame, ...]:
    """A stack, innermost frame first, up to where its runner starts."""
    end = next((i for i, frame in enumerate(stack) if is_runner(frame.file)), len(stack))
    return tuple(stack[:end])


def users_frames(frames: Sequence[Frame]) -> tuple[list[Frame], list[int]]:
    """A table of frames without the runners' and their callers', and the new index of each old row (-1: left out).

    A frame that a runner called has no parent any more. Nor has one that stands where its own outermost caller stands:
    XLA, inlining a call, puts the callee's whole stack on top of the caller's whole stack, which is the same again.
    """
    outside = [not frame.file or is_runner(frame.file) for frame in frames]
    for i in [i for i, frame in enumerate(frames) if frame.file and outside[i]]:
        # Who called the runner is no part of the function: the cell with `%explore`, the script that calls explore().
        at = frames[i].parent
        while 0 <= at < len(frames) and not outside[at]:
            outside[at] = True
            at = frames[at].parent
    kept = [i for i in range(len(frames)) if not outside[i]]
    index = [-1] * len(frames)
    for new, old in enumerate(kept):
        index[old] = new
    parents = [index[p] if 0 <= (p := frames[i].parent) < len(frames) else -1 for i in kept]
    users = [replace(frames[i], parent=-1) for i in kept]
    for i in range(len(users)):
        root = _root(parents, i)
        if root != i and users[root] == users[i]:
            parents[i] = -1
    return [replace(frame, parent=parent) for frame, parent in zip(users, parents, strict=True)], index


_DEEPEST = 1_000  # calls: Python's own limit; a cycle in damaged input ends there


def _root(parents: Sequence[int], at: int) -> int:
    for _ in range(min(len(parents), _DEEPEST)):
        if parents[at] < 0:
            break
        at = parents[at]
    return at


@dataclass(frozen=True)
class Step:
    """A line that an error went through, and what of the line was being evaluated.

    Args:
        frame: Its live frame.
        span: Of the expression; only a line where Python doesn't know more.
    """

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
        """As its author calls it: `step`, `Layer.__call__`, `<lambda>`."""
        return self.frame.f_code.co_qualname.rpartition("<locals>.")[2]

    def named(self, name: str) -> Any:
        """What a name stands for there; None if for nothing."""
        frame = self.frame
        spaces = (frame.f_locals, frame.f_globals, frame.f_builtins)
        return next((space[name] for space in spaces if name in space), None)

    def traced(self, node: ast.AST) -> list[ast.Name]:
        """The names in an expression that stand for something traced."""
        return [name for name in names_in(node) if _is_traced(self.named(name.id))]

    def called(self, function: ast.expr) -> str:
        """What a call calls, by its package: `builtins.float`, `numpy.linalg.norm`; `jax.…` for an array's method."""
        root, _, rest = ast.unparse(function).partition(".")
        value = self.named(root)
        if isinstance(value, ModuleType):
            return f"{value.__name__}.{rest}"
        if isinstance(value, jax.Array):
            return f"jax.{rest}"
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__name__', '')}"

    def value_at(self, path: str) -> Any:
        """The value at `d['a'][0]`; None if there is none."""
        try:
            return _value(ast.parse(path, mode="eval").body, self.frame.f_locals)
        except (SyntaxError, LookupError, TypeError, AttributeError):
            return None

    def leaves(self) -> Iterator[tuple[str, Any]]:
        """What its function was given, by path. What its code gave another name or value since is not there."""
        for name in self.parameters:
            value = self.frame.f_locals.get(name)
            for path, leaf in cast(list[tuple[Any, Any]], jax.tree_util.tree_flatten_with_path(value)[0]):
                yield name + jax.tree_util.keystr(path), leaf

    @property
    def parameters(self) -> list[str]:
        """Of its function, `*args` and `**kwargs` too."""
        args, varargs, varkw = inspect.getargs(self.frame.f_code)
        return [name for name in (*args, varargs, varkw) if name]


def users_steps(error: BaseException) -> list[Step]:
    """The user's lines that an error went through, innermost first; those of libraries only if there are no others."""
    steps = list(_steps(error))
    users = [step for step in steps if not is_library_file(step.file)]
    return (users or [step for step in steps if not _wraps_calls(step.frame)])[::-1]


def _wraps_calls(frame: FrameType) -> bool:
    """True for the frames that Explorer, JAX and the standard library's wrappers put around every call."""
    package = str(frame.f_globals.get("__name__")).partition(".")[0]
    return package in ("explorer", "jax", "jaxlib", "contextlib", "functools")


def _steps(error: BaseException) -> Iterator[Step]:
    walk = error.__traceback__
    while walk is not None:
        yield Step(walk.tb_frame, _span(walk))
        walk = walk.tb_next


def _span(at: TracebackType) -> Span:
    # A code unit is two bytes, and each has its position.
    positions = at.tb_frame.f_code.co_positions()
    line, end_line, column, end_column = next(islice(positions, at.tb_lasti // 2, None), (None,) * 4)
    if line is None or end_line is None or column is None or end_column is None:
        return Span(at.tb_lineno, 0, at.tb_lineno, 0)
    return Span(line, column, end_line, end_column)


@dataclass(frozen=True)
class Argument:
    """An argument of a function of the user's: its path, `d['a']`, and its value where that is known."""

    path: str
    function: str
    value: Any = None


def users_arguments(
    error: BaseException, steps: Sequence[Step], name: str, file: str | None, paths: Sequence[str]
) -> list[Argument]:
    """The arguments that a traced function calls by some paths, as the user calls them; none if that can't be told.

    Args:
        error: That came while tracing.
        steps: The user's, of the error.
        name, file: Of the function; a callable object has no file.
        paths: Into its own arguments.
    """
    traced = next((step for step in steps[::-1] if (step.code_name, step.file) == (name, file)), None)
    traced = steps[-1] if file is None else traced
    if traced is not None:
        return [Argument(path, traced.function, traced.value_at(path)) for path in paths]
    # Explorer's or a library's: its names say nothing to the user. Its values do, for it hands them on.
    wrapper = next((step for step in _steps(error) if (step.code_name, step.file) == (name, file)), None)
    if wrapper is None:
        return []
    names = {id(leaf): path for path, leaf in steps[-1].leaves()}
    values = [wrapper.value_at(path) for path in paths]
    known = [Argument(names[id(value)], steps[-1].function, value) for value in values if id(value) in names]
    return known if len(known) == len(paths) else []


def names_in(node: ast.AST) -> Iterator[ast.Name]:
    """The names that an expression reads."""
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
