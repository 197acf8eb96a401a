"""Reasons of traces and compiles: the key of a call compared with the nearest earlier one, and which keys are kept."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from explorer.analysis.recompiles.case import Case, defined_in_a_cell, sentence
from explorer.analysis.recompiles.fixes import fix
from explorer.analysis.recompiles.nearest import PLACEMENT, Difference, differences, nearest
from explorer.model.events.event import Reason
from explorer.model.events.key import Function, Key, Leaf, Static
from explorer.model.events.leaves import in_columns

# Of several sufficient causes the one is named that the others follow from, or that would remain if they were cured.
_ORDER = (
    "function", "guard", "structure", "context", "rank", "dtype", "shape", "weak-type", "static",
    "donation", "options", "sharding", "device", "layout", "committed",
)  # fmt: skip
_OF_TYPES = frozenset({"shape", "rank", "dtype", "weak-type"})
# The part of a leaf's content that is looked for in earlier calls; of places all that says where it lies.
_COMPARED = {"shape": "shapes", "rank": "shapes", "dtype": "types", "weak-type": "types"}
_PLACES = frozenset({"sharding", "device", "committed"})
# Of the latest calls, as many are searched for what this one has.
_REMEMBERED = 64


def explain(
    key: Key, earlier: Sequence[Key], happened: frozenset[str], value_counts: Mapping[str, int] | None = None
) -> Reason:
    """Why a call had to be traced or compiled.

    Args:
        key: The call.
        earlier: Earlier calls of functions with its name, oldest first.
        happened: Which of `trace`, `lower`, `compile` and `cache-hit` it caused; empty for a call that merely left the
            fast path.
        value_counts: How many values each static argument has had with this call, `earlier` being only the latest.

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
        return Reason("first", text=f"the first call of {_name_text(key.function)}{hot}")
    old = nearest(key, relations, happened)
    every = differences(key, old)
    causes = [difference for difference in every if _can_cause(difference, happened)]
    if not causes:
        return _without_cause(key, old, every, happened)
    causes = _sufficient(causes, key, relations)
    kind = min((difference.kind for difference in causes), key=_ORDER.index)
    # Of all ways in which leaves changed so, the one of the most leaves.
    chosen = max((d for d in causes if d.kind == kind), key=lambda difference: len(difference.places))
    case = Case(key, old, chosen, tuple(relations), value_counts or {}, tuple(causes))
    return Reason(
        chosen.kind,
        _leaf(chosen),
        *_values(case),
        fix="\n".join(dict.fromkeys(filter(None, [fix(case), *_fixes_of_types(case), _fix_of_place(case, every)]))),
        text=sentence(case, [difference for difference in causes if difference is not chosen]),
    )


def _fixes_of_types(case: Case) -> Iterator[str]:
    aspect = _COMPARED.get(case.chosen.kind)
    for other in ("shapes", "types") if aspect else ():
        differences = [difference for difference in case.causes if _COMPARED.get(difference.kind) == other]
        if other != aspect and differences:
            yield fix(replace(case, chosen=max(differences, key=lambda difference: len(difference.places))))


def _fix_of_place(case: Case, every: tuple[Difference, ...]) -> str:
    """What to do besides, where a call that was traced for its types would be compiled for its arguments' place too."""
    if case.chosen.kind not in _OF_TYPES:
        return ""
    placed = tuple(difference for difference in every if difference.at >= 0 and difference.kind in _PLACES)
    return fix(replace(case, chosen=placed[0], causes=placed)) if placed else ""


def explain_raised(key: Key, earlier: Sequence[Key], error: str) -> Reason:
    """Why a call was traced whose trace raised: no cache keeps such a one, so each that is like it is traced again.

    Args:
        key, earlier: As for `explain`.
        error: The type of what it raised.
    """
    name = _name_text(key.function)
    text = f"tracing {name} raised {error}, and nothing is kept of that: each call like it is traced again"
    fix = f"see to the {error}; a call that may fail should be tried once, not in the loop"
    cause = explain(key, earlier, frozenset({"trace"}))
    if not cause.leaf or cause.kind in ("evicted", "unknown"):
        return Reason("raised", fix=fix, text=text)
    return Reason("raised", cause.leaf, cause.before, cause.after, fix, f"{text}; {cause.text}")


