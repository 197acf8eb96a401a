"""Reasons of traces and compiles, the history of keys, and predictions of recompiles.

A prediction is about state that a function takes and returns with another type:

    state = step(state, batch)    # compiles; the step counter is a Python int, and is returned as an array
    state = step(state, batch)    # compiles again, for an array

The first compile shows both types, but not that the result is passed in again, so a prediction says "if". An
argument of several arrays is compared with each result of equal structure and shapes. So is one array in a dict or
the like, but for its weak type only. A bare array is compared with the first result only, because many functions
return an array of its shape.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest

import numpy as np

from explorer.analysis.recompiles.case import Case, defined_in_a_cell, sentence
from explorer.analysis.recompiles.fixes import fix
from explorer.analysis.recompiles.nearest import PLACEMENT, Difference, differences, nearest
from explorer.model.events.event import Reason
from explorer.model.events.family_counts import Prediction, type_text
from explorer.model.events.key import Function, Key, Leaf, Static
from explorer.model.events.leaves import in_columns

# Precedence of sufficient causes: first those that others follow from, or that would remain if the others were fixed.
_ORDER = (
    "function", "guard", "class", "transformation", "structure", "context", "rank", "dtype", "shape", "weak-type",
    "static", "donation", "options", "sharding", "device", "layout", "committed",
)  # fmt: skip
_OF_TYPES = frozenset({"shape", "rank", "dtype", "weak-type"})
# The column of a leaf that is searched in earlier calls; other kinds compare the whole placement.
_COMPARED = {"shape": "shapes", "rank": "shapes", "dtype": "types", "weak-type": "types"}
_PLACES = frozenset({"sharding", "device", "committed"})
_MAX_SEARCHED = 64  # latest calls that are searched for the values of this call


def explain(
    key: Key, earlier: Sequence[Key], happened: frozenset[str], value_counts: Mapping[str, int] | None = None
) -> Reason:
    """Return the reason why a call was traced or compiled.

    Args:
        key: The call.
        earlier: Earlier calls of functions with the same name, oldest first.
        happened: The steps that the call caused, of `trace`, `lower`, `compile` and `cache-hit`; empty for a call that
            only left the fast path.
        value_counts: Number of values of each static argument so far, this call included. `earlier` may be shortened.

    Example:
        >>> from explorer.model.events.key import Function, Key, Leaf
        >>> step = Function("step", "train.py", 3)
        >>> small, large = (Key(step, (Leaf("x", (rows, 128), "float32"),)) for rows in (32, 33))
        >>> reason = explain(large, [small], frozenset({"trace", "lower", "compile"}))
        >>> reason.kind, reason.leaf, reason.before, reason.after
        ('shape', 'x.shape[0]', '32', '33')
        >>> print(reason)
        `x.shape[0]` was 32 and is now 33
    """
    relations = relatives(key, earlier)
    if not relations:
        hot = " that hot paths compile" * key.function.is_hot
        derived = "what JAX derived from " * (key.function.is_derived)
        return Reason("first", text=f"the first call of {derived}`{key.function.name}`{hot}")
    old = nearest(key, relations, happened)
    every = differences(key, old)
    causes = [difference for difference in every if difference.kind not in PLACEMENT or "trace" not in happened]
    if not causes:
        return _without_cause(key, old, every, happened)
    causes = _sufficient(causes, key, relations)
    kind = min((difference.kind for difference in causes), key=_ORDER.index)
    # The difference that most leaves share.
    chosen = max((d for d in causes if d.kind == kind), key=lambda difference: len(difference.places))
    case = Case(key, old, chosen, tuple(relations), value_counts or {}, tuple(causes))
    before, after = chosen.before, chosen.after
    if chosen.kind == "function" and not case.is_body:
        before, after = old.function.name, f"{key.function.name}, made again"
    return Reason(
        chosen.kind,
        chosen.leaf if chosen.kind != "function" else "",
        before,
        after,
        fix="\n".join(dict.fromkeys(filter(None, [fix(case), *_fixes_of_types(case), _fix_of_place(case, every)]))),
        text=sentence(case, [difference for difference in causes if difference is not chosen]),
    )


def _fixes_of_types(case: Case) -> Iterator[str]:
    # A call with other shapes and other dtypes needs a fix of each, or it compiles again.
    aspect = _COMPARED.get(case.chosen.kind)
    for other in ("shapes", "types") if aspect else ():
        differences = [difference for difference in case.causes if _COMPARED.get(difference.kind) == other]
        if other != aspect and differences:
            yield fix(replace(case, chosen=max(differences, key=lambda difference: len(difference.places))))


def _fix_of_place(case: Case, every: tuple[Difference, ...]) -> str:
    """Return the fix of a changed placement, for a call that was traced for its types; else an empty text."""
    if case.chosen.kind not in _OF_TYPES:
        return ""
    placed = tuple(difference for difference in every if difference.at >= 0 and difference.kind in _PLACES)
    return fix(replace(case, chosen=placed[0], causes=placed)) if placed else ""


def explain_raised(key: Key, earlier: Sequence[Key], error: str) -> Reason:
    """Return the reason of a trace that raised an error. No cache keeps it, so each such call traces again."""
    text = (
        f"tracing `{key.function.name}` raised {error}, and JAX keeps no failed trace: each such call is traced again"
    )
    fix = f"fix the {error}; a call that may fail should be tried once, not in the loop"
    cause = explain(key, earlier, frozenset({"trace"}))
    if not cause.leaf or cause.kind in ("evicted", "unknown"):
        return Reason("raised", fix=fix, text=text)
    return Reason("raised", cause.leaf, cause.before, cause.after, fix, f"{text}; {cause.text}")


def relatives(key: Key, earlier: Sequence[Key]) -> list[Key]:
    """Return the earlier keys of the same function: defined at one place, or with one name in cells.

    A changed cell that runs again is another file with other lines. In a script these would be two functions.
    """
    function, is_hot = key.function, key.function.is_hot
    cell = function.name != "<lambda>" and defined_in_a_cell(function)

    def is_relative(other: Function) -> bool:
        is_same = function.is_of_family(other) or (cell and other.name == function.name and defined_in_a_cell(other))
        return is_same and other.is_hot is is_hot

    return [old for old in earlier if old.function is function or is_relative(old.function)]


def _sufficient(causes: list[Difference], key: Key, earlier: Sequence[Key]) -> list[Difference]:
    """Return the causes that none of the latest earlier calls had, each sufficient alone; all if each was seen."""
    if len(causes) == 1 or len(earlier) == 1:
        return causes
    latest = earlier[-_MAX_SEARCHED:]
    leaves, *olds = in_columns(key.leaves, *(old.leaves for old in latest))
    rows = np.concatenate([old.array_at(leaves.paths) for old in olds]).reshape(len(olds), -1)
    seen: dict[str, list[bool]] = {}  # by column: whether an earlier call had the leaf's value

    def is_seen(difference: Difference) -> bool:
        if difference.at < 0:
            return any(_was_as_now(old, difference, key) for old in latest)
        part = _COMPARED.get(difference.kind, "places")
        if part not in seen:
            numbers = getattr(leaves.contents, part)
            seen[part] = ((numbers[rows] == numbers[leaves.array]) & (rows >= 0)).any(0).tolist()
        return seen[part][difference.at]

    return [difference for difference in causes if not is_seen(difference)] or causes


def _was_as_now(old: Key, difference: Difference, key: Key) -> bool:
    kind = difference.kind
    if kind == "guard":
        return False  # a guard always reports a change
    if kind == "function":
        # An eager `scan` keeps its function object for every body.
        return old.function.identity == key.function.identity and not key.function.eager
    if kind == "transformation":
        return old.transformations == key.transformations
    if kind == "class":
        return False  # no earlier call had the new class
    if kind == "structure":
        return old.tree == key.tree and old.structure == key.structure
    if kind == "context":
        return dict(old.context).get(difference.leaf, "not set") == difference.after
    if kind == "static":
        values = {static.path: (static.token, static.value, static.keyword) for static in key.statics}
        path = difference.part_of or difference.leaf
        return any((s.token, s.value, s.keyword) == values.get(s.path) for s in old.statics if s.path == path)
    if kind == "donation":
        return old.donated == key.donated
    return dict((*old.options, *old.wrapping)).get(difference.leaf, "not set") == difference.after


def _without_cause(key: Key, old: Key, every: tuple[Difference, ...], happened: frozenset[str]) -> Reason:
    name = f"`{key.function.name}`"
    if key.function.is_hot and key.function.wrapper != old.function.wrapper:
        return Reason(
            "evicted",
            fix="turn the same hot paths on again, hot.start(), or leave one ex.auto_compile() on around all calls",
            text=f"{name} was compiled for calls like this before: other hot paths have a copy of their own",
        )
    if happened and key.losses == old.losses:
        return Reason(
            "unknown",
            text=f"{name} was called like this before: why it compiled again can't be seen in its arguments, settings "
            "or options, and no cache is known to have dropped it",
        )
    if happened:
        steps = ", ".join(step for step in ("trace", "lower", "compile", "cache-hit") if step in happened)
        return Reason(
            "evicted",
            fix="leave jax.clear_caches() out of the loop, and keep a reference to the function that is jitted",
            text=f"{name} was called like this before, and JAX dropped the result ({steps} again): the caches were "
            "cleared, or the entry was pushed out of a full one",
        )
    if key.function.wrapper != old.function.wrapper:
        return Reason(
            "unknown",
            text=f"nothing was compiled: {name} was wrapped in a new jax.jit(…), which found the program in the cache",
        )
    for new, there in zip(key.leaves, old.leaves, strict=False):
        if new.given != there.given:
            return Reason(
                "unknown",
                new.path,
                there.given,
                new.given,
                text=f"nothing was compiled: `{new.path}` came as {there.given} before and as {new.given} now, "
                "and the fast path has an entry for each",
            )
    return Reason(
        "unknown", text=f"why {name} left the fast path can't be seen from its arguments; nothing was compiled"
    )


_MAX_RECENT = 48  # keys of one function that a new key is compared with
_MAX_LEAVES = 2_400  # in all these keys together; at least 8 keys are compared
_MAX_EXACT = 2_048  # keys of one function that are found again by their content
_MAX_FAMILIES = 1_024
_MAX_VALUES = 65_536  # values of one static argument that are counted


class _Family:
    __slots__ = ("by_mark", "recent", "values")

    def __init__(self) -> None:
        self.values: dict[tuple[str, int, str], set[int]] = {}  # by place of definition and static argument
        self.recent: deque[tuple[int, Key]] = deque(maxlen=_MAX_RECENT)
        self.by_mark: OrderedDict[int, Key] = OrderedDict()  # see `_mark`


class History:
    """Earlier keys and numbers of compiles, by function.

    JAX's caches outlive a watching session, and so does the history. A key of an earlier session counts only for the
    same function object: another function with its name and place may come from an earlier run of a cell or a test.
    """

    def __init__(self) -> None:
        self._families: OrderedDict[tuple[str, tuple[str, ...]], _Family] = OrderedDict()
        self._compiled: dict[tuple[str, str, int], int] = {}
        self._session = 0

    def renew(self) -> None:
        self._session += 1
        self._compiled.clear()

    def earlier(self, key: Key) -> Sequence[Key]:
        """Return the keys to compare with, oldest first; an equal key of the same function object comes last."""
        family = self._family(key)
        most = max(8, _MAX_LEAVES // (len(key.leaves) + 1))
        start = max(0, len(family.recent) - most)
        identity = key.function.identity
        derived = key.function.is_derived  # two derivatives of a function aren't two versions of one function
        current = None if derived else self._session
        comparable = [
            old
            for session, old in islice(family.recent, start, None)
            if session == current or old.function.identity == identity
        ]
        # Last, because calls since the equal one are not the reason that it compiles again.
        same = family.by_mark.get(_mark(key))
        if same is not None and same.function.identity == identity:
            comparable = [*(old for old in comparable if old is not same), same]
        return comparable

    def add(self, key: Key) -> None:
        family = self._family(key)
        family.recent.append((self._session, key))
        mark = _mark(key)
        family.by_mark[mark] = key
        family.by_mark.move_to_end(mark)
        if len(family.by_mark) > _MAX_EXACT:
            family.by_mark.popitem(last=False)
        for static in key.statics:
            values = family.values.setdefault(_place(key, static), set())
            if len(values) < _MAX_VALUES:
                # Hashes, as values may be long and only their number counts.
                values.add(hash((static.token, static.value)))

    def value_counts(self, key: Key) -> dict[str, int]:
        """Return the number of values of each static argument so far, those of `key` included."""
        if not key.statics:
            return {}
        values = self._family(key).values
        return {
            static.path: len(values.get(_place(key, static), set()) | {hash((static.token, static.value))})
            for static in key.statics
        }

    def number(self, function: Function) -> int:
        """Count a compile of the function's family and return its number, from 1."""
        number = self._compiled[function.family] = self._compiled.get(function.family, 0) + 1
        return number

    def _family(self, key: Key) -> _Family:
        # Not by place: a changed cell that runs again is another file, but the same function to its author.
        name = key.function.name, key.function.made
        family = self._families.get(name)
        if family is None:
            family = self._families[name] = _Family()
            if len(self._families) > _MAX_FAMILIES:
                self._families.popitem(last=False)
        else:
            self._families.move_to_end(name)  # a long session drops the family that is unused for longest
        return family


