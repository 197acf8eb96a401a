"""MLIR in the spellings that people use, printed again by MLIR: read as its parser does."""

import pytest
from jax._src.interpreters import mlir
from jax._src.lib.mlir import ir

import explorer as ex
from explorer._jax.binary_reader import printed_mlir
from explorer.capture.readers.stablehlo import read_stablehlo
from tests.corpus_mlir.compare import differences
from tests.corpus_mlir.mlir import parse_all

DECLARATIONS = ("builtin.module", "func.func", "sdy.mesh")


def walk(operation):
    for region in operation.regions:
        for block in region.blocks:
            yield from (("parameter", 0, str(argument.type)) for argument in block.arguments)
            for inner in block.operations:
                inner = inner.operation
                if inner.name not in DECLARATIONS:
                    yield inner.name, len(inner.operands), ", ".join(str(result.type) for result in inner.results)
                yield from walk(inner)


def assert_read_alike(text):
    """MLIR prints a text so that we read it as MLIR does."""
    graph = read_stablehlo(printed_mlir(text.encode()))
    with mlir.make_ir_context(), ir.Location.unknown():
        expected = list(walk(ir.Module.parse(text).operation))
    assert graph.unread == ()
    read = [(node.op.replace("func.", ""), len(node.operands)) for node in graph.nodes]
    assert read == [(name.replace("func.", ""), operands) for name, operands, _ in expected]
    for node, (_, _, type_) in zip(graph.nodes, expected, strict=True):
        if type_:  # ours of a return is that of what it returns
            assert node.type.strip("()") == type_
    return graph


