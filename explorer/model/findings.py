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
    """Fix of a finding.

    Args:
        text: Instruction, as a sentence or code.
        code: The user's whole function, rewritten; empty without a certain rewrite. It was parsed and traced, and the
            rule no longer reports it.
        diff: Unified diff from the user's text to `code`.

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
        """Write `code` into a new cell below the running cell.

        Raises:
            ViewError: The fix has no code, or there is no notebook.
        """
        ...


@dataclass(frozen=True, slots=True)
class Finding(Displayable):
    """One pitfall in one place.

    Args:
        rule: Name of the rule: `impure-print`.
        severity: One of `SEVERITIES`.
        message: Effect, in one sentence.
        file: File name, as in stack frames.
        line: Line number from 1; 0 without a line.
        evidence: Observed values, counts, types.
        fix: The fix.
        code: Number of the rule, for `# explorer: ignore[EX001]`.
        label: Short name of the file: `train.py`, `cell [4]`.
        text: Text of the line, stripped.
        column, end_line, end_column: Position of the code, columns from 0 in UTF-8 bytes; equal for the
            whole line.
        documentation: Page of JAX's documentation that explains the pitfall.

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
        """Return the severity, line and message as text: `note, line 5: print() ran while step was traced, …`."""
        return f"{self.severity}{f', line {self.line}' if self.line else ''}: {self.message}"

    def __repr__(self) -> str:
        where = f" at {self.label or self.file}, line {self.line}" if self.line else ""
        return f"Finding({self.rule}{where}: {self.message})"


READ = " (read, not traced: it runs jitted steps)"  # behind the name of a function that wasn't traced


class Findings(Sequence[Finding], Displayable, Framed):
    """Findings sorted by severity, then by line.

    The text shows position, severity, rule, line, evidence and fix of each.

    Args:
        findings: Findings in any order.
        function: Name of the checked function.
        faults: Rules that raised, each with its error; their findings are missing.
        failure: Error that ended the trace, unless a finding reports it; later code was not checked.
        rules: Names of the rules that ran.
        record: The linter's record of the trace, for `fix` and `recheck`; None for findings that were loaded or belong
            to a capture.
        target: Hardware of the compile, as in `target=`; empty if not set.

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
        """Return the findings of one rule, given by its name or number; empty if it has none."""
        return self.changed(finding for finding in self if rule in (finding.rule, finding.code))

    @property
    def errors(self) -> Findings:
        """Return the findings of severity `error`: the result is wrong or the call fails."""
        return self._of_severity("error")

    @property
    def warnings(self) -> Findings:
        """Return the findings of severity `warning`: surprising behavior or cost.

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
        """Return the findings of severity `note`: worth knowing."""
        return self._of_severity("note")

    def _of_severity(self, severity: str) -> Findings:
        return self.changed(finding for finding in self if finding.severity == severity)

    def changed(self, findings: Iterable[Finding], record: Any = None) -> Findings:
        """Return a copy with `findings` in place of its own, and with another `record` if one is given."""
        return Findings(
            findings, self.function, self.faults, self.failure, self.rules, record or self.record, self.target
        )

    @declared
    def recheck(self) -> Findings:
        """Return one finding for each value that the trace read and that has changed since.

        Calls keep computing with the old values. Nothing is traced or run.

        Raises:
            NotRecordedError: The findings were loaded or belong to a capture, so no reads were recorded.
        """
        ...

    @declared
    def fix(self, finding: Finding | int) -> Fix:
        """Return the fix of a finding, with the rewritten function if the rewrite is certain.

        The rewritten function is traced once before it is returned, so the user's Python runs once, and the rule must
        not report it again. `code` is empty if no rewrite is certain or if this check failed.

        Args:
            finding: One of these findings, or its index.

        Raises:
            NotRecordedError: The findings were loaded, so the function is not available.
        """
        ...

    @declared
    def can_fix(self, finding: Finding) -> bool:
        """Return True if a finding has a rewrite already, or if its rule may make one; `fix` then checks it."""
        ...

    def apply(self, finding: Finding | int) -> None:
        """Write the function as rewritten by `fix` into a new cell below the running cell.

        Args:
            finding: One of these findings, or its index.

        Raises:
            NotRecordedError: The findings were loaded, so the function is not available.
            ViewError: No rewrite is certain, or there is no notebook to write into.
        """
        self.fix(finding).apply()

    @property
    def subject(self) -> str:
        """Return the checked function and its target, `step` or `step for 8xh100`; `it for 8xh100` without a name.

        Without both, the text is empty.

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
        """Return the findings as SARIF 2.1.0, which code hosts and editors show next to the lines.

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
        """Return all findings as JSON text; `Findings.from_json` reads it.

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
        """Return the findings of a JSON text from `to_json`.

        Raises:
            UnreadableTextError: The text holds no findings, or those of a newer Explorer.
        """
        ...

    @declared
    def to_dict(self) -> dict[str, Any]:
        """Return all findings as a dictionary of plain dictionaries, lists, strings and numbers."""
        ...

    @staticmethod
    @declared
    def from_dict(values: dict[str, Any]) -> Findings:
        """Return the findings of a dictionary from `to_dict`.

        Raises:
            TypeError, ValueError, KeyError: The dictionary has other content.
        """
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
        """Return the findings of the rules that read an existing trace and compile nothing; no user code runs.

        Args:
            function: The function, as the user passed it.
            args, kwargs: Arguments of the trace.
            traced: The `jax.stages.Traced`; None if the trace failed.
            error: Exception that ended the trace.
            capture: Capture of a program for several devices; then only the rules for such programs run.
        """
        ...


def _gravest_first(finding: Finding) -> tuple[Any, ...]:
    place = finding.file, finding.line, finding.column
    return SEVERITIES.index(finding.severity), *place, finding.code, finding.rule, finding.message
