"""Indices outside of an array: NumPy raises, a compiled program reads another element or drops the write."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from explorer.model.findings import Finding
from explorer.model.graph import Frame
from explorer.pitfalls.constant_values import ConstantValues
from explorer.pitfalls.equations import Body, Equation
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import expression_at, frame_location, short_text
from explorer.pitfalls.rule import rule

_OPS = ("dynamic_slice", "dynamic_update_slice", "gather")
_TAKE = ("take", "take_along_axis", "dynamic_slice", "dynamic_slice_in_dim", "dynamic_index_in_dim", "slice_in_dim")
_PUT = ("dynamic_update_slice", "dynamic_update_slice_in_dim", "dynamic_update_index_in_dim")
_AT = ("get", "set", "add", "subtract", "multiply", "mul", "divide", "power", "min", "max", "apply")


@rule("out-of-bounds", "EX016", "error", "notebooks/Common_Gotchas_in_JAX.html#out-of-bounds-indexing", passive=True)
def out_of_bounds(evidence: Evidence) -> Iterator[Finding]:
    """An index outside of an array silently reads another element, or drops the write."""
    program = evidence.program
    constants = ConstantValues(program)
    reported: set[Frame] = set()
    ops = [op for op in program.by_op if op in _OPS or op.startswith("scatter")]
    for equation in program.of(*ops) if ops else ():
        frame = program.frame(equation)
        if frame is None or frame in reported or "transpose" in equation.transform:
            continue
        finding = _check(equation, frame, constants)
        if finding is not None:
            reported.add(frame)
            yield finding
    yield from _at_the_arguments(evidence, reported)


def _at_the_arguments(evidence: Evidence, reported: set[Frame]) -> Iterator[Finding]:
    """Yield findings for indices that are outside for the passed arguments. Only in lint(): a compile runs nothing."""
    run = evidence.checked if evidence.recording is not None else None
    if run is None:
        return
    for place, operands in run.indexed.values():
        alone = Equation(place.equation, run.program.main)
        is_one_hot = alone.op == "eq"
        outside = next(_beyond_one_hot(operands) if is_one_hot else _outside(alone, RunValues(alone, operands)), None)
        if outside is None:
            continue
        equation = run.equation(place)
        frame = evidence.program.frame(equation)
        if frame is None or frame in reported:
            continue
        values = RunValues(equation, operands)
        finding = _one_hot_finding(frame, *outside) if is_one_hot else _check(equation, frame, values)
        if finding is not None:
            reported.add(frame)
            yield finding


def _beyond_one_hot(operands: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """Yield a class that `jax.nn.one_hot` has no place for, and the number of classes. -1 often means no class."""
    labels, classes = operands
    if labels.dtype.kind in "iu" and labels.size and labels.max() >= classes.size > 0:
        yield int(labels.max()), int(classes.size)


def _one_hot_finding(frame: Frame, label: int, count: int) -> Finding:
    node = expression_at(frame)
    return out_of_bounds.finding(
        f"`{'one_hot' if node is None else short_text(node)}` makes a row of zeros for class {label}: there are "
        f"{count} classes, 0 to {count - 1}",
        evidence=f"a passed label is {label}",
        fix=f"num_classes={label + 1}, or labels that start at 0",
        severity="warning",
        **frame_location(frame),
    )


class RunValues:
    """Operands of an equation in a run, instead of a program's constants."""

    def __init__(self, equation: Equation, operands: Sequence[Any]) -> None:
        self.by_atom = {id(atom): operand for atom, operand in zip(equation.inputs, operands, strict=True)}

    def value(self, body: Body, atom: Any) -> Any:
        return self.by_atom[id(atom)]

    def columns(self, body: Body, atom: Any) -> list[Any]:
        whole = self.by_atom[id(atom)]
        return [whole[..., i] for i in range(whole.shape[-1])]


def _check(equation: Equation, frame: Frame, constants: ConstantValues | RunValues) -> Finding | None:
    outside = next(_outside(equation, constants), None)
    indexed = _indexed(frame) if outside is not None else None
    return None if outside is None or indexed is None else _finding(equation, frame, *indexed, *outside)


def _finding(
    equation: Equation, frame: Frame, node: ast.expr, array: str, axis: int, index: int, size: int, width: int
) -> Finding:
    text = short_text(node)
    shape = tuple(equation.inputs[0].aval.shape)
    first = index if index >= 0 else index - size  # as it was written: JAX added the size
    what = f"position {first}" if width == 1 else f"positions {first} to {first + width - 1}"
    happens = _happens(equation, index, size - width)
    return out_of_bounds.finding(
        f"`{text}` is outside of `{array}`, whose shape is {shape}: {happens}, without an error",
        evidence=f"it asks for {what} of axis {axis}, which has {size}",
        fix=f"an index from 0 to {size - width}" + (", or from the end with -1" if width == 1 else "") + _chosen(node),
        **frame_location(frame),
    )


