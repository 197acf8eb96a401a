"""Provenance of rows: the equations that each row of each snapshot computes, followed forward over all passes.

A line's own numbers come first. XLA gives a replacement the metadata of the replaced instruction, but not intermediate
instructions: a window's kernels, a transposed operand, a copy. So each pass is cut into pieces: a removed value with
everything that went with it, and its replacement with everything made for it. Rows made without a number belong to the
equations of their piece.

Meanwhile equations are watched as units: the number of rows that do the work of each. When none is left, the piece
shows how the unit ended.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from explorer.analysis.hlo_operations import BY_ELEMENT, HELPERS, MOVERS, NEVER_OWN, WORK, formula, identity
from explorer.analysis.pass_changes import Change, Program, changes, links_of_pass
from explorer.analysis.pieces import Named, Piece, below, beneath, pieces_of, source, worker
from explorer.model.passes import Passes, PassLink
from explorer.model.types import elements

# How a row got an equation: by its own number, made for it, moved from elsewhere, absorbed, or in its place.
OWN, BORN, MOVED, TAKEN, SHARED = range(5)

Origins = tuple[tuple[int, int], ...]  # (equation, how), sorted

# Operations that never do the work of an equation that computes.
_FORMS = HELPERS | {"slice", "pad", "reverse", "bitcast-convert"}


class Unit(NamedTuple):
    """Watched equation, or a single operation of an equation.

    Args:
        equation: Row of the jaxpr.
        ops: HLO names of its operations, without helpers.
        at: Its last StableHLO operation; calls of one function share it.
        function: Group of that operation's function.
    """

    equation: int
    ops: frozenset[str]
    at: int
    function: int

    @property
    def moves(self) -> bool:
        """Return True if the unit only moves elements or changes their form."""
        return bool(self.ops) and self.ops <= MOVERS


class Counts(NamedTuple):
    """The units whose own operation a row does, and those it does under another operation's name."""

    native: tuple[int, ...]
    standing: tuple[int, ...]


_NOTHING = Counts((), ())


