"""Where an instruction was born, what it was made from, what it became, and where it died.

A pass tells nothing about that. What is said here is read off the modules before and after it. Certain is what the
text shows by itself: the name was kept, a reader of the dead one reads the new one in the same place, nobody read it.
What follows from equal structure (the root of a new fusion is the instruction that the fusion stands for, and so on up
its operands) is marked as inferred. The rest is said to be unknown.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from explorer.errors import UnknownNameError
from explorer.model.passes import Effect, Pass, Passes

__all__ = ["KINDS", "Event", "History", "Link", "Lives", "links"]

KINDS = ("rewritten", "merged", "fused", "duplicated", "with", "unused", "unknown", "replaced", "inlined")
_SAYS = {
    "rewritten": "replaced by {}",
    "merged": "merged into {}, which was there already",
    "replaced": "replaced by {}, which was there already",
    "inlined": "inlined into {}",
    "fused": "fused into {}",
    "duplicated": "copied into {}",
    "with": "gone with its only reader {}",
    "unused": "removed: nothing read it",
    "unknown": "gone; what became of it can't be told from the text",
}
_MOST_EVENTS = 60  # of one history: a constant may have come from a hundred others


class Link(NamedTuple):
    """What became of one instruction in one pass; `old` and `new` are keys, `new` is -1 where there is nothing.

    Args:
        position: Of the pass among those that changed something.
        kind: One of `KINDS`.
        inferred: It follows from equal structure, not from a reader that was rewired.
    """

    position: int
    old: int
    kind: str
    new: int
    inferred: bool


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to an instruction; `position` is that of the pass, -1 before all passes."""

    position: int
    pass_name: str
    name: str
    says: str
    others: tuple[str, ...] = ()
    text: str = ""
    inferred: bool = False


@dataclass(frozen=True)
class History:
    """All that happened to an instruction, and to what it came from and what it became, in order."""

    name: str
    events: tuple[Event, ...]

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)

    def __repr__(self) -> str:
        wide = max((len(event.pass_name) for event in self.events), default=0)
        named = max((len(event.name) for event in self.events), default=0)
        rows = [
            f"  {event.pass_name:<{wide}}  {event.name:<{named}}  {event.says}{' (inferred)' * event.inferred}"
            for event in self.events
        ]
        return "\n".join([f"History of {self.name}", *rows])


def links(passes: Passes) -> list[Link]:
    """What became of every instruction that died or was copied, pass by pass."""
    found: list[Link] = []
    for position, one in enumerate(passes):
        found += _Inference(passes, one, position).links()
    return found