def relatives(key: Key, earlier: Sequence[Key]) -> list[Key]:
    """The earlier keys of what a person calls the same function: of one place of definition, or one name in cells.

    A cell that was changed and run again is another file with other lines; in a script these are two functions.
    """
    function, is_hot = key.function, key.function.is_hot
    cell = function.name != "<lambda>" and defined_in_a_cell(function)

    def is_relative(other: Function) -> bool:
        is_same = function.is_of_family(other) or (cell and other.name == function.name and defined_in_a_cell(other))
        return is_same and other.is_hot is is_hot

    return [old for old in earlier if old.function is function or is_relative(old.function)]


def _can_cause(difference: Difference, happened: frozenset[str]) -> bool:
    return difference.kind not in PLACEMENT or "trace" not in happened


def _sufficient(causes: list[Difference], key: Key, earlier: Sequence[Key]) -> list[Difference]:
    """Those that no earlier call had, each of which would have been enough; all, if every one was seen before."""
    if len(causes) == 1 or len(earlier) == 1:
        return causes
    latest = earlier[-_REMEMBERED:]
    leaves, *olds = in_columns(key.leaves, *(old.leaves for old in latest))
    rows = np.concatenate([old.array_at(leaves.paths) for old in olds]).reshape(len(olds), -1)
    seen: dict[str, list[bool]] = {}  # by what is compared: for each leaf, if an earlier call had it so

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
        return False  # each is a change
    if kind == "function":
        return old.function.identity == key.function.identity and not key.function.eager
    if kind == "structure":
        return old.tree == key.tree and old.structure == key.structure
    if kind == "context":
        return dict(old.context).get(difference.leaf, "not set") == difference.after
    if kind == "static":
        values = {static.path: (static.token, static.value, static.keyword) for static in key.statics}
        return any(
            (s.token, s.value, s.keyword) == values.get(s.path) for s in old.statics if s.path == difference.leaf
        )
    if kind == "donation":
        return old.donated == key.donated
    return dict((*old.options, *old.wrapping)).get(difference.leaf, "not set") == difference.after


def _leaf(chosen: Difference) -> str:
    return chosen.leaf if chosen.kind not in ("function", "evicted") else ""


def _values(case: Case) -> tuple[str, str]:
    if case.chosen.kind == "function" and not case.is_body:
        return case.old.function.name, f"{case.key.function.name}, made again"
    return case.chosen.before, case.chosen.after


def _name_text(function: Function) -> str:
    return f"`{function.name}`"


def _without_cause(key: Key, old: Key, every: tuple[Difference, ...], happened: frozenset[str]) -> Reason:
    name = _name_text(key.function)
    if key.function.is_hot and key.function.wrapper != old.function.wrapper:
        return Reason(
            "evicted",
            fix="turn the same hot paths on again, hot.start(), or leave one ex.auto_compile() on around all calls",
            text=f"{name} was compiled for calls like this before: other hot paths have a copy of their own",
        )
    if happened & {"trace", "lower", "compile"}:
        steps = ", ".join(step for step in ("trace", "lower", "compile", "cache-hit") if step in happened)
        return Reason(
            "evicted",
            fix="leave jax.clear_caches() out of the loop, and keep a reference to the function that is jitted",
            text=f"{name} was called like this before, and that was forgotten ({steps} again): the caches were "
            "cleared, or the entry was pushed out of a full one",
        )
    if key.function.wrapper != old.function.wrapper:
        return Reason(
            "unknown", text=f"nothing was compiled: {name} was wrapped in a new jax.jit(…), which found its work done"
        )
    for new, there in zip(key.leaves, old.leaves, strict=False):
        if new.given != there.given:
            return Reason(
                "unknown",
                new.path,
                there.given,
                new.given,
                text=f"nothing was compiled: `{new.path}` came as {there.given} before and as {new.given} now, "
                "for each of which the fast path has an entry of its own",
            )
    return Reason(
        "unknown", text=f"why {name} left the fast path can't be seen from its arguments; nothing was compiled"
    )


