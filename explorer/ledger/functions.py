"""The name and place of a compiled function, and how the function object was made."""

from __future__ import annotations

import inspect
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from itertools import count
from threading import RLock
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple, cast

from jax.sharding import Mesh, NamedSharding

from explorer._jax.arguments import pmapped, unspecified
from explorer.model.events.event import hot_copy_of, spread_text
from explorer.model.events.key import AHEAD, HOT, Function, Leaf


class Identities:
    """Unique number for each object, for as long as the object exists.

    Objects without weak references are kept alive, the most recent `limit` of them.
    """

    def __init__(self, limit: int = 4_096) -> None:
        self._numbers: dict[int, tuple[Any, int]] = {}  # by id(); a number is good while its object lives
        self._held: OrderedDict[int, Any] = OrderedDict()
        self._count = count(1)
        self._limit = limit
        self._lock = RLock()

    def of(self, value: Any) -> int:
        entry = self._numbers.get(id(value))
        # The address of a dead object may be another's now.
        if entry is not None and (entry[0] is None or entry[0]() is value):
            return entry[1]
        with self._lock:
            at, number = id(value), next(self._count)
            try:
                self._numbers[at] = weakref.ref(value, lambda gone: self._forget(at, gone)), number
            except TypeError:
                self._numbers[at] = None, number
                self._held[at] = value
                if len(self._held) > self._limit:
                    del self._numbers[self._held.popitem(last=False)[0]]
            return number

    def _forget(self, at: int, gone: Any) -> None:
        # No lock: Python may call this in the middle of `of`, on the same thread.
        entry = self._numbers.get(at)
        if entry is not None and entry[0] is gone:
            self._numbers.pop(at, None)


class Equals:
    """Equal numbers for equal values; the most recent `limit` values are kept."""

    def __init__(self, limit: int = 1_024) -> None:
        self._numbers: OrderedDict[Any, int] = OrderedDict()
        self._count = count(1)
        self._limit = limit
        self._lock = RLock()

    def of(self, value: Any) -> int:
        """Return the value's number, from 1; 0 if it can't be hashed or compared."""
        try:
            with self._lock:
                number = self._numbers.get(value)
                if number is None:
                    number = self._numbers[value] = next(self._count)
                    if len(self._numbers) > self._limit:
                        self._numbers.popitem(last=False)
                return number
        except Exception:  # the user's own __hash__ or __eq__
            return 0


_COVER = "reraise_with_filtered_traceback"
_DEEPEST = 50  # wrappers around wrappers: a cycle ends there
_MANY = 4_096


class Functions:
    """Cache of `Function` by function object and the `jax.jit` around it."""

    def __init__(self) -> None:
        self._numbers = Identities()
        self._primitives = Equals()
        self._read: OrderedDict[tuple[int, int], Function] = OrderedDict()
        self._wrappers: OrderedDict[int, tuple[Any, Wrapper]] = OrderedDict()
        self._lock = RLock()
        self._wrapped = 0

    def number(self, function: Any) -> int:
        return self._numbers.of(function)

    def of(self, function: Any, wrapper: Any) -> Function:
        if is_primitive(function):  # JAX makes a function for each set of its parameters: no function of the user's
            identity = self._primitives.of(function.__name__)
            return Function(function.__name__, identity=identity, wrapper=identity, eager=True)
        own = getattr(function, "__dict__", {}).get("explored")  # the user's function, if compile() made this one
        made = () if own is None else (AHEAD,)
        copy = hot_copy_of(function)
        if copy is not None:
            own, made = copy.call.function, (HOT,)
        function = function if own is None else own
        of_pmap = pmapped(function)  # JAX makes another one for each structure of arguments
        function = of_pmap[0] if of_pmap is not None else function
        # Hot paths may hold the user's function as another object of the same code.
        identity = self._numbers.of(function if copy is None else function.__code__)
        with self._lock:
            key = identity, self.wrapper(wrapper).number
            description = self._read.get(key)
            if description is None:
                description = read_function(function, *key)
                made = (*made, "pmap") if of_pmap is not None else made
                if made:
                    description = replace(description, made=(*made, *description.made))
                self._read[key] = description
                if len(self._read) > _MANY:
                    self._read.popitem(last=False)
            return description

    def wrapper(self, wrapper: Any) -> Wrapper:
        """Return the number and the options of a `jax.jit`, read at the first call for it."""
        with self._lock:
            # It can't be held weakly. JAX holds it too, as a part of its keys, so its number is no other's as long.
            entry = self._wrappers.get(id(wrapper))
            if entry is None:
                self._wrapped += 1
                entry = self._wrappers[id(wrapper)] = wrapper, read_wrapper(wrapper, self._wrapped)
                if len(self._wrappers) > _MANY:
                    self._wrappers.popitem(last=False)
            return entry[1]


