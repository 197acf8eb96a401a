"""Names in a sentence."""

import pytest

from explorer.model.text import list_names


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["x"], "x"),
        (["x", "y"], "x and y"),
        (["x", "y", "z"], "x, y and z"),
        (["x", "y", "z", "u"], "x, y, z and u"),
        (["x", "y", "z", "u", "v"], "x, y, z and 2 more"),
    ],
)
def test_names_are_listed_as_a_sentence_has_them(names, text):
    assert list_names(names) == text
