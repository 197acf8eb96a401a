"""Which operands an instruction may write its outputs over: what operations and the module's header say about that.

After XLA's `alias_info.cc` and `CanShareOperandBufferWithUser` of `hlo_dataflow_analysis.cc`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from explorer.analysis.memory.instructions import Instructions
from explorer.analysis.memory.schedule import Execution, Leaves
from explorer.model.attributes import Nested, read_nested

# Of one array each: outputs that may lie where an operand was. A copy may not, though one inside a fusion may.
_ELEMENTWISE = frozenset(
    [
        *("abs", "acos", "acosh", "add", "and", "asin", "asinh", "atan2", "atanh", "bitcast-convert", "cbrt", "ceil"),
        *("clamp", "compare", "complex", "convert", "cosh", "cosine", "count-leading-zeros", "divide", "erf"),
        *("exponential", "exponential-minus-one", "floor", "imag", "is-finite", "log", "log-plus-one", "logistic"),
        *("map", "maximum", "minimum", "mulhi", "multiply", "negate", "not", "or", "popcnt", "power", "real"),
        *("reduce-precision", "remainder", "round-nearest-afz", "round-nearest-even", "rsqrt", "select"),
        *("shift-left", "shift-right-arithmetic", "shift-right-logical", "sign", "sine", "sinh", "sqrt"),
        *("stochastic-convert", "subtract", "tan", "tanh", "xor"),
    ]
)
_THROUGH = _ELEMENTWISE | {"copy", "tuple"}  # inside a fusion
# Outputs that lie where an operand is: which operand has the first one.
_IN_PLACE = {"dynamic-update-slice": 0, "scatter": 0, "all-reduce-start": 0}
_MAY_UPDATE = {*_IN_PLACE, "fusion"}
_MAY_BE_IN_PLACE = {"triangular-solve": 1, "set-dimension-size": 0}


class Alias(NamedTuple):
    """An output that lies where an operand was: elements of their tuples, -1 for the whole."""

    output: int
    operand: int  # or the number of a parameter
    element: int


class Reuse(NamedTuple):
    """That a value may lie where another one was, which dies at the step that defines it.

    Args:
        operand, output: Values.
        number: Of the operand, among those of the instruction.
    """

    operand: int
    output: int
    step: int
    number: int = 0


def aliases(value: str) -> list[Alias]:
    """Those of an attribute: an instruction's `output_to_operand_aliasing`, a module's `input_output_alias`.

    Example:
        >>> aliases("{ {0}: (2, {}, may-alias), {1}: (3, {4}) }")
        [Alias(output=0, operand=2, element=-1), Alias(output=1, operand=3, element=4)]
    """
    return _aliases(read_nested(value)) if value else []


def _aliases(parts: Sequence[Nested]) -> list[Alias]:
    pairs = zip(parts[::2], parts[1::2], strict=False)
    places = [(output, *_place(operand)) for output, operand in pairs if isinstance(output, tuple)]
    return [Alias(_first(output), operand, element) for output, operand, element in places if operand >= 0]


def donations(module: Mapping[str, str]) -> list[tuple[int, int]]:
    """Parameter and element of the arguments whose memory the caller gives away, by the module's attributes."""
    written, given = module.get("input_output_alias", ""), module.get("buffer_donor", "")
    donated = [(alias.operand, alias.element) for alias in aliases(written)]
    donors = [*map(_place, read_nested(given))] if given else []
    return donated + [(number, element) for number, element in donors if number >= 0]


def in_place(code: Instructions, execution: Execution) -> Iterable[Reuse]:
    """What an instruction updates in place: the operand and the output are one buffer wherever the operand dies."""
    updates = code.op[execution.node] in _MAY_UPDATE or execution.node in code.has_aliasing
    return _in_place(code, execution) if updates else ()


def _in_place(code: Instructions, execution: Execution) -> Iterator[Reuse]:
    node, step, operands, values = execution
    op = code.op[node]
    if op in _IN_PLACE:
        pairs = zip(operands[_IN_PLACE[op] :], values, strict=False)
        yield from (Reuse(leaves[0], value, step) for leaves, value in pairs if len(leaves) == 1)
    if node in code.has_aliasing:
        yield from _declared(code, execution)
    if op == "fusion":
        yield from _updated_inside(code, execution)


def may_share(code: Instructions, execution: Execution) -> Iterator[Reuse]:
    """Operands that an output may be written over element by element, in the order in which XLA tries them."""
    node, step, operands, values = execution
    for number, output in _shareable_operands(code, node):
        if number < len(operands) and len(operands[number]) == 1:
            for value in values if output < 0 else values[output : output + 1]:
                yield Reuse(operands[number][0], value, step, number)


