"""The parts of JAX's caches that describe a function, a `jax.jit` and an argument, beyond the public API."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from itertools import repeat
from operator import attrgetter, is_
from types import SimpleNamespace
from typing import Any, cast

import jax
import jax.numpy as jnp
from jax.core import Tracer

_names: Callable[[], tuple[str, ...]]
_values: Callable[[], tuple[Any, ...]]
try:
    # The settings in a trace's cache key; only their values are public.
    from jax._src.config import trace_context as _values  # pyright: ignore
    from jax._src.config import trace_context_names as _names  # pyright: ignore

    _names()
except (ImportError, AttributeError, NotImplementedError):  # pragma: no cover - then unknown
    _names = _values = tuple

try:
    # The mesh of `jax.set_mesh` with its devices; the public `jax.sharding.get_mesh` raises an error in a trace.
    from jax._src.mesh import get_concrete_mesh as _mesh  # pyright: ignore
except ImportError:  # pragma: no cover - then the order of its devices is unknown
    _mesh = None


def concrete_mesh() -> Any:
    """Return the mesh that `jax.set_mesh` set (an empty mesh if none is set); None if this JAX hides it."""
    return _mesh() if _mesh is not None else None


# The classes of arrays and random keys, without making one: that would start the backends.
Array: type[Any]
KeyArray: type[Any]
try:
    from jax._src.array import ArrayImpl as Array  # pyright: ignore
    from jax._src.random.prng import PRNGKeyArray as KeyArray  # pyright: ignore
except (ImportError, AttributeError):  # pragma: no cover - then the backends start with the import
    Array, KeyArray = type(jnp.zeros(())), type(jax.random.key(0))

_committed, _sharding = attrgetter("_committed"), attrgetter("_sharding")
_device, _memory_kind = attrgetter("_device"), attrgetter("_memory_kind")

_api_util: Any
_tree_util: Any
_jax_jit: Any
unspecified: Any
try:
    from jax._src import api_util as _api_util  # pyright: ignore
    from jax._src import tree_util as _tree_util  # pyright: ignore
    from jax._src.lib import jax_jit as _jax_jit  # pyright: ignore
    from jax._src.sharding_impls import UNSPECIFIED as unspecified  # pyright: ignore
except (ImportError, AttributeError):  # pragma: no cover - the arguments of a failed trace are then unknown
    _api_util = _tree_util = _jax_jit = unspecified = None


def trace_context() -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Return the names of the settings in a trace's cache key, and their values on this thread; empty if unknown."""
    return _names(), _values()


def placement_of(array: Any, rank: int) -> tuple[bool, Any, str]:
    """Return (True if an array is committed, its sharding, its layout in XLA's notation, such as `{1,0}`).

    The layout is "" where only the default is possible (a layout needs a sharding, which commits the array) and where
    it can't be read. `rank` is the array's number of dimensions. The public `jax.Array.committed` and `.format` take
    ten times as long, for hundreds of arrays.
    """
    try:
        committed = array._committed
        layout = str(array._pjrt_layout) if committed and rank > 1 else ""
    except Exception:  # deleted, of an extended dtype, or a backend without layouts
        committed, layout = array.committed, ""
    return committed, array.sharding, layout


def common_placement(arrays: Sequence[Any]) -> Any:
    """Return the sharding that all `arrays` share; None if they differ, or if any is committed or isn't a `jax.Array`.

    Uncommitted arrays have the default layout. No Python runs per array: there may be hundreds.
    """
    if {*map(type, arrays)} != {Array}:
        return None
    try:
        shardings = [*map(_sharding, arrays)]
        first = shardings[0]
        is_one = all(map(is_, shardings, repeat(first))) or (
            len({*map(_device, shardings)}) == len({*map(_memory_kind, shardings)}) == 1  # all of a single device
        )
        return first if is_one and not any(map(_committed, arrays)) else None
    except Exception:  # another JAX's arrays
        return None


