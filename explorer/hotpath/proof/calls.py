"""What is known of a call: whether it is harmless, and what it gives."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, cast

import jax
import numpy as np

from explorer._jax.arguments import is_jitted
from explorer.capture.safe_reading import attributes, kind_of
from explorer.hotpath.proof import builtin, known
from explorer.hotpath.proof.attributes import attribute, elements, is_structured
from explorer.hotpath.proof.builtin import SPECIALS
from explorer.hotpath.proof.known import array_inside, is_generated, note_all, refuse_hooks, refuse_own_protocols
from explorer.hotpath.proof.syntax import node_of
from explorer.hotpath.proof.values import (
    DATA,
    PLAIN,
    Arguments,
    Closure,
    Either,
    Fresh,
    Given,
    Items,
    Known,
    Made,
    Method,
    NotProven,
    Operation,
    Scope,
    Value,
    Walker,
    Wrapped,
    cell_value,
    join,
    parameters,
)
from explorer.hotpath.swap import code_of
from explorer.model.stage import is_library_file

_OPAQUE = ("jax", "jaxlib", "numpy", "scipy", "flax", "torch")  # whose sources lead too deep
_READERS = ("builtins", "math", "_operator", "itertools", "_functools", "numpy")  # that take an array for its value
_YOURSELF = "put `@jax.jit` on it yourself, if you know that it only computes"
_BY_NNX = "pass the module as an argument and put `@nnx.jit` on it, which knows how flax.nnx changes modules in place"
_DEEP_READERS: tuple[Any, ...] = (any, all, max, min, sorted, filter)
_LIKE_THEIRS = tuple(vars(jax)[name] for name in ("vmap", "jit", "checkpoint", "remat", "named_call"))


def call(walker: Walker, callee: Value, given: Arguments, text: str) -> Value:
    """What a call gives, once it is known to be harmless."""
    match callee:
        case Either(values):
            return functools.reduce(join, [call(walker, one, given, text) for one in values])
        case Operation():
            return _with_data(walker, given, text)
        case Method(Operation(name), owner):
            return builtin.method(walker, owner, name, given, text)
        case Method(function, owner):
            return call(walker, function, given.after((owner,)), text)
        case Wrapped():
            return _call_wrapped(walker, callee, given, text)
        case Closure(node, names, home, defaults):
            return walker.run_in(node, home, Scope(parameters(node, defaults, given, text), names))
        case Made() | Given():
            return call(walker, attribute(callee, "__call__", walker, text), given, text)
        case Known(value):
            return _call_known(walker, value, given, text)
        case _:
            raise NotProven(f"what `{text}(…)` calls is computed")


def _call_known(walker: Walker, value: Any, given: Arguments, text: str) -> Value:
    if id(value) in SPECIALS:
        return SPECIALS[id(value)](walker, given, text)
    if known.is_wrapper(value):
        return _wrap(value, given, text)
    for rule in _rules(value):
        call(walker, Known(rule), Arguments(rest=DATA), text)
    inner = _inside(value)
    if inner is not None:
        function, args, named = inner
        for held in (*args, *named.values()):
            note_all(held, walker.reads, text)
        return call(walker, Known(function), given.after(map(Known, args), dict(_known(named))), text)
    if known.is_pure(value):
        return _pure(walker, value, given, text)
    if type(value) is FunctionType:
        inner = value.__dict__.get("__wrapped__") if _adds_nothing(value) else None
        return _run_function(walker, value, given, text) if inner is None else call(walker, Known(inner), given, text)
    if isinstance(value, type):
        return _construct(walker, value, given, text)
    kind = kind_of(value)
    method: Any = vars(kind).get("__call__") if not isinstance(value, BuiltinFunctionType) else None
    if isinstance(method, FunctionType):
        walker.reads.add("attribute", kind, "__call__", method, text)
        return _run_function(walker, method, given.after((Known(value),)), text)
    raise _unknown(value, text)


def _adds_nothing(function: FunctionType) -> bool:
    """Whether a function only calls what it wraps, under a name of JAX's for it or with tracebacks filtered."""
    return function.__code__.co_filename.endswith(("jax/_src/source_info_util.py", "jax/_src/traceback_util.py"))


def _known(values: Mapping[str, Any]) -> list[tuple[str, Value]]:
    return [(name, Known(value)) for name, value in values.items()]


def _inside(value: Any) -> tuple[Any, tuple[Any, ...], Mapping[str, Any]] | None:
    """What a callable object calls, with what by position and by name; None where it isn't such a one."""
    if type(value) is MethodType:
        return value.__func__, (value.__self__,), {}
    if isinstance(value, functools.partial):
        return value.func, value.args, value.keywords
    is_equinox = known.home_of(value).startswith("equinox.") and not isinstance(value, (type, FunctionType))
    if isinstance(value, (jax.custom_jvp, jax.custom_vjp)) or is_jitted(value) or is_equinox:
        inner = getattr(
            cast(Any, value), "__wrapped__", None
        )  # public JAX functions are jitted themselves, and only compute
        return (inner, (), {}) if inner is not None and not known.is_pure_itself(value) else None
    return None


