"""A graph as another tool reads it: the JSON of Model Explorer (`ai-edge-model-explorer`, written for 0.1.34)."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from explorer.analysis.cost.limits import is_one_iteration
from explorer.model.capture import Capture
from explorer.model.count_limits import ONE_ITERATION
from explorer.model.equation_sets import GRADES
from explorer.model.graph import Graph
from explorer.model.links import Links


def write_capture(capture: Capture, path: str | PathLike[str]) -> Path:
    """Write the stages of a capture, the last first, as one collection; returns the path."""
    links = capture.links
    linked = {name: _links(links, name) for name in links.graphs}
    graphs = ((stage.name, stage.graph, linked[stage.name]) for stage in reversed(capture.stages))
    return _write(Path(path), capture.function, graphs)


def _links(links: Links, stage: str) -> list[dict[str, str]]:
    """For each node of a stage, the equations that it comes from, and how sure that is."""
    grades: list[int] = links.grades(stage).tolist()
    if stage == links.first:
        return [{} for _ in grades]
    names, table = links.graphs[links.first].names, links.table(stage, links.first)
    return [
        {"equations": ", ".join(names[row] for row in table.get(node, ())), "link": GRADES[grade]}
        for node, grade in enumerate(grades)
    ]


def write_graph(graph: Graph, path: str | PathLike[str], name: str = "graph") -> Path:
    """Write one graph as a collection; returns the path."""
    return _write(Path(path), name, [(name, graph, ())])


def _write(path: Path, label: str, graphs: Iterable[tuple[str, Graph, Sequence[Mapping[str, str]]]]) -> Path:
    """Write graphs, each with its name and what its nodes have beside their own, as one collection; returns the path.

    The form is that of Model Explorer's JSON adapter: `{"label": …, "graphs": […]}`, its fields those of
    `model_explorer.graph_builder`.
    """
    collection = {"label": label, "graphs": [model_explorer_graph(graph, name, more) for name, graph, more in graphs]}
    path.write_text(json.dumps(collection, separators=(",", ":"), allow_nan=False), encoding="utf-8")
    return path


def model_explorer_graph(graph: Graph, name: str, more: Sequence[Mapping[str, str]] = ()) -> dict[str, Any]:
    """One graph: its groups become namespaces, and what is known of a node its attributes; `more` has others."""
    tree = graph.hierarchy
    namespaces = _namespaces([(group.name, group.parent) for group in tree.groups])
    measures = {key: values.tolist() for key, values in graph.measures.items()}
    one_iteration = is_one_iteration(graph).tolist()
    starts, operands = graph.operand_start.tolist(), graph.operand.tolist()
    nodes: list[dict[str, Any]] = []
    columns: list[list[int]] = [c.tolist() for c in (graph.op, graph.type, graph.scope, tree.group)]
    for i, (op, code, scope, group) in enumerate(zip(*columns, strict=True)):
        type_ = str(graph.types[code])
        attributes: dict[str, str] = {
            "name": str(graph.names[i]),
            "type": type_,
            "scope": str(graph.scopes[scope]),
            "source": str(graph.attribution.place(i) or ""),
            **{key: f"{values[i]:,.6g}" for key, values in measures.items() if math.isfinite(values[i])},
            "counted": ONE_ITERATION if one_iteration[i] else "",
            **(more[i] if more else {}),
        }
        for key, value in graph.attribute_table.of(i).items():
            attributes.setdefault(key if key not in attributes else f"{key} (attribute)", value)  # jit has a `name` too
        node: dict[str, Any] = {
            "id": str(i),
            "label": graph.ops[op],
            "namespace": namespaces[group] if group >= 0 else "",
            "attrs": _pairs(attributes),
            "incomingEdges": [
                {"sourceNodeId": str(source), "sourceNodeOutputId": "0", "targetNodeInputId": str(k)}
                for k, source in enumerate(operands[starts[i] : starts[i + 1]])
            ],
        }
        if type_:
            node["outputsMetadata"] = [{"id": "0", "attrs": _pairs({"tensor_shape": type_})}]
        nodes.append(node)
    kinds = {namespaces[i]: {"kind": group.kind} for i, group in enumerate(tree.groups)}
    return {"id": name, "nodes": nodes, "groupNodeAttributes": kinds}


def _namespaces(groups: list[tuple[str, int]]) -> list[str]:
    """Of each group, the path of names down to it, separated by `/`; two of one name side by side are numbered."""
    paths: list[str] = []
    used: Counter[str] = Counter()
    for name, parent in groups:
        # A slash would be a level of its own; its font has no triangle.
        step = name.replace("/", "∕").replace("▸", ">").strip() or "group"
        path = f"{paths[parent]}/{step}" if parent >= 0 else step
        used[path] += 1
        while used[path] > 1:
            path = f"{path} ({used[path]})"
            used[path] += 1
        paths.append(path)
    return paths


def _pairs(values: dict[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in values.items() if value]
