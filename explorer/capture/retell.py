"""A failed trace in the user's own terms: their line, the value they asked for, its origin, what to write instead."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter
from typing import Any, cast

import jax
import jax.core
import numpy as np

from explorer.capture.constants import LeakedTracer
from explorer.capture.frames import Argument, Step, is_runner, names_in, users_arguments, users_steps
from explorer.capture.sources import Span, as_arrays, bound_at, label, place, pointed_at, syntax_at
from explorer.errors import ExploreError, TracedValueError

__all__ = ["retold", "users_place"]

# Some refusals of a traced value are plain TypeErrors and IndexErrors. Their words, from 0.10 to 0.12:
_UNNAMED = re.compile(
    r"Shapes must be 1D sequences of concrete values|Slice entries must be static|must have static start/stop/step"
    r"|unsupported format string passed to \w*Tracer|unhashable type: '\w*Tracer|\*: '\w+' and '\w*Tracer'"
)
_CONCRETE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)
_TYPE = re.compile(r"(?:traced array with shape|must be concrete; got|value with type) (\w+\[[^\]]*\])")
_TRACED = re.compile(r"while tracing the function (.+?)(?: at (.+?):\d+)? for ")
_DEPENDS = re.compile(r"depends on the values? of the arguments? ([^\n]+)\.")
_MADE_AT = re.compile(r"(?:from|created on) line ([^\n]+?):(\d+)(?::\d+)? \(")
_LEAKED_FROM = re.compile(r"when the value leaked was (.+?)(?: at (.+?):\d+)? traced for")
# What JAX says to everybody, after what it has to say.
_BOILERPLATE = re.compile(
    r"\n?(?:See https://(?:docs\.jax|jax\.readthedocs)|The error occurred while tracing|If using `jit`)"
)
_ADDRESS = re.compile(r"<(?:function|bound method) ([^<>]*(?:<\w+>[^<>]*)*) at 0x[0-9a-f]+>")
_FILE = re.compile(r"((?:[A-Za-z]:)?[/\\][^\s:]+):(\d+)")
_WIDEST = 60  # characters of an expression
_LONGEST = 6  # lines of JAX's or the user's own words
_MOST_STEPS = 5

# What to write instead; {0} is the traced value.
_ANY = "jnp.where and jax.lax.cond choose by a value, jax.debug.print prints one, jax.numpy computes with it"
_PRINT = 'jax.debug.print("{{}}", {0}) prints while the program runs'
_CHOOSE = "jnp.where({0}, a, b) chooses between values,\njax.lax.cond({0}, f, g, x) between computations"
_KEEP = "keeps it an array, which computes as a number does;\n" + _PRINT
_FIXED = "shapes, sizes and axes can't depend on values; jnp.where(mask, a, b) computes with a part"
_BUILTINS = {
    "float": "jnp.asarray({0}, float) " + _KEEP,
    "int": "jnp.asarray({0}, int) " + _KEEP,
    "complex": "jnp.asarray({0}, complex) " + _KEEP,
    "bool": _CHOOSE,
    "range": "jax.lax.fori_loop(0, {0}, body, start) loops in the compiled program",
    "format": _PRINT,
    "max": "jnp.max(x) or jnp.maximum(x, y)",
    "min": "jnp.min(x) or jnp.minimum(x, y)",
    "any": "jnp.any({0})",
    "all": "jnp.all({0})",
    "sorted": "jnp.sort({0})",
}


def retold(error: Exception, function: str, verb: str, step: str = "trace") -> tuple[type[ExploreError], str]:
    """What to raise, and with which words, for an error that came while a function was traced, lowered or compiled.

    Args:
        error: As it was caught.
        function: The function's name.
        verb: What could not be done to it: `compiled`.
        step: What failed.

    Example:
        >>> import jax
        >>> try:
        ...     jax.make_jaxpr(lambda x: float(x))(1.0)
        ... except Exception as error:
        ...     retold(error, "f", "compiled")[0]
        <class 'explorer.errors.TracedValueError'>
    """
    steps = users_steps(error)
    lines: list[str]
    kind: type[ExploreError] = TracedValueError
    if isinstance(error, jax.errors.UnexpectedTracerError):
        lines = _leak(error, steps)
    elif isinstance(error, _CONCRETE) or (steps and _is_refusal(error, steps[0])):
        lines = _traced_value(error, steps)
    else:
        lines, kind = _failure(error, steps, step), ExploreError
    return kind, f"{function} could not be {verb}: " + "\n".join(lines)


def users_place(error: BaseException) -> str:
    """The innermost line of the user's own code that an error went through, as a person finds it."""
    steps = users_steps(error)
    return place(steps[0].file, steps[0].span.line) if steps else ""


