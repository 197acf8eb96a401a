"""jax.jit's C++ dispatcher, with Explorer's own answer to a call that the dispatcher doesn't know."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import jax
import numpy as np

from explorer._jax.arguments import Array

_NEWEST = (0, 12)  # newest tested version; a third number means a small change


def untested_version(version: str) -> str:
    """Return a warning for a JAX newer than the newest tested one, else an empty text.

    Example:
        >>> untested_version("0.12.3"), untested_version("0.99.0").partition(":")[0]
        ('', 'Explorer is tested with JAX up to 0.12, and this is JAX 0.99.0')
    """
    numbers = tuple(map(int, re.findall(r"\d+", version)[:2]))
    if numbers <= _NEWEST:
        return ""
    newest = ".".join(map(str, _NEWEST))
    return (
        f"Explorer is tested with JAX up to {newest}, and this is JAX {version}: parts of it may fail or be incomplete."
    )


if untested := untested_version(jax.__version__):
    warnings.warn(untested, stacklevel=2)

internals: Any  # of jax.jit's dispatcher and of jax.experimental.serialize_executable
try:
    from jax._src import api_util as _api_util  # pyright: ignore
    from jax._src import core as _core  # pyright: ignore
    from jax._src import stages as _stages  # pyright: ignore
    from jax._src import tree_util as _tree_util  # pyright: ignore
    from jax._src.interpreters import pxla as _pxla  # pyright: ignore
    from jax._src.lax.linalg import initialize_lapack as _initialize_lapack  # pyright: ignore
    from jax._src.lib import _jax as _jaxlib  # pyright: ignore
    from jax._src.lib import pytree as _pytree  # pyright: ignore
    from jax._src.lib import xla_client as _xla_client  # pyright: ignore

    internals = SimpleNamespace(
        function=_jaxlib.pjit,
        cache=_jaxlib.PjitFunctionCache,
        key=_pxla.JitGlobalCppCacheKeys,
        registry=_tree_util.dispatch_registry,
        trees=_pytree.PyTreeRegistry,
        shard=_pxla.cc_shard_arg,
        not_finite=_api_util.InternalFloatingPointError,
        aval=_core.ShapedArray,
        argument=_stages.ArgInfo,
        devices=_xla_client.DeviceList,
        executable=_pxla.UnloadedMeshExecutable,
        initialize_lapack=_initialize_lapack,
    )
except (ImportError, AttributeError):  # pragma: no cover - calls then go through Python, native code is recompiled
    internals = None


_NARROWED = {
    np.dtype(wide): np.dtype(dtype) for wide, dtype in (("f8", "f4"), ("i8", "i4"), ("u8", "u4"), ("c16", "c8"))
}
_MISSING = object()
_MAX_HIDDEN = 100  # classes: code that makes new ones for each call must not fill the memory
_NUMPY = np.ndarray, np.generic
_LEAVES = bool, int, float, complex, *_NUMPY, jax.Array  # types that are in JAX's keys


def dispatcher(
    name: str, miss: Callable[..., tuple[Any, Any]], capacity: int, arguments: KeyedArguments | None = None
) -> Any:
    """Return a function whose calls stay in C++ after `miss` answered one of their kind; None where this JAX can't.

    jax.jit itself traces on a miss, and can refuse shapes and dtypes only in the middle of a trace. A Python function
    around jax.jit would cost a tenth of a small call. `miss` returns the result, and `fast_path(…)` of the binary that
    ran, or None to be called each time. The dispatcher keeps `capacity` kinds of calls.
    """
    if internals is None:
        return None

    def answer(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
        __tracebackhide__ = True
        return *miss(*args, **kwargs), False

    def undispatched(*args: Any, **kwargs: Any) -> Any:  # within jax.disable_jit too, for it is compiled
        __tracebackhide__ = True
        return miss(*args, **kwargs)[0]

    registry = internals.registry if arguments is None else arguments.registry
    return _dispatching(name, undispatched, answer, ([], []), registry, capacity)


def _dispatching(name: str, function: Any, miss: Any, static: tuple[Any, Any], registry: Any, capacity: int) -> Any:
    how = internals
    made = how.function(name, function, miss, *static, how.key(), registry, how.shard, how.cache(capacity=capacity))
    made._fun = function  # JAX calls this again when jax_debug_nans finds one in C++
    return made


class KeyedArguments:
    """The parts of a call's arguments that a dispatcher has in its key, and those that go to the binary.

    As in jax.jit, but a value that is no array (a string, a function) may be a leaf: the key has only its class, and
    also the value of a size if `has_sizes`. A call with a tree whose class isn't in `containers` has no fast path.
    """

    def __init__(self, containers: Iterable[type], has_sizes: bool) -> None:
        how: Any = internals
        self.registry: Any = how.trees() if how is not None else None
        self._hidden: set[type] = set()
        if how is not None:
            for kind in containers:
                self.registry.register_node(kind, how.registry.flatten_one_level, _unused)
            self._hide(str)
            # JAX's key ignores the mask of a masked array.
            self._hide(np.ma.MaskedArray)
            if has_sizes:
                # A dataclass's field must be an attribute: the value of an int is its `real`.
                self._hide(int, "real")

    def fast_path(self, fast_path: Any, values: Sequence[Any], leaves: Sequence[tuple[Any, bool]]) -> Any:
        """Return a fast path for a call that has further leaves, made of `fast_path`, that of the inputs alone.

        A fast path is what the dispatcher needs to run a binary. None if C++ can't call it. The `values` are in the
        dispatcher's order: by position, then by sorted names. Each leaf has True if it is an input.
        """
        for leaf, is_input in leaves:
            if not is_input and not isinstance(leaf, _LEAVES):
                self._hide(cast(Any, type(leaf)))
        shown = [(leaf, is_input) for leaf, is_input in leaves if type(leaf) not in self._hidden]
        if not _are_same(self.registry.flatten(list(values))[0], [leaf for leaf, _ in shown]):
            return None
        kept, constants = list(fast_path.kept_var_bitvec), len(fast_path.const_args)
        of_inputs = iter(kept[constants:])
        return fast_path._replace(
            kept_var_bitvec=kept[:constants] + [is_input and next(of_inputs) for _, is_input in shown]
        )

    def _hide(self, kind: type, *attributes: str) -> None:
        """Treat values of a class as trees without leaves; the key has only these attributes."""
        if kind not in self._hidden and len(self._hidden) < _MAX_HIDDEN:
            self._hidden.add(kind)
            self.registry.register_dataclass_node(kind, [], list(attributes))  # C++ flattens dataclasses without Python


def checks_dtypes(
    call: Callable[..., Any], other: Callable[..., Any], structure: Any, inputs: Mapping[int, Any]
) -> Callable[..., Any]:
    """Return `call` with a check that goes to `other` where a NumPy value has another dtype than the input.

    The dispatcher doesn't see that: where JAX narrows 64 bits, C++ converts float64 to float32, and it reads bytes in
    the other byte order as if they were native. `inputs` has the dtypes by position among the leaves of `structure`,
    the usual call's `(args, kwargs)`.
    """
    flatten = cast(Any, jax.tree_util).default_registry.flatten
    positions, dtypes = list(inputs), list(inputs.values())
    has_others = len(inputs) < structure.num_leaves
    # Dtypes that no other is narrowed to: in a call of another structure it is unknown which leaf is
    # which input, or a constant.
    certain = tuple({dtype for dtype in dtypes if _NARROWED.get(dtype) not in dtypes})

    def is_certain(leaf: Any) -> bool:
        return not isinstance(leaf, _NUMPY) or leaf.dtype in certain

    def checked(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        leaves, its = cast(tuple[list[Any], Any], flatten((args, kwargs)))
        if its != structure:
            return (call if all(map(is_certain, leaves)) else other)(*args, **kwargs)
        try:
            for leaf, dtype in zip(map(leaves.__getitem__, positions) if has_others else leaves, dtypes, strict=True):
                if leaf.__class__ is not Array and leaf.dtype is not dtype and leaf.dtype != dtype:
                    return other(*args, **kwargs)
        except AttributeError:
            return other(*args, **kwargs)
        return call(*args, **kwargs)

    if structure != jax.tree.structure(((0,) * structure.num_leaves, {})):
        return checked
    if structure.num_leaves == len(dtypes) == 1:
        return _checks_dtype(call, checked, dtypes[0])
    return _checks_each(call, checked, certain)


def _checks_each(call: Callable[..., Any], other: Callable[..., Any], dtypes: tuple[Any, ...]) -> Callable[..., Any]:
    """Return a function that runs `call` if all arguments are sizes or have these dtypes, by position, else `other`."""

    def checked(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            for leaf in args:
                kind = leaf.__class__
                if kind is not Array and kind is not int and leaf.dtype not in dtypes:
                    return other(*args, **kwargs)
        except AttributeError:
            return other(*args, **kwargs)
        return other(*args, **kwargs) if kwargs else call(*args)

    return checked


def _checks_dtype(call: Callable[..., Any], other: Callable[..., Any], dtype: Any) -> Callable[..., Any]:
    """Return a function that runs `call` for one JAX array or NumPy value of this dtype, else `other`."""

    def checked(leaf: Any = _MISSING, /, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            fits = leaf.__class__ is Array or leaf.dtype is dtype
        except AttributeError:
            fits = False
        if fits and not args and not kwargs:
            return call(leaf)
        return other(*args, **kwargs) if leaf is _MISSING else other(leaf, *args, **kwargs)

    return checked


def with_fast_path(compiled: Any) -> Callable[..., tuple[Any, Any]]:
    """Return a function that calls a `jax.stages.Compiled` and returns (result, fast path for a `dispatcher`).

    Without a fast path it returns (result, None): where Python takes part in each call, as with host callbacks.
    """
    call = compiled._executable.create_cpp_call(compiled._params) if internals is not None else None
    if call is None:
        return lambda *args: (compiled(*args), None)

    def run(*args: Any) -> tuple[Any, Any]:
        __tracebackhide__ = True
        try:
            return call._cache_miss(*args)[:2]
        except internals.not_finite as error:  # with jax_debug_nans; jax.jit turns it into this too
            raise FloatingPointError(f"invalid value ({error.ty}) encountered in {error.name}") from None

    return run


def _unused(data: Any, children: Any) -> Any:
    """Raise NotImplementedError: no tree of a key is ever unflattened."""
    raise NotImplementedError


def _are_same(own: Sequence[Any], leaves: Sequence[Any]) -> bool:
    """Return True if a dispatcher's leaves are the same objects as those of jax.tree, in the same order.

    Random keys aren't compared: the dispatcher has their data, jax.tree the key.
    """
    are_keys = [isinstance(leaf, jax.Array) and type(leaf) is not Array for leaf in leaves]
    pairs = zip(own, leaves, are_keys, strict=False)
    return len(own) == len(leaves) and all(is_key or one is other for one, other, is_key in pairs)


# Entries of a cache for this function alone. JAX's own 8,192 are shared by all jitted functions.
_KINDS_OF_CALL = 1024


def with_explained_misses(
    jitted: Any,
    explain: Callable[[Exception, tuple[Any, ...], dict[str, Any]], None],
    answer: Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any] | None = None,
) -> Any:
    """Return an equal jitted function whose trace and compile errors go to `explain`, which may raise another.

    jax.jit's dispatcher is C++ and calls Python only on a miss. This replaces that Python; a function around the jitted
    one would run at every call. `answer` answers a miss, given JAX's own answer and the call's arguments. Where this
    JAX has no such dispatcher, `jitted` is returned.
    """
    how, info = internals, getattr(jitted, "_jit_info", None)
    if how is None or info is None or not hasattr(jitted, "_cache_miss"):
        return jitted

    def miss(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            if answer is not None:
                return answer(jitted._cache_miss, args, kwargs)
            return jitted._cache_miss(*args, **kwargs)
        except Exception as error:
            explain(error, args, kwargs)
            raise

    static = info.static_argnums, info.static_argnames
    return _dispatching(jitted.__name__, jitted._fun, miss, static, how.registry, _KINDS_OF_CALL)
