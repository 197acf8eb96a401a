"""Rules about programs for several devices: arrays that are gathered, replicated or not split."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import jax
from jax.errors import InconclusiveDimensionOperation

from explorer._jax.traces import is_of_one_device
from explorer.analysis.sharding.program import Waste
from explorer.analysis.sharding.waste import find_waste
from explorer.capture.backends import Backend
from explorer.capture.explore import CompileRequest, compile_stages, partitions_of
from explorer.capture.safe_reading import is_a
from explorer.capture.sources import Span
from explorer.model.capture import Capture
from explorer.model.findings import Finding
from explorer.model.graph import Node
from explorer.model.text import list_names, root_of
from explorer.model.units import amount_text, bytes_text
from explorer.pitfalls.evidence import Evidence, entry_parameter, parameter_location
from explorer.pitfalls.function_source import span_location
from explorer.pitfalls.rule import Rule, rule


@rule("gathered-operand", "EX033", "warning", "parallel.html", passive=True, compiles=True)
def gathered_operand(evidence: Evidence) -> Iterator[Finding]:
    """A sharded array is gathered on each device, though parts would suffice."""
    for waste in wastes(evidence, "repeated", "contracted", "gathered", "cut again"):
        message, fix = _TEXTS[waste.kind](evidence, waste)
        yield finding_of(gathered_operand, evidence, waste, message, fix)


def _repeated(evidence: Evidence, waste: Waste) -> tuple[str, str]:
    places = [place_of(evidence, node).get("line", 0) for node in waste.products]
    lines = list(map(str, sorted({line for line in places if line})))
    of = f" of line{'s' * (len(lines) > 1)} {list_names(lines)}" if lines else ""
    return (
        f"an array that is split along {along(waste)} is gathered whole here, and each of the {waste.devices} devices "
        f"then computes the same products{of}",
        _keep(waste),
    )


def _contracted(evidence: Evidence, waste: Waste) -> tuple[str, str]:
    weight = None if evidence.capture is None else entry_parameter(evidence.capture, waste.number)
    what = f"`{weight.scope}`" if weight is not None and weight.scope else "the other operand"
    return (
        f"an operand of this product is gathered whole along {along(waste)}, because {what} is split along its other "
        "dimension",
        f"give {what} the sharding {waste.spec}: each device then sums over its part, and the sums are added"
        if waste.spec
        else f"split {what} along the dimension that is summed over",
    )


def _gathered(evidence: Evidence, waste: Waste) -> tuple[str, str]:
    op = waste.node.scope.rpartition("/")[2] if waste.node is not None else ""
    what = f" for `{op}`" if op else ""
    return f"an array that is split along {along(waste)} is gathered whole on each device{what}", (
        f"{_keep(waste)}; or split another dimension before this line, so that each part can be computed separately"
    )


def _keep(waste: Waste) -> str:
    return f"keep it split{': ' * bool(waste.spec)}{split_by(waste, ' by a sharding constraint here')}"


def _cut_again(evidence: Evidence, waste: Waste) -> tuple[str, str]:
    return (
        f"an array that is split along {along(waste)} is gathered whole on each device and cut again: XLA knows no "
        "direct way between the two shardings",
        "give the value before or behind this line a sharding that the other follows from, dimension by dimension",
    )


_TEXTS = {"repeated": _repeated, "contracted": _contracted, "gathered": _gathered, "cut again": _cut_again}


LARGE = 1_000_000  # bytes


@rule("replicated-output", "EX034", "warning", "parallel.html", passive=True, compiles=True)
def replicated_output(evidence: Evidence) -> Iterator[Finding]:
    """An output is returned whole on each device, or on one device, without being requested."""
    for waste in wastes(evidence, "output", "made output", "asked output"):
        path = output_path(evidence, waste.number)
        if waste.kind == "asked output":
            message = f"`{path}` is requested whole on each of the {waste.devices} devices along {along(waste)}: its "
            message += "parts are gathered in each call"
        elif waste.kind == "output":
            message = f"`{path}` comes back whole on each of the {waste.devices} devices along {along(waste)}: its "
            message += "parts are gathered, without a request"
        else:
            message = (
                f"`{path}` is computed from arrays that aren't split: each of the {waste.devices} devices has all of it"
            )
        spec, again = waste.spec or "P(…)", " again, split" * (waste.kind == "asked output")
        fix = f"ask for it{again}: jax.jit(f, out_shardings=NamedSharding(mesh, {spec}))"
        yield finding_of(replicated_output, evidence, waste, message, fix)
    yield from _on_one_device(evidence)


def _on_one_device(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding if nothing sharded is used, as in `zeros_like` of sharded weights: outputs are on one device."""
    if evidence.capture is not None or evidence.traced is None:
        return
    outputs: list[Any] = jax.tree.leaves(evidence.traced.out_info)
    size = sum(bytes_of(output) for output in outputs)
    if size < LARGE:
        return
    leaves: list[Any] = jax.tree.leaves((tuple(evidence.args), evidence.kwargs))
    devices = max((_devices(leaf) for leaf in leaves), default=1)
    if devices < 2 or _uses_any(evidence) or _is_requested(evidence):
        return
    yield replicated_output.finding(
        f"nothing that is split over the {devices} devices is used here, so all outputs come back on one device",
        evidence=f"{bytes_text(size)} of outputs, on one device",
        fix="say where they belong: jax.jit(f, out_shardings=jax.tree.map(lambda x: x.sharding, params))",
    )


