"""The only file that touches non-public or version-dependent JAX. Each use says why."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock, get_ident
from types import FrameType, SimpleNamespace
from typing import Any, cast

import jax
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
    "registered_fields",
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


_parts: Any  # of jax.jit's dispatcher, and of what jax.experimental.serialize_executable pickles
try:
    from jax._src import core as _core  # pyright: ignore
    from jax._src import stages as _stages  # pyright: ignore
    from jax._src import tree_util as _tree_util  # pyright: ignore
    from jax._src.interpreters import pxla as _pxla  # pyright: ignore
    from jax._src.lib import _jax as _jaxlib  # pyright: ignore
    from jax._src.lib import xla_client as _xla_client  # pyright: ignore

    _parts = SimpleNamespace(
        function=_jaxlib.pjit,
        cache=_jaxlib.PjitFunctionCache,
        key=_pxla.JitGlobalCppCacheKeys,
        registry=_tree_util.dispatch_registry,
        shard=_pxla.cc_shard_arg,
        aval=_core.ShapedArray,
        argument=_stages.ArgInfo,
        devices=_xla_client.DeviceList,
        executable=_pxla.UnloadedMeshExecutable,
    )
except (ImportError, AttributeError):  # pragma: no cover - calls go through Python, native code is compiled anew
    _parts = None


# Symbolic dimensions -------------------------------------------------------------------------------------------------


def at_sizes(closed: Any, sizes: Mapping[str, int]) -> Any:
    """A closed jaxpr with symbolic dimensions, with their sizes put in: as if it had been traced for those.

    JAX's own way, `Exported.call`, loses the source frames and the derivatives, and takes no host callbacks; there is
    no public one. An evaluation of the result checks every equation's shapes anew. Rules of custom derivatives, which
    are Python until they are asked, still see the symbols: take derivatives of another trace.

    Raises:
        Exception: It holds something that has sizes in a way unknown here.
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
            if hasattr(jaxpr, "consts"):  # from 0.11 a jaxpr has its own, and would lose them
                inputs["consts"] = list(jaxpr.consts)
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
        if equation.primitive.name == "call_hi_primitive" and _has_symbols(equation):  # its types are its own
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
    core asks what is surely equal, where False means just that; anybody else means the size, JAX's libraries too, such
    as `jnp.linalg.det` of a 2×2 matrix. Only the class's `__eq__` sees it.
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
        if not _means_surely(frame) and _is_undecided(self, other):
            found.append(Undecided(f"{self} == {other}", _outside_of_jax(frame)))
    return answer


def _has_symbols(equation: Any) -> bool:
    variables = (*equation.invars, *equation.outvars)
    return any(export.is_symbolic_dim(size) for v in variables for size in getattr(v.aval, "shape", ()))


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


def _means_surely(frame: FrameType) -> bool:
    module = _module(frame)
    return module.partition(".")[0] in ("jax", "jaxlib") and not module.startswith(_LIBRARIES)


# Of JAX, what computes one way or another by a size; the rest looks for shortcuts, and its caches compare keys.
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
    if _parts is None:
        return None

    def answer(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
        return *miss(*args, **kwargs), False

    how = _parts
    cache = how.cache(capacity=capacity)
    return how.function(name, None, answer, [], [], how.key(), how.registry, how.shard, cache)


def with_fast_path(compiled: Any) -> Callable[..., tuple[Any, Any]]:
    """A function that calls a `jax.stages.Compiled` and also gives what a `dispatcher` needs to do so by itself.

    The latter is None where Python must take part in each call, as with host callbacks.
    """
    call = compiled._executable.create_cpp_call(compiled._params) if _parts is not None else None
    if call is None:
        return lambda *args: (compiled(*args), None)
    return lambda *args: call._cache_miss(*args)[:2]


# Native code ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Native:
    """A compiled program as bytes, and what is needed beside them to call it.

    Args:
        code: What the runtime itself writes of an executable; no pickle.
        name: Of the program.
        inputs, outputs: Of the arrays that it takes and gives. It doesn't take those that it has no use for.
        kept: The numbers of those it takes, among all inputs.
        donated: Of all inputs, whether a call may overwrite it.
        committed: Whether its results are bound to the device.
    """

    code: bytes
    name: str
    inputs: tuple[jax.ShapeDtypeStruct, ...]
    outputs: tuple[jax.ShapeDtypeStruct, ...]
    kept: tuple[int, ...]
    donated: tuple[bool, ...]
    committed: bool


def native_code(compiled: Any) -> Native | str:
    """The bytes of a `jax.stages.Compiled`, or why there are none.

    JAX's own serialize_executable pickles, and unpickling runs what it reads.
    """
    try:
        program = compiled._executable._unloaded_executable
        loaded = program.xla_executable
        if len(program.device_list) != 1:
            return "it runs on several devices"
        if program.host_callbacks or program.ordered_effects or program.unordered_effects:
            return "it calls back to the host"
        if program.mut is not None or compiled._params.const_args or any(program.dispatch_in_layouts):
            return "it has mutable arrays, hoisted constants or layouts of its own"
        return Native(
            loaded.client.serialize_executable(loaded) if hasattr(loaded, "client") else loaded.serialize(),
            program.name,
            tuple(jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in program.input_avals),
            tuple(jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in program.output_avals),
            tuple(sorted(program.kept_var_idx)),
            tuple(info.donated for info in jax.tree.leaves(compiled.args_info, is_leaf=_is_argument)),
            bool(program.committed),
        )
    except Exception as error:  # a runtime or a JAX without it
        return f"{type(error).__name__}: {error}"


def load_native(native: Native, arguments: Any, out_tree: Any, device: Any) -> Any:
    """A `jax.stages.Compiled` from its bytes: the fields that JAX's own deserialize_and_load unpickles, one by one.

    Args:
        arguments: The tuple of what it is called with, a struct for each array.
        out_tree: Of what it returns.

    Raises:
        Exception: Whatever the runtime says of code that isn't its own.
    """
    devices = _parts.devices((device,))
    where = jax.sharding.SingleDeviceSharding(device)

    def avals(structs: Sequence[jax.ShapeDtypeStruct]) -> list[Any]:
        return [_parts.aval(struct.shape, struct.dtype) for struct in structs]

    inputs, outputs = avals(native.inputs), avals(native.outputs)
    fields: dict[str, Any] = {
        "xla_executable": device.client.deserialize_executable(native.code, executable_devices=devices),
        "device_list": devices,
        "backend": device.client,
        "input_avals": inputs,
        "input_shardings": [where] * len(inputs),
        "output_avals": outputs,
        "output_shardings": [where] * len(outputs),
        "committed": native.committed,
        "name": native.name,
        "unordered_effects": [],
        "ordered_effects": [],
        "keepalive": [],
        "host_callbacks": [],
        "kept_var_idx": set(native.kept),
        "mut": None,
        "xla_in_layouts": [None] * len(inputs),
        "dispatch_in_layouts": [None] * len(inputs),
        "xla_out_layouts": [None] * len(outputs),
        "all_args_info": None,
        "pgle_profiler": None,
    }
    executable = _parts.executable(**fields).load()
    structs, tree = cast(tuple[list[Any], Any], jax.tree.flatten((arguments, {})))
    told = [_parts.argument(aval, donated) for aval, donated in zip(avals(structs), native.donated, strict=True)]
    return jax.stages.Compiled(executable, [], tree.unflatten(told), out_tree, no_kwargs=True)


def _is_argument(leaf: Any) -> bool:
    return hasattr(leaf, "donated")


# Pytrees -------------------------------------------------------------------------------------------------------------

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
