"""What a split becomes by a reshape, of either of two values, and of an argument as it was lowered."""

import pytest

from explorer.analysis.sharding.propagate import GivenArgument, spread_of_argument
from explorer.analysis.sharding.spread import bitcast, joined, merged_dims, numbered, reshaped, source_of, union
from explorer.model.shardings import COMPUTED, Spread
from explorer.model.types import parse_type
from tests.unit.analysis.sharding.test_operations import COLUMNS, ME, MESH, ROWS, TWO, WHOLE, D, M, split


@pytest.mark.parametrize(
    ("dims", "before", "later", "expected"),
    [
        (((0,), ()), (4, 8), (32,), ((0,),)),
        (((), (0,)), (4, 8), (32,), None),
        (((), (0,)), (1, 4), (4,), ((0,),)),
        (((0,),), (32,), (4, 8), ((0,), ())),
        (((0,),), (32,), (1, 32), ((), (0,))),
        (((0,), ()), (4, 8), (4, 2, 4), ((0,), (), ())),
        (((), (0,)), (4, 8), (4, 2, 4), ((), (0,), ())),
        (((0,), (1,)), (4, 8), (32,), None),
        (((0,), (1,)), (4, 8), (2, 2, 8), ((0,), (), (1,))),
        (((), ()), (4, 8), (8, 4), ((), ())),
        # of one element each, which goes to where there is one
        (((0,), ()), (1, 8), (8,), None),
        (((0,), ()), (1, 8), (8, 1), ((), (0,))),
        (((0,),), (1,), (1, 1), ((0,), ())),
    ],
)
def test_a_split_goes_through_a_reshape_as_the_slowest_of_its_block(dims, before, later, expected):
    assert reshaped(dims, before, later) == expected


def test_a_bitcast_keeps_the_order_in_memory():
    row, column = parse_type("f32[4,8]{1,0}").arrays[0], parse_type("f32[8,4]{0,1}").arrays[0]
    assert bitcast(ROWS, row, column) == COLUMNS
    assert bitcast(ROWS, row, parse_type("f32[8,4]{1,0}").arrays[0]) == ROWS
    assert bitcast(ROWS, row, parse_type("f32[8,5]{1,0}").arrays[0]) is None
    assert bitcast(ROWS, row, parse_type("f32[8,4]").arrays[0]) == ROWS


def test_what_may_be_either_differs_where_one_does():
    one, other = split(ROWS, gathered=M, gathers=frozenset({3})), Spread(M, ROWS, 1, gathers=frozenset({4}))
    either = joined(one, other)
    assert (either.axes, either.dims, either.source, either.gathered) == (D | M, ROWS, COMPUTED, 0)
    assert either.gathers == {3, 4}
    assert joined(one, split(COLUMNS)).dims is None
    assert joined(one, split(ROWS)).gathered == M
    assert joined(one, one) is one
    assert joined(ME, TWO).values is None
    assert union([]) == 0
    assert union([one, other]) == D | M
    assert (merged_dims([]), merged_dims([ROWS, None]), merged_dims([ROWS, WHOLE])) == (None, None, ROWS)
    assert source_of([split(ROWS)]) == COMPUTED
    assert numbered([(5,), (4,), (5,)]) == (0, 1, 0)


GIVEN = '#sdy.sharding<@mesh, [{"data"}, {}]>'


@pytest.mark.parametrize(
    ("sharding", "part", "at", "axes", "dims"),
    [
        (GIVEN, "f32[4,8]", 0, D, ROWS),
        ("", "f32[16,8]", 0, 0, WHOLE),  # a device has all of it
        (GIVEN, "f32[16,8]", 0, 0, WHOLE),
        ('#sdy.sharding<@mesh, [{"data", "model"}, {}]>', "f32[2,8]", 0, D | M, ((0, 1), ())),
        ('#sdy.sharding<@mesh, [{"model"}, {"data"}]>', "f32[8,2]", 0, D | M, ((1,), (0,))),
        # what doesn't fit is anyhow
        (GIVEN, "f32[8,8]", 0, D | M, None),
        ("", "f32[4,8]", 0, D | M, None),
        ('#sdy.sharding<@mesh, [{"data":(1)2}, {}]>', "f32[8,8]", 0, D | M, None),
        ('#sdy.sharding<@mesh, [{"other"}, {}]>', "f32[4,8]", 0, D | M, None),
        (GIVEN, "f32[4,8]", 1, D | M, None),
        (GIVEN, "f32[4,8]", -1, D | M, None),
    ],
)
def test_an_argument_lies_as_it_was_lowered(sharding, part, at, axes, dims):
    given = [GivenArgument(parse_type("f32[16,8]").arrays[0], sharding)]
    assert spread_of_argument(MESH, given, at, parse_type(part).arrays[0]) == Spread(axes, dims, at)
