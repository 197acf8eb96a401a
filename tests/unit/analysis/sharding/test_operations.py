"""What each operation does to how its operands lie, reasoned by hand: on a mesh of 4 × 2 devices, `data` and `model`.

`D` and `M` say that something differs along them; a device's number is twice its place along `data`, and its place
along `model`.
"""

from functools import partial

import numpy as np
import pytest

from explorer.analysis.sharding.operations import spread_of
from explorer.analysis.sharding.spread import Operation
from explorer.model.shardings import COMPUTED, CONSTANT, DeviceMesh, Spread
from explorer.model.types import parse_type

MESH = DeviceMesh(("data", "model"), (4, 2))
D, M = 1, 2
ROWS, COLUMNS, WHOLE = ((0,), ()), ((), (0,)), ((), ())
ALONG_DATA, ALONG_MODEL = "{{0,2,4,6},{1,3,5,7}}", "{{0,1},{2,3},{4,5},{6,7}}"
PLACE = np.arange(8)


def split(dims, **more):
    """What is split as `dims` say and differs along those axes alone; an argument."""
    return Spread(sum(1 << axis for axes in dims for axis in axes), dims, 0, **more)


def number(*values, axes=None):
    values = np.asarray(values if len(values) > 1 else values * 8)
    return Spread(MESH.differing(values) if axes is None else axes, (), values=values)


ZERO = number(0)


def after(op, result, *operands, **attributes):
    types, spreads = operands[::2], operands[1::2]
    return spread_of(Operation(op, parse_type(result), [parse_type(t) for t in types], attributes, MESH), spreads)


X, W = ("f32[4,8]", split(ROWS)), ("f32[8,16]", split(((), (1,))))
TAKE = {"offset_dims": "{1}", "collapsed_slice_dims": "{0}", "index_vector_dim": "1", "slice_sizes": "{1,8}"}
DOT = {"lhs_contracting_dims": "{1}", "rhs_contracting_dims": "{0}"}
BATCH = {"lhs_batch_dims": "{0}", "rhs_batch_dims": "{0}", "lhs_contracting_dims": "{2}", "rhs_contracting_dims": "{1}"}
BOTH = ((0,), (1,))


