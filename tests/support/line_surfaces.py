"""Every surface's answer to "what belongs to this line?", and an oracle that knows frames and fusions alone."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from explorer.analysis.line_costs import split_by_line
from explorer.files.container import read_column, read_table, unpack
from explorer.model.attribution import SourceLine
from explorer.model.capture import Capture
from explorer.model.stage import Stage, is_library_file


def every_line(capture: Capture) -> set[tuple[str, int]]:
    """The lines that any stack goes through, and one that none does."""
    frames = (frame for stage in capture.stages for frame in stage.graph.frames)
    return {(frame.file, frame.line) for frame in frames if frame.file} | {(capture.file, 999_999)}


def disagreements(capture: Capture) -> list[str]:
    """What differs between surfaces, for every line and stage; empty where one answer is given everywhere."""
    wrong: list[str] = []
    wire = _of_wire(capture)
    rows = {(row.file, row.line): row for row in capture.lines()} if _has_hlo(capture) else {}
    by_cost, by_memory = _kernels_by_cost(capture), _makers(capture)
    for file, line in sorted(every_line(capture)):
        for stage in capture.stages:
            nodes = {node.index for node in capture.nodes_at(line, stage.name, file=file)}
            answers = {
                "the search": {node.index for node in stage.graph.where(f'line:"{file}:{line}"')},
                "a click": wire[stage.name].get((file, line), set()),
            }
            if stage.name == "hlo":
                kernel = stage.graph.kernel
                kernels = {node for node in nodes if kernel[node] == node}
                row = rows.get((file, line))
                count = row.kernels if row is not None else 0
                wrong += [f"{file}:{line}: {count} kernels in the table, {len(kernels)} nodes_at"] * (
                    count != len(kernels)
                )
                for name, some in (("the profile", by_cost[file, line]), ("memory", by_memory[file, line])):
                    wrong += [f"{file}:{line}: {name} has {sorted(some - nodes)} more"] * (not some <= nodes)
            elif stage.name == "jaxpr" and _has_hlo(capture):
                row = rows.get((file, line))
                equations = int(stage.graph.is_equation[sorted(nodes)].sum())
                count = row.equations if row is not None else 0
                wrong += [f"{file}:{line}: {count} equations in the table, {equations} nodes_at"] * (count != equations)
            for name, answer in answers.items():
                wrong += [f"{file}:{line} in {stage.name}: {name} differs by {sorted(answer ^ nodes)}"] * (
                    answer != nodes
                )
    return wrong


def misplaced(capture: Capture) -> list[str]:
    """The nodes whose line is not that of their own innermost frame in the user's code, though they have one."""
    wrong: list[str] = []
    for stage in capture.stages:
        for node in stage.graph.nodes:
            own = [(frame.file, frame.line) for frame in node.source if not is_library_file(frame.file)]
            place = node.place or SourceLine("", 0, "", "")
            is_own = (place.file, place.line) == own[0] and place.how == "own" if own else place.how != "own"
            if not is_own and place.how != "equation":
                wrong.append(f"{stage.name} {node.name}: {place}, not {own}")
    return wrong


def kernels_apart_from_their_inside(capture: Capture) -> list[str]:
    """The fusions that belong to other lines than what is inside them and they themselves."""
    graph = capture.hlo.graph
    inside: dict[int, set[int]] = defaultdict(set)
    for node in graph.nodes:
        at = node
        while at.group is not None and at.group.kind == "fusion" and at.group.caller >= 0:
            at = type(node)(graph, at.group.caller)
            inside[at.index].add(node.index)
    lines_of: dict[int, set[tuple[str, int]]] = defaultdict(set)
    for file, line in every_line(capture):
        for node in capture.nodes_at(line, file=file):
            lines_of[node.index].add((file, line))
    wrong: list[str] = []
    for fusion, nodes in inside.items():
        places = [type(node)(graph, at).place for at in (fusion, *nodes)]
        expected = {(place.file, place.line) for place in places if place is not None}
        wrong += [f"{graph.names[fusion]}: {lines_of[fusion]}, not {expected}"] * (lines_of[fusion] != expected)
    return wrong


def _has_hlo(capture: Capture) -> bool:
    return any(stage.name == "hlo" for stage in capture.stages)


def _of_wire(capture: Capture) -> dict[str, dict[tuple[str, int], set[int]]]:
    """What the viewer is sent: by stage, the nodes of each line."""
    _, header, blobs = unpack(capture.wire)
    answers: dict[str, dict[tuple[str, int], set[int]]] = {}
    for stage in header["stages"]:
        start, node = (read_column(stage["attribution"][name], blobs).tolist() for name in ("start", "node"))
        places = read_table(stage["places"], blobs, SourceLine)
        answers[stage["name"]] = {
            (place.file, place.line): set(node[start[i] : start[i + 1]]) for i, place in enumerate(places)
        }
    return answers


def _kernels_by_cost(capture: Capture) -> dict[tuple[str, int], set[int]]:
    """The kernels that the profile gives a line a part of, were each measured to take a second."""
    kernels: dict[tuple[str, int], set[int]] = defaultdict(set)
    if not _has_hlo(capture):
        return kernels
    graph = capture.hlo.graph
    time = np.where(graph.kernel == np.arange(len(graph)), 1.0, 0.0)
    timed = replace(graph, measure=lambda _: {**graph.measures, "time": time})
    stages = [*capture.stages[:-1], Stage("hlo", lambda: (capture.hlo.text, timed))]
    for kernel, file, line, _ in split_by_line(replace(capture, stages=stages)).parts():
        kernels[file, line].add(kernel)
    return kernels


def _makers(capture: Capture) -> dict[tuple[str, int], set[int]]:
    makers: dict[tuple[str, int], set[int]] = defaultdict(set)
    if _has_hlo(capture):
        for buffer in capture.live_memory.buffers:
            if (place := buffer.node.place) is not None:
                makers[place.file, place.line].add(buffer.node.index)
    return makers