def read_function(function: Any, identity: int, wrapper: int) -> Function:
    layers = [*_layers(function)]
    code = _code(layers[-1])
    return Function(
        name_of(function),
        code.co_filename if code is not None else "",
        code.co_firstlineno if code is not None else 0,
        tuple(made for made in map(_maker_of, layers) if made),
        identity,
        wrapper,
        _is_eager(function, code),
    )


def is_primitive(function: Any) -> bool:
    """Return True for a function that JAX makes to run one operation outside of any `jit`."""
    return getattr(function, "_apply_primitive", False) is True


def parameters_of(function: Any) -> dict[str, Any]:
    """Return the static parameters by name of a function for which `is_primitive` is True; {} if unknown."""
    parameters = inspect.getclosurevars(function).nonlocals.get("params")
    return cast("dict[str, Any]", parameters) if isinstance(parameters, dict) else {}


def argument_name(parameters: Sequence[inspect.Parameter], at: int) -> str:
    """Return the name of positional argument `at`: `x`, `rest[1]`; `args[3]` if unknown."""
    for i, parameter in enumerate(parameters[: at + 1]):
        if parameter.kind is parameter.VAR_POSITIONAL:
            return f"{parameter.name}[{at - i}]"
        if i == at:
            return parameter.name
    return f"args[{at}]"


def name_of(function: Any) -> str:
    """Return the function's name as JAX prints it; `<unnamed function>` without a name."""
    for layer in _layers(function):
        name = getattr(layer, "__name__", None)
        if isinstance(name, str):
            return name
        if not isinstance(layer, partial):
            break
    return "<unnamed function>"


def _layers(function: Any) -> Iterator[Any]:
    """Yield a function, the function that it wraps, and so on to the innermost, at most 50."""
    for _ in range(_DEEPEST):
        yield function
        if isinstance(function, partial):
            function = cast(Any, function.func)
        elif isinstance(function, MethodType):
            function = function.__func__
        elif callable(wrapped := _wrapped_by(function)) or hasattr(wrapped, "__code__"):
            function = wrapped  # or what stands for it: explorer.jit keeps no function alive
        else:
            return


def _wrapped_by(function: Any) -> Any:
    """Return the function's `__wrapped__` without running any code of the object; None without one."""
    if type(function) is FunctionType:  # mostly, and much sooner looked up
        return function.__dict__.get("__wrapped__")
    return inspect.getattr_static(function, "__wrapped__", None)


def _code(function: Any) -> CodeType | None:
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return code if isinstance(code, CodeType) else None


def _maker_of(layer: Any) -> str:
    if isinstance(layer, partial):
        return "partial"
    if isinstance(layer, MethodType):
        return "method"
    code = _code(layer)
    if _wrapped_by(layer) is None:
        return "lambda" if code is not None and code.co_name == "<lambda>" else ""
    if getattr(layer, "__module__", "") == "explorer.jitted.program":
        return ""
    if not isinstance(layer, FunctionType):
        return type(layer).__name__  # `custom_vjp`
    # The function that made it: `grad`, for `grad.<locals>.grad_f`, which JAX wraps in a nameless function.
    covered = inspect.getclosurevars(layer).nonlocals.get("fun") if layer.__code__.co_name == _COVER else None
    maker = (covered if isinstance(covered, FunctionType) else layer).__code__.co_qualname.partition(".<locals>")[0]
    return maker.removesuffix(".__call__").rpartition(".")[2]


