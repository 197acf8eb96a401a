"""What the compiler's own metadata tells of each equation: the instructions that bear its place and primitive."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from explorer.analysis.cost.kernels import PLUMBING, kernel_of
from explorer.analysis.links.keys import is_equation
from explorer.model.graph import Graph

if TYPE_CHECKING:
    from explorer.model.capture import Capture

__all__ = ["Instructions", "Row", "Told", "only_calls"]

# Equations that only call; a scatter or a reduction does something itself.
_CALLS = re.compile(
    r"^(?:jit|pjit|.*call.*|remat\d?|checkpoint|custom_.*|shard_map|scan|while|cond|.*\.(?:while|case|if))$"
)
_CONTROL = frozenset(["while", "conditional", "call"])
# Instructions that come along with another one of the same equation.
_HELPERS = frozenset(
    ["broadcast", "bitcast", "constant", "copy", "iota", "reshape", "transpose", "convert", "parameter"]
)

_NONE: list[int] = []
_APART = "told from others like it by what it reads, serves and follows"


@dataclass(slots=True)
class Row:
    """The fate of one equation while it is being found; `kernels` are rows of the `hlo` stage."""

    kind: str = ""
    kernels: tuple[int, ...] = ()
    inferred: bool = False
    why: str = ""


def only_calls(op: str) -> bool:
    """Whether an equation only passes on to what it calls."""
    return _CALLS.search(op) is not None


_FUSION, _LOOP, _RUNS, _MAIN, _FREE, _VALUE = (1 << bit for bit in range(6))


class Instructions:
    """What fates ask of the instructions of the `hlo` stage, the same for every stage before it.

    Attributes:
        kernel: Of each instruction, the kernel that runs it; -1 for plumbing.
        flags: What kind of instruction it is, as bits.
        busy: How many instructions are inside each kernel.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.kernel: list[int] = kernel_of(graph).tolist()
        self.code: list[int] = graph.op.tolist()
        self.type: list[int] = graph.type.tolist()
        of_op = [_flags(op) for op in graph.ops]
        self.flags = [of_op[code] for code in self.code]
        self.busy = Counter(k for i, k in enumerate(self.kernel) if k not in (i, -1) and self.flags[i] & _RUNS)
        self.named = {op: code for code, op in enumerate(graph.ops)}

    def op(self, row: int) -> str:
        return self.graph.ops[self.code[row]]


def _flags(op: str) -> int:
    runs = op not in PLUMBING
    return (
        _FUSION * (op == "fusion")
        | _LOOP * (op in _CONTROL)
        | _RUNS * runs
        | _MAIN * (runs and op not in _HELPERS)
        | _FREE * (op == "bitcast")
        | _VALUE * (op == "constant")
    )


class Told:
    """What the metadata of the instructions say."""

    def __init__(self, capture: Capture, stage: str) -> None:
        self.graph, self.hlo = capture.stage(stage).graph, capture.instructions
        self.links = capture.links
        self.calls = {group.caller for group in self.graph.groups}
        self.sharing = self.links.sharing(stage, "hlo")
        self.linked = self.links.table(stage, "hlo")
        lists = {id(rows): rows for rows in self.linked.values()}.values()
        self.known = {self.hlo.kernel[i] for rows in lists for i in rows}
        self.op: list[int] = self.graph.op.tolist()
        # A jaxpr's operation may be several of StableHLO's, of which each has its own instructions.
        own = [op.removeprefix("stablehlo.").replace("_in_dim", "").replace("_", "-") for op in self.graph.ops]
        self.own = [self.hlo.named.get(op, -1) for op in own]
        self.only_calls = [only_calls(op) for op in self.graph.ops]
        equations = is_equation(self.graph).tolist()
        self.known_rows: dict[tuple[int, int, bool, int], Row] = {}
        self.rows = [self.row_of(i) if equations[i] else Row() for i in range(len(self.graph))]

    def row_of(self, node: int) -> Row:
        """What is asked once for all equations that have the same instructions."""
        linked = self.linked.get(node, _NONE)
        key = (id(linked), self.op[node], node in self.calls, self.sharing[node])
        row = self.known_rows.get(key)
        if row is None:
            row = self.known_rows[key] = self.row(node, linked)
        return row

    def row(self, node: int, linked: Sequence[int]) -> Row:
        """Of one equation, given the instructions that are it."""
        hlo, flags, op = self.hlo, self.hlo.flags, self.op[node]
        rows = [i for i in linked if not flags[i] & _FUSION] or linked
        own = self.own[op]
        if own >= 0 and len(rows) > 1:
            rows = [i for i in rows if hlo.code[i] == own] or rows
        kinds = [flags[i] for i in rows]
        if control := [i for i, flag in zip(rows, kinds, strict=True) if flag & _LOOP]:
            return Row("kept", tuple(control), False, "it is the loop, branch or call itself")
        if node in self.calls and self.only_calls[op]:
            return Row("inlined", (), False, "what it calls stands in its place")
        runs = [i for i, flag in zip(rows, kinds, strict=True) if flag & _RUNS]
        if not runs:
            return _plumbing(kinds)
        main = [i for i in runs if flags[i] & _MAIN] or runs
        kernels = tuple(sorted({hlo.kernel[i] for i in main} - {-1}))
        many = self.sharing[node]
        why = f"one of {many} equations that its instructions may be of" if many > 1 else "" if many else _APART
        if len(kernels) > 1:
            copies = Counter((hlo.code[i], hlo.type[i]) for i in main if not flags[i] & _FUSION)
            times = max(copies.values(), default=0)
            if times > max(many, 1):
                return Row("duplicated", kernels, many != 1, f"computed {times} times, in {len(kernels)} kernels")
        mine = [hlo.kernel[i] for i in runs]
        is_alone = all(not flags[i] & _FUSION or mine.count(i) >= hlo.busy[i] > 0 for i in kernels)
        return Row("kept" if is_alone else "fused", kernels, many != 1, why)


def _plumbing(kinds: Sequence[int]) -> Row:
    """Of an equation whose instructions run nothing."""
    if kinds and all(flag & _VALUE for flag in kinds):
        return Row("folded", (), False, "its value is a constant of the program")
    if any(flag & _FREE for flag in kinds):
        return Row("eliminated", (), False, "only another view of the same bytes")
    return Row("unmapped")
