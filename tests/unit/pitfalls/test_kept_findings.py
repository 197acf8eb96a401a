"""What lint says of the corpus's snippets, to the letter: see tests/corpus_pitfalls/kept.py."""

import difflib
import itertools
import sys

import pytest

from tests.corpus_pitfalls.kept import MODULES, findings_of, kept


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="other Pythons and JAXes place some errors otherwise")
@pytest.mark.parametrize("name", MODULES)
def test_lint_says_of_a_snippet_what_it_said(name):
    before, now = kept(name), findings_of(name)
    other = itertools.islice(difflib.unified_diff(before, now, "kept", "now", lineterm="", n=0), 40)
    assert before == now, "if this is meant: python -m tests.corpus_pitfalls.kept\n" + "\n".join(other)
