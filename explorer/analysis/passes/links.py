"""What became of every instruction that a pass removed or copied.

A pass records nothing about that. It is inferred from the modules before and after it. Certain is what the text shows
by itself: the name was kept, a reader of the dead one reads the new one in the same place, nobody read it. What follows
from equal structure (the root of a new fusion is the instruction that the fusion stands for, and so on up its operands)
is marked as inferred. The rest is `unknown`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from explorer.model.graph import Ints
from explorer.model.pass_history import PassLink
from explorer.model.passes import Effect, Passes
from explorer.model.text_versions import Versions

_APPLIES = re.compile(r"\bto_apply=%?([\w.\-]+)")
_CALLS = re.compile(r"\bcalls=%?([\w.\-]+)")
_NAMES = re.compile(r"%[\w.\-]+|^\s*(?:ROOT )?|/\*index=\d+\*/")


def pass_links(passes: Passes) -> list[PassLink]:
    """What became of every instruction that died or was copied, pass by pass."""
    program = _program(passes.versions)
    links: list[PassLink] = []
    for position, (effect, (before, after)) in enumerate(zip(passes.effects, passes.rows_around(), strict=True)):
        if effect.died or effect.born:
            links += _links_of_pass(_change(program, position, effect, before, after))
    return links


@dataclass(frozen=True)
class _Program:
    """The rows of all snapshots, as lists.

    Args:
        versions: They.
        key, op: Of each row, as in `versions`.
        operands: Of a row, as keys.
        computation: By name, its number.
    """

    versions: Versions
    key: list[int]
    op: list[int]
    operands: Callable[[int], list[int]]
    computation: Mapping[str, int]

    def op_name(self, row: int) -> str:
        return self.versions.ops[self.op[row]]

    def home(self, row: int) -> int:
        """The number of the computation that a row is in."""
        return int(self.versions.computation[self.key[row]])

    def is_root(self, row: int) -> bool:
        return self.versions.lines[row].lstrip().startswith("ROOT ")

    def roots(self, rows: Iterable[int]) -> dict[int, int]:
        """Those of some rows that are the root of their computation, by the computation."""
        return {self.home(row): row for row in rows if self.is_root(row)}

    def called_root(self, row: int, pattern: re.Pattern[str], roots: Mapping[int, int]) -> int:
        """The root of the computation that an instruction calls, -1 if it is not among `roots`."""
        called = pattern.search(self.versions.lines[row])
        return roots.get(self.computation.get(called[1], -1), -1) if called is not None else -1

    def alike(self, row: int, other: int) -> bool:
        """The same operation, type and attributes; only names differ."""
        lines = self.versions.lines
        return self.op[row] == self.op[other] and _NAMES.sub("", lines[row]) == _NAMES.sub("", lines[other])


def _program(versions: Versions) -> _Program:
    start: list[int] = versions.operand_start.tolist()
    operand: list[int] = versions.operand.tolist()
    return _Program(
        versions,
        versions.key.tolist(),
        versions.op.tolist(),
        lambda row: operand[start[row] : start[row + 1]],
        {name: number for number, name in enumerate(versions.computations)},
    )


@dataclass(frozen=True)
class _Change:
    """What one pass did, and the links found so far.

    Args:
        program: The rows.
        position: Of the pass.
        changed: The rows of what it rewrote, before and after.
        dead, born: By key, the row of what it removed and made.
        row_before, row_after: By key, the row of every instruction before and after it.
        links: By the key of what died or was copied.
    """

    program: _Program
    position: int
    changed: tuple[tuple[int, int], ...]
    dead: dict[int, int]
    born: dict[int, int]
    row_before: Mapping[int, int]
    row_after: Mapping[int, int]
    links: dict[int, list[PassLink]] = field(default_factory=dict[int, list[PassLink]])

    def add(self, old: int, kind: str, new: int, *, inferred: bool = False) -> None:
        link = PassLink(self.position, old, kind, new, inferred)
        if link not in self.links.setdefault(old, []):
            self.links[old].append(link)


def _change(program: _Program, position: int, effect: Effect, before: Ints, after: Ints) -> _Change:
    key = program.key
    rows_before: list[int] = before.tolist()
    rows_after: list[int] = after.tolist()
    row_before, row_after = ({key[row]: row for row in rows if key[row] >= 0} for rows in (rows_before, rows_after))
    dead, born = ({key[row]: row for row in rows} for rows in (effect.died, effect.born))
    return _Change(program, position, effect.changed, dead, born, row_before, row_after)


def _links_of_pass(change: _Change) -> Iterator[PassLink]:
    # The order counts: a fusion is known by what it replaced, and alone is only what nothing else explains.
    _link_replaced(change)
    _link_fused(change)
    _link_inlined(change)
    _link_unread(change)
    for links in change.links.values():
        yield from links


def _link_replaced(change: _Change) -> None:
    """Who read the dead one reads another in its place, and so do all who are left; or it was the result."""
    program = change.program
    instead = _read_instead(change)
    roots = program.roots([*change.born.values(), *(new for _, new in change.changed)])
    for home, row in program.roots(change.dead.values()).items():
        if home in roots:
            instead.setdefault(program.key[row], set()).add(program.key[roots[home]])
    for old, replacements in instead.items():
        if len(replacements) > 1:
            continue
        (new,) = replacements
        row = change.row_after.get(new, -1)
        is_alike = row >= 0 and program.op[change.dead[old]] == program.op[row]
        change.add(old, "rewritten" if new in change.born else "merged" if is_alike else "replaced", new)


def _read_instead(change: _Change) -> dict[int, set[int]]:
    """By each dead key that rewritten instructions read, what they read now in its place."""
    program = change.program
    instead: dict[int, set[int]] = {}
    for old_row, new_row in change.changed:
        olds, news = program.operands(old_row), program.operands(new_row)
        if program.op[old_row] != program.op[new_row] or len(olds) != len(news):
            continue
        for old, new in zip(olds, news, strict=True):
            # One that was among the operands before may only have changed its place.
            if old != new and old in change.dead and new not in olds:
                instead.setdefault(old, set()).add(new)
    return instead


def _link_fused(change: _Change) -> None:
    """A new fusion stands for an instruction: its root is that one, and so on up the operands while they agree."""
    program = change.program
    roots = program.roots(change.born.values())
    replaced = {link.new: old for old, links in change.links.items() for link in links if link.kind == "rewritten"}
    for key, row in change.born.items():
        root = program.called_root(row, _CALLS, roots) if program.op_name(row) == "fusion" else -1
        if root < 0 or key not in replaced:
            continue
        old = replaced[key]
        if program.alike(change.dead[old], root):
            # Closer than that the fusion replaced it: the fusion holds it.
            change.links.pop(old)
            change.add(old, "fused", program.key[root])
            _link_operands(change, change.dead[old], root, "fused")


def _link_inlined(change: _Change) -> None:
    """What stands for a call that is gone is what the called computation gave, and so on up the operands."""
    program = change.program
    roots = program.roots(change.dead.values())
    for key, row in change.dead.items():
        root = program.called_root(row, _APPLIES, roots) if program.op_name(row) == "call" else -1
        for link in change.links.get(key, ()) if root >= 0 else ():
            new = change.born.get(link.new, -1)
            if link.kind == "rewritten" and new >= 0 and program.alike(root, new):
                change.add(program.key[root], "inlined", link.new)
                _link_operands(change, root, new, "inlined")


def _link_operands(change: _Change, old_row: int, new_row: int, kind: str) -> None:
    """Link the operands of two rows that stand for each other, and theirs, as long as they are alike."""
    program = change.program
    todo = [(old_row, new_row)]
    seen: set[tuple[int, int]] = set()
    while todo:
        pair = todo.pop()
        olds, news = program.operands(pair[0]), program.operands(pair[1])
        if pair in seen or len(olds) != len(news):
            continue
        seen.add(pair)
        for old, new in zip(olds, news, strict=True):
            above = change.row_before.get(old, -1), change.born.get(new, -1)
            if min(above) >= 0 and program.alike(*above):
                if not any(link.new == new for link in change.links.get(old, ())):
                    change.add(old, kind if old in change.dead else "duplicated", new, inferred=True)
                todo.append(above)


def _readers_of_dead(change: _Change) -> dict[int, set[int]]:
    """By key, which of the instructions that died or were rewritten read each dead one before."""
    program = change.program
    readers: dict[int, set[int]] = {}
    for row in (*change.dead.values(), *(old for old, _ in change.changed)):
        for operand in program.operands(row):
            if operand in change.dead:
                readers.setdefault(operand, set()).add(program.key[row])
    return readers


def _link_unread(change: _Change) -> None:
    """The dead ones of which no reader is left: they went with it, or nothing read them."""
    readers = _readers_of_dead(change)
    for key, row in change.dead.items():
        if key in change.links:
            continue
        read_by = readers.get(key, set())
        if not read_by:
            change.add(key, "unknown" if change.program.is_root(row) else "unused", -1)
        elif len(read_by) == 1 and read_by <= change.dead.keys():
            change.add(key, "with", next(iter(read_by)))
        else:
            change.add(key, "unknown", -1)
