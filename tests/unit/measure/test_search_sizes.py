"""Which sizes the searches for the largest that fits try, by figures made by hand: nothing is compiled here."""

import math
from types import SimpleNamespace

import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer as ex
from explorer.capture.call import Call
from explorer.errors import ExploreError
from explorer.hardware.limits import Capacity
from explorer.measure import largest_that_fits as fits_module
from explorer.measure import memory as memory_module
from explorer.measure.largest_that_fits import _range, _Search
from explorer.measure.memory import _compile_towards, _gap, _next
from explorer.model.results.targets import Trial

NO_END = 1 << 31  # a size that is no answer
FAR = 1 << 40


class Formula(_Search):
    """A search over sizes whose bytes a formula gives."""

    needed_at = None

    def _trial(self, size):
        return Trial(size, self.needed_at(size) <= self.capacity.bytes, self.needed_at(size))


def search(fits=None, too_large=(), capacity=1000, multiple=1):
    found = Formula(None, "b", None, None, Capacity(capacity, "the limit"), multiple)
    found.trials |= {at: Trial(at * multiple, True, needed) for at, needed in (fits or {}).items()}
    found.trials |= {at: Trial(at * multiple, False) for at in too_large}
    return found


def test_the_bound_is_before_the_smallest_that_does_not_fit():
    assert search({1: 1, 8: 1, 32: 1}, [16, 24])._bound(64) == (8, 16)
    assert search({1: 1, 8: 1})._bound(64) == (8, 65)


