"""The same for hardware that isn't here: its compiler's own buffer assignment, in the device's own memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from explorer.analysis.live_memory import read_memory
from explorer.capture.backends import backend_of
from explorer.capture.explore import CompileRequest, compile_stages
from explorer.errors import ExploreError
from tests.corpus_memory.buffer_assignment import read_buffer_assignment
from tests.corpus_memory.score import Outcome
from tests.corpus_targets.programs import PROGRAMS
from tests.corpus_targets.sized import SIZED

_SIZES = (64, 1024)  # small enough for on-chip memory, and not


def outcomes_for(target: str, only: str = "") -> Iterator[Outcome]:
    """One for each program of `tests.corpus_targets` that the target's compiler takes."""
    programs = [(program.name, program.function, program.args) for program in PROGRAMS]
    programs += [
        (f"{sized.name}, {size}", sized.function, sized.args(size))
        for sized in SIZED
        for size in _SIZES
        if sized.devices == 1
    ]
    for name, function, args in programs:
        if only in name:
            with TemporaryDirectory() as folder:
                try:
                    yield outcome_for(name, function, args, target, Path(folder))
                except ExploreError:  # of a library that the target's compiler lacks
                    continue


def outcome_for(name: str, function: object, args: tuple[object, ...], target: str, folder: Path) -> Outcome:
    """Compile a program for a target, with its compiler's reports in a folder."""
    options = {"xla_dump_to": str(folder), "xla_dump_hlo_as_text": True}
    request = CompileRequest(function, args, {}, options=options, backend=backend_of(target))
    capture = compile_stages(request).capture
    assigned = read_buffer_assignment(folder).in_space(0)
    return Outcome(name, read_memory(capture.hlo.graph).peak, assigned.live, assigned.allocated)