class Units:
    """All watched units; the first unit of an equation is the whole equation."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self.all = list(units)
        self.of_equation: dict[int, list[int]] = {}
        self._whole: dict[int, int] = {}
        for number, unit in enumerate(units):
            self.of_equation.setdefault(unit.equation, []).append(number)
            self._whole.setdefault(unit.equation, number)

    def __len__(self) -> int:
        return len(self.all)

    def __getitem__(self, number: int) -> Unit:
        return self.all[number]

    def count(self, origins: Origins, op: str) -> Counts:
        """Return the numbers of the units whose work an instruction with the operation `op` does.

        `native` are units with this operation, `standing` those whose work it does under another name.
        """
        native, others, is_own = list[int](), list[int](), op in NEVER_OWN
        for equation, how in origins:
            for number in self.of_equation.get(equation, ()):
                if op in self.all[number].ops:
                    native.append(number)
                    is_own |= how <= BORN
                elif how != TAKEN:
                    others.append(number)
        # A row that only carries the name of its operand does the work of another equation of its set.
        standing = () if is_own else tuple([number for number in others if self.can_stand(number, op)])
        return Counts(tuple(native), standing)

    def forget_all_but(self, numbers: Container[int]) -> None:
        self.of_equation = {
            equation: [number for number in units if number in numbers] for equation, units in self.of_equation.items()
        }

    def can_stand(self, number: int, op: str) -> bool:
        """Return True if the operation `op` can do the work of unit `number` without being one of its operations."""
        if op in NEVER_OWN:
            return False
        return op in MOVERS if self.all[number].moves else op not in _FORMS

    def is_like(self, equation: int, op: str) -> bool:
        """Return True if a pass can turn an equation into this operation alone: both move, or both are elementwise."""
        number = self._whole.get(equation, -1)
        return number >= 0 and any(op in alike and self.all[number].ops & alike for alike in (MOVERS, BY_ELEMENT))

    def moves(self, equation: int) -> bool:
        number = self._whole.get(equation, -1)
        return number >= 0 and self.all[number].moves


class Ending(NamedTuple):
    """The loss of a unit's last row, or of its own operation.

    Args:
        position: Position of the pass, as in `Change`.
        kind: `rewritten`, `eliminated`, `folded`, `merged`, `folded into`, `moved`, `split` or `unknown`.
        before, after: The lost row and its replacement; -1 for none.
        why: Reason in words, or a formula.
        target: Origins of the row it was folded into, or merged with.
    """

    position: int
    kind: str
    before: int
    after: int = -1
    why: str = ""
    target: Origins = ()


@dataclass(frozen=True, eq=False)
class Provenance:
    """The result of following all passes.

    Args:
        units: Watched units with all their operations.
        origins: Origins of each row of the last snapshot.
        counts: The units that these rows count for.
        rewritten: For each unit, the pass that removed its own operation while another does its work.
        moved, split: For each unit, the pass that moved it, or made several rows of it.
        ended: For each unit, the pass that removed its last row.
        met: Units that some snapshot had a row of.
    """

    units: Units
    origins: Mapping[int, Origins]
    counts: Mapping[int, Counts]
    rewritten: Mapping[int, Ending]
    moved: Mapping[int, Ending]
    split: Mapping[int, Ending]
    ended: Mapping[int, Ending]
    met: frozenset[int]


def follow(passes: Passes, units: Sequence[Unit]) -> Provenance:
    """Return the equations of each row of the last snapshot, and how units ended, followed over all passes.

    Args:
        passes: Recorded passes, with the equations of each line.
        units: Units to watch.
    """
    walk = _Walk(passes, units)
    links: list[PassLink] = []
    for change in changes(passes):
        links += links_of_pass(change)  # the change gets them too, and its pieces need them
        walk.meet(change)
    vars(passes).setdefault("links", links)  # where the passes' own property would store them
    return walk.result()


class _Assigned(NamedTuple):
    """A pass's new rows while their equations are found.

    Args:
        born: All new rows.
        partners: For new rows, the removed row that did the same.
        named: Finds a removed row by name.
        done: Rows that are assigned.
    """

    born: set[int]
    partners: Mapping[int, int]
    named: Named
    done: set[int]


class _Walk:
    def __init__(self, passes: Passes, units: Sequence[Unit]) -> None:
        self.versions, self.units = passes.versions, Units(units)
        assert self.versions.equations is not None
        self.equations = self.versions.equations
        self._line_code: list[int] = self.equations.code.tolist()
        self.code: dict[Origins, int] = {(): 0}
        self.sets: list[Origins] = [()]
        self._own: dict[int, int] = {-1: 0}
        self._op: list[int] = self.versions.op.tolist()
        self._key: list[int] = self.versions.key.tolist()
        self._home: list[int] = self.versions.computation.tolist()
        self._applied: set[int] = set()
        self.of = [0] * len(self.versions.lines)
        self._is_constant = bytearray(len(self.versions.lines))
        # Counts are stored once: a function called n times has n copies of rows with n equations.
        self._counts: list[Counts] = []
        self._counts_code: dict[tuple[int, int, bool], int] = {}
        self._pending: dict[int, int] = {}  # changes not yet applied to `native` and `standing`, by code
        self._born_of: dict[int, int] = {}
        self.native, self.standing = [0] * len(units), [0] * len(units)
        self.met: set[int] = set()
        self.rewritten: dict[int, Ending] = {}
        self.moved: dict[int, Ending] = {}
        self.split: dict[int, Ending] = {}
        self.ended: dict[int, Ending] = {}
        states: list[list[int]] = self.versions.relabelled.reshape(-1, 2).tolist()
        self._states = [(began, row, len(self.of) + at) for at, (began, row) in enumerate(states)]
        self._state = 0  # the next one
        self._begin()

    def _set(self, origins: Mapping[int, int]) -> int:
        """Return the index in `sets` of the set of (equation, how a row came to it) pairs, which joins `sets` if new.

        This index is the code of the set; the empty set has code 0.
        """
        # Sorted, so that equal sets have one code.
        key = tuple(sorted(origins.items()))
        code = self.code.setdefault(key, len(self.sets))
        if code == len(self.sets):
            self.sets.append(key)
        return code

    def own(self, at: int) -> int:
        """Return the code of the equations that a line or a later state of it names; 0 for none.

        A code is an index in `sets`.
        """
        code = self._line_code[at]
        if code not in self._own:
            members = self.equations.node[self.equations.start[code] : self.equations.start[code + 1]].tolist()
            self._own[code] = self._set(dict.fromkeys(members, OWN))
        return self._own[code]

    def _with(self, code: int, more: Mapping[int, int]) -> int:
        return self._set({**more, **dict(self.sets[code])}) if more else code

    def _extras(self, code: int) -> dict[int, int]:
        """Return how a row came to equations of the set `code`, by equation.

        Only equations moved to the row or taken over, which its successor keeps, are included.
        """
        return {equation: how for equation, how in self.sets[code] if how >= MOVED}

    def _born(self, code: int) -> int:
        """Return the code of the set that a new row without numbers inherits from a row with the set `code`.

        It has the same equations, each at least as `BORN`.
        """
        if code not in self._born_of:
            self._born_of[code] = self._set({equation: max(how, BORN) for equation, how in self.sets[code]})
        return self._born_of[code]

    def counts(self, row: int) -> Counts:
        return self._counts[self._code_of_counts(row)]

    def _code_of_counts(self, row: int) -> int:
        # A constant never does another's work, nor does an operation that a reduction applies.
        stands = not self._is_constant[row] and self._home[self._key[row]] not in self._applied
        key = self.of[row], self._op[row], stands
        code = self._counts_code.get(key, -1)
        if code < 0:
            native, standing = self.units.count(self.sets[key[0]], self.versions.ops[key[1]])
            code = self._counts_code[key] = len(self._counts)
            self._counts.append(Counts(native, standing if stands else ()))
        return code

    def _add(self, row: int, step: int) -> int:
        """Count a row for its units if `step` is 1, or no longer if -1; return the code of its counts.

        The change takes effect at the next `_settle`.
        """
        code = self._code_of_counts(row)
        self._pending[code] = self._pending.get(code, 0) + step
        return code

    def _settle(self) -> None:
        """Add the pending changes to the number of rows of each unit, `native` and `standing`, and clear them."""
        for code, step in self._pending.items():
            counts = self._counts[code] if step else _NOTHING
            for number in counts.native:
                self.native[number] += step
            for number in counts.standing:
                self.standing[number] += step
        self._pending.clear()

    def _forget_counts(self) -> None:
        self._counts_code.clear()
        self._counts.clear()

    def _begin(self) -> None:
        program = Program(self.versions)
        first: list[int] = self.versions.ends[0].tolist()
        rows: list[int] = [row for row in first if program.key[row] >= 0]
        around: dict[int, dict[int, int]] = {}
        for row in reversed(rows):  # a caller comes after its callees
            inherited = around.get(self._home[self._key[row]], {})
            self.of[row] = self.own(row) or (self._set(inherited) if program.op_name[row] not in NEVER_OWN else 0)
            mine = self.of[row] or self._set(inherited)
            for computation in program.called(row):
                outer = around.setdefault(computation, {})
                outer.update((equation, BORN) for equation, _ in self.sets[mine])
        row_of = [-1] * len(self._home)
        for row in rows:
            row_of[program.key[row]] = row
        for row in rows:
            self._note_constant(program, row, row_of)
        self._relabel(0, rows)
        self._name_operations(rows)
        for row in rows:
            self.met.update(*self._left(self.counts(row)))
        self.units.forget_all_but(self.met)
        # Counts depend on the units that are left.
        self._forget_counts()
        for row in rows:
            self._add(row, 1)
        self._settle()

    def _note_constant(self, program: Program, row: int, row_of: Sequence[int]) -> None:
        """Store whether a row depends on constants only, and the computations that it applies to elements."""
        if program.op_name[row] != "call" and " to_apply=" in program.versions.lines[row]:
            self._applied.update(program.called(row))
        read = [row_of[key] for key in program.operands[row]]
        from_constants = bool(read) and min(read) >= 0 and all(map(self._is_constant.__getitem__, read))
        self._is_constant[row] = from_constants or program.op_name[row] == "constant"

    def _left(self, counts: Counts) -> Counts:
        """Return `counts` with only the last native unit of each function.

        XLA's import merges the others into it, such as three reshapes.
        """
        last: dict[int, int] = {}
        for number in counts.native:
            unit = self.units.all[number]
            last[unit.function] = max(unit.at, last.get(unit.function, -1))
        units = self.units.all
        native = [number for number in counts.native if units[number].at == last[units[number].function]]
        return Counts(tuple(native), counts.standing)

    def _name_operations(self, rows: Sequence[int]) -> None:
        """Add to each unit's operations those of its rows in the first snapshot, if StableHLO's names don't occur."""
        native, others = set[int](), dict[int, set[str]]()
        for row in rows:
            counts = self.counts(row)
            native.update(counts.native)
            if len(self.sets[self.of[row]]) == 1:
                for number in counts.standing:
                    others.setdefault(number, set()).add(self.versions.ops[int(self.versions.op[row])])
        for number, ops in others.items():
            if number not in native:
                self.units.all[number] = self.units[number]._replace(ops=self.units[number].ops | ops)
        # Counts depend on the operations of the units.
        self._forget_counts()

    def _relabel(self, snapshot: int, uncounted: Container[int]) -> None:
        """Give rows the equations that later states of their lines name, up to a snapshot.

        A row stays as it is if all its equations were inherited, moved to it or taken by it. Other rows keep those that
        were moved or taken. The counts of units change accordingly, except for rows in `uncounted`.
        """
        while self._state < len(self._states) and self._states[self._state][0] <= snapshot:
            _, row, at = self._states[self._state]
            self._state += 1
            # Before scheduling, XLA gives unnamed instructions in a loop the loop's name.
            if not self.own(at) or (self.of[row] and all(how != OWN for _, how in self.sets[self.of[row]])):
                continue
            if row not in uncounted:
                self._add(row, -1)
            self.of[row] = self._with(self.own(at), self._extras(self.of[row]))
            if row not in uncounted:
                self._add(row, 1)

    def meet(self, change: Change) -> None:
        """Update the equations, counts and endings of all rows to those after a pass."""
        if change.position < 0:
            for old, new in change.changed:
                self._add(old, -1)
                self.of[new] = self.of[old] or self.own(new)
                self._add(new, 1)
            self._settle()
            return
        pieces = pieces_of(change)
        last: dict[int, int] = {}
        for row in (*change.dead.values(), *(old for old, _ in change.changed)):
            code = self._add(row, -1)
            last[code] = max(row, last.get(code, -1))
        lost_native, lost = self._lost(last)
        self._assign(change, pieces)
        new = [*change.born.values(), *(row for _, row in change.changed)]
        self._relabel(change.snapshot, set(new))
        for code in {self._add(row, 1) for row in new}:
            for number in chain.from_iterable(self._counts[code]):
                self.ended.pop(number, None)
        self._note_endings(change, pieces, lost, lost_native)

    def _lost(self, last: Mapping[int, int]) -> tuple[dict[int, int], dict[int, int]]:
        """Return two mappings from a unit to its last removed row: of the unit's operations, and of others.

        `last` has the last removed row by code of its counts.
        """
        columns: tuple[dict[int, int], dict[int, int]] = {}, {}
        for code, row in last.items():
            for lost, numbers in zip(columns, self._counts[code], strict=True):
                for number in numbers:
                    lost[number] = max(row, lost.get(number, -1))
        return columns

    def _assign(self, change: Change, pieces: Sequence[Piece]) -> None:
        # Rows are numbered in the order of the text, so operands come before their readers.
        for row in sorted((*change.born.values(), *(new for _, new in change.changed))):
            self._note_constant(change.program, row, change.row_after)
        for old, new in change.changed:
            own, before = self.own(new), self.of[old]
            self.of[new] = before if own in (0, self.own(old)) else self._with(own, self._extras(before))
        assigned = _Assigned(set(change.born.values()), self._partners(change, pieces), Named(change, self.of), set())
        for piece in pieces:
            self._assign_piece(change, piece, assigned)
        self._assign_between(change, assigned)
        for row in sorted(assigned.born - assigned.done):
            self._assign_row(change, row, assigned)
        for piece in pieces:
            self._note_split(change, piece)

    def _partners(self, change: Change, pieces: Sequence[Piece]) -> dict[int, int]:
        """Return by new row the removed row that did the same, for new rows that have one with equations."""
        born, partners = set(change.born.values()), dict[int, int]()
        pairs = ((row, other) for piece in pieces for row, others in piece.pairs.items() for other in others)
        for row, other in pairs:
            if other in born and self.of[row]:
                partners.setdefault(other, row)
        return partners

    def _assign_piece(self, change: Change, piece: Piece, assigned: _Assigned) -> None:
        """Assign equations to the rows that a pass made for one replacement, readers before their operands.

        A row that has no equations of its own inherits those of its reader.
        """
        above = {piece.new: self._born(self.of[piece.old])}
        for row in piece.made:  # readers before their operands
            inherited = above.get(row, 0)
            if row not in assigned.done:
                assigned.done.add(row)
                self.of[row] = self._origins(change, row, assigned, inherited)
                if row not in assigned.partners:
                    self._take(change, piece, row)
            passed = self._born(self.of[row]) or inherited
            for read in below(change, row):
                above.setdefault(read, passed)

    def _assign_between(self, change: Change, assigned: _Assigned) -> None:
        """Assign equations to rows that a pass put between a value and a reader that stays.

        Such a row does the reader's work, like the first of two reductions. A row that only moves elements serves its
        readers.
        """
        todo = [(row, self._born(self.of[new])) for _, new in change.changed for row in below(change, new)]
        for row, inherited in todo:  # grows during iteration
            if row in assigned.born and row not in assigned.done:
                assigned.done.add(row)
                self._assign_row(change, row, assigned, inherited)
                todo += ((read, inherited) for read in below(change, row))

    def _assign_row(self, change: Change, row: int, assigned: _Assigned, inherited: int = 0) -> None:
        moves = change.program.op_name[row] in MOVERS
        self.of[row] = self._origins(change, row, assigned, 0 if moves else inherited)
        if moves and not self.of[row]:
            self.of[row] = self._copied(change, row)

    def _origins(self, change: Change, row: int, assigned: _Assigned, inherited: int) -> int:
        own, partner = self.own(row), assigned.partners.get(row, -1)
        if own:
            return self._with(own, self._extras(self.of[partner])) if partner >= 0 else own
        if partner >= 0:
            return self._born(self.of[partner])
        if change.program.op_name[row] in NEVER_OWN or self._is_constant[row]:
            return 0
        return self._born(assigned.named.find(row)) or inherited

    def _take(self, change: Change, piece: Piece, row: int) -> None:
        """Add to `row` the only equation beneath a piece with the same operation, if XLA gave `row` another's name.

        A product may have the name of its transpose. If several equations qualify, none is added.
        """
        op = change.program.op_name[row]
        if not self.of[row] or self.counts(row).native or op in NEVER_OWN or self._is_constant[row]:
            return
        mine = dict(self.sets[self.of[row]])
        if op not in WORK and any(self.units.is_like(equation, op) for equation in mine):
            return
        candidates = self._alike_beneath(change, piece, row)
        others = [(equation, gone) for equation, gone in candidates.items() if equation not in mine]
        # Several candidates decide nothing.
        if len(others) == 1:
            ((equation, gone),) = others
            is_as_large = elements(self._type(gone)) == elements(self._type(row))
            how = TAKEN if op in WORK or (op not in MOVERS and is_as_large) else MOVED
            self.of[row] = self._with(self.of[row], {equation: how})
            self._note_moved(change, equation, how, gone, row)

    def _alike_beneath(self, change: Change, piece: Piece, row: int) -> dict[int, int]:
        """Return by equation the row that did it, below a piece's removed value, with the operation of `row`."""
        program = change.program
        alike = [gone for gone in beneath(change, piece) if program.op[gone] == program.op[row]]
        if program.op_name[row] not in MOVERS:
            alike = [gone for gone in alike if program.key[gone] in change.dead]
        return {self.units[number].equation: gone for gone in alike for number in self.counts(gone).native}

    def _type(self, row: int) -> str:
        return self.versions.types[int(self.versions.type[row])]

    def _copied(self, change: Change, row: int) -> int:
        """Return the code of the equations of a copy: those of the copied value that only move elements; 0 for none.

        A transpose that is a view of the same bytes is carried out by the copy. These equations are noted as moved.
        """
        copied = source(change, row)
        if copied < 0:
            return 0
        moves = {equation: MOVED for equation, _ in self.sets[self.of[copied]] if self.units.moves(equation)}
        for equation in moves:
            self._note_moved(change, equation, MOVED, copied, row)
        return self._set(moves)

    def _note_moved(self, change: Change, equation: int, how: int, before: int, after: int) -> None:
        name = self.versions.names[change.program.key[after]]
        for number in self.units.of_equation.get(equation, ()):
            if how == MOVED:
                why = f"done by {name} now"
                self.moved.setdefault(number, Ending(change.position, "moved", before, after, why))
            else:
                why = formula(change, before, after)
                self.rewritten.setdefault(number, Ending(change.position, "rewritten", before, after, why))

    def _note_split(self, change: Change, piece: Piece) -> None:
        units = [number for number in self.counts(piece.old).native if change.is_new(piece.new)]
        for number in units if len(piece.made) > 2 else ():
            ops = [row for row in piece.made if number in self.counts(row).native]
            if len(ops) > 1:
                why = f"{len(ops)} of {change.program.op_name[piece.old]} for one"
                self.split.setdefault(number, Ending(change.position, "split", piece.old, piece.new, why))

    def _note_endings(
        self, change: Change, pieces: Sequence[Piece], lost: Mapping[int, int], lost_native: Mapping[int, int]
    ) -> None:
        piece_of = {row: piece for piece in pieces for row in piece.gone}
        for old, new in change.changed:
            piece_of[old] = Piece(old, new, [old])
        for number in sorted({*lost, *lost_native}):
            self._settle()  # the last ending may have added a row to this unit
            if self.native[number]:
                continue
            row = lost_native.get(number, lost.get(number, -1))
            piece = piece_of.get(row)
            if not self.standing[number]:
                end = self._ending(change, number, row, piece)
                if end.kind == "rewritten":
                    self.rewritten.setdefault(number, end)
                else:
                    self.ended[number] = end
            elif number in lost_native and number not in self.rewritten:
                self.rewritten[number] = self._rewriting(change, number, row, piece)

    def _rewriting(self, change: Change, number: int, row: int, piece: Piece | None) -> Ending:
        """Return the ending `rewritten` of unit `number`: rows of another operation do its work now."""
        made = [piece.new, *piece.made] if piece is not None else [*change.born.values()]
        bears = [at for at in made if number in self.counts(at).standing]
        if not bears:
            return Ending(change.position, "rewritten", row, -1, "another operation does it now")
        after = bears[0] if piece is not None else max(bears)
        return Ending(change.position, "rewritten", row, after, formula(change, row, after))

    def _ending(self, change: Change, number: int, row: int, piece: Piece | None) -> Ending:
        program, position = change.program, change.position
        for gone in (row, *self._undoing(change, row)):
            if (same := identity(change, gone)) >= 0:
                return self._gone(change, gone, self._replacement(change, piece, gone, same))
        if self._is_constant[row]:
            return Ending(position, "folded", row, -1, formula(change, row, -1))
        if piece is None:
            return self._without_piece(change, row)
        old, new = piece.old, piece.new
        was_there = program.key[new] not in change.born and program.key[new] != program.key[old]
        if was_there or self._is_heir(old, new):
            return self._replaced_by_another(change, row, piece)
        return self._taken_over(change, number, row, piece)

    def _replacement(self, change: Change, piece: Piece | None, gone: int, same: int) -> int:
        return piece.new if piece is not None and piece.old == gone else self._now(change, same)

    def _replaced_by_another(self, change: Change, row: int, piece: Piece) -> Ending:
        """Return how a unit ended, whose last row is `row`, where the piece's readers read an existing value instead.

        `merged` into a row that does the same, else `folded into` a reader or `eliminated`.
        """
        old, new = piece.old, piece.new
        same = [at for at in piece.pairs.get(row, ()) if self._is_twin(change, row, at)]
        if same and not self._is_heir(old, new):
            return Ending(change.position, "merged", row, same[0], "", self.sets[self.of[same[0]]])
        return self._in_reader(change, old, new) if row == old else self._gone(change, old, new)

    def _taken_over(self, change: Change, number: int, row: int, piece: Piece) -> Ending:
        """Return how unit `number` ended, whose last row is `row`, where new rows compute the piece's value.

        `folded`, `rewritten`, `eliminated`, `folded into`, or `unknown` inside a kernel.
        """
        program, position, old, new = change.program, change.position, piece.old, piece.new
        doer = worker(change, new, program.op[row])
        op, why = program.op_name[doer], formula(change, old, new)
        if self._is_constant[doer]:
            return Ending(position, "folded", old, new, why)
        if op == "fusion":
            return Ending(
                position, "unknown", row, new, "it is in a kernel, where it can't be distinguished from others"
            )
        if not self._is_as_before(change, row, old, doer) and self._share(doer, number):
            return Ending(position, "rewritten", old, new, why)
        if self.units[number].moves and op in BY_ELEMENT | NEVER_OWN:
            return Ending(position, "eliminated", old, new, why)
        target = tuple(pair for pair in self.sets[self.of[doer]] if pair[0] != self.units[number].equation)
        return Ending(position, "folded into", row, doer, why, target)

    def _share(self, doer: int, number: int) -> bool:
        """Add a unit's equation to the row `doer`.

        Return False, without a change, if the row can't count for the unit.
        """
        alone = self.of[doer]
        self._add(doer, -1)
        self.of[doer] = self._with(alone, {self.units[number].equation: SHARED})
        if number not in self.counts(doer).standing:
            self.of[doer] = alone
        self._add(doer, 1)
        return self.of[doer] != alone

    def _is_as_before(self, change: Change, row: int, old: int, doer: int) -> bool:
        """Return True if `doer`, which computes the value of row `old` now, only does what another removed row did."""
        program = change.program
        if row == old or program.op[doer] not in (program.op[old], program.op[row]):
            return False
        return program.op_name[doer] not in WORK or bool(self.counts(doer).native)

    def _undoing(self, change: Change, row: int) -> Sequence[int]:
        """Return the first removed reader of a row if all its readers undid the row, else an empty sequence.

        A reader undid the row if it passed on an earlier value.
        """
        key = change.program.key[row]
        readers = change.dead_readers.get(key, ())
        is_undone = key not in change.rewired and all(identity(change, reader) not in (-1, key) for reader in readers)
        return readers[:1] if is_undone else ()

    def _gone(self, change: Change, old: int, new: int) -> Ending:
        return Ending(change.position, "eliminated", old, new, formula(change, old, new))

    def _now(self, change: Change, key: int) -> int:
        """Return the row after a pass with the value of an instruction before it, or -1."""
        if (row := change.row_after[key]) >= 0:
            return row
        own = self.own(change.row_before[key])
        new = (*change.born.values(), *(row for _, row in change.changed))
        alike = [at for at in new if self.own(at) == own and change.program.op_name[at] not in _FORMS] if own else []
        return alike[0] if len(alike) == 1 else -1

    def _without_piece(self, change: Change, row: int) -> Ending:
        readers = change.rewired.get(change.program.key[row], ())
        if not readers:
            return Ending(change.position, "eliminated", row, -1, "nothing read it")
        old, new = readers[0]
        name = change.program.versions.names[change.program.key[new]]
        return Ending(change.position, "eliminated", old, new, f"{name} is computed without it")

    def _in_reader(self, change: Change, old: int, new: int) -> Ending:
        """Return how the value of row `old` ended, whose readers read the existing row `new` now.

        `folded into` a reader that changed otherwise too, else `eliminated`.
        """
        program, position = change.program, change.position
        for before, after in change.rewired.get(program.key[old], ()):
            olds, news = program.operands[before], program.operands[after]
            is_alike = (program.op[before], program.attributes(before)) == (
                program.op[after],
                program.attributes(after),
            )
            # If the reader changed otherwise too, it compensates for a different value.
            if not is_alike or sum(one != other for one, other in zip(olds, news, strict=False)) > 1:
                why = formula(change, before, after)
                return Ending(position, "folded into", before, after, why, self.sets[self.of[after]])
        if program.op_name[old] in (*MOVERS, *NEVER_OWN):
            return self._gone(change, old, new)
        why = f"{formula(change, old, -1)}; its readers now read {program.versions.names[program.key[new]]}"
        return Ending(position, "eliminated", old, new, why)

    def _is_heir(self, old: int, new: int) -> bool:
        """Return True if row `new` has the name of row `old` but other equations.

        In `abs(abs(x))`, the inner one keeps the outer's name.
        """
        own = self.own(old), self.own(new)
        return self.versions.key[old] == self.versions.key[new] and 0 not in own and own[0] != own[1]

    def _is_twin(self, change: Change, row: int, other: int) -> bool:
        program = change.program
        return program.op[row] == program.op[other] and program.type[row] == program.type[other]

    def result(self) -> Provenance:
        last: list[int] = self.versions.ends[1].tolist()
        origins = {row: self.sets[self.of[row]] for row in last if self.of[row]}
        counts = {row: self.counts(row) for row in origins}
        return Provenance(
            self.units, origins, counts, self.rewritten, self.moved, self.split, self.ended, frozenset(self.met)
        )
