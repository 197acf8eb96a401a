"""How an instruction ended in one pass: what the modules before and after it say of what took its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from explorer.analysis.fates.formulas import literal
from explorer.analysis.fates.operations import NEUTRAL
from explorer.analysis.fates.row_lives import Change
from explorer.model.pass_history import PassLink
from explorer.model.types import elements

_DEEPEST = 24  # readers that died with their readers, one in the other
_OF_ITSELF = ("maximum", "minimum", "and", "or")
_UNDOES_ITSELF = ("reverse", "negate", "not")
_DONE_AFTER_ONCE = ("abs", "ceil", "floor", "round-nearest-even", "round-nearest-afz", "sign")
_MOVES = {"fused": "lives", "inlined": "lives"}
_REPLACED = {**_MOVES, "rewritten": "lives", "merged": "merged", "replaced": "eliminated"}
# What puts the same elements elsewhere; what computes something does something else.
_ELEMENTS_ELSEWHERE = frozenset(
    (
        *("reverse", "transpose", "reshape", "slice", "dynamic-slice", "pad", "concatenate", "broadcast", "copy"),
        *("gather", "dynamic-update-slice", "iota", "constant", "fusion", "bitcast"),
    )
)
_BY_ELEMENT = {*NEUTRAL, "sqrt", "rsqrt", "cbrt", "negate", "maximum", "minimum"}
_FORMS = ("transpose", "reshape", "bitcast", "copy")
_SAME_IF_TYPE_IS = ("slice", "dynamic-slice", "reshape", "convert", "copy", "bitcast")


class Ending(NamedTuple):
    """How an instruction left the program, or what it goes on as.

    Args:
        kind: `lives` if it goes on as the row `after`, else a kind of fate.
        before: The row that the pass took away: its own, or that of the expression it was part of.
        after: The row that stands in its place, -1 for none.
        why: In words, empty where the lines say it.
        is_shared: What it goes on as stands for its reader too.
        passes_on: `after` is what became of something that it read, which ended with it.
        changes_nothing: It gave, alone or with its reader, a value as it was before.
    """

    kind: str
    before: int
    after: int = -1
    why: str = ""
    is_shared: bool = False
    passes_on: bool = False
    changes_nothing: bool = False


def ending(change: Change, row: int) -> Ending:
    """What became of a row that a pass took away, as far as the modules around the pass say it.

    Args:
        change: What the pass did.
        row: A row before it that is not there after it.
    """
    end = _ending(change, row, 0)
    if end.kind == "eliminated" and change.makes_fusions and not (end.changes_nothing or end.why):
        # Fusing takes nothing away: what can't be found in a kernel is in it under the name of another.
        return Ending("unknown", row, why="it is in a kernel, where it can't be told from others")
    return end


def _ending(change: Change, row: int, depth: int) -> Ending:
    """What became of a row that a pass took away.

    Args:
        change: What the pass did.
        row: A row before it that is not there after it.
        depth: How many readers have been followed.
    """
    known = change.endings.get(row)
    if known is None:
        # Readers and operands lead to each other: what leads back to itself is unknown.
        change.endings[row] = Ending("unknown", row)
        known = change.endings[row] = _new_ending(change, row, depth)
    return known


def _new_ending(change: Change, row: int, depth: int) -> Ending:
    if row in change.same:
        return Ending("lives", row, change.same[row])
    links: dict[str, PassLink] = {}
    for link in change.links.get(change.key(row), ()):
        links.setdefault(link.kind, link)
    operand = change.row_before.get(identity(change, row), -1)
    if operand >= 0 and not links.keys() & _MOVES.keys():
        # What took its place is its operand, which may be another instruction after the pass, too.
        return Ending("eliminated", row, _goes_on_as(change, operand, depth), changes_nothing=True)
    if row in change.heirs:
        return Ending("merged" if _is_twin(change, row) else "eliminated", row, change.heirs[row])
    for kind, fate in _REPLACED.items():
        after = change.row_after.get(links[kind].new, -1) if kind in links else -1
        if after >= 0:
            moved = _moved_into_reader(change, row) if kind == "replaced" else None
            return moved or _stands_for(change, row, after, fate)
    if "unused" in links:
        return Ending("eliminated", row, why="nothing read it")
    if (after := _instead_of_equal(change, row)) >= 0:
        return _stands_for(change, row, after, "lives")
    reader = change.row_before.get(links["with"].new, -1) if "with" in links else -1
    if reader >= 0 and depth < _DEEPEST:
        return _with_reader(change, row, reader, depth)
    return _of_readers(change, row, depth)


def identity(change: Change, row: int) -> int:
    """The key of what gives the same value: an operand, or an operand's operand; -1 if the value is another one."""
    op, operands = change.op(row), change.operands(row)
    if op == "select" and len(operands) == 3:
        chosen = literal(change, change.row_before.get(operands[0], -1), change.row_before)
        if chosen in ("true", "false"):
            return operands[1 if chosen == "true" else 2]
        return operands[1] if operands[1] == operands[2] else -1
    if len(operands) == 2 and op not in _SAME_IF_TYPE_IS:
        return _of_two(change, op, operands)
    operand = change.row_before.get(operands[0], -1) if operands else -1
    return _of_one(change, row, operand) if operand >= 0 else -1


