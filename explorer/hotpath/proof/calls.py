"""Calls: refuse those that may do more than compute, and return the abstract value of the others."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, cast

import jax
import numpy as np
from jax.core import Tracer

from explorer._jax.arguments import Array, is_jitted
from explorer.capture.safe_reading import attributes, kind_of
from explorer.hotpath.proof import known
from explorer.hotpath.proof.attributes import (
    attribute,
    classified_fields,
    elements,
    has_attribute,
    is_structured,
    item,
    values_in,
)
from explorer.hotpath.proof.known import array_inside, is_generated, note_all, refuse_hooks, refuse_own_protocols
from explorer.hotpath.proof.syntax import node_of
from explorer.hotpath.proof.values import (
    DATA,
    NONE,
    PLAIN,
    Arguments,
    Buffer,
    Closure,
    Data,
    Either,
    Fresh,
    Given,
    Items,
    Known,
    Made,
    Method,
    NotProven,
    Observation,
    Operation,
    Plain,
    Scope,
    Value,
    Walker,
    Wrapped,
    cell_value,
    is_plain,
    join,
    join_all,
    parameters,
)
from explorer.hotpath.swap import code_of
from explorer.model.stage import is_library_file

_OPAQUE = ("jax", "jaxlib", "numpy", "scipy", "flax", "torch")  # their sources are not followed: too deep
_READERS = ("builtins", "math", "_operator", "itertools", "_functools", "numpy")  # these may read an array's value
_YOURSELF = "put `@jax.jit` on it yourself, if it has no side effects"
_BY_NNX = "pass the module as an argument and put `@nnx.jit` on it, which knows how flax.nnx changes modules in place"
# Files of JAX's wrappers that only rename a call or filter its traceback.
_TRANSPARENT = ("jax/_src/source_info_util.py", "jax/_src/traceback_util.py")
_DEEP_READERS: tuple[Any, ...] = (any, all, max, min, sorted, filter)
# Their result has the structure that the function's has.
_LIKE_THEIRS = tuple(vars(jax)[name] for name in ("vmap", "jit", "checkpoint", "remat", "named_call"))


def call(walker: Walker, callee: Value, given: Arguments, text: str) -> Value:
    match callee:
        case Either(values):
            return functools.reduce(join, [call(walker, one, given, text) for one in values])
        case Operation():
            return _with_data(walker, given, text)
        case Method(Operation(name), owner):
            return container_method(walker, owner, name, given, text)
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
            raise NotProven(f"the function that `{text}(…)` calls is computed")


def _call_known(walker: Walker, value: Any, given: Arguments, text: str) -> Value:
    if id(value) in _SPECIALS:
        return _SPECIALS[id(value)](walker, given, text)
    if known.is_wrapper(value):
        return _wrap(value, given, text)
    # JAX runs these when the result is differentiated, which the source doesn't show.
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
        inner = value.__dict__.get("__wrapped__") if value.__code__.co_filename.endswith(_TRANSPARENT) else None
        return _run_function(walker, value, given, text) if inner is None else call(walker, Known(inner), given, text)
    if isinstance(value, type):
        return _construct(walker, value, given, text)
    kind = kind_of(value)
    method: Any = vars(kind).get("__call__") if not isinstance(value, BuiltinFunctionType) else None
    if isinstance(method, FunctionType):
        walker.reads.add("attribute", kind, "__call__", method, text)
        return _run_function(walker, method, given.after((Known(value),)), text)
    raise _unknown(value, text)


def _known(values: Mapping[str, Any]) -> list[tuple[str, Value]]:
    return [(name, Known(value)) for name, value in values.items()]


def _inside(value: Any) -> tuple[Any, tuple[Any, ...], Mapping[str, Any]] | None:
    """Return (function, positional, named) that a callable object calls; None for other objects."""
    if type(value) is MethodType:
        return value.__func__, (value.__self__,), {}
    if isinstance(value, functools.partial):
        return value.func, value.args, value.keywords
    is_equinox = known.home_of(value).startswith("equinox.") and not isinstance(value, (type, FunctionType))
    if isinstance(value, (jax.custom_jvp, jax.custom_vjp)) or is_jitted(value) or is_equinox:
        # JAX's own public functions are jitted too; those only compute and aren't followed.
        inner = getattr(cast(Any, value), "__wrapped__", None)
        return (inner, (), {}) if inner is not None and not known.is_pure_itself(value) else None
    return None


def _rules(value: Any) -> list[Any]:
    """Return the derivative rules that the user wrote for a custom_jvp or custom_vjp function; [] for other objects."""
    if not isinstance(value, (jax.custom_jvp, jax.custom_vjp)) or known.is_pure_itself(value):
        return []
    rules = [getattr(cast(Any, value), name, None) for name in ("jvp", "fwd", "bwd")]
    return [rule for rule in rules if isinstance(rule, FunctionType) and not is_library_file(rule.__code__.co_filename)]


def _unknown(value: Any, text: str) -> NotProven:
    owner = getattr(value, "__self__", None)
    module = getattr(value, "__module__", None) or (type(owner).__module__ if owner is not None else "")
    effect = known.effect_of(f"{module}.{getattr(value, '__qualname__', type(value).__name__)}")
    if effect:
        return NotProven(f"`{text}`: {effect}")
    return NotProven(f"the effects of `{text}` are unknown", _jit_for(module))


def _run_function(walker: Walker, function: FunctionType, given: Arguments, text: str) -> Value:
    effect = known.effect_of(f"{function.__module__}.{function.__qualname__}")
    if effect:
        raise NotProven(f"`{text}`: {effect}")
    if (function.__module__ or "").partition(".")[0] in _OPAQUE:
        raise NotProven(f"the effects of `{text}` are unknown", _jit_for(function.__module__))
    node = node_of(function)
    if node is None:
        raise NotProven(
            f"the source of `{text}` is missing, or differs from the code that runs", _jit_for(function.__module__)
        )
    what = code_of(function), function.__defaults__, function.__kwdefaults__
    # The function's code and defaults can be replaced while its name stays.
    walker.reads.add("code", function, None, what, text)
    # The code that is followed is the wrapper's, so its parameters are too.
    signature = inspect.signature(function, follow_wrapped=False)
    defaults = {name: p.default for name, p in signature.parameters.items() if p.default is not p.empty}
    return walker.run_in(node, function, Scope(parameters(node, dict(_known(defaults)), given, text)))


def _jit_for(module: Any) -> str:
    """Return the hint for a function that only the user knows to compute."""
    return _BY_NNX if f"{module}.".startswith("flax.nnx.") else _YOURSELF


def _construct(walker: Walker, kind: type[Any], given: Arguments, text: str) -> Value:
    if issubclass(kind, BaseException):
        return _error(walker, kind, given, text)
    # The constructor sets attributes, which would run these.
    refuse_hooks(kind, "__setattr__", "__getattribute__", "__getattr__")
    made, names = Made(kind), _generated_fields(kind)
    if names is None:
        maker = next((vars(base)["__init__"] for base in kind.__mro__ if "__init__" in vars(base)), None)
        is_plain = type(kind) is type and not any("__new__" in vars(base) for base in kind.__mro__[:-1])
        if not is_plain or not isinstance(maker, FunctionType):
            raise NotProven(f"the effects of creating a `{text}` are unknown")
        _run_function(walker, maker, given.after((made,)), text)
        return made
    if not given.are_exact:
        raise NotProven(f"the arguments of `{text}` can't be followed")
    made.fields.update({name: Known(value) for name, value in names.items() if value is not inspect.Parameter.empty})
    made.fields.update(zip(names, given.positional, strict=False))
    made.fields.update(given.named)
    return made


def _error(walker: Walker, kind: type[Any], given: Arguments, text: str) -> Value:
    maker = next(vars(base)["__init__"] for base in kind.__mro__ if "__init__" in vars(base))
    if isinstance(maker, FunctionType):
        raise NotProven(f"the effects of creating a `{text}` are unknown")
    _with_data(walker, given, text)
    return Operation(kind.__name__)


def _generated_fields(kind: type[Any]) -> dict[str, Any] | None:
    """Return the default of each parameter of a class whose generated constructor only stores them; None for other
    classes.

    A parameter without a default has `inspect.Parameter.empty`.
    """
    names: tuple[str, ...] | None = getattr(kind, "_fields", None)
    if names is not None and tuple in kind.__mro__:
        if not is_generated(getattr(kind, "__new__")) or isinstance(getattr(kind, "__init__"), FunctionType):  # noqa: B009
            return None
        defaults: dict[str, Any] = getattr(kind, "_field_defaults", {})
        return {name: defaults.get(name, inspect.Parameter.empty) for name in names}
    maker: Any = getattr(kind, "__init__")  # noqa: B009 - types know it as that of object
    # A factory is a function that the constructor calls.
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
    for inner in users_functions(function):  # such as the schedule of an optimizer
        call(walker, Known(inner), Arguments(rest=DATA), text)
    made = _made_by(function, given, walker)
    return made if made is not None else PLAIN if home == "math" else DATA


def _refuse_reading(function: Any, home: str, given: Arguments, text: str) -> None:
    """Raise NotProven for Python and NumPy functions that may read an array's value or write into it."""
    is_array = array_inside if any(function is one for one in _DEEP_READERS) or home == "numpy" else _is_array
    if home.partition(".")[0] in _READERS and any(map(is_array, given.all)):
        raise NotProven(
            f"`{text}(…)` may read the numbers in an array from outside the function, which may change later",
            "use the jax.numpy function of the same name",
        )
    if isinstance(function, np.ufunc) and (set(given.named) - {"dtype"} or len(given.positional) > function.nin):
        raise NotProven(f"`{text}` may change a NumPy array", "use jax.numpy, which returns a new array")


