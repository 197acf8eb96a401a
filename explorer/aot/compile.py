"""compile(): from a function and what its inputs look like to an Executable."""

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
from explorer.aot.padding.verdict import PaddedProgram, check_choice, decide
from explorer.aot.program import Program
from explorer.aot.symbols import Symbols
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

    Dimensions that vary are traced as symbols, once for all sizes; XLA then compiles for each shape that comes, the one
    to optimise for at once. Where a symbol can't stand for a size (`if x.shape[0] > 5`, an equality that holds for some
    sizes only), each shape is traced by itself, and a `TracedPerShapeWarning` says why; where a function asks only for
    a dimension's smallest sizes (`if x.shape[0] == 1`, as `jnp.vectorize` does), those alone are. Python has more ways
    to ask for a size than can be seen, so the symbolic trace is held against one at the smallest, the usual and the
    largest sizes: the function's Python runs for each of them here, without its prints, and not at a call.

    What it reads from elsewhere is a constant of the executable, and so is what its rules of custom derivatives and
    batches read. Where Python must run again (a shape that is traced by itself, a derivative or batch with rules of its
    own for another shape than the usual) and reads something else by then, that is refused.

    Args:
        function: Any callable: a function, a module with its weights, a bound method.
        optimization_level: 0 to 5; what each tells XLA is in `explorer.aot.levels`. 3, the default, is what `jax.jit`
            does; 5 measures candidates on the shape to optimise for and keeps the fastest: see `.autotuning`.
        misplaced: None: the function's own arguments stand in `args`.
        args, kwargs: As for a call. `InputInfo` (or `jax.ShapeDtypeStruct`) and `DimensionInputInfo`, also inside
            lists, tuples, dicts and other pytrees, stand for what is given at run time; all else, arrays too, is a
            constant of the program (`InputInfo.like(x)` makes an input of an array).
        donate: Parameters, by name or by their place in the function's signature, whose arrays a call may overwrite to
            save memory; they can't be used afterwards.
        dynamic: How sizes that vary are served. `"specialise"`: each size that comes has a binary of its own, compiled
            when it is first called. `"pad"`: the largest size is compiled now and serves every other, padded; smaller
            buckets, and sizes that are called often, are compiled in the background once they pay for themselves, so
            that no call waits for a compile (but for one with an empty dimension, or of a size that the function asks
            for, `x.shape[0] == 1`: those can't be padded). What the
            padding holds never reaches a result: that is proven, equation by equation, and else it is an error. Results
            are those of the unpadded function up to the order of sums, as with any other compile: never promised equal
            to the last bit, and not so before and after a binary came in the background. `"auto"` pads where it is
            proven and worthwhile, and specialises the rest; `.dynamic_report` says which, and why.
        buckets: By dimension, the sizes to pad to, beside its largest: `{"batch": (16, 64)}`. A dimension without a
            name has its place for one, `x_0`. None are powers of two.
        mesh: The devices that a `PartitionSpec` of an input is meant of, `InputInfo(…, sharding=jax.P("data"))`, or an
            input's sharding over an `AbstractMesh` of the same axes; None is the one that `jax.set_mesh` has set.
        max_specializations: How many binaries are kept; past it the least recently used is let go. When that one is
            needed again, a `RecompilationWarning` says once which sizes come in turn.

    Returns:
        An `Executable` whose parameters are those that hold an input, in the function's order.

    Raises:
        NotCallableError: `function` can't be called.
        ArgumentsError: The arguments don't fit its signature, or a shape stands where an InputInfo is meant.
        InputInfoError: One name has two bounds: in two inputs, or of a dimension and of a size that is an argument. Or
            a sharding names an axis that the mesh hasn't, or there is no mesh.
        OptionError: The level, a donated name, the limit, the choice or a bucket is none, or the mesh has no devices.
        PaddingError: The function can't be padded, and `dynamic` is `"pad"`: every equation in the way, with its line.
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
    _check_limit(max_specializations)
    check_choice(dynamic, buckets)
    inputs = {name: info for p in parameters for name, info in zip(p.names, p.infos, strict=True)}
    program = Program(function, bound, Symbols(inputs))

    verdict = decide(dynamic, buckets, program)
    traced = program.symbolic if verdict.buckets is not None else None
    fills = () if verdict.proof is None else verdict.proof.fills
    padded = PaddedProgram.of(traced, fills) if traced is not None else None
    executable = _built(Plan(tuple(parameters), program, {}, donated, max_specializations, verdict, padded), options)
    if program.why_each_shape:
        warnings.warn(
            f"{executable.__name__} is traced for each shape that comes, because one trace for all can't be:\n"
            f"  {program.why_each_shape.replace('  at  ', f'{chr(10)}  at  ')}\n"
            "  Hint: where sizes are always equal, say so: one NamedDimension in both. Else this works, and each new "
            "shape costs a trace.",
            TracedPerShapeWarning,
            stacklevel=2,
        )
    return remember(executable)


def _built(plan: Plan, options: Options | None) -> Executable:
    """The executable of a plan, with these compiler options; None measures which are best, of binaries of one size."""
    __tracebackhide__ = True
    exact = replace(plan, dynamic=plan.dynamic.specialised(plan.dynamic.why))
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
    """The older form of `compile`: `Compiler(f).compile(InputInfo((2, 8), jnp.float32))`.

    Args:
        function: What will be compiled.

    Example:
        >>> import explorer as ex
        >>> ex.compat.tripy.Compiler(lambda x: x * 2).compile(ex.InputInfo((2,), "float32"))
        Executable(<lambda>(x: f32[2]) → f32[2])
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def compile(self, /, *args: Any, optimization_level: int = 3, **kwargs: Any) -> Executable:
        """`compile`, with the function's arguments as they are."""
        return compile(self.function, optimization_level, args=args, kwargs=kwargs)


def _check_level(level: Any, misplaced: Sequence[Any]) -> None:
    """Refuse what stands at the place of the level, and after it, and is meant as arguments of the function."""
    __tracebackhide__ = True
    leaves = jax.tree.leaves(level, is_leaf=is_input)
    # A number of NumPy's is a level that is none.
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
    """Refuse a shape where an InputInfo is meant: it would be a constant, and nothing be left to call with."""
    __tracebackhide__ = True
    for name, value in bound.arguments.items():
        if value is not bound.signature.parameters[name].default and _is_shape(value):
            raise ArgumentsError(
                f"argument `{name}` is {_shortened(value)}, a constant; none of the arguments is an input.\n"
                f"{called_at()}  Hint: args=[InputInfo({_shortened(value)}, jnp.float32)] for an array of this shape; "
                "a tuple that is meant as a constant goes into the function, by functools.partial."
            )


def _is_shape(value: Any) -> bool:
    """Whether a person would read it as one: `(2, 3)`, `((1, 8, 64), 3)`, `(batch, 3)`."""
    sizes = cast("Sequence[Any]", value) if isinstance(value, (tuple, list)) else ()
    is_sequence = bool(sizes) and all(type(size) is int or _is_shape(size) for size in sizes)
    return is_sequence or isinstance(value, NamedDimension)


def _shortened(value: Any) -> str:
    text = "an array" if hasattr(value, "shape") and not is_input(value) else repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _donated(donate: Any, positions: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """The names of the donated parameters.

    Args:
        positions: The function's parameters, for those given by number.
        names: The parameters that hold an input.
    """
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


def _check_limit(limit: Any) -> None:
    __tracebackhide__ = True
    if type(limit) is not int or limit < 1:
        raise OptionError(f"max_specializations is {limit!r}; allowed is an int of at least 1.\n{called_at()}")


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
    except (TypeError, ValueError):  # a builtin: it takes what it takes, by position
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
