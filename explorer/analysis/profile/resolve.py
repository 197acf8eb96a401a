"""What the profiler calls an instruction → the instruction of the program's text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from explorer.model.attached import cached_property
from explorer.model.graph import Graph
from explorer.model.results.profile_events import THUNK, Events, Op

# These run other instructions: what passes between those is their own time.
CONTROL = frozenset(("while", "conditional", "call", "async-start"))
# These wait for other devices.
COLLECTIVE = frozenset(
    f"{name}{part}"
    for name in (
        "all-reduce",
        "all-gather",
        "all-to-all",
        "collective-permute",
        "collective-broadcast",
        "reduce-scatter",
    )
    for part in ("", "-start", "-done")
)
_UNSAFE = re.compile(r"\W")


class Instructions:
    """The instructions of one program by what a profiler may call them."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def node(self, op: Op) -> int:
        """The instruction, -1 where the text has none of the name.

        A kernel is called as its instruction, with what is no letter or digit replaced. That tells the kernels of a
        CUDA graph apart, which are all said to be of the one call that launched it.
        """
        named = self.graph[op.name].index if op.name in self.graph else -1
        if op.kernel and (named < 0 or self.kind(named) in CONTROL):
            return self._by_kernel.get(op.kernel, named)
        return named

    def kind(self, node: int) -> str:
        return self.graph.ops[int(self.graph.op[node])]

    @cached_property
    def _by_kernel(self) -> dict[str, int]:
        nodes: dict[str, int] = {}
        for node, name in enumerate(self.graph.names):
            kernel = _UNSAFE.sub("_", name)
            nodes[kernel] = -1 if kernel in nodes else node  # of two that would be called the same, none
        return {kernel: node for kernel, node in nodes.items() if node >= 0}


def resolve_ops(events: Events, programs: Mapping[int, Instructions]) -> Events:
    """The same with one op for each instruction, of the name that the text has; an unknown one keeps its own."""
    ops: dict[Op, int] = {}
    code: list[int] = []
    for op in events.ops:
        program = programs.get(op.program)
        node = program.node(op) if program is not None else -1
        name = program.graph.names[node] if program is not None and node >= 0 else op.name
        code.append(ops.setdefault(Op(op.program, op.module, name), len(ops)))
    if len(ops) == len(events.ops):
        return replace(events, ops=tuple(ops))
    what = events.what.copy()
    thunks = events.kind == THUNK
    what[thunks] = np.asarray(code, np.int64)[what[thunks]]
    return replace(events, what=what, ops=tuple(ops))
