"""What differs between two argument trees, named at the place where it differs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from explorer.model.events.key import Key, TreeNode, split_path
from explorer.model.text import cut_middle, cut_middles


@dataclass(frozen=True, slots=True)
class Change:
    """One place where two trees differ.

    Args:
        path: `batch['mask']`; the argument's name if it is the argument itself.
        before, after: What stood there: `absent`, `None`, `array`, `list of 2`, …
        how: `added`, `removed`, `moved` (positional ↔ keyword), `kept` (what a class keeps beside its arrays), `field`
            (the field of it that changed), `other`.
        parent: What it was added to or removed from; empty for an argument.
        is_outer: Two containers of another kind that hold the same.
    """

    path: str
    before: str
    after: str
    how: str = "other"
    parent: str = ""
    is_outer: bool = False


@dataclass(frozen=True, slots=True)
class _Pair:
    """What stands at one place in the later and in the earlier tree; None for nothing.

    `is_exact` is false where the path is that of something around the place, for its own can't be known.
    """

    new: TreeNode | None
    old: TreeNode | None
    path: str
    parent: str = ""
    is_exact: bool = True

    def inside(self, step: str, new: TreeNode | None, old: TreeNode | None) -> _Pair:
        is_exact = self.is_exact and bool(step)
        return _Pair(new, old, f"{self.path}{step}" if is_exact else self.path, self.path, is_exact)


def changes(new: Key, old: Key) -> tuple[Change, ...]:
    """Where the trees of two keys differ, in the order of the arguments; empty if that can't be known."""
    after, before = new.tree, old.tree
    if after is None or before is None or "text" in (after.kind, before.kind):
        return _changed_paths(new, old)
    if _is_call(after) and _is_call(before):
        moved, pairs = _pair_arguments(new, old, after, before)
    else:
        moved, pairs = [], [_Pair(after, before, "")]
    return (*moved, *_differences(pairs)) or _changed_paths(new, old) or _unequal_print_alike(new, after)


def _changed_paths(new: Key, old: Key) -> tuple[Change, ...]:
    after, before = {leaf.path: leaf for leaf in new.leaves}, {leaf.path: leaf for leaf in old.leaves}
    added = [Change(path, "absent", "array", "added", _parent(path)) for path in after if path not in before]
    removed = [Change(path, "array", "absent", "removed", _parent(path)) for path in before if path not in after]
    return (*added, *removed)


def _parent(path: str) -> str:
    return "".join(split_path(path)[:-1])


def _is_call(node: TreeNode) -> bool:
    """Whether it is (positional arguments, keyword arguments), as jax.jit flattens a call."""
    return node.kind == "tuple" and [child.kind for child in node.children] == ["tuple", "dict"]


def _pair_arguments(new: Key, old: Key, after: TreeNode, before: TreeNode) -> tuple[list[Change], list[_Pair]]:
    """Each argument with the one of its place or name; those that moved between the two are the same argument."""
    (names, values), (old_names, old_values) = _positional(new, after.children[0]), _positional(old, before.children[0])
    named, old_named = _by_keyword(after.children[1]), _by_keyword(before.children[1])
    moved: list[Change] = []
    pairs: list[_Pair] = []
    for index in range(max(len(values), len(old_values))):
        here = values[index] if index < len(values) else None
        there = old_values[index] if index < len(old_values) else None
        name = (index < len(names) and names[index]) or (index < len(old_names) and old_names[index])
        name = name or f"argument {index}"
        if there is None and old_named.pop(name, None) is not None:
            moved.append(Change(name, "keyword", "positional", "moved"))
        elif here is None and named.pop(name, None) is not None:
            moved.append(Change(name, "positional", "keyword", "moved"))
        else:
            pairs.append(_Pair(here, there, name))
    pairs += [_Pair(node, old_named.get(name), name) for name, node in named.items()]
    pairs += [_Pair(None, node, name) for name, node in old_named.items() if name not in named]
    return moved, pairs


def _positional(key: Key, arguments: TreeNode) -> tuple[list[str], tuple[TreeNode, ...]]:
    """The positional arguments with their names; empty of one that has no array in it, for only a leaf's path says."""
    paths = [leaf.path for leaf in key.leaves]
    names: list[str] = []
    at = 0
    for node in arguments.children:
        path, steps = paths[at] if node.leaves and at < len(paths) else "", node.steps_to_leaf()
        suffix = "".join(steps)
        is_known = all(steps) and path.endswith(suffix)
        names.append(path[: len(path) - len(suffix)] if is_known else "".join(split_path(path)[: -len(steps) or None]))
        at += node.leaves
    return names, arguments.children