def _place(key: Key, static: Static) -> tuple[str, int, str]:
    return key.function.file, key.function.line, static.path


def same_last(key: Key, earlier: Sequence[Key]) -> list[Key]:
    """Return the keys in the order of `History.earlier`: those equal to `key` last."""
    mark = _mark(key)
    return sorted(earlier, key=lambda old: _mark(old) == mark)


def _mark(key: Key) -> int:
    # The context by identity: it is long, and equal ones are mostly one object.
    return hash((
        key.function.identity, key.structure, in_columns(key.leaves)[0].mark(), key.statics, key.donated,
        id(key.context), key.options, key.wrapping, key.transformations,
    ))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Part:
    """One argument, the whole result, or one element of the result.

    Args:
        path: `state`, `result`, `result[0]`.
        tree: Structure; any value that is equal for equal structures.
        leaves: Arrays in order; their path, shape, dtype and weak type count.
    """

    path: str
    tree: object
    leaves: tuple[Leaf, ...]


def predictions(function: Function, arguments: Sequence[Part], results: Sequence[Part]) -> tuple[Prediction, ...]:
    """Return a prediction for each result that would compile again if passed in as an argument.

    `arguments` are those with arrays, in order. `results` begins with the whole result, followed by its elements if it
    is a tuple or a list.

    Example:
        >>> from explorer.model.events.key import Function, Leaf
        >>> taken = Part("n", "*", (Leaf("n", (), "int32", weak=True),))
        >>> given = Part("result", "*", (Leaf("result", (), "int32"),))
        >>> print(predictions(Function("count"), [taken], [given])[0])
        count takes `n` as int32, weak and returns it as int32: if the result is passed in again, count compiles again.
    """
    predicted: list[Prediction] = []
    for index, argument in enumerate(arguments):
        fits = [result for result in results if _is_state(argument, index, result, results)]
        # If a result has the argument's exact type, that one is probably passed in again.
        nearest = min(fits, key=lambda result: len(_differing(argument, result)), default=None)
        if nearest is not None:
            by_types: dict[tuple[str, str], list[tuple[Leaf, Leaf]]] = {}
            for taken, given in _differing(argument, nearest):
                by_types.setdefault((type_text(taken), type_text(given)), []).append((taken, given))
            predicted += [_prediction(function, pairs, nearest.path) for pairs in by_types.values()]
    return tuple(predicted)