_RECENT = 48  # keys of one function that a new one is compared with
_LEAVES = 2_400  # and fewer of them where they have many leaves, but 8: together these
_EXACT = 2_048  # keys of one function that are known again
_FAMILIES = 1_024
_VALUES = 65_536  # values of one static argument that are counted
_DERIVED = ("derived",)


class _Family:
    __slots__ = ("by_mark", "recent", "values")

    def __init__(self) -> None:
        self.values: dict[tuple[str, int, str], set[int]] = {}  # of each static argument: of a place and a name
        self.recent: deque[tuple[int, Key]] = deque(maxlen=_RECENT)
        self.by_mark: OrderedDict[int, Key] = OrderedDict()  # by what is hashed of them


class History:
    """Earlier keys by function, and the numbers of its compiles.

    It outlives a session of watching, as JAX's caches do: a key of an earlier session counts where it is of the very
    same function object. Other functions of that name and place may be of a cell's or a test's earlier life.
    """

    def __init__(self) -> None:
        self._families: OrderedDict[tuple[str, tuple[str, ...]], _Family] = OrderedDict()
        self._compiled: dict[tuple[str, str, int], int] = {}
        self._session = 0

    def renew(self) -> None:
        self._session += 1
        self._compiled.clear()

    def earlier(self, key: Key) -> Sequence[Key]:
        """Those to compare with, oldest first: the most recent, and last the very same one, if there was one.

        It is the one that is looked at first: what other calls came since is not why it is compiled again.
        """
        family = self._family(key)
        most = max(8, _LEAVES // (len(key.leaves) + 1))
        start = max(0, len(family.recent) - most)
        identity = key.function.identity
        derived = key.function.made == _DERIVED  # two derivatives of one function are not two versions of one thing
        current = None if derived else self._session
        comparable = [
            old
            for session, old in islice(family.recent, start, None)
            if session == current or old.function.identity == identity
        ]
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
        if len(family.by_mark) > _EXACT:
            family.by_mark.popitem(last=False)
        for static in key.statics:
            values = family.values.setdefault(_place(key, static), set())
            if len(values) < _VALUES:
                values.add(hash((static.token, static.value)))

    def value_counts(self, key: Key) -> dict[str, int]:
        """How many values each static argument of a function has had, those of `key` included."""
        if not key.statics:
            return {}
        values = self._family(key).values
        return {
            static.path: len(values.get(_place(key, static), set()) | {hash((static.token, static.value))})
            for static in key.statics
        }

    def number(self, function: Function) -> int:
        """Count a compile of its family, from 1."""
        number = self._compiled[function.family] = self._compiled.get(function.family, 0) + 1
        return number

    def _family(self, key: Key) -> _Family:
        # Not by place: a cell that was changed and run again is another file, and one function to its author.
        name = key.function.name, key.function.made
        family = self._families.get(name)
        if family is None:
            family = self._families[name] = _Family()
            if len(self._families) > _FAMILIES:
                self._families.popitem(last=False)
        else:
            self._families.move_to_end(name)  # what is in use is not what a long session forgets
        return family


def _place(key: Key, static: Static) -> tuple[str, int, str]:
    return key.function.file, key.function.line, static.path


def same_last(key: Key, earlier: Sequence[Key]) -> list[Key]:
    """The same keys as `History.earlier` orders them: those that equal `key` are the last."""
    mark = _mark(key)
    return sorted(earlier, key=lambda old: _mark(old) == mark)


def _leaves_mark(leaves: Sequence[Leaf]) -> int:
    return in_columns(leaves)[0].mark()


def _mark(key: Key) -> int:
    return hash((
        key.function.identity, key.structure, _leaves_mark(key.leaves), key.statics, key.donated,
        id(key.context), key.options, key.wrapping,
    ))  # fmt: skip
