"""What every analysis says about saved captures, fact by fact: see tests/support/answers."""

import difflib
import itertools

import pytest

from tests.support.answers import SAVED, answers, kept


@pytest.mark.parametrize("name", SAVED)
def test_the_analyses_say_of_a_saved_capture_what_they_said(name):
    before, now = kept(name), answers(name)
    other = itertools.islice(difflib.unified_diff(before, now, "kept", "now", lineterm="", n=0), 40)
    assert before == now, "if this is meant: python -m tests.support.answers\n" + "\n".join(other)