class _Inference:
    """One pass: the instructions it removed, and what stands in their place."""

    def __init__(self, passes: Passes, one: Pass, position: int) -> None:
        versions = self.versions = passes.versions
        self.position = position
        before, after = versions.rows(one.first), versions.rows(one.snapshot)
        self.effect: Effect = passes.effects[position]
        key = versions.key
        self.row_before = {int(key[row]): int(row) for row in before if key[row] >= 0}
        self.row_after = {int(key[row]): int(row) for row in after if key[row] >= 0}
        self.dead = {int(key[row]): row for row in self.effect.died}
        self.born = {int(key[row]): row for row in self.effect.born}
        self.found: dict[int, list[Link]] = {}

    def links(self) -> list[Link]:
        if not self.dead and not self.born:
            return []
        self.rewired()
        self.fused()
        self.inlined()
        self.alone()
        return [link for links in self.found.values() for link in links]

    def add(self, old: int, kind: str, new: int, *, inferred: bool = False) -> None:
        link = Link(self.position, old, kind, new, inferred)
        if link not in self.found.setdefault(old, []):
            self.found[old].append(link)

    def rewired(self) -> None:
        """Who read the dead one reads another in its place, and so do all who are left; or it was the result."""
        stands: dict[int, set[int]] = {}
        for old_row, new_row in self.effect.changed:
            olds, news = self.versions.operands(old_row), self.versions.operands(new_row)
            if self.versions.op[old_row] != self.versions.op[new_row] or len(olds) != len(news):
                continue
            for old, new in zip(olds, news, strict=True):
                # One that was among the operands before may only have changed its place.
                if old != new and old in self.dead and new not in olds:
                    stands.setdefault(old, set()).add(new)
        roots = {self.computation(row): row for row in self.rows_of_root((*self.born.values(), *self.news()))}
        for row in self.rows_of_root(self.dead.values()):
            root = roots.get(self.computation(row))
            if root is not None:
                stands.setdefault(int(self.versions.key[row]), set()).add(int(self.versions.key[root]))
        for old, news in stands.items():
            if len(news) == 1:
                (new,) = news
                is_alike = self.row_after.get(new, -1) >= 0 and self.op(self.dead[old]) == self.op(self.row_after[new])
                self.add(old, "rewritten" if new in self.born else "merged" if is_alike else "replaced", new)

    def op(self, row: int) -> str:
        return self.versions.ops[int(self.versions.op[row])]

    def news(self) -> Iterable[int]:
        return (new for _, new in self.effect.changed)

    def computation(self, row: int) -> int:
        return int(self.versions.computation[self.versions.key[row]])

    def rows_of_root(self, rows: Iterable[int]) -> Iterator[int]:
        return (row for row in rows if self.versions.lines[row].lstrip().startswith("ROOT "))

    def fused(self) -> None:
        """A new fusion stands for an instruction: its root is that one, and so on up the operands while they agree."""
        versions = self.versions
        numbers = {name: i for i, name in enumerate(versions.computations)}
        roots = {self.computation(row): row for row in self.rows_of_root(self.born.values())}
        stands_for = {link.new: old for old, links in self.found.items() for link in links if link.kind == "rewritten"}
        for key, row in self.born.items():
            called = _CALLS.search(versions.lines[row]) if versions.ops[versions.op[row]] == "fusion" else None
            root = roots.get(numbers.get(called[1], -1)) if called is not None else None
            if root is None or key not in stands_for:
                continue
            old = stands_for[key]
            if self.alike(self.dead[old], root):
                # Said more closely: not only the fusion stands there, it holds the instruction.
                self.found.pop(old)
                self.add(old, "fused", int(versions.key[root]))
                self.climb(self.dead[old], root)

    def inlined(self) -> None:
        """What stands for a call that is gone is what the called computation gave, and so on up the operands."""
        numbers = {name: i for i, name in enumerate(self.versions.computations)}
        roots = {self.computation(row): row for row in self.rows_of_root(self.dead.values())}
        for key, row in self.dead.items():
            called = _APPLIES.search(self.versions.lines[row]) if self.op(row) == "call" else None
            root = roots.get(numbers.get(called[1], -1)) if called is not None else None
            for link in self.found.get(key, ()):
                new = self.born.get(link.new, -1)
                if root is not None and link.kind == "rewritten" and new >= 0 and self.alike(root, new):
                    self.add(int(self.versions.key[root]), "inlined", link.new)
                    self.climb(root, new, "inlined")

    def climb(self, old_row: int, new_row: int, kind: str = "fused") -> None:
        todo = [(old_row, new_row)]
        seen: set[tuple[int, int]] = set()
        while todo:
            pair = todo.pop()
            olds, news = (self.versions.operands(row) for row in pair)
            if pair in seen or len(olds) != len(news):
                continue
            seen.add(pair)
            for old, new in zip(olds, news, strict=True):
                old_row, new_row = self.row_before.get(old, -1), self.born.get(new, -1)
                if old_row >= 0 and new_row >= 0 and self.alike(old_row, new_row):
                    if not any(link.new == new for link in self.found.get(old, ())):
                        self.add(old, kind if old in self.dead else "duplicated", new, inferred=True)
                    todo.append((old_row, new_row))

    def alike(self, one: int, other: int) -> bool:
        """The same operation, type and attributes; only names differ."""
        versions = self.versions
        return versions.op[one] == versions.op[other] and _bare(versions.lines[one]) == _bare(versions.lines[other])

    def alone(self) -> None:
        """The dead ones of which no reader is left: they went with it, or nothing read them."""
        readers: dict[int, set[int]] = {}
        for row in (*self.dead.values(), *(old for old, _ in self.effect.changed)):
            for operand in self.versions.operands(row):
                if operand in self.dead:
                    readers.setdefault(operand, set()).add(int(self.versions.key[row]))
        for key, row in self.dead.items():
            if key in self.found:
                continue
            read_by = readers.get(key, set())
            if not read_by:
                is_root = any(True for _ in self.rows_of_root([row]))
                self.add(key, "unknown" if is_root else "unused", -1)
            elif len(read_by) == 1 and read_by <= self.dead.keys():
                self.add(key, "with", next(iter(read_by)))
            else:
                self.add(key, "unknown", -1)


