"""The expression that needs the value of a traced array, and the hint what to write instead."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import attrgetter
from typing import Any, cast

import jax
import jax.core
import numpy as np

from explorer.capture.frames import Step, names_in
from explorer.capture.sources import Span, as_arrays, bound_at, syntax_at
from explorer.model.text import cut_end

# Some of JAX's refusals are plain TypeErrors and IndexErrors. Their messages, from 0.10 to 0.12:
_UNNAMED = re.compile(
    r"Shapes must be 1D sequences of concrete values|Slice entries must be static|must have static start/stop/step"
    r"|unsupported format string passed to \w*Tracer|unhashable type: '\w*Tracer|\*: '\w+' and '\w*Tracer'"
)
_STORED = "setting an array element"
_CONCRETE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)
_MAX_CHARACTERS = 60  # characters of an expression

# Hints; {0} is the traced value.
_ANY = "jnp.where and jax.lax.cond choose by a value, jax.debug.print prints one, jax.numpy computes with it"
_PRINT = 'jax.debug.print("{{}}", {0}) prints while the program runs'
_CHOOSE = "jnp.where({0}, a, b) chooses between values,\njax.lax.cond({0}, f, g, x) between computations"
_KEEP = "keeps it an array, which works like a number;\n" + _PRINT
_CHECKIFY = "where it is called as error, y = jax.jit(jax.experimental.checkify.checkify(f))(x), then error.throw()"
_FIXED = "shapes, sizes and axes can't depend on values; jnp.where(mask, a, b) computes with a part"
_BUILTINS = {
    "float": "jnp.asarray({0}, float) " + _KEEP,
    "int": "jnp.asarray({0}, int) " + _KEEP,
    "complex": "jnp.asarray({0}, complex) " + _KEEP,
    "bool": _CHOOSE,
    "format": _PRINT,
}
_REDUCING = {"max": "jnp.max", "min": "jnp.min", "any": "jnp.any", "all": "jnp.all", "sorted": "jnp.sort"}
_OF_TWO = {"max": "jnp.maximum", "min": "jnp.minimum"}
_WHILE = "jax.lax.while_loop(condition, body, state) loops in the compiled program"


def is_refusal(error: BaseException, steps: Sequence[Step]) -> bool:
    """Return True for an error about the missing value of a traced array; `steps` are the user's lines on its path."""
    # For `array[0] = traced` NumPy raises its own error; the cause is JAX's.
    is_stored = type(error) is ValueError and isinstance(error.__cause__, _CONCRETE) and str(error).startswith(_STORED)
    if isinstance(error, _CONCRETE) or is_stored or not steps:
        return isinstance(error, _CONCRETE) or is_stored
    # The user's own `raise` may have the same words.
    raises = any(isinstance(node, ast.Raise) for node in syntax_at(steps[0].file, steps[0].span)[-1:])
    return not raises and _UNNAMED.search(str(error)) is not None


@dataclass(frozen=True)
class ConcretizationSite:
    """The expression that needs a concrete value, with the traced value in it and the hint what to write.

    `type` is set where JAX's message lacks it, `span` where Python's own is wrong. `bound` has the lines that bound the
    traced names (see `bound_at`).
    """

    hint: str = _ANY
    text: str = ""
    value: str = ""
    type: str = ""
    span: Span | None = None
    bound: Mapping[str, int | None] = field(default_factory=dict[str, int | None])


def find_site(error: BaseException, step: Step) -> ConcretizationSite:
    """Return the site in the user's innermost line whose expression needs a concrete value.

    The site has only a general hint if that expression is unknown.
    """
    path = _narrow(syntax_at(step.file, step.span), isinstance(error, jax.errors.NonConcreteBooleanIndexError))
    if len(path) < 2 or not isinstance(path[-1], ast.expr):
        return ConcretizationSite()
    text, values, hint = _request(error, path, step)
    names = [name.id for value in values for name in step.traced_names(value)]
    only = values[0] if len(values) == 1 else None
    value = step.value_of(only.id) if isinstance(only, ast.Name) else None
    return ConcretizationSite(
        hint,
        _short(text),
        _short(ast.unparse(only)) if only is not None else "",
        type_of(value) if isinstance(value, jax.core.Tracer) else "",
        Span.of(path[-1]),
        {name: bound_at(path, name) for name in names},
    )


