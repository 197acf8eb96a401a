"""Why each of some thousand saved calls compiled, and what to do about it: see tests/support/reasons."""

import difflib
import itertools

from tests.support.reasons import explained, kept


def test_saved_calls_are_explained_as_they_were():
    before, now = kept(), explained()
    other = itertools.islice(difflib.unified_diff(before, now, "kept", "now", lineterm="", n=0), 40)
    assert before == now, "if this is meant: python -m tests.support.reasons\n" + "\n".join(other)
