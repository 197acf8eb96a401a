"""What runs below HLO for a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from explorer.analysis.facts import kernel_facts, line_text
from explorer.analysis.questions.reply import agree, optimised, reply
from explorer.model.answers import Answer
from explorer.model.capture import Capture
from explorer.model.machine_code import MachineCode
from explorer.model.text import list_names
from explorer.model.units import count_text

_SHOWN = 2  # kernels of a line
_LINES = 200
_COMPILE = "look at capture.machine_code, which compiles once more; then it is a stage of the view."


def machine(capture: Capture, line: int = 0, file: str = "") -> Answer:
    """The kernels that run for a line, with what is known of their code.

    Args:
        capture: Any.
        line: 0 for all.
        file: Of the line; the function's own if not given.
    """
    graph = optimised(capture)
    if graph is None:
        return reply("machine", "There is no optimised program in this capture.", "unknown")
    kernel = graph.kernel[graph.attribution.nodes(file or capture.file, line)] if line else graph.kernel
    kernels: list[int] = list(dict.fromkeys(kernel[kernel >= 0].tolist()))
    where = f" for {line_text(capture, file or capture.file, line)}" if line else ""
    if not kernels:
        return reply("machine", f"No kernel runs{where}.")
    names = [graph.names[kernel] for kernel in kernels]
    if capture.has_machine_code:
        return reply("machine", _written(capture.machine_code, names, where), "exact", "hlo", kernels)
    runs = f"{list_names(names)} {agree(kernels, 'runs', 'run')}{where}"
    return reply("machine", f"{runs}; as which instructions is not compiled yet.", "unknown", "hlo", kernels, _COMPILE)


def _written(code: MachineCode, names: Sequence[str], where: str) -> str:
    """What is known of the code of some kernels."""
    written = [(name, row) for name in names if (row := code.get(name)) is not None]
    if not written:
        return f"{list_names(names)} {agree(names, 'has no code of its', 'have no code of their')} own."
    texts = [
        f"{name}: {', '.join(f'{fact} {value}' for fact, value in kernel_facts(row, code.platform))}"
        for name, row in written[:_SHOWN]
    ]
    left = len(names) - len(texts)
    more = f", and {count_text(left, 'kernel')} more" if left else ""
    return f"On the {code.platform}{where} {'; '.join(texts)}{more}."


def machine_by_line(capture: Capture) -> Mapping[tuple[str, int], Answer]:
    """The answers for the lines that instructions belong to."""
    graph = optimised(capture)
    if graph is None:
        return {}
    places = sorted(graph.attribution.places, key=lambda place: (place.file != capture.file, place.file, place.line))
    return {(place.file, place.line): machine(capture, place.line, place.file) for place in places[:_LINES]}
