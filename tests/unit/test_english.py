"""The rules of plain English hold; `python -m tests.english --list` prints the sentences that break them.

Equinox, httpx, treescope and JAX: 0 % of docstrings open with a relative clause, 0.4 to 0.8 flagged phrases per 1,000
words.
"""

import pytest

from tests import english


@pytest.fixture(scope="module")
def figures():
    return english.measure()


@pytest.mark.parametrize("kind", ["docstrings", "comments", "strings", "interface", "Markdown"])
def test_each_kind_of_text_is_plain(figures, kind):
    figure = figures[kind]
    worst = [f"{text.path}:{text.line}: {text.words[:100]}" for text in figure.flagged[:20]]
    assert figure.rate <= english.MAX_PHRASES, worst
    assert figure.openers <= english.MAX_OPENERS * figure.texts, worst


def test_no_sentence_of_the_interface_is_too_long():
    assert english.long_sentences() == []


def test_the_linter_finds_what_it_is_for():
    source = '''def lives(x):
    """What a value leads to by itself."""
    raise ValueError("this is none of the ones that nobody asked for")  # the one that lies beside it
'''
    flags = {text.kind: (text.flags, text.opens_with_clause) for text in english.python_texts("f.py", source)}
    assert flags["docstrings"] == (2, True)
    assert flags["strings"][0] >= 3
    assert flags["comments"][0] >= 3
