"""Names and stages that a jitted function has like a `jax.jit` function, and the checks of its options."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import FrozenInstanceError, dataclass, field
from functools import lru_cache, partial
from typing import Any, cast

import jax

from explorer.capture.sources import called_at
from explorer.errors import NotCallableError, OptionError, StateError, TracedValueError
from explorer.jitted.state import Attributes, Branch, Holder, constant, is_array, kind_of


def name_of_function(function: Any) -> str:
    """Return the name for the compiler, messages and records: of a partial its function's, of an object its class's."""
    function = _without_partial(function)
    return getattr(function, "__name__", None) or type(function).__name__


def _without_partial(function: Any) -> Any:
    while isinstance(function, partial) and not hasattr(cast(Any, function), "__name__"):
        function = cast("partial[Any]", function).func
    return cast(Any, function)


def given_arguments(signature: inspect.Signature | None, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return a call's arguments as a mapping by parameter name; raise TypeError if they don't fit the signature.

    Without a signature the keys are `argument 0`, `argument 1` and the keywords.
    """
    if signature is None:
        return {f"argument {i}": value for i, value in enumerate(args)} | dict(kwargs)
    return signature.bind(*args, **kwargs).arguments


def check_function(function: Any) -> None:
    """Raise NotCallableError for a value that `jax.jit` would refuse, and for a generator function."""
    if isinstance(function, (staticmethod, classmethod)):
        kind = "staticmethod" if isinstance(function, staticmethod) else "classmethod"
        what, hint = f"a {kind}", f"write @{kind} above @jit"
    elif not callable(function):
        what, hint = type(function).__name__, "write jit(f)(x), not jit(f(x))"
    elif inspect.isgeneratorfunction(function):
        what, hint = f"the generator function {function.__name__}", "return the values, stacked or in a tuple"
    else:
        return
    raise NotCallableError(f"jit takes a function; it got {what}.\n{called_at()}  Hint: {hint}.")


def copy_names(function: Any, wrapper: Any) -> None:
    """Give a wrapper its function's names, documentation and annotations, as `jax.jit` does."""
    functools.update_wrapper(wrapper, function, updated=())
    wrapper.__name__ = name_of_function(function)
    wrapper.__qualname__ = getattr(_without_partial(function), "__qualname__", None) or wrapper.__name__
    wrapper.__annotations__ = getattr(function, "__annotations__", {})


def check_root(option: str, root: Any) -> None:
    """Raise StateError if a container can't be captured as `option`: it has no arrays, or can't be changed as it must
    be.
    """
    if root is None:
        return
    kind = kind_of(root)
    if kind is None and not is_array(root):
        _refuse(option, f"is {type(root).__name__}, which holds no arrays")
    if _has_bare_array(root):
        what = "an array" if is_array(root) else f"a {type(root).__name__} with an array in it"
        _refuse(option, f"is {what}, and nothing in it can be changed", f"[{option}]")
    if isinstance(kind, Branch) and not _has_holder(root):
        _refuse(option, f"is an empty {type(root).__name__}, and can't be changed", "[]")
    if option == "outputs" and isinstance(kind, Holder) and _is_frozen(root, kind):
        _refuse(
            option, f"is {type(root).__name__}, whose attributes can't be set", "[module], and read module = state[0]"
        )


def _refuse(option: str, what: str, instead: str = "") -> None:
    hint = f"put it in a list: state = {instead}" if instead else "jit(f, inputs=state, outputs=state)"
    raise StateError(
        f"{option} {what}; allowed is a list, a dict, or an object with attributes, such as a module.\n{called_at()}"
        f"  Hint: {hint}."
    )


def _has_bare_array(value: Any) -> bool:
    kind = kind_of(value)
    if isinstance(kind, Branch):
        return any(map(_has_bare_array, kind.open(value)[1]))
    return kind is None and is_array(value)


def _has_holder(value: Any) -> bool:
    kind = kind_of(value)
    return isinstance(kind, Holder) or (isinstance(kind, Branch) and any(map(_has_holder, kind.open(value)[1])))


def _is_frozen(root: Any, kind: Holder) -> bool:
    """Return True if the attributes of `root` can't be set and none of them is a container that can change.

    To find out, the first attribute is set to its present value.
    """
    if not isinstance(kind, Attributes):
        return False
    labels, items = kind.open(root)
    if not labels or any(map(_has_holder, items)):
        return False
    name, value = next(zip(labels, items, strict=True))
    try:
        setattr(root, name, value)  # its present value, so that nothing changes
    except FrozenInstanceError:
        return True
    except Exception:  # the user's own check refuses the value
        return False
    return False


def name_of(root: Any, function: Any, otherwise: str) -> str:
    """Return the name of the variable by which a function refers to a container, else `otherwise`."""
    function = inspect.unwrap(getattr(function, "__func__", function))
    closure = getattr(function, "__closure__", None) or ()
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    for name, cell in zip(names, closure, strict=False):
        try:
            if root is not None and cell.cell_contents is root:
                return name
        except ValueError:  # a variable that has no value yet
            continue
    variables: dict[str, Any] = getattr(function, "__globals__", {})
    used = getattr(getattr(function, "__code__", None), "co_names", ())
    return next((name for name in used if root is not None and variables.get(name) is root), otherwise)


