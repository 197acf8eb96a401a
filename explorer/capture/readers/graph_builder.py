"""Shared parts of the readers: a graph built row by row, the user's part of a Python stack, values of attributes.

Every stack of a notebook cell ends in IPython, ipykernel and tornado, every stack of a test in pytest. These frames are
not part of the function, so a stack is cut where the first of them starts. Explorer's own frames mark such a place too.
That is why they are not registered with JAX as excluded: then nothing would separate the function from its caller.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import count

import numpy as np

from explorer.model.attributes import LONGEST_VALUE, Attributes
from explorer.model.graph import Frame, Graph, Group, Ints

# Packages that run the user's code, in an environment's folders; and Explorer itself, in any folder.
_RUNNERS = re.compile(
    r"(?:site-packages|dist-packages|lib/python[\d.]+|\\Lib)[/\\]"
    r"(?:IPython|ipykernel|tornado|asyncio|_pytest|pluggy|nbclient|traitlets|runpy\.py|ipykernel_launcher\.py)"
    r"|explorer[/\\](?:_jax|capture|aot|jitted|ledger|measure|notebook|pitfalls)[/\\]\w+\.py$|^<frozen "
)
_MAX_DEPTH = 1_000  # calls: Python's own limit; a cycle in damaged input ends there
# As C writes them, several bytes of one character together.
_ESCAPED = re.compile(r"((?:\\[0-7]{1,3}|\\x[0-9a-fA-F]{1,2})++)|\\(.)", re.S)
_BYTE = re.compile(r"\\(?:x([0-9a-fA-F]+)|([0-7]+))")
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


class GraphBuilder:
    """Builder of a graph from nodes in text order; operands come with each node, or all at the end."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.groups: list[Group] = []
        self.frames: list[Frame] = []
        self.group_of = array("i")
        # Codes count from 0, in the order of the first use.
        self._ops, self._types, self._scopes = [defaultdict[str, int](count().__next__) for _ in range(3)]
        self._op, self._type, self._scope = array("i"), array("i"), array("i")
        self._frame, self._line = array("i"), array("i")
        self._operand_start, self._operand = array("i", [0]), array("i")
        self._frame_index: dict[Frame, int] = {}
        self._placed: dict[tuple[int, Frame], int] = {}  # by the caller's index

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
        """Set the operands of the next node that lacks them: call once per node, in order."""
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
        """Add many nodes without operands; `scope` holds codes of `scope_code`, all have shape `[rows]`."""
        self.names.extend(names)
        self._op.extend(map(self._ops.__getitem__, ops))
        self._type.extend(map(self._types.__getitem__, types))
        self._line.extend(line)
        for column, values in ((self._scope, scope), (self.group_of, group), (self._frame, frame)):
            # As bytes: `extend` would make a Python int of each number.
            column.frombytes(np.ascontiguousarray(values, np.int32).tobytes())

    def scope_code(self, scope: str) -> int:
        return self._scopes[scope]

    def connect_many(self, counts: Ints, operands: Ints) -> None:
        """Set the operands of the next nodes that lack them: the number per node, and all in order."""
        ends = np.cumsum(counts, dtype=np.int64) + self._operand_start[-1]
        self._operand_start.frombytes(ends.astype(np.int32).tobytes())
        self._operand.frombytes(np.ascontiguousarray(operands, np.int32).tobytes())

    def add_group(self, group: Group) -> int:
        self.groups.append(group)
        return len(self.groups) - 1

    def add_frame(self, frame: Frame) -> int:
        """Add a frame unless an equal one is there; return its index."""
        index = self._frame_index.get(frame)
        if index is None:
            index = self._frame_index[frame] = len(self.frames)
            self.frames.append(frame)
        return index

    def add_stack(self, stack: Sequence[Frame], caller: int = -1) -> int:
        """Add the frames of a stack and return the index of the innermost, which is first in `stack`.

        `caller` is the index of the frame that called the outermost.
        """
        at = caller
        for frame in reversed(stack):
            key = at, frame
            if key not in self._placed:  # most stacks share their outer frames
                self._placed[key] = self.add_frame(replace(frame, parent=at))
            at = self._placed[key]
        return at

    def build(self, attributes: Attributes | None = None, module: Mapping[str, str] | None = None) -> Graph:
        return Graph(
            names=self.names,
            op=np.asarray(self._op),
            type=np.asarray(self._type),
            scope=np.asarray(self._scope),
            operand_start=np.asarray(self._operand_start),
            operand=np.asarray(self._operand),
            group=np.asarray(self.group_of),
            frame=np.asarray(self._frame),
            line=np.asarray(self._line),
            ops=list(self._ops),
            types=list(self._types),
            scopes=list(self._scopes),
            groups=self.groups,
            frames=self.frames,
            attributes=module or {},
            node_attributes=attributes,
        )