_APPLIES = re.compile(r"\bto_apply=%?([\w.\-]+)")
_CALLS = re.compile(r"\bcalls=%?([\w.\-]+)")
_NAMES = re.compile(r"%[\w.\-]+|^\s*(?:ROOT )?|/\*index=\d+\*/")


def _bare(line: str) -> str:
    return _NAMES.sub("", line)


class Lives:
    """When each instruction of a program was born, rewritten and removed."""

    def __init__(self, passes: Passes) -> None:
        self.passes = passes
        self.versions = passes.versions
        self.into: dict[int, list[Link]] = {}
        self.out_of: dict[int, list[Link]] = {}
        for link in passes.links:
            self.into.setdefault(link.old, []).append(link)
            if link.new >= 0 and link.kind != "with":
                self.out_of.setdefault(link.new, []).append(link)
        self.seen: dict[int, list[tuple[int, str, int]]] = {}  # by key: position, what, row
        key = self.versions.key
        for row in self.versions.rows(0).tolist() if self.versions.snapshots else ():
            self.note(int(key[row]), -1, "start", row)
        for position in range(len(passes)):
            effect = passes.effects[position]
            for row in effect.born:
                self.note(int(key[row]), position, "born", row)
            for _, row in effect.changed:
                self.note(int(key[row]), position, "changed", row)
            for row in effect.died:
                self.note(int(key[row]), position, "died", row)

    def history(self, name: str) -> History:
        """See `Passes.history`."""
        names = self.versions.names
        keys = [key for key, known in enumerate(names) if known == name]
        if not keys:
            close = difflib.get_close_matches(name, names, 3) or list(names[:3])
            raise UnknownNameError(f"no instruction was ever named {name!r}; close are: {', '.join(close)}")
        chain = [*self.family(keys, forward=False), *self.family(keys, forward=True)]
        events = [event for key in dict.fromkeys(chain) for event in self.events(key)]
        events.sort(key=lambda event: event.position)
        return History(name, tuple(events[:_MOST_EVENTS]))

    def note(self, key: int, position: int, what: str, row: int) -> None:
        if key >= 0:
            self.seen.setdefault(key, []).append((position, what, row))

    def family(self, keys: Sequence[int], *, forward: bool) -> list[int]:
        """The instructions that these became, or came from, and so on."""
        found = dict.fromkeys(keys)
        todo = list(keys)
        while todo and len(found) < _MOST_EVENTS:
            key = todo.pop(0)
            near = (
                [link.new for link in self.into.get(key, ())]
                if forward
                else [link.old for link in self.out_of.get(key, ())]
            )
            for other in near:
                if other >= 0 and other not in found:
                    found[other] = None
                    todo.append(other)
        return list(found)

    def events(self, key: int) -> Iterator[Event]:
        name = self.versions.names[key]
        for position, what, row in self.seen.get(key, ()):
            pass_name = self.passes[position].name if position >= 0 else "before all passes"
            text = self.versions.lines[row].strip()
            here = [link for link in self.into.get(key, ()) if link.position == position]
            if what == "died":
                for link in here:
                    yield Event(position, pass_name, name, *self.told(link), text, link.inferred)
                continue
            sources = [link for link in self.out_of.get(key, ()) if link.position == position]
            others = tuple(dict.fromkeys(self.versions.names[link.old] for link in sources))
            says = {"start": "is there", "born": "is made", "changed": "is rewritten"}[what]
            if what == "born" and others:
                says += f" from {', '.join(others[:4])}{' …' * (len(others) > 4)}"
            yield Event(position, pass_name, name, says, others, text, any(link.inferred for link in sources))
        for link in self.into.get(key, ()):
            if link.kind == "duplicated":
                yield Event(
                    link.position, self.passes[link.position].name, name, *self.told(link), inferred=link.inferred
                )

    def told(self, link: Link) -> tuple[str, tuple[str, ...]]:
        if link.new < 0:
            return _SAYS[link.kind], ()
        name = self.versions.names[link.new]
        where = self.versions.computations[int(self.versions.computation[link.new])]
        inside = f"{where} as {name}" if link.kind in ("fused", "duplicated", "inlined") else name
        return _SAYS[link.kind].format(inside), (name,)
