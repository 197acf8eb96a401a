"""Files for other tools: graphs for Model Explorer, profiles for Perfetto and XProf.

Graphs are in the JSON of Model Explorer (`ai-edge-model-explorer`, written for 0.1.34). Each measure goes to a file of
its own as *per-node data*, which the graphs' file can't hold. Model Explorer colors kernels by it and sums it up for
each layer.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from explorer.analysis.kernel_costs import running_nodes
from explorer.analysis.loops import is_one_iteration
from explorer.analysis.profile_attribution import regions
from explorer.files.disk import write_text, write_whole
from explorer.model.attribution import ONE_ITERATION
from explorer.model.capture import Capture
from explorer.model.graph import Graph
from explorer.model.links import GRADES, Links
from explorer.model.results.profile import OpTime, Profile
from explorer.model.results.profile_events import HOST, RECORD, REGION, THUNK, WAIT, Events, Op

_GRADIENT = [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#f59e5b"}]
_MEASURES = ("time", "bytes", "flops")
_MICRO = 1e6
_KIND = {THUNK: "instruction", REGION: "part of an instruction", WAIT: "wait", HOST: "host"}
_RUN, _HOST_NAME = "explorer", "host"


def write_capture(capture: Capture, path: str | PathLike[str]) -> Path:
    """Write the stages of a capture, last first, and its measures; return the path."""
    links = capture.links
    linked = {name: _links(links, name) for name in links.graphs}
    graphs = [(stage.name, stage.graph, linked[stage.name]) for stage in reversed(capture.stages)]
    written = _write(Path(path), capture.function, graphs)
    _write_measures(written, [(name, graph) for name, graph, _ in graphs])
    return written


def _links(links: Links, stage: str) -> list[dict[str, str]]:
    """Return a dict per node with its `equations` and their grade as `link`; empty dicts for the first stage."""
    grades: list[int] = links.grades(stage).tolist()
    if stage == links.first:
        return [{} for _ in grades]
    names, table = links.graphs[links.first].names, links.table(stage, links.first)
    return [
        {"equations": ", ".join(names[row] for row in table.get(node, ())), "link": GRADES[grade]}
        for node, grade in enumerate(grades)
    ]


def write_graph(graph: Graph, path: str | PathLike[str], name: str = "graph") -> Path:
    """Write one graph and its measures; return the path."""
    written = _write(Path(path), name, [(name, graph, ())])
    _write_measures(written, [(name, graph)])
    return written


def _write(path: Path, label: str, graphs: Iterable[tuple[str, Graph, Sequence[Mapping[str, str]]]]) -> Path:
    """Write graphs, each with its name and extra attributes of its nodes, as one collection; return the path."""
    collection = {"label": label, "graphs": [model_explorer_graph(graph, name, more) for name, graph, more in graphs]}
    _dump(path, collection)
    return path


def _write_measures(path: Path, graphs: Sequence[tuple[str, Graph]]) -> None:
    """Write `attention.bytes.json`, … for `attention.json`, with the measures of each kernel."""
    for measure in _MEASURES:
        data = {name: values for name, graph in graphs if (values := node_data(graph, measure))}
        if data:
            _dump(path.with_name(f"{path.stem}.{measure}.json"), data)


def node_data(graph: Graph, measure: str) -> dict[str, Any]:
    """Return a measure of each kernel as `model_explorer.node_data_builder.GraphNodeData`; empty if none is above 0.

    Only kernels are listed: Model Explorer sums up layers, and a kernel's figure includes its instructions.
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
    """Return a graph as Model Explorer's JSON object: groups as namespaces, facts about nodes as attributes.

    `more` has further attributes for each node.
    """
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


_RETURNS = frozenset(("return", "func.return", "stablehlo.return"))
_APPLIED = "apply"  # applied to each element, so its parameters have no source node