@pytest.mark.parametrize(
    ("spread", "axes", "dims"),
    [
        (partial(after, "negate", "f32[4,8]", *X), D, ROWS),
        (partial(after, "transpose", "f32[8,4]", *X, dimensions="{1,0}"), D, COLUMNS),
        (partial(after, "transpose", "f32[8,4]", "f32[4,8]", Spread(D), dimensions="{1,0}"), D, None),
        (partial(after, "broadcast", "f32[8,4]", "f32[4]", split(((0,),)), dimensions="{1}"), D, COLUMNS),
        (partial(after, "broadcast", "f32[8,4]", "f32[4]", Spread(D), dimensions="{1}"), D, None),
        # element by element: split as the operand that is; a number is no matter
        (partial(after, "add", "f32[4,8]", *X, "f32[4,8]", split(((), (1,)))), D | M, BOTH),
        (partial(after, "add", "f32[4,8]", *X, "f32[]", Spread(0, ())), D, ROWS),
        (partial(after, "add", "f32[4,8]", *X, "f32[]", Spread(M, ())), D | M, ROWS),
        (partial(after, "add", "f32[]", "f32[]", Spread(M, ()), "f32[]", Spread(0, ())), M, ()),
        (partial(after, "add", "f32[4,8]", *X, "f32[4,8]", Spread(M)), D | M, None),
        (partial(after, "add", "f32[4,8]", *X, "f32[4,8]", split(((1,), ()))), D | M, None),  # by both
        (partial(after, "add", "f32[4,8]", *X, "f32[4,8]", split(COLUMNS)), D, None),  # one axis, twice
        (partial(after, "strange", "f32[8,4]", *X), D, None),  # of another shape
        # what is summed over is split no more, and its parts differ
        (partial(after, "reduce", "f32[4]", *X, "f32[]", split(()), dimensions="{1}"), D, ((0,),)),
        (partial(after, "reduce", "f32[8]", *X, "f32[]", split(()), dimensions="{0}"), D, ((),)),
        (partial(after, "reduce", "f32[]", *X, "f32[]", split(()), dimensions="{0,1}"), D, ()),
        (partial(after, "reduce", "f32[4]", "f32[4,8]", Spread(D), "f32[]", split(()), dimensions="{1}"), D, None),
        (partial(after, "dot", "f32[4,16]", *X, *W, **DOT), D | M, BOTH),
        (partial(after, "dot", "f32[4,16]", "f32[4,8]", split(COLUMNS), "f32[8,16]", split(ROWS), **DOT), D, WHOLE),
        (partial(after, "dot", "f32[4,16]", *X, "f32[8,16]", split(COLUMNS), **DOT), D, None),
        (partial(after, "dot", "f32[4,16]", "f32[4,8]", Spread(D), *W, **DOT), D | M, None),
        (partial(after, "dot", "f32[4,16]", *X, "f32[8,16]", Spread(M), **DOT), D | M, None),
        (
            partial(after, "dot", "f32[2,4,6]", "f32[2,4,8]", split(((0,), (), ())), "f32[2,8,6]",
                    split(((), (), ())), **BATCH),
            D, ((0,), (), ()),
        ),
        (
            partial(after, "dot", "f32[2,4,6]", "f32[2,4,8]", split(((), (1,), ())), "f32[2,8,6]",
                    split(((0,), (), ())), **BATCH),
            D | M, ((0,), (1,), ()),
        ),
        (partial(after, "convolution", "f32[4,16]", *X, *W, dim_labels="bf_io->bf"), D | M, BOTH),
        (partial(after, "convolution", "f32[4,16]", *X, "f32[16,8]", split(((1,), ())), dim_labels="bf_oi->bf"),
         D | M, BOTH),
        (partial(after, "convolution", "f32[4,16]", "f32[4,8]", Spread(D), *W, dim_labels="bf_io->bf"), D | M, None),
        (partial(after, "convolution", "f32[4,16]", *X, *W), D | M, None),  # without the attribute
        # a dimension of the window lies as the operand whose size it has
        (
            partial(after, "convolution", "f32[4,5,16]", "f32[4,5,8]", split(((0,), (1,), ())), "f32[1,8,16]",
                  split(((), (), ())), dim_labels="b0f_0io->b0f"),
            D | M, ((0,), (1,), ()),
        ),
        (
            partial(after, "convolution", "f32[4,3,16]", "f32[4,1,8]", split(((0,), (), ())), "f32[3,8,16]",
                  split(((1,), (), ())), dim_labels="b0f_0io->b0f"),
            D | M, ((0,), (1,), ()),
        ),
        (
            partial(after, "convolution", "f32[4,4,16]", "f32[4,5,8]", split(((0,), (), ())), "f32[3,8,16]",
                  split(((), (), ())), dim_labels="b0f_0io->b0f"),
            D, None,
        ),
        (partial(after, "reshape", "f32[32]", *X), D, ((0,),)),
        (partial(after, "reshape", "f32[32]", "f32[4,8]", split(COLUMNS)), D, None),
        (partial(after, "reshape", "f32[32]", "f32[4,8]", Spread(D)), D, None),
        (partial(after, "reshape", "f32[]", "f32[1]", split(((0,),))), D, None),
        (partial(after, "bitcast", "f32[8,4]{1,0}", "f32[4,8]{0,1}", split(ROWS)), D, COLUMNS),
        (partial(after, "bitcast", "f32[32]", "f32[4,8]", Spread(D)), D, None),
        # what is cut, filled or turned must be whole
        (partial(after, "slice", "f32[4,4]", *X), D, ROWS),
        (partial(after, "slice", "f32[2,8]", *X), D, None),
        (partial(after, "pad", "f32[4,9]", *X, "f32[]", split(())), D, ROWS),
        (partial(after, "pad", "f32[5,8]", *X, "f32[]", split(())), D, None),
        (partial(after, "reverse", "f32[4,8]", *X, dimensions="{1}"), D, ROWS),
        (partial(after, "reverse", "f32[4,8]", *X, dimensions="{0}"), D, None),
        (partial(after, "reverse", "f32[4,8]", "f32[4,8]", Spread(D), dimensions="{1}"), D, None),
        (partial(after, "sort", "f32[4,8]", *X, dimensions="{1}"), D, ROWS),
        (partial(after, "sort", "f32[4,8]", *X, dimensions="{0}"), D, None),
        (partial(after, "concatenate", "f32[4,16]", *X, *X, dimensions="{1}"), D, ROWS),
        (partial(after, "concatenate", "f32[8,8]", *X, *X, dimensions="{0}"), D, None),
        (partial(after, "concatenate", "f32[4,16]", *X, "f32[4,8]", Spread(M), dimensions="{1}"), D | M, None),
        # rows of a table are taken: by split indices, of split columns
        (
            partial(after, "gather", "f32[4,8]", "f32[9,8]", split(((), (1,))), "s32[4]", split(((0,),)), **TAKE),
            D | M, BOTH,
        ),
        (
            partial(after, "gather", "f32[4,8]", "f32[9,8]", split(((1,), ())), "s32[4]", split(((0,),)), **TAKE),
            D | M, None,
        ),
        (
            partial(after, "gather", "f32[4,8]", "f32[9,8]", split(((), (0,))), "s32[4]", split(((0,),)), **TAKE),
            D, None,
        ),
        (
            partial(after, "gather", "f32[4,8]", "f32[9,8]", Spread(M), "s32[4]", split(((0,),)), **TAKE),
            D | M, None,
        ),
        (partial(after, "scatter", "f32[4,8]", *X, "s32[1]", split(((),)), "f32[1,8]", split(WHOLE)), D, ROWS),
        (partial(after, "scatter", "f32[4,8]", *X, "s32[1]", split(((),)), "f32[1,8]", Spread(M, WHOLE)), D | M, None),
        # nothing is known of a rule whose operand isn't there
        (partial(after, "dot", "f32[4,16]", *X, **DOT), D, None),
    ],
)  # fmt: skip
def test_how_a_result_lies(spread, axes, dims):
    spread = spread()
    assert (spread.axes, spread.dims) == (axes, dims)