def quick(sharding: Any) -> Any:
    """Return a key of a sharding that hashes faster: (device, memory kind) if on a single device, else the sharding."""
    try:
        return sharding._device, sharding._memory_kind
    except AttributeError:  # of several devices
        return sharding


def dynamic_arguments(
    function: Any, wrapper: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[str, ...], list[Any], Any]:
    """Return a call's arguments without the static ones: their paths, their leaves, and the tree of `(args, kwargs)`.

    All three are as JAX has them before it traces. `(), [], None` if this version of JAX doesn't offer them.
    """
    if _jax_jit is None or _api_util is None or _tree_util is None:
        return (), [], None
    signature, values = _jax_jit.parse_arguments(
        args, tuple(kwargs.values()), tuple(kwargs), wrapper.static_argnums, wrapper.static_argnames,
        _tree_util.tracing_registry,
    )  # fmt: skip
    info = _api_util.debug_info(
        "jit", function, args, kwargs, static_argnums=wrapper.static_argnums, static_argnames=wrapper.static_argnames,
        sourceinfo=wrapper.fun_sourceinfo, signature=wrapper.fun_signature,
    )  # fmt: skip
    trees, names = signature.dynamic_arg_treedefs, list(signature.dynamic_arg_names)  # those by name come last, sorted
    registry, of = _tree_util.tracing_registry, _tree_util.PyTreeDef.from_node_data_and_children
    positional = of(registry, (tuple, None), trees[: len(trees) - len(names)])
    keywords = of(registry, (dict, names), trees[len(trees) - len(names) :])
    treedef = of(registry, (tuple, None), (positional, keywords))
    return tuple(info.safe_arg_names(len(values))), values, treedef


