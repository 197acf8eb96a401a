"""Hints for an index that has no value yet: a mask, or the number of an item in a list or dict."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, cast

import jax
import numpy as np

from explorer.capture.frames import Step

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


def mask_hint(way: Sequence[ast.AST], step: Step) -> tuple[Sequence[ast.expr], str] | None:
    """Return the mask of `x[mask]`, `x.at[mask].get()` or `x.at[mask].set(v)`, and the code to write instead."""
    match way[-1]:
        case (
            ast.Call(
                func=ast.Attribute(
                    value=ast.Subscript(value=ast.Attribute(value=array, attr="at"), slice=mask), attr=method
                )
            ) as node
        ):
            if method == "get":
                return [mask], _selected(array, mask, way[:-1], node, step)
            new = node.args[0] if node.args else ast.Constant(0)
            written = ast.unparse(new) if method in ("set", "min", "max") else _operand(new)
            update = _UPDATES.get(method, "{new}").format(new=written, old=_operand(array))
            return [mask], f"jnp.where({_mask(mask, array, step)}, {update}, {ast.unparse(array)})"
        case ast.Subscript(value=array, slice=mask) as node:
            return [mask], _selected(array, mask, way[:-1], node, step)
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
        f"jnp.mean({x}, where={where}) and its like leave the others out"
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
    """Return callee, name and if it is a method for `jnp.mean(x[mask])` or `x[mask].mean()`; None for others."""
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
        return f"jax.lax.switch({number}, {branches}, x) calls one of them, with its arguments in the place of x"
    if not values or not all(map(_is_array, values)) or len({np.shape(value) for value in values}) > 1:
        return f"arrays of one shape in the place of {x}: others can't be chosen by a value"
    if keys is None:
        return f"jnp.asarray({x})[{i}]"
    if not all(type(key) in (int, float, bool) for key in keys):
        return f"numbers for the keys of {x}: an array has no {type(keys[0]).__name__} to be compared with"
    return f"jnp.select([{i} == key for key in {x}], list({x}.values()))"


def _items(node: ast.expr, step: Step) -> tuple[list[Any] | None, list[Any]] | None:
    """Return the keys and values of a plain dict, the items of a plain list or tuple; None for others."""
    value = step.value_of(node.id) if isinstance(node, ast.Name) else None
    value = step.value_at(ast.unparse(node)) if isinstance(node, ast.Attribute) else value
    if type(value) is dict:
        return list(cast(dict[Any, Any], value)), list(cast(dict[Any, Any], value).values())
    return (None, list(cast(list[Any], value))) if type(value) in (list, tuple) else None


def _is_array(value: Any) -> bool:
    return type(value) in (int, float, bool, complex) or isinstance(value, (jax.Array, np.ndarray, np.generic))
