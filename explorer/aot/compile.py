"""compile(): from a function and what its inputs look like to an Executable."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from explorer.aot.arguments import parameters_of
from explorer.aot.binaries import Plan
from explorer.aot.executable import Executable
from explorer.aot.levels import autotune, options_of
from explorer.aot.program import Program
from explorer.aot.symbols import Symbols
from explorer.errors import ArgumentsError, NotCallableError, OptionError, TracedPerShapeWarning


def compile(
    function: Callable[..., Any],
    optimization_level: int = 3,
    *,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    donate: Sequence[str] = (),
    max_specializations: int = 64,
) -> Executable:
    """Compile a function ahead of time.

    Dimensions that vary are traced as symbols, once for all sizes; XLA then compiles for each shape that comes, the one
    to optimise for at once. Where a symbol can't stand for a size (`if x.shape[0] > 5`, an equality that holds for some
    sizes only), each shape is traced by itself, and a `TracedPerShapeWarning` says why. Python has more ways to ask for
    a size than can be seen, so the symbolic trace is held against one at the smallest, the usual and the largest sizes:
    the function's Python runs for each of them here, without its prints, and not at a call.

    What it reads from elsewhere is a constant of the executable. Where its Python must run again (a shape that is
    traced by itself, a derivative with rules of its own) and reads something else by then, that is refused.

    Args:
        function: Any callable: a function, a module with its weights, a bound method.
        optimization_level: 0 to 5; what each tells XLA is in `explorer.aot.levels`. 3, the default, is what `jax.jit`
            does; 5 measures candidates on the shape to optimise for and keeps the fastest: see `.autotuning`.
        args, kwargs: As for a call. `InputInfo` (or `jax.ShapeDtypeStruct`) and `DimensionInputInfo`, also inside
            lists, tuples, dicts and other pytrees, stand for what is given at run time; all else, arrays too, is a
            constant of the program (`InputInfo.like(x)` makes an input of an array).
        donate: Parameters whose arrays a call may overwrite to save memory; they can't be used afterwards.
        max_specializations: How many binaries are kept; past it the least recently used is let go.

    Returns:
        An `Executable` whose parameters are those that hold an input, in the function's order.

    Raises:
        NotCallableError: `function` can't be called.
        ArgumentsError: The arguments don't fit its signature.
        InputInfoError: One dimension name has two bounds.
        OptionError: The level, a donated name or the limit is none.
        OutputError: The function returns something that is no array.
        ExploreError: Tracing, lowering or compiling failed; `.capture` has the steps that worked.

    Example:
        >>> import explorer as ex, jax.numpy as jnp
        >>> batch = ex.NamedDimension("batch", 1, 8, 64)
        >>> double = ex.compile(lambda x: x * 2, args=[ex.InputInfo((batch, 2), "float32")])
        >>> double
        Executable(<lambda>(x: f32[batch,2]) → f32[batch,2])
        >>> double(jnp.ones((3, 2), "float32")).shape
        (3, 2)
    """
    __tracebackhide__ = True
    if not callable(function):
        raise NotCallableError(f"compile takes a function; it got {type(function).__name__}.")
    options = options_of(optimization_level)
    bound = _bound(function, args, {} if kwargs is None else kwargs)
    parameters = parameters_of(bound)
    _check_options(donate, [p.name for p in parameters], max_specializations)
    inputs = {name: info for p in parameters for name, info in zip(p.names, p.infos, strict=True)}
    program = Program(function, bound, Symbols(inputs))

    def build(options: Mapping[str, Any]) -> Executable:
        __tracebackhide__ = True
        return Executable(Plan(tuple(parameters), program, options, tuple(donate), max_specializations))

    executable = autotune(build) if options is None else build(options)
    if program.why_each_shape:
        warnings.warn(
            f"{executable.__name__} is traced for each shape that comes, because one trace for all can't be:\n"
            f"  {program.why_each_shape.replace('  at  ', f'{chr(10)}  at  ')}\n"
            "  Hint: where sizes are always equal, say so: one NamedDimension in both. Else this works, and each new "
            "shape costs a trace.",
            TracedPerShapeWarning,
            stacklevel=2,
        )
    return executable


class Compiler:
    """The older form of `compile`: `Compiler(f).compile(InputInfo((2, 8), jnp.float32))`.

    Args:
        function: What will be compiled.

    Example:
        >>> import explorer as ex
        >>> ex.Compiler(lambda x: x * 2).compile(ex.InputInfo((2,), "float32"))
        Executable(<lambda>(x: f32[2]) → f32[2])
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def compile(self, /, *args: Any, optimization_level: int = 3, **kwargs: Any) -> Executable:
        """`compile`, with the function's arguments as they are."""
        return compile(self.function, optimization_level, args=args, kwargs=kwargs)


def _check_options(donate: Any, names: Sequence[str], limit: Any) -> None:
    __tracebackhide__ = True
    wrong = [name for name in donate if name not in names] if not isinstance(donate, str) else [donate]
    if wrong:
        raise OptionError(
            f"donate has {wrong[0]!r}; the parameters are {', '.join(names)}.\n  Hint: donate=[{names[0]!r}]."
            if names
            else f"donate has {wrong[0]!r}, but there are no inputs."
        )
    if type(limit) is not int or limit < 1:
        raise OptionError(f"max_specializations is {limit!r}; allowed is an int of at least 1.")


def _bound(function: Callable[..., Any], args: Any, kwargs: Any) -> inspect.BoundArguments:
    __tracebackhide__ = True
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