def _is_refusal(error: Exception, step: Step) -> bool:
    raises = any(isinstance(node, ast.Raise) for node in syntax_at(step.file, step.span)[-1:])
    return not raises and _UNNAMED.search(str(error)) is not None


def _traced_value(error: Exception, steps: Sequence[Step]) -> list[str]:
    asked = _asked(error, steps[0]) if steps else _Asked()
    type_ = asked.type or _found(_TYPE, error)
    arguments = _arguments(error, steps, asked)
    none_yet = f"`{asked.value}` has none yet" if asked.value else "there is none yet"
    return [
        f"{f'`{asked.text}`' if asked.text else 'it'} needs a value, but while tracing {none_yet}"
        f"{f' ({type_})' if type_ else ''}.",
        *_way(steps, asked.span),
        *_made_at(error, steps, asked.bound.values()),
        *_given_as(arguments),
        "  Hint: " + asked.hint.replace("\n", "\n        ") + ".",
        *_constants(arguments, steps),
    ]


def _leak(error: Exception, steps: Sequence[Step]) -> list[str]:
    type_, leaked = _found(_TYPE, error), _LEAKED_FROM.search(str(error))
    owner = f"the trace of {leaked[1]}" if leaked and not is_runner(leaked[2] or "") else "an earlier trace"
    named = f"`{error.names[0]}`, " if isinstance(error, LeakedTracer) and error.names[0] != "a value" else ""
    return [
        f"it uses {named}a value that was kept from {owner}{f' ({type_})' if type_ else ''}.",
        *_way(steps),
        *_made_at(error, steps),
        "  Hint: return it from there; what a list, a global or an attribute keeps of a trace is never an array.",
    ]


def _failure(error: Exception, steps: Sequence[Step], step: str) -> list[str]:
    words = _words(error)
    return [
        f"{step} failed: {type(error).__name__}" + (f": {words[0]}" if words else "."),
        *(f"  {line}" for line in words[1:]),
        *_way(steps),
        *(_operands(steps[0]) if steps else ()),
    ]


def _words(error: Exception) -> list[str]:
    """What an error says, without what is the same in all of JAX's, addresses and this machine's folders."""
    text = _BOILERPLATE.split(str(error).strip(), maxsplit=1)[0]
    text = _FILE.sub(lambda at: f"{label(at[1])}, line {at[2]}", _ADDRESS.sub(r"\1", text))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[:_LONGEST] + (["…"] if len(lines) > _LONGEST else [])


def _found(pattern: re.Pattern[str], error: Exception) -> str:
    match = pattern.search(str(error))
    return match[1] if match else ""


# Where ---------------------------------------------------------------------------------------------------------------


def _way(steps: Sequence[Step], span: Span | None = None) -> list[str]:
    """The user's lines from where it happened outwards."""
    if not steps:
        return []
    # A lambda or a comprehension is on the line of who calls it: once is enough.
    others = [step for inner, step in pairwise(steps) if (step.file, step.span.line) != (inner.file, inner.span.line)]
    lines = [f"  in  {step.function}, {place(step.file, step.span.line)}" for step in others]
    if len(lines) > _MOST_STEPS:
        lines[2:-2] = [f"  …   {len(lines) - 4} more"]
    return pointed_at("  at  ", steps[0].file, span or steps[0].span) + lines


def _operands(step: Step) -> list[str]:
    """The arrays that the failing expression names, with their types."""
    way = syntax_at(step.file, step.span)
    told: dict[str, str] = {}
    for name in names_in(way[-1]) if way and isinstance(way[-1], ast.expr) else ():
        value = step.named(name.id)
        if isinstance(value, (jax.Array, np.ndarray)):
            told[name.id] = f"`{name.id}` is {_type_of(value, short_dtypes=True)}"
    return [f"  with  {', '.join(list(told.values())[:4])}"] if told else []


# Where from ----------------------------------------------------------------------------------------------------------


def _made_at(error: Exception, steps: Sequence[Step], lines: Iterable[int | None] = ()) -> list[str]:
    """The lines, of the function or by JAX's account, that made a value."""
    found = [(steps[0].file, line) for line in lines if line]
    found += [(at[1], int(at[2])) for at in _MADE_AT.finditer(str(error)) if not is_runner(at[1])]
    at = (steps[0].file, steps[0].span.line) if steps else None
    return [f"  from  {place(*made)}" for made in dict.fromkeys(found) if made != at][:3]


def _given_as(arguments: Sequence[Argument]) -> list[str]:
    if not arguments:
        return []
    names = [f"`{argument.path}`" for argument in arguments]
    shown = names if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more"]
    listed = " and ".join(part for part in (", ".join(shown[:-1]), shown[-1]) if part)
    return [f"  from  argument{'s' if names[1:] else ''} {listed} of {arguments[0].function}"]


