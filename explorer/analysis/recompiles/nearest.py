"""The nearest earlier call, and the differences of two calls, including those of their argument trees."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any, NamedTuple, cast

import numpy as np

from explorer.model.events.event import spreads
from explorer.model.events.family_counts import type_text
from explorer.model.events.key import Function, Key, Leaf, Static, TreeNode, split_path
from explorer.model.events.leaves import Content, LeafColumns, changed_places, in_columns
from explorer.model.text import cut_middle, cut_middles

# Only the lowering or the compile depends on these: they can't cause a trace.
PLACEMENT = frozenset({"committed", "device", "layout", "donation", "options"})

_LIGHTEST = 1.0  # weight of one difference: no other key that differs weighs less, so the search ends
_WEIGHTS = {"shape": _LIGHTEST, "weak-type": _LIGHTEST, "dtype": 1.2, "rank": 1.5}
_PLACED = 1.0
_IDLE = 0.01  # a difference that can't have caused what happened
_TRANSFORMED = 3.0
_UNTRACED = 5.0  # nothing was traced, so the call to compare with has equal types
_MORE = 0.1  # another leaf that changed like the first
_OTHER = 0.5  # another leaf that changed in a different way
_RECENT_KEYS = 32  # older keys are weighed only if fewer leaves differ than in the nearest so far
_Shape = tuple[int | str, ...]
_make = cast("Any", tuple.__new__)  # takes a fifth of the time of `Difference(…)`
_MAX_WEIGHED = 16  # changed leaves of one key that are weighed individually
_MANY_CHANGED = reduce(add, [_MORE] * (_MAX_WEIGHED - 1), _LIGHTEST)  # least weight of that many leaves


class Difference(NamedTuple):
    """One difference of two keys. Leaves that changed in the same way share one.

    Args:
        kind: Kind of the resulting `Reason`.
        leaf: Changed path, such as `batch['x'].shape[0]` or `n`; empty if it is not an argument.
        axis: Dimension, for a shape.
        at: Index of the leaf in the later key; -1 if it is not a leaf.
        change: Change of the structure, for a structure.
        places: Indices of all leaves that changed in this way, `at` first.
        part_of: For a part of a static argument, the argument.
    """

    kind: str
    leaf: str = ""
    before: str = ""
    after: str = ""
    axis: int = -1
    at: int = -1
    change: Change | None = None
    places: tuple[int, ...] = ()
    part_of: str = ""


def nearest(key: Key, earlier: Sequence[Key], happened: frozenset[str]) -> Key:
    """Return the earlier key with the lightest differences that can have caused `happened`; ties: the latest.

    `earlier` has at least one key, oldest first; `happened` has the steps that the call caused, such as `trace`.
    """
    traced = "trace" in happened
    # Latest first, so that the latest of equally near keys wins.
    best, before = earlier[-1], earlier[-2::-1]
    leaves, best_leaves = in_columns(key.leaves, best.leaves)
    changed = changed_places(leaves.numbers, best_leaves.numbers)
    least = _weight(key, best, traced, _function_weight(key.function, best.function))
    least, fewest = least + _leaves_weight(leaves, best_leaves, changed, traced), len(changed)
    if least <= _LIGHTEST or not before:  # usually the last call is the nearest
        return best
    _, *of_before = in_columns(leaves, *[old.leaves for old in before])
    bounds = _least_weights(leaves, of_before) if traced else [0.0] * len(before)
    for at, (old, old_leaves, bound) in enumerate(zip(before, of_before, bounds, strict=True), 1):
        weight = _function_weight(key.function, old.function)
        if weight + bound >= least:
            continue
        changed = changed_places(leaves.numbers, old_leaves.numbers)
        if at >= _RECENT_KEYS and traced and len(changed) >= fewest:
            continue
        weight = _weight(key, old, traced, weight)
        if weight + bound < least:
            weight += _leaves_weight(leaves, old_leaves, changed, traced)
            if weight >= least:
                continue
            best, least, fewest = old, weight, len(changed)
            if weight <= _LIGHTEST:
                break
    return best


def _function_weight(new: Function, old: Function) -> float:
    return 0.0 if new is old else 1.5 * (new.identity != old.identity) + 3.0 * (not new.is_of_family(old))


def _weight(new: Key, old: Key, traced: bool, weight: float) -> float:
    """Return `weight`, the distance of two functions, plus the distance of their keys without the leaves."""
    if new.structure != old.structure or new.tree is not old.tree:
        weight += 2.0 + 0.1 * abs(len(new.leaves) - len(old.leaves))
    if _differ(new.statics, old.statics):
        weight += len(_static_pairs(new, old))
    if _differ(new.context, old.context):
        weight += 1.2 * len(_pairs(new.context, old.context))
    if not traced and weight:
        weight += _UNTRACED
    if new.transformations != old.transformations:  # what it derives is compiled, with or without a trace
        weight += _TRANSFORMED
    untraced = _differ(new.options, old.options), _differ(new.donated, old.donated), _differ(new.wrapping, old.wrapping)
    return weight + sum(untraced) * (_IDLE if traced else _PLACED)


def _differ(new: object, old: object) -> bool:
    # Equal settings are usually one object. Comparing forty pairs for each earlier key would delay the user's call.
    return new is not old and new != old


def _leaves_weight(new: LeafColumns, old: LeafColumns, changed: Sequence[int], traced: bool) -> float:
    weight, first, weighed = 0.0, "", 0
    rows, numbers, before = new.contents.rows, new.numbers, old.numbers
    for index in changed:
        here, there = rows[numbers[index]], rows[before[index]]
        kind = _traced_kind(here, there)
        if not kind:
            if _is_elsewhere(here, there):
                weight += _IDLE if traced else (_MORE if first else _PLACED)
                first = first or "placed"
            continue
        if first:
            weight += _MORE if kind == first else _OTHER
        else:
            weight += _type_weight(kind, here, there) + (0 if traced else _UNTRACED)
        first = kind
        weighed += 1
        # Thousands of leaves may have changed while the user's call waits: count the rest as alike.
        if weighed == _MAX_WEIGHED:
            return weight + _MORE * (len(new) - index)
    return weight


def _least_weights(leaves: LeafColumns, of_earlier: Sequence[LeafColumns]) -> list[float]:
    """Return a lower bound of the result of `_leaves_weight` for each earlier call; 0 without one."""
    if len(leaves) <= _MAX_WEIGHED or any(len(old) != len(leaves) for old in of_earlier):
        return [0.0] * len(of_earlier)
    # After a leaf with another placement, later leaves may weigh less than the bound.
    if leaves.place < 0 or any(old.place != leaves.place for old in of_earlier):
        places = leaves.contents.places
        if any((places[old.array] != places[leaves.array]).any() for old in of_earlier):
            return [0.0] * len(of_earlier)
    rows = np.concatenate([old.shapes for old in of_earlier]).reshape(len(of_earlier), -1)
    counts: list[int] = np.count_nonzero(rows != leaves.shapes, 1).tolist()
    more = 1 - _MAX_WEIGHED
    return [_MANY_CHANGED + _MORE * (count + more) if count >= _MAX_WEIGHED else 0.0 for count in counts]


def _is_elsewhere(new: Content, old: Content) -> bool:
    return (new.devices, new.sharding, new.layout, bool(new.committed)) != (
        old.devices, old.sharding, old.layout, bool(old.committed),
    )  # fmt: skip


def _type_weight(kind: str, new: Content, old: Content) -> float:
    weight = _WEIGHTS[kind] + (_OTHER if kind != "dtype" and new.dtype != old.dtype else 0)
    if kind != "shape":
        return weight
    return weight + 0.2 * (sum(a != b for a, b in zip(new.shape, old.shape, strict=True)) - 1)


def _traced_kind(new: Content, old: Content) -> str:
    """Return the heaviest kind of difference between the types of two leaves; empty for equal types."""
    if new.shape != old.shape:
        return "rank" if len(new.shape) != len(old.shape) else "shape"
    if new.dtype != old.dtype:
        return "dtype"
    return "weak-type" if new.weak != old.weak else ""


def differences(new: Key, old: Key) -> tuple[Difference, ...]:
    """Return all differences of two keys: function, arguments, then settings and options."""
    is_new_function = new.function.identity != old.function.identity
    rows: list[Difference] = []
    # JAX makes a new function object for a derivative whenever its arguments differ.
    if is_new_function and not new.function.is_derived:
        rows.append(Difference("function"))
    if new.guard:
        name, before, now = new.guard
        rows.append(Difference("guard", name, before, now))
    if new.transformations != old.transformations:
        before, after = map(transformations_text, (old.transformations, new.transformations))
        rows.append(Difference("transformation", "", before, after))
    if new.tree is not old.tree or new.structure != old.structure:
        rows += _structures(new, old) or ([] if _now_static(new, old) else [Difference("structure")])
    rows += _leaf_differences(new, old)
    statics = _static_pairs(new, old)
    rows += [
        _static_difference(path, after, before, new, old)
        for path, after, before in statics
        if not (new.function.eager and _is_program(path))
    ]
    # Without another difference, the new derivative or body is the cause itself.
    if not rows and (is_new_function or any(_is_program(path) for path, _, _ in statics[:1])):
        rows.append(Difference("function"))
    rows += [*_settings(new, old), *_jit_differences(new, old)]
    if (
        not rows
        and new.function.wrapper != old.function.wrapper
        and new.losses == old.losses
        and new.function.is_derived
    ):
        rows.append(Difference("function"))  # another jaxpr, and nothing else is another
    return tuple(rows)


def transformations_text(names: Sequence[str]) -> str:
    """Return transformations around a call as `vmap(linearize)`, the outermost first; `none` for none."""
    return "(".join(names) + ")" * (len(names) - 1) or "none"


def _jit_differences(new: Key, old: Key) -> list[Difference]:
    rows = [_donation(new, old)] if new.donated != old.donated else []
    rows += [Difference("options", name, before, after) for name, after, before in _pairs(new.options, old.options)]
    for name, after, before in _pairs(new.wrapping, old.wrapping):
        # The donated buffers already show a change of the donation arguments.
        if not name.startswith("donate_") or new.donated == old.donated:
            rows.append(Difference(_WRAPPING.get(name, "options"), name, before, after))
    return rows


def _structures(new: Key, old: Key) -> list[Difference]:
    now_static = _now_static(new, old)  # reported as static arguments
    return [
        Difference("class" if c.how == "class" else "structure", c.path, c.before, c.after, change=c)
        for c in changes(new, old)
        if c.path not in now_static
    ]


def _now_static(new: Key, old: Key) -> set[str]:
    here, there = ({leaf.path for leaf in key.leaves} for key in (new, old))
    return {s.path for s in new.statics if s.path in there} | {s.path for s in old.statics if s.path in here}


def _settings(new: Key, old: Key) -> list[Difference]:
    changed = [Difference("context", name, before, after) for name, after, before in _pairs(new.context, old.context)]
    # JAX stores a mesh in several settings, which are one to its user.
    meshes = [difference for difference in changed if "mesh" in difference.leaf]
    if not meshes:
        return changed
    mesh = next((difference for difference in meshes if difference.leaf == "mesh"), meshes[0])
    return [mesh._replace(leaf="mesh"), *(difference for difference in changed if difference not in meshes)]


_WRAPPING = {
    "in_shardings": "sharding", "out_shardings": "sharding", "device": "device", "backend": "device",
    "static_argnums": "static", "static_argnames": "static", "in_layouts": "layout", "out_layouts": "layout",
}  # fmt: skip


def _leaf_differences(new: Key, old: Key) -> list[Difference]:
    """Return the differences of leaves that both keys have, in the order of their first leaf."""
    leaves, old_leaves = in_columns(new.leaves, old.leaves)
    numbers, before = leaves.numbers, old_leaves.numbers_at(leaves.paths)
    changed = changed_places(numbers, before)
    of_pairs: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for at in changed:
        of_pairs[numbers[at], before[at]].append(at)
    rows = leaves.contents.rows
    # A changed batch size changes hundreds of leaves in the same way: one difference holds all of them.
    grouped: dict[tuple[object, ...], Difference] = {}
    for (here, there), places in of_pairs.items():
        if there < 0:  # the leaf is new
            continue
        for row in _differences_of_leaf(tuple(places), leaves.paths[places[0]], rows[here], rows[there]):
            group = row.kind, row.axis, row.before, row.after
            first = grouped.get(group)
            all_places = row.places if first is None else tuple(sorted((*first.places, *row.places)))
            grouped[group] = (first or row)._replace(places=all_places)
    return [*grouped.values()]


def _size_differences(places: tuple[int, ...], path: str, new: _Shape, old: _Shape) -> list[Difference]:
    sizes = enumerate(zip(old, new, strict=True))
    return [
        _make(
            Difference, ("shape", f"{path}.shape[{axis}]", str(before), str(after), axis, places[0], None, places, "")
        )
        for axis, (before, after) in sizes
        if before != after
    ]


def _differences_of_leaf(places: tuple[int, ...], path: str, here: Content, there: Content) -> list[Difference]:
    if here[1:] == there[1:] and len(here.shape) == len(there.shape):  # the frequent case: only sizes differ
        return _size_differences(places, path, here.shape, there.shape)
    rows: list[Difference] = []
    new, old, of_leaf = Leaf(path, *here), Leaf(path, *there), partial(Difference, at=places[0], places=places)
    if new.dtype.startswith("key<") is not old.dtype.startswith("key<"):
        pass  # the shapes of a typed and a raw random key aren't comparable
    elif len(new.shape) != len(old.shape):
        rows.append(of_leaf("rank", f"{path}.ndim", str(len(old.shape)), str(len(new.shape))))
    else:
        rows += _size_differences(places, path, new.shape, old.shape)
    if new.dtype != old.dtype:
        rows.append(of_leaf("dtype", path, old.dtype, new.dtype))
    elif new.weak != old.weak:
        rows.append(of_leaf("weak-type", path, type_text(old), type_text(new)))
    placed = _placement_texts(new, old)
    return [*rows, of_leaf(placed[0], path, *placed[1:])] if placed is not None else rows


def _placement_texts(new: Leaf, old: Leaf) -> tuple[str, str, str] | None:
    """Return the kind of placement that changed (`layout`, `device`, …), before and after; None if none did."""
    if new.layout != old.layout:
        return "layout", old.layout or "default", new.layout or "default"
    if new.sharding != old.sharding:
        return ("sharding", *spreads(old, new))
    if new.devices != old.devices and new.devices and old.devices:
        return "device", ", ".join(old.devices), ", ".join(new.devices)
    # None, of values that are no JAX array, is uncommitted too.
    if bool(new.committed) is not bool(old.committed):
        return "committed", _commitment_text(old), _commitment_text(new)
    return None


def _commitment_text(leaf: Leaf) -> str:
    if leaf.committed:
        return f"committed to {', '.join(leaf.devices)}" if leaf.devices else "committed"
    return "uncommitted" if leaf.committed is not None else f"uncommitted ({leaf.given})"


def _donation(new: Key, old: Key) -> Difference:
    added = [path for path in new.donated if path not in old.donated]
    removed = [path for path in old.donated if path not in new.donated]
    leaf = (added or removed or [""])[0]
    return Difference("donation", leaf, "kept" if added else "donated", "donated" if added else "kept")


def _static_pairs(new: Key, old: Key) -> list[tuple[str, Static | None, Static | None]]:
    if new.statics is old.statics:
        return []
    here, there = {s.path: s for s in new.statics}, {s.path: s for s in old.statics}
    paths = [*here, *(path for path in there if path not in here)]
    return [(p, here.get(p), there.get(p)) for p in paths if _unequal(here.get(p), there.get(p))]


def _unequal(new: Static | None, old: Static | None) -> bool:
    if new is None or old is None:
        return new is not old
    if new.keyword is not old.keyword or new.type != old.type or new.identity != old.identity:
        return True
    if new.number and old.number:
        return new.number != old.number
    return new.token != old.token if new.token and old.token else new.value != old.value


def changed_part(
    new: Sequence[tuple[str, str, int]], old: Sequence[tuple[str, str, int]]
) -> tuple[str, str, str, bool] | None:
    """Return (path, before, after, is_class) of the first part that differs, or None.

    `is_class` is True if the part's class is another one of the same name.
    """
    before = {(path, number < 0): (text, number) for path, text, number in old}
    for path, text, number in new:
        old_text, old_number = before.get((path, number < 0), ("absent", 0))
        if number != old_number if number and old_number else text != old_text:
            return path, old_text, text, number < 0 and text == old_text
    paths = {path for path, _, _ in new}
    return next(((path, text, "absent", False) for path, text, _ in old if path not in paths), None)


def _static_difference(path: str, new: Static | None, old: Static | None, key: Key, old_key: Key) -> Difference:
    part = None
    if new is not None and old is not None and not key.function.eager:  # the parts of JAX's own mean nothing to a user
        part = changed_part(new.parts, old.parts)
    if part is None or (part[0] == path and not part[3]):
        return Difference("static", path, _static_text(old, path, old_key), _static_text(new, path, key))
    leaf, before, after, is_class = part
    if is_class:
        return Difference("class", leaf, before, f"{after}, defined again", part_of=path)
    return Difference("static", leaf, *cut_middles(before, after), part_of=path)


def _is_program(path: str) -> bool:
    """Return True if a static argument is the jaxpr that an eager `scan`, `cond`, … runs."""
    return path.endswith("jaxpr") or path == "branches"


def _static_text(static: Static | None, path: str, key: Key) -> str:
    if static is not None:
        return static.value
    return "an array" if any(leaf.path == path for leaf in key.leaves) else "not given"


def _pairs(new: tuple[tuple[str, str], ...], old: tuple[tuple[str, str], ...]) -> list[tuple[str, str, str]]:
    """Return (name, after, before) of the settings that differ."""
    if new is old:  # the frequent case: forty settings, compared during the user's call
        return []
    here, there = dict(new), dict(old)
    names = [*here, *(name for name in there if name not in here)]
    return [(n, here.get(n, "not set"), there.get(n, "not set")) for n in names if here.get(n) != there.get(n)]


@dataclass(frozen=True, slots=True)
class Change:
    """One difference of two argument trees.

    Args:
        path: `batch['mask']`, or the argument's name.
        before, after: `absent`, `None`, `array`, `list of 2`, …
        how: `added`, `removed`, `moved` (positional ↔ keyword), `kept` (static data of a class), `field` (one field of
            that data), `class` (its class was defined again), `other`.
        parent: Container it was added to or removed from; empty for an argument.
        is_outer: Two containers of different kinds with equal contents.
    """

    path: str
    before: str
    after: str
    how: str = "other"
    parent: str = ""
    is_outer: bool = False


@dataclass(frozen=True, slots=True)
class _Pair:
    """A place in the later and the earlier tree, each None if absent.

    If the path of the place itself is unknown, `is_exact` is false and `path` is that of a container around it.
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
    """Return the differences of two keys' trees, in the order of arguments; empty if unknown."""
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
    """Return True for (positional arguments, keyword arguments), as jax.jit flattens a call."""
    return node.kind == "tuple" and [child.kind for child in node.children] == ["tuple", "dict"]


