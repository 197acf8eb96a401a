"""Findings about a function that is compiled, each with its line, its evidence and its fix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from explorer.model.declared import Displayable, Framed, declared

# error: the result is wrong or the call fails. warning: it surprises or costs. note: worth knowing.
SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True, slots=True)
class Fix:
    """How to cure a finding.

    Args:
        text: What to do, in a sentence or in code.
        code: The user's function rewritten, whole; empty where no rewrite is certain. It was parsed and traced, and the
            rule no longer hits it.
        diff: From the user's text to `code`, as a unified diff.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> def f(x):
        ...     print("x is", x)
        ...     return x * 2
        >>> findings = explorer.lint(f, jnp.ones(3))
        x is JitTracer(float32[3])
        >>> fix = findings.fix(findings[0])
        >>> print(fix.code.strip())
        import jax
        <BLANKLINE>
        <BLANKLINE>
        def f(x):
            jax.debug.print("x is {}", x)
            return x * 2
    """

    text: str
    code: str = ""
    diff: str = ""

    def __str__(self) -> str:
        return self.text

    @declared
    def apply(self) -> None:
        """Write `code` into a new cell below the one that runs this.

        Raises:
            ViewError: There is no code, or no notebook to write into.
        """
        ...


@dataclass(frozen=True, slots=True)
class Finding(Displayable):
    """One pitfall in one place.

    Args:
        rule: The rule's name: `impure-print`.
        severity: One of `SEVERITIES`.
        message: What happens, in one sentence.
        file: The name that frames carry.
        line: From 1; 0 where it has no line.
        evidence: What was seen: values, counts, types.
        fix: How to cure it.
        code: The rule's number, for `# explorer: ignore[EX001]`.
        label: What a person calls the file: `train.py`, `cell [4]`.
        text: The line itself, stripped.
        column, end_line, end_column: The piece that is meant, as Python counts: columns from 0 in UTF-8 bytes; equal
            where it is all of the line.
        documentation: The page of JAX's documentation that explains it.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> def f(x):
        ...     print("called")
        ...     return x * 2
        >>> finding, = explorer.lint(f, jnp.ones(3))
        called
        >>> finding.rule, finding.code, finding.severity, finding.line
        ('impure-print', 'EX001', 'note', 2)
        >>> finding.text
        'print("called")'
    """

    rule: str
    severity: str
    message: str
    file: str = ""
    line: int = 0
    evidence: str = ""
    fix: Fix = field(default_factory=lambda: Fix(""))
    code: str = ""
    label: str = ""
    text: str = ""
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    documentation: str = ""

    @property
    def sentence(self) -> str:
        """`note, line 5: print() ran while step was traced, …`."""
        return f"{self.severity}{f', line {self.line}' if self.line else ''}: {self.message}"

    def __repr__(self) -> str:
        where = f" at {self.label or self.file}, line {self.line}" if self.line else ""
        return f"Finding({self.rule}{where}: {self.message})"


class Findings(Sequence[Finding], Displayable, Framed):
    """What was found, the gravest first, then by line.

    As text each has its place, severity and rule, its line, the evidence and the cure.

    Args:
        findings: In any order.
        function: The name of the function that was checked.
        faults: Rules that raised, each with its error; their findings are missing.
        failure: What ended the trace, where no finding says so: what comes after it was not checked.
        rules: The names of the rules that ran.
        record: What the linter keeps of the trace, for `fix` and `recheck`; None where there is none, as in findings
            that were loaded or belong to a capture.
        target: Which hardware the program was compiled for, as `target=` names it; empty if that was not asked for.

    Example:
        >>> import explorer as ex
        >>> findings = ex.Findings([ex.types.Finding("unrolled-loop", "warning", "…", line=3, code="EX012")], "step")
        >>> findings, findings.of("EX012")[0].line, len(findings.errors)
        (Findings(step: 1 warning), 3, 0)
    """

    def __init__(
        self,
        findings: Iterable[Finding],
        function: str = "",
        faults: Sequence[str] = (),
        failure: str = "",
        rules: Sequence[str] = (),
        record: Any = None,
        target: str = "",
    ) -> None:
        self._findings = tuple(sorted(findings, key=_gravest_first))
        self.function = function
        self.faults = tuple(faults)
        self.failure = failure
        self.rules = tuple(rules)
        self.record = record
        self.target = target

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> Findings: ...
    def __getitem__(self, index: int | slice) -> Finding | Findings:
        return self.changed(self._findings[index]) if isinstance(index, slice) else self._findings[index]

    def __len__(self) -> int:
        return len(self._findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._findings)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Findings):
            return NotImplemented
        return self._all == other._all

    def __hash__(self) -> int:
        return hash(self._all)

    @property
    def _all(self) -> tuple[Any, ...]:
        return self._findings, self.function, self.faults, self.failure, self.rules, self.target

    def of(self, rule: str) -> Findings:
        """Those of one rule, by name or number."""
        return self.changed(finding for finding in self if rule in (finding.rule, finding.code))

    @property
    def errors(self) -> Findings:
        """Where the result is wrong, or the call fails, for certain."""
        return self._of_severity("error")

    @property
    def warnings(self) -> Findings:
        """What surprises or costs.

        Example:
            >>> import explorer
            >>> finding = explorer.types.Finding("unrolled-loop", "warning", "60 turns", code="EX012")
            >>> findings = explorer.Findings([finding], "step")
            >>> len(findings.warnings), len(findings.notes), len(findings.errors)
            (1, 0, 0)
        """
        return self._of_severity("warning")

    @property
    def notes(self) -> Findings:
        """What is worth knowing."""
        return self._of_severity("note")

    def _of_severity(self, severity: str) -> Findings:
        return self.changed(finding for finding in self if finding.severity == severity)

    def changed(self, findings: Iterable[Finding], record: Any = None) -> Findings:
        """Other findings about the same function."""
        return Findings(
            findings, self.function, self.faults, self.failure, self.rules, record or self.record, self.target
        )

    @declared
    def recheck(self) -> Findings:
        """The values that the function read while it was traced and that have changed since, each as a finding.

        Calls go on to compute with the old values. Nothing is traced or run.

        Raises:
            NotRecordedError: These findings were loaded or belong to a capture: what was read was not recorded.
        """
        ...

    @declared
    def fix(self, finding: Finding | int) -> Fix:
        """The cure of a finding, with the user's function rewritten where a rewrite is certain.

        It is proven before it is returned: the rewritten function is traced once more, for which the user's Python runs
        once, and the rule must not find it again. Where no rewrite is certain, or the proof failed, `code` is empty.

        Args:
            finding: One of these findings, or its index.

        Raises:
            NotRecordedError: These findings were loaded: the function isn't there any more.
        """
        ...

    @declared
    def can_fix(self, finding: Finding) -> bool:
        """Whether `fix` may have a rewrite for a finding; the proof is made there."""
        ...

    def apply(self, finding: Finding | int) -> None:
        """Write the user's function, rewritten as `fix` has it, into a new cell below the one that runs this.

        Args:
            finding: One of these findings, or its index.

        Raises:
            NotRecordedError: These findings were loaded: the function isn't there any more.
            ViewError: No rewrite is certain, or there is no notebook to write into.
        """
        self.fix(finding).apply()

    @property
    def subject(self) -> str:
        """What was looked at: `step`, or `step for 8xh100`; empty where it has no name.

        Example:
            >>> import explorer
            >>> explorer.Findings([], "step", target="8xh100").subject
            'step for 8xh100'
        """
        return " for ".join(filter(None, (self.function or ("it" if self.target else ""), self.target)))

    def __repr__(self) -> str:
        counts = Counter(finding.severity for finding in self)
        summary = ", ".join(f"{n} {name}{'s' if n > 1 else ''}" for name in SEVERITIES if (n := counts[name]))
        ended = f"; its trace failed: {self.failure}" if self.failure else ""
        named = f"{self.subject}: " if self.subject else ""
        return f"Findings({named}{summary or 'nothing found'}{ended})"

    def __str__(self) -> str:
        return self.to_text()

    @declared
    def to_sarif(self) -> str:
        """As SARIF 2.1.0, which code hosts and editors show beside the lines.

        Example:
            >>> import explorer, json
            >>> finding = explorer.types.Finding("unrolled-loop", "warning", "60 turns", code="EX012")
            >>> findings = explorer.Findings([finding], "step")
            >>> json.loads(findings.to_sarif())["runs"][0]["results"][0]["ruleId"]
            'EX012'
        """
        ...

    @declared
    def to_json(self) -> str:
        """All of it as JSON; `Findings.from_json` reads it.

        Example:
            >>> import explorer
            >>> findings = explorer.Findings([explorer.types.Finding("unrolled-loop", "warning", "…", line=3)], "step")
            >>> explorer.Findings.from_json(findings.to_json()) == findings
            True
        """
        ...

    @staticmethod
    @declared
    def from_json(text: str) -> Findings:
        """The findings that `to_json` wrote.

        Raises:
            UnreadableTextError: The text holds no findings, or those of a newer Explorer.
        """
        ...

    @declared
    def to_dict(self) -> dict[str, Any]:
        """All of it as plain dicts, lists, texts and numbers."""
        ...

    @staticmethod
    @declared
    def from_dict(values: dict[str, Any]) -> Findings:
        """The findings that `to_dict` gave; TypeError, ValueError or KeyError if the values are something else."""
        ...

    @staticmethod
    @declared
    def of_trace(
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        traced: Any,
        error: Exception | None,
        capture: Any = None,
    ) -> Findings:
        """The findings of the passive rules about a trace that was made anyway; nothing of the user's runs.

        Args:
            function: The function, as the user passed it.
            args, kwargs: What it was traced with.
            traced: The `jax.stages.Traced`; None if the trace failed.
            error: What ended the trace.
            capture: Of the compiled program, for the rules that look at one for several devices; they alone run then.
        """
        ...


def _gravest_first(finding: Finding) -> tuple[Any, ...]:
    place = finding.file, finding.line, finding.column
    return SEVERITIES.index(finding.severity), *place, finding.code, finding.rule, finding.message
