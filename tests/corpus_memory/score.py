"""Explorer's peak beside what XLA's buffer assignment says, for each program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import jax

from explorer.analysis.live_memory import read_memory
from explorer.capture.readers.hlo import read_hlo
from tests.corpus_memory.buffer_assignment import read_buffer_assignment
from tests.corpus_memory.programs import PROGRAMS

NEAR = 0.02


@dataclass(frozen=True)
class Outcome:
    """Bytes of one program: Explorer's peak, what XLA's values take up at their fullest, and what it reserves."""

    program: str
    peak: int
    live: int
    allocated: int

    @property
    def is_above(self) -> bool:
        return self.peak > min(self.live, self.allocated)

    @property
    def is_near(self) -> bool:
        return not self.is_above and self.peak >= (1 - NEAR) * self.live


def outcomes(names: Sequence[str] = ()) -> Iterator[Outcome]:
    """One for each program, or each of those named."""
    for name in names or PROGRAMS:
        with TemporaryDirectory() as folder:
            yield outcome(name, Path(folder))


def outcome(name: str, folder: Path) -> Outcome:
    """Compile a program, with XLA's reports in a folder."""
    program = PROGRAMS[name]()
    options = {"xla_dump_to": str(folder), "xla_dump_hlo_as_text": True}
    traced = jax.jit(program.function, donate_argnums=program.donated).trace(*program.args)
    text = traced.lower().compile(compiler_options=options).as_text()
    assigned = read_buffer_assignment(folder)
    return Outcome(name, read_memory(read_hlo(text)).peak, assigned.live, assigned.allocated)


def table(found: Sequence[Outcome]) -> str:
    """A row a program, and what came of all."""
    width = max(len(outcome.program) for outcome in found)
    rows = [f"{'program':{width}}  {'peak':>12}  {'XLA: live':>12}  {'':>7}  {'allocated':>12}"]
    for outcome in found:
        mark = " ABOVE" if outcome.is_above else "" if outcome.is_near else " below"
        rows.append(
            f"{outcome.program:{width}}  {outcome.peak:12,}  {outcome.live:12,}  {outcome.peak / outcome.live:7.2%}  "
            f"{outcome.allocated:12,}  {outcome.peak / outcome.allocated:7.2%}{mark}"
        )
    near = sum(outcome.is_near for outcome in found)
    packed = sum((1 - NEAR) * outcome.allocated <= outcome.peak <= outcome.allocated for outcome in found)
    above = sum(outcome.is_above for outcome in found)
    rows.append(f"\n{len(found)} programs within {NEAR:.0%}: {near} of live, {packed} of allocated; {above} above")
    return "\n".join(rows)
