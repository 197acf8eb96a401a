"""Which buckets there are, which one a call wishes for and which are compiled ahead: figures worked out by hand."""

from types import SimpleNamespace

import pytest

import explorer as ex
from explorer.aot.inputs import Bounds
from explorer.aot.padded_calls import Demand, Wish
from explorer.aot.report import _chosen, _gain, _sampled, checked_sizes
from explorer.aot.saving import _fill, _saved_bucket, _shape
from explorer.aot.symbols import Symbols, sizes_text
from explorer.aot.verdict import Buckets, chosen_buckets, default_buckets, serves

# Buckets ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("least", "most", "ladder"),
    [
        (1, 48, (1, 2, 4, 8, 16, 32, 48)),
        (1, 32, (1, 2, 4, 8, 16, 32)),
        (0, 4, (1, 2, 4)),  # of what may be empty too
        (5, 48, (8, 16, 32, 48)),
        (8, 48, (8, 16, 32, 48)),
        (9, 12, (12,)),
        (7, 7, (7,)),
        (1, 1, (1,)),
    ],
)
def test_buckets_are_powers_of_two_from_the_smallest_size_on_and_the_largest(least, most, ladder):
    assert default_buckets({"n": Bounds(least, most, most)}).ladder == {"n": ladder}


def test_of_several_dimensions_the_smallest_buckets_go_until_64_combine():
    found = default_buckets({"a": Bounds(1, 8, 256), "b": Bounds(1, 8, 256)})  # of nine each
    assert found.ladder == {"a": (2, 4, 8, 16, 32, 64, 128, 256), "b": (2, 4, 8, 16, 32, 64, 128, 256)}
    assert found.largest == (256, 256)
    assert len(found.combinations) == 64
    assert found.combinations[0] == (2, 2)
    assert found.combinations[-1] == (256, 256)
    many = default_buckets({f"d{i}": Bounds(1, 1, 2) for i in range(70)})
    assert sum(len(rungs) == 2 for rungs in many.ladder.values()) == 6
    assert found.named((2, 4)) == {"a": 2, "b": 4}


@pytest.mark.parametrize(("bucket", "sizes", "fits"), [((4, 8), (4, 8), True), ((4, 8), (5, 1), False), ((), (), True)])
def test_a_bucket_serves_sizes_that_are_no_larger(bucket, sizes, fits):
    assert serves(bucket, sizes) is fits


TWO = {"n": Bounds(2, 8, 48), "m": Bounds(1, 3, 4), "fixed": Bounds(3, 3, 3)}


def test_named_buckets_are_sorted_with_the_largest_and_other_dimensions_keep_theirs():
    found = chosen_buckets(TWO, {"n": (16, 2, 16)})
    assert found.ladder == {"n": (2, 16, 48), "m": (1, 2, 4), "fixed": (3,)}
    assert found.is_chosen
    assert chosen_buckets(TWO, {"n": 48}).ladder["n"] == (48,)
    assert chosen_buckets(TWO, {"n": range(2, 5)}).ladder["n"] == (2, 3, 4, 48)
    # Past 64 combinations others have their largest alone.
    assert chosen_buckets(TWO, {"n": range(2, 34)}).ladder["m"] == (4,)
    assert not default_buckets(TWO).is_chosen


@pytest.mark.parametrize(
    ("given", "says", "hint"),
    [
        ({"n": 1}, "buckets has 1 for `n`; allowed are ints with 2 ≤ n ≤ 48.", ""),
        ({"n": 49}, "buckets has 49 for `n`; allowed are ints with 2 ≤ n ≤ 48.", ""),
        ({"n": (4, True)}, "buckets has True for `n`; allowed are ints with 2 ≤ n ≤ 48.", ""),
        ({"n": ()}, "buckets has no size for `n`.", ""),
        ({"fixed": 3}, "buckets has 'fixed'; the dimensions that vary are n, m.", "a dimension without a name"),
        ([4], "buckets is [4]; allowed is a dict of sizes by dimension.", "buckets={'n': (48,)}."),
        ({"n": range(2, 49), "m": (1, 2)}, "buckets has 141 combinations; at most 64 are allowed.", "fewer sizes"),
    ],
)
def test_buckets_that_are_none_are_refused(given, says, hint):
    with pytest.raises(ex.errors.OptionError) as raised:
        chosen_buckets(TWO, given)
    first, *rest = str(raised.value).splitlines()
    assert first == says
    assert (f"Hint: {hint}" in str(raised.value)) if hint else not any("Hint" in line for line in rest)


