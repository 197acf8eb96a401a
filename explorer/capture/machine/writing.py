"""One more compilation of a program, for the code of its kernels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from explorer._jax.suppress_recording import suppress_recording
from explorer.capture.machine.reading import read_machine_code
from explorer.capture.readers.hlo import read_hlo
from explorer.capture.recording import Program, in_memory, nothing_cached, settle
from explorer.capture.same_program import is_same_program
from explorer.errors import NotRecordedError
from explorer.model.machine_code import MachineCode


def code_writer(program: Program) -> Callable[[], MachineCode]:
    """What compiles a program for its code when it is called."""

    def run() -> MachineCode:
        with suppress_recording():
            return write_machine_code(program)

    return run


def write_machine_code(program: Program) -> MachineCode:
    """Compile a program once more, and read what the compiler wrote of its kernels.

    Raises:
        NotRecordedError: Compiled once more it is another program.
    """
    backend, graph = program.backend, program.hlo.graph
    with TemporaryDirectory(prefix="explorer-code-", dir=in_memory(len(graph.names)), ignore_cleanup_errors=True) as at:
        folder = Path(at)
        with nothing_cached():
            compiled = backend.write_code(program.lowered, program.options, folder)
        settle(folder)
        again = read_hlo(compiled.text())
        if again.names != graph.names or not is_same_program(graph, again):
            raise NotRecordedError(
                "compiled once more for its code, this is another program: its kernels would not be those of the "
                "capture.\n  Hint: explore it anew, and look at `.machine_code` then."
            )
        return read_machine_code(folder, backend.environment()["backend"], graph, backend.gpu_limits)