def users_functions(made: Any) -> list[FunctionType]:
    """Return the user's functions inside a library's object: in closures, fields and containers."""
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
            for inner in users_functions(example):  # such as the activation of a layer
                call(walker, Known(inner), Arguments(rest=DATA), text)
        case Made():
            refuse_own_protocols(value, text)
        case Known(held) if callable(held) and not isinstance(held, type) and not known.is_pure(held):
            call(walker, value, Arguments(rest=DATA), text)
            if not isinstance(held, FunctionType):  # a callable object that is data too, such as a model
                note_all(held, walker.reads, text)
        case Known(held):
            note_all(held, walker.reads, text)
            for inner in users_functions(held):
                call(walker, Known(inner), Arguments(rest=DATA), text)
        case _:
            pass


def _wrap(wrapper: Any, given: Arguments, text: str) -> Value:
    """Return the abstract value of `wrapper(function, …)`; with options alone, that of a partial of the wrapper."""
    if not given.are_exact:
        raise NotProven(f"the arguments of `{text}` can't be followed")
    if not given.positional:
        return Wrapped(functools.partial, Known(wrapper), (), given.named)
    function, *rest = given.positional
    if wrapper is functools.partial or wrapper is jax.tree_util.Partial:
        return Wrapped(functools.partial, function, tuple(rest), given.named)
    return Wrapped(wrapper, function, (), given.named)


