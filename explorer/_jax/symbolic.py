"""Symbolic dimensions: substituting sizes in a jaxpr, and equalities that hold for some sizes only."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from threading import Lock, get_ident
from types import FrameType
from typing import Any, NamedTuple, cast

import numpy as np
from jax import export
from jax.errors import InconclusiveDimensionOperation

from explorer._jax.traces import Literal, replaced

_core: Any
try:
    from jax._src import core as _core  # pyright: ignore

    _canonicalize: Any = _core._canonicalize_dimension
except (ImportError, AttributeError):  # pragma: no cover - then the garbage collector is waited for
    _core = _canonicalize = None

_lock = Lock()
_users = 0


@contextmanager
def without_held_frames() -> Generator[None]:
    """Let JAX accept symbolic dimensions of shapes in this context without catching an error.

    Its own way calls `operator.index` and keeps the TypeError in a variable of the same frame: a reference cycle. The
    cycle keeps all frames down to the user's module, with the traced function and its weights, until the garbage
    collector runs.
    """
    global _users
    if _core is None:  # pragma: no cover - as above
        yield
        return
    with _lock:
        _users += 1
        _core._canonicalize_dimension = _canonicalize_directly
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            # Other threads may still be inside.
            if not _users:
                _core._canonicalize_dimension = _canonicalize


def _canonicalize_directly(dim: Any) -> Any:
    return dim if export.is_symbolic_dim(dim) else _canonicalize(dim)


class Factor(NamedTuple):
    """A symbol, or an operation (`floordiv`, `mod`, `max`, `min`) on other dimensions, to a power."""

    symbol: str | None
    operation: str | None
    operands: tuple[Polynomial, ...]
    exponent: int


class Term(NamedTuple):
    """An integer times a product of factors."""

    coefficient: int
    factors: tuple[Factor, ...]


Polynomial = tuple[Term, ...]


def read_dimension(dimension: Any) -> Polynomial:
    """Return a dimension as a sum of terms; raise AttributeError where this JAX keeps dimensions otherwise."""
    if isinstance(dimension, int):
        return (Term(dimension, ()),)
    terms: list[Term] = []
    for term, coefficient in dimension._sorted_terms:
        factors = (Factor(f.var, f.operation, tuple(map(read_dimension, f.operands)), int(e)) for f, e in term._factors)
        terms.append(Term(int(coefficient), tuple(factors)))
    return tuple(terms)


def bounds_of(dimension: Any) -> tuple[int, int | None]:
    """Return the smallest and the largest size of a symbolic dimension; None for an unknown largest."""
    least = _last(0, _FAR, lambda size: dimension >= size)
    if not _is_surely(lambda: dimension <= _FAR):
        return least, None
    # The same bisection, over negated sizes.
    return least, -_last(-_FAR, -least + 1, lambda size: dimension <= -size)


def is_at_least(dimension: Any, number: int) -> bool:
    return _is_surely(lambda: dimension >= number)


def size_where(dimension: Any, equal_to: Any) -> tuple[str, int] | None:
    """Return (symbol, size): the only size of the symbol at which a dimension equals a number.

    None if the dimension isn't linear in a single symbol, or the size isn't an integer.

    Example:
        >>> size_where(*export.symbolic_shape("2*b - 1"), 5)
        ('b', 3)
    """
    if not isinstance(equal_to, int | float) or not export.is_symbolic_dim(dimension):
        return None
    polynomial = read_dimension(dimension)
    varying = [term for term in polynomial if term.factors]
    constant = sum(term.coefficient for term in polynomial if not term.factors)
    if len(varying) != 1 or len(varying[0].factors) != 1:
        return None
    factor = varying[0].factors[0]
    size, rest = divmod(equal_to - constant, varying[0].coefficient)
    if factor.symbol is None or factor.exponent != 1 or rest:
        return None
    return factor.symbol, int(size)


# A size that isn't surely below it counts as unbounded: bisection needs an end.
_FAR = 2**31


def _last(holds: int, fails: int, test: Callable[[int], Any]) -> int:
    """Return the last number for which a test holds, by bisection between one that holds and one that fails."""
    while fails - holds > 1:
        middle = (holds + fails) // 2
        holds, fails = (middle, fails) if _is_surely(partial(test, middle)) else (holds, middle)
    return holds


def _is_surely(test: Callable[[], Any]) -> bool:
    try:
        return bool(test())
    except InconclusiveDimensionOperation:
        return False


def at_sizes(closed: Any, sizes: Mapping[str, Any]) -> Any:
    """Return a closed jaxpr with sizes, or symbols of another scope, for its symbolic dimensions.

    JAX's own way, `Exported.call`, loses the source frames and the derivatives, and takes no host callbacks. Evaluating
    the result checks every equation's shapes. Rules of custom derivatives still see the symbols: take derivatives of
    another trace.
    """
    return Substitution(sizes).value(closed)


class Substitution:
    """Rewriter of a jaxpr that replaces each symbolic dimension by its size."""

    def __init__(self, sizes: Mapping[str, Any]) -> None:
        self.sizes = dict(sizes)
        self.variables: dict[Any, Any] = {}
        self.jaxprs: dict[int, tuple[Any, Any]] = {}  # by id, with the original, so that the id stays valid

    def size(self, dimension: Any) -> Any:
        size = dimension._evaluate(self.sizes)
        return size if export.is_symbolic_dim(size) else int(size)

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
        # An inner function that is called twice stays one jaxpr. The entry keeps the original: its id stays valid.
        if id(jaxpr) not in self.jaxprs:
            inputs = {kind: [self.variable(v) for v in getattr(jaxpr, kind)] for kind in ("constvars", "invars")}
            equations = [self.equation(e) for e in jaxpr.eqns if not self.is_size(e)]
            outputs = [self.variable(v) for v in jaxpr.outvars]
            self.jaxprs[id(jaxpr)] = jaxpr, replaced(jaxpr, **inputs, eqns=equations, outvars=outputs)
        return self.jaxprs[id(jaxpr)][1]

    def is_size(self, equation: Any) -> bool:
        """Return True for a `dim_as_value` equation whose size is a number now, which then replaces its result."""
        if equation.primitive.name != "dim_as_value":
            return False
        (result,) = equation.outvars
        size = self.value(equation.params["dim"])
        if export.is_symbolic_dim(size):  # another's symbol
            return False
        number = np.asarray(size, result.aval.dtype)
        self.variables[result] = Literal(number, result.aval)
        return True

    def equation(self, equation: Any) -> Any:
        if equation.primitive.name == "call_hi_primitive" and has_symbols(equation):  # its types are its own
            raise NotImplementedError(f"{equation.params['_prim']} is traced for one size only")
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
    """A question about a symbolic dimension, such as `batch == 1`, whose answer holds for some sizes only.

    If only one size of one symbol has another answer, `only_at` is (symbol, size).
    """

    def __init__(self, text: str, frame: FrameType, only_at: tuple[str, int] | None = None) -> None:
        self.text, self.file, self.line = text, frame.f_code.co_filename, frame.f_lineno
        self.only_at = only_at


@contextmanager
def undecided_equalities() -> Generator[list[Undecided]]:
    """Yield the list of undecided equalities that this thread evaluates outside of JAX within.

    `dim == 1` is False for a symbolic dimension that may be 1, and the wrong branch is traced in silence. JAX's core
    asks what is surely equal, where False means just that; any other code means the size, JAX's libraries too, such as
    `jnp.linalg.det` of a 2×2 matrix. A set or dict doesn't find the dimension, and `if dim % 2` is always taken. Only
    the class's own methods can observe this. They can't tell if a C function that hashes, such as `dict.get`, looks it
    up.
    """
    undecided: list[Undecided] = []
    thread = get_ident()
    with _watching:
        before = _watchers.get(thread)
        _watchers[thread] = undecided
        for method, watched in _WATCHED.items():
            setattr(_SymbolicDimension, method, watched)
    try:
        with without_held_frames():
            yield undecided
    finally:
        with _watching:
            if before is None:
                del _watchers[thread]
            else:
                _watchers[thread] = before
            if not _watchers:
                _SymbolicDimension.__eq__, _SymbolicDimension.__hash__ = _equal, _hash
                del _SymbolicDimension.__bool__


_watching = Lock()
_watchers: dict[int, list[Undecided]] = {}
_SymbolicDimension: Any = type(export.symbolic_shape("size")[0])
_equal = _SymbolicDimension.__eq__
_unequal = _SymbolicDimension.__ne__
_hash = _SymbolicDimension.__hash__


def _watched_equal(self: Any, other: Any) -> Any:
    answer = _equal(self, other)
    if answer is False:
        _watch(self, other, "{} == {}")
    return answer


def _watched_truth(self: Any) -> bool:
    _watch(self, 0, "{} != {}")
    return True  # as objects without __bool__ are


def _watched_hash(self: Any) -> int:
    asker = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    if get_ident() in _watchers and dis.opname[asker.f_code.co_code[asker.f_lasti]] in _LOOK_UPS:
        _watch(self, _ANY_OTHER, "{} in {{…}}")
    return _hash(self)


_WATCHED = {"__eq__": _watched_equal, "__bool__": _watched_truth, "__hash__": _watched_hash}
# From Python 3.14 on a subscript is a BINARY_OP.
_LOOK_UPS = ("CONTAINS_OP", "BINARY_SUBSCR", "BINARY_OP")
_ANY_OTHER = object()  # for a look-up; `dim == None`, which slices evaluate, has a sure answer


def _watch(size: Any, other: Any, text: str) -> None:
    undecided = _watchers.get(get_ident())
    if undecided is not None:
        # Past this function and the method of the class.
        frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
        if frame.f_code is _unequal.__code__ and frame.f_back is not None:  # `!=` calls `==`
            frame = frame.f_back
        if not _means_surely(frame) and (other is _ANY_OTHER or _is_undecided(size, other)):
            only_at = None if other is _ANY_OTHER else size_where(size, other)
            undecided.append(Undecided(text.format(size, other), _outside_of_jax(frame), only_at))


def has_symbols(equation: Any) -> bool:
    """Return True if an equation takes or gives an array of a symbolic shape."""
    variables = (*equation.invars, *equation.outvars)
    return any(export.is_symbolic_dim(size) for v in variables for size in getattr(v.aval, "shape", ()))


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


def _means_surely(frame: FrameType) -> bool:
    module = _module(frame)
    package = module.partition(".")[0]
    if package == "explorer":
        return True  # the ledger looks up types of arguments, which doesn't affect the program
    return package in ("jax", "jaxlib") and not module.startswith(_LIBRARIES)


# The parts of JAX that branch on a size. The others look for shortcuts, and caches compare keys.
_LIBRARIES = (
    "jax.experimental.",
    "jax._src.image.",
    "jax._src.lax.linalg",
    "jax._src.nn.",
    "jax._src.numpy.",
    "jax._src.ops.",
    "jax._src.random",
    "jax._src.scipy.",
)


def _outside_of_jax(frame: FrameType) -> FrameType:
    asker: FrameType | None = frame
    while asker is not None and _module(asker).partition(".")[0] in ("jax", "jaxlib", "functools", "contextlib"):
        asker = asker.f_back
    return asker or frame


def _is_undecided(one: Any, other: Any) -> bool:
    try:
        return not (one > other or one < other)
    except InconclusiveDimensionOperation:
        return True
    except TypeError:  # not a size at all, unless it is one written as a float
        return isinstance(other, float) and other.is_integer() and _is_undecided(one, int(other))
