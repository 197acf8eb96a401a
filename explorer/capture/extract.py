"""One instruction with its operands, as an HLO module that XLA parses, compiles and runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from explorer._jax.native import printed_again
from explorer.errors import ForeignNodeError, OptionError, UnreadableTextError
from explorer.model.capture import Capture
from explorer.model.graph import Graph, Node, post_order
from explorer.model.types import parse_type

# Without operands: cheaper to compute again than to pass.
_WITHOUT_OPERANDS = ("constant", "iota")
_PREDECESSORS = "control-predecessors={"
# Module attributes of a program for several devices.
_MODULE_ATTRIBUTES = ("replica_count", "num_partitions")


def extract(capture: Capture, node: Node, height: int = 0) -> str:
    """Return the text of a module that computes what an instruction computes: see `Capture.extract`."""
    if not isinstance(height, int) or isinstance(height, bool) or height < 0:  # pyright: ignore[reportUnnecessaryIsInstance]: users write no types
        raise OptionError(f"height is {height!r}; allowed is a number of steps, 0 or more.")
    stage = next((stage for stage in capture.stages if stage.graph is node.graph), None)
    if stage is None or stage.name not in ("hlo", "before"):
        raise ForeignNodeError(
            f"{node.name} is not an instruction of this capture's HLO; only instructions can be extracted. "
            "Hint: cap.hlo.graph has them; cap.links finds them from another stage."
        )
    module = _module(stage.graph, stage.text.split("\n"), node.index, height)
    try:
        printed_again(module, is_hlo=True)
    except ValueError as error:
        raise UnreadableTextError(f"{node.name} can't be extracted: XLA can't parse the capture's text.") from error
    return module


def _module(graph: Graph, lines: Sequence[str], root: int, height: int) -> str:
    inside = _within(graph, root, height)
    body: list[str] = []
    parameters = 0
    # In the order of the text, in which operands come first.
    for node in sorted(inside | {operand for at in inside for operand in operands_of(graph, at)}):
        if node in inside and graph.ops[int(graph.op[node])] != "parameter":
            body.append(_instruction(graph, lines, node, node == root))
        else:
            made = list(_parameter(graph, node, parameters))
            # A tuple has one parameter per element, and a line that joins them.
            parameters += max(len(made) - 1, 1)
            body += [f"  {'ROOT ' * (node == root and line is made[-1])}{line}" for line in made]
    called = [_computation(graph, lines, group) for group in _called(graph, inside)]
    kept = "".join(f", {key}={graph.attributes[key]}" for key in _MODULE_ATTRIBUTES if key in graph.attributes)
    name = "".join(letter if letter.isalnum() else "_" for letter in graph.names[root])
    return "\n\n".join([f"HloModule extract_{name}{kept}", *called, "\n".join(["ENTRY %extract {", *body, "}"])]) + "\n"


def operands_of(graph: Graph, node: int) -> list[int]:
    return graph.operand[graph.operand_start[node] : graph.operand_start[node + 1]].tolist()


def _within(graph: Graph, root: int, height: int) -> set[int]:
    """Return the nodes to compute: up to `height` steps before the root, and operands that can't be given."""
    inside, front = {root}, {root}
    for _ in range(height):
        front = {operand for node in front for operand in operands_of(graph, node)} - inside
        inside |= front
    todo = list(inside)
    while todo:
        node = todo.pop()
        # Its operand is a tuple that only the first half can make.
        is_second_half = graph.ops[int(graph.op[node])].endswith(("-done", "-update"))
        for operand in operands_of(graph, node):
            alone = graph.ops[int(graph.op[operand])] in _WITHOUT_OPERANDS
            if operand not in inside and (alone or is_second_half):
                inside.add(operand)
                todo.append(operand)
    return inside


def _parameter(graph: Graph, node: int, number: int) -> Iterator[str]:
    """Yield the lines of a parameter with the name and type of a node; of a tuple, one line per element first."""
    name, text = graph.names[node].lstrip("%"), graph.types[int(graph.type[node])]
    type_ = parse_type(text)
    if len(type_) != len(type_.starts) or not text.startswith("(") or not type_.arrays:
        yield f"%{name} = {text} parameter({number})"
        return
    elements = [f"{array}{array.layout}" for array in type_.arrays]
    for i, element in enumerate(elements):
        yield f"%{name}.element.{i} = {element} parameter({number + i})"
    operands = ", ".join(f"%{name}.element.{i}" for i in range(len(elements)))
    yield f"%{name} = {text} tuple({operands})"


