"""How many links of each model are right, by their grade: the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import explorer as ex
from explorer.model.capture import Capture
from explorer.model.graph import Node
from tests.corpus_links.fingerprints import read_fingerprints
from tests.corpus_links.generated import generate
from tests.corpus_links.tagging import tagged_program
from tests.corpus_links.truth import Truth, read_truth


@dataclass(frozen=True)
class Link:
    """What a capture says of one instruction: its grade, and the rows of the jaxpr's graph."""

    capture: Capture
    node: Node

    @cached_property
    def grade(self) -> str:
        return self.capture.links.grade(self.node, "jaxpr")

    @cached_property
    def rows(self) -> frozenset[int]:
        return frozenset(linked.index for linked in self.capture.links.linked(self.node, "jaxpr"))

    def describe(self, true: frozenset[int]) -> str:
        jaxpr, node = self.capture.jaxpr.graph, self.node
        said, named = (
            ", ".join(f"{jaxpr.names[row]} {jaxpr.ops[int(jaxpr.op[row])]}" for row in sorted(rows)[:5]) or "nothing"
            for rows in (self.rows, true)
        )
        return f"{node.name} ({node.op}, {node.scope}): {self.grade} {said}; true: {named}"


@dataclass
class Judgement:
    """What the truth says of the links of one capture's instructions, of those whose truth is known.

    Args:
        exact, inferred, unknown: How many links are of each grade.
        wrong_exact: Exact ones that name an equation that the instruction is not of.
        wrong_inferred: Inferred ones without any equation that it is of.
        ambiguous: Inferred ones with such an equation and others.
        partial: Exact ones that miss an equation of a merged instruction.
        wrong: Each wrong one in words.
    """

    exact: int = 0
    inferred: int = 0
    unknown: int = 0
    wrong_exact: int = 0
    wrong_inferred: int = 0
    ambiguous: int = 0
    partial: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.exact + self.inferred + self.unknown

    def add(self, link: Link, named: frozenset[int], true: frozenset[int]) -> None:
        """Judge a link by the equations that the compiler names, and by all that the instruction is of."""
        setattr(self, link.grade, getattr(self, link.grade) + 1)
        is_wrong = False
        if link.grade == "exact":
            is_wrong = not link.rows or not link.rows <= true
            self.wrong_exact += is_wrong
            self.partial += not is_wrong and not named <= link.rows
        elif link.grade == "inferred":
            is_wrong = not link.rows & true
            self.wrong_inferred += is_wrong
            self.ambiguous += not is_wrong and not link.rows <= true
        if is_wrong:
            self.wrong.append(link.describe(named))

    def __add__(self, other: Judgement) -> Judgement:
        names = ("exact", "inferred", "unknown", "wrong_exact", "wrong_inferred", "ambiguous", "partial", "wrong")
        return Judgement(**{name: getattr(self, name) + getattr(other, name) for name in names})


@dataclass(frozen=True)
class Outcome:
    """What came of one model.

    Args:
        instructions: Of the optimised program.
        named: Those that carry an `op_name`; `compared`: those of them that the truth is about.
        metadata: The links of the plain program (`record=False`), by names and places.
        numbered: The links of the program with numbered equations, as `explore` compiles it.
        equations: Of its jaxpr.
        unmapped: Those of them of which it isn't known what became of them in the numbered program.
    """

    model: str
    instructions: int
    named: int
    compared: int
    metadata: Judgement
    numbered: Judgement
    equations: int
    unmapped: int

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Outcome:
        """An outcome from what `dataclasses.asdict` gives of it."""
        judged = {key: Judgement(**values[key]) for key in ("metadata", "numbered")}
        return cls(**{**values, **judged})


def outcomes(models: Mapping[str, Callable[[], tuple[Any, ...]]], names: Sequence[str] = ()) -> Iterator[Outcome]:
    """One for each model, or each of those named; what one raises has the model's name in its notes."""
    for name in names or models:
        try:
            yield outcome(name, *models[name]())
        except Exception as error:
            error.add_note(f"model: {name}")
            raise


def outcome(name: str, function: Callable[..., Any], *args: Any) -> Outcome:
    """Explore a model with and without numbered equations, and judge the links of both."""
    tagged = tagged_program(function, *args)
    plain, capture = ex.explore(function, *args, record=False), ex.explore(function, *args)
    metadata = judge(plain, read_truth(plain, tagged))
    truth = read_truth(capture, tagged)
    numbered, fates = judge(capture, truth), _fates(capture)
    return Outcome(name, len(capture.hlo.graph), truth.named, truth.compared, metadata, numbered, *fates)


def _fates(capture: Capture) -> tuple[int, int]:
    counts = capture.fates()
    return sum(counts.values()), counts.get("unknown", 0)


