"""`compile()`: from a function and descriptions of its inputs to an Executable."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Never, cast

import jax
from jax.sharding import Mesh

from explorer.aot.arguments import is_input, parameters_of
from explorer.aot.binaries import Plan
from explorer.aot.executable import Executable
from explorer.aot.inputs import NamedDimension
from explorer.aot.levels import Options, autotune, options_of
from explorer.aot.meshes import checked_mesh
from explorer.aot.program import Program
from explorer.aot.symbols import Symbols
from explorer.aot.verdict import PaddedProgram, check_choice, decide
from explorer.capture.sources import called_at
from explorer.errors import ArgumentsError, ExploreError, NotCallableError, OptionError, TracedPerShapeWarning
from explorer.model.results.dynamic_report import DynamicChoice
from explorer.model.results.session import remember


def compile(
    function: Callable[..., Any],
    optimization_level: int = 3,
    *misplaced: Never,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    donate: str | int | Sequence[str | int] = (),
    max_specializations: int = 64,
    dynamic: DynamicChoice = "specialise",
    buckets: Mapping[str, int | Sequence[int]] | None = None,
    mesh: Mesh | None = None,
) -> Executable:
    """Compile a function ahead of time.

    Varying dimensions are traced as symbols, once for all sizes. XLA then compiles for each shape that is called; the
    shape to optimize for is compiled at once. If a symbol can't stand for a size (`if x.shape[0] > 5`, or an equality
    that holds for some sizes only), each shape is traced separately, and a `TracedPerShapeWarning` gives the reason. If
    the function tests only for the smallest sizes (`if x.shape[0] == 1`, as `jnp.vectorize` does), only those sizes are
    traced separately. Python can inspect a size in ways that can't be observed. So the symbolic trace is compared with
    a trace at the smallest, the usual and the largest sizes: the function's Python runs for each of them now, with
    prints muted, and not at a call.

    Values that the function reads from elsewhere become constants of the executable, also in its custom derivative and
    batching rules. If Python must run again (a shape that is traced separately, or a custom rule at a new shape) and
    reads another value by then, the call raises a ChangedFunctionError.

    Args:
        function: Any callable: a function, a module with its weights, a bound method.
        optimization_level: 0 to 5; `explorer.aot.levels` lists the XLA options of each. 3, the default, is what
            `jax.jit` does. 5 measures candidates on the shape to optimize for and uses the fastest: see `.autotuning`.
        misplaced: Always empty: the function's own arguments belong in `args`.
        args, kwargs: As for a call. `InputInfo` (or `jax.ShapeDtypeStruct`) and `DimensionInputInfo`, also inside
            lists, tuples, dicts and other pytrees, describe run-time inputs. Everything else, arrays too, is a
            constant of the program (`InputInfo.like(x)` describes an array).
        donate: Parameters, by name or by position in the function's signature, whose arrays a call may overwrite to
            save memory; they can't be used afterwards.
        dynamic: How varying sizes are served. `"specialise"`: one binary per size, compiled at the first call with that
            size. `"pad"`: the largest size is compiled now and serves all others by padding. Smaller buckets, and exact
            sizes that are called often, are compiled in the background once they pay off, so no call waits for a
            compile. Exceptions are empty dimensions and sizes that the function tests for (`x.shape[0] == 1`), which
            can't be padded. Padding values never reach a result: each equation is proven, or the compile fails. Results
            equal those of the unpadded function up to the order of sums. They are not promised to be bit-identical, nor
            the same before and after a background compile. `"auto"` pads where padding is proven and worthwhile, and
            specializes otherwise; `.dynamic_report` gives the reason.
        buckets: Sizes to pad to, by dimension, in addition to the largest: `{"batch": (16, 64)}`. An unnamed dimension
            is called by its place, `x_0`. None means powers of two.
        mesh: Devices for inputs with a `PartitionSpec`, `InputInfo(…, sharding=jax.P("data"))`, or with a sharding over
            an `AbstractMesh` of the same axes. None means the mesh of `jax.set_mesh`.
        max_specializations: Maximum number of binaries; beyond it the least recently used is dropped. If a dropped one
            is needed again, a `RecompilationWarning` lists the sizes in rotation, once.

    Returns:
        An `Executable` whose parameters are those that contain an input, in the function's order.

    Raises:
        NotCallableError: `function` isn't callable.
        ArgumentsError: The arguments don't fit the signature, or a shape was given in place of an InputInfo.
        InputInfoError: One name has two bounds, in two inputs or in a dimension and a size argument. Or a sharding
            names an axis that the mesh lacks, or there is no mesh.
        OptionError: The level, a donated name, the limit, `dynamic` or a bucket is invalid, or the mesh has no devices.
        PaddingError: `dynamic` is `"pad"` and the function can't be padded; lists each equation with its line.
        OutputError: The function returns a value that isn't an array.
        ExploreError: Tracing, lowering or compiling failed; `.capture` has the steps that worked.

    Example:
        >>> import explorer as ex, jax.numpy as jnp
        >>> batch = ex.NamedDimension("batch", 1, 8, 64)
        >>> double = ex.compile(lambda x: x * 2, args=[ex.InputInfo((batch, 2), "float32")])
        >>> double
        Executable(<lambda>(x: f32[batch,2]) → f32[batch,2])
        >>> double(jnp.ones((3, 2), "float32")).shape
        (3, 2)
        >>> total = ex.compile(lambda x: x.sum(), args=[ex.InputInfo((batch, 2), "float32")], dynamic="pad")
        >>> float(total(jnp.ones((3, 2), "float32"))), len(total.specializations)
        (6.0, 1)
    """
    __tracebackhide__ = True
    if not callable(function):
        raise NotCallableError(f"compile takes a function; it got {type(function).__name__}.\n{called_at()}")
    _check_level(optimization_level, misplaced)
    options = options_of(optimization_level)
    devices = checked_mesh(mesh)
    bound = _bound(function, args, {} if kwargs is None else kwargs)
    parameters = [parameter.on_mesh(devices) for parameter in parameters_of(bound)]
    if not parameters:
        _check_described(bound)
    donated = _donated(donate, [*bound.signature.parameters], [p.name for p in parameters])
    if type(max_specializations) is not int or max_specializations < 1:
        raise OptionError(
            f"max_specializations is {max_specializations!r}; allowed is an int of at least 1.\n{called_at()}"
        )
    check_choice(dynamic, buckets)
    inputs = {name: info for p in parameters for name, info in zip(p.names, p.infos, strict=True)}
    program = Program(function, bound, Symbols(inputs))

    verdict = decide(dynamic, buckets, program)
    traced = program.symbolic if verdict.buckets is not None else None
    padded = PaddedProgram.of(traced, verdict.proof.fills) if traced is not None else None
    executable = _built(Plan(tuple(parameters), program, {}, donated, max_specializations, verdict, padded), options)
    if program.why_each_shape:
        warnings.warn(
            f"{executable.__name__} is traced for each shape, because one trace can't serve all shapes:\n"
            f"  {program.why_each_shape.replace('  at  ', f'{chr(10)}  at  ')}\n"
            "  Hint: where sizes are always equal, say so: one NamedDimension in both. Otherwise each new "
            "shape costs a trace.",
            TracedPerShapeWarning,
            stacklevel=2,
        )
    return remember(executable)


def _built(plan: Plan, options: Options | None) -> Executable:
    __tracebackhide__ = True
    exact = replace(plan, dynamic=plan.dynamic.specialised(plan.dynamic.why))
    # Candidates are measured at the exact size; a padded executable takes over the fastest one's options.
    tuned = autotune(lambda options: Executable(replace(exact, options=options))) if options is None else None
    options = tuned.plan.options if tuned is not None else options or {}
    if plan.dynamic.buckets is None:
        return tuned or Executable(replace(exact, options=options))
    try:
        executable = Executable(replace(plan, options=options))
    except ExploreError as error:
        if plan.dynamic.choice == "pad":
            raise
        why = f"the largest bucket doesn't compile: {str(error.__cause__).partition(chr(10))[0]}"
        return Executable(replace(plan, options=options, dynamic=plan.dynamic.specialised(why)))
    executable.autotuning = tuned.autotuning if tuned is not None else None
    return executable


class Compiler:
    """Older form of `compile`: `Compiler(f).compile(InputInfo((2, 8), jnp.float32))`.

    Args:
        function: The callable to compile.

    Example:
        >>> import explorer as ex
        >>> ex.compat.tripy.Compiler(lambda x: x * 2).compile(ex.InputInfo((2,), "float32"))
        Executable(<lambda>(x: f32[2]) → f32[2])
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def compile(self, /, *args: Any, optimization_level: int = 3, **kwargs: Any) -> Executable:
        """Return the executable that `compile` makes, with these arguments as the function's own."""
        return compile(self.function, optimization_level, args=args, kwargs=kwargs)


