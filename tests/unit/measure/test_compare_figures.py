"""compare()'s sentences and when it stops, figure by figure: results, samples and times are made by hand."""

import random
from types import SimpleNamespace

import numpy as np
import pytest

import explorer as ex
from explorer.measure import compare as module
from explorer.measure.compare import _differences, _Entrant, _entrants, _is_precise, _take_turns, _unsteady_notes

NAN, INF = float("nan"), float("inf")


def entrant(name, result=None, **sampler):
    return _Entrant(name, abs, (), {}, result, SimpleNamespace(**sampler))


# Results ------------------------------------------------------------------------------------------------------------


class Tensor:
    """One of torch's, which NumPy takes once it is detached and in the host's memory."""

    __module__ = "torch.nn.parameter"

    def __init__(self, numbers, state="attached"):
        self.numbers, self.state = numbers, state

    def detach(self):
        return Tensor(self.numbers, "detached")

    def cpu(self):
        return np.asarray(self.numbers) if self.state == "detached" else None


UP_TO = "new and old return different numbers: by up to {} of the largest"
NAN_NOTE = "one of new and old returns NaN where the other does not"
DIFFERENCES = {
    "the same": ([1.0, 2.0], [1.0, 2.0], ""),
    "as far apart as rounding may put them, a thousandth": ([1000.0], [1001.0], ""),
    "two thousandths": ([1000.0], [1002.0], UP_TO.format("0.002")),
    "as a part of the largest, whatever its sign": ([-4.0, 1.0], [-4.0, 2.0], UP_TO.format("0.25")),
    "where all are 0, itself": ([0.0, 0.0], [0.0, 0.5], UP_TO.format("0.5")),
    "in the imaginary part": ([1.0, 1.0], [1.0 + 2j, 1.0], UP_TO.format("2")),
    "NaN at the same place": ([NAN, 1.0], [NAN, 1.0], ""),
    "NaN at the same place, and another number": ([NAN, 4.0], [NAN, 1.0], UP_TO.format("0.75")),
    "NaN in the one": ([1.0, NAN], [1.0, 1.0], NAN_NOTE),
    "NaN in the other": ([1.0, 1.0], [1.0, NAN], NAN_NOTE),
    "the worst of several": ((np.ones(2), np.ones(2)), (1.5 * np.ones(2), 1.25 * np.ones(2)), UP_TO.format("0.5")),
    "other shapes": (np.ones((2, 3)), np.ones((3, 2)), "new returns an array of shape (3, 2), old of (2, 3)"),
    "other counts": ({"a": 1, "b": 2}, 1, "new returns 1 arrays, old 2"),
    "torch's": (np.ones(2), Tensor([1.0, 3.0]), UP_TO.format("2")),
    "more than 64 MB": (
        1.0, SimpleNamespace(nbytes=(64 << 20) + 1),
        "whether new and old return the same was not looked at: it is more than 64 MB"),
    "no numbers, of 64 MB": (
        1.0, SimpleNamespace(nbytes=64 << 20),
        "whether new and old return the same can't be seen: TypeError: float() argument must be a string or a real "
        "number, not 'types.SimpleNamespace'"),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENCES)
def test_the_note_says_by_how_much_results_differ(name):
    old, new, note = DIFFERENCES[name]
    old, new = (np.asarray(one) if isinstance(one, list) else one for one in (old, new))
    entrants = [entrant("old", old), entrant("new", new)]
    assert _differences(entrants, "old") == ([note] if note else [])
    assert [one.result for one in entrants] == [None, None]  # which would be kept through the measurement else


# When it stops ------------------------------------------------------------------------------------------------------