def _narrow(path: Sequence[ast.AST], is_mask: bool) -> Sequence[ast.AST]:
    """Return the path to the expression that raised; some Pythons report one around or inside it."""
    if not path:
        return path
    last = path[-1]
    if isinstance(last, (ast.Constant, ast.FormattedValue)):  # of a string: 3.11 gives the whole for each part
        string = next((i for i, node in enumerate(path) if isinstance(node, ast.JoinedStr)), len(path))
        return path[: string + 1]
    if isinstance(last, ast.Assert):
        return [*path, last.test]  # 3.11
    if isinstance(last, (ast.ListComp, ast.SetComp, ast.DictComp)):  # from 3.12, whatever in it raised
        subscripts = [part for part in ast.walk(last) if isinstance(part, ast.Subscript)]
        masked = [part for part in subscripts if not isinstance(part.slice, (ast.Constant, ast.Slice))]
        within = masked if is_mask else last.generators[0].ifs
        return [*path, within[0]] if len(within) == 1 else path
    return path


def _request(error: BaseException, path: Sequence[ast.AST], step: Step) -> tuple[str, Sequence[ast.expr], str]:
    """Return the text of the expression, the traced values in it, and the hint."""
    node = cast(ast.expr, path[-1])
    if isinstance(error, jax.errors.TracerBoolConversionError) and not _gives_bool(node, step):
        condition = _condition(path)
        if condition:
            return condition
    masked = mask_hint(path, step) if isinstance(error, jax.errors.NonConcreteBooleanIndexError) else None
    if masked:
        return ast.unparse(node), *masked
    if (stored := _store(path)) is not None:
        return stored
    return ast.unparse(node), *(_call(error, node, step) if isinstance(node, ast.Call) else _operator(node, step))


def _store(path: Sequence[ast.AST]) -> tuple[str, Sequence[ast.expr], str] | None:
    """Return statement, value and hint if the path ends at an item that is assigned; None for others.

    After an error of this kind, the value is traced and the item that of a NumPy array.
    """
    match path[-2:]:
        case [ast.Assign() | ast.AugAssign() as statement, ast.Subscript(value=array, ctx=ast.Store()) as target]:
            change = statement.value
            if isinstance(statement, ast.AugAssign):
                change = ast.BinOp(ast.Subscript(array, target.slice, ast.Load()), statement.op, change)
            at = ast.unparse(ast.Subscript(ast.Attribute(ast.Name("x"), "at"), target.slice)).removeprefix("x")
            copy = f"jnp.asarray({ast.unparse(array)}){at}.set({ast.unparse(change)})"
            return ast.unparse(statement), [statement.value], f"{copy} is a changed copy, which is traced"
        case _:
            return None


def _operator(node: ast.expr, step: Step) -> tuple[Sequence[ast.expr], str]:
    """Return the traced values and the hint of an expression that is no call."""
    match node:
        case ast.JoinedStr():
            parts = [part.value for part in node.values if isinstance(part, ast.FormattedValue) and part.format_spec]
            traced = [part for part in parts if step.traced_names(part)]
            return traced, _PRINT.format(", ".join(map(ast.unparse, traced)) or "x")
        case ast.BinOp(op=ast.Mod(), left=ast.Constant(), right=value):
            return [value], _PRINT.format(ast.unparse(value))
        case ast.Subscript(value=array, slice=ast.Slice()):
            dynamic = f"jax.lax.dynamic_slice_in_dim({ast.unparse(array)}, start, size)"
            return _counts(node.slice, step), f"{dynamic} takes a traced start; a size can't depend on values"
        case ast.Subscript(value=array, slice=index):
            return [index], item_hint(array, index, step)
        case ast.Compare(ops=[ast.In() | ast.NotIn()], left=left, comparators=[right]):
            return [left], f"jnp.isin({ast.unparse(left)}, jnp.asarray({ast.unparse(right)}))"
        case ast.BinOp(op=ast.Mult()):
            return _counts(node, step), _FIXED
        case ast.Dict(keys=keys) | ast.Set(elts=keys):
            traced = [key for key in keys if key and step.traced_names(key)]
            return traced, "a key that is no array, such as a number"
        case _:
            return [], _ANY