def _check_level(level: Any, misplaced: Sequence[Any]) -> None:
    """Raise ArgumentsError if arguments of the function were passed in place of the level or after it."""
    __tracebackhide__ = True
    leaves = jax.tree.leaves(level, is_leaf=is_input)
    # A NumPy scalar has shape () and is refused later, as an invalid level.
    is_argument = any(is_input(leaf) or getattr(leaf, "shape", ()) for leaf in leaves)
    if is_argument or misplaced:
        meant = [level, *misplaced] if is_argument or type(level) is not int else misplaced
        is_list = len(meant) == 1 and isinstance(meant[0], list)
        written = _shortened(meant[0]) if is_list else f"[{', '.join(map(_shortened, meant))}]"
        came = f"it came as {_shortened(level)}" + f", with {len(misplaced):,} more after it" * bool(misplaced)
        raise ArgumentsError(
            f"compile's second argument is the optimization_level; {came}.\n{called_at()}"
            f"  Hint: compile(f, args={written})."
        )


def _check_described(bound: inspect.BoundArguments) -> None:
    """Raise ArgumentsError if a shape was passed in place of an InputInfo: no input would remain."""
    __tracebackhide__ = True
    for name, value in bound.arguments.items():
        if value is not bound.signature.parameters[name].default and _is_shape(value):
            raise ArgumentsError(
                f"argument `{name}` is {_shortened(value)}, a constant; none of the arguments is an input.\n"
                f"{called_at()}  Hint: args=[InputInfo({_shortened(value)}, jnp.float32)] for an array of this shape; "
                "a tuple that is meant as a constant goes into the function, by functools.partial."
            )


