"""What the text of a type says: arrays, sizes, layouts; in a jaxpr's, HLO's and MLIR's notation."""

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.model.types import bytes_of, elements, measure_types, parse_type, sort_flops


def only(text):
    (array,) = parse_type(text).arrays
    return array


@pytest.mark.parametrize(
    ("text", "written", "shape", "count"),
    [
        ("f32[8,128]{1,0:T(8,128)}", "f32[8,128]", (8, 128), 1024),
        ("f32[]", "f32[]", (), 1),
        ("f32[0,3]", "f32[0,3]", (0, 3), 0),
        ("f32[<=8,4]", "f32[<=8,4]", (8, 4), 32),  # a dynamic size as its bound
        ("f32[b,4]", "f32[b,4]", (4,), 4),  # a symbolic one counts as one
        ("f32[32@(data,model),8@x]", "f32[32@(data,model),8@x]", (32, 8), 256),
        ("key<fry>[4]", "key<fry>[4]", (4,), 4),
        ("tensor<8x128xf32>", "f32[8,128]", (8, 128), 1024),
        ("tensor<f32>", "f32[]", (), 1),
        ("tensor<?x4xcomplex<f32>>", "complex<f32>[?,4]", (4,), 4),
        ("token[]", "token[]", (), 1),
    ],
)
def test_an_array_has_its_dimensions_as_they_are_written(text, written, shape, count):
    array = only(text)
    assert (str(array), array.shape, array.elements, elements(text)) == (written, shape, count, count)
    assert str(parse_type(text)) == written


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [
        *((f"{kind}{size}", size) for kind in "su" for size in (4, 8, 16, 32, 64)),
        *((f"f{size}", size) for size in (16, 32, 64)),
        *(("bf16", 16), ("pred", 8), ("bool", 8), ("c64", 64), ("c128", 128), ("f8e4m3fn", 8), ("i1", 8), ("i32", 32)),
        *(("token", 0), ("opaque", 0), ("complex<f32>", 64), ("complex<f64>", 128), ("index", 64)),
    ],
)
def test_an_element_has_the_bits_of_its_type(dtype, bits):
    assert only(f"tensor<4x{dtype}>" if "<" in dtype or dtype in ("i1", "index") else f"{dtype}[4]").bits == bits


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint64", "complex64", "bool", "bfloat16", "float8_e4m3fn"])
@given(shape=st.lists(st.integers(0, 9), max_size=3))
def test_without_layout_an_array_takes_as_many_bytes_as_numpys(dtype, shape):
    short = {"float32": "f32", "int8": "s8", "uint64": "u64", "complex64": "c64", "bool": "pred", "bfloat16": "bf16"}
    text = f"{short.get(dtype, 'f8e4m3fn')}[{','.join(map(str, shape))}]"
    size = np.zeros(shape, getattr(ml_dtypes, dtype, dtype)).nbytes
    assert (only(text).allocated, bytes_of(text), only(text).size_in_bits) == (size, size, 8 * size)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("s4[9]", 9),  # less than a byte takes one,
        ("s4[9]{0:E(4)}", 5),  # unless the layout packs them
        ("s4[8]{0:E(4)}", 4),
        ("u2[9]{0:E(2)}", 3),
        ("token[]", 0),
        ("f32[2,3]{1,0:T(2,4)}", 32),
        ("f32[3,3]{1,0:T(2,4)}", 64),  # two rows of tiles
        ("f32[2,3]{0,1:T(2,4)}", 2 * 2 * 4 * 4),  # three columns, of two each, in tiles of 2 × 4
        ("bf16[4,3]{1,0:T(2,4)(2,1)}", 2 * 2 * 4 * 2),
        ("f32[5]{0:T(4)}", 32),
        ("s4[5]{0:T(4)E(4)}", 4),
    ],
)
def test_what_an_array_takes_in_memory_follows_its_layout(text, size):
    assert only(text).allocated == size


@pytest.mark.parametrize(
    ("layout", "space", "order", "tiling"),
    [
        ("", 0, (), ""),
        ("{1,0}", 0, (1, 0), ""),
        ("{0,1:T(8,128)(2,1)S(1)}", 1, (0, 1), "T(8,128)(2,1)"),
        ("{1,0:S(5)}", 5, (1, 0), ""),
        ("{1,0:T(8,128)E(4)}", 0, (1, 0), "T(8,128)"),
    ],
)
def test_a_layout_has_its_order_its_tiles_and_its_space(layout, space, order, tiling):
    array = only(f"f32[8,128]{layout}")
    assert (array.memory_space, array.minor_to_major, array.tiling) == (space, order, tiling)