def _arguments(error: Exception, steps: Sequence[Step], asked: _Asked) -> list[Argument]:
    """The arguments that a value depends on: by JAX's own account, or those that the expression names."""
    if not steps:
        return []
    traced, depends = _TRACED.search(str(error)), _found(_DEPENDS, error)
    if traced is not None and depends:
        return users_arguments(error, steps, traced[1], traced[2], re.split(r", and |, | and ", depends))
    names = [name for name, line in asked.bound.items() if line == 0 and name in steps[0].parameters]
    return [Argument(name, steps[0].function, steps[0].named(name)) for name in names]


def _constants(arguments: Sequence[Argument], steps: Sequence[Step]) -> list[str]:
    """Advice for numbers that may rather be part of the program than data."""
    counts = [a.path for a in arguments if _is_count(a.value) and steps[-1].value_at(a.path) is a.value]
    if not counts or len(counts) < len(arguments):
        return []
    names = " and ".join(f"`{path}`" for path in counts)
    return [f"        Or make {names} a constant: a number instead of an InputInfo; for jax.jit, a static argument."]


def _is_count(value: Any) -> bool:
    kind = value.dtype.kind if isinstance(value, jax.core.Tracer) else ""
    return kind in tuple("iub") and value.shape == ()


def _type_of(value: Any, **options: bool) -> str:
    return jax.typeof(value).str_short(**options)


# What was asked for --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Asked:
    """The expression that asked for a value.

    Args:
        hint: What to write instead.
        text: The expression.
        value: The traced value in it.
        type: Of that, where it is known better than from JAX's words.
        span: What to put carets under, where it is not what Python says.
        bound: The traced names in it, and the lines that bound them (see `bound_at`).
    """

    hint: str = _ANY
    text: str = ""
    value: str = ""
    type: str = ""
    span: Span | None = None
    bound: Mapping[str, int | None] = field(default_factory=dict[str, int | None])


def _asked(error: Exception, step: Step) -> _Asked:
    way = _exact(syntax_at(step.file, step.span))
    if len(way) < 2 or not isinstance(way[-1], ast.expr):
        return _Asked()
    text, values, hint = _request(error, way, step)
    names = [name.id for value in values for name in step.traced(value)]
    only = values[0] if len(values) == 1 else None
    value = step.named(only.id) if isinstance(only, ast.Name) else None
    return _Asked(
        hint,
        _short(text),
        _short(ast.unparse(only)) if only is not None else "",
        _type_of(value) if isinstance(value, jax.core.Tracer) else "",
        Span.of(way[-1]),
        {name: bound_at(way, name) for name in names},
    )


def _exact(way: Sequence[ast.AST]) -> Sequence[ast.AST]:
    """To the expression that is meant, where a Python gives the place of something around or inside of it."""
    if not way:
        return way
    last = way[-1]
    if isinstance(last, (ast.Constant, ast.FormattedValue)):  # of a string: 3.11 gives the whole for each part
        string = next((i for i, node in enumerate(way) if isinstance(node, ast.JoinedStr)), len(way))
        return way[: string + 1]
    if isinstance(last, ast.Assert):
        return [*way, last.test]  # 3.11
    if isinstance(last, (ast.ListComp, ast.SetComp, ast.DictComp)) and len(last.generators[0].ifs) == 1:
        return [*way, last.generators[0].ifs[0]]  # from 3.12
    return way


