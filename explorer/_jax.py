"""The only file that touches non-public or version-dependent JAX. Each use says why."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock, get_ident
from types import FrameType, SimpleNamespace
from typing import Any, cast

import numpy as np
from jax import export
from jax.errors import InconclusiveDimensionOperation
from jax.extend.core import Literal

from explorer.model.graph import Frame

__all__ = [
    "Undecided",
    "at_sizes",
    "dispatcher",
    "inner_jaxprs",
    "undecided_equalities",
    "user_stack",
    "with_fast_path",
]

try:
    # Public `source_info_util.summarize` gives one frame as text; the links need the whole stack with columns.
    from jax._src.source_info_util import user_frames as _user_frames  # pyright: ignore
except ImportError:  # pragma: no cover - degrades to no source links
    _user_frames = None


def user_stack(traceback: Any) -> tuple[Frame, ...]:
    """The user's frames of a jaxpr equation's traceback, innermost first; JAX's own are left out."""
    if _user_frames is None or traceback is None:
        return ()
    return tuple(
        Frame(f.file_name, f.function_name, f.start_line, f.start_column, f.end_line, f.end_column)
        for f in _user_frames(traceback)
    )


def inner_jaxprs(params: dict[str, Any]) -> list[tuple[str, Any]]:
    """The jaxprs inside an equation's parameters, as `(parameter, open jaxpr)`.

    Up to 0.10 a ClosedJaxpr wraps a Jaxpr in `.jaxpr`; from 0.11 there is one class whose `.jaxpr` is itself.
    """
    found: list[tuple[str, Any]] = []
    for key, value in params.items():
        several = isinstance(value, (tuple, list))
        items = cast(Sequence[Any], value) if several else (value,)
        for i, item in enumerate(items):
            inner = getattr(item, "jaxpr", item)
            if hasattr(inner, "eqns") and hasattr(inner, "invars"):
                found.append((f"{key}[{i}]" if several else key, inner))
    return found


_dispatch: Any  # the parts of jax.jit's dispatcher
try:
    from jax._src import tree_util as _tree_util  # pyright: ignore
    from jax._src.interpreters import pxla as _pxla  # pyright: ignore
    from jax._src.lib import _jax as _jaxlib  # pyright: ignore

    _dispatch = SimpleNamespace(
        function=_jaxlib.pjit,
        cache=_jaxlib.PjitFunctionCache,
        key=_pxla.JitGlobalCppCacheKeys,
        registry=_tree_util.dispatch_registry,
        shard=_pxla.cc_shard_arg,
    )
except (ImportError, AttributeError):  # pragma: no cover - an executable's calls all go through Python
    _dispatch = None


# Symbolic dimensions -------------------------------------------------------------------------------------------------


def at_sizes(closed: Any, sizes: Mapping[str, int]) -> Any:
    """A closed jaxpr with symbolic dimensions, with their sizes put in: as if it had been traced for those.

    JAX's own way, `Exported.call`, loses the source frames and the derivatives, and takes no host callbacks; there is
    no public one. An evaluation of the result checks every equation's shapes anew.
    """
    return _Substitution(sizes).value(closed)


class _Substitution:
    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = dict(sizes)
        self.variables: dict[Any, Any] = {}
        self.jaxprs: dict[int, tuple[Any, Any]] = {}  # by id, which the original, kept beside, holds on to

    def size(self, dimension: Any) -> int:
        return int(dimension._evaluate(self.sizes))

    def value(self, value: Any) -> Any:
        if export.is_symbolic_dim(value):
            return self.size(value)
        inner = getattr(value, "jaxpr", None)
        if inner is not None and inner is not value and hasattr(value, "consts"):
            return value.replace(jaxpr=self.jaxpr(inner))
        if hasattr(value, "eqns") and hasattr(value, "invars"):
            return self.jaxpr(value)
        if isinstance(value, tuple):
            held = cast(tuple[Any, ...], value)
            return getattr(type(held), "_make", tuple)(self.value(item) for item in held)  # a named tuple's own
        if isinstance(value, list):
            return [self.value(item) for item in cast(list[Any], value)]
        if isinstance(value, dict):
            return {key: self.value(item) for key, item in cast(dict[Any, Any], value).items()}
        shape: Any = getattr(value, "shape", None)
        if isinstance(shape, tuple) and any(map(export.is_symbolic_dim, cast(tuple[Any, ...], shape))):
            return value.update(shape=self.value(shape))  # an aval, or a ShapeDtypeStruct
        return value

    def jaxpr(self, jaxpr: Any) -> Any:
        if id(jaxpr) not in self.jaxprs:
            inputs = {kind: [self.variable(v) for v in getattr(jaxpr, kind)] for kind in ("constvars", "invars")}
            equations = [self.equation(e) for e in jaxpr.eqns if not self.is_size(e)]
            outputs = [self.variable(v) for v in jaxpr.outvars]
            self.jaxprs[id(jaxpr)] = jaxpr, jaxpr.replace(**inputs, eqns=equations, outvars=outputs)
        return self.jaxprs[id(jaxpr)][1]

    def is_size(self, equation: Any) -> bool:
        """Whether it turns a dimension into a number: then what it gives is known now."""
        if equation.primitive.name != "dim_as_value":
            return False
        (result,) = equation.outvars
        number = np.asarray(self.value(equation.params["dim"]), result.aval.dtype)
        self.variables[result] = Literal(number, result.aval)
        return True

    def equation(self, equation: Any) -> Any:
        return equation.replace(
            invars=[self.variable(v) for v in equation.invars],
            outvars=[self.variable(v) for v in equation.outvars],
            params=self.value(equation.params),
        )

    def variable(self, variable: Any) -> Any:
        if isinstance(variable, Literal):
            return variable
        if variable not in self.variables:
            self.variables[variable] = type(variable)(self.value(variable.aval))
        return self.variables[variable]


