"""The compiled program of several devices: what its rules look at, and how what they find is said."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import jax

from explorer._jax.traces import is_of_one_device
from explorer.analysis.sharding.program import Waste
from explorer.analysis.sharding.waste import find_waste
from explorer.capture.backends import Backend
from explorer.capture.explore import CompileRequest, compile_stages, partitions_of
from explorer.capture.sources import Span
from explorer.model.capture import Capture
from explorer.model.findings.finding import Finding
from explorer.model.graph import Node
from explorer.model.units import amount_text, bytes_text
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.locations import span_location
from explorer.pitfalls.rule import Rule
from explorer.pitfalls.syntax_trees import root_of

DOCUMENTATION = "https://docs.jax.dev/en/latest/parallel.html"

SHARDED = ("gathered-operand", "replicated-output", "replicated-argument", "idle-axis", "replicated-intermediate")


def compile_if_sharded(evidence: Evidence) -> Capture | None:
    """The capture of a traced function that spans several devices; None for one device, or if it can't be compiled."""
    if evidence.traced is None or is_of_one_device(evidence.traced):
        return None
    lowered = evidence.lowered
    if lowered is None or partitions_of(lowered) < 2:
        return None
    request = CompileRequest(evidence.function, tuple(evidence.args), evidence.kwargs, traced=evidence.traced)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what JAX warns of, rules say
            return compile_stages(request).capture
    except Exception:  # lint says what can be said of the trace; explore() says why it doesn't compile
        return None


def compile_for(evidence: Evidence, plain: Any, backend: Backend) -> Capture | None:
    """The capture of a traced function for other hardware; None where it couldn't be traced.

    Args:
        evidence: Of its trace.
        plain: Its arguments at one size, where the trace was of all sizes at once: then it is traced once more.
        backend: What compiles it.

    Raises:
        ExploreError: That refused it.
    """
    __tracebackhide__ = True
    if evidence.traced is None:
        return None
    args, kwargs = plain
    is_plain = evidence.args is args
    request = CompileRequest(evidence.target, tuple(args), kwargs, traced=evidence.traced if is_plain else None)
    return compile_stages(replace(request, backend=backend)).capture


def wastes(evidence: Evidence, *kinds: str) -> Iterator[Waste]:
    """What of some kinds is wasted in the compiled program; nothing where there is none."""
    if evidence.capture is None:
        return
    if evidence.waste is None:
        evidence.waste = tuple(find_waste(evidence.capture))
    yield from (waste for waste in evidence.waste if waste.kind in kinds)


def finding_of(rule: Rule, evidence: Evidence, waste: Waste, message: str, fix: str, **place: Any) -> Finding:
    """A finding; a note where it is not waste for certain."""
    line = place or place_of(evidence, waste.node)
    severity = None if waste.is_proven else "note"
    if evidence.try_cure is not None:
        fix = f"{fix}; {evidence.try_cure(evidence, waste, line.get('line', 0))}"
    return rule.finding(message, evidence=evidence_text(waste), fix=fix, severity=severity, **line)


def evidence_text(waste: Waste) -> str:
    """`2.1 MB on each of 4 devices; each sends 1.6 MB for it`."""
    sent = f"; each sends {bytes_text(waste.wire)} for it" if waste.wire else ""
    work = f"; {amount_text(waste.flops)}FLOP on each" if waste.flops else ""
    return f"{bytes_text(waste.bytes)} on each of {waste.devices} devices{sent}{work}"


def along(waste: Waste) -> str:
    """The axes of the mesh: "`data`", "`data` and `model`"."""
    return " and ".join(f"`{axis}`" for axis in waste.axes)


def constraint(spec: str) -> str:
    """How to ask for a sharding; empty where none is known."""
    return f"jax.lax.with_sharding_constraint(value, {spec})" if spec else ""


def place_of(evidence: Evidence, node: Node | None) -> dict[str, Any]:
    """The line of an instruction, or of one that it was made for; none where there is none."""
    capture = evidence.capture
    if node is None or capture is None:
        return {}
    own = Node(capture.hlo.graph, node.index)
    for each in (own, *own.operands, *own.users):
        if (place := each.place) is not None:
            return span_location(place.file, Span(place.line, 0, 0, 0))
    return {}


def lines_of(evidence: Evidence, waste: Waste) -> str:
    """The lines of the products that are repeated: `line 12`, `lines 12 and 15`."""
    places = [place_of(evidence, node).get("line", 0) for node in waste.products]
    lines = sorted({line for line in places if line})
    if not lines:
        return ""
    return f"line {lines[0]}" if len(lines) == 1 else f"lines {', '.join(map(str, lines[:-1]))} and {lines[-1]}"


def output_path(evidence: Evidence, number: int) -> str:
    """What a caller finds an output by: `result[0]`."""
    try:
        paths = cast(list[Any], jax.tree_util.tree_flatten_with_path(evidence.traced.out_info)[0])
        return f"result{jax.tree_util.keystr(paths[number][0])}"
    except (AttributeError, IndexError):
        return "an output"


def argument_path(evidence: Evidence, number: int) -> str:
    """What the caller names an argument of the compiled program by: `params['w']`; empty where it isn't known."""
    graph = evidence.capture.hlo.graph if evidence.capture is not None else None
    for node in graph.nodes if graph is not None else ():
        is_of_entry = node.op == "parameter" and node.group is not None and node.group.kind == "entry"
        if is_of_entry and int(node.graph.parameter_number[node.index]) == number:
            return node.scope
    return ""


def argument_root(path: str) -> str:
    """The parameter of the function that an argument's path begins with."""
    return root_of(path)