@lru_cache(maxsize=16_384)  # of each frame of each stack; a program has few files
def is_runner(file: str) -> bool:
    """Return True if a file belongs to a package that runs the user's code, Explorer included."""
    return _RUNNERS.search(file) is not None


def users_part(stack: Sequence[Frame]) -> tuple[Frame, ...]:
    """Return a stack, innermost frame first, up to where its runner starts."""
    end = next((i for i, frame in enumerate(stack) if is_runner(frame.file)), len(stack))
    return tuple(stack[:end])


def users_frames(frames: Sequence[Frame]) -> tuple[list[Frame], list[int]]:
    """Return a table of frames without the runners and their callers, and the new index of each old row (-1: left out).

    A frame that a runner called loses its parent. So does a frame equal to its own outermost caller: XLA, inlining a
    call, puts the callee's whole stack on top of the caller's whole stack, which repeats it.
    """
    outside = _outside(frames)
    kept = [i for i, is_outside in enumerate(outside) if not is_outside]
    index = [-1] * len(frames)
    for new, old in enumerate(kept):
        index[old] = new
    users = [replace(frames[i], parent=-1) for i in kept]
    parents = [index[parent] if 0 <= (parent := frames[i].parent) < len(frames) else -1 for i in kept]
    _cut_repeats(users, parents)
    return [replace(frame, parent=parent) for frame, parent in zip(users, parents, strict=True)], index


def _outside(frames: Sequence[Frame]) -> list[bool]:
    """Return, for each frame, True if it is a runner or a caller of one."""
    outside = [not frame.file or is_runner(frame.file) for frame in frames]
    for i in [i for i, frame in enumerate(frames) if frame.file and outside[i]]:
        # A runner's caller isn't part of the function: the cell with `%explore`, the script that calls explore().
        at = frames[i].parent
        while 0 <= at < len(frames) and not outside[at]:
            outside[at] = True
            at = frames[at].parent
    return outside


def _cut_repeats(frames: Sequence[Frame], parents: list[int]) -> None:
    """Remove the parent of each frame that equals its outermost caller."""
    for i in range(len(frames)):
        root = _root(parents, i)
        if root != i and frames[root] == frames[i]:
            parents[i] = -1


def _root(parents: Sequence[int], at: int) -> int:
    for _ in range(min(len(parents), _MAX_DEPTH)):
        if parents[at] < 0:
            break
        at = parents[at]
    return at


def shorten_value(text: str) -> str:
    """Return a value, cut at `LONGEST_VALUE` characters with its length: `{0, 1, 2, … (12,345 characters)`."""
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}… ({len(text):,} characters)"


def unescape(text: str) -> str:
    """Return the text of a quoted string with XLA's escapes resolved, such as an octal byte."""
    return _ESCAPED.sub(_character, text) if "\\" in text else text


def _character(escaped: re.Match[str]) -> str:
    if escaped[1] is None:
        return _LETTERS.get(escaped[2], escaped[2])
    values = (
        int(hexadecimal, 16) if hexadecimal else int(octal, 8) for hexadecimal, octal in _BYTE.findall(escaped[1])
    )
    return bytes(value & 255 for value in values).decode("utf-8", "replace")