class Layers:
    """Layer path of each node of a graph, and the sources of its edges.

    Attributes:
        kinds: Kind of the group of each layer.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.kinds: dict[str, str] = {}
        self._words = graph.kernel_words
        self._used: Counter[str] = Counter()
        self._of_group: list[str] = []
        self._of_node: dict[int, str] = {}
        self._callees = Counter(group.caller for group in graph.hierarchy.groups if group.caller >= 0)
        tree = graph.hierarchy
        children = Counter(group.parent for group in tree.groups)
        for index, group in enumerate(tree.groups):
            times = children[index] if group.kind == "repeat" else tree.repeat[index] if tree.repeat else 0
            suffix = f" x{times:,}" if times > 1 else ""  # Model Explorer's font has no ×
            if group.caller >= 0:
                path = self._inside_of(group.caller, group.kind, suffix)
            else:
                parent = self._of_group[group.parent] if group.parent >= 0 else ""
                path = self._add(parent, group.name + suffix, group.kind)
            self._of_group.append(path)
        self._groups: list[int] = tree.group.tolist()
        self._sources = self._edges()

    def path(self, node: int) -> str:
        """Return the layers of a node, outermost first, joined by `/`; empty at the top."""
        if node in self._of_node:
            return self._of_node[node]
        group = self._groups[node]
        return self._of_group[group] if group >= 0 else ""

    def label(self, node: int) -> str:
        """Return a node's operation; for a parameter or a fusion, its name."""
        op = self.graph.ops[int(self.graph.op[node])]
        return self.graph.names[node] if op in ("parameter", "fusion") else op

    def sources(self, node: int) -> Sequence[int]:
        """Return the indices of the nodes from which edges lead into a node."""
        return self._sources[node] if node in self._sources else self._operands(node)

    def _operands(self, node: int) -> list[int]:
        start, end = self.graph.operand_start[node : node + 2]
        return self.graph.operand[start:end].tolist()

    def _inside_of(self, caller: int, kind: str, suffix: str) -> str:
        """Return the layer path of a called computation: its caller's, or one in it if the caller calls several.

        Missing layers are added.
        """
        layer = self._of_node.get(caller)
        is_alone = self._callees[caller] == 1
        if layer is None:
            group = int(self.graph.hierarchy.group[caller])
            title = self._title(caller) + suffix * is_alone
            layer = self._of_node[caller] = self._add(self._of_group[group] if group >= 0 else "", title, kind)
        return layer if is_alone else self._add(layer, kind + suffix, kind)

    def _title(self, caller: int) -> str:
        """Return a title for a caller's layer: `max, exp, sum (fusion.3)`, or a name that begins with its operation."""
        name, op = self.graph.names[caller], self.graph.ops[int(self.graph.op[caller])].removeprefix("stablehlo.")
        words = self._words.get(caller) or ("" if name.startswith(op) else op)
        return f"{words} ({name})" if words else name

    def _add(self, parent: str, name: str, kind: str) -> str:
        """Add a layer and return its path; equal names in one layer are numbered."""
        # A slash would start another level; Model Explorer's font has neither a triangle nor a division slash.
        step = name.replace("/", "|").replace("▸", ">").strip() or "group"
        path = f"{parent}/{step}" if parent else step
        self._used[path] += 1
        # The compiler's own name may end in ` (2)` already.
        while self._used[path] > 1:
            path = f"{path} ({self._used[path]})"
            self._used[path] += 1
        self.kinds[path] = kind
        return path

    def _edges(self) -> dict[int, list[int]]:
        """Return a dict from node to the sources of its edges where these aren't its operands.

        These are the parameters of called computations, whose sources are the caller's operands, and the callers.
        """
        parameters, results = self._ends()
        sources: dict[int, list[int]] = {}
        branches: Counter[int] = Counter()  # branches seen so far, by caller
        for index, group in enumerate(self.graph.groups):
            caller = group.caller
            if caller < 0:
                continue
            left = sources.get(caller, self._operands(caller))
            if group.kind != _APPLIED:
                inner, given = parameters.get(index, []), self._operands(caller)
                if group.kind == "branch":
                    given = _arguments_of_branch(given, len(inner), branches[caller])
                    branches[caller] += 1
                reached = dict(zip(inner, given, strict=False))
                sources.update((parameter, [operand]) for parameter, operand in reached.items())
                left = [source for source in left if source not in reached.values()]
            sources[caller] = [*left, *(node for node in results.get(index, ()) if node not in left)]
        return sources

    def _ends(self) -> tuple[Mapping[int, list[int]], Mapping[int, list[int]]]:
        """Return two dicts by index of a computation's group: its parameters in order, and its returned nodes."""
        graph = self.graph
        is_parameter = np.asarray([op == "parameter" for op in graph.ops] or [False], bool)[graph.op]
        returns = np.asarray([op in _RETURNS for op in graph.ops] or [False], bool)[graph.op] | graph.is_root
        returns[graph.returned] = True
        numbers = graph.parameter_number
        parameters: dict[int, list[int]] = {}
        results: dict[int, list[int]] = {}
        for node in np.flatnonzero(is_parameter & (graph.group >= 0)).tolist():
            parameters.setdefault(int(graph.group[node]), []).append(node)
        for node in np.flatnonzero(returns & (graph.group >= 0)).tolist():
            results.setdefault(int(graph.group[node]), []).append(node)
        for nodes in parameters.values():
            nodes.sort(key=lambda node: int(numbers[node]))  # stable: those without a number stay in the text's order
        return parameters, results