#                  fits                 below  above       open   halves  multiple  next
GUESSES = {
    "where the line meets the capacity": ({1: 10, 2: 20}, 2, 200, False, False, 1, 100),
    "rounded down": ({1: 30, 2: 60}, 2, 200, False, False, 1, 33),
    "before the one that doesn't fit": ({1: 10, 2: 20}, 2, 64, False, False, 1, 63),
    "up to the last": ({1: 10, 2: 20}, 2, 65, True, False, 1, 64),
    "beyond the one that fits": ({9: 900, 10: 1000}, 10, 40, False, False, 1, 11),
    "the middle, where a guess didn't halve": ({1: 10, 8: 80}, 8, 17, False, True, 1, 12),
    "no middle of what has no end": ({1: 10, 8: 80}, 8, 500, True, True, 1, 100),
    "twice, where nothing grows": ({1: 10, 2: 10}, 2, 65, True, False, 1, 4),
    "twice, but not beyond the last": ({1: 10, 40: 10}, 40, 65, True, False, 1, 64),
    "the middle, where nothing grows": ({1: 10, 4: 10}, 4, 9, False, False, 1, 6),
    "64 times at most, of all numbers": ({1: 1, 2: 2}, 2, NO_END + 1, True, False, 1, 128),
    "64 times at most, of all multiples": ({1: 1, 2: 2}, 2, NO_END // 8 + 1, True, False, 8, 128),
    "as far as the named end is": ({1: 1, 2: 2}, 2, 10_001, True, False, 1, 1000),
}


@pytest.mark.parametrize("name", GUESSES)
def test_the_next_size_is_where_the_curve_meets_the_capacity_or_the_middle(name):
    fits, below, above, is_open, halves, multiple, wanted = GUESSES[name]
    assert search(fits, multiple=multiple)._next(below, above, is_open, halves) == wanted


CHECKED = {
    "two thirds of the way on both sides": ({1: 1, 100: 1}, [101], 1, 1000, [67, 83, 135, 168]),
    "fewer where some were tried": ({1: 1, 80: 1, 100: 1}, [101], 1, 1000, [67, 135, 168]),
    "none where two were": ({60: 1, 80: 1, 100: 1}, [101, 110, 120], 60, 1000, []),
    "up to the last": ({1: 1, 100: 1}, [101], 1, 150, [67, 83, 117, 134]),
    "from the first": ({70: 1, 100: 1}, [101], 70, 110, [80, 104, 107]),
    "above alone, where the first doesn't fit": ({}, [10], 10, 100, [13, 17]),
    "each once": ({1: 1}, [2], 1, 100, [3]),
    "nothing where all fit": ({1: 1, 100: 1}, [], 1, 100, []),
}


@pytest.mark.parametrize("name", CHECKED)
def test_sizes_on_both_sides_of_the_bound_are_checked(name):
    fits, too_large, start, end, wanted = CHECKED[name]
    assert [*search(fits, too_large)._checks(start, end)] == wanted


@given(st.integers(1, 50), st.integers(0, 500), st.integers(1, 10**6), st.sampled_from([1, 8]), st.booleans())
def test_what_grows_is_found_exactly_and_soon(slope, offset, capacity, multiple, steps):
    found = search(capacity=capacity, multiple=multiple)
    found.needed_at = lambda size: offset + slope * (size // 64 * 64 if steps else size)
    found.run(1, NO_END // multiple, lambda *_: None)
    last = max((at for at, trial in found.trials.items() if trial.fits), default=0)
    assert not last or found.needed_at(last * multiple) <= capacity
    assert found.needed_at((last + 1) * multiple) > capacity
    assert last + 1 in found.trials
    assert len(found.trials) <= 60


def test_a_step_that_no_curve_shows_is_found_like_a_bisection():
    found = search(capacity=10)
    found.needed_at = lambda size: 1 if size <= 777_777 else 11
    found.run(1, 1 << 20, lambda *_: None)
    assert found._bound(1 << 20) == (777_777, 777_778)
    assert len(found.trials) <= 2 * 20 + 6


def test_progress_says_what_is_compiled_and_what_is_certain_by_then():
    texts = []
    found = search(capacity=40)
    found.needed_at = lambda size: 10 * size
    found.run(1, 8, lambda *said: texts.append(said))
    assert texts == [
        (0.0, "b = 1 is compiled"),
        (0.2, "b = 4 is compiled; 1 fits"),
        (2 / 6, "b = 5 is compiled; 4 fits"),
        (3 / 7, "b = 3 is compiled; 4 fits, 5 doesn't"),
        (4 / 8, "b = 6 is compiled; 4 fits, 5 doesn't"),
        (5 / 9, "b = 7 is compiled; 4 fits, 5 doesn't"),
    ]
    assert search({100: 1}, [125], multiple=8)._text(150) == "b = 1,200 is compiled; 800 fits, 1,000 doesn't"


HBM = "RESOURCE_EXHAUSTED: Ran out of memory on HBM, required for temporaries (32.00K) exceeds available HBM (15.75K)."


def test_a_compilers_refusal_says_what_it_needs_and_what_there_is():
    found = search(capacity=20_000)
    trial = found._refused(64, ExploreError(f"{HBM}\nmore", None), 0.5)
    if math.isnan(trial.needed):
        pytest.fail("the figures of the compiler's error aren't read")
    assert (trial.size, trial.fits, trial.needed, trial.seconds) == (64, False, 32 * 1024, 0.5)
    assert trial.error == HBM.rstrip(".")
    assert found.level == 15.75 * 1024


def test_what_fails_where_smaller_ones_fit_is_a_size_that_does_not_fit():
    error = ExploreError("it can't be", None)
    with pytest.raises(ExploreError) as raised:
        search()._refused(64, error, 0.5)
    assert raised.value is error
    found = search({1: 10})
    trial = found._refused(64, error, 0.5)
    assert (trial.fits, math.isnan(trial.needed), trial.error, found.level) == (False, True, "it can't be", 1000)


#           low   high  multiple  start  end
RANGES = [
    (None, None, 1, 1, NO_END),
    (None, None, 8, 1, NO_END // 8),
    (9, 31, 8, 2, 3),
    (16, 32, 8, 2, 4),
    (5, 5, 1, 5, 5),
]


@pytest.mark.parametrize(("low", "high", "multiple", "start", "end"), RANGES)
def test_sizes_are_multiples_within_their_limits(low, high, multiple, start, end):
    call = Call.of(jnp.sin, (), {})
    assert _range(call, "b", lambda b: b, low, high, multiple)[:2] == (start, end)


@pytest.mark.parametrize(
    ("low", "high", "between"), [(30, 31, "from 30 to 31"), (None, 7, "from 1 to 7"), (65, None, "from 65 to 64")]
)
def test_a_range_without_a_multiple_is_refused(low, high, between):
    info = ex.InputInfo((ex.NamedDimension("batch", 1, 8, 64), 4), jnp.float32)
    with pytest.raises(ex.errors.OptionError) as raised:
        _range(Call.of(jnp.sin, (info,), {}), "batch", None, low, high, 8)
    assert str(raised.value) == f"there is no multiple of 8 {between}."


def test_a_dimension_that_isn_t_there_is_refused_with_those_that_are():
    fixed = ex.InputInfo((3, 4), jnp.float32)
    with pytest.raises(ex.errors.OptionError) as raised:
        _range(Call.of(jnp.sin, (fixed,), {}), "time", None, None, None, 1)
    assert str(raised.value).startswith("dimension is 'time', and of the arguments none of them varies.\n  Hint: ")


def test_where_nobody_says_how_much_memory_there_is_the_limit_is_asked_for(monkeypatch):
    monkeypatch.setattr(fits_module, "here", lambda: ("TPU v9", 0))
    with pytest.raises(ex.errors.OptionError) as raised:
        fits_module._capacity(None, None)
    hint = "\n  Hint: limit= sets the number of bytes."
    assert str(raised.value) == f"the memory of TPU v9 is unknown.{hint}"
    assert fits_module._capacity(None, 5) == ("TPU v9", Capacity(5, "the limit that was given"))


# memory(over=…) -----------------------------------------------------------------------------------------------------

#                                   needed           limit  halve  gap      next
MEMORY = {
    "the line's": ({8: 80.0, 16: 160.0}, 1000, False, FAR - 16, 100),
    "rounded down": ({1: 30.0, 2: 60.0}, 1000, False, FAR - 2, 33),
    "between two": ({8: 80.0, 64: 1600.0}, 1000, False, 56, 41),  # 80 + 1520/56 · (n - 8) = 1000 at n = 41.9
    "the middle": ({8: 80.0, 64: 1600.0}, 1000, True, 56, 36),
    "no middle without an end": ({8: 80.0, 16: 160.0}, 1000, True, FAR - 16, 100),
    "the next one": ({99: 990.0, 100: 1000.0}, 1000, False, FAR - 100, 101),
    "before the one that doesn't fit": ({1: 1.0, 9: 1000.5}, 1000, False, 8, 8),
    "none between": ({8: 80.0, 9: 1600.0}, 1000, False, 1, None),
    "none that is no answer": ({8: 80.0, 16: 80.0}, 1000, False, FAR - 16, None),
    "below the smallest": ({8: 1600.0}, 1000, False, 8, 5),
}


@pytest.mark.parametrize("name", MEMORY)
def test_memory_tries_the_size_where_the_curve_meets_the_limit(name):
    needed, limit, halve, gap, size = MEMORY[name]
    assert (_gap(needed, limit), _next(needed, limit, halve)) == (gap, size)


def test_memory_compiles_until_the_next_size_does_not_fit():
    needed, rows = {1: 10.0, 2: 20.0}, []

    def row_of(size):
        rows.append(size)
        return SimpleNamespace(needed=10.0 * size, error="")

    assert _compile_towards(needed, 1000, row_of, "n") == (2, "")
    assert rows == [100, 101]
    assert needed == {1: 10.0, 2: 20.0, 100: 1000.0, 101: 1010.0}


def test_memory_stops_with_a_note_at_a_size_that_can_not_be_compiled_and_when_its_time_is_up(monkeypatch):
    failed = SimpleNamespace(needed=math.nan, error="no such shape")
    note = "n = 12,500, which might fit, can't be compiled: no such shape"
    assert _compile_towards({1: 8.0}, 100_000, lambda _: failed, "n") == (1, note)
    now = iter([0.0, 9.9, 10.0])
    monkeypatch.setattr(memory_module, "perf_counter", lambda: next(now))
    fitting = SimpleNamespace(needed=1.0, error="")
    assert _compile_towards({1: 8.0, 2: 16.0}, 100_000, lambda _: fitting, "n") == (1, "")


def test_memory_gives_up_after_twenty_sizes():
    needed = {1: 1.0, 1 << 39: 200.0}  # a step that a bisection takes 39 to find
    tries = _compile_towards(
        needed, 100, lambda size: SimpleNamespace(needed=1.0 if size <= 77_777 else 200.0, error=""), "n"
    )
    assert tries == (20, "")
    assert len(needed) == 22