def _rules(value: Any) -> list[Any]:
    """The user's own derivatives of a function."""
    if not isinstance(value, (jax.custom_jvp, jax.custom_vjp)) or known.is_pure_itself(value):
        return []
    rules = [getattr(cast(Any, value), name, None) for name in ("jvp", "fwd", "bwd")]
    return [rule for rule in rules if isinstance(rule, FunctionType) and not is_library_file(rule.__code__.co_filename)]


def _unknown(value: Any, text: str) -> NotProven:
    owner = getattr(value, "__self__", None)
    module = getattr(value, "__module__", None) or (type(owner).__module__ if owner is not None else "")
    effect = known.effect_of(f"{module}.{getattr(value, '__qualname__', type(value).__name__)}")
    return (
        NotProven(f"`{text}`: {effect}") if effect else NotProven(f"what `{text}` does isn't known", _jit_for(module))
    )


def _run_function(walker: Walker, function: FunctionType, given: Arguments, text: str) -> Value:
    """A function of which there is the source."""
    node = node_of(function) if (function.__module__ or "").partition(".")[0] not in _OPAQUE else None
    effect = known.effect_of(f"{function.__module__}.{function.__qualname__}")
    if node is None or effect:
        raise NotProven(f"`{text}`: {effect}") if effect else _without_source(function, text)
    what = code_of(function), function.__defaults__, function.__kwdefaults__
    walker.reads.add("code", function, None, what, text)
    signature = inspect.signature(function, follow_wrapped=False)
    defaults = {name: p.default for name, p in signature.parameters.items() if p.default is not p.empty}
    return walker.run_in(node, function, Scope(parameters(node, dict(_known(defaults)), given, text)))


def _without_source(function: FunctionType, text: str) -> NotProven:
    is_opaque = (function.__module__ or "").partition(".")[0] in _OPAQUE
    return NotProven(
        f"what `{text}` does isn't known" if is_opaque else f"the source of `{text}` can't be had, or isn't what runs",
        _jit_for(function.__module__),
    )


def _jit_for(module: Any) -> str:
    """Who compiles what only the user knows to compute; jax.jit would put traced values into a module of nnx."""
    return _BY_NNX if f"{module}.".startswith("flax.nnx.") else _YOURSELF


def _construct(walker: Walker, kind: type[Any], given: Arguments, text: str) -> Value:
    if issubclass(kind, BaseException):
        return _error(walker, kind, given, text)
    refuse_hooks(kind, "__setattr__", "__getattribute__", "__getattr__")
    made, names = Made(kind), _generated_fields(kind)
    if names is None:
        maker = next((vars(base)["__init__"] for base in kind.__mro__ if "__init__" in vars(base)), None)
        is_plain = type(kind) is type and not any("__new__" in vars(base) for base in kind.__mro__[:-1])
        if not is_plain or not isinstance(maker, FunctionType):
            raise NotProven(f"what making a `{text}` does isn't known")
        _run_function(walker, maker, given.after((made,)), text)
        return made
    if not given.are_exact:
        raise NotProven(f"what `{text}` is made of isn't followed")
    made.fields.update({name: Known(value) for name, value in names.items() if value is not inspect.Parameter.empty})
    made.fields.update(zip(names, given.positional, strict=False))
    made.fields.update(given.named)
    return made


def _error(walker: Walker, kind: type[Any], given: Arguments, text: str) -> Value:
    """An exception, which nobody asks anything of: only making it could do something."""
    maker = next(vars(base)["__init__"] for base in kind.__mro__ if "__init__" in vars(base))
    if isinstance(maker, FunctionType):
        raise NotProven(f"what making a `{text}` does isn't known")
    _with_data(walker, given, text)
    return Operation(kind.__name__)


def _generated_fields(kind: type[Any]) -> dict[str, Any] | None:
    """The parameters of a class whose making only keeps them, with their defaults; None for others."""
    names: tuple[str, ...] | None = getattr(kind, "_fields", None)
    if names is not None and tuple in kind.__mro__:
        if not is_generated(getattr(kind, "__new__")) or isinstance(getattr(kind, "__init__"), FunctionType):  # noqa: B009
            return None
        defaults: dict[str, Any] = getattr(kind, "_field_defaults", {})
        return {name: defaults.get(name, inspect.Parameter.empty) for name in names}
    maker: Any = getattr(kind, "__init__")  # noqa: B009 - types know it as that of object
    has_factory = is_dataclass(kind) and any(one.default_factory is not MISSING for one in fields(kind))
    if is_dataclass(kind) and is_generated(maker) and not has_factory and not hasattr(kind, "__post_init__"):
        return {name: parameter.default for name, parameter in inspect.signature(kind).parameters.items()}
    return None