def _by_keyword(arguments: TreeNode) -> dict[str, TreeNode]:
    return {step[2:-2]: node for step, node in zip(arguments.steps, arguments.children, strict=True)}


def _differences(pairs: list[_Pair]) -> Iterator[Change]:
    """The places at or below some pairs where the trees differ; equal subtrees are one object and are not entered."""
    rest = pairs[::-1]
    while rest:
        pair = rest.pop()
        new, old = pair.new, pair.old
        if new is old:
            continue
        if old is None and new is not None:
            yield Change(pair.path, "absent", _describe(new), "added", pair.parent)
        elif new is None and old is not None:
            yield Change(pair.path, _describe(old), "absent", "removed", pair.parent)
        elif new is not None and old is not None:
            change = _difference(new, old, pair.path)
            if change is not None:
                yield change
            else:
                rest += reversed(_pair_children(pair, new, old))


def _difference(new: TreeNode, old: TreeNode, path: str) -> Change | None:
    """In what two containers differ themselves; None if only their children do."""
    if (new.kind, new.name) != (old.kind, old.name):
        return Change(path, _describe(old), _describe(new), is_outer=new.children == old.children)
    if new.static != old.static or new.fields != old.fields:
        return _changed_field(new, old, path) or Change(path, *_static_texts(new, old), "kept")
    if new.kind != "dict" and len(new.children) != len(old.children):
        return Change(path, _describe(old), _describe(new))
    return None


def _static_texts(new: TreeNode, old: TreeNode) -> tuple[str, str]:
    before, after = cut_middles(old.static, new.static)
    return f"{old.name}[{before}]", f"{new.name}[{after}]"


def _changed_field(new: TreeNode, old: TreeNode, path: str) -> Change | None:
    """The first field that differs, of two objects of a class; None if it is none of those that have names."""
    before = {step: (text, token) for step, text, token in old.fields}
    for step, text, token in new.fields:
        old_text, old_token = before.get(step, ("absent", 0))
        if token != old_token if token and old_token else text != old_text:
            return Change(f"{path}{step}", *cut_middles(old_text, text), "field", path)
    gone = next((step for step in before if step not in {step for step, _, _ in new.fields}), None)
    return Change(f"{path}{gone}", cut_middle(before[gone][0]), "absent", "field", path) if gone is not None else None


def _pair_children(pair: _Pair, new: TreeNode, old: TreeNode) -> list[_Pair]:
    if new.kind != "dict":  # a class knows how a child is named only where there is an array in it
        steps = (step or old_step for step, old_step in zip(new.steps, old.steps, strict=True))
        return [pair.inside(*row) for row in zip(steps, new.children, old.children, strict=True)]
    here, there = dict(zip(new.steps, new.children, strict=True)), dict(zip(old.steps, old.children, strict=True))
    pairs = [pair.inside(step, node, there.get(step)) for step, node in here.items()]
    return pairs + [pair.inside(step, None, node) for step, node in there.items() if step not in here]


def _unequal_print_alike(key: Key, tree: TreeNode) -> tuple[Change, ...]:
    """The trees print alike: if one class alone keeps something that needn't be equal to its like, it is that."""
    pairs = _pair_arguments(key, key, tree, tree)[1] if _is_call(tree) else [_Pair(tree, None, "")]
    opaque: list[tuple[str, TreeNode]] = []
    while pairs and len(opaque) < 2:
        pair = pairs.pop()
        node = pair.new
        if node is not None:
            if "<" in node.static:
                opaque.append((pair.path, node))
            pairs += [pair.inside(*row, None) for row in zip(node.steps, node.children, strict=True)]
    if len(opaque) != 1:
        return ()
    ((path, node),) = opaque
    text = f"{node.name}[{cut_middle(node.static)}]"
    return (Change(path, text, text, "kept"),)


def _describe(node: TreeNode) -> str:
    if node.kind in ("dict", "tuple", "list"):
        return f"{node.kind} of {len(node.children)}"
    return "array" if node.kind == "leaf" else node.name or node.kind
