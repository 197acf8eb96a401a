"""Which sizes there are buckets for, and when another one is worth compiling."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer as ex
from explorer.aot.inputs import Bounds
from explorer.aot.padded_calls import Demand, Wish
from explorer.aot.verdict import chosen_buckets, default_buckets, serves

BOUNDS = {"batch": Bounds(1, 8, 48), "seq": Bounds(3, 3, 3)}


@given(st.integers(0, 70), st.integers(1, 70))
def test_powers_of_two_serve_every_size_of_a_range(smallest, more):
    ladder = default_buckets({"n": Bounds(smallest, smallest, smallest + more)}).ladder["n"]
    assert ladder[-1] == smallest + more
    assert list(ladder) == sorted(set(ladder))
    assert all(size & (size - 1) == 0 for size in ladder[:-1])
    # None is too small for anything, and none of those that there are is left out.
    assert ladder[0] >= max(1, smallest)
    assert all(2 * size in ladder or 2 * size >= ladder[-1] for size in ladder[:-1])


def test_buckets_of_several_dimensions_are_bounded():
    buckets = default_buckets({name: Bounds(1, 8, 4096) for name in "abcd"})
    assert len(buckets.combinations) <= 64
    assert buckets.largest == (4096,) * 4


def test_a_dimension_that_is_not_named_keeps_powers_of_two_and_the_largest_is_always_there():
    buckets = chosen_buckets({"batch": Bounds(1, 8, 48), "seq": Bounds(1, 2, 4)}, {"batch": (32, 16)})
    assert buckets.ladder == {"batch": (16, 32, 48), "seq": (1, 2, 4)}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"batch": (16, 64)}, r"buckets has 64 for `batch`; allowed are ints with 1 ≤ batch ≤ 48"),
        ({"batch": ()}, "buckets has no size for `batch`"),
        ({"batch": (True,)}, "buckets has True for `batch`"),
        ({"seq": (3,)}, "buckets has 'seq'; the dimensions that vary are batch"),
        ([16], r"buckets is \[16\]; allowed is a dict"),
    ],
)
def test_buckets_that_are_none_are_refused(given, message):
    with pytest.raises(ex.errors.OptionError, match=message):
        chosen_buckets(BOUNDS, given)


def simulated(calls, candidates, price, *, is_ever_ready=True):
    """What a demand wishes for, in order, when calls of 1 ms per element are padded to the smallest bucket there is."""
    demand, ready, wishes = Demand(candidates, float_of, price), [(64,)], []
    for sizes in calls:
        bucket = min((b for b in ready if serves(b, sizes)), key=float_of)
        wish = demand.note(sizes, bucket, float_of(bucket) / 1000, 0.0)
        if wish is not None:
            wishes.append(wish)
            if not is_ever_ready:
                continue
            demand.finish(wish)
            if wish.is_padded:
                ready.append(wish.sizes)
                demand.add(wish.sizes)
    return wishes


def float_of(sizes):
    return float(sizes[0])


def test_nothing_is_compiled_before_it_would_have_paid_for_itself():
    # Each call would save 56 ms in the smallest bucket; ten of them save 0.56 s.
    assert simulated([(8,)] * 10, [(8,), (16,), (32,)], price=0.6) == []
    assert simulated([(8,)] * 12, [(8,), (16,), (32,)], price=0.6)[0].sizes == (8,)


def test_a_bucket_that_serves_many_sizes_comes_before_an_exact_one():
    calls = [(size,) for size in range(17, 33)] * 3
    assert simulated(calls, [(8,), (16,), (32,)], price=0.5)[0] == Wish((32,), is_padded=True)


def test_while_a_bucket_is_compiled_no_larger_one_is_named_for_the_same_calls():
    wishes = simulated([(5,)] * 40, [(8,), (16,), (32,)], price=0.6, is_ever_ready=False)
    assert wishes[0].sizes[0] <= 8
    assert all(wish.sizes[0] <= 8 for wish in wishes)


def test_a_size_that_is_called_for_ever_gets_a_binary_of_its_own_once():
    wishes = simulated([(20,)] * 2000, [(8,), (16,), (32,)], price=0.6)
    assert [wish for wish in wishes if not wish.is_padded] == [Wish((20,), is_padded=False)]
    assert len(wishes) == len(set(wishes))


def test_a_size_that_fills_its_bucket_pays_for_its_masks_alone():
    assert simulated([(64,)] * 90, [(32,)], price=0.6) == []
    assert simulated([(64,)] * 100, [(32,)], price=0.6) == [Wish((64,), is_padded=False)]