def _shareable_operands(code: Instructions, node: int) -> list[tuple[int, int]]:
    """The numbers of operands, and of the output that each may give its place to; -1 for any."""
    op, operands = code.op[node], code.operands(node)
    if op in _ELEMENTWISE:
        return [(number, -1) for number in range(len(operands))]
    if op == "sort":  # each array is sorted where it is, unless it is an operand twice
        return [(number, number) for number, operand in enumerate(operands) if operands.count(operand) == 1]
    if op in _MAY_BE_IN_PLACE:
        number = _MAY_BE_IN_PLACE[op]
        return [(number, -1)] if number < len(operands) and operands.count(operands[number]) == 1 else []
    if op != "fusion":
        return []
    sort = _wrapped_sort(code, node)
    if sort >= 0:
        arrays = code.operands(sort)
        numbers = [code.parameter_number[array] if arrays.count(array) == 1 else -1 for array in arrays]
        return [(number, output) for output, number in enumerate(numbers) if number >= 0]
    return [(number, -1) for number in _shareable_parameters(code, node)]


def _wrapped_sort(code: Instructions, node: int) -> int:
    """The sort that a fusion is, as a GPU's compiler wraps it with the indices that it sorts along; -1 for none."""
    if code.fusion_kind(node) != "kCustom":
        return -1
    root = code.root(code.fused(node))
    return root if root >= 0 and code.op[root] == "sort" else -1


def _shareable_parameters(code: Instructions, node: int) -> list[int]:
    """The parameters of a fusion that it reads so that it may write over them."""
    inside, kind = code.fused(node), code.fusion_kind(node)
    parameters = code.parameters(inside)
    # A TPU's kOutput is most of what it runs, and writes over what is added to its product as any other fusion does.
    if kind in ("kLoop", "kInput") or (kind == "kOutput" and code.is_tiled(node)):
        free = _elementwise_uses(code, inside)
        return [number for number in sorted(parameters) if parameters[number] in free]
    root = code.root(inside)
    if kind == "kOutput" and code.op[root] == "add":  # a product that is added to what is there
        terms = code.operands(root)
        if any(code.op[term] in ("dot", "convolution") for term in terms):
            return [number for number, at in sorted(parameters.items()) if at in terms]
    return []


def _elementwise_uses(code: Instructions, nodes: Sequence[int]) -> set[int]:
    """The nodes of a fusion that are read element by element, all the way to its outputs."""
    free = set(nodes)
    for node in reversed(nodes):
        if node not in free or not (code.op[node] in _THROUGH or code.keeps_tiles(node)):
            operands = code.operands(node)
            updates = node in free and code.op[node] == "dynamic-update-slice"
            free.difference_update(operands[1:] if updates else operands)
    return free


def _declared(code: Instructions, execution: Execution) -> Iterator[Reuse]:
    """What an instruction itself says it writes over."""
    node, step, operands, values = execution
    text = code.graph.attribute_table.get(node, "output_to_operand_aliasing")
    for alias in aliases(text):
        if alias.operand < len(operands):
            output = _part(code, node, values, alias.output)
            operand = _part(code, code.operands(node)[alias.operand], operands[alias.operand], alias.element)
            yield from (Reuse(*pair, step) for pair in zip(operand[:1], output[:1], strict=False))


def _updated_inside(code: Instructions, execution: Execution) -> Iterator[Reuse]:
    """The parameters of a fusion that an update inside it writes into, where that is an output of the fusion's."""
    node, step, operands, values = execution
    inside = code.fused(node)
    root = code.root(inside)
    if root < 0:
        return
    roots = code.operands(root) if code.op[root] == "tuple" else [root]
    for value, output in zip(values, roots, strict=False):
        update = code.behind_bitcasts(output)
        if code.op[update] not in ("dynamic-update-slice", "scatter") or not code.operands(update):
            continue
        into = code.behind_bitcasts(code.operands(update)[0])
        number = code.parameter_number[into] if code.op[into] == "parameter" else -1
        if 0 <= number < len(operands) and len(operands[number]) == 1:
            yield Reuse(operands[number][0], value, step)


def _part(code: Instructions, node: int, values: Leaves, element: int) -> Leaves:
    return values if element < 0 else values[code.shape(node).element(element)]


def _place(part: Nested) -> tuple[int, int]:
    """Of `(2, {4})`, what is aliased: number and element; -1 where there is none."""
    if not isinstance(part, tuple):
        return -1, -1
    numbers: Iterable[Nested] = part[:1]
    number = next((int(text) for text in numbers if isinstance(text, str) and text.isdecimal()), -1)
    return number, _first(part[1]) if len(part) > 1 else -1


def _first(path: Nested) -> int:
    """The first number of a path into a tuple, -1 for the whole."""
    first = path[0] if path and isinstance(path, tuple) else ""
    return int(first) if isinstance(first, str) and first.isdecimal() else -1
