"""The StableHLO reader, held against MLIR's own walk of the module."""

import jax
import pytest
from test_hlo import FUNCTIONS

from explorer import UnreadableTextError
from explorer.capture.stablehlo import read_stablehlo


def lowered(case):
    function, *args = FUNCTIONS[case]
    return jax.jit(function).lower(*args)


def operations(operation):
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation.name
                yield from operations(inner.operation)


@pytest.mark.parametrize("case", FUNCTIONS)
def test_reads_the_same_operations_as_mlir(case):
    low = lowered(case)
    short = {"return": "func.return", "call": "func.call"}
    read = sorted(
        short.get(n.op, n.op) for n in read_stablehlo(low.as_text(debug_info=True)).nodes if n.op != "parameter"
    )
    declarations = ("func.func", "builtin.module", "sdy.mesh")  # of the module; they compute nothing
    walked = [name for name in operations(low.compiler_ir().operation) if name not in declarations]
    # `applies stablehlo.add` prints a reduction's region (the operation and its return) inside its own line.
    folded = low.as_text().count(" applies ")
    assert len(walked) - len(read) == 2 * folded
    assert set(read) <= set(walked)


def test_operations_know_the_users_stack_and_the_scope():
    graph = read_stablehlo(lowered("gradient").as_text(debug_info=True))
    tanh = next(n for n in graph.nodes if n.op == "stablehlo.tanh")
    assert tanh.scope.endswith("tanh")
    assert tanh.source[0].function == "loss.<locals>.body"


def test_a_loop_has_its_condition_and_body_as_groups_with_arguments_of_their_own():
    graph = read_stablehlo(lowered("while").as_text(debug_info=True))
    kinds = [group.kind for group in graph.groups]
    assert "condition" in kinds
    assert "body" in kinds
    assert all(o.group == n.group for n in graph.nodes if n.group.kind == "body" for o in n.operands)


def test_text_that_is_no_stablehlo_is_refused():
    with pytest.raises(UnreadableTextError, match="starts with 'hello'"):
        read_stablehlo("hello")
