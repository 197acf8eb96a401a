"""Short record of a compiled program, readable in a pull request, for comparison with later compiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike

from explorer.errors import UnknownNameError
from explorer.model.declared import Displayable, declared
from explorer.model.text import brief, cut_end

MEASURES = ("kernels", "flops", "bytes", "peak_memory", "constants", "wire")
"""Sums over a program that may not grow by more than their tolerance."""

TOLERANCE: Mapping[str, float] = {
    "kernels": 0.0, "flops": 0.01, "bytes": 0.01, "peak_memory": 0.02, "constants": 0.01, "wire": 0.01,
}  # fmt: skip
"""Allowed relative growth of each measure, unless the file has another."""


@dataclass(frozen=True, slots=True)
class LineRecord:
    """Equations and kernels of one source line.

    Args:
        file: Path relative to the folder of the recording; for a library, relative to its package. Empty for kernels
            without a known line.
        line: Line number, from 1.
        code: Text of the line, without indentation.
        equations: Number of equations by primitive and type: `exp f32[8,128]`.
        kernels: Number of kernels by operations and result: `add, tanh → f32[8,128]`.
        flops, bytes: The line's part of the program's figures.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> def f(x):
        ...     return jnp.tanh(x @ x)
        >>> line, = explorer.record(f, jnp.ones((64, 64))).program("cpu").lines
        >>> line.line, line.code, dict(line.equations)
        (2, 'return jnp.tanh(x @ x)', {'dot_general f32[64,64]': 1, 'tanh f32[64,64]': 1})
    """

    file: str
    line: int
    code: str
    equations: Mapping[str, int] = field(default_factory=dict[str, int])
    kernels: Mapping[str, int] = field(default_factory=dict[str, int])
    flops: int = 0
    bytes: int = 0

    @property
    def place(self) -> str:
        """Return the position as `train.py:12`; empty if no line is known."""
        return f"{self.file}:{self.line}" if self.file else ""


@dataclass(frozen=True, slots=True)
class ProgramRecord:
    """Record of one compiled program of the function.

    Args:
        target: Target hardware: `cpu`, or a target of `explore`.
        kernels: Number of kernels.
        flops, bytes: FLOPs, and bytes read and written.
        peak_memory: Peak bytes according to the compiler: arguments, results, temporaries, and on a TPU the code.
        results: Bytes of the results.
        constants: Bytes of constant arrays.
        wire: Bytes that a device sends to others.
        donated: Bytes of arguments whose memory the results reuse.
        collectives: Number by kind and mesh axis: `all-reduce over data`.
        findings: Number of lint findings by rule.
        lines: Records of the lines, in the order of the trace.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> program = explorer.record(lambda x: x @ x, jnp.ones((64, 64))).program("cpu")
        >>> program.target, program.kernels, program.flops, program.results
        ('cpu', 1, 524288, 16384)
    """

    target: str
    kernels: int
    flops: int
    bytes: int
    peak_memory: int
    results: int = 0
    constants: int = 0
    wire: int = 0
    donated: int = 0
    collectives: Mapping[str, int] = field(default_factory=dict[str, int])
    findings: Mapping[str, int] = field(default_factory=dict[str, int])
    lines: Sequence[LineRecord] = ()


@dataclass(frozen=True, slots=True)
class Golden:
    """Record of a function that `explorer.check` compares with later compiles.

    Args:
        function: `train.py:step`, as on the command line; in a test, the function's name.
        place: Position of its definition, `train.py:40`; empty if unknown.
        arguments: Arguments as on the command line: `f32[8,128]`. Empty in a test.
        jax: Version of the JAX that compiled it.
        programs: One record per target.
        compiles: Number of compiles by function in the recording test; empty outside of tests.
        tolerance: Allowed relative growth by measure.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> golden = explorer.record(lambda x: jnp.tanh(x @ x) * 2, jnp.ones((64, 64)))
        >>> golden.program("cpu").kernels
        2
        >>> explorer.check(lambda x: jnp.tanh(x @ x) * 2, jnp.ones((64, 64)), golden=golden).passed
        True
    """

    function: str
    jax: str
    programs: Sequence[ProgramRecord]
    place: str = ""
    arguments: Sequence[str] = ()
    compiles: Mapping[str, int] = field(default_factory=dict[str, int])
    tolerance: Mapping[str, float] = field(default_factory=lambda: dict(TOLERANCE))

    def program(self, target: str) -> ProgramRecord:
        """Return the record for a target.

        Raises:
            UnknownNameError: There is no record for this target.
        """
        for program in self.programs:
            if program.target == target:
                return program
        names = ", ".join(program.target for program in self.programs)
        raise UnknownNameError(f"nothing was recorded for {brief(target)}; there are: {cut_end(names, 500)}")

    @declared
    def save(self, path: str | PathLike[str]) -> None:
        """Write the record as a small text file that a pull request can show.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> from pathlib import Path
            >>> from tempfile import TemporaryDirectory
            >>> golden = explorer.record(lambda x: x @ x, jnp.ones((64, 64)))
            >>> with TemporaryDirectory() as folder:
            ...     path = Path(folder, "step.golden")
            ...     golden.save(path)
            ...     explorer.Golden.load(path).program("cpu").kernels
            1
        """
        ...

    @staticmethod
    @declared
    def load(path: str | PathLike[str]) -> Golden:
        """Return the record in a file from `save`.

        Raises:
            GoldenFileError: The file can't be parsed; the message has the line and the allowed content.
            FileNotFoundError: The file doesn't exist.
        """
        ...


@dataclass(frozen=True, slots=True)
class Change:
    """Change of one measure against the record.

    Args:
        target: Target of the program.
        measure: One of `MEASURES`, or `donated`, `collectives`, `findings`, `compiles`.
        before, after: Recorded and current value.
        text: Description: `bytes moved: 2.8 MB, 1.8 MB before, +50%`.
        where: Line with most of the change, and its changed kernels; empty without a known line.
        cause: Cause in the source, as a sentence; an unknown cause is named as unknown.
        file, line: Position of the cause or of the cost; empty and 0 if unknown.
        function: Recompiled function; empty for other measures.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> x = jnp.ones((64, 64))
        >>> golden = explorer.record(lambda x: x @ x, x)
        >>> checked = explorer.check(lambda x: (x @ x) @ x, x, golden=golden)
        >>> [(change.before, change.after) for change in checked.regressions if change.measure == "kernels"]
        [(1, 2)]
    """

    target: str
    measure: str
    before: float
    after: float
    text: str
    where: str
    cause: str
    file: str = ""
    line: int = 0
    function: str = ""


@dataclass(frozen=True, slots=True)
class CheckResult(Displayable):
    """Comparison of a function with its record.

    Args:
        name: Golden file, or the function if there is no file.
        regressions: Measures that grew beyond their tolerance, with causes; any regression fails the check.
        gains: Measures that decreased beyond their tolerance.
        notes: Other differences, such as the version of JAX.
        now: Current record; `now.save(path)` makes it the new reference.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> x = jnp.ones((64, 64))
        >>> golden = explorer.record(lambda x: x @ x, x)
        >>> explorer.check(lambda x: x @ x, x, golden=golden).passed
        True
        >>> checked = explorer.check(lambda x: (x @ x) @ x, x, golden=golden)
        >>> checked.passed, checked.to_markdown().splitlines()[0]
        (False, '### ❌ `<lambda>`: 4 regressions')
    """

    name: str
    regressions: Sequence[Change]
    gains: Sequence[Change]
    notes: Sequence[str]
    now: Golden

    @property
    def passed(self) -> bool:
        return not self.regressions

    @declared
    def to_json(self) -> str:
        """Return the result of the check as JSON text, for programs.

        Example:
            >>> import explorer, json, jax.numpy as jnp
            >>> x = jnp.ones((64, 64))
            >>> checked = explorer.check(lambda x: x @ x, x, golden=explorer.record(lambda x: x @ x, x))
            >>> json.loads(checked.to_json())["passed"]
            True
        """
        ...

    @declared
    def to_sarif(self) -> str:
        """Return the regressions as SARIF 2.1.0 text, for code hosts and editors.

        Each regression is one result, on the line of its cause.

        Example:
            >>> import explorer, json, jax.numpy as jnp
            >>> x = jnp.ones((64, 64))
            >>> checked = explorer.check(lambda x: (x @ x) @ x, x, golden=explorer.record(lambda x: x @ x, x))
            >>> len(json.loads(checked.to_sarif())["runs"][0]["results"]) == len(checked.regressions)
            True
        """
        ...

    @declared
    def to_markdown(self) -> str:
        """Return the result of the check as Markdown, for a comment on a pull request."""
        ...


PASSES, FAILS, UNKNOWN = "passes", "fails", "can't be checked"


@dataclass(frozen=True)
class Verdict:
    """Outcome of one candidate.

    Args:
        candidate: A commit, or a release of JAX.
        outcome: `PASSES`, `FAILS` or `UNKNOWN`.
        text: Message of the check, or the reason why it can't be checked.
    """

    candidate: str
    outcome: str
    text: str = ""


@dataclass(frozen=True)
class Bisection:
    """First failing candidate of a check.

    Args:
        first: First failing candidate.
        last: Last passing candidate before it.
        between: Candidates in between that can't be checked; each may be the first failing one.
        tried: Outcomes in the order of the checks.
    """

    first: Verdict
    last: str
    between: Sequence[str]
    tried: Sequence[Verdict]

    def to_text(self) -> str:
        """Return the result, the unknowns, and the check's message for the first failing candidate."""
        tried = f"{len(self.tried)} tried"
        lines = [f"{self.first.candidate} is the first that fails; {self.last} passes ({tried})."]
        if self.between:
            lines.append(f"One of these may be the first instead; they can't be checked: {', '.join(self.between)}.")
        return "\n".join([*lines, "", self.first.text])
