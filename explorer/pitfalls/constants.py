"""Values of a program that no argument decides: indices, sizes and steps that the user wrote as numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from explorer.pitfalls.equations import Body, Equation, Program, is_literal

# Indices that a person writes are small, those of a grid (`np.mgrid`) are as many as its points; an iota over a large
# array would be computed for nothing.
_MOST = 65_536  # elements
_DEEPEST = 30  # operations


class ConstantValues:
    """The values of a program that depend on no argument, computed with NumPy as far as indices need it."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._values: dict[tuple[int, Any], np.ndarray[Any, Any] | None] = {}

    def value(self, body: Body, atom: Any, depth: int = 0) -> np.ndarray[Any, Any] | None:
        """The value of a variable or literal; None if it depends on arguments, or is large."""
        body, atom = self.program.origin(body, atom)
        if is_literal(atom):
            return np.asarray(atom.val)
        key = id(body), atom
        if key not in self._values:
            self._values[key] = self._compute(body, atom, depth) if depth < _DEEPEST else None
        return self._values[key]

    def columns(self, body: Body, atom: Any) -> list[np.ndarray[Any, Any] | None]:
        """The last axis of some indices, one by one: some may be constant where others are not."""
        count: int = atom.aval.shape[-1] if atom.aval.shape else 1
        whole = self.value(body, atom)
        if whole is not None:
            return [whole[..., i] if whole.ndim else whole for i in range(count)]
        maker = self.program.maker(body, atom)
        if maker is None or maker.op != "concatenate" or maker.params["dimension"] != len(atom.aval.shape) - 1:
            return [None] * count
        return [column for part in maker.inputs for column in self.columns(maker.body, part)]

    def _compute(self, body: Body, atom: Any, depth: int) -> np.ndarray[Any, Any] | None:
        if not _is_small(getattr(atom.aval, "shape", None)):
            return None
        maker = body.makers.get(atom)
        if maker is None:
            const = body.consts.get(atom)
            return None if const is None or atom.aval.dtype.kind not in "iub" else np.asarray(const)
        compute = _OPERATIONS.get(maker.op)
        if compute is None or len(maker.outputs) != 1:
            return None
        values = [self.value(maker.body, operand, depth + 1) for operand in maker.inputs]
        return None if any(value is None for value in values) else np.asarray(compute(maker, values))


def _is_small(shape: Sequence[Any] | None) -> bool:
    is_known = shape is not None and all(isinstance(size, int) for size in shape)
    return is_known and math.prod(shape or ()) <= _MOST


def _select(_: Equation, values: Sequence[Any]) -> Any:
    which, *cases = values
    return np.select([which == i for i in range(len(cases))], cases)


def _broadcast(equation: Equation, values: Sequence[Any]) -> Any:
    shape, axes = equation.params["shape"], equation.params["broadcast_dimensions"]
    inner = [1] * len(shape)
    for axis, size in zip(axes, values[0].shape, strict=True):
        inner[axis] = size
    return np.broadcast_to(values[0].reshape(inner), shape)


def _slice(equation: Equation, values: Sequence[Any]) -> Any:
    params = equation.params
    strides = params["strides"] or (1,) * values[0].ndim
    bounds = zip(params["start_indices"], params["limit_indices"], strides, strict=True)
    return values[0][tuple(slice(*bound) for bound in bounds)]


def _iota(equation: Equation, _: Sequence[Any]) -> Any:
    shape, axis = equation.params["shape"], equation.params["dimension"]
    line = np.arange(shape[axis], dtype=equation.params["dtype"])
    return np.broadcast_to(line.reshape([-1 if i == axis else 1 for i in range(len(shape))]), shape)


_OPERATIONS: dict[str, Callable[[Equation, Sequence[Any]], Any]] = {
    "add": lambda _, v: v[0] + v[1],
    "sub": lambda _, v: v[0] - v[1],
    "mul": lambda _, v: v[0] * v[1],
    "neg": lambda _, v: -v[0],
    "max": lambda _, v: np.maximum(v[0], v[1]),
    "min": lambda _, v: np.minimum(v[0], v[1]),
    "clamp": lambda _, v: np.clip(v[1], v[0], v[2]),
    "lt": lambda _, v: v[0] < v[1],
    "gt": lambda _, v: v[0] > v[1],
    "ge": lambda _, v: v[0] >= v[1],
    "le": lambda _, v: v[0] <= v[1],
    "eq": lambda _, v: v[0] == v[1],
    "ne": lambda _, v: v[0] != v[1],
    "select_n": _select,
    "convert_element_type": lambda e, v: v[0].astype(e.params["new_dtype"]),
    "squeeze": lambda e, v: v[0].squeeze(e.params["dimensions"]),
    "expand_dims": lambda e, v: np.expand_dims(v[0], e.params["dimensions"]),
    "reshape": lambda e, v: v[0].reshape(e.params["new_sizes"]),
    "transpose": lambda e, v: v[0].transpose(e.params["permutation"]),
    "concatenate": lambda e, v: np.concatenate(v, e.params["dimension"]),
    "copy": lambda _, v: v[0],
    "broadcast_in_dim": _broadcast,
    "slice": _slice,
    "iota": _iota,
}
