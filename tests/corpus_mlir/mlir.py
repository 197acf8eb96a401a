"""MLIR's parser, as jaxlib has it, in a child process: some texts end the process that parses them."""

import pickle
import subprocess
import sys
from typing import NamedTuple


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
    texts = list(texts)
    at = 0
    while at < len(texts):
        with subprocess.Popen(
            [sys.executable, "-c", "from tests.corpus_mlir.mlir import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as child:
            try:
                while at < len(texts):
                    pickle.dump(texts[at], child.stdin)
                    child.stdin.flush()
                    found = pickle.load(child.stdout)
                    yield found if isinstance(found, str) else [Operation(*each) for each in found]
                    at += 1
            except (EOFError, BrokenPipeError):
                yield "MLIR's parser ended its process"
                at += 1


def main():
    """Answer one pickled text after the other."""
    while True:
        try:
            text = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(_parse(text), sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _parse(text):
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
