"""Which question a text means: how its words count, how far a spelling may be off, and which operation it names."""

import pytest

from explorer.analysis.question_catalogue import (
    QUESTIONS,
    distance,
    meant,
    operation_in,
    operation_names,
    rank,
    words_of,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Why are there COPIES?", ["why", "are", "there", "copies"]),
        ("didn't it run", ["did", "not", "it", "run"]),
        ("the kernel's line", ["the", "kernel", "line"]),
        ("the kernel’s line", ["the", "kernel", "line"]),
        ("reduce_sum, dot.1 and x*y.", ["reduce_sum", "dot.1", "and", "x*y"]),
        ("a * b", ["a", "b"]),  # a sign alone is no word
        ("2×3", ["2×3"]),
        ("", []),
    ],
)
def test_the_words_of_a_text(text, words):
    assert words_of(text) == words


def scores(text, names=()):
    """Scores by key of the questions that use all words."""
    return {match.question.key: match.score for match in rank(text, frozenset(names).__contains__) if not match.unused}


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("copies", 2),  # a word of the question
        ("why copies", 3),  # and a hint
        ("copies copies", 2),  # a word counts once
        ("copeis", 1),  # written almost right: three quarters of two, and half a point less
        ("why", None),  # a hint alone asks nothing
        ("copies banana", None),  # a word that it can't use
        ("copies 5", None),  # a number that is nothing of it
        ("copies of line 5", None),  # there is no answer about the copies of one line
        ("copies of the my it", 2),  # small words ask nothing
    ],
)
def test_how_the_words_of_a_text_count_for_a_question(text, score):
    assert scores(text).get("copies") == score


def test_a_name_is_used_only_by_a_question_about_names():
    assert "removed" not in scores("who removed weights")
    assert scores("who removed weights", ["weights"])["removed"] == 3
    assert "copies" not in scores("copies weights", ["weights"])
    assert rank("copies weights", ["weights"].__contains__)[0].unused == ("weights",)


def test_a_line_is_used_only_by_a_question_about_lines():
    assert meant(rank("who removed line 5")).key == "removed"
    assert rank("was line 5 donated")[0].unused == ("line 5",)


def test_the_likeliest_question_is_first_and_each_is_found_by_its_own_words():
    assert [meant(rank(question.title.split(" (say")[0])).key for question in QUESTIONS] == [q.key for q in QUESTIONS]
    assert meant(rank("copies and flops")) is None  # two questions, of which neither uses all words


@pytest.mark.parametrize(
    ("word", "other", "most", "apart"),
    [
        ("fusion", "fusion", 2, 0),
        ("fusoin", "fusion", 2, 1),  # two neighbours swapped are one mistake
        ("fuson", "fusion", 2, 1),
        ("fusiion", "fusion", 2, 1),
        ("fusian", "fusion", 2, 1),
        ("ab", "ba", 2, 1),
        ("ca", "abc", 3, 3),  # optimal string alignment: nothing is edited twice, which would make it 2
        ("abc", "", 3, 3),
        ("abcd", "a", 2, 3),  # beyond the most
    ],
)
def test_how_many_letters_two_words_are_apart(word, other, most, apart):
    assert distance(word, other, most) == distance(other, word, most) == apart


@pytest.mark.parametrize(
    ("word", "is_meant"),
    [
        ("copy", True),
        ("copi", False),  # of four letters, none may be wrong
        ("layuot", True),  # of five to eight, one
        ("laoyut", True),
        ("lauoty", False),
        ("transpsoe", True),  # of nine and more, two
        ("trnaspsoe", True),
        ("trnapssoee", False),
    ],
)
def test_how_far_a_spelling_may_be_off(word, is_meant):
    assert ("copies" in scores(word)) == is_meant


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("the multiplication", "mul"),
        ("times", "mul"),
        ("the mul", "mul"),
        ("matmul", "dot_general"),
        ("integer_pow", "integer_pow"),
        ("integer-pow", "integer_pow"),
        ("the division of it", ""),  # there is none in the program
        ("summary", ""),  # `sum` is too short for a beginning
        ("sum", "reduce_sum"),
    ],
)
def test_the_operation_that_a_text_names(text, operation):
    names = operation_names(["mul", "dot_general", "reduce_sum", "integer_pow"])
    assert operation_in(text.split(), names) == operation
