"""The earlier call that is nearest to one, and in what the two differ."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from operator import is_not
from typing import NamedTuple

from explorer.analysis.recompiles.structure_changes import Change, changes
from explorer.model.events.key import Key, Leaf, Static
from explorer.model.events.placement import placement, spreads

__all__ = ["PLACEMENT", "Difference", "differences", "nearest"]

# What only the lowering or the compile depends on: it can't have caused a trace.
PLACEMENT = frozenset({"committed", "device", "layout", "donation", "options"})

# A key that differs in one thing can't be beaten by another one that differs: the search ends there.
_LIGHTEST = 1.0
_WEIGHTS = {"shape": _LIGHTEST, "weak-type": _LIGHTEST, "dtype": 1.2, "rank": 1.5}
_PLACED = 1.0
_IDLE = 0.01  # a difference that can't have caused what happened
_UNTRACED = 5.0  # nothing was traced, so the call to compare with is one of equal types
_MORE = 0.1  # one more leaf that changed as the first did
_OTHER = 0.5  # one that changed otherwise
_WEIGHED = (
    32  # of the latest keys; of those before them, only the ones in which fewer leaves differ than in the nearest
)
_MOST_WEIGHED = 16  # changed leaves of one key that are weighed one by one


class Difference(NamedTuple):
    """One thing in which two keys differ.

    Args:
        kind: The kind of the `Reason` that it is.
        leaf: What changed: `batch['x'].shape[0]`, `n`; empty if it is no argument.
        before, after: Its values.
        axis: Which dimension, for a shape.
        at: The leaf's place in the later key; -1 if it is no leaf.
        change: For a structure, how it changed.
    """

    kind: str
    leaf: str = ""
    before: str = ""
    after: str = ""
    axis: int = -1
    at: int = -1
    change: Change | None = None


def nearest(key: Key, earlier: Sequence[Key], happened: frozenset[str]) -> Key:
    """The earlier key with the fewest and lightest differences that can have caused `happened`; of equals the latest.

    Args:
        key: The call that was traced or compiled.
        earlier: Those before it, oldest first; at least one.
        happened: Which of `trace`, `lower`, `compile` and `cache-hit` did.
    """
    traced = "trace" in happened
    best, least, fewest, left = earlier[-1], float("inf"), len(key.leaves) + 1, _WEIGHED
    leaves = key.leaves
    for old in reversed(earlier):
        if left <= 0 and traced and sum(map(is_not, leaves, old.leaves)) >= fewest:
            continue
        left -= 1
        weight = _weight(key, old, traced, least)
        if weight < least:
            best, least, fewest = old, weight, sum(map(is_not, leaves, old.leaves))
            # An equal key is as near as can be, and one that differs in the lightest way nearly so.
            if weight <= _LIGHTEST:
                break
    return best


def _weight(new: Key, old: Key, traced: bool, limit: float) -> float:
    weight = 0.0
    if new.function is not old.function:
        if new.function.identity != old.function.identity:
            weight += 1.5
        if new.function.family != old.function.family:
            weight += 3.0
    if new.structure != old.structure or new.tree != old.tree:
        weight += 2.0 + 0.1 * abs(len(new.leaves) - len(old.leaves))
    if new.statics is not old.statics and new.statics != old.statics:
        weight += sum(1.0 for _ in _static_pairs(new, old))
    if new.context is not old.context and new.context != old.context:
        weight += 1.2 * len(_pairs(new.context, old.context))
    if not traced and weight:
        weight += _UNTRACED
    heavy = _IDLE if traced else _PLACED
    if new.options is not old.options and new.options != old.options:
        weight += heavy
    if new.donated is not old.donated and new.donated != old.donated:
        weight += heavy
    if new.wrapping is not old.wrapping and new.wrapping != old.wrapping:
        weight += heavy
    if weight < limit and new.leaves is not old.leaves:
        weight += _leaves_weight(new.leaves, old.leaves, traced)
    return weight


def _leaves_weight(new: tuple[Leaf, ...], old: tuple[Leaf, ...], traced: bool) -> float:
    """Keys hold one object for equal leaves wherever they can: identity alone tells most of what changed."""
    weight, first, weighed = 0.0, "", 0
    for index in compress(range(len(new)), map(is_not, new, old)):
        here, there = new[index], old[index]
        kind = _traced_kind(here, there)
        if not kind:
            if here.devices != there.devices or here.sharding != there.sharding or here.layout != there.layout \
                    or bool(here.committed) is not bool(there.committed):  # fmt: skip
                weight += _IDLE if traced else (_MORE if first else _PLACED)
                first = first or "placed"
            continue
        if not first:
            weight += _WEIGHTS[kind] + (0.2 * (_axes(here, there) - 1) if kind == "shape" else 0)
            weight += _OTHER if kind != "dtype" and here.dtype != there.dtype else 0
            weight += 0 if traced else _UNTRACED
        else:
            weight += _MORE if kind == first else _OTHER
        first = kind
        weighed += 1
        if weighed == _MOST_WEIGHED:
            return weight + _MORE * (len(new) - index)
    return weight


def _axes(new: Leaf, old: Leaf) -> int:
    return sum(a != b for a, b in zip(new.shape, old.shape, strict=True))


def _traced_kind(new: Leaf, old: Leaf) -> str:
    """In what two leaves' types differ; the heaviest, if in several ways."""
    if new.shape != old.shape:
        return "rank" if len(new.shape) != len(old.shape) else "shape"
    if new.dtype != old.dtype:
        return "dtype"
    return "weak-type" if new.weak != old.weak else ""