def trace_again(function: Any, wrapper: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the `jax.stages.Traced` of a call of `function`, from JAX's cache if possible.

    The options are in `wrapper`, JAX's `_jit_info`: the `jax.jit` object itself may be gone.
    """
    from jax._src.pjit import jit_trace  # pyright: ignore

    return jit_trace(SimpleNamespace(_fun=function, _jit_info=wrapper), *args, **kwargs)


def pmapped(function: Any) -> tuple[Any, Any, bool] | None:
    """Return (the user's function, its argument tree, True if no argument is static) of a `jax.pmap` function.

    None for any other function. JAX makes a closure for each call, to which nothing public leads.
    """
    made = getattr(function, "__wrapped__", function)
    code = getattr(made, "__code__", None)
    if code is None or code.co_qualname != "_cached_shard_map.<locals>._fun":
        return None
    held = dict(zip(code.co_freevars, (cell.cell_contents for cell in made.__closure__ or ()), strict=False))
    fun, tree = held.get("fun"), held.get("in_tree")
    own = getattr(fun, "f", None)
    return (own, tree, not getattr(fun, "transforms", ())) if callable(own) and tree is not None else None


def jaxpr_place(jaxpr: Any) -> tuple[str, tuple[str, ...]]:
    """Return `f at file:line` of a jaxpr's function, and its argument names; empty if unknown."""
    info = getattr(jaxpr, "debug_info", None) or getattr(getattr(jaxpr, "jaxpr", None), "debug_info", None)
    return str(getattr(info, "func_src_info", "") or ""), tuple(map(str, getattr(info, "arg_names", None) or ()))


def value_below(tracer: Any) -> Any:
    """Return the value that a tracer of `vmap`, `jvp` or `grad` wraps, or None for other tracers.

    The value is read from private attributes. JAX's public API has only the type of one element of the batch, and
    `sharding`, which is slow.
    """
    for name in ("val", "primal"):
        value = getattr(tracer, name, None)
        if value is not None:
            return value
    return None


_TRANSFORMATIONS = {"JVPTracer": "jvp", "BatchTracer": "vmap", "LinearizeTracer": "linearize"}


def transformations_of(values: Sequence[Any]) -> tuple[str, ...]:
    """Return the names of the transformations around a call, outermost first: `vmap`, `jvp`, `linearize` (`jax.grad`).

    They are read from the tracers among `values`, the call's arguments; empty without tracers.
    """
    longest: list[str] = []  # an argument that isn't differentiated has fewer of them
    for value in values:
        names: list[str] = []
        while isinstance(value, Tracer):
            kind = cast("type[Any]", type(value)).__name__
            names.append(_TRANSFORMATIONS.get(kind, kind.removesuffix("Tracer")))
            value = value_below(value)
        longest = names if len(names) > len(longest) else longest
    return tuple(reversed(longest))


def struct_of(array: Any) -> jax.ShapeDtypeStruct:
    """Return the struct of an array or an aval: its shape, dtype and weak type. Random keys count as not weak."""
    return jax.ShapeDtypeStruct(array.shape, array.dtype, weak_type=getattr(array, "weak_type", False))


Jitted: Any = type(jax.jit(lambda: None))


def is_jitted(value: Any) -> bool:
    """Return True for what `jax.jit` returns; runs no code of the value's."""
    return type(value) is Jitted


def static_arguments(jitted: Any, kind: str = "static") -> tuple[tuple[int, ...], tuple[str, ...]]:
    info: Any = getattr(jitted, "_jit_info", None) if is_jitted(jitted) else None
    return tuple(getattr(info, f"{kind}_argnums", ())), tuple(getattr(info, f"{kind}_argnames", ()))


def donated_arguments(jitted: Any) -> tuple[tuple[int, ...], tuple[str, ...]]:
    return static_arguments(jitted, "donate")


def jit_options(jitted: Any) -> dict[str, Any] | None:
    """Return the keyword arguments of `jax.jit` that make an equal function.

    None if `jitted` isn't a `jax.jit` function, or has shardings, layouts, a device or a backend of its own.
    """
    info: Any = getattr(jitted, "_jit_info", None) if is_jitted(jitted) else None
    try:
        # An equal function would need these too, and they aren't among the options below.
        placed = (
            *info.out_shardings_leaves,
            *info.in_layouts_leaves,
            *info.out_layouts_leaves,
            info.device,
            info.backend,
        )
        is_plain = not info.user_specified_in_shardings and all(
            value is None or type(value).__name__ == "UnspecifiedValue" for value in placed
        )
        names = ("static_argnums", "static_argnames", "donate_argnums", "donate_argnames", "keep_unused", "inline")
        options = {name: getattr(info, name) for name in names}
        return options | {"compiler_options": dict(info.compiler_options_kvs) or None} if is_plain else None
    except (AttributeError, TypeError):  # another JAX keeps it elsewhere
        return None


def pmapped_call(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, list[Any]] | None:
    """Return the `jax.jit` function behind a `jax.pmap` function and the arrays it gets; None for others."""
    lower = getattr(function, "lower", None)
    if not inspect.isfunction(lower) or not lower.__module__.startswith("jax."):
        return None
    infer: Any = inspect.getclosurevars(lower).nonlocals.get("infer_params")
    try:
        _, jitted, leaves, *_ = infer(*args, **kwargs)
        return (jitted, list(leaves)) if is_jitted(jitted) else None
    except (TypeError, ValueError):  # pragma: no cover - another JAX keeps it otherwise
        return None


_pytrees: dict[type, Any]
try:
    from jax._src.tree_util import _registry as _pytrees  # pyright: ignore
except ImportError:  # pragma: no cover - a dataclass with other fields than in a file is then not recognized
    _pytrees = {}


def registered_fields(kind: type) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the names of the data and of the meta fields that `jax.tree_util.register_dataclass` got for a class.

    None for a class without such a registration. JAX's C++ builds a dataclass unchecked: it reads past the end of too
    few children.
    """
    # Only JAX's own function has the fields in its closure; a class with functions of its own has no fields.
    put_together = getattr(_pytrees.get(kind), "from_iter", None)
    if not inspect.isfunction(put_together) or put_together.__module__ != "jax._src.tree_util":
        return None
    names = inspect.getclosurevars(put_together).nonlocals
    return (names["data_fields"], names["meta_fields"]) if {"data_fields", "meta_fields"} <= set(names) else None