def _outside(equation: Equation, constants: ConstantValues | RunValues) -> Iterator[tuple[int, int, int, int]]:
    shape = equation.inputs[0].aval.shape
    for axis, start, width in _starts(equation, constants):
        size = shape[axis]  # a symbolic one is no int, and no index is outside of it for certain
        if start is None or not isinstance(size, int):
            continue
        for index in np.unique(start)[[0, -1]] if start.size else ():
            if index < 0 or index + width > size:
                yield axis, int(index), size, width


def _starts(equation: Equation, constants: ConstantValues | RunValues) -> list[tuple[int, Any, int]]:
    """Return (axis, start, width) of what is accessed along each axis; the start is None if an argument decides it."""
    body, (array, *others) = equation.body, equation.inputs
    if equation.op in ("dynamic_slice", "dynamic_update_slice"):
        is_read = equation.op == "dynamic_slice"
        shape = equation.params["slice_sizes"] if is_read else others[0].aval.shape
        operands = others[: len(array.aval.shape)] if is_read else others[1:]
        return [(axis, constants.value(body, start), shape[axis]) for axis, start in enumerate(operands)]
    numbers = equation.params["dimension_numbers"]
    if equation.op == "gather":
        axes = numbers.start_index_map
        widths: list[Any] = [*equation.params["slice_sizes"]]
        width_of = dict(enumerate(widths))
    else:
        # A scatter writes windows of the updates; the axes that are inserted or batched have no window, and width 1.
        axes = numbers.scatter_dims_to_operand_dims
        narrow = (*numbers.inserted_window_dims, *getattr(numbers, "operand_batching_dims", ()))
        windowed = [axis for axis in range(len(array.aval.shape)) if axis not in narrow]
        sizes: list[Any] = [others[1].aval.shape[i] for i in numbers.update_window_dims]
        width_of = dict(zip(windowed, sizes, strict=False))
    starts = zip(axes, constants.columns(body, others[0]), strict=False)
    return [(axis, start, width_of.get(axis, 1)) for axis, start in starts]


def _happens(equation: Equation, index: int, last: int) -> str:
    mode = str(equation.params.get("mode", "clip")).lower()
    nearest = 0 if index < 0 else last
    if equation.op == "dynamic_slice":
        return f"it reads from position {nearest} instead"
    if equation.op == "dynamic_update_slice":
        return f"it writes to position {nearest} instead"
    if equation.op == "gather":
        fill = equation.params.get("fill_value")
        return f"it reads {fill if fill is not None else 'NaN'}" if "fill" in mode else f"it reads position {nearest}"
    return "nothing is written there" if "drop" in mode else f"it writes to position {nearest} instead"


def _chosen(node: ast.expr) -> str:
    """Return how to state what happens outside of the bounds; "" if JAX has no way."""
    match node:
        case ast.Subscript(value=value, slice=index):
            at = ast.Subscript(ast.Attribute(value, "at", ast.Load()), index, ast.Load())
            read = f'{ast.unparse(at)}.get(mode="fill", fill_value=0)'
        case ast.Call(func=ast.Attribute(value=ast.Subscript(value=ast.Attribute(attr="at")), attr=name)):
            is_read = name == "get"
            written = f'{ast.unparse(node)[:-1]}{", " if node.args else ""}mode="{"fill" if is_read else "drop"}"'
            if not is_read:
                return f"; {written}) drops indices outside"
            read = f"{written}, fill_value=0)"
        case ast.Call(func=ast.Attribute(attr="take" | "take_along_axis") | ast.Name(id="take" | "take_along_axis")):
            read = f'{ast.unparse(node)[:-1]}, mode="fill", fill_value=0)'
        case _:
            return ""
    return f"; {read} chooses what is read outside"


def _indexed(frame: Frame) -> tuple[ast.expr, str] | None:
    """Return the user's expression and its array; None if a mode is given, or nothing is indexed."""
    node = expression_at(frame)
    array: ast.expr
    match node:
        case ast.Subscript(value=array):
            pass
        case ast.Call(keywords=keywords) if any(keyword.arg == "mode" for keyword in keywords):
            return None
        case ast.Call(func=ast.Attribute(value=ast.Subscript(value=ast.Attribute(value=array, attr="at")), attr=name)):
            if name not in _AT:
                return None
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[array, *_]) if name in (*_TAKE, *_PUT):
            pass
        case ast.Call(func=ast.Attribute(value=array, attr="take")):
            pass
        case ast.Call(func=ast.Attribute(attr=name), args=[_, array, *_]) if name.startswith("segment_"):
            pass
        case _:
            return None
    return node, ast.unparse(array)
