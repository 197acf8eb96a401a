"""What may go wrong with a function that is compiled: findings, each with its line, its evidence and its cure."""

from __future__ import annotations

from dataclasses import dataclass, field

from explorer.model.attached import attached
from explorer.model.displayable import Displayable

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

    @attached
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