@pytest.mark.parametrize(
    ("one", "other", "is_alike"),
    [
        ("f32[2,3]", "f32[2,3]{1,0}", True),  # no layout is the usual one
        ("f32[2,3]", "f32[2,3]{0,1}", False),
        ("f32[2,3]", "s32[2,3]", False),
        ("f32[2,3]", "f32[3,2]", False),
        ("f32[2,3]", "f32[2,3]{1,0:S(1)}", False),
        ("f32[2,3]{1,0:T(2,4)}", "f32[3,2]{0,1:T(2,4)}", True),  # a TPU sees them as they lie
        ("f32[2,3]{1,0:T(2,4)}", "f32[3,2]{1,0:T(2,4)}", False),
        ("f32[2,3]{1,0:T(2,4)}", "f32[2,3]{1,0:T(4,4)}", False),
        ("s4[8]", "s4[8]{0:E(4)}", False),
    ],
)
def test_arrays_lie_alike_where_one_may_be_written_in_the_others_place(one, other, is_alike):
    assert only(one).is_stored_as(only(other)) is is_alike
    assert only(other).is_stored_as(only(one)) is is_alike


NESTED = "(f32[2], (s32[], (f16[3,2], pred[])), bf16[4])"


def test_the_arrays_of_a_tuple_are_flat_and_its_elements_are_known():
    type_ = parse_type(NESTED)
    assert str(type_) == "(f32[2], s32[], f16[3,2], pred[], bf16[4])"
    assert (type_.starts, len(type_)) == ((0, 1, 4), 5)
    assert [str(array) for array in type_.arrays[type_.element(1)]] == ["s32[]", "f16[3,2]", "pred[]"]
    assert [type_.arrays[type_.element(i)] for i in (-1, 3)] == [(), ()]  # there is no such element
    assert type_.arrays[type_.element(2)] == (type_.arrays[4],)
    assert (type_.bytes, type_.sizes, type_.elements) == (8 + 4 + 12 + 1 + 8, (8, 4, 12, 1, 8), 2)
    assert type_.spaces == (0,) * 5


@pytest.mark.parametrize(
    ("text", "starts", "written", "dtype"),
    [
        ("()", (), "()", ""),
        ("f32[2]", (0,), "f32[2]", "f32"),
        ("(f32[2])", (0,), "f32[2]", "f32"),
        ("((f32[2], s8[9]))", (0,), "(f32[2], s8[9])", "s8"),
        ("((), f32[2])", (0, 0), "(f32[2])", "f32"),
        ("(f64[2], f32[3])", (0, 1), "(f64[2], f32[3])", "f64"),  # that of most bytes
        ("nothing", (), "()", ""),
    ],
)
def test_a_tuple_has_an_element_for_each_that_stands_in_it(text, starts, written, dtype):
    type_ = parse_type(text)
    assert (type_.starts, str(type_), type_.dtype) == (starts, written, dtype)


def test_bits_are_added_up_before_they_become_bytes():
    assert (bytes_of("(s4[1], s4[2])"), bytes_of("s4[3]"), bytes_of("()")) == (2, 2, 0)


def test_types_are_measured_by_their_first_array_and_the_bytes_of_all():
    sizes = measure_types(["f32[2,3]", "(s8[4], f32[2])", "()", "f32[b,3]"])
    assert sizes.elements.tolist() == [6, 4, 1, 3]
    assert sizes.bytes.tolist() == [24, 12, 0, 12]
    np.testing.assert_array_equal(sizes.rank, [2, 1, np.nan, 2])


@pytest.mark.parametrize(
    ("count", "length", "flops"),
    [(1024, 1024, 10_240), (1024, 32, 5_120), (10, 5, 30), (8, 1, 0), (8, 0, 0), (3, math.nan, math.nan)],
)
def test_to_sort_takes_the_logarithm_of_a_sequence_for_each_element(count, length, flops):
    assert sort_flops(count, length) == pytest.approx(flops, nan_ok=True)