def _condition(path: Sequence[ast.AST]) -> tuple[str, Sequence[ast.expr], str] | None:
    """Return text, values and hint of a test (`if`, `while`, `assert`, `and`, `a < b < c`, …); None for others."""
    at = len(path) - 1
    while isinstance(path[at - 1], (ast.BoolOp, ast.UnaryOp)):
        at -= 1
    owner, whole, node = path[at - 1], cast(ast.expr, path[at]), cast(ast.expr, path[-1])
    values = [] if isinstance(node, ast.BoolOp) else [node.operand if isinstance(node, ast.UnaryOp) else node]
    text, arrays = ast.unparse(whole), as_arrays(whole)
    match owner:
        case ast.If(test=test) if test is whole:
            return f"if {text}:", values, _CHOOSE.format(arrays)
        case ast.IfExp(test=test) if test is whole:
            return f"… if {text} else …", values, _CHOOSE.format(arrays)
        case ast.While(test=test) if test is whole:
            return f"while {text}:", values, _WHILE
        case ast.Assert(test=test) if test is whole:
            check = f"jax.experimental.checkify.check({arrays}, message)"
            return f"assert {text}", values, f"{check} checks while the program runs,\n{_CHECKIFY}"
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return f"if {text}", values, f"jnp.where({arrays}, a, b): a number of values can't depend on values"
        case ast.MatchValue():
            return f"case {text}:", [], "jax.lax.switch(index, branches, x) or jax.lax.cond(condition, f, g, x)"
        case _:
            return (text, values, arrays) if arrays != text else None


def _gives_bool(node: ast.expr, step: Step) -> bool:
    """Return True if the expression is a bool for any operands: then nothing around it converted it."""
    if isinstance(node, ast.Call):
        return step.callee_name(node.func).removeprefix("builtins.") in ("bool", "all", "any")
    return isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn))


def _call(error: BaseException, node: ast.Call, step: Step) -> tuple[Sequence[ast.expr], str]:
    """Return the traced arguments of a call that needs their values, and the call to write instead.

    Builtins and methods are known by name, and most of NumPy's functions have a twin in jax.numpy. Of other functions
    only JAX's error is known.
    """
    package, _, name = step.callee_name(node.func).partition(".")
    traced = _traced_arguments(node, step)
    if package == "builtins" and (hint := _builtin(name, node, traced)):
        return traced, hint
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("item", "tolist"):
        array = node.func.value
        return [array], f"leaving `.{node.func.attr}()` out {_KEEP.format(ast.unparse(array))}"
    if package in ("numpy", "math"):
        if isinstance(error, jax.errors.TracerIntegerConversionError):
            return _counts(node, step) or traced, _FIXED  # a size or an axis, which jax.numpy can't take either
        if _is_in_jax(name):
            return traced, f"jnp.{name} instead of {ast.unparse(node.func)}"
    return _unknown_call(error, node, step, is_jax=package == "jax")


def _builtin(name: str, node: ast.Call, traced: Sequence[ast.expr]) -> str:
    if name == "range":
        return _range(node)
    if name in _REDUCING:
        return _reduced(name, node)
    return _BUILTINS.get(name, "").format(ast.unparse(traced[0]) if traced else "x")


def _range(node: ast.Call) -> str:
    """Return the loop to write for a range(); a step other than 1 is no `fori_loop`."""
    match list(map(ast.unparse, node.args)):
        case [stop]:
            return f"jax.lax.fori_loop(0, {stop}, body, start) loops in the compiled program"
        case [start, stop]:
            return f"jax.lax.fori_loop({start}, {stop}, body, start) loops in the compiled program"
        case _:
            return _WHILE


def _reduced(name: str, node: ast.Call) -> str:
    """Return the jax.numpy form of `max(x, y)`, `sorted(x)` and the like."""
    match node.args:
        case [ast.GeneratorExp() as each]:
            values = f"jnp.asarray([{ast.unparse(each)[1:-1]}])"
        case [ast.List() | ast.Tuple() as several]:
            values = f"jnp.asarray({ast.unparse(several)})"
        case [one]:
            values = ast.unparse(one)
        case [first, *others] if name in _OF_TWO:
            return reduce(lambda left, right: f"{_OF_TWO[name]}({left}, {right})", map(ast.unparse, (first, *others)))
        case _:
            values = "x"
    if node.keywords:
        return f"jax.numpy, by the rule that {name} gets as {', '.join(str(one.arg) for one in node.keywords)}="
    return f"{_REDUCING[name]}({values})"


