"""The user's function rewritten so that a rule has nothing to find in it any more: one file per kind of rewrite.

A rewrite works on the text, through libcst, which keeps each comment and blank. It is offered only if it is certain:
the result is parsed, and traced in the place of the user's function, and then the rule must not find it again.
"""