def _request(error: Exception, way: Sequence[ast.AST], step: Step) -> tuple[str, Sequence[ast.expr], str]:
    node = cast(ast.expr, way[-1])
    text = ast.unparse(node)
    is_mask = isinstance(error, jax.errors.NonConcreteBooleanIndexError)
    is_bool = isinstance(error, jax.errors.TracerBoolConversionError)
    match node:
        case _ if is_bool and not _gives_bool(node, step) and (condition := _condition(way)):
            return condition
        case ast.Call(func=ast.Attribute(value=ast.Subscript(value=array, slice=index))) if is_mask:  # x.at[m].set(v)
            new, old = ast.unparse(node.args[0]) if node.args else "0", ast.unparse(array).removesuffix(".at")
            return text, [index], f"jnp.where({ast.unparse(index)}, {new}, {old})"
        case ast.Call():
            return text, *_call(error, node, step)
        case ast.JoinedStr():
            parts = [part.value for part in node.values if isinstance(part, ast.FormattedValue) and part.format_spec]
            traced = [part for part in parts if step.traced(part)]
            return text, traced, _PRINT.format(", ".join(map(ast.unparse, traced)) or "x")
        case ast.BinOp(op=ast.Mod(), left=ast.Constant(), right=value):
            return text, [value], _PRINT.format(ast.unparse(value))
        case ast.Subscript(value=array, slice=index) if is_mask:
            return (
                text,
                [index],
                f"jnp.where({ast.unparse(index)}, {ast.unparse(array)}, 0) keeps the shape",
            )
        case ast.Subscript(value=array, slice=ast.Slice()):
            dynamic = f"jax.lax.dynamic_slice_in_dim({ast.unparse(array)}, start, size)"
            return text, _counts(node.slice, step), f"{dynamic} takes a traced start; a size can't depend on values"
        case ast.Subscript(value=array, slice=index):
            return text, [index], f"jnp.asarray({ast.unparse(array)})[{ast.unparse(index)}]"
        case ast.Compare(ops=[ast.In() | ast.NotIn()], left=left, comparators=[right]):
            return text, [left], f"jnp.isin({ast.unparse(left)}, jnp.asarray({ast.unparse(right)}))"
        case ast.BinOp(op=ast.Mult()):
            return text, _counts(node, step), _FIXED
        case ast.Dict(keys=keys) | ast.Set(elts=keys):
            return text, [key for key in keys if key and step.traced(key)], "a key that is no array, such as a number"
        case _:
            return text, [], _ANY


def _condition(way: Sequence[ast.AST]) -> tuple[str, Sequence[ast.expr], str] | None:
    """A test of `if` and its like, `and`, `or`, `not`, or a chain of comparisons."""
    at = len(way) - 1
    while isinstance(way[at - 1], (ast.BoolOp, ast.UnaryOp)):
        at -= 1
    owner, whole, node = way[at - 1], cast(ast.expr, way[at]), cast(ast.expr, way[-1])
    values = [] if isinstance(node, ast.BoolOp) else [node.operand if isinstance(node, ast.UnaryOp) else node]
    text, arrays = ast.unparse(whole), as_arrays(whole)
    match owner:
        case ast.If(test=test) if test is whole:
            return f"if {text}:", values, _CHOOSE.format(arrays)
        case ast.IfExp(test=test) if test is whole:
            return f"… if {text} else …", values, _CHOOSE.format(arrays)
        case ast.While(test=test) if test is whole:
            return f"while {text}:", values, "jax.lax.while_loop(condition, body, state) loops in the compiled program"
        case ast.Assert(test=test) if test is whole:
            check = f"jax.experimental.checkify.check({arrays}, message)"
            return f"assert {text}", values, f"{check} checks while the program runs"
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return f"if {text}", values, f"jnp.where({arrays}, a, b): a number of values can't depend on values"
        case ast.MatchValue():
            return f"case {text}:", [], "jax.lax.switch(index, branches, x) or jax.lax.cond(condition, f, g, x)"
        case _:
            return (text, values, arrays) if arrays != text else None


def _gives_bool(node: ast.expr, step: Step) -> bool:
    """Whether it is a bool whatever it is given: then who asked is not around it."""
    if isinstance(node, ast.Call):
        return step.called(node.func).removeprefix("builtins.") in ("bool", "all", "any")
    return isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn))


def _call(error: Exception, node: ast.Call, step: Step) -> tuple[Sequence[ast.expr], str]:
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    traced = [part for part in given if step.traced(part)] or given[: len(given) == 1]
    package, _, name = step.called(node.func).partition(".")
    written, value = ast.unparse(node.func), ast.unparse(traced[0]) if traced else "x"
    if package == "builtins" and name in _BUILTINS:
        return traced, _BUILTINS[name].format(value)
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("item", "tolist"):
        hint = f"leaving `.{node.func.attr}()` out {_KEEP.format(ast.unparse(node.func.value))}"
        return [node.func.value], hint
    if package in ("numpy", "math") and _is_in_jax(name):
        return traced, f"jnp.{name} instead of {written}"
    if "size argument" in str(error):
        return [], f"{written}(…, size=n) with a fixed n, or a mask: jnp.where(condition, a, b)"
    if package == "jax" or _UNNAMED.search(str(error)):
        return _counts(node, step) or traced, _FIXED
    return traced, f"write what {written} does with jax.numpy, or jax.pure_callback calls it while the program runs"


def _is_in_jax(name: str) -> bool:
    try:
        return callable(attrgetter(name)(jax.numpy))
    except AttributeError:
        return False


def _counts(node: ast.AST, step: Step) -> list[ast.expr]:
    """The names of whole numbers: what a shape is made of."""
    return [name for name in names_in(node) if _is_count(step.named(name.id))]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 1]}…"