def _unknown_call(error: BaseException, node: ast.Call, step: Step, *, is_jax: bool) -> tuple[Sequence[ast.expr], str]:
    """Return traced arguments and hint for a function that is known only by JAX's message."""
    written, traced = ast.unparse(node.func), _traced_arguments(node, step)
    if "size argument" in str(error):
        return [], (
            f"{written}(…, size=n) with a fixed n, filled up with fill_value=; or a mask: "
            "jnp.where(condition, a, b), jnp.sum(condition) for how many"
        )
    if is_jax or _UNNAMED.search(str(error)):
        return _counts(node, step) or traced, _FIXED
    return traced, f"write what {written} does with jax.numpy, or jax.pure_callback calls it while the program runs"


def _traced_arguments(node: ast.Call, step: Step) -> list[ast.expr]:
    """Return the arguments that hold traced values; if none is known to, the argument of a call with a single one."""
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    return [part for part in arguments if step.traced_names(part)] or arguments[: len(arguments) == 1]


def _is_in_jax(name: str) -> bool:
    try:
        return callable(attrgetter(name)(jax.numpy))
    except AttributeError:
        return False


def _counts(node: ast.AST, step: Step) -> list[ast.expr]:
    """Return the names in a piece of syntax that are traced scalar integers or bools, from which shapes are made."""
    return [name for name in names_in(node) if is_count(step.value_of(name.id))]


def _short(text: str) -> str:
    return cut_end(" ".join(text.split()), _MAX_CHARACTERS)


def is_count(value: Any) -> bool:
    kind = getattr(value.dtype, "kind", "") if isinstance(value, jax.core.Tracer) else ""  # a key's dtype has no kind
    return kind in tuple("iub") and value.shape == ()


def type_of(value: Any, **options: bool) -> str:
    return jax.typeof(value).str_short(**options)


# Hints for an index that has no value yet -----------------------------------------------------------------------------

_REDUCTIONS = ("sum", "mean", "prod", "any", "all", "std", "var", "nansum", "nanmean")
# These have no value for an empty array: they need an initial one.
_EXTREMES = {"max": "min", "min": "max", "amax": "min", "amin": "max"}
_NAN = {name: f"nan{name}" for name in ("median", "percentile", "quantile")}
_UPDATES = {
    "set": "{new}",
    "add": "{old} + {new}",
    "subtract": "{old} - {new}",
    "multiply": "{old} * {new}",
    "mul": "{old} * {new}",
    "divide": "{old} / {new}",
    "power": "{old} ** {new}",
    "min": "jnp.minimum({old}, {new})",
    "max": "jnp.maximum({old}, {new})",
    "apply": "{new}({old})",
}


def mask_hint(path: Sequence[ast.AST], step: Step) -> tuple[Sequence[ast.expr], str] | None:
    """Return the mask of `x[mask]`, `x.at[mask].get()` or `x.at[mask].set(v)`, and a replacement; None for others."""
    match path[-1]:
        case (
            ast.Call(
                func=ast.Attribute(
                    value=ast.Subscript(value=ast.Attribute(value=array, attr="at"), slice=mask), attr=method
                )
            ) as node
        ):
            if method == "get":
                return [mask], _selected(array, mask, path[:-1], node, step)
            new = node.args[0] if node.args else ast.Constant(0)
            written = ast.unparse(new) if method in ("set", "min", "max") else _operand(new)
            update = _UPDATES.get(method, "{new}").format(new=written, old=_operand(array))
            return [mask], f"jnp.where({_mask(mask, array, step)}, {update}, {ast.unparse(array)})"
        case ast.Subscript(value=array, slice=mask) as node:
            return [mask], _selected(array, mask, path[:-1], node, step)
        case _:
            return None


def _selected(array: ast.expr, mask: ast.expr, around: Sequence[ast.AST], node: ast.expr, step: Step) -> str:
    """Return the code for the masked part of an array, given what is done with it."""
    x, where = ast.unparse(array), _mask(mask, array, step)
    if _is_counted(around, node, mask, array):
        return f"jnp.sum({where})"
    reduced = _reduction(around, node)
    if reduced is not None:
        written, name, is_method = reduced
        numpy = written if not is_method else f"jnp.{name}"
        if name in _REDUCTIONS:
            return f"{_operand(array)}.{name}(where={where})" if is_method else f"{numpy}({x}, where={where})"
        if name in _EXTREMES:
            start = f"where={where}, initial={_operand(array)}.{_EXTREMES[name]}()"
            return f"{_operand(array)}.{name}({start})" if is_method else f"{numpy}({x}, {start})"
        if name in _NAN:
            return f"jnp.{_NAN[name]}(jnp.where({where}, {x}, jnp.nan))"
    return (
        f"jnp.where({where}, {x}, fill) keeps the shape, with a `fill` that doesn't count in what follows: 0 in a sum; "
        f"jnp.mean({x}, where={where}) and similar functions skip the others"
    )