def _call_wrapped(walker: Walker, wrapped: Wrapped, given: Arguments, text: str) -> Value:
    if wrapped.wrapper is functools.partial:
        return call(walker, wrapped.function, given.after(wrapped.args, wrapped.keywords), text)
    result = call(walker, wrapped.function, given, text)
    is_like_theirs = getattr(wrapped.wrapper, "__name__", "") in ("filter_jit", "filter_vmap", "filter_checkpoint")
    if is_like_theirs or any(wrapped.wrapper is one for one in _LIKE_THEIRS):
        return result
    # A derivative has the structure of the first argument, unless options say otherwise.
    like = given.positional[0] if given.positional and not wrapped.keywords else DATA
    name = getattr(wrapped.wrapper, "__name__", "")
    if name in ("value_and_grad", "filter_value_and_grad"):
        return Items((DATA, like))
    return like if name in ("grad", "filter_grad") else DATA


# Python's own functions and the methods of its containers


def container_method(walker: Walker, owner: Value, name: str, given: Arguments, text: str) -> Value:
    """Return the abstract result of a container's method; raise NotProven if it may mutate an object from outside."""
    if isinstance(owner, Buffer):
        if "out" in given.named or not given.are_exact:
            raise NotProven(f"`{text}` may change a NumPy array")
        return owner
    if isinstance(owner, Fresh) and owner.kind is np.ndarray and name not in known.CHANGING_METHODS:
        return DATA
    if name in known.CHANGING_METHODS:
        return _changed(walker, owner, name, given, text)
    if isinstance(owner, Known) and name != "get":
        note_all(owner.value, walker.reads, text)
    match name:
        case "items":
            return Fresh(list, Items((PLAIN, values_in(owner, walker) or DATA)))
        case "values":
            return Fresh(list, values_in(owner, walker))
        case "keys":
            return Fresh(list, PLAIN)
        case "copy":
            example: Any = getattr(owner, "example", getattr(owner, "value", []))
            return Fresh(owner.kind if isinstance(owner, Fresh) else kind_of(example), values_in(owner, walker))
        case "get" if given.positional:
            key, default = (*given.positional, NONE)[:2]
            return _got(walker, owner, key, default, text)
        case "index" | "count" if all(map(is_plain, given.all)):
            return PLAIN
        case "_replace" if isinstance(owner, Given) and given.are_exact:
            walker.reads.observed += [Observation(owner.example, name) for name in owner.example._fields]
            return Made(kind_of(owner.example), {**classified_fields(owner.example), **given.named})
        case _:
            raise NotProven(f"the effects of `{text}` are unknown")


