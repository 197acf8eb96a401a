"""The StableHLO reader, held against MLIR's own walk of the module."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from explorer.capture.readers.stablehlo import read_stablehlo
from explorer.errors import UnreadableTextError
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
    graph = ex.open_hlo(HAND_WRITTEN).stablehlo.graph
    assert graph.unread == ()
    (total,), (own,), (both,) = (graph.where(f"op == '{op}'") for op in (
        "stablehlo.all_reduce", "my_dialect.op", "stablehlo.concatenate",
    ))  # fmt: skip
    assert total.type == "tensor<2x4xf32>"
    assert [o.op for o in total.operands] == ["parameter"]
    assert [o.op for o in own.operands] == ["stablehlo.all_reduce", "parameter"]
    assert [o.index for o in both.operands] == [own.index, own.index]


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
func.func @main(%x: tensor<2x4xf32>, %y: tensor<2x!quant.uniform<i8:f32, 0.1>>) -> tensor<4x4xf32> {
  %sum = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %0 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) {
    replica_groups = dense<[[0], [1]]> : tensor<2x1xi64>,
    channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>
  } : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2:2 = "my_dialect.op"(%sum, %y) {key = "text with ) and %x"}
      : (tensor<2x4xf32>, tensor<2x!quant.uniform<i8:f32, 0.1>>) -> (tensor<2x4xf32>, i32)
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


# As JAX prints programs, with one of each kind of line.
WHOLE = """\
module @jit_f attributes {mhlo.num_partitions = 2 : i32, note = "a"} {
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  func.func public @main(%arg0: tensor<8xf32> {jax.buffer_donor = true, mhlo.sharding = "{replicated}"} loc("x"), \
%arg1: tensor<i32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>} loc("state['n']"), %arg2: tensor<f32> \
loc("y")) -> (tensor<8xf32> {jax.result_info = "result", sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}) {
    %0:2 = stablehlo.custom_call @two(%arg0) : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) loc(#loc2)
    %1 = stablehlo.add %0#1, %arg0 : tensor<8xf32> loc(#loc3)
    %2 = call @inner(%1) : (tensor<8xf32>) -> tensor<8xf32>
    %c = stablehlo.constant dense<3> : tensor<i32>
    %3:2 = stablehlo.while(%i = %arg1, %v = %2) : tensor<i32>, tensor<8xf32>
    cond {
      %5 = stablehlo.compare LT, %i, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
    } do {
      %5 = stablehlo.add %i, %c : tensor<i32>
      stablehlo.return %5, %v : tensor<i32>, tensor<8xf32>
    }
    %4 = stablehlo.reduce(%3#1 init: %arg2) applies stablehlo.add across dimensions = [0] : \
(tensor<8xf32>, tensor<f32>) -> tensor<f32>
    return %3#1 : tensor<8xf32>
  }
  func.func private @inner(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.negate %arg0 : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
#loc1 = loc("f.py":3:8)
#loc2 = loc("jit(f)/two"("f"(#loc1)))
#loc3 = loc("jit(f)/add"(callsite("g"("g.py":1:2) at "f"(#loc1))))
"""
F8, I32 = "tensor<8xf32>", "tensor<i32>"
# Name, operation, type, group, line, operands by number.
ROWS = [
    ("%arg0", "parameter", F8, "main", 2, []),
    ("%arg1", "parameter", I32, "main", 2, []),
    ("%arg2", "parameter", "tensor<f32>", "main", 2, []),
    ("%0", "stablehlo.custom_call", f"({F8}, {F8})", "main", 3, [0]),
    ("%1", "stablehlo.add", F8, "main", 4, [3, 0]),
    ("%2", "call", F8, "main", 5, [4]),
    ("%c", "stablehlo.constant", I32, "main", 6, []),
    ("%3", "stablehlo.while", f"{I32}, {F8}", "main", 7, [1, 5]),
    ("%i", "parameter", I32, "%3 condition", 8, []),
    ("%v", "parameter", F8, "%3 condition", 8, []),
    ("%5", "stablehlo.compare", "tensor<i1>", "%3 condition", 9, [8, 6]),
    ("stablehlo.return", "stablehlo.return", "tensor<i1>", "%3 condition", 10, [10]),
    ("%i", "parameter", I32, "%3 body", 11, []),
    ("%v", "parameter", F8, "%3 body", 11, []),
    ("%5", "stablehlo.add", I32, "%3 body", 12, [12, 6]),
    ("stablehlo.return", "stablehlo.return", f"{I32}, {F8}", "%3 body", 13, [14, 13]),
    ("%4", "stablehlo.reduce", "tensor<f32>", "main", 15, [7, 2]),
    ("return", "return", F8, "main", 16, [7]),
    ("%arg0", "parameter", F8, "inner", 18, []),
    ("%0", "stablehlo.negate", F8, "inner", 19, [18]),
    ("return", "return", F8, "inner", 20, [19]),
]


def test_a_program_of_all_kinds_of_lines_row_by_row():
    graph = read_stablehlo(WHOLE)
    assert [
        (n.name, n.op, n.type, n.group.name, n.line, [operand.index for operand in n.operands]) for n in graph.nodes
    ] == ROWS
    nodes = [*graph.nodes]
    assert {n.index: n.scope for n in nodes if n.scope} == {
        0: "x", 1: "state['n']", 2: "y", 3: "jit(f)/two", 4: "jit(f)/add",
    }  # fmt: skip
    assert {n.index: [(f.function, f.line) for f in n.source] for n in nodes if n.source} == {
        3: [("f", 3)],
        4: [("g", 1), ("f", 3)],
    }
    assert {n.index: dict(n.attributes) for n in nodes if n.attributes} == {
        0: {"jax.buffer_donor": "true", "mhlo.sharding": "{replicated}"},
        1: {"sdy.sharding": '#sdy.sharding<@mesh, [{"data"}]>'},
        3: {"call_target_name": "two"},
        4: {"operand_results": "1,0"},
        5: {"callee": "inner"},
        6: {"value": "dense<3>"},
        10: {"comparison_direction": "LT", "compare_type": "SIGNED"},
        16: {"applies": "stablehlo.add", "dimensions": "[0]", "operand_results": "1,0"},
        17: {"operand_results": "1"},
    }
    assert [(group.name, group.kind, group.parent, group.caller) for group in graph.groups] == [
        ("main", "entry", -1, -1),
        ("%3 condition", "condition", 0, 7),
        ("%3 body", "body", 0, 7),
        ("inner", "function", 0, 5),
    ]
    assert graph.attributes == {
        "name": "jit_f", "mhlo.num_partitions": "2", "note": "a", "mesh": "data=4,model=2",
        "result_shardings": '<@mesh, [{"data"}]>',
    }  # fmt: skip
    assert graph.unread == ()


def test_an_argument_with_a_sharding_keeps_its_name():
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("data",))
    spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    lowered = jax.jit(lambda x, y: x + y, in_shardings=(spread, None)).lower(jnp.ones(8), jnp.ones(8))
    graph = read_stablehlo(lowered.as_text(debug_info=True))
    assert [graph[f"%arg{i}"].scope for i in (0, 1)] == ["x", "y"]


def test_a_line_that_opens_several_regions_and_cannot_be_read_leaves_the_values_of_each_apart():
    text = """module @m {
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    x = y {{ z {
    %0 = stablehlo.add %arg0, %arg0 : tensor<8xf32>
    }
    }
    return %arg0 : tensor<8xf32>
  }
}
"""
    graph = read_stablehlo(text)
    assert [node.op for node in graph.nodes] == ["parameter", "stablehlo.add", "return"]
    assert graph.unread == (2,)