def _is_counted(around: Sequence[ast.AST], node: ast.expr, mask: ast.expr, array: ast.expr) -> bool:
    """Return True if only the number of selected elements is used: `len(x[mask])`, `x[x > 0].size`."""
    match around[-1] if around else None:
        case ast.Call(func=ast.Name(id="len"), args=[argument]):
            return argument is node
        case ast.Attribute(value=inner, attr="size") if isinstance(mask, ast.Compare):
            # A mask of rows would count rows, where `size` counts elements.
            return inner is node and ast.dump(array) in map(ast.dump, (mask.left, *mask.comparators))
        case _:
            return False


def _reduction(around: Sequence[ast.AST], node: ast.expr) -> tuple[str, str, bool] | None:
    """Return (callee, function's name, True if a method) of a call like `f(x[mask])` or `x[mask].f()`, else None."""
    match around[-2:]:
        case [ast.Call(func=func, args=[], keywords=[]), ast.Attribute(value=inner, attr=name) as method]:
            if func is method and inner is node:
                return ast.unparse(func), name, True
        case [*_, ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name) as func, args=[argument], keywords=[])]:
            if argument is node:
                return ast.unparse(func), name, False
        case _:
            pass
    return None


def _mask(mask: ast.expr, array: ast.expr, step: Step) -> str:
    """Return the mask's text, with a new axis for each dimension that a mask of rows lacks."""
    text = ast.unparse(mask)
    values: list[Any] = [step.value_of(node.id) if isinstance(node, ast.Name) else None for node in (mask, array)]
    if not all(isinstance(value, (jax.Array, np.ndarray)) for value in values):
        return text
    missing = np.ndim(values[1]) - np.ndim(values[0])
    return f"{text}[{', '.join(['...'] + ['None'] * missing)}]" if missing > 0 else text


def _operand(node: ast.expr) -> str:
    text = ast.unparse(node)
    simple = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant))
    return text if simple else f"({text})"


def item_hint(array: ast.expr, index: ast.expr, step: Step) -> str:
    """Return the code to write for an item of a list, tuple, dict or NumPy array with a traced index or key."""
    x, i = ast.unparse(array), ast.unparse(index)
    items = _items(array, step)
    if items is None:
        return f"jnp.asarray({x})[{i}]"
    keys, values = items
    if any(callable(value) and not _is_array(value) for value in values):
        number = i if keys is None else f"jnp.argmax(jnp.asarray(list({x})) == {i})"
        branches = x if keys is None else f"list({x}.values())"
        return f"jax.lax.switch({number}, {branches}, x) calls one of these functions; put its arguments in place of x"
    if not values or not all(map(_is_array, values)) or len({np.shape(value) for value in values}) > 1:
        return f"arrays of one shape in {x}: a value can't choose between other objects"
    if keys is None:
        return f"jnp.asarray({x})[{i}]"
    if not all(type(key) in (int, float, bool) for key in keys):
        return f"numbers for the keys of {x}: an array has no {type(keys[0]).__name__} to be compared with"
    return f"jnp.select([{i} == key for key in {x}], list({x}.values()))"


def _items(node: ast.expr, step: Step) -> tuple[list[Any] | None, list[Any]] | None:
    """Return the keys and values of the plain dict that a name or attribute holds, or None and the items of a list
    or tuple; None for anything else, literals included.
    """
    value = step.value_of(node.id) if isinstance(node, ast.Name) else None
    value = step.value_at(ast.unparse(node)) if isinstance(node, ast.Attribute) else value
    if type(value) is dict:
        return list(cast(dict[Any, Any], value)), list(cast(dict[Any, Any], value).values())
    return (None, list(cast(list[Any], value))) if type(value) in (list, tuple) else None


def _is_array(value: Any) -> bool:
    return type(value) in (int, float, bool, complex) or isinstance(value, (jax.Array, np.ndarray, np.generic))