def _is_eager(function: Any, innermost: CodeType | None) -> bool:
    package = (getattr(function, "__module__", None) or "").partition(".")[0]
    # grad(f) is of JAX's module or of f's, as its wrapper pleases; the wrapped function decides.
    file = innermost.co_filename if innermost is not None else ""
    return package == "jax" and ("/jax/" in file or "\\jax\\" in file)


def clean(text: str, longest: int = 400) -> str:
    """Return the text without addresses, cut to `longest` characters."""
    if " at 0x" in text:
        parts = text.split(" at 0x")
        text = parts[0] + "".join(part.lstrip("0123456789abcdef") for part in parts[1:])
    return text if len(text) <= longest else text[: longest - 1] + "…"


class Wrapper(NamedTuple):
    """Number and options of a `jax.jit`; options as text, only those that are not the default."""

    number: int
    wrapping: tuple[tuple[str, str], ...]
    options: tuple[tuple[str, str], ...]


def read_wrapper(wrapper: Any, number: int) -> Wrapper:
    settings: list[tuple[str, str]] = []
    for name in ("in_shardings", "out_shardings", "in_layouts", "out_layouts"):
        leaves = tuple(getattr(wrapper, f"{name}_leaves", ()))
        if any(leaf is not None and leaf is not unspecified for leaf in leaves):
            texts = (spread_text(sharding_parts(sharding)) or clean(str(sharding)) for sharding in leaves)
            settings.append((name, clean(", ".join(texts))))
    for name in ("static_argnums", "static_argnames", "donate_argnums", "donate_argnames", "device", "backend"):
        value = getattr(wrapper, name, None)
        if value is not None and value != ():
            settings.append((name, clean(str(value))))
    for name in ("keep_unused", "inline"):
        value = getattr(wrapper, name, False)
        text = str(getattr(value, "value", value))
        if text not in ("False", "auto"):
            settings.append((name, text))
    options = getattr(wrapper, "compiler_options_kvs", ())
    return Wrapper(number, tuple(settings), tuple(sorted((str(name), clean(str(value))) for name, value in options)))


def sizes_of(aval: Any) -> tuple[int | str, ...]:
    """Return the sizes of an array's axes, symbolic ones as text."""
    return tuple([size if isinstance(size, int) else str(size) for size in aval.shape])


def dtype_name(dtype: Any) -> str:
    return str(getattr(dtype, "name", dtype))


def leaf_of(path: str, aval: Any) -> Leaf:
    return Leaf(path, sizes_of(aval), dtype_name(aval.dtype), bool(getattr(aval, "weak_type", False)))


Parts = tuple[str, str, str]


_FEW_DEVICES = 16


def device_order(mesh: Any) -> str:
    """Return ` on devices 3, 2, 1, 0` for a mesh whose devices aren't in the order of their numbers; else empty.

    Of many devices, the first ones and a digest.
    """
    ids = [int(device.id) for device in mesh.devices.flat] if isinstance(mesh, Mesh) else []
    if ids == sorted(ids):
        return ""
    shown = ", ".join(map(str, ids[:_FEW_DEVICES]))
    if len(ids) <= _FEW_DEVICES:
        return f" on devices {shown}"
    return f" on devices {shown}, … ({blake2b(repr(ids).encode(), digest_size=4).hexdigest()})"


def sharding_parts(sharding: Any, memory: str = "") -> Parts:
    """Return partition (`P('data', None)`), mesh (`data=4`) and memory kind, each empty if it is the default.

    Only a `NamedSharding` has a partition and a mesh. `memory` is returned as given.
    """
    if not isinstance(sharding, NamedSharding):
        return "", "", memory
    mesh, spec = cast("Any", sharding.mesh), cast("Any", sharding.spec)
    axes = ", ".join(f"{name}={size}" for name, size in mesh.shape.items()) + device_order(mesh)
    is_reduced = getattr(spec, "unreduced", None) or getattr(spec, "reduced", None)
    return str(spec) if is_reduced else f"P({', '.join(map(repr, spec))})", axes, memory
