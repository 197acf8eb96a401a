"""The user's function rewritten so that a rule has nothing to find in it any more: one file per kind of rewrite.

A rewrite works on the text, through libcst, which keeps each comment and blank. It is offered only if it is certain:
what it gives is parsed, and traced in the place of the user's function, and then the rule has to be content.
"""

from explorer.pitfalls.fixes.fixing import fixed

__all__ = ["fixed"]
