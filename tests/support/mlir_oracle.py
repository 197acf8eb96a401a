"""What MLIR's own parser reads of a module, to hold ours against."""

from explorer.capture.readers.stablehlo import read_stablehlo

__all__ = ["assert_read_as_mlir_does", "operations"]


def operations(operation):
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation.name
                yield from operations(inner.operation)


def assert_read_as_mlir_does(low):
    """The generic form names every operation as MLIR walks them."""
    operation = low.compiler_ir().operation
    declarations = ("func.func", "builtin.module", "sdy.mesh")  # of the module; they compute nothing
    walked = sorted(name for name in operations(operation) if name not in declarations)
    generic = read_stablehlo(operation.get_asm(print_generic_op_form=True, enable_debug_info=True))
    assert generic.unread == ()
    assert sorted(node.op for node in generic.nodes if node.op != "parameter") == walked
    short = read_stablehlo(low.as_text(debug_info=True))
    assert short.unread == ()
    # `applies stablehlo.add` prints a reduction's region (the operation and its return) inside its own line.
    folded = low.as_text().count(" applies ")
    assert sum(node.op != "parameter" for node in short.nodes) == len(walked) - 2 * folded
    # Edges: what MLIR counts, without the operands of what is folded.
    assert len(generic.operand) == sum(map(len_of_operands, _all(operation)))


def _all(operation):
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
                yield from _all(inner.operation)


def len_of_operands(operation):
    return len(operation.operands)