def _of_two(change: Change, op: str, operands: Sequence[int]) -> int:
    """The operand that an operation gives as it is, since the other one changes nothing or is the same; or -1."""
    neutral, sides = NEUTRAL.get(op, ("", ()))
    for side in sides:
        if literal(change, change.row_before.get(operands[side], -1), change.row_before) == neutral:
            return operands[1 - side]
    return operands[0] if op in _OF_ITSELF and operands[0] == operands[1] else -1


def _of_one(change: Change, row: int, operand: int) -> int:
    """The key of what an operation gives as it is: its first operand, the row given, or what that one undid; or -1."""
    op, types = change.op(row), change.versions.type
    if op in _UNDOES_ITSELF and _is_alike(change, row, operand):
        return change.operands(operand)[0]
    is_done = op in _DONE_AFTER_ONCE and change.op(operand) == op
    is_positive = op == "abs" and _is_square(change, operand)
    is_same = op in _SAME_IF_TYPE_IS and types[operand] == types[row]
    return change.key(operand) if is_done or is_positive or is_same else -1


def _is_square(change: Change, row: int) -> bool:
    """Whether a row is `x · x` or `x ^ 2`: its absolute is itself."""
    operands = change.operands(row)
    if len(operands) != 2:
        return False
    if change.op(row) == "multiply":
        return operands[0] == operands[1]
    return (
        change.op(row) == "power" and literal(change, change.row_before.get(operands[1], -1), change.row_before) == "2"
    )


def _is_alike(change: Change, row: int, other: int) -> bool:
    """Whether two rows are the same operation with the same attributes."""
    one, two = _attributes(change, row), _attributes(change, other)
    if change.op(row) != change.op(other):
        return False
    # What is reversed along two dimensions doesn't care for their order.
    return one == two or (change.op(row) == "reverse" and sorted(_words(one)) == sorted(_words(two)))


def _attributes(change: Change, row: int) -> str:
    """What stands after the operands."""
    return change.versions.lines[row].partition("), ")[2]


def _is_twin(change: Change, row: int) -> bool:
    """Whether what took over the name of a row had the same operands before that."""
    other = next(at for at, after in change.same.items() if after == change.heirs[row])
    return change.operands(row) == change.operands(other)


def _words(text: str) -> list[str]:
    return text.replace("{", ",").replace("}", ",").split(",")


def _goes_on_as(change: Change, row: int, depth: int) -> int:
    """The row after a pass that has the value of a row before it, -1 if it can't be told."""
    after = change.same.get(row, change.row_after.get(change.key(row), -1))
    after = after if after >= 0 else change.successor(row)
    if after >= 0 or (after := _instead_of_equal(change, row)) >= 0:
        return after
    return _ending(change, row, depth + 1).after if depth < _DEEPEST else -1