def cut(*indices, whole=WHOLE, result="f32[2,8]"):
    return after("dynamic-slice", result, "f32[8,8]", split(whole), *(part for at in indices for part in ("s32[]", at)))


def put(*indices, whole=WHOLE, part=WHOLE, of="f32[2,8]"):
    given = (part for at in indices for part in ("s32[]", at))
    return after("dynamic-update-slice", "f32[8,8]", "f32[8,8]", split(whole), of, split(part), *given)


@pytest.mark.parametrize(
    ("spread", "axes", "dims"),
    [
        (partial(cut, ZERO, ZERO), 0, WHOLE),
        # each device takes the two rows of its place along data
        (partial(cut, number(*PLACE // 2 * 2), ZERO), D, ROWS),
        # or one row by both, or along model four
        (partial(cut, number(*PLACE), ZERO, result="f32[1,8]"), D | M, ((0, 1), ())),
        (partial(cut, number(*PLACE % 2 * 4), ZERO, result="f32[4,8]"), M, ((1,), ())),
        (partial(cut, ZERO, number(*PLACE % 2 * 4), result="f32[8,4]"), M, ((), (1,))),
        # in another order, at another distance, or nobody knows where
        (partial(cut, number(*PLACE[::-1] // 2 * 2), ZERO), D, None),
        (partial(cut, number(*PLACE // 2), ZERO), D, None),
        (partial(cut, number(*PLACE % 4 * 2), ZERO), D | M, None),
        (partial(cut, Spread(D, ()), ZERO), D, None),
        # what is split already is cut anywhere
        (partial(cut, ZERO, ZERO, whole=ROWS), D, None),
        (partial(cut, ZERO, ZERO, whole=COLUMNS), D, COLUMNS),
        # an index into a dimension that is taken whole moves nothing
        (partial(cut, ZERO, Spread(M, ())), 0, WHOLE),
        (partial(put, ZERO, ZERO), 0, WHOLE),
        (partial(put, ZERO, Spread(M, ())), 0, WHOLE),
        (partial(put, Spread(M, ()), ZERO), M, None),
        (partial(put, ZERO, ZERO, whole=COLUMNS, part=COLUMNS), D, COLUMNS),
        (partial(put, ZERO, ZERO, part=COLUMNS), D, COLUMNS),
        (partial(put, ZERO, ZERO, whole=ROWS), D, None),
        (partial(put, ZERO, ZERO, whole=COLUMNS, part=((), (1,))), D | M, None),
    ],
)
def test_how_a_part_lies_that_is_cut_out_or_put_in(spread, axes, dims):
    spread = spread()
    assert (spread.axes, spread.dims) == (axes, dims)


RING = "{{0,2},{2,4},{4,6},{6,0},{1,3},{3,5},{5,7},{7,1}}"


def collective(op, dims, axes=None, groups=ALONG_DATA, at="{0}", **more):
    given = split(dims) if axes is None else Spread(axes, dims, 0)
    more = more or {"replica_groups": groups}
    return after(op, "f32[4,8]", "f32[4,8]", given, dimensions=at, **more)


@pytest.mark.parametrize(
    ("spread", "axes", "dims", "gathered"),
    [
        (partial(collective, "all-reduce", WHOLE, D | M), M, WHOLE, 0),
        (partial(collective, "all-reduce", BOTH), M, ((), (1,)), 0),
        (partial(collective, "all-reduce", BOTH, groups="{}"), 0, WHOLE, 0),
        (partial(collective, "all-reduce", BOTH, groups="{{0,1,2,3,4,5,6,7}}"), 0, WHOLE, 0),
        (partial(collective, "all-reduce", BOTH, groups="who knows"), D | M, BOTH, 0),
        (partial(collective, "collective-broadcast", BOTH), M, ((), (1,)), 0),
        (partial(collective, "all-gather", ROWS), 0, WHOLE, D),
        (partial(collective, "all-gather", BOTH), M, ((), (1,)), D),
        (partial(collective, "all-gather", ((0, 1), ()), groups=ALONG_MODEL), D, ROWS, M),
        (partial(collective, "all-gather", ((0, 1), ())), M, None, D),  # the slower of two: parts lie apart
        (partial(collective, "all-gather", ((1, 0), ()), groups=ALONG_MODEL), D, None, M),
        (partial(collective, "all-gather", ROWS, groups=ALONG_MODEL), D, ROWS, 0),  # all had the same
        (partial(collective, "reduce-scatter", WHOLE, D), D, ROWS, 0),
        (partial(collective, "reduce-scatter", ((), (1,)), D | M), D | M, BOTH, 0),
        (partial(collective, "reduce-scatter", ((1,), ()), D | M), D | M, ((1, 0), ()), 0),
        (partial(collective, "reduce-scatter", WHOLE, M, groups=ALONG_MODEL), M, ((1,), ()), 0),
        (partial(collective, "reduce-scatter", WHOLE, D, at="{1}"), D, COLUMNS, 0),
        (partial(collective, "all-to-all", ((), (1,))), D | M, None, 0),
        (partial(collective, "ragged-all-to-all", ROWS), D, None, 0),
        (partial(collective, "collective-permute", ROWS, source_target_pairs=RING), D, ROWS, 0),
        (partial(collective, "collective-permute", ((), (1,)), source_target_pairs=RING), M, ((), (1,)), 0),
        # some are sent nothing and have zeros
        (partial(collective, "collective-permute", ((), (1,)), source_target_pairs="{{0,2},{2,4}}"), D | M, None, 0),
        (partial(collective, "collective-permute", WHOLE, source_target_pairs="{{0,1}}"), M, None, 0),
        (partial(collective, "collective-permute", WHOLE, source_target_pairs="{}"), D | M, None, 0),
    ],
)
def test_what_a_collective_does(spread, axes, dims, gathered):
    spread = spread()
    assert (spread.axes, spread.dims, spread.gathered) == (axes, dims, gathered)


def test_where_a_gathered_dimension_goes_is_remembered():
    whole = collective("all-gather", ROWS)
    assert whole.marks == ((0,), ())
    assert collective("all-gather", ((), (1,)), groups=ALONG_MODEL, at="{1}").marks == ((), (1,))
    turned = after("transpose", "f32[8,4]", "f32[4,8]", whole, dimensions="{1,0}")
    assert (turned.marks, turned.gathered, turned.source) == (((), (0,)), D, 0)
    both = after("add", "f32[8,4]", "f32[8,4]", turned, "f32[8,4]", split(((), (1,))))
    assert (both.marks, both.gathered, both.axes) == (((), (0,)), D, M)
    # what differs along an axis again isn't gathered along it
    assert after("add", "f32[4,8]", "f32[4,8]", whole, *X).gathered == 0
    assert after("sort", "f32[4,8]", "f32[4,8]", whole).marks == ((0,), ())
    assert after("transpose", "f32[8,4]", "f32[4,8]", whole, dimensions="{1,5}").marks is None


def test_the_other_dimensions_of_what_is_gathered_or_scattered_stay():
    three, rows = "f32[4,8,2]", ((0,), (), ())
    groups = {"replica_groups": ALONG_DATA, "dimensions": "{0}"}
    assert after("all-gather", "f32[16,8,2]", three, split(rows), **groups).marks == rows
    assert after("reduce-scatter", "f32[1,8,2]", three, Spread(D, ((), (), ()), 0), **groups).dims == rows
    # what all have alike isn't gathered
    assert collective("all-gather", ((), (1,))).marks == WHOLE


# Halves of `data`: its places 0 and 2, 1 and 3; and its neighbours.
FAR, NEAR = "{{0,4},{1,5},{2,6},{3,7}}", "{{0,2},{1,3},{4,6},{5,7}}"


def test_two_gathers_along_the_parts_of_an_axis_make_a_value_the_same_along_it():
    far = collective("all-gather", ROWS, groups=FAR)
    assert (far.axes, far.dims, far.gathered, far.classes) == (D, None, 0, (0, 0, 1, 1, 0, 0, 1, 1))
    again = after("all-gather", "f32[16,8]", "f32[8,8]", far, replica_groups=FAR, dimensions="{0}")
    assert (again.axes, again.classes) == (D, (0, 0, 1, 1, 0, 0, 1, 1))
    whole = after("all-gather", "f32[16,8]", "f32[8,8]", far, replica_groups=NEAR, dimensions="{0}")
    assert (whole.axes, whole.dims, whole.gathered, whole.classes) == (0, None, D, None)
    # one place along data further, the other half has it
    sent = after("collective-permute", "f32[8,8]", "f32[8,8]", far, source_target_pairs=RING)
    assert (sent.axes, sent.classes) == (D, (1, 1, 0, 0, 1, 1, 0, 0))
    # groups that leave devices out prove nothing
    assert collective("all-gather", ROWS, groups="{{0,4}}").axes == D


@pytest.mark.parametrize(
    ("spread", "source"),
    [
        (partial(after, "convert", "bf16[4,8]", *X), 0),
        (partial(after, "transpose", "f32[8,4]", *X, dimensions="{1,0}"), 0),
        (partial(after, "slice", "f32[4,4]", *X), 0),
        (partial(after, "negate", "f32[4,8]", *X), COMPUTED),
        (partial(after, "add", "f32[4,8]", *X, "f32[4,8]", Spread(0, WHOLE, CONSTANT)), COMPUTED),
        (
            partial(after, "add", "f32[4,8]", "f32[4,8]", Spread(0, WHOLE, CONSTANT), "f32[]", Spread(0, (), CONSTANT)),
            CONSTANT,
        ),
        (partial(after, "iota", "s32[4]"), CONSTANT),
        (partial(collective, "all-gather", ROWS), 0),
        (partial(collective, "all-reduce", ROWS), COMPUTED),
    ],
)
def test_what_only_lies_otherwise_is_the_argument_still(spread, source):
    assert spread().source == source


def values(op, *operands, result="s32[]", **attributes):
    spread = after(op, result, *(part for each in operands for part in ("s32[]", each)), **attributes)
    return None if spread.values is None else spread.values.tolist(), spread.axes


ME, TWO = number(*PLACE), number(2)


@pytest.mark.parametrize(
    ("computed", "of_each", "axes"),
    [
        (partial(values, "partition-id"), [0, 1, 2, 3, 4, 5, 6, 7], D | M),
        (partial(values, "replica-id"), None, 0),
        (partial(values, "add", ME, TWO), [2, 3, 4, 5, 6, 7, 8, 9], D | M),
        (partial(values, "subtract", ME, TWO), [-2, -1, 0, 1, 2, 3, 4, 5], D | M),
        (partial(values, "multiply", ME, TWO), [0, 2, 4, 6, 8, 10, 12, 14], D | M),
        (partial(values, "divide", ME, TWO), [0, 0, 1, 1, 2, 2, 3, 3], D),
        (partial(values, "remainder", ME, TWO), [0, 1, 0, 1, 0, 1, 0, 1], M),
        (partial(values, "divide", TWO, ME), [2, 2, 1, 0, 0, 0, 0, 0], D | M),  # what by 0 is, XLA leaves open
        (partial(values, "remainder", TWO, ME), [0, 0, 0, 2, 2, 2, 2, 2], D | M),
        (partial(values, "and", ME, TWO), [0, 0, 2, 2, 0, 0, 2, 2], D),
        (partial(values, "or", ME, TWO), [2, 3, 2, 3, 6, 7, 6, 7], D | M),
        (partial(values, "xor", ME, TWO), [2, 3, 0, 1, 6, 7, 4, 5], D | M),
        (partial(values, "maximum", ME, TWO), [2, 2, 2, 3, 4, 5, 6, 7], D | M),
        (partial(values, "minimum", ME, TWO), [0, 1, 2, 2, 2, 2, 2, 2], D | M),
        (partial(values, "shift-right-logical", ME, number(1)), [0, 0, 1, 1, 2, 2, 3, 3], D),
        (partial(values, "shift-left", number(1), ME), [1, 2, 4, 8, 16, 32, 64, 128], D | M),
        (partial(values, "negate", ME), [0, -1, -2, -3, -4, -5, -6, -7], D | M),
        (partial(values, "clamp", number(1), ME, number(4)), [1, 1, 2, 3, 4, 4, 4, 4], D | M),
        (partial(values, "select", number(*PLACE % 2), TWO, ZERO), [0, 2, 0, 2, 0, 2, 0, 2], M),
        (partial(values, "compare", ME, TWO, result="pred[]", direction="EQ"), [0, 0, 1, 0, 0, 0, 0, 0], D | M),
        (partial(values, "compare", ME, TWO, result="pred[]", direction="NE"), [1, 1, 0, 1, 1, 1, 1, 1], D | M),
        (partial(values, "compare", ME, TWO, result="pred[]", direction="LT"), [1, 1, 0, 0, 0, 0, 0, 0], D),
        (partial(values, "compare", ME, TWO, result="pred[]", direction="LE"), [1, 1, 1, 0, 0, 0, 0, 0], D | M),
        (partial(values, "compare", ME, TWO, result="pred[]", direction="GT"), [0, 0, 0, 1, 1, 1, 1, 1], D | M),
        (partial(values, "compare", ME, TWO, result="pred[]", direction="GE"), [0, 0, 1, 1, 1, 1, 1, 1], D),
        (partial(values, "convert", ME, result="u32[]"), [0, 1, 2, 3, 4, 5, 6, 7], D | M),
        (partial(values, "reshape", ME, result="s32[1]"), [0, 1, 2, 3, 4, 5, 6, 7], D | M),
        (partial(values, "add", TWO, TWO), [4] * 8, 0),
        # no whole number any more, several, or of something that isn't known
        (partial(values, "convert", ME, result="f32[]"), None, D | M),
        (partial(values, "broadcast", ME, result="s32[4]", dimensions="{}"), None, D | M),
        (partial(values, "add", ME, Spread(0, ())), None, D | M),
        (partial(values, "tan", ME), None, D | M),
        # of a table, each at its place, the last for those beyond it
        (
            partial(values, "dynamic-slice", Spread(0, ((),), values=np.asarray([9, 9, 8, 8])), ME, result="s32[1]"),
            [9, 9, 8, 8, 8, 8, 8, 8], D,
        ),
        (partial(values, "add", Spread(0, ((),), values=np.asarray([5, 6])), ME), None, D | M),
    ],
)  # fmt: skip
def test_what_each_device_works_out_of_its_number(computed, of_each, axes):
    assert computed() == (of_each, axes)


@pytest.mark.parametrize(
    ("type_", "literal", "elements"),
    [
        ("s32[]", "3", [3] * 8),
        ("u32[]", "0", [0] * 8),
        ("pred[]", "true", [1] * 8),
        ("s32[4]", "{4, 3, 2, -1}", [4, 3, 2, -1]),
        ("pred[2]", "{false, true}", [0, 1]),
        ("s32[4]", "{4, 3, ...}", None),
        ("s32[4]", "{4, 3}", None),
        ("s32[2,2]", "{ { 1, 2 }, { 3, 4 } }", None),
        ("f32[]", "3", None),
        ("s32[]", "", None),
    ],
)
def test_a_constant_of_whole_numbers_is_known(type_, literal, elements):
    spread = after("constant", type_, literal=literal)
    assert (spread.axes, set(spread.dims), spread.source) == (0, {()} if spread.dims else set(), CONSTANT)
    assert (None if spread.values is None else spread.values.tolist()) == elements
