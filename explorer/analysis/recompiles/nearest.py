"""The earlier call that is nearest to one, and in what the two differ."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from operator import is_not
from typing import Any, NamedTuple, cast

from explorer.analysis.recompiles.structure_changes import Change, changes
from explorer.model.events.key import Key, Leaf, Static
from explorer.model.events.placement import spreads
from explorer.model.events.prediction import type_text

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
_Shape = tuple[int | str, ...]
_make = cast("Any", tuple.__new__)  # a fifth of the time that the class's own takes
_MOST_WEIGHED = 16  # changed leaves of one key that are weighed one by one


class Difference(NamedTuple):
    """One thing in which two keys differ; leaves that changed in one and the same way are one.

    Args:
        kind: The kind of the `Reason` that it is.
        leaf: What changed: `batch['x'].shape[0]`, `n`; empty if it is no argument.
        before, after: Its values.
        axis: Which dimension, for a shape.
        at: The leaf's place in the later key; -1 if it is no leaf.
        change: For a structure, how it changed.
        places: Of leaves, the places of all that changed so, `at` first.
    """

    kind: str
    leaf: str = ""
    before: str = ""
    after: str = ""
    axis: int = -1
    at: int = -1
    change: Change | None = None
    places: tuple[int, ...] = ()


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
    """How far apart two keys are; from `limit` on only a lower bound, for then the leaves aren't looked at."""
    weight = 0.0
    if new.function is not old.function:
        weight += 1.5 * (new.function.identity != old.function.identity)
        weight += 3.0 * (new.function.family != old.function.family)
    if new.structure != old.structure or new.tree is not old.tree:
        weight += 2.0 + 0.1 * abs(len(new.leaves) - len(old.leaves))
    if _differ(new.statics, old.statics):
        weight += len(_static_pairs(new, old))
    if _differ(new.context, old.context):
        weight += 1.2 * len(_pairs(new.context, old.context))
    if not traced and weight:
        weight += _UNTRACED
    untraced = _differ(new.options, old.options), _differ(new.donated, old.donated), _differ(new.wrapping, old.wrapping)
    weight += sum(untraced) * (_IDLE if traced else _PLACED)
    if weight < limit and new.leaves is not old.leaves:
        weight += _leaves_weight(new.leaves, old.leaves, traced)
    return weight


def _differ(new: object, old: object) -> bool:
    # Equal settings are mostly one object; comparing forty pairs of them for each earlier key is in the user's time.
    return new is not old and new != old


def _leaves_weight(new: tuple[Leaf, ...], old: tuple[Leaf, ...], traced: bool) -> float:
    """Keys hold one object for equal leaves wherever they can: identity alone finds most of what changed."""
    weight, first, weighed = 0.0, "", 0
    for index in compress(range(len(new)), map(is_not, new, old)):
        here, there = new[index], old[index]
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
        if weighed == _MOST_WEIGHED:
            return weight + _MORE * (len(new) - index)
    return weight


def _is_elsewhere(new: Leaf, old: Leaf) -> bool:
    return (new.devices, new.sharding, new.layout, bool(new.committed)) != (
        old.devices, old.sharding, old.layout, bool(old.committed),
    )  # fmt: skip


def _type_weight(kind: str, new: Leaf, old: Leaf) -> float:
    weight = _WEIGHTS[kind] + (_OTHER if kind != "dtype" and new.dtype != old.dtype else 0)
    return weight + 0.2 * (_axes(new, old) - 1) if kind == "shape" else weight


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
    """All that differs between two keys: the function first, then the arguments, then the rest."""
    is_made_anew = new.function.identity != old.function.identity
    rows: list[Difference] = []
    # A derivative's program is another one for other arguments.
    if is_made_anew and "derived" not in new.function.made:
        rows.append(Difference("function"))
    if new.tree is not old.tree or new.structure != old.structure:
        rows += _structures(new, old) or ([] if _now_static(new, old) else [Difference("structure")])
    rows += _leaf_differences(new, old)
    statics = _static_pairs(new, old)
    rows += [
        Difference("static", path, _static_text(before, path, old), _static_text(after, path, new))
        for path, after, before in statics
        if not (new.function.eager and _is_program(path))
    ]
    if not rows and (is_made_anew or any(_is_program(path) for path, _, _ in statics[:1])):
        rows.append(Difference("function"))
    return (*rows, *_settings(new, old), *_jit_differences(new, old))


