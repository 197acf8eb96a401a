"""What MLIR's parser, as jaxlib has it, reads."""

from typing import NamedTuple

from tests.support.parser_child import answers


class Operation(NamedTuple):
    """What MLIR read, an operation or an argument of a block, in the text's order.

    Args:
        name: With its dialect; `parameter` for an argument.
        operands: Positions among all.
        types: Of its results, with aliases written out.
        depth: How many operations are around it.
    """

    name: str
    operands: tuple[int, ...]
    types: tuple[str, ...]
    depth: int


def parse_all(texts):
    """For each text the operations, or a string that says why there are none."""
    for answer in answers(__name__, texts):
        yield answer if isinstance(answer, str) else [Operation(*each) for each in answer]


def parse(text):
    """The operations as plain tuples, or what MLIR says."""
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir

    try:
        with mlir.make_ir_context() as context, ir.Location.unknown():
            context.allow_unregistered_dialects = True
            return _Walk(ir).of(ir.Module.parse(text).operation)
    except Exception as error:
        return str(error)[:300]


class _Walk:
    def __init__(self, ir):
        self.ir, self.found, self.position = ir, [], {}

    def of(self, module):
        self.visit(module, 0)
        return [tuple(entry) if isinstance(entry, Operation) else self.operation(*entry) for entry in self.found]

    def visit(self, operation, depth):
        for region in operation.regions:
            for block in region.blocks:
                for number, argument in enumerate(block.arguments):
                    self.position["argument", hash(block), number] = len(self.found)
                    self.found.append(Operation("parameter", (), (str(argument.type),), depth))
                for inner in (each.operation for each in block.operations):
                    self.position["result", hash(inner)] = len(self.found)
                    self.found.append((inner, depth))
                    self.visit(inner, depth + 1)

    def operation(self, operation, depth):
        operands = (self.position.get(self.key(value), -1) for value in operation.operands)
        return operation.name, tuple(operands), tuple(str(result.type) for result in operation.results), depth

    def key(self, value):
        if isinstance(value, self.ir.BlockArgument):
            return "argument", hash(value.owner), value.arg_number
        return "result", hash(self.ir.OpResult(value).owner)
