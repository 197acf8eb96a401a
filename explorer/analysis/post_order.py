"""The order in which what depends on others comes after them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def post_order(starts: Iterable[int], successors: Sequence[Sequence[int]] | Mapping[int, Sequence[int]]) -> list[int]:
    """What can be reached from `starts`, each after all its successors; a cycle, as in damaged input, ends there.

    Example:
        >>> post_order([0], [[1, 2], [2], []])
        [2, 1, 0]
    """
    order: list[int] = []
    seen: set[int] = set()
    for start in starts:
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