def _jit_differences(new: Key, old: Key) -> list[Difference]:
    """What differs in how the `jax.jit` was made."""
    rows = [_donation(new, old)] if new.donated != old.donated else []
    rows += [Difference("options", name, before, after) for name, after, before in _pairs(new.options, old.options)]
    for name, after, before in _pairs(new.wrapping, old.wrapping):
        # Which buffers are given away says what was to be donated.
        if not name.startswith("donate_") or new.donated == old.donated:
            rows.append(Difference(_WRAPPING.get(name, "options"), name, before, after))
    return rows


def _structures(new: Key, old: Key) -> list[Difference]:
    """Where the trees differ; an argument that is static in one call and an array in the other is no such place."""
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
    """The ways in which leaves differ, in the order of their first leaf.

    A size that changes does so in a whole tree of hundreds, and in few ways; and this is in the user's time.
    """
    rows: list[Difference] = []
    of_shapes: dict[tuple[_Shape, _Shape], list[int]] = {}
    for index, here, before in _pair_leaves(new, old):
        shape, old_shape = here[1], before[1]
        if here[2:] == before[2:] and len(shape) == len(old_shape):  # alike but for its size
            places = of_shapes.get((shape, old_shape))
            if places is None:
                of_shapes[shape, old_shape] = [index]
            else:
                places.append(index)
        else:
            rows += _differences_of_leaf(index, here, before)
    for (shape, old_shape), places in of_shapes.items():
        for difference in _size_differences(places[0], new.leaves[places[0]].path, shape, old_shape):
            rows.append(_make(Difference, (*difference[:7], places)))
    return _merged(rows)


def _merged(rows: list[Difference]) -> list[Difference]:
    """One for each way in which leaves changed, in the order of their first leaf."""
    ways: dict[tuple[object, ...], list[Difference]] = {}
    for row in rows:
        ways.setdefault((row.kind, row.axis, row.before, row.after), []).append(row)
    merged = [(sorted(at for row in alike for at in row.places or (row.at,)), alike) for alike in ways.values()]
    merged.sort(key=lambda pair: pair[0][0])
    return [_make(Difference, (*min(alike, key=lambda row: row.at)[:7], tuple(places))) for places, alike in merged]


def _size_differences(index: int, path: str, new: _Shape, old: _Shape) -> list[Difference]:
    return [
        Difference("shape", f"{path}.shape[{axis}]", str(before), str(after), axis, index)
        for axis, (before, after) in enumerate(zip(old, new, strict=True))
        if before != after
    ]


def _pair_leaves(new: Key, old: Key) -> list[tuple[int, Leaf, Leaf]]:
    """The leaves that both keys have and that are not one object, with their place in the later key."""
    new_leaves, old_leaves = new.leaves, old.leaves
    is_alike = new.tree is not None and new.tree is old.tree and len(new_leaves) == len(old_leaves)
    if is_alike or [leaf.path for leaf in new_leaves] == [leaf.path for leaf in old_leaves]:
        return [(i, a, b) for i, (a, b) in enumerate(zip(new_leaves, old_leaves, strict=True)) if a is not b]
    there = {leaf.path: leaf for leaf in old_leaves}
    return [(i, leaf, there[leaf.path]) for i, leaf in enumerate(new_leaves) if leaf.path in there]


def _differences_of_leaf(index: int, new: Leaf, old: Leaf) -> list[Difference]:
    rows: list[Difference] = []
    if new.dtype.startswith("key<") is not old.dtype.startswith("key<"):
        pass  # a typed key's shape is not that of a raw one
    elif len(new.shape) != len(old.shape):
        rows.append(Difference("rank", f"{new.path}.ndim", str(len(old.shape)), str(len(new.shape)), at=index))
    else:
        rows += _size_differences(index, new.path, new.shape, old.shape)
    if new.dtype != old.dtype:
        rows.append(Difference("dtype", new.path, old.dtype, new.dtype, at=index))
    elif new.weak != old.weak:
        rows.append(Difference("weak-type", new.path, type_text(old), type_text(new), at=index))
    placed = _placement_difference(index, new, old)
    return [*rows, placed] if placed is not None else rows


def _placement_difference(index: int, new: Leaf, old: Leaf) -> Difference | None:
    """Where it lies. What follows from another difference isn't named beside it."""
    if new.layout != old.layout:
        return Difference("layout", new.path, old.layout or "default", new.layout or "default", at=index)
    if new.sharding != old.sharding:
        return Difference("sharding", new.path, *spreads(old, new), at=index)
    if new.devices != old.devices and new.devices and old.devices:
        return Difference("device", new.path, ", ".join(old.devices), ", ".join(new.devices), at=index)
    if bool(new.committed) is not bool(old.committed):
        return Difference("committed", new.path, _commitment_text(old), _commitment_text(new), at=index)
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