def _is_shape(value: Any) -> bool:
    """Return True if a person would read the value as a shape: `(2, 3)`, `((1, 8, 64), 3)`, `(batch, 3)`."""
    sizes = cast("Sequence[Any]", value) if isinstance(value, (tuple, list)) else ()
    is_sequence = bool(sizes) and all(type(size) is int or _is_shape(size) for size in sizes)
    return is_sequence or isinstance(value, NamedDimension)


def _shortened(value: Any) -> str:
    text = "an array" if hasattr(value, "shape") and not is_input(value) else repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _donated(donate: Any, positions: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the donated parameters; raise OptionError for one that isn't in `names`."""
    __tracebackhide__ = True
    given = cast("Sequence[Any]", donate if isinstance(donate, (list, tuple, set, frozenset)) else (donate,))
    by_number = {i: name for i, name in enumerate(positions)} | {i - len(positions): n for i, n in enumerate(positions)}
    donated: list[Any] = [by_number.get(item, item) if type(item) is int else item for item in given]
    wrong = [item for item, name in zip(given, donated, strict=True) if name not in names]
    if wrong:
        raise OptionError(
            f"donate has {wrong[0]!r}; the parameters are {', '.join(names)}.\n{called_at()}"
            f"  Hint: donate=[{names[0]!r}]."
            if names
            else f"donate has {wrong[0]!r}, but there are no inputs.\n{called_at()}"
        )
    return tuple(donated)


def _bound(function: Callable[..., Any], args: Any, kwargs: Any) -> inspect.BoundArguments:
    __tracebackhide__ = True
    given = f"args is {type(args).__name__}, kwargs is {type(kwargs).__name__}"
    if not isinstance(args, (list, tuple)) or not isinstance(kwargs, Mapping):
        raise ArgumentsError(
            f"{given}; allowed are a list and a dict.\n{called_at()}"
            "  Hint: compile(f, args=[InputInfo((2, 8), jnp.float32)])."
        )
    args, kwargs = cast(Sequence[Any], args), cast(Mapping[str, Any], kwargs)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin without a signature
        signature = inspect.Signature([inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)])
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        name = getattr(function, "__name__", type(function).__name__)
        raise ArgumentsError(
            f"{name}{signature} can't take these arguments: {error}.\n{called_at()}"
            "  Hint: describe every argument: compile(f, args=[InputInfo((2, 8), jnp.float32)])."
        ) from None
    bound.apply_defaults()
    return bound