def _instead_of_equal(change: Change, row: int) -> int:
    """The new row in the place of what gave the value of `row` as it is, as the second of two reversals does; or -1."""
    todo = [row]
    for at in todo:  # grows while it is walked
        for reader in change.readers(change.key(at)) if len(todo) < _DEEPEST else ():
            if change.row_after.get(change.key(reader), -1) >= 0:
                continue
            todo.append(reader)
            if identity(change, reader) == change.key(row):
                links = change.links.get(change.key(reader), ())
                places = [
                    change.row_after.get(link.new, -1) for link in links if link.kind in ("rewritten", "replaced")
                ]
                if len(places) == 1 and change.is_new(places[0]):
                    return places[0]
    return -1


def _stands_for(change: Change, row: int, after: int, kind: str) -> Ending:
    if change.op(after) == "constant" and change.op(row) != "constant":
        return Ending("folded", row, after)
    if kind == "lives" and displaced(change, row, after):
        return Ending("eliminated", row, after, passes_on=True)
    return Ending(kind, row, after)


def _moved_into_reader(change: Change, row: int) -> Ending | None:
    """The ending of what its reader does now, as `(a ÷ b) ÷ c` becomes `a ÷ (b × c)`; None if that is not so.

    Of two reversals in a row the second one is reversed along the dimensions of both, and stays.
    """
    read = set(change.operands(row))
    for reader in change.readers(change.key(row)):
        after = change.same.get(reader, -1)
        is_alike = after >= 0 and change.op(row) == change.op(reader) == change.op(after)
        if is_alike and _attributes(change, reader) != _attributes(change, after):
            return Ending("lives", reader, after, is_shared=True)
        for key in change.operands(after) if after >= 0 else ():
            other = change.row_after.get(key, -1)
            is_born = other >= 0 and key not in change.row_before
            if is_born and change.op(other) in _BY_ELEMENT and read.intersection(change.operands(other)):
                return Ending("lives", reader, after, is_shared=True)
    return None


def _with_reader(change: Change, row: int, reader: int, depth: int) -> Ending:
    """The ending of what only `reader` read, which the pass took away too."""
    key, taken = change.key(row), identity(change, reader)
    if taken >= 0 and taken != key:
        operand = _goes_on_as(change, change.row_before.get(taken, reader), depth)
        return Ending("eliminated", reader, operand, changes_nothing=True)
    readers = _ending(change, reader, depth + 1)
    if readers.kind == "merged":
        # The whole expression was there twice: what its other copy reads in this place is the same.
        operands, others = (change.operands(at) for at in (reader, readers.after))
        if key in operands and len(operands) == len(others):
            after = change.row_after.get(others[operands.index(key)], -1)
            if after >= 0 and change.op(after) == change.op(row):
                return Ending("merged", row, after)
        return Ending("merged", readers.before, readers.after)
    if readers.passes_on:
        return _stands_for(change, row, readers.after, "lives")
    if readers.kind != "lives":
        return readers
    op, new = change.op(row), change.op(readers.after)
    if new == change.op(reader):
        return _read_instead(change, row, reader, readers.after)
    by_element = {new, change.op(reader)} <= _BY_ELEMENT
    if by_element and _moves_elements(change, row) and not _reads(change, readers.after, op):
        # `slice(pad(x)) ÷ 4` is `x × 0.25` now: what computes element by element puts none elsewhere.
        return Ending("eliminated", reader, readers.after, passes_on=True, changes_nothing=True)
    # A transposed product becomes another product; `1 / sqrt(x)` becomes `rsqrt(x)`, which does what both did.
    return Ending("lives", readers.before, readers.after, is_shared=new != op)


def _moves_elements(change: Change, row: int) -> bool:
    """Whether a row only puts elements elsewhere; so does a reduction of as many as it gives."""
    versions = change.versions
    if change.op(row) != "reduce":
        return change.op(row) in _ELEMENTS_ELSEWHERE
    operand = change.row_before.get(change.operands(row)[0], -1)
    types = (versions.types[int(versions.type[at])] for at in (row, operand) if at >= 0)
    counts = [elements(type_) for type_ in types]
    return len(counts) == 2 and counts[0] == counts[1]


