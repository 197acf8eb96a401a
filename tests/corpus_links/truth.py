"""Which equations each instruction of a capture's HLO comes from, by the tags of a second program."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from explorer.model.capture import Capture
from explorer.model.graph import Graph
from tests.corpus_links.equation_values import values_of
from tests.corpus_links.tagging import TaggedProgram

_TAG = re.compile(r"(?:^|[/(])T(\d+)T(?=[/)]|$)")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?[\w.\-]+ = ")
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) .*\{$")
_APPLIED = re.compile(r"(?:to_apply|select|scatter|comparator)=%?([\w.\-]+)")
_METADATA = re.compile(r', metadata=\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\}')
_NAME = re.compile(r"%[\w.\-]+")
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
Path = tuple[int, ...]
"""The tags of the calls around an equation, the outermost first, and its own."""


@dataclass(frozen=True)
class Truth:
    """The rows of the jaxpr's graph that an instruction comes from, by its line in the HLO's text, from 0.

    Args:
        rows: By line, as the tags have it. XLA joins the paths of merged instructions: then they are several. An
            argument's path is its own `op_name`; what a reduction applies to each pair of elements, of which XLA names
            the primitive alone, is of the reduction.
        merged: By line, these and the equations of the same value, or from which it is computed, of which no
            instruction is left: XLA keeps one of equal instructions, and folds a transpose into a product.
        unnamed: The lines whose `op_name` says of no equation: nothing can be known of them for certain.
        named: How many instructions carry an `op_name`.
        compared: How many of them stand at the same position in both programs; of the others nothing is said.
    """

    rows: Mapping[int, frozenset[int]]
    merged: Mapping[int, frozenset[int]]
    unnamed: frozenset[int]
    named: int
    compared: int


def read_truth(capture: Capture, tagged: TaggedProgram) -> Truth:
    """The truth about a capture, from the HLO of the program with tags."""
    paths = equation_paths(capture.jaxpr.graph, tagged)
    ends: defaultdict[int, list[Path]] = defaultdict(list)
    for path in paths:
        ends[path[-1]].append(path)
    inner = {tag: {each for _, tags in bodies.values() for each in tags} for tag, bodies in tagged.tagger.inner.items()}
    plain_lines, tagged_lines = (_instructions(text) for text in (capture.hlo.text, tagged.text))
    graph = capture.jaxpr.graph
    arguments = {node.scope: node.index for node in graph.nodes if node.op == "parameter" and node.scope}
    rows: dict[int, frozenset[int]] = {}
    named = {line for line, text in plain_lines if _OP_NAME.search(text)}
    compared = 0
    for (line, _), (_, text) in _aligned(plain_lines, tagged_lines):
        if line not in named:
            continue
        compared += 1
        name = _OP_NAME.search(text)
        tags = list(_segments(name[1], inner)) if name else []
        sets = [{paths[path] for path in ends[segment[-1]] if path[-len(segment) :] == segment} for segment in tags]
        if not tags and name and (path := re.sub(r"\\(.)", r"\1", name[1])) in arguments:
            sets = [{arguments[path]}]
        rows[line] = frozenset[int]().union(*sets)
    for line, callers in _applied_by(capture.hlo.text).items():
        if line in rows and not rows[line]:
            rows[line] = frozenset[int]().union(*(rows.get(caller, ()) for caller in callers))
    unnamed = frozenset(line for line, found in rows.items() if not found)
    rows = {line: found for line, found in rows.items() if found}
    left = frozenset[int]().union(*rows.values())
    values, arguments = values_of(paths, tagged), set(arguments.values())
    stood_for = {row: values.stands_for(row, left) for row in left - arguments}
    also = {line: found.union(*(stood_for.get(row, ()) for row in found)) for line, found in rows.items()}
    for line, text in plain_lines:
        if " dot(" in text and line in rows:
            also[line] |= _products_within(rows[line], graph)
    return Truth(rows, also, unnamed, len(named), compared)


def _products_within(rows: frozenset[int], graph: Graph) -> frozenset[int]:
    """The products in the bodies of calls and loops: XLA rewrites a product without its name, and then names it after
    the loop around it, which is all that a tag can say.
    """
    within = set[int]()
    for index, group in enumerate(graph.groups):  # an outer group is before those in it
        if group.caller in rows or (group.caller >= 0 and int(graph.group[group.caller]) in within):
            within.add(index)
    products = (row for row, op in enumerate(graph.op.tolist()) if graph.ops[op] == "dot_general")
    return frozenset(row for row in products if int(graph.group[row]) in within)


def equation_paths(graph: Graph, tagged: TaggedProgram) -> dict[Path, int]:
    """The row of every equation in a jaxpr's graph, by the tags of the calls to it."""
    tagger = tagged.tagger
    members: defaultdict[int, list[int]] = defaultdict(list)
    for row, (group, op) in enumerate(zip(graph.group.tolist(), graph.op.tolist(), strict=True)):
        if graph.ops[op] not in ("parameter", "constant"):
            members[group].append(row)
    called: defaultdict[int, list[int]] = defaultdict(list)
    for index, group in enumerate(graph.groups):
        called[group.caller].append(index)
    paths: dict[Path, int] = {}

    def walk(group: int, tags: Sequence[int], above: Path) -> None:
        ops = [graph.ops[int(graph.op[row])] for row in members[group]]
        assert ops == [tagger.equations[tag].primitive.name for tag in tags], (
            "the reader's equations are not the program's"
        )
        for row, tag in zip(members[group], tags, strict=True):
            paths[*above, tag] = row
            inside = {graph.groups[index].name.partition("=")[0]: index for index in called[row]}
            assert inside.keys() == tagger.inner[tag].keys()
            for key, index in inside.items():
                walk(index, tagger.inner[tag][key][1], (*above, tag))

    (entry,) = called[-1]
    walk(entry, tagged.tags, ())
    return paths


