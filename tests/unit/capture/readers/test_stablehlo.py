"""The StableHLO reader, held against MLIR's own walk of the module."""

import jax
import pytest

from explorer import UnreadableTextError
from explorer.capture.readers.stablehlo import read_stablehlo
from tests.support.functions import FUNCTIONS
from tests.support.mlir_oracle import operations


def lowered(case):
    function, *args = FUNCTIONS[case]
    return jax.jit(function).lower(*args)


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


def test_an_operation_with_regions_knows_its_type_and_place():
    graph = read_stablehlo(lowered("while").as_text(debug_info=True))
    (loop,) = graph.where("op == 'stablehlo.while'")
    assert loop.type == "tensor<i32>, tensor<4x4xf32>"
    assert loop.source[0].function == "countdown"
    carried = [node.type for node in graph.nodes if node.op == "parameter" and node.group.kind == "body"]
    assert carried == ["tensor<i32>", "tensor<4x4xf32>"]


def test_a_function_of_another_name_hangs_under_its_call():
    graph = read_stablehlo(GENERIC)
    assert [(group.name, group.kind) for group in graph.groups] == [("main", "entry"), ("my function", "function")]
    call = graph.nodes and next(node for node in graph.nodes if node.op == "func.call")
    assert graph.groups[1].caller == call.index
    assert [o.name for o in call.operands] == ["%0"]


def test_a_person_may_break_lines_and_comment():
    graph = read_stablehlo(HAND_WRITTEN)
    assert graph.unread == ()
    named = {node.name: node for node in graph.nodes}
    assert named["%sum"].type == "tensor<2x4xf32>"
    assert [o.name for o in named["%sum"].operands] == ["%x"]
    assert named["%2"].op == "my_dialect.op"
    assert [o.name for o in named["%2"].operands] == ["%sum", "%y"]
    assert [o.name for o in named["%3"].operands] == ["%2", "%2"]


def test_old_locations_and_fused_ones_are_read():
    graph = read_stablehlo(LOCATED)
    first, second, third = (node for node in graph.nodes if node.op == "stablehlo.tanh")
    assert (first.scope, str(first.source[0])) == ("jit(f)/jit(main)/tanh", "/a b/model.py:12")
    assert (second.scope, str(second.source[0])) == ("named", "/model.py:3 (f)")
    assert third.source == ()


GENERIC = """
"builtin.module"() <{sym_name = "m"}> ({
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<4xf32>):
    %0 = "stablehlo.tanh"(%arg0) {note = "%arg9 (not an operand)"} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "func.call"(%0) <{callee = @"my function"}> : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%1) : (tensor<4xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "my function"}> ({
  ^bb0(%arg0: tensor<4xf32>):
    "func.return"(%arg0) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
"""
HAND_WRITTEN = """
// CHECK-LABEL: func @main
func.func @main(%x: tensor<2x4xf32>, %y: tensor<!quant.uniform<i8:f32, 0.1>>) -> tensor<2x4xf32> {
  %sum = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %0 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) {
    replica_groups = dense<[[0], [1]]> : tensor<2x1xi64>,
    channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>
  } : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2:2 = my_dialect.op %sum, %y {key = "text with ) and %x"}
      : (tensor<2x4xf32>, tensor<!quant.uniform<i8:f32, 0.1>>) -> (tensor<2x4xf32>, i32)
  %3 = "stablehlo.concatenate"(%2#0,
      %2#0) <{dimension = 0 : i64}> : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  func.return %3 : tensor<4x4xf32>
}
"""
LOCATED = """
module @m {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<4xf32> loc("jit(f)/jit(main)/tanh"("/a b/model.py":12:3))
    %1 = stablehlo.tanh %0 : tensor<4xf32> loc(#loc3)
    %2 = stablehlo.tanh %1 : tensor<4xf32> loc(unknown)
    return %2 : tensor<4xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc1 = loc("/model.py":3:0)
#loc2 = loc("f"(#loc1))
#loc3 = loc(fused<#meta>[#loc, "named"(#loc2)])
"""


def test_text_that_is_no_stablehlo_is_refused():
    with pytest.raises(UnreadableTextError, match="starts with 'hello'"):
        read_stablehlo("hello")
