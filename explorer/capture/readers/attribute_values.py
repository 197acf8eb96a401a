"""How much of an attribute's value readers keep."""

from explorer.model.attributes import LONGEST_VALUE


def shorten_value(text: str) -> str:
    """A value, cut at `LONGEST_VALUE` characters with its length said: `{0, 1, 2, … (12,345 characters)`."""
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}… ({len(text):,} characters)"
