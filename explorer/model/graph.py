"""A graph of operations, stored column-wise.

A real training step has 100,000 instructions, so a node is a row: an index into numpy columns and string tables.
`Node`, `Group` and `Frame` are cheap views on a row, made on access.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from explorer.errors import UnknownNameError
from explorer.model.attributes import Attributes, tabulate
from explorer.model.attribution import Attribution, SourceLine
from explorer.model.declared import cached_property, declared
from explorer.model.types import TypeSizes, measure_types

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]

_NO_EQUATION = frozenset(
    [
        *("parameter", "constant", "stablehlo.constant", "return", "func.return", "stablehlo.return"),
        *("tuple", "get-tuple-element"),
    ]
)
# The attributes whose values name computations: HLO's, then StableHLO's.
CALL_ROLES = (
    *("calls", "to_apply", "body", "condition", "true_computation", "false_computation", "branch_computations"),
    *("called_computations", "async_computation", "comparator", "select", "scatter", "callee", "decomposition"),
)


@dataclass(frozen=True, slots=True)
class Frame:
    """One place in the user's Python: a frame of the stack that made an operation.

    Lines and columns count from 1 and from 0, as Python's own tracebacks do; 0 as `line` means unknown.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> def f(x):
        ...     return jnp.sin(x)
        >>> frame = explorer.explore(f, jnp.ones(8)).jaxpr.graph.where("op:sin")[0].source[0]
        >>> frame.function, frame.line
        ('f', 2)
    """

    file: str
    function: str
    line: int
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    parent: int = -1  # index of the caller's frame in the same graph, -1 for none

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f" ({self.function})" if self.function else "")


@dataclass(frozen=True, slots=True)
class Group:
    """A named set of nodes that belong together: a computation, a loop body, a fusion.

    `parent` and `caller` are indices: of the group around it, and of the node that calls it (-1 for none).

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> graph = explorer.explore(lambda x: jnp.sin(x) * 2 + 1, jnp.ones(8)).hlo.graph
        >>> sorted(group.kind for group in graph.groups)
        ['entry', 'fusion']
    """

    name: str
    kind: str
    parent: int = -1
    caller: int = -1


class ComputationCall(NamedTuple):
    """Call of a computation by a node: indices of the node and the group, and the attribute that names it.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> graph = explorer.explore(lambda x: jnp.sin(x) * 2 + 1, jnp.ones(8)).hlo.graph
        >>> [(graph.ops[graph.op[call.node]], call.role, graph.groups[call.group].kind) for call in graph.calls]
        [('fusion', 'calls', 'fusion')]
    """

    node: int
    role: str
    group: int


class Node:
    """One operation: a view on a row of its graph.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> def f(x):
        ...     return jnp.sin(x) * 2
        >>> sine, = explorer.explore(f, jnp.ones(8)).jaxpr.graph.where("op:sin")
        >>> sine.op, sine.type, sine.place.line, [user.op for user in sine.users]
        ('sin', 'f32[8]', 2, ['mul'])
    """

    __slots__ = ("graph", "index")

    def __init__(self, graph: Graph, index: int) -> None:
        self.graph = graph
        self.index = index

    @property
    def name(self) -> str:
        return self.graph.names[self.index]

    @property
    def op(self) -> str:
        return self.graph.ops[int(self.graph.op[self.index])]

    @property
    def type(self) -> str:
        return self.graph.types[int(self.graph.type[self.index])]

    @property
    def scope(self) -> str:
        """Return the path of transforms and named scopes around the node; empty without any."""
        return self.graph.scopes[int(self.graph.scope[self.index])]

    @property
    def line(self) -> int:
        """Return the number of the node's line in the text of its stage, from 0.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> stage = explorer.explore(jnp.sin, jnp.ones(8)).jaxpr
            >>> sine, = stage.graph.where("op:sin")
            >>> "sin" in stage.text.splitlines()[sine.line]
            True
        """
        return int(self.graph.line[self.index])

    @property
    def operands(self) -> tuple[Node, ...]:
        graph = self.graph
        start, end = graph.operand_start[self.index : self.index + 2]
        return tuple(Node(graph, int(i)) for i in graph.operand[start:end])

    @property
    def users(self) -> tuple[Node, ...]:
        """Return the nodes that read this node, each once, in program order."""
        graph = self.graph
        user_start, user = graph.user_columns
        return tuple(Node(graph, int(i)) for i in user[user_start[self.index] : user_start[self.index + 1]])

    @property
    def group(self) -> Group | None:
        index = int(self.graph.group[self.index])
        return self.graph.groups[index] if index >= 0 else None

    @property
    def source(self) -> tuple[Frame, ...]:
        """Return the Python stack that created the node, innermost frame first; empty if the compiler kept none."""
        return self.graph.stack(int(self.graph.frame[self.index]))

    @property
    def place(self) -> SourceLine | None:
        """Return the node's line of user code and its evidence; None if no line is known, as for an argument.

        A kernel belongs to every line of its contents; `place` has one of them.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> explorer.explore(lambda x: jnp.tanh(x), jnp.ones(8)).jaxpr.graph["b"].place.how
            'own'
        """
        return self.graph.attribution.place(self.index)

    @property
    def attributes(self) -> Mapping[str, str]:
        """Return the attributes that the compiler printed, by key: `dimensions`, `custom_call_target`.

        Values are printed text, strings without quotes. `explorer.model.attributes` lists keys that no text has.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> explorer.explore(jnp.sum, jnp.ones(8)).jaxpr.graph["b"].attributes["axes"]
            '(0,)'
        """
        return self.graph.attribute_table.of(self.index)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and other.graph is self.graph and other.index == self.index

    def __hash__(self) -> int:
        # By identity of the graph, as in `__eq__`: its columns are long.
        return hash((id(self.graph), self.index))

    def __repr__(self) -> str:
        return f"{self.name} = {self.type} {self.op}({', '.join(o.name for o in self.operands)})"


@dataclass(frozen=True, eq=False)
class Graph:
    """Operations with operands, groups and source positions.

    Columns have one row per node (shape `[n]`, int32). A code column indexes the string table of the plural name.

    Args:
        names: Name of each node.
        op, type, scope: Codes into `ops`, `types`, `scopes`.
        operand_start, operand: Compressed rows, shapes `[n + 1]` and `[edges]`: the operands of node `i` are
            `operand[operand_start[i]:operand_start[i + 1]]`, in order, repeats included.
        group: Index into `groups`, -1 for none.
        frame: Index into `frames` of the innermost frame, -1 for none.
        line: Line of the stage's text, from 0.
        measure: Function that returns figures per node (`flops`, `bytes`, …), by name, shape `[n]`; called once, on
            first access.
        unread: Lines of the text, from 0, that should hold nodes but could not be read.
        attributes: Attributes of the module: `name`, `is_scheduled`, `input_output_alias`.
        node_attributes: Attributes of each node; `attribute_table` is never None.
        attribute: Function that returns the lines of the nodes, set by a capture, which knows more than the graph.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> graph = explorer.explore(lambda x: jnp.sin(x) * 2 + 1, jnp.ones(8)).jaxpr.graph
        >>> [(node.name, node.op, node.type) for node in graph.nodes][:2]
        [('a', 'parameter', 'f32[8]'), ('b', 'sin', 'f32[8]')]
        >>> product, = graph.where("op:mul")
        >>> [node.op for node in product.operands], [node.op for node in graph.neighbourhood(product)]
        (['sin'], ['sin', 'mul', 'add'])
    """

    names: Sequence[str]
    op: Ints
    type: Ints
    scope: Ints
    operand_start: Ints
    operand: Ints
    group: Ints
    frame: Ints
    line: Ints
    ops: Sequence[str]
    types: Sequence[str]
    scopes: Sequence[str]
    groups: Sequence[Group]
    frames: Sequence[Frame]
    measure: Callable[[Graph], Mapping[str, Floats]] | None = None
    unread: tuple[int, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])
    node_attributes: Attributes | None = None
    attribute: Callable[[Graph], Attribution] | None = None

    def __len__(self) -> int:
        return len(self.names)

    @property
    def nodes(self) -> Iterator[Node]:
        return (Node(self, i) for i in range(len(self)))

    def __getitem__(self, name: str) -> Node:
        try:
            return Node(self, self.row_of[name])
        except KeyError:
            raise UnknownNameError(f"no node is named {name!r} among the {len(self):,} of this graph") from None

    def __contains__(self, name: str) -> bool:
        return name in self.row_of

    @declared
    def where(self, query: str) -> tuple[Node, ...]:
        """Return the nodes that match a query, in program order, as in the view's search field.

        Args:
            query: Words (`softmax`), words in a field (`op:dot`, `scope:attention`, `line:12`, `shape:8,*`,
                `dtype:bf16`, `function:block`, `in:body`, `target:getrf`, `attr:dimensions={1}`), regular
                expressions (`/dot.*add/`) and comparisons (`bytes > 1MB`, `op == "copy"`), combined by `and`, `or`,
                `not` and parentheses; `explorer.analysis.query` has them all.

        Raises:
            QueryError: The query can't be parsed; the message shows the position.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> explorer.explore(jnp.tanh, jnp.ones(8)).jaxpr.graph.where("op:tanh")
            (b = f32[8] tanh(a),)
        """
        ...

    @declared
    def paths(self, a: Node, b: Node) -> Paths:
        """Return the paths along operands between two nodes, in either direction.

        Paths are generated one by one, a shortest one first; `len`, `subgraph` and `steps` need no walk. If only one
        node is inside a kernel or loop, the kernel or loop represents it.

        Raises:
            ForeignNodeError: A node belongs to another graph.
        """
        ...

    @declared
    def neighbourhood(self, node: Node, width: int = 1) -> tuple[Node, ...]:
        """Return `node` and all nodes at most `width` steps away, in program order.

        A step goes to an operand or to a user.

        Raises:
            ForeignNodeError: `node` belongs to another graph.
            OptionError: `width` is not a number of steps.
        """
        ...

    def stack(self, frame: int) -> tuple[Frame, ...]:
        """Return the stack from the frame with index `frame` outwards, as frames; empty for -1.

        A cycle in damaged input ends the stack.
        """
        frames: list[Frame] = []
        while 0 <= frame < len(self.frames) and len(frames) < len(self.frames):
            frames.append(self.frames[frame])
            frame = self.frames[frame].parent
        return tuple(frames)

    @cached_property
    def attribution(self) -> Attribution:
        """Return the line of user code of each node and the nodes of each line, as columns."""
        return self.attribute(self) if self.attribute is not None else self._attribution_alone()

    @declared
    def _attribution_alone(self) -> Attribution:
        """Return the source line of each node, computed from this graph without other stages of a capture."""
        ...

    @declared
    def to_model_explorer_json(self, path: str | PathLike[str], name: str = "graph") -> Path:
        """Write the graph as a file that Model Explorer (`ai-edge-model-explorer`) opens, and return its path.

        Kernel times go into a second file: see `Capture.to_model_explorer_json`.
        """
        ...

    @declared
    def nodes_through(self, file: str, line: int) -> Ints:
        """Return the indices of the nodes whose stack contains a line of user or library code, ascending."""
        ...

    @cached_property
    @declared
    def placed(self) -> Ints:
        """Return for each node the index of the node whose source position it takes; -1 for none, shape `[n]`.

        A node with a frame of its own takes its own position. Others take that of a caller, user or operand.
        """
        ...

    @declared
    def with_attributes_of(self, text: str) -> Graph:
        """Return the graph with attributes parsed from `text`, for files of version 0.1.0, which store none."""
        ...

    @cached_property
    @declared
    def kernel(self) -> Ints:
        """Return for each HLO instruction the index of the kernel that runs it, shape `[n]`.

        The kernel is the instruction itself or the fusion around it; -1 for tuples, parameters and others without work.
        """
        ...

    @cached_property
    @declared
    def kernel_words(self) -> Mapping[int, str]:
        """Return a dict from the index of each fusion to its main operations, up to three, as text: `max, exp, sum`."""
        ...

    @cached_property
    @declared
    def hierarchy(self) -> Hierarchy:
        """Return the tree of groups that views show: computations, calls, named scopes, repeated layers."""
        ...

    @cached_property
    def user_columns(self) -> tuple[Ints, Ints]:
        """Return the users of each node as compressed rows `(user_start, user)`, each user once.

        The users of node `i` are `user[user_start[i]:user_start[i + 1]]`, ascending.
        """
        count = len(self.names)
        reader = np.repeat(np.arange(count, dtype=np.int64), np.diff(self.operand_start))
        # One int64 for each pair of node and reader: sorting groups the readers of a node and makes repeats neighbors.
        pairs = np.sort(self.operand.astype(np.int64) * count + reader)
        pairs = pairs[np.diff(pairs, prepend=-1) != 0]
        start = np.searchsorted(pairs, np.arange(count + 1, dtype=np.int64) * count)
        return start.astype(np.int32), (pairs % max(count, 1)).astype(np.int32)

    @cached_property
    def measures(self) -> Mapping[str, Floats]:
        """Return the figures of all nodes, by name (`flops`, `bytes`), shape `[n]`; NaN for nodes without a figure.

        Figures are rounded to single precision, as in a file, so a capture is the same after saving and loading.
        """
        measured: dict[str, Floats] = dict(self.measure(self)) if self.measure is not None else {}
        for name, values in measured.items():
            measured[name] = values.astype(np.float32).astype(np.float64)
        return measured

    @cached_property
    def attribute_table(self) -> Attributes:
        """Return the attributes of all nodes, as columns; each node has none if the graph has no attributes."""
        return self.node_attributes or Attributes(lambda: tabulate([0] * len(self), [()]))

    @cached_property
    def parameter_number(self) -> Ints:
        """Return each node's parameter number in its computation, shape `[n]`; -1 if the text has none."""
        return self.attribute_table.integers("parameter_number")

    @cached_property
    def returned(self) -> Ints:
        """Return the indices of the nodes that their jaxpr returns, ascending; empty in other stages.

        Other stages mark results with a return node or a root instruction.
        """
        return self.attribute_table.nodes("returned")

    @cached_property
    def literals(self) -> Ints:
        """Return for each node the index of its literal operands in `attribute_table.columns.values`; -1 for none."""
        return self.attribute_table.codes("literals")

    @cached_property
    def sizes(self) -> TypeSizes:
        """Return elements, rank and bytes of each of `types`, as columns."""
        return measure_types(self.types)

    @cached_property
    def calls(self) -> Sequence[ComputationCall]:
        """Return the calls of computations by nodes, in program order; missing computations are left out.

        `Group.caller` has one caller of a group; this lists all, for example of a reducer.
        """
        index: dict[str, list[int]] = {}
        for i, group in enumerate(self.groups):
            index.setdefault(group.name, []).append(i)
        columns = self.attribute_table.columns
        roles = [code for code, key in enumerate(columns.keys) if key in CALL_ROLES]
        rows = np.flatnonzero(np.isin(columns.key, roles))
        nodes = np.searchsorted(columns.start, rows, "right") - 1
        calls: list[ComputationCall] = []
        for row, node in zip(rows.tolist(), nodes.tolist(), strict=True):
            # One name, or several: `{%a, %b}` in HLO, `[@a, @b]` in StableHLO.
            for name in columns.values[int(columns.value[row])].strip("{}[] ").split(","):
                group = _nearest(index.get(name.strip().lstrip("%@"), ()), int(self.group[node]))
                if group >= 0:
                    calls.append(ComputationCall(node, columns.keys[int(columns.key[row])], group))
        return calls

    @cached_property
    def caller(self) -> Ints:
        """Return the index of a node that calls each group, -1 for none; shape `[groups + 1]`.

        The last entry is -1, for indexing by -1, the group of nodes in no group.
        """
        return np.asarray([*[group.caller for group in self.groups], -1], np.int32)

    @cached_property
    def members(self) -> Sequence[Ints]:
        """Return an array for each group: the indices of its nodes, ascending."""
        order = np.argsort(self.group, kind="stable").astype(np.int32)
        start = np.searchsorted(self.group[order], np.arange(len(self.groups) + 1)).tolist()
        return [order[begin:end] for begin, end in pairwise(start)]

    @cached_property
    def callers(self) -> Sequence[Sequence[int]]:
        """Return for each group the indices of all nodes that call it, ascending."""
        callers: list[set[int]] = [{group.caller} - {-1} for group in self.groups]
        for call in self.calls:
            callers[call.group].add(call.node)
        return [*map(sorted, callers)]

    @cached_property
    def callers_first(self) -> Sequence[int]:
        """Return the indices of all groups, each after the groups that call it; a cycle in damaged input is cut."""
        around = [[group for group in self.group[nodes].tolist() if group >= 0] for nodes in self.callers]
        return post_order(range(len(self.groups)), around)

    @cached_property
    def is_equation(self) -> NDArray[np.bool_]:
        """Return a mask of shape `[n]`: False for arguments, constants, tuples and returns, else True."""
        return ~np.asarray([op in _NO_EQUATION for op in self.ops] or [True], bool)[self.op]

    @cached_property
    def is_root(self) -> NDArray[np.bool_]:
        """Return a mask of the nodes that HLO marks as a computation's root; shape `[n]`."""
        return self.attribute_table.codes("root") >= 0

    def changed(self, **fields: Any) -> Graph:
        """Return a copy with these fields replaced; it keeps computed columns, which must not depend on them.

        A new `measure` or `attribute` discards what it replaces.
        """
        graph = replace(self, **fields)
        stale = {"measure": "measures", "attribute": "attribution"}
        gone = {stale.get(name, name) for name in fields}
        # Computed columns are in the dictionary too, next to the fields.
        vars(graph).update({name: value for name, value in vars(self).items() if name not in {*gone, *vars(graph)}})
        return graph

    def read_columns(self) -> None:
        """Compute the columns that nearly every analysis reads, instead of each at its first access."""
        _ = self.attribute_table.columns, self.calls, self.is_equation, self.is_root, self.returned
        _ = self.literals, self.parameter_number, self.sizes, self.user_columns
        _ = self.caller, self.callers_first, self.members

    @cached_property
    def row_of(self) -> Mapping[str, int]:
        """Return the index of each node, by name."""
        return {name: i for i, name in enumerate(self.names)}

    def __repr__(self) -> str:
        return f"Graph({len(self):,} nodes, {len(self.operand):,} edges, {len(self.groups):,} groups)"