def test_where_nothing_varies_there_are_no_buckets_to_name():
    with pytest.raises(ex.errors.OptionError, match=r"buckets is 4, and no dimension varies\."):
        chosen_buckets({"fixed": Bounds(3, 3, 3)}, 4)


# Demand -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def demand():
    """A compile takes 10 s, and work grows with the size; there is a bucket of 32."""
    return Demand([(8,), (16,)], lambda sizes: float(sizes[0]), 10.0)


def test_an_exact_binary_is_wished_for_once_it_would_have_saved_its_compile(demand):
    # Of 4 s in the bucket of 32 it would save all but what 4 of 32 take, a tenth less for masks: 3.55 s.
    assert [demand.note((4,), (32,), 4.0, 0.0) for _ in range(2)] == [None, None]
    assert demand.note((4,), (32,), 4.0, 0.0) == Wish((4,), is_padded=False)
    assert [demand.note((4,), (32,), 400.0, 0.0) for _ in range(3)] == [None] * 3  # it is on its way


def test_what_padding_and_cutting_took_counts_for_the_exact_binary_alone(demand):
    assert demand.note((4,), (32,), 9.0, 9.0) is None
    assert demand.note((4,), (32,), 1.0, 1.0) == Wish((4,), is_padded=False)


def test_a_bucket_is_wished_for_by_all_sizes_that_it_serves(demand):
    # 8 would have saved 3 s of each four, 16 half of them.
    assert [demand.note((size,), (32,), 4.0, 0.0) for size in (4, 5, 6)] == [None] * 3
    first = demand.note((7,), (32,), 4.0, 0.0)
    assert first == Wish((8,), is_padded=True)
    # While it is compiled calls count as if it served them: 16 would save them nothing.
    assert [demand.note((3,), (32,), 4.0, 0.0), demand.note((2,), (32,), 4.0, 0.0)] == [None] * 2
    # But the larger ones: 8 s by the calls before and 2 by this.
    assert demand.note((12,), (32,), 4.0, 0.0) == Wish((16,), is_padded=True)


def test_once_a_bucket_is_there_what_others_would_save_is_counted_anew(demand):
    for size in (9, 10, 11, 12):
        assert demand.note((size,), (32,), 4.0, 0.0) is None  # 16 saves 2 s of each
    demand.add((8,))
    assert [demand.note((size,), (32,), 4.0, 0.0) for size in (13, 14, 15, 16)] == [None] * 4
    assert demand.note((9,), (32,), 4.0, 0.0) == Wish((16,), is_padded=True)


def test_what_was_never_compiled_leaves_larger_ones_to_be_wished_for(demand):
    for size in (4, 5, 6):
        demand.note((size,), (32,), 4.0, 0.0)
    wish = demand.note((7,), (32,), 4.0, 0.0)
    demand.finish(wish)
    assert demand.note((3,), (32,), 4.0, 0.0) == Wish((16,), is_padded=True)


# Ahead --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("least", "most", "samples", "wanted"),
    [(1, 9, 5, [1, 3, 5, 7, 9]), (0, 4, 2, [1, 4]), (3, 4, 9, [3, 4]), (5, 5, 4, [5]), (1, 10, 4, [1, 4, 7, 10])],
)
def test_sizes_are_sampled_evenly_from_the_smallest_to_the_largest(least, most, samples, wanted):
    assert _sampled(Bounds(least, most, most), samples) == wanted


