"""The findings about one function, and what can be made of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, overload

from explorer.errors import NotRecordedError, UnreadableTextError, ViewError
from explorer.model.findings.finding import SEVERITIES, Finding, Fix

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Findings", "FindingsViewer", "Linter", "Rewritten"]

_FORMAT = 1


class FindingsViewer(Protocol):
    """What shows findings; `explorer` puts one here."""

    def mimebundle(self, findings: Findings) -> dict[str, str]: ...
    def html(self, findings: Findings) -> str: ...
    def rich(self, findings: Findings) -> Any: ...
    def apply(self, fix: Fix) -> None: ...


class Linter(Protocol):
    """What looks for pitfalls in what was just traced; `explorer` puts one here."""

    def __call__(
        self, function: Any, args: Sequence[Any], kwargs: dict[str, Any], traced: Any, error: BaseException | None
    ) -> Findings: ...


class Rewritten(Protocol):
    """Gives the names of the rules that have rewrites; `explorer` puts one here."""

    def __call__(self) -> Container[str]: ...


class Findings(Sequence[Finding]):
    """What was found, the gravest first, then by line.

    Args:
        findings: What was found.
        function: The name of the function that was looked at.
        faults: Rules that failed, and how; their findings are missing.
        fixer: Rewrites the user's function for a finding; None where that can't be had, as in what was loaded.
        failure: What ended the trace, where no finding says so: what comes after it was not looked at.
        asked: The names of the rules that were asked.
        rechecker: What `recheck` asks.

    Example:
        >>> found = Findings([Finding("unrolled-loop", "warning", "…", line=3, code="EX012")], "step")
        >>> found, found.of("EX012")[0].line, len(found.errors)
        (Findings(step: 1 warning), 3, 0)
    """

    viewer: ClassVar[FindingsViewer | None] = None
    rewritten: ClassVar[Rewritten | None] = None

    def __init__(
        self,
        findings: Iterable[Finding],
        function: str = "",
        faults: Sequence[str] = (),
        fixer: Callable[[Finding], Fix] | None = None,
        failure: str = "",
        asked: Sequence[str] = (),
        rechecker: Callable[[], Findings] | None = None,
    ) -> None:
        self._findings = tuple(sorted(findings, key=_gravest_first))
        self.function = function
        self.faults = tuple(faults)
        self._fixer = fixer
        self.failure = failure
        self.asked = tuple(asked)
        self._rechecker = rechecker

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
        return self._findings, self.function, self.faults, self.failure, self.asked

    def of(self, rule: str) -> Findings:
        """Those of one rule, by name or number."""
        return self.changed(one for one in self if rule in (one.rule, one.code))

    @property
    def errors(self) -> Findings:
        """Where the result is wrong, or the call fails, for certain."""
        return self.changed(one for one in self if one.severity == "error")

    @property
    def warnings(self) -> Findings:
        """What surprises or costs."""
        return self.changed(one for one in self if one.severity == "warning")

    @property
    def notes(self) -> Findings:
        """What is worth knowing."""
        return self.changed(one for one in self if one.severity == "note")

    def changed(
        self,
        findings: Iterable[Finding],
        fixer: Callable[[Finding], Fix] | None = None,
        rechecker: Callable[[], Findings] | None = None,
    ) -> Findings:
        """Other findings about the same function."""
        fixer, rechecker = fixer or self._fixer, rechecker or self._rechecker
        return Findings(findings, self.function, self.faults, fixer, self.failure, self.asked, rechecker)

    def recheck(self) -> Findings:
        """What is stale now: values that the function read while it was traced, and that are others since.

        Calls go on to compute with what they were. Nothing is traced or run.

        Raises:
            NotRecordedError: These findings were loaded, or rode on a capture: what was read is not known any more.
        """
        if self._rechecker is None:
            raise NotRecordedError(
                f"what {self.function} read while it was traced is not known any more.\n"
                "  Hint: keep what explorer.lint(f, x) gives, and ask that."
            )
        return self._rechecker()

    def fix(self, finding: Finding | int) -> Fix:
        """The cure of a finding, with the user's function rewritten where a rewrite is certain.

        It is proven before it is given: the rewritten function is traced once more, for which the user's Python runs
        once, and the rule has to be content with it. Where no rewrite is certain, or the proof failed, `code` is empty.

        Args:
            finding: One of these findings, or its index.

        Raises:
            NotRecordedError: These findings were loaded: the function isn't there any more.
        """
        one = self[finding] if isinstance(finding, int) else finding
        if self._fixer is None:
            raise NotRecordedError(
                f"these findings about {self.function} were loaded, and have no function to rewrite.\n"
                "  Hint: findings of explorer.lint(f, x) can be fixed."
            )
        return one.fix if one.fix.code else self._fixer(one)

    def can_fix(self, finding: Finding) -> bool:
        """Whether `fix` may have a rewrite for a finding; the proof is made there."""
        if finding.fix.code or self._fixer is None or Findings.rewritten is None:
            return bool(finding.fix.code)
        return finding.rule in Findings.rewritten()

    def apply(self, finding: Finding | int) -> None:
        """Write the user's function, rewritten as `fix` has it, into a new cell below the one that runs this.

        Args:
            finding: One of these findings, or its index.

        Raises:
            NotRecordedError: These findings were loaded: the function isn't there any more.
            ViewError: No rewrite is certain, or there is no notebook to write into.
        """
        self.fix(finding).apply()

    def __repr__(self) -> str:
        counts = {severity: sum(one.severity == severity for one in self) for severity in SEVERITIES}
        told = ", ".join(f"{n} {severity}{'s' if n > 1 else ''}" for severity, n in counts.items() if n)
        ended = f"; its trace failed: {self.failure}" if self.failure else ""
        return f"Findings({self.function}: {told or 'nothing found'}{ended})"

    def __str__(self) -> str:
        return self.to_text()

    def to_html(self, path: str | PathLike[str]) -> Path:
        """Write the findings as one self-contained page; it needs no network and no kernel."""
        Path(path).write_text(_viewer().html(self), encoding="utf-8")
        return Path(path)

    def __rich__(self) -> Any:
        return self.to_text() if self.viewer is None else self.viewer.rich(self)

    def _repr_html_(self) -> str | None:
        """For notebooks that ask for HTML alone, as marimo does; the others ask for the bundle, and get more."""
        return self._repr_mimebundle_().get("text/html")

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": repr(self)} if self.viewer is None else self.viewer.mimebundle(self)

    def to_text(self) -> str:
        """All of it for a terminal: place, severity and rule, the line with carets, what was seen, and the cure."""
        from explorer.view.findings.text import to_text

        return to_text(self)

    def to_frame(self) -> pd.DataFrame:
        """A row for each finding.

        Raises:
            MissingPackageError: pandas is not installed.
        """
        from explorer.view.findings.text import to_frame

        return to_frame(self)

    def to_sarif(self) -> str:
        """As SARIF 2.1.0, which code hosts and editors show beside the lines."""
        from explorer.files.sarif import to_sarif

        return to_sarif(self)

    def to_json(self) -> str:
        """All of it as JSON; `Findings.from_json` reads it.

        Example:
            >>> found = Findings([Finding("unrolled-loop", "warning", "…", line=3)], "step")
            >>> Findings.from_json(found.to_json()) == found
            True
        """
        return json.dumps({"explorer_findings": _FORMAT, **self.to_dict()}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Findings:
        """What `to_json` wrote.

        Raises:
            UnreadableTextError: The text holds no findings, or those of a newer Explorer.
        """
        try:
            told = json.loads(text)
            version = told["explorer_findings"]
            if version != _FORMAT:
                raise UnreadableTextError(f"these findings have format {version!r}; this Explorer reads {_FORMAT}.")
            return cls.from_dict(told)
        except UnreadableTextError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise UnreadableTextError(
                f"this text holds no findings: {type(error).__name__}: {error}.\n"
                "  Hint: Findings.to_json() writes them."
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain dicts, lists, texts and numbers."""
        from dataclasses import asdict

        return {
            "function": self.function,
            "findings": [asdict(one) for one in self],
            "faults": list(self.faults),
            "failure": self.failure,
            "asked": list(self.asked),
        }

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Findings:
        """What `to_dict` gave; TypeError, ValueError or KeyError if it is something else."""
        from explorer.files.validate import made, text, texts

        found: list[Finding] = []
        for one in told["findings"]:
            finding = made(Finding, {**one, "fix": made(Fix, one["fix"])})
            if finding.severity not in SEVERITIES:
                raise ValueError(f"{finding.severity!r} is no severity")
            found.append(finding)
        failure, asked = text(told.get("failure", "")), texts(told.get("asked", []))
        return cls(found, text(told["function"]), texts(told["faults"]), failure=failure, asked=asked)


def applied(fix: Fix) -> None:
    """Write a rewritten function into a new cell."""
    if not fix.code:
        raise ViewError("no rewrite of this is certain.\n  Hint: Fix.text says what to do.")
    _viewer().apply(fix)


def _viewer() -> FindingsViewer:
    if Findings.viewer is None:
        raise RuntimeError("no view is loaded. Hint: import explorer, not only explorer.model.")
    return Findings.viewer


def _gravest_first(finding: Finding) -> tuple[Any, ...]:
    place = finding.file, finding.line, finding.column
    return SEVERITIES.index(finding.severity), *place, finding.code, finding.rule, finding.message
