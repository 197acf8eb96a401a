"""One more compilation of a program, for the code of its kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from explorer._jax.calls import suppress_recording
from explorer.capture.backends import Backend
from explorer.capture.machine.reading import read_machine_code
from explorer.capture.readers.hlo import read_hlo
from explorer.capture.recording import dump_place, nothing_cached, settle
from explorer.errors import NotRecordedError
from explorer.model.graph import Graph
from explorer.model.machine_code import MachineCode
from explorer.model.stage import Stage

_BYTES_OF_INSTRUCTION = 16_000  # of what is written for each


def code_writer(
    lowered: Any, hlo: Stage, backend: Backend, options: Mapping[str, Any] | None
) -> Callable[[], MachineCode]:
    """What compiles a program for its code when it is called.

    Args:
        lowered: The `jax.stages.Lowered`.
        hlo: The optimised program as it is shown.
        backend: What lowered and compiled it.
        options: XLA's compiler options that it was compiled with.
    """

    def run() -> MachineCode:
        with suppress_recording():
            return _write_machine_code(lowered, hlo.graph, backend, options)

    return run


def _write_machine_code(lowered: Any, graph: Graph, backend: Backend, options: Mapping[str, Any] | None) -> MachineCode:
    """Compile a program once more, and read what the compiler wrote of its kernels.

    Raises:
        NotRecordedError: Compiled once more it is another program.
    """
    place = dump_place(len(graph.names) * _BYTES_OF_INSTRUCTION) or None
    with TemporaryDirectory(prefix="explorer-code-", dir=place, ignore_cleanup_errors=True) as at:
        folder = Path(at)
        with nothing_cached():
            compiled = backend.write_code(lowered, options, folder)
        settle(folder)
        again = read_hlo(compiled.text())
        if again.names != graph.names or not _have_equal_types(again, graph):
            raise NotRecordedError(
                "compiled once more for its code, this is another program: its kernels would not be those of the "
                "capture.\n  Hint: explore it anew, and look at `.machine_code` then."
            )
        return read_machine_code(folder, backend.environment()["backend"], graph, backend.gpu_limits)


def _have_equal_types(one: Graph, other: Graph) -> bool:
    pairs = ((one.op, one.ops, other.op, other.ops), (one.type, one.types, other.type, other.types))
    return all([a[i] for i in codes] == [b[i] for i in others] for codes, a, others, b in pairs)
