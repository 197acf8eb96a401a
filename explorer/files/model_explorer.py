"""A graph as another tool reads it: the JSON of Model Explorer (`ai-edge-model-explorer`, written for 0.1.34).

Beside the graphs goes a file for each measure, as its *per-node data*: what a kernel takes, which it paints and sums up
for each layer. It has no place for them in the file of the graphs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from explorer.analysis.cost.kernels import running_nodes
from explorer.analysis.cost.loops import is_one_iteration
from explorer.files.disk import write_text
from explorer.files.model_explorer_layers import Layers
from explorer.model.capture import Capture
from explorer.model.count_limits import ONE_ITERATION
from explorer.model.equation_sets import GRADES
from explorer.model.graph import Graph
from explorer.model.links import Links

# White where little is done, and the darker the more.
_GRADIENT = [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#f59e5b"}]
_MEASURES = ("time", "bytes", "flops")


def write_capture(capture: Capture, path: str | PathLike[str]) -> Path:
    """Write the stages of a capture, the last first, as one collection, and its measures beside it; the path."""
    links = capture.links
    linked = {name: _links(links, name) for name in links.graphs}
    graphs = [(stage.name, stage.graph, linked[stage.name]) for stage in reversed(capture.stages)]
    written = _write(Path(path), capture.function, graphs)
    _write_measures(written, [(name, graph) for name, graph, _ in graphs])
    return written


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
    """Write one graph as a collection, and its measures beside it; returns the path."""
    written = _write(Path(path), name, [(name, graph, ())])
    _write_measures(written, [(name, graph)])
    return written


def _write(path: Path, label: str, graphs: Iterable[tuple[str, Graph, Sequence[Mapping[str, str]]]]) -> Path:
    """Write graphs, each with its name and what its nodes have beside their own, as one collection; returns the path.

    The form is that of Model Explorer's JSON adapter: `{"label": …, "graphs": […]}`, its fields those of
    `model_explorer.graph_builder`.
    """
    collection = {"label": label, "graphs": [model_explorer_graph(graph, name, more) for name, graph, more in graphs]}
    _dump(path, collection)
    return path


def _write_measures(path: Path, graphs: Sequence[tuple[str, Graph]]) -> None:
    """Beside `attention.json` write `attention.bytes.json`, … : what each kernel takes, where that is known."""
    for measure in _MEASURES:
        data = {name: values for name, graph in graphs if (values := node_data(graph, measure))}
        if data:
            _dump(path.with_name(f"{path.stem}.{measure}.json"), data)


def node_data(graph: Graph, measure: str) -> dict[str, Any]:
    """What each kernel takes, in the form of `model_explorer.node_data_builder.GraphNodeData`; empty if unknown.

    Of kernels alone: Model Explorer sums up what is in a layer, and what an instruction inside of a kernel takes is in
    the kernel's figure already.
    """
    values = graph.measures.get(measure)
    if values is None:
        return {}
    kernels = running_nodes(graph)
    kernels = kernels[np.isfinite(values[kernels]) & (values[kernels] > 0)]
    results = {str(node): {"value": float(f"{values[node]:.6g}")} for node in kernels.tolist()}
    return {"name": measure, "results": results, "gradient": _GRADIENT} if results else {}


def _dump(path: Path, value: object) -> None:
    write_text(path, json.dumps(value, separators=(",", ":"), allow_nan=False))


def model_explorer_graph(graph: Graph, name: str, more: Sequence[Mapping[str, str]] = ()) -> dict[str, Any]:
    """One graph: its groups become namespaces, and what is known of a node its attributes; `more` has others."""
    layers = Layers(graph)
    measures = {key: values.tolist() for key, values in graph.measures.items()}
    one_iteration = is_one_iteration(graph).tolist()
    nodes: list[dict[str, Any]] = []
    columns: list[list[int]] = [c.tolist() for c in (graph.op, graph.type, graph.scope)]
    for i, (op, code, scope) in enumerate(zip(*columns, strict=True)):
        type_ = str(graph.types[code])
        attributes: dict[str, str] = {
            "name": str(graph.names[i]),
            "op": str(graph.ops[op]),
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
            "label": layers.label(i),
            "namespace": layers.path(i),
            "attrs": _pairs(attributes),
            "incomingEdges": [
                {"sourceNodeId": str(source), "sourceNodeOutputId": "0", "targetNodeInputId": str(k)}
                for k, source in enumerate(layers.sources(i))
            ],
        }
        if type_:
            node["outputsMetadata"] = [{"id": "0", "attrs": _pairs({"tensor_shape": type_})}]
        nodes.append(node)
    return {
        "id": name,
        "nodes": nodes,
        "groupNodeAttributes": {path: {"kind": kind} for path, kind in layers.kinds.items()},
    }


def _pairs(values: dict[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in values.items() if value]