def _uses_any(evidence: Evidence) -> bool:
    raw = evidence.program.main.raw
    used = {id(operand) for equation in raw.eqns for operand in equation.invars} | set(map(id, raw.outvars))
    return any(id(variable) in used for variable in raw.invars)


def _is_requested(evidence: Evidence) -> bool:
    """Return True if the function or its `jax.jit` names a sharding, so that the program has a mesh, or if unknown."""
    lowered = evidence.lowered
    return lowered is None or "sdy.mesh" in lowered.as_text() or "mhlo.sharding" in lowered.as_text()


def _devices(leaf: Any) -> int:
    if not is_a(leaf, jax.Array, jax.ShapeDtypeStruct):
        return 1
    return len(getattr(getattr(leaf, "sharding", None), "device_set", ()))


def bytes_of(output: Any) -> int:
    try:
        return int(output.size) * int(output.dtype.itemsize)
    except (AttributeError, TypeError, InconclusiveDimensionOperation):  # a key; a size that has no number yet
        return 0


@rule("replicated-argument", "EX035", "warning", "parallel.html", passive=True, compiles=True)
def replicated_argument(evidence: Evidence) -> Iterator[Finding]:
    """An argument is whole on each device where a part would suffice.

    It may also be whole although similar arguments are split.
    """
    for waste in wastes(evidence, "argument", "unsplit", "unlike"):
        path = waste.node.scope if waste.node is not None else ""
        whole = f"`{path}` is whole on each of the {waste.devices} devices along {along(waste)}"
        if waste.kind == "argument":
            message = f"{whole}, and each uses its part of it alone"
        elif waste.kind == "unsplit":
            message = f"{whole} where other weights are split, and each computes all of its product"
        else:
            message = f"{whole}; others of its tree and shape are split there"
        spec = waste.spec or "P(…)"
        fix = f"pass it split: jax.device_put({path or 'x'}, NamedSharding(mesh, {spec}))"
        yield finding_of(
            replicated_argument, evidence, waste, message, fix, **parameter_location(evidence, root_of(path))
        )


@rule("idle-axis", "EX036", "warning", "parallel.html", passive=True, compiles=True)
def idle_axis(evidence: Evidence) -> Iterator[Finding]:
    """Nothing is split along an axis of the mesh, so all devices along it do the same work."""
    for waste in wastes(evidence, "idle"):
        message = f"nothing is split along {along(waste)} of the mesh: {waste.devices} devices each do the same"
        fix = f"split the batch or the weights along {along(waste)}, or take a mesh without it"
        capture = evidence.capture
        has_line = capture is not None and capture.line
        place = span_location(capture.file, Span(capture.line, 0, 0, 0)) if capture is not None and has_line else {}
        yield finding_of(idle_axis, evidence, waste, message, fix, **place)


@rule("replicated-intermediate", "EX037", "warning", "parallel.html", passive=True, compiles=True)
def replicated_intermediate(evidence: Evidence) -> Iterator[Finding]:
    """Each device computes an array whole, and uses only its part."""
    for waste in wastes(evidence, "made whole"):
        message = f"each of the {waste.devices} devices along {along(waste)} makes this array whole, and uses its part"
        fix = f"make it split{': ' * bool(waste.spec)}{split_by(waste, ', by a sharding constraint')}"
        yield finding_of(replicated_intermediate, evidence, waste, message + " alone", fix)


