"""What the text of an MLIR operation says beside its operands, and of types: both forms, as the dialects print them."""

import pytest

from explorer.capture.readers.mlir_text import (
    loop_arguments,
    names_unread_arguments,
    read_attributes,
    read_dictionary,
    result_shardings,
    result_type,
    signature_of,
    skeleton,
    unpaired,
)


@pytest.mark.parametrize(
    ("body", "text", "results"),
    [
        (" %0, %1 : tensor<f32>", " %, %", ""),
        (" %0#1, %a_b#0 : tensor<f32>", " %, %", "1,0"),
        (" %0, %1#2 : tensor<f32>", " %, %", "0,2"),
        # The colon of a number is none of a type.
        ("(%0) {dim = 0 : i64}", "(%) {dim = 0 : i64}", ""),
        ("(%0) {dim = 0 : i64} : (tensor<f32>) -> tensor<f32>", "(%) {dim = 0 : i64}", ""),
        ("(%0) ({", "(%) ", ""),
        ("(%0) {", "(%) ", ""),
        (' @f {note = "#1"}', ' @f {note = "#1"}', ""),
    ],
)
def test_what_is_left_without_names_and_types(body, text, results):
    assert skeleton(body) == (text, results)


@pytest.mark.parametrize(
    ("op", "text", "pairs"),
    [
        ("stablehlo.constant", " dense<[1.0, 2.0]>", {"value": "dense<[1.0, 2.0]>"}),
        ("stablehlo.compare", " LT, %, %, FLOAT", {"comparison_direction": "LT", "compare_type": "FLOAT"}),
        ("stablehlo.compare", " EQ, %, %", {"comparison_direction": "EQ"}),
        ("stablehlo.slice", " % [0:2, 0:4:2]", {"slice": "[0:2, 0:4:2]"}),
        ("stablehlo.rng", " %, %, %, distribution = UNIFORM", {"distribution": "UNIFORM"}),
        ("stablehlo.transpose", " %, dims = [1, 0]", {"dims": "[1, 0]"}),
        (
            "stablehlo.dot_general",
            " %, %, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT]",
            {"batching_dims": "[0] x [0]", "contracting_dims": "[2] x [1]", "precision": "[DEFAULT, DEFAULT]"},
        ),
        (
            "stablehlo.reduce",
            "(% init: %) applies stablehlo.add across dimensions = [0, 1]",
            {"applies": "stablehlo.add", "dimensions": "[0, 1]"},
        ),
        (
            "stablehlo.custom_call",
            ' @Sharding(%) {backend_config = "", mhlo.sharding = "{replicated}"}',
            {"backend_config": "", "mhlo.sharding": "{replicated}", "call_target_name": "Sharding"},
        ),
        ("func.call", ' @"a b"(%)', {"callee": "a b"}),
        ("func.call", " @f(%, %)", {"callee": "f"}),
        ("stablehlo.composite", ' "x.y" % {decomposition = @f}', {"decomposition": "@f", "name": "x.y"}),
        (
            '"stablehlo.gather"',
            "(%, %) <{indices_are_sorted = false, slice_sizes = array<i64: 1, 3>}> {mhlo.note = 3 : i32}",
            {"indices_are_sorted": "false", "slice_sizes": "array<i64: 1, 3>", "mhlo.note": "3"},
        ),
        ("stablehlo.iota", " dim = 1", {"dim": "1"}),
        ("any.op", " one, % two, three", {"arguments": "one, two, three"}),
        ("any.op", " ()", {}),
        ("any.op", " window = {stride = [2, 2]}", {"window": "{stride = [2, 2]}"}),
        ("any.op", "", {}),
    ],
)
def test_the_attributes_of_an_operation(op, text, pairs):
    assert dict(read_attributes(op, text)) == pairs


def test_a_dictionary_is_read_without_quotes_and_the_types_of_scalars():
    text = r'a = 1 : i64, b = "x, \"y\"", c, d = true : i1, e = dense<1> : tensor<1xi64>, f = -2.5e-03 : f32'
    assert read_dictionary(f"{text}, g = {{h = 1 : i8}}") == {
        "a": "1", "b": 'x, "y"', "c": "unit", "d": "true", "e": "dense<1> : tensor<1xi64>", "f": "-2.5e-03",
        "g": "{h = 1 : i8}",
    }  # fmt: skip
    assert read_dictionary("") == {}
    assert read_dictionary('a = "') == {"a": '"'}


F32, I32 = "tensor<f32>", "tensor<i32>"


