"""Values that a program computes without its arguments, by NumPy."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from explorer.pitfalls.equations import Body, Equation, Program, is_literal

# Indices that a person writes are small, those of a grid (`np.mgrid`) are as many as its points; an iota over a large
# array would be computed for nothing.
_MAX_ELEMENTS = 65_536  # elements
_MAX_DEPTH = 30  # operations


class ConstantValues:
    """Values of a program that depend on no argument, computed with NumPy as far as indices need them."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._values: dict[tuple[int, Any], np.ndarray[Any, Any] | None] = {}

    def value(self, body: Body, atom: Any, depth: int = 0) -> np.ndarray[Any, Any] | None:
        """Return a variable's value; None if it depends on arguments, is large, or needs another operation.

        The operations that NumPy computes here are in `_OPERATIONS`.
        """
        body, atom = self.program.origin(body, atom)
        if is_literal(atom):
            return np.asarray(atom.val)
        key = id(body), atom
        if key not in self._values:
            self._values[key] = self._compute(body, atom, depth) if depth < _MAX_DEPTH else None
        return self._values[key]

    def columns(self, body: Body, atom: Any) -> list[np.ndarray[Any, Any] | None]:
        """Return the index arrays along the last axis, one for each entry; None for one that isn't constant."""
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
    return is_known and math.prod(shape or ()) <= _MAX_ELEMENTS


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


def _of_values(compute: Callable[..., Any]) -> Callable[[Equation, Sequence[Any]], Any]:
    return lambda _, values: compute(*values)


_COMPARISONS = ("lt", "gt", "ge", "le", "eq", "ne")
_OPERATIONS: dict[str, Callable[[Equation, Sequence[Any]], Any]] = {
    **{name: _of_values(getattr(operator, name)) for name in ("add", "sub", "mul", "neg", *_COMPARISONS)},
    "max": _of_values(np.maximum),
    "min": _of_values(np.minimum),
    "clamp": lambda _, v: np.clip(v[1], v[0], v[2]),
    "select_n": lambda _, v: np.select([v[0] == i for i in range(len(v) - 1)], v[1:]),
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
