"""Everything that compiled as a tree of the user's call stacks, roots first, with its cost at each frame."""

from __future__ import annotations

from explorer.model.events.event import Event
from explorer.model.events.family_counts import BUILDING, family_key
from explorer.model.events.ledger import Ledger
from explorer.model.events.variations import StackTree


def stack_tree(ledger: Ledger) -> StackTree:
    """The tree of all calls that had to trace, lower or compile; cost is everything that the call then did."""
    root = StackTree()
    nodes: dict[tuple[int, object], StackTree] = {}
    calls: set[tuple[str, int]] = set()
    for index, event in enumerate(ledger.events):
        if event.kind not in BUILDING:
            continue
        call = (event.process, event.call or -index - 1)
        _add(root, event, nodes, is_new=call not in calls)
        calls.add(call)
    return root


def _add(root: StackTree, event: Event, nodes: dict[tuple[int, object], StackTree], *, is_new: bool) -> None:
    path = [root]
    if event.process:
        path.append(_child(path[-1], event.process, StackTree(function=event.process), nodes))
    for place in reversed(event.stack or ((event.call_site,) if event.call_site else ())):
        path.append(_child(path[-1], place, StackTree(place), nodes))
    path[-1].self_seconds += event.seconds
    path.append(_child(path[-1], family_key(event), StackTree(function=event.function, process=event.process), nodes))
    path[-1].self_seconds += event.seconds
    for node in path:
        node.count += is_new
        node.seconds += event.seconds
    if event.id and event.id not in path[-1].ids[-1:]:
        path[-1].ids.append(event.id)


def _child(parent: StackTree, key: object, new: StackTree, nodes: dict[tuple[int, object], StackTree]) -> StackTree:
    child = nodes.get((id(parent), key))  # parents are held by the tree meanwhile
    if child is None:
        child = nodes[id(parent), key] = new
        parent.children.append(new)
    return child
