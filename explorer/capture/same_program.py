"""Whether two graphs are one program but for names, and how their names correspond."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import count

import numpy as np
from numpy.typing import NDArray

from explorer.capture.equation_paths import is_numbered
from explorer.model.graph import CALL_ROLES, Graph, Ints

ESTIMATES = ("estimated_microseconds", "estimated_cycles")
# What names computations, and what XLA chose for code that it generates: a recording generates none.
_NOT_COMPARED = frozenset((*CALL_ROLES, "backend_config", "known_trip_count", *ESTIMATES))


def is_same_program(plain: Graph, other: Graph) -> bool:
    """Whether both have the same operations, types, operands and attributes in the same order, in like computations."""
    if len(plain.names) != len(other.names) or len(plain.groups) != len(other.groups):
        return False
    columns = ("operand_start", "operand", "group")
    return (
        all(np.array_equal(getattr(plain, name), getattr(other, name)) for name in columns)
        and _are_equal((plain.op, plain.ops), (other.op, other.ops))
        and _are_equal((plain.type, plain.types), (other.type, other.types))
        and [(g.kind, g.parent, g.caller) for g in plain.groups] == [(g.kind, g.parent, g.caller) for g in other.groups]
        and _have_equal_attributes(plain, other)
    )


def _are_equal(here: tuple[Ints, Sequence[str]], there: tuple[Ints, Sequence[str]]) -> bool:
    """Whether two columns of codes mean the same strings."""
    code = {string: i for i, string in enumerate(here[1])}
    translated = np.asarray([code.get(string, -1) for string in there[1]], np.int32)
    return np.array_equal(here[0], translated[there[0]])


def _have_equal_attributes(plain: Graph, other: Graph) -> bool:
    tables = [graph.attribute_table.columns for graph in (plain, other)]
    kept: list[NDArray[np.bool_]] = [
        ~np.asarray([key in _NOT_COMPARED for key in table.keys] or [True], bool)[table.key] for table in tables
    ]
    nodes = [
        np.repeat(np.arange(len(table.start) - 1), np.diff(table.start))[mask]
        for table, mask in zip(tables, kept, strict=True)
    ]
    (here, there), (mask, others) = tables, kept
    return (
        np.array_equal(nodes[0], nodes[1])
        and _are_equal((here.key[mask], here.keys), (there.key[others], there.keys))
        and _are_equal((here.value[mask], here.values), (there.value[others], there.values))
    )


def names_by_position(plain: Graph, other: Graph) -> dict[str, str]:
    """For each instruction and computation of `other`, the name of the one in its place in the same program."""
    groups = zip(other.groups, plain.groups, strict=True)
    return dict(zip(other.names, plain.names, strict=True)) | {there.name: here.name for there, here in groups}


def plain_names(all_names: Set[str], *by_position: Mapping[str, str]) -> dict[str, str]:
    """The names to replace in every snapshot of a numbered program, each with what the plain program has for it.

    XLA makes names from scopes, so that some have another counter, or the number of an equation for a name. Those that
    live at the start or at the end are known by position; one that lives only in between gets a name of its own.

    Args:
        all_names: Of all instructions and computations of all snapshots.
        by_position: Names of the numbered program with those of the plain one; of two, the first counts.

    Returns:
        Only names that are replaced. No two get one name.
    """
    renamed: dict[str, str] = {}
    taken: set[str] = set()
    for names in by_position:
        for name, plain in names.items():
            if name not in renamed and plain not in taken:
                renamed[name] = plain
                taken.add(plain)
    for name in sorted(all_names - renamed.keys()):
        wanted = name
        if name in taken or is_numbered(name):
            base = "instruction" if is_numbered(name) else name.partition(".")[0]
            wanted = next(other for i in count(1) if (other := f"{base}.{i}") not in taken and other not in all_names)
        renamed[name] = wanted
        taken.add(wanted)
    return {name: plain for name, plain in renamed.items() if name != plain}