def _is_state(argument: Part, index: int, result: Part, results: Sequence[Part]) -> bool:
    if argument.tree != result.tree or not argument.leaves:
        return False
    if any(a is None or b is None or a.shape != b.shape for a, b in zip_longest(argument.leaves, result.leaves)):
        return False
    if len(argument.leaves) > 1:
        return True
    # A dict of one number returned as such a dict is the same state; a bare array may be unrelated.
    is_named = any(leaf.path != argument.path for leaf in argument.leaves)
    is_first = index == 0 and any(result is one for one in results[:2])
    pairs = zip(argument.leaves, result.leaves, strict=True)
    return (is_named or is_first) and all(taken.dtype == given.dtype for taken, given in pairs)


def _differing(argument: Part, result: Part) -> list[tuple[Leaf, Leaf]]:
    pairs = zip(argument.leaves, result.leaves, strict=True)
    return [(taken, given) for taken, given in pairs if type_text(taken) != type_text(given)]


def _prediction(function: Function, pairs: list[tuple[Leaf, Leaf]], result: str) -> Prediction:
    taken, given = pairs[0]
    name, before, after = function.name, type_text(taken), type_text(given)
    back = "the result" if result == "result" else result
    others = f", like {len(pairs) - 1} more of its arrays" if len(pairs) > 1 else ""
    return Prediction(
        name, taken.path, before, after, _fix_of_state(taken, given),
        f"{name} takes `{taken.path}` as {before} and returns it as {after}{others}: if {back} is passed in again, "
        f"{name} compiles again.",
        result, tuple(taken.path for taken, _ in pairs), ("", *function.family),
    )  # fmt: skip


def _fix_of_state(taken: Leaf, given: Leaf) -> str:
    if taken.dtype == given.dtype and taken.weak:
        return f"jnp.asarray({taken.path}, dtype=jnp.{given.dtype})"
    if taken.dtype == given.dtype:
        return f"return jnp.asarray(…, dtype=jnp.{taken.dtype}) for {taken.path}"
    return f"return ….astype(jnp.{taken.dtype}) for {taken.path}"