class Undecided:
    """An equality of a symbolic dimension that holds for some sizes only, and was answered: no.

    Args:
        text: What was asked: `batch == 1`.
        frame: Who asked: file and line.
    """

    def __init__(self, text: str, frame: FrameType) -> None:
        self.text, self.file, self.line = text, frame.f_code.co_filename, frame.f_lineno


@contextmanager
def undecided_equalities() -> Generator[list[Undecided]]:
    """Within: the undecided equalities that this thread asks outside of JAX.

    `dim == 1` is False for a symbolic dimension that may be 1, without a word, and the wrong branch is traced. JAX's
    own code asks through `definitely_equal`, where False means just that; anybody else means the size. Only the
    class's `__eq__` sees it.
    """
    found: list[Undecided] = []
    thread = get_ident()
    with _watching:
        before = _watchers.get(thread)
        _watchers[thread] = found
        _SymbolicDimension.__eq__ = _watched_equal
    try:
        yield found
    finally:
        with _watching:
            if before is None:
                del _watchers[thread]
            else:
                _watchers[thread] = before
            if not _watchers:
                _SymbolicDimension.__eq__ = _equal


_watching = Lock()
_watchers: dict[int, list[Undecided]] = {}
_SymbolicDimension: Any = type(export.symbolic_shape("size")[0])
_equal = _SymbolicDimension.__eq__


def _watched_equal(self: Any, other: Any) -> Any:
    answer = _equal(self, other)
    found = _watchers.get(get_ident())
    if answer is False and found is not None:
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        if not _is_jaxs(frame) and _is_undecided(self, other):
            found.append(Undecided(f"{self} == {other}", frame))
    return answer


def _is_jaxs(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] in ("jax", "jaxlib")


def _is_undecided(one: Any, other: Any) -> bool:
    try:
        return not (one > other or one < other)
    except InconclusiveDimensionOperation:
        return True
    except TypeError:  # not a size at all
        return False


# Dispatch ------------------------------------------------------------------------------------------------------------


def dispatcher(name: str, miss: Callable[..., tuple[Any, Any]], capacity: int) -> Any:
    """A function whose calls stay in C++ once `miss` has answered one of their kind; None if this JAX has none such.

    It is jax.jit's own dispatcher, with another answer to a call it doesn't know: jax.jit traces, which can refuse
    shapes and dtypes only in the middle of a trace, and a NumPy float64 not at all. A Python function around
    jax.jit would cost a tenth of a small call.

    Args:
        miss: Takes a call, and gives its result and `fast_path(…)` of what ran, or None to be asked each time.
        capacity: How many kinds of calls are kept.
    """
    if _dispatch is None:
        return None

    def answer(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
        return *miss(*args, **kwargs), False

    how = _dispatch
    cache = how.cache(capacity=capacity)
    return how.function(name, None, answer, [], [], how.key(), how.registry, how.shard, cache)


def with_fast_path(compiled: Any) -> Callable[..., tuple[Any, Any]]:
    """A function that calls a `jax.stages.Compiled` and also gives what a `dispatcher` needs to do so by itself.

    The latter is None where Python must take part in each call, as with host callbacks.
    """
    call = compiled._executable.create_cpp_call(compiled._params) if _dispatch is not None else None
    if call is None:
        return lambda *args: (compiled(*args), None)
    return lambda *args: call._cache_miss(*args)[:2]