def _pair_arguments(new: Key, old: Key, after: TreeNode, before: TreeNode) -> tuple[list[Change], list[_Pair]]:
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
    """Return the names and trees of positional arguments; the name is empty if the argument has no leaf."""
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
    # A step into a dict is written `['name']`.
    return {step[2:-2]: node for step, node in zip(arguments.steps, arguments.children, strict=True)}


def _differences(pairs: list[_Pair]) -> Iterator[Change]:
    """Yield the differences at or below each pair. Equal subtrees are one object and are skipped."""
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
    if (new.kind, new.name) != (old.kind, old.name):
        return Change(path, _describe(old), _describe(new), is_outer=new.children == old.children)
    if new.static != old.static or new.fields != old.fields:
        before, after = cut_middles(old.static, new.static)
        kept = Change(path, f"{old.name}[{before}]", f"{new.name}[{after}]", "kept")
        return _changed_field(new, old, path) or kept
    if new.kind != "dict" and len(new.children) != len(old.children):
        return Change(path, _describe(old), _describe(new))
    return None


def _changed_field(new: TreeNode, old: TreeNode, path: str) -> Change | None:
    """Return the change of the first named field that differs between two objects of a class, or None."""
    part = changed_part(new.fields, old.fields)
    if part is None:
        return None
    step, before, after, is_class = part
    if is_class:
        return Change(f"{path}{step}", before, f"{after}, defined again", "class", path)
    return Change(f"{path}{step}", *cut_middles(before, after), "field", path)


def _pair_children(pair: _Pair, new: TreeNode, old: TreeNode) -> list[_Pair]:
    if new.kind != "dict":  # a class names a child only if it has an array in it
        steps = (step or old_step for step, old_step in zip(new.steps, old.steps, strict=True))
        return [pair.inside(*row) for row in zip(steps, new.children, old.children, strict=True)]
    here, there = dict(zip(new.steps, new.children, strict=True)), dict(zip(old.steps, old.children, strict=True))
    pairs = [pair.inside(step, node, there.get(step)) for step, node in here.items()]
    return pairs + [pair.inside(step, None, node) for step, node in there.items() if step not in here]


def _unequal_print_alike(key: Key, tree: TreeNode) -> tuple[Change, ...]:
    """Return one change, of the only class with static data that may be unequal though it prints the same; else ()."""
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