def generated_outcomes(seeds: Sequence[int]) -> tuple[Outcome, Outcome]:
    """All generated programs of these seeds as one row, judged by tags, and as another, judged by fingerprints."""
    by_tags, by_prints = [], []
    for seed in seeds:
        function, *args = generate(seed)
        tagged = tagged_program(function, *args)
        captures = ex.explore(function, *args, record=False), ex.explore(function, *args)
        truths = [read_truth(capture, tagged) for capture in captures]
        prints = [read_fingerprints(capture, tagged) for capture in captures]
        fates, size, name = _fates(captures[1]), len(captures[1].hlo.graph), f"generated {seed}"
        tags = map(judge, captures, truths)
        by_tags.append(Outcome(name, size, truths[1].named, truths[1].compared, *tags, *fates))
        judged = map(judge_by_prints, captures, prints)
        by_prints.append(Outcome(name, size, len(prints[1]), len(prints[1]), *judged, *fates))
    return merge(f"{len(seeds)} generated: tags", by_tags), merge("the same: fingerprints", by_prints)


def merge(name: str, outcomes: Sequence[Outcome]) -> Outcome:
    """All of them as one."""
    columns = {key: [getattr(each, key) for each in outcomes] for key in Outcome.__dataclass_fields__ if key != "model"}
    empty: dict[str, Any] = {"metadata": Judgement(), "numbered": Judgement()}
    return Outcome(name, **{key: sum(values, empty.get(key, 0)) for key, values in columns.items()})


def judge(capture: Capture, truth: Truth) -> Judgement:
    """Judge the link of each instruction whose truth is known, by its line in the HLO's text."""
    judgement = Judgement()
    for node in capture.hlo.graph.nodes:
        link = Link(capture, node)
        if node.line in truth.rows:
            judgement.add(link, truth.rows[node.line], truth.merged[node.line])
        elif node.line in truth.unnamed and link.grade == "exact":
            judgement.add(link, frozenset(), frozenset())
    return judgement


def judge_by_prints(capture: Capture, prints: Mapping[int, frozenset[int]]) -> Judgement:
    """Judge the link of each instruction with a fingerprint; an exact one may name what else was merged with that."""
    judgement = Judgement()
    for node in capture.hlo.graph.nodes:
        if (own := prints.get(node.line)) is not None:
            link = Link(capture, node)
            judgement.add(link, own, own | link.rows if own & link.rows and link.grade == "exact" else own)
    return judgement


def table(outcomes: Sequence[Outcome]) -> str:
    """One row for each model, and the totals below."""
    grades = f"{'exact':>7}{'inferr.':>8}{'unknown':>8}{'ambig.':>7}{'✗exact':>7}{'✗inf.':>7}"
    return "\n".join(
        [
            f"{'':<26}{'':>8}{'op_name':>8}{'of them':>9}  {'by names and places':^44}  {'by numbers':^44}{'un-':>9}",
            f"{'model':<26}{'instr.':>8}{'':>8}{'compared':>9}  {grades}  {grades}{'mapped':>9}",
            *map(_row, outcomes),
        ]
    )


def _row(each: Outcome) -> str:
    return (
        f"{each.model:<26}{each.instructions:>8}{each.named:>8}{each.compared:>9}  "
        f"{_counts(each.metadata)}  {_counts(each.numbered)}{each.unmapped / each.equations:>9.1%}"
    )


def totals(outcomes: Sequence[Outcome]) -> str:
    """All models as one row, as shares, and in words."""
    each = merge(f"all {len(outcomes)}", outcomes)
    return (
        f"{_row(each)}\n{'':<51}  {_shares(each.metadata)}  {_shares(each.numbered)}\n"
        f"By names and places {_sentence(each.metadata)}.\nBy numbers {_sentence(each.numbered)}, and "
        f"{each.numbered.exact / each.named:.1%} of the instructions that carry an op_name are linked exactly.\n"
        f"Of {each.equations:,} equations {each.unmapped / each.equations:.1%} are unmapped."
    )


def _counts(each: Judgement) -> str:
    return (
        f"{each.exact:>7}{each.inferred:>8}{each.unknown:>8}{each.ambiguous:>7}"
        f"{each.wrong_exact:>7}{each.wrong_inferred:>7}"
    )


def _shares(each: Judgement) -> str:
    total = max(each.total, 1)
    return (
        f"{each.exact / total:>7.1%}{each.inferred / total:>8.1%}{each.unknown / total:>8.1%}"
        f"{each.ambiguous / total:>7.1%}{each.wrong_exact / total:>7.2%}{each.wrong_inferred / total:>7.2%}"
    )


def _sentence(each: Judgement) -> str:
    wrong = each.wrong_exact + each.wrong_inferred
    return (
        f"{each.exact / max(each.total, 1):.1%} of {each.total:,} links are exact, "
        f"{wrong} wrong ({wrong / max(each.total, 1):.2%}), {each.wrong_exact} of them among the exact"
    )


def wrong_links(outcome: Outcome, *when: str) -> Iterator[str]:
    """Each wrong link of a model, with what is said and what is true: by `metadata` and `numbered`."""
    for moment in when or ("metadata", "numbered"):
        yield from (f"{outcome.model}, {moment}: {wrong}" for wrong in getattr(outcome, moment).wrong)