SPELLINGS = {
    "two operations on a line": """
        func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
          %0 = stablehlo.add %a, %a : tensor<4xf32> %1 = stablehlo.negate %0 : tensor<4xf32>
          return %1 : tensor<4xf32>
        }""",
    "a function on one line": """
        func.func @main(%a: tensor<f32>) -> tensor<f32> { %0 = stablehlo.abs %a : tensor<f32> return %0 : tensor<f32> }
        """,
    "the generic form with its region on one line": """
        func.func @main(%a: tensor<4xf32>, %b: tensor<f32>) -> tensor<f32> {
          %0 = "stablehlo.reduce"(%a, %b) ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): %1 = stablehlo.subtract %x, %y
            : tensor<f32> "stablehlo.return"(%1) : (tensor<f32>) -> () }) {dimensions = array<i64: 0>}
            : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
          return %0 : tensor<f32>
        }""",
    "comments": """
        // %9 = stablehlo.add %a, %a
        func.func @main(%a: tensor<f32>, // the first {
                        %b: tensor<f32>) -> tensor<f32> { // begins
          %0 = stablehlo.add %a, // and
            %b : tensor<f32> // %1 = stablehlo.abs %0 : tensor<f32>
          return %0 : tensor<f32>
          // }
        }""",
    "an operation over many lines": """
        func.func @main(%a: tensor<2x3xf32>,
                        %b: tensor<3x4xf32>)
            -> tensor<2x4xf32> {
          %0 = stablehlo.dot_general
            %a, %b,
            contracting_dims = [1]
              x [0],
            precision = [DEFAULT, DEFAULT]
            : (tensor<2x3xf32>,
               tensor<3x4xf32>)
            -> tensor<2x4xf32>
          return %0
            : tensor<2x4xf32>
        }""",
    "attributes over many lines": """
        func.func @main(%a: tensor<2x3xf32>) -> tensor<3x2xf32> {
          %0 = "stablehlo.transpose"(%a) {
            permutation = array<i64: 1, 0>,
            mhlo.note = "a } b {"
          } : (tensor<2x3xf32>) -> tensor<3x2xf32>
          return %0 : tensor<3x2xf32>
        }""",
    "spaces before colons and none": """
        func.func @main(%a : tensor<f32>, %b : tensor<f32>) -> tensor<f32> {
          %0 = "stablehlo.add"(%a, %b) {note = 1 : i64}: (tensor<f32>, tensor<f32>) -> tensor<f32>
          func.return %0: tensor<f32>
        }""",
    "a loop in its short form, joined": """
        func.func @main(%a: tensor<i32>) -> tensor<i32> {
          %n = stablehlo.constant dense<3> : tensor<i32>
          %0 = stablehlo.while(%i = %a) : tensor<i32> cond { %1 = stablehlo.compare LT, %i, %n
              : (tensor<i32>, tensor<i32>) -> tensor<i1>
            stablehlo.return %1 : tensor<i1> } do { %1 = stablehlo.add %i, %n : tensor<i32>
            stablehlo.return %1 : tensor<i32> }
          return %0 : tensor<i32>
        }""",
    "two regions, a brace on a line of its own": """
        func.func @main(%p: tensor<i1>, %a: tensor<f32>) -> tensor<f32> {
          %0 = "stablehlo.if"(%p) ({
            stablehlo.return %a : tensor<f32>
          },
          {
            %1 = stablehlo.negate %a : tensor<f32>
            stablehlo.return %1 : tensor<f32>
          }
          ) : (tensor<i1>) -> tensor<f32>
          return %0 : tensor<f32>
        }""",
    "two functions in a module on few lines": """
        module @m attributes {mhlo.num_partitions = 1 : i32} { func.func @main(%a: tensor<f32>) -> tensor<f32> {
          %0 = call @f(%a) : (tensor<f32>) -> tensor<f32> return %0 : tensor<f32> } func.func private @f(
          %a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> } }""",
    "a constant over lines": """
        func.func @main() -> tensor<2x2xi32> {
          %0 = stablehlo.constant dense<[[1, 2],
                                         [3, 4]]> : tensor<2x2xi32>
          return %0 : tensor<2x2xi32>
        }""",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_is_read_as_mlir_reads_it(spelling):
    assert_read_alike(SPELLINGS[spelling])


OTHERS = {
    "a loop of another dialect": """
        func.func @f(%x: tensor<2xf32>, %n: index) -> tensor<2xf32> {
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %y = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<2xf32>) {
            %d = tensor.dim %a, %i : tensor<2xf32>
            %b = stablehlo.add %a, %a : tensor<2xf32>
            scf.yield %b : tensor<2xf32>
          }
          %k = arith.index_cast %n : index to i32
          return %y : tensor<2xf32>
        }""",
    "a call by a value": """
        func.func @g() { return }
        func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
          %g = constant @g : () -> ()
          call_indirect %g() : () -> ()
          %y = stablehlo.add %x, %x : tensor<2xf32>
          return %y : tensor<2xf32>
        }""",
    "two arrays reduced at once": """
        func.func @f(%a: tensor<4xf32>, %b: tensor<4xi32>, %i: tensor<f32>, %j: tensor<i32>) -> tensor<f32> {
          %0:2 = stablehlo.reduce(%a init: %i), (%b init: %j) across dimensions = [0]
              : (tensor<4xf32>, tensor<4xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
            reducer(%p: tensor<f32>, %q: tensor<f32>) (%r: tensor<i32>, %s: tensor<i32>) {
            %1 = stablehlo.add %p, %q : tensor<f32>
            %2 = stablehlo.subtract %r, %s : tensor<i32>
            stablehlo.return %1, %2 : tensor<f32>, tensor<i32>
          }
          return %0#0 : tensor<f32>
        }""",
    "types with names": """
        !pair = tensor<2xf32>
        func.func @f(%x: !pair) -> !pair {
          %y = stablehlo.abs %x : !pair
          return %y : !pair
        }""",
    "an arrow inside a type": """
        func.func @f(%x: tensor<4xf32, #sparse_tensor.encoding<{ map = (d0) -> (d0 : compressed) }>>) -> tensor<4xf32> {
          %0 = "stablehlo.abs"(%x)
              : (tensor<4xf32, #sparse_tensor.encoding<{ map = (d0) -> (d0 : compressed) }>>) -> tensor<4xf32>
          return %0 : tensor<4xf32>
        }""",
}


@pytest.mark.slow
@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_what_other_dialects_print_is_read_as_mlir_reads_it(text):
    (operations,) = parse_all([text])
    assert not isinstance(operations, str), operations
    printed = printed_mlir(text.encode())
    graph = read_stablehlo(printed)
    assert not differences(printed, graph, operations)
    assert graph.unread == ()


@pytest.mark.parametrize(
    "line",
    [
        "strange %x to %y",
        "scf.parallel (%i, %j) = (%x, %x) to (%x, %x) step (%x, %x) {\n}",
        "affine.for %i = 0 to 10 {\n}",
    ],
)
def test_what_is_not_understood_is_listed_and_costs_nothing_else(line):
    text = f"func.func @f(%x: index) -> index {{\n  %y = arith.addi %x, %x : index\n{line}\n  return %y : index\n}}"
    graph = read_stablehlo(text)
    assert graph.unread == (2,)
    assert [node.op for node in graph.nodes][-1] == "return"
    assert [node.op for node in graph.nodes][1] == "arith.addi"


@pytest.mark.parametrize("line", [
    "this is no operation", "what it %y : says", "1234", "???", "%q = ???", "x = 5", "word", "%7 = word", ") : index",
    ", %x", "stray : tensor<9xf32>",
])  # fmt: skip
@pytest.mark.parametrize(
    ("type_", "location"),
    [
        ("index", ""),
        ("index", ' loc("a b"(#loc))'),
        ("tensor<2x!quant.uniform<i8:f32, 1.0>>", ""),
        ("(index, index)", ""),
    ],
)
def test_a_line_that_is_no_operation_is_no_part_of_the_one_above(line, type_, location):
    operations = f"  %y = some.thing %x : {type_}{location}\n{line}\n  return %x : index"
    text = f"func.func @f(%x: index) -> index {{\n{operations}\n}}"
    graph = read_stablehlo(text)
    assert graph.unread == (2,)
    assert [(node.op, node.type) for node in graph.nodes][1:] == [("some.thing", type_), ("return", "index")]


def test_a_text_that_people_spelled_is_shown_as_mlir_prints_it():
    capture = ex.open_hlo(SPELLINGS["attributes over many lines"])
    assert not capture.failure
    assert "as the compiler prints it" in capture.environment["text"]
    assert '    %0 = stablehlo.transpose %arg0, dims = [1, 0] {mhlo.note = "a } b {"}' in capture.stablehlo.text
    (transpose,) = capture.stablehlo.graph.where("op:transpose")
    assert dict(transpose.attributes) == {"dims": "[1, 0]", "mhlo.note": "a } b {"}
    assert transpose.line == 2
    assert transpose.source == ()


def test_a_text_that_mlir_refuses_is_shown_as_it_is_with_the_reason():
    text = "func.func @f(%x: index) -> index {\n  %y = mhlo.add %x, %x : index\n  ???\n  return %y : index\n}"
    capture = ex.open_hlo(text)
    assert capture.stablehlo.text == text
    assert [node.op for node in capture.stablehlo.graph.nodes] == ["parameter", "mhlo.add", "return"]
    assert capture.failure.startswith("1 line unread; MLIR's parser says of line 2: ")


@pytest.mark.parametrize("depth", [20_000, 100_000])
def test_a_text_that_ends_mlirs_process_is_shown_as_it_is(depth):
    text = 'func.func @f() {\n  "a.b"() {x = ' + "[" * depth + "]" * depth + "} :\n    () -> ()\n  return\n}"
    capture = ex.open_hlo(text)
    assert capture.stablehlo.text == text
    assert capture.failure == "2 lines unread; the compiler's own reader crashes on it"


def test_what_has_no_location_gets_none_where_the_rest_has_some():
    located = '%y = stablehlo.abs %x\n    : tensor<f32> loc("a"("f.py":7:1))'
    text = f"func.func @f(%x: tensor<f32>) -> tensor<f32> {{\n  {located}\n  return %y : tensor<f32>\n}}"
    graph = ex.open_hlo(text).stablehlo.graph
    assert [(node.op, [frame.line for frame in node.source]) for node in graph.nodes] == [
        ("parameter", []), ("stablehlo.abs", [7]), ("return", []),
    ]  # fmt: skip
