"""What measured results look like, to the letter: see tests/support/displays."""

import difflib
import itertools

import pytest

from tests.support.displays import SAVED, kept, looks


@pytest.mark.parametrize("name", SAVED)
def test_a_saved_result_looks_as_it_did(name):
    for ending, text in looks(name).items():
        before = kept(name, ending)
        if text != before:  # pytest would compare two long texts letter by letter, for half a minute
            changes = difflib.unified_diff(before.splitlines(), text.splitlines(), "kept", "now", lineterm="", n=0)
            shown = "\n".join(itertools.islice(changes, 40))
            pytest.fail(f"{ending}, if this is meant: python -m tests.support.displays\n{shown}")
