"""compile(): from a function and what its inputs look like to an Executable."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import jax

from explorer.aot.arguments import is_input, leaf_name, parameters_of
from explorer.aot.executable import Executable
from explorer.aot.inputs import InputInfo
from explorer.capture.explore import Exploration
from explorer.errors import ArgumentsError, ExploreError, NotCallableError, OptionError, OutputError

__all__ = ["compile"]

# What each level tells XLA. 3 is what jax.jit does: XLA's own default.
_OPTIONS: dict[int, dict[str, Any]] = {
    0: {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True},
    1: {"xla_backend_optimization_level": 1},
    2: {"xla_backend_optimization_level": 2},
    3: {},
}


def compile(
    function: Callable[..., Any],
    *,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    optimization_level: int = 3,
) -> Executable:
    """Compile a function ahead of time.

    Args:
        function: Any callable; its Python runs once.
        args, kwargs: As for a call. `InputInfo` (or `jax.ShapeDtypeStruct`), also inside lists, tuples, dicts and
            other pytrees, stands for an array given at run time; all else, arrays too, is a constant of the program
            (`InputInfo.like(x)` makes an input of an array).
        optimization_level: 0 (least) to 3 (what `jax.jit` does), XLA's `xla_backend_optimization_level`; 0 also leaves
            out LLVM's expensive passes. 4 and 5 are refused: nothing XLA can be told is above 3 without measuring.

    Returns:
        An `Executable` whose parameters are those that hold an input, in the function's order.

    Raises:
        NotCallableError: `function` can't be called.
        ArgumentsError: The arguments don't fit its signature.
        OptionError: The level is out of range.
        OutputError: The function returns something that is no array.
        ExploreError: Tracing, lowering or compiling failed; `.capture` has the steps that worked.

    Example:
        >>> import jax.numpy as jnp
        >>> double = compile(lambda x: x * 2, args=[InputInfo((2,), "float32")])
        >>> double(jnp.ones(2, "float32"))
        Array([2., 2.], dtype=float32)
    """
    if not callable(function):
        raise NotCallableError(f"compile takes a function; it got {type(function).__name__}.")
    options = _options(optimization_level)
    bound = _bound(function, args, {} if kwargs is None else kwargs)
    parameters = parameters_of(bound)
    values = list(bound.arguments.values())
    leaves, structure = cast(tuple[list[Any], Any], jax.tree.flatten(values, is_leaf=is_input))
    positions = [i for i, leaf in enumerate(leaves) if is_input(leaf)]
    names = [name for parameter in parameters for name in parameter.names]
    outputs: dict[str, InputInfo] = {}

    def program(*inputs: Any) -> Any:
        filled = list(leaves)
        for position, value in zip(positions, inputs, strict=True):
            filled[position] = value
        values = jax.tree.unflatten(structure, filled)
        call = inspect.BoundArguments(bound.signature, dict(zip(bound.arguments, values, strict=True)))
        result = function(*call.args, **call.kwargs)
        outputs.update(_described(result))
        return result

    program.__signature__ = _signature(names)  # pyright: ignore[reportFunctionMemberAccess]  JAX names arguments by it
    infos = [info.to_struct() for parameter in parameters for info in parameter.infos]
    exploration = Exploration(function, tuple(infos), {}, target=program, options=options, verb="compiled")
    try:
        capture = exploration.run()
    except ExploreError as error:
        if isinstance(error.__cause__, OutputError):
            raise error.__cause__ from None
        raise
    return Executable(parameters, exploration.compiled, outputs, capture)


def _options(level: Any) -> dict[str, Any]:
    if type(level) is not int or level not in _OPTIONS:  # True and 3.0 equal a level
        measured = " 4 and 5, which measure candidates, are not built yet." if level in (4, 5) else ""
        raise OptionError(
            f"optimization_level is {level!r}; allowed are {', '.join(map(str, _OPTIONS))}.{measured}\n"
            "  Hint: 3, the default, is what jax.jit does."
        )
    return _OPTIONS[level]


def _bound(function: Callable[..., Any], args: Any, kwargs: Any) -> inspect.BoundArguments:
    given = f"args is {type(args).__name__}, kwargs is {type(kwargs).__name__}"
    if not isinstance(args, (list, tuple)) or not isinstance(kwargs, Mapping):
        raise ArgumentsError(
            f"{given}; allowed are a list and a dict.\n  Hint: compile(f, args=[InputInfo((2, 8), jnp.float32)])."
        )
    args, kwargs = cast(Sequence[Any], args), cast(Mapping[str, Any], kwargs)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin: it takes what it takes, by position
        signature = inspect.Signature([inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)])
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        name = getattr(function, "__name__", type(function).__name__)
        raise ArgumentsError(
            f"{name}{signature} can't take these arguments: {error}.\n"
            "  Hint: describe every argument: compile(f, args=[InputInfo((2, 8), jnp.float32)])."
        ) from None
    bound.apply_defaults()
    return bound


def _signature(names: Sequence[str]) -> inspect.Signature:
    """What XLA is to call each input, in letters it can write: `data_b_1` for `data.b[1]`."""
    found: list[str] = []
    for name in names:
        plain = re.sub(r"\W+", "_", name).rstrip("_") if not name.isidentifier() else name
        while plain in found:
            plain += "_"
        found.append(plain)
    return inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in found])


def _described(result: Any) -> dict[str, InputInfo]:
    """What the function returns, by name; only arrays can be returned, for nothing else comes out of a program."""
    found: dict[str, InputInfo] = {}
    # To JAX None is no leaf at all.
    leaves = cast(list[tuple[Any, Any]], jax.tree_util.tree_flatten_with_path(result, is_leaf=_is_none)[0])
    for path, leaf in leaves:
        name = leaf_name("result", path)
        try:
            aval = jax.typeof(leaf)
        except TypeError:
            raise OutputError(
                f"the function returns {leaf!r} as `{name}`; only arrays can be returned.\n"
                "  Hint: return arrays, and keep the rest outside the function."
            ) from None
        found[name] = InputInfo(aval.shape, aval.dtype)
    return found


def _is_none(leaf: Any) -> bool:
    return leaf is None
