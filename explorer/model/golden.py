"""What a compiler made of a program, short enough to be read in a pull request, and kept to compare with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike

from explorer.errors import UnknownNameError
from explorer.model.declared import Displayable, declared
from explorer.model.text import brief, cut_end

MEASURES = ("kernels", "flops", "bytes", "peak_memory", "constants", "wire")
"""What is summed over a program, and may not grow by more than its tolerance."""

TOLERANCE: Mapping[str, float] = {
    "kernels": 0.0, "flops": 0.01, "bytes": 0.01, "peak_memory": 0.02, "constants": 0.01, "wire": 0.01,
}  # fmt: skip
"""By measure, by which share it may grow where the file doesn't say otherwise."""


@dataclass(frozen=True, slots=True)
class LineRecord:
    """What one line of the source became.

    Args:
        file: Its path from the folder that it was recorded in; of a library's, from the folder of its package. Empty
            for what no line is known for.
        line: From 1.
        code: Its text, without indentation.
        equations: How many equations it makes, by primitive and type: `exp f32[8,128]`.
        kernels: How many kernels are its own, by what they compute and give: `add, tanh → f32[8,128]`.
        flops, bytes: Its part of the program's.

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
        """`train.py:12`; empty where no line is known."""
        return f"{self.file}:{self.line}" if self.file else ""


@dataclass(frozen=True, slots=True)
class ProgramRecord:
    """What one compiler made of the function.

    Args:
        target: The hardware it is for: `cpu`, or a target as `explore` takes it.
        kernels: How many kernels the program has.
        flops, bytes: What they do, and what they read and write.
        peak_memory: Bytes that it takes at most, as the compiler says: arguments, results, what is between, and on a
            TPU the code.
        results: Bytes that it returns.
        constants: Bytes of arrays that are baked in.
        wire: Bytes that a device sends to others.
        donated: Bytes of arguments whose memory results take over.
        collectives: How many, by kind and mesh axis: `all-reduce over data`.
        findings: The rules that lint has something to say of, each with how often.
        lines: What each line became, in the order in which they are traced.

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
    """What was recorded of a function, to be compared with what becomes of it later: `explorer.check`.

    Args:
        function: `train.py:step`, as the command line names it; in a test, the function's name.
        place: Where it is defined, `train.py:40`; empty where that isn't known.
        arguments: As the command line gives them: `f32[8,128]`. Empty where a test gives them.
        jax: The version that compiled it.
        programs: One for each target.
        compiles: By function, how often it compiled in the test that recorded this; empty outside of tests.
        tolerance: By measure, the share by which it may grow.

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
        """What was recorded for a target.

        Raises:
            UnknownNameError: Nothing was.
        """
        for program in self.programs:
            if program.target == target:
                return program
        names = ", ".join(program.target for program in self.programs)
        raise UnknownNameError(f"nothing was recorded for {brief(target)}; there are: {cut_end(names, 500)}")

    @declared
    def save(self, path: str | PathLike[str]) -> None:
        """Write it as a small text file, made to be read in a pull request.

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
        """Read what `save` wrote.

        Raises:
            GoldenFileError: It can't be read, with the line and what is allowed there.
            FileNotFoundError: There is none.
        """
        ...


@dataclass(frozen=True, slots=True)
class Change:
    """A measure that is no longer what was recorded.

    Args:
        target: Of which program.
        measure: One of `MEASURES`, or `donated`, `collectives`, `findings`, `compiles`.
        before, after: What was recorded, and what is.
        text: What changed: `bytes moved: 2.8 MB, 1.8 MB before, +50%`.
        where: The line that has most of it, and which kernels are others there; empty where no line is known.
        cause: What the source did to bring it about, in a sentence; where nobody can tell, it says so.
        file, line: Where the cause stands, or what it costs; empty and 0 where no line is known.
        function: The function that is compiled again; empty for other measures.

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
    """A function beside what was recorded of it.

    Args:
        name: The golden file, or the function where there is none.
        regressions: What grew beyond its tolerance, with its cause; if there are any, the check fails.
        gains: What became less by more than that.
        notes: What else is different: the version of JAX.
        now: What is there now; `now.save(path)` makes it what is compared with.

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
        """As JSON, for programs.

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
        """As SARIF 2.1.0, for code hosts and editors: a result for each regression, on the line of its cause.

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
        """As Markdown, for a pull request's comment."""
        ...


PASSES, FAILS, UNKNOWN = "passes", "fails", "can't be checked"


@dataclass(frozen=True)
class Verdict:
    """What one candidate gave.

    Args:
        candidate: A commit, or a release of JAX.
        outcome: `PASSES`, `FAILS` or `UNKNOWN`.
        text: What the check says of it; of one that can't be checked, why.
    """

    candidate: str
    outcome: str
    text: str = ""


@dataclass(frozen=True)
class Bisection:
    """Where a check began to fail.

    Args:
        first: The first candidate that fails.
        last: The last one before it that passes.
        between: Those in between that can't be checked: it may have been any of them.
        tried: In the order in which they were.
    """

    first: Verdict
    last: str
    between: Sequence[str]
    tried: Sequence[Verdict]

    def to_text(self) -> str:
        """A sentence, what was not known, and what the check says of the first that fails."""
        tried = f"{len(self.tried)} tried"
        lines = [f"{self.first.candidate} is the first that fails; {self.last} passes ({tried})."]
        if self.between:
            lines.append(f"It may also be one of these, which can't be checked: {', '.join(self.between)}.")
        return "\n".join([*lines, "", self.first.text])
