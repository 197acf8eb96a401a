"""Array arguments as they are held: in few bytes, and none of them another than it was."""

import copy
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.model.events.event import Event, Reason
from explorer.model.events.key import Function, Key, Leaf
from explorer.model.events.leaves import Compactor, Leaves, forms_of

SIZES = st.one_of(st.integers(0, 70_000), st.sampled_from([2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**70]))
SHAPES = st.lists(st.one_of(SIZES, st.sampled_from(["b", "n+1"])), max_size=10).map(tuple)
LEAVES = st.lists(
    st.builds(Leaf, st.sampled_from("xyz"), SHAPES, st.sampled_from(["float32", "int8"]), st.booleans()), max_size=5
).map(tuple)


def held(compactor, leaves):
    return compactor.key(Key(Function("f"), leaves)).leaves


@settings(max_examples=25)
@given(st.lists(LEAVES, max_size=4))
def test_whatever_was_passed_is_read_again_as_it_was(calls):
    compactor = Compactor()
    kept = [held(compactor, leaves) for leaves in calls]
    for leaves, now in zip(calls, kept, strict=True):
        assert tuple(now) == leaves
        assert now == leaves
        assert list(forms_of(now)) == list(forms_of(leaves))
        assert (hash(now), len(now)) == (hash(leaves), len(leaves))


def data_of(*shapes):
    """How many bytes the arrays of a call take: two for each, and as many for each of their sizes."""
    leaves = held(Compactor(), tuple(Leaf(f"x{i}", shape, "float32") for i, shape in enumerate(shapes)))
    return len(leaves._data) - 1


@pytest.mark.parametrize(
    ("shapes", "count"),
    [
        ([(8, 4)], 2 * 3),
        ([(8, 4), (9, 4), ()], 2 * 7),
        ([(65_535,)], 2 * 2),
        ([(65_536,)], 4 * 2),
        ([(2**32 - 1,)], 4 * 2),
        ([(2**32,)], 8 * 2),
        ([(2**63 - 1,)], 8 * 2),
        ([(2**63,)], 2),  # no number has room for it: it is a form of its own
        ([("b", 4)], 2),
        ([(1,) * 7], 2 * 8),
        ([(1,) * 8], 2),
    ],
)
def test_a_call_takes_two_bytes_for_each_array_and_each_size(shapes, count):
    assert data_of(*shapes) == count


def test_calls_that_are_alike_are_known_by_their_bytes_and_others_are_not():
    compactor, more = Compactor(), (Leaf("x", (8,), "float32"),)
    x, y = Leaf("x", (8,), "float32"), Leaf("y", (9,), "float32")
    one, again, other = (held(compactor, leaves) for leaves in ((x, y), (x, y), (x, y._replace(shape=(8,)))))
    assert one == again
    assert one != other
    assert one != held(compactor, (x, y._replace(path="z")))
    assert one != held(compactor, (x,))
    assert one == held(Compactor(), (x, y))
    assert one != held(Compactor(), (x,))
    assert one != [x, y]
    assert (one[1], one[-1:], one + more) == (y, (y,), (x, y, x))
    assert repr(one) == repr((x, y))
    assert type(copy.copy(one)) is tuple
    assert pickle.loads(pickle.dumps(one)) == (x, y)


def test_a_full_table_of_forms_is_left_for_a_new_one():
    compactor = Compactor()
    first = held(compactor, (Leaf("x", (8,), "float32"),))
    leaves = [(Leaf("x", (i % 5,), f"dtype{i}"),) for i in range(10_000)]
    kept = [held(compactor, each) for each in leaves]
    assert [tuple(each) for each in kept] == leaves
    assert first == (Leaf("x", (8,), "float32"),)
    assert all(len(each._data) == 5 for each in kept)  # two bytes for each number, however many forms there were
    assert len({id(each._table) for each in kept}) == 2


def test_events_of_one_call_share_its_key_and_reason():
    compactor = Compactor()
    key, reason = Key(Function("f"), (Leaf("x", (8,), "float32"),)), Reason("shape", "x", "1", "2")
    trace, lower = (compactor.event(Event(kind, "f", key=key, reason=reason), 0.0) for kind in ("trace", "lower"))
    assert trace.key is lower.key
    assert trace.reason is lower.reason
    assert (trace.key, trace.reason) == (key, reason)
    assert isinstance(trace.key.leaves, Leaves)
    other = compactor.event(Event("trace", "f", key=key, reason=Reason("dtype")), 0.0)
    assert other.reason == Reason("dtype")
    third = compactor.event(Event("trace", "f", key=Key(Function("g")), reason=reason), 0.0)
    assert third.key == Key(Function("g"))


def test_a_total_is_given_to_what_has_none():
    compactor = Compactor()
    assert compactor.event(Event("trace", "f"), 2.5).total == 2.5
    assert compactor.event(Event("trace", "f", total=1.5), 2.5).total == 1.5


def test_what_is_equal_is_one_object_as_long_as_it_is_remembered():
    compactor = Compactor()
    one, again = ("a", "b"), tuple("ab")
    assert compactor.share(one) is one
    assert compactor.share(again) is one
    assert compactor.share(()) == ()
    for number in range(4_097):
        compactor.share((number,))
    assert compactor.share(again) is again