def _segments(name: str, inner: Mapping[int, set[int]]) -> Iterator[Path]:
    """The paths of tags in an `op_name`: XLA joins those of merged instructions, with `;` or one behind the other."""
    for part in name.split(";"):
        path: Path = ()
        for tag in map(int, _TAG.findall(part)):
            if path and tag not in inner[path[-1]]:
                yield path
                path = ()
            path = (*path, tag)
        if path:
            yield path


def _applied_by(text: str) -> dict[int, list[int]]:
    """The lines of computations that instructions apply to elements, each with the lines of these instructions."""
    bodies: defaultdict[str, list[int]] = defaultdict(list)
    callers: defaultdict[str, list[int]] = defaultdict(list)
    computation = ""
    for number, line in enumerate(text.splitlines()):
        if match := _COMPUTATION.match(line):
            computation = match[1]
        elif _INSTRUCTION.match(line):
            bodies[computation].append(number)
            for name in _APPLIED.findall(line) if " call(" not in line else ():
                callers[name].append(number)
    return {line: callers[name] for name, lines in bodies.items() if name in callers for line in lines}


def _instructions(text: str) -> list[tuple[int, str]]:
    return [(number, line) for number, line in enumerate(text.splitlines()) if _INSTRUCTION.match(line)]


Lines = Sequence[tuple[int, str]]


def _aligned(plain: Lines, tagged: Lines) -> Iterator[tuple[tuple[int, str], tuple[int, str]]]:
    """Instructions at one position of both programs: they are equal but for names and metadata."""
    here, there = (_canonical(lines) for lines in (plain, tagged))
    if here == there:
        yield from zip(plain, tagged, strict=True)
        return
    here, there = ([_NAME.sub("%", line) for _, line in lines] for lines in (plain, tagged))
    here, there = ([_METADATA.sub("", line) for line in lines] for lines in (here, there))
    for block in SequenceMatcher(None, here, there, autojunk=False).get_matching_blocks():
        yield from zip(plain[block.a : block.a + block.size], tagged[block.b : block.b + block.size], strict=True)


def _canonical(lines: Lines) -> list[str]:
    """Without metadata, and with names replaced by when they come first: XLA makes its names of `op_name`."""
    number: dict[str, int] = {}
    stripped = (_METADATA.sub("", line) for _, line in lines)
    return [_NAME.sub(lambda name: f"%{number.setdefault(name[0], len(number))}", line) for line in stripped]
