"""Objects from outside of a call: the functions known to only compute, and the reads that guards must check.

The lists follow the documentation of JAX, NumPy and Python. A function on no list is treated as unknown.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import itertools
import math
import operator
import sys
from collections.abc import Mapping
from enum import Enum
from functools import cache
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import jax
import numpy as np

from explorer.capture.safe_reading import attributes, kind_of
from explorer.hotpath.proof.values import (
    PLAIN_TYPES,
    Either,
    Fresh,
    Given,
    Items,
    Known,
    Made,
    NotProven,
    Reads,
    Value,
    buffer,
    contents,
)
from explorer.model.stage import is_library_file


def _words(text: str) -> list[str]:
    return text.split()


# Every public function of these modules only computes, except for _NOT_JAX.
_JAX_MODULES = _words(
    """
jax.numpy jax.numpy.linalg jax.numpy.fft jax.lax jax.lax.linalg jax.nn jax.nn.initializers jax.random jax.tree
jax.image jax.ops jax.scipy.linalg jax.scipy.special jax.scipy.stats jax.scipy.stats.norm jax.scipy.stats.beta
jax.scipy.stats.gamma jax.scipy.signal jax.scipy.ndimage jax.scipy.interpolate jax.scipy.optimize
jax.scipy.integrate jax.scipy.cluster.vq jax.scipy.fft jax.scipy.sparse.linalg
    """
)
_TREE_UTIL = _words(
    """
tree_map tree_leaves tree_flatten tree_unflatten tree_structure tree_reduce tree_all tree_map_with_path
tree_leaves_with_path tree_flatten_with_path tree_transpose
    """
)
_JAX = _words("jvp eval_shape make_jaxpr ShapeDtypeStruct block_until_ready named_scope")
_WRAPPERS: tuple[Any, ...] = (
    *(getattr(jax, name) for name in _words("grad value_and_grad vmap jit checkpoint remat jacfwd jacrev hessian")),
    *(functools.partial, jax.tree_util.Partial, jax.named_call),
)
_EQUINOX_WRAPPERS = _words("filter_jit filter_grad filter_value_and_grad filter_vmap filter_checkpoint")
# These read a value or its placement, have side effects, or behave differently on tracers.
_NOT_JAX = _words(
    """
numpy.save numpy.savez numpy.load numpy.from_dlpack numpy.frombuffer numpy.fromfile numpy.set_printoptions
numpy.printoptions numpy.get_printoptions numpy.array_repr numpy.array_str numpy.isscalar numpy.iscomplexobj
numpy.frompyfunc numpy.vectorize lax.create_token lax.infeed lax.outfeed lax.with_sharding_constraint
    """
)
_BUILTINS = _words(
    """
abs all any complex dict divmod enumerate filter float frozenset int bool len list map max min pow range reversed
round set slice sorted sum tuple zip
    """
)
_ITERTOOLS = _words("chain product repeat accumulate pairwise islice starmap combinations zip_longest")
_PURE_LIBRARIES = ("optax", "einops", "chex", "distrax", "equinox")
_NUMPY = _words(
    """
array asarray zeros ones full empty arange linspace eye prod cumsum concatenate stack sum mean max min argsort sort
where meshgrid
    """
)
# Functions of `operator` that mutate or call their arguments, or compare identities.
_CHANGING_OPERATORS = _words(
    """
iadd iand iconcat ifloordiv ilshift imatmul imod imul ior ipow irshift isub itruediv ixor setitem delitem attrgetter
itemgetter methodcaller is_ is_not is_none is_not_none call
    """
)

# Attributes and methods that mutate nothing and exist on tracers too.
ARRAY_ATTRIBUTES = frozenset(_words("shape ndim size dtype T mT real imag at itemsize nbytes"))
ARRAY_METHODS = frozenset(
    _words(
        """
all any argmax argmin argpartition argsort astype choose clip compress conj conjugate copy cumprod cumsum diagonal
dot flatten max mean min nonzero prod ptp ravel repeat reshape round searchsorted sort squeeze std sum swapaxes take
trace transpose var view set add subtract multiply divide power apply get mul
    """
    )
)
CONTAINER_METHODS = frozenset(_words("items keys values get copy index count union intersection difference _replace"))
CHANGING_METHODS = frozenset(
    _words("append extend insert pop popitem remove clear update setdefault sort reverse add discard fill")
)
TEXT_METHODS = frozenset(
    _words(
        """
