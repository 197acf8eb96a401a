"""What Explorer says of each removable operation against what XLA's dumps say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import explorer as ex
from tests.corpus_fates.programs import KINDS, Program, Strand, program
from tests.corpus_fates.truth import Dump, Truth, bears, dimensions, dump, truth

_INSTRUCTION = re.compile(
    r"^\s+(?:ROOT )?%?[\w.\-]+ = (?P<type>\w+\[[\d,]*\])(?:\{[^}]*\})? (?P<op>[\w\-]+)\(", re.MULTILINE
)
ENDED = ("eliminated", "folded", "merged")
RUNS = ("kept", "fused", "duplicated")


@dataclass
class Score:
    """Counts of equations, and what is wrong, in words.

    Args:
        equations: Of the kinds under test.
        kinds: How often Explorer says each fate.
        ended: How many ended by the dumps, and `named` how many of these Explorer names with their pass: as ended, or
            as rewritten where that is what became of it, as of the root and the quotient that are one `rsqrt` now.
        uncertain: Of strands where counting can't tell what ended.
        wrong: Each fate that the dumps contradict.
    """

    equations: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    passes: Counter[str] = field(default_factory=Counter)
    ended: int = 0
    named: int = 0
    uncertain: int = 0
    wrong: list[str] = field(default_factory=list)

    def __add__(self, other: Score) -> Score:
        return Score(
            self.equations + other.equations,
            self.kinds + other.kinds,
            self.passes + other.passes,
            self.ended + other.ended,
            self.named + other.named,
            self.uncertain + other.uncertain,
            self.wrong + other.wrong,
        )


def score(program: Program, explore: Any = ex.explore) -> Score:
    """The score of one program."""
    dumped = dump(program)
    capture = explore(program, *program.arguments)
    snapshot_of = _snapshots(capture, dumped)
    total = Score()
    for strand in program.strands:
        for kind in strand.kinds:
            total += _score_kind(capture, dumped, snapshot_of, program, strand, kind)
    return total


def scores(seeds: Iterable[int]) -> Iterator[Score]:
    return (score(program(seed)) for seed in seeds)


def _snapshots(capture: Any, dumped: Dump) -> dict[int, int]:
    """By number of a pass, the snapshot of the dump after it: of that name, with the same operations in order."""
    found, at = {0: 0}, 0
    for number, step in enumerate(capture.passes, 1):
        shape = tuple((match["op"], match["type"]) for match in _INSTRUCTION.finditer(step.after))
        for i in range(at + 1, len(dumped.snapshots)):
            if dumped.snapshots[i].shape == shape and dumped.snapshots[i].pass_name in (step.name, ""):
                found[number] = at = i
                break
    return found


def _score_kind(
    capture: Any, dumped: Dump, snapshot_of: dict[int, int], program: Program, strand: Strand, kind: str
) -> Score:
    removable, prime = KINDS[kind], strand.prime
    nodes = [
        node
        for node in capture.jaxpr.graph.nodes
        if node.op in removable.primitives and bears(dimensions(node.type), prime)
    ]
    fates = [capture.fate(node) for node in nodes]
    known = truth(dumped, kind, prime, len(nodes))
    result = Score(len(nodes), Counter(fate.kind for fate in fates))
    place = f"seed {program.seed}: {kind}{f' in {strand.context}' if strand.context else ''} [{prime}]"
    result.wrong += [
        f"{place}: {node.name} is {fate}, but no kernel of its has one"
        for node, fate in zip(nodes, fates, strict=True)
        if fate.kind == "fused" and not _is_in(dumped, capture, fate, kind, prime)
    ]
    if known.is_known:
        _compare(result, known, fates, snapshot_of, place, prime, stays=removable.stays)
    else:
        result.uncertain = len(nodes)
    return result


def _compare(
    result: Score, known: Truth, fates: list[Any], snapshot_of: dict[int, int], place: str, prime: int, *, stays: bool
) -> None:
    ends = Counter({at: count for at, count in known.ends.items()})
    ends[-1] = known.written - known.lowered
    once, result.ended = +ends, sum(ends.values())
    for fate in fates:
        if fate.kind not in ENDED:
            continue
        at = snapshot_of.get(fate.pass_number, -2) if fate.pass_number is not None else -1
        line = _INSTRUCTION.match(f"  {fate.before}") if at > 0 else None
        if line and not bears(dimensions(line["type"]), prime):
            result.uncertain += 1  # it lived on as a number, which counting the strand's arrays doesn't see
            continue
        result.passes[fate.pass_name] += 1
        # Of what stays, one operation may be that of two equations when it ends.
        if not fate.pass_name or (ends[at] <= 0 and not (stays and once[at])):
            result.wrong.append(f"{place}: {fate}; the dumps say {dict(+ends)} (this is {at})")
            continue
        result.named += ends[at] > 0
        ends[at] -= 1
    for fate in fates if stays else ():
        at = snapshot_of.get(fate.pass_number, -2) if fate.kind == "rewritten" else -2
        if ends[at] > 0:
            ends[at] -= 1
            result.named += 1
            result.passes[fate.pass_name] += 1
    lives = sum(fate.kind == "rewritten" and bool(fate.kernels) for fate in fates)
    if lives and not stays and not known.left:
        result.wrong.append(f"{place}: {lives} said to be rewritten, and nothing is left: {fates}")
    runs = sum(fate.kind in RUNS for fate in fates)
    if runs > known.left:
        result.wrong.append(f"{place}: {runs} said to run, {known.left} are left: {fates}")


def _is_in(dumped: Dump, capture: Any, fate: Any, kind: str, prime: int) -> bool:
    """Whether each kernel that an equation is said to be fused into has an operation of the kind, in the last dump."""
    for kernel in fate.kernels:
        inside = [node for node in capture.hlo.graph.nodes if node.group and node.group.caller == kernel.index]
        home = inside[0].group.name if inside else ""
        there = [each for each in dumped.final.instructions if each.computation == home]
        if not any(each.op in KINDS[kind].instructions and bears(dimensions(each.type), prime) for each in there):
            return False
    return bool(fate.kernels)


def table(total: Score, programs: int) -> str:
    """The figures, and what is wrong."""
    counted = [f"{programs:,} programs, {total.equations:,} equations: "]
    counted[0] += ", ".join(f"{count:,} {kind}" for kind, count in total.kinds.most_common())
    ends = ", ".join(f"{name or 'no pass'} {count:,}" for name, count in total.passes.most_common())
    counted.append(f"ended by the dumps {total.ended:,}, named with their pass {total.named:,} ({ends})")
    counted.append(f"not to be told by counting {total.uncertain:,}; wrong {len(total.wrong):,}")
    return "\n".join([*counted, *(f"  {each}" for each in total.wrong)])
