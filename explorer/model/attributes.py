"""Attributes of nodes as columns: printed text other than name, type, opcode and operands.

Keys and values are as printed (`dimensions`, `custom_call_target`, `replica_groups`), but quoted strings lose their
quotes and escapes. Facts without a printed key get one: `parameter_number`, `literal` (of a constant), `root` (`true`
for the instruction that a computation returns).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from explorer.model.declared import cached_property

Ints = NDArray[np.int32]
Pairs = Iterable[tuple[str, str]]

Nested = str | tuple["Nested", ...]
"""Value of an attribute: brackets as tuples, the parts between commas and colons as strings."""

LONGEST_VALUE = 4000
"""Maximum length of a value; a tensor's literal or a kernel in a backend_config may have millions of characters."""


@dataclass(frozen=True, eq=False)
class AttributeColumns:
    """Compressed rows: node `i` has the keys and values `start[i]:start[i + 1]`, in the order of the text.

    Args:
        start: Shape `[n + 1]`.
        key, value: Codes into `keys` and `values`, shape `[m]`.

    Example:
        >>> import numpy as np, explorer
        >>> columns = explorer.types.AttributeColumns(np.array([0, 1, 1]), np.array([0]), np.array([0]), ("axes",),
        ...     ("(0,)",))
        >>> explorer.types.Attributes(lambda: columns).of(0)
        {'axes': '(0,)'}
    """

    start: Ints
    key: Ints
    value: Ints
    keys: Sequence[str]
    values: Sequence[str]


@dataclass(eq=False, repr=False)
class Attributes:
    """Attributes of the nodes of a graph, read at the first access.

    Args:
        read: Returns the columns; called at most once.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> graph = explorer.explore(lambda x: x.sum(axis=0), jnp.ones((4, 8))).jaxpr.graph
        >>> reduce = graph.where("op:reduce_sum")[0]
        >>> graph.attribute_table.get(reduce.index, "axes"), graph.attribute_table.of(reduce.index)["axes"]
        ('(0,)', '(0,)')
    """

    read: Callable[[], AttributeColumns]
    _codes: dict[str, Ints] = field(default_factory=dict[str, Ints], init=False)

    @cached_property
    def columns(self) -> AttributeColumns:
        columns = self.read()
        self.read = lambda: columns  # drops the text that was read
        return columns

    def of(self, node: int) -> dict[str, str]:
        """Return the attributes of the node with index `node`, as a dict from key to printed value."""
        columns = self.columns
        rows = slice(int(columns.start[node]), int(columns.start[node + 1]))
        keys: list[int] = columns.key[rows].tolist()
        values: list[int] = columns.value[rows].tolist()
        pairs = zip(keys, values, strict=True)
        return {columns.keys[key]: columns.values[value] for key, value in pairs}

    def codes(self, key: str) -> Ints:
        """Return the index into `columns.values` of each node's value of `key`, -1 for none; shape `[n]`."""
        if key not in self._codes:
            columns = self.columns
            codes = np.full(len(columns.start) - 1, -1, np.int32)
            if key in columns.keys:
                rows = np.flatnonzero(columns.key == columns.keys.index(key))
                # An entry belongs to the last node that starts at or before it.
                codes[np.searchsorted(columns.start, rows, "right") - 1] = columns.value[rows]
            self._codes[key] = codes
        return self._codes[key]

    def get(self, node: int, key: str, default: str = "") -> str:
        """Return the value of attribute `key` of the node with index `node`; `default` if the node lacks it."""
        code = int(self.codes(key)[node])
        return self.columns.values[code] if code >= 0 else default

    def nodes(self, key: str) -> Ints:
        """Return the indices of the nodes that have an attribute `key`, ascending."""
        return np.flatnonzero(self.codes(key) >= 0).astype(np.int32)

    def integers(self, key: str) -> Ints:
        """Return each node's value of `key` as an int, shape `[n]`; -1 if missing or no decimal number that fits."""
        codes = self.codes(key)
        numbers = np.full(len(codes), -1, np.int32)
        rows = np.flatnonzero(codes >= 0)
        used, inverse = np.unique(codes[rows], return_inverse=True)
        codes_used: list[int] = used.tolist()
        texts = [self.columns.values[code] for code in codes_used]
        # By their length first: Python refuses to convert thousands of digits.
        parsed = [int(text) if text.isdecimal() and len(text) < 11 else -1 for text in texts]
        fitting = [number if number <= np.iinfo(np.int32).max else -1 for number in parsed]
        numbers[rows] = np.asarray(fitting, np.int32)[inverse] if len(rows) else 0
        return numbers


def tabulate(codes: Sequence[int] | Ints, sets: Iterable[Pairs]) -> AttributeColumns:
    """Return the attributes of all nodes as columns, from the distinct sets of attributes that nodes share.

    Args:
        codes: Index into `sets` for each node, shape `[n]`.
        sets: Pairs of key and value; a key occurs once in a set.
    """
    keys: dict[str, int] = {}
    values: dict[str, int] = {}
    key, value, ends = list[int](), list[int](), [0]
    for pairs in sets:
        for name, text in pairs:
            key.append(keys.setdefault(name, len(keys)))
            value.append(values.setdefault(text, len(values)))
        ends.append(len(key))
    set_start = np.asarray(ends, np.int64)
    of_node = np.asarray(codes, np.int64)
    counts = np.diff(set_start)[of_node] if len(of_node) else np.zeros(0, np.int64)
    start = np.concatenate([[0], np.cumsum(counts)])
    total = int(start[-1])
    # Without a loop over nodes: 100,000 of them share a few sets.
    rows: NDArray[np.int64] = np.arange(total) - np.repeat(start[:-1], counts) + np.repeat(set_start[of_node], counts)
    return AttributeColumns(
        start=start.astype(np.int32),
        key=np.asarray(key, np.int32)[rows],
        value=np.asarray(value, np.int32)[rows],
        keys=list(keys),
        values=list(values),
    )


def read_nested(value: str) -> tuple[Nested, ...]:
    """Return an attribute's value as nested tuples: braces and parentheses are tuples, other parts strings.

    A single outer bracket is left out.

    A bracket that is never closed ends with the value; an unmatched closing bracket is ignored.

    Example:
        >>> read_nested("{ {0}: (2, {}, may-alias) }")
        (('0',), ('2', (), 'may-alias'))
    """
    # With spaces around each sign, `split` gives the tokens.
    for sign in "{}(),:":
        value = value.replace(sign, f" {sign} ")
    opened: list[list[Nested]] = [[]]
    for token in value.split():
        if token in "{(":
            opened.append([])
        elif token in "})":
            if len(opened) > 1:
                closed = tuple(opened.pop())
                opened[-1].append(closed)
        elif token not in ",:":
            opened[-1].append(token)
    # A damaged text may lack closing brackets.
    while len(opened) > 1:
        closed = tuple(opened.pop())
        opened[-1].append(closed)
    outer = opened[0]
    return outer[0] if len(outer) == 1 and isinstance(outer[0], tuple) else tuple(outer)


def is_shortened(value: str) -> bool:
    """Return True if the value was longer than `LONGEST_VALUE` characters, and a reader of the text shortened it."""
    return len(value) > LONGEST_VALUE and value.endswith(" characters)")