class _Stage:
    """Stage of JAX's for a function with captured state. Attributes that are missing here are the stage's own."""

    def __init__(self, program: Any, stage: Any) -> None:
        self._program, self._stage = program, stage

    def __getattr__(self, name: str) -> Any:
        # `copy` looks special methods up before `_stage` is set.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._stage, name)


class StatefulLowered(_Stage):
    def compile(self, *args: Any, **kwargs: Any) -> StatefulCompiled:
        return StatefulCompiled(self._program, self._stage.compile(*args, **kwargs))


class StatefulCompiled(_Stage):
    """`jax.stages.Compiled` of a function with captured state: a call reads the state, runs, and writes it."""

    def __init__(self, program: Any, compiled: Any) -> None:
        # A copy of the program with one variant: it reads and writes with the same locks and checks.
        super().__init__(copy.copy(program), compiled)
        self._program.jitted = self._program.dispatch = compiled

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._program.call(*args, **kwargs)


# One class for each pair: errors of one kind must be of one class.
@lru_cache(maxsize=64)
def also_jax_error(kind: type[TracedValueError], error: type[Exception]) -> type[TracedValueError]:
    """Return a class that is Explorer's error and also the error that `jax.jit` would have raised.

    So `except jax.errors.TracerBoolConversionError` around a call still catches it.
    """

    def init(self: Any, message: str, capture: Any) -> None:
        Exception.__init__(self, message)  # JAX's own `__init__` takes a tracer and writes the message
        self.capture = capture

    own = {"__module__": kind.__module__, "__doc__": kind.__doc__, "__init__": init}
    return cast("type[TracedValueError]", type(kind.__name__, (kind, error), own))


@dataclass(frozen=True)
class Passed:
    """Options that `jax.jit` gets unchanged, such as shardings and compiler options, comparable by value."""

    key: tuple[Any, ...] = ()  # name, tree and leaves of each option, for comparison
    values: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False, repr=False)

    @classmethod
    def of(cls, **options: Any) -> Passed:
        """Return the options that are given. None and False are the defaults of `jax.jit` and are left out."""
        given = {name: value for name, value in options.items() if value is not None and value is not False}
        key: list[Any] = []
        for name, value in given.items():
            leaves, tree = cast("tuple[list[Any], Any]", jax.tree.flatten(value, is_leaf=lambda leaf: leaf is None))
            key.append((name, tree, *((type(leaf), constant(leaf)) for leaf in leaves)))
        return cls(tuple(key), given)

    def behind_state(self, signature: inspect.Signature | None, static: Collection[str]) -> dict[str, Any]:
        """Return the options by name for a function that takes captured state first and returns it last: shardings get
        a None there.
        """
        values = dict(self.values)
        if "in_shardings" in values:
            given = values["in_shardings"]
            is_one = not isinstance(given, (tuple, list))
            of_arguments = _for_each(given, signature, static) if is_one else cast("Sequence[Any]", given)
            values["in_shardings"] = (None, *of_arguments)
        if "out_shardings" in values:
            values["out_shardings"] = (values["out_shardings"], None)
        return values


def _for_each(sharding: Any, signature: inspect.Signature | None, static: Collection[str]) -> tuple[Any, ...]:
    named = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = list(signature.parameters.values()) if signature is not None else []
    if signature is None or any(p.kind is p.VAR_POSITIONAL or p.default is not p.empty for p in parameters):
        raise OptionError(
            "in_shardings is one sharding for all arguments, of a function with captured state that takes a varying "
            f"number of them.\n{called_at()}  Hint: in_shardings=(sharding, …), one for each argument."
        )
    return tuple(sharding for p in parameters if p.kind in named and p.name not in static)


def check_positions(
    name: str, signature: inspect.Signature | None, given: Mapping[str, tuple[Any, ...] | None]
) -> None:
    """Raise OptionError for static and donated arguments that the function doesn't have."""
    given = {option: values or () for option, values in given.items()}
    both = {*given["static_argnames"]} & {*given["donate_argnames"]}
    if both:
        raise OptionError(
            f"{min(both)!r} is in static_argnames and in donate_argnames; what is static is no array.\n{called_at()}"
            "  Hint: leave it out of donate_argnames."
        )
    if signature is None:
        if given["donate_argnames"]:
            raise OptionError(
                f"donate_argnames has {given['donate_argnames'][0]!r}, but {name} has no signature with argument "
                f"names.\n{called_at()}  Hint: donate_argnums."
            )
        return
    for option, values in given.items():
        fits, allowed = (_positions if option.endswith("nums") else _names)(signature)
        for value in values:
            if not fits(value):
                raise OptionError(f"{option} has {value!r}; the {allowed} in {name}{signature}.\n{called_at()}")


def _positions(signature: inspect.Signature) -> tuple[Callable[[Any], bool], str]:
    """Return a predicate for the positions of a signature's arguments, negative ones included, and a text that lists
    them.
    """
    parameters = signature.parameters.values()
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    is_open = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    listed = ", ".join(f"{i} (`{name}`)" for i, name in enumerate(names))
    return lambda i: is_open or -len(names) <= i < len(names), f"positions are {listed}"


def _names(signature: inspect.Signature) -> tuple[Callable[[Any], bool], str]:
    """Return a predicate for the names that an argument can be passed by, and a text that lists them."""
    parameters = signature.parameters.values()
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    is_open = any(p.kind is p.VAR_KEYWORD for p in parameters)
    return lambda n: n in names or (is_open and n not in signature.parameters), f"names are {', '.join(names)}"
