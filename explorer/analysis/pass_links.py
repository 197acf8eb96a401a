"""Links from every instruction that a pass removed or copied to its replacement.

A pass records no links, so they are inferred from the modules before and after it. A link is certain if the text shows
it: the name was kept, a reader of the dead instruction reads the new one in the same place, or there was no reader. A
link from equal structure is marked as inferred: the root of a new fusion is the instruction that the fusion replaces,
and so on up its operands. The rest is `unknown`.
"""

from __future__ import annotations

from explorer.analysis.pass_changes import Change, changes
from explorer.model.passes import Passes, PassLink


def pass_links(passes: Passes) -> list[PassLink]:
    """Return the links of every instruction that died or was copied, pass by pass."""
    return [link for change in changes(passes) for link in links_of_pass(change)]


def links_of_pass(change: Change) -> list[PassLink]:
    """Return the links of one pass, and store them in `change.links`."""
    # The order matters: fusions are identified by what they replaced, and only the rest can be unread.
    _link_replaced(change)
    _link_fused(change)
    _link_inlined(change)
    _link_unread(change)
    return [link for links in change.links.values() for link in links]


def _link_replaced(change: Change) -> None:
    """Link instructions whose readers all read one other instruction now, or that were results."""
    program = change.program
    instead = _read_instead(change)
    roots = program.roots([*change.born.values(), *(new for _, new in change.changed)])
    for home, row in program.roots(change.dead.values()).items():
        # A root has no readers: the new root of its computation is its replacement.
        if home in roots:
            instead.setdefault(program.key[row], set()).add(program.key[roots[home]])
    for old, replacements in instead.items():
        # Readers that disagree show no single replacement.
        if len(replacements) > 1:
            continue
        (new,) = replacements
        row = change.row_after.get(new, -1)
        is_alike = row >= 0 and program.op[change.dead[old]] == program.op[row]
        change.add(old, "rewritten" if new in change.born else "merged" if is_alike else "replaced", new)


def _read_instead(change: Change) -> dict[int, set[int]]:
    """Return the replacements that rewritten instructions read, by the dead key they read before."""
    program = change.program
    instead: dict[int, set[int]] = {}
    for old_row, new_row in change.changed:
        olds, news = program.operands(old_row), program.operands(new_row)
        if program.op[old_row] != program.op[new_row] or len(olds) != len(news):
            continue
        for old, new in zip(olds, news, strict=True):
            # A key that was among the operands before may only have moved.
            if old != new and old in change.dead and news.count(new) > olds.count(new):
                instead.setdefault(old, set()).add(new)
    return instead


def _link_fused(change: Change) -> None:
    """Link instructions to the equal root of a new fusion, and so on up the operands."""
    program = change.program
    roots = program.roots(change.born.values())
    replaced = {link.new: old for old, links in change.links.items() for link in links if link.kind == "rewritten"}
    for key, row in change.born.items():
        root = program.called_root(row, roots) if program.op_name[row] == "fusion" else -1
        if root < 0 or key not in replaced:
            continue
        old = replaced[key]
        if program.alike(change.dead[old], root):
            # "Fused" is more specific than "rewritten".
            change.links.pop(old)
            change.add(old, "fused", program.key[root])
            _link_operands(change, change.dead[old], root, "fused")


def _link_inlined(change: Change) -> None:
    """Link the contents of an inlined computation to the instructions that replaced the call."""
    program = change.program
    roots = program.roots(change.dead.values())
    for key, row in change.dead.items():
        root = program.called_root(row, roots) if program.op_name[row] == "call" else -1
        for link in change.links.get(key, ()) if root >= 0 else ():
            new = change.born.get(link.new, -1)
            if link.kind == "rewritten" and new >= 0 and program.alike(root, new):
                change.add(program.key[root], "inlined", link.new)
                _link_operands(change, root, new, "inlined")


def _link_operands(change: Change, old_row: int, new_row: int, kind: str) -> None:
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


def _readers_of_dead(change: Change) -> dict[int, set[int]]:
    program = change.program
    readers: dict[int, set[int]] = {}
    for row in (*change.dead.values(), *(old for old, _ in change.changed)):
        for operand in program.operands(row):
            if operand in change.dead:
                readers.setdefault(operand, set()).add(program.key[row])
    return readers


def _link_unread(change: Change) -> None:
    """Link instructions that died with their reader or had none; mark the rest as unknown."""
    readers = _readers_of_dead(change)
    for key, row in change.dead.items():
        if key in change.links:
            continue
        read_by = readers.get(key, set())
        if not read_by:
            change.add(key, "unknown" if change.program.roots([row]) else "unused", -1)
        elif len(read_by) == 1 and read_by <= change.dead.keys():
            change.add(key, "with", next(iter(read_by)))
        else:
            change.add(key, "unknown", -1)