startswith endswith split rsplit strip lstrip rstrip lower upper replace join removeprefix removesuffix partition
isdigit isidentifier title capitalize
    """
    )
)
# Side effects by prefix of a function's full name: a compiled copy would have them only while it is traced.
_EFFECTS = {
    "builtins.print": "it prints",
    "builtins.input": "it reads input",
    "builtins.open": "it opens a file",
    "numpy.random": "it draws random numbers from NumPy's own state",
    "random": "it draws random numbers from Python's own state",
    "time": "it reads the clock",
    "logging": "it writes a log",
    "warnings": "it warns",
    "jax._src.debugging": "it prints or calls back with values",
    "jax._src.callback": "it calls back",
}


def effect_of(name: str) -> str:
    """Return the side effect of a function by its full name; empty if none is known.

    Example:
        >>> effect_of("time.monotonic")
        'it reads the clock'
    """
    return next((does for start, does in _EFFECTS.items() if name == start or name.startswith(start + ".")), "")


# At the first proof: it imports parts of JAX that a program may never need.
@cache
def _pure_ids() -> frozenset[int]:
    """Return the ids of the functions and classes that only compute; their modules keep them alive."""
    modules = [module for name in _JAX_MODULES if (module := _module(name)) is not None]
    values = [value for module in (*modules, math, operator) for value in _public(module)]
    values += _named(jax.tree_util, _TREE_UTIL) + _named(jax, _JAX) + _named(builtins, _BUILTINS)
    values += _named(itertools, _ITERTOOLS) + _named(np, _NUMPY) + [functools.reduce]
    # Removed by id at the end: an object may be public in several modules.
    refused: list[Any] = [*_named(operator, _CHANGING_OPERATORS), *_WRAPPERS]
    for path in _NOT_JAX:
        module, name = path.split(".")
        refused += _named(getattr(jax, module), [name])
    return frozenset(map(id, values)) - frozenset(map(id, refused))


def _module(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:  # other JAX versions
        return None


def _public(module: ModuleType) -> list[Any]:
    values = [value for name, value in vars(module).items() if not name.startswith("_")]
    return [value for value in values if callable(value) and not isinstance(value, ModuleType)]


def _named(holder: Any, names: list[str]) -> list[Any]:
    return [getattr(holder, name) for name in names if hasattr(holder, name)]


def is_wrapper(value: Any) -> bool:
    return any(value is one for one in _WRAPPERS) or (
        home_of(value).startswith("equinox.") and getattr(value, "__name__", "") in _EQUINOX_WRAPPERS
    )


def is_pure_itself(value: Any) -> bool:
    return id(value) in _pure_ids()


def is_pure(value: Any) -> bool:
    if is_pure_itself(value) or isinstance(value, np.ufunc):
        return True
    is_number = isinstance(value, type) and issubclass(value, np.generic)
    return is_number or home_of(value).partition(".")[0] in _PURE_LIBRARIES


def container_made(value: Any) -> type[Any] | None:
    """Return the class of the new mutable container that a call of `value` returns; None if it returns none."""
    if any(value is kind for kind in (list, dict, set)):
        return value
    return np.ndarray if any(value is one for one in _named(np, _NUMPY)) else None


def home_of(value: Any) -> str:
    """Return the module that defines a function, a class or an object's class; empty if it has no text name."""
    kind = kind_of(value)
    is_named = kind.__module__ in ("builtins", "functools")
    module = getattr(value, "__module__", "") if is_named else kind.__module__
    return module if isinstance(module, str) else ""


_MAX_COMPARED = 4096  # bytes of a NumPy array that a guard compares at each call, in 0.4 µs
_IMMUTABLE = (
    *(*PLAIN_TYPES, type(None), type(...), slice, range, np.dtype, np.generic, jax.Array, Enum),
    *(FunctionType, MethodType, BuiltinFunctionType, type, ModuleType),
)
_LIBRARIES = ("jax", "jaxlib", "numpy", "optax", "equinox", "chex", "flax", "haiku", "functools", "einops")
# Methods that Python and JAX call implicitly on an argument.
_PROTOCOLS = (
    *("__len__", "__iter__", "__bool__", "__contains__", "__getitem__", "__index__", "__int__", "__float__"),
    *("__jax_array__", "__array__", "__array_ufunc__", "__array_function__"),
)


