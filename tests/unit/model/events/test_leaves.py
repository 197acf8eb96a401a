"""The array arguments of a call as columns."""

import pickle

import numpy as np
import pytest

from explorer.model.events.key import Function, Key, Leaf
from explorer.model.events.leaves import Compactor, Content, Contents, LeafColumns, in_columns

LEAVES = (
    Leaf("params['w']", (3, 4), "float32", committed=False, devices=("cpu:0",)),
    Leaf("params['b']", (4,), "float32", committed=False, devices=("cpu:0",)),
    Leaf("n", (), "int32", True, "int"),
    Leaf("x", ("batch", 4), "float32", False, "struct"),
)


@pytest.fixture
def columns():
    return LeafColumns.of(LEAVES, Contents())


def test_columns_are_equal_to_the_leaves_that_they_were_made_of(columns):
    assert tuple(columns) == LEAVES
    assert columns == LEAVES
    assert LeafColumns.of(LEAVES[::-1], Contents()) != LEAVES
    assert hash(columns) == hash(LEAVES)
    assert repr(columns) == repr(LEAVES)
    assert pickle.loads(pickle.dumps(columns)) == LEAVES
    assert Key(Function("f"), columns) == Key(Function("f"), LEAVES)


def test_columns_are_a_sequence(columns):
    assert len(columns) == 4
    assert (columns[1], columns[-1], columns[1:3]) == (LEAVES[1], LEAVES[3], LEAVES[1:3])
    assert isinstance(columns[0], Leaf)
    assert columns.index(LEAVES[2]) == 2
    with pytest.raises(IndexError):
        columns[4]


def test_some_are_taken_in_an_order_of_their_own(columns):
    assert columns.take([2, 0]) == (LEAVES[2], LEAVES[0])
    assert tuple(columns.take([])) == ()


def test_leaves_are_found_by_path(columns):
    numbers = columns.numbers_at(("x", "gone", "params['b']"))
    assert numbers[1] == -1
    assert [columns.contents.rows[n].shape for n in numbers[::2]] == [("batch", 4), (4,)]
    assert columns.numbers_at(tuple(columns.paths)) is columns.numbers


def test_each_content_is_named_once():
    alike = [LEAVES[0]._replace(path=path) for path in "abc"]
    assert LeafColumns.of(alike, Contents()).distinct() == [Content(*LEAVES[0][1:])]


def test_the_numbers_of_several_calls_mean_the_same(columns):
    other = LeafColumns.of([LEAVES[1], LEAVES[0]._replace(dtype="int8")], Contents())
    first, second, third = in_columns(columns, other, LEAVES[:2])
    assert first.contents is second.contents is third.contents
    assert second is other
    assert second == (LEAVES[1], LEAVES[0]._replace(dtype="int8"))
    assert second.numbers[0] == first.numbers[1]
    assert third == LEAVES[:2]


def test_parts_are_numbered_alike_where_they_are_equal():
    contents = Contents()
    numbers = [
        contents.number(Content((size,), dtype, committed=at == "1", devices=(at,)))
        for size in range(50)
        for dtype in ("float32", "int32")
        for at in "01"
    ]
    assert numbers == [*range(200)]  # more than a column begins with
    sizes, dtypes, devices = (column[:200] for column in (contents.shapes, contents.types, contents.places))
    assert [*np.flatnonzero(sizes == sizes[5])] == [4, 5, 6, 7]
    assert [*np.flatnonzero(dtypes == dtypes[2])][:4] == [2, 3, 6, 7]
    assert [*np.flatnonzero(devices == devices[1])][:3] == [1, 3, 5]


def test_what_a_ledger_keeps_of_columns_is_equal_to_them():
    contents = Contents()
    wide = Leaf("y", tuple(range(1, 10)), "int8")
    compactor = Compactor()
    for leaves in (LEAVES, (*LEAVES, wide), (Leaf("big", (1 << 40,), "int8"),), (Leaf("huge", (1 << 70,), "int8"),)):
        held = compactor.key(Key(Function("f"), LeafColumns.of(leaves, contents))).leaves
        assert tuple(held) == leaves
        assert held == compactor.key(Key(Function("f"), leaves)).leaves