def post_order(starts: Iterable[int], successors: Sequence[Sequence[int]] | Mapping[int, Sequence[int]]) -> list[int]:
    """Return the nodes reachable from `starts`, successors first; ends at a cycle in damaged input.

    Example:
        >>> post_order([0], [[1, 2], [2], []])
        [2, 1, 0]
    """
    order: list[int] = []
    seen: set[int] = set()
    for start in starts:
        # A stack of its own, because a graph may be deeper than Python's.
        stack = [(start, False)]
        while stack:
            at, is_done = stack.pop()
            if is_done:
                order.append(at)
            elif at not in seen:
                seen.add(at)
                stack.append((at, True))
                stack += [(successor, False) for successor in successors[at] if successor not in seen]
    return order


def _nearest(groups: Sequence[int], caller: int) -> int:
    """Return the last of the ascending `groups` below `caller`, else the first, else -1.

    Of computations with one name, the nearest before its caller is meant: a text has callees first.
    """
    before = [group for group in groups if group < caller]
    return before[-1] if before else groups[0] if groups else -1


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A tree of groups over a graph: `group[i]` is the group of node `i`, an index into `groups`, -1 for the top.

    A group's `parent` comes before it, or is -1. Its `kind` is the computation's (`fusion`, `body`, …), `inputs`,
    `outputs`, `phase`, `function`, `scope`, `part` (what is before or after a loop), `repeat` (its children are the
    iterations), `iteration`, `single` (an iteration unlike the others), or `uncalled` (computations without
    a caller, which are no part of the program).

    Args:
        groups, group: The tree.
        repeat: Number of runs of each group, if known to be more than one; else 0.
        differ: For each `repeat`, number of nodes of an iteration that call other computations in another iteration or
            have no counterpart there.
        twin: For each node, its counterpart in the first equal or similar iteration; itself if there is none. Both have
            one op, and in equal iterations one type.
        difference: For each `repeat`, the differences of similar iterations in words:
            `6, 12, 18 and 24 without and, compare`; empty if all are equal.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> @jax.jit
        ... def layer(x):
        ...     return jnp.tanh(x @ x)
        >>> graph = explorer.explore(lambda x: layer(layer(x)), jnp.ones((8, 8))).jaxpr.graph
        >>> [(group.name, group.kind) for group in graph.hierarchy.groups]
        [('layer', 'call'), ('layer', 'function'), ('layer', 'call'), ('layer', 'function')]
    """

    groups: list[Group]
    group: Ints
    repeat: list[int] = field(default_factory=list[int])
    differ: list[int] = field(default_factory=list[int])
    twin: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
    difference: list[str] = field(default_factory=list[str])


MOST_COUNTED = sys.maxsize
"""Paths beyond are not counted: two hundred residual blocks have more than there are atoms."""


@dataclass(frozen=True, eq=False)
class Paths:
    """Paths along operands from one instruction to another, generated on demand.

    If there are too many to list, use `nodes`: the subgraph that all paths run through.

    Args:
        graph: The graph.
        start, end: Indices of the first and last node, in the direction of data flow.
        nodes: Indices of all nodes on some path, ascending; empty without a path.
        count: Number of paths, at most `sys.maxsize`.
        steps: Number of edges of the shortest path.
        onwards: For each of `nodes`, its users on a path, nearest to the end first.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> graph = explorer.explore(lambda x: jnp.sin(x) + jnp.cos(x), jnp.ones(8)).jaxpr.graph
        >>> first, last = graph.where("op:parameter") + graph.where("op:add")
        >>> [[node.op for node in path] for path in graph.paths(first, last)]
        [['parameter', 'sin', 'add'], ['parameter', 'cos', 'add']]
    """

    graph: Graph
    start: int
    end: int
    nodes: Sequence[int]
    count: int
    steps: int
    onwards: Mapping[int, Sequence[int]]

    def __len__(self) -> int:
        return self.count

    def __bool__(self) -> bool:
        return bool(self.nodes)

    def __iter__(self) -> Iterator[tuple[Node, ...]]:
        """Yield the paths, each computed on demand; a shortest one is first, the others are in no order of length."""
        if not self.nodes:
            return
        # No recursion: a path may be longer than Python's stack.
        path, choices = [self.start], [iter(self.onwards[self.start])]
        while path:
            if path[-1] == self.end:
                yield tuple(Node(self.graph, at) for at in path)
                path.pop()
                choices.pop()
                continue
            following = next(choices[-1], None)
            if following is None:
                path.pop()
                choices.pop()
            else:
                path.append(following)
                choices.append(iter(self.onwards[following]))

    @property
    def subgraph(self) -> tuple[Node, ...]:
        """Return the nodes on at least one path, in program order; empty without a path."""
        return tuple(Node(self.graph, at) for at in self.nodes)

    def __repr__(self) -> str:
        names = [self.graph.names[i] for i in (self.start, self.end)]
        if not self.nodes:
            return f"Paths(none: neither {names[0]} nor {names[1]} feeds the other)"
        count = "1 path" if self.count == 1 else f"{self.count:,} paths"
        many = "more than " if self.count == MOST_COUNTED else ""
        way = f"{names[0]} to {names[1]} through {len(self.nodes):,} nodes, the shortest of {self.steps:,} steps"
        return f"Paths({many}{count} from {way})"