def _got(walker: Walker, owner: Value, key: Value, default: Value, text: str) -> Value:
    """Return the abstract result of `get`: the item or the default alone if guards decide which, else both joined."""
    held: Any = owner.value if isinstance(owner, Known) else owner.example if isinstance(owner, Given) else None
    if isinstance(key, Known) and type(key.value) in (int, str) and type(held) is dict:
        is_there = key.value in cast(dict[Any, Any], held)
        inside = item(owner, key, walker, text)  # if the key is missing, notes all keys
        return inside if is_there else default
    return join(item(owner, key, walker, text), default)


def _changed(walker: Walker, owner: Value, name: str, given: Arguments, text: str) -> Value:
    """Note the values that a mutating method adds, and return its abstract result: it was in the container before."""
    if name == "sort" and (given.all or not is_plain(elements(owner, walker) or PLAIN)):
        raise NotProven(f"`{text}` compares what is in it", "jnp.sort sorts arrays")
    for value in _put_in(name, given, walker):
        walker.put(owner, value, text)
    if isinstance(owner, Fresh):
        left = owner.holds or DATA
        return join(left, given.positional[1]) if name == "pop" and len(given.positional) == 2 else left
    walker.put(owner, DATA, text)  # refuses containers that the call didn't create
    return DATA


def _put_in(name: str, given: Arguments, walker: Walker) -> list[Value]:
    """Return the abstract values that a mutating method adds to its container."""
    if name in ("pop", "popitem", "remove", "discard", "clear"):
        return []
    parts = given.all
    if name in ("setdefault", "insert") and len(given.positional) == 2:
        parts = [given.positional[1]]
    if name == "update":
        return [values_in(value, walker) or PLAIN for value in parts]
    if name == "extend":
        return [inside for value in parts if (inside := elements(value, walker)) is not None]
    return parts


def _made_by(function: Any, given: Arguments, walker: Walker) -> Value | None:
    """Return the abstract container or number that one of Python's or NumPy's functions makes; None for other
    functions.
    """
    maker = _MAKERS.get(id(function))
    if maker is not None:
        return maker(given, walker)
    # Not by `in`, which would call a user's `==`.
    if any(function is one for one in _NUMBERS) and all(map(_is_plain_like, given.all)):
        return PLAIN
    container = known.container_made(function)
    return Fresh(container, DATA) if container is not None else None


def _sequence(given: Arguments, walker: Walker) -> Value:
    return Fresh(list, elements(given.positional[0], walker) if given.positional else None)


def _tuple(given: Arguments, walker: Walker) -> Value:
    first = given.positional[0] if given.positional else None
    return first if isinstance(first, Items) else _sequence(given, walker)


def _zip(given: Arguments, walker: Walker) -> Value:
    if given.rest is not None:  # zip(*rows)
        inside = [elements(one, walker) or DATA for one in (*given.positional, given.rest)]
        return Fresh(list, Fresh(tuple, join_all(inside)))
    return Fresh(list, Items(tuple(elements(one, walker) or DATA for one in given.positional)))


def _dict(given: Arguments, walker: Walker) -> Value:
    parts = [value for one in given.positional if (value := values_in(one, walker)) is not None]
    parts += given.named.values()
    parts += [] if given.others is None else [given.others]
    return Fresh(dict, join_all(parts))


_MAKERS: dict[int, Callable[[Arguments, Walker], Value]] = {
    **{id(function): _sequence for function in (reversed, sorted, filter, list, set, frozenset)},
    id(tuple): _tuple,
    id(zip): _zip,
    id(enumerate): lambda given, walker: Fresh(
        list, Items((PLAIN, *(elements(one, walker) or DATA for one in given.positional[:1])))
    ),
    id(dict): _dict,
    id(range): lambda given, walker: Fresh(list, PLAIN),
    id(len): lambda given, walker: PLAIN,
}
_NUMBERS: tuple[Any, ...] = (abs, divmod, max, min, pow, round, sum, all, any)