def padded(candidates, is_chosen=False, most=8):
    buckets = SimpleNamespace(is_chosen=is_chosen, bounds={"n": Bounds(1, most, most)}, largest=(most,))
    footprint = SimpleNamespace(elements=lambda sizes: float(sizes[0]))
    return SimpleNamespace(buckets=buckets, candidates=candidates, footprint=footprint)


def test_what_a_bucket_saves_is_summed_over_the_sizes_that_it_serves():
    best = {(1,): 8.0, (2,): 8.0, (3,): 2.0, (6,): 8.0}
    assert _gain(padded([]), (4,), best) == 4.0 + 4.0 + 0.0


def test_the_buckets_that_save_most_are_chosen_largest_first():
    # Of sizes 1 to 8: 4 saves 4 of each of four, 2 then 2 of two, 6 then 2 of two, 8 nothing.
    assert _chosen(padded([(8,), (6,), (4,), (2,)])) == [(6,), (4,), (2,)]
    assert _chosen(padded([(8,)])) == []
    assert _chosen(padded([(8,), (2,)], is_chosen=True)) == [(8,), (2,)]
    assert len(_chosen(padded([(size,) for size in range(1, 65)], most=64))) == 8


def symbols(**bounds):
    shape = tuple(ex.NamedDimension(name, *each) for name, each in bounds.items())
    return Symbols({"x": ex.InputInfo(shape, "float32")})


def test_sizes_to_compile_ahead_are_of_all_that_varies_and_within_bounds():
    both = symbols(n=(1, 8, 48), fixed=(3, 3, 3))
    assert checked_sizes(both, {"n": 48}) == {"n": 48, "fixed": 3}
    assert checked_sizes(both, {"n": 1}) == {"n": 1, "fixed": 3}
    for given in ({"n": 49}, {"n": 0}, {"n": 2.0}, {"n": True}, {}, {"n": 4, "fixed": 3}, 4):
        with pytest.raises(ex.errors.OptionError) as raised:
            checked_sizes(both, given)
        first, *_, last = str(raised.value).splitlines()
        assert first == f"sizes has {given!r}; allowed is a dict with 1 ≤ n ≤ 48."
        assert last == "  Hint: {'n': 8}."
    with pytest.raises(ex.errors.OptionError, match="allowed is a dict with nothing"):
        checked_sizes(symbols(fixed=(3, 3, 3)), {"n": 3})
    assert sizes_text({"n": 4, "m": 5}) == "n = 4, m = 5"


# Saved --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fill", [0, -1, 7, 0.5, float("inf"), float("-inf"), 1j, complex("inf"), True, False])
def test_a_fill_is_read_as_it_was_written(fill):
    read = _fill(repr(fill))
    assert (read, type(read)) == (fill, type(fill))


def test_what_is_no_fill_is_no_file_of_ours():
    with pytest.raises(KeyError):
        _fill("None")


@pytest.mark.parametrize(("size", "is_right"), [(0, False), (1, True), (48, True), (49, False)])
def test_a_saved_bucket_is_within_the_bounds(size, is_right):
    entry = {"bucket": {"n": size}, "module": "padded-0", "constants": ["a", "b"]}
    bounds = {"n": Bounds(4, 8, 48)}
    if not is_right:
        with pytest.raises(ValueError, match="is no bucket"):
            _saved_bucket(entry, bounds, {}, str.upper)
        return
    sizes, saved = _saved_bucket(entry, bounds, {"padded-0": b"program"}, str.upper)
    assert (sizes, saved.module(), saved.constants()) == ({"n": size}, b"program", ["A", "B"])


def test_a_saved_shape_has_its_symbols():
    assert [str(size) for size in _shape((3, "n", "2*m"))] == ["3", "n", "2*m"]
    assert _shape(()) == ()
    assert Buckets({"n": Bounds(1, 2, 3)}, {"n": [1, 3]}).ladder == {"n": (1, 3)}
