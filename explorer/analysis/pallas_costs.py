"""FLOPs and bytes of Pallas kernels: those of the author's `pl.CostEstimate`, else the kernel's jaxpr times its grid.

Counted like HLO (`cost.py`): two FLOPs for a multiply-add, one for each element of an elementwise operation, an
exponential included. A count is exact or unknown: a loop without a length, a branch whose predicate depends on data,
and an operation in no table leave it unknown.
"""

from __future__ import annotations

import math
import re
from ast import literal_eval
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from explorer.analysis.graphs import is_op
from explorer.model.graph import Graph, Ints, Node
from explorer.model.links import EquationSets
from explorer.model.types import parse_type

_ELEMENTWISE = frozenset(
    [
        *("abs", "acos", "acosh", "add", "add_any", "and", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil"),
        *("clamp", "convert_element_type", "cos", "cosh", "div", "eq", "erf", "exp", "exp2", "expm1", "floor", "ge"),
        *("gt", "is_finite", "le", "log", "log1p", "logistic", "lt", "max", "min", "mul", "ne", "neg", "not", "or"),
        *("pow", "rem", "round", "rsqrt", "select_n", "shift_left", "shift_right_arithmetic", "shift_right_logical"),
        *("sign", "sin", "sinh", "sqrt", "square", "sub", "tan", "tanh", "xor"),
    ]
)
# Operations that move, rename or await data.
_MOVING = frozenset(
    [
        *("parameter", "constant", "get", "swap", "load", "masked_load", "masked_swap", "program_id", "num_programs"),
        *("axis_index", "broadcast_in_dim", "reshape", "transpose", "squeeze", "expand_dims", "iota", "concatenate"),
        *("slice", "pad", "dynamic_slice", "dynamic_update_slice", "gather", "rev", "split", "copy", "copy_p"),
        *("multiple_of", "max_contiguous", "optimization_barrier", "bitcast_convert_type", "debug_print"),
        *("dma_start", "dma_wait", "semaphore_signal", "semaphore_wait"),
    ]
)
_REDUCTIONS = frozenset(("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or"))
_CALLS = frozenset(
    [
        *("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "remat", "checkpoint"),
        "run_scoped",
    ]
)
_KERNELS = ("pallas_call", "mpmd_map")
# The only mesh of `plgpu.kernel`: with several threads, each runs a part of the body that only its code knows.
_MESH = re.compile(r"\(Mesh\(grid=(?P<grid>\([^()]*\))(?:(?!Mesh\().)*num_threads=None(?:(?!Mesh\().)*\)")
_ESTIMATE = re.compile(r"\"?(flops|transcendentals|bytes_accessed)\"?\s*[=:]\s*\"?(\d+)")


class CallCost(NamedTuple):
    """FLOPs and bytes of one run of a call; NaN if unknown."""

    flops: float
    bytes: float


def read_estimate(text: str) -> CallCost | None:
    """Return the figures of a `pl.CostEstimate`, as a jaxpr or a custom call has it; None for another text.

    Example:
        >>> read_estimate("CostEstimate(flops=12, transcendentals=3, bytes_accessed=80, remote_bytes_transferred=0)")
        CallCost(flops=15.0, bytes=80.0)
    """
    figures = {name: float(number) for name, number in _ESTIMATE.findall(text)}
    if "flops" not in figures:
        return None
    return CallCost(figures["flops"] + figures.get("transcendentals", 0.0), figures.get("bytes_accessed", math.nan))


def kernel_costs(jaxpr: Graph, hlo: Graph, equations: EquationSets) -> Mapping[int, CallCost]:
    """Return the cost of each custom call of a program that is exactly one Pallas kernel of its jaxpr, by node."""
    calls: list[int] = np.flatnonzero(is_op(hlo, ("custom-call",))).tolist()
    rows: list[int] = np.flatnonzero(is_op(jaxpr, _KERNELS)).tolist()
    if not calls or not rows:
        return {}
    kernels = _Kernels(jaxpr)
    costs = {row: kernels.cost(row) for row in rows}
    sets = {node: [row for row in equations.of(node).tolist() if row in costs] for node in calls}
    return {node: costs[of_node[0]] for node, of_node in sets.items() if len(of_node) == 1}


class _Kernels:
    """Counts of the kernels of one jaxpr."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.elements = graph.sizes.elements[graph.type]
        self.called: dict[int, list[int]] = {}
        for number, group in enumerate(graph.groups):
            if group.caller >= 0:
                self.called.setdefault(group.caller, []).append(number)

    def cost(self, row: int) -> CallCost:
        attributes = Node(self.graph, row).attributes
        if (estimate := read_estimate(attributes.get("cost_estimate", ""))) is not None:
            return estimate
        written = _MESH.fullmatch(attributes.get("meshes", ""))
        grid = re.findall(r"[^\s(),]+", written["grid"] if written else attributes.get("grid", "?"))
        if not all(size.isdecimal() for size in grid):  # also of a size that is known only when it runs
            return CallCost(math.nan, math.nan)
        sizes = [int(size) for size in grid]
        of_groups = [self.group_flops(group, sizes) for group in self.called.get(row, ())]
        return CallCost(math.prod(sizes) * sum(of_groups), math.nan)

    def group_flops(self, group: int, grid: Sequence[int]) -> float:
        """Return the FLOPs of one run of the jaxpr `group`, the mean over the grid; NaN if unknown."""
        return math.fsum(self.flops(row, grid) for row in self.graph.members[group].tolist())

    def flops(self, row: int, grid: Sequence[int]) -> float:
        op, graph = self.graph.ops[int(self.graph.op[row])], self.graph
        if op in _MOVING:
            return 0.0
        if op in _ELEMENTWISE:
            return float(self.elements[row])
        if inner := self.called.get(row):
            return self.inner_flops(row, op, [self.group_flops(group, grid) for group in inner], grid)
        operands = self.operands(row)
        if op in _REDUCTIONS and len(operands):
            return float(self.elements[operands[0]] - self.elements[row])
        if op == "addupdate" and len(operands) > 1:
            return float(self.elements[operands[1]])
        attributes = Node(graph, row).attributes
        if op == "integer_pow":
            power = int(attributes["y"])
            products = abs(power).bit_length() + abs(power).bit_count() - 2
            return float(self.elements[row]) * (max(products, 0) + (power < 0))
        return self.product(row, operands, attributes) if op == "dot_general" else math.nan

    def inner_flops(self, row: int, op: str, of_groups: Sequence[float], grid: Sequence[int]) -> float:
        if not any(of_groups):  # NaN is true
            return 0.0
        if op in _CALLS and len(of_groups) == 1:
            return of_groups[0]
        if op == "scan":
            return int(Node(self.graph, row).attributes["length"]) * math.fsum(of_groups)
        if op != "cond":
            return math.nan
        if len({*of_groups}) == 1:
            return of_groups[0]
        share = self.share(row, grid)
        return of_groups[0] * (1 - share) + of_groups[1] * share if len(of_groups) == 2 else math.nan

    def share(self, row: int, grid: Sequence[int]) -> float:
        """Return the share of the grid where a branch is taken that `pl.when(pl.program_id(axis) == number)` writes.

        NaN for another predicate.
        """
        predicate = self.maker(row)
        if predicate >= 0 and self.op(predicate) == "convert_element_type":
            predicate = self.maker(predicate)
        position = self.maker(predicate) if predicate >= 0 and self.op(predicate) == "eq" else -1
        if position < 0 or self.op(position) != "program_id" or len(self.operands(predicate)) != 1:
            return math.nan
        axis = int(Node(self.graph, position).attributes["axis"])
        number = re.search(r"=(\d+):", Node(self.graph, predicate).attributes.get("literals", ""))
        return float(int(number[1]) < grid[axis]) / grid[axis] if number and axis < len(grid) else math.nan

    def product(self, row: int, operands: Ints, attributes: Mapping[str, str]) -> float:
        contracted: Sequence[int] = literal_eval(attributes["dimension_numbers"])[0][0]
        shape: Sequence[int] = parse_type(self.graph.types[int(self.graph.type[operands[0]])]).arrays[0].shape
        return 2 * float(self.elements[row]) * math.prod([shape[int(dim)] for dim in contracted])

    def op(self, row: int) -> str:
        return self.graph.ops[int(self.graph.op[row])]

    def operands(self, row: int) -> Ints:
        return self.graph.operand[self.graph.operand_start[row] : self.graph.operand_start[row + 1]]

    def maker(self, row: int) -> int:
        operands = self.operands(row)
        return int(operands[0]) if len(operands) else -1