def differences(new: Key, old: Key) -> tuple[Difference, ...]:
    """All that differs between two keys, what is found in the function first, then the arguments, then the rest."""
    found: list[Difference] = []
    made = new.function.identity != old.function.identity
    # A derivative's program is another one for other arguments.
    if made and "derived" not in new.function.made:
        found.append(Difference("function"))
    if new.tree != old.tree or new.structure != old.structure:
        found += _structures(new, old) or ([] if _now_static(new, old) else [Difference("structure")])
    found += _leaf_differences(new, old)
    statics = _static_pairs(new, old)
    for path, after, before in statics:
        if not (new.function.eager and _is_program(path)):
            found.append(Difference("static", path, _static_text(before, path, old), _static_text(after, path, new)))
    if not found and ((statics and _is_program(statics[0][0])) or made):
        found.append(Difference("function"))
    found += _settings(new, old)
    if new.donated != old.donated:
        found.append(_donation(new, old))
    for name, after, before in _pairs(new.options, old.options):
        found.append(Difference("options", name, before, after))
    for name, after, before in _pairs(new.wrapping, old.wrapping):
        # What was to be donated is told by what was.
        if not name.startswith("donate_") or new.donated == old.donated:
            found.append(Difference(_WRAPPING.get(name, "options"), name, *spreads(before, after)))
    return tuple(found)


def _structures(new: Key, old: Key) -> list[Difference]:
    """Where the trees differ; that an argument is static in one call and an array in the other is told as that."""
    now_static = _now_static(new, old)
    return [
        Difference("structure", c.path, c.before, c.after, change=c)
        for c in changes(new, old)
        if c.path not in now_static
    ]


def _now_static(new: Key, old: Key) -> set[str]:
    """Arguments that are static in one of two calls and arrays in the other."""
    here, there = ({leaf.path for leaf in key.leaves} for key in (new, old))
    return {s.path for s in new.statics if s.path in there} | {s.path for s in old.statics if s.path in here}


def _settings(new: Key, old: Key) -> list[Difference]:
    """A mesh is several settings to JAX, and one to its user."""
    changed = [Difference("context", name, before, after) for name, after, before in _pairs(new.context, old.context)]
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
    if len(new.leaves) == len(old.leaves) and all(
        a.path == b.path for a, b in zip(new.leaves, old.leaves, strict=True)
    ):
        pairs = [(i, a, b) for i, (a, b) in enumerate(zip(new.leaves, old.leaves, strict=True)) if a is not b]
    else:
        there = {leaf.path: leaf for leaf in old.leaves}
        pairs = [(i, leaf, there[leaf.path]) for i, leaf in enumerate(new.leaves) if leaf.path in there]
    found: list[Difference] = []
    axes: dict[tuple[object, object], list[tuple[int, str, str]]] = {}
    for index, here, before in pairs:
        # A size that changes does so in a whole tree of hundreds, and in few ways; and this is in the user's time.
        if here.shape != before.shape and len(here.shape) == len(before.shape) and _alike_but_for_size(here, before):
            changed = axes.get((here.shape, before.shape))
            if changed is None:
                changed = axes[here.shape, before.shape] = [
                    (axis, str(then), str(now))
                    for axis, (now, then) in enumerate(zip(here.shape, before.shape, strict=True))
                    if now != then
                ]
            for axis, then, now in changed:
                found.append(Difference("shape", f"{here.path}.shape[{axis}]", then, now, axis, index))
        else:
            found += _differences_of_leaf(index, here, before)
    return found