def _recompilable(graph: Graph, node: int, text: str) -> str:
    """Return an instruction without control predecessors, in a form that a compiler takes as input.

    XLA's CPU backend takes no fusion that it hasn't made itself ("Fusion must have backend config"): a fusion becomes a
    call, which is fused again. A bitcast depends on layouts, which MLIR loses: it becomes a reshape.
    """
    start = text.find(f", {_PREDECESSORS}")
    text = text if start < 0 else text[:start] + text[text.find("}", start) + 1 :]
    called, op = graph.attribute_table.get(node, "calls"), graph.ops[int(graph.op[node])]
    if op == "bitcast":
        return _reshaped(graph, node) or text
    if op != "fusion" or not called:
        return text
    operands = ", ".join(f"%{graph.names[operand].lstrip('%')}" for operand in operands_of(graph, node))
    name, type_ = graph.names[node].lstrip("%"), graph.types[int(graph.type[node])]
    return f"%{name} = {type_} call({operands}), to_apply=%{called}{_metadata(text)}"


def _reshaped(graph: Graph, node: int) -> str:
    """Return a bitcast as operations on the elements, in any layout; empty if it joins or splits elements.

    In memory nothing moves: the elements in memory order are the same before and after. Where that order isn't the
    dimensions', a transpose to it and one from it surround the reshape.
    """
    operand = next(iter(operands_of(graph, node)), node)
    arrays = [parse_type(graph.types[int(graph.type[at])]).arrays for at in (operand, node)]
    if operand == node or not all(arrays):
        return ""
    before, after = (each[0] for each in arrays)
    if before.bits != after.bits or before.elements != after.elements:
        return ""
    name, given = graph.names[node].lstrip("%"), f"%{graph.names[operand].lstrip('%')}"
    orders = [array.minor_to_major[::-1] or tuple(range(len(array.dims))) for array in (before, after)]
    rows: list[str] = []
    if before.dtype != after.dtype:
        rows.append(f"%{name}.bits = {after.dtype}[{','.join(before.dims)}] bitcast-convert({given})")
        given = f"%{name}.bits"
    if orders[0] != tuple(sorted(orders[0])):
        dims = ",".join(before.dims[dim] for dim in orders[0])
        order = ",".join(map(str, orders[0]))
        rows.append(f"%{name}.in.memory = {after.dtype}[{dims}] transpose({given}), dimensions={{{order}}}")
        given = f"%{name}.in.memory"
    if orders[1] == tuple(sorted(orders[1])):
        return "\n  ".join([*rows, f"%{name} = {after} reshape({given})"])
    dims = ",".join(after.dims[dim] for dim in orders[1])
    back = ",".join(str(orders[1].index(dim)) for dim in range(len(after.dims)))
    rows.append(f"%{name}.reshaped = {after.dtype}[{dims}] reshape({given})")
    return "\n  ".join([*rows, f"%{name} = {after} transpose(%{name}.reshaped), dimensions={{{back}}}"])


def _instruction(graph: Graph, lines: Sequence[str], node: int, is_root: bool) -> str:
    """Return the indented text of an instruction for a new module; the last line of a root has `ROOT`."""
    text = lines[int(graph.line[node])].strip().removeprefix("ROOT ").lstrip()
    *before, last = _recompilable(graph, node, text).split("\n")
    return "\n".join([*(f"  {line.strip()}" for line in before), f"  {'ROOT ' * is_root}{last.strip()}"])


def _metadata(text: str) -> str:
    start = text.find(", metadata={")
    metadata = "" if start < 0 else text[start : text.find("}", start) + 1]
    return "" if metadata.count('"') % 2 else metadata  # a brace in a name


def _called(graph: Graph, nodes: Iterable[int]) -> list[int]:
    """Return the groups of the computations that nodes call, and those that these call, each after its callees."""
    of_node: dict[int, list[int]] = {}
    of_group: list[list[int]] = [[] for _ in graph.groups]
    for call in graph.calls:
        of_node.setdefault(call.node, []).append(call.group)
        if graph.group[call.node] >= 0:
            of_group[int(graph.group[call.node])].append(call.group)
    starts = [group for node in sorted(nodes, reverse=True) for group in of_node.get(node, ())]
    return post_order(reversed(starts), of_group)


def _computation(graph: Graph, lines: Sequence[str], group: int) -> str:
    rows = [f"%{graph.groups[group].name} {{"]
    roots = graph.is_root
    for node in (graph.group == group).nonzero()[0].tolist():
        rows.append(_instruction(graph, lines, node, bool(roots[node])))
    return "\n".join([*rows, "}"])
