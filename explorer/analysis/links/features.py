"""What an operation does, comparable between StableHLO and HLO: opcode, type, and the attributes that tell it apart."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from explorer.model.graph import Graph, Ints
from explorer.model.types import parse_type

_OPCODES = {"dot_general": "dot", "broadcast_in_dim": "broadcast", "case": "conditional", "if": "conditional"}
# By opcode, the attributes that tell it apart: in HLO, in StableHLO.
_ATTRIBUTES: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "broadcast": (["dimensions"], ["dims"]),
    "compare": (["direction"], ["comparison_direction"]),
    "concatenate": (["dimensions"], ["dim"]),
    "dot": (["lhs_contracting_dims", "rhs_contracting_dims"], ["contracting_dims"]),
    "dynamic-slice": (["dynamic_slice_sizes"], ["sizes"]),
    "fft": (["fft_type", "fft_length"], ["type", "length"]),
    "iota": (["iota_dimension"], ["dim"]),
    "pad": (["padding"], ["low", "high", "interior"]),
    "reduce": (["dimensions"], ["dimensions"]),
    "reverse": (["dimensions"], ["dims"]),
    "slice": (["slice"], ["slice"]),
    "sort": (["dimensions"], ["dimension"]),
    "transpose": (["dimensions"], ["dims"]),
}
_STRIDE_OF_ONE = re.compile(r"(\d+:\d+):1(?!\d)")


class FeatureCodes:
    """Codes for what operations do, the same in both stages for what is the same."""

    def __init__(self) -> None:
        self._code: dict[object, int] = {}

    def opcodes(self, graph: Graph) -> Ints:
        """Of each node, a code of its opcode."""
        return self._codes([opcode_of(op) for op in graph.ops])[graph.op]

    def types(self, graph: Graph) -> tuple[Ints, Ints]:
        """Of each node, codes of its first array's number of elements and of its dtype, and of its dimensions."""
        parsed = [parse_type(text).arrays[:1] for text in graph.types]
        sizes = self._codes([(a[0].elements, dtype_name(a[0].dtype)) if a else () for a in parsed])
        shapes = self._codes([a[0].dims if a else () for a in parsed])
        return sizes[graph.type], shapes[graph.type]

    def attributes(self, graph: Graph) -> Ints:
        """Of each node, a code of the attributes that tell operations of its opcode apart; -1 where there are none."""
        table, columns = graph.attribute_table, np.full(len(graph.names), -1, np.int32)
        wanted = {op: keys["." in op] for op in graph.ops if (keys := _ATTRIBUTES.get(opcode_of(op))) is not None}
        codes = dict(zip(keys := sorted({*chain(*wanted.values())}), map(table.codes, keys), strict=True))
        values = table.columns.values
        for code, op in enumerate(graph.ops):
            if op not in wanted:
                continue
            rows = np.flatnonzero(graph.op == code)
            own = np.stack([codes[key][rows] for key in wanted[op]], axis=1)
            distinct, inverse = np.unique(own, axis=0, return_inverse=True)
            used: list[list[int]] = distinct.tolist()
            texts = [[values[i] if i >= 0 else "" for i in row] for row in used]
            columns[rows] = self._codes([(opcode_of(op), _signature(opcode_of(op), text)) for text in texts])[
                inverse.ravel()
            ]
        return columns

    def _codes(self, things: Sequence[object]) -> Ints:
        return np.asarray([self._code.setdefault(thing, len(self._code)) for thing in things] or [0], np.int32)


def opcode_of(op: str) -> str:
    """What HLO calls an operation."""
    name = op.rpartition(".")[2] if op.startswith(("stablehlo.", "func.", "chlo.")) else op
    return _OPCODES.get(name, name.replace("_", "-"))


def dtype_name(name: str) -> str:
    """What HLO calls an element type of MLIR's or a jaxpr's."""
    if name.startswith("complex<f"):
        return f"c{2 * int(name[9:-1])}"
    if name in ("i1", "bool"):
        return "pred"
    if name.startswith("ui"):
        return f"u{name[2:]}"
    return f"s{name[1:]}" if name[0] == "i" and name[1:].isdecimal() else name


def _signature(opcode: str, values: Sequence[str]) -> tuple[str, ...]:
    """The numbers and words of attributes, in one notation."""
    if opcode == "slice":  # HLO writes all strides if one isn't 1, StableHLO that one
        values = [_STRIDE_OF_ONE.sub(r"\1", value) for value in values]
    if opcode != "pad":
        return tuple(word for value in values for word in _words(value))
    if len(values) == 3:  # StableHLO: all low ends, all high ones, and what is put between
        return tuple("_".join(each) for each in zip(*map(_words, values), strict=True))
    ends = [
        each.split("_") for each in values[0].split("x")
    ]  # HLO: `low_high_between`, the last only where there is any
    return tuple("_".join([*each, "0"][:3]) for each in ends)


def _words(value: str) -> list[str]:
    return "".join(c if c.isalnum() or c == "-" else " " for c in value.replace(" x ", " ")).split()