def _arguments_of_branch(operands: list[int], parameters: int, number: int) -> list[int]:
    """Return the operands of a conditional that its branch `number` takes, without the first, which selects.

    In HLO each branch has one operand of its own; in a jaxpr all branches take all.
    """
    return operands[1:] if len(operands) == parameters + 1 else operands[number + 1 : number + 2]


def write_perfetto(profile: Profile, path: str | PathLike[str]) -> Path:
    """Write a trace in Chrome's JSON format, for ui.perfetto.dev, chrome://tracing or speedscope; return the path."""
    text = json.dumps({"displayTimeUnit": "ns", "traceEvents": list(_events(profile))}, separators=(",", ":"))
    return write_text(path, text)


def _events(profile: Profile) -> Iterator[dict[str, Any]]:
    events = profile.events
    yield {"ph": "M", "pid": 1, "tid": 0, "name": "process_name", "args": {"name": profile.function}}
    if events is None:
        return
    for thread, name in enumerate(events.threads):
        yield {"ph": "M", "pid": 1, "tid": thread + 1, "name": "thread_name", "args": {"name": name}}
    rows = {(row.program, row.name): row for row in profile.ops}
    args = [_args(op, rows.get((op.program, op.name))) for op in events.ops]
    begin = float(events.windows[0, 0]) if len(events.windows) else 0.0
    owner = regions(events)
    columns = (events.thread, events.start, events.end, events.kind, events.what)
    for i, (thread, start, end, kind, what) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        if kind == RECORD or end < begin:  # no length, or before the first call
            continue
        op = what if kind == THUNK else owner.get(i, -1) if kind == REGION else -1
        yield {
            "ph": "X", "pid": 1, "tid": thread + 1, "name": _name(events, kind, what, op),
            "cat": _KIND.get(kind, "runtime"), "ts": (start - begin) * _MICRO, "dur": (end - start) * _MICRO,
            "args": args[op] if op >= 0 else {},
        }  # fmt: skip


def _args(op: Op, row: OpTime | None) -> dict[str, Any]:
    """Return Perfetto's details of an instruction: `module`, `line`, `op` and `scope`; without a line only `module`."""
    if row is None or not row.stack:
        return {"module": op.module}
    line = f"{row.stack[0].file}:{row.stack[0].line}"
    return {"module": op.module, "line": line, "op": row.op, "scope": row.scope}


def _name(events: Events, kind: int, what: int, op: int) -> str:
    if op >= 0:
        return events.ops[op].name
    return "part" if kind == REGION else events.names[what]


def write_xprof(profile: Profile, folder: str | PathLike[str]) -> Path:
    """Write `plugins/profile/RUN/HOST.xplane.pb`, where XProf and TensorBoard look; return the path."""
    target = Path(folder) / "plugins" / "profile" / _RUN
    number = 1
    while target.exists():  # an earlier run is not overwritten
        number += 1
        target = target.with_name(f"{_RUN}-{number}")
    target.mkdir(parents=True)
    path = target / f"{_HOST_NAME}.xplane.pb"
    write_whole(path, profile.xspace)
    return path
