"""Building a graph row by row, as a reader goes down its text."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from explorer.model.attributes import Attributes
from explorer.model.graph import Frame, Graph, Group, Ints


class _Codes(dict[str, int]):
    """A string table in the making: each distinct string gets the next number."""

    def __missing__(self, string: str) -> int:
        code = self[string] = len(self)
        return code


class GraphBuilder:
    """Takes nodes in text order; operands may be given with each node, or all at the end."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.groups: list[Group] = []
        self.frames: list[Frame] = []
        self.group_of = array("i")
        self._ops, self._types, self._scopes = _Codes(), _Codes(), _Codes()
        self._op, self._type, self._scope = array("i"), array("i"), array("i")
        self._frame, self._line = array("i"), array("i")
        self._operand_start, self._operand = array("i", [0]), array("i")
        self._frame_index: dict[Frame, int] = {}

    def __len__(self) -> int:
        return len(self.names)

    def add(
        self, name: str, op: str, type_: str, *, scope: str = "", group: int = -1, frame: int = -1, line: int = -1
    ) -> int:
        """Add a node without operands and return its index."""
        self.names.append(name)
        self._op.append(self._ops[op])
        self._type.append(self._types[type_])
        self._scope.append(self._scopes[scope])
        self.group_of.append(group)
        self._frame.append(frame)
        self._line.append(line)
        return len(self.names) - 1

    def connect(self, operands: Iterable[int]) -> None:
        """Give the next node that has none its operands: call once per node, in order."""
        self._operand.extend(operands)
        self._operand_start.append(len(self._operand))

    def extend(
        self,
        names: Sequence[str],
        ops: Sequence[str],
        types: Sequence[str],
        *,
        scope: Ints,
        group: Ints,
        frame: Ints,
        line: Sequence[int],
    ) -> None:
        """Add many nodes without operands; `scope` holds what `scope_code` gave, all have shape `[rows]`."""
        self.names.extend(names)
        self._op.extend(map(self._ops.__getitem__, ops))
        self._type.extend(map(self._types.__getitem__, types))
        self._line.extend(line)
        for column, values in ((self._scope, scope), (self.group_of, group), (self._frame, frame)):
            column.frombytes(np.ascontiguousarray(values, np.int32).tobytes())

    def scope_code(self, scope: str) -> int:
        return self._scopes[scope]

    def connect_many(self, counts: Ints, operands: Ints) -> None:
        """Give the next nodes that have none their operands: how many each has, and which, in order."""
        ends = np.cumsum(counts, dtype=np.int64) + self._operand_start[-1]
        self._operand_start.frombytes(ends.astype(np.int32).tobytes())
        self._operand.frombytes(np.ascontiguousarray(operands, np.int32).tobytes())

    def add_group(self, group: Group) -> int:
        self.groups.append(group)
        return len(self.groups) - 1

    def add_frame(self, frame: Frame) -> int:
        """The index of this frame, the one there is if an equal one was added before."""
        index = self._frame_index.get(frame)
        if index is None:
            index = self._frame_index[frame] = len(self.frames)
            self.frames.append(frame)
        return index

    def build(self, attributes: Attributes | None = None, module: Mapping[str, str] | None = None) -> Graph:
        """The graph of what was added; `attributes` are those of its nodes, `module` those of the whole."""
        return Graph(
            names=self.names,
            op=_ints(self._op),
            type=_ints(self._type),
            scope=_ints(self._scope),
            operand_start=_ints(self._operand_start),
            operand=_ints(self._operand),
            group=_ints(self.group_of),
            frame=_ints(self._frame),
            line=_ints(self._line),
            ops=list(self._ops),
            types=list(self._types),
            scopes=list(self._scopes),
            groups=self.groups,
            frames=self.frames,
            attributes=module or {},
            node_attributes=attributes,
        )


def _ints(column: array[int]) -> Ints:
    return np.frombuffer(column, dtype=np.int32) if len(column) else np.zeros(0, np.int32)
