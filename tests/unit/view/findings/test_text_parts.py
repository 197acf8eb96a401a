"""Which parts of a sentence are code."""

from explorer.view.findings.text_parts import split_code


def test_backticks_and_calls_are_code_and_the_words_between_are_not():
    assert list(split_code("use `x` or jnp.where(a, (b)), please")) == [
        ("use ", False), ("x", True), (" or ", False), ("jnp.where(a, (b))", True), (", please", False),
    ]  # fmt: skip
    assert list(split_code("nothing here")) == [("nothing here", False)]
