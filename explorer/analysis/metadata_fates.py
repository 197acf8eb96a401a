"""Fates of equations according to the compiler's metadata: instructions with the equation's place and primitive."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.hlo_operations import hlo_name
from explorer.analysis.kernel_costs import PLUMBING
from explorer.model.fates import NO_PASS
from explorer.model.graph import Graph, Ints

# Equations that only call. A scatter or a reduction computes itself.
_CALLS = re.compile(
    r"^(?:jit|pjit|.*call.*|remat\d?|checkpoint|custom_.*|shard_map|scan|while|cond|.*\.(?:while|case|if))$"
)
_CONTROL = frozenset(["while", "conditional", "call"])
# Instructions that accompany another instruction of the same equation.
_HELPERS = frozenset(
    ["broadcast", "bitcast", "constant", "copy", "iota", "reshape", "transpose", "convert", "parameter"]
)

_NONE: list[int] = []
_APART = "distinguished from similar ones by its operands and readers"


@dataclass(slots=True)
class Row:
    """Fate of one equation, as in `Fate`; `kernels` are rows of the `hlo` stage, `step` is the pass's number."""

    kind: str = ""
    kernels: tuple[int, ...] = ()
    inferred: bool = False
    why: str = ""
    step: int = NO_PASS
    before: str = ""
    after: str = ""


def only_calls(op: str) -> bool:
    return _CALLS.search(op) is not None


_FUSION, _LOOP, _RUNS, _MAIN, _FREE, _VALUE = (1 << bit for bit in range(6))


@dataclass(frozen=True, eq=False)
class Instructions:
    """The graph of the `hlo` stage with the columns that fates need.

    Args:
        graph: Of the `hlo` stage.
        op_code, type_code: The graph's columns, as lists.
        kernel: Kernel that runs each instruction; -1 for plumbing.
        flags: Kind of each instruction, as bits.
        inside: Number of instructions that compute inside each kernel, without itself.
        code: Code of each op.
    """

    graph: Graph
    op_code: list[int]
    type_code: list[int]
    kernel: list[int]
    flags: list[int]
    inside: Counter[int]
    code: dict[str, int]


def instructions_of(graph: Graph, kernels: Ints) -> Instructions:
    """Return the instructions of the `hlo` stage; `kernels` is the kernel that runs each."""
    kernel: list[int] = kernels.tolist()
    op_code: list[int] = graph.op.tolist()
    flags = np.asarray([_flags(op) for op in graph.ops], np.int32)[graph.op]
    is_inside = (flags & _RUNS > 0) & (kernels >= 0) & (kernels != np.arange(len(kernels)))
    inside: Counter[int] = Counter(kernels[is_inside].tolist())
    code = {op: code for code, op in enumerate(graph.ops)}
    return Instructions(graph, op_code, graph.type.tolist(), kernel, flags.tolist(), inside, code)


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


class NamedEquations(NamedTuple):
    """A stage's equations with the instructions that carry their names.

    Args:
        graph: Of the stage.
        is_equation: True for nodes that are equations, shape `[n]`.
        shares: For each node, the number of equations that its instructions may belong to; 0 if structure decided.
        linked: Instructions that carry a node's name.
        computes: True for nodes that do more than move or reshape, shape `[n]`.
    """

    graph: Graph
    is_equation: NDArray[np.bool_]
    shares: Sequence[int]
    linked: dict[int, list[int]]
    computes: NDArray[np.bool_]


def metadata_fates(equations: NamedEquations, hlo: Instructions) -> list[Row]:
    graph, is_equation, shares, linked, computes = equations
    callers = {*graph.caller.tolist()}
    own_code = [hlo.code.get(hlo_name(op), -1) for op in graph.ops]
    is_only_call = [only_calls(op) for op in graph.ops]
    # Equations with the same instructions have the same fate.
    shared: dict[tuple[int, int, bool, int, bool], Row] = {}
    rows: list[Row] = []
    codes: list[int] = graph.op.tolist()
    for node, (op, does, runs) in enumerate(zip(codes, is_equation.tolist(), computes.tolist(), strict=True)):
        instructions, calls = linked.get(node, _NONE), node in callers
        key = (id(instructions), op, calls, shares[node], runs)
        if not does:
            rows.append(Row())
            continue
        row = shared.get(key)
        if row is None:
            if runs:
                # A remaining reshape of an operand is no evidence of the operation.
                instructions = [i for i in instructions if hlo.flags[i] & (_MAIN | _LOOP | _FUSION | _VALUE)]
            row = shared[key] = _row(hlo, instructions, own_code[op], shares[node], calls and is_only_call[op])
        rows.append(row)
    return rows


