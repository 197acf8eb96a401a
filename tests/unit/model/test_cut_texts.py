"""Long texts, cut so that what matters of them is seen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.model.text import code_parts, cut_end, cut_middle, cut_middles, did_you_mean, with_article


@pytest.mark.parametrize(
    ("text", "width", "cut"),
    [("abcd", 4, "abcd"), ("abcde", 4, "abc…"), ("ab", 1, "…"), ("ab", 0, "…"), ("", 0, "")],
)
def test_of_a_text_its_beginning_is_kept(text, width, cut):
    assert cut_end(text, width) == cut


@pytest.mark.parametrize(
    ("text", "width", "cut"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abc…fg"),
        ("abcdefgh", 5, "ab…gh"),
        ("a  b\n c", 9, "a b c"),
    ],
)
def test_of_a_text_in_one_line_the_middle_is_left_out(text, width, cut):
    assert cut_middle(text, width) == cut


@given(st.text("ab ", max_size=30), st.integers(1, 20))
def test_no_cut_text_is_longer_than_it_may_be(text, width):
    assert len(cut_middle(text, width)) <= width
    assert len(cut_end(text, width)) <= width


@given(st.text("abcd", min_size=21, max_size=30), st.integers(1, 20))
def test_what_is_cut_takes_all_of_its_width(text, width):
    assert len(cut_middle(text, width)) == len(cut_end(text, width)) == width


@pytest.mark.parametrize(
    "phrase",
    ["an array", "an Array", "a list of 2", "an int", "a uint8", "a UserState", "a Unit", "an Update", "an unset value",
     "a OneHot", "an optimizer", "a Utility", "an Unimplemented", "an elephant", "a Euclidean", "an ImmutableDict"],
)  # fmt: skip
def test_the_article_goes_by_the_sound(phrase):
    assert with_article(phrase.partition(" ")[2]) == phrase


SAME = "s" * 30


@pytest.mark.parametrize(
    ("before", "after", "cut"),
    [
        ("a b", "a\nc", ("a b", "a c")),  # short ones are whole
        (SAME + "x" * 30, SAME + "y" * 30, (SAME + "x" * 30, SAME + "y" * 30)),  # of sixty letters
        (SAME + "x" * 31, SAME + "y", (f"…{'s' * 24}{'x' * 31}", f"…{'s' * 24}y")),
        (SAME + "x" * 40, SAME + "y", (f"…{'s' * 24}{'x' * 34}…", f"…{'s' * 24}y")),
        # They differ so early that their beginnings say it.
        ("s" * 24 + "x" * 40, "y", ("s" * 24 + "x" * 6 + "…" + "x" * 29, "y")),
        ("s" * 24 + "x" * 40, "s" * 24 + "y", ("s" * 24 + "x" * 6 + "…" + "x" * 29, "s" * 24 + "y")),
        ("s" * 25 + "x" * 40, "s" * 25 + "y", (f"…{'s' * 24}{'x' * 34}…", f"…{'s' * 24}y")),
        (SAME + "x" * 40, SAME, (f"…{'s' * 24}{'x' * 34}…", f"…{'s' * 24}")),  # one is the other's beginning
    ],
)
def test_two_long_texts_begin_shortly_before_they_differ(before, after, cut):
    assert cut_middles(before, after) == cut


@pytest.mark.parametrize(
    ("name", "allowed", "question"),
    [
        ("treshold", ["seconds", "threshold"], " Did you mean `threshold`?"),
        ("lins", ["line", "lines", "x"], " Did you mean `lines` or `line`?"),
        ("abc", ["xyz"], ""),
        ("aaa1", ["aaa2", "aaa3", "aaa4", "aaa5"], " Did you mean `aaa5` or `aaa4` or `aaa3`?"),  # three at most
    ],
)
def test_a_name_that_is_near_is_asked_for(name, allowed, question):
    assert did_you_mean(name, allowed) == question


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("plain", [("plain", False)]),
        ("`x`", [("x", True)]),
        ("a `x` b `y`", [("a ", False), ("x", True), (" b ", False), ("y", True)]),
        ("``a", [("a", False)]),
        ("it's ` alone", [("it's ` alone", False)]),
        ("`x` then ` alone", [("x", True), (" then ` alone", False)]),
    ],
)
def test_code_stands_between_backticks(text, parts):
    assert code_parts(text) == parts