def _alike_but_for_size(new: Leaf, old: Leaf) -> bool:
    return (
        new.dtype == old.dtype
        and new.weak == old.weak
        and new.committed == old.committed
        and new.devices == old.devices
        and new.sharding == old.sharding
        and new.layout == old.layout
    )


def _differences_of_leaf(index: int, new: Leaf, old: Leaf) -> list[Difference]:
    found: list[Difference] = []
    if new.dtype.startswith("key<") is not old.dtype.startswith("key<"):
        pass  # a typed key's shape is not that of a raw one
    elif len(new.shape) != len(old.shape):
        found.append(Difference("rank", f"{new.path}.ndim", str(len(old.shape)), str(len(new.shape)), at=index))
    elif new.shape != old.shape:
        for axis, (after, before) in enumerate(zip(new.shape, old.shape, strict=True)):
            if after != before:
                leaf = f"{new.path}.shape[{axis}]"
                found.append(Difference("shape", leaf, str(before), str(after), axis, index))
    if new.dtype != old.dtype:
        found.append(Difference("dtype", new.path, old.dtype, new.dtype, at=index))
    elif new.weak != old.weak:
        found.append(Difference("weak-type", new.path, _type_text(old), _type_text(new), at=index))
    placed = _placement_difference(index, new, old)
    return [*found, placed] if placed is not None else found


def _placement_difference(index: int, new: Leaf, old: Leaf) -> Difference | None:
    """Where it lies. What follows from another difference isn't named beside it."""
    if new.layout != old.layout:
        return Difference("layout", new.path, old.layout or "default", new.layout or "default", at=index)
    if new.sharding != old.sharding:
        return Difference("sharding", new.path, *spreads(placement(old), placement(new)), at=index)
    if new.devices != old.devices and new.devices and old.devices:
        return Difference("device", new.path, ", ".join(old.devices), ", ".join(new.devices), at=index)
    if bool(new.committed) is not bool(old.committed):
        return Difference("committed", new.path, _commitment_text(old), _commitment_text(new), at=index)
    return None


def _type_text(leaf: Leaf) -> str:
    return f"{leaf.dtype}, weak" if leaf.weak else leaf.dtype


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
    here, there = {s.path: s for s in new.statics}, {s.path: s for s in old.statics}
    paths = [*here, *(path for path in there if path not in here)]
    return [(p, here.get(p), there.get(p)) for p in paths if _unequal(here.get(p), there.get(p))]


def _unequal(new: Static | None, old: Static | None) -> bool:
    if new is None or old is None:
        return new is not old
    if new.keyword is not old.keyword or new.type != old.type or new.identity != old.identity:
        return True
    return new.token != old.token if new.token and old.token else new.value != old.value


def _is_program(path: str) -> bool:
    """Whether it is what an eager `scan`, `cond`, … runs. That is another one for arguments of other types."""
    return path.endswith("jaxpr") or path == "branches"


def _static_text(static: Static | None, path: str, key: Key) -> str:
    if static is not None:
        return static.value
    return "an array" if any(leaf.path == path for leaf in key.leaves) else "not given"


def _pairs(new: tuple[tuple[str, str], ...], old: tuple[tuple[str, str], ...]) -> list[tuple[str, str, str]]:
    """(name, after, before) of what differs."""
    here, there = dict(new), dict(old)
    names = [*here, *(name for name in there if name not in here)]
    return [(n, here.get(n, "not set"), there.get(n, "not set")) for n in names if here.get(n) != there.get(n)]