def _row(hlo: Instructions, linked: Sequence[int], own_code: int, share: int, is_only_call: bool) -> Row:
    """Return the fate of an equation.

    Args:
        hlo: The instructions.
        linked: Instructions that carry the equation's name.
        own_code: Op code of the instruction that does the equation's work, or -1.
        share: Number of equations that `linked` may belong to; 0 if structure decided.
        is_only_call: True if the equation only calls.
    """
    flags = hlo.flags
    rows = _preferred(linked, lambda i: not flags[i] & _FUSION)
    if own_code >= 0:
        rows = _preferred(rows, lambda i: hlo.op_code[i] == own_code)
    if control := [i for i in rows if flags[i] & _LOOP]:
        return Row("kept", tuple(control), False, "it is the loop, branch or call itself")
    if is_only_call:
        return Row("inlined", (), False, "replaced by the computation that it calls")
    runs = [i for i in rows if flags[i] & _RUNS]
    return running(hlo, runs, share) if runs else _plumbing([flags[i] for i in rows])


def _preferred(rows: Sequence[int], is_better: Callable[[int], object]) -> Sequence[int]:
    """Return the rows for which `is_better` holds, or all if none does."""
    return [i for i in rows if is_better(i)] or rows


def running(hlo: Instructions, runs: Sequence[int], share: int = 1, along: Sequence[int] = ()) -> Row:
    """Return the fate of an equation with instructions in kernels: kept, fused, duplicated or unknown.

    Args:
        hlo: The instructions of the program.
        runs: Those of the equation that compute.
        share: Number of equations that `runs` may belong to; 0 if structure decided.
        along: Other instructions of the equation, for the question if a kernel does nothing else.
    """
    flags = hlo.flags
    main = _preferred(runs, lambda i: flags[i] & _MAIN)
    kernels = tuple(sorted({hlo.kernel[i] for i in main} - {-1}))
    if share > 1:
        return Row("unknown", kernels, True, f"one of {share} equations that may have produced the instructions there")
    times = _most_copies(hlo, main) if len(kernels) > 1 else 0
    if times > 1:
        return Row("duplicated", kernels, not share, f"computed {times} times, in {len(kernels)} kernels")
    is_alone = _are_whole(hlo, kernels, {*runs, *along})
    return Row("kept" if is_alone else "fused", kernels, not share, "" if share else _APART)


def _are_whole(hlo: Instructions, kernels: Sequence[int], mine: Set[int]) -> bool:
    """Return True if the kernels do nothing but the instructions in `mine`."""
    # A fusion carries the number of its root, but isn't one of the instructions inside.
    inside = Counter([hlo.kernel[i] for i in mine if hlo.flags[i] & _RUNS and not hlo.flags[i] & _FUSION])
    return all([not hlo.flags[i] & _FUSION or inside[i] >= hlo.inside[i] > 0 for i in kernels])


def _most_copies(hlo: Instructions, rows: Sequence[int]) -> int:
    """Return how many of `rows` have the most frequent operation and type, fusions excluded; 0 for no rows."""
    copies = Counter((hlo.op_code[i], hlo.type_code[i]) for i in rows if not hlo.flags[i] & _FUSION)
    return max(copies.values(), default=0)


def _plumbing(kinds: Sequence[int]) -> Row:
    """Return the fate of an equation whose instructions run nothing, from their flags.

    Folded if all are constants, eliminated if one is a free view of the same bytes, else unknown.
    """
    if kinds and all(flag & _VALUE for flag in kinds):
        return Row("folded", (), False, "its value is a constant of the program")
    if any(flag & _FREE for flag in kinds):
        return Row("eliminated", (), False, "only another view of the same bytes")
    return Row("unknown")
