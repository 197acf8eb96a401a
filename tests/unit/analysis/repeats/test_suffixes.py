"""Repeats of a string, judged by looking at all of its substrings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.analysis.repeated_sequences import Repeat, common_prefixes, find_repeats, suffix_array

strings = st.text("abc", max_size=40) | st.builds(
    lambda parts: "".join(parts), st.lists(st.sampled_from(["abcd", "abd", "x", "y", "zz"]), max_size=12)
)


@given(strings)
def test_suffixes_are_sorted(text):
    codes = np.array([ord(letter) for letter in text], np.int64)
    order = suffix_array(codes).tolist()
    assert order == sorted(range(len(text)), key=lambda at: text[at:])
    for first, second, shared in zip(order, order[1:], common_prefixes(codes, np.array(order, np.int64)), strict=False):
        one, two = text[first:], text[second:]
        assert one[:shared] == two[:shared]
        assert one[shared : shared + 1] != two[shared : shared + 1]


@given(strings, st.integers(1, 4), st.integers(2, 4))
def test_repeats_are_what_they_say_and_none_overlap(text, length, count):
    covered = set()
    repeats = find_repeats(text, length=length, count=count)
    for repeat in repeats:
        assert repeat.length >= length
        assert len(repeat.starts) >= count
        assert len({text[at : at + repeat.length] for at in repeat.starts}) == 1
        for at in repeat.starts:
            places = set(range(at, at + repeat.length))
            assert not places & covered
            covered |= places
    assert len({text[repeat.starts[0] :][: repeat.length] for repeat in repeats}) == len(repeats)


def repeated_anywhere(text, length):
    """Whether a substring occurs twice without overlapping."""
    pieces = [(text[at : at + length], at) for at in range(len(text) - length + 1) if "." not in text[at : at + length]]
    return any(one == two and at + length <= other for one, at in pieces for two, other in pieces)


@given(strings, st.integers(1, 4))
def test_what_is_not_covered_does_not_repeat(text, length):
    rest = list(text)
    for repeat in find_repeats(text, length=length):
        for at in repeat.starts:
            rest[at : at + repeat.length] = "." * repeat.length
    assert not repeated_anywhere("".join(rest), length)


@pytest.mark.parametrize("turn", ["ab", "abc", "aab", "abcabd"])
@pytest.mark.parametrize("turns", [2, 3, 10, 101])
def test_the_turns_of_a_loop_are_found(turn, turns):
    assert find_repeats(f"xy{turn * turns}z") == (Repeat(len(turn), tuple(range(2, 2 + len(turn) * turns, len(turn)))),)


def test_turns_with_something_else_between_are_found():
    text = "".join(f"abcd{chr(200 + turn)}" for turn in range(20))
    assert find_repeats(text) == (Repeat(4, tuple(range(0, 100, 5))),)


def test_a_long_stream_takes_no_time():
    rng = np.random.default_rng(0)
    stream = [*range(50), *(list(range(50, 80)) * 60), *rng.integers(100, 10_000, 500).tolist()]
    repeats = find_repeats(stream)
    assert Repeat(30, tuple(range(50, 50 + 30 * 60, 30))) in repeats