def _is_plain_like(value: Value) -> bool:
    if not isinstance(value, Fresh):
        return is_plain(value)
    return value.kind is not np.ndarray and (value.holds is None or is_plain(value.holds))


Special = Callable[[Walker, Arguments, str], Value]


def _isinstance(walker: Walker, given: Arguments, text: str) -> Value:
    value, against = given.positional
    parts = against.items if isinstance(against, Items) else (against,)
    classes: list[Any] = []
    for part in parts:
        held: Any = part.value if isinstance(part, Known) else None
        classes += held if isinstance(held, tuple) else [held]
    if not all(map(inspect.isclass, classes)):
        return PLAIN
    match value:
        case Known(held) | Given(held):
            return Known(isinstance(held, tuple(classes)))
        case Made(kind):
            return Known(issubclass(kind, tuple(classes)))
        case _:
            pass
    if jax.Array in classes:  # tracers are instances of it too
        return PLAIN
    if any(issubclass(kind, Tracer) or kind is Array for kind in classes):
        raise NotProven("it uses the class of an array, and in a trace the class is another")
    return PLAIN


def _callable(walker: Walker, given: Arguments, text: str) -> Value:
    match given.positional:
        case (Known(held) | Given(held),):
            return Known(callable(held))
        case (Closure() | Wrapped() | Method() | Operation(),):
            return Known(True)
        case (Data() | Plain(),):
            return Known(False)
        case _:
            return PLAIN


def _getattr(walker: Walker, given: Arguments, text: str) -> Value:
    match given.positional:
        case (owner, Known(str(name))):
            return attribute(owner, name, walker, f"{text}(…, {name!r})")
        case (owner, Known(str(name)), default):
            has_it = has_attribute(owner, name, walker, f"{text}(…, {name!r})")
            return attribute(owner, name, walker, f"{text}(…, {name!r})") if has_it else default
        case _:
            raise NotProven(f"the result of `{text}(…)` is unknown")


def _hasattr(walker: Walker, given: Arguments, text: str) -> Value:
    match given.positional:
        case (owner, Known(str(name))):
            return Known(has_attribute(owner, name, walker, f"{text}(…, {name!r})"))
        case _:
            raise NotProven(f"the result of `{text}(…)` is unknown")


def _number(walker: Walker, given: Arguments, text: str) -> Value:
    if not all(is_plain(value) or isinstance(value, Buffer) for value in given.all):
        raise NotProven(f"`{text}(…)` reads a value", "keep it an array, and read its value outside of the function")
    return PLAIN


def _text(walker: Walker, given: Arguments, text: str) -> Value:
    if not all(map(is_plain, given.all)) and not walker.in_error:
        raise NotProven(f"`{text}(…)` formats a value as text", "format text outside of the function")
    return PLAIN


def _vjp(walker: Walker, given: Arguments, text: str) -> Value:
    if not given.positional or not given.are_exact or given.named.keys() - {"has_aux"}:
        raise NotProven(f"the arguments of `{text}` can't be followed")
    function, *args = given.positional
    walker.call(function, Arguments(tuple(args)), text)
    return Items((DATA, Operation(text), *([DATA] if given.named else [])))


def _refused(reason: str, cure: str = "") -> Special:
    def refuse(walker: Walker, given: Arguments, text: str) -> Value:
        raise NotProven(reason, cure)

    return refuse


# By id: a callee that is looked up may have no hash.
_SPECIALS: dict[int, Special] = {
    id(isinstance): _isinstance,
    id(callable): _callable,
    id(getattr): _getattr,
    id(hasattr): _hasattr,
    **{id(number): _number for number in (float, int, bool, complex)},
    **{id(maker): _text for maker in (str, repr, format)},
    **{id(vars(jax)[name]): _vjp for name in ("vjp", "linearize")},
    id(print): _refused("it prints", "jax.debug.print prints in compiled code too"),
    id(input): _refused("it reads input"),
    id(open): _refused("it opens a file"),
    id(type): _refused("it uses the class of a value, and in a trace the class is another"),
    id(id): _refused("it uses an object's address"),
    id(hash): _refused("it uses an object's hash"),
    id(setattr): _refused("it changes an attribute", "return the new value instead of changing the old one"),
    id(next): _refused("it advances an iterator from outside of the call"),
    id(jax.device_get): _refused("it reads a value", "read it outside of the function"),
}