def rounds_taken(monkeypatch, round_seconds, seconds, precise_from=INF, candidates=1):
    """How many rounds there are, and after which it was looked whether they are precise, by a clock of turns."""
    now, turns, looks, bar = [0.0], [], [], []

    def turn():
        now[0] += round_seconds / candidates
        turns.append(now[0])

    def is_precise():
        looks.append(len(turns) // candidates)
        return looks[-1] >= precise_from

    monkeypatch.setattr(module, "perf_counter", lambda: now[0])
    _take_turns([SimpleNamespace(turn=turn)] * candidates, seconds, is_precise, lambda *said: bar.append(said))
    assert bar[-1] == (min(now[0] / seconds, 1.0), f"round {len(bar)}")
    assert len(turns) == candidates * len(bar)
    return len(bar), looks


ROUNDS = {
    "until the time is up": ((1 / 16, 1.0), (16, [])),
    "three at least": ((0.75, 1.0), (3, [])),
    "fewer where five times the time went by": ((4.0, 1.0), (2, [])),
    "of a short time a second": ((0.5, 0.1), (2, [])),
    "and three where that wasn't over": ((0.25, 0.1), (3, [])),
    "looked at after 30, and after half as many more": ((1 / 64, 1.0), (64, [30, 45])),
    "precise after 30": ((1 / 64, 1.0, 30), (30, [30])),
    "not before two fifths of the time": ((1 / 256, 1.0, 30), (103, [103])),
    "2000 at most": ((0.0, 1.0), (2000, [])),
    "of several candidates": ((1 / 16, 1.0, INF, 4), (16, [])),
}


@pytest.mark.parametrize("name", ROUNDS)
def test_rounds_go_on_until_they_are_precise_or_the_time_is_up(name, monkeypatch):
    given, wanted = ROUNDS[name]
    assert rounds_taken(monkeypatch, *given) == wanted


def test_the_order_of_turns_is_the_same_each_time():
    turns = []
    entrants = [SimpleNamespace(turn=lambda name=name: turns.append(name)) for name in "abc"]
    _take_turns(entrants, 1.0, lambda: True, lambda *_: None)
    order, draw = list("abc"), random.Random(0)
    draw.shuffle(order)
    assert turns[:3] == order


@pytest.mark.parametrize(
    ("taken", "precision", "is_precise"),
    [
        ([[0.75, 1.0, 1.25]], 0.25, True),  # the interval of three is all they span
        ([[0.75, 1.0, 1.25]], 0.24, False),
        ([[0.5, 1.0, 1.25]], 0.25, False),
        ([[0.75, 1.0, 1.5]], 0.25, False),
        ([[1.5, 2.0, 2.5]], 0.25, True),  # of the ratio, not of the baseline
        ([[1.0, 1.0, 1.0], [0.5, 1.0, 1.5]], 0.25, False),  # each of them
    ],
)
def test_ratios_are_precise_if_each_interval_is_narrow_to_both_sides(taken, precision, is_precise):
    entrants = [entrant("base", taken=[1.0] * 3), *(entrant(f"{i}", taken=one) for i, one in enumerate(taken))]
    assert _is_precise(entrants, "base", 0.95, precision) is is_precise


@pytest.mark.parametrize(("warmed", "calls"), [([9.0, 4e-3], ["once", "sample"]), ([1e-3, 5e-3], ["sample"])])
def test_a_short_call_has_its_caches_warmed_by_one_that_does_not_count(warmed, calls):
    made = []
    one = entrant("a", warmed=warmed, taken=[1.0], once=lambda: made.append("once"))
    one.sampler.sample = lambda: made.append("sample") or 2.0
    one.turn()
    assert (made, one.sampler.taken) == (calls, [1.0, 2.0])


# Notes and what is refused ------------------------------------------------------------------------------------------


def sampled(name, is_unsettled, is_noisy, spread):
    return entrant(name, is_unsettled=is_unsettled, samples=SimpleNamespace(is_noisy=is_noisy, spread=spread))


def test_what_did_not_settle_and_what_is_noisy_is_named():
    entrants = [sampled("a", True, True, 0.124), sampled("b", True, False, 0.5), sampled("c", False, True, 0.3)]
    assert _unsteady_notes(entrants, 1.5) == [
        "a, b had not settled after warm-up. Hint: seconds=3",
        "noisy: samples differ from their median by a ±12 %, c ±30 %; a ratio compares calls of the same moment",
    ]
    assert _unsteady_notes([sampled("b", False, False, 0.5)], 1.5) == []


def test_arguments_of_ones_own_are_a_call_a_tuple_or_one_value():
    given = {"shared": abs, 2: (abs, [3, 4]), "one": (abs, 5), "call": ex.Call(abs, 6, k=7), "tuple": (abs, (8,))}
    made = [(one.name, one.args, one.kwargs) for one in _entrants(given, (1,), {"n": 2})]
    assert made == [
        ("shared", (1,), {"n": 2}), ("2", (3, 4), {}), ("one", (5,), {}), ("call", (6,), {"k": 7}), ("tuple", (8,), {}),
    ]  # fmt: skip


def test_a_refusal_says_what_was_given():
    by_name = '\n  Hint: compare({"old": f, "new": g}, x).'
    for given, says in (({"a": abs}, "1"), ({}, "0"), ([abs, abs], "list")):
        with pytest.raises(ex.errors.ArgumentsError) as raised:
            _entrants(given, (), {})
        assert str(raised.value) == f"compare takes two callables or more by name; it got {says}.{by_name}"
    with pytest.raises(ex.errors.NotCallableError, match="candidate 'b' is of type tuple, which can't be called"):
        _entrants({"a": abs, "b": (abs, 1, 2)}, (), {})
