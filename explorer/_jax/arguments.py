"""What JAX's caches know of a function, of a `jax.jit` and of a value, beyond what is public."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from itertools import repeat
from operator import attrgetter, is_
from types import SimpleNamespace
from typing import Any

import jax

_names: Callable[[], tuple[str, ...]]
_values: Callable[[], tuple[Any, ...]]
try:
    # The settings that are compared when a function is traced; public is only each one's value.
    from jax._src.config import trace_context as _values  # pyright: ignore
    from jax._src.config import trace_context_names as _names  # pyright: ignore

    _names()
except (ImportError, AttributeError, NotImplementedError):  # pragma: no cover - a change of settings isn't told then
    _names = _values = tuple

# The class of all arrays but random keys; nothing public names it.
try:
    from jax._src.array import ArrayImpl as Array  # pyright: ignore
except (ImportError, AttributeError):  # pragma: no cover - only a matter of speed
    Array: Any = None

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
except (ImportError, AttributeError):  # pragma: no cover - the arguments of a call whose trace failed aren't told then
    _api_util = _tree_util = _jax_jit = unspecified = None


def trace_context() -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """The settings that are part of the key of a trace: their names, and their values on this thread now."""
    return _names(), _values()


def placement_of(array: Any, rank: int) -> tuple[bool, Any, str]:
    """Whether an array of so many dimensions is committed, its sharding, and how it lies in memory: `{1,0}`.

    The layout is as XLA writes it, and empty where it can't be another than the default, and where it can't be had:
    only with a sharding, which commits the array, can one be asked for. `jax.Array.committed` and `.format` say the
    same and take ten times as long: it counts for hundreds of arrays.
    """
    try:
        committed = array._committed
        layout = str(array._pjrt_layout) if committed and rank > 1 else ""
    except Exception:  # deleted, of an extended dtype, or a backend without layouts
        committed, layout = array.committed, ""
    return committed, array.sharding, layout


def common_placement(arrays: Sequence[Any]) -> Any:
    """The sharding of arrays that are all uncommitted and share it; None if they aren't such.

    Uncommitted, they have the default layout too. Nothing is called for each of them from Python: it counts for
    hundreds.
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
    """What is equal for equal shardings, and quicker to hash and to compare than a sharding of one device is."""
    try:
        return sharding._device, sharding._memory_kind
    except AttributeError:  # of several devices
        return sharding


def dynamic_arguments(
    function: Any, wrapper: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[str, ...], list[Any], Any]:
    """The path and value of each array argument of a call, and their tree, as JAX sees them before it traces."""
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
    """A `jax.stages.Traced` of a function as a `jax.jit` saw it: JAX's own jaxpr, where it still has that one.

    The `jax.jit` itself may be gone, and with it the public way to ask.
    """
    from jax._src.pjit import jit_trace  # pyright: ignore

    return jit_trace(SimpleNamespace(_fun=function, _jit_info=wrapper), *args, **kwargs)


def pmapped(function: Any) -> tuple[Any, Any, bool] | None:
    """Of the function that a `jax.pmap` makes for a call: the user's, the tree of its arguments, and if that is all.

    Else some of them are static. None if it is no such function: one of JAX's, over a closure that nothing public
    leads to.
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
    """`f at file:line` of the function that a jaxpr is of, and the names of its arguments; empty if not known."""
    info = getattr(jaxpr, "debug_info", None) or getattr(getattr(jaxpr, "jaxpr", None), "debug_info", None)
    return str(getattr(info, "func_src_info", "") or ""), tuple(map(str, getattr(info, "arg_names", None) or ()))


def value_below(tracer: Any) -> Any:
    """What a tracer of `vmap`, `jvp` or `grad` stands for, one level down; None if it stands for nothing that is there.

    Public are only its type, of one element of the batch, and its `sharding`, which takes long.
    """
    for name in ("val", "primal"):
        value = getattr(tracer, name, None)
        if value is not None:
            return value
    return None


_Jitted: type | None = type(jax.jit(lambda: None))


def is_jitted(value: Any) -> bool:
    """Whether a value is what `jax.jit` returns; runs no code of the value's."""
    return type(value) is _Jitted


def static_arguments(jitted: Any) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The `static_argnums` and `static_argnames` of a `jax.jit` function, each completed from the other by JAX."""
    info: Any = getattr(jitted, "_jit_info", None) if is_jitted(jitted) else None
    return tuple(getattr(info, "static_argnums", ())), tuple(getattr(info, "static_argnames", ()))


def donated_arguments(jitted: Any) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The `donate_argnums` and `donate_argnames` of a `jax.jit` function, each completed from the other by JAX."""
    info: Any = getattr(jitted, "_jit_info", None) if is_jitted(jitted) else None
    return tuple(getattr(info, "donate_argnums", ())), tuple(getattr(info, "donate_argnames", ()))


def jit_options(jitted: Any) -> dict[str, Any] | None:
    """What makes `jax.jit(function, **options)` do as `jitted` does; None where that can't be info."""
    info: Any = getattr(jitted, "_jit_info", None) if is_jitted(jitted) else None
    try:
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
    """Return the `jax.jit` function that a `jax.pmap` function calls, and the arrays that it gives to it.

    A `jax.pmap` function has `lower` and no `trace`; only its closure knows both. None for what is no such function.
    """
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
except ImportError:  # pragma: no cover - a dataclass of other fields than in a file isn't told from the right one
    _pytrees = {}


def registered_fields(kind: type) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The names that `jax.tree_util.register_dataclass` was given for a class: of its children, and of the rest.

    None for a class that has functions of its own to be taken apart and put together. Nothing public tells the two
    apart, and JAX's C++ puts a dataclass together unchecked: it reads past the end of too few children.
    """
    put_together = getattr(_pytrees.get(kind), "from_iter", None)
    if not inspect.isfunction(put_together) or put_together.__module__ != "jax._src.tree_util":
        return None
    names = inspect.getclosurevars(put_together).nonlocals
    return (names["data_fields"], names["meta_fields"]) if {"data_fields", "meta_fields"} <= set(names) else None