def _pure(walker: Walker, function: Any, given: Arguments, text: str) -> Value:
    home = known.home_of(function)
    _refuse_reading(function, home, given, text)
    if function is map and given.positional:
        parts = tuple(elements(one, walker) or DATA for one in given.positional[1:])
        return Fresh(list, call(walker, given.positional[0], Arguments(parts), text))
    _with_data(walker, given, text)
    for inner in users_functions(function):  # a schedule that an optimizer was made with
        call(walker, Known(inner), Arguments(rest=DATA), text)
    made = builtin.made_by(function, given, walker)
    return made if made is not None else PLAIN if home == "math" else DATA


def _refuse_reading(function: Any, home: str, given: Arguments, text: str) -> None:
    """Python's and NumPy's functions take an array for its value, and may write into one."""
    is_array = array_inside if any(function is one for one in _DEEP_READERS) or home == "numpy" else _is_array
    if home.partition(".")[0] in _READERS and any(map(is_array, given.all)):
        raise NotProven(f"`{text}(…)` may read the value of an array from outside", "use JAX's own: jnp")
    if isinstance(function, np.ufunc) and (set(given.named) - {"dtype"} or len(given.positional) > function.nin):
        raise NotProven(f"`{text}` may change a NumPy array", "use JAX's own: jnp")


def users_functions(made: Any) -> list[FunctionType]:
    """The functions of the user's that something of a library's was made with: in a closure, a field, a container."""
    functions: list[FunctionType] = []
    waiting, seen = [made], set[int]()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, FunctionType) and value is not made and not is_library_file(value.__code__.co_filename):
            functions.append(value)
        else:
            waiting += _parts(value)
    return functions


def _parts(value: Any) -> list[Any]:
    """What a function, container or object of a library's has in it."""
    if isinstance(value, FunctionType):
        return [cell_value(cell) for cell in value.__closure__ or ()]
    if isinstance(value, (MethodType, functools.partial)):
        inner = _inside(value)
        return [] if inner is None else [inner[0], *inner[1]]
    if isinstance(value, (tuple, list)):
        return list(cast(list[Any], value))
    if isinstance(value, dict):
        return list(cast(dict[Any, Any], value).values())
    return list(attributes(value).values()) if is_structured(value) else []


def _is_array(value: Value) -> bool:
    return isinstance(value, Known) and isinstance(value.value, jax.Array)


def _with_data(walker: Walker, given: Arguments, text: str) -> Value:
    """A call that only computes: what it is given that can be called is gone through with data."""
    for value in given.all:
        _go_through(walker, value, text)
    return DATA


def _go_through(walker: Walker, value: Value, text: str) -> None:
    match value:
        case Either(values) | Items(values):
            for one in values:
                _go_through(walker, one, text)
        case Fresh(_, holds) if holds is not None:
            _go_through(walker, holds, text)
        case Closure() | Wrapped() | Method():
            call(walker, value, Arguments(rest=DATA), text)
        case Given(example):
            refuse_own_protocols(value, text)
            for inner in users_functions(example):  # the activation of a layer
                call(walker, Known(inner), Arguments(rest=DATA), text)
        case Made():
            refuse_own_protocols(value, text)
        case Known(held) if callable(held) and not isinstance(held, type) and not known.is_pure(held):
            call(walker, value, Arguments(rest=DATA), text)
            if not isinstance(held, FunctionType):  # an object that is data as well: a model that is given
                note_all(held, walker.reads, text)
        case Known(held):
            note_all(held, walker.reads, text)
            for inner in users_functions(held):
                call(walker, Known(inner), Arguments(rest=DATA), text)
        case _:
            pass


def _wrap(wrapper: Any, given: Arguments, text: str) -> Value:
    """A transformation of a function: `jax.grad(f)`, `partial(f, 1)`, or one with options alone."""
    if not given.are_exact:
        raise NotProven(f"what `{text}` is given isn't followed")
    if not given.positional:
        return Wrapped(functools.partial, Known(wrapper), (), given.named)
    function, *rest = given.positional
    is_partial = wrapper is functools.partial or wrapper is jax.tree_util.Partial
    return Wrapped(
        functools.partial if is_partial else wrapper, function, tuple(rest if is_partial else ()), given.named
    )


def _call_wrapped(walker: Walker, wrapped: Wrapped, given: Arguments, text: str) -> Value:
    if wrapped.wrapper is functools.partial:
        return call(walker, wrapped.function, given.after(wrapped.args, wrapped.keywords), text)
    result = call(walker, wrapped.function, given, text)
    is_like_theirs = getattr(wrapped.wrapper, "__name__", "") in ("filter_jit", "filter_vmap", "filter_checkpoint")
    if is_like_theirs or any(wrapped.wrapper is one for one in _LIKE_THEIRS):
        return result
    # A derivative has the structure of what it is by: of the first argument, unless options say otherwise.
    like = given.positional[0] if given.positional and not wrapped.keywords else DATA
    name = getattr(wrapped.wrapper, "__name__", "")
    if name in ("value_and_grad", "filter_value_and_grad"):
        return Items((DATA, like))
    return like if name in ("grad", "filter_grad") else DATA