@rule("sum-in-loop", "EX045", "warning", "parallel.html", passive=True, compiles=True)
def sum_in_loop(evidence: Evidence) -> Iterator[Finding]:
    """A loop sums over devices in each turn, and only adds the sums up: one sum after the loop would do."""
    for waste in wastes(evidence, "sum in loop"):
        message = (
            f"each of the {waste.number:,} turns of the loop sums an array over the devices along {along(waste)}, "
        )
        message += "and the loop only adds these sums up"
        once = bytes_text(waste.wire // waste.number)
        fix = f"sum once after the loop, for which each device sends {once}: in a shard_map, psum behind the scan; "
        fix += "else let the loop add up per-device parts, and constrain the total"
        yield finding_of(sum_in_loop, evidence, waste, message, fix)


SHARDED = (
    *("gathered-operand", "replicated-output", "replicated-argument", "idle-axis", "replicated-intermediate"),
    *("sum-in-loop", "resharding-back"),
)


def compile_if_sharded(evidence: Evidence) -> Capture | None:
    """Return the capture of a traced function that spans several devices, compiled here.

    None for one device, or if it doesn't compile.
    """
    if evidence.traced is None or is_of_one_device(evidence.traced):
        return None
    lowered = evidence.lowered
    if lowered is None or partitions_of(lowered) < 2:
        return None
    request = CompileRequest(evidence.function, tuple(evidence.args), evidence.kwargs, traced=evidence.traced)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # rules report these
            return compile_stages(request).capture
    except Exception:  # lint reports on the trace; explore() raises
        return None


def compile_for(evidence: Evidence, plain: Any, backend: Backend) -> Capture | None:
    """Return the capture of a traced function, compiled for other hardware; None if the trace failed.

    A symbolic trace is repeated at the sizes of the arguments `plain`.

    Raises:
        ExploreError: The target's compiler refused the program.
    """
    __tracebackhide__ = True
    if evidence.traced is None:
        return None
    args, kwargs = plain
    is_plain = evidence.args is args
    request = CompileRequest(evidence.target, tuple(args), kwargs, traced=evidence.traced if is_plain else None)
    return compile_stages(replace(request, backend=backend)).capture


def wastes(evidence: Evidence, *kinds: str) -> Iterator[Waste]:
    if evidence.capture is None:
        return
    if evidence.waste is None:
        evidence.waste = tuple(find_waste(evidence.capture))
    yield from (waste for waste in evidence.waste if waste.kind in kinds)


def finding_of(rule: Rule, evidence: Evidence, waste: Waste, message: str, fix: str, **place: Any) -> Finding:
    """Return a finding about waste; a note if it isn't proven."""
    line = place or place_of(evidence, waste.node)
    severity = None if waste.is_proven else "note"
    if evidence.try_fix is not None:
        fix = f"{fix}; {evidence.try_fix(evidence, waste, line.get('line', 0))}"
    sent = f"; each sends {bytes_text(waste.wire)} for it" if waste.wire else ""
    work = f"; {amount_text(waste.flops)}FLOP on each" if waste.flops else ""
    seen = f"{bytes_text(waste.bytes)} on each of {waste.devices} devices{sent}{work}"
    return rule.finding(message, evidence=seen, fix=fix, severity=severity, **line)


def along(waste: Waste) -> str:
    """Return the names of a waste's mesh axes as text: "`data`", "`data` and `model`"."""
    return " and ".join(f"`{axis}`" for axis in waste.axes)


def split_by(waste: Waste, else_by: str) -> str:
    """Return the sharding constraint that splits the result of a line, or `else_by` if the sharding is unknown."""
    return (
        f"jax.lax.with_sharding_constraint(value, {waste.spec}) on the result of this line" if waste.spec else else_by
    )


def place_of(evidence: Evidence, node: Node | None) -> dict[str, Any]:
    """Return a finding's location fields (file, line, …), of a node or its nearest neighbor with one; else {}."""
    capture = evidence.capture
    if node is None or capture is None:
        return {}
    own = Node(capture.hlo.graph, node.index)
    for each in (own, *own.operands, *own.users):
        if (place := each.place) is not None:
            return span_location(place.file, Span(place.line, 0, 0, 0))
    return {}


def output_path(evidence: Evidence, number: int) -> str:
    try:
        paths = cast(list[Any], jax.tree_util.tree_flatten_with_path(evidence.traced.out_info)[0])
        return f"result{jax.tree_util.keystr(paths[number][0])}"
    except (AttributeError, IndexError):
        return "an output"