@pytest.mark.parametrize(
    ("op", "body", "is_single", "type_"),
    [
        ("stablehlo.add", " %0, %1 : tensor<4xf32>", True, "tensor<4xf32>"),
        ("stablehlo.abs", " %0 : (tensor<4xi8>) -> tensor<4xf32>", True, "tensor<4xf32>"),
        ("stablehlo.sort", f"(%0, %1) : (a, b) -> ({F32}, {I32})", False, f"({F32}, {I32})"),
        ("stablehlo.select", f" %0, %1, %2 : tensor<i1>, {F32}", True, F32),  # the last is the result's
        ("stablehlo.return", f" %0, %1 : {F32}, {I32}", False, f"{F32}, {I32}"),
        ("stablehlo.custom_call", " @f() : () -> ()", False, ""),
        ("stablehlo.iota", " dim = 0", True, ""),
        ("stablehlo.transpose", "(%0) {dim = 0 : i64}", True, ""),
        ("func.constant", " @f : (tensor<f32>) -> tensor<i32>", True, "(tensor<f32>) -> tensor<i32>"),
        ("stablehlo.constant", " dense<1> : tensor<i32>", True, I32),
        ("tensor.cast", " %0 : tensor<4xf32> to tensor<?xf32>", True, "tensor<?xf32>"),
        ("tensor.extract", " %0[%1] : tensor<4xf32>", True, "f32"),
        ("tensor.extract", " %0[] : tensor<bf16>", True, "bf16"),
        ("tensor.extract", " %0[%1] : tensor<4x?xi32, #x>", True, "i32"),
        ("tensor.extract", " %0[%1] : tensor<4xindex>", True, "index"),
        ("tensor.extract", " %0[%1] : tensor<4xcomplex<f32>>", True, "complex<f32>"),
        ("tensor.dim", " %0, %1 : tensor<?xf32>", True, "index"),
        ("shape.cstr_broadcastable", " %0, %1 : x, y", True, "!shape.witness"),
        ("scf.for", " %i = %a to %b step %c iter_args(%x = %y) -> (tensor<f32>) {", True, F32),
        ("scf.for", " %i = %a to %b step %c {", False, ""),
        ("other.for", " %i = %a -> (tensor<f32>) {", True, ""),
    ],
)
def test_the_type_of_a_result_is_the_last_that_the_line_names(op, body, is_single, type_):
    assert result_type(op, body, is_single=is_single) == type_


@pytest.mark.parametrize(
    ("op", "body", "arguments"),
    [
        ("stablehlo.while", f"(%i = %a, %j = %b) : {I32}, {F32}", [("i", "a", I32), ("j", "b", F32)]),
        ("stablehlo.while", f"(%i = %a) : {I32} attributes {{x = 1}}", [("i", "a", I32)]),
        ("stablehlo.while", f"(%i = %a, %j = %b) : {I32}", [("i", "a", ""), ("j", "b", "")]),  # of which is not known
        ("stablehlo.while", "", []),
        ("stablehlo.add", f" %a = %b : {I32}", []),
        ("scf.while", f" (%i = %a) : ({I32}) -> {F32} {{", [("i", "a", I32)]),
        ("scf.for", " %i = %a to %b step %c {", [("i", "a", "index")]),
        ("scf.for", " %i = %a to %b step %c : i32 {", [("i", "a", "i32")]),
        (
            "scf.for",
            f" %i = %a to %b step %c iter_args(%x = %y, %z = 0) -> ({F32}, {I32}) {{",
            [("i", "a", "index"), ("x", "y", F32), ("z", "0", I32)],
        ),
    ],
)
def test_what_a_loop_carries(op, body, arguments):
    assert [tuple(argument) for argument in loop_arguments(op, body)] == arguments


def test_a_region_whose_arguments_are_named_another_way_is_seen():
    assert names_unread_arguments("any.loop", " (%i, %j) = (%a, %b) to (%c)")
    assert not names_unread_arguments("stablehlo.while", "(%i = %a)")
    assert not names_unread_arguments("scf.for", " %i = %a to %b")
    assert not names_unread_arguments("any.loop", "(%a)")


@pytest.mark.parametrize(
    ("line", "signature"),
    [
        ("func.func @f(%a: tensor<f32>) -> tensor<f32> {", "func.func @f(%a: tensor<f32>)"),
        ("func.func @f(%a: tensor<f32>) {", "func.func @f(%a: tensor<f32>) {"),
        (
            "func.func @f(%a: t<(d0) -> (d0)>, %b: t) -> (t, t) {",
            "func.func @f(%a: t<(d0) -> (d0)>, %b: t)",
        ),
        ('func.func @f(%a: t {n = ")"}, %b: x<(d) -> (d)>) -> t', 'func.func @f(%a: t {n = ")"}, %b: x<(d) -> (d)>)'),
        ("a -> b -> c", "a -> b -> c"),
    ],
)  # fmt: skip
def test_a_signature_ends_with_its_arguments(line, signature):
    assert signature_of(line) == signature


@pytest.mark.parametrize(
    ("results", "shardings"),
    [
        (f"-> {F32}", ""),
        (f'-> ({F32} {{mhlo.sharding = "{{replicated}}"}})', "{replicated}"),
        (f"-> ({F32}, {F32} {{sdy.sharding = #sdy.sharding<@mesh, [{{}}]>}})", "|<@mesh, [{}]>"),
        ("", ""),
    ],
)
def test_the_shardings_of_results(results, shardings):
    assert result_shardings(results) == shardings


def test_pairs_are_put_in_the_order_of_a_reductions_operands():
    assert unpaired(["a", "b", "c", "d"]) == ["a", "c", "b", "d"]