def note_all(held: Any, reads: Reads, text: str) -> None:
    """Add everything reachable in an object from outside to `reads`, so that guards cover all that a pure function
    sees.
    """
    waiting, seen = [held], set[int]()
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, _IMMUTABLE):
            continue
        seen.add(id(value))
        if isinstance(value, np.ndarray):
            note_buffer(value, reads, text)
            continue
        if type(value) in (list, dict, set):
            reads.add("contents", value, None, contents(value), text)
            waiting += value.values() if isinstance(value, Mapping) else value
        elif isinstance(value, (tuple, frozenset)):
            waiting += cast(Any, value)
        elif isinstance(value, jax.tree_util.Partial):
            waiting += [*value.args, *value.keywords.values()]
        elif str(kind_of(value).__module__).partition(".")[0] not in _LIBRARIES:
            waiting += _noted_fields(value, reads, text)


def note_buffer(array: Any, reads: Reads, text: str) -> None:
    if type(array) is not np.ndarray or array.nbytes > _MAX_COMPARED or array.dtype.hasobject:
        raise NotProven(
            f"it reads the NumPy array `{text}` from outside, whose contents may change unseen",
            "convert it outside of the function: jnp.asarray",
        )
    reads.add("buffer", array, None, buffer(array), text)


def _noted_fields(value: Any, reads: Reads, text: str) -> list[Any]:
    # JAX doesn't know its parts: a pure function would get it whole.
    if jax.tree_util.all_leaves([value]):
        raise NotProven(
            f"`{text}` receives an object of `{kind_of(value).__name__}`, and its use of the object is unknown"
        )
    refuse_protocols(kind_of(value), text)
    own = attributes(value)
    for name, held in own.items():
        reads.add("attribute", value, name, held, f"{text}.{name}")
    return list(own.values())


def refuse_protocols(kind: type[Any], text: str) -> None:
    """Raise NotProven for a user's class with methods that Python or JAX call implicitly (`__len__`, `__array__`)."""
    for base in kind.__mro__:
        name = next((name for name in _PROTOCOLS if name in vars(base)), None)
        if name is not None and not _is_librarys(base):
            raise NotProven(f"`{text}` may call `{name}` of `{kind.__name__}`, which isn't followed")


def refuse_hooks(kind: type[Any], *names: str) -> None:
    """Raise NotProven for a user's class that runs code when an attribute is read or set."""
    for base in kind.__mro__:
        hook = next((name for name in names if isinstance(vars(base).get(name), FunctionType)), None)
        # Frozen dataclasses have generated hooks, which only refuse.
        if hook is not None and not is_generated(vars(base)[hook]) and not _is_librarys(base):
            raise NotProven(f"`{hook}` of `{kind.__name__}` isn't followed")


def is_generated(function: Any) -> bool:
    return isinstance(function, FunctionType) and function.__code__.co_filename.startswith(("<string>", "<namedtuple"))


def _is_librarys(kind: type[Any]) -> bool:
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    return kind.__module__ == "builtins" or (isinstance(file, str) and is_library_file(file))


def array_inside(value: Value) -> bool:
    """Return True if the value is, or contains, an array from outside, whose value a trace could read."""
    match value:
        case Known(held):
            return any(isinstance(leaf, jax.Array) for leaf in _leaves_in(held))
        case Items(values) | Either(values):
            return any(map(array_inside, values))
        case Fresh(_, holds):
            return holds is not None and array_inside(holds)
        case _:
            return False


def _leaves_in(held: Any) -> list[Any]:
    if isinstance(held, Mapping):
        held = list(cast(Mapping[Any, Any], held).values())
    if isinstance(held, (list, tuple, set, frozenset)):
        return [leaf for part in cast(Any, held) for leaf in _leaves_in(part)]
    return [held]


def refuse_own_protocols(value: Value, text: str) -> None:
    """Raise NotProven for an object, passed to a pure function, whose class has methods that are called implicitly."""
    match value:
        case Made(kind):
            refuse_protocols(kind, text)
        case Given(example):
            refuse_protocols(kind_of(example), text)
        case _:
            pass
