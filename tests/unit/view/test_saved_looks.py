"""What measured results look like, to the letter: see tests/support/displays."""

import pytest

from tests.support.displays import SAVED, kept, looks


@pytest.mark.parametrize("name", SAVED)
def test_a_saved_result_looks_as_it_did(name):
    for ending, text in looks(name).items():
        assert text == kept(name, ending), "if this is meant: python -m tests.support.displays"
