"""The user's part of a Python stack, as readers keep it.

Every stack of a notebook cell ends in IPython, ipykernel and tornado, every stack of a test in pytest. They say
nothing about the function, so a stack is cut where the first of them starts. Explorer's own frames are such a place,
which is why they are not registered with JAX as excluded: then nothing would tell the function from its caller.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from explorer.model.graph import Frame

# Packages that run the user's code, where an environment keeps its packages; and Explorer itself, wherever it is.
_RUNNERS = re.compile(
    r"(?:site-packages|dist-packages|lib/python[\d.]+|\\Lib)[/\\]"
    r"(?:IPython|ipykernel|tornado|asyncio|_pytest|pluggy|nbclient|traitlets|runpy\.py|ipykernel_launcher\.py)"
    r"|explorer[/\\](?:_jax|capture|aot|jitted|ledger|measure|notebook|pitfalls)[/\\]\w+\.py$|^<frozen "
)


@lru_cache(maxsize=16_384)  # of each frame of each stack; a program has few files
def is_runner(file: str) -> bool:
    """Whether a file belongs to what runs the user's code, not to the code."""
    return _RUNNERS.search(file) is not None


def users_part(stack: Sequence[Frame]) -> tuple[Frame, ...]:
    """A stack, innermost frame first, up to where its runner starts."""
    end = next((i for i, frame in enumerate(stack) if is_runner(frame.file)), len(stack))
    return tuple(stack[:end])


def users_frames(frames: Sequence[Frame]) -> tuple[list[Frame], list[int]]:
    """A table of frames without the runners' and their callers', and the new index of each old row (-1: left out).

    A frame that a runner called has no parent any more. Nor has one that stands where its own outermost caller stands:
    XLA, inlining a call, puts the callee's whole stack on top of the caller's whole stack, which is the same again.
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
    """Of each frame, whether it is no part of the function: a runner, or what called one."""
    outside = [not frame.file or is_runner(frame.file) for frame in frames]
    for i in [i for i, frame in enumerate(frames) if frame.file and outside[i]]:
        # Who called the runner is no part of the function: the cell with `%explore`, the script that calls explore().
        at = frames[i].parent
        while 0 <= at < len(frames) and not outside[at]:
            outside[at] = True
            at = frames[at].parent
    return outside


def _cut_repeats(frames: Sequence[Frame], parents: list[int]) -> None:
    """Take its parent from each frame that stands where its outermost caller stands."""
    for i in range(len(frames)):
        root = _root(parents, i)
        if root != i and frames[root] == frames[i]:
            parents[i] = -1


_DEEPEST = 1_000  # calls: Python's own limit; a cycle in damaged input ends there


def _root(parents: Sequence[int], at: int) -> int:
    for _ in range(min(len(parents), _DEEPEST)):
        if parents[at] < 0:
            break
        at = parents[at]
    return at
