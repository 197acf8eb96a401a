"""Why each of some thousand saved calls compiled, and what to do about it: see tests/support/reasons."""

import difflib
import itertools

import pytest

from explorer.analysis.recompiles.reasons import explain
from explorer.model.events.key import Function, Key, Leaf
from tests.support.reasons import explained, kept


@pytest.mark.slow
def test_saved_calls_are_explained_as_they_were():
    before, now = kept(), explained()
    other = itertools.islice(difflib.unified_diff(before, now, "kept", "now", lineterm="", n=0), 40)
    assert before == now, "if this is meant: python -m tests.support.reasons\n" + "\n".join(other)


@pytest.mark.parametrize(
    ("shapes", "steps"),
    [
        ([(8, 0), (16, 5), (24, 0)], (16, 8)),
        ([(8, 0), (16, 8), (24, 0)], (16, 8)),  # a step as large as the largest is enough
        ([(0, 3), (16, 4), (24, 3)], (32, 8)),
        ([(8, 0), (16, 0), (24, 9)], (16, 16)),
    ],
)
def test_arrays_without_elements_have_a_cure_too(shapes, steps):
    """No step holds both nothing and something: a search for one had no end."""
    step = Function("step", "train.py", 3)
    *earlier, last = [Key(step, (Leaf("x", shape, "float32"),)) for shape in shapes]
    reason = explain(last, earlier, frozenset({"trace", "lower", "compile"}))
    padded = ", ".join(f"(0, -x.shape[{axis}] % {step})" for axis, step in enumerate(steps))
    assert f"x = jnp.pad(x, [{padded}])" in reason.fix
