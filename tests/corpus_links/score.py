"""How many links of each model are right, by their grade: the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import explorer as ex
from explorer.model.capture import Capture
from tests.corpus_links.tagging import tagged_program
from tests.corpus_links.truth import Truth, read_truth


@dataclass
class Judgement:
    """What the truth says of the links of one capture's instructions, of those whose truth is known.

    Args:
        exact, inferred, unknown: How many links are of each grade.
        wrong_exact: Exact ones that name an equation that the instruction is not of.
        wrong_inferred: Inferred ones without any equation that it is of.
        ambiguous: Inferred ones with such an equation and others.
        partial: Exact ones that miss an equation of a merged instruction.
        wrong: Each wrong one: instruction, what is said, what is true.
    """

    exact: int = 0
    inferred: int = 0
    unknown: int = 0
    wrong_exact: int = 0
    wrong_inferred: int = 0
    ambiguous: int = 0
    partial: int = 0
    wrong: list[tuple[str, str, frozenset[int], frozenset[int]]] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.exact + self.inferred + self.unknown

    def add(self, name: str, grade: str, said: frozenset[int], named: frozenset[int], true: frozenset[int]) -> None:
        """Judge one link: the rows of the jaxpr that it leads to against those that it should, merged ones included."""
        setattr(self, grade, getattr(self, grade) + 1)
        is_wrong = False
        if grade == "exact":
            is_wrong = not said or not said <= true
            self.wrong_exact += is_wrong
            self.partial += not is_wrong and not named <= said
        elif grade == "inferred":
            is_wrong = not said & true
            self.wrong_inferred += is_wrong
            self.ambiguous += not is_wrong and not said <= true
        if is_wrong:
            self.wrong.append((name, grade, said, named))

    def __add__(self, other: Judgement) -> Judgement:
        names = ("exact", "inferred", "unknown", "wrong_exact", "wrong_inferred", "ambiguous", "partial", "wrong")
        return Judgement(**{name: getattr(self, name) + getattr(other, name) for name in names})


@dataclass(frozen=True)
class Outcome:
    """What came of one model.

    Args:
        instructions: Of the optimised program.
        named: Those that carry an `op_name`; `compared`: those of them that the truth is about.
        structure, recorded: The links before the recording of the passes, and after it.
        unmapped: The share of the equations, after it, of which it isn't known what became of them; `equations`: all.
    """

    model: str
    instructions: int
    named: int
    compared: int
    structure: Judgement
    recorded: Judgement
    equations: int
    unmapped: float
    capture: Capture | None = None


def outcomes(models: Mapping[str, Callable[[], tuple[Any, ...]]], names: Sequence[str] = ()) -> Iterator[Outcome]:
    """One for each model, or each of those named."""
    for name in names or models:
        yield outcome(name, *models[name]())


def outcome(name: str, function: Callable[..., Any], *args: Any) -> Outcome:
    """Explore a model, and judge its links before and after the recording."""
    capture = ex.explore(function, *args)
    truth = read_truth(capture, tagged_program(function, *args))
    structure = judge(capture, truth)
    _ = capture.passes
    recorded = judge(capture, truth)
    return summarize(name, capture, truth, structure, recorded)


def summarize(name: str, capture: Capture, truth: Truth, structure: Judgement, recorded: Judgement) -> Outcome:
    fates = capture.fates_of("jaxpr")
    return Outcome(
        name,
        len(capture.hlo.graph),
        truth.named,
        truth.compared,
        structure,
        recorded,
        int(capture.jaxpr.graph.is_equation.sum()),
        1 - fates.mapped,
        capture,
    )


def judge(capture: Capture, truth: Truth) -> Judgement:
    """Judge the link of each instruction whose truth is known, by its line in the HLO's text."""
    judgement = Judgement()
    for node in capture.hlo.graph.nodes:
        if node.line in truth.rows:
            said = frozenset(linked.index for linked in capture.links.linked(node, "jaxpr"))
            judgement.add(
                node.name, capture.links.grade(node, "jaxpr"), said, truth.rows[node.line], truth.merged[node.line]
            )
    return judgement


def table(outcomes: Sequence[Outcome]) -> str:
    """One row for each model, and the totals below."""
    grades = f"{'exact':>7}{'inferr.':>8}{'unknown':>8}{'ambig.':>7}{'✗exact':>7}{'✗inf.':>7}"
    rows = [
        f"{'':<26}{'':>8}{'op_name':>8}{'of them':>9}  {'from structure alone':^44}  {'when recorded':^44}{'un-':>9}",
        f"{'model':<26}{'instr.':>8}{'':>8}{'compared':>9}  {grades}  {grades}{'mapped':>9}",
    ]
    rows += [
        f"{each.model:<26}{each.instructions:>8}{each.named:>8}{each.compared:>9}  "
        f"{_counts(each.structure)}  {_counts(each.recorded)}{each.unmapped:>9.1%}"
        for each in outcomes
    ]
    structure, recorded = (sum((getattr(o, key) for o in outcomes), Judgement()) for key in ("structure", "recorded"))
    named, compared, equations = (sum(getattr(o, key) for o in outcomes) for key in ("named", "compared", "equations"))
    unmapped = sum(each.unmapped * each.equations for each in outcomes) / max(equations, 1)
    rows += [
        f"{'all':<26}{sum(each.instructions for each in outcomes):>8}{named:>8}{compared:>9}  "
        f"{_counts(structure)}  {_counts(recorded)}{unmapped:>9.1%}",
        f"{'':<51}  {_shares(structure)}  {_shares(recorded)}",
        f"{len(outcomes)} models. From structure alone {_sentence(structure)}; when recorded {_sentence(recorded)}.",
    ]
    return "\n".join(rows)


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


def wrong_links(outcome: Outcome) -> Iterator[str]:
    """Each wrong link of a model, with what is said and what is true."""
    assert outcome.capture is not None
    hlo, jaxpr = outcome.capture.hlo.graph, outcome.capture.jaxpr.graph

    def described(rows: frozenset[int]) -> str:
        return ", ".join(f"{jaxpr.names[row]} {jaxpr.ops[int(jaxpr.op[row])]}" for row in sorted(rows)[:5]) or "nothing"

    for when in ("structure", "recorded"):
        for name, grade, said, true in getattr(outcome, when).wrong:
            yield (
                f"{outcome.model}, {when}: {name} ({hlo[name].op}, {hlo[name].scope}) is {grade}ly"
                f" {described(said)}; true: {described(true)}"
            )
