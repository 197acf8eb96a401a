"""What the caches have seen: the earlier keys that a new one can be compared with, few enough to be quick."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from itertools import islice

from explorer.model.events.key import Function, Key, Leaf, Static
from explorer.model.events.leaves import in_columns

_RECENT = 48  # keys of one function that a new one is compared with
_LEAVES = 2_400  # and fewer of them where they have many leaves, but 8: together these
_EXACT = 2_048  # keys of one function that are known again
_FAMILIES = 1_024
_VALUES = 65_536  # values of one static argument that are counted
_DERIVED = ("derived",)


class _Family:
    """The keys of functions of one name, made in one way."""

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
        """A new session: numbers begin anew."""
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
    """Equal for equal keys."""
    return hash((
        key.function.identity, key.structure, _leaves_mark(key.leaves), key.statics, key.donated,
        id(key.context), key.options, key.wrapping,
    ))  # fmt: skip