def at_work(change: Change, row: int, after: int) -> int:
    """The row that does what `row` did, where what stands in its place only brings that into another form.

    On a CPU a convolution becomes `transpose(convolution(transpose(x), …))`, and the transpose bears its name.
    """
    inner = after
    while change.op(inner) in _FORMS and change.op(row) not in _FORMS and change.is_new(inner):
        operands = change.operands(inner)
        inner = change.row_after.get(operands[0], -1) if operands else -1
        if inner < 0:
            return after
    return inner if change.op(inner) == change.op(row) and change.is_new(inner) else after


def _reads(change: Change, row: int, op: str) -> bool:
    """Whether a row after the pass reads the result of an operation of this name."""
    read = (change.row_after.get(key, -1) for key in change.operands(row))
    return any(at >= 0 and change.op(at) == op for at in read)


def displaced(change: Change, row: int, after: int) -> bool:
    """Whether a row that bears the name of one that is gone does what another one did, which that one read.

    What replaces an instruction gets its metadata: `transpose(dot(a, b))` leaves a product that is called transpose.
    """
    op = change.op(after)
    if op == change.op(row):
        return False
    if change.op(row) in _ELEMENTS_ELSEWHERE and op not in _ELEMENTS_ELSEWHERE:
        return True
    todo = [row]
    for at in todo:  # grows while it is walked
        if len(todo) > _DEEPEST:
            return False
        for key in change.operands(at):
            operand = change.row_before.get(key, -1)
            if operand >= 0 and change.row_after.get(key, -1) < 0 and operand not in todo:
                is_last = change.successor(operand) in (-1, after) and not _is_done_again(change, operand, after)
                if change.op(operand) == op and is_last:
                    return True
                todo.append(operand)
    return False


def _is_done_again(change: Change, row: int, after: int) -> bool:
    """Whether `after` reads a copy of `row`, which a pass may make without a name: `(x × 8) ÷ 8` as `… × 0.125`."""
    read = (change.row_after.get(key, -1) for key in change.operands(after))
    return any(
        at >= 0 and change.op(at) == change.op(row) and change.operands(at) == change.operands(row) for at in read
    )


def _of_readers(change: Change, row: int, depth: int) -> Ending:
    """The ending of what several read, or whose reader was rewritten: known if all of them say the same."""
    readers = change.readers(change.key(row)) if depth < _DEEPEST else []
    endings = [_of_reader(change, row, reader, depth) for reader in readers]
    if endings and all(each.kind == endings[0].kind for each in endings):
        return endings[0]
    return Ending("unknown", row, why="what took its place can't be told from the module after it")


def _of_reader(change: Change, row: int, reader: int, depth: int) -> Ending:
    after = change.same.get(reader, -1)
    if after >= 0:
        return _read_instead(change, row, reader, after)
    if change.row_after.get(change.key(reader), -1) == reader:
        return Ending("unknown", row)  # it still reads what is gone: the text is damaged
    return _with_reader(change, row, reader, depth)


def _read_instead(change: Change, row: int, reader: int, after: int) -> Ending:
    """The ending of what `reader` read, which was rewritten in place as `after`."""
    olds, news = Counter(change.operands(reader)), Counter(change.operands(after))
    instead = list(news - olds)  # whatever its place: operands may be swapped
    if len(instead) > 1:
        instead = [new for new in instead if not literal(change, change.row_after.get(new, -1), change.row_after)]
    other = change.row_after.get(instead[0], -1) if len(instead) == 1 else -1
    if other < 0 or change.op(reader) != change.op(after):
        return Ending("eliminated", reader, after)
    if change.row_before.get(change.key(other), -1) < 0:
        return _stands_for(change, row, other, "lives")
    types = change.versions.type
    is_alike = change.op(other) == change.op(row) and types[other] == types[row]
    return _stands_for(change, row, other, "merged" if is_alike else "eliminated")
