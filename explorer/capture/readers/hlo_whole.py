"""Whether what follows an HLO instruction's operands is nothing but attributes, so that a pattern may take it whole."""

from __future__ import annotations

import re

_STRING = r'"(?:[^"\\]|\\.)*+"'
_COMMENT = r"/\*[^*]*+\*/"


def _brackets(depth: int) -> str:
    """A pattern of what stands in brackets, with others inside them."""
    inner = f"|{_brackets(depth - 1)}" if depth else ""
    return rf"[({{\[](?:[^\"'(){{}}\[\]/]++|{_STRING}|{_COMMENT}{inner})*+[)}}\]]"


# Attributes of which nothing is left over. Deeper brackets than GPUs' backend_config has are for the tokens.
_WHOLE = re.compile(rf"(?:,\ [\w.\-]++=(?:[^\"'(){{}}\[\]/,=\s<]++|<=|{_STRING}|{_brackets(5)})++)*+", re.X)
# A computation that is written out where it is called: after a brace, `name =`. A comment there is for the tokens too.
_INSIDE = re.compile(r"=\{(?:\s*+\{)?\s*+(?:ROOT[\s%]|%[\w.\-]++\s*+=|[\w.\-]++\s++=|/(?!\*index=))")
_LATER_INSIDE = re.compile(r"branch_computations=\{[^{}]*+\{")


def is_whole(attributes: str) -> bool:
    """True if nothing of the text is left over beside attributes, and none of them holds instructions."""
    if _WHOLE.fullmatch(attributes) is None or _INSIDE.search(attributes):
        return False
    return "branch_computations" not in attributes or not _LATER_INSIDE.search(attributes)
